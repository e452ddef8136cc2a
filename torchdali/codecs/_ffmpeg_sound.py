"""Sounds that libsndfile does not know, by FFmpeg, if PyAV is there: AAC, ALAC, all in MP4, Matroska and videos."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.codecs._wav import Wav
from torchdali.codecs.media import failure, media_errors, open_media, pyav

__all__ = ["decode_ffmpeg"]

Array = npt.NDArray[Any]

_LARGEST = 1 << 12  # size of a packet, in bytes, that is not suspicious
_STRICT = {"err_detect": "crccheck+bitstream+buffer+explode"}


def decode_ffmpeg(encoded: Array, dtype: np.dtype[Any], purpose: str) -> tuple[Array, int]:
    """Decode the main sound of a file to ``(frames, channels)`` and the sample rate.

    Args:
        encoded: ``(n,)`` uint8.
        dtype: float32 (full scale 1), int16 or int32; codecs that compute with floats give float32 all the same.
        purpose: The format, for errors.

    Raises:
        DecodeError: damaged or truncated data, or no sound that FFmpeg knows.
        MissingExtraError: without PyAV.
    """
    av = pyav(f"decoding {purpose}")
    source = torch.from_numpy(np.ascontiguousarray(encoded))
    try:
        with open_media(av, source) as container:
            frames = list(_frames(av, container, len(encoded)))
            if container.format.name == "ogg":
                _check_gaps(frames)
            return _join_frames(frames, dtype), int(frames[0].sample_rate)
    except media_errors(av) as error:
        raise failure(source, error, "sound", purpose) from None


def _frames(av: Any, container: Any, size: int) -> Iterator[Any]:
    """Yield the decoded frames of a container's main sound: at least one, all of one form.

    A truncated last packet is skipped, unless the container lists it.

    Args:
        size: Size of the file.

    Raises one of `media_errors`, also where packets are missing that the container lists.
    """
    stream = _stream(container)
    form, packets, end, largest = None, 0, 0, _LARGEST
    try:
        for packet in container.demux(stream):
            for frame in packet.decode():
                form = form or _form(frame)
                if _form(frame) != form:
                    raise ValueError("its rate or its number of channels changes")
                yield frame
            if packet.size:
                packets, end, largest = packets + 1, (packet.pos or 0) + packet.size, max(largest, packet.size)
    except av.FFmpegError:
        if size - end > 2 * largest:
            raise
    if form is None or packets < _count_packets(container, stream):
        raise ValueError("truncated, or damaged at its end: there are fewer samples than the file lists")


def _stream(container: Any) -> Any:
    stream = container.streams.best("audio")
    if stream is None or stream.codec_context is None:
        raise ValueError("it contains no audio stream that can be decoded")
    stream.thread_type, stream.codec_context.thread_count = "NONE", 1
    stream.codec_context.options = dict(_STRICT)
    return stream


def _form(frame: Any) -> tuple[str, int, int]:
    return frame.format.name, frame.layout.nb_channels, frame.sample_rate


def _check_gaps(frames: list[Any]) -> None:
    """Refuse a stream with missing pages: FFmpeg skips a damaged one, and knows the positions of the others."""
    for frame, following in itertools.pairwise(frames):
        if None not in (frame.pts, following.pts) and following.pts > frame.pts + frame.samples:
            raise ValueError(f"damaged: samples {frame.pts + frame.samples} to {following.pts} are missing")


def _count_packets(container: Any, stream: Any) -> int:
    """Return how many packets MP4 lists; other containers do not."""
    return len(getattr(stream, "index_entries", ())) if container.format.name.startswith("mov,") else 0


def _join_frames(frames: list[Any], dtype: np.dtype[Any]) -> Array:
    """Return the samples of frames of one form, as `Wav.read` does; floats stay floats."""
    kind, channels, rate = _form(frames[0])
    parts = [frame.to_ndarray() for frame in frames]
    is_planar = kind.endswith("p")
    samples = np.concatenate([part.T if is_planar else part.reshape(-1, channels) for part in parts])
    samples = np.ascontiguousarray(samples)
    if samples.dtype.kind == "f":
        return samples.astype(np.float32, copy=False)
    bits = 8 * samples.itemsize
    return Wav(rate, channels, bits, False, samples.reshape(-1).view(np.uint8)).read(dtype)
