"""`AutoAugment`, `RandAugment` and `TrivialAugmentWide` as steps; see `_picture_steps`.

Magnitudes and policies are asked of torchvision's own classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PIL import Image
from torchvision import transforms
from torchvision.transforms import v2
from torchvision.transforms.autoaugment import _apply_op

from torchdali.codecs import pixel_steps
from torchdali.ops._picture_bends import Affine, Bent, affine
from torchdali.ops._picture_colors import Change, encoded
from torchdali.ops._picture_steps import OfPixels, Size, Steps, levels
from torchdali.rng import Rng

__all__ = ["AutoAugment", "RandAugment", "Space", "TrivialAugment"]

_COLORS = {
    "AutoContrast": "autocontrast", "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast",
    "Equalize": "equalize", "Invert": "invert", "Posterize": "posterize", "Sharpness": "sharpness",
    "Solarize": "solarize",
}  # fmt: skip
_ENHANCED = ("brightness", "saturation", "contrast", "sharpness")


@dataclass(frozen=True)
class Space:
    """The operations of a class, and their magnitudes.

    Attributes:
        name: Of the class.
        is_v2: It is that of `transforms.v2`.
        bins: Magnitudes of each operation.
    """

    name: str
    is_v2: bool
    bins: int

    @property
    def names(self) -> tuple[str, ...]:
        """The operations."""
        return _names(self)

    def change(self, name: str, number: int | None, size: Size, negative: float | None) -> Change:
        """Return an operation with a magnitude.

        Args:
            number: Of the magnitude; None for none.
            negative: True if the sign is to be turned, of what has one.
        """
        magnitudes, is_signed = self.magnitudes(name, size)
        value = magnitudes[number] if magnitudes and number is not None else 0.0
        return name, -value if is_signed and negative else value

    def magnitudes(self, name: str, size: Size) -> tuple[tuple[float, ...], bool]:
        """Return the magnitudes of an operation, some of which depend on the picture, and whether it has a sign."""
        extent = (1, size[1]) if name == "TranslateX" else (size[0], 1) if name == "TranslateY" else (1, 1)
        return _magnitudes(self, name, extent)


@lru_cache(maxsize=64)
def _names(space: Space) -> tuple[str, ...]:
    if space.is_v2:
        return tuple(getattr(v2, space.name)._AUGMENTATION_SPACE)
    return tuple(_of_v1(space, (1, 1)))


@lru_cache(maxsize=4096)
def _magnitudes(space: Space, name: str, size: Size) -> tuple[tuple[float, ...], bool]:
    if not space.is_v2:
        values, is_signed = _of_v1(space, size)[name]
        return tuple(values.tolist()) if values.ndim else (), is_signed
    function, is_signed = getattr(v2, space.name)._AUGMENTATION_SPACE[name]
    values = function(space.bins, *size)
    scale = 255.0 if name == "Solarize" else 1.0
    return () if values is None else tuple(scale * float(value) for value in values), is_signed


def _of_v1(space: Space, size: Size) -> dict[str, Any]:
    sizes = () if space.name == "TrivialAugmentWide" else (size,)
    ranges: dict[str, Any] = getattr(transforms, space.name)()._augmentation_space(space.bins, *sizes)
    return ranges


class _Policy(OfPixels):
    """A step whose numbers are operations of a `Space`, each with its magnitude."""

    bent: Bent

    def encode(self, size: Size, drawn: Sequence[Change]) -> Steps:
        """Return the operations."""
        return b"".join(_encoded(size, name, magnitude, self.bent) for name, magnitude in drawn), size

    def apply(self, image: Image.Image, drawn: Sequence[Change]) -> Image.Image:
        """Do the operations on an image."""
        for name, magnitude in drawn:
            image = _apply_op(image, name, magnitude, *self.bent)
        return image


def _encoded(size: Size, name: str, magnitude: float, bent: Bent) -> bytes:
    if name == "Identity":
        return b""
    if name == "Rotate":
        return pixel_steps.rotation(size, magnitude, False, None, bent.interpolation.value, levels(bent.fill))[0]
    if name in _COLORS:
        name = _COLORS[name]
        return encoded([(name, 1.0 + magnitude if name in _ENHANCED else magnitude)])
    if name.startswith("Translate"):
        x, y = (int(magnitude), 0) if name == "TranslateX" else (0, int(magnitude))
        return affine(size, Affine(0.0, (x, y), 1.0, (0.0, 0.0)), None, bent)
    degrees = math.degrees(math.atan(magnitude))
    shear = (degrees, 0.0) if name == "ShearX" else (0.0, degrees)
    return affine(size, Affine(0.0, (0, 0), 1.0, shear), (0, 0), bent)


@dataclass(frozen=True)
class RandAugment(_Policy):
    """Do several operations of one magnitude."""

    space: Space
    count: int
    magnitude: int
    bent: Bent

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        """Return the operations."""
        names = self.space.names
        return [
            self.space.change(names[rng.integer(0, len(names) - 1)], self.magnitude, size, rng.random() < 0.5)
            for _ in range(self.count)
        ]


@dataclass(frozen=True)
class TrivialAugment(_Policy):
    """Do one operation of any magnitude."""

    space: Space
    bent: Bent

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        """Return the operation."""
        names = self.space.names
        name, number = names[rng.integer(0, len(names) - 1)], rng.integer(0, self.space.bins - 1)
        return [self.space.change(name, number, size, rng.random() < 0.5)]


@dataclass(frozen=True)
class AutoAugment(_Policy):
    """Do the two operations of a policy, each with its probability.

    Attributes:
        policies: To choose from: names, probabilities and numbers of magnitudes.
    """

    space: Space
    policies: tuple[tuple[tuple[str, float, int | None], ...], ...]
    bent: Bent

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        """Return the operations."""
        policy = self.policies[rng.integer(0, len(self.policies) - 1)]
        drawn = [(each, rng.random(), rng.random() < 0.5) for each in policy]
        return [self.space.change(name, number, size, negative)
                for (name, p, number), value, negative in drawn if value <= p]  # fmt: skip
