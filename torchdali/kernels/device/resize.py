"""Resize a batch of images of any sizes on an accelerator, in two kernel launches.

The first pass resizes rows along x and stores float32 values. The first pass skips rows that the second pass doesn't
read. The second pass resizes along y. The positions and weights of input pixels are the same as in
`kernels.resample.weights`. The kernels compute the positions and weights on the device from a table that has a few
numbers per image and axis.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import floats, upload
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.limits import MAX_TAPS
from torchdali.kernels.memory import Array
from torchdali.kernels.resample.weights import (
    PIXEL,
    RADIUS,
    TAP,
    TAP_OF_ROWS,
    filter_table,
    stretch_taps,
)

__all__ = ["COLUMNS", "FIELDS", "Regions", "ResizeTable", "build_table", "lookup_table", "resize_batch"]

FIELDS = (
    "offset",
    "height",
    "width",
    "first",
    "rows",
    "intermediate",
    "result",
    "out_height",
    "out_width",
)
AXIS_FIELDS = ("origin", "step", "density", "taps", "start", "filter")
COLUMNS = (*FIELDS, *[f"{name}_y" for name in AXIS_FIELDS], *[f"{name}_x" for name in AXIS_FIELDS])
"""Columns of the table that the kernels read, which has one row per image.

``offset``, ``height`` and ``width`` describe the input image. ``first`` is the first row that the kernels read, and
``rows`` is the number of rows that they read. ``intermediate`` is the offset of the first pass's result, and
``result`` is the offset of the output. All offsets are in elements. The columns named in `AXIS_FIELDS` determine the
positions and weights of each axis."""
_FIRST_X_COLUMN = len(FIELDS) + len(AXIS_FIELDS)  # the first column for the x axis
_MAX_CACHED_SIDE = 1 << 12  # in pixels; for shorter sides, `_squares` caches the columns of the table

_NAMES = tuple(RADIUS)
BELOW_HALF = 0.49999997  # added to float results before they are truncated to uint8
_f32 = np.float32
_HALF = np.array(0.5, _f32)
_ZERO, _ONE = np.array(0.0), np.array(1.0)


class Regions(NamedTuple):
    """Regions of images, and the sizes to which they are resized.

    Attributes:
        low: Starts ``(2, N)`` of the regions in pixels, y before x; None for whole images.
        high: Ends ``(2, N)`` of the regions in pixels; None for whole images.
        size: Heights and widths ``(2, N)`` of the outputs; ``(2, 1)`` if all outputs have the same size.
        filters: Names of two filters: for axes that shrink, and for all other axes.
        antialias: True to widen the filter along axes that shrink.
    """

    low: Array | None
    high: Array | None
    size: Array
    filters: tuple[str, str]
    antialias: bool


def resize_batch(
    flat: Tensor,
    offsets: Array,
    sides: Array,
    channels: int,
    regions: Regions,
    dtype: torch.dtype,
) -> Tensor | None:
    """Resize regions of images of any sizes.

    Args:
        flat: Elements of all images ``(H, W, C)``, uint8 or float32, on a device.
        offsets: Index of each image's first element.
        sides: Heights and widths ``(2, N)`` of the images.
        channels: Number of channels of each image.
        regions: Regions of the images, and the sizes of the outputs.
        dtype: Dtype of the output: the images' dtype, or float32.

    Returns:
        The concatenated elements of all outputs ``(H, W, C)``. None if the output pixels of one axis would together
        read more than `MAX_TAPS` input pixels.
    """
    rows = build_table(offsets, sides, channels, regions)
    if rows is None:
        return None
    height, width = regions.size
    results = np.broadcast_to(height * width * channels, (len(offsets),))
    ends = results.cumsum()
    rows.table[:, 6] = ends - results
    out: Tensor = torch.ops.torchdali.resize_batch(
        flat, upload(rows.table, flat.device), lookup_table(flat.device), rows.intermediate_size,
        rows.largest_intermediate, int(ends[-1]), int(results.max()), channels, dtype == torch.float32,
    )  # fmt: skip
    return out


class ResizeTable(NamedTuple):
    """The kernels' table for a resize, and the sizes of the first pass's result.

    Attributes:
        table: ``(N, len(COLUMNS))`` int64. The column ``result`` is 0, and the caller must set it.
        intermediate_size: Number of elements that the first pass computes for all images.
        largest_intermediate: Maximum number of elements that the first pass computes for one image.
    """

    table: Array
    intermediate_size: int
    largest_intermediate: int


def build_table(offsets: Array, sides: Array, channels: int, regions: Regions) -> ResizeTable | None:
    """Build the table of a resize; None if `resize_batch` must return None."""
    table = _table(sides, regions)
    if table is None:
        return None
    sizes = table[:, 5] * channels
    table[:, 0], table[:, 5], table[:, 6] = offsets, sizes.cumsum() - sizes, 0
    each = sizes.tolist()
    return ResizeTable(table, sum(each), max(each))


def _table(sides: Array, regions: Regions) -> Array | None:
    """Return a table in which the columns ``offset`` and ``result`` aren't set.

    The column ``intermediate`` contains the number of pixels that the first pass computes for the image, not an offset.
    """
    if regions.low is None and regions.size.shape[1] == 1:
        cached = _squares(tuple(regions.size[:, 0].tolist()), regions.filters, regions.antialias)
        try:
            table: Array = cached[sides[0]]
            table[:, 2], table[:, _FIRST_X_COLUMN:] = sides[1], cached[:, _FIRST_X_COLUMN:][sides[1]]
            return table
        except IndexError:  # a side of an image isn't shorter than `_MAX_CACHED_SIDE`
            pass
    table = np.empty((sides.shape[1], len(COLUMNS)), np.int64)
    columns = table.T
    rows_read = _fill_axes(sides, regions, columns[len(FIELDS) :].reshape(2, len(AXIS_FIELDS), -1))
    if rows_read is None:
        return None
    columns[1:3], columns[3:5], columns[5], columns[7:9] = (
        sides,
        rows_read,
        rows_read[1] * regions.size[1],
        regions.size,
    )
    return table


@functools.lru_cache(maxsize=16)
def _squares(size: tuple[int, ...], filters: tuple[str, str], antialias: bool) -> Array:
    """Return the table rows of square images that are resized as a whole: one row per extent below `_MAX_CACHED_SIDE`.

    The columns of an axis depend only on the axis's extent. So for an image that isn't square, the columns can be
    copied from the rows of two square images. This takes a third of the time of computing the columns. Callers must not
    change the returned array, because the array is cached.
    """
    sides = np.arange(_MAX_CACHED_SIDE).repeat(2).reshape(-1, 2).T
    low, high = np.zeros(sides.shape), sides.astype(np.float64)
    rows = _table(sides, Regions(low, high, np.array(size)[:, None], filters, antialias))
    return np.empty((0, len(COLUMNS)), np.int64) if rows is None else rows


def _resizes_x_first(regions: Regions, extents: Array, taps: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the samples for which DALI resizes along x before y; see `weights.passes`.

    `extents` has the regions' extents, and `taps` the number of input pixels that each output pixel reads.
    """
    cost = _COSTS * taps + PIXEL
    outputs = regions.size[0] * regions.size[1]
    rows = regions.size[0] * extents[1] * cost[0] + outputs * cost[1]
    columns = extents[0] * regions.size[1] * cost[1] + outputs * cost[0]
    return np.asarray(columns < rows)


def _fill_axes(lengths: Array, regions: Regions, rows: Array) -> Array | None:
    """Write the table's columns that determine positions and weights, for both axes of all samples.

    Args:
        lengths: Extents ``(2, N)`` of the images.
        rows: Output ``(2, len(AXIS_FIELDS), N)`` int64: the columns named in `AXIS_FIELDS`, for y and x.

    Returns:
        ``(2, N)``: for each image, the first row that is read and the number of rows that are read. None if the output
        pixels of one axis would together read more than `MAX_TAPS` input pixels.
    """
    low, high = regions.low, regions.high
    if low is None or high is None:
        low, high = np.zeros(lengths.shape), lengths.astype(np.float64)
    size = np.empty(low.shape)  # broadcasting would take three times as long
    size[...] = regions.size
    extents = high - low
    scale = extents / size
    density, reach, rows[:, 5] = _choose_filters(regions, scale, extents)
    taps = np.ceil(reach + reach).astype(np.float64)
    if (size * taps).max() > MAX_TAPS:
        return None
    step = scale.astype(_f32)
    origin, start = step * _HALF - _HALF - reach, low
    if np.count_nonzero(low):
        start = np.maximum(np.floor(np.minimum(low, high) - reach), _ZERO)
        if start.any():
            # The first pass counts positions from the start of the image.
            x_first = _resizes_x_first(regions, np.abs(extents), taps)
            start[0, ~x_first] = start[1, x_first] = 0
        origin += (low - start).astype(_f32)
    for column, values in zip(rows.swapaxes(0, 1), (origin, step, density), strict=False):
        column[...] = values.view(np.int32)
    rows[:, 3], rows[:, 4] = taps, start
    first, last = origin[0], origin[0] + (size[0] - _ONE).astype(_f32) * step[0]
    ends = np.empty(low.shape, _f32)
    np.minimum(first, last, out=ends[0])
    np.maximum(first, last, out=ends[1])
    rows_read: Array = np.ceil(ends).astype(np.float64) + start[0]
    rows_read[1] += taps[0] - _ONE
    np.minimum(np.maximum(rows_read, _ZERO, out=rows_read), lengths[0] - _ONE, out=rows_read)
    rows_read[1] += _ONE - rows_read[0]
    return rows_read


def _choose_filters(regions: Regions, scale: Array, extents: Array) -> tuple[Array, Array, Array | int]:
    """Return the filter of each axis as three arrays ``(2, N)``.

    The arrays contain the number of table entries per pixel, the filter's radius in pixels, and the packed position of
    the filter's table in `lookup_table`. If all axes have the same filter, the position is a single number.
    """
    widening = np.maximum(_ONE, np.abs(scale)) if regions.antialias else np.ones(scale.shape)
    shrinking, growing = regions.filters
    if shrinking == growing:
        return *stretch_taps(growing, widening), _TABLE_POSITIONS[growing]
    shrinks = np.abs(extents) > regions.size
    density, reach = (np.where(shrinks, *each) for each in zip(
        stretch_taps(shrinking, widening), stretch_taps(growing, widening), strict=True
    ))  # fmt: skip
    return density, reach, np.where(shrinks, _TABLE_POSITIONS[shrinking], _TABLE_POSITIONS[growing])


def _concatenate_tables() -> tuple[npt.NDArray[np.float32], dict[str, int]]:
    parts = [filter_table(name).astype(_f32) for name in _NAMES]
    starts = np.concatenate(([0], np.cumsum([len(p) for p in parts]))).tolist()
    return (
        np.concatenate(parts),
        # A table's start and length are packed into one number, which the kernels split again.
        {name: start << 32 | len(p) for name, start, p in zip(_NAMES, starts, parts, strict=False)},
    )


_TABLE, _TABLE_POSITIONS = _concatenate_tables()
_COSTS = np.array([[TAP], [TAP_OF_ROWS]])


@device_cache(maxsize=8)
def lookup_table(device: torch.device) -> Tensor:
    """Return the concatenated tables of all filters, on a device."""
    return upload(_TABLE, device)


# ---------------------------------------------------------------- reference implementation in torch


@define("resize")
def resize_in_torch(
    flat: Tensor, samples: Tensor, filters: Tensor, intermediate_size: int, largest_intermediate: int, results: int,
    largest: int, channels: int, as_float: bool,
) -> Tensor:  # fmt: skip
    """Resize a batch on the CPU. This is the reference implementation for the device's kernels.

    Args:
        flat: Elements of all images.
        samples: The kernels' table, ``(N, len(COLUMNS))``.
        filters: Tables of the filters; only the device's kernels use this argument.
        intermediate_size, largest_intermediate: See `ResizeTable`.
        results: Number of elements of all outputs.
        largest: Maximum number of elements of one output.
        channels: Number of channels of images and outputs.
        as_float: True for a float32 output, False for uint8.
    """
    out = torch.empty(results, dtype=torch.float32 if as_float else torch.uint8)
    for row in samples.numpy():
        fields = dict(zip(COLUMNS, row.tolist(), strict=True))
        start, h, w = fields["offset"], fields["height"], fields["width"]
        height, width = fields["out_height"], fields["out_width"]
        image = flat[start : start + h * w * channels].view(h, w, channels)
        image = image[fields["first"] : fields["first"] + fields["rows"]].float()
        pixels, weights = _weights(row, fields, "x", width, w)
        wide = torch.einsum("hwkc,wk->hwc", image[:, pixels], weights)
        pixels, weights = _weights(row, fields, "y", height, h)
        sums = torch.einsum("hkwc,hk->hwc", wide[pixels - fields["first"]], weights)
        target = out[fields["result"] :][: height * width * channels].view(height, width, channels)
        target.copy_(sums if as_float else sums.add_(BELOW_HALF).clamp_(0, 255))
    return out


def _weights(row: Array, fields: dict[str, int], name: str, size: int, length: int) -> tuple[Tensor, Tensor]:
    """Return the input pixels and weights of the output pixels on the axis `name` ("x" or "y"), ``(size, taps)`` each.

    `row` is a row of the kernels' table, and `fields` maps the columns' names to the values of this row.
    """

    def number(field: str) -> np.float32:
        i = COLUMNS.index(f"{field}_{name}")
        return np.float32(floats(row[i : i + 1])[0])

    start, count = fields[f"filter_{name}"] >> 32, fields[f"filter_{name}"] & 0xFFFFFFFF
    position = number("origin") + np.arange(size, dtype=_f32) * number("step")
    pixel = np.ceil(position).astype(np.int64)[:, None] + np.arange(fields[f"taps_{name}"])
    knot = (pixel.astype(_f32) - position[:, None]) * number("density")
    values = _TABLE[start : start + count]
    inside = np.clip(knot + _f32(1), 0, count - 1)
    left = np.minimum(inside.astype(np.int64), count - 2)
    weight = values[left] + (inside - left) * (values[left + 1] - values[left])
    weight = weight / weight.sum(1, keepdims=True)
    pixel = (pixel + fields[f"start_{name}"]).clip(0, length - 1)
    return torch.from_numpy(pixel), torch.from_numpy(weight.astype(_f32))
