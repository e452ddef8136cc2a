"""Audio files made in memory: WAV by hand, other formats by soundfile."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

WIDTHS = {"u8": (1, 8), "s16": (1, 16), "s24": (1, 24), "s32": (1, 32), "f32": (3, 32), "f64": (3, 64)}
EXTENSION = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def raw(samples: Array, width: str) -> bytes:
    """Return samples of full scale 1 as they stand in a file."""
    if width[0] == "f":
        return samples.astype("<f4" if width == "f32" else "<f8").tobytes()
    bits = WIDTHS[width][1]
    whole = np.clip(np.rint(samples * 2.0 ** (bits - 1)), -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1).astype(np.int64)
    if bits == 8:
        return (whole + 128).astype(np.uint8).tobytes()
    return whole.astype("<i8").reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()


def wav(samples: Array, rate: int = 8000, width: str = "s16", *, extended: bool = False, before: bytes = b"") -> Array:
    """Return a WAV file of ``(frames, channels)``, with other chunks before the samples."""
    kind, bits = WIDTHS[width]
    channels = samples.shape[1]
    block = channels * bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE if extended else kind, channels, rate, rate * block, block, bits)
    if extended:
        form += struct.pack("<HHIH", 22, bits, 0, kind) + EXTENSION
    body = b"WAVE" + chunk(b"fmt ", form) + before + chunk(b"data", raw(samples, width))
    return np.frombuffer(b"RIFF" + struct.pack("<I", len(body)) + body, np.uint8).copy()


def encoded(samples: Array, rate: int = 8000, format: str = "FLAC", subtype: str = "PCM_16") -> Array:
    """Return a file made by soundfile; skips the calling test without it."""
    soundfile = pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    memory = io.BytesIO()
    soundfile.write(memory, samples, rate, subtype=subtype, format=format)
    return np.frombuffer(memory.getvalue(), np.uint8).copy()


def speech(frames: int, channels: int = 1, seed: int = 0) -> Array:
    """Return something whose spectrum falls like that of speech, within -1 to 1: ``(frames, channels)``."""
    rng = np.random.default_rng(seed)
    spectrum = np.fft.rfft(rng.standard_normal((frames, channels)), axis=0)
    spectrum /= 1.0 + (np.arange(len(spectrum))[:, None] / max(frames * 0.03, 1)) ** 2
    found = np.fft.irfft(spectrum, frames, axis=0)
    return np.asarray(0.9 * found / np.abs(found).max())
