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
from torchdali.ops._picture_steps import OfPixels, Size, Steps
from torchdali.rng import Rng

__all__ = ["Blur", "Channels", "Color", "ColorJitterStep", "Colors", "Distortion", "Fill"]

Change = tuple[str, float]
"""Name of an operation, and its parameter: a factor, a number of bits, or a threshold."""


def _apply(image: Image.Image, name: str, value: float) -> Image.Image:
    changed: Image.Image = _FUNCTIONS[name](image, value)
    return changed


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


def encode_operations(changes: Sequence[Change]) -> bytes:
    """Encode color operations as pixel steps of the native library."""
    return b"".join(_encode_colors(name, value) for name, value in changes)


def _encode_colors(name: str, value: float) -> bytes:
    if name == "rgb":  # no-op: the library always uses three channels
        return b""
    if name == "hue":
        value = int(value * 255) & 255
    return pixel_steps.plain(name, value)


class Colors(OfPixels):
    """Base class of steps that apply a sequence of color operations to all pixels of an image."""

    def encode(self, size: Size, drawn: Sequence[Change]) -> Steps:
        return encode_operations(drawn), size

    def apply(self, image: Image.Image, drawn: Sequence[Change]) -> Image.Image:
        for name, value in drawn:
            image = _apply(image, name, value)
        return image


@dataclass(frozen=True)
class Color(Colors):
    """Apply one fixed operation."""

    name: str
    value: float = 0
    is_random: ClassVar[bool] = False

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        return ((self.name, self.value),)


_ORDERS = list(itertools.permutations(range(4)))

Ranges = tuple[tuple[float, float] | None, ...]
"""Ranges of the factors of brightness, contrast, saturation and hue; None for a property that isn't changed."""
_NAMES = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class ColorJitterStep(Colors):
    """Change brightness, contrast, saturation and hue by random factors, in a random order."""

    ranges: Ranges

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        order = _ORDERS[int(rng.random() * len(_ORDERS))]
        factors = [None if each is None else rng.uniform(*each) for each in self.ranges]
        return [(_NAMES[k], factor) for k in order if (factor := factors[k]) is not None]


@dataclass(frozen=True)
class Distortion(Colors):
    """Apply each color change with probability `p`. Contrast is randomly the second or the last change."""

    ranges: Ranges
    p: float

    def draw(self, size: Size, rng: Rng) -> Sequence[Change]:
        drawn = [(name, rng.uniform(*each)) if rng.random() < self.p else None
                 for name, each in zip(_NAMES, self.ranges, strict=True) if each is not None]  # fmt: skip
        if rng.random() >= 0.5:
            drawn.append(drawn.pop(1))
        return [each for each in drawn if each is not None]


@dataclass(frozen=True)
class Channels(OfPixels):
    """Permute the three channels at random."""

    def draw(self, size: Size, rng: Rng) -> tuple[int, ...]:
        """Choose a random permutation, and return the input channel of each output channel."""
        return _PLACES[int(rng.random() * len(_PLACES))]

    def encode(self, size: Size, drawn: Any) -> Steps:
        return pixel_steps.channels(drawn), size

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        return Image.fromarray(np.asarray(image)[:, :, list(drawn)])


_PLACES = list(itertools.permutations(range(3)))


@dataclass(frozen=True)
class Blur(OfPixels):
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
class Fill(OfPixels):
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
