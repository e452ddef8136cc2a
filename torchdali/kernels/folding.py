"""Functions of numbers that `torch.compile` calls, instead of tracing them, while it traces an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["fold"]

F = TypeVar("F", bound=Callable[..., Any])


def fold(function: F) -> F:
    """Mark a pure function of Python numbers: its result is a constant of a compiled graph.

    It must return numbers, tuples of numbers, or tensors that are never changed. Shapes must also be constants: the
    graph is compiled for one shape (``torch.compile(..., dynamic=False)``).
    """
    # torch.compiler.assume_constant_result does the same, but would import the compiler.
    vars(function)["_dynamo_marked_constant"] = True
    return function
