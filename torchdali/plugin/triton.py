"""Mark the pipeline that a model repository of Triton's DALI backend serializes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["autoserialize", "invoke_autoserialize"]

F = TypeVar("F", bound=Callable[..., object])

_marked: list[Callable[..., Any]] = []


def autoserialize(dali_pipeline: F) -> F:
    """Mark the function that `invoke_autoserialize` serializes.

    Args:
        dali_pipeline: Made by ``@pipeline_def``.

    Raises:
        TypeError: it is something else.
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise TypeError("only a pipeline_def can be decorated with autoserialize")
    if dali_pipeline not in _marked:
        _marked.append(dali_pipeline)
    return dali_pipeline


def invoke_autoserialize(filename: str | os.PathLike[str]) -> None:
    """Build the marked pipeline and write it to a file.

    Raises:
        RuntimeError: no function is marked, or several are.
    """
    if not _marked:
        raise RuntimeError("no pipeline_def is decorated with autoserialize")
    if len(_marked) > 1:
        names = ", ".join(f"{each.__module__}.{each.__qualname__}" for each in _marked)
        raise RuntimeError(f"{len(_marked)} functions are decorated with autoserialize, and one is wanted: {names}")
    pipeline = _marked[0]()
    pipeline.serialize(filename=os.fspath(filename))
