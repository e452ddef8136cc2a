"""Bytes to normalised planes by OpenCV, where it is installed: from a picture to what a network takes.

The channels are taken apart, and mirrored, while they are bytes; then each becomes floats in its place. So there is
one pass over the result, which is four times as large and seldom in cache, and it runs along memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.scratch import Bytes, byte_planes, scratch

__all__ = ["planes_by_opencv"]

_PIECE = 1 << 18  # values that are worked on at a time


def planes_by_opencv(
    out: Tensor, image: Tensor, factor: tuple[float, ...], offset: tuple[float, ...], mirrored: bool
) -> bool:
    """Write ``image * factor + offset``, or return False where this is not the way.

    Args:
        out: ``(H, W, C)`` float32; the rows of each channel are dense.
        image: ``(H, W, C)`` uint8 of 2 to 4 channels; its rows of pixels are dense, or the rows or the columns of
            each channel.
        factor: One value, or one a channel; nothing is scaled if there is none.
        offset: As many.
        mirrored: Reverse the rows.
    """
    height, width, channels = image.shape
    if (
        image.dtype != torch.uint8
        or out.dtype != torch.float32
        or not 2 <= channels <= 4
        or (cv2 := opencv_for(image)) is None
        or out.stride(1) != 1
        or (take := _way(image)) is None
    ):
        return False
    if not factor:
        factor, offset = (1.0,), (0.0,)
    if len(factor) == 1:
        factor, offset = factor * channels, offset * channels
    pixels, results = image.numpy(), out.numpy().transpose(2, 0, 1)
    add, kind = cv2.addWeighted, cv2.CV_32F
    step = max(_PIECE // (width * channels), 1)
    for start in range(0, height, step):
        part = slice(start, start + step)
        planes = take(cv2, pixels[part], mirrored)
        for plane, result, f, o in zip(planes, results[:, part], factor, offset, strict=True):
            add(plane, f, plane, 0.0, o, result, kind)
    return True


def _way(image: Tensor) -> Callable[[Any, Bytes, bool], list[Bytes]] | None:
    """Return what takes an image apart, by how it lies in memory."""
    rows, columns, channels = image.stride()
    if channels == 1 and columns == image.shape[2]:
        return _split
    if columns == 1 and rows >= image.shape[1]:
        return _rows
    return _columns if rows == 1 and columns >= image.shape[0] else None


def _split(cv2: Any, pixels: Bytes, mirrored: bool) -> list[Bytes]:
    if mirrored:
        pixels = cv2.flip(pixels, 1, scratch(pixels.shape, "mirrored", torch.uint8).numpy())
    height, width, channels = pixels.shape
    planes = byte_planes(channels, height, width)
    cv2.split(pixels, planes)
    return planes


def _rows(cv2: Any, pixels: Bytes, mirrored: bool) -> list[Bytes]:
    planes = list(pixels.transpose(2, 0, 1))
    return [cv2.flip(plane, 1) for plane in planes] if mirrored else planes


def _columns(cv2: Any, pixels: Bytes, mirrored: bool) -> list[Bytes]:
    planes = list(pixels.transpose(2, 1, 0))
    return [cv2.transpose(cv2.flip(plane, 0) if mirrored else plane) for plane in planes]
