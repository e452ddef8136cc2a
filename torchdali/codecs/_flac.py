"""FLAC by FFmpeg, if PyAV is there: it takes less time than libsndfile, to which everything unusual is left.

Source: RFC 9639.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.codecs._wav import Wav
from torchdali.errors import DecodeError
from torchdali.kernels.memory import byte_scratch

__all__ = ["Flac", "parse_flac"]

Array = npt.NDArray[Any]

_FIRST = b"fLaC\x00\x00\x00\x22"  # a stream that begins with its description, of 34 bytes
_DESCRIPTION = slice(len(_FIRST), len(_FIRST) + 34)
_LEAST = _DESCRIPTION.stop + 1
_FORMATS = {8: ("s16", np.int16), 16: ("s16", np.int16), 24: ("s32", np.int32)}
# Each block of samples has a checksum, and one that is wrong is an error.
_STRICT = {"err_detect": "crccheck+explode"}


class Flac(NamedTuple):
    """The description of a file, and the bytes of the samples.

    Attributes:
        bits: Of a sample.
        frames: Samples of a channel, as the description says.
    """

    rate: int
    channels: int
    bits: int
    frames: int
    description: bytes
    data: memoryview

    def read(self, dtype: np.dtype[Any], out: Array | None = None) -> Array:
        """Return the samples, as `Wav.read` does.

        Raises:
            DecodeError: they are damaged, or not what was promised.
        """
        parts = self._decoded()
        size = sum(part.nbytes for part in parts)
        words = byte_scratch((size,), "flac")
        np.concatenate(parts, out=words.view(parts[0].dtype))
        bits = 8 * parts[0].itemsize
        return Wav(self.rate, self.channels, bits, False, words).read(dtype, out)

    def _decoded(self) -> list[Array]:
        av = _av()
        context = av.CodecContext.create("flac", "r")
        context.extradata, context.thread_count, context.options = self.description, 1, dict(_STRICT)
        kind, dtype = _FORMATS[self.bits]
        try:
            # FFmpeg takes block after block from a packet: it needs no parser, and Python makes one call.
            blocks = context.decode(av.Packet(self.data))
        except (av.FFmpegError, ValueError):
            raise DecodeError("FLAC: damaged, or of a kind that FFmpeg does not know") from None
        counts = [block.samples for block in blocks]
        form = kind, self.channels, self.rate
        if sum(counts) != self.frames or any(_form(block) != form for block in blocks):
            raise DecodeError("FLAC: the samples are not what the file promises")
        pairs = zip(blocks, counts, strict=True)
        return [np.frombuffer(block.planes[0], dtype, n * self.channels) for block, n in pairs]


def parse_flac(encoded: Array) -> Flac | None:
    """Read the description of a FLAC file; None for anything unusual, and without PyAV.

    Args:
        encoded: ``(n,)`` uint8.
    """
    if len(encoded) < _LEAST or encoded[: len(_FIRST)].tobytes() != _FIRST or _av() is None:
        return None
    view: memoryview = np.ascontiguousarray(encoded).data
    description, begin = bytes(view[_DESCRIPTION]), _begin(view)
    packed = int.from_bytes(description[10:18], "big")
    rate, channels, bits = packed >> 44, (packed >> 41 & 7) + 1, (packed >> 36 & 31) + 1
    frames = packed & (1 << 36) - 1
    if bits not in _FORMATS or not frames or not rate or not begin:
        return None
    return Flac(rate, channels, bits, frames, description, view[begin:])


@functools.cache
def _av() -> Any:
    try:
        return importlib.import_module("av")
    except ImportError:
        return None


def _begin(view: memoryview) -> int:
    """Return where the samples begin, after all blocks of descriptions; 0 where there are none."""
    at, last = 4, False
    while not last:
        if at + 4 > len(view):
            return 0
        last = bool(view[at] & 0x80)
        at += 4 + int.from_bytes(view[at + 1 : at + 4], "big")
    return at if at < len(view) else 0


def _form(block: Any) -> tuple[str, int, int]:
    return block.format.name, block.layout.nb_channels, block.sample_rate
