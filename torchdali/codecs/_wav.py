"""Decode WAV files with integer (PCM) or floating-point samples.

WAV files with other codecs are decoded by libsndfile or FFmpeg. Source: Multimedia Programming Interface and Data
Specifications 1.0, IBM and Microsoft, 1991, and RFC 2361.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Wav", "lacks_length", "parse", "parse_words", "write_words"]

Array = npt.NDArray[Any]

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")
_CHUNK = struct.Struct("<4sI")
_COMMON_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")  # the common header, which has only the chunks `fmt ` and `data`
_TWO_CHUNKS = b"fmt \x10\0\0\0data"
# Indices of the header's bytes that depend only on the format: all bytes except lengths and rates.
_FIXED = [*range(4), *range(8, 24), *range(32, 40)]
_SUPPORTED = {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}
_GUID = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"  # follows the format number in a format GUID


class Wav(NamedTuple):
    """Fields of a WAV header, and the bytes of the samples.

    Attributes:
        bits: Number of bits per sample.
        floating: True for floating-point samples, False for integers.
        data: The bytes of the samples, without an incomplete frame at the end.
    """

    rate: int
    channels: int
    bits: int
    floating: bool
    data: Array

    @property
    def frames(self) -> int:
        """Number of samples per channel."""
        return len(self.data) // (self.channels * self.bits // 8)

    def read(self, dtype: np.dtype[Any], out: Array | None = None) -> Array:
        """Return the samples, ``(frames, channels)``, as float32 (full scale 1), int16 or int32.

        Integers are shifted to the width of the dtype. As in libsndfile, floats are rounded to integers without
        scaling.

        Args:
            dtype: Dtype of the samples.
            out: Array to write the samples to; None for a new array.
        """
        samples = np.empty((self.frames, self.channels), dtype) if out is None else out
        if self.floating:
            samples[...] = self._floats(dtype).reshape(samples.shape)
        elif self.bits == 16:
            write_words(self.data, samples.reshape(-1))
        else:
            samples[...] = _narrow(self._words(), dtype).reshape(samples.shape)
        return samples

    def _floats(self, dtype: np.dtype[Any]) -> Array:
        values = self.data.view("<f4" if self.bits == 32 else "<f8")
        if dtype == np.float32:
            with np.errstate(over="ignore"):
                floats: Array = values.astype(np.float32)
            return floats
        rounded = np.nan_to_num(np.rint(values), nan=-(2.0**31))
        clipped = np.clip(rounded, -(2.0**31), 2.0**31 - 1).astype(np.int64)
        integers: Array = clipped.astype(dtype)
        return integers

    def _words(self) -> Array:
        """Return integer samples as int32, shifted to the upper bits."""
        if self.bits == 8:
            return (self.data.astype(np.int32) - 128) << 24
        if self.bits == 32:
            return self.data.view("<i4").astype(np.int32)
        words = np.zeros((len(self.data) // 3, 4), np.uint8)
        words[:, 1:] = self.data.reshape(-1, 3)
        return words.view("<i4")[:, 0].astype(np.int32, copy=False)


def write_words(data: Array, out: Array) -> None:
    """Convert 16-bit samples to float32, int16 or int32, as `Wav.read` does, and write them to `out`, ``(n,)``."""
    np.copyto(out, data.view("<i2"))
    if out.dtype == np.float32:
        out *= np.float32(2**-15)
    elif out.dtype == np.int32:
        out <<= 16


def _narrow(words: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == np.float32:
        return np.multiply(words.astype(np.float32), np.float32(2**-31))
    return words if dtype == np.int32 else (words >> 16).astype(dtype)


def parse_words(files: Sequence[Array]) -> tuple[int, list[int], list[Array]] | None:
    """Read the headers of several 16-bit files with equal numbers of channels.

    Args:
        files: Contents of the files, ``(n,)`` uint8 each.

    Returns:
        The number of channels; and for each file, the sample rate and the bytes with the samples. None if a file
        isn't a WAV of 16 bits, or if the files have different numbers of channels.
    """
    size = _COMMON_HEADER.size
    headers = b"".join([file[:size].tobytes() for file in files])
    table = np.frombuffer(headers, np.uint8)[: len(headers) // size * size].reshape(-1, size)
    first = parse(files[0])
    if first is None or first.bits != 16:
        return None
    channels, block = first.channels, 2 * first.channels
    same_format = (table[:, _FIXED] == table[0, _FIXED]).all()
    rates, lengths = table.view("<u4")[:, (6, 10)].T.tolist()
    is_plain = len(table) == len(files) and headers[12:20] + headers[36:40] == _TWO_CHUNKS and same_format
    if is_plain and all(rates) and all(lengths):
        parts = [
            file[size : size + min(length, len(file) - size) // block * block]
            for file, length in zip(files, lengths, strict=True)
        ]
        return channels, rates, parts
    wavs = [parse(file) for file in files]
    if any(wav is None or (wav.bits, wav.channels) != (16, channels) for wav in wavs):
        return None
    return channels, [wav.rate for wav in wavs if wav], [wav.data for wav in wavs if wav]


def parse(encoded: Array) -> Wav | None:
    """Read the header of a WAV file.

    Returns:
        The header; None for files that are not WAV, or have another codec.
    """
    size = len(encoded)
    if size >= _COMMON_HEADER.size:
        riff, _, wave, name, format_size, codec, channels, rate, _, block, bits, data, length = (
            _COMMON_HEADER.unpack_from(encoded.data)
        )
        has_common_chunks = (riff, wave, name, format_size, data) == (b"RIFF", b"WAVE", b"fmt ", 16, b"data")
        is_plain = has_common_chunks and codec == _PCM and bits == 16 and 0 < channels <= 1024 and block == 2 * channels
        if is_plain and rate and length:
            length = min(length, size - _COMMON_HEADER.size) // block * block
            return Wav(rate, channels, bits, False, encoded[_COMMON_HEADER.size : _COMMON_HEADER.size + length])
    head = encoded[:12].tobytes()
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return None
    offset, audio_format = 12, None
    while offset + 8 <= size:
        name, length = _CHUNK.unpack_from(encoded.data, offset)
        offset += 8
        if name == b"data":
            end = size if not length and lacks_length(encoded, offset) else min(offset + length, size)
            return None if audio_format is None else _build_wav(audio_format, encoded[offset:end])
        if name == b"fmt " and length >= 16 and offset + length <= size:
            audio_format = _parse_format(encoded[offset : offset + length])
            if audio_format is None:
                return None
        offset += length + (length & 1)
    return None


def lacks_length(encoded: Array, offset: int) -> bool:
    """Return whether the length 0 of a data chunk is only a placeholder.

    The length is a placeholder if samples follow instead of another chunk. A program cannot replace the placeholder if
    it writes to a pipe, or if it is killed early.

    Args:
        offset: Offset after the length.
    """
    if len(encoded) < offset + 8:
        return False
    name, length = _CHUNK.unpack_from(encoded.data, offset)
    return not (name.isascii() and name.decode().isprintable() and length <= len(encoded) - offset - 8)


def _parse_format(chunk: Array) -> tuple[int, int, int, int] | None:
    """Return codec, channels, rate and bits of a format chunk; None if this module doesn't support the format."""
    codec, channels, rate, _, block, bits = _FORMAT.unpack_from(chunk.data)
    if codec == _EXTENSIBLE and len(chunk) >= 40:
        valid = int(chunk[18]) | int(chunk[19]) << 8
        codec = int(chunk[24]) | int(chunk[25]) << 8 if chunk[26:40].tobytes() == _GUID else 0
        if valid not in (0, bits):
            return None
    if (codec, bits) not in _SUPPORTED or not 1 <= channels <= 1024 or block != channels * bits // 8:
        return None
    return (codec, channels, rate, bits) if rate > 0 else None


def _build_wav(audio_format: tuple[int, int, int, int], data: Array) -> Wav:
    codec, channels, rate, bits = audio_format
    size = len(data) // (channels * bits // 8) * (channels * bits // 8)
    return Wav(rate, channels, bits, codec == _FLOAT, data[:size])
