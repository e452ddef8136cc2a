"""Bytes to normalised planes by OpenCV, where it is installed: from a picture to what a network takes.

The channels are taken apart, and mirrored, while they are bytes; then each becomes floats in its place. So there is
one pass over the result, which is four times as large and seldom in cache, and it runs along memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.scratch import byte_planes, scratch

__all__ = ["planes_by_opencv"]

_PIECE = 1 << 18  # values that are worked on at a time


def planes_by_opencv(
    out: Tensor, image: Tensor, factor: tuple[float, ...], offset: tuple[float, ...], mirrored: bool
) -> bool:
    """Write ``image * factor + offset``, or return False where this is not the way.

    Args:
        out: ``(C, H, W)`` float32, each row dense.
        image: ``(H, W, C)`` uint8 of 2 to 4 channels, each row dense.
        factor: One value, or one a channel; nothing is scaled if there is none.
        offset: As many.
        mirrored: Reverse the rows.
    """
    height, width, channels = image.shape
    if (
        not 2 <= channels <= 4
        or image.dtype != torch.uint8
        or out.dtype != torch.float32
        or image.stride()[1:] != (channels, 1)
        or out.stride(2) != 1
        or (cv2 := opencv_for(image)) is None
    ):
        return False
    if not factor:
        factor, offset = (1.0,), (0.0,)
    if len(factor) == 1:
        factor, offset = factor * channels, offset * channels
    step = max(_PIECE // (width * channels), 1)
    if step >= height:
        _write(cv2, out, image, factor, offset, mirrored)
        return True
    for start in range(0, height, step):
        rows = slice(start, start + step)
        _write(cv2, out[:, rows], image[rows], factor, offset, mirrored)
    return True


def _write(
    cv2: Any, out: Tensor, image: Tensor, factor: Sequence[float], offset: Sequence[float], mirrored: bool,
) -> None:  # fmt: skip
    pixels = image.numpy()
    if mirrored:
        pixels = cv2.flip(pixels, 1, scratch(image.shape, "mirrored", torch.uint8).numpy())
    planes = byte_planes(image.shape[2], image.shape[0], image.shape[1]).arrays
    cv2.split(pixels, planes)
    for plane, target, f, o in zip(planes, out.numpy(), factor, offset, strict=True):
        cv2.addWeighted(plane, f, plane, 0.0, o, target, cv2.CV_32F)
