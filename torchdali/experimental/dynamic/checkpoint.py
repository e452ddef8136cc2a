"""Checkpoints: the states of readers and random generators, by name."""

from __future__ import annotations

from torchdali.experimental.dynamic._checkpoint import Checkpoint
from torchdali.experimental.dynamic._context import EvalContext

__all__ = ["Checkpoint", "current"]


def current() -> Checkpoint:
    """Return the checkpoint of the current `EvalContext`."""
    return EvalContext.current().checkpoint
