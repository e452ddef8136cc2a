"""FLAC by FFmpeg, if PyAV is there: it takes less time than libsndfile, to which everything unusual is left.

Source: RFC 9639.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.codecs._wav import Wav

__all__ = ["decode_flac"]

Array = npt.NDArray[Any]

_BLOCK, _LAST = 4, 0x80  # bytes of a block's header; the bit of the last block before the sound
_FIRST = b"fLaC\x00\x00\x00\x22"  # a stream that begins with its description, of 34 bytes
_DESCRIPTION = slice(len(_FIRST), len(_FIRST) + 34)
_FORMATS = {8: ("s16", np.int16), 16: ("s16", np.int16), 24: ("s32", np.int32)}
# Each frame has a checksum, and one that is wrong is an error.
_STRICT = {"err_detect": "crccheck+explode"}


class _Promise(NamedTuple):
    """What a description says."""

    rate: int
    channels: int
    bits: int
    frames: int


def decode_flac(encoded: Array) -> Wav | None:
    """Decode a FLAC file to samples of 16 or 32 bits; None where it is damaged or unusual, or PyAV is missing.

    Args:
        encoded: ``(n,)`` uint8.
    """
    if encoded[: len(_FIRST)].tobytes() != _FIRST or _av() is None:
        return None
    view = np.ascontiguousarray(encoded).data
    promise, begin = _promise(bytes(view[_DESCRIPTION])), _begin(view)
    if promise.bits not in _FORMATS or not promise.frames or not promise.rate or not begin:
        return None
    parts = _decoded(view, begin, promise)
    if parts is None:
        return None
    data = np.concatenate(parts)
    bits = 8 * data.itemsize
    return Wav(promise.rate, promise.channels, bits, False, data.view(np.uint8))


@functools.cache
def _av() -> Any:
    try:
        return importlib.import_module("av")
    except ImportError:
        return None


def _promise(description: bytes) -> _Promise:
    packed = int.from_bytes(description[10:18], "big")
    bits, channels = packed >> 36 & 0x1F, packed >> 41 & 7
    return _Promise(packed >> 44, channels + 1, bits + 1, packed & (1 << 36) - 1)


def _begin(view: memoryview) -> int:
    """Return where the sound begins, after all blocks of descriptions; 0 where there is none."""
    at, last = _BLOCK, False
    while not last:
        if at + _BLOCK > len(view):
            return 0
        last = bool(view[at] & _LAST)
        at += _BLOCK + int.from_bytes(view[at + 1 : at + _BLOCK], "big")
    return at if at < len(view) else 0


def _decoded(view: memoryview, begin: int, promise: _Promise) -> list[Array] | None:
    """Return the samples of all blocks of sound, if they are what was promised."""
    av = _av()
    context = av.CodecContext.create("flac", "r")
    context.extradata, context.thread_count = bytes(view[_DESCRIPTION]), 1
    context.options = dict(_STRICT)
    kind, dtype = _FORMATS[promise.bits]
    known, missing = (kind, promise.channels, promise.rate), promise.frames
    parts: list[Array] = []
    try:
        for packet in _packets(context, view[begin:]):
            for frame in context.decode(packet):
                missing -= frame.samples
                if missing < 0 or _form(frame) != known:
                    return None
                parts.append(np.frombuffer(frame.planes[0], dtype, frame.samples * promise.channels))
    except (av.FFmpegError, ValueError):
        return None
    return None if missing else parts


def _form(frame: Any) -> tuple[str, int, int]:
    return frame.format.name, frame.layout.nb_channels, frame.sample_rate


def _packets(context: Any, view: memoryview) -> Iterator[Any]:
    """Divide a stream; the parser keeps packets back, and gives one each time that it is told of the end."""
    yield from context.parse(view)
    while packets := context.parse(None):
        yield from packets
