"""Functions of numbers, which `torch.compile` calls while it traces an operator, instead of tracing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["fold"]

F = TypeVar("F", bound=Callable[..., Any])


def fold(function: F) -> F:
    """Mark a pure function of Python numbers: its result is a constant of a compiled graph.

    It must return numbers or tuples of them, or tensors that nobody changes. Shapes must be constants too: this
    graph is compiled for one shape (``torch.compile(..., dynamic=False)``).
    """
    # torch.compiler.assume_constant_result does it, but would import the compiler.
    vars(function)["_dynamo_marked_constant"] = True
    return function
