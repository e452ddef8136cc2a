"""Colour: affine maps of intensity and of RGB triples, and conversions between colour spaces."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.convert import convert

__all__ = ["affine_intensity", "affine_rgb", "space_matrix", "twist_matrix"]

Matrix = tuple[tuple[float, ...], ...]

# Luma, and the two chroma axes that a hue rotation turns (YIQ).
_TO_YIQ = torch.tensor(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], dtype=torch.float64
)
_FROM_YIQ = torch.linalg.inv(_TO_YIQ)


def affine_intensity(x: Tensor, factor: float, offset: float, dtype: torch.dtype) -> Tensor:
    """Return ``factor * x + offset``, rounded and saturated to an element type."""
    if dtype == torch.uint8 and x.dtype == torch.uint8:
        # Adding the half first and clamping makes truncation round; the way over int16 is the fastest.
        wide = x.to(torch.float32).mul_(factor).add_(offset + 0.5).clamp_(0.0, 255.0)
        return wide.to(torch.int16).to(torch.uint8)
    return convert(_wide(x) * factor + offset, dtype)


def _wide(x: Tensor) -> Tensor:
    """Convert to the float type that holds the values: float32, as DALI computes."""
    return x if x.dtype == torch.float64 else x.to(torch.float32)


def affine_rgb(x: Tensor, matrix: Matrix, offset: Sequence[float], dtype: torch.dtype) -> Tensor:
    """Return ``matrix @ x + offset`` for each pixel of ``(..., C)``, rounded and saturated.

    Args:
        x: ``(..., C)`` with as many channels as the matrix has columns.
        matrix: One row a channel of the output.
        offset: One number a channel of the output.
        dtype: Of the result.
    """
    weights, bias = _tensors(matrix, tuple(offset), x.device)
    # One plane a channel: the product of a 3x3 matrix with long rows is many times faster than with columns.
    planes = _wide(x.movedim(-1, 0)).reshape(x.shape[-1], -1)
    out = convert(torch.addmm(bias, weights, planes), dtype)
    return out.view(len(matrix), *x.shape[:-1]).movedim(0, -1).contiguous()


@functools.lru_cache(maxsize=256)
def _tensors(matrix: Matrix, offset: tuple[float, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    weights = torch.tensor(matrix, dtype=torch.float32, device=device)
    return weights, torch.tensor(offset, dtype=torch.float32, device=device)[:, None]


def twist_matrix(hue: float, saturation: float, value: float) -> Matrix:
    """Return the matrix that turns hue (degrees) and scales saturation and value of RGB.

    Hue is a rotation of the chroma plane of YIQ; saturation scales that plane, value all of it.
    """
    angle = math.radians(hue)
    c, s = math.cos(angle) * saturation, math.sin(angle) * saturation
    turn = torch.tensor([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]], dtype=torch.float64)
    made = _FROM_YIQ @ turn @ _TO_YIQ * value
    return tuple(map(tuple, made.tolist()))


_GRAY = (0.299, 0.587, 0.114)

# BT.601 in studio range: luma 16..235, chroma 16..240.
_YCBCR: Matrix = (
    (65.481 / 255, 128.553 / 255, 24.966 / 255),
    (-37.797 / 255, -74.203 / 255, 112.0 / 255),
    (112.0 / 255, -93.786 / 255, -18.214 / 255),
)
_YCBCR_OFFSET = (16.0, 128.0, 128.0)


@functools.cache
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
