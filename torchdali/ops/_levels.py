"""Audio operators: conversion to decibels, detection of silence, and preemphasis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, DType, InputConstraints, PerSample, one_of
from torchdali.kernels.audio import levels
from torchdali.kernels.convert import convert
from torchdali.tensors._storage import PackedSamples

__all__ = ["nonsilent_region", "preemphasis_filter", "to_decibels"]

_PREEMPHASIS_BORDERS = ("clamp", "reflect", "zero")

_INTEGERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
)  # fmt: skip

Floats = Annotated[Tensor, InputConstraints((), (torch.float32,))]
Signal = Annotated[Tensor, InputConstraints((), (*_INTEGERS, torch.float32))]
Filtered = Annotated[Tensor, InputConstraints((), (*_INTEGERS, torch.float32, torch.float64))]


def _check_reference(arguments: Mapping[str, Any]) -> None:
    if arguments["reference"] == 0:
        raise RuntimeError("`reference` argument can't be zero. Omit the argument to use the sample's maximum")


@operator(check=_check_reference)
def to_decibels(
    data: Floats,
    /,
    *,
    cutoff_db: float = -200.0,
    multiplier: float = 10.0,
    reference: float | None = None,
) -> Floats:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``.

    Args:
        data: Powers or magnitudes, float32 of any shape.
        cutoff_db: Lower limit of the result in decibels.
        multiplier: Factor of the logarithm: 10 (the default) for powers, 20 for magnitudes.
        reference: Value that is converted to 0 dB. Default: the largest value of the sample.

    Raises:
        RuntimeError: the reference is 0, or the dtype is not float32.
    """
    _check_reference({"reference": reference})
    return levels.decibels(data, multiplier, reference, cutoff_db)


@chunk(to_decibels, "ragged")
def _decibels_batch(data: Sequence[Tensor], a: Arguments) -> Any:
    if not isinstance(data, PackedSamples) or data.rows is None:
        return NotImplemented
    rows, counts = data.rows
    if rows.ndim != 2 or not all(counts):
        return NotImplemented
    decibels = levels.decibels_of_rows(rows, counts, a.multiplier, a.reference, a.cutoff_db)
    return PackedSamples.from_rows(decibels, counts, data.transposed)


@operator(layout="")
def nonsilent_region(
    data: Signal,
    /,
    *,
    cutoff_db: float = -60.0,
    reference_power: float | None = None,
    reset_interval: int = 8192,
    window_length: int = 2048,
) -> tuple[Data, Data]:
    """Find the region of a signal without the silence at its start and end.

    The power is computed for each window of ``window_length`` consecutive samples, as the mean of the squares of the
    samples. The region extends from the first to the last window whose power reaches the cutoff.

    Args:
        data: Signal ``(samples,)``, integers or float32.
        cutoff_db: Cutoff of the power in decibels, relative to ``reference_power``.
        reference_power: Power that is 0 dB. Default: the power of the window with the greatest power.
        reset_interval: -1 or a multiple of ``window_length``; it has no effect on the result. In DALI: number of
            samples after which the sum of a float signal is computed from scratch.
        window_length: Number of samples in a window.

    Returns:
        Two int32 scalars: the region's start and length in samples. Both are 0 if the whole signal is silent.

    Raises:
        RuntimeError: the signal has more than one axis or an unsupported dtype, or a length or power isn't positive.
    """
    if data.ndim != 1:
        raise RuntimeError(f"nonsilent_region: the input must have one dimension, got {data.ndim}")
    if window_length <= 0:
        raise RuntimeError(f"window_length must be positive, got {window_length}")
    sums_floats = data.dtype.is_floating_point  # as in DALI, `reset_interval` isn't checked for integers
    if sums_floats and reset_interval != -1 and (reset_interval <= 0 or reset_interval % window_length):
        raise RuntimeError(
            f"reset_interval must be -1 or a multiple of window_length={window_length}, got {reset_interval}"
        )
    if reference_power is not None and reference_power <= 0:
        raise RuntimeError(f"`reference_power` has to be positive, got {reference_power}")
    begin, length = levels.nonsilent(data, window_length, cutoff_db, reference_power)
    return _scalar(begin, data), _scalar(length, data)


def _scalar(value: int, data: Tensor) -> Tensor:
    return torch.tensor(value, dtype=torch.int32, device=data.device)


@operator
def preemphasis_filter(
    data: Filtered,
    /,
    *,
    border: Annotated[str, one_of(_PREEMPHASIS_BORDERS)] = "clamp",
    dtype: DType = torch.float32,
    preemph_coeff: PerSample[float] = 0.97,
) -> Filtered:
    """Subtract a fraction of the previous sample from each sample: ``x[i] - preemph_coeff * x[i - 1]``.

    Args:
        data: Signal, integers or floats of any shape. The previous sample is the previous element in memory.
        border: Value before the first sample: ``"clamp"`` repeats the first sample, ``"reflect"`` uses the second
            sample, and ``"zero"`` uses 0.
        dtype: Output dtype: an integer dtype (values are rounded), float32 (the default) or float64.
        preemph_coeff: Fraction of the previous sample that is subtracted.

    Raises:
        RuntimeError: the border or the dtype is unsupported.
    """
    if border not in _PREEMPHASIS_BORDERS:
        raise RuntimeError(f"border must be 'clamp', 'reflect' or 'zero', got {border!r}")
    if dtype not in (*_INTEGERS, torch.float32, torch.float64):
        raise RuntimeError(f"dtype must be an integer type, float32 or float64, got {dtype}")
    wide = data if data.dtype.is_floating_point else data.to(torch.float32)
    return convert(levels.preemphasis(wide, preemph_coeff, border), dtype)
