"""Decoders of images for a device that leave a share to it, or decode only what it looks at.

What the device decodes is returned as bytes, in the place of pixels; see `execute.hardware_decoding`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs._native import Encoded as Found
from torchdali.codecs._native import Task, chosen, encoded, run_together
from torchdali.codecs.image_crops import decode_crop
from torchdali.codecs.images import peek_header
from torchdali.codecs.views import View
from torchdali.declaration.batching import EncodedBody, argument_names
from torchdali.declaration.schema import Data, shares
from torchdali.errors import Part
from torchdali.kernels.memory import Left, Room
from torchdali.kernels.native import Lines, library
from torchdali.ops._crop import crop_window, narrow_to_crop
from torchdali.ops._decode_chain import recipe_of
from torchdali.ops._decoders import (
    Encoded,
    Window,
    cache_hints,
    choose_window,
    decoder_hints,
    decoding,
    image,
)
from torchdali.ops._resize import sizing
from torchdali.rng import Rng

__all__: list[str] = []

_DECODER, _RESIZE = Part(0), Part(1)


class Wanted(NamedTuple):
    """The part of an image that is decoded, and how a resize describes what it takes of that.

    Attributes:
        window: y, x, height and width.
        size: That it becomes, if it is not the same for all.
        low, high: Of the region that is resized, in the image.
    """

    window: Window
    size: tuple[int, int] | None = None
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None

    def numbers(self, whole: bool) -> list[tuple[float, float]]:
        """Return what a resize takes, of the whole image or of the window."""
        if self.low is None or self.high is None:
            return []
        y, x = (0, 0) if whole else self.window[:2]
        region = [(self.low[0] - y, self.low[1] - x), (self.high[0] - y, self.high[1] - x)]
        return region if self.size is None else [self.size, *region]


Describe = Callable[[tuple[int, int], Any], Wanted]
"""Takes height and width of an image, and random numbers."""


@operator(layout="HWC", devices=("mixed",))
def _decode_share(
    data: Encoded,
    /,
    **arguments: Annotated[Any, shares(decoding), shares(decoder_hints), shares(cache_hints)],
) -> Data:
    """Decode images, but return the bytes of those that a decoder on the device is to decode."""
    if _is_left(data, arguments):
        return data
    return image.body(data, **arguments)


@operator(layout="HWC", devices=("mixed",))
def _decode_seen(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    **arguments: Annotated[Any, shares(sizing), shares(crop_window), shares(decoder_hints), shares(cache_hints)],
) -> tuple[Data, Data, Data, Data]:
    """Decode what a linear resize, and a crop after it, look at; or return the bytes, see `_decode_share`.

    Returns:
        The pixels, and what a resize of them takes: the size, and where its region starts and ends, two values each.
    """
    outputs = _decode_wanted(data, _described_by_both(arguments), adjust_orientation, use_fast_idct, arguments)
    return outputs  # type: ignore[return-value]


@operator(layout="HWC", devices=("mixed",))
def _decode_random_seen(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    use_fast_idct: bool = False,
    rng: Rng,
    **arguments: Annotated[Any, shares(decoder_hints)],
) -> tuple[Data, Data, Data]:
    """Decode a random window, which a resize of them takes; or return the bytes, see `_decode_share`.

    Returns:
        The pixels, and where the region of the resize starts and ends, two values each.
    """

    def describe(lengths: tuple[int, int], _: Any) -> Wanted:
        return _of_window(choose_window(rng, *lengths, num_attempts, random_area, random_aspect_ratio))

    outputs = _decode_wanted(data, describe, adjust_orientation, use_fast_idct, arguments)
    return outputs  # type: ignore[return-value]


def _decode_wanted(
    data: Tensor, describe: Describe, upright: bool, fast: bool, hints: Mapping[str, Any]
) -> tuple[Tensor, ...]:
    with _DECODER:
        header = peek_header(data)
    region = describe(header.size(upright), None)
    left = _is_left(data, {**hints, "adjust_orientation": upright})
    part = data
    if not left:
        with _DECODER:
            part = decode_crop(
                data,
                *region.window,
                adjust_orientation=upright,
                fast=fast,
                header=header,
                fancy=hints.get("jpeg_fancy_upsampling", True),
            )
    return part, *torch.tensor(region.numbers(left), dtype=torch.float64).unbind(0)


def _is_left(data: Tensor, arguments: Mapping[str, Any]) -> bool:
    """Return whether the device decodes an image."""
    share = arguments.get("hw_decoder_load", 0.0)
    if data.ndim != 1 or share <= 0:
        return False
    return chosen(encoded([data]), share, arguments.get("adjust_orientation", True))[0]


def _of_window(window: Window) -> Wanted:
    y, x, height, width = window
    return Wanted(window, None, (y, x), (y + height, x + width))


def _described_by_both(arguments: Mapping[str, Any]) -> Describe:
    """Return what describes what a resize looks at of which a crop shows a part."""
    size, window = ({k: v for k, v in arguments.items() if k in argument_names(each)} for each in (sizing, crop_window))

    def describe(lengths: tuple[int, int], _: Any) -> Wanted:
        with _RESIZE:
            whole, regions = sizing(lengths, **size)
        resized = View.of(*whole)
        part = narrow_to_crop(resized, window) or resized  # the crop has the error, or pads
        axes = zip(regions, whole, (part.rows, part.columns), lengths, strict=True)
        (y, h, *rows), (x, w, *columns) = (_seen(*each) for each in axes)
        shape, low, high = zip(rows, columns, strict=True)
        return Wanted((y, x, h, w), shape, low, high)

    return describe


def _seen(region: tuple[float, float], size: int, part: Lines, length: int) -> tuple[int, int, Any, Any, Any]:
    """Return which lines a part of a resized axis sees, its size, and its region.

    Args:
        region: Of the input, that all of the output shows.
        size: Of all of the output.
        part: Of the output.
        length: Of the input.
    """
    low, high = region
    scale, start, extent = (high - low) / size, part.first, part.extent
    low, high = low + start * scale, low + (start + extent) * scale
    reach = max(1.0, abs(scale)) + 1  # of the filter, and a line more for what rounding does
    first = min(max(0, math.floor(min(low, high) - reach)), length - 1)
    last = max(min(length, math.ceil(max(low, high) + reach)), first + 1)
    return first, last - first, extent, low, high


# ---------------------------------------------------------------- several samples in one call

_CHOOSING = ("num_attempts", "random_area", "random_aspect_ratio")
_KNOWN = 256  # sizes of images whose windows are remembered


@chunk(_decode_share, "encoded")
def _whole(constants: Mapping[str, Any]) -> EncodedBody | None:
    return _body(constants, lambda lengths, _: Wanted((0, 0, *lengths)))


@chunk(_decode_random_seen, "encoded")
def _random_regions(constants: Mapping[str, Any]) -> EncodedBody | None:
    options = {k: constants[k] for k in _CHOOSING if k in constants}
    return _body(constants, lambda lengths, rng: _of_window(choose_window(rng, *lengths, **options)))


@chunk(_decode_seen, "encoded")
def _regions(constants: Mapping[str, Any]) -> EncodedBody | None:
    return _body(constants, functools.lru_cache(_KNOWN)(_described_by_both(constants)))


def _body(constants: Mapping[str, Any], describe: Describe) -> EncodedBody | None:
    """Return what decodes several samples."""
    upright, share = constants.get("adjust_orientation", True), constants.get("hw_decoder_load", 0.0)
    fast, fancy = constants.get("use_fast_idct", False), constants.get("jpeg_fancy_upsampling", True)
    recipe = recipe_of(upright, fast, fancy, False, {}, None)
    if library() is None or recipe is None:
        return None

    def wanted(data: Found | None, rng: Any) -> Wanted | None:
        return None if data is None else describe(data.size(upright), rng)

    def run(
        sources: Sequence[Tensor | str | None],
        out: Tensor | None,
        rngs: Sequence[Any] | None,
        values: Mapping[str, Sequence[Any]],
        room: Room | None = None,
    ) -> Sequence[Any]:
        pictures = encoded(sources)
        parts = list(map(wanted, pictures, rngs or [None] * len(pictures)))  # before anything is left: it may raise
        left = None if room is None else room.left
        kept = {} if left is None else _leave(pictures, share, upright, left)
        tasks = [
            None if data is None or part is None or k in kept else _task(data, part, upright)
            for k, (data, part) in enumerate(zip(pictures, parts, strict=True))
        ]
        results = run_together(recipe, tasks, out, room)
        for k, data in kept.items():
            results[k] = data if parts[k] is not None else None
        return _with_numbers(results, parts, kept)

    return run


def _leave(pictures: Sequence[Found | None], share: float, upright: bool, left: Left) -> dict[int, Tensor]:
    """Leave the share of the device to it, by number, and tell it how many samples were looked at."""
    yes = chosen(pictures, share if left.takes else 0, upright)
    kept = {k: left.keep(data) for k, data in enumerate(pictures) if data is not None and yes[k]}
    left.seen(len(pictures) - pictures.count(None))
    return kept


def _task(data: Found, part: Wanted, upright: bool) -> Task | None:
    view = View.of(*data.size(upright)).crop(*part.window)
    return None if view is None else Task(data, view)


def _with_numbers(results: list[Any], parts: Sequence[Wanted | None], kept: Mapping[int, Tensor]) -> Sequence[Any]:
    """Add the other outputs to the first one, if the operator has some."""
    places = [k for k, result in enumerate(results) if result is not None]
    numbers = [part.numbers(k in kept) for k in places if (part := parts[k]) is not None]
    if not numbers or not numbers[0]:
        return results
    for k, row in zip(places, np.array(numbers, np.float64), strict=True):  # views by torch would let the GIL go
        results[k] = results[k], *map(torch.from_numpy, row)
    return results
