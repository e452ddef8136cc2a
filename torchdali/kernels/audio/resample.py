"""Audio resampling with a sinc filter and a Hann window.

The output is ``y[n] = sum over i of x[i] * w(i - n * in_rate / out_rate)``. The weight function is ``w(t) = sinc(t) *
(1 + cos(pi t / L)) / 2`` for ``|t| < L``, else 0; ``L`` is half the window's width. As in DALI, this function is
interpolated linearly in a table with 32 values per sample. The filter isn't widened if the rate decreases, so
frequencies above the new Nyquist frequency aren't removed.

The position of an output sample between two input samples determines its weights. If the ratio of the rates is a
fraction of small integers, the positions and the weights repeat with a period.

Source: J. O. Smith, "Digital Audio Resampling", ccrma.stanford.edu/~jos/resample.
"""

from __future__ import annotations

import functools
import math
import struct
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.memory import Array, is_plain
from torchdali.kernels.native import NativeLibrary, library
from torchdali.kernels.torch_threads import on_one_thread

__all__ = ["lobes", "resample", "resampled_length"]

_STEPS = 32  # table values per sample
_PHASES = 512  # maximum period in output samples
_ROUNDED_PHASES = 64  # maximum period in output samples if the ratio must be rounded to get a period
_STRIDE = 512  # maximum period in input samples; with longer periods, most of the weights would be 0
_DRIFT = 2e-4  # maximum error of a position, in samples
_POSITIONS = 8192  # positions between two samples if the weights don't repeat; changes noise by 1e-4 of its peak
_VECTOR = 8  # for the native library, the number of weights per position is padded to a multiple of 8
_BLOCK = 4096  # output samples that are computed in one step; the input samples that they read fit into the cache


def lobes(quality: float) -> int:
    """Return half the width of the Hann window in samples: 3 for quality 0, 16 for quality 50, 64 for quality 100."""
    return math.floor(0.007 * quality * quality - 0.09 * quality + 3 + 0.5)


def resampled_length(length: int, in_rate: float, out_rate: float) -> int:
    """Return the number of samples after resampling `length` samples."""
    return math.ceil(length * out_rate / in_rate)


def resample(x: Tensor, in_rate: float, out_rate: float, length: int, quality: float) -> Tensor:
    """Resample a signal. Gradients are supported.

    Args:
        x: ``(samples,)`` or ``(samples, channels)``, floating point.
        in_rate, out_rate: Sample rates of input and output; only their ratio matters.
        length: Length of the result.
        quality: From 0 to 100; see `lobes`.

    Returns:
        ``(length,)`` or ``(length, channels)``.
    """
    if not length or not x.numel():
        return x.new_zeros((length, *x.shape[1:]))
    half = lobes(quality)
    native = library()
    if native is not None and is_plain(x) and x.dtype == torch.float32:
        result = _resample_natively(native, x.contiguous(), in_rate / out_rate, length, half)
        if result is not None:
            return result
    exact, rounded = _ratio(in_rate, out_rate)
    rows = x.movedim(0, -1)
    if rounded.numerator <= _STRIDE and rounded > 0 and abs(rounded - exact) * length < _DRIFT:
        result = on_one_thread(_resample_periodic, rows, rounded.numerator, rounded.denominator, length, half)
    else:
        result = on_one_thread(_resample_aperiodic, rows, float(exact), length, half)
    return result.movedim(-1, 0)


@functools.lru_cache(maxsize=64)
def _ratio(in_rate: float, out_rate: float) -> tuple[Fraction, Fraction]:
    """Return the exact ratio of the rates, and the nearest ratio with a short period."""
    exact = Fraction(in_rate) / Fraction(out_rate)
    repeats = exact.denominator <= _PHASES
    return exact, exact if repeats else exact.limit_denominator(_ROUNDED_PHASES)


# ---------------------------------------------------------------- by the library

_SIGNAL = struct.Struct("=5Qd")  # same fields as `tdn_signal`


def _resample_natively(native: NativeLibrary, x: Tensor, ratio: float, length: int, half: int) -> Tensor | None:
    """Resample with the native library; None if the library refuses the signal."""
    result = torch.empty((length, *x.shape[1:]), dtype=torch.float32)
    channels = x.shape[1] if x.ndim == 2 else 1
    signal = _SIGNAL.pack(x.data_ptr(), result.data_ptr(), len(x), length, channels, ratio)
    _, table = _native_table(half)
    return None if native.resample(signal, 1, table, 2 * half, native.level) else result


@functools.lru_cache(maxsize=16)
def _native_table(half: int) -> tuple[Array, int]:
    """Return the table of weights for the native library, and the table's address.

    The table is ``(32, 2, width)``: the weights at 32 positions between two samples, and the differences to the weights
    at the next position.
    """
    rows = _phase_table(half, torch.float32).numpy().T
    table = np.zeros((_STEPS, 2, -(-2 * half // _VECTOR) * _VECTOR), np.float32)
    table[:, 0, : 2 * half], table[:, 1, : 2 * half] = rows[:-1], np.diff(rows, axis=0)
    return table, table.ctypes.data


# ---------------------------------------------------------------- positions that repeat


def _resample_periodic(x: Tensor, stride: int, phases: int, length: int, half: int) -> Tensor:
    """Resample with `phases` output samples for every `stride` input samples."""
    weights = _weights(stride, phases, half, x.dtype).to(x.device)
    steps, width = -(-length // phases), weights.shape[1]
    right = max((steps - 1) * stride + width - half - x.shape[-1], 0)
    padded = torch.nn.functional.pad(x, (half, right))
    products = _strided_products(padded, weights, stride, steps)
    return products.reshape(*x.shape[:-1], steps * phases)[..., :length]


def _strided_products(x: Tensor, weights: Tensor, stride: int, steps: int) -> Tensor:
    """Multiply sections of `x` with the weights, ``(..., steps, phases)``. A section starts every `stride` samples."""
    phases, width = weights.shape
    if phases <= 4 and x.numel() > 1 << 16:
        signals = x.reshape(-1, 1, x.shape[-1])
        products = torch.nn.functional.conv1d(signals, weights[:, None], stride=stride)[..., :steps]
        return products.movedim(1, 2).reshape(*x.shape[:-1], steps, phases)
    return x.unfold(-1, width, stride)[..., :steps, :] @ weights.t()


@functools.lru_cache(maxsize=64)
def _weights(stride: int, phases: int, half: int, dtype: torch.dtype) -> Tensor:
    """Return the weights ``(phases, width)`` of the output samples of one period.

    The first column has the weights of the input sample that is `half` samples before the start of the period.
    """
    positions = np.arange(phases) * stride
    last = int(positions[-1] // phases) + half + 1
    offsets = np.arange(-half, last + 1)[None] - (positions / phases)[:, None]
    return torch.from_numpy(_window_weights(offsets, half)).to(dtype)


# ---------------------------------------------------------------- any positions


def _resample_aperiodic(x: Tensor, ratio: float, length: int, half: int) -> Tensor:
    """Resample at positions that don't repeat.

    For float32 on the CPU without gradients, each output sample has the weights of the nearest of 8192 positions
    between two input samples. Otherwise each output sample is interpolated between the results at the two nearest of 32
    positions.
    """
    padded = torch.nn.functional.pad(x, (half - 1, half + 1))
    if not is_plain(x) or x.dtype != torch.float32:
        return _resample_interpolated(padded, ratio, length, x.shape[-1], half)
    rows = padded.reshape(-1, padded.shape[-1]).numpy()
    result = np.empty((len(rows), length), np.float32)
    for row, out in zip(rows, result, strict=True):
        for start in range(0, length, _BLOCK):
            _gather(row, ratio, start, x.shape[-1], half, out[start : start + _BLOCK])
    return torch.from_numpy(result).reshape(*x.shape[:-1], length)


def _find_positions(ratio: float, start: int, end: int, samples: int) -> tuple[Array, Array, Array]:
    """Return the positions of the output samples `start` to `end` in the input.

    Returns:
        Index of the preceding input sample, number of whole steps of 1/32 sample from this input sample to the
        position, and the remaining distance as a fraction of a step.
    """
    offset: Array = np.arange(start, end) * ratio
    index: Array = np.minimum(offset.astype(np.int64), samples - 1)
    offset -= index
    offset *= _STEPS
    phase: Array = np.minimum(offset, _STEPS - 1).astype(np.uint8)
    offset -= phase
    return index, phase, offset


def _gather(padded: Array, ratio: float, start: int, samples: int, half: int, out: Array) -> None:
    """Compute output samples, from the index `start` on, with the weights of the nearest positions in `_fine_table`.

    Sample i of the input is at index ``i + half - 1`` of `padded`.
    """
    offset: Array = np.arange(start, start + len(out)) * ratio
    index = np.minimum(offset.astype(np.intp), samples - 1)
    offset -= index
    offset *= _POSITIONS
    offset += 0.5
    position = np.minimum(offset.astype(np.intp), _POSITIONS)
    width, table = 2 * half, _fine_table(half)
    item = f"V{4 * width}"  # copying a row as a single item is three times as fast as copying its numbers
    rows = np.ndarray((len(padded) - width + 1,), item, padded, 0, (4,))
    windows = rows[index].view(np.float32).reshape(-1, width)
    weights = table.view(item).reshape(-1)[position].view(np.float32).reshape(-1, width)
    np.multiply(windows, weights, out=windows)
    np.dot(windows, _ones(width), out=out)


@functools.lru_cache(maxsize=16)
def _ones(count: int) -> Array:
    return np.ones(count, np.float32)


@functools.lru_cache(maxsize=16)
def _fine_table(half: int) -> Array:
    """Return the weights of ``2 * half`` samples at 8193 positions between two samples: ``(positions, 2 * half)``."""
    offsets = np.arange(1 - half, half + 1)[None] - np.arange(_POSITIONS + 1)[:, None] / _POSITIONS
    return np.ascontiguousarray(_window_weights(offsets, half))


def _resample_interpolated(padded: Tensor, ratio: float, length: int, samples: int, half: int) -> Tensor:
    """Compute results at 33 positions between adjacent input samples, and interpolate the output samples.

    This works on any device and supports gradients.
    """
    index, phase, offset = _find_positions(ratio, 0, length, samples)
    windows = padded.unfold(-1, 2 * half, 1)
    table = _phase_table(half, padded.dtype).to(padded.device)
    products = (windows @ table).flatten(-2)
    position = torch.from_numpy(index * (_STEPS + 1) + phase).to(padded.device)
    weight = torch.from_numpy(offset.astype(np.float32)).to(padded.device, padded.dtype)
    low = products.index_select(-1, position)
    return low + weight * (products.index_select(-1, position + 1) - low)


@functools.lru_cache(maxsize=16)
def _phase_table(half: int, dtype: torch.dtype) -> Tensor:
    """Return the weights of ``2 * half`` samples at 33 positions between two samples: ``(2 * half, 33)``."""
    positions = np.arange(_STEPS + 1) / _STEPS
    offsets = np.arange(1 - half, half + 1)[:, None] - positions[None]
    return torch.from_numpy(_window_weights(offsets, half)).to(dtype)


# ---------------------------------------------------------------- the window


def _window_weights(offsets: npt.NDArray[np.float64], half: int) -> npt.NDArray[np.float32]:
    """Return the weights of input samples, by their distances from the output's position (in samples)."""
    table = _window_table(half)
    position = np.clip(offsets * _STEPS + half * _STEPS, 0, len(table) - 1)
    low = np.minimum(position.astype(np.int64), len(table) - 2)
    values = table[low] + (position - low) * (table[low + 1] - table[low])
    return np.where(np.abs(offsets) < half, values, 0.0).astype(np.float32)


@functools.lru_cache(maxsize=16)
def _window_table(half: int) -> npt.NDArray[np.float64]:
    """Return the table of the weight function. As in DALI, the Hann window is a little wider than the table."""
    size = 2 * half * _STEPS + 1
    position = np.arange(size) - half * _STEPS
    envelope = 0.5 * (1.0 + np.cos(np.pi * position * 2.0 / size))
    return np.asarray(np.sinc(position / _STEPS) * envelope, np.float32).astype(np.float64)
