"""Write PNG files with 1 to 4 channels of 8 or 16 bits, or with a palette.

Format: https://www.w3.org/TR/png-3/. Pillow does not write 16-bit colors.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["write_png"]

_COLORS = {1: 0, 2: 4, 3: 2, 4: 6}  # for each number of channels, PNG's color type
_PALETTE = 3
_SUB = 1  # the filter that stores the difference of each byte from the previous pixel's byte


def write_png(pixels: npt.NDArray[Any], palette: bytes = b"", alpha: bytes = b"") -> bytes:
    """Return an image as a PNG file.

    Args:
        pixels: ``(H, W, C)``, uint8 or uint16: gray, gray and alpha, RGB, RGB and alpha; or palette indices.
        palette: RGB of each palette entry; empty if the image has no palette.
        alpha: Alpha of the palette's first ``len(alpha)`` entries. All later entries are opaque.
    """
    height, width, channels = pixels.shape
    color = _PALETTE if palette else _COLORS[channels]
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, color, 0, 0, 0)
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    if not palette:
        step = channels * pixels.itemsize
        rows = np.concatenate([rows[:, :step], rows[:, step:] - rows[:, :-step]], 1)
    scanlines = np.insert(rows, 0, 0 if palette else _SUB, 1)
    colors = [(b"PLTE", palette), (b"tRNS", alpha)] if palette else []
    parts = [(b"IHDR", header), *colors, (b"IDAT", zlib.compress(scanlines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
