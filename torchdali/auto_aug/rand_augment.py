"""RandAugment: apply several random augmentations, one after the other, with the same magnitude bin.

Cubuk, Zoph, Shlens, Le: "RandAugment: Practical automated data augmentation with a reduced search space", 2019.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug._suites import check_bins, exclude, select_arguments, translations
from torchdali.auto_aug.core import select, signed_bin
from torchdali.auto_aug.core._augmentation import Augmentation, check_arguments
from torchdali.auto_aug.core._draws import draw_number, step_seed
from torchdali.graph.nodes import DataNode
from torchdali.types import DALIInterpType

__all__ = [
    "apply_rand_augment",
    "get_rand_augment_non_monotonic_suite",
    "get_rand_augment_suite",
    "rand_augment",
]


def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: list[str] | None = None,
) -> DataNode:
    """Apply RandAugment: ``n`` random augmentations with magnitude bin ``m`` for each sample.

    Args:
        data: Images ``HWC`` or videos ``FHWC``, uint8.
        n: Number of augmentations, applied one after the other.
        m: Magnitude bin, from 0 to ``num_magnitude_bins - 1``.
        num_magnitude_bins: Number of magnitude bins of each augmentation.
        shape: Height and width of the samples; further extents are ignored. If you pass a shape, translations are
            fractions of the shape. Otherwise translations are in pixels.
        fill_value: Value of pixels outside the image; None repeats the edge.
        interp_type: Interpolation of warps; linear if None.
        max_translate_abs: Largest translation in pixels: one number, or two numbers for y and x. None means 100.
        max_translate_rel: Largest translation as a fraction of ``shape``: one number, or two numbers for y and x. None
            means 100/224.
        seed: Seed of the random numbers.
        monotonic_mag: If True, a greater bin means a stronger change for all augmentations. If False, `brightness`,
            `contrast`, `color`, `sharpness`, `posterize` and `solarize` have AutoAugment's magnitudes.
        excluded: Names of augmentations that are not used.

    Raises:
        ValueError: an argument is out of range, or contradicts another argument.
    """
    get_suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    suite = get_suite(shape is not None, max_translate_abs, max_translate_rel)
    augmentations = exclude(suite, excluded, "RandAugment")
    arguments = select_arguments(augmentations, shape, fill_value, interp_type)
    return apply_rand_augment(augmentations, data, n, m, num_magnitude_bins, seed, **arguments)


def apply_rand_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply ``n`` random augmentations of a list to each sample, with magnitude bin ``m``.

    The same augmentation may be applied several times to a sample.

    Args:
        augmentations: The list; all augmentations are equally likely.
        data, n, m, num_magnitude_bins, seed: See `rand_augment`.
        kwargs: Arguments of the augmentations, for example ``fill_value``.

    Raises:
        ValueError: an argument is out of range, no augmentation accepts an argument, or the list is empty.
    """
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"The number of operations to apply `n` must be a non-negative integer, got {n!r}")
    check_bins(num_magnitude_bins)
    if not isinstance(m, int) or not 0 <= m < num_magnitude_bins:
        raise ValueError(
            f"the magnitude bin `m` must be an integer from `[0, {num_magnitude_bins - 1}]` range. Got {m!r}."
        )
    if n == 0:
        warnings.warn("`apply_rand_augment` with `n=0` changes nothing", stacklevel=2)
        return data
    if not augmentations:
        raise ValueError("The `augmentations` list cannot be empty in an `apply_rand_augment` call")
    check_arguments(augmentations, kwargs, "apply_rand_augment")
    negates = any(augmentation.randomly_negate for augmentation in augmentations)
    for step in range(n):
        choice = draw_number(len(augmentations), step_seed(seed, 2 * step))
        magnitude_bin = signed_bin(m, seed=step_seed(seed, 2 * step + 1)) if negates else m
        data = select(
            augmentations,
            choice,
            data,
            magnitude_bin=magnitude_bin,
            num_magnitude_bins=num_magnitude_bins,
            **kwargs,
        )
    return data


def get_rand_augment_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations of RandAugment. A greater magnitude bin always means a stronger change.

    See `rand_augment` for the arguments. Set ``use_shape`` to True if you will pass a ``shape`` to the augmentations.
    """
    return [
        *_geometry(use_shape, max_translate_abs, max_translate_rel),
        a.brightness.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.contrast.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.color.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.sharpness.augmentation((0, 0.9), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations of RandAugment with the magnitudes of AutoAugment.

    The middle bin of `brightness`, `contrast`, `color` and `sharpness` doesn't change the image. The last bin of
    `posterize` and `solarize` is the weakest change. See `get_rand_augment_suite` for the arguments.
    """
    return [
        *_geometry(use_shape, max_translate_abs, max_translate_rel),
        a.brightness.augmentation((0.1, 1.9), False, None),
        a.contrast.augmentation((0.1, 1.9), False, None),
        a.color.augmentation((0.1, 1.9), False, None),
        a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((0, 256), False),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def _geometry(
    use_shape: bool,
    max_translate_abs: int | tuple[int, int] | None,
    max_translate_rel: float | tuple[float, float] | None,
) -> list[Augmentation]:
    return [
        *translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
    ]
