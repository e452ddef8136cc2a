"""Compute the output size of a resize, and the region of the input that is resized, from the resize's arguments."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence

from torchdali.kernels.folding import fold
from torchdali.kernels.limits import check_pixels

__all__ = ["resize_shape"]

Region = list[tuple[float, float]]

_FLOAT = struct.Struct("f")
# In pixels. The region's extent is divided by the size, and this smallest divisor prevents a huge region.
_MIN_DIVISOR = 1e-5


def resize_shape(
    lengths: Sequence[int],
    *,
    size: Sequence[float] | float | None = None,
    resize_x: float | None = None,
    resize_y: float | None = None,
    resize_z: float | None = None,
    resize_shorter: float | None = None,
    resize_longer: float | None = None,
    mode: str | None = None,
    max_size: Sequence[float] | float | None = None,
    roi_start: Sequence[float] | None = None,
    roi_end: Sequence[float] | None = None,
    roi_relative: bool = False,
    subpixel_scale: bool = True,
    alignment: Sequence[float] | float = 0.5,
    rounding: str = "round",
) -> tuple[tuple[int, ...], Region]:
    """Return the output size of a resize, and the region of the input that the output shows.

    The size must be specified in exactly one way: by `size`, by `resize_x`, `resize_y` and `resize_z` (or some of
    them), by `resize_shorter` or by `resize_longer`. None means that an argument was not passed.

    Args:
        lengths: Extent of the spatial axes of the input, outermost first.
        size: Requested size, one number per axis or one for all axes. If an axis's size is 0, `mode` determines the
            output size of this axis. A negative size flips the axis.
        resize_x: Requested size of the last axis. If only some of `resize_x`, `resize_y` and `resize_z` are passed,
            `mode` determines the output size of the other axes.
        resize_y: Requested size of the second axis from the end.
        resize_z: Requested size of the third axis from the end; ignored if there are two axes.
        resize_shorter: Size of the shorter side; the aspect ratio is kept.
        resize_longer: Size of the longer side; the aspect ratio is kept.
        mode: "default" scales an axis without a requested size by the geometric mean of the other axes' scales.
            "stretch" doesn't change the size of an axis without a requested size. "not_larger" and "not_smaller" keep
            the aspect ratio, and use the requested sizes as upper or lower limits.
        max_size: Upper limits of the output size, one per axis or one for all axes; 0 for no limit.
        roi_start: Start of the region to resize, one number per axis; None for the whole image.
        roi_end: End of the region to resize. An end before the start flips the axis.
        roi_relative: True if the region is in fractions of the input's extents, False if it is in pixels.
        subpixel_scale: If the size must be rounded, True widens or narrows the region by the same factor, so that the
            scale doesn't change. False keeps the region, so that the scale changes.
        alignment: Point of the region that doesn't move when the region is widened or narrowed, from 0 for the start
            of the region to 1 for its end; one number per axis or one for all axes.
        rounding: Rounding of sizes to integers: "round", "truncate" or "ceil".

    Returns:
        The output sizes and the region. The sizes are at least 1, or 0 for an axis without pixels. The region is a list
        of ``(low, high)`` for every axis, in input pixels. If an axis is flipped, ``high < low``.

    Raises:
        RuntimeError: the size is not specified in exactly one way, `mode` is combined with `resize_shorter` or
            `resize_longer`, a mode or rounding is unknown, only the start or the end of a region is passed, or a list
            has the wrong length.
    """
    count = len(lengths)
    if size is not None and _all_none(
        resize_x,
        resize_y,
        resize_z,
        resize_shorter,
        resize_longer,
        mode,
        max_size,
        roi_start,
        roi_end,
    ):
        sizes = _plain_size(size if isinstance(size, (int, float)) else tuple(size), count)
        if sizes is not None and all(lengths):
            return sizes, [(0.0, float(length)) for length in lengths]
    targets = _requested_sizes(count, size, (resize_z, resize_y, resize_x))
    specified = [targets is not None, resize_shorter is not None, resize_longer is not None]
    if sum(specified) != 1 or (size is not None and _any_passed(resize_x, resize_y, resize_z)):
        raise RuntimeError(
            "the size must be passed in exactly one way: size, resize_x / resize_y / resize_z, resize_shorter or "
            "resize_longer"
        )
    if targets is None and mode is not None:
        raise RuntimeError("mode cannot be combined with resize_shorter or resize_longer")
    region = _region(lengths, roi_start, roi_end, roi_relative)
    limits = [0.0] * count if max_size is None else _per_axis("max_size", max_size, count)
    if targets is None:
        edge = resize_shorter if resize_shorter is not None else resize_longer
        targets = [0.0 if edge is None else _f32(edge)] * count
        mode = "not_smaller" if resize_shorter is not None else "not_larger"
    extents = [high - low for low, high in region]
    exact = [_f32(side) for side in _rule(mode or "default")(targets, extents, limits)]
    check_pixels(
        [max(abs(side), length) for side, length in zip(exact, lengths, strict=True)],
        "the resized image",
    )
    if rounding not in ROUNDINGS:
        raise RuntimeError(f"the rounding must be one of {', '.join(ROUNDINGS)}, got {rounding!r}")
    alignments = _per_axis("alignment", alignment, count)
    return _round_sizes(lengths, exact, region, subpixel_scale, alignments, ROUNDINGS[rounding])


@functools.lru_cache(maxsize=256)
@fold
def _plain_size(size: tuple[float, ...] | float, count: int) -> tuple[int, ...] | None:
    """Return the size of each axis if all sizes are positive integers, else None."""
    sizes = _per_axis("size", size, count)
    check_pixels([abs(side) for side in sizes], "the resized image")
    return tuple(map(int, sizes)) if all(1 <= side == int(side) for side in sizes) else None


def _all_none(*values: object) -> bool:
    return values.count(None) == len(values)


def _any_passed(*values: float | None) -> bool:
    return any(value is not None for value in values)


def _requested_sizes(
    count: int, size: Sequence[float] | float | None, by_name: tuple[float | None, ...]
) -> list[float] | None:
    if size is not None:
        return _per_axis("size", size, count)
    if not _any_passed(*by_name):
        return None
    return [0.0 if value is None else _f32(value) for value in by_name[-count:]]


def _per_axis(name: str, values: Sequence[float] | float, count: int) -> list[float]:
    if isinstance(values, (int, float)):
        return [_f32(values)] * count
    if len(values) == 1:
        return [_f32(values[0])] * count
    if len(values) != count:
        raise RuntimeError(f"{name} must have one value per spatial axis, {count}, got {len(values)}")
    return [_f32(value) for value in values]


@fold
def _f32(value: float) -> float:
    """Round to float32, the dtype of DALI's arguments. This can change the integer to which a size is rounded."""
    rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    return rounded


def _region(
    lengths: Sequence[int],
    start: Sequence[float] | None,
    end: Sequence[float] | None,
    relative: bool,
) -> Region:
    if start is None and end is None:
        return [(0.0, float(length)) for length in lengths]
    if start is None or end is None:
        raise RuntimeError("roi_start and roi_end must be passed together")
    lows = _per_axis("roi_start", start, len(lengths))
    highs = _per_axis("roi_end", end, len(lengths))
    if not all(map(math.isfinite, [*lows, *highs])):
        raise RuntimeError(f"roi_start and roi_end must be finite numbers, got {lows} and {highs}")
    if relative:
        lows = [_f32(low * length) for low, length in zip(lows, lengths, strict=True)]
        highs = [_f32(high * length) for high, length in zip(highs, lengths, strict=True)]
    return [_widen_empty(low, high) for low, high in zip(lows, highs, strict=True)]


def _widen_empty(low: float, high: float) -> tuple[float, float]:
    """Widen a region that is shorter than a thousandth of a pixel, as DALI does."""
    if abs(high - low) >= 1e-3:
        return low, high
    half = 5e-4 if high >= low else -5e-4
    return low - half, high + half


_Rule = Callable[[list[float], list[float], list[float]], list[float]]


def _rule(mode: str) -> _Rule:
    if mode not in MODES:
        raise RuntimeError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    return MODES[mode]


def _default(targets: list[float], extents: list[float], limits: list[float]) -> list[float]:
    scales = _scales(targets, extents)
    if not scales:
        return extents
    mean = math.prod(scales) ** (1 / len(scales))
    sides = [g or _scale_extent(mean, e) for g, e in zip(targets, extents, strict=True)]
    return _limit_sizes(sides, limits)


def _scales(targets: list[float], extents: list[float]) -> list[float]:
    return [abs(g / e) for g, e in zip(targets, extents, strict=True) if g and e]


def _scale_extent(scale: float, extent: float) -> float:
    """Return ``scale * extent``.

    If the fractional part of the product is close to one half, the product is computed in float32. So the caller rounds
    the product to the same integer as DALI.
    """
    exact, single = scale * extent, _f32(_f32(scale) * extent)
    is_half = math.isfinite(exact) and abs(exact % 1 - 0.5) < 1e-6 * abs(exact)
    return single if is_half else exact


def _stretch(targets: list[float], extents: list[float], limits: list[float]) -> list[float]:
    if not any(targets):
        return extents
    return _limit_sizes([g or e for g, e in zip(targets, extents, strict=True)], limits)


def _limit_sizes(sides: list[float], limits: list[float]) -> list[float]:
    return [math.copysign(limit, w) if 0 < limit < abs(w) else w for w, limit in zip(sides, limits, strict=True)]


def _keep_aspect(
    choose: Callable[[list[float]], float],
    targets: list[float],
    extents: list[float],
    limits: list[float],
) -> list[float]:
    scales = _scales(targets, extents)
    if not scales:
        return extents
    bounds = [_f32(limit / abs(e)) for limit, e in zip(limits, extents, strict=True) if limit > 0 and e]
    scale = min(choose(scales), *bounds) if bounds else choose(scales)
    return [math.copysign(_scale_extent(scale, e), g) for g, e in zip(targets, extents, strict=True)]


MODES: dict[str, _Rule] = {
    "default": _default,
    "stretch": _stretch,
    "not_larger": lambda *args: _keep_aspect(min, *args),
    "not_smaller": lambda *args: _keep_aspect(max, *args),
}
"""Maps each mode to the function that computes the output sizes before they are rounded. The function's arguments are
the requested sizes, the extents of the region, and the limits in `max_size`."""


ROUNDINGS: dict[str, Callable[[float], int]] = {
    "round": lambda value: math.floor(value + 0.5),
    "truncate": math.floor,
    "ceil": math.ceil,
}


def _round_sizes(
    lengths: Sequence[int],
    exact: list[float],
    region: Region,
    subpixel_scale: bool,
    alignments: list[float],
    round_size: Callable[[float], int],
) -> tuple[tuple[int, ...], Region]:
    """Round the sizes, flip axes with a negative size, and adjust the region if `subpixel_scale` is True."""
    sizes, regions = [], []
    for length, side, (low, high), align in zip(lengths, exact, region, alignments, strict=True):
        if side < 0:
            low, high = high, low
        size = max(1, round_size(abs(side))) if length else 0
        if length and subpixel_scale and size != abs(side):
            point, extent = (
                low * (1 - align) + high * align,
                (high - low) * size / max(abs(side), _MIN_DIVISOR),
            )
            low, high = point - extent * align, point + extent * (1 - align)
        sizes.append(size)
        regions.append((low, high))
    return tuple(sizes), regions
