"""Audio files in memory: WAV is written here, other formats by soundfile."""

from __future__ import annotations

import io
import struct
from fractions import Fraction
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
    """Return samples of full scale 1 as bytes of a file."""
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
    """Return a file that soundfile writes; skip the calling test without it."""
    soundfile = pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    memory = io.BytesIO()
    soundfile.write(memory, samples, rate, subtype=subtype, format=format)
    return np.frombuffer(memory.getvalue(), np.uint8).copy()


def speech(frames: int, channels: int = 1, seed: int = 0) -> Array:
    """Return audio with a spectrum similar to speech, within -1 to 1: ``(frames, channels)``."""
    rng = np.random.default_rng(seed)
    spectrum = np.fft.rfft(rng.standard_normal((frames, channels)), axis=0)
    spectrum /= 1.0 + (np.arange(len(spectrum))[:, None] / max(frames * 0.03, 1)) ** 2
    found = np.fft.irfft(spectrum, frames, axis=0)
    return np.asarray(0.9 * found / np.abs(found).max()).round(6)  # equal in every version of NumPy


class Pipe:
    """A file that can only be appended to, like a pipe."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


def av_encoded(
    codec: str, container: str, samples: Array, rate: int = 8000, format: str | None = None, piped: bool = False,
    path: str = "", **options: str,
) -> Array:  # fmt: skip
    """Return a file that FFmpeg writes from ``(frames, channels)``; skip the calling test without PyAV, or its encoder.

    Args:
        format: Of samples, as FFmpeg calls it.
        piped: Written into a pipe, so that the header contains no value that is only known at the end.
        path: Path of the file, if it must be on disk.
        options: Of the container.
    """
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV has no encoder {codec}")
    memory: Any = Pipe() if piped else io.BytesIO()
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[samples.shape[1]]
    with av.open(path or memory, "w", format=container, options=options) as file:
        stream = file.add_stream(codec, rate, layout=layout)
        if format is not None:
            stream.codec_context.format = format
        resampler = av.AudioResampler(format=stream.codec_context.format, layout=layout, rate=rate)
        for begin in range(0, len(samples), 1024):
            part = np.ascontiguousarray(samples[begin : begin + 1024].T.astype(np.float32))
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=layout)
            frame.rate, frame.pts, frame.time_base = rate, begin, Fraction(1, rate)
            file.mux([packet for each in resampler.resample(frame) for packet in stream.encode(each)])
        file.mux([packet for each in resampler.resample(None) for packet in stream.encode(each)])
        file.mux(stream.encode(None))
    if path:
        return np.fromfile(path, np.uint8)
    return np.frombuffer(bytes(memory.data if piped else memory.getvalue()), np.uint8).copy()


def _rest(data: bytes, polynomial: int, bits: int) -> int:
    """Return the checksum of FLAC's headers (0x07, 8 bits) or blocks (0x8005, 16)."""
    rest, top = 0, 1 << (bits - 1)
    for byte in data:
        rest ^= byte << (bits - 8)
        for _ in range(8):
            rest = (rest << 1 ^ (polynomial if rest & top else 0)) & ((1 << bits) - 1)
    return rest


def flac(samples: Array, bits: int, rate: int = 8000, *, states_length: bool = True, block: int = 512) -> Array:
    """Return a FLAC file of integers ``(frames, channels)`` of any number of bits, not compressed."""
    frames, channels = samples.shape
    total = frames if states_length else 0
    packed = rate << 44 | (channels - 1) << 41 | (bits - 1) << 36 | total
    data = b"fLaC\x80\0\0\x22" + struct.pack(">HH", block, block) + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    for number, begin in enumerate(range(0, frames, block)):
        part = samples[begin : begin + block]
        code = chr(number).encode()  # FLAC numbers blocks as UTF-8 does characters
        head = b"\xff\xf8\x70" + bytes([(channels - 1) << 4]) + code + struct.pack(">H", len(part) - 1)
        head += bytes([_rest(head, 0x07, 8)])
        written = "".join("00000010" + "".join(f"{value & (1 << bits) - 1:0{bits}b}" for value in column) for column in part.T.tolist())
        written += "0" * (-len(written) % 8)
        body = head + int(written, 2).to_bytes(len(written) // 8, "big")
        data += body + struct.pack(">H", _rest(body, 0x8005, 16))
    return np.frombuffer(data, np.uint8).copy()
