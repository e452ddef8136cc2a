"""Bytes to normalised floats by OpenCV, where it is installed: from a picture to what a network takes.

The channels are taken apart, and mirrored, while they are bytes; then each becomes floats. Where the result is planes
too, they are written in their place: one pass over a result that is four times as large and seldom in cache. Else they
are put together again, which OpenCV does past the cache.

What OpenCV has for ``x * factor + offset`` from bytes to floats is `normalize`, which is told what becomes of the
least and of the greatest value. So that these are always 0 and 255, the two stand beside each plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.scratch import (
    ENDS,
    BytePlanes,
    Bytes,
    Floats,
    byte_planes,
    float_rows,
    scratch,
)

__all__ = ["normalised_by_opencv"]

Values = list[tuple[float, float]]
Take = Callable[[Any, Bytes, bool, list[Bytes]], None]
Write = Callable[[Any, Floats, int, int, BytePlanes, Values], None]

_PIECE = 1 << 21  # values that are worked on at a time; seldom fewer than an image has
_PIXELS = 1 << 18  # where the result goes through floats that had better stay in cache


def normalised_by_opencv(
    out: Floats, image: Tensor, factor: tuple[float, ...], offset: tuple[float, ...], mirrored: bool
) -> bool:
    """Write ``image * factor + offset``, or return False where this is not the way.

    Args:
        out: ``(H, W, C)``, best with dense channels or dense pixels.
        image: ``(H, W, C)`` uint8 of 2 to 4 channels; its rows of pixels are dense, or the rows or the columns of
            each channel.
        factor: One value, or one a channel, above 0; nothing is scaled if there is none.
        offset: As many, finite.
        mirrored: Reverse the rows.
    """
    height, width, channels = image.shape
    if (
        image.dtype != torch.uint8
        or not 2 <= channels <= 4
        or height * width < ENDS
        or (factor and not (min(factor) > 0 and math.isfinite(sum(offset))))
        or (cv2 := opencv_for(image)) is None
        or (take := _way(image)) is None
    ):
        return False
    if not factor:
        factor, offset = (1.0,), (0.0,)
    if len(factor) == 1:
        factor, offset = factor * channels, offset * channels
    values = list(zip(factor, offset, strict=True))
    write: Write = _write_anywhere
    piece = _PIXELS
    if (planar := out.transpose(2, 0, 1)).flags.c_contiguous:
        write, out, piece = _write_planes, planar.reshape(-1), _PIECE
    elif out.strides[1:] == (channels * out.itemsize, out.itemsize):
        if image.numel() < _PIXELS:  # few calls are better than less work
            return False
        write = _write_pixels
    pixels = image.numpy()
    step = -(-height // -(-image.numel() // piece))
    planes = byte_planes(channels, step, width)
    for start in range(0, height, step):
        start = min(start, height - step)  # the last piece begins in the one before it
        take(cv2, pixels[start : start + step], mirrored, planes.pixels)
        write(cv2, out, start, height, planes, values)
    return True


def _write_planes(
    cv2: Any, results: Floats, start: int, height: int, planes: BytePlanes, values: Values
) -> None:
    """Write scaled planes into a dense one-dimensional ``C * H * W``, from row `start` on.

    What becomes of the ends of a plane falls on its neighbours, of which that is put back if it had been written.
    """
    rows, width = planes.pixels[0].shape
    low, high = start * width, (start + rows) * width
    for plane, (f, o) in zip(planes.ended, values, strict=True):
        if start == 0 and high + ENDS <= len(results):
            _scale(cv2, plane[:, ENDS:], results[low : high + ENDS], f, o)
        else:
            _scale_beside(cv2, plane, results, low, high, f, o)
        low, high = low + height * width, high + height * width


def _scale_beside(
    cv2: Any, plane: Bytes, results: Floats, low: int, high: int, factor: float, offset: float
) -> None:
    """Write a scaled plane, and put back what its end falls on."""
    if high + ENDS <= len(results):
        beside, target, source = high, results[low : high + ENDS], plane[:, ENDS:]
    else:
        beside, target, source = low - ENDS, results[low - ENDS : high], plane[:, :-ENDS]
    neighbour = results[beside : beside + ENDS]
    kept = neighbour.copy()
    _scale(cv2, source, target, factor, offset)
    neighbour[:] = kept


def _write_pixels(
    cv2: Any, results: Floats, start: int, height: int, planes: BytePlanes, values: Values
) -> None:
    """Write scaled planes into dense pixels ``(H, W, C)``, from row `start` on."""
    made = _scaled(cv2, planes, values)
    cv2.merge(made, results[start : start + len(made[0])])


def _write_anywhere(
    cv2: Any, results: Floats, start: int, height: int, planes: BytePlanes, values: Values
) -> None:
    """Write scaled planes into ``(H, W, C)``, from row `start` on."""
    for channel, plane in enumerate(_scaled(cv2, planes, values)):
        results[start : start + len(plane), :, channel] = plane


def _scaled(cv2: Any, planes: BytePlanes, values: Values) -> list[Floats]:
    """Return scaled planes ``(H, W)`` in memory of the thread's own."""
    shape = planes.pixels[0].shape
    count = shape[0] * shape[1]
    rows = float_rows(len(values), count + ENDS)
    for plane, row, (f, o) in zip(planes.ended, rows, values, strict=True):
        _scale(cv2, plane[:, ENDS:], row, f, o)
    return [row[:count].reshape(shape) for row in rows]


def _scale(cv2: Any, source: Bytes, target: Floats, factor: float, offset: float) -> None:
    """Write ``source * factor + offset``; 0 and 255 are in the source."""
    cv2.normalize(
        source, target.reshape(1, -1), offset, offset + 255 * factor, cv2.NORM_MINMAX, cv2.CV_32F
    )


def _way(image: Tensor) -> Take | None:
    """Return what takes an image apart, by how it lies in memory."""
    rows, columns, channels = image.stride()
    if channels == 1 and columns == image.shape[2]:
        return _split
    if columns == 1 and rows >= image.shape[1]:
        return _rows
    return _columns if rows == 1 and columns >= image.shape[0] else None


def _split(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    if mirrored:
        pixels = cv2.flip(pixels, 1, scratch(pixels.shape, "mirrored", torch.uint8).numpy())
    cv2.split(pixels, planes)


def _rows(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    for plane, copy in zip(pixels.transpose(2, 0, 1), planes, strict=True):
        if mirrored:
            cv2.flip(plane, 1, copy)
        else:
            copy[:] = plane


def _columns(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    for plane, copy in zip(pixels.transpose(2, 1, 0), planes, strict=True):
        cv2.transpose(cv2.flip(plane, 0) if mirrored else plane, copy)
