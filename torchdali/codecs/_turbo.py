"""JPEGs by simplejpeg (the extra ``image``): torchvision's pixels, sooner or fewer of them.

It brings a newer libjpeg-turbo, which can decode at a half, a quarter or an eighth of the size. And of a sequential
JPEG whose header is made to claim fewer rows, libjpeg decodes those alone, bit for bit.

It always runs in strict mode. Its leniency forgives libjpeg's fatal errors too, and then the pixels are the memory's
old content. So images about which libjpeg only warns are decoded by torchvision, which distinguishes warnings from
failures. The one exception is the warning that the shortened header causes.
"""

from __future__ import annotations

import importlib
import os
import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Pixels", "decode_rows", "decode_scaled", "decode_whole"]

Pixels = npt.NDArray[np.uint8]

_CONTEXT_ROWS = 4  # colors of a row are interpolated from at most as many rows below it
_END = b"\xff\xd9"
_ROWS_LEFT = re.compile(r"\ACorrupt JPEG data: \d+ extraneous bytes before marker 0xd\d\Z")  # end or restart
_UNTOUCHED = np.frombuffer(os.urandom(8), np.uint8)  # bytes that no image holds by chance
_SEQUENTIAL, _USUAL = (0xC0, 0xC1), (0xC0, 0xC1, 0xC2)  # frame markers; C2 is progressive


@cache
def library() -> Any:
    """Return the module simplejpeg, or None."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


def decode_whole(view: memoryview, frame: int, fast: bool = False, fancy: bool = True) -> Pixels | None:
    """Decode ``(H, W, 3)`` RGB; None if torchvision must.

    Args:
        view: A JPEG of one or three channels.
        frame: Where its frame header begins, as `jpeg_frame` returns it.
        fast: By libjpeg's faster and coarser transform.
        fancy: Upsample colors smoothly, else repeat each.
    """
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _USUAL or view[-2:] != _END:
        return None
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(view, "RGB", fastdct=fast, fastupsample=not fancy)
    except ValueError:  # an unusual subsampling; or damaged, and torchvision says how
        return None
    return pixels


def decode_rows(
    view: memoryview, frame: int, height: int, bottom: int, fast: bool = False, fancy: bool = True
) -> Pixels | None:
    """Decode the rows of an image above `bottom`, and perhaps more. None: as `decode_whole`."""
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _USUAL or view[-2:] != _END:
        return None
    view, rows = _shorten(view, frame, height, bottom + _CONTEXT_ROWS)
    width = view[frame + 7] << 8 | view[frame + 8]
    buffer = _allocate_marked(rows * width * 3)
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(view, "RGB", fastdct=fast, fastupsample=not fancy, buffer=buffer)
    except ValueError as error:
        return _take_complete_rows(buffer, (rows, width), error) if rows < height else None
    return pixels


def decode_scaled(
    view: memoryview, frame: int, height: int, bottom: int, scale: int, fast: bool = False
) -> Pixels | None:
    """Decode the rows above `bottom`, and perhaps more, at a scale of a half, a quarter or an eighth.

    Args:
        view: A JPEG of one or three channels.
        frame: Where its frame header begins.
        height: Height of the image.
        bottom: In rows of the whole image.
        scale: 2, 4 or 8; rows and columns come out as ``ceil(n / scale)``.
        fast: As for `decode_whole`.

    Returns:
        As `decode_rows`.
    """
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _USUAL or view[-2:] != _END:
        return None
    view, rows = _shorten(view, frame, height, bottom + _CONTEXT_ROWS * scale)
    width = view[frame + 7] << 8 | view[frame + 8]
    is_short = rows < height
    height, width = -(-rows // scale), -(-width // scale)
    buffer = _allocate_marked(height * width * 3)
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(
            view, "RGB", fastdct=fast, min_height=height, min_width=width, buffer=buffer
        )
    except ValueError as error:
        return _take_complete_rows(buffer, (height, width), error) if is_short else None
    return pixels if pixels.shape[:2] == (height, width) else None


def _take_complete_rows(buffer: Pixels, size: tuple[int, int], error: ValueError) -> Pixels | None:
    """Return the pixels of a JPEG with a shortened header if its one fault is that rows remain; else None.

    The error names libjpeg's first warning, or the failure that ended the decoding. A warning about the header
    comes before anything is decoded: then the end of the buffer is as `_allocate_marked` left it.
    """
    height, width = size
    pixels = buffer[: height * width * 3]
    if _ROWS_LEFT.match(str(error)) and pixels[-8:].tobytes() != _UNTOUCHED[-pixels.size :].tobytes():
        return pixels.reshape(height, width, 3)
    return None


def _allocate_marked(size: int) -> Pixels:
    """Return memory for the pixels, its end marked."""
    memory = np.empty(size, np.uint8)
    memory[max(0, size - 8) :] = _UNTOUCHED[-size:]
    return memory


def _shorten(view: memoryview, frame: int, height: int, rows: int) -> tuple[memoryview, int]:
    """Return a JPEG that ends after some rows, if it can be made so, and the rows that it has."""
    if rows >= height or view[frame + 1] not in _SEQUENTIAL:
        return view, height
    return _with_height(view, frame, rows), rows


def _with_height(view: memoryview, frame: int, rows: int) -> memoryview:
    """Copy a JPEG, with another height in its header."""
    copy = memoryview(bytearray(view))
    copy[frame + 5], copy[frame + 6] = rows >> 8, rows & 255
    return copy
