"""`Plan`: the decision on how the samples of a loader are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchdali.dataloader._notes import Notes
from torchdali.dataloader._rows import Engine

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """Decision on how the samples of a loader are made.

    Attributes:
        open: Makes the engine; None if torch makes the samples.
        notes: What is accelerated, and why the rest isn't.
        key: Equal for plans of which one may use the engine of the other.
        leaves: The datasets of the images; None if the engine makes whole samples.
        is_lazy: JPEGs that the dataset opens with Pillow are lazy images.
    """

    open: Callable[[], Engine] | None
    notes: Notes
    key: Any = None
    leaves: Any = field(default=None, compare=False)
    is_lazy: bool = False
