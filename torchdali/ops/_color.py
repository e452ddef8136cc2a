"""Operators that change brightness, contrast, hue and saturation, or convert between color spaces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Column, DType, InputConstraints, Out, PerFrame, per_sample
from torchdali.kernels.color import spaces
from torchdali.kernels.color.affine import (
    affine_each_rgb,
    affine_intensities,
    affine_intensity,
    affine_rgb,
    twist_matrix,
)
from torchdali.kernels.convert import full_scale
from torchdali.kernels.memory import copy_to_out
from torchdali.types import DALIImageType

__all__ = [
    "brightness", "brightness_contrast", "color_space_conversion", "color_twist", "contrast", "hsv", "hue",
    "saturation",
]  # fmt: skip

_HWC = ("HWC", "FHWC", "DHWC")
_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)
_TWISTED = (*_REAL, torch.float16)

Intensities = Annotated[Tensor, InputConstraints(_HWC, _REAL)]
Colors = Annotated[Tensor, InputConstraints(_HWC, _TWISTED)]


def _center(dtype: torch.dtype) -> float:
    """Return the middle of a dtype's range: 128 for uint8, 0.5 for floats."""
    return 0.5 if dtype.is_floating_point else (full_scale(dtype) + 1) / 2


Numbers = tuple[float, float]


def _affine_batch(
    image: Tensor, numbers: Callable[..., Numbers], values: Sequence[Any], dtype: torch.dtype | None,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    """Multiply the images of a batch by a factor and add an offset.

    Args:
        image: ``(batch, ..., H, W, C)``.
        numbers: Function of the input dtype, the output dtype and the `values`. It returns the factor and the offset.
        values: Arguments of the operator, each either one number for the batch or one per sample.
        dtype: Output dtype; None for the input's dtype.
        out: Tensor that the result may be written to.
    """
    kind = dtype or image.dtype
    numbers_of = functools.partial(numbers, image.dtype, kind)
    if not any(isinstance(value, Column) for value in values):
        return affine_intensity(image, *numbers_of(*values), kind, out)
    rows = zip(*[per_sample(value, len(image)) for value in values], strict=True)
    return affine_intensities(image, [numbers_of(*row) for row in rows], kind, out)


_f32 = np.float32  # factors and offsets are computed in float32, because DALI's results depend on their last bits


def _brighten(source: torch.dtype, kind: torch.dtype, factor: float, shift: float) -> Numbers:
    return float(_f32(factor)), float(_f32(shift) * _f32(full_scale(kind)))


def _contrast(source: torch.dtype, kind: torch.dtype, factor: float, center: float | None) -> Numbers:
    middle, scale = _f32(_center(source) if center is None else center), _f32(factor)
    return float(scale), float(middle - scale * middle)


def _adjust(
    source: torch.dtype, kind: torch.dtype, brightness: float, shift: float, contrast: float,
    center: float | None,
) -> Numbers:  # fmt: skip
    middle = _f32(_center(source) if center is None else center)
    light, scale = _f32(brightness), _f32(contrast)
    offset = _f32(shift) * _f32(full_scale(kind)) + light * (middle - scale * middle)
    return float(light * scale), float(offset)


@operator(marks=("bytes",))
def brightness_contrast(
    image: Intensities,
    /,
    *,
    brightness: PerFrame[float] = 1.0,
    brightness_shift: PerFrame[float] = 0.0,
    contrast: PerFrame[float] = 1.0,
    contrast_center: PerFrame[float] | None = None,
    dtype: DType | None = None,
    out: Out = None,
) -> Colors:
    """Scale the contrast of images around a center, then scale and shift their brightness.

    ``out = brightness_shift * full_scale + brightness * (center + contrast * (in - center))``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier of all intensities. Default: 1, unchanged.
        brightness_shift: Offset that is added to all intensities, as a fraction of the output dtype's full scale, which
            is 255 for uint8 and 1 for floats. Default: 0.
        contrast: Multiplier of each intensity's distance from ``contrast_center``. Default: 1, unchanged.
        contrast_center: Intensity that ``contrast`` does not change. Default: the middle of the input dtype's range,
            128 for uint8 and 0.5 for floats.
        dtype: Output dtype. Default: the input's dtype.
    """
    kind = dtype or image.dtype
    parameters = brightness, brightness_shift, contrast, contrast_center
    return affine_intensity(image, *_adjust(image.dtype, kind, *parameters), kind, out)


@chunk(brightness_contrast, per_sample=("brightness", "brightness_shift", "contrast", "contrast_center"))
def _adjust_batch(image: Tensor, a: Arguments) -> Tensor:
    numbers = a.brightness, a.brightness_shift, a.contrast, a.contrast_center
    return _affine_batch(image, _adjust, numbers, a.dtype, a.out)


@operator(marks=("bytes",))
def brightness(
    image: Intensities,
    /,
    *,
    brightness: PerFrame[float] = 1.0,
    brightness_shift: PerFrame[float] = 0.0,
    dtype: DType | None = None,
    out: Out = None,
) -> Colors:
    """Scale the brightness of images, then shift it.

    ``out = brightness * in + brightness_shift * full_scale``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier of all intensities. Default: 1, unchanged.
        brightness_shift: Offset that is added to all intensities, as a fraction of the output dtype's full scale, which
            is 255 for uint8 and 1 for floats. Default: 0.
        dtype: Output dtype. Default: the input's dtype.
    """
    kind = dtype or image.dtype
    numbers = _brighten(image.dtype, kind, brightness, brightness_shift)
    return affine_intensity(image, *numbers, kind, out)


@chunk(brightness, per_sample=("brightness", "brightness_shift"))
def _brighten_batch(image: Tensor, a: Arguments) -> Tensor:
    return _affine_batch(image, _brighten, (a.brightness, a.brightness_shift), a.dtype, a.out)


@operator(marks=("bytes",))
def contrast(
    image: Intensities,
    /,
    *,
    contrast: PerFrame[float] = 1.0,
    contrast_center: PerFrame[float] | None = None,
    dtype: DType | None = None,
    out: Out = None,
) -> Colors:
    """Scale the contrast of images around a center: ``out = center + contrast * (in - center)``.

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        contrast: Multiplier of each intensity's distance from ``contrast_center``. Default: 1, unchanged.
        contrast_center: Intensity that ``contrast`` does not change. Default: the middle of the input dtype's range,
            128 for uint8 and 0.5 for floats.
        dtype: Output dtype. Default: the input's dtype.
    """
    kind = dtype or image.dtype
    numbers = _contrast(image.dtype, kind, contrast, contrast_center)
    return affine_intensity(image, *numbers, kind, out)


@chunk(contrast, per_sample=("contrast", "contrast_center"))
def _contrast_batch(image: Tensor, a: Arguments) -> Tensor:
    return _affine_batch(image, _contrast, (a.contrast, a.contrast_center), a.dtype, a.out)


def _twist(
    image: Tensor, hue: float, saturation: float, value: float, offset: float, dtype: torch.dtype | None,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    _check_rgb(image)
    return affine_rgb(image, twist_matrix(hue, saturation, value), (offset,) * 3, dtype or image.dtype, out)


def _twist_batch(
    image: Tensor, a: Arguments, hue: Any = 0.0, saturation: Any = 1.0, value: Any = 1.0, offset: Any = 0.0
) -> Any:  # fmt: skip
    """Compute `_twist` for a batch, with arguments that may differ per sample."""
    if not len(image):
        return NotImplemented
    _check_rgb(image)
    rows = list(zip(*[per_sample(argument, len(image)) for argument in (hue, saturation, value, offset)], strict=True))
    matrices = [twist_matrix(*row[:3]) for row in rows]
    return affine_each_rgb(image, matrices, [(row[3],) * 3 for row in rows], a.dtype or image.dtype, a.out)


def _check_rgb(image: Tensor) -> None:
    if image.shape[-1] != 3:
        raise ValueError(
            f"images must be RGB with 3 channels, got {image.shape[-1]}. Decode with output_type=types.RGB, or use "
            f"fn.brightness_contrast for gray images"
        )


@operator(marks=("bytes",))
def hsv(
    image: Colors,
    /,
    *,
    dtype: DType = torch.uint8,
    hue: PerFrame[float] = 0.0,
    saturation: PerFrame[float] = 1.0,
    value: PerFrame[float] = 1.0,
    out: Out = None,
) -> Colors:
    """Rotate the hue of RGB images, and scale their saturation and value.

    Pixels are not converted to HSV: one 3x3 matrix transforms them, and ``hue`` rotates the I and Q components of the
    YIQ color space.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Output dtype. Default: uint8, whatever the input's dtype is.
        hue: Angle of the rotation in degrees. Default: 0, unchanged.
        saturation: Multiplier of the saturation; 0 makes the image gray. Default: 1, unchanged.
        value: Multiplier of all channels. Default: 1, unchanged.
    """
    return _twist(image, hue, saturation, value, 0.0, dtype, out)


@chunk(hsv, per_sample=("hue", "saturation", "value"))
def _hsv_batch(image: Tensor, a: Arguments) -> Any:
    return _twist_batch(image, a, a.hue, a.saturation, a.value)


@operator(marks=("bytes",))
def hue(
    image: Colors,
    /,
    *,
    dtype: DType | None = None,
    hue: PerFrame[float] = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    out: Out = None,
) -> Colors:
    """Rotate the hue of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Output dtype. Default: the input's dtype.
        hue: Angle of the rotation in degrees. Default: 0, unchanged.
        image_type: Accepted without effect; images are always treated as RGB.
    """
    return _twist(image, hue, 1.0, 1.0, 0.0, dtype, out)


@chunk(hue, per_sample=("hue",))
def _hue_batch(image: Tensor, a: Arguments) -> Any:
    return _twist_batch(image, a, a.hue)


@operator(marks=("bytes",))
def saturation(
    image: Colors,
    /,
    *,
    dtype: DType | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: PerFrame[float] = 1.0,
    out: Out = None,
) -> Colors:
    """Scale the saturation of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Output dtype. Default: the input's dtype.
        image_type: Accepted without effect; images are always treated as RGB.
        saturation: Multiplier of the saturation; 0 makes the image gray. Default: 1, unchanged.
    """
    return _twist(image, 0.0, saturation, 1.0, 0.0, dtype, out)


@chunk(saturation, per_sample=("saturation",))
def _saturation_batch(image: Tensor, a: Arguments) -> Any:
    return _twist_batch(image, a, saturation=a.saturation)


@operator(marks=("bytes",))
def color_twist(
    image: Colors,
    /,
    *,
    brightness: PerFrame[float] = 1.0,
    contrast: PerFrame[float] = 1.0,
    dtype: DType | None = None,
    hue: PerFrame[float] = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: PerFrame[float] = 1.0,
    out: Out = None,
) -> Colors:
    """Rotate the hue of RGB images, and scale their saturation, contrast and brightness, in one step.

    Args:
        image: ``(..., H, W, 3)``.
        brightness: Multiplier of all intensities, applied last. Default: 1, unchanged.
        contrast: Multiplier of each intensity's distance from 128 (integers) or 0.5 (floats). Default: 1, unchanged.
        dtype: Output dtype. Default: the input's dtype.
        hue: Angle in degrees by which the hue is rotated, as in `hsv`. Default: 0, unchanged.
        image_type: Accepted without effect; images are always treated as RGB.
        saturation: Multiplier of the saturation; 0 makes the image gray. Default: 1, unchanged.
    """
    return _twist(image, hue, saturation, *_light(image.dtype, brightness, contrast), dtype, out)


@chunk(color_twist, per_sample=("brightness", "contrast", "hue", "saturation"))
def _color_twist_batch(image: Tensor, a: Arguments) -> Any:
    count = len(image)
    pairs = zip(per_sample(a.brightness, count), per_sample(a.contrast, count), strict=True)
    light = [_light(image.dtype, *pair) for pair in pairs]
    values, offsets = (Column([pair[i] for pair in light]) for i in (0, 1))
    return _twist_batch(image, a, a.hue, a.saturation, values, offsets)


def _light(source: torch.dtype, brightness: float, contrast: float) -> Numbers:
    """Return the factor and the offset that apply brightness and contrast to all channels."""
    center = 0.5 if source.is_floating_point else 128.0  # 128 for all integer dtypes, as in DALI
    return brightness * contrast, brightness * (center - contrast * center)


@operator(marks=("bytes",))
def color_space_conversion(
    image: Annotated[Tensor, InputConstraints(("HWC", "FHWC", "DHWC", "FDHWC"), (torch.uint8,))],
    /,
    *,
    image_type: DALIImageType,
    output_type: DALIImageType,
    out: Out = None,
) -> Colors:
    """Convert images between the color spaces RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Args:
        image: ``(..., H, W, C)`` uint8.
        image_type: Color space of the input.
        output_type: Color space of the output.

    Raises:
        RuntimeError: the number of channels isn't 3, or 1 for gray images.
    """
    source, target = image_type.name, output_type.name
    channels = 1 if source == "GRAY" else 3
    if image.shape[-1] != channels:
        raise RuntimeError(f"images of type {source} must have {channels} channels, got {image.shape[-1]}")
    if source == target:
        return copy_to_out(image, out)
    if {source, target} == {"RGB", "BGR"}:
        return spaces.swap_red_and_blue(image, out)
    if target == "GRAY" and source != "YCbCr":
        return spaces.gray(image, source == "BGR", out)
    matrix, offset = spaces.space_matrix(source, target)
    return affine_rgb(image, matrix, offset, torch.uint8, out)


@chunk(color_space_conversion)
def _convert_batch(image: Tensor, a: Arguments) -> Tensor:
    return color_space_conversion.implementation(image, image_type=a.image_type, output_type=a.output_type, out=a.out)
