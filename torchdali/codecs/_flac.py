"""Decode FLAC with FFmpeg (PyAV).

torchdali uses libsndfile, which is slower, for unusual files, and for all files if PyAV is not installed.

In this module, "block" means a group of samples that is coded together. The standard, RFC 9639, calls a block a frame.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.codecs._wav import Wav
from torchdali.errors import DecodeError, MissingExtraError

__all__ = ["Flac", "check_bits", "parse_flac", "drop_last_block"]

Array = npt.NDArray[Any]

_SIGNATURES = (b"fLaC\x00\x00\x00\x22", b"fLaC\x80\x00\x00\x22")  # first bytes of a file, before the description
_DESCRIPTION = slice(8, 8 + 34)
_MIN_BYTES = _DESCRIPTION.stop + 1
_SUPPORTED_BITS = (8, 16, 24)  # bit depths that libsndfile supports
# Each block has a checksum. These options make a wrong checksum an error.
_STRICT = {"err_detect": "crccheck+explode"}


class Flac(NamedTuple):
    """The description at the start of a FLAC file, and the encoded samples.

    Attributes:
        rate: Sample rate in Hz.
        bits: Number of bits per sample.
        frames: Number of samples per channel according to the description; 0 if unknown.
        data: The encoded samples.
    """

    rate: int
    channels: int
    bits: int
    frames: int
    description: bytes
    data: memoryview

    def read(self, dtype: np.dtype[Any], out: Array | None = None) -> Array:
        """Return the samples; see `Wav.read`.

        Raises:
            DecodeError: The samples are damaged, or contradict the description.
        """
        parts = self._decode()
        bits = 8 * parts[0].itemsize
        if bits == 32 and dtype == np.int16:
            return Wav(self.rate, self.channels, bits, False, np.concatenate(parts).view(np.uint8)).read(dtype, out)
        frames = sum(map(len, parts)) // self.channels
        samples = np.empty((frames, self.channels), dtype) if out is None else out
        values = samples.reshape(-1)
        np.concatenate(parts, out=values, casting="unsafe")
        if dtype == np.float32:
            values *= np.float32(2.0 ** (1 - bits))
        elif dtype == np.int32 and bits == 16:
            values <<= 16
        return samples

    def _decode(self) -> list[Array]:
        av = _av()
        context = av.CodecContext.create("flac", "r")
        context.extradata, context.thread_count, context.options = self.description, 1, dict(_STRICT)
        kind, dtype = ("s16", np.int16) if self.bits <= 16 else ("s32", np.int32)
        try:
            # FFmpeg decodes all blocks of a packet. Therefore, all blocks can be passed as one packet.
            blocks = context.decode(av.Packet(self.data))
        except (av.FFmpegError, ValueError):
            raise DecodeError(f"FLAC of {self.bits} bits: damaged, or a variant that FFmpeg doesn't support") from None
        counts = [block.samples for block in blocks]
        expected = kind, self.channels, self.rate
        if sum(counts) not in self._expected_counts() or any(_audio_format(block) != expected for block in blocks):
            raise DecodeError("FLAC: the samples do not match the checksum or count in the file's header")
        pairs = zip(blocks, counts, strict=True)
        return [np.frombuffer(block.planes[0], dtype, n * self.channels) for block, n in pairs]

    def _expected_counts(self) -> tuple[int, ...]:
        """Return the numbers of samples per channel that an undamaged file may have.

        At damaged data, PyAV stops without an error, so the number of decoded samples must be compared.
        """
        if self.frames:
            return (self.frames,)
        last = _find_last_block(self)
        counts = () if last is None else (last.begin, last.begin + last.samples)
        return tuple(count for count in counts if count)


def parse_flac(encoded: Array) -> Flac | None:
    """Read the description of a FLAC file; return None for unusual files, or if PyAV is not installed."""
    return _parse_stream_info(encoded) if _av() is not None else None


def check_bits(encoded: Array) -> None:
    """Check that libsndfile or PyAV supports the bit depth of a FLAC file.

    Raises:
        MissingExtraError: Only PyAV supports the bit depth, and PyAV is not installed.
        DecodeError: PyAV cannot decode the file either.
    """
    sound = _parse_stream_info(encoded)
    if sound is None or sound.bits in _SUPPORTED_BITS:
        return
    if _av() is None:
        raise MissingExtraError("av", "video", f"decoding audio (FLAC of {sound.bits} bits)")
    sound.read(np.dtype(np.int32))


def _parse_stream_info(encoded: Array) -> Flac | None:
    if len(encoded) < _MIN_BYTES or encoded[:8].tobytes() not in _SIGNATURES:
        return None
    view: memoryview = np.ascontiguousarray(encoded).data
    description, begin = bytes(view[_DESCRIPTION]), _find_samples(view)
    packed = int.from_bytes(description[10:18], "big")
    rate, channels, bits = packed >> 44, (packed >> 41 & 7) + 1, (packed >> 36 & 31) + 1
    frames = packed & (1 << 36) - 1
    if bits < 4 or not rate or not begin:
        return None
    return Flac(rate, channels, bits, frames, description, view[begin:])


def drop_last_block(encoded: Array) -> Array | None:
    """Return a file without its last block, which may be truncated.

    Return None if the description states the number of samples, or if no block can be removed.
    """
    sound = _parse_stream_info(encoded)
    if sound is None or sound.frames:
        return None
    last = _find_last_block(sound)
    return encoded[: len(encoded) - len(sound.data) + last.offset] if last is not None and last.offset else None


class _FlacBlock(NamedTuple):
    """The values in a block's header.

    Attributes:
        offset: Offset of the block.
        begin: Number of samples per channel before the block.
        samples: Number of samples per channel in the block.
    """

    offset: int
    begin: int
    samples: int


def _find_last_block(sound: Flac) -> _FlacBlock | None:
    """Find the last block of a file; return None if no block has the format of the first block."""
    data = bytes(sound.data)
    offset = len(data)
    for _ in range(_MAX_TRIES):
        offset = data.rfind(data[:2], 0, offset + 1)
        block = _read_block_header(data, offset, sound) if offset >= 0 else None
        if block is not None or offset < 0:
            return block
    return None


_MAX_TRIES = 1000  # maximum number of positions to try; only few bytes look like the start of a block by chance
# A block's header contains a number of 1 to 7 bytes, coded like a character in UTF-8. After the first byte, the number
# has one more byte for each of these limits that the first byte reaches.
_NUMBER_LIMITS = (0xC0, 0xE0, 0xF0, 0xF8, 0xFC, 0xFE, 0xFF)
_SIZES = {1: 192, **{code: 576 << code - 2 for code in range(2, 6)}, **{code: 256 << code - 8 for code in range(8, 16)}}


def _read_block_header(data: bytes, offset: int, sound: Flac) -> _FlacBlock | None:
    """Read the header of a block.

    Return None if the header's checksum is wrong, or if the block's format differs from the first block's format.
    """
    head = data[offset : offset + 16].ljust(16, b"\0")
    if (head[2] ^ data[2]) & 0x0F or (head[3] ^ data[3]) & 0x0F:
        return None
    extra_bytes = sum(head[4] >= limit for limit in _NUMBER_LIMITS)
    number = head[4] & 0x7F >> extra_bytes + bool(extra_bytes)
    for byte in head[5 : 5 + extra_bytes]:
        number = number << 6 | byte & 0x3F
    size, code = 5 + extra_bytes, head[2] >> 4
    samples = _SIZES.get(code, 0)
    if code in (6, 7):
        samples, size = int.from_bytes(head[size : size + code - 5], "big") + 1, size + code - 5
    size += {12: 1, 13: 2, 14: 2}.get(head[2] & 0x0F, 0)
    if not samples or _checksum(head[:size]) != head[size]:
        return None
    is_fixed = not head[1] & 1
    return _FlacBlock(offset, number * int.from_bytes(sound.description[2:4], "big") if is_fixed else number, samples)


def _checksum(header: bytes) -> int:
    remainder = 0
    for byte in header:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder << 1 ^ (0x107 if remainder & 0x80 else 0)
    return remainder


@functools.cache
def _av() -> Any:
    try:
        return importlib.import_module("av")
    except ImportError:
        return None


def _find_samples(view: memoryview) -> int:
    """Return the offset of the samples, after all metadata; 0 if the file has no samples."""
    offset, last = 4, False
    while not last:
        if offset + 4 > len(view):
            return 0
        last = bool(view[offset] & 0x80)
        offset += 4 + int.from_bytes(view[offset + 1 : offset + 4], "big")
    return offset if offset < len(view) else 0


def _audio_format(block: Any) -> tuple[str, int, int]:
    return block.format.name, block.layout.nb_channels, block.sample_rate
