"""Audio features: spectra, mel filters, cosine transforms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Layout, Takes, one_of
from torchdali.kernels.audio.cosine import cosine_matrix
from torchdali.kernels.audio.mel import FORMULAS, apply_filters, mel_filters
from torchdali.kernels.audio.spectrum import (
    hann,
    number_of_windows,
    spectrograms,
)
from torchdali.kernels.audio.spectrum import power_spectrum as transform
from torchdali.kernels.audio.spectrum import spectrogram as transform_windows
from torchdali.kernels.memory import Array
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["mel_filter_bank", "mfcc", "power_spectrum", "spectrogram"]

_LAYOUTS = ("ft", "tf")

Floats = Annotated[Tensor, Takes((), (torch.float32,))]


@operator
def power_spectrum(data: Floats, /, *, axis: int = -1, nfft: int | None = None, power: int = 2) -> Floats:
    """Transform an axis, and take the squares or the moduli.

    Args:
        data: float32, any shape.
        axis: To transform; the last one, if negative.
        nfft: Size of the transform: the axis is cut or padded with zeros. Its own, if not positive.
        power: 2 for squares, 1 for moduli.

    Returns:
        The axis has ``nfft // 2 + 1`` values.

    Raises:
        RuntimeError: another power or type, an axis that does not exist or has no values.
    """
    if power not in (1, 2):
        raise RuntimeError(f"power={power}: it is 1 (moduli) or 2 (squares)")
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
    """Transform overlapping windows of a signal.

    Args:
        data: ``(samples,)`` float32; other axes of one value are dropped.
        center_windows: The first window is centered on the first sample, as if the signal went on beyond its ends.
        layout: ``"ft"``, a column for each window, or ``"tf"``, a row.
        nfft: Size of the transform, at least ``window_length``, which it is by default.
        power: 2 for squares, 1 for moduli.
        reflect_padding: Beyond its ends the signal is mirrored, without its first and last sample; otherwise it is 0.
        window_fn: Factors of windows; ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2`` by default.
        window_length: Samples of a window.
        window_step: Samples from one window to the next.

    Returns:
        ``(nfft // 2 + 1, windows)``, or the transpose.

    Raises:
        RuntimeError: a size that is not positive, a transform smaller than the window, another type, layout or power,
            a signal that is empty, of several dimensions, or too short for one window.
    """
    size = window_length if nfft is None else nfft
    _check_windows(window_length, window_step, size, power, layout)
    if window_fn and len(window_fn) != window_length:
        raise RuntimeError(f"window_fn has {len(window_fn)} values, not window_length={window_length}")
    signal = _one_dimension(data)
    if not number_of_windows(len(signal), window_length, window_step, center_windows):
        raise RuntimeError(f"Signal is too short: {len(signal)} samples, a window has {window_length}")
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
    signals = _arrays(data)
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
    return PackedSamples.of_rows(spectra, counts, turned=a.layout == "ft")


def _arrays(data: Sequence[Tensor]) -> list[Array]:
    """Return samples as arrays."""
    arrays = arrays_of(data)
    if arrays is not None:
        return arrays
    if not isinstance(data, PackedSamples) or data.rows is None or data.turned:
        return [sample.contiguous().numpy() for sample in data]
    rows, counts = data.rows
    elements, ends = rows.numpy(), itertools.accumulate(counts, initial=0)
    return [elements[a:b] for a, b in itertools.pairwise(ends)]


def _check_windows(length: int, step: int, size: int, power: int, layout: str) -> None:
    if length <= 0 or step <= 0:
        raise RuntimeError(f"window_length={length}, window_step={step}: they are positive")
    if size < length:
        raise RuntimeError(f"nfft={size}: it is not less than window_length={length}")
    if power not in (1, 2):
        raise RuntimeError(f"power={power}: it is 1 (moduli) or 2 (squares)")
    if layout not in _LAYOUTS:
        raise RuntimeError(f"layout={layout!r}: it is 'ft' or 'tf'")


def _one_dimension(data: Tensor) -> Tensor:
    if data.ndim == 1 and len(data):
        return data
    if not data.numel():
        raise RuntimeError(f"Spectrogram does not support empty (0-volume) samples: shape {tuple(data.shape)}")
    if data.numel() != max(data.shape, default=1):
        raise RuntimeError(f"spectrogram: one signal, not data of shape {tuple(data.shape)}")
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
    """Sum spectra over triangles on the mel scale.

    Args:
        data: float32 spectra from 0 Hz to half the sample rate, along the axis ``f`` of the layout; without one, along
            the last but one, or the only axis.
        freq_high: End of the last triangle, in Hz; half the sample rate if 0.
        freq_low: Start of the first triangle, in Hz.
        mel_formula: ``"slaney"``: linear up to 1 kHz, then logarithmic; ``"htk"``: ``1127 ln(1 + f / 700)``.
        nfilter: Number of triangles.
        normalize: Make the area of each triangle, in Hz, 1.
        sample_rate: Sample rate of the signal, in Hz.

    Returns:
        The axis has ``nfilter`` values.

    Raises:
        RuntimeError: a layout without ``f``, another type or formula, or frequencies in the wrong order.
    """
    high = freq_high or sample_rate / 2
    _check_bank(freq_low, high, mel_formula, nfilter, sample_rate)
    axis = layout.find("f") if layout else max(data.ndim - 2, 0)
    if not 0 <= axis < data.ndim:
        raise RuntimeError(f"mel_filter_bank: no axis 'f' in the layout {layout!r}")
    if not data.shape[axis]:
        return data.new_zeros((*data.shape[:axis], nfilter, *data.shape[axis + 1 :]))
    filters = mel_filters(data.shape[axis], nfilter, sample_rate, freq_low, high, mel_formula, normalize, data.device)
    return apply_filters(data, filters, axis)


@chunk(mel_filter_bank, "ragged")
def _mel_filter_banks(data: Sequence[Tensor], a: Arguments) -> Any:
    high = a.freq_high or a.sample_rate / 2
    _check_bank(a.freq_low, high, a.mel_formula, a.nfilter, a.sample_rate)
    packed = _packed_along(data, a.layout.find("f") if a.layout else 0)
    if packed is None:
        return NotImplemented
    rows, counts, turned = packed
    filters = mel_filters(
        rows.shape[1], a.nfilter, a.sample_rate, a.freq_low, high, a.mel_formula, a.normalize, rows.device
    )
    return PackedSamples.of_rows(apply_filters(rows, filters, 1), counts, turned)


def _packed_along(data: Sequence[Tensor], axis: int) -> tuple[Tensor, Sequence[int], bool] | None:
    """Return rows along an axis of the samples, how many each sample has, and whether they are transposed."""
    if (
        not isinstance(data, PackedSamples)
        or data.rows is None
        or data.ndim() != 2
        or axis != (0 if data.turned else 1)
    ):
        return None
    rows, counts = data.rows
    return (rows, counts, data.turned) if rows.shape[1] else None


def _check_bank(low: float, high: float, formula: str, filters: int, rate: float) -> None:
    if formula not in FORMULAS:
        raise RuntimeError(f"mel_formula={formula!r}: it is one of {', '.join(map(repr, FORMULAS))}")
    if filters <= 0 or rate <= 0:
        raise RuntimeError(f"nfilter={filters}, sample_rate={rate}: they are positive")
    if not 0 <= low < high <= rate:
        raise RuntimeError(f"freq_low={low}, freq_high={high}: 0 <= freq_low < freq_high <= sample_rate={rate}")


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
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs.

    Args:
        data: float32, two dimensions or more.
        axis: To transform.
        dct_type: Type of the DCT, from 1 to 4.
        lifter: Multiplies coefficient i by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``, if it is not 0.
        n_mfcc: Number of coefficients, at most as many as the axis has values.
        normalize: Make the transform orthonormal (not type 1); otherwise it is the plain sum of products.

    Raises:
        RuntimeError: an axis that does not exist, another type, a number that is not positive.
    """
    if dct_type not in (1, 2, 3, 4):
        raise RuntimeError(f"Unsupported DCT type: {dct_type}. Supported types are: 1, 2, 3, 4")
    if normalize and dct_type == 1:
        raise RuntimeError("Ortho-normalization is not supported for DCT type I")
    if n_mfcc <= 0:
        raise RuntimeError(f"n_mfcc={n_mfcc}: it is positive")
    size = _axis_size(data, axis, dct_type)
    count = min(n_mfcc, size)
    if not size:
        return data.clone()
    matrix = cosine_matrix(size, count, dct_type, normalize, lifter, data.device)
    return apply_filters(data, matrix, axis)


@chunk(mfcc, "ragged")
def _mfccs(data: Sequence[Tensor], a: Arguments) -> Any:
    packed = _packed_along(data, a.axis)
    if packed is None or a.dct_type not in (2, 3, 4) or a.n_mfcc <= 0:
        return NotImplemented
    rows, counts, turned = packed
    size = rows.shape[1]
    matrix = cosine_matrix(size, min(a.n_mfcc, size), a.dct_type, a.normalize, a.lifter, rows.device)
    return PackedSamples.of_rows(apply_filters(rows, matrix, 1), counts, turned)


def _axis_size(data: Tensor, axis: int, kind: int) -> int:
    if axis < 0:
        raise RuntimeError(f"Provided axis cannot be negative: {axis}")
    if axis >= data.ndim:
        raise RuntimeError(f"Axis {axis} is out of bounds [0,{data.ndim})")
    if data.ndim < 2:
        raise RuntimeError("mfcc: two dimensions or more, not 1")
    if kind == 1 and data.shape[axis] < 2:
        raise RuntimeError("mfcc: type I needs two values or more")
    return data.shape[axis]
