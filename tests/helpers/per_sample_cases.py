"""Operators with an argument that is one number for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["NUMBERS", "Case", "images"]


class Case(NamedTuple):
    """An operator on images and one of its arguments.

    Attributes:
        call: ``call(fn, image, argument)``.
        values: Values of the argument, one per sample.
    """

    call: Callable[[Any, Any, Any], Any]
    argument: str
    values: list[Any]


NUMBERS = {
    "flip": Case(lambda fn, x, v: fn.flip(x, horizontal=v), "horizontal", [0, 1, 0, 1]),
    "crop_mirror_normalize": Case(
        lambda fn, x, v: fn.crop_mirror_normalize(x, mirror=v, std=[2.0]), "mirror", [0, 1, 0, 1]
    ),
    "crop": Case(lambda fn, x, v: fn.crop(x, crop=[2, 2], crop_pos_x=v), "crop_pos_x", [0.0, 0.3, 0.7, 1.0]),
    "crop, size": Case(lambda fn, x, v: fn.crop(x, crop_w=v, crop_h=2), "crop_w", [1.0, 2.0, 3.0, 4.0]),
    "resize": Case(lambda fn, x, v: fn.resize(x, resize_x=v), "resize_x", [2.0, 3.0, 4.0, 9.0]),
    "brightness": Case(lambda fn, x, v: fn.brightness(x, brightness=v), "brightness", [0.5, 1.0, 1.5, 2.0]),
    "contrast": Case(lambda fn, x, v: fn.contrast(x, contrast=v), "contrast", [0.5, 1.0, 1.5, 2.0]),
    "hsv": Case(lambda fn, x, v: fn.hsv(x, hue=v), "hue", [0.0, 10.0, 20.0, 30.0]),
    "color_twist": Case(lambda fn, x, v: fn.color_twist(x, saturation=v), "saturation", [0.0, 0.5, 1.0, 2.0]),
    "rotate": Case(lambda fn, x, v: fn.rotate(x, angle=v, interp_type=0), "angle", [0.0, 90.0, 180.0, 270.0]),
    "coin_flip": Case(lambda fn, x, v: fn.random.coin_flip(probability=v, seed=3), "probability", [0.0, 1.0, 0.0, 1.0]),
}


def images() -> np.ndarray:
    """Return a batch of four images."""
    return np.arange(4 * 4 * 6 * 3, dtype=np.uint8).reshape(4, 4, 6, 3)
