"""Steps that reproduce torchvision's geometric transforms: resize, crop, pad and flip.

A step draws its random numbers from the sample's generator, with the same distributions as the transform. If the native
library is available, the step is added to the image's `ImageProgram`, and the library executes this program. Otherwise
the step calls torchvision's own function. A step's fields are the transform's parameters, so two steps with the same
effect are equal.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as F

from torchdali.codecs import pixel_steps
from torchdali.codecs._pillow import exceeds_pillow_limit
from torchdali.codecs.program import ImageProgram
from torchdali.rng import Rng

__all__ = [
    "CenterCropStep", "FlipStep", "Lattice", "NativePixelStep", "PadStep", "RandomCropStep", "RandomWindow",
    "ResizeStep", "Size", "Steps", "levels",
]  # fmt: skip

Size = tuple[int, int]
IndexArray = npt.NDArray[np.int64]
Window = tuple[int, int, int, int]
"""Top, left, height and width of a window, in pixels."""
Steps = tuple[bytes, Size]
"""Encoded pixel steps of the native library (see `pixel_steps`), and the image size after these steps."""


class Lattice(NamedTuple):
    """Rows and columns to select from each image of a batch of N images of the same size.

    A lattice can describe crops, flips and borders.

    Attributes:
        rows: Row indices ``(N, H)``, or ``(1, H)`` if all images have the same rows; -1 for rows outside the image.
        columns: Column indices ``(N, W)`` or ``(1, W)``; -1 for columns outside the image.
        fill: Value of pixels outside the image.
    """

    rows: IndexArray
    columns: IndexArray
    fill: Any = 0

    @classmethod
    def of(cls, height: int, width: int) -> Lattice:
        """Return the lattice that selects all pixels unchanged."""
        return cls(np.arange(height)[None], np.arange(width)[None])

    @property
    def size(self) -> Size:
        return self.rows.shape[1], self.columns.shape[1]

    def select(self, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the selected pixels of images ``(N, H, W, C)``."""
        count, height, width, channels = images.shape
        outside = (self.rows[:, :, None] < 0) | (self.columns[:, None, :] < 0)
        indices = self.rows[:, :, None] * width + self.columns[:, None, :]
        indices = np.where(outside, 0, indices) + (np.arange(count) * height * width)[:, None, None]
        selected: npt.NDArray[np.uint8] = images.reshape(-1, channels).take(indices, 0)
        if outside.any():
            selected[np.broadcast_to(outside, indices.shape)] = self.fill
        return selected

    def extend(self, left: int, top: int, right: int, bottom: int, mode: str = "constant", fill: Any = 0) -> Lattice:
        """Return a lattice that also adds borders to the images. A border of negative width crops the image.

        Args:
            left, top, right, bottom: Number of columns or rows to add at each side.
            mode: torchvision's padding mode, such as "reflect".
            fill: Value of the border's pixels, for the mode "constant".
        """
        rows, columns = _pad_indices(self.rows, top, bottom, mode), _pad_indices(self.columns, left, right, mode)
        return Lattice(rows, columns, fill if mode == "constant" else self.fill)

    def windows(self, tops: IndexArray, lefts: IndexArray, size: Size) -> Lattice:
        """Return a lattice that also crops a window of each image. `tops` and `lefts` have one value per image."""
        return self._replace(
            rows=_crop_indices(self.rows, tops, size[0]), columns=_crop_indices(self.columns, lefts, size[1])
        )


def _pad_indices(indices: IndexArray, before: int, after: int, mode: str) -> IndexArray:
    """Add borders before and after the indices of rows or columns, as torchvision pads NumPy arrays."""
    count = indices.shape[1]
    if mode == "constant":
        positions = np.arange(-before, count + after)
        inside = positions.clip(0, count - 1)
        return np.where(positions == inside, indices[:, inside], -1)
    inner = indices[:, max(-before, 0) : count - max(-after, 0)]
    extended: IndexArray = np.pad(inner, ((0, 0), (max(before, 0), max(after, 0))), mode)  # type: ignore[call-overload]
    return extended


def _crop_indices(indices: IndexArray, starts: IndexArray, extent: int) -> IndexArray:
    positions = starts[:, None] + np.arange(extent)
    return np.take_along_axis(np.broadcast_to(indices, (len(positions), indices.shape[1])), positions, 1)


def _to_integers(numbers: Any, high: int) -> IndexArray:
    """Convert random numbers to integers from 0 to `high`, both included, as `Rng.integer` does."""
    integers: IndexArray = (numbers * (high + 1)).astype(np.int64)
    return integers


# ---------------------------------------------------------------- steps


class FixedStep:
    """Base class of steps without random numbers."""

    is_random: ClassVar[bool] = False

    def draw(self, size: Size, rng: Rng) -> Any:
        """Return the size of the image. No random number is drawn."""
        return size


class NativePixelStep(ABC):
    """Base class of transforms that the native library runs as pixel steps.

    Pixel steps change the pixels after the crop and the resize of a program.
    """

    is_random: ClassVar[bool] = True

    @abstractmethod
    def encode(self, size: Size, drawn: Any) -> Steps | None:
        """Return the pixel steps, and the image size after them; None if the library doesn't support the transform."""

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        """Append the pixel steps to a program; None if the library doesn't support the transform."""
        return change_pixels(program, self.encode(program.size, drawn))


def change_pixels(program: ImageProgram, steps: Steps | None) -> ImageProgram | None:
    """Append pixel steps to a program.

    Return None if `steps` is None, or if the image has more pixels after the steps than Pillow allows.
    """
    if steps is None or exceeds_pillow_limit(*steps[1]):
        return None
    return program.change_pixels(*steps) if steps[0] else program


def _to_pil_image(planes: Tensor) -> Image.Image:
    image: Image.Image = F.to_pil_image(planes)
    return image


def levels(fill: Any) -> tuple[int, int, int]:
    """Convert one value, or one value per channel, to a color with three channels."""
    values = [int(value) for value in (fill if isinstance(fill, tuple) else (fill,))]
    return values[0], values[len(values) // 2], values[-1]


@dataclass(frozen=True)
class ResizeStep(FixedStep):
    """Resize an image like ``torchvision.transforms.Resize``.

    Attributes:
        size: Two values for the height and the width, or one value for the shorter side. None if only `max_size` is
            specified.
        max_size: Maximum length of the longer side; None for no maximum.
        interpolation: torchvision's interpolation mode.
        of_tensor: True for a transform of `transforms.v2` that gets a tensor. Then PyTorch resizes instead of Pillow.
    """

    size: tuple[int, ...] | None
    max_size: int | None
    interpolation: InterpolationMode
    of_tensor: bool = False

    def target(self, size: Size) -> Size:
        """Return the height and width to which an image of the height and width `size` is resized."""
        if self.size is not None and len(self.size) == 2:
            return self.size[0], self.size[1]
        short, long = sorted(size)
        new_short, new_long = short, long
        if self.size is not None:
            new_short, new_long = self.size[0], int(self.size[0] * long / short)
        if self.max_size is not None and (self.size is None or new_long > self.max_size):
            new_short, new_long = int(self.max_size * new_short / new_long), self.max_size
        return (new_long, new_short) if size[1] <= size[0] else (new_short, new_long)

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        target = *self.target(program.size), self.interpolation.value, self.of_tensor
        # If the program already has a resize, the second resize reads the result of the first resize.
        return program.resize(*target) or program.change_pixels(b"", program.size).resize(*target)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        size = None if self.size is None else list(self.size)
        if self.of_tensor:
            return _to_pil_image(v2.functional.resize(F.pil_to_tensor(image), size, self.interpolation, self.max_size))
        resized: Image.Image = F.resize(image, size, self.interpolation, self.max_size)
        return resized


@dataclass(frozen=True)
class CenterCropStep(FixedStep):
    """Crop the center of an image like ``torchvision.transforms.CenterCrop``; pixels outside the image are black."""

    size: Size

    def _corner(self, size: Size) -> Size:
        margins = [extent - target for extent, target in zip(size, self.size, strict=True)]
        top, left = (round(margin / 2.0) if margin >= 0 else -(-margin // 2) for margin in margins)
        return top, left

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        corner = self._corner(program.size)
        window = pixel_steps.window(*corner, self.size, "constant", (0, 0, 0))
        return program.crop(*corner, *self.size) or change_pixels(program, (window, self.size))

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Crop the center of all images of a lattice."""
        height, width = lattice.size
        top, left = self._corner((height, width))
        return lattice.extend(-left, -top, left + self.size[1] - width, top + self.size[0] - height)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        cropped: Image.Image = F.center_crop(image, list(self.size))
        return cropped


@dataclass(frozen=True)
class PadStep(FixedStep):
    """Pad an image like ``torchvision.transforms.Pad``.

    Attributes:
        padding: Widths of the left, top, right and bottom border; a negative width crops.
        fill: Color of the borders, for the mode "constant".
        mode: torchvision's padding mode.
        of_tensor: True if the transform gets a tensor. For tensors, torchvision raises an error if a reflected border
            is wider than the image.
    """

    padding: tuple[int, int, int, int]
    fill: Any
    mode: str
    of_tensor: bool = False

    def size(self, size: Size) -> Size:
        """Return the height and width of the padded image."""
        left, top, right, bottom = self.padding
        return size[0] + top + bottom, size[1] + left + right

    def is_supported(self, size: Size) -> bool:
        """Return True if at least one pixel remains, and no reflected border is wider than the image."""
        left, top, right, bottom = self.padding
        if self.mode == "constant":
            return min(self.size(size)) > 0
        axes = ((size[0], top, bottom), (size[1], left, right))
        extents = [count + min(before, 0) + min(after, 0) for count, before, after in axes]
        limits = [extent - (self.mode == "reflect") if self.mode != "edge" else math.inf for extent in extents]
        return min(extents) > 0 and max(top, bottom) <= limits[0] and max(left, right) <= limits[1]

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        """Append the padding to a program.

        Return None if torchvision would raise an error, or would reflect the image more than once.
        """
        if not any(self.padding):
            return program
        if not self.is_supported(program.size):
            return None
        (left, top, _, _), size = self.padding, self.size(program.size)
        return change_pixels(program, (pixel_steps.window(-top, -left, size, self.mode, levels(self.fill)), size))

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        height, width = lattice.size
        if not self.is_supported((height, width)):
            self.apply(Image.new("L", (width, height)), None)  # raises torchvision's error
        return lattice.extend(*self.padding, self.mode, self.fill)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        if not any(self.padding):
            return image
        arguments = list(self.padding), self.fill, self.mode
        if self.of_tensor:
            return _to_pil_image(F.pad(F.pil_to_tensor(image), *arguments))
        padded: Image.Image = F.pad(image, *arguments)
        return padded


@dataclass(frozen=True)
class RandomCropStep:
    """Pad an image and crop a window at a random position, like ``torchvision.transforms.RandomCrop``.

    Attributes:
        size: Height and width of the window.
        pad: The padding before the crop.
        pad_if_needed: True to add more padding if the padded image is smaller than the window.
    """

    size: Size
    pad: PadStep
    pad_if_needed: bool
    is_random: ClassVar[bool] = True

    def draw(self, size: Size, rng: Rng) -> tuple[PadStep, Window]:
        """Return the padding, and a random window of the padded image."""
        pad = self._pad(size)
        height, width = pad.size(size)
        return pad, (rng.integer(0, height - self.size[0]), rng.integer(0, width - self.size[1]), *self.size)

    def _pad(self, size: Size) -> PadStep:
        """Return the padding of an image.

        Raises:
            ValueError: the image is too small.
        """
        left, top, right, bottom = self.pad.padding
        height, width = self.pad.size(size)
        y, x = (max(self.size[0] - height, 0), max(self.size[1] - width, 0)) if self.pad_if_needed else (0, 0)
        if height + 2 * y < self.size[0] or width + 2 * x < self.size[1]:
            raise ValueError(f"Required crop size {self.size} is larger than input image size {(height, width)}")
        return replace(self.pad, padding=(left + x, top + y, right + x, bottom + y)) if x or y else self.pad

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Crop a random window from every image of a lattice."""
        padded = self._pad(lattice.size).move(lattice, numbers)
        height, width = padded.size
        tops, lefts = (
            _to_integers(numbers[:, 0], height - self.size[0]),
            _to_integers(numbers[:, 1], width - self.size[1]),
        )
        return padded.windows(tops, lefts, self.size)

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        """Append the padding and the crop to a program.

        Return None if torchvision would raise an error, or would reflect the image more than once.
        """
        pad, window = drawn
        left, top, _, _ = pad.padding
        if not pad.is_supported(program.size):
            return None
        corner = window[0] - top, window[1] - left
        steps = pixel_steps.window(*corner, self.size, pad.mode, levels(pad.fill))
        return program.crop(*corner, *self.size) or change_pixels(program, (steps, self.size))

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        pad, window = drawn
        cropped: Image.Image = F.crop(pad.apply(image, None), *window)
        return cropped


@dataclass(frozen=True)
class RandomWindow:
    """Crop a window of random area and aspect ratio, like torchvision's ``RandomResizedCrop`` before its resize.

    Attributes:
        scale: Minimum and maximum area of the window, as fractions of the image's area.
        ratio: Minimum and maximum ratio of the window's width to its height.
    """

    scale: tuple[float, float]
    ratio: tuple[float, float]
    is_random: ClassVar[bool] = True

    def draw(self, size: Size, rng: Rng) -> Window:
        height, width = size
        low, high = (math.log(bound) for bound in self.ratio)
        for _ in range(10):
            area = height * width * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(low, high))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return rng.integer(0, height - h), rng.integer(0, width - w), h, w
        image_ratio = width / height
        w = round(height * max(self.ratio)) if image_ratio > max(self.ratio) else width
        h = round(width / min(self.ratio)) if image_ratio < min(self.ratio) else height
        return (height - h) // 2, (width - w) // 2, h, w

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        return program.crop(*drawn)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        cropped: Image.Image = F.crop(image, *drawn)
        return cropped


@dataclass(frozen=True)
class FlipStep:
    """Flip an image horizontally or vertically with probability `p`."""

    p: float
    vertical: bool = False
    is_random: ClassVar[bool] = True

    def draw(self, size: Size, rng: Rng) -> bool:
        return rng.random() < self.p

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        return program.flip(not self.vertical, self.vertical) if drawn else program

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Flip each image of a lattice with probability `p`."""
        chosen, indices = (numbers[:, 0] < self.p)[:, None], lattice.rows if self.vertical else lattice.columns
        indices = np.where(chosen, indices[:, ::-1], indices)
        return lattice._replace(rows=indices) if self.vertical else lattice._replace(columns=indices)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        flipped: Image.Image = (F.vflip if self.vertical else F.hflip)(image) if drawn else image
        return flipped
