"""Headers of audio files: detect the format, remove leading tags, and correct missing lengths.

A program that writes audio to a pipe cannot go back to write the length to the header, so the header has a placeholder.
Some libraries use the placeholder as the length. Therefore, `correct_length` replaces it by the true length.

Sources: ID3v2.4; EBU Tech 3306 (RF64); the specifications of W64, AU and CAF.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali.codecs._wav import lacks_length

__all__ = ["BY_FFMPEG", "detect_format", "correct_length", "strip_tags", "unwrap_wave"]

Array = npt.NDArray[Any]

_BY_FFMPEG: tuple[tuple[bytes, str], ...] = (
    (rb"\0.{3}ftypM4[AB] ", "M4A"),
    (rb".{4}(?:ftyp|moov|mdat|wide|free|skip)", "MP4"),
    (rb"\x1a\x45\xdf\xa3", "Matroska or WebM"),
    (rb"\xff[\xf0\xf1\xf8\xf9]", "AAC (ADTS)"),
    (rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "ASF (WMA)"),
    (rb"#!AMR", "AMR"),
    (rb"\x0b\x77", "AC-3"),
    (rb"OggS.{24}Speex   ", "Speex"),
    (rb"OggS.{24}(?:\x7fFLAC|fLaC)", "FLAC in Ogg"),
    (rb"RIFF.{4}AVI ", "AVI"),
    (rb"FLV\x01", "FLV"),
    (rb"\0\0\x01\xba", "MPEG"),
    (rb"G.{187}G", "MPEG-TS"),
)
_BY_LIBSNDFILE: tuple[tuple[bytes, str], ...] = (
    (rb"fLaC", "FLAC"),
    (rb"OggS", "Ogg"),
    (rb"(?:RIFF|RIFX|RF64).{4}WAVE", "WAV"),
    (rb"FORM.{4}AIF[FC]", "AIFF"),
    (rb"\.snd|dns\.", "AU"),
    (rb"riff\x2e\x91\xcf\x11", "W64"),
    (rb"caff", "CAF"),
    (rb"\xff[\xe2-\xe5\xf2-\xf5\xfa-\xfd]|ID3[\x02-\x04]", "MP3"),
)
BY_FFMPEG = frozenset(name for _, name in _BY_FFMPEG)
"""Names of the formats that FFmpeg supports, but libsndfile doesn't."""

_PATTERNS = [(re.compile(pattern, re.DOTALL), name) for pattern, name in (*_BY_FFMPEG, *_BY_LIBSNDFILE)]
_HEAD = 189  # number of first bytes from which the format is detected


def detect_format(encoded: Array) -> str:
    """Return the name of a file's format, detected by its first bytes."""
    head = encoded[:_HEAD].tobytes()
    return next((name for pattern, name in _PATTERNS if pattern.match(head)), "unknown format")


def strip_tags(encoded: Array) -> Array:
    """Return an audio file without leading ID3 tags, and without zeros after the tags."""
    offset = 0
    while (head := encoded[offset : offset + 10].tobytes())[:3] == b"ID3" and len(head) == 10 and max(head[6:]) < 0x80:
        size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
        offset += 10 + size + (10 if head[5] & 0x10 else 0)
    rest = encoded[offset:]
    if offset and len(rest) and not rest[0]:
        rest = rest[int(np.argmax(rest != 0)) :]
    return rest


def unwrap_wave(encoded: Array) -> Array:
    """Return the MPEG audio inside a WAV file; return other files unchanged.

    For MPEG audio in a WAV file, libraries estimate the number of samples from the first MPEG frame, or use a wrong
    number in the WAV header.
    """
    format_offset, offset = (
        (_find_chunk(encoded, name) for name in (b"fmt ", b"data"))
        if encoded[:4].tobytes() == b"RIFF"
        else (None, None)
    )
    if format_offset is None or offset is None or encoded[format_offset : format_offset + 2].tobytes() not in _MPEG:
        return encoded
    return encoded[offset : _find_end(encoded, offset)]


_MPEG = (b"\x50\0", b"\x55\0")  # WAVE format numbers of MPEG audio


def correct_length(encoded: Array) -> Array:
    """Return a file with a correct length in its header: the unchanged file, or a corrected copy.

    A W64 file is also cut after its samples, because libsndfile would decode the following chunks as samples.
    """
    find_fields = _LENGTH_FIXES.get(encoded[:4].tobytes())
    fields = [] if find_fields is None else find_fields(encoded)
    if not fields:
        return encoded[: _find_w64_end(encoded)] if find_fields is _w64 else encoded
    corrected = encoded.copy()
    for offset, field in fields:
        corrected[offset : offset + len(field)] = np.frombuffer(field, np.uint8)
    return corrected


_Fields = list[tuple[int, bytes]]  # offset and correct value of each header field to change


def _riff(encoded: Array) -> _Fields:
    """Correct the length of a RIFF file's samples.

    The length is wrong if the header has the placeholder 0, or if the samples would reach beyond the end of the file.
    """
    offset = _find_chunk(encoded, b"data")
    if offset is None or (end := _find_end(encoded, offset)) == offset + _read_count(encoded, offset):
        return []
    return [(offset - 4, struct.pack("<I", min(end - offset, 0xFFFFFFFF)))]


def _find_end(encoded: Array, offset: int) -> int:
    """Return the end of a RIFF file's samples.

    If the header's length is wrong, return the end of the file.
    """
    stated, available = _read_count(encoded, offset), len(encoded) - offset
    return offset + (available if stated > available or (not stated and lacks_length(encoded, offset)) else stated)


def _read_count(encoded: Array, offset: int) -> int:
    return int.from_bytes(encoded[offset - 4 : offset].tobytes(), "little")


def _rf64(encoded: Array) -> _Fields:
    offset = _find_chunk(encoded, b"data")
    if offset is None or encoded[12:16].tobytes() != b"ds64" or len(encoded) < 36:
        return []
    stated, available = int.from_bytes(encoded[28:36].tobytes(), "little"), len(encoded) - offset
    if stated <= available if stated else not lacks_length(encoded, offset):
        return []
    return [(20, struct.pack("<QQQ", len(encoded) - 8, available, 0))]


def _w64(encoded: Array) -> _Fields:
    offset = _find_chunk_data(encoded, 40, "<4s12xQ", 24)
    if offset is None or _find_w64_end(encoded) <= len(encoded):
        return []
    return [(16, struct.pack("<Q", len(encoded))), (offset - 8, struct.pack("<Q", len(encoded) - offset + 24))]


def _find_w64_end(encoded: Array) -> int:
    """Return the end of a W64 file's samples; the end of the file if the header has no valid length."""
    offset = _find_chunk_data(encoded, 40, "<4s12xQ", 24)
    stated = 0 if offset is None else int.from_bytes(encoded[offset - 8 : offset].tobytes(), "little")
    return len(encoded) if offset is None or stated < 24 else offset + stated - 24


def _au(encoded: Array) -> _Fields:
    if len(encoded) < 12:
        return []
    begin, stated = struct.unpack_from(">II", encoded.data, 4)
    return [(8, b"\xff\xff\xff\xff")] if not stated or stated > len(encoded) - begin else []


def _caf(encoded: Array) -> _Fields:
    offset = _find_chunk_data(encoded, 8, ">4sq", 0)
    if offset is None or encoded[offset - 8 : offset].tobytes() != b"\xff" * 8:
        return []
    return [(offset - 8, struct.pack(">q", len(encoded) - offset))]


_LENGTH_FIXES: dict[bytes, Callable[[Array], _Fields]] = {
    b"RIFF": _riff, b"RF64": _rf64, b"riff": _w64, b".snd": _au, b"caff": _caf,
}  # fmt: skip


def _find_chunk(encoded: Array, name: bytes) -> int | None:
    """Return the offset of the data of a RIFF file's chunk; None if the chunk is missing."""
    return _find_chunk_data(encoded, 12, "<4sI", 0, name)


def _find_chunk_data(
    encoded: Array, offset: int, layout: str, included_bytes: int, chunk_name: bytes = b"data"
) -> int | None:
    """Return the offset of a chunk's data; None if the chunk is missing.

    Args:
        offset: Offset of the first chunk.
        layout: `struct` format of the start of a chunk: name and length.
        included_bytes: Number of bytes at the start of a chunk that the length includes.
        chunk_name: Name of the chunk; by default the chunk of the samples.
    """
    head = struct.Struct(layout)
    while offset + head.size <= len(encoded):
        name, length = head.unpack_from(encoded.data, offset)
        offset += head.size
        if name == chunk_name:
            return offset
        if length < included_bytes:
            return None
        length -= included_bytes
        offset += length + (-length % 8 if included_bytes else length & 1 if layout[0] == "<" else 0)
    return None
