"""Operators for those transforms of `experimental.torchvision` that DALI has no operator for.

The operators aren't available to users in `fn`. Each operator computes its output size or the cropped window from the
image's shape, because the shape is known only when the pipeline runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import InputConstraints, Layout, PerSample
from torchdali.kernels.color import spaces
from torchdali.kernels.convert import convert
from torchdali.ops._color import brightness_contrast, color_twist
from torchdali.ops._resize import resize_image
from torchdali.ops._slice import slice_
from torchdali.rng import Rng
from torchdali.types import DALIInterpType

__all__ = [
    "PADDING_POLICIES", "vision_center_crop", "vision_color", "vision_gray", "vision_pad",
    "vision_random_crop", "vision_resize",
]  # fmt: skip

_Planes = Annotated[Tensor, InputConstraints(("HWC", "CHW"))]
_Pixels = Annotated[Tensor, InputConstraints(("HWC", "CHW"), channel_last=True)]

PADDING_POLICIES = {
    "constant": "pad",
    "edge": "clamp",
    "reflect": "reflect_101",
    "symmetric": "reflect_1001",
}
"""Maps torchvision's padding modes to values of the argument ``out_of_bounds_policy`` of `slice`."""


@operator(name="_vision_resize", title="resize")
def vision_resize(
    data: _Pixels,
    /,
    *,
    size: int | None = None,
    max_size: int | None = None,
    antialias: bool = True,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    layout: Layout,
) -> _Pixels:
    """Resize an image like ``torchvision.transforms.Resize``, and keep its aspect ratio.

    The side that is computed from the aspect ratio is rounded down, as in torchvision.

    Args:
        data: An image.
        size: Length of the shorter side, in pixels. By default ``max_size`` determines the size.
        max_size: Maximum length of the longer side, in pixels. If the longer side would exceed this maximum, or if
            ``size`` isn't passed, the longer side is resized to ``max_size``.
        antialias: If True (the default), the filter is widened when the image shrinks.
        interp_type: Interpolation filter. By default ``INTERP_LINEAR``.
    """
    target = _target_size(data.shape[0], data.shape[1], size, max_size)
    filters = {"antialias": antialias, "interp_type": interp_type}
    return resize_image(data, layout, {"size": list(target)}, filters)


def _target_size(height: int, width: int, size: int | None, max_size: int | None) -> tuple[int, int]:
    short, long = min(height, width), max(height, width)
    if not short:
        return (size or 0, 0) if width <= height else (0, size or 0)
    new_short, new_long = (short, long) if size is None else (size, int(size * long / short))
    if max_size is not None and (size is None or new_long > max_size):
        new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


@operator(name="_vision_center_crop", title="center_crop")
def vision_center_crop(data: _Planes, /, *, size: list[int], layout: Layout) -> _Planes:
    """Crop the center of an image; pixels outside of the image are zero.

    Args:
        data: An image.
        size: Height and width of the crop, in pixels.
    """
    lengths = _height_and_width(data, layout)
    start = [_center_start(extent, target) for extent, target in zip(lengths, size, strict=True)]
    return _crop(data, start, size, layout, "pad")


def _center_start(extent: int, target: int) -> int:
    """Return the start of the center crop, rounded as in torchvision.

    A start halfway between two integers is rounded away from zero if the crop is larger than the image. Otherwise it is
    rounded to the even integer.
    """
    return -math.ceil((target - extent) / 2) if target > extent else round((extent - target) / 2)


@operator(name="_vision_random_crop", title="random_crop")
def vision_random_crop(
    data: _Planes,
    /,
    *,
    size: list[int],
    padding: list[int] = [0, 0, 0, 0],  # noqa: B006  never changed
    pad_if_needed: bool = False,
    fill: list[float] = [0.0],  # noqa: B006
    padding_mode: str = "constant",
    layout: Layout,
    rng: Rng,
) -> _Planes:
    """Pad an image, and crop a window at a random position.

    Args:
        data: An image.
        size: Height and width of the window, in pixels.
        padding: Widths of the left, top, right and bottom border, in pixels. By default 0.
        pad_if_needed: If True and the padded image is less high or less wide than the window, the missing height or
            width is added to each of the two opposite sides. By default False.
        fill: Color of the padding: one value, or one value per channel. By default 0.
        padding_mode: torchvision's padding mode, a key of `PADDING_POLICIES`. By default ``"constant"``.

    Raises:
        RuntimeError: the window is larger than the padded image.
    """
    left, top, right, bottom = padding
    start = []
    sides = ((top, bottom), (left, right))
    lengths = _height_and_width(data, layout)
    for extent, target, (before, after) in zip(lengths, size, sides, strict=True):
        missing = max(target - (extent + before + after), 0)
        if missing and not pad_if_needed:
            raise RuntimeError(
                f"a crop of {tuple(size)} does not fit into an image of {tuple(lengths)} with the padding "
                f"{list(padding)}: pass pad_if_needed=True"
            )
        slack = extent + before + after + 2 * missing - target
        start.append(rng.integer(0, slack) - before - missing)
    return _crop(data, start, size, layout, PADDING_POLICIES[padding_mode], fill)


@operator(name="_vision_pad", title="pad")
def vision_pad(
    data: _Planes,
    /,
    *,
    padding: list[int],
    fill: list[float] = [0.0],  # noqa: B006  never changed
    padding_mode: str = "constant",
    layout: Layout,
) -> _Planes:
    """Pad an image.

    Args:
        data: An image.
        padding: Widths of the left, top, right and bottom border, in pixels.
        fill: Color of the padding: one value, or one value per channel. By default 0.
        padding_mode: torchvision's padding mode, a key of `PADDING_POLICIES`. By default ``"constant"``.
    """
    left, top, right, bottom = padding
    height, width = _height_and_width(data, layout)
    size = [height + top + bottom, width + left + right]
    return _crop(data, [-top, -left], size, layout, PADDING_POLICIES[padding_mode], fill)


def _height_and_width(data: Tensor, layout: str) -> list[int]:
    return [data.shape[layout.index("H")], data.shape[layout.index("W")]]


_slice: Callable[..., Tensor] = slice_.implementation


def _crop(
    data: Tensor, start: list[int], size: list[int], layout: str, policy: str,
    fill: Sequence[float] = (0.0,),
) -> Tensor:  # fmt: skip
    return _slice(
        data, start=start, shape=list(size), axis_names="HW", out_of_bounds_policy=policy,
        fill_values=list(fill), layout=layout,
    )  # fmt: skip


@operator(name="_vision_gray", title="gray")
def vision_gray(data: _Pixels, /, *, channels: int = 0, wanted: PerSample[int] = 1) -> _Pixels:
    """Convert an image to grayscale (its luma).

    Args:
        data: An image of 1 (gray), 3 (RGB) or 4 (RGB and alpha) channels.
        channels: Number of output channels, 1 or 3. By default (0) the output has as many channels as the input, and
            alpha isn't changed.
        wanted: 1 (the default) converts the image, and 0 returns the image unchanged.
    """
    if not wanted:
        return data
    count = data.shape[-1]
    if count not in (1, 3, 4):
        raise RuntimeError(f"gray: images must have 1, 3 or 4 channels, got {count}")
    luma = data if count == 1 else _luma(data[..., :3])
    result = luma.expand(*luma.shape[:-1], channels or min(count, 3))
    if not channels and count == 4:
        return torch.cat([result, data[..., 3:]], -1)
    return result.contiguous()


_WEIGHTS = (0.299, 0.587, 0.114)


def _luma(rgb: Tensor) -> Tensor:
    if rgb.dtype == torch.uint8:
        return spaces.gray(rgb, False)
    floats = rgb if rgb.dtype == torch.float64 else rgb.to(torch.float32)
    luma = sum(w * plane for w, plane in zip(_WEIGHTS, floats.unbind(-1), strict=True))
    assert isinstance(luma, Tensor)
    return convert(luma[..., None], rgb.dtype)


@operator(name="_vision_color", title="color")
def vision_color(
    data: _Pixels,
    /,
    *,
    brightness: PerSample[float] = 1.0,
    contrast: PerSample[float] = 1.0,
    saturation: PerSample[float] = 1.0,
    hue: PerSample[float] = 0.0,
) -> _Pixels:
    """Change brightness, contrast, saturation and hue.

    The operator `fn.color_twist` does the same, but supports only RGB images.

    Args:
        data: An image of 1 (gray), 3 (RGB) or 4 (RGB and alpha) channels. Alpha isn't changed.
        brightness: Factor by which values are multiplied. By default 1.
        contrast: Factor by which differences from the middle of the value range are multiplied. By default 1.
        saturation: Factor by which the saturation is multiplied; gray images aren't changed. By default 1.
        hue: Change of the hue, in degrees; gray images aren't changed. By default 0.
    """
    count = data.shape[-1]
    if count not in (1, 3, 4):
        raise RuntimeError(f"color: images must have 1, 3 or 4 channels, got {count}")
    rgb = data[..., :3].contiguous()
    if count == 1:
        result: Tensor = brightness_contrast.implementation(rgb, brightness=brightness, contrast=contrast)
        return result
    result = color_twist.implementation(rgb, brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)
    return result if count == 3 else torch.cat([result, data[..., 3:]], -1)
