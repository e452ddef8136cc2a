"""Steps that change colors, blur an image, or fill a rectangle, as torchvision does; see `_picture_steps`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from PIL import Image
from torchvision.transforms import functional as F

from torchdali.codecs import pixel_steps
from torchdali.ops._picture_steps import NativePixelStep, Size, Steps
from torchdali.rng import Rng

__all__ = [
    "Blur",
    "ChannelPermutation",
    "ColorAdjustment",
    "ColorJitterStep",
    "ColorOperations",
    "Distortion",
    "RectangleFill",
]

Operation = tuple[str, float]
"""Name of an operation, and its parameter: a factor, a number of bits, or a threshold."""


def _apply_operation(image: Image.Image, name: str, value: float) -> Image.Image:
    result: Image.Image = _FUNCTIONS[name](image, value)
    return result


_FUNCTIONS: dict[str, Callable[[Image.Image, Any], Any]] = {
    "autocontrast": lambda image, value: F.autocontrast(image),
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "equalize": lambda image, value: F.equalize(image),
    "gray": F.to_grayscale,
    "hue": F.adjust_hue,
    "invert": lambda image, value: F.invert(image),
    "posterize": F.posterize,
    "rgb": lambda image, value: image.convert("RGB"),
    "saturation": F.adjust_saturation,
    "sharpness": F.adjust_sharpness,
    "solarize": F.solarize,
}


def encode_operations(operations: Sequence[Operation]) -> bytes:
    """Encode color operations as pixel steps of the native library."""
    return b"".join(_encode_operation(name, value) for name, value in operations)


def _encode_operation(name: str, value: float) -> bytes:
    if name == "rgb":  # no-op: the library always uses three channels
        return b""
    if name == "hue":
        value = int(value * 255) & 255
    return pixel_steps.plain(name, value)


class ColorOperations(NativePixelStep):
    """Base class of steps that apply a sequence of color operations to all pixels of an image."""

    def encode(self, size: Size, drawn: Sequence[Operation]) -> Steps:
        return encode_operations(drawn), size

    def apply(self, image: Image.Image, drawn: Sequence[Operation]) -> Image.Image:
        for name, value in drawn:
            image = _apply_operation(image, name, value)
        return image


@dataclass(frozen=True)
class ColorAdjustment(ColorOperations):
    """Apply one fixed operation."""

    name: str
    value: float = 0
    is_random: ClassVar[bool] = False

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        return ((self.name, self.value),)


_ORDERS = list(itertools.permutations(range(4)))

Ranges = tuple[tuple[float, float] | None, ...]
"""Ranges of the factors of brightness, contrast, saturation and hue; None for a property that isn't changed."""
_NAMES = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class ColorJitterStep(ColorOperations):
    """Change brightness, contrast, saturation and hue by random factors, in a random order."""

    ranges: Ranges

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        order = _ORDERS[int(rng.random() * len(_ORDERS))]
        factors = [None if bounds is None else rng.uniform(*bounds) for bounds in self.ranges]
        return [(_NAMES[k], factor) for k in order if (factor := factors[k]) is not None]


@dataclass(frozen=True)
class Distortion(ColorOperations):
    """Apply each color change with probability `p`. Contrast is randomly the second or the last change."""

    ranges: Ranges
    p: float

    def draw(self, size: Size, rng: Rng) -> Sequence[Operation]:
        drawn = [(name, rng.uniform(*item)) if rng.random() < self.p else None
                 for name, item in zip(_NAMES, self.ranges, strict=True) if item is not None]  # fmt: skip
        if rng.random() >= 0.5:
            drawn.append(drawn.pop(1))
        return [item for item in drawn if item is not None]


@dataclass(frozen=True)
class ChannelPermutation(NativePixelStep):
    """Permute the three channels at random."""

    def draw(self, size: Size, rng: Rng) -> tuple[int, ...]:
        """Choose a random permutation, and return the input channel of each output channel."""
        return _PERMUTATIONS[int(rng.random() * len(_PERMUTATIONS))]

    def encode(self, size: Size, drawn: Any) -> Steps:
        return pixel_steps.channels(drawn), size

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        return Image.fromarray(np.asarray(image)[:, :, list(drawn)])


_PERMUTATIONS = list(itertools.permutations(range(3)))


@dataclass(frozen=True)
class Blur(NativePixelStep):
    """Blur with a Gaussian filter of a random standard deviation.

    Attributes:
        window: Width and height of the filter's window.
        sigma: Minimum and maximum standard deviation.
    """

    window: Size
    sigma: tuple[float, float]

    def draw(self, size: Size, rng: Rng) -> float:
        return rng.uniform(*self.sigma)

    def encode(self, size: Size, drawn: float) -> Steps | None:
        """Encode the blur. Return None if the image is so small that torchvision can't reflect its border."""
        width, height = self.window
        if height // 2 >= size[0] or width // 2 >= size[1]:
            return None
        return pixel_steps.blur((height, width), (drawn, drawn)), size

    def apply(self, image: Image.Image, drawn: float) -> Image.Image:
        blurred: Image.Image = F.gaussian_blur(image, list(self.window), [drawn, drawn])
        return blurred


@dataclass(frozen=True)
class RectangleFill(NativePixelStep):
    """Fill a random rectangle with a color; see `_picture_erasing.Rectangle`."""

    rectangle: Any
    color: tuple[int, int, int]

    def draw(self, size: Size, rng: Rng) -> Any:
        """Choose a random rectangle: top, left, height and width. Return None if no rectangle is filled."""
        return self.rectangle.draw(size, rng)

    def encode(self, size: Size, drawn: Any) -> Steps:
        return b"" if drawn is None else pixel_steps.filling(drawn[0], drawn[1], drawn[2:], self.color), size

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        if drawn is None:
            return image
        top, left, height, width = drawn
        pixels = np.array(image)
        pixels[top : top + height, left : left + width] = self.color if pixels.ndim == 3 else self.color[0]
        return Image.fromarray(pixels)
