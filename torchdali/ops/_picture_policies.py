"""Steps that reproduce torchvision's `AutoAugment`, `RandAugment` and `TrivialAugmentWide`; see `_picture_steps`.

The operations, magnitudes and policies are read from the transform object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PIL import Image
from torch import Tensor
from torchvision.transforms.autoaugment import _apply_op

from torchdali.codecs import pixel_steps
from torchdali.ops._picture_bends import AffineParams, GeometricOptions, affine, apply_affine
from torchdali.ops._picture_colors import Operation, encode_operations
from torchdali.ops._picture_steps import NativePixelStep, Size, Steps, levels
from torchdali.rng import Rng

__all__ = ["AutoAugment", "RandAugment", "Space", "TrivialAugment"]

_COLORS = {
    "AutoContrast": "autocontrast", "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast",
    "Equalize": "equalize", "Invert": "invert", "Posterize": "posterize", "Sharpness": "sharpness",
    "Solarize": "solarize",
}  # fmt: skip
_GEOMETRIC = ("Identity", "Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY")
_ENHANCED = ("brightness", "saturation", "contrast", "sharpness")


@dataclass(frozen=True)
class Space:
    """The operations of a transform, and their magnitudes.

    Attributes:
        table: For a v2 transform, each operation's name, the function that computes the operation's magnitudes, and
            True if the magnitudes get a random sign. For a v1 transform, the function that returns all operations.
        bins: Number of magnitudes of each operation.
        has_size: True if the v1 function has a parameter for the image size.
    """

    table: Any
    bins: int
    has_size: bool = False

    @classmethod
    def of(cls, t: Any, is_v2: bool) -> Space:
        """Read the operations of a transform.

        Raises:
            ValueError: an operation or its function isn't part of torchvision, or the magnitudes are unsupported.
        """
        bins = getattr(t, "num_magnitude_bins", 10)
        if is_v2:
            table: Any = tuple((name, *row) for name, row in t._AUGMENTATION_SPACE.items())
            functions = [function for _, function, _ in table]
        else:
            functions = [table := getattr(t._augmentation_space, "__func__", None)]
        if type(bins) is not int or bins > 1000 or not all(map(_is_from_torchvision, functions)):
            raise ValueError("the operations must be torchvision's own functions with at most 1000 magnitudes")
        space = cls(table, bins, type(t).__name__ != "TrivialAugmentWide")
        space._check()
        return space

    def _check(self) -> None:
        if not self.names:
            raise ValueError("the policy must have at least one operation")
        for name in self.names:
            magnitudes, _ = self.magnitudes(name, (1, 1))
            if (name not in _COLORS and name not in _GEOMETRIC) or not all(map(math.isfinite, magnitudes)):
                raise ValueError(f"unknown operation {name!r}")
            if name == "Posterize" and not all(1 <= bits <= 8 for bits in magnitudes):
                raise ValueError(f"Posterize must keep 1 to 8 bits, got {magnitudes}")

    def index(self, magnitude: int) -> int:
        """Return `magnitude`, which is the index of a magnitude. Raise ValueError if no magnitude has this index."""
        if not -self.bins <= magnitude < self.bins:
            raise ValueError(f"magnitude must be below {self.bins}, got {magnitude}")
        return magnitude

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_magnitude_table(self, (1, 1)))

    def operation(self, name: str, number: int | None, size: Size, negative: float | None) -> Operation:
        """Return an operation with a magnitude.

        Args:
            number: Index of the magnitude; None for an operation without a magnitude.
            size: Height and width of the image.
            negative: The random sign: True to negate the magnitude. Operations without a sign ignore this argument.
        """
        magnitudes, is_signed = self.magnitudes(name, size)
        value = magnitudes[number] if magnitudes and number is not None else 0.0
        return name, -value if is_signed and negative else value

    def magnitudes(self, name: str, size: Size) -> tuple[tuple[float, ...], bool]:
        """Return the magnitudes of an operation for an image size, and whether the magnitudes get a random sign."""
        extent = (1, size[1]) if name == "TranslateX" else (size[0], 1) if name == "TranslateY" else (1, 1)
        return _magnitude_table(self, extent)[name]


def _is_from_torchvision(function: Any) -> bool:
    """Return True if torchvision defines a function, even if `functools.wraps` changed its ``__module__``."""
    return str(getattr(function, "__globals__", {}).get("__name__")).startswith("torchvision.")


@lru_cache(maxsize=4096)
def _magnitude_table(space: Space, size: Size) -> dict[str, tuple[tuple[float, ...], bool]]:
    """Return the magnitudes of each operation, and whether the magnitudes get a random sign."""
    if isinstance(space.table, tuple):
        rows = {name: (function(space.bins, *size), sign) for name, function, sign in space.table}
    else:
        rows = space.table(None, space.bins, *((size,) if space.has_size else ()))
    scales = {"Solarize": 255.0} if isinstance(space.table, tuple) else {}
    return {
        name: (() if values is None or values.ndim == 0 else _scale_values(values, scales.get(name, 1.0)), bool(sign))
        for name, (values, sign) in rows.items()
    }


def _scale_values(values: Tensor, scale: float) -> tuple[float, ...]:
    return tuple(scale * value for value in values.tolist())


class _PolicyStep(NativePixelStep):
    """Base class of steps that apply random operations of a `Space`."""

    options: GeometricOptions

    def encode(self, size: Size, drawn: Sequence[Operation]) -> Steps:
        return b"".join(_encode_policy(size, name, magnitude, self.options) for name, magnitude in drawn), size

    def apply(self, image: Image.Image, drawn: Sequence[Operation]) -> Image.Image:
        for name, magnitude in drawn:
            affine_arguments = _as_affine(name, magnitude)
            if affine_arguments is None:
                image = _apply_op(image, name, magnitude, self.options.interpolation, self.options.fill)
            else:
                image = apply_affine(image, *affine_arguments, self.options)
        return image


def _encode_policy(size: Size, name: str, magnitude: float, options: GeometricOptions) -> bytes:
    if name == "Identity":
        return b""
    if name == "Rotate":
        return pixel_steps.rotation(size, magnitude, False, None, options.interpolation.value, levels(options.fill))[0]
    if name in _COLORS:
        name = _COLORS[name]
        return encode_operations([(name, 1.0 + magnitude if name in _ENHANCED else magnitude)])
    affine_arguments = _as_affine(name, magnitude)
    assert affine_arguments is not None
    return affine(size, *affine_arguments, options)


def _as_affine(name: str, magnitude: float) -> tuple[AffineParams, tuple[int, int] | None] | None:
    """Convert a translation or a shear to an affine transformation and the transformation's center.

    Return None if the operation is neither a translation nor a shear.
    """
    if name.startswith("Translate"):
        x, y = (int(magnitude), 0) if name == "TranslateX" else (0, int(magnitude))
        return AffineParams(0.0, (x, y), 1.0, (0.0, 0.0)), None
    if name.startswith("Shear"):
        degrees = math.degrees(math.atan(magnitude))
        return AffineParams(0.0, (0, 0), 1.0, (degrees, 0.0) if name == "ShearX" else (0.0, degrees)), (0, 0)
    return None


@dataclass(frozen=True)
class RandAugment(_PolicyStep):
    """Apply several random operations with a fixed magnitude."""

    space: Space
    count: int
    magnitude: int
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        names = self.space.names
        return [
            self.space.operation(names[rng.integer(0, len(names) - 1)], self.magnitude, size, rng.random() < 0.5)
            for _ in range(self.count)
        ]


@dataclass(frozen=True)
class TrivialAugment(_PolicyStep):
    """Apply one random operation with a random magnitude."""

    space: Space
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        names = self.space.names
        name, number = names[rng.integer(0, len(names) - 1)], rng.integer(0, self.space.bins - 1)
        return [self.space.operation(name, number, size, rng.random() < 0.5)]


@dataclass(frozen=True)
class AutoAugment(_PolicyStep):
    """Apply the two operations of a randomly chosen policy, each with its own probability.

    Attributes:
        space: The operations and their magnitudes.
        policies: The policies. Each operation of a policy has a name, a probability and the index of its magnitude.
        options: Interpolation and fill color of geometric operations.
    """

    space: Space
    policies: tuple[tuple[tuple[str, float, int | None], ...], ...]
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        policy = self.policies[rng.integer(0, len(self.policies) - 1)]
        drawn = [(operation, rng.random(), rng.random() < 0.5) for operation in policy]
        return [self.space.operation(name, number, size, negative)
                for (name, p, number), value, negative in drawn if value <= p]  # fmt: skip
