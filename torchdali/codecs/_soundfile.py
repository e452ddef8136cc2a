"""Audio decoding by libsndfile (package soundfile): FLAC, Ogg Vorbis and Opus, MP3, and rarer WAV codecs.

In this module, a frame is one sample of each channel.
"""

from __future__ import annotations

import functools
import importlib
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali.codecs._mp3 import MP3_BLOCK, prepend_silent_block
from torchdali.codecs.signatures import describe_content
from torchdali.errors import DecodeError, MissingExtraError

__all__ = ["decode_soundfile"]

Array = npt.NDArray[Any]

_MAX_READ = 1 << 22  # maximum number of samples per read, so that a wrong length in a header cannot exhaust memory
_UNKNOWN = (1 << 63) - 1  # number of frames if the length is unknown


def decode_soundfile(encoded: Array, dtype: np.dtype[Any], purpose: str) -> tuple[Array, int]:
    """Decode an audio file; return ``(frames, channels)`` and the sample rate in Hz.

    Args:
        encoded: ``(n,)`` uint8, the bytes of the file.
        dtype: float32 (full scale 1), int16 or int32.
        purpose: Name of the format, for errors.

    Raises:
        DecodeError: The data is damaged or truncated, or libsndfile does not support the format.
        MissingExtraError: soundfile is not installed.
    """
    try:
        soundfile = importlib.import_module("soundfile")
    except (ImportError, OSError):
        raise MissingExtraError("soundfile", "audio", f"decoding {purpose}") from None
    try:
        return _decode(soundfile, encoded, dtype)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise DecodeError(f"{purpose}: {_reason(error)}{describe_content(encoded, 'sound')}") from None


def _decode(soundfile: Any, encoded: Array, dtype: np.dtype[Any]) -> tuple[Array, int]:
    encoded, skipped = prepend_silent_block(encoded)
    with _sequential_class(soundfile)(io.BytesIO(encoded.data)) as file:
        if skipped or file.frames == _UNKNOWN:
            frames = _read_blocks(file, dtype, _UNKNOWN)[skipped:]
            if not len(frames):
                raise DecodeError("no frames")
        else:
            frames = _read(file, dtype)
        return frames, int(file.samplerate)


@functools.cache
def _sequential_class(soundfile: Any) -> Any:
    """Return a `SoundFile` class that reads without seeking; the base class seeks after each read."""

    class Sequential(soundfile.SoundFile):  # type: ignore[misc]
        def seekable(self) -> bool:
            return False

    return Sequential


def _read(file: Any, dtype: np.dtype[Any]) -> Array:
    """Read as many frames as the header states, but allocate memory only for frames that exist."""
    expected = file.frames
    if not expected and file.format == "OGG":
        raise DecodeError("the stream has no frames: it is empty, or its end is missing")
    frames = _read_blocks(file, dtype, expected)
    # An MP3 file may have a block (group of frames) without audio that states the number of frames. Some files include
    # this block in the number.
    if len(frames) < expected - (MP3_BLOCK if file.format == "MP3" else 0):
        raise DecodeError(f"truncated: {len(frames)} frames instead of {expected}")
    return frames


def _read_blocks(file: Any, dtype: np.dtype[Any], limit: int) -> Array:
    blocks: list[Array] = []
    count, frames_per_read = 0, max(_MAX_READ // file.channels, 1)
    while not blocks or (count < limit and len(blocks[-1])):
        blocks.append(file.read(min(frames_per_read, limit - count), dtype=dtype.name, always_2d=True))
        count += len(blocks[-1])
    return np.concatenate(blocks) if len(blocks) > 1 else blocks[0]


def _reason(error: Exception) -> str:
    text = str(getattr(error, "error_string", "") or error).strip() or type(error).__name__
    return "Format not recognised." if "does not exist" in text else text  # libsndfile's text for an unknown format
