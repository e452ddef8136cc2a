"""Filter operators: Gaussian blur, Laplacian, correlation with any window, median, dilation and erosion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    Arguments,
    Data,
    DType,
    InputConstraints,
    Layout,
    Out,
    PerFrame,
    PerSample,
    one_of,
    per_sample,
    shares,
)
from torchdali.errors import batch_level
from torchdali.kernels.convert import convert
from torchdali.kernels.filters import linear, rank
from torchdali.kernels.limits import check_window
from torchdali.kernels.rounding import to_bytes
from torchdali.kernels.warp.perspective import BORDERS
from torchdali.ops._arguments import match_axes

__all__ = ["dilate", "erode", "filter", "gaussian_blur", "laplacian", "median_blur"]

_FILTER_MODES = ("same", "valid")

_LAPLACIAN_LIMIT = 31  # the largest window whose weights fit into float32

_PLANAR = ("HW", "HWC", "CHW", "FHWC", "FCHW")
Planar = Annotated[
    Tensor, InputConstraints(_PLANAR, (torch.uint8, torch.uint16, torch.int16, torch.float32), sets_layout=False)
]
Filtered = Annotated[Tensor, InputConstraints(every_axis=True)]
Morphed = Annotated[Tensor, InputConstraints(_PLANAR, sets_layout=False)]


def _spatial_axes(layout: str, ndim: int) -> list[int]:
    """Return the axes to filter: all axes except frames and channels, or all axes if the layout is empty."""
    _check_axes(layout)
    axes = [i for i, name in enumerate(layout) if name not in "FC"] if layout else list(range(ndim))
    if len(axes) > 3:
        raise batch_level(RuntimeError(f"too many dimensions, found: {len(axes)} data axes, maximum supported is: 3."))
    return axes


def _check_axes(layout: str) -> None:
    """Check that the spatial axes of a layout are next to each other.

    Raises:
        RuntimeError: frames or channels are between spatial axes, the layout has several axes of frames or channels, or
            the layout has no spatial axis.
    """
    inner = layout.removeprefix("F").strip("C")
    if "C" in inner and "F" not in inner:
        wrong = f"only channel-first or channel-last layouts are supported, got: {layout}."
    elif max(layout.count("F"), layout.count("C")) > 1:
        wrong = f"found more the one occurrence of 'F' or 'C' axes in layout: {layout}."
    elif "F" in layout.lstrip("FC"):
        wrong = f"for sequences, layout should begin with 'F' or 'C', got: {layout}."
    elif layout and not layout.strip("FC"):
        wrong = f"no spatial axes found in the layout: {layout}"
    else:
        return
    raise batch_level(RuntimeError(wrong))


def _output_dtype(x: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    if dtype not in (None, x.dtype, torch.float32):
        raise RuntimeError(f"dtype must be the input's ({x.dtype}) or float32, got {dtype}")
    return dtype or x.dtype


@operator(marks=("bytes", "pixels"))
def gaussian_blur(
    data: Filtered,
    /,
    *,
    dtype: DType | None = None,
    sigma: PerFrame[list[float]] = [0.0],  # noqa: B006  never changed
    window_size: PerFrame[list[int]] = [0],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> Filtered:
    """Blur with a Gaussian window along every axis except frames and channels.

    Pass ``sigma``, ``window_size`` or both. If one of the two is 0, it is computed from the other one:
    ``window_size = 2 * ceil(3 * sigma) + 1`` or ``sigma = 0.3 * ((window_size - 1) / 2 - 1) + 0.8``. At borders, the
    data is mirrored without repeating the edge.

    Args:
        data: Data of any layout and real dtype. If it has no layout, every axis is blurred.
        dtype: Output dtype: the input's dtype (the default), or float32.
        sigma: Standard deviation in pixels: one number for all axes, or one per blurred axis in the layout's order.
        window_size: Width of the window in pixels, odd: one number for all axes, or one per blurred axis.

    Raises:
        RuntimeError: ``sigma`` and ``window_size`` are both 0 for an axis, or a window is even or wider than 131072.
    """
    kind = _output_dtype(data, dtype)
    axes = _spatial_axes(layout, data.ndim)
    windows = _gaussian_windows(sigma, window_size, len(axes))
    total = linear.separable(data, axes, windows, _output_buffer(data, kind, out))
    return _to_output(total, data.dtype, kind, out)


@chunk(gaussian_blur, per_sample=("sigma", "window_size"), only_on_devices=True)
def _blur_batch(data: Tensor, a: Arguments) -> Tensor:
    kind, axes = _output_dtype(data, a.dtype), _spatial_axes(a.layout, data.ndim - 1)
    columns = [per_sample(value, len(data)) for value in (a.sigma, a.window_size)]
    sample_windows = [_gaussian_windows(sigma, size, len(axes)) for sigma, size in zip(*columns, strict=True)]
    windows = [linear.stack_windows(column, data) for column in zip(*sample_windows, strict=True)]
    total = linear.separable(data, [axis + 1 for axis in axes], windows)
    return _to_output(total, data.dtype, kind, a.out)


def _gaussian_windows(sigma: list[float], window_size: list[int], axes: int) -> list[tuple[float, ...]]:
    """Return the weights of the Gaussian window for each axis."""
    pairs = zip(match_axes("sigma", sigma, axes), match_axes("window_size", window_size, axes), strict=True)
    return [_gaussian(float(deviation), int(window), axis) for axis, (deviation, window) in enumerate(pairs)]


def _output_buffer(x: Tensor, dtype: torch.dtype, out: Tensor | None) -> Tensor | None:
    """Return the tensor that a filter writes its result into, or None to let the filter allocate the tensor.

    On the CPU, a filter with uint8 input and output writes float32 values, and `_to_output` then converts the values to
    uint8. All other filters write into `out` (the sample's memory in the output batch), unless `out` is None.
    """
    return torch.empty(x.shape, dtype=torch.float32) if x.is_cpu and x.dtype == dtype == torch.uint8 else out


def _to_output(x: Tensor, source: torch.dtype, dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Convert a filter's result `x` to the output dtype; `x` may be overwritten."""
    if source == dtype == torch.uint8:
        return to_bytes(x.contiguous(), out)
    return convert(x, dtype)


def _gaussian(sigma: float, window: int, axis: int) -> tuple[float, ...]:
    if not sigma and not window:
        raise RuntimeError(f"gaussian_blur: sigma or window_size must be positive, got 0 for both on axis {axis}")
    for name, value in (("sigma", sigma), ("window_size", window)):
        if value < 0:
            raise RuntimeError(f"gaussian_blur: `{name}` must not be negative, got {value:g} for axis {axis}")
    check_window(window or 6 * sigma, "gaussian_blur")
    window = window or 2 * math.ceil(3 * sigma) + 1
    if window % 2 == 0:
        raise RuntimeError(f"gaussian_blur: kernel window should have odd length, got: {window}.")
    return linear.gaussian(window, sigma or 0.3 * ((window - 1) * 0.5 - 1) + 0.8)


@operator(marks=("pixels", "frames"))
def laplacian(
    data: Filtered,
    /,
    *,
    dtype: DType | None = None,
    normalized_kernel: bool = False,
    scale: PerFrame[list[float]] = [1.0],  # noqa: B006  never changed
    smoothing_size: PerFrame[list[int]] | None = None,
    window_size: PerFrame[list[int]] = [3],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> Filtered:
    """Compute the Laplacian: the sum of the second derivatives along every axis except frames and channels.

    The derivative along an axis is smoothed along all other axes.

    Args:
        data: Data of any layout and real dtype. If it has no layout, the derivatives along all axes are summed.
        dtype: Output dtype: the input's dtype (the default), or float32.
        normalized_kernel: True to multiply each derivative by ``2 ** (n + 2 - s)``, where n is the number of axes and s
            the sum of the sizes of the derivative's window and smoothing windows.
        scale: Multiplier of the derivatives: one number for all axes, or one per axis.
        smoothing_size: Size in pixels of the smoothing window along each axis, odd, from 1 to 31. Default: the
            ``window_size`` of the derivative that is smoothed.
        window_size: Size in pixels of the derivatives' windows, odd, from 3 to 31: one number for all axes, or one per
            axis.

    Raises:
        RuntimeError: a window size is even or out of range, or ``scale`` is passed together with
            ``normalized_kernel``.
    """
    kind = _output_dtype(data, dtype)
    axes = _spatial_axes(layout, data.ndim)
    derivatives = _derivatives(len(axes), normalized_kernel, scale, smoothing_size, window_size)
    total: Tensor | None = None
    for windows, factor in derivatives:
        first = total is None
        buffer = _output_buffer(data, kind, out if first else None)
        derivative = linear.separable(data, axes, windows, buffer)
        derivative = derivative if factor == 1.0 else derivative * factor
        total = derivative if total is None else total + derivative
    assert total is not None
    return _to_output(total, data.dtype, kind, out)


def _derivatives(
    axes: int, normalized_kernel: bool, scale: Any, smoothing_size: Any, window_size: Any
) -> list[tuple[list[Sequence[float]], float]]:
    """Return the windows and the factor of each derivative. There is one derivative per axis.

    A derivative has one window per axis: the window on its own axis differentiates, and the other windows smooth.
    """
    windows = match_axes("window_size", window_size, axes)
    smooth = None if smoothing_size is None else match_axes("smoothing_size", smoothing_size, axes)
    scales = match_axes("scale", scale, axes)
    if normalized_kernel and any(s != 1.0 for s in scales):
        raise RuntimeError("laplacian: scale cannot be combined with normalized_kernel")
    derivatives = []
    for axis, (window, factor) in enumerate(zip(windows, scales, strict=True)):
        sizes = [int(size) for size in smooth or [window] * axes]
        sizes[axis] = int(window)
        _check_windows(sizes, axis)
        if normalized_kernel:
            factor = 2.0 ** (axes + 2 - sum(sizes))
        kernels: list[Sequence[float]] = [linear.binomial(size) for size in sizes]
        kernels[axis] = linear.laplacian_kernels(int(window))
        derivatives.append((kernels, factor))
    return derivatives


def _check_windows(sizes: Sequence[int], axis: int) -> None:
    """Check the window sizes of the derivative along the axis with the index `axis`."""
    for index, size in enumerate(sizes):
        name, least = ("window_size", 3) if index == axis else ("smoothing_size", 1)
        if not least <= size <= _LAPLACIAN_LIMIT or size % 2 == 0:
            raise RuntimeError(
                f"laplacian: {name} must be an odd number from {least} to {_LAPLACIAN_LIMIT}, got {size}"
            )


@operator
def filter(
    data: Planar,
    window: Data,
    fill_value: Data | None = None,
    /,
    *,
    anchor: PerFrame[list[int]] = [-1],  # noqa: B006  never changed
    border: Annotated[str, one_of(linear.BORDERS, linear.ALIASES)] = "reflect_101",
    dtype: DType | None = None,
    mode: Annotated[str, one_of(_FILTER_MODES)] = "same",
    layout: Layout,
    out: Out = None,
) -> Data:
    """Correlate images with a window of weights. Unlike in a convolution, the window is not flipped.

    Args:
        data: Images or sequences of frames: uint8, uint16, int16 or float32.
        window: Weights, ``(h, w)`` float32.
        fill_value: Value of the pixels outside of the image if ``border`` is ``constant``. Default: 0.
        anchor: Position (y, x) in the window that is aligned with the output pixel. Default: -1, the window's center.
        border: Values of the pixels outside of the image: ``reflect_101`` (or ``101``) mirrors the image without
            repeating the edge, ``reflect_1001`` (or ``1001`` or ``reflect``) mirrors the image and repeats the edge,
            ``clamp`` (or ``edge``) repeats the edge pixel, ``wrap`` repeats the image, and ``constant`` (or ``fill`` or
            ``pad``) uses ``fill_value``.
        dtype: Output dtype: the input's dtype (the default), or float32.
        mode: ``"same"`` keeps the image's shape. ``"valid"`` returns only pixels whose whole window is inside of the
            image.

    Raises:
        RuntimeError: the mode is unknown, the anchor is outside of the window, or the window is larger than the image
            in mode ``"valid"``.
    """
    kind, axes = _output_dtype(data, dtype), _spatial_axes(layout, data.ndim)[-window.ndim :]
    anchors = _resolve_anchor(data.shape, axes, window.shape, anchor, mode)
    fill = 0.0 if fill_value is None else float(fill_value)
    border = linear.ALIASES.get(border, border)
    return linear.correlate(data, axes, window, anchors, border, fill, mode == "same", kind, out)


def _resolve_anchor(
    shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int], anchor: Any, mode: str
) -> list[int]:
    """Return the anchor: the position in the window that is aligned with the output pixel, one index per axis."""
    if mode not in _FILTER_MODES:
        raise RuntimeError(f"filter: mode must be 'same' or 'valid', got {mode!r}")
    positions = [
        size // 2 if position == -1 else int(position)
        for position, size in zip(match_axes("anchor", anchor, len(sizes)), sizes, strict=True)
    ]
    if mode == "valid" and any(shape[a] < n for a, n in zip(axes, sizes, strict=True)):
        raise RuntimeError(
            f"filter: with mode 'valid', the window must fit into the image {list(shape)}, got {list(sizes)}"
        )
    if any(not 0 <= position < size for position, size in zip(positions, sizes, strict=True)):
        raise RuntimeError(f"filter: the anchor must be within the window {list(sizes)}, got {positions}")
    return positions


@chunk(filter, only_on_devices=True)
def _filter_batch(data: Tensor, window: Tensor, fill_value: Tensor | None = None, *, a: Arguments) -> Any:
    if fill_value is not None or window.dtype != torch.float32 or window.ndim < 2:
        return NotImplemented
    axes, sizes = _spatial_axes(a.layout, data.ndim - 1)[1 - window.ndim :], window.shape[1:]
    anchors = _resolve_anchor(data.shape[1:], axes, sizes, a.anchor, a.mode)
    kind, border = _output_dtype(data, a.dtype), linear.ALIASES.get(a.border, a.border)
    return linear.correlate_each(data, [x + 1 for x in axes], window, anchors, border, a.mode == "same", kind)


@operator(name="experimental.median_blur", marks=("frames",))
def median_blur(
    data: Morphed,
    /,
    *,
    window_size: PerSample[list[int]] = [3, 3],  # noqa: B006  never changed
    layout: Layout,
) -> Data:
    """Replace each pixel with the median of a window around the pixel. Outside of the image, the edge is repeated.

    Args:
        data: Images or sequences of frames.
        window_size: Height and width of the window in pixels, odd; or one number for both.
    """
    axes = _spatial_axes(layout, data.ndim)
    return rank.median(data, axes, _odd_sizes(window_size, len(axes)))


def _odd_sizes(window_size: Any, axes: int) -> list[int]:
    sizes = [int(size) for size in match_axes("window_size", window_size, axes)]
    if any(size % 2 == 0 or size < 1 for size in sizes):
        raise RuntimeError(f"median_blur: window sizes must be odd, got {sizes}")
    return sizes


_BORDER = {"reflect": "reflect_1001", "replicate": "clamp"}


def morph(
    data: Tensor,
    layout: str,
    largest: bool,
    *,
    anchor: PerFrame[list[int]] = [-1, -1],  # noqa: B006  never changed
    border_mode: Annotated[str, one_of(BORDERS)] = "constant",
    iterations: int = 1,
    mask_size: PerFrame[list[int]] = [3, 3],  # noqa: B006
) -> Tensor:
    """Replace each pixel with the largest or smallest value in a rectangle around the pixel.

    Args:
        anchor: Position (y, x) in the rectangle that is aligned with the output pixel. Default: -1, the rectangle's
            center.
        border_mode: Values of the pixels outside of the image: ``constant`` ignores these pixels, ``replicate`` repeats
            the edge pixel, ``reflect`` mirrors the image and repeats the edge, ``reflect_101`` mirrors the image
            without repeating the edge, and ``wrap`` repeats the image.
        iterations: Number of times that all pixels are replaced.
        mask_size: Height and width of the rectangle in pixels.
    """
    axes = _spatial_axes(layout, data.ndim)
    sizes, anchors = match_axes("mask_size", mask_size, len(axes)), match_axes("anchor", anchor, len(axes))
    border = _BORDER.get(border_mode, border_mode)
    for _ in range(iterations):
        data = rank.rank(data, axes, sizes, anchors, border, largest)
    return data


@operator(name="experimental.dilate", marks=("frames",))
def dilate(data: Morphed, /, *, layout: Layout, **rectangle: Annotated[Any, shares(morph)]) -> Data:
    """Replace each pixel with the largest value in a rectangle around the pixel.

    Args:
        data: Images or sequences of frames.
    """
    return morph(data, layout, True, **rectangle)


@operator(name="experimental.erode", marks=("frames",))
def erode(data: Morphed, /, *, layout: Layout, **rectangle: Annotated[Any, shares(morph)]) -> Data:
    """Replace each pixel with the smallest value in a rectangle around the pixel.

    Args:
        data: Images or sequences of frames.
    """
    return morph(data, layout, False, **rectangle)
