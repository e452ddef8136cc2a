"""Resizing, with and without a crop before or after it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from torchdali.codecs.image_crops import decode_crop, decode_scaled_crop, decode_upper
from torchdali.codecs.images import peek_header
from torchdali.errors import LAST_BUT_ONE, LAST_BUT_TWO
from torchdali.kernels.arrays import is_array
from torchdali.kernels.resample import lines_read, resample
from torchdali.kernels.resample_bytes import SMALLEST, resize_bytes, takes_bytes
from torchdali.kernels.resample_nearest import nearest_each
from torchdali.kernels.resample_weights import Axis, resize_axes
from torchdali.kernels.resize_shape import plain_size, resize_shape
from torchdali.kernels.rounding import placed
from torchdali.operator import operator
from torchdali.ops._crop import crop_mirror_normalize, crop_window
from torchdali.ops._decoders import Encoded, cache_hints, choose_window, decoder_hints, image
from torchdali.rng import Rng
from torchdali.schema import (
    IMAGE_LAYOUTS,
    Column,
    DType,
    Image,
    Layout,
    Out,
    PerSample,
    Takes,
    shares,
)
from torchdali.types import DALIImageType, DALIInterpType

__all__ = ["random_resized_crop", "resize", "resize_crop_mirror"]

FILTER = {
    DALIInterpType.INTERP_NN: "nn",
    DALIInterpType.INTERP_LINEAR: "linear",
    DALIInterpType.INTERP_CUBIC: "cubic",
    DALIInterpType.INTERP_LANCZOS3: "lanczos3",
    DALIInterpType.INTERP_TRIANGULAR: "triangular",
    DALIInterpType.INTERP_GAUSSIAN: "gaussian",
}


def resampling(
    x: Tensor,
    size: tuple[int, ...],
    roi: Sequence[tuple[float, float]] | None,
    patch_border: bool = True,
    windows: list[tuple[int, int]] | None = None,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    interp_type: PerSample[DALIInterpType] = DALIInterpType.INTERP_LINEAR,
    mag_filter: PerSample[DALIInterpType] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Tensor:
    """Resample the spatial axes of ``(..., *spatial, C)``.

    Args:
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
    if dtype is not None and dtype not in (x.dtype, torch.float32):
        raise ValueError(f"dtype: the input's own ({x.dtype}) or float32, not {dtype}")
    axes = axes_of(
        x.shape[x.dim() - 1 - len(size) : -1], size, roi, antialias, interp_type, mag_filter, min_filter
    )  # fmt: skip
    return resample(x, axes, dtype or x.dtype, patch_border=patch_border, windows=windows)


def axes_of(
    lengths: Sequence[int],
    size: tuple[int, ...],
    roi: Sequence[tuple[float, float]] | None,
    antialias: bool = True,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | None = None,
    min_filter: DALIInterpType | None = None,
) -> tuple[Axis, ...]:
    """Describe each axis for `resample`, with the filters that the arguments of `resampling` choose."""
    return resize_axes(
        tuple(lengths),
        size,
        None if roi is None else tuple(roi),
        FILTER[interp_type if min_filter is None else min_filter],
        FILTER[interp_type if mag_filter is None else mag_filter],
        antialias,
    )


def sizing(
    lengths: tuple[int, ...],
    *,
    max_size: list[float] | None = None,
    mode: str | None = None,
    resize_longer: PerSample[float] | None = None,
    resize_shorter: PerSample[float] | None = None,
    resize_x: PerSample[float] | None = None,
    resize_y: PerSample[float] | None = None,
    resize_z: PerSample[float] | None = None,
    roi_end: PerSample[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] | None = None,
    size: PerSample[list[float]] | None = None,
    subpixel_scale: bool = True,
) -> tuple[tuple[int, ...], tuple[tuple[float, float], ...]]:
    """Return the output size and the region of the input that it shows.

    Args:
        lengths: Extent of the spatial axes of the input.
        max_size: Upper limits, one for all axes or one an axis.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``, ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
    """
    return _shape(
        tuple(lengths), size=_fixed(size), resize_x=resize_x, resize_y=resize_y, resize_z=resize_z,
        resize_shorter=resize_shorter, resize_longer=resize_longer, mode=mode, max_size=_fixed(max_size),
        roi_start=_fixed(roi_start), roi_end=_fixed(roi_end), roi_relative=roi_relative, subpixel_scale=subpixel_scale,
    )  # fmt: skip


def _fixed(values: list[float] | None) -> Any:
    return values if values is None else tuple(values)


@functools.lru_cache(maxsize=256)
def _shape(
    lengths: tuple[int, ...], **arguments: Any
) -> tuple[tuple[int, ...], tuple[tuple[float, float], ...]]:
    size, region = resize_shape(lengths, **arguments)
    return size, tuple(region)


def _spatial(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the spatial extents of a channel-last image or volume."""
    return shape[-4:-1] if "D" in layout else shape[-3:-1]


@functools.cache
def _names(*functions: Any) -> frozenset[str]:
    """Return the keyword-only arguments of functions."""
    return frozenset(
        p.name
        for f in functions
        for p in inspect.signature(f).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    )


def _divide(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide arguments into those of `sizing` and those of `resampling`."""
    ours = _names(sizing)
    first = {k: v for k, v in arguments.items() if k in ours}
    return first, {k: v for k, v in arguments.items() if k not in first}


def _plain_target(
    data: Tensor, size_arguments: dict[str, Any], filters: dict[str, Any]
) -> tuple[int, int] | None:
    """Return the size that is asked for, if that is all, as nearly always, and `resize_bytes` can do it."""
    if (
        len(size_arguments) != 1
        or (wanted := size_arguments.get("size")) is None
        or not filters.keys() <= {"antialias"}
        or not takes_bytes(data)
    ):
        return None
    size = plain_size(tuple(wanted), 2)
    return (size[0], size[1]) if size is not None and min(size) >= SMALLEST else None


def _resize_batch(
    data: Tensor,
    *,
    save_attrs: bool = False,
    layout: str,
    out: Tensor | None = None,
    **arguments: Any,
) -> Any:
    """Take nearest pixels; other filters take long enough, and are not faster with several images at once."""
    is_drawn = any(isinstance(value, Column) for value in arguments.values())
    if save_attrs or is_drawn or layout != "HWC" or not is_array(data) or not len(data):
        return NotImplemented
    size_arguments, filters = _divide(arguments)
    chosen = {k: v for k, v in filters.items() if k in _FILTERS}
    is_nearest = DALIInterpType.INTERP_NN in chosen.values()
    if not is_nearest or filters.get("dtype") not in (None, data.dtype):
        return NotImplemented
    size, region = sizing(_spatial(data.shape[1:], layout), **size_arguments)
    return nearest_each(data, axes_of(data.shape[1:3], size, region, **chosen), out)


@operator(
    outputs=lambda arguments: 2 if arguments["save_attrs"] else None,
    deprecated={"image_type": None},
    dense=_resize_batch,
    columns=True,
)
def resize(
    data: Image,
    /,
    *,
    save_attrs: bool = False,
    layout: Layout,
    out: Out = None,
    **arguments: Annotated[Any, shares(sizing), shares(resampling)],
) -> Image:
    """Resize images, frames or volumes.

    The size is given in exactly one way: ``size``; any of ``resize_x``, ``resize_y``, ``resize_z``;
    ``resize_shorter``; or ``resize_longer``.

    Args:
        data: Images, frames or volumes; uint8, int16, uint16 or float32.
        save_attrs: Also return the original spatial shape, int32.

    Raises:
        RuntimeError: not exactly one way of giving the size, or contradictory arguments.
    """
    size_arguments, filters = _divide(arguments)
    lengths = _spatial(data.shape, layout)
    plain = _plain_target(data, size_arguments, filters)
    if plain is not None:
        result = resize_bytes(data, plain, filters.get("antialias", True), True)
    else:
        size, region = sizing(lengths, **size_arguments)
        result = resampling(data, size, region, **filters)
    if save_attrs:
        return result, torch.tensor(lengths, dtype=torch.int32)  # type: ignore[return-value]
    return placed(result, out)


@operator
def resize_crop_mirror(
    data: Image,
    /,
    *,
    mirror: PerSample[int] = 0,
    layout: Layout,
    **arguments: Annotated[Any, shares(sizing), shares(resampling), shares(crop_window)],
) -> Image:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed.

    Args:
        data: Images, frames or volumes.
        mirror: Bits: 1 mirrors rows (horizontally), 2 vertically, 4 in depth.
    """
    size_arguments, others = _divide(arguments)
    lengths = _spatial(data.shape, layout)
    size, whole = sizing(lengths, **size_arguments)
    names = _names(crop_window)
    window = {k: v for k, v in others.items() if k in names}
    filters = {k: v for k, v in others.items() if k not in names}
    axes, starts, extents = crop_window(size, "DHW"[-len(size) :], **window)
    final, region = list(size), list(whole)
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        low, high = region[axis]
        step = (high - low) / size[axis]
        region[axis] = low + start * step, low + (start + extent) * step
        final[axis] = extent
    for bit, axis in enumerate(reversed(range(len(final)))):
        if int(mirror) >> bit & 1:
            region[axis] = region[axis][::-1]
    return resampling(data, tuple(final), region, **filters)


_DRAWS = 22  # of ten attempts to find a window

RandomlyCropped = Annotated[
    Tensor, Takes(("HWC", "CHW", "FHWC", "FCHW", "CFHW"), channel_last=True)
]


@operator(draws=_DRAWS)
def random_resized_crop(
    data: RandomlyCropped,
    /,
    *,
    size: list[int],
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    rng: Rng,
    **filters: Annotated[Any, shares(resampling)],
) -> Image:
    """Cut out a random window and resize it.

    Args:
        data: Images, or frames, which share the window.
        size: Of the output: ``[H, W]``, or one value for both.
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
    """
    height, width = data.shape[-3:-1]
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    # The outermost lines of a random window need not be DALI's to the last level.
    return resampling(data, _both(size), [(y, y + h), (x, x + w)], False, **filters)


def _both(size: list[int]) -> tuple[int, int]:
    return (size[0], size[0]) if len(size) == 1 else (size[0], size[1])


@operator(hidden=True, draws=_DRAWS, layout=lambda layouts, arguments: "HWC")
def _decode_random_resized_crop(
    data: Encoded,
    /,
    *,
    size: list[int],
    scaled: bool = False,
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DType | None = None,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    use_fast_idct: bool = False,
    rng: Rng,
    **others: Annotated[Any, shares(resampling), shares(decoder_hints), shares(cache_hints)],
) -> Image:
    """Decode a random window and resize it; at a reduced scale, if `scaled` and one has the pixels."""
    target = _both(size)
    with LAST_BUT_ONE:
        header = peek_header(data)
    height, width = header.size(adjust_orientation)
    window = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    y, x, h, w = window
    filters = {k: v for k, v in others.items() if k in _FILTERS}
    inside = (
        dtype in (None, torch.uint8) and min(target) >= SMALLEST and filters.keys() <= {"antialias"}
    )
    filters["dtype"] = dtype
    if output_type != DALIImageType.RGB or not (
        scaled or inside
    ):  # or the filter reads outside of the window
        with LAST_BUT_ONE:
            whole = _whole(data, adjust_orientation, output_type, use_fast_idct)
        return resampling(whole, target, [(y, y + h), (x, x + w)], False, **filters)
    if not scaled:
        with LAST_BUT_ONE:
            part = decode_crop(
                data,
                *window,
                adjust_orientation=adjust_orientation,
                fast=use_fast_idct,
                header=header,
            )
        if dtype is None:  # as nearly always: the shortest way
            return resize_bytes(part, target, filters.get("antialias", True))
        return resampling(part, target, None, False, **filters)
    if h >= 2 * target[0] and w >= 2 * target[1]:  # scaled windows are met exactly at whole blocks
        y, x, h, w = (8 * (value // 8) for value in window)
    with LAST_BUT_ONE:
        crop = decode_scaled_crop(
            data,
            *(y, x, h, w),
            *target,
            adjust_orientation=adjust_orientation,
            fast=use_fast_idct,
            header=header,
        )
    roi = [(crop.y, crop.y + crop.h), (crop.x, crop.x + crop.w)]
    return resampling(crop.pixels, target, roi, False, **filters)


def _whole(data: Tensor, upright: bool, output_type: DALIImageType, fast: bool) -> Tensor:
    """Decode a whole image."""
    found: Tensor = image.body(  # type: ignore[attr-defined]
        data, adjust_orientation=upright, output_type=output_type, use_fast_idct=fast
    )
    return found


_FILTERS = ("antialias", "interp_type", "mag_filter", "min_filter")


class _Kept(NamedTuple):
    """What a crop keeps of a resized image.

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


def _kept(
    lengths: tuple[int, ...], size_arguments: dict[str, Any], window: dict[str, Any]
) -> _Kept | None:
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
    return _Kept(size, region, windows, at_border)


def _normalising(
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


class _Divided(NamedTuple):
    """Arguments of three operators, and those of others."""

    size: dict[str, Any]
    window: dict[str, Any]
    last: dict[str, Any]
    others: dict[str, Any]


def _divide_all(arguments: dict[str, Any]) -> _Divided:
    """Divide arguments into those of `sizing`, `crop_window`, `_normalising`, and `resampling` or none of them."""
    divided = _Divided({}, {}, {}, {})
    for place, (name, value) in zip(_places(*arguments), arguments.items(), strict=True):
        divided[place][name] = value
    return divided


@functools.lru_cache(maxsize=64)
def _places(*names: str) -> tuple[int, ...]:
    """Return for each argument which of the parts of `_Divided` it belongs to."""
    parts = _names(sizing), _names(crop_window), _names(_normalising)
    return tuple(
        next((i for i, part in enumerate(parts) if name in part), len(parts)) for name in names
    )


@operator(hidden=True, layout=lambda layouts, arguments: arguments["output_layout"])
def _resize_crop_mirror_normalize(
    data: Annotated[Tensor, Takes(IMAGE_LAYOUTS)],
    /,
    *,
    layout: Layout,
    out: Out = None,
    **arguments: Annotated[
        Any, shares(_normalising), shares(sizing), shares(resampling), shares(crop_window)
    ],
) -> Image:
    """Resize, then crop, mirror and normalise; of the resized image only the crop is computed."""
    size, window, last, filters = _divide_all(arguments)
    kept = _kept(data.shape[:2], size, window) if window and layout == "HWC" else None
    if kept is None:
        with LAST_BUT_ONE:
            data = resize.body(data, layout=layout, **size, **filters)  # type: ignore[attr-defined]
        last |= window
    else:
        with LAST_BUT_ONE:
            data = resampling(data, kept.size, kept.region, kept.at_border, kept.windows, **filters)
    return _normalised(data, layout=layout, out=out, **last)


_normalised: Callable[..., Tensor] = crop_mirror_normalize.body  # type: ignore[attr-defined]


@operator(hidden=True, layout=lambda layouts, arguments: arguments["output_layout"])
def _decode_resize_crop_mirror_normalize(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(_normalising),
        shares(sizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
        shares(cache_hints),
    ],
) -> Image:
    """Decode as many rows as the crop needs, and go on as `_resize_crop_mirror_normalize`."""
    size, window, last, others = _divide_all(arguments)
    filters = {k: v for k, v in others.items() if k in _FILTERS}
    with LAST_BUT_TWO:
        header = peek_header(data)
    lengths = header.size(adjust_orientation)
    kept = _kept(lengths, size, window) if output_type == DALIImageType.RGB else None
    if kept is None:
        with LAST_BUT_TWO:
            whole = _whole(data, adjust_orientation, output_type, use_fast_idct)
        return _resize_crop_mirror_normalize.body(  # type: ignore[attr-defined,no-any-return]
            whole, layout="HWC", out=out, **size, **window, **last, **filters
        )
    with LAST_BUT_ONE:
        axes = axes_of(lengths, kept.size, kept.region, **filters)
        bottom = lines_read(axes[0], kept.windows[0], kept.at_border)
    with LAST_BUT_TWO:
        upper = decode_upper(
            data, bottom, adjust_orientation=adjust_orientation, fast=use_fast_idct, header=header
        )
    with LAST_BUT_ONE:
        cut = resample(upper, axes, torch.uint8, patch_border=kept.at_border, windows=kept.windows)
    return _normalised(cut, layout="HWC", out=out, **last)
