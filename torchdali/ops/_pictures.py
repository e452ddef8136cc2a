"""Operators that apply a sequence of torchvision transforms to an image, for `torchdali.DataLoader`.

The operators aren't available to users in `fn`. The data loader describes each transform by an `ImageTransform`. The
transforms of an image are combined into an `ImageProgram`. The native library executes the program in one call, which
computes the tensor from the image file. Pillow decodes all formats other than JPEG.

If the native library doesn't support a transform, torchvision's functions apply this transform and all later transforms
to a PIL image. If the native library is missing or can't process the image, torchvision's functions apply all
transforms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import narrows, operator, reader
from torchdali.codecs._native import examine, read_headers, render
from torchdali.codecs._pillow import exceeds_pillow_limit
from torchdali.codecs.files import map_or_read, open_bytes
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.narrowing import Edit
from torchdali.declaration.schema import Data, Out, OutputCount, shares
from torchdali.formats.storage import file_identity
from torchdali.kernels.native import ImageOptions, Output, library
from torchdali.ops._picture_erasing import Erasing
from torchdali.reading.datasets import Dataset, LoaderOptions, Read, WholeFiles
from torchdali.rng import Rng

if TYPE_CHECKING:
    from PIL import Image  # the functions import Pillow when they need it, so that `import torchdali` stays quick

__all__ = [
    "STORED", "DrawnTransforms", "ImageProgram", "ImageSource", "ImageTransform", "ImageTransforms", "RandomSteps",
    "RequestDataset", "TensorConversion", "exceeds_pillow_limit", "library",
]  # fmt: skip


STORED = ImageOptions(upright=False, match_pillow=True)
"""Options of programs that reproduce Pillow's pixels. Images aren't rotated to their Exif orientation."""
Render = Callable[[ImageProgram], "Tensor | None"]


class ImageTransform(Protocol):
    """A transform of images.

    Attributes:
        is_random: True if the transform draws random numbers.
    """

    is_random: bool

    def draw(self, size: tuple[int, int], rng: Rng) -> Any:
        """Draw the random numbers of a sample.

        Args:
            size: Height and width of the image.
        """
        ...

    def edit(self, program: ImageProgram, drawn: Any) -> ImageProgram | None:
        """Append the transform to a program; return None if the native library doesn't support the transform.

        Args:
            program: Program of the previous transforms.
            drawn: Result of `draw`.
        """
        ...

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Transform a PIL image; `drawn` is the result of `draw`."""
        ...


@dataclass(frozen=True)
class TensorConversion:
    """Conversion of an image to a tensor.

    Attributes:
        is_float: True to convert to float32 values from 0 to 1, False for uint8.
        mean, std: Mean and standard deviation of the normalization: one value per channel, or one value for all
            channels; None for no normalization.
        channels: Number of channels of the tensor: 1 or 3.
        multiplies: True to multiply by 1 / 255, as `transforms.v2` does; otherwise divide by 255.
    """

    is_float: bool
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    channels: int = 3
    multiplies: bool = False

    def levels(self) -> Tensor:
        """Return a table ``(channels, 256)`` with the converted value of every uint8 value.

        The converted values are bit-identical to torchvision's.
        """
        levels = torch.arange(256, dtype=torch.uint8)[None]
        if not self.is_float:
            return levels
        values = levels.to(torch.float32)
        values = values.mul(1 / 255) if self.multiplies else values.div(255)
        if self.mean is None or self.std is None:
            return values
        mean, std = (torch.tensor(numbers, dtype=torch.float32)[:, None] for numbers in (self.mean, self.std))
        return (values - mean) / std

    def render(self, render: Render, program: ImageProgram, planar: bool) -> Tensor | None:
        """Run a program, and convert its result to a tensor ``(C, H, W)``; None if the library can't run the program.

        Args:
            planar: True for a contiguous tensor, False for a permuted view of a tensor ``(H, W, C)``.
        """
        result = render(program.with_options(_options(self, planar)))
        return result if result is None or planar else result.permute(2, 0, 1)


@lru_cache(maxsize=64)
def _options(conversion: TensorConversion | None, planar: bool = True) -> ImageOptions:
    if conversion is None:
        return replace(STORED, output=Output())
    if not conversion.is_float:
        return replace(STORED, output=Output(planar=planar, channels=conversion.channels))
    table = conversion.levels().expand(3, 256)
    return replace(STORED, output=Output.from_table(table, planar, conversion.channels))


@dataclass(frozen=True)
class RandomSteps:
    """Several sequences of steps. One randomly chosen sequence is applied, or all sequences in a random order.

    Attributes:
        rows: The sequences of steps.
        ends: Cumulative probabilities for choosing one sequence; None to apply all sequences in a random order.
    """

    rows: tuple[tuple[Any, ...], ...]
    ends: tuple[float, ...] | None = None
    is_random: ClassVar[bool] = True

    def choose(self, rng: Rng) -> tuple[Any, ...]:
        """Return the steps of the randomly chosen sequence, or the steps of all sequences in a random order."""
        if self.ends is None:
            remaining = list(self.rows)
            return tuple(step for _ in self.rows for step in remaining.pop(rng.integer(0, len(remaining) - 1)))
        number = rng.random()
        return next((row for row, end in zip(self.rows, self.ends, strict=True) if number < end), self.rows[-1])


class DrawnTransforms:
    """The transforms of one image, with their random numbers.

    Transforms are added to a program up to the first transform that the library doesn't support.

    Attributes:
        program: Program of the supported transforms.
        steps: The transforms in the program, with their random numbers.
        rest: The remaining transforms in reverse order. The last item is the first unsupported transform.
        drawn: Random numbers of the first unsupported transform.
    """

    __slots__ = ("_rng", "drawn", "program", "rest", "steps")

    def __init__(
        self, transforms: ImageTransforms, size: tuple[int, int], rng: Rng, options: ImageOptions = STORED
    ) -> None:
        self.program, self._rng = ImageProgram.of(*size, options), rng
        self.steps: list[tuple[ImageTransform, Any]] = []
        self.rest: list[Any] = [*reversed(transforms.steps)]
        self.drawn: Any = None
        while (step := self._next()) is not None:
            self.drawn = step.draw(self.program.size, rng)
            program = step.edit(self.program, self.drawn)
            if program is None:
                self.rest.append(step)
                return
            self.program = program
            self.steps.append((step, self.drawn))

    def _next(self) -> ImageTransform | None:
        while self.rest:
            step = self.rest.pop()
            if not isinstance(step, RandomSteps):
                next_step: ImageTransform = step
                return next_step
            self.rest += reversed(step.choose(self._rng))
        return None

    def apply_rest(self, image: Image.Image, restart: bool) -> Image.Image:
        """Apply the remaining transforms to an image.

        Args:
            image: The program's result; if `restart` is True, the original image.
            restart: True to apply the program's transforms first, with the same random numbers.
        """
        for step, drawn in self.steps if restart else ():
            image = step.apply(image, drawn)
        if self.rest:
            image = self.rest.pop().apply(image, self.drawn)
        while (following := self._next()) is not None:
            image = following.apply(image, following.draw((image.height, image.width), self._rng))
        return image


@dataclass(frozen=True)
class ImageTransforms:
    """A sequence of transforms: transforms of an image, the conversion to a tensor, and transforms of the tensor.

    Attributes:
        steps: Transforms of the image: `ImageTransform` and `RandomSteps`.
        conversion: Conversion to a tensor ``(C, H, W)``; None to return uint8 pixels ``(H, W, C)``.
        ends: Transforms of the tensor.
    """

    steps: tuple[Any, ...]
    conversion: TensorConversion | None = None
    ends: tuple[Erasing, ...] = ()

    @classmethod
    def from_argument(cls, value: Any) -> ImageTransforms:
        assert isinstance(value, cls)
        return value

    def divide(self) -> tuple[ImageTransforms, ImageTransforms]:
        """Split the sequence before the first random transform. Only the second half converts images to tensors."""
        first = next((i for i, step in enumerate(self.steps) if step.is_random), len(self.steps))
        return ImageTransforms(self.steps[:first]), ImageTransforms(self.steps[first:], self.conversion, self.ends)

    def end(self, planes: Tensor, rng: Rng) -> Tensor:
        """Apply the transforms `ends` to the tensor `planes`, in place."""
        for transform in self.ends:
            transform.apply(planes, rng)
        return planes


@operator(layout=lambda layouts, arguments: "HWC" if arguments["transforms"].conversion is None else "CHW")
def _picture(data: Data, /, *, transforms: ImageTransforms, rng: Rng, out: Out = None) -> Data:
    """Apply a sequence of transforms to an image.

    Args:
        data: Bytes ``(n,)`` of an image file, or pixels ``(H, W, C)`` with 1 or 3 channels.
        transforms: The sequence of transforms.
    """
    size = _read_size(data) if data.dim() == 1 else (data.shape[0], data.shape[1])
    if size is None:
        data = _to_pixels(_open_image(data))
        size = data.shape[0], data.shape[1]
    drawn = DrawnTransforms(transforms, size, rng)
    program = drawn.program.with_options(_options(None if drawn.rest else transforms.conversion))
    pixels = render(program, data, out)
    if pixels is None:
        return transforms.end(_to_tensor(drawn.apply_rest(_open_image(data), True), transforms.conversion, out), rng)
    if drawn.rest:
        pixels = _to_tensor(drawn.apply_rest(_to_pil_image(pixels), False), transforms.conversion, out)
    return transforms.end(pixels, rng)


@operator(layout="HWC")
def _still_picture(data: Data, /, *, transforms: ImageTransforms) -> Data:
    """Apply transforms that draw no random numbers. A cache can store the resulting uint8 pixels."""
    return _picture.implementation(data, transforms=transforms, rng=Rng(0, (0, 0)))


def _read_size(data: Tensor) -> tuple[int, int] | None:
    """Return the height and width in a JPEG's header; None if the library can't reproduce Pillow's pixels for the file.

    The Exif orientation is ignored.
    """
    (jpeg,) = read_headers([data], match_pillow=True)
    return None if jpeg is None else jpeg.size(False)


def _open_image(data: Tensor) -> Image.Image:
    """Open a file, or wrap pixels, as a PIL image."""
    from PIL import Image

    return _to_pil_image(data) if data.dim() == 3 else Image.open(open_bytes(data.numpy().data)).convert("RGB")


def _to_pil_image(pixels: Tensor) -> Image.Image:
    from PIL import Image

    return Image.fromarray(pixels[:, :, 0].numpy() if pixels.shape[2] == 1 else pixels.numpy())


def _to_pixels(image: Image.Image) -> Tensor:
    pixels = torch.from_numpy(np.array(image))
    return pixels[:, :, None] if pixels.dim() == 2 else pixels


def _to_tensor(image: Image.Image, conversion: TensorConversion | None, out: Tensor | None) -> Tensor:
    pixels = _to_pixels(image)
    if conversion is None:
        return pixels
    converted = render(ImageProgram.of(image.height, image.width, _options(conversion)), pixels, out)
    if converted is not None:
        return converted
    planes = pixels.permute(2, 0, 1)[: conversion.channels]
    if not conversion.is_float:
        return planes.contiguous()
    levels = conversion.levels().expand(len(planes), 256)
    return torch.stack([channel[plane.long()] for channel, plane in zip(levels, planes, strict=True)])


@narrows(_picture, ("transforms",))
def _edit(constants: Mapping[str, Any]) -> Edit:
    transforms: ImageTransforms = constants["transforms"]
    options = _options(transforms.conversion)

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Rng) -> ImageProgram | None:
        drawn = DrawnTransforms(transforms, program.size, rng, program.options)
        return None if drawn.rest else drawn.program

    finish = transforms.end if transforms.ends else None
    return Edit(narrow, lambda _: options, numbers=_NUMBERS_PER_STEP * len(transforms.steps), finish=finish)


_NUMBERS_PER_STEP = 4  # estimated count of random numbers per step


class ImageSource:
    """An image on which several programs can be run: a JPEG in memory, or pixels ``(H, W, 3)``.

    Attributes:
        size: Height and width; None if the library can't reproduce Pillow's pixels for the file.
    """

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = torch.from_numpy(data)
        self.size = _read_size(self._data) if data.ndim == 1 else data.shape[:2]

    def has_one_scan(self) -> bool:
        """Return True if the library found that the JPEG is a single, complete baseline scan."""
        return library() is not None and int(examine([self._data], STORED).rows["lot"][0]) >= 0

    def render(self, program: ImageProgram) -> Tensor | None:
        """Run a program on the image; None if the library can't decode the image."""
        return render(program, self._data)


class RequestDataset:
    """Dataset for a reader. It requests each image from a user's dataset.

    Args:
        dataset: The user's dataset; must have a length.
        source: Function that receives an index, and returns the path or the pixels ``(H, W, C)`` of the image.
        are_files: True if `source` returns paths, False if it returns pixels.
    """

    def __init__(self, dataset: Any, source: Callable[[int], Any], are_files: bool) -> None:
        self._dataset, self.source, self._are_files = dataset, source, are_files

    @classmethod
    def from_argument(cls, value: Any) -> RequestDataset:
        assert isinstance(value, cls)
        return value

    def __len__(self) -> int:
        return len(self._dataset)

    def read(self, index: int) -> tuple[Tensor]:
        """Return the bytes of an image's file, or its pixels."""
        if self._are_files:
            return (map_or_read(self._path(index)),)
        return (torch.as_tensor(self.source(index)),)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Return the images' files as `WholeFiles`, which are read in one call; None if `source` returns pixels."""
        return WholeFiles(records, self._path, self.read) if self._are_files else None

    def identity(self, index: int) -> bytes | None:
        """Return a key that changes whenever the image's file changes; None if `source` returns pixels."""
        return file_identity(self._path(index)) if self._are_files else None

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of an image, or its index in the dataset, for messages."""
        return self._path(index) if self._are_files else f"sample {index} of the dataset"

    def _path(self, index: int) -> str:
        path: str = os.fspath(self.source(index))
        return path


@reader(name="_requests")
def _requests(
    *, requests: RequestDataset, **options: Annotated[Any, shares(LoaderOptions)]
) -> Annotated[Dataset, OutputCount(1)]:
    """Read images of a dataset."""
    return requests
