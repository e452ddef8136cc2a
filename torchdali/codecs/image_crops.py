"""Decode windows (rectangles) of images with as few pixels and as little new memory as possible.

A sequential JPEG is decoded only up to the last row that the window needs. A JPEG can also be decoded at a half, a
quarter or an eighth of its size, in a fraction of the time. Images are decoded into a buffer that the thread reuses,
and only the window is copied to new memory, because allocating tens of megabytes takes as long as filling the memory.

simplejpeg (extra ``image``) supports both methods. Pillow supports only reduced sizes. Images of other formats are
decoded completely.
"""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._image_formats import read_header
from torchdali.codecs._image_headers import (
    ImageHeader,
    encoded_view,
    strip_exif,
)
from torchdali.codecs._image_orientation import stored_window, turn, upright_window
from torchdali.codecs._turbo import Pixels, decode_rows, decode_scaled
from torchdali.codecs.images import decode

__all__ = ["ScaledCrop", "decode_crop", "decode_scaled_crop", "decode_upper", "choose_scale"]

_BLOCK = 8  # windows of scaled images are widened to multiples of this number of source pixels


class ScaledCrop(NamedTuple):
    """A window of an image at full or reduced size.

    Attributes:
        pixels: ``(H, W, 3)`` uint8 RGB; may be a little larger than the window.
        y: Top of the window in `pixels`.
        x: Left side of the window in `pixels`.
        h: Height of the window in `pixels`.
        w: Width of the window in `pixels`.
        scale: Number of image pixels per pixel of `pixels` on each axis: 1, 2, 4 or 8.
    """

    pixels: Tensor
    y: float
    x: float
    h: float
    w: float
    scale: int


def decode_crop(
    data: Tensor,
    y: int,
    x: int,
    h: int,
    w: int,
    *,
    adjust_orientation: bool = True,
    fast: bool = False,
    fancy: bool = True,
    header: ImageHeader | None = None,
) -> Tensor:
    """Decode a window of the upright image; the result equals a slice of `decode`'s result.

    `adjust_orientation`, `fast` and `fancy` are arguments of `decode`. Pass `header` if the header was already read.

    Returns:
        ``(h, w, 3)`` uint8 RGB, contiguous or a view of the whole image.

    Raises:
        DecodeError: The image cannot be decoded; see `decode`.
        ValueError: The window is empty or exceeds the image.
    """
    view = encoded_view(data)
    header = header or read_header(view)
    window = y, x, h, w
    _check_window(window, header.size(adjust_orientation))
    if header.format == "JPEG" and header.channels != 4:
        orientation = header.orientation if adjust_orientation else 1
        if orientation != 1:
            window = stored_window(window, header.size(True), orientation)
            fast = False
        top, left, rows, columns = window
        decoded = decode_rows(view, header.frame, header.height, top + rows, fast, fancy)
        if decoded is not None:
            pixels = torch.from_numpy(decoded[top : top + rows, left : left + columns].copy())
            return pixels if orientation == 1 else turn(pixels, orientation)
    image = decode(data, adjust_orientation=adjust_orientation, fast=fast, fancy=fancy)
    return image[y : y + h, x : x + w]


def decode_scaled_crop(
    data: Tensor,
    y: int,
    x: int,
    h: int,
    w: int,
    target_h: int,
    target_w: int,
    *,
    adjust_orientation: bool = True,
    fast: bool = False,
    header: ImageHeader | None = None,
) -> ScaledCrop:
    """Decode a window of the upright image at a reduced size.

    At the reduced size, the window is at least as large as the size to which the caller will resize the window. A
    reduced image isn't exact, because libjpeg renders only the lower frequencies. The result's window is widened to
    multiples of 8 pixels in the stored image. Images are decoded at full size if they aren't JPEGs, if they have four
    channels, or if neither simplejpeg nor Pillow can reduce them.

    Args:
        target_h: Height to which the caller will resize the window.
        target_w: Width to which the caller will resize the window.

    Raises:
        DecodeError: The image cannot be decoded; see `decode`.
        ValueError: The window is empty or exceeds the image.
    """
    scale = choose_scale(h, w, target_h, target_w)
    view = encoded_view(data)
    header = header or read_header(view)
    window = y, x, h, w
    if scale > 1 and header.format == "JPEG" and header.channels != 4:
        orientation = header.orientation if adjust_orientation else 1
        upright_size = header.size(adjust_orientation)
        _check_window(window, upright_size)
        stored = stored_window(window, upright_size, orientation)
        crop = _decode_scaled(view, header, stored, scale, fast and orientation == 1)
        if crop is not None:
            height, width, _ = crop.pixels.shape
            region = upright_window(crop[1:5], (height, width), orientation)
            return ScaledCrop(turn(crop.pixels, orientation), *region, scale=scale)
    pixels = decode_crop(data, *window, adjust_orientation=adjust_orientation, fast=fast, header=header)
    return ScaledCrop(pixels, 0.0, 0.0, float(h), float(w), 1)


def choose_scale(h: int, w: int, target_h: int, target_w: int) -> int:
    """Return the largest of the divisors 8, 4, 2 and 1 at which a reduced window isn't smaller than the target."""
    ratio = min(h // max(target_h, 1), w // max(target_w, 1))
    return next((scale for scale in (8, 4, 2) if ratio >= scale), 1)


def decode_upper(
    data: Tensor,
    bottom: int,
    *,
    adjust_orientation: bool = True,
    fast: bool = False,
    header: ImageHeader | None = None,
) -> Tensor:
    """Decode at least the rows of the upright image above `bottom`, to the same pixels as `decode`.

    Returns:
        ``(bottom or more, W, 3)`` uint8 RGB, contiguous; valid until the thread decodes the next image.

    Raises:
        DecodeError: The image cannot be decoded; see `decode`.
    """
    view = encoded_view(data)
    header = header or read_header(view)
    needs_turn = adjust_orientation and header.orientation != 1
    if header.format == "JPEG" and header.channels != 4 and not needs_turn:
        decoded = decode_rows(view, header.frame, header.height, bottom, fast)
        if decoded is not None:
            return torch.from_numpy(decoded)
    return decode(data, adjust_orientation=adjust_orientation, fast=fast)


def _check_window(window: tuple[int, int, int, int], size: tuple[int, int]) -> None:
    y, x, h, w = window
    if min(y, x) < 0 or min(h, w) < 1 or y + h > size[0] or x + w > size[1]:
        raise ValueError(f"the window of {h} x {w} at ({y}, {x}) must be within the image of {size[0]} x {size[1]}")


def _decode_scaled(
    view: memoryview, header: ImageHeader, window: tuple[int, int, int, int], scale: int, fast: bool
) -> ScaledCrop | None:
    """Decode a window with simplejpeg or Pillow at a reduced size; return None if neither supports the image."""
    y, x, h, w = window
    top, left = y // _BLOCK * _BLOCK, x // _BLOCK * _BLOCK
    bottom, right = (-(-end // _BLOCK) * _BLOCK for end in (y + h, x + w))
    decoded = decode_scaled(view, header.frame, header.height, bottom, scale, fast)
    if decoded is None:
        decoded = _decode_with_pillow(view, header, scale)
    if decoded is None:
        return None
    rows = slice(top // scale, -(-min(bottom, header.height) // scale))
    columns = slice(left // scale, -(-min(right, header.width) // scale))
    pixels = torch.from_numpy(decoded[rows, columns].copy())
    region = (y - top) / scale, (x - left) / scale, h / scale, w / scale
    return ScaledCrop(pixels, *region, scale=scale)


def _decode_with_pillow(view: memoryview, header: ImageHeader, scale: int) -> Pixels | None:
    from PIL.JpegImagePlugin import JpegImageFile

    encoded = strip_exif(view)
    try:
        with JpegImageFile(io.BytesIO(encoded)) as image:
            image.draft("RGB", (header.width // scale, header.height // scale))
            decoded = np.asarray(image)
    except (OSError, SyntaxError, ValueError):  # the caller then decodes the whole image and raises the error
        return None
    if decoded.shape[:2] != (-(-header.height // scale), -(-header.width // scale)):
        return None
    return decoded if decoded.ndim == 3 else np.repeat(decoded[:, :, None], 3, axis=2)
