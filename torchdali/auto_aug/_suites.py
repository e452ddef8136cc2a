"""Functions that AutoAugment, RandAugment and TrivialAugment share: ranges of translations, and checks of arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug.core._augmentation import Augmentation

__all__ = ["check_bins", "exclude", "select_arguments", "translations"]

Limit = float | Sequence[float]


def translations(
    use_shape: bool,
    pixels: int,
    fraction: float,
    max_translate_abs: int | Sequence[int] | None,
    max_translate_rel: float | Sequence[float] | None,
) -> list[Augmentation]:
    """Return the augmentations that translate images along x and along y.

    Args:
        use_shape: True if translations are fractions of the image's size, False if they are in pixels.
        pixels: Default limit in pixels.
        fraction: Default limit as a fraction of the image.
        max_translate_abs: Limit in pixels: one number, or two numbers for y and x.
        max_translate_rel: Limit as a fraction of the image: one number, or two numbers for y and x.

    Raises:
        ValueError: ``max_translate_abs`` is passed and ``use_shape`` is True, or ``max_translate_rel`` is passed and
            ``use_shape`` is False.
    """
    if use_shape and max_translate_abs is not None:
        raise ValueError(
            "`max_translate_abs` must not be passed together with image shapes, because it is in "
            "pixels; pass `max_translate_rel`"
        )
    if not use_shape and max_translate_rel is not None:
        raise ValueError(
            "`max_translate_rel` needs image shapes, because it is a fraction of the image's size; pass the shapes, "
            "or pass `max_translate_abs`"
        )
    if use_shape:
        height, width = _height_and_width(fraction if max_translate_rel is None else max_translate_rel)
        along_x, along_y = a.translate_x, a.translate_y
    else:
        height, width = _height_and_width(pixels if max_translate_abs is None else max_translate_abs)
        along_x, along_y = a.translate_x_no_shape, a.translate_y_no_shape
    return [along_x.augmentation((0, width)), along_y.augmentation((0, height))]


def _height_and_width(limit: Limit) -> tuple[float, float]:
    if isinstance(limit, Sequence):
        height, width = limit
        return height, width
    return limit, limit


def select_arguments(
    augmentations: Sequence[Augmentation], shape: Any, fill_value: Any, interp_type: Any
) -> dict[str, Any]:
    """Return a dictionary of the arguments that at least one augmentation accepts."""
    arguments = {"shape": shape, "fill_value": fill_value, "interp_type": interp_type}
    if shape is None:
        del arguments["shape"]
    names = {name for augmentation in augmentations for name in augmentation.arguments(arguments)[0]}
    return {name: value for name, value in arguments.items() if name in names}


def exclude(suite: Sequence[Augmentation], excluded: Collection[str] | None, name: str) -> list[Augmentation]:
    """Return a suite without the excluded augmentations.

    Raises:
        ValueError: the suite has no augmentation with an excluded name.
    """
    names = {augmentation.name for augmentation in suite}
    for unknown in excluded or ():
        if unknown not in names:
            raise ValueError(
                f"`excluded` must contain names of augmentations in the suite {name}, got {unknown!r}; the suite has "
                f"{', '.join(sorted(names))}"
            )
    return [augmentation for augmentation in suite if augmentation.name not in (excluded or ())]


def check_bins(num_magnitude_bins: Any) -> None:
    """Raise ValueError unless the number of bins is a positive integer."""
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ValueError(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}")
