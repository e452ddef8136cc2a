"""Arithmetic, comparison and bitwise operators of `Tensor` and `Batch`, with DALI's type promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchdali.experimental.dynamic._value import HOOKS, LazyValue
from torchdali.graph.nodes import BINARY, COMPARISON, UNARY

__all__ = ["install"]


def install(kind: type[LazyValue]) -> None:
    """Add the operators to a class."""
    for name in (*BINARY, *COMPARISON, *UNARY):
        setattr(kind, f"__{name}__", _forward(name))
    for name in BINARY:
        setattr(kind, f"__r{name}__", _backward(name))


def _forward(name: str) -> Callable[..., Any]:
    if name in UNARY:
        return lambda self: HOOKS.arithmetic(name, (self,))
    return lambda self, other: HOOKS.arithmetic(name, (self, other))


def _backward(name: str) -> Callable[..., Any]:
    return lambda self, other: HOOKS.arithmetic(name, (other, self))
