"""Operators that resize images or any axes of a tensor. Some of them also crop, before or after the resize.

An `ImageProgram` describes which region of an image the native library decodes, resizes and flips. The functions with
the decorator `narrows` append an operator's resize to the program of the decoder before it. The native library then
decodes and resizes the image in one call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, narrows, operator
from torchdali.codecs.image_crops import choose_scale
from torchdali.codecs.program import ImageProgram, Resize
from torchdali.declaration.batching import argument_names
from torchdali.declaration.narrowing import Edit
from torchdali.declaration.schema import (
    Arguments,
    Column,
    DType,
    Image,
    InputConstraints,
    Layout,
    Out,
    PerSample,
    one_of,
    shares,
    split_arguments,
)
from torchdali.kernels import native
from torchdali.kernels.device.resize import Regions, resize_batch
from torchdali.kernels.exactness import exactness
from torchdali.kernels.limits import check_not_empty, check_pixels, limits
from torchdali.kernels.memory import copy_to_out
from torchdali.kernels.native import Filters, ImageOptions
from torchdali.kernels.random_window import random_windows
from torchdali.kernels.reduce import resolve_axes
from torchdali.kernels.resample.bytes import MIN_SIZE
from torchdali.kernels.resample.separable import resample
from torchdali.kernels.resample.shape import MODES, ROUNDINGS, resize_shape
from torchdali.kernels.resample.weights import Axis, resize_axes
from torchdali.ops._crop import crop_window, narrow_to_crop
from torchdali.ops._decoders import choose_window
from torchdali.ops._on_device import Images, batch_of, images_of
from torchdali.rng import Rng
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__ = [
    "experimental_resize",
    "random_resized_crop",
    "resize",
    "resize_crop_mirror",
    "tensor_resize",
]

FILTER = {
    DALIInterpType.INTERP_NN: "nn",
    DALIInterpType.INTERP_LINEAR: "linear",
    DALIInterpType.INTERP_CUBIC: "cubic",
    DALIInterpType.INTERP_LANCZOS3: "lanczos3",
    DALIInterpType.INTERP_TRIANGULAR: "triangular",
    DALIInterpType.INTERP_GAUSSIAN: "gaussian",
}

FILTERS = ("antialias", "interp_type", "mag_filter", "min_filter")


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
        antialias: If True (the default), the filter is widened along axes that shrink, to avoid aliasing.
        dtype: Output dtype: the input's dtype (the default) or float32.
        interp_type: Interpolation filter of all axes, by default ``INTERP_LINEAR``. ``mag_filter`` and ``min_filter``
            override it.
        mag_filter: Interpolation filter of axes that grow. By default ``interp_type``.
        min_filter: Interpolation filter of axes that shrink. By default ``interp_type``.
        minibatch_size: Accepted for compatibility with DALI, without effect.
        temp_buffer_hint: Accepted for compatibility with DALI, without effect.
    """
    if dtype is not None and dtype not in (x.dtype, torch.float32):
        raise ValueError(f"dtype must be the input's ({x.dtype}) or float32, got {dtype}")
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
    """Convert the arguments of `resampling` to one `Axis` per spatial axis, as `resample` expects."""
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
    mode: Annotated[str, one_of(MODES)] | None = None,
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
    """Return the output size, and the input region that is resized.

    Args:
        lengths: Extents of the input's spatial axes.
        max_size: Upper limit of the output size, in pixels: one value for all axes, or one per axis. By default there
            is no limit.
        mode: Rule for computing the output size from the requested sizes. ``"default"`` scales axes without a requested
            size by the geometric mean of the other axes' scale factors. ``"stretch"`` doesn't resize axes without a
            requested size. ``"not_larger"`` keeps the aspect ratio, and treats the requested sizes as upper limits.
            ``"not_smaller"`` keeps the aspect ratio, and treats the requested sizes as lower limits. By default
            ``"default"``.
        resize_longer: Output size of the longer side, in pixels. The aspect ratio is kept.
        resize_shorter: Output size of the shorter side, in pixels. The aspect ratio is kept.
        resize_x: Output width, in pixels; a negative width mirrors the image. If it is 0 or not passed, ``mode``
            determines the width.
        resize_y: Output height, in pixels. Negative values and 0 have the same meaning as in ``resize_x``.
        resize_z: Output depth of volumes, in pixels. Negative values and 0 have the same meaning as in ``resize_x``.
        roi_end: End of the input region to resize, one value per spatial axis in the layout's order. Requires
            ``roi_start``. By default the region is the whole input.
        roi_relative: If True, ``roi_start`` and ``roi_end`` are fractions of the input's extents. By default they are
            in pixels.
        roi_start: Start of the input region to resize, one value per spatial axis in the layout's order. Requires
            ``roi_end``.
        size: Output height and width (for volumes depth, height and width), in pixels, or one value for all axes.
            ``mode`` determines the size of an axis whose value is 0.
        subpixel_scale: If True (the default) and a computed output size was rounded, the input region is adjusted
            slightly, so that the scale factor isn't changed by the rounding.
    """
    result = _cached_shape(
        tuple(lengths), size=_as_tuple(size), resize_x=resize_x, resize_y=resize_y, resize_z=resize_z,
        resize_shorter=resize_shorter, resize_longer=resize_longer, mode=mode, max_size=_as_tuple(max_size),
        roi_start=_as_tuple(roi_start), roi_end=_as_tuple(roi_end), roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
    )  # fmt: skip
    if math.prod(result[0]) > limits.pixels:  # the limit may have changed after the result was cached
        check_pixels(result[0], "the resized image")
    return result


def _as_tuple(values: list[float] | None) -> Any:
    return values if values is None else tuple(values)


@functools.lru_cache(maxsize=256)
def _cached_shape(
    lengths: tuple[int, ...], **arguments: Any
) -> tuple[tuple[int, ...], tuple[tuple[float, float], ...]]:
    size, region = resize_shape(lengths, **arguments)
    return size, tuple(region)


def _spatial_extents(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the spatial extents of a channel-last image or volume."""
    return shape[-4:-1] if "D" in layout else shape[-3:-1]


def _split_arguments(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into the arguments of `sizing` and the other arguments."""
    names = argument_names(sizing)
    first = {k: v for k, v in arguments.items() if k in names}
    return first, {k: v for k, v in arguments.items() if k not in first}


@operator(
    marks=("levels",),
    outputs=lambda arguments: 2 if arguments["save_attrs"] else None,
    deprecated={"image_type": None},
)
def resize(
    data: Image,
    /,
    *,
    save_attrs: bool = False,
    layout: Layout,
    out: Out = None,
    **arguments: Annotated[Any, shares(sizing), shares(resampling)],
) -> Image | tuple[Image, Tensor]:
    """Resize images, frames or volumes.

    To specify the output size, pass ``size``, ``resize_shorter``, ``resize_longer``, or at least one of ``resize_x``,
    ``resize_y`` and ``resize_z``. These four options exclude each other.

    Args:
        data: Images, frames or volumes: uint8, int16, uint16 or float32.
        save_attrs: If True, the operator has a second output: the height and width of the input (for volumes depth,
            height and width), int32. By default False.

    Raises:
        RuntimeError: no output size is passed, several of the options above are passed, or other arguments contradict
            each other.
    """
    result = resize_image(data, layout, *_split_arguments(arguments))
    if save_attrs:
        return result, torch.tensor(_spatial_extents(data.shape, layout), dtype=torch.int32)
    return copy_to_out(result, out)


def resize_image(data: Tensor, layout: str, size_arguments: Mapping[str, Any], filters: Mapping[str, Any]) -> Tensor:
    """Return a resized image; see `resize`."""
    size, region = sizing(_spatial_extents(data.shape, layout), **size_arguments)
    return resampling(data, size, region, **filters)


@chunk(resize, "device", per_sample=argument_names(sizing))
def _resize_on_device(data: TensorList, a: Arguments) -> Any:
    images = images_of(data, a.layout, floats=True)
    if a.save_attrs or images is None:
        return NotImplemented
    size_arguments, filters = a.of(sizing), a.of(resampling)
    sizes, regions = sizing_of(images, size_arguments)
    return _resize_regions_on_device(images, sizes, regions, **filters)


def sizing_of(
    images: Images, arguments: dict[str, Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """Return the output sizes and the input regions of images; see `sizing`.

    Returns:
        Output sizes ``(2, N)``, or ``(2, 1)`` if all images get the same size. Input regions ``(2, 2, N)``, or None if
            the region of every image is the whole image.
    """
    size = arguments.get("size")
    if len(arguments) == 1 and isinstance(size, (list, tuple)) and min(size) > 0:
        return _common_size(tuple(size), limits.pixels), None
    if (plain := _fast_sizing(arguments, images.sides.shape[1])) is not None:
        return plain
    lengths: list[tuple[int, ...]] = [(h, w) for h, w in images.sides.T.tolist()]
    rows = split_arguments(arguments)
    rows = rows * len(lengths) if len(rows) == 1 else rows
    pairs = [sizing(sides, **row) for sides, row in zip(lengths, rows, strict=True)]
    sizes = np.array([size for size, _ in pairs], np.int64).T
    return sizes, np.array([region for _, region in pairs]).transpose(2, 1, 0)


def _fast_sizing(arguments: dict[str, Any], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
    """Compute the result of `sizing_of` faster, for the arguments `size`, `roi_start` and `roi_end`.

    Return None if other arguments are passed, if a size isn't a positive integer, or if a region is almost empty.
    """
    if arguments.keys() != {"size", "roi_start", "roi_end"}:
        return None
    columns = [
        value.rows(np.float32) if isinstance(value, Column) else np.array([value], np.float32)
        for value in (arguments["size"], arguments["roi_start"], arguments["roi_end"])
    ]
    if any(column.shape[1:] != (2,) for column in columns):
        return None
    size, low, high = columns
    sizes = size.astype(np.int64)
    is_plain = (sizes == size).all() and sizes.min() > 0 and np.isfinite(low).all() and np.isfinite(high).all()
    low, high = (np.broadcast_to(bound, (count, 2)).astype(np.float64) for bound in (low, high))
    if not is_plain or (abs(high - low) < _LEAST_EXTENT).any() or sizes.prod(1).max() > limits.pixels:
        return None
    return sizes.T, np.stack((low.T, high.T))


_LEAST_EXTENT = 1e-3  # smallest extent of a region; `resize_shape` widens smaller regions


def whole_regions(images: Images) -> npt.NDArray[np.float64]:
    """Return regions ``(2, 2, N)`` that cover the whole images."""
    return np.stack((np.zeros(images.sides.shape), images.sides))


@functools.lru_cache(maxsize=64)
def _common_size(size: tuple[float, ...], max_pixels: int) -> npt.NDArray[np.int64]:
    """Return the output height and width ``(2, 1)`` if all images get the same size.

    The array is cached, so callers must not change it. `max_pixels` is an argument so that each limit has its own
    results in the cache.
    """
    return np.array(sizing((1, 1), size=list(size))[0], np.int64)[:, None]


def _resize_regions_on_device(
    images: Images,
    sizes: npt.NDArray[np.int64],
    regions: npt.NDArray[np.float64] | None,
    *,
    antialias: bool = True,
    dtype: torch.dtype | None = None,
    interp_type: Any = DALIInterpType.INTERP_LINEAR,
    mag_filter: Any = None,
    min_filter: Any = None,
    **hints: int,
) -> Any:
    """Resize a region of each image. Return NotImplemented if the arguments aren't supported on a device.

    Args:
        sizes: Output heights and widths ``(2, N)``, or ``(2, 1)`` if all images get the same size.
        regions: Input regions ``(2, 2, N)``. The first axis is start and end, the second axis is y and x. None to
            resize whole images.
    """
    chosen = tuple(
        interp_type if interpolation is None else interpolation for interpolation in (min_filter, mag_filter)
    )
    if any(interpolation not in FILTER for interpolation in chosen):
        return NotImplemented
    largest = sizes[:, (sizes[0] * sizes[1]).argmax()].tolist()
    kind = images.flat.dtype
    if dtype not in (None, kind, torch.float32) or sizes.min() < 1:
        return NotImplemented
    check_pixels(largest, "the resized image")
    names = FILTER[chosen[0]], FILTER[chosen[1]]
    if "nn" in names:  # the device implementation doesn't support nearest-neighbor interpolation
        return NotImplemented
    low, high = (None, None) if regions is None else regions
    flat = resize_batch(
        images.flat, images.offsets, images.sides, images.channels,
        Regions(low, high, sizes, names, antialias), dtype or kind,
    )  # fmt: skip
    return NotImplemented if flat is None else batch_of(flat, sizes, images.channels)


@operator(marks=("bytes",))
def resize_crop_mirror(
    data: Image,
    /,
    *,
    mirror: PerSample[int] = 0,
    layout: Layout,
    **arguments: Annotated[Any, shares(sizing), shares(resampling), shares(crop_window)],
) -> Image:
    """Resize, crop and mirror images in one pass, which computes only the pixels that the crop keeps.

    Args:
        data: Images, frames or volumes: uint8, int16, uint16 or float32.
        mirror: Bit mask: 1 mirrors the image horizontally, 2 vertically, and 4 in depth. By default 0.
    """
    size_arguments, rest = _split_arguments(arguments)
    lengths = _spatial_extents(data.shape, layout)
    check_not_empty(lengths, data.shape, "resize_crop_mirror")
    size, full_region = sizing(lengths, **size_arguments)
    names = argument_names(crop_window)
    window = {k: v for k, v in rest.items() if k in names}
    filters = {k: v for k, v in rest.items() if k not in names}
    axes, starts, extents = crop_window(size, "DHW"[-len(size) :], **window)
    final, region = list(size), list(full_region)
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        low, high = region[axis]
        step = (high - low) / size[axis]
        region[axis] = low + start * step, low + (start + extent) * step
        final[axis] = extent
    for bit, axis in enumerate(reversed(range(len(final)))):
        if int(mirror) >> bit & 1:
            region[axis] = region[axis][::-1]
    return resampling(data, tuple(final), region, **filters)


RandomlyCropped = Annotated[Tensor, InputConstraints(("HWC", "CHW", "FHWC", "FCHW", "CFHW"), channel_last=True)]


@operator(marks=("levels",))
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
        data: Images or frames. All frames of a sequence get the same window.
        size: Output size in pixels: ``[H, W]``, or one value for both.
        num_attempts: Maximum number of random windows to try, by default 10. If none of these windows fits into the
            image, the operator uses the largest window that fits and that has an allowed area and aspect ratio.
        random_area: Smallest and largest area of the window, as fractions of the image's area. By default
            ``[0.08, 1]``.
        random_aspect_ratio: Smallest and largest ratio of the window's width to its height. By default ``[3/4, 4/3]``.
    """
    height, width = data.shape[-3:-1]
    check_not_empty((height, width), data.shape, "random_resized_crop")
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    # In the outermost rows and columns of the output, uint8 pixels may differ from DALI's by 1.
    return resampling(data, height_width(size), [(y, y + h), (x, x + w)], False, **filters)


@chunk(random_resized_crop, "device")
def _random_resized_crop_on_device(data: TensorList, a: Arguments) -> Any:
    images = images_of(data, "HWC", floats=True)
    target = height_width(a.size)
    if images is None or min(target) < 1:
        return NotImplemented
    draws = a.rng.uniform(2 + 2 * a.num_attempts)
    corners, extents = random_windows(
        draws, images.sides.astype(np.float64), a.num_attempts, a.random_area, a.random_aspect_ratio
    )
    sizes = np.array(target, np.int64)[:, None]
    return _resize_regions_on_device(images, sizes, np.stack((corners, corners + extents)), **a.of(resampling))


def height_width(size: list[int]) -> tuple[int, int]:
    """Return ``(H, W)`` from a list ``[H, W]``, or from a list with one value for both."""
    if not 1 <= len(size) <= 2 or min(size) < 0:
        raise RuntimeError(f"size must be a non-negative height and width, or one value for both, got {list(size)}")
    return size[0], size[-1]


# ---------------------------------------------------------------- edits of image programs

_SIZING = argument_names(sizing) - {"resize_z"}
_HINTS = ("minibatch_size", "temp_buffer_hint")
_WINDOW_DEFAULTS = {"num_attempts": 10, "random_area": (0.08, 1.0), "random_aspect_ratio": (3 / 4, 4 / 3)}
_FILTER_OVERRIDES = frozenset(FILTERS) - {"antialias"}


OptionsEdit = Callable[[ImageOptions], "ImageOptions | None"]


def _resize_options_edit(constants: Mapping[str, Any], inside: bool = False) -> OptionsEdit | None:
    """Return the function that adds a resize to `ImageOptions`.

    Args:
        constants: The operator's constant arguments.
        inside: True if the resize must ignore pixels outside of the cropped window; see `Filters`.

    Returns:
        The function; None if the native library doesn't support the requested filters.
    """
    interp_type = constants.get("interp_type", DALIInterpType.INTERP_LINEAR)
    chosen = [interp_type if constants.get(name) is None else constants[name] for name in ("min_filter", "mag_filter")]
    if any(FILTER.get(interpolation) not in native.FILTERS for interpolation in (*chosen, interp_type)):
        return None
    filters = Filters(FILTER[chosen[0]], FILTER[chosen[1]], constants.get("antialias", True), inside)
    return lambda options: options.resize(filters)


def arguments_of(filters: Filters) -> dict[str, Any]:
    """Return the arguments of `resampling` that select these filters."""
    shrinking, growing, antialias, _ = filters
    return {"antialias": antialias, "min_filter": _INTERPOLATION[shrinking], "mag_filter": _INTERPOLATION[growing]}


_INTERPOLATION = {name: interpolation for interpolation, name in FILTER.items()}


@narrows(resize, {*_SIZING, *FILTERS, *_HINTS}, _SIZING)
def _edit(constants: Mapping[str, Any]) -> Edit | None:
    options = _resize_options_edit(constants)
    return None if options is None else Edit.with_constants(narrow_to_resized, constants, options)


def narrow_to_resized(program: ImageProgram, arguments: Mapping[str, Any], rng: Any = None) -> ImageProgram | None:
    """Append a resize to an image program. `arguments` are the arguments of `sizing`.

    Return None if the output is empty, or if the program already has a resize.
    """
    size, region = sizing(program.size, **{k: v for k, v in arguments.items() if k in _SIZING})
    rows, columns = map(_round_region, region, size)
    return program.resize_region(rows, columns) if min(size) > 0 else None


def _round_region(region: tuple[float, float], size: int) -> Resize:
    """Round the start and the end of a region to float32, as `resize_axes` does.

    Without the rounding, nearest-neighbor interpolation could select other pixels than `resize_axes`.
    """
    low, high = region
    return float(np.float32(low)), float(np.float32(high)), size


@narrows(
    resize_crop_mirror,
    {*_SIZING, *FILTERS, *_HINTS, *argument_names(crop_window), "mirror"},
    {*_SIZING, *argument_names(crop_window), "mirror"},
)
def _edit_resize_crop_mirror(constants: Mapping[str, Any]) -> Edit | None:
    options = _resize_options_edit(constants)
    if options is None:
        return None
    return Edit.with_constants(_narrow_resize_crop_mirror, constants, lambda before: options(before.mirror()))


def _narrow_resize_crop_mirror(program: ImageProgram, arguments: Mapping[str, Any], rng: Any) -> ImageProgram | None:
    mirror = int(arguments.get("mirror", 0))
    resized_program = narrow_to_resized(program, arguments)
    cropped = None if resized_program is None or mirror & 4 else narrow_to_crop(resized_program, arguments)
    return None if cropped is None else cropped.flip(bool(mirror & 1), bool(mirror & 2))


def _reads_only_window(target: tuple[int, int], arguments: Mapping[str, Any]) -> bool:
    """Return True if a cropped window is resized in uint8 arithmetic.

    This arithmetic doesn't read any pixels outside of the window.
    """
    return not exactness.on and min(target) >= MIN_SIZE and _FILTER_OVERRIDES.isdisjoint(arguments)


@narrows(random_resized_crop, {"size", *_WINDOW_DEFAULTS, *FILTERS, *_HINTS})
def _edit_random_resized_crop(constants: Mapping[str, Any]) -> Edit | None:
    height, width = height_width(constants["size"])
    choices = [constants.get(name, choice) for name, choice in _WINDOW_DEFAULTS.items()]
    inside = _reads_only_window((height, width), constants)
    options = _resize_options_edit(constants, inside=inside)

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Rng) -> ImageProgram | None:
        y, x, h, w = choose_window(rng, program.rows.extent, program.columns.extent, *choices)
        if program.scale == 0:
            return _reduce_program(program, (y, x, h, w), height, width)
        return program.resize_region((y, y + h, height), (x, x + w, width), inside)

    return None if options is None else Edit(narrow, options)


def _reduce_program(
    program: ImageProgram, window: tuple[int, int, int, int], height: int, width: int
) -> ImageProgram | None:
    """Build a program that decodes a window of a JPEG at a reduced size, and then resizes the window.

    The decoder can divide the size by 2, 4 or 8. The program uses the greatest divisor with which the decoded window
    isn't smaller than the output.

    If the window is at least twice as high and twice as wide as the output, the window is first aligned to JPEG blocks
    of 8 x 8 pixels.
    """
    y, x, h, w = window
    x = program.columns.extent - x - w if program.mirror & native.MIRROR else x
    y = program.rows.extent - y - h if program.mirror & native.UPSIDE_DOWN else y
    scale = 1
    if h >= 2 * height and w >= 2 * width:
        y, x, h, w = (8 * (value // 8) for value in (y, x, h, w))
        scale = choose_scale(h, w, height, width)
    top, left, bottom, right = y // scale, x // scale, (y + h) // scale, (x + w) // scale
    smaller = ImageProgram.of(bottom, right, program.options, scale=scale).crop(top, left, bottom - top, right - left)
    assert smaller is not None
    smaller = smaller._replace(mirror=program.mirror)
    return smaller.resize_region((0, bottom - top, height), (0, right - left, width))


# ---------------------------------------------------------------- any axes

Resized = Annotated[Tensor, InputConstraints((), (torch.uint8, torch.int16, torch.uint16, torch.float32))]

experimental_resize = operator(
    name="experimental.resize",
    outputs=lambda arguments: 2 if arguments["save_attrs"] else None,
    deprecated={"image_type": None},
    devices=("gpu",),
)(resize.implementation)
chunk(experimental_resize, "device")(_resize_on_device)


@operator(marks=("pixels",))
def tensor_resize(
    data: Resized,
    /,
    *,
    alignment: PerSample[list[float]] = [0.5],  # noqa: B006  never changed
    axes: list[int] | None = None,
    axis_names: str | None = None,
    max_size: list[float] | None = None,
    mode: Annotated[str, one_of(MODES)] = "default",
    roi_end: PerSample[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] | None = None,
    scales: PerSample[list[float]] | None = None,
    size_rounding: Annotated[str, one_of(ROUNDINGS)] = "round",
    sizes: PerSample[list[float]] | None = None,
    subpixel_scale: bool = True,
    layout: Layout,
    **filters: Annotated[Any, shares(resampling)],
) -> Resized:
    """Resize some or all axes of a tensor.

    Args:
        data: Tensor of any shape: uint8, int16, uint16 or float32.
        alignment: Point of the input region that doesn't move when ``subpixel_scale`` adjusts the region: one value for
            all axes, or one per axis. 0 is the region's start, 0.5 (the default) its center, and 1 its end.
        axes: Axes to resize. By default all axes.
        axis_names: Letters of the axes in the layout, instead of ``axes``.
        max_size: Upper limit of the output size: one value for all axes, or one per axis. By default there is no limit.
        mode: Rule for computing the output size from the requested sizes. ``"default"`` scales axes without a requested
            size by the geometric mean of the other axes' scale factors. ``"stretch"`` doesn't resize axes without a
            requested size. ``"not_larger"`` keeps the aspect ratio, and treats the requested sizes as upper limits.
            ``"not_smaller"`` keeps the aspect ratio, and treats the requested sizes as lower limits. By default
            ``"default"``.
        roi_end: End of the input region to resize, one value per resized axis. Requires ``roi_start``. By default the
            whole input is resized.
        roi_relative: If True, ``roi_start`` and ``roi_end`` are fractions of the input's extents. By default they are
            in elements.
        roi_start: Start of the input region to resize, one value per resized axis. Requires ``roi_end``.
        scales: Ratios of output size to input size, instead of ``sizes``: one ratio for all axes, or one per axis.
        size_rounding: How computed sizes are rounded: ``"round"`` (the default), ``"truncate"`` or ``"ceil"``.
        sizes: Output sizes: one size for all axes, or one per axis. If a size is 0, ``mode`` determines the axis's
            output size.
        subpixel_scale: If True (the default) and a computed output size was rounded, the input region is adjusted
            slightly, so that the scale factor isn't changed by the rounding.

    Raises:
        RuntimeError: neither or both of ``sizes`` and ``scales`` are passed, or a list has the wrong length.
        ValueError: an axis occurs twice.
        IndexError: an axis doesn't exist.
    """
    if (sizes is None) == (scales is None):
        raise RuntimeError("pass either sizes or scales")
    chosen = resolve_axes(axes, axis_names, layout, data.dim())
    lengths = list(data.shape)
    if scales is not None:
        sizes = _scale_sizes(_per_axis(scales, "scales", chosen), [lengths[a] for a in chosen])
    # `mode` applies to all axes, so the requested size of axes that aren't chosen is their current size.
    assert sizes is not None
    ends = [1.0] * len(lengths) if roi_relative else lengths
    size, region = resize_shape(
        lengths, mode=mode, roi_relative=roi_relative, subpixel_scale=subpixel_scale, rounding=size_rounding,
        size=_fill_axes(sizes, "sizes", chosen, lengths),
        max_size=None if max_size is None else _fill_axes(max_size, "max_size", chosen, [0] * len(lengths)),
        roi_start=None if roi_start is None else _fill_axes(roi_start, "roi_start", chosen, [0] * len(lengths)),
        roi_end=None if roi_end is None else _fill_axes(roi_end, "roi_end", chosen, ends),
        alignment=_fill_axes(alignment, "alignment", chosen, [0.5] * len(lengths)),
    )  # fmt: skip
    return _resize_axes(data, size, region, filters)


def _per_axis(values: Sequence[float], name: str, axes: Sequence[int]) -> Sequence[float]:
    """Return one value per axis; a single value is repeated."""
    if len(values) not in (1, len(axes)):
        raise RuntimeError(f"{name} must be a single value or a list of {len(axes)} elements, got {len(values)}")
    return values if len(values) == len(axes) else [values[0]] * len(axes)


def _fill_axes(values: Sequence[float], name: str, axes: Sequence[int], defaults: Sequence[float]) -> list[float]:
    """Return one value per axis of the tensor: `values` for the chosen axes, `defaults` for the other axes."""
    result = [float(v) for v in defaults]
    for axis, value in zip(axes, _per_axis(values, name, axes), strict=True):
        result[axis] = value
    return result


def _scale_sizes(scales: Sequence[float], lengths: Sequence[int]) -> list[float]:
    """Multiply lengths by scales in float32. In float32, 1.1 times 10 is exactly 11."""
    return [torch.tensor(s).mul(n).item() for s, n in zip(scales, lengths, strict=True)]


def _resize_axes(
    x: Tensor,
    size: Sequence[int],
    region: Sequence[tuple[float, float]],
    filters: Mapping[str, Any],
) -> Tensor:
    """Resize some axes of a tensor by treating the tensor as an image.

    The axes from the first to the last resized axis are the image's spatial axes. The later axes are its channels.
    """
    changed = [
        a for a, (n, low_high) in enumerate(zip(size, region, strict=True))
        if n != x.shape[a] or low_high != (0.0, float(n))
    ]  # fmt: skip
    if not changed:
        changed = [0]
    first, last = changed[0], changed[-1] + 1
    image = x.reshape(*x.shape[:last], math.prod(x.shape[last:]))
    result = resampling(image, tuple(size[first:last]), list(region[first:last]), **filters)
    return result.view(*size)
