"""Plans: whether and how the samples of a data set are made by torchdali."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data._utils.collate import default_collate

from torchdali.dataloader._notes import not_accelerated
from torchdali.dataloader._rows import Engine, Rows, bases_of, is_rows

__all__ = ["Plan", "left_to_torch", "plan_of"]


@dataclass(frozen=True)
class Plan:
    """Decision on how the samples of a loader are made.

    Attributes:
        open: Makes the engine; None if torch makes the samples.
        notes: What is accelerated or called as it is, and why the rest is left to torch.
        key: Equal for plans of which one may use the engine of the other.
        leaves: The data sets of which pictures are; None if the engine makes whole samples.
        is_image: See `Compiled`.
        late: Makes the data set that torch's workers get in the place of the loader's; None if they get that.
    """

    open: Callable[[], Engine] | None
    notes: tuple[str, ...]
    key: Any = None
    leaves: Any = field(default=None, compare=False)
    is_image: bool = False
    late: Callable[[], Any] | None = None


def left_to_torch(why: str, *notes: str) -> Plan:
    """Return a plan that leaves all to torch."""
    return Plan(None, (*notes, not_accelerated(why)))


def plan_of(loader: Any) -> Plan:
    """Return the plan of a loader, as its data set is now."""
    dataset = loader.dataset
    if os.environ.get("TORCHDALI_ACCELERATE", "1").strip().lower() in ("0", "off", "false", "no"):
        return left_to_torch("switched off by TORCHDALI_ACCELERATE")
    if loader._dataset_kind != 0:
        return left_to_torch(f"{type(dataset).__name__}: an iterable data set")
    if is_rows(dataset):
        if loader.collate_fn is not default_collate or not loader._auto_collation:
            return left_to_torch("TensorDataset: samples go to a collate_fn, or are not put into batches")
        return Plan(lambda: Rows(dataset), ("TensorDataset: a batch is a selection of rows",), ("rows", id(dataset)))
    classes = [type(base) for base in bases_of(dataset)]
    hugging = getattr(sys.modules.get("datasets"), "Dataset", None)
    if not any(kind is hugging or _is_of_torchvision(kind) for kind in classes):
        return left_to_torch(f"{classes[0].__name__}: a data set of your own")
    from torchdali.dataloader._picture_plans import picture_plan  # which imports torchvision

    return picture_plan(loader)


def _is_of_torchvision(kind: type) -> bool:
    return any(each.__module__.partition(".")[0] == "torchvision" for each in kind.__mro__)
