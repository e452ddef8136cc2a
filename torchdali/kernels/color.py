"""Colour: affine maps of intensity and of RGB triples, and conversions between colour spaces."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.folding import folded
from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.rounding import HALF_UP, place, to_bytes
from torchdali.kernels.scratch import Bytes

__all__ = [
    "affine_intensities", "affine_intensity", "affine_rgb", "gray", "space_matrix", "swap_red_and_blue", "twist_matrix",
]  # fmt: skip

Matrix = tuple[tuple[float, ...], ...]

_PIECE = 1 << 16  # pixels of an image that are worked on at a time: they stay in cache
_CACHED = 1 << 19  # the same in elements, for fewer passes
_LARGEST = 2.0**30  # that OpenCV rounds to bytes correctly

# Luma, and the two chroma axes that a hue rotation turns (YIQ).
_TO_YIQ = torch.tensor(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], dtype=torch.float64
)
_FROM_YIQ = torch.linalg.inv(_TO_YIQ)


def affine_intensity(
    x: Tensor, factor: float, offset: float, dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """Return ``factor * x + offset``, rounded and saturated to an element type; in `out`, if it fits."""
    if dtype == torch.uint8 and x.dtype == torch.uint8:
        return _affine_bytes(x, factor, offset, out)
    if dtype == torch.float32 and x.dtype != torch.float64 and not x.requires_grad:
        return _affine_float(x, factor, offset, place(out, x.shape, dtype, x.device))
    wide = _wide(x)
    return convert(torch.add(_number(offset, wide), wide, alpha=factor), dtype)


def affine_intensities(
    x: Tensor, numbers: Sequence[tuple[float, float]], dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """Do what `affine_intensity` does, with a factor and an offset for each ``x[i]``."""
    made = place(out, x.shape, dtype, x.device)
    largest = max((255 * abs(f) + abs(o) for f, o in numbers), default=0)
    if x.dtype == torch.uint8 and dtype in _BYTES_TO and largest < _LARGEST:
        cv2 = opencv_for(x)
        if cv2 is not None:
            _weigh_each(cv2, x, numbers, made)
            return made
    if x.requires_grad:
        found = [
            affine_intensity(each, *both, dtype) for each, both in zip(x, numbers, strict=True)
        ]
        return torch.stack(found)
    for source, target, both in zip(x.unbind(0), made.unbind(0), numbers, strict=True):
        result = affine_intensity(source, *both, dtype, target)
        if result is not target:
            target.copy_(result)
    return made


_BYTES_TO = (torch.uint8, torch.float32)


def _weigh_each(cv2: Any, x: Tensor, numbers: Sequence[tuple[float, float]], out: Tensor) -> None:
    """Scale the bytes of each ``x[i]``: by NumPy's views, which keep the interpreter's lock."""
    sources, results = (t.numpy().reshape(len(t), 1, -1) for t in (x.contiguous(), out))
    for row, result, (factor, offset) in zip(sources, results, numbers, strict=True):
        _weigh(cv2, row, factor, offset, result)


def _weigh(cv2: Any, row: Bytes, factor: float, offset: float, result: npt.NDArray[Any]) -> None:
    """Write bytes times a factor plus an offset as bytes or floats."""
    if result.dtype != np.uint8:
        cv2.addWeighted(row, factor, row, 0.0, offset, result, cv2.CV_32F)
    elif offset >= 0 and offset + 255 * factor >= 0:  # half the time, the same numbers
        cv2.convertScaleAbs(row, result, factor, offset + HALF_UP)
    else:
        cv2.addWeighted(row, factor, row, 0.0, offset + HALF_UP, result)


def _affine_float(x: Tensor, factor: float, offset: float, out: Tensor) -> Tensor:
    if x.dtype == torch.uint8 and (cv2 := _weighing(x, factor, offset)) is not None:
        _weigh(cv2, x.contiguous().view(1, -1).numpy(), factor, offset, out.view(1, -1).numpy())
        return out
    start = _number(offset, out)
    if x.dtype == out.dtype:
        return torch.add(start, x, alpha=factor, out=out)
    values, results = x.reshape(-1), out.view(-1)
    for first in range(0, len(values), _CACHED):
        part = results[first : first + _CACHED]
        torch.add(start, part.copy_(values[first : first + _CACHED]), alpha=factor, out=part)
    return out


def _number(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)


def _affine_bytes(x: Tensor, factor: float, offset: float, out: Tensor | None) -> Tensor:
    if (cv2 := _weighing(x, factor, offset)) is None:
        return to_bytes(x.to(torch.float32).mul_(factor), offset, out)
    made = place(out, x.shape, torch.uint8, x.device)
    _weigh(cv2, x.contiguous().view(1, -1).numpy(), factor, offset, made.view(1, -1).numpy())
    return made


def _weighing(x: Tensor, factor: float, offset: float) -> Any:
    """Return OpenCV if it can scale bytes by these numbers."""
    return opencv_for(x) if 255 * abs(factor) + abs(offset) < _LARGEST else None


def _wide(x: Tensor) -> Tensor:
    """Convert to the float type that holds the values: float32, as DALI computes."""
    return x if x.dtype == torch.float64 else x.to(torch.float32)


def affine_rgb(
    x: Tensor,
    matrix: Matrix,
    offset: Sequence[float],
    dtype: torch.dtype,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``matrix @ x + offset`` for each pixel of ``(..., C)``, rounded and saturated.

    Args:
        x: ``(..., C)`` with as many channels as the matrix has columns.
        matrix: One row a channel of the output.
        offset: One number a channel of the output.
        dtype: Of the result.
        out: Where it goes, if it fits.
    """
    cv2 = opencv_for(x)
    if cv2 is not None and x.dtype != torch.float64:
        return _affine_by_opencv(cv2, x, matrix, offset, dtype, out)
    weights, bias = _tensors(matrix, tuple(offset), x.device)
    # One plane a channel: the product of a 3x3 matrix with long rows is many times faster than with columns.
    planes = _wide(x.movedim(-1, 0)).reshape(x.shape[-1], -1)
    made = convert(torch.addmm(bias, weights, planes), dtype)
    return made.view(len(matrix), *x.shape[:-1]).movedim(0, -1).contiguous()


def _affine_by_opencv(
    cv2: Any,
    x: Tensor,
    matrix: Matrix,
    offset: Sequence[float],
    dtype: torch.dtype,
    out: Tensor | None,
) -> Tensor:
    channels = len(matrix)
    weights = np.array([(*row, o) for row, o in zip(matrix, offset, strict=True)], np.float32)
    made = place(out, (*x.shape[:-1], channels), dtype, x.device)
    pixels, targets = x.reshape(-1, x.shape[-1]), made.view(-1, channels)
    for start in range(0, len(pixels), _PIECE):
        part, target = (t[start : start + _PIECE] for t in (pixels, targets))
        turned = torch.from_numpy(cv2.transform(part.to(torch.float32)[None].numpy(), weights))
        turned = turned.view(target.shape)
        if dtype == x.dtype == torch.uint8:
            to_bytes(turned, 0.0, target)
        else:
            target.copy_(convert(turned, dtype))
    return made


@functools.lru_cache(maxsize=256)
def _tensors(
    matrix: Matrix, offset: tuple[float, ...], device: torch.device
) -> tuple[Tensor, Tensor]:
    weights = torch.tensor(matrix, dtype=torch.float32, device=device)
    return weights, torch.tensor(offset, dtype=torch.float32, device=device)[:, None]


@folded
def twist_matrix(hue: float, saturation: float, value: float) -> Matrix:
    """Return the matrix that turns hue (degrees) and scales saturation and value of RGB.

    Hue is a rotation of the chroma plane of YIQ; saturation scales that plane, value all of it.
    """
    angle = math.radians(hue)
    c, s = value * saturation * math.cos(angle), value * saturation * math.sin(angle)
    return tuple([tuple([value * y + c * i + s * q for y, i, q in row]) for row in _TURNED])


def _turned() -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return what the luma, and the cosine and the sine of the chroma, contribute to each entry of the matrix."""
    y, i, q = (torch.outer(_FROM_YIQ[:, k], _TO_YIQ[k]) for k in range(3))
    crossed = torch.outer(_FROM_YIQ[:, 1], _TO_YIQ[2]) - torch.outer(_FROM_YIQ[:, 2], _TO_YIQ[1])
    return tuple(tuple(map(tuple, row)) for row in torch.stack((y, i + q, crossed), -1).tolist())


_TURNED = _turned()


# ---------------------------------------------------------------- colour spaces


def swap_red_and_blue(x: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``(..., 3)`` bytes with the first and the last channel exchanged; in `out`, if it fits."""
    made = place(out, x.shape, x.dtype, x.device)
    if (cv2 := opencv_for(x)) is None:
        return torch.index_select(x, -1, _backwards(x.device), out=made)
    row = x.contiguous().view(1, -1, 3).numpy()
    cv2.cvtColor(row, cv2.COLOR_RGB2BGR, made.view(1, -1, 3).numpy())
    return made


@functools.cache
def _backwards(device: torch.device) -> Tensor:
    return torch.tensor([2, 1, 0], device=device)


_GRAY = (0.299, 0.587, 0.114)
_GRAY_STEPS = (9798 / 32768, 19235 / 32768, 3735 / 32768)  # OpenCV's and DALI's


def gray(x: Tensor, blue_first: bool, out: Tensor | None = None) -> Tensor:
    """Return the luma of RGB or BGR bytes ``(..., 3)`` as ``(..., 1)``, equal to DALI's; in `out`, if it fits."""
    made = place(out, (*x.shape[:-1], 1), x.dtype, x.device)
    if (cv2 := opencv_for(x)) is not None:
        code = cv2.COLOR_BGR2GRAY if blue_first else cv2.COLOR_RGB2GRAY
        cv2.cvtColor(x.contiguous().view(1, -1, 3).numpy(), code, made.view(1, -1).numpy())
        return made
    weights = torch.tensor(_GRAY_STEPS[:: -1 if blue_first else 1], device=x.device)
    # Exact: multiples of 2**-15 below 256.
    luma = torch.mv(x.reshape(-1, 3).to(torch.float32), weights)
    return made.copy_(luma.add_(0.5).to(torch.int16).view(made.shape))


# BT.601 in studio range: luma 16..235, chroma 16..240.
_YCBCR: Matrix = (
    (65.481 / 255, 128.553 / 255, 24.966 / 255),
    (-37.797 / 255, -74.203 / 255, 112.0 / 255),
    (112.0 / 255, -93.786 / 255, -18.214 / 255),
)
_YCBCR_OFFSET = (16.0, 128.0, 128.0)


@functools.cache
@folded
def space_matrix(source: str, target: str) -> tuple[Matrix, tuple[float, ...]]:
    """Return matrix and offset between two of RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Raises:
        ValueError: an unknown colour space.
    """
    if source == target:
        size = 1 if source == "GRAY" else 3
        return tuple(tuple(float(i == j) for j in range(size)) for i in range(size)), (0.0,) * size
    first, shift = _to_rgb(source)
    second, offset = _from_rgb(target)
    total = second @ first
    moved = second @ shift + offset
    return tuple(map(tuple, total.tolist())), tuple(moved.tolist())


def _from_rgb(target: str) -> tuple[Tensor, Tensor]:
    rows: dict[str, tuple[Matrix, tuple[float, ...]]] = {
        "RGB": (((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)),
        "BGR": (((0, 0, 1), (0, 1, 0), (1, 0, 0)), (0, 0, 0)),
        "YCbCr": (_YCBCR, _YCBCR_OFFSET),
        "GRAY": ((_GRAY,), (0,)),
    }
    if target not in rows:
        raise ValueError(f"unknown colour space {target!r}: one of {', '.join(rows)}")
    matrix, offset = rows[target]
    return torch.tensor(matrix, dtype=torch.float64), torch.tensor(offset, dtype=torch.float64)


def _to_rgb(source: str) -> tuple[Tensor, Tensor]:
    if source == "GRAY":
        return torch.ones(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    matrix, offset = _from_rgb(source)
    inverse = torch.linalg.inv(matrix)
    return inverse, -(inverse @ offset)
