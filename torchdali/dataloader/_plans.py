"""Choose the plan of a loader: the decision whether and how it is accelerated.

A loader is accelerated only if PyTorch's own loader would run no other code than PyTorch's and torchvision's; see
`_pristine`. All other loaders run PyTorch's code, and their notes contain the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import ConcatDataset, IterableDataset, Subset

from torchdali.dataloader import _notes as notes
from torchdali.dataloader._notes import Notes, NotSupportedError
from torchdali.dataloader._pristine import find_collate_change, find_dataset_change
from torchdali.dataloader._rows import LoaderPlan, TensorEngine, find_leaf_datasets, is_plain_tensor_dataset
from torchdali.kernels.native import status as native_status

__all__ = ["plan_of"]


def plan_of(loader: Any) -> LoaderPlan:
    """Return the plan of a loader, for the current state of its dataset and transforms."""
    if os.environ.get("TORCHDALI_ACCELERATE", "1").strip().lower() in ("0", "off", "false", "no"):
        return LoaderPlan(None, Notes([notes.not_accelerated_note(notes.switched_off_reason())]))
    try:
        return _choose(loader)
    except NotSupportedError as reason:
        return _create_fallback_plan(str(reason))
    except Exception as error:  # e.g. of a property of the user's dataset; PyTorch may never read the property
        return _create_fallback_plan(notes.raised_reason(error))


def _choose(loader: Any) -> LoaderPlan:
    """Return the plan of an accelerated loader.

    Raises:
        NotSupportedError: the loader can't be accelerated.
    """
    dataset = loader.dataset
    if isinstance(dataset, IterableDataset):
        raise NotSupportedError(notes.iterable_dataset_reason(dataset))
    if not (
        is_plain_tensor_dataset(dataset)
        or all(_is_torchvision_class(type(leaf)) for leaf in find_leaf_datasets(dataset))
    ):
        raise NotSupportedError(notes.own_dataset_reason(find_leaf_datasets(dataset)[0]))
    _check_functions(loader)
    if is_plain_tensor_dataset(dataset):
        return LoaderPlan(
            lambda: TensorEngine(dataset),
            Notes(["TensorDataset: a batch is a selection of rows"]),
            ("rows", id(dataset)),
        )
    from torchdali.dataloader._image_plans import create_image_plan  # imported late because it imports torchvision

    return create_image_plan(loader)


def _check_functions(loader: Any) -> None:
    """Check that PyTorch's loader would not call the user's code. `create_image_plan` checks the transforms.

    Raises:
        NotSupportedError: PyTorch's loader would call the user's code.
    """
    if loader.batch_sampler is None:
        raise NotSupportedError(notes.no_batches_reason())
    if loader.num_workers and loader.worker_init_fn is not None:
        raise NotSupportedError(notes.own_function_reason("worker_init_fn", loader.worker_init_fn))
    change = find_collate_change(loader.collate_fn)
    if change:
        raise NotSupportedError(change)
    if torch.get_default_device().type != "cpu":
        raise NotSupportedError(notes.changed_code_reason("torch.get_default_device() is not the CPU"))
    for part in _walk_datasets(loader.dataset):
        change = find_dataset_change(part)
        if change:
            raise NotSupportedError(change)


def _walk_datasets(dataset: Any) -> Iterator[Any]:
    """Yield a dataset and, recursively, the datasets in a subset or concatenation."""
    yield dataset
    inner = (dataset.dataset,) if type(dataset) is Subset else ()
    for each in dataset.datasets if type(dataset) is ConcatDataset else inner:
        yield from _walk_datasets(each)


def _create_fallback_plan(reason: str) -> LoaderPlan:
    """Return the plan of a loader that isn't accelerated. If the native library is loaded, JPEGs become lazy images."""
    is_lazy = native_status().library is not None
    decoding = [notes.LAZY] if is_lazy else notes.fast_path_notes()
    return LoaderPlan(None, Notes([*decoding, notes.not_accelerated_note(reason)]), is_lazy=is_lazy)


def _is_torchvision_class(kind: type) -> bool:
    return any(each.__module__.partition(".")[0] == "torchvision" for each in kind.__mro__)
