"""Correct MP3 files whose headers do not state the length.

In this module, "block" means a group of samples that is coded together; the standards call a block a frame. Libraries
estimate the length of these files from the size of the first block, and decode no more than this length. Libraries also
stop at tags between or after blocks.

Sources: ISO/IEC 11172-3 and 13818-3; the tag of Xing and LAME.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.codecs.signatures import HEAD, is_other_format

__all__ = ["MP3_BLOCK", "prepend_silent_block", "strip_garbage"]

Array = npt.NDArray[Any]

MP3_BLOCK = 1152  # maximum number of samples per block

_HEADER = re.compile(rb"\xff[\xe2\xe3\xf2-\xf5\xfa-\xfd]")  # header of layer II or III
# A block that contains a tag with the number of blocks, after the header and the side information.
_COUNT_TAG = re.compile(
    rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]..(?:.{9}|.{17}|.{32})(?:Xing|Info)...[\x01\x03\x05\x07\x09\x0b\x0d\x0f](?!\0{4})",
    re.DOTALL,
)
_RATES = (44100, 48000, 32000)  # rates of MPEG-1
_HALVED = {3: 0, 2: 1, 0: 2}  # for each version number, how often the rates are halved
_KBITS = {
    (3, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG-1, layer III
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),  # layer II
}
_LOW_KBITS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)  # MPEG-2 and 2.5


class _MpegFrame(NamedTuple):
    """The values in a block's header.

    Attributes:
        size: Size of the block in bytes.
        samples: Number of samples per channel.
        format: Version, layer, rate, and whether there is only one channel; equal for all blocks of a file.
    """

    size: int
    samples: int
    format: tuple[int, int, int, bool]


@functools.lru_cache(maxsize=4096)
def _parse_header(header: bytes) -> _MpegFrame | None:
    """Parse the four bytes of a header; return None if they aren't a header, or don't determine the block's size."""
    if len(header) < 4 or not _HEADER.match(header) or header[2] >> 4 in (0, 15) or header[2] >> 2 & 3 == 3:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    rate = _RATES[header[2] >> 2 & 3] >> _HALVED[version]
    samples = 576 if layer == 1 and version < 3 else MP3_BLOCK
    kbits = _KBITS.get((version, layer), _LOW_KBITS)[(header[2] >> 4) - 1]
    return _MpegFrame(
        samples // 8 * kbits * 1000 // rate + (header[2] >> 1 & 1), samples, (version, layer, rate, header[3] >> 6 == 3)
    )


def prepend_silent_block(encoded: Array) -> tuple[Array, int]:
    """Put a silent block before the blocks of an MP3 file that doesn't state its number of blocks.

    The silent block has the smallest possible size. Libraries estimate the file's length from the first block's size,
    so the estimate isn't too short.

    Returns:
        The blocks, and the number of samples per channel in the silent block. If the file states its number of blocks,
        or isn't an MP3 file, the unchanged bytes and 0.
    """
    head = encoded[:64].tobytes()
    if not _HEADER.match(head) or _COUNT_TAG.match(head):
        return encoded, 0
    runs = _find_runs(encoded.tobytes())
    silent = _build_silent_block(head)
    first = _parse_header(silent[:4])
    if not runs or first is None:
        return encoded, 0
    blocks = np.concatenate([np.frombuffer(silent, np.uint8), *(encoded[a:b] for a, b in runs)])
    _mute(blocks[first.size :])
    return blocks, first.samples


_MAX_RESERVOIR = 511  # maximum number of bytes that a block needs from earlier blocks


def _mute(blocks: Array) -> None:
    """Silence the first blocks of layer III if they need bytes of earlier blocks that are missing, as decoders do."""
    offset = available = 0
    while (
        available < _MAX_RESERVOIR
        and (block := _parse_header(blocks[offset : offset + 4].tobytes()))
        and block.format[1] == 1
    ):
        version, _, _, is_mono = block.format
        side_info = offset + (4 if blocks[offset + 1] & 1 else 6)
        shift = 7 if version == 3 else 8
        needed = int.from_bytes(blocks[side_info : side_info + 2].tobytes(), "big") >> shift
        size = (17 if is_mono else 32) if version == 3 else (9 if is_mono else 17)
        if needed > available:
            blocks[side_info : side_info + size] = 0
            # These two bytes contain the number of earlier bytes that the block uses.
            blocks[side_info : side_info + 2] = divmod(available << shift, 256)
        available += max(offset + block.size - side_info - size, 0)
        offset += block.size


def strip_garbage(encoded: Array) -> Array:
    """Remove the bytes before the first MPEG block that at least two more blocks follow."""
    data = encoded[:_SEARCHED_BYTES].tobytes()
    if is_other_format(data[:HEAD], "sound"):
        return encoded
    for header in _HEADER.finditer(data):
        first = _parse_header(data[header.start() : header.start() + 4])
        if first is not None and _count_blocks(data, header.start(), first.format, _MIN_BLOCKS)[0] == _MIN_BLOCKS:
            return encoded[header.start() :]
    return encoded


_SEARCHED_BYTES = 1 << 16  # number of bytes that are searched for the first block, as in libsndfile and FFmpeg
_MIN_BLOCKS = 3  # number of consecutive blocks with equal `format` that other data rarely contains by chance


def _build_silent_block(head: bytes) -> bytes:
    """Return the smallest block that has the `format` of the block whose first bytes are `head`."""
    header = bytes((head[0], head[1] | 1, 0x10 | head[2] & 0x0C, head[3]))
    block = _parse_header(header)
    return header if block is None else header.ljust(block.size, b"\0")


def _find_runs(data: bytes) -> list[tuple[int, int]]:
    """Return `(start, end)` of each run of complete, consecutive blocks with the format of the first block.

    A single block counts as a run only at the end of the file. If the data doesn't begin with a run, the result is
    empty.
    """
    first, begin = _parse_header(data[:4]), 0
    runs: list[tuple[int, int]] = []
    while first is not None:
        count, end = _count_blocks(data, begin, first.format)
        if count > 1 or (count and end == len(data)):
            runs.append((begin, end))
        elif not begin:
            break
        header = _HEADER.search(data, end if count > 1 else begin + 1)
        if header is None:
            break
        begin = header.start()
    return runs


def _count_blocks(
    data: bytes, offset: int, format: tuple[int, int, int, bool], limit: float = math.inf
) -> tuple[int, int]:
    """Count complete, consecutive blocks of one format, up to `limit`; return the count, and the last block's end."""
    count, end = 0, len(data)
    while count < limit and (block := _parse_header(data[offset : offset + 4])) is not None and block.format == format:
        if offset + block.size > end:
            break
        offset, count = offset + block.size, count + 1
    return count, offset
