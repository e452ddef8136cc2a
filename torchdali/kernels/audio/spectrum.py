"""Compute magnitude and power spectra of an axis, and spectrograms.

A spectrogram consists of the spectra of a signal's overlapping windows.
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import Array, is_plain
from torchdali.kernels.torch_threads import on_one_thread

__all__ = ["count_windows", "hann", "power_spectrum", "spectrogram", "spectrograms"]


@functools.lru_cache(maxsize=32)
def hann(length: int) -> Array:
    """Return a float32 Hann window, evaluated midway between integers: ``(1 - cos(2 pi (n + .5) / length)) / 2``."""
    phase = (np.arange(length) + 0.5) * (2 * np.pi / length)
    return np.asarray(0.5 * (1.0 - np.cos(phase)), np.float32)


def count_windows(samples: int, length: int, step: int, centered: bool) -> int:
    """Return the number of windows of a signal with `samples` samples."""
    if centered:
        return samples // step + 1
    return (samples - length) // step + 1 if samples >= length else 0


def power_spectrum(x: Tensor, size: int, axis: int, power: int) -> Tensor:
    """Return the power spectrum (``power=2``) or magnitude spectrum (``power=1``) of an axis.

    The axis is cut or padded to `size`.
    """
    return _modulus(on_one_thread(torch.fft.rfft, x, size, axis), power)


def spectrogram(
    x: Tensor,
    window: Array,
    size: int,
    step: int,
    power: int,
    *,
    centered: bool,
    reflected: bool,
) -> Tensor:
    """Compute the spectrogram of signals.

    Args:
        x: Signals ``(..., samples)``, float32.
        window: Weights of the samples in a window, float32.
        size: Size of the Fourier transform; at least the size of the window.
        step: Number of samples from the start of one window to the start of the next.
        power: 2 for squared magnitudes, 1 for magnitudes.
        centered: True to center the first window on the first sample, and to pad the signal at both ends.
        reflected: True to pad by mirroring the signal without repeating its edge, False to pad with zeros.

    Returns:
        ``(..., windows, size // 2 + 1)`` float32.
    """
    length, samples = len(window), x.shape[-1]
    count = count_windows(samples, length, step, centered)
    if is_plain(x) and x.ndim == 1:
        return spectrograms([x.numpy()], window, size, step, power, centered=centered, reflected=reflected)[0]
    if centered:
        x = _pad_signals(x, length // 2, (count - 1) * step + length, reflected)
    weights = torch.from_numpy(window).to(x.device)
    frames = x.unfold(-1, length, step)[..., :count, :] * weights
    return _modulus(on_one_thread(torch.fft.rfft, frames, size), power)


_BLOCK = 1 << 20  # bytes of windows that are transformed in one call; this many bytes fit into the cache


def spectrograms(
    signals: list[Array],
    window: Array,
    size: int,
    step: int,
    power: int,
    *,
    centered: bool,
    reflected: bool,
) -> tuple[Tensor, list[int]]:
    """Compute the spectrograms of several signals, each with at least one window; see `spectrogram`.

    Returns:
        The spectra ``(windows, size // 2 + 1)`` of all windows of all signals, and the number of windows of each
        signal. The spectra are bit-identical to the results of `spectrogram`.
    """
    length = len(window)
    counts = [count_windows(len(x), length, step, centered) for x in signals]
    block = max(_BLOCK // (4 * size), *counts)
    memory = torch.empty((block, size), dtype=torch.float32)
    frames = memory.numpy()
    frames[:, length:] = 0.0
    spectra = np.empty((sum(counts), size // 2 + 1), np.float32)
    start = pending = 0
    for x, count in zip(signals, counts, strict=True):
        if pending + count > block:
            _transform(memory[:pending], spectra[start : start + pending], power)
            start, pending = start + pending, 0
        if centered:
            x = _pad_array(x, length // 2, (count - 1) * step + length, reflected)
        windows = np.ndarray((count, length), np.float32, x, 0, (4 * step, 4))
        np.multiply(windows, window, out=frames[pending : pending + count, :length])
        pending += count
    _transform(memory[:pending], spectra[start:], power)
    return torch.from_numpy(spectra), counts


def _transform(frames: Tensor, out: Array, power: int) -> None:
    _modulus(on_one_thread(torch.fft.rfft, frames), power, out)


def _modulus(spectrum: Tensor, power: int, out: Array | None = None) -> Tensor:
    """Return squared magnitudes or magnitudes of a complex spectrum. The spectrum may be overwritten."""
    if not is_plain(spectrum):
        return torch.view_as_real(spectrum).square().sum(-1) if power == 2 else spectrum.abs()
    parts = torch.view_as_real(spectrum).numpy()
    with np.errstate(over="ignore"):
        np.multiply(parts, parts, out=parts)
        values = np.add(parts[..., 0], parts[..., 1], out=out)
    if power == 1:
        np.sqrt(values, out=values)
    return torch.from_numpy(values)


def _pad_signals(x: Tensor, before: int, total: int, reflected: bool) -> Tensor:
    """Pad signals by `before` samples at the start, and pad or cut them at the end to `total` samples."""
    samples = x.shape[-1]
    after = total - before - samples
    if after < 0:
        x, after = x[..., : total - before], 0
    if not reflected:
        return torch.nn.functional.pad(x, (before, after))
    return x[..., _mirror_indices(samples, before, total).to(x.device)]


def _mirror_indices(samples: int, before: int, total: int) -> Tensor:
    """Return the indices that extend a signal to `total` samples by mirroring the signal at its ends.

    The extended signal starts `before` samples before the signal. A short signal is mirrored repeatedly.
    """
    indices = torch.arange(-before, total - before)
    if samples == 1:
        return torch.zeros_like(indices)
    folded = indices.remainder(2 * (samples - 1))
    return torch.minimum(folded, 2 * (samples - 1) - folded)


def _pad_array(x: Array, before: int, total: int, reflected: bool) -> Array:
    samples = len(x)
    after = max(total - before - samples, 0)
    if reflected and samples <= max(before, after):
        reflection: Array = x[_mirror_indices(samples, before, total).numpy()]
        return reflection
    result = np.empty(before + samples + after, np.float32)
    result[before : before + samples] = x
    result[:before] = x[before:0:-1] if reflected else 0.0
    result[before + samples :] = x[::-1][1 : after + 1] if reflected else 0.0
    return result
