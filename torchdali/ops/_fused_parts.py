"""Common parts of fused operators: how arguments are divided, and which lines of an image are wanted."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._native import peek_size
from torchdali.codecs.images import Header, peek_header
from torchdali.declaration.batching import EncodedBody, argument_names
from torchdali.declaration.schema import DType, PerSample
from torchdali.errors import LAST_BUT_ONE
from torchdali.kernels.native import Lines
from torchdali.ops._crop import crop_window
from torchdali.ops._decoders import image
from torchdali.ops._native_images import Describe, encoded_body
from torchdali.ops._resize import FILTERS, sizing
from torchdali.types import DALIImageType

__all__ = [
    "KNOWN", "Divided", "Kept", "encoded_body_of", "decode_whole", "divide_all", "divided", "flipped_lines", "kept_of",
    "lengths_of", "lines_of", "normalizing", "parts_kept", "whole_lines",
]  # fmt: skip


def lengths_of(data: Tensor, upright: bool) -> tuple[tuple[int, int], Header | None]:
    """Return height and width of an encoded image, and its header if that was read for it."""
    lengths = peek_size(data, upright)
    if lengths is not None:
        return lengths, None
    header = peek_header(data)
    return header.size(upright), header


def decode_whole(data: Tensor, upright: bool, output_type: DALIImageType, fast: bool) -> Tensor:
    """Decode a whole image."""
    return image.body(data, adjust_orientation=upright, output_type=output_type, use_fast_idct=fast)


class Kept(NamedTuple):
    """The part of a resized image that a crop keeps.

    Attributes:
        size: Of the whole resized image.
        region: Of the input that it shows.
        windows: ``(start, extent)`` of the crop, for rows and columns.
        at_border: The crop has lines that see pixels outside of the image, with linear filters.
    """

    size: tuple[int, ...]
    region: tuple[tuple[float, float], ...]
    windows: list[tuple[int, int]]
    at_border: bool


_BORDER = 2  # lines at the edge of the output of which that may be true


def kept_of(lengths: tuple[int, ...], size_arguments: dict[str, Any], window: dict[str, Any]) -> Kept | None:
    """Return what a crop keeps of an image ``(H, W, C)``, or None if it reaches outside."""
    with LAST_BUT_ONE:
        size, region = sizing(lengths, **size_arguments)
    windows = [(0, extent) for extent in size]
    for axis, start, extent in zip(*crop_window((*size, 3), "HWC", **window), strict=True):
        windows[axis] = start, extent
    ends = [(start, n - start - extent) for (start, extent), n in zip(windows, size, strict=True)]
    if any(before < 0 or after < 0 for before, after in ends):
        return None
    at_border = any(before < _BORDER or after < _BORDER for before, after in ends)
    return Kept(size, region, windows, at_border)


def lines_of(kept: Kept, place: tuple[int, int], extents: tuple[int, int]) -> tuple[Lines, Lines]:
    """Describe both axes for the fast path: a resize of a window of the image that lies at `place`.

    Regions are rounded to float32 before they are moved, as `resize_axes` does: it decides which pixel is the nearest.
    """
    axes = zip(kept.region, kept.size, kept.windows, place, extents, strict=True)
    rows, columns = [
        Lines(
            float(np.float32(low)) + start,
            float(np.float32(high)) + start,
            size,
            *part,
            start,
            start + extent,
        )
        for (low, high), size, part, start, extent in axes
    ]
    return rows, columns


def normalizing(
    *,
    dtype: DType = torch.float32,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    mean: PerSample[list[float]] = [0.0],  # noqa: B006
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: str = "error",
    output_layout: str = "CHW",
    pad_output: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = [1.0],  # noqa: B006
) -> None:
    """Arguments of `crop_mirror_normalize`, but for those of the window."""


class Divided(NamedTuple):
    """Arguments of three operators, and those of others."""

    size: dict[str, Any]
    window: dict[str, Any]
    last: dict[str, Any]
    others: dict[str, Any]


def divide_all(arguments: dict[str, Any]) -> Divided:
    """Divide arguments into those of `sizing`, `crop_window`, `normalizing`, and `resampling` or none of them."""
    divided = Divided({}, {}, {}, {})
    for place, (name, value) in zip(_places(*arguments), arguments.items(), strict=True):
        divided[place][name] = value
    return divided


@functools.lru_cache(maxsize=64)
def _places(*names: str) -> tuple[int, ...]:
    """Return for each argument which of the parts of `Divided` it belongs to."""
    parts = argument_names(sizing), argument_names(crop_window), argument_names(normalizing)
    return tuple(next((i for i, part in enumerate(parts) if name in part), len(parts)) for name in names)


def whole_lines(lengths: tuple[int, int], parts: list[tuple[int, int]]) -> tuple[Lines, Lines]:
    """Describe both axes of parts of an image that is not resized."""
    (height, width), (rows, columns) = lengths, parts
    return Lines(0, height, height, *rows, 0, height), Lines(0, width, width, *columns, 0, width)


def flipped_lines(columns: Lines, begin: int, end: int) -> Lines:
    """Describe the columns of a window, from `begin` to `end`, that was flipped before what `columns` describes."""
    low, high, first, last = (begin + end - each for each in (columns.low, columns.high, columns.last, columns.first))
    return columns._replace(low=low, high=high, first=first, last=last)  # type: ignore[arg-type]


def parts_kept(target: tuple[int, int], window: dict[str, Any]) -> list[tuple[int, int]] | None:
    """Return ``(start, extent)`` of what a crop keeps of an image, rows and columns; None if it reaches outside."""
    parts = [(0, target[0]), (0, target[1])]
    if window:
        for axis, start, extent in zip(*crop_window((*target, 3), "HWC", **window), strict=True):
            if start < 0 or start + extent > target[axis]:
                return None
            parts[axis] = start, extent
    return parts


KNOWN = 256  # sizes of images whose lines are remembered


def encoded_body_of(
    constants: Mapping[str, Any],
    describe: Describe,
    inside: bool,
    filters: dict[str, Any],
    **last: Any,
) -> EncodedBody | None:
    """Make a body from the constants of a decoder, and what says which lines of an image are wanted."""
    if constants.get("output_type", DALIImageType.RGB) != DALIImageType.RGB:
        return None
    return encoded_body(
        describe,
        upright=constants.get("adjust_orientation", True),
        fast=constants.get("use_fast_idct", False),
        inside=inside,
        filters=filters,
        **last,
    )


def divided(constants: Mapping[str, Any]) -> Divided:
    """Divide the constants of a fused operator as its body does, the filters apart from what is of the decoder."""
    size, window, last, others = divide_all(dict(constants))
    return Divided(size, window, last, {k: v for k, v in others.items() if k in FILTERS})
