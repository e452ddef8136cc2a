"""Resize a batch of images of any sizes, on an accelerator, in two launches.

The first pass resizes the rows that the second one reads, to float32; the second one resizes columns. Positions and
weights are those of `kernels.resample.weights`; the kernels compute them from a few numbers for each axis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.limits import MAX_TAPS
from torchdali.kernels.resample.weights import (
    PIXEL,
    RADIUS,
    TAP,
    TAP_OF_ROWS,
    filter_table,
    stretched,
)

__all__ = ["COLUMNS", "FIELDS", "Regions", "resize_batch"]

FIELDS = (
    "offset",
    "height",
    "width",
    "first",
    "rows",
    "place",
    "result",
    "out_height",
    "out_width",
)
AXIS = ("origin", "step", "density", "taps", "start", "filter")
COLUMNS = (*FIELDS, *[f"{name}_y" for name in AXIS], *[f"{name}_x" for name in AXIS])
"""Of the table: where a sample starts (in elements), its extents, the rows that are read and where they go, where the
result goes and its extents; what `Taps` come from."""

_NAMES = tuple(RADIUS)
BELOW_HALF = 0.49999997  # added before bytes are cut off
_f32 = np.float32
Array = npt.NDArray[Any]


class Regions(NamedTuple):
    """Regions of images and the sizes they are resized to.

    Attributes:
        low: ``(2, N)``: where the regions start, in pixels, for y and x.
        high: ``(2, N)``: where they end.
        size: ``(2, N)``: heights and widths of the outputs.
        filters: Names for axes that shrink, and that grow or stay.
        antialias: Stretch the filter where the image shrinks.
    """

    low: Array
    high: Array
    size: Array
    filters: tuple[str, str]
    antialias: bool


class _Axes(NamedTuple):
    """Both axes of all samples, each ``(2, N)``: see `weights.Taps`."""

    origin: Array
    step: Array
    density: Array
    taps: Array
    start: Array
    filter: Array
    first: Array  # of the lines that are read
    last: Array


def resize_batch(
    flat: Tensor,
    offsets: Array,
    sides: Array,
    channels: int,
    regions: Regions,
    dtype: torch.dtype,
) -> Tensor | None:
    """Resize images.

    Args:
        flat: Their elements, on a device.
        offsets: Where each image starts, in elements.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        regions: What to resize.
        dtype: uint8 or float32.

    Returns:
        The elements of all outputs ``(H, W, C)``, one after the other; None where an axis looks at too many pixels.
    """
    axes = _axes(sides, regions)
    if axes is None:
        return None
    first = axes.first[0]
    rows = axes.last[0] - first
    lines = rows * regions.size[1] * channels
    results = regions.size.prod(0) * channels
    columns = [
        offsets,
        *sides,
        first,
        rows,
        np.cumsum(lines) - lines,
        np.cumsum(results) - results,
        *regions.size,
    ]
    found = [
        bits(axes.origin),
        bits(axes.step),
        bits(axes.density),
        axes.taps,
        axes.start,
        axes.filter,
    ]
    columns += [each[0] for each in found] + [each[1] for each in found]
    made: Tensor = torch.ops.torchdali.resize_batch(
        flat, upload(table(columns), flat.device), _lookup_table(flat.device), int(lines.sum()), int(lines.max()),
        int(results.sum()), int(results.max()), channels, dtype == torch.float32,
    )  # fmt: skip
    return made


def _columns_first(regions: Regions, extents: Array, seen: Array) -> npt.NDArray[np.bool_]:
    """Choose the order of the passes of each sample as `weights.passes` does."""
    price = _PRICES * seen + PIXEL
    last = regions.size[0] * regions.size[1]
    rows = regions.size[0] * extents[1] * price[0] + last * price[1]
    columns = extents[0] * regions.size[1] * price[1] + last * price[0]
    return np.asarray(columns < rows)


def _axes(lengths: Array, regions: Regions) -> _Axes | None:
    """Do what `weights.taps` does, for both axes of all samples."""
    low, high, size = regions.low, regions.high, regions.size
    scale = (high - low) / size
    extents = np.abs(high - low)
    shrinks = extents > size
    # Most batches only shrink or only grow: then nothing is picked out and put back.
    kinds = [(n, w) for n, w in zip(regions.filters, (shrinks, ~shrinks), strict=True) if w.any()]
    grown = np.maximum(1.0, np.abs(scale)) if regions.antialias else np.ones(scale.shape)
    density, reach, places = (
        np.empty(size.shape, _f32),
        np.empty(size.shape, _f32),
        np.empty(size.shape, np.int64),
    )
    for name, chosen in kinds:
        where: Any = ... if len(kinds) == 1 else chosen
        density[where], reach[where] = stretched(name, grown[where])
        places[where] = _PLACES[name]
    if (size * 2.0 * reach).max() > MAX_TAPS:
        return None
    taps = np.ceil(2 * reach).astype(np.int64)
    x_first = _columns_first(regions, extents, taps)
    start = np.maximum(0, np.floor(np.minimum(low, high) - reach.astype(np.float64)))
    start[0, ~x_first] = start[1, x_first] = 0
    step = scale.astype(_f32)
    origin = (low - start).astype(_f32) + (_f32(0.5) * step - _f32(0.5) - reach)
    end = origin + (size - 1).astype(_f32) * step
    begin = start.astype(np.int64)
    first = np.ceil(np.minimum(origin, end)).astype(np.int64) + begin
    last = np.ceil(np.maximum(origin, end)).astype(np.int64) + begin
    first = np.minimum(np.maximum(first, 0), lengths - 1)
    last = np.minimum(np.maximum(last + taps - 1, 0), lengths - 1) + 1
    return _Axes(origin, step, density, taps, begin, places, first, last)


def _tables() -> tuple[npt.NDArray[np.float32], dict[str, int]]:
    parts = [filter_table(name).astype(_f32) for name in _NAMES]
    starts = np.concatenate(([0], np.cumsum([len(p) for p in parts]))).tolist()
    return (
        np.concatenate(parts),
        # Start and length in one number: the kernels take them apart.
        {name: start << 32 | len(p) for name, start, p in zip(_NAMES, starts, parts, strict=False)},
    )


_TABLE, _PLACES = _tables()
_PRICES = np.array([[TAP], [TAP_OF_ROWS]])


@device_cache(maxsize=8)
def _lookup_table(device: torch.device) -> Tensor:
    """Return the filters, one after the other."""
    return upload(_TABLE, device)


# ---------------------------------------------------------------- in torch, the reference


def resize_in_torch(
    flat: Tensor, samples: Tensor, filters: Tensor, lines: int, longest: int, results: int, largest: int, channels: int,
    as_float: bool,
) -> Tensor:  # fmt: skip
    """Resize a batch on the CPU.

    Args:
        flat: Elements of all images.
        samples: ``(N, len(COLUMNS))``.
        filters: Their tables.
        lines: Elements that the first pass computes, of all images.
        longest: The most of one image.
        results: Elements of all outputs.
        largest: The most of one output.
        channels: Of images and outputs.
        as_float: The output is float32, not uint8.
    """
    out = torch.empty(results, dtype=torch.float32 if as_float else torch.uint8)
    for row in samples.numpy():
        given = dict(zip(COLUMNS, row.tolist(), strict=True))
        start, h, w = given["offset"], given["height"], given["width"]
        height, width = given["out_height"], given["out_width"]
        image = flat[start : start + h * w * channels].view(h, w, channels)
        image = image[given["first"] : given["first"] + given["rows"]].float()
        pixels, weights = _weights(row, given, "x", width, w)
        wide = torch.einsum("hwkc,wk->hwc", image[:, pixels], weights)
        pixels, weights = _weights(row, given, "y", height, h)
        found = torch.einsum("hkwc,hk->hwc", wide[pixels - given["first"]], weights)
        place = out[given["result"] :][: height * width * channels].view(height, width, channels)
        place.copy_(found if as_float else found.add_(BELOW_HALF).clamp_(0, 255))
    return out


def _weights(
    row: Array, given: dict[str, int], name: str, size: int, length: int
) -> tuple[Tensor, Tensor]:
    """Return pixels and weights, ``(size, taps)``."""

    def number(field: str) -> np.float32:
        i = COLUMNS.index(f"{field}_{name}")
        return floats(row[i : i + 1])[0]  # type: ignore[no-any-return]

    start, count = given[f"filter_{name}"] >> 32, given[f"filter_{name}"] & 0xFFFFFFFF
    position = number("origin") + np.arange(size, dtype=_f32) * number("step")
    pixel = np.ceil(position).astype(np.int64)[:, None] + np.arange(given[f"taps_{name}"])
    knot = (pixel.astype(_f32) - position[:, None]) * number("density")
    values = _TABLE[start : start + count]
    inside = np.clip(knot + _f32(1), 0, count - 1)
    left = np.minimum(inside.astype(np.int64), count - 2)
    weight = values[left] + (inside - left) * (values[left + 1] - values[left])
    weight = weight / weight.sum(1, keepdims=True)
    pixel = (pixel + given[f"start_{name}"]).clip(0, length - 1)
    return torch.from_numpy(pixel), torch.from_numpy(weight.astype(_f32))


define(
    "resize_batch(Tensor flat, Tensor samples, Tensor filters, int lines, int longest, int results, int largest, "
    "int channels, bool as_float) -> Tensor",
    resize_in_torch,
)
