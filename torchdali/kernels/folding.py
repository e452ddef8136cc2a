"""Mark functions that `torch.compile` calls instead of tracing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["fold"]

F = TypeVar("F", bound=Callable[..., Any])


def fold(function: F) -> F:
    """Mark a pure function of Python numbers, so that `torch.compile` calls the function instead of tracing it.

    The function must return numbers, tuples of numbers, or tensors that are never changed. The results become constants
    of the compiled graph. If the arguments of the function depend on shapes, the graph must be compiled for a single
    shape (``torch.compile(..., dynamic=False)``).
    """
    # torch.compiler.assume_constant_result does the same, but would import the compiler.
    vars(function)["_dynamo_marked_constant"] = True
    return function
