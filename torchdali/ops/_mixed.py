"""Hidden operators (not in `fn`) that decode a part of each batch on the CPU.

The other part of the batch, called the device's share, is decoded by the device's hardware decoder; see
`execute.hardware_decoding`. For the images of this share, the operators return the encoded bytes instead of pixels.
For all other images, the operators decode only the region that the following operators use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs._native import Files, Parts, Table, WindowChoice, examine, lot_limit
from torchdali.codecs.image_crops import decode_crop
from torchdali.codecs.images import peek_header
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.batching import ChunkResults, EncodedImplementation, argument_names
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Data, shares
from torchdali.errors import FusedPart
from torchdali.kernels.memory import IN_PLACE, Array, BufferedResult, ChunkImages, DeviceShare, SharedBuffer
from torchdali.kernels.native import AxisRegion, ImageOptions, library
from torchdali.ops._crop import crop_window, narrow_to_crop
from torchdali.ops._decoders import (
    Encoded,
    cache_hints,
    choose_window,
    decoder_hints,
    decoding_options,
)
from torchdali.ops._resize import sizing
from torchdali.rng import Rng

__all__: list[str] = []

_DECODER, _RESIZE = FusedPart(0), FusedPart(1)


Build = Callable[[int, int], ImageProgram]
"""Function of an image's height and width that returns the image's program.

An image program describes the region of an image to compute, and how to resize and flip the region.
"""


def _is_resized(constants: Mapping[str, Any]) -> bool:
    """Return True if the arguments contain the size of a resize."""
    return any(
        constants.get(name) is not None for name in ("size", "resize_x", "resize_y", "resize_shorter", "resize_longer")
    )


@operator(
    layout="HWC", devices=("mixed",), marks=("shared",), outputs=lambda constants: 4 if _is_resized(constants) else None
)
def _decode_share(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    **arguments: Annotated[Any, shares(sizing), shares(crop_window), shares(decoder_hints), shares(cache_hints)],
) -> Data:
    """Decode images, or return the encoded bytes of images that the hardware decoder decodes.

    If the arguments contain the size of a resize, the operator decodes only the pixels that are needed for a resize
    with a linear filter, followed by a crop.

    Returns:
        The pixels or bytes. If the arguments contain the size of a resize, the operator returns three more tensors
        ``(y, x)`` for the operator that resizes the pixels: the size of the result, and the start and the end of the
        region to resize.
    """
    is_resized = _is_resized(arguments)
    build = _resize_crop_builder(arguments) if is_resized else ImageProgram.of
    outputs = _decode_region(data, build, is_resized, adjust_orientation, use_fast_idct, arguments)
    return outputs if is_resized else outputs[0]  # type: ignore[return-value]


@operator(layout="HWC", devices=("mixed",), marks=("shared",))
def _decode_random_share(
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
    """Decode a random window, or return the encoded bytes of an image that the hardware decoder decodes.

    Returns:
        The pixels or bytes, and two tensors ``(y, x)`` for the operator that resizes the pixels: the start and the end
        of the region to resize.
    """

    def build(height: int, width: int) -> ImageProgram:
        window = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
        program = ImageProgram.of(height, width).crop(*window)
        assert program is not None
        return program

    outputs = _decode_region(data, build, False, adjust_orientation, use_fast_idct, arguments)
    return outputs  # type: ignore[return-value]


def _decode_region(
    data: Tensor, build: Build, has_size: bool, upright: bool, fast: bool, hints: Mapping[str, Any]
) -> tuple[Tensor, ...]:
    with _DECODER:
        header = peek_header(data)
    program = build(*header.size(upright))
    is_for_device = _is_for_device(data, {**hints, "adjust_orientation": upright})
    pixels = data
    if not is_for_device:
        with _DECODER:
            pixels = decode_crop(
                data,
                *program.window,
                adjust_orientation=upright,
                fast=fast,
                header=header,
                fancy=hints.get("jpeg_fancy_upsampling", True),
            )
    low, high = _region_bounds(program, is_for_device)
    numbers = [program.size, low, high] if has_size else [low, high]
    return pixels, *torch.tensor(numbers, dtype=torch.float64).unbind(0)


def _region_bounds(program: ImageProgram, of_image: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the start and the end ``(y, x)`` of the region that a program resizes.

    Args:
        of_image: True for positions in the whole image, False for positions in the decoded window.
    """
    rows, columns = program.rows, program.columns
    y, x = (0, 0) if of_image else (rows.first, columns.first)
    return (rows.low - y, columns.low - x), (rows.high - y, columns.high - x)


def _is_for_device(data: Tensor, arguments: Mapping[str, Any]) -> bool:
    """Return True if the hardware decoder decodes the image."""
    share = arguments.get("hw_decoder_load", 0.0)
    if data.ndim != 1 or share <= 0 or library() is None:
        return False
    options = ImageOptions(upright=arguments.get("adjust_orientation", True))
    return 0 <= int(examine([data], options).rows["lot"][0]) < lot_limit(share)


def _resize_crop_builder(arguments: Mapping[str, Any]) -> Build:
    """Return the function that builds the program of a resize followed by a crop."""
    size, window = (
        {k: v for k, v in arguments.items() if k in argument_names(function)} for function in (sizing, crop_window)
    )

    def build(height: int, width: int) -> ImageProgram:
        with _RESIZE:
            (new_height, new_width), (rows, columns) = sizing((height, width), **size)
        resized = ImageProgram.of(new_height, new_width)
        cropped = narrow_to_crop(resized, window) or resized  # None if the crop reaches outside
        seen_rows = _read_region(rows, new_height, cropped.rows, height)
        return ImageProgram(seen_rows, _read_region(columns, new_width, cropped.columns, width), 0)

    return build


def _read_region(region: tuple[float, float], size: int, output_region: AxisRegion, length: int) -> AxisRegion:
    """Return the input rows (or columns) that a linear resize needs to compute a part of its output rows (or columns).

    Args:
        region: Start and end of the input that is resized to the whole output.
        size: Number of output rows.
        output_region: The output rows to compute.
        length: Number of input rows.
    """
    low, high = region
    scale, start, extent = (high - low) / size, output_region.first, output_region.extent
    low, high = low + start * scale, low + (start + extent) * scale
    reach = max(1.0, abs(scale)) + 1  # radius of the filter, and one pixel more for rounding
    first = min(max(0, math.floor(min(low, high) - reach)), length - 1)
    last = max(min(length, math.ceil(max(low, high) + reach)), first + 1)
    return AxisRegion(low, high, extent, 0, extent, first, last)


# ---------------------------------------------------------------- several samples in one call

_CACHED_SIZES = 256  # number of image sizes whose windows are cached

Plan = Callable[[Sequence[tuple[int, int]]], tuple[Array, tuple[Array, ...], Array]]
"""Function of the heights and widths of N images.

The function returns the windows to decode ``(N, 4)``, a tuple with the output sizes of the resize ``(N, 2)``, and an
array with the starts of all regions to resize, followed by the ends of these regions.
"""


@chunk(_decode_random_share, "encoded")
def _random_regions(constants: Mapping[str, Any]) -> EncodedImplementation | None:
    arguments = registry["_decode_random_share"].arguments(constants)
    attempts, area, ratio = (arguments[name] for name in ("num_attempts", "random_area", "random_aspect_ratio"))
    try:
        choice = WindowChoice.random(_is_upright(constants), attempts, area, ratio)
    except RuntimeError:  # raised again when the images are decoded one by one
        return None
    return _batch_decoder(constants, choice)


@chunk(_decode_share, "encoded")
def _regions(constants: Mapping[str, Any]) -> EncodedImplementation | None:
    if not _is_resized(constants):
        return _batch_decoder(constants, WindowChoice.whole(_is_upright(constants)))
    build = _resize_crop_builder(constants)

    @functools.lru_cache(_CACHED_SIZES)
    def row(size: tuple[int, int]) -> tuple[float, ...]:
        program = build(*size)
        low, high = _region_bounds(program, True)
        return *program.window, *program.size, *low, *high

    def plan(sizes: Sequence[tuple[int, int]]) -> tuple[Array, tuple[Array, ...], Array]:
        rows = np.array(list(map(row, sizes)))
        regions = rows[:, 6:].reshape(-1, 2, 2).transpose(1, 0, 2)
        return rows[:, :4].astype(np.int64), (rows[:, 4:6].copy(),), regions.ravel()

    return _batch_decoder(constants, WindowChoice.explicit(_is_upright(constants)), plan)


def _is_upright(constants: Mapping[str, Any]) -> bool:
    return bool(constants.get("adjust_orientation", True))


def _batch_decoder(
    constants: Mapping[str, Any], choice: WindowChoice, plan: Plan | None = None
) -> EncodedImplementation | None:
    """Return the function that decodes several images in one call; None if the native library is missing.

    Args:
        choice: Describes how the native library chooses the window of each image.
        plan: Function that computes windows and regions from the images' sizes; None to let the native library compute
            windows and regions.
    """
    if library() is None:
        return None
    options, load = decoding_options(constants), constants.get("hw_decoder_load", 0.0)

    def run(
        sources: Sequence[Tensor | str | None],
        out: Tensor | None,
        rngs: Any,
        values: Mapping[str, Sequence[Any]],
        buffer: SharedBuffer | None = None,
    ) -> ChunkResults:
        table, readable = examine(sources, options), None
        random_words = None if rngs is None else rngs.words()
        if table.rows["code"].any():
            readable = np.flatnonzero(table.rows["code"] == 0)
            table, random_words = (
                table.pick(readable),
                None if random_words is None else _pick_words(random_words, readable),
            )
        count = len(table.rows)
        if not count:
            return ChunkResults((), range(len(sources)))
        windows: Array | None = None
        size: tuple[Array, ...] = ()
        regions = None if choice.is_whole else Table.of(4 * count, np.dtype(np.float64))
        if plan is not None and regions is not None:  # may raise an error, so it comes before the device gets images
            windows, size, regions.rows[:] = plan(_image_sizes(table.rows, options.upright))
        share = None if buffer is None or buffer.share is None or not buffer.share.is_accepting else buffer.share
        parts = Parts(table, choice, 0.0 if share is None else load, random_words, windows, regions)
        images, undecoded = _decode_with_device(options, table.rows, parts, out, buffer, share)
        numbers = () if regions is None else (*size, *regions.rows.reshape(2, count, 2))
        outputs = (images, *map(torch.from_numpy, numbers))
        if readable is None and not len(undecoded):
            return ChunkResults(outputs)
        return _scatter_results(outputs, np.arange(count) if readable is None else readable, undecoded, len(sources))

    return run


def _pick_words(numbers: tuple[int, Array, int], indices: Array) -> tuple[int, Array, int]:
    """Select the random numbers of some samples; see `SampleRngs.words`."""
    key, words, _ = numbers
    words = words[indices]
    return key, words, words.ctypes.data


def _scatter_results(outputs: Sequence[Any], indices: Array, undecoded: Array, count: int) -> ChunkResults:
    """Return the results of all samples of a chunk. A chunk is the samples that are processed in one call.

    Samples without a result are listed as skipped.

    Args:
        outputs: For each output, the results of the samples in `indices`.
        indices: Indices of the samples that were passed to the native library.
        undecoded: Positions in `indices` of the images that the native library couldn't decode.
        count: Number of samples in the chunk.
    """
    columns: list[list[Any]] = [[None] * count for _ in outputs]
    for column, results in zip(columns, outputs, strict=True):
        for k, item in zip(indices.tolist(), results, strict=True):
            column[k] = item
    done = set(indices.tolist()) - set(indices[undecoded].tolist())
    return ChunkResults(tuple(columns), [k for k in range(count) if k not in done])


def _image_sizes(files: Files, upright: bool) -> list[tuple[int, int]]:
    """Return the images' heights and widths, after the rotation that EXIF requires if `upright` is True."""
    heights, widths = files["height"], files["width"]
    if upright and (turned := files["orientation"] > 4).any():
        heights, widths = np.where(turned, widths, heights), np.where(turned, heights, widths)
    return list(zip(heights.tolist(), widths.tolist(), strict=True))


def _decode_with_device(
    options: ImageOptions,
    files: Files,
    parts: Parts,
    out: Tensor | None,
    buffer: SharedBuffer | None,
    share: DeviceShare | None,
) -> tuple[Sequence[Any], Array]:
    """Decode the images of a chunk, and add the images that the hardware decoder decodes to the device's share.

    Args:
        parts: Windows to decode, and the division of the images between CPU and device.
        out: Tensor for the result, used if all images have the same shape as the samples of `out`.
        buffer: Buffer for the images; None to allocate memory.
        share: The device's share of the batch; None to decode all images on the CPU.

    Returns:
        The images, and the indices of the images that the native library couldn't decode.
    """
    offset = -1 if buffer is None else buffer.reserve(parts.pixel_bytes)
    in_place = None if offset >= 0 else _in_place_results(parts, out)
    memory = torch.empty(parts.pixel_bytes, dtype=torch.uint8) if offset < 0 and in_place is None else None
    if buffer is not None and offset >= 0:
        address = buffer.address + offset
    else:
        address = memory.data_ptr() if memory is not None else out.data_ptr() if out is not None else 0
    failed = parts.decode(
        options, address, share.reserve(parts.copy_bytes) if share is not None and parts.shared_count else 0
    )
    first = share.add(files, parts.table, parts.shared_count) if share is not None and parts.shared_count else 0
    if buffer is not None and buffer.share is not None:
        buffer.share.count_examined(len(files))
    images: Sequence[Any] = ChunkImages(parts.table, max(offset, 0), first, share) if in_place is None else in_place
    if memory is not None:
        images = [
            memory[e[0] : e[0] + math.prod(e[1])].view(e[1]) if isinstance(e, BufferedResult) else e for e in images
        ]
    undecoded = np.flatnonzero(files["code"]) if failed else _NO_INDICES
    return images, undecoded if first >= 0 else np.arange(len(files))  # -1: the share was already submitted


_NO_INDICES = np.empty(0, np.int64)


def _in_place_results(parts: Parts, out: Tensor | None) -> Sequence[Any] | None:
    """Return the results of a chunk whose images can be written into `out`; None if the shapes don't match."""
    fits = out is not None and out.dtype == torch.uint8 and out.is_contiguous() and len(out) == len(parts.table)
    if out is None or not fits or not (parts.table["shape"] == out.shape[1:]).all():
        return None
    return [IN_PLACE] * len(out)
