"""Convert images to normalized floats with OpenCV, if it is installed.

The channels are split and mirrored as uint8, and then each channel is converted to floats. If the result is planar (one
contiguous plane per channel), the converted channels are written directly to the result. This saves a second pass over
the result, which is four times as large as the image and rarely in the cache. If the result isn't planar, OpenCV merges
the converted channels, with writes that bypass the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchdali.kernels.memory import SMALL_SAMPLE, Bytes, Floats, byte_planes
from torchdali.kernels.opencv import opencv

__all__ = ["Images", "join_runs", "mirror_rows", "mirror_small_images", "normalize_by_opencv"]

Values = list[tuple[float, float]]
Images = Bytes | Sequence[Bytes]
SplitChannels = Callable[[Any, Bytes, bool, list[Bytes]], None]

_MIN_PIXELS = 64  # images smaller than a vector register may be rounded differently
CHUNK = 1 << 21  # number of values that are processed in one step; most images have fewer values
PIXELS = 1 << 18  # number of values up to which intermediate floats stay in the cache


def normalize_by_opencv(
    out: Floats,
    images: Images,
    factor: tuple[float, ...],
    offset: tuple[float, ...],
    mirrored: Sequence[bool],
) -> bool:
    """Write ``image * factor + offset`` for each image.

    Args:
        out: Output ``(N, H, W, C)``, of any strides; fastest if channels or pixels are contiguous.
        images: Images ``(N, H, W, C)``, or a list of N images with equal strides, of 2 to 4 channels. The rows of
            pixels, or each channel's rows, or each channel's columns must be contiguous.
        factor: One value, or one value per channel, above 0; empty for no scaling.
        offset: As many finite values as in `factor`.
        mirrored: For each image, True to mirror it horizontally.

    Returns:
        True if the result was written. False if OpenCV isn't installed, doesn't support the arguments, or isn't faster.
    """
    _, height, width, channels = out.shape
    if (
        not 2 <= channels <= 4
        or height * width < _MIN_PIXELS
        or (factor and not (min(factor) > 0 and math.isfinite(sum(offset))))
        or (cv2 := opencv()) is None
        or (split := _choose_split(images[0])) is None
    ):
        return False
    if not factor:
        factor, offset = (1.0,), (0.0,)
    if len(factor) == 1:
        factor, offset = factor * channels, offset * channels
    values = list(zip(factor, offset, strict=True))
    if (planar := out.transpose(0, 3, 1, 2)).flags.c_contiguous:
        _write_planes(cv2, planar, images, values, mirrored, split)
        return True
    dense = out.strides[2:] == (channels * out.itemsize, out.itemsize)
    if dense and height * width * channels < PIXELS:  # OpenCV isn't faster for small images
        return False
    for result, image, reverse in zip(out, images, mirrored, strict=True):
        _write_pixels(cv2, result, image, values, reverse, split, dense)
    return True


def _write_planes(
    cv2: Any,
    results: Floats,
    images: Images,
    values: Values,
    mirrored: Sequence[bool],
    split: SplitChannels,
) -> None:
    """Write to a contiguous array ``(N, C, H, W)``: several small images in one step, or a large image in pieces."""
    batch, channels, height, width = results.shape
    if batch == 1 and channels * height * width <= CHUNK:  # the most common and fastest case
        planes = byte_planes(channels, height, width)
        split(cv2, images[0], mirrored[0], planes)
        for plane, result, (f, o) in zip(planes, results[0], values, strict=True):
            _scale(cv2, plane.reshape(1, -1), result.reshape(1, -1), f, o)
        return
    if split is _split_pixels:
        images, mirrored = mirror_small_images(cv2, images, mirrored)
    count = max(min(CHUNK // (channels * height * width), batch), 1)
    pieces = -(-channels * height * width // CHUNK)
    rows = -(-height // pieces)
    planes = byte_planes(channels, count * rows, width)
    flat = results.reshape(batch, channels, height * width)
    for first in range(0, batch, count):
        last = min(first + count, batch)
        for start in range(0, height, rows):
            start = min(start, height - rows)  # the last piece overlaps the previous piece
            for image, low, high in join_runs(images, mirrored, first, last):
                parts = [plane[(low - first) * rows : (high - first) * rows] for plane in planes]
                piece = image if high - low > 1 else image[start : start + rows]
                split(cv2, piece, mirrored[low], parts)
            part = slice(start * width, (start + rows) * width)
            for channel, (plane, (f, o)) in enumerate(zip(planes, values, strict=True)):
                source = plane.reshape(count, rows * width)[: last - first]
                _scale(cv2, source, flat[first:last, channel, part], f, o)


def mirror_small_images(cv2: Any, images: Images, mirrored: Sequence[bool]) -> tuple[Images, Sequence[bool]]:
    """Mirror the images that must be mirrored, so that `join_runs` can join all images; only for small images.

    Returns:
        A copy of the images, and False for each image. If the images are larger, or no image or every image must be
        mirrored, the function returns its arguments.
    """
    height, width, channels = images[0].shape
    indices = np.flatnonzero(mirrored)
    if images[0].nbytes > SMALL_SAMPLE or len(indices) in (0, len(images)):
        return images, mirrored
    stacked = np.stack(images) if isinstance(images, list) else np.array(images)
    joined = stacked[indices].reshape(-1, width, channels)
    stacked[indices] = mirror_rows(cv2, joined).reshape(-1, height, width, channels)
    return stacked, [False] * len(stacked)


def join_runs(images: Images, mirrored: Sequence[bool], first: int, last: int) -> Iterator[tuple[Bytes, int, int]]:
    """Yield images `first` to `last` (exclusive), each with the range of its indices.

    Adjacent images are joined to one taller image if all or none of them must be mirrored.
    """
    if not isinstance(images, np.ndarray):
        yield from ((images[i], i, i + 1) for i in range(first, last))
        return
    _, height, width, channels = images.shape
    low = first
    for i in range(first + 1, last + 1):
        if i == last or mirrored[i] != mirrored[low] or images.strides[0] != height * images.strides[1]:
            yield images[low:i].reshape((i - low) * height, width, channels), low, i
            low = i


def _write_pixels(
    cv2: Any,
    result: Floats,
    image: Bytes,
    values: Values,
    reverse: bool,
    split: SplitChannels,
    dense: bool,
) -> None:
    """Write to an array ``(H, W, C)`` of any strides; `dense` is True if its pixels are contiguous."""
    height, width, channels = result.shape
    rows = min(max(PIXELS // (width * channels), 1), height)
    planes = byte_planes(channels, rows, width)
    float_planes = list(np.empty((channels, rows, width), np.float32))
    for start in range(0, height, rows):
        start = min(start, height - rows)
        split(cv2, image[start : start + rows], reverse, planes)
        for plane, float_plane, (f, o) in zip(planes, float_planes, values, strict=True):
            _scale(cv2, plane.reshape(1, -1), float_plane.reshape(1, -1), f, o)
        part = result[start : start + rows]
        if dense:
            cv2.merge(float_planes, part)
            continue
        for channel, float_plane in enumerate(float_planes):
            part[..., channel] = float_plane


def _scale(cv2: Any, source: Bytes, target: Floats, factor: float, offset: float) -> None:
    """Write ``source * factor + offset`` to `target`; both are 2-D."""
    cv2.addWeighted(source, factor, source, 0.0, offset, target, cv2.CV_32F)


def _choose_split(image: Bytes) -> SplitChannels | None:
    """Return the function that splits images with this layout in memory; None for an unsupported layout."""
    rows, columns, channels = image.strides
    if channels == 1 and columns == image.shape[2]:
        return _split_pixels
    if columns == 1 and rows >= image.shape[1]:
        return _split_rows
    return _split_columns if rows == 1 and columns >= image.shape[0] else None


def _split_pixels(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    cv2.split(mirror_rows(cv2, pixels) if mirrored else pixels, planes)


def mirror_rows(cv2: Any, pixels: Bytes) -> Bytes:
    """Return the horizontally mirrored image."""
    result: Bytes = cv2.flip(pixels, 1)
    return result


def _split_rows(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    for plane, target in zip(pixels.transpose(2, 0, 1), planes, strict=True):
        if mirrored:
            cv2.flip(plane, 1, target)
        else:
            target[:] = plane


def _split_columns(cv2: Any, pixels: Bytes, mirrored: bool, planes: list[Bytes]) -> None:
    for plane, target in zip(pixels.transpose(2, 1, 0), planes, strict=True):
        cv2.transpose(cv2.flip(plane, 0) if mirrored else plane, target)
