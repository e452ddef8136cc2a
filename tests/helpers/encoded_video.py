"""Small videos written by PyAV: the upper left corner of each frame encodes its index."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CODECS = {
    "vp9.webm": "libvpx-vp9", "vp8.webm": "libvpx", "mjpeg.avi": "mjpeg", "h264.mp4": "libx264", "hevc.mp4": "libx265",
    "mpeg4.mp4": "mpeg4", "av1.mkv": "libsvtav1",
}  # fmt: skip
FRAMES, HEIGHT, WIDTH, GROUP, RATE = 30, 64, 96, 8, 25


def draw_frame(number: int) -> Any:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    colors = [(x * 2 + number * 5) % 256, (y * 3 + number * 7) % 256, (x + y + number * 11) % 256]
    made = np.stack(colors, -1).astype(np.uint8)
    made[:16, :16] = number * 8
    return made


def make(folder: Path, name: str, times: Sequence[int] | None = None, frames: int = FRAMES, matrix: int | None = None) -> str:
    """Write a video; skip the calling test without PyAV, or without an encoder.

    Args:
        times: Time stamps of frames, in milliseconds.
        matrix: Color matrix in the file, as in ISO/IEC 23091-2: 1 for BT.709, 5 or 6 for BT.601.
    """
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    codec, path = CODECS[name.rpartition("-")[2]], str(folder / name)
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV has no encoder {codec}")
    with restore_priority(), av.open(path, "w") as file:
        stream = file.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.gop_size = WIDTH, HEIGHT, GROUP
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        if matrix is not None:
            stream.codec_context.colorspace = matrix
        if times is not None:
            stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(draw_frame(number), format="rgb24")
            if matrix is not None:
                frame = frame.reformat(format="yuv420p", dst_colorspace=matrix)
                frame.colorspace = matrix
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


@contextlib.contextmanager
def restore_priority() -> Iterator[None]:
    """Restore this thread's scheduling: for root, the encoder SVT-AV1 sets real-time priority.

    With it, later threads, and their processes, would block everything else on the machine.
    """
    if not hasattr(os, "sched_getscheduler"):
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


def asking(path: str, a: int, b: int, c: int, d: int) -> Any:
    """Return the bytes of an MP4 file with the display matrix ``(a, b; c, d)``."""

    def matrix(a: int, b: int, c: int, d: int) -> bytes:
        return struct.pack(">9i", *(value << 16 for value in (a, b, 0, c, d, 0, 0, 0)), 1 << 30)

    data = bytearray(Path(path).read_bytes())
    place = data.index(matrix(1, 0, 0, 1), data.index(b"tkhd"))
    data[place : place + 36] = matrix(a, b, c, d)
    return np.frombuffer(bytes(data), np.uint8)


def numbers(frames: Any) -> list[int]:
    """Return the indices that frames encode."""
    return [round(float(np.asarray(frame)[4:12, 4:12].mean()) / 8) for frame in frames]
