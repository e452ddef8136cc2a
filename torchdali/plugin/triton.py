"""Decorator `autoserialize`, which marks the pipeline of a model for Triton's DALI backend.

`invoke_autoserialize` writes the marked pipeline to a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["autoserialize", "invoke_autoserialize"]

F = TypeVar("F", bound=Callable[..., object])

_marked: list[Callable[..., Any]] = []


def autoserialize(dali_pipeline: F) -> F:
    """Mark the function whose pipeline `invoke_autoserialize` must write; return the function unchanged.

    Args:
        dali_pipeline: A function decorated with ``@pipeline_def``.

    Raises:
        TypeError: the argument isn't decorated with ``@pipeline_def``.
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise TypeError("only a pipeline_def can be decorated with autoserialize")
    if dali_pipeline not in _marked:
        _marked.append(dali_pipeline)
    return dali_pipeline


def invoke_autoserialize(filename: str | os.PathLike[str]) -> None:
    """Create the pipeline of the marked function, and write it to a file.

    Raises:
        RuntimeError: no function is marked, or several functions are marked.
    """
    if not _marked:
        raise RuntimeError("autoserialize must decorate a pipeline_def, but decorates none")
    if len(_marked) > 1:
        names = ", ".join(f"{each.__module__}.{each.__qualname__}" for each in _marked)
        raise RuntimeError(f"autoserialize must decorate exactly one function, got {len(_marked)}: {names}")
    pipeline = _marked[0]()
    pipeline.serialize(filename=os.fspath(filename))
