"""Convert between dtypes with the rules of DALI's cast, which saturates, and rounds halves away from zero.

The functions don't rescale values: 255 becomes 255.0. Operators that rescale use the factor `full_scale`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import is_plain

__all__ = [
    "convert",
    "convert_number",
    "full_scale",
    "integer_limits",
    "round_half_away",
    "to_bytes",
]

# The largest value below one half. Adding it and truncating rounds halves away from zero. Adding 0.5 would be wrong: it
# would round 0.49999997 to 1.
_BELOW_HALF = {torch.float32: 0.49999997, torch.float64: 0.49999999999999994}

# PyTorch 2.6 has no arithmetic for these unsigned dtypes, so their values are computed in wider signed dtypes.
_CARRIER = {torch.uint16: torch.int32, torch.uint32: torch.int64}

_NAN = {
    torch.int32: -(2**31),
    torch.int64: -(2**63),
    torch.uint32: 0,
    torch.uint64: -(2**63),  # the bits of 2**63
}

_SMALL_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.uint16)


def integer_limits(dtype: torch.dtype) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer dtype."""
    bits = dtype.itemsize * 8
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed else (0, 2**bits - 1)


def full_scale(dtype: torch.dtype) -> float:
    """Return the value of full intensity: the maximum of an integer dtype, otherwise 1."""
    if dtype.is_floating_point or dtype == torch.bool:
        return 1.0
    return float(integer_limits(dtype)[1])


def round_half_away(x: Tensor) -> Tensor:
    """Round a floating-point tensor to integers, halves away from zero; the dtype is kept.

    Infinities and NaN are unchanged.
    """
    if x.dtype not in _BELOW_HALF:
        return round_half_away(x.float()).to(x.dtype)
    return _add_half(x).trunc_()


def _add_half(x: Tensor) -> Tensor:
    """Add almost one half to positive numbers, and subtract it from negative numbers, so that truncation rounds."""
    half = torch.full((), _BELOW_HALF[x.dtype], dtype=x.dtype, device=x.device)
    return half.copysign(x).add_(x)


def convert(x: Tensor, dtype: torch.dtype, *, rounding: str = "round") -> Tensor:
    """Convert to another dtype with the same rules as DALI's cast.

    Floats are rounded, halves away from zero. Values out of range saturate: in uint8, -1 becomes 0 and 300 becomes 255.
    NaN becomes 0 in uint32 and in 8-bit and 16-bit integers, the smallest value in int32 and int64, ``2**63`` in
    uint64, and True in bool. A float becomes True unless it rounds to 0.

    Args:
        x: Tensor of any shape, any real dtype or bool, on any device.
        dtype: Dtype of the result; if `x` has this dtype, `x` itself is returned.
        rounding: "round" or "truncate". With "truncate", floats are rounded toward zero, and floats that are too large
            for a smaller float dtype become its largest value instead of infinity. The operators crop, slice and pad
            use "truncate".

    Returns:
        A tensor of the same shape, with the dtype `dtype`.
    """
    source = x.dtype
    if source == dtype:
        return x
    if dtype.is_floating_point:
        return _to_float(x, dtype) if rounding == "truncate" else x.to(dtype)
    if source == torch.bool:
        return x.to(dtype)
    if not source.is_floating_point:
        return x.to(dtype) if dtype == torch.bool else _integer_to_integer(x, dtype)
    if source.itemsize == 2:
        x = x.float()
    if dtype == torch.bool:
        return (x.abs() < (0.5 if rounding == "round" else 1.0)).logical_not_()
    if dtype in _SMALL_INTEGERS:
        return _float_to_small(x, dtype, rounding)
    return _float_to_wide(x, dtype, rounding)


def convert_number(value: float, dtype: torch.dtype, *, rounding: str = "round") -> int | float | bool:
    """Convert one Python number with the same rules as `convert`.

    Returns:
        A Python bool, int or float that `dtype` represents exactly.
    """
    if isinstance(value, int) and not (dtype.is_floating_point or dtype == torch.bool):
        low, high = integer_limits(dtype)
        return min(max(int(value), low), high)
    if isinstance(value, int) and dtype == torch.bool:
        return value != 0
    number: int | float | bool = convert(
        torch.tensor(float(value), dtype=torch.float64), dtype, rounding=rounding
    ).item()
    return number


def _to_float(x: Tensor, dtype: torch.dtype) -> Tensor:
    source = x.dtype
    if dtype.itemsize >= (source.itemsize if source.is_floating_point else 4):
        return x.to(dtype)
    limit = torch.finfo(dtype).max
    wide = x if source.is_floating_point else x.float()
    return wide.clamp(-limit, limit).to(dtype)


def _integer_to_integer(x: Tensor, dtype: torch.dtype) -> Tensor:
    if x.dtype == torch.uint64:
        return _from_uint64(x, dtype)
    low, high = integer_limits(x.dtype)
    new_low, new_high = integer_limits(dtype)
    if new_low <= low and high <= new_high:
        return x.to(dtype)
    widened = x.to(_CARRIER.get(x.dtype, x.dtype))
    return widened.clamp(max(low, new_low), min(high, new_high)).to(dtype)


def _from_uint64(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert uint64 values via int64, in which values from 2**63 on are negative."""
    signed = x.view(torch.int64)
    high = min(integer_limits(dtype)[1], 2**63 - 1)
    return signed.masked_fill(signed < 0, high).clamp_(max=high).to(dtype)


def _float_to_small(x: Tensor, dtype: torch.dtype, rounding: str) -> Tensor:
    low, high = integer_limits(dtype)
    if rounding == "round":
        # For unsigned dtypes, the sign does not matter, since negative values become 0.
        x = x.add(_BELOW_HALF[x.dtype]) if low == 0 else _add_half(x)
        x = x.clamp_(low, high)
    else:
        x = x.clamp(low, high)
    # The conversion by way of int16 is several times faster. NaN becomes 0 in all of these dtypes.
    return x.to(torch.int16).to(dtype) if dtype == torch.uint8 else x.to(dtype)


def to_bytes(x: Tensor, *, saturate: bool = True) -> Tensor:
    """Convert float32 to uint8, rounding halves to even numbers, as DALI's resize does.

    Args:
        x: Tensor to convert; it may be overwritten.
        saturate: True to clamp values to 0..255; False if all values are known to round to this range.
    """
    if not saturate and is_plain(x):  # NumPy rounds and converts in one step
        result = np.empty(tuple(x.shape), np.uint8)
        np.rint(x.numpy(), out=result, casting="unsafe")
        return torch.from_numpy(result)
    x.round_()
    if saturate:
        x.clamp_(0, 255)
    return x.to(torch.int16).to(torch.uint8)


def _float_to_wide(x: Tensor, dtype: torch.dtype, rounding: str) -> Tensor:
    if rounding == "round":
        x = _add_half(x)
    low, high = integer_limits(dtype)
    end = float(high + 1)  # the first value that does not fit; the last value that fits depends on x's dtype
    carrier = torch.int64 if dtype == torch.uint32 else dtype
    if dtype == torch.uint64:  # values from 2**63 on are computed as negative int64
        carrier, high = torch.int64, -1
        clamped = torch.where(x >= 2.0**63, x - 2.0**64, x.clamp(min=0)).to(carrier)
    else:
        last = torch.nextafter(torch.full((), end, dtype=x.dtype), torch.zeros((), dtype=x.dtype))
        clamped = x.clamp(low, last.item()).to(carrier)
    clamped.masked_fill_(x >= end, high).masked_fill_(x.isnan(), _NAN[dtype])
    return clamped.view(dtype) if dtype == torch.uint64 else clamped.to(dtype)
