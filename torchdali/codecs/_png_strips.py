"""Large PNGs, a few rows at a time: OpenCV has a second copy of the image that it decodes."""

from __future__ import annotations

import functools
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._image_headers import Header, png_chunks
from torchdali.kernels.opencv import opencv

__all__ = ["decode_png_in_strips"]

_LARGE = 1 << 22  # pixels
_STRIP = 1 << 19  # bytes of rows
_BLOCK = 0xFFFF  # bytes of a block that is not compressed, at most
_ORDERS = {0: [0], 2: [2, 1, 0], 6: [2, 1, 0, 3]}  # OpenCV's channels in the file's order, by type of color


def decode_png_in_strips(encoded: memoryview, header: Header, opaque: bool) -> Tensor | None:
    """Decode gray, RGB or RGBA of 8 or 16 bits to ``(H, W, C)``; None for small images, others and damaged ones.

    Each strip becomes a PNG of its own, which begins with the last row of the strip before: filters look at the row
    above.

    Args:
        encoded: Has no other chunks than those of the pixels.
        opaque: Leave the alpha channel of RGB out.
    """
    cv2 = opencv()
    if cv2 is None or header.height * header.width < _LARGE or not _is_plain(encoded):
        return None
    kind, order = np.dtype(f">u{header.depth // 8}"), _ORDERS[encoded[25]]
    kept = min(len(order), 3) if opaque else len(order)
    pixels = np.empty((header.height, header.width, kept), kind.newbyteorder("="))
    line = 1 + header.width * len(order) * kind.itemsize
    done, above = 0, b""
    try:
        for blocks in _inflated(encoded, max(1, _STRIP // line) * line, header.height * line):
            count = sum(map(len, blocks)) // line
            strip = _png(encoded[16:29], count + (done > 0), [*_divided(above), *blocks])
            decoded = cv2.imdecode(np.frombuffer(strip, np.uint8), cv2.IMREAD_UNCHANGED)
            if decoded is None:
                return None
            rows = np.atleast_3d(decoded)
            _copy(cv2, rows[-count:], pixels[done : done + count])
            above, done = b"\0" + rows[-1][:, order].astype(kind).tobytes(), done + count
    except (ValueError, zlib.error, cv2.error):
        return None
    return torch.from_numpy(pixels)


def _is_plain(encoded: memoryview) -> bool:
    """Return True for 8 or 16 bits of gray, RGB or RGBA, not interlaced."""
    depth, color, *method = encoded[24:29]
    kinds = b"".join(kind for kind, _, _ in png_chunks(encoded))
    plain = depth in (8, 16) and color in _ORDERS and not any(method)
    return plain and re.fullmatch(b"IHDR(IDAT)+IEND", kinds) is not None


def _inflated(encoded: memoryview, size: int, left: int) -> Iterator[list[bytes]]:
    """Yield rows with their filters, `size` bytes in blocks; ValueError where all are not `left` bytes."""
    inflate, blocks = zlib.decompressobj(), []
    short = min(size, left)
    for kind, start, length in png_chunks(encoded):
        for rest in _divided(encoded[start : start + length]) if kind == b"IDAT" else ():
            while rest and not inflate.eof:
                blocks.append(inflate.decompress(rest, min(short, _BLOCK) or 1))
                rest = inflate.unconsumed_tail
                short -= len(blocks[-1])
                if short < 0:
                    raise ValueError("more rows than the header claims")
                if not short and left:
                    yield blocks
                    left, blocks = left - size, []
                    short = max(0, min(size, left))
    if left > 0 or not inflate.eof:
        raise ValueError("fewer rows than the header claims")


def _divided(data: Any) -> list[Any]:
    return [data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)]


def _png(header: memoryview, height: int, blocks: Sequence[bytes]) -> bytes:
    """Return a PNG of rows in blocks, not compressed."""
    size = header[:4].tobytes() + struct.pack(">I", height)
    parts = [b"\x78\x01"]
    for block in blocks:
        parts += struct.pack("<BHH", 0, len(block), len(block) ^ _BLOCK), block
    checksum = functools.reduce(lambda sum, block: zlib.adler32(block, sum), blocks, 1)
    parts += struct.pack("<BHH", 1, 0, _BLOCK), struct.pack(">I", checksum)
    chunks = _chunk(b"IHDR", size, header[8:]), _chunk(b"IDAT", *parts), _chunk(b"IEND")
    return b"\x89PNG\r\n\x1a\n" + b"".join(part for chunk in chunks for part in chunk)


def _chunk(kind: bytes, *parts: Any) -> list[Any]:
    checksum = functools.reduce(lambda sum, part: zlib.crc32(part, sum), parts, zlib.crc32(kind))
    length = sum(map(len, parts))
    return [struct.pack(">I4s", length, kind), *parts, struct.pack(">I", checksum)]


def _copy(cv2: Any, rows: Any, into: Any) -> None:
    """Copy what OpenCV decoded, in the order of the file; colors by OpenCV, as NumPy takes ten times as long."""
    codes = {(3, 3): cv2.COLOR_BGR2RGB, (4, 3): cv2.COLOR_BGRA2RGB, (4, 4): cv2.COLOR_BGRA2RGBA}
    if rows.shape[2] == 1:
        into[...] = rows
    else:
        cv2.cvtColor(rows, codes[rows.shape[2], into.shape[2]], dst=into)
