"""Decoders of an image or a window, and what comes after them, as one call of the fast path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs.image_crops import decode_crop
from torchdali.declaration.batching import EncodedBody, argument_names
from torchdali.declaration.schema import Data, Image, Layout, Out, PerSample, shares
from torchdali.errors import LAST, LAST_BUT_ONE, LAST_BUT_THREE, LAST_BUT_TWO
from torchdali.kernels.memory import placed
from torchdali.kernels.native import Lines
from torchdali.ops._crop import crop, crop_mirror_normalize, crop_window
from torchdali.ops._decoders import (
    Encoded,
    Window,
    cache_hints,
    choose_window,
    decoder_hints,
    place_window,
)
from torchdali.ops._fused import _resize_crop_mirror_normalize
from torchdali.ops._fused_parts import (
    KNOWN,
    Kept,
    decode_whole,
    divided,
    encoded_body_of,
    flipped_lines,
    kept_of,
    lengths_of,
    lines_of,
    normalizing,
    parts_kept,
    whole_lines,
)
from torchdali.ops._native_images import make
from torchdali.ops._resize import resampling, resized, sizing
from torchdali.ops._slice import slice_window
from torchdali.rng import Rng
from torchdali.types import DALIImageType

__all__: list[str] = []

_PARTS = LAST, LAST_BUT_ONE, LAST_BUT_TWO, LAST_BUT_THREE
_HWC = Layout("HWC")


def window_decoding(
    *,
    adjust_orientation: bool = True,
    cropped: bool = False,
    flipped: PerSample[int] | None = None,
    normalizes: bool = False,
    resizes: bool = False,
    use_fast_idct: bool = False,
) -> None:
    """Arguments of the decoder, and the operators that are fused with it.

    Args:
        cropped: A `crop` after the decoder cuts the window.
        flipped: Of a `flip` before what follows, whether it changes the order of the columns; None without one.
        normalizes: A `crop_mirror_normalize` is the last.
        resizes: A `resize` follows the window.
    """


def _layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return str(arguments["output_layout"]) if arguments["normalizes"] else "HWC"


_CHOOSING = ("num_attempts", "random_area", "random_aspect_ratio")
_CROP, _SLICE = argument_names(crop_window), argument_names(slice_window)


@operator(layout=_layout)
def _decode_image(
    data: Encoded,
    /,
    *,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(window_decoding),
        shares(normalizing),
        shares(sizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
        shares(cache_hints),
    ],
) -> Image:
    """Decode an image; resize, crop, mirror and normalize it."""
    return _decode(data, _whole, arguments, {}, out)


def _whole(height: int, width: int) -> Window:
    return 0, 0, height, width


@operator(layout=_layout)
def _decode_random_crop(
    data: Encoded,
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    rng: Rng,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(window_decoding),
        shares(normalizing),
        shares(sizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
    ],
) -> Image:
    """Decode a random window; resize, crop, mirror and normalize it."""

    def choose(height: int, width: int) -> Window:
        return choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)

    return _decode(data, choose, arguments, {}, out)


@operator(layout=_layout)
def _decode_crop(
    data: Encoded,
    /,
    *,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(window_decoding),
        shares(crop_window),
        shares(normalizing),
        shares(sizing),
        shares(resampling),
        shares(decoder_hints),
    ],
) -> Image:
    """Decode a window; resize, mirror and normalize it."""
    rest, own = _apart(arguments, _CROP)
    return _decode(data, _crop_chooser(own, bool(rest.get("cropped"))), rest, own, out)


@operator(layout=_layout)
def _decode_slice(
    data: Encoded,
    anchor: Data | None = None,
    extents: Data | None = None,
    /,
    *,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(window_decoding),
        shares(slice_window),
        shares(normalizing),
        shares(sizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
    ],
) -> Image:
    """Decode a slice; resize, crop, mirror and normalize it."""
    rest, own = _apart(arguments, _SLICE)

    def choose(height: int, width: int) -> Window:
        size = (height, width)
        return place_window(size, *slice_window(size, "HW", anchor, extents, **own))

    return _decode(data, choose, rest, own, out)


def _apart(arguments: Mapping[str, Any], names: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the other arguments, and those with these names."""
    own = {k: v for k, v in arguments.items() if k in names}
    return {k: v for k, v in arguments.items() if k not in names}, own


Choose = Callable[[int, int], "Window | None"]
"""Takes height and width of an image, and returns the window: y, x, height and width."""


def _crop_chooser(own: dict[str, Any], cropped: bool) -> Choose:
    """Return what places a window; one that reaches outside is None for `crop`, which has an error of its own."""

    def choose(height: int, width: int) -> Window | None:
        if not cropped:
            return place_window((height, width), *crop_window((height, width), "HW", **own))
        parts = parts_kept((height, width), own)
        return None if parts is None else (parts[0][0], parts[1][0], parts[0][1], parts[1][1])

    return choose


def _decode(
    data: Tensor,
    choose: Choose,
    arguments: dict[str, Any],
    own: dict[str, Any],
    out: Tensor | None,
) -> Tensor:
    """Decode a window, and do what follows.

    Args:
        own: Arguments of the window.
    """
    upright, fast = arguments.get("adjust_orientation", True), arguments.get("use_fast_idct", False)
    resizes, normalizes = bool(arguments.get("resizes")), bool(arguments.get("normalizes"))
    flipped = bool(arguments.get("flipped"))
    cropping = _PARTS[resizes + normalizes]
    decoding = _PARTS[resizes + normalizes + bool(arguments.get("cropped")) + (arguments.get("flipped") is not None)]
    size, window, last, filters = divided(arguments)
    with decoding:
        lengths, header = lengths_of(data, upright)
    with cropping:
        place = choose(*lengths)
    if place is None:
        with decoding:
            whole = decode_whole(data, upright, DALIImageType.RGB, fast)
        with cropping:
            cut = crop.body(whole, layout=_HWC, **own)
    else:
        lines = _lines(place, lengths, size, window, resizes, normalizes, flipped) if header is None else None
        if lines is not None:
            made = make(
                data, *lines, upright=upright, fast=fast, inside=False, filters=filters,
                finish=last if normalizes else None, out=out,
            )  # fmt: skip
            if made is not None:
                return made
        with decoding:
            if place == _whole(*lengths):
                cut = decode_whole(data, upright, DALIImageType.RGB, fast)
            else:
                cut = decode_crop(data, *place, adjust_orientation=upright, fast=fast, header=header)
    if flipped:
        cut = cut.flip(1)
    if resizes and normalizes:
        return _resize_crop_mirror_normalize.body(cut, layout=_HWC, out=out, **size, **window, **last, **filters)
    if normalizes:
        return crop_mirror_normalize.body(cut, layout=_HWC, out=out, **window, **last)
    return placed(resized(cut, _HWC, size, filters) if resizes else cut, out)


def _lines(
    place: Window,
    lengths: tuple[int, int],
    size: dict[str, Any],
    window: dict[str, Any],
    resizes: bool,
    normalizes: bool,
    flipped: bool = False,
) -> tuple[Lines, Lines] | None:
    """Describe both axes of what is wanted of a window; None where a crop of it reaches outside."""
    y, x, h, w = place
    if flipped:
        found = _lines(place, lengths, size, window, resizes, normalizes)
        return None if found is None else (found[0], flipped_lines(found[1], x, x + w))
    if not resizes:
        parts = parts_kept((h, w), window)
        if parts is None:
            return None
        (top, height), (left, width) = parts
        return whole_lines(lengths, [(y + top, height), (x + left, width)])
    if normalizes:
        kept = kept_of((h, w), size, window)
    else:
        shape, region = sizing((h, w), **size)
        kept = Kept(shape, region, [(0, extent) for extent in shape], True)
    return None if kept is None else lines_of(kept, (y, x), (h, w))


# ---------------------------------------------------------------- several samples in one call


@chunk(_decode_image, "encoded")
def _encoded_image(constants: Mapping[str, Any]) -> EncodedBody | None:
    return _encoded_body(constants, lambda lengths, _: _whole(*lengths))


@chunk(_decode_random_crop, "encoded")
def _encoded_random_crop(constants: Mapping[str, Any]) -> EncodedBody | None:
    given = {k: constants[k] for k in _CHOOSING if k in constants}

    def choose(lengths: tuple[int, int], rng: Rng) -> Window:
        return choose_window(rng, *lengths, **given)

    return _encoded_body(constants, choose)


@chunk(_decode_crop, "encoded")
def _encoded_crop(constants: Mapping[str, Any]) -> EncodedBody | None:
    rest, own = _apart(constants, _CROP)
    choose = _crop_chooser(own, bool(rest.get("cropped")))
    return _encoded_body(rest, lambda lengths, _: choose(*lengths))


def _encoded_body(
    constants: Mapping[str, Any], choose: Callable[[tuple[int, int], Any], Window | None]
) -> EncodedBody | None:
    resizes, normalizes = bool(constants.get("resizes")), bool(constants.get("normalizes"))
    flipped = bool(constants.get("flipped"))
    size, window, last, filters = divided(constants)

    @functools.lru_cache(KNOWN)
    def lines(place: Window, lengths: tuple[int, int]) -> tuple[Lines, Lines] | None:
        return _lines(place, lengths, size, window, resizes, normalizes, flipped)

    def describe(lengths: tuple[int, int], rng: Any) -> tuple[Lines, Lines] | None:
        place = choose(lengths, rng)
        return None if place is None else lines(place, lengths)

    return encoded_body_of(constants, describe, False, filters, finish=last if normalizes else None)
