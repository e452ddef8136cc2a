"""The augmentations of AutoAugment, RandAugment and TrivialAugment.

Samples are uint8 RGB images ``(H, W, C)`` or videos ``(F, H, W, C)``. Each augmentation is declared with the magnitudes
that RandAugment uses; `Augmentation.augmentation` returns a copy with different magnitudes. Callers also pass an
augmentation's own arguments, such as ``fill_value``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali import fn, types
from torchdali.auto_aug.core._augmentation import augmentation
from torchdali.declaration.registry import lookup
from torchdali.graph.nodes import DataNode
from torchdali.types import DALIInterpType

__all__ = [
    "auto_contrast", "brightness", "color", "contrast", "equalize", "identity", "invert", "posterize", "rotate",
    "sharpness", "shear_x", "shear_y", "solarize", "solarize_add", "translate_x", "translate_x_no_shape",
    "translate_y", "translate_y_no_shape",
]  # fmt: skip

Fill = float | None

# ---------------------------------------------------------------- parameters of magnitudes


def warp_x_param(magnitude: float) -> list[float]:
    """Return the parameter of a shear or translation along x."""
    return [magnitude, 0]


def warp_y_param(magnitude: float) -> list[float]:
    """Return the parameter of a shear or translation along y."""
    return [0, magnitude]


def shift_enhance_range(magnitude: float) -> float:
    """Return the factor ``1 + magnitude``. Magnitude 0 doesn't change the image."""
    return 1 + magnitude


def sharpness_kernel(magnitude: float) -> npt.NDArray[np.float32]:
    """Return the 3x3 filter window that computes ``image + magnitude * (image - blurred image)``."""
    blurred = np.ones((3, 3), np.float32)
    blurred[1, 1] = 5
    kernel = np.float32(-magnitude) * (blurred / np.float32(13))
    kernel[1, 1] += np.float32(1 + magnitude)
    return kernel.astype(np.float32)


def sharpness_kernel_shifted(magnitude: float) -> npt.NDArray[np.float32]:
    """Return the filter window of `sharpness_kernel` for ``magnitude - 1``.

    Magnitude 1 doesn't change the image, and magnitude 0 blurs the image.
    """
    return sharpness_kernel(magnitude - 1)


def poster_mask_uint8(magnitude: float) -> npt.NDArray[np.uint8]:
    """Return the bit mask that keeps the highest ``magnitude`` bits (rounded), but at least one bit.

    If the rounded magnitude is below 0 or above 8, all bits are kept.
    """
    bits = round(float(magnitude))
    dropped = 8 - max(1, bits) if 0 <= bits <= 8 else 0
    return np.array(0xFF >> dropped << dropped, np.uint8)


def solarize_add_shift(shift: float) -> np.uint8:
    """Return the value that `solarize_add` adds to dark pixels.

    Raises:
        ValueError: the value is not from 0 to 127.
    """
    if not 0 <= int(shift) < 128:
        raise ValueError(f"`solarize_add` accepts shifts from 0 to 127, got {shift}")
    return np.uint8(shift)


# ---------------------------------------------------------------- geometry


def _shear(data: DataNode, shear: DataNode, fill_value: Fill, interp_type: DALIInterpType | None) -> DataNode:
    return _warp(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


def _translate(data: DataNode, offset: DataNode, fill_value: Fill, interp_type: DALIInterpType | None) -> DataNode:
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


def _warp(data: DataNode, matrix: DataNode, fill_value: Fill, interp_type: DALIInterpType | None) -> DataNode:
    options: dict[str, Any] = {"fill_value": fill_value, "interp_type": interp_type}
    warped: DataNode = fn.warp_affine(data, matrix=matrix, inverse_map=False, **options)
    return warped


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(
    data: DataNode,
    shear: DataNode,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Shear along x."""
    return _shear(data, shear, fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(
    data: DataNode,
    shear: DataNode,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Shear along y."""
    return _shear(data, shear, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode,
    rel_offset: Any,
    shape: Any,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Move the image along x by a fraction of its width."""
    return _translate(data, rel_offset * shape[1], fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(
    data: DataNode,
    offset: DataNode,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Move the image along x by a number of pixels."""
    return _translate(data, offset, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode,
    rel_offset: Any,
    shape: Any,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Move the image along y by a fraction of its height."""
    return _translate(data, rel_offset * shape[0], fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(
    data: DataNode,
    offset: DataNode,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
) -> DataNode:
    """Move the image along y by a number of pixels."""
    return _translate(data, offset, fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: DataNode,
    fill_value: Fill = 128,
    interp_type: DALIInterpType | None = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotate the image by an angle in degrees."""
    options: dict[str, Any] = {"fill_value": fill_value, "interp_type": interp_type}
    rotated: DataNode = fn.rotate(data, angle=angle, keep_size=rotate_keep_size, **options)
    return rotated


# ---------------------------------------------------------------- intensity


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Scale the brightness."""
    result: DataNode = fn.brightness(data, brightness=parameter)
    return result


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Scale the contrast around the mean luma of the image."""
    result: DataNode = lookup("_contrast_around_mean")(data, factor=parameter)
    return result


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Scale the saturation."""
    result: DataNode = fn.saturation(data, saturation=parameter)
    return result


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data: DataNode, kernel: DataNode) -> DataNode:
    """Sharpen or blur the image."""
    result: DataNode = fn.filter(data, kernel)
    return result


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: Any, mask: DataNode) -> DataNode:
    """Keep only the highest bits of each intensity."""
    result: DataNode = data & mask
    return result


@augmentation(mag_range=(256, 0), param_device="auto")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Invert the intensities that are at or above the threshold."""
    result: DataNode = lookup("_solarize")(data, threshold)
    return result


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="auto")
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Add the shift to intensities below 128."""
    result: DataNode = lookup("_solarize_add")(data, shift)
    return result


@augmentation
def invert(data: DataNode, _: Any) -> DataNode:
    """Invert intensities."""
    result: DataNode = types.Constant(255, types.UINT8) - data
    return result


@augmentation
def equalize(data: DataNode, _: Any) -> DataNode:
    """Equalize the histogram of each channel."""
    result: DataNode = fn.equalize(data)
    return result


@augmentation
def auto_contrast(data: DataNode, _: Any) -> DataNode:
    """Stretch the intensities of each channel to the full range."""
    result: DataNode = lookup("_auto_contrast")(data)
    return result


@augmentation
def identity(data: DataNode, _: Any) -> DataNode:
    """Return the samples unchanged."""
    return data
