"""Hidden operators of `torchdali.DataLoader`: transforms of torchvision in a row, on one picture.

The plugin describes each transform by a `Step`. What the library of the fast path does of a chain becomes its `Work`,
from the file to the tensor, which is one call. From the first step on that it does not do, torchvision's own functions
go on, on an image of Pillow. They do all if there is no library, or if it refuses. What is not a JPEG, Pillow decodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator, reader
from torchdali.codecs._native import Encoded, Task, encoded, examine, pixels_of, run_together
from torchdali.codecs.files import map_or_read, open_bytes
from torchdali.codecs.pixel_steps import Work
from torchdali.codecs.views import View
from torchdali.declaration.batching import EncodedBody
from torchdali.declaration.schema import Data, Out, OutputCount, shares
from torchdali.formats.storage import file_identity
from torchdali.kernels.memory import IN_PLACE, Room
from torchdali.kernels.native import Recipe, library
from torchdali.reading.datasets import Dataset, LoaderOptions, Read, WholeFiles
from torchdali.rng import Rng, prepare

if TYPE_CHECKING:
    from PIL import Image  # imported if a picture needs it: `import torchdali` is quick

__all__ = [
    "Chain", "Choice", "End", "Finish", "Order", "Requests", "Source", "Step", "View", "Walk", "Work",
    "finish_pixels", "is_refused", "library",
]  # fmt: skip


class Step(Protocol):
    """A transform of pictures.

    Attributes:
        is_native: The library does it, on usual pictures.
        is_random: It draws random numbers.
    """

    is_native: bool
    is_random: bool

    def draw(self, size: tuple[int, int], rng: Rng) -> Any:
        """Draw the random numbers of a sample.

        Args:
            size: Height and width of the picture.
            rng: Random numbers of the sample.
        """
        ...

    def narrow(self, view: View, drawn: Any) -> View | None:
        """Return the view behind the transform; None if pixels are needed."""
        ...

    def encode(self, size: tuple[int, int], drawn: Any) -> tuple[bytes, tuple[int, int]] | None:
        """Return steps of the library on pixels, and the size behind them; None if there are none.

        Only asked for what is no view.
        """
        ...

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        """Transform an image."""
        ...


class End(Protocol):
    """A transform of tensors, behind the conversion."""

    def apply(self, planes: Tensor, rng: Rng) -> None:
        """Change a picture ``(C, H, W)`` in its place."""
        ...


@dataclass(frozen=True)
class Finish:
    """Conversion of an image to a tensor.

    Attributes:
        unit: To float32 from 0 to 1; else the bytes stay.
        mean, std: Of the channels, or one for all; None for what is not normalized.
        channels: Of the tensor: 1 or 3.
        multiplies: Multiply by 1 / 255, as `transforms.v2` does; else divide by 255.
    """

    unit: bool
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    channels: int = 3
    multiplies: bool = False

    def levels(self) -> Tensor:
        """Return ``(channels, 256)``: what becomes of each level, to the bit as torchvision computes it."""
        levels = torch.arange(256, dtype=torch.uint8)[None]
        if not self.unit:
            return levels
        values = levels.to(torch.float32)
        values = values.mul(1 / 255) if self.multiplies else values.div(255)
        if self.mean is None or self.std is None:
            return values
        mean, std = (torch.tensor(each, dtype=torch.float32)[:, None] for each in (self.mean, self.std))
        return (values - mean) / std


@dataclass(frozen=True)
class Choice:
    """One of several rows of steps, by chance.

    Attributes:
        rows: To choose from.
        ends: The probability of each row and of those before it.
    """

    rows: tuple[tuple[Any, ...], ...]
    ends: tuple[float, ...]
    is_random: ClassVar[bool] = True

    @property
    def is_native(self) -> bool:
        """True if all steps are."""
        return all(step.is_native for row in self.rows for step in row)

    def choose(self, rng: Rng) -> tuple[Any, ...]:
        """Return a row."""
        number = rng.random()
        return next((row for row, end in zip(self.rows, self.ends, strict=True) if number < end), self.rows[-1])


@dataclass(frozen=True)
class Order:
    """All of several rows of steps, in an order by chance."""

    rows: tuple[tuple[Any, ...], ...]
    is_random: ClassVar[bool] = True

    @property
    def is_native(self) -> bool:
        """True if all steps are."""
        return all(step.is_native for row in self.rows for step in row)

    def choose(self, rng: Rng) -> tuple[Any, ...]:
        """Return the steps in an order."""
        left = list(self.rows)
        return tuple(step for _ in self.rows for step in left.pop(rng.integer(0, len(left) - 1)))


class Walk:
    """The way of one picture through a chain.

    Attributes:
        work: Of the library, for the steps that were taken.
        steps: These steps, and what was drawn for each.
        rest: The steps that are left, the next one last; that one was drawn for, and the library does not do it.
        drawn: For it.
    """

    __slots__ = ("_rng", "drawn", "rest", "steps", "work")

    def __init__(self, chain: Chain, size: tuple[int, int], rng: Rng) -> None:
        self.work, self._rng = Work(View.of(*size)), rng
        self.steps: list[tuple[Step, Any]] = []
        self.rest: list[Any] = [*reversed(chain.steps)]
        self.drawn: Any = None
        while (step := self._next()) is not None:
            self.drawn = step.draw(self.work.view.size, rng)
            if not self._take(step, self.drawn):
                self.rest.append(step)
                return
            self.steps.append((step, self.drawn))

    def _take(self, step: Step, drawn: Any) -> bool:
        """Let the library do a step; False if it cannot."""
        work = self.work
        narrowed = step.narrow(work.view, drawn)
        if narrowed is None:
            size = work.view.size
            encoded_steps = step.encode(size, drawn)
            if encoded_steps is not None:
                if is_refused(*encoded_steps[1]):
                    return False
                if encoded_steps[0]:
                    work.add(*encoded_steps)
                return True
            narrowed = step.narrow(View.of(*size), drawn)  # a second resize begins anew, with the pixels of the first
            if narrowed is None:
                return False
            work.add(b"", size)
        work.view = narrowed
        return True

    def _next(self) -> Step | None:
        while self.rest:
            step = self.rest.pop()
            if not isinstance(step, (Choice, Order)):
                next_step: Step = step
                return next_step
            self.rest += reversed(step.choose(self._rng))
        return None

    def go_on(self, image: Image.Image, again: bool) -> Image.Image:
        """Take the steps that are left on an image.

        Args:
            again: Take those that were taken before them first, with the same numbers.
        """
        for step, drawn in self.steps if again else ():
            image = step.apply(image, drawn)
        if self.rest:
            image = self.rest.pop().apply(image, self.drawn)
        while (following := self._next()) is not None:
            image = following.apply(image, following.draw((image.height, image.width), self._rng))
        return image


@dataclass(frozen=True)
class Chain:
    """Transforms in a row, the conversion at the end, or None to stay with ``(H, W, C)`` bytes, and what follows it."""

    steps: tuple[Any, ...]
    finish: Finish | None = None
    ends: tuple[End, ...] = ()

    @classmethod
    def from_argument(cls, value: Any) -> Chain:
        """Return a chain as the argument takes it."""
        assert isinstance(value, cls)
        return value

    def divided(self) -> tuple[Chain, Chain]:
        """Return the steps before the first that draws random numbers, and the rest."""
        first = next((i for i, step in enumerate(self.steps) if step.is_random), len(self.steps))
        return Chain(self.steps[:first]), Chain(self.steps[first:], self.finish, self.ends)

    def end(self, planes: Tensor, rng: Rng) -> Tensor:
        """Return a tensor with what follows the conversion, in its place."""
        for each in self.ends:
            each.apply(planes, rng)
        return planes


@lru_cache(maxsize=64)
def _recipe(finish: Finish | None, planar: bool = True) -> Recipe:
    if finish is None:
        return Recipe(upright=False)
    if not finish.unit:
        return Recipe(upright=False, planar=planar, channels=finish.channels)
    values = finish.levels().expand(3, 256).contiguous()
    return Recipe(upright=False, planar=planar, channels=finish.channels, dtype=torch.float32, values=values)


@operator(layout=lambda layouts, arguments: "HWC" if arguments["chain"].finish is None else "CHW")
def _picture(data: Data, /, *, chain: Chain, rng: Rng, out: Out = None) -> Data:
    """Do the steps of a chain on a picture.

    Args:
        data: A file, ``(n,)`` bytes, or pixels ``(H, W, C)`` of 1 or 3 channels.
        chain: See `Chain`.
    """
    size = _size(data) if data.dim() == 1 else (data.shape[0], data.shape[1])
    if size is None:
        data = _pixels(_opened(data))
        size = data.shape[0], data.shape[1]
    walk = Walk(chain, size, rng)
    pixels = walk.work.render(_recipe(None if walk.rest else chain.finish), _colored(data), out)
    if pixels is None:
        return chain.end(_converted(walk.go_on(_opened(data), True), chain.finish, out), rng)
    if walk.rest:
        pixels = _converted(walk.go_on(_image(pixels), False), chain.finish, out)
    return chain.end(pixels, rng)


@operator(layout="HWC")
def _still_picture(data: Data, /, *, chain: Chain) -> Data:
    """Do the steps of a chain that draws no random numbers, and stay with bytes: what a cache keeps."""
    return _picture.body(data, chain=chain, rng=Rng(0, (0, 0)))


def _size(data: Tensor) -> tuple[int, int] | None:
    """Return height and width of a JPEG as stored; None if the library does not decode it as Pillow does."""
    (jpeg,) = encoded([data])
    return jpeg.size(False) if jpeg is not None and _is_like_pillows(jpeg) else None


def _is_like_pillows(data: Encoded) -> bool:
    """Return whether the library decodes a file as Pillow does: inks are rounded in another way, bombs are refused."""
    return data.channels != 4 and (data.row > 0 or not is_refused(data.height, data.width))


def is_refused(height: int, width: int) -> bool:
    """Return whether an image has more pixels than `Image.MAX_IMAGE_PIXELS`, of which Pillow warns or raises."""
    from PIL import Image  # the limit is the user's, who may change it at any time

    most = Image.MAX_IMAGE_PIXELS
    return most is not None and height * width > max(1, most)


def _opened(data: Tensor) -> Image.Image:
    """Return what Pillow makes of a file, or of pixels."""
    from PIL import Image

    return _image(data) if data.dim() == 3 else Image.open(open_bytes(data.numpy().data)).convert("RGB")


def _image(pixels: Tensor) -> Image.Image:
    from PIL import Image

    return Image.fromarray(pixels[:, :, 0].numpy() if pixels.shape[2] == 1 else pixels.numpy())


def _pixels(image: Image.Image) -> Tensor:
    pixels = torch.from_numpy(np.array(image))
    return pixels[:, :, None] if pixels.dim() == 2 else pixels


def _colored(data: Tensor) -> Tensor:
    """Return a picture of one channel with three, of which all steps of the library make the same."""
    return data.expand(-1, -1, 3).contiguous() if data.dim() == 3 and data.shape[2] == 1 else data


def _converted(image: Image.Image, finish: Finish | None, out: Tensor | None) -> Tensor:
    pixels = _pixels(image)
    if finish is None:
        return pixels
    whole = Work(View.of(image.height, image.width)).render(_recipe(finish), _colored(pixels), out)
    if whole is not None:
        return whole
    planes = pixels.permute(2, 0, 1)[: finish.channels]
    if not finish.unit:
        return planes.contiguous()
    levels = finish.levels().expand(len(planes), 256)
    return torch.stack([channel[plane.long()] for channel, plane in zip(levels, planes, strict=True)])


@chunk(_picture, "encoded")
def _encoded_picture(constants: Mapping[str, Any]) -> EncodedBody | None:
    chain: Chain = constants["chain"]
    if library() is None or not all(step.is_native for step in chain.steps):
        return None
    recipe = _recipe(chain.finish)

    def described(data: Encoded | None, rng: Any) -> Task | None:
        if data is None or not _is_like_pillows(data):
            return None
        walk = Walk(chain, data.size(False), rng)
        return None if walk.rest else walk.work.task(data)

    def run(
        sources: Sequence[Tensor | str | None],
        out: Tensor | None,
        rngs: Sequence[Any] | None,
        values: Mapping[str, Sequence[Any]],
        room: Room | None = None,
    ) -> Sequence[Any]:
        assert rngs is not None
        prepare(rngs, _NUMBERS * len(chain.steps))
        colored = [_colored(source) if isinstance(source, Tensor) else source for source in sources]
        results = run_together(recipe, list(map(described, _found(colored), rngs)), out)
        for k, (result, rng) in enumerate(zip(results, rngs, strict=True)) if chain.ends else ():
            if result is not None:
                chain.end(out[k] if out is not None and result is IN_PLACE else result, rng)
        return results

    return run


_NUMBERS = 4  # random numbers that a step takes, about


def _found(sources: Sequence[Tensor | str | None]) -> list[Encoded | None]:
    """Return where pictures lie, files or pixels; None for those to do one by one."""
    are_pixels = [isinstance(source, Tensor) and source.dim() == 3 for source in sources]
    files = encoded([None if each else source for source, each in zip(sources, are_pixels, strict=True)])
    return [
        pixels_of(source) if each else file  # type: ignore[arg-type]
        for source, file, each in zip(sources, files, are_pixels, strict=True)
    ]


class Source:
    """A JPEG in memory, or pixels ``(H, W, 3)``, of which parts are made.

    Attributes:
        size: Height and width; None if the library does not decode it as Pillow does.
    """

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = torch.from_numpy(data)
        self.size = _size(self._data) if data.ndim == 1 else data.shape[:2]

    def has_one_scan(self) -> bool:
        """Return True if it certainly has one baseline scan, which is whole."""
        return library() is not None and int(examine([self._data], _recipe(None)).rows["lot"][0]) >= 0

    def pixels(self, work: Work) -> npt.NDArray[np.uint8] | None:
        """Return the pixels ``(H, W, 3)`` after some work, or None if the library can't decode them."""
        pixels = work.render(_recipe(None), self._data)
        return None if pixels is None else pixels.numpy()

    def planes(self, work: Work, finish: Finish, planar: bool) -> Tensor | None:
        """Return the pixels after some work as a tensor; see `finish_pixels`."""
        result = work.render(_recipe(finish, planar), self._data)
        return result if result is None or planar else result.permute(2, 0, 1)


def finish_pixels(pixels: npt.NDArray[np.uint8], finish: Finish, planar: bool) -> Tensor | None:
    """Convert pixels ``(H, W, 3)`` to a tensor ``(3, H, W)``; None if the library can't.

    Args:
        planar: The tensor is contiguous; else it is a permuted ``(H, W, 3)``.
    """
    return Source(pixels).planes(Work(View.of(*pixels.shape[:2])), finish, planar)


class Requests:
    """Pictures of a data set, which is asked anew for each of them.

    Args:
        dataset: Sized.
        source: Returns the path of a picture, or its pixels ``(H, W, C)``.
        are_files: It returns paths.
    """

    def __init__(self, dataset: Any, source: Callable[[int], Any], are_files: bool) -> None:
        self._dataset, self.source, self._are_files = dataset, source, are_files

    @classmethod
    def from_argument(cls, value: Any) -> Requests:
        """Return the argument as it is."""
        assert isinstance(value, cls)
        return value

    def __len__(self) -> int:
        return len(self._dataset)

    def read(self, index: int) -> tuple[Tensor]:
        """Return the bytes of a file, or pixels."""
        if self._are_files:
            return (map_or_read(self._path(index)),)
        return (torch.as_tensor(self.source(index)),)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Leave files to those who read several at once."""
        return WholeFiles(records, self._path, self.read) if self._are_files else None

    def identity(self, index: int) -> bytes | None:
        """Name a file by what changes with it."""
        return file_identity(self._path(index)) if self._are_files else None

    def info(self, index: int, output: int | None = None) -> str:
        """Name a picture."""
        return self._path(index) if self._are_files else f"sample {index} of the data set"

    def _path(self, index: int) -> str:
        path: str = os.fspath(self.source(index))
        return path


@reader(name="_requests")
def _requests(
    *, requests: Requests, **options: Annotated[Any, shares(LoaderOptions)]
) -> Annotated[Dataset, OutputCount(1)]:
    """Read pictures of a data set."""
    return requests
