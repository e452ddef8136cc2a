"""libsndfile by the package soundfile: FLAC, Ogg Vorbis and Opus, MP3, and the rarer kinds of WAV."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali.codecs.signatures import described
from torchdali.errors import DecodeError, MissingExtraError

__all__ = ["decode_soundfile"]

Array = npt.NDArray[Any]

_AT_ONCE = 1 << 22  # samples that are believed to be there; more are read in blocks of that many


def decode_soundfile(encoded: Array, dtype: np.dtype[Any], purpose: str) -> tuple[Array, int]:
    """Decode to ``(frames, channels)`` and the sample rate.

    Args:
        encoded: ``(n,)`` uint8.
        dtype: float32 (full scale 1), int16 or int32.
        purpose: The format, for the error where the package is not installed.

    Raises:
        DecodeError: damaged or truncated data, or a format that the library does not know.
        MissingExtraError: without soundfile.
    """
    try:
        soundfile = importlib.import_module("soundfile")
    except (ImportError, OSError):
        raise MissingExtraError("soundfile", "audio", f"decoding {purpose}") from None
    try:
        with soundfile.SoundFile(io.BytesIO(encoded.data)) as file:
            return _read(file, dtype), int(file.samplerate)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise DecodeError(f"{purpose}: {_reason(error)}{described(encoded, 'sound')}") from None


def _read(file: Any, dtype: np.dtype[Any]) -> Array:
    """Read all frames that the header promises; not more memory than there are."""
    promised, block = file.frames, max(_AT_ONCE // file.channels, 1)
    if not promised and file.format == "OGG":
        raise DecodeError("no frames: the stream is empty, or its end is missing")
    if promised <= block:
        found = file.read(promised, dtype=dtype.name, always_2d=True)
    else:
        found = _read_blocks(file, dtype, promised, block)
    if len(found) != promised:
        raise DecodeError(f"truncated: {len(found)} frames instead of {promised}")
    return np.asarray(found)


def _read_blocks(file: Any, dtype: np.dtype[Any], promised: int, block: int) -> Array:
    blocks, done = [], 0
    while done < promised:
        part = file.read(min(block, promised - done), dtype=dtype.name, always_2d=True)
        if not len(part):
            break
        blocks.append(part)
        done += len(part)
    return np.concatenate(blocks) if blocks else np.empty((0, file.channels), dtype)


def _reason(error: Exception) -> str:
    found = getattr(error, "error_string", "") or str(error)
    return str(found).strip() or type(error).__name__
