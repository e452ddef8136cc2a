"""Affine maps of pixel values (brightness, contrast) and of whole RGB pixels (hue, saturation, color spaces)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.device.tables import factors
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold
from torchdali.kernels.memory import Bytes, in_transform, prepare_out
from torchdali.kernels.opencv import opencv, opencv_for
from torchdali.kernels.rounding import HALF_UP, to_bytes

__all__ = ["affine_each_rgb", "affine_intensities", "affine_intensity", "affine_rgb", "twist_matrix"]

Matrix = tuple[tuple[float, ...], ...]

_CHUNK = 1 << 16  # number of pixels that are processed in one step, so that they stay in the CPU's cache
_FLOAT_CHUNK = 1 << 19  # number of elements that `_affine_float` processes in one step
_LARGEST = 2.0**30  # largest value that OpenCV rounds to uint8 correctly


# The YIQ color space: luma, and the two chroma axes that a hue rotation turns.
_TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], dtype=torch.float64)
_FROM_YIQ = torch.linalg.inv(_TO_YIQ)


def affine_intensity(x: Tensor, factor: float, offset: float, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
    """Return ``factor * x + offset``, rounded and saturated to a dtype. `out` may be used for the result if it fits."""
    if dtype == torch.uint8 and x.dtype == torch.uint8:
        return _affine_bytes(x, factor, offset, out)
    if dtype == torch.float32 and x.dtype != torch.float64 and not (x.requires_grad or in_transform()):
        return _affine_float(x, factor, offset, prepare_out(out, x.shape, dtype, x.device))
    wide = _to_float(x)
    return convert(torch.add(_scalar(offset, wide), wide, alpha=factor), dtype)


def affine_intensities(
    x: Tensor, coefficients: Sequence[tuple[float, float]], dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """Compute `affine_intensity` with one factor and one offset per ``x[i]``."""
    if not x.is_cpu and coefficients:
        scales, offsets = factors(coefficients, x[..., None]).unbind(-1)
        return _to_dtype(torch.addcmul(offsets, _to_float(x), scales), x.dtype, dtype, out)
    result = prepare_out(out, x.shape, dtype, x.device)
    largest = max((255 * abs(f) + abs(o) for f, o in coefficients), default=0)
    if x.dtype == torch.uint8 and dtype in _OPENCV_DTYPES and largest < _LARGEST:
        cv2 = opencv_for(x)
        if cv2 is not None:
            _scale_each(cv2, x, coefficients, result)
            return result
    return _apply_each(result, affine_intensity, x, *zip(*coefficients, strict=True))


def _apply_each(out: Tensor, function: Callable[..., Tensor], x: Tensor, *columns: Sequence[Any]) -> Tensor:
    """Apply a function to each ``x[i]`` and its arguments. If `x` needs no gradient, write the results to `out`."""
    if x.requires_grad:
        return torch.stack([function(*row, out.dtype) for row in zip(x, *columns, strict=True)])
    for target, *row in zip(out.unbind(0), x.unbind(0), *columns, strict=True):
        result = function(*row, out.dtype, target)
        if result is not target:
            target.copy_(result)
    return out


_OPENCV_DTYPES = (torch.uint8, torch.float32)


def _scale_each(cv2: Any, x: Tensor, coefficients: Sequence[tuple[float, float]], out: Tensor) -> None:
    """Scale each uint8 ``x[i]`` with OpenCV. NumPy creates the views, because NumPy keeps the GIL."""
    sources, results = (t.numpy().reshape(len(t), 1, -1) for t in (x.contiguous(), out))
    for row, result, (factor, offset) in zip(sources, results, coefficients, strict=True):
        _scale_row(cv2, row, factor, offset, result)


def _scale_row(cv2: Any, row: Bytes, factor: float, offset: float, result: npt.NDArray[Any]) -> None:
    """Write ``row * factor + offset`` to `result`, whose dtype is uint8 or float32."""
    if result.dtype != np.uint8:
        cv2.addWeighted(row, factor, row, 0.0, offset, result, cv2.CV_32F)
        return
    table, half_up = _curve(factor, offset)
    if half_up:
        cv2.addWeighted(row, factor, row, 0.0, offset + half_up, result)
    else:
        cv2.LUT(row, table, result)


_ALL_BYTES = np.arange(256, dtype=np.uint8)
_ALL_BYTES_FLOAT = _ALL_BYTES.astype(np.float32)


@functools.lru_cache(maxsize=256)
def _curve(factor: float, offset: float) -> tuple[Bytes, float]:
    """Return DALI's result for each uint8 value, and a small number to add to `offset` for `cv2.addWeighted`.

    With the small number, `cv2.addWeighted` returns the same results as DALI. If no number achieves this, the returned
    number is 0. DALI rounds the product and the sum to float32, and then rounds the result to uint8, halves up.
    """
    values = _ALL_BYTES_FLOAT * np.float32(factor)
    values += np.float32(offset)
    rounded = np.add(values, 0.5, dtype=np.float64)
    np.maximum(rounded, 0, out=rounded)  # takes half the time of clip
    table = np.minimum(rounded, 255, out=rounded).astype(np.uint8)
    cv2 = opencv()
    if cv2 is None:
        return table, 0.0
    curve = np.empty_like(_ALL_BYTES)
    for half_up in (HALF_UP, 2 * HALF_UP):
        cv2.addWeighted(_ALL_BYTES[None], factor, _ALL_BYTES[None], 0.0, offset + half_up, curve[None])
        if curve.tobytes() == table.tobytes():
            return table, half_up
    return table, 0.0


def _affine_float(x: Tensor, factor: float, offset: float, out: Tensor) -> Tensor:
    if x.dtype == torch.uint8 and (cv2 := _opencv_for_scaling(x, factor, offset)) is not None:
        _scale_row(cv2, x.contiguous().view(1, -1).numpy(), factor, offset, out.view(1, -1).numpy())
        return out
    start = _scalar(offset, out)
    if x.dtype == out.dtype:
        return torch.add(start, x, alpha=factor, out=out)
    values, results = x.reshape(-1), out.view(-1)
    for first in range(0, len(values), _FLOAT_CHUNK):
        part = results[first : first + _FLOAT_CHUNK]
        torch.add(start, part.copy_(values[first : first + _FLOAT_CHUNK]), alpha=factor, out=part)
    return out


def _scalar(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)


def _affine_bytes(x: Tensor, factor: float, offset: float, out: Tensor | None) -> Tensor:
    if (cv2 := _opencv_for_scaling(x, factor, offset)) is None:
        wide = x.to(torch.float32).mul_(factor)
        return to_bytes(wide.add_(offset) if offset else wide, out)
    result = prepare_out(out, x.shape, torch.uint8, x.device)
    _scale_row(cv2, x.contiguous().view(1, -1).numpy(), factor, offset, result.view(1, -1).numpy())
    return result


def _opencv_for_scaling(x: Tensor, factor: float, offset: float) -> Any:
    """Return ``cv2`` if OpenCV is installed and can round the scaled values correctly, else None."""
    return opencv_for(x) if 255 * abs(factor) + abs(offset) < _LARGEST else None


def _to_float(x: Tensor) -> Tensor:
    """Convert to float32, in which DALI also computes. A float64 tensor is returned unchanged."""
    return x if x.dtype == torch.float64 else x.to(torch.float32)


def affine_rgb(
    x: Tensor,
    matrix: Matrix,
    offset: Sequence[float],
    dtype: torch.dtype,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``matrix @ pixel + offset`` for each pixel, rounded and saturated.

    Args:
        x: Pixels ``(..., C)``; the matrix must have C columns.
        matrix: One row per channel of the output.
        offset: One number per channel of the output.
        dtype: Dtype of the result.
        out: Tensor to which the result is written if it fits.
    """
    cv2 = opencv_for(x)
    if cv2 is not None and x.dtype != torch.float64:
        return _affine_by_opencv(cv2, x, matrix, offset, dtype, out)
    weights, bias = _tensors(matrix, tuple(offset), x.device)
    # One plane per channel: the product of a 3x3 matrix with long rows is many times faster than with columns.
    planes = _to_float(x.movedim(-1, 0)).reshape(x.shape[-1], -1)
    result = convert(torch.addmm(bias, weights, planes), dtype)
    return result.view(len(matrix), *x.shape[:-1]).movedim(0, -1).contiguous()


def _affine_by_opencv(
    cv2: Any,
    x: Tensor,
    matrix: Matrix,
    offset: Sequence[float],
    dtype: torch.dtype,
    out: Tensor | None,
) -> Tensor:
    channels = len(matrix)
    with np.errstate(over="ignore"):
        weights = np.array([(*row, o) for row, o in zip(matrix, offset, strict=True)], np.float32)
    result = prepare_out(out, (*x.shape[:-1], channels), dtype, x.device)
    pixels, targets = x.reshape(-1, x.shape[-1]), result.view(-1, channels)
    for start in range(0, len(pixels), _CHUNK):
        part, target = (t[start : start + _CHUNK] for t in (pixels, targets))
        transformed = torch.from_numpy(cv2.transform(part.to(torch.float32)[None].numpy(), weights))
        transformed = transformed.view(target.shape)
        if dtype == x.dtype == torch.uint8:
            to_bytes(transformed, target)
        else:
            target.copy_(convert(transformed, dtype))
    return result


def affine_each_rgb(
    x: Tensor, matrices: Sequence[Matrix], offsets: Sequence[Sequence[float]], dtype: torch.dtype,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Compute `affine_rgb` with one matrix and one offset per ``x[i]``."""
    if x.is_cpu:
        result = prepare_out(out, (*x.shape[:-1], len(matrices[0])), dtype, x.device)
        return _apply_each(result, affine_rgb, x, matrices, offsets)
    coefficients = np.concatenate((np.array(matrices), np.array(offsets)[..., None]), -1)
    *weights, result = factors(coefficients, x[..., None]).unbind(-1)
    for channel, weight in zip(_to_float(x).split(1, -1), weights, strict=True):
        result = torch.addcmul(result, channel, weight)
    return _to_dtype(result, x.dtype, dtype, out)


def _to_dtype(x: Tensor, source: torch.dtype, dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Convert results to the output dtype; `x` may be overwritten."""
    return to_bytes(x, out) if dtype == source == torch.uint8 else convert(x, dtype)


@device_cache(maxsize=256)
def _tensors(matrix: Matrix, offset: tuple[float, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    weights = torch.tensor(matrix, dtype=torch.float32, device=device)
    return weights, torch.tensor(offset, dtype=torch.float32, device=device)[:, None]


@fold
def twist_matrix(hue: float, saturation: float, value: float) -> Matrix:
    """Return the RGB matrix that rotates the hue (by degrees), and scales saturation and value.

    The hue is rotated in the chroma plane of YIQ. The saturation scales the chroma plane, and the value scales all
    three axes.
    """
    angle = math.radians(hue)
    c, s = value * saturation * math.cos(angle), value * saturation * math.sin(angle)
    return tuple([tuple([value * y + c * i + s * q for y, i, q in row]) for row in _TWIST])


def _rotate_chroma() -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return three coefficients for each entry of `twist_matrix`: of the value, of the hue's cosine and of its sine."""
    y, i, q = (torch.outer(_FROM_YIQ[:, k], _TO_YIQ[k]) for k in range(3))
    crossed = torch.outer(_FROM_YIQ[:, 1], _TO_YIQ[2]) - torch.outer(_FROM_YIQ[:, 2], _TO_YIQ[1])
    return tuple(tuple(map(tuple, row)) for row in torch.stack((y, i + q, crossed), -1).tolist())


_TWIST = _rotate_chroma()
