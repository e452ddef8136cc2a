"""Use FFmpeg (PyAV) to decode audio that libsndfile doesn't support.

Examples are AAC, ALAC, and audio in MP4, Matroska and video files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.codecs._wav import Wav
from torchdali.codecs.media import build_media_error, media_errors, open_media, pyav

__all__ = ["decode_ffmpeg"]

Array = npt.NDArray[Any]

_ASSUMED_PACKET_SIZE = 1 << 12  # bytes; assumed size of the largest packet until a larger packet is found
_STRICT = {"err_detect": "crccheck+bitstream+buffer+explode"}


def decode_ffmpeg(encoded: Array, dtype: np.dtype[Any], purpose: str) -> tuple[Array, int]:
    """Decode the main audio stream of a file; return ``(frames, channels)`` and the sample rate in Hz.

    Args:
        encoded: ``(n,)`` uint8, the bytes of the file.
        dtype: float32 (full scale 1), int16 or int32. For codecs that compute with floats, the result is always
            float32.
        purpose: Name of the format, for errors.

    Raises:
        DecodeError: The data is damaged or truncated, or has no audio that FFmpeg supports.
        MissingExtraError: PyAV is not installed.
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
        raise build_media_error(source, error, "sound", purpose) from None


def _frames(av: Any, container: Any, size: int) -> Iterator[Any]:
    """Yield the decoded frames of a container's main audio stream: at least one, all with the same format.

    A truncated last packet is skipped, unless the container's index lists the packet.

    Raises:
        Exception: An error of `media_errors`. If the file lacks packets that the container's index lists, this is also
            an error.
    """
    stream = _select_stream(container)
    audio_format, packets, end, largest = None, 0, 0, _ASSUMED_PACKET_SIZE
    try:
        for packet in container.demux(stream):
            for frame in packet.decode():
                audio_format = audio_format or _audio_format(frame)
                if _audio_format(frame) != audio_format:
                    raise ValueError("the sample rate and the number of channels must not change")
                yield frame
            if packet.size:
                packets, end, largest = packets + 1, (packet.pos or 0) + packet.size, max(largest, packet.size)
    except av.FFmpegError:
        if size - end > 2 * largest:
            raise
    if audio_format is None or packets < _count_packets(container, stream):
        raise ValueError("truncated, or damaged at its end: the file lists more samples than it contains")


def _select_stream(container: Any) -> Any:
    stream = container.streams.best("audio")
    if stream is None or stream.codec_context is None:
        raise ValueError("the file contains no audio stream that can be decoded")
    stream.thread_type, stream.codec_context.thread_count = "NONE", 1
    stream.codec_context.options = dict(_STRICT)
    return stream


def _audio_format(frame: Any) -> tuple[str, int, int]:
    return frame.format.name, frame.layout.nb_channels, frame.sample_rate


def _check_gaps(frames: list[Any]) -> None:
    """Raise ValueError if a page of an Ogg file is missing.

    FFmpeg skips damaged pages, but the positions in the other pages show the gap.
    """
    for frame, following in itertools.pairwise(frames):
        if None not in (frame.pts, following.pts) and following.pts > frame.pts + frame.samples:
            raise ValueError(f"damaged: samples {frame.pts + frame.samples} to {following.pts} are missing")


def _count_packets(container: Any, stream: Any) -> int:
    """Return the number of packets that the index of an MP4 file lists; 0 for other containers."""
    return len(getattr(stream, "index_entries", ())) if container.format.name.startswith("mov,") else 0


def _join_frames(frames: list[Any], dtype: np.dtype[Any]) -> Array:
    """Return the samples of frames with the same format; see `Wav.read`. Floats are always returned as float32."""
    sample_format, channels, rate = _audio_format(frames[0])
    parts = [frame.to_ndarray() for frame in frames]
    is_planar = sample_format.endswith("p")
    samples = np.concatenate([part.T if is_planar else part.reshape(-1, channels) for part in parts])
    samples = np.ascontiguousarray(samples)
    if samples.dtype.kind == "f":
        return samples.astype(np.float32, copy=False)
    bits = 8 * samples.itemsize
    return Wav(rate, channels, bits, False, samples.reshape(-1).view(np.uint8)).read(dtype)
