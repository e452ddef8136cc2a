"""TrivialAugment: apply one random augmentation with a random magnitude to each sample.

Mueller, Hutter: "TrivialAugment: Tuning-free yet state-of-the-art data augmentation", 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug._suites import check_bins, exclude, select_arguments, translations
from torchdali.auto_aug.core import select, signed_bin
from torchdali.auto_aug.core._augmentation import Augmentation, check_arguments
from torchdali.auto_aug.core._draws import draw_number, step_seed
from torchdali.graph.nodes import DataNode
from torchdali.types import DALIInterpType

__all__ = ["apply_trivial_augment", "get_trivial_augment_wide_suite", "trivial_augment_wide"]


def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
    excluded: list[str] | None = None,
) -> DataNode:
    """Apply TrivialAugment Wide: one random augmentation with a random magnitude to each sample.

    Args:
        data: Images ``HWC`` or videos ``FHWC``, uint8.
        num_magnitude_bins: Number of magnitude bins of each augmentation.
        shape: Height and width of the samples; further extents are ignored. If you pass a shape, translations are
            fractions of the shape. Otherwise translations are in pixels.
        fill_value: Value of pixels outside the image; None repeats the edge.
        interp_type: Interpolation of warps; linear if None.
        max_translate_abs: Largest translation in pixels: one number, or two numbers for y and x. None means 32.
        max_translate_rel: Largest translation as a fraction of ``shape``: one number, or two numbers for y and x. None
            means 1.
        seed: Seed of the random numbers.
        excluded: Names of augmentations that are not used.

    Raises:
        ValueError: an argument is out of range, or contradicts another argument.
    """
    suite = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    augmentations = exclude(suite, excluded, "TrivialAugmentWide")
    arguments = select_arguments(augmentations, shape, fill_value, interp_type)
    return apply_trivial_augment(augmentations, data, num_magnitude_bins, seed, **arguments)


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply a random augmentation of a list, with a random magnitude bin, to each sample.

    Args:
        augmentations: The list; all augmentations are equally likely.
        data, num_magnitude_bins, seed: See `trivial_augment_wide`.
        kwargs: Arguments of the augmentations, for example ``fill_value``.

    Raises:
        ValueError: an argument is out of range, no augmentation accepts an argument, or the list is empty.
    """
    check_bins(num_magnitude_bins)
    if not augmentations:
        raise ValueError("The `augmentations` list cannot be empty in an `apply_trivial_augment` call")
    check_arguments(augmentations, kwargs, "apply_trivial_augment")
    magnitude_bin = draw_number(num_magnitude_bins, step_seed(seed, 0))
    if any(augmentation.randomly_negate for augmentation in augmentations):
        magnitude_bin = signed_bin(magnitude_bin, seed=step_seed(seed, 1))
    choice = draw_number(len(augmentations), step_seed(seed, 2))
    result: DataNode = select(
        augmentations,
        choice,
        data,
        magnitude_bin=magnitude_bin,
        num_magnitude_bins=num_magnitude_bins,
        **kwargs,
    )
    return result


def get_trivial_augment_wide_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations of TrivialAugment Wide.

    See `trivial_augment_wide` for the arguments. Set ``use_shape`` to True if you will pass a ``shape`` to the
    augmentations.
    """
    return [
        *translations(use_shape, 32, 1.0, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation((0, 0.99), True),
        a.shear_y.augmentation((0, 0.99), True),
        a.rotate.augmentation((0, 135), True),
        a.brightness.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.contrast.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.color.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.sharpness.augmentation((0.01, 0.99), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 2), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
