"""Resizing of what a result shows of a picture in Python: without the library of the fast path, or if it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.codecs.image_crops import decode_crop, decode_scaled_crop, decode_upper
from torchdali.codecs.images import Header
from torchdali.codecs.views import View
from torchdali.errors import Part
from torchdali.kernels.native import Lines
from torchdali.kernels.resample.separable import lines_read, resample
from torchdali.ops._resize import axes_of, resampling

__all__ = ["Encoded", "decoded_view", "resized_part"]

_DECODER = Part(0)
_BORDER = 2  # lines at the edge of a resized picture that may see pixels outside, with linear filters


class Encoded(NamedTuple):
    """An encoded picture, and how it is decoded."""

    data: Tensor
    header: Header
    upright: bool
    fast: bool

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.header.size(self.upright)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of decoders."""
        return {"adjust_orientation": self.upright, "fast": self.fast, "header": self.header}


def decoded_view(picture: Encoded, view: View, filters: Mapping[str, Any]) -> Tensor | None:
    """Return the pixels of a resized view, in their old order; None if it takes all of a picture to make them."""
    rows, columns = view.rows, view.columns
    if view.filter is None or rows.low > rows.high or columns.low > columns.high:
        return None
    window = rows.first, columns.first, rows.last - rows.first, columns.last - columns.first
    if view.scale <= 1 and window[2:] == picture.size:
        if (rows.extent, columns.extent) == (rows.size, columns.size):
            return None
        return resized_part(view, filters, lambda bottom: _upper(picture, bottom))
    resized = _resized_window(picture, window, view, filters)
    return resized[rows.start :, columns.start :][: rows.extent, : columns.extent]


def _upper(picture: Encoded, bottom: int) -> Tensor:
    with _DECODER:
        return decode_upper(picture.data, bottom, **picture.options)


def _resized_window(
    picture: Encoded, window: tuple[int, int, int, int], view: View, filters: Mapping[str, Any]
) -> Tensor:
    target = view.rows.size, view.columns.size
    with _DECODER:
        if view.scale <= 1:
            pixels, region = decode_crop(picture.data, *window, **picture.options), None
        else:
            y, x, h, w = (value * view.scale for value in window)
            crop = decode_scaled_crop(picture.data, y, x, h, w, *target, **picture.options)
            pixels, region = crop.pixels, [(crop.y, crop.y + crop.h), (crop.x, crop.x + crop.w)]
    return resampling(pixels, target, region, False, **filters)


def resized_part(view: View, filters: Mapping[str, Any], pixels: Callable[[int], Tensor]) -> Tensor:
    """Resize a whole picture to the part of it that a view keeps.

    Args:
        filters: Filters of the arguments of `resampling`.
        pixels: Returns the rows of the picture above one, or more.
    """
    rows, columns = lines = view.rows, view.columns
    region = [(each.low, each.high) for each in lines]
    axes = axes_of((rows.last, columns.last), (rows.size, columns.size), region, **filters)
    kept, at_border = [(each.start, each.extent) for each in lines], any(map(_is_at_border, lines))
    bottom = lines_read(axes[0], kept[0], at_border)
    return resample(pixels(bottom), axes, torch.uint8, patch_border=at_border, windows=kept)


def _is_at_border(lines: Lines) -> bool:
    return lines.start < _BORDER or lines.size - lines.start - lines.extent < _BORDER
