"""The operator `crop`, and the operator `crop_mirror_normalize` that also mirrors, normalizes and transposes images."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, narrows, operator
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.batching import argument_names
from torchdali.declaration.narrowing import Edit, Narrow
from torchdali.declaration.schema import (
    Arguments,
    Column,
    DType,
    InputConstraints,
    Layout,
    Out,
    PerSample,
    one_of,
    per_sample,
    shares,
    split_arguments,
)
from torchdali.kernels.device.normalize import normalize_batch
from torchdali.kernels.device.resize_normalize import Finish
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold
from torchdali.kernels.memory import copy_to_out, copy_windows, cut_windows, is_array, prepare_out
from torchdali.kernels.native import ImageOptions, Output
from torchdali.kernels.normalize import affine, normalize_each_into, normalize_into
from torchdali.kernels.window import (
    BORDER_POLICIES,
    POLICIES,
    ROUNDINGS,
    anchor,
    anchors,
    check_fill,
    check_rounding,
    cut,
    fill_into,
    intersect,
    resolve_policy,
)
from torchdali.ops._arguments import as_list
from torchdali.ops._on_device import Images, cut_out, images_of, int32_on_device, span_of, spans_of
from torchdali.tensors import TensorList

__all__ = ["crop", "crop_mirror_normalize", "crop_window", "finish_of"]

CROP_LAYOUTS = ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW")
"""Layouts that crops accept. For data without a layout, the first layout with the data's number of axes is used."""

ImageLike = Annotated[Tensor, InputConstraints(CROP_LAYOUTS)]

RENAMED = {"image_type": None, "output_dtype": "dtype"}

_NORMALIZED = (torch.float32, torch.float16, torch.uint8, torch.int8)


class _FullExtent(float):
    """Class of the default 0 of extents. The code can distinguish this default from a 0 that the user passes."""

    __slots__ = ()


_FULL_EXTENT = _FullExtent(0.0)

Window = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def crop_window(
    shape: tuple[int, ...],
    layout: str,
    *,
    crop: PerSample[list[float]] | None = None,
    crop_d: PerSample[float] = _FULL_EXTENT,
    crop_h: PerSample[float] = _FULL_EXTENT,
    crop_w: PerSample[float] = _FULL_EXTENT,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    rounding: Annotated[str, one_of(ROUNDINGS)] = "round",
) -> Window:
    """Return the cropped axes, and the window's start and extent on each of these axes.

    The window starts at ``crop_pos * (extent of the image - extent of the window)``.

    Args:
        shape: Shape of the image.
        layout: Layout of the image.
        crop: Extents ``(H, W)`` or ``(D, H, W)`` of the window in pixels, truncated to integers. If an extent is below
            1, its axis is not cropped.
        crop_d: Depth of the window in pixels, instead of ``crop``. For data with frames but without a depth axis,
            ``crop_d`` is the window's number of frames.
        crop_h: Height of the window in pixels, instead of ``crop``.
        crop_w: Width of the window in pixels, instead of ``crop``.
        crop_pos_x: Horizontal position of the window, from 0 (left) to 1 (right). Default: 0.5, the center.
        crop_pos_y: Vertical position of the window, from 0 (top) to 1 (bottom). Default: 0.5, the center.
        crop_pos_z: Position of the window in depth, from 0 (front) to 1 (back). Default: 0.5, the center.
        rounding: Rounding of the window's start to an integer: ``"round"`` (halves away from zero) or ``"truncate"``.

    Raises:
        RuntimeError: the sizes contradict each other, a position is outside [0, 1], or the rounding is unknown.
    """
    if crop is None and crop_w is crop_h is crop_d is _FULL_EXTENT:
        check_rounding(rounding)
        return (), (), ()
    sizes = _window_sizes(None if crop is None else tuple(crop), crop_d, crop_h, crop_w)
    return _window(tuple(shape), layout, sizes, (crop_pos_x, crop_pos_y, crop_pos_z), rounding)


@functools.lru_cache(maxsize=64)
@fold
def _window(
    shape: tuple[int, ...],
    layout: str,
    sizes: tuple[float, ...],
    positions: tuple[float, ...],
    rounding: str,
) -> Window:
    axes: list[int] = []
    starts: list[int] = []
    extents: list[int] = []
    for name, size, position in zip("WHD", sizes, positions, strict=False):
        axis = layout.find(name)
        if axis < 0 and name == "D":
            axis = layout.find("F")
        if axis >= 0 and size >= 1:
            axes.append(axis)
            extents.append(int(size))
            starts.append(anchor(position, shape[axis], int(size), rounding, axis))
    return tuple(axes), tuple(starts), tuple(extents)


def _window_sizes(crop: tuple[float, ...] | None, d: float, h: float, w: float) -> tuple[float, ...]:
    """Return the window's extents in the order W, H, D. D may be missing. Axes with values below 1 are not cropped."""
    if crop is not None:
        if not d is h is w is _FULL_EXTENT:
            raise RuntimeError("crop cannot be combined with crop_h, crop_w and crop_d")
        if not 2 <= len(crop) <= 3:
            raise RuntimeError(f"crop must have 2 elements (H, W) or 3 (D, H, W), got {len(crop)}")
        return crop[::-1]
    if (h is _FULL_EXTENT) != (w is _FULL_EXTENT) or (w is _FULL_EXTENT and d is not _FULL_EXTENT):
        raise RuntimeError("crop_h and crop_w must be passed together, and crop_d only with both of them")
    return w, h, d


@operator(deprecated=RENAMED, marks=("levels",))
def crop(
    data: ImageLike,
    /,
    *,
    dtype: DType | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    out_of_bounds_policy: Annotated[str, one_of(BORDER_POLICIES)] = "error",
    layout: Layout,
    out: Out = None,
    **window: Annotated[Any, shares(crop_window)],
) -> ImageLike:
    """Crop images, sequences of frames or volumes to a window.

    Args:
        data: Images, sequences of frames or volumes in any layout.
        dtype: Output dtype. Values are truncated and saturated. Default: the input's dtype.
        fill_values: Values of pixels outside of the image if ``out_of_bounds_policy`` is ``"pad"``: one number for all
            channels, or one per channel. The numbers are converted to the output dtype as in C: truncated and wrapped.
        out_of_bounds_policy: Treatment of windows that reach outside of the image: ``"error"`` raises an error,
            ``"trim_to_shape"`` returns only the pixels inside, ``"pad"`` fills the pixels outside with ``fill_values``,
            ``"clamp"`` repeats the edge, ``"wrap"`` repeats the image, ``"reflect_1001"`` mirrors the image and repeats
            the edge, ``"reflect_101"`` mirrors the image without repeating the edge.

    Raises:
        RuntimeError: the window reaches outside of the image with the policy ``"error"``, or the arguments contradict
            each other.
    """
    axes, starts, extents = crop_window(data.shape, layout, **window)
    cropped = cut(
        data, axes, starts, extents,
        policy=out_of_bounds_policy, fill=fill_values, channel=layout.find("C"), dtype=dtype,
    )  # fmt: skip
    return copy_to_out(cropped, out)


_WINDOW_ARGUMENTS = argument_names(crop_window)


@narrows(crop, _WINDOW_ARGUMENTS, _WINDOW_ARGUMENTS)
def _edit(constants: Mapping[str, Any]) -> Edit:
    return Edit.with_constants(narrow_to_crop, constants)


def narrow_to_crop(program: ImageProgram, arguments: Mapping[str, Any], rng: Any = None) -> ImageProgram | None:
    """Add a crop to an image program.

    An image program describes the region of an image to compute, and how to resize and flip the region.

    Args:
        arguments: Arguments of an operator. Only the arguments that `crop_window` accepts are used.

    Returns:
        The program with the crop, or None if the window reaches outside of the image.
    """
    if _WINDOW_ARGUMENTS.isdisjoint(arguments):
        return program
    window = {k: v for k, v in arguments.items() if k in _WINDOW_ARGUMENTS}
    spans = [[0, extent] for extent in program.size]
    for axis, start, extent in zip(*crop_window((*program.size, 3), "HWC", **window), strict=True):
        spans[axis] = [start, extent]
    (top, height), (left, width) = spans
    return program.crop(top, left, height, width)


@chunk(crop, per_sample=argument_names(crop_window))
def _crop_batch(data: Tensor, a: Arguments) -> Any:
    resolve_policy(a.out_of_bounds_policy)
    if a.dtype not in (None, data.dtype) or not is_array(data):
        return NotImplemented
    windows = windows_inside(data, a.layout, a.of(crop_window))
    if windows is None:
        return NotImplemented
    check_fill(a.fill_values, windows[0].shape, a.layout.find("C"))
    return copy_windows(windows, data.dtype, a.out)


@chunk(crop, "device", per_sample=argument_names(crop_window))
def _crop_on_device(data: TensorList, a: Arguments) -> Any:
    images, policy = images_of(data, a.layout, floats=True), resolve_policy(a.out_of_bounds_policy)
    if images is None or a.dtype not in (None, images.flat.dtype):
        return NotImplemented
    windows = _windows(images, a.layout, a.of(crop_window))
    return NotImplemented if windows is None else cut_out(images, windows, policy, a.fill_values)


# ---------------------------------------------------------------- crop_mirror_normalize


def _output_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return str(arguments["output_layout"] or layouts[0])


@functools.lru_cache(maxsize=64)
def _permutations(layout: str, output_layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the permutation from the input layout to the output layout, and its inverse."""
    target = output_layout or layout
    if sorted(layout) != sorted(target):
        hint = f"; pass {target[1:]!r}: layouts have no batch axis" if sorted(target[1:]) == sorted(layout) else ""
        raise RuntimeError(f"output_layout must be a permutation of the layout {layout!r}, got {target!r}{hint}")
    return tuple(map(layout.index, target)), tuple(map(target.index, layout))


def windows_inside(data: Tensor, layout: str, window: dict[str, Any]) -> Any:
    """Crop the images of a batch on the CPU, and return the cropped images as views into the batch.

    Args:
        data: ``(N, ...)`` on the CPU.
        window: Arguments of `crop_window`. An argument with one value per sample is a `Column`.

    Returns:
        A NumPy array ``(N, ...)`` if all windows have the same position, otherwise a list of N arrays. None if the
        batch is empty, the window's size differs from sample to sample, or a window reaches outside of its image.
    """
    array = data.numpy()
    varying = {k: v for k, v in window.items() if isinstance(v, Column)}
    if not len(array) or not varying.keys() <= {*_POSITIONS.values()}:
        return None
    constants = {k: v for k, v in window.items() if k not in varying}
    axes, starts, extents = crop_window(array.shape[1:], layout, **constants)
    if not varying or not axes:
        return cut_windows(array, axes, [starts], extents)
    rounding = window.get("rounding", "round")
    columns = [[start] * len(array) for start in starts]
    for i, axis in enumerate(axes):
        positions = varying.get(_POSITIONS["D" if layout[axis] == "F" else layout[axis]])
        if positions is not None:
            columns[i] = anchors(positions, array.shape[1 + axis], extents[i], rounding)
    return cut_windows(array, axes, list(zip(*columns, strict=True)), extents)


_POSITIONS = {"W": "crop_pos_x", "H": "crop_pos_y", "D": "crop_pos_z"}


@operator(deprecated=RENAMED, layout=_output_layout)
def crop_mirror_normalize(
    data: ImageLike,
    /,
    *,
    dtype: DType = torch.float32,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    mean: PerSample[list[float]] = [0.0],  # noqa: B006
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: Annotated[str, one_of(POLICIES)] = "error",
    output_layout: str = "CHW",
    pad_output: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = [1.0],  # noqa: B006
    layout: Layout,
    out: Out = None,
    **window: Annotated[Any, shares(crop_window)],
) -> ImageLike:
    """Crop, mirror, normalize and transpose images.

    ``out = (in - mean) / std * scale + shift``

    Args:
        data: Images, sequences of frames or volumes in any layout.
        dtype: Output dtype: float32 (the default), float16, uint8 or int8. Integers are rounded and saturated.
        fill_values: Values of pixels outside of the image if ``out_of_bounds_policy`` is ``"pad"``: one number for all
            channels, or one per output channel. These values are not normalized.
        mean: Mean that is subtracted, in units of the input: one number for all channels, or one per channel.
        mirror: Nonzero to mirror the image horizontally.
        out_of_bounds_policy: Treatment of windows that reach outside of the image: ``"error"`` raises an error,
            ``"trim_to_shape"`` returns only the pixels inside, ``"pad"`` fills the pixels outside with ``fill_values``.
        output_layout: Layout of the output, a permutation of the input's layout. Default: ``"CHW"``; "" keeps the
            input's layout.
        pad_output: True to add channels until their number is a power of two. The new channels contain ``fill_values``
            if ``out_of_bounds_policy`` is ``"pad"``, otherwise 0.
        scale: Factor that normalized values are multiplied with.
        shift: Offset that is added after the multiplication with ``scale``.
        std: Standard deviation by which values are divided: one number for all channels, or one per channel. With 0,
            the result is infinite, or NaN if the input equals the mean.

    Raises:
        RuntimeError: the window reaches outside of the image with the policy ``"error"``, the dtype is not supported,
            ``output_layout`` is not a permutation of the input's layout, or ``mean``, ``std`` or ``fill_values`` has
            neither one value nor one value per channel.
    """
    if dtype not in _NORMALIZED:
        raise RuntimeError(f"dtype must be float32, float16, uint8 or int8, got {dtype}")
    permutation, inverse = _permutations(layout, output_layout)
    policy = resolve_policy(out_of_bounds_policy, borders=False)
    intersection, extents, slices = intersect(data, *crop_window(data.shape, layout, **window), policy)
    mirror_axis = layout.index("W") if mirror else None
    if mirror_axis is not None and slices is not None:
        slices = _mirror_slice(slices, mirror_axis, extents[mirror_axis])
    channel = layout.index("C")
    channels = extents[channel]
    padded_channels = 1 << max(channels - 1, 0).bit_length() if pad_output else channels
    padded = policy == "pad"
    shape = tuple([padded_channels if axis == channel else extents[axis] for axis in permutation])
    if out is None or out.shape != shape or out.dtype != dtype or data.requires_grad:
        out = data.new_empty(shape, dtype=dtype)
    if padded:
        check_fill(fill_values, [shape[axis] for axis in inverse], channel)
    scaling = affine(tuple(as_list(mean)), tuple(as_list(std)), scale, shift, channels, padded_channels)
    if slices is None and padded_channels == channels:
        normalize_into(out, intersection, scaling, channel, mirror_axis, inverse)
        return out
    region = fill_into(out.permute(inverse), fill_values if padded else (), channel)
    region = region.narrow(channel, 0, channels)
    if slices is not None:
        region = region[slices]
    normalize_into(region, intersection, scaling, channel, mirror_axis)
    return out


_OUTPUT_DEFAULTS: dict[str, Any] = {
    "dtype": torch.float32, "mean": [0.0], "output_layout": "CHW", "scale": 1.0, "shift": 0.0, "std": [1.0],
}  # fmt: skip
_BORDER_ARGUMENTS = ("fill_values", "out_of_bounds_policy", "pad_output")
_UINT8_HWC = {"dtype": torch.uint8, "output_layout": "HWC"}


@narrows(
    crop_mirror_normalize,
    {*_WINDOW_ARGUMENTS, *_OUTPUT_DEFAULTS, *_BORDER_ARGUMENTS, "mirror"},
    {*_WINDOW_ARGUMENTS, "mirror"},
)
def _edit_crop_mirror_normalize(constants: Mapping[str, Any]) -> Edit | None:
    if constants.get("pad_output") or constants.get("out_of_bounds_policy", "error") not in POLICIES:
        return None
    options = _options({k: constants[k] for k in _OUTPUT_DEFAULTS if k in constants}, constants)
    return None if options is None else Edit(_narrow_and_mirror(constants), options)


def _options(
    output_arguments: Mapping[str, Any], constants: Mapping[str, Any]
) -> Callable[[ImageOptions], ImageOptions] | None:
    """Return a function that adds the output of `crop_mirror_normalize` to the options of an image program.

    See `narrow_to_crop` for image programs. Return None if ``mean``, ``std`` or ``fill_values`` doesn't have 1 or 3
    values, or if the output's layout isn't CHW or HWC.

    Args:
        output_arguments: The arguments of `constants` that determine the output's dtype, layout and values.
        constants: All arguments that are the same for all samples.
    """
    if output_arguments == _UINT8_HWC:
        return ImageOptions.mirror
    numbers = [constants[name] for name in ("mean", "std", "fill_values") if name in constants]
    fits = all(isinstance(values, list) and len(values) in (1, 3) for values in numbers)
    if not fits or output_arguments.get("output_layout", "CHW") not in ("CHW", "HWC", ""):
        return None
    output = output_of(**output_arguments)
    return lambda options: options.convert(output)


def output_of(**arguments: Any) -> Output:
    """Return the dtype, layout and values of the output of `crop_mirror_normalize`, for images with three channels.

    Raises:
        RuntimeError, TypeError, ValueError: `crop_mirror_normalize` raises the same error for these arguments.
    """
    output_arguments = {**_OUTPUT_DEFAULTS, **arguments}
    planar = output_arguments.pop("output_layout") == "CHW"
    levels = torch.arange(256, dtype=torch.uint8).view(1, 256, 1).expand(1, 256, 3).contiguous()
    table = crop_mirror_normalize.implementation(levels, layout=Layout("HWC"), output_layout="CHW", **output_arguments)
    return Output.from_table(table.view(3, 256), planar, scaling=_scaling(**output_arguments) if planar else None)


def _scaling(
    dtype: torch.dtype, mean: list[float], std: list[float], scale: float, shift: float
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return three factors and three offsets that normalize the channels of an image.

    Return None if factors and offsets can't reproduce the operator's exact result. The caller then uses a table with
    the result for each uint8 value.
    """
    scaling = affine(tuple(mean), tuple(std), scale, shift, 3, 3)
    factor, offset = ((1.0,), (0.0,)) if scaling is None else (scaling.factor, scaling.offset)
    is_simple = scaling is None or scaling.centre == (0.0,)
    if dtype != torch.float32 or not is_simple or not all(map(math.isfinite, (*factor, *offset))):
        return None
    return factor * (3 // len(factor)), offset * (3 // len(offset))


def _narrow_and_mirror(constants: Mapping[str, Any]) -> Narrow:
    window = {k: v for k, v in constants.items() if k in _WINDOW_ARGUMENTS}
    mirror = bool(constants.get("mirror", 0))

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Any) -> ImageProgram | None:
        result: ImageProgram | None = program
        if window or not arguments.keys() <= _MIRROR:
            result = narrow_to_crop(program, {**window, **arguments})
        mirrored = arguments.get("mirror", mirror)
        return result.flip(True, False) if mirrored and result is not None else result

    return narrow


_MIRROR = {"mirror"}


@chunk(crop_mirror_normalize, per_sample=argument_names(crop_window) | {"mirror"})
def _normalize_batch(data: Tensor, a: Arguments) -> Any:
    is_common_case = a.layout == "HWC" and data.dtype == torch.uint8 and a.dtype == torch.float32
    if not is_common_case or a.pad_output or not is_array(data):
        return NotImplemented
    images = windows_inside(data, a.layout, a.of(crop_window))
    if images is None:
        return NotImplemented
    resolve_policy(a.out_of_bounds_policy, borders=False)
    check_fill(a.fill_values, images[0].shape, 2)
    permutation, inverse = _permutations(a.layout, a.output_layout)
    channels = images[0].shape[2]
    scaling = affine(tuple(as_list(a.mean)), tuple(as_list(a.std)), a.scale, a.shift, channels, channels)
    shape = (len(images), *[images[0].shape[axis] for axis in permutation])
    result = prepare_out(a.out, shape, a.dtype, data.device)
    mirrored = [m != 0 for m in per_sample(a.mirror, len(images))]
    normalize_each_into(result, images, scaling, mirrored, inverse)
    return result


@chunk(crop_mirror_normalize, "device", per_sample=argument_names(crop_window) | {"mirror"})
def _normalize_on_device(data: TensorList, a: Arguments) -> Any:
    images = images_of(data, a.layout, floats=True)
    order = a.output_layout or a.layout
    if images is None or a.pad_output or a.dtype not in (torch.float32, torch.float16) or order not in ("CHW", "HWC"):
        return NotImplemented
    pair = _equal_size_windows(images, a.layout, a.of(crop_window))
    if pair is None:
        return NotImplemented
    windows, (height, width) = pair
    finish = finish_of(
        images, dtype=a.dtype, mean=a.mean, mirror=a.mirror, channel_first=order == "CHW", scale=a.scale,
        shift=a.shift, std=a.std, fill_values=a.fill_values, out_of_bounds_policy=a.out_of_bounds_policy,
    )  # fmt: skip
    return normalize_batch(
        images.flat, windows, finish.flags, finish.mirror, finish.scaling, (height, width), images.channels,
        finish.channel_first, a.dtype,
    )  # fmt: skip


def finish_of(
    images: Images, *, dtype: torch.dtype, mean: Any, mirror: int | Column, channel_first: bool,
    scale: float, shift: float, std: Any, fill_values: list[float], out_of_bounds_policy: str,
) -> Finish:  # fmt: skip
    """Check arguments of `crop_mirror_normalize`, and convert the arguments to a `Finish` for the device's kernels."""
    resolve_policy(out_of_bounds_policy, borders=False)
    check_fill(fill_values, (images.channels,), 0)
    channels = images.channels
    scaling = affine(tuple(as_list(mean)), tuple(as_list(std)), scale, shift, channels, channels)
    device, count = images.flat.device, len(images.offsets)
    flags = int32_on_device(mirror, count, device) if isinstance(mirror, Column) else None
    return Finish(flags, bool(flags is None and mirror), scaling, channel_first, dtype)


def _equal_size_windows(images: Images, layout: str, window: dict[str, Any]) -> tuple[Tensor, tuple[int, int]] | None:
    """Return the table of windows for `normalize_batch`, on the device, and the windows' common height and width.

    Return None if windows have different sizes or reach outside of their images. `crop_mirror_normalize` then processes
    the images one by one.
    """
    device = images.flat.device
    if images.uniform and not any(isinstance(value, Column) for value in window.values()):
        sides = images.sides[:, 0].tolist()
        span = span_of(sides, crop_window((*sides, images.channels), layout, **window))
        if span is None:
            return None
        (y, x), (height, width) = span
        if min(y, x) < 0 or y + height > sides[0] or x + width > sides[1]:
            return None
        count, pixels = len(images.offsets), sides[0] * sides[1]
        return _repeat_window(count, pixels * images.channels, sides[1], y, x, device), (
            height,
            width,
        )
    spans = _windows(images, layout, window)
    if spans is None:
        return None
    starts, sizes = spans
    if (starts < 0).any() or (starts + sizes > images.sides).any() or (sizes != sizes[:, :1]).any():
        return None
    rows = table([images.offsets, images.sides[1], *starts])
    return upload(rows, device), (int(sizes[0, 0]), int(sizes[1, 0]))


@device_cache(maxsize=64)
def _repeat_window(count: int, values: int, width: int, y: int, x: int, device: torch.device) -> Tensor:
    """Return the table of windows on the device, for images of one size that all have the same window."""
    return upload(table([np.arange(count, dtype=np.int64) * values, width, y, x]), device)


def _windows(
    images: Images, layout: str, window: dict[str, Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the starts and extents of the images' windows, ``(2, N)`` each; None if a window crops the channels."""
    sides, rows = images.sides.T.tolist(), split_arguments(window)
    rows = rows * len(sides) if len(rows) == 1 else rows
    windows = [crop_window((h, w, images.channels), layout, **row) for (h, w), row in zip(sides, rows, strict=True)]
    return spans_of(sides, windows)


def _mirror_slice(slices: tuple[slice, ...], axis: int, extent: int) -> tuple[slice, ...]:
    """Mirror a region of a window (slices within the window) along one axis. `extent` is the window's extent."""
    low, high, _ = slices[axis].indices(extent)
    return (*slices[:axis], slice(extent - high, extent - low), *slices[axis + 1 :])
