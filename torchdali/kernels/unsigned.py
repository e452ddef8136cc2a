"""Functions of uint64 numbers that PyTorch doesn't have. Arguments and results are int64 tensors with the same bits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["FUNCTIONS", "compare_mixed"]

_SIGN_BIT = -(2**63)  # the sign bit of int64


def _order(x: Tensor) -> Tensor:
    """Convert to int64 numbers that have the same order as the unsigned numbers."""
    return x ^ _SIGN_BIT


def _less(x: Tensor, y: Tensor) -> Tensor:
    return _order(x) < _order(y)


def _min(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(_less(x, y), x, y)


def _max(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(_less(y, x), x, y)


def _clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return _min(_max(x, low), high)


def _shift_right(x: Tensor, n: Tensor) -> Tensor:
    """Shift right and fill with zeros; PyTorch would fill with copies of the sign bit."""
    n = n & 63
    halved = (x >> 1) & (2**63 - 1)
    return torch.where(n == 0, x, halved >> (n - 1).clamp(min=0))


def _divide(x: Tensor, y: Tensor) -> Tensor:
    """Divide unsigned numbers.

    Half of the dividend fits int64. Twice the quotient of this half is the result, or one less than the result.
    """
    if bool((y == 0).any()):
        raise ValueError("integer division by zero")
    small = y.clamp(min=1)
    halved = (x >> 1) & (2**63 - 1)
    quotient = torch.div(halved, small, rounding_mode="trunc") << 1
    rest = x - quotient * small
    quotient = quotient + _less(rest, small).logical_not()
    return torch.where(y < 0, _less(x, y).logical_not().to(x.dtype), quotient)


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    return x - _divide(x, y) * y


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "floordiv": _divide,
    "mod": _remainder,
    "rshift": _shift_right,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
    "abs": lambda x: x,
    "lt": _less,
    "gt": lambda x, y: _less(y, x),
    "le": lambda x, y: _less(y, x).logical_not(),
    "ge": lambda x, y: _less(x, y).logical_not(),
}

_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def compare_mixed(name: str, unsigned_first: bool, x: Tensor, y: Tensor) -> Tensor:
    """Compare uint64 numbers (as int64 with the same bits) with signed numbers, by value.

    Args:
        name: Comparison: "eq", "ne", "lt", "le", "gt" or "ge".
        unsigned_first: True if `x` has the unsigned numbers, False if `y` has them.
        x, y: Operands.
    """
    if not unsigned_first:
        return compare_mixed(_MIRRORED[name], True, y, x)
    if name in ("ne", "ge"):
        return compare_mixed("eq" if name == "ne" else "lt", True, x, y).logical_not()
    fits = x >= 0  # True if the unsigned number fits int64; a number that doesn't fit is above all signed numbers
    compared: Tensor = getattr(torch, name)(x, y)
    return compared & fits if name in ("eq", "lt", "le") else compared | fits.logical_not()
