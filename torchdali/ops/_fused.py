"""Operators that do the work of several, which `torchdali.graph.rewrite` replaces by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs._nvimgcodec import is_chosen
from torchdali.codecs.image_crops import (
    decode_crop,
    decode_scaled_crop,
    decode_upper,
    scale_for,
)
from torchdali.codecs.images import Header, peek_header
from torchdali.declaration.batching import EncodedBody
from torchdali.declaration.schema import (
    IMAGE_LAYOUTS,
    Data,
    DType,
    Image,
    Layout,
    Out,
    PerSample,
    Takes,
    shares,
)
from torchdali.errors import LAST_BUT_ONE, LAST_BUT_THREE, LAST_BUT_TWO, Part
from torchdali.kernels.exactness import exactness
from torchdali.kernels.native import Lines
from torchdali.kernels.resample.bytes import SMALLEST, resize_bytes
from torchdali.kernels.resample.separable import lines_read, resample
from torchdali.ops._crop import crop_mirror_normalize, crop_window
from torchdali.ops._decoders import (
    Encoded,
    cache_hints,
    choose_window,
    decoder_hints,
    decoding,
    image,
)
from torchdali.ops._fused_parts import (
    KNOWN,
    Kept,
    decode_whole,
    divide_all,
    divided,
    encoded_body_of,
    kept_of,
    lengths_of,
    lines_of,
    normalizing,
    parts_kept,
)
from torchdali.ops._native_images import make
from torchdali.ops._resize import FILTERS, axes_of, height_width, resampling, resized, sizing
from torchdali.rng import Rng
from torchdali.types import DALIImageType

__all__ = []


@operator(layout="HWC", devices=("mixed",))
def _decode_share(
    data: Encoded,
    /,
    **arguments: Annotated[Any, shares(decoding), shares(decoder_hints), shares(cache_hints)],
) -> Data:
    """Decode images, but return the bytes of those that a decoder on the device is to decode."""
    if data.ndim == 1 and is_chosen(data, arguments["hw_decoder_load"]):
        peek_header(data)  # raises for a size that no image has
        return data.clone()  # a reader may use its memory for the next record
    return image.body(data, **arguments)


@operator(layout="HWC", devices=("mixed",))
def _decode_seen(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    **arguments: Annotated[
        Any,
        shares(sizing),
        shares(crop_window),
        shares(decoder_hints),
        shares(cache_hints),
    ],
) -> tuple[Data, Data, Data, Data]:
    """Decode what a linear resize, and a crop after it, look at.

    Returns:
        The pixels, and what a resize of them takes: the size, and where its region starts and ends, two values each.
    """
    size, window, _, _ = divide_all(arguments)
    with LAST_BUT_TWO:
        header = peek_header(data)
        lengths = header.size(adjust_orientation)
    kept = kept_of(lengths, size, window)
    if kept is None:  # the crop has the error, or pads
        whole, region = sizing(lengths, **size)
        kept = Kept(whole, region, [(0, extent) for extent in whole], True)
    axes = zip(kept.region, kept.size, kept.windows, lengths, strict=True)
    (y, h, *rows), (x, w, *columns) = (_seen(*each) for each in axes)
    with LAST_BUT_TWO:
        part = decode_crop(
            data, y, x, h, w, adjust_orientation=adjust_orientation, fast=use_fast_idct, header=header
        )  # fmt: skip
    shape, start, end = torch.tensor([rows, columns], dtype=torch.float64).T.contiguous()
    return part, shape, start, end


def _seen(
    region: tuple[float, float], size: int, part: tuple[int, int], length: int
) -> tuple[int, int, int, float, float]:
    """Return which lines a part of a resized axis sees, and its size and region in these lines.

    Args:
        region: Of the input, that all of the output shows.
        size: Of all of the output.
        part: Start and extent in the output.
        length: Of the input.
    """
    low, high = region
    scale, (start, extent) = (high - low) / size, part
    low, high = low + start * scale, low + (start + extent) * scale
    reach = max(1.0, abs(scale)) + 1  # of the filter, and a line more for what rounding does
    first = min(max(0, math.floor(min(low, high) - reach)), length - 1)
    last = max(min(length, math.ceil(max(low, high) + reach)), first + 1)
    return first, last - first, extent, low - first, high - first


@operator(layout="HWC")
def _decode_random_resized_crop(
    data: Encoded,
    /,
    *,
    size: list[int],
    scaled: bool = False,
    flipped: PerSample[int] | None = None,
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DType | None = None,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    use_fast_idct: bool = False,
    rng: Rng,
    **others: Annotated[Any, shares(resampling), shares(decoder_hints), shares(cache_hints)],
) -> Image:
    """Decode a random window and resize it; at a reduced scale, if `scaled` and one has the pixels.

    Args:
        flipped: Of a `flip` before that, whether it changes the order of the columns; None without one.
    """
    target = height_width(size)
    decoding = LAST_BUT_ONE if flipped is None else LAST_BUT_TWO
    with decoding:
        lengths, header = lengths_of(data, adjust_orientation)
    window = choose_window(rng, *lengths, num_attempts, random_area, random_aspect_ratio)
    filters = {k: v for k, v in others.items() if k in FILTERS}
    # Without a header that Python read, the fast path has read it.
    if header is None and output_type == DALIImageType.RGB and dtype is None:
        made = _native_window(
            data, lengths, window, target, [(0, size) for size in target], filters, scaled, flipped,
            upright=adjust_orientation, fast=use_fast_idct,
        )  # fmt: skip
        if made is not None:
            return made
    return _window_resized(
        data, lengths, header, window, target, filters, decoding,
        scaled=scaled, flipped=flipped, upright=adjust_orientation, output_type=output_type, dtype=dtype,
        fast=use_fast_idct,
    )  # fmt: skip


def _native_window(
    data: Tensor,
    lengths: tuple[int, int],
    window: tuple[int, int, int, int],
    target: tuple[int, int],
    kept: list[tuple[int, int]],
    filters: dict[str, Any],
    scaled: bool,
    flipped: int | None,
    **how: Any,
) -> Tensor | None:
    """Decode, resize and finish a random window by the fast path, or return None.

    Args:
        kept: ``(start, extent)`` of what is wanted of the result, rows and columns.
        scaled: At the least size that has the pixels.
        flipped: The order of the columns is changed before.
        how: See `make`.
    """
    # As `_window_resized`: what the usual way does to bytes sees nothing outside of the window.
    inside = _sees_the_window_alone(target, filters)
    rows, columns, scale = _window_lines(lengths, window, target, kept, inside, scaled, flipped)
    return make(data, rows, columns, inside=inside, filters=filters, scale=scale, **how)


def _window_lines(
    lengths: tuple[int, int],
    window: tuple[int, int, int, int],
    target: tuple[int, int],
    kept: list[tuple[int, int]],
    inside: bool,
    scaled: bool,
    flipped: int | None,
) -> tuple[Lines, Lines, int]:
    """Describe both axes of a window that is resized to a target, of which a part is kept; and the scale."""
    y, x, h, w = _of_the_file(window, lengths) if flipped else window
    scale = 1
    if scaled and h >= 2 * target[0] and w >= 2 * target[1]:  # as in `_window_resized`
        y, x, h, w = (8 * (value // 8) for value in window)
        scale = scale_for(h, w, *target)
        y, x, h, w = (value // scale for value in (y, x, h, w))
    top, left = (y, x) if inside or scaled else (0, 0)
    bottom, right = (y + h, x + w) if inside or scaled else lengths
    rows = Lines(y, y + h, target[0], *kept[0], top, bottom)
    columns = Lines(*((x + w, x) if flipped else (x, x + w)), target[1], *kept[1], left, right)
    return rows, columns, scale


def _of_the_file(window: tuple[int, int, int, int], lengths: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a window of an image with its columns in reverse as one of the image as it is in the file."""
    y, x, h, w = window
    return y, lengths[1] - x - w, h, w


def _sees_the_window_alone(target: tuple[int, int], filters: dict[str, Any]) -> bool:
    return not exactness.on and min(target) >= SMALLEST and filters.keys() <= {"antialias"}


def _window_resized(
    data: Tensor,
    lengths: tuple[int, int],
    header: Header | None,
    window: tuple[int, int, int, int],
    target: tuple[int, int],
    filters: dict[str, Any],
    decoding: Part,
    *,
    flipped: int | None,
    **how: Any,
) -> Tensor:
    """Decode a window and resize it, in Python; errors of the decoder are of the operator that `decoding` marks."""
    if not flipped:
        return _upright_window_resized(data, lengths, header, window, target, filters, decoding, **how)
    window = _of_the_file(window, lengths)
    return _upright_window_resized(data, lengths, header, window, target, filters, decoding, **how).flip(1)


def _upright_window_resized(
    data: Tensor,
    lengths: tuple[int, int],
    header: Header | None,
    window: tuple[int, int, int, int],
    target: tuple[int, int],
    filters: dict[str, Any],
    decoding: Part,
    *,
    scaled: bool,
    upright: bool,
    output_type: DALIImageType,
    dtype: torch.dtype | None,
    fast: bool,
) -> Tensor:
    y, x, h, w = window
    inside = dtype in (None, torch.uint8) and _sees_the_window_alone(target, filters)
    filters = {**filters, "dtype": dtype}
    if output_type != DALIImageType.RGB or not (scaled or inside):  # or the filter reads outside of the window
        with decoding:
            whole = decode_whole(data, upright, output_type, fast)
        return resampling(whole, target, [(y, y + h), (x, x + w)], False, **filters)
    if not scaled:
        with decoding:
            part = decode_crop(data, *window, adjust_orientation=upright, fast=fast, header=header)
        if dtype is None:  # as nearly always: the shortest way
            return resize_bytes(part, target, filters.get("antialias", True))
        return resampling(part, target, None, False, **filters)
    if h >= 2 * target[0] and w >= 2 * target[1]:  # scaled windows are met exactly at whole blocks
        y, x, h, w = (8 * (value // 8) for value in window)
    with decoding:
        crop = decode_scaled_crop(data, y, x, h, w, *target, adjust_orientation=upright, fast=fast, header=header)
    roi = [(crop.y, crop.y + crop.h), (crop.x, crop.x + crop.w)]
    return resampling(crop.pixels, target, roi, False, **filters)


@operator(layout=lambda layouts, arguments: arguments["output_layout"])
def _resize_crop_mirror_normalize(
    data: Annotated[Tensor, Takes(IMAGE_LAYOUTS)],
    /,
    *,
    layout: Layout,
    out: Out = None,
    **arguments: Annotated[Any, shares(normalizing), shares(sizing), shares(resampling), shares(crop_window)],
) -> Image:
    """Resize, then crop, mirror and normalize; of the resized image only the crop is computed."""
    size, window, last, filters = divide_all(arguments)
    kept = kept_of(data.shape[:2], size, window) if window and layout == "HWC" else None
    if kept is None:
        channel = layout.index("C")
        with LAST_BUT_ONE:
            data = resized(data.movedim(channel, -1), layout, size, filters)
        data = data.movedim(-1, channel)
        last |= window
    else:
        with LAST_BUT_ONE:
            data = resampling(data, kept.size, kept.region, kept.at_border, kept.windows, **filters)
    return _normalized(data, layout=layout, out=out, **last)


_normalized = crop_mirror_normalize.body


@operator(layout=lambda layouts, arguments: arguments["output_layout"])
def _decode_resize_crop_mirror_normalize(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(normalizing),
        shares(sizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
        shares(cache_hints),
    ],
) -> Image:
    """Decode as many rows as the crop needs, and go on as `_resize_crop_mirror_normalize`."""
    size, window, last, others = divide_all(arguments)
    filters = {k: v for k, v in others.items() if k in FILTERS}
    with LAST_BUT_TWO:
        lengths, header = lengths_of(data, adjust_orientation)
    kept = kept_of(lengths, size, window) if output_type == DALIImageType.RGB else None
    if kept is not None and header is None:
        made = make(
            data, *lines_of(kept, (0, 0), lengths), upright=adjust_orientation, fast=use_fast_idct, inside=False,
            filters=filters, finish=last, out=out,
        )  # fmt: skip
        if made is not None:
            return made
    if kept is None:
        with LAST_BUT_TWO:
            whole = decode_whole(data, adjust_orientation, output_type, use_fast_idct)
        return _resize_crop_mirror_normalize.body(
            whole, layout=Layout("HWC"), out=out, **size, **window, **last, **filters
        )
    with LAST_BUT_ONE:
        described = axes_of(lengths, kept.size, kept.region, **filters)
        bottom = lines_read(described[0], kept.windows[0], kept.at_border)
    with LAST_BUT_TWO:
        upper = decode_upper(data, bottom, adjust_orientation=adjust_orientation, fast=use_fast_idct, header=header)
    with LAST_BUT_ONE:
        cut = resample(upper, described, torch.uint8, patch_border=kept.at_border, windows=kept.windows)
    return _normalized(cut, layout=Layout("HWC"), out=out, **last)


@operator(layout=lambda layouts, arguments: arguments["output_layout"])
def _decode_random_resized_crop_normalize(
    data: Encoded,
    /,
    *,
    size: list[int],
    scaled: bool = False,
    flipped: PerSample[int] | None = None,
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    use_fast_idct: bool = False,
    rng: Rng,
    out: Out = None,
    **arguments: Annotated[
        Any,
        shares(normalizing),
        shares(resampling),
        shares(crop_window),
        shares(decoder_hints),
        shares(cache_hints),
    ],
) -> Image:
    """Decode a random window, resize, mirror and normalize it, by the fast path in one call."""
    _, kept, last, others = divide_all(arguments)
    with LAST_BUT_ONE:
        target = height_width(size)
    decoding = LAST_BUT_TWO if flipped is None else LAST_BUT_THREE
    with decoding:
        lengths, header = lengths_of(data, adjust_orientation)
    with LAST_BUT_ONE:
        window = choose_window(rng, *lengths, num_attempts, random_area, random_aspect_ratio)
    filters = {k: v for k, v in others.items() if k in FILTERS}
    parts = parts_kept(target, kept) if output_type == DALIImageType.RGB else None
    if parts is not None and header is None:
        made = _native_window(
            data, lengths, window, target, parts, filters, scaled, flipped,
            upright=adjust_orientation, fast=use_fast_idct, finish=last, out=out,
        )  # fmt: skip
        if made is not None:
            return made
    with LAST_BUT_ONE:
        image = _window_resized(
            data, lengths, header, window, target, filters, decoding,
            scaled=scaled, flipped=flipped, upright=adjust_orientation, output_type=output_type, dtype=None,
            fast=use_fast_idct,
        )  # fmt: skip
    return _normalized(image, layout=Layout("HWC"), out=out, **kept, **last)


# ---------------------------------------------------------------- several samples in one call

_CHOOSING = ("num_attempts", "random_area", "random_aspect_ratio")


def _window_chooser(constants: Mapping[str, Any]) -> Callable[..., tuple[int, int, int, int]]:
    return functools.partial(choose_window, **{k: constants[k] for k in _CHOOSING if k in constants})


@chunk(_decode_random_resized_crop, "encoded")
def _encoded_random_resized_crop(constants: Mapping[str, Any]) -> EncodedBody | None:
    if constants.get("dtype") is not None:
        return None
    target = height_width(constants["size"])
    choose, filters = _window_chooser(constants), divided(constants).others
    inside, kept = _sees_the_window_alone(target, filters), [(0, extent) for extent in target]
    scaled, flipped = constants.get("scaled", False), constants.get("flipped")

    def describe(lengths: tuple[int, int], rng: Rng) -> tuple[Lines, Lines, int]:
        return _window_lines(lengths, choose(rng, *lengths), target, kept, inside, scaled, flipped)

    return encoded_body_of(constants, describe, inside, filters)


@chunk(_decode_random_resized_crop_normalize, "encoded")
def _encoded_random_resized_crop_normalize(constants: Mapping[str, Any]) -> EncodedBody | None:
    target = height_width(constants["size"])
    _, window, last, filters = divided({k: v for k, v in constants.items() if k != "size"})
    choose, parts = _window_chooser(constants), parts_kept(target, window)
    if parts is None:
        return None
    kept, inside = parts, _sees_the_window_alone(target, filters)
    scaled, flipped = constants.get("scaled", False), constants.get("flipped")

    def describe(lengths: tuple[int, int], rng: Rng) -> tuple[Lines, Lines, int]:
        return _window_lines(lengths, choose(rng, *lengths), target, kept, inside, scaled, flipped)

    return encoded_body_of(constants, describe, inside, filters, finish=last)


@chunk(_decode_resize_crop_mirror_normalize, "encoded")
def _encoded_resize_crop_mirror_normalize(constants: Mapping[str, Any]) -> EncodedBody | None:
    size, window, last, filters = divided(constants)

    @functools.lru_cache(KNOWN)
    def lines(lengths: tuple[int, int]) -> tuple[Lines, Lines] | None:
        kept = kept_of(lengths, size, window)
        return None if kept is None else lines_of(kept, (0, 0), lengths)

    return encoded_body_of(constants, lambda lengths, _: lines(lengths), False, filters, finish=last)
