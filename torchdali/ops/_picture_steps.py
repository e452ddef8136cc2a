"""Transforms of torchvision that move pixels, as steps on a picture.

A step draws its numbers as the transform does, from the random numbers of the sample; says which part of the picture it
wants, or what the library is to do with the pixels; and calls torchvision's own function if there is no library. Its
fields are those of the transform, so that two steps are equal if they do the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from torchdali.codecs import pixel_steps
from torchdali.codecs.views import View
from torchdali.rng import Rng

__all__ = [
    "CenterCrop", "Flip", "Lattice", "Movement", "OfPixels", "Pad", "RandomCrop", "RandomWindow", "Resize", "Size",
    "Steps", "levels",
]  # fmt: skip

Size = tuple[int, int]
Places = npt.NDArray[np.int64]
Window = tuple[int, int, int, int]
"""Top, left, height and width."""
Steps = tuple[bytes, Size]
"""Of the library on pixels, and the size behind them."""


class Lattice(NamedTuple):
    """Pixels of many pictures of one size, chosen by row and by column.

    Attributes:
        rows, columns: ``(N, H)`` and ``(N, W)``; -1 for what lies outside. ``(1, ...)`` if all pictures have the same.
        fill: Of pixels outside.
    """

    rows: Places
    columns: Places
    fill: Any = 0

    @classmethod
    def of(cls, height: int, width: int) -> Lattice:
        """Return all pixels in their places."""
        return cls(np.arange(height)[None], np.arange(width)[None])

    def select(self, pictures: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the pixels of pictures ``(N, H, W, C)``."""
        count, height, width, channels = pictures.shape
        outside = (self.rows[:, :, None] < 0) | (self.columns[:, None, :] < 0)
        places = self.rows[:, :, None] * width + self.columns[:, None, :]
        places = np.where(outside, 0, places) + (np.arange(count) * height * width)[:, None, None]
        selected: npt.NDArray[np.uint8] = pictures.reshape(-1, channels).take(places, 0)
        if outside.any():
            selected[np.broadcast_to(outside, places.shape)] = self.fill
        return selected

    def window(self, top: Any, left: Any, size: Size, mode: str = "constant", fill: Any = 0) -> Lattice:
        """Return a window of each picture, which may reach outside.

        Args:
            top, left: A number for all pictures, or an array of one for each.
            mode: Of what lies outside, by torchvision's name.
        """
        rows, columns = _cut(self.rows, top, size[0], mode), _cut(self.columns, left, size[1], mode)
        return Lattice(rows, columns, fill if mode == "constant" else self.fill)


def _cut(places: Places, start: Any, extent: int, mode: str) -> Places:
    count = places.shape[1]
    line = np.asarray(start, np.int64).reshape(-1, 1) + np.arange(extent)
    if mode == "reflect":
        line = count - 1 - np.abs(count - 1 - np.abs(line))
    elif mode == "symmetric":
        line = np.where(line < 0, -1 - line, line)
        line = np.where(line >= count, 2 * count - 1 - line, line)
    inside = line.clip(0, count - 1)
    result = np.take_along_axis(np.broadcast_to(places, (len(line), count)), inside, 1) if len(places) == 1 else (
        np.take_along_axis(places, np.broadcast_to(inside, (len(places), extent)), 1)
    )  # fmt: skip
    return np.where(line == inside, result, -1) if mode == "constant" else result


class Movement(Protocol):
    """A step that only moves pixels, to places that do not depend on them."""

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Do for many pictures what the step does for one.

        Args:
            numbers: Four random ones of each picture.
        """
        ...


def _integers(numbers: Any, high: int) -> Places:
    """Return whole numbers from 0 to `high`, both included, as `Rng.integer` does."""
    whole: Places = (numbers * (high + 1)).astype(np.int64)
    return whole


# ---------------------------------------------------------------- steps


class Fixed:
    """A step without random numbers."""

    is_random: ClassVar[bool] = False

    def draw(self, size: Size, rng: Rng) -> Any:
        """Return the size of the picture."""
        return size


class OfView:
    """A step that only says which pixels are wanted."""

    is_native = True
    is_random: ClassVar[bool] = True

    def encode(self, size: Size, drawn: Any) -> None:
        """Return None: there are no steps on pixels."""


class OfPixels:
    """A step on pixels."""

    is_native = True
    is_random: ClassVar[bool] = True

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return None: pixels are needed."""
        return None


def levels(fill: Any) -> tuple[int, int, int]:
    """Return the color of borders, of one value or one for each channel."""
    values = [int(value) for value in (fill if isinstance(fill, tuple) else (fill,))]
    return values[0], values[len(values) // 2], values[-1]


@dataclass(frozen=True)
class Resize(Fixed, OfView):
    """Resize to a height and width, or the shorter side to a length; the longer is at most ``max_size``."""

    size: tuple[int, ...] | None
    max_size: int | None
    interpolation: InterpolationMode

    def target(self, size: Size) -> Size:
        """Return the height and width of the result."""
        if self.size is not None and len(self.size) == 2:
            return self.size[0], self.size[1]
        short, long = sorted(size)
        new_short, new_long = short, long
        if self.size is not None:
            new_short, new_long = self.size[0], int(self.size[0] * long / short)
        if self.max_size is not None and (self.size is None or new_long > self.max_size):
            new_short, new_long = int(self.max_size * new_short / new_long), self.max_size
        return (new_long, new_short) if size[1] <= size[0] else (new_short, new_long)

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view of the resized picture."""
        return view.resize(*self.target(view.size), self.interpolation.value)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Resize an image."""
        size = None if self.size is None else list(self.size)
        resized: Image.Image = F.resize(image, size, self.interpolation, self.max_size)
        return resized


@dataclass(frozen=True)
class CenterCrop(Fixed):
    """Cut out the middle; what lies outside of the picture is black."""

    size: Size
    is_native = True

    def _corner(self, size: Size) -> Size:
        room = [have - want for have, want in zip(size, self.size, strict=True)]
        top, left = (round(each / 2.0) if each >= 0 else -(-each // 2) for each in room)
        return top, left

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view of the middle."""
        return view.crop(*self._corner(view.size), *self.size)

    def encode(self, size: Size, drawn: Any) -> Steps:
        """Return the cut."""
        return pixel_steps.window(*self._corner(size), self.size, "constant", (0, 0, 0)), self.size

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Cut out the middle of many pictures."""
        return lattice.window(*self._corner((lattice.rows.shape[1], lattice.columns.shape[1])), self.size)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Cut out the middle of an image."""
        cut: Image.Image = F.center_crop(image, list(self.size))
        return cut


@dataclass(frozen=True)
class Pad(Fixed):
    """Add borders: left, top, right and bottom."""

    padding: tuple[int, int, int, int]
    fill: Any
    mode: str
    is_native = True

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view, if there is no border."""
        return None if any(self.padding) else view

    def encode(self, size: Size, drawn: Any) -> Steps | None:
        """Return the padding; None if there would be nothing left."""
        left, top, right, bottom = self.padding
        size = size[0] + top + bottom, size[1] + left + right
        if min(size) < 1:
            return None
        return pixel_steps.window(-top, -left, size, self.mode, levels(self.fill)), size

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Pad many pictures."""
        left, top, right, bottom = self.padding
        size = lattice.rows.shape[1] + top + bottom, lattice.columns.shape[1] + left + right
        return lattice.window(-top, -left, size, self.mode, self.fill)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Pad an image."""
        padded: Image.Image = F.pad(image, list(self.padding), self.fill, self.mode)
        return padded


@dataclass(frozen=True)
class RandomCrop:
    """Cut out a window of a size at a random place of the padded picture."""

    size: Size
    padding: tuple[int, int, int, int]
    pad_if_needed: bool
    fill: Any
    mode: str
    is_native = True
    is_random: ClassVar[bool] = True

    def draw(self, size: Size, rng: Rng) -> tuple[tuple[int, int, int, int], Window]:
        """Return the padding, and the window of what is padded; see `_padded`."""
        padding, height, width = self._padded(size)
        window = rng.integer(0, height - self.size[0]), rng.integer(0, width - self.size[1]), *self.size
        return padding, window

    def _padded(self, size: Size) -> tuple[tuple[int, int, int, int], int, int]:
        """Return the padding of a picture, and the height and width with it.

        Raises:
            ValueError: the picture is too small.
        """
        left, top, right, bottom = self.padding
        missing = [max(want - have - sum(pads), 0) if self.pad_if_needed else 0 for want, have, pads in zip(
            self.size, size, ((top, bottom), (left, right)), strict=True)]  # fmt: skip
        top, bottom, left, right = top + missing[0], bottom + missing[0], left + missing[1], right + missing[1]
        height, width = size[0] + top + bottom, size[1] + left + right
        if height < self.size[0] or width < self.size[1]:
            raise ValueError(f"Required crop size {self.size} is larger than input image size {(height, width)}")
        return (left, top, right, bottom), height, width

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Cut a window out of many pictures."""
        (left, top, _, _), height, width = self._padded((lattice.rows.shape[1], lattice.columns.shape[1]))
        starts = _integers(numbers[:, 0], height - self.size[0]), _integers(numbers[:, 1], width - self.size[1])
        return lattice.window(starts[0] - top, starts[1] - left, self.size, self.mode, self.fill)

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view of the window, if it lies in the picture."""
        (left, top, _, _), window = drawn
        return view.crop(window[0] - top, window[1] - left, *self.size)

    def encode(self, size: Size, drawn: Any) -> Steps:
        """Return the cut."""
        (left, top, _, _), window = drawn
        corner = window[0] - top, window[1] - left
        return pixel_steps.window(*corner, self.size, self.mode, levels(self.fill)), self.size

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Cut the window out of an image."""
        padding, window = drawn
        padded = F.pad(image, list(padding), self.fill, self.mode) if any(padding) else image
        cut: Image.Image = F.crop(padded, *window)
        return cut


@dataclass(frozen=True)
class RandomWindow(OfView):
    """Cut out a window of random area and aspect ratio."""

    scale: tuple[float, float]
    ratio: tuple[float, float]

    def draw(self, size: Size, rng: Rng) -> Window:
        """Return the window."""
        height, width = size
        low, high = (math.log(each) for each in self.ratio)
        for _ in range(10):
            area = height * width * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(low, high))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return rng.integer(0, height - h), rng.integer(0, width - w), h, w
        own = width / height
        w = round(height * max(self.ratio)) if own > max(self.ratio) else width
        h = round(width / min(self.ratio)) if own < min(self.ratio) else height
        return (height - h) // 2, (width - w) // 2, h, w

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view of the window."""
        return view.crop(*drawn)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Cut the window out of an image."""
        cut: Image.Image = F.crop(image, *drawn)
        return cut


@dataclass(frozen=True)
class Flip(OfView):
    """Reverse the columns, or the rows, with a probability."""

    p: float
    vertical: bool = False

    def draw(self, size: Size, rng: Rng) -> bool:
        """Return whether to flip."""
        return rng.random() < self.p

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view, flipped or as it is."""
        return view.flip(not self.vertical, self.vertical) if drawn else view

    def move(self, lattice: Lattice, numbers: npt.NDArray[np.float64]) -> Lattice:
        """Flip some of many pictures."""
        chosen, places = (numbers[:, 0] < self.p)[:, None], lattice.rows if self.vertical else lattice.columns
        places = np.where(chosen, places[:, ::-1], places)
        return lattice._replace(rows=places) if self.vertical else lattice._replace(columns=places)

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Flip an image."""
        flipped: Image.Image = (F.vflip if self.vertical else F.hflip)(image) if drawn else image
        return flipped
