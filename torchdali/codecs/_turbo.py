"""Decode JPEGs with simplejpeg (extra ``image``), which is faster than torchvision and returns the same pixels.

simplejpeg contains a newer libjpeg-turbo, which can also decode at a half, a quarter or an eighth of the size. To
decode only the upper rows of a sequential JPEG, this module reduces the height in the header. The pixels of the
decoded rows don't change.

simplejpeg always runs in strict mode, where libjpeg's warnings are errors. In lenient mode, simplejpeg would also
ignore fatal errors, and return uninitialized pixels. If libjpeg warns about an image, torchvision must decode the
image, because torchvision distinguishes warnings from errors. This module ignores only the warning that the reduced
height causes.
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

_CONTEXT_ROWS = 4  # the chroma of a row depends on at most this number of rows below the row
_END = b"\xff\xd9"
_IGNORED_WARNING = re.compile(r"\ACorrupt JPEG data: \d+ extraneous bytes before marker 0xd\d\Z")
_MARK = np.frombuffer(os.urandom(8), np.uint8)  # random bytes, which no image contains by chance
_SEQUENTIAL, _SUPPORTED = (0xC0, 0xC1), (0xC0, 0xC1, 0xC2)  # frame markers; C2 is progressive


@cache
def library() -> Any:
    """Return the module simplejpeg, or None if it is not installed."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


def decode_whole(view: memoryview, frame: int, fast: bool = False, fancy: bool = True) -> Pixels | None:
    """Decode to ``(H, W, 3)`` RGB; return None if torchvision must decode the image.

    Args:
        view: A JPEG of one or three channels.
        frame: Offset of the frame header; see `jpeg_frame`.
        fast: Use libjpeg's faster, less exact transform.
        fancy: If True, upsample chroma smoothly; if False, repeat chroma samples.
    """
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _SUPPORTED or view[-2:] != _END:
        return None
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(view, "RGB", fastdct=fast, fastupsample=not fancy)
    except ValueError:  # an unusual subsampling, or damaged data for which torchvision will raise an error
        return None
    return pixels


def decode_rows(
    view: memoryview, frame: int, height: int, bottom: int, fast: bool = False, fancy: bool = True
) -> Pixels | None:
    """Decode at least the rows above `bottom`; return None if another library must decode the image.

    Args:
        bottom: End (exclusive) of the rows. The other arguments are the same as in `decode_whole`.
    """
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _SUPPORTED or view[-2:] != _END:
        return None
    view, rows = _shorten(view, frame, height, bottom + _CONTEXT_ROWS)
    width = view[frame + 7] << 8 | view[frame + 8]
    buffer = _allocate_marked(rows * width * 3)
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(view, "RGB", fastdct=fast, fastupsample=not fancy, buffer=buffer)
    except ValueError as error:
        return _extract_rows(buffer, (rows, width), error) if rows < height else None
    return pixels


def decode_scaled(
    view: memoryview, frame: int, height: int, bottom: int, scale: int, fast: bool = False
) -> Pixels | None:
    """Decode at least the rows above `bottom`, at a half, a quarter or an eighth of the size.

    Args:
        bottom: End (exclusive) of the rows, counted at full size.
        scale: 2, 4 or 8; the result has ``ceil(n / scale)`` rows and columns.

    Returns:
        ``(rows, columns, 3)`` RGB; None if another library must decode the image.
    """
    simplejpeg = library()
    if simplejpeg is None or view[frame + 1] not in _SUPPORTED or view[-2:] != _END:
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
        return _extract_rows(buffer, (height, width), error) if is_short else None
    return pixels if pixels.shape[:2] == (height, width) else None


def _extract_rows(buffer: Pixels, size: tuple[int, int], error: ValueError) -> Pixels | None:
    """Return the decoded pixels if the reduced height caused the only error; otherwise None.

    The message of the error is libjpeg's first warning, or the failure that ended decoding. If libjpeg already warned
    about the header, no pixels were decoded, and the end of the buffer still has the mark of `_allocate_marked`.
    """
    height, width = size
    pixels = buffer[: height * width * 3]
    if _IGNORED_WARNING.match(str(error)) and pixels[-8:].tobytes() != _MARK[-pixels.size :].tobytes():
        return pixels.reshape(height, width, 3)
    return None


def _allocate_marked(size: int) -> Pixels:
    """Return memory for pixels, with a mark of random bytes at its end."""
    memory = np.empty(size, np.uint8)
    memory[max(0, size - 8) :] = _MARK[-size:]
    return memory


def _shorten(view: memoryview, frame: int, height: int, rows: int) -> tuple[memoryview, int]:
    """Reduce the height in a JPEG's header if possible; return the JPEG and its height."""
    if rows >= height or view[frame + 1] not in _SEQUENTIAL:
        return view, height
    return _with_height(view, frame, rows), rows


def _with_height(view: memoryview, frame: int, rows: int) -> memoryview:
    copy = memoryview(bytearray(view))
    copy[frame + 5], copy[frame + 6] = rows >> 8, rows & 255
    return copy
