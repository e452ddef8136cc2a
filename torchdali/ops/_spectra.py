"""Operators for audio features: power spectra, spectrograms, mel filter banks and MFCCs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, InputConstraints, Layout, one_of
from torchdali.kernels.audio.cosine import cosine_matrix
from torchdali.kernels.audio.mel import FORMULAS, apply_filters, mel_filters
from torchdali.kernels.audio.spectrum import (
    count_windows,
    hann,
    spectrograms,
)
from torchdali.kernels.audio.spectrum import power_spectrum as transform
from torchdali.kernels.audio.spectrum import spectrogram as transform_windows
from torchdali.kernels.memory import Array
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["mel_filter_bank", "mfcc", "power_spectrum", "spectrogram"]

_LAYOUTS = ("ft", "tf")

Floats = Annotated[Tensor, InputConstraints((), (torch.float32,))]


@operator
def power_spectrum(data: Floats, /, *, axis: int = -1, nfft: int | None = None, power: int = 2) -> Floats:
    """Compute the magnitude or power spectrum along an axis with the Fourier transform.

    Args:
        data: float32 tensor of any shape.
        axis: Axis to transform. By default, and for any negative value, the last axis.
        nfft: Size of the transform. A longer axis is cut to this size, and a shorter axis is padded with zeros. By
            default, and for any value that isn't positive, the size of the axis.
        power: 2 for the power spectrum (squared magnitudes), 1 for the magnitude spectrum. By default 2.

    Returns:
        The spectrum, float32. The transformed axis has ``nfft // 2 + 1`` values.

    Raises:
        RuntimeError: ``power`` is neither 1 nor 2, the data isn't float32, or the axis doesn't exist or is empty.
    """
    if power not in (1, 2):
        raise RuntimeError(f"power must be 1 (moduli) or 2 (squares), got {power}")
    if not 0 <= (axis if axis >= 0 else data.ndim - 1) < data.ndim:
        raise RuntimeError(f"axis={axis} is out of bounds [0, {data.ndim})")
    axis = axis if axis >= 0 else -1
    size = nfft if nfft is not None and nfft > 0 else data.shape[axis]
    if not size:
        raise RuntimeError("power_spectrum: the input must not be empty")
    return transform(data, size, axis, power)


@operator(layout=lambda layouts, arguments: arguments["layout"])
def spectrogram(
    data: Floats,
    /,
    *,
    center_windows: bool = True,
    layout: Annotated[str, one_of(_LAYOUTS)] = "ft",
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: bool = True,
    window_fn: list[float] | None = None,
    window_length: int = 512,
    window_step: int = 256,
) -> Floats:
    """Compute the spectrogram of a signal: the spectra of its overlapping windows.

    Args:
        data: float32 signal ``(samples,)``. If the data has additional axes of extent 1, these axes are dropped.
        center_windows: If True (the default), the first window is centered on the first sample, and the signal is
            padded at both ends. Otherwise the first window starts at the first sample, without padding.
        layout: ``"ft"`` (the default) for one column per window, or ``"tf"`` for one row per window.
        nfft: Size of the Fourier transform, at least ``window_length``. By default ``window_length``.
        power: 2 for the power spectrum (squared magnitudes), 1 for the magnitude spectrum. By default 2.
        reflect_padding: If True (the default), the padding mirrors the signal, without repeating its first and last
            sample. Otherwise the padding is zeros.
        window_fn: Weights of the samples in a window, ``window_length`` values. By default the Hann window
            ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2``.
        window_length: Length of a window, in samples. By default 512.
        window_step: Distance between the starts of neighboring windows, in samples. By default 256.

    Returns:
        The spectrogram, float32: ``(nfft // 2 + 1, windows)`` for ``"ft"``, ``(windows, nfft // 2 + 1)`` for ``"tf"``.

    Raises:
        RuntimeError: ``window_length`` or ``window_step`` isn't positive; ``nfft`` is less than ``window_length``;
            ``layout`` or ``power`` isn't one of the values above; the data isn't float32; the signal is empty or has
            several axes; or the signal is shorter than a window and ``center_windows`` is False.
    """
    size = window_length if nfft is None else nfft
    _check_windows(window_length, window_step, size, power, layout)
    if window_fn and len(window_fn) != window_length:
        raise RuntimeError(f"window_fn must have window_length={window_length} values, got {len(window_fn)}")
    signal = _as_signal(data)
    if not count_windows(len(signal), window_length, window_step, center_windows):
        raise RuntimeError(f"Signal is too short: got {len(signal)} samples, a window needs {window_length}")
    spectrum = transform_windows(
        signal, np.array(window_fn, np.float32) if window_fn else hann(window_length), size, window_step, power,
        centered=center_windows, reflected=reflect_padding,
    )  # fmt: skip
    return spectrum.t() if layout == "ft" else spectrum


@chunk(spectrogram, "ragged")
def _spectrograms(data: Sequence[Tensor], a: Arguments) -> Any:
    size = a.window_length if a.nfft is None else a.nfft
    _check_windows(a.window_length, a.window_step, size, a.power, a.layout)
    window = np.array(a.window_fn, np.float32) if a.window_fn else hann(a.window_length)
    signals = _as_arrays(data)
    least = 1 if a.center_windows else a.window_length
    if len(window) != a.window_length or any(x.ndim != 1 or len(x) < least for x in signals):
        return NotImplemented
    spectra, counts = spectrograms(
        signals,
        window,
        size,
        a.window_step,
        a.power,
        centered=a.center_windows,
        reflected=a.reflect_padding,
    )
    return PackedSamples.from_rows(spectra, counts, transposed=a.layout == "ft")


def _as_arrays(data: Sequence[Tensor]) -> list[Array]:
    """Return the samples as NumPy arrays, without a copy if possible."""
    arrays = arrays_of(data)
    if arrays is not None:
        return arrays
    if not isinstance(data, PackedSamples) or data.rows is None or data.transposed:
        return [sample.contiguous().numpy() for sample in data]
    rows, counts = data.rows
    elements, ends = rows.numpy(), itertools.accumulate(counts, initial=0)
    return [elements[a:b] for a, b in itertools.pairwise(ends)]


def _check_windows(length: int, step: int, size: int, power: int, layout: str) -> None:
    if length <= 0 or step <= 0:
        raise RuntimeError(f"window_length and window_step must be positive, got {length} and {step}")
    if size < length:
        raise RuntimeError(f"nfft must be at least window_length={length}, got {size}")
    if power not in (1, 2):
        raise RuntimeError(f"power must be 1 (moduli) or 2 (squares), got {power}")
    if layout not in _LAYOUTS:
        raise RuntimeError(f"layout must be 'ft' or 'tf', got {layout!r}")


def _as_signal(data: Tensor) -> Tensor:
    if data.ndim == 1 and len(data):
        return data
    if not data.numel():
        raise RuntimeError(f"Spectrogram does not support empty (0-volume) samples, got shape {tuple(data.shape)}")
    if data.numel() != max(data.shape, default=1):
        raise RuntimeError(f"spectrogram: the input must be one signal, got shape {tuple(data.shape)}")
    return data.reshape(-1)


@operator
def mel_filter_bank(
    data: Floats,
    /,
    *,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: Annotated[str, one_of(FORMULAS)] = "slaney",
    nfilter: int = 128,
    normalize: bool = True,
    sample_rate: float = 44100.0,
    layout: Layout,
) -> Floats:
    """Convert spectra to the mel scale with triangular filters.

    Args:
        data: float32 spectra, from 0 Hz to half the sample rate. Frequencies are along the axis ``f`` of the layout. If
            the data has no layout, frequencies are along the second-to-last axis, or along the first axis of 1-D data.
        freq_high: Upper end of the last filter, in Hz. By default, and if 0, half the sample rate.
        freq_low: Lower end of the first filter, in Hz. By default 0.
        mel_formula: Mel scale: ``"slaney"`` (the default) is linear up to 1 kHz and logarithmic above; ``"htk"`` is
            ``1127 ln(1 + f / 700)``.
        nfilter: Number of filters. By default 128.
        normalize: If True (the default), the area of each filter (over frequencies in Hz) is 1. Otherwise the peak of
            each filter is 1.
        sample_rate: Sample rate of the signal, in Hz. By default 44100.

    Returns:
        The mel spectra, float32. The frequency axis has ``nfilter`` values.

    Raises:
        RuntimeError: the layout has no axis ``f``, the data isn't float32, ``mel_formula`` is unknown, or the
            frequencies don't satisfy ``0 <= freq_low < freq_high <= sample_rate``.
    """
    high = freq_high or sample_rate / 2
    _check_bank(freq_low, high, mel_formula, nfilter, sample_rate)
    axis = layout.find("f") if layout else max(data.ndim - 2, 0)
    if not 0 <= axis < data.ndim:
        raise RuntimeError(f"mel_filter_bank: the layout must have an axis 'f', got {layout!r}")
    if not data.shape[axis]:
        return data.new_zeros((*data.shape[:axis], nfilter, *data.shape[axis + 1 :]))
    filters = mel_filters(data.shape[axis], nfilter, sample_rate, freq_low, high, mel_formula, normalize, data.device)
    return apply_filters(data, filters, axis)


@chunk(mel_filter_bank, "ragged")
def _mel_filter_banks(data: Sequence[Tensor], a: Arguments) -> Any:
    high = a.freq_high or a.sample_rate / 2
    _check_bank(a.freq_low, high, a.mel_formula, a.nfilter, a.sample_rate)
    packed = _packed_rows(data, a.layout.find("f") if a.layout else 0)
    if packed is None:
        return NotImplemented
    rows, counts, transposed = packed
    filters = mel_filters(
        rows.shape[1], a.nfilter, a.sample_rate, a.freq_low, high, a.mel_formula, a.normalize, rows.device
    )
    return PackedSamples.from_rows(apply_filters(rows, filters, 1), counts, transposed)


def _packed_rows(data: Sequence[Tensor], axis: int) -> tuple[Tensor, Sequence[int], bool] | None:
    """Return all 2-D samples of a batch as one matrix. A row has the elements of a sample along the axis `axis`.

    Returns:
        The matrix, the number of rows of each sample, and whether the samples are transposed. None if the matrix can't
        be returned without a copy.
    """
    if (
        not isinstance(data, PackedSamples)
        or data.rows is None
        or data.ndim() != 2
        or axis != (0 if data.transposed else 1)
    ):
        return None
    rows, counts = data.rows
    return (rows, counts, data.transposed) if rows.shape[1] else None


def _check_bank(low: float, high: float, formula: str, filters: int, rate: float) -> None:
    if formula not in FORMULAS:
        raise RuntimeError(f"mel_formula must be one of {', '.join(map(repr, FORMULAS))}, got {formula!r}")
    if filters <= 0 or rate <= 0:
        raise RuntimeError(f"nfilter and sample_rate must be positive, got {filters} and {rate}")
    if not 0 <= low < high <= rate:
        raise RuntimeError(
            f"freq_low and freq_high must satisfy 0 <= freq_low < freq_high <= sample_rate={rate}, got {low} and {high}"
        )


@operator
def mfcc(
    data: Floats,
    /,
    *,
    axis: int = 0,
    dct_type: int = 2,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    normalize: bool = False,
) -> Floats:
    """Compute the first coefficients of the discrete cosine transform (DCT) along an axis.

    If the data is a mel spectrogram in decibels, the result is the mel-frequency cepstral coefficients (MFCCs).

    Args:
        data: float32 tensor with at least two axes.
        axis: Axis to transform. By default the first axis.
        dct_type: Type of the DCT, from 1 to 4. By default 2.
        lifter: If not 0, coefficient ``i`` is multiplied by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``. By default
            0.
        n_mfcc: Number of coefficients to compute. If it exceeds the size of the axis, all coefficients are computed. By
            default 20.
        normalize: If True, the transform is orthonormal. DCT type 1 doesn't support this. By default False.

    Raises:
        RuntimeError: the axis doesn't exist, ``dct_type`` isn't 1 to 4, ``n_mfcc`` isn't positive, or the data isn't
            float32.
    """
    if dct_type not in (1, 2, 3, 4):
        raise RuntimeError(f"Unsupported DCT type: {dct_type}. Supported types are: 1, 2, 3, 4")
    if normalize and dct_type == 1:
        raise RuntimeError("Ortho-normalization is not supported for DCT type I")
    if n_mfcc <= 0:
        raise RuntimeError(f"n_mfcc must be positive, got {n_mfcc}")
    size = _axis_size(data, axis, dct_type)
    count = min(n_mfcc, size)
    if not size:
        return data.clone()
    matrix = cosine_matrix(size, count, dct_type, normalize, lifter, data.device)
    return apply_filters(data, matrix, axis)


@chunk(mfcc, "ragged")
def _mfccs(data: Sequence[Tensor], a: Arguments) -> Any:
    packed = _packed_rows(data, a.axis)
    if packed is None or a.dct_type not in (2, 3, 4) or a.n_mfcc <= 0:
        return NotImplemented
    rows, counts, transposed = packed
    size = rows.shape[1]
    matrix = cosine_matrix(size, min(a.n_mfcc, size), a.dct_type, a.normalize, a.lifter, rows.device)
    return PackedSamples.from_rows(apply_filters(rows, matrix, 1), counts, transposed)


def _axis_size(data: Tensor, axis: int, kind: int) -> int:
    if axis < 0:
        raise RuntimeError(f"Provided axis cannot be negative: {axis}")
    if axis >= data.ndim:
        raise RuntimeError(f"Axis {axis} is out of bounds [0,{data.ndim})")
    if data.ndim < 2:
        raise RuntimeError("mfcc: the input must have at least two dimensions, got 1")
    if kind == 1 and data.shape[axis] < 2:
        raise RuntimeError("mfcc: type I needs at least two values")
    return data.shape[axis]
