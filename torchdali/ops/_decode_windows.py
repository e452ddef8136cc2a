"""Execute image programs in Python, if the native library is missing or doesn't support an image.

An image program describes the region of an image to compute, and how to resize and flip the region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchdali.codecs.image_crops import decode_crop, decode_scaled_crop, decode_upper
from torchdali.codecs.images import ImageHeader
from torchdali.codecs.program import ImageProgram
from torchdali.errors import FusedPart
from torchdali.kernels.native import AxisRegion
from torchdali.kernels.resample.separable import count_lines_read, resample
from torchdali.ops._resize import arguments_of, axes_of, resampling

__all__ = ["render_resized", "resize_region"]

_DECODER = FusedPart(0)
_BORDER = 2  # number of rows or columns at each edge that linear filters may compute from pixels outside of the image


def render_resized(data: Tensor, header: ImageHeader, program: ImageProgram) -> Tensor | None:
    """Decode and resize only the region that an image program needs.

    The result isn't flipped, even if the program flips its region. Return None if the program needs the whole image, or
    if the program doesn't resize with DALI's filters.
    """
    rows, columns, options = program.rows, program.columns, program.options
    if options.filters is None or program.filter is None or rows.low > rows.high or columns.low > columns.high:
        return None
    filters = arguments_of(options.filters)
    decoding: dict[str, Any] = {"adjust_orientation": options.upright, "fast": options.fast, "header": header}
    if program.scale <= 1 and program.window[2:] == header.size(options.upright):
        if program.size == (rows.size, columns.size):
            return None
        return resize_region(program, filters, lambda bottom: _decode_upper(data, bottom, decoding))
    with _DECODER:
        pixels, region = _decode_window(data, program, decoding)
    resized = resampling(pixels, (rows.size, columns.size), region, False, **filters)
    return resized[rows.start :, columns.start :][: rows.extent, : columns.extent]


def _decode_upper(data: Tensor, bottom: int, decoding: Mapping[str, Any]) -> Tensor:
    with _DECODER:
        return decode_upper(data, bottom, **decoding)


def _decode_window(
    data: Tensor, program: ImageProgram, decoding: Mapping[str, Any]
) -> tuple[Tensor, list[tuple[float, float]] | None]:
    """Decode the window of a program.

    Returns:
        The decoded pixels, and the region of these pixels to resize. The region is None if all pixels must be resized.
    """
    if program.scale <= 1:
        return decode_crop(data, *program.window, **decoding), None
    y, x, h, w = (value * program.scale for value in program.window)
    crop = decode_scaled_crop(data, y, x, h, w, program.rows.size, program.columns.size, **decoding)
    return crop.pixels, [(crop.y, crop.y + crop.h), (crop.x, crop.x + crop.w)]


def resize_region(program: ImageProgram, filters: Mapping[str, Any], pixels: Callable[[int], Tensor]) -> Tensor:
    """Resize an image, but compute only the region of the result that a program keeps.

    Args:
        filters: Arguments of `resampling` that choose the filters.
        pixels: Function of a number n that returns at least the upper n rows of the image.
    """
    rows, columns = axis_regions = program.rows, program.columns
    region = [(axis.low, axis.high) for axis in axis_regions]
    axes = axes_of((rows.last, columns.last), (rows.size, columns.size), region, **filters)
    windows, at_border = [(axis.start, axis.extent) for axis in axis_regions], any(map(_is_at_border, axis_regions))
    bottom = count_lines_read(axes[0], windows[0], at_border)
    return resample(pixels(bottom), axes, torch.uint8, patch_border=at_border, windows=windows)


def _is_at_border(axis: AxisRegion) -> bool:
    return axis.start < _BORDER or axis.size - axis.start - axis.extent < _BORDER
