"""TrivialAugment: one augmentation with one magnitude for each sample, all equally likely.

Mueller, Hutter: "TrivialAugment: Tuning-free yet state-of-the-art data augmentation", 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug._suites import check_bins, given_arguments, translations, without
from torchdali.auto_aug.core import select, signed_bin
from torchdali.auto_aug.core._augmentation import Augmentation, check_arguments
from torchdali.auto_aug.core._draws import drawn_number, step_seed
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
        num_magnitude_bins: Into how many bins the magnitudes of each augmentation are divided.
        shape: Height and width of the samples (further extents are ignored): translations are a part of them, not
            pixels.
        fill_value: Value of pixels from outside; the edge is repeated when None.
        interp_type: Interpolation of warps; linear when None.
        max_translate_abs: How far translations go in pixels, or so along y and x; 32 when None.
        max_translate_rel: Largest translation as a fraction of ``shape``: one number, or one each for y and x; 1 when
            None.
        seed: Seed of the random numbers.
        excluded: Names of augmentations to leave out.

    Raises:
        ValueError: an argument out of range, or that does not go with another.
    """
    suite = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    chosen = without(suite, excluded, "TrivialAugmentWide")
    arguments = given_arguments(chosen, shape, fill_value, interp_type)
    return apply_trivial_augment(chosen, data, num_magnitude_bins, seed, **arguments)


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply one augmentation of a list, with one of the magnitude bins, to each sample.

    Args:
        kwargs: Arguments of the augmentations, for example ``fill_value``.

    Raises:
        ValueError: an argument out of range, or one that no augmentation takes; no augmentations.
    """
    check_bins(num_magnitude_bins)
    if not augmentations:
        raise ValueError("The `augmentations` list cannot be empty in an `apply_trivial_augment` call")
    check_arguments(augmentations, kwargs, "apply_trivial_augment")
    magnitude_bin = drawn_number(num_magnitude_bins, step_seed(seed, 0))
    if any(augmentation.randomly_negate for augmentation in augmentations):
        magnitude_bin = signed_bin(magnitude_bin, seed=step_seed(seed, 1))
    chosen = drawn_number(len(augmentations), step_seed(seed, 2))
    result: DataNode = select(
        augmentations,
        chosen,
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

    See `trivial_augment_wide` for the arguments; ``use_shape`` says whether there will be a ``shape``.
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
