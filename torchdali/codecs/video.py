"""Video decoding with PyAV: list a file's frames, and decode frames by index.

Frame k is the k-th frame when the file is decoded from the start. A frame is found in one of two ways:

- By default, the list of frames is built by demuxing only. The decoder seeks to the keyframe before a frame, and
  decodes up to the frame's time stamp (`VideoIndex.seekable`). This method requires that each packet shows one frame,
  and that all time stamps differ.
- Otherwise, the list is built by decoding the file once, and frames are counted from the start. Counting is needed for
  missing or equal time stamps, for containers in which a packet and its frame have different time stamps, and for
  streams that don't start with a keyframe.

The result of a seek is checked. If the frame is missing or FFmpeg marks it as corrupt, the frame is decoded again from
an earlier keyframe, and then from the start of the file, before an error is raised. After damage, all frames up to the
next keyframe count as damaged, because these frames may refer to lost frames.

A `VideoDecoder` stays open. If the next requested frame is a short distance ahead, the decoder continues from its
current position without a seek. Between the requested frames, the decoder skips frames that no other frame refers to.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs.media import (
    Media,
    build_media_error,
    check_frame,
    decoding_options,
    media_errors,
    open_media,
    pyav,
)
from torchdali.errors import DecodeError
from torchdali.kernels.opencv import opencv

__all__ = ["VideoDecoder", "VideoIndex", "index_video"]

_BILINEAR, _FULL_CHROMA, _ACCURATE = 0x2, 0x2000, 0x40000
_EXACT = _BILINEAR | _FULL_CHROMA | _ACCURATE
_FAST = _BILINEAR
_PLANAR_FORMATS = frozenset(f"yuv{range_}{chroma}p" for range_ in ("", "j") for chroma in ("420", "422", "444")) | {
    "yuv420p10le",
    "yuv422p10le",
}
_MAX_AHEAD = 4  # to move forward by up to this number of frames, decoding is faster than a seek
_MAX_FAILURES = 100  # decoding stops after more than this number of consecutive packets with errors
_TIMESTAMPED_CONTAINERS = frozenset(("mov", "mp4", "matroska", "webm", "flv", "nut", "ogg", "mpegts"))
"""Containers in which a packet has the time stamp of the frame that it shows."""


@dataclass(frozen=True)
class VideoIndex:
    """The frames of a video stream, in the order in which they are shown.

    Attributes:
        times: Time stamps of the frames, in units of `unit` seconds.
        keys: Time stamps of the keyframes; empty if `seekable` is False.
        unit: Duration of one unit of time, in seconds.
        width: Width of the frames in pixels.
        height: Height of the frames in pixels.
        seekable: True if frames are found by their time stamps, False if they are counted from the start.
    """

    times: tuple[int, ...]
    keys: tuple[int, ...]
    unit: Fraction
    width: int
    height: int
    seekable: bool = True

    def __len__(self) -> int:
        return len(self.times)

    def seconds(self, frame: int) -> float:
        """Return the time of a frame in seconds after the first frame."""
        return float((self.times[frame] - self.times[0]) * self.unit)


_PURPOSE = "decoding video"


def index_video(source: str | Tensor) -> VideoIndex:
    """Index the frames of a video file.

    Args:
        source: Path of the file, or its content ``(n,)`` uint8.

    Raises:
        DecodeError: The video cannot be read, or has no frames.
        MissingExtraError: PyAV is not installed.
    """
    av = pyav(_PURPOSE)
    try:
        with open_media(av, source) as container:
            index = _index_of_packets(av, container, source)
        return index if index is not None else _index_of_frames(av, source)
    except media_errors(av) as error:
        raise build_media_error(source, error, "video") from None


def _index_of_packets(av: Any, container: Any, source: str | Tensor) -> VideoIndex | None:
    """Build the index from the packets; return None if the packets don't determine the frames."""
    stream = _select_stream(container, source)
    context, times, keys = stream.codec_context, [], []
    if not _TIMESTAMPED_CONTAINERS.intersection(container.format.name.split(",")) and context.has_b_frames:
        return None
    try:
        for packet in container.demux(stream):
            if not packet.size or packet.is_discard or _is_hidden(context.name, packet):
                continue
            if packet.pts is None:
                return None
            times.append(packet.pts)
            if packet.is_keyframe:
                keys.append(packet.pts)
    except av.FFmpegError:
        pass  # use the frames before the end of the truncated file
    if not times or not keys or min(times) != keys[0] or times[0] != keys[0] or len(set(times)) < len(times):
        return None
    return _build_index(stream, sorted(times), sorted(set(keys)), True)


def _is_hidden(codec: str, packet: Any) -> bool:
    """Return whether a VP8 or VP9 packet has a frame that isn't shown, but only used as a reference."""
    if codec not in ("vp8", "vp9", "libvpx", "libvpx-vp9"):
        return False
    data = bytes(memoryview(packet)[:1])
    if codec in ("vp8", "libvpx"):
        return not data[0] & 0x10
    last = bytes(memoryview(packet)[-1:])[0]
    is_one_frame = last & 0xE0 != 0xC0
    shows_another, is_shown = data[0] & 0x08, data[0] & 0x02
    return is_one_frame and not shows_another and not is_shown


def _index_of_frames(av: Any, source: str | Tensor) -> VideoIndex:
    with open_media(av, source) as container:
        stream = _select_stream(container, source)
        frames = [_frame_time(frame) for frame, _ in _VideoStream(av, container, stream).frames()]
        if not frames:
            raise ValueError("the video has no frames that can be decoded")
        return _build_index(stream, _ensure_increasing(frames, stream), [], False)


def _frame_time(frame: Any) -> int | None:
    time: int | None = frame.pts if frame.pts is not None else frame.dts
    return time


def _ensure_increasing(times: Sequence[int | None], stream: Any) -> list[int]:
    """Return the frames' time stamps if they strictly increase; otherwise compute times from the frame rate."""
    present = [time for time in times if time is not None]
    if len(present) == len(times) and all(a < b for a, b in itertools.pairwise(present)):
        return present
    rate = stream.average_rate or stream.guessed_rate or stream.base_rate or Fraction(25)
    unit = Fraction(stream.time_base or Fraction(1, 1000))
    return [round(i / rate / unit) for i in range(len(times))]


def _build_index(stream: Any, times: Sequence[int], keys: Sequence[int], seekable: bool) -> VideoIndex:
    context = stream.codec_context
    unit = Fraction(stream.time_base or Fraction(1, 1000))
    return VideoIndex(tuple(times), tuple(keys), unit, context.width, context.height, seekable)


class _VideoStream:
    """Decodes a stream from its container's current position.

    Attributes:
        target_time: Time stamp. Frames before this time are skipped if no other frame refers to these frames.
    """

    def __init__(self, av: Any, container: Any, stream: Any) -> None:
        self._av, self._container, self._stream = av, container, stream
        self.target_time: float = -math.inf

    def frames(self) -> Iterator[tuple[Any, bool]]:
        """Yield each frame, and whether the frame is intact.

        A frame isn't intact if FFmpeg marks it as corrupt, or if it is between damage and the next keyframe.
        """
        failed, skipped, is_intact = 0, None, True
        for packet in self._packets():
            skip = packet.pts is not None and packet.pts < self.target_time
            if skip is not skipped:
                self._stream.codec_context.skip_frame = "NONREF" if skip else "DEFAULT"
                skipped = skip
            try:
                frames = packet.decode()
                failed = 0
            except self._av.FFmpegError:
                frames, is_intact = [], False
                failed += 1
            if failed > _MAX_FAILURES:
                return
            for frame in frames:
                is_intact = (is_intact or frame.key_frame) and not frame.is_corrupt
                yield frame, is_intact

    def _packets(self) -> Iterator[Any]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
            except (self._av.FFmpegError, StopIteration):
                return
            yield packet  # not inside `try`: if Python exits here, PyAV may be unloaded, and `except` would need PyAV


_QUARTERS = {(1, 0): 0, (0, -1): 1, (-1, 0): 2, (0, 1): 3}  # direction of the x axis: counterclockwise quarter turns


def _find_turn(frame: Any) -> tuple[int, bool]:
    """Return how to turn a frame: counterclockwise quarter turns, and whether to mirror the frame first.

    The container stores a single display matrix for all frames. Angles that are not quarter turns are ignored.
    """
    for data in frame.side_data:
        if data.type.name == "DISPLAYMATRIX":
            a, b, _, c, d = (round(value / (1 << 16)) for value in struct.unpack_from("=5i", data))
            is_mirrored = a * d < b * c
            return _QUARTERS.get((-a, -b) if is_mirrored else (a, b), 0), is_mirrored
    return 0, False


def _select_stream(container: Any, source: str | Tensor) -> Any:
    stream = container.streams.best("video")
    if stream is None or stream.codec_context is None:
        raise ValueError("the file contains no video stream that can be decoded")
    stream.thread_type = "NONE"
    stream.codec_context.thread_count = 1
    # Make detected damage an error; by default, a decoder fills the gaps with earlier content.
    stream.codec_context.options = {"err_detect": "crccheck+bitstream+buffer+explode", **decoding_options(source)}
    return stream


class VideoDecoder:
    """An open video. Only one thread at a time may use the decoder.

    Args:
        source: Path of the file, or its content ``(n,)`` uint8.
        index: Index of the same file; None to build it.
        color: ``"RGB"``, or ``"YCbCr"`` (the coded values, with chroma at full resolution).
        fast: Use FFmpeg's faster, less exact color conversion.
        upright: Turn frames as the container's display matrix requires.

    Raises:
        DecodeError: The video cannot be opened.
    """

    def __init__(
        self,
        source: str | Tensor,
        index: VideoIndex | None = None,
        *,
        color: str = "RGB",
        fast: bool = False,
        upright: bool = False,
    ) -> None:
        self._av = pyav(_PURPOSE)
        self._source = source
        self._media: Media | None = None
        self._container: Any = None  # the container of `_media`
        self._stream: Any = None
        self._frame_stream: _VideoStream | None = None
        self._ahead: Iterator[tuple[Any, bool]] = iter(())
        self._last: tuple[int, Any] | None = None  # index of the last decoded frame, and the frame
        self._has_decoded = self._is_complete = self._is_damaged = False
        self._count = 0
        self._format = "rgb24" if color == "RGB" else "yuv444p"
        self._flags = _FAST if fast else _EXACT
        self._reformatter = self._av.video.reformatter.VideoReformatter()
        # Use one thread: the pipeline's threads already use all cores. Besides, a forked process that frees a
        # reformatter with several threads would wait forever, since the threads don't exist in the forked process.
        # PyAV before 17 always uses one thread.
        self._threads = {"threads": 1} if int(self._av.__version__.split(".")[0]) >= 17 else {}
        self._turn = None if upright else (0, False)  # None until a frame has been decoded
        with self._named_errors():
            self._index = index or self._list_frames()
            check_frame(self._index.width, self._index.height, source)

    def _list_frames(self) -> VideoIndex:
        """Build the index, and keep the file open, because opening takes as long as decoding several frames."""
        self._open()
        index = _index_of_packets(self._av, self._container, self._source)
        return index if index is not None else _index_of_frames(self._av, self._source)

    def _open(self) -> None:
        self._media = open_media(self._av, self._source)
        self._container = self._media.container
        self._stream = _select_stream(self._container, self._source)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """If an error is raised, close the file, and raise a `DecodeError` that names the file."""
        try:
            yield
        except media_errors(self._av) as error:
            self.close()
            raise build_media_error(self._source, error, "video") from None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the frames that `read` returns.

        If the orientation isn't known yet, a frame is decoded.
        """
        if self._turn is None:
            with self._named_errors():
                self._decode_frame(0)
        height, width = self._index.height, self._index.width
        return (width, height, 3) if self._turn is not None and self._turn[0] % 2 else (height, width, 3)

    @property
    def index(self) -> VideoIndex:
        """The index of the frames."""
        return self._index

    def close(self) -> None:
        """Close the file."""
        if self._media is not None:
            self._media.close()
        self._media, self._container, self._stream, self._frame_stream = None, None, None, None
        self._ahead, self._last = iter(()), None
        self._has_decoded = False

    def read(self, frames: Sequence[int], out: Tensor | None = None) -> Tensor:
        """Return frames by index, ``(F, H, W, 3)`` uint8.

        Args:
            frames: Indices of the frames, in any order.
            out: Tensor to write the frames to; None for a new tensor.

        Raises:
            DecodeError: A frame cannot be decoded.
        """
        positions: dict[int, list[int]] = {}
        for position, frame in enumerate(frames):
            positions.setdefault(frame, []).append(position)
        with self._named_errors():
            if positions:
                self._decode_frame(min(positions))  # determines the shape of all frames
            pixels = torch.empty((len(frames), *self.shape), dtype=torch.uint8) if out is None else out
            for frame in sorted(positions):
                first, *duplicates = positions[frame]
                self._convert(self._decode_frame(frame), pixels[first])
                for position in duplicates:
                    pixels[position] = pixels[first]
        return pixels

    def _decode_frame(self, frame_index: int) -> Any:
        """Return a frame before color conversion and rotation."""
        if self._last is not None and self._last[0] == frame_index:
            return self._last[1]
        for seek in self._seek_attempts(frame_index):
            seek()
            frame = self._decode_up_to(frame_index)
            if frame is not None:
                self._turn = self._turn or _find_turn(frame)
                return frame
        self._is_damaged = True
        name = self._source if isinstance(self._source, str) else "video"
        seconds = self._index.seconds(frame_index)
        raise DecodeError(f"{name}: frame {frame_index} at {seconds:.3f} s is damaged, or depends on a damaged frame")

    def _seek_attempts(self, frame_index: int) -> Iterator[Callable[[], None]]:
        """Yield functions that move the decoder to positions before the frame, the nearest position first."""
        if self._should_decode_ahead(frame_index):
            yield lambda: None
        if self._index.seekable:
            keys = self._index.keys
            next_key = bisect.bisect_right(keys, self._index.times[frame_index])
            for key in reversed(keys[max(next_key - 2, 0) : next_key]):
                yield functools.partial(self._seek, key)
        yield functools.partial(self._restart, complete=True)

    def _should_decode_ahead(self, frame_index: int) -> bool:
        """Return whether to decode ahead from the current position instead of seeking.

        A seek may be slower, or the video may not be seekable.
        """
        if self._container is None or self._last is None or frame_index <= self._last[0]:
            return False
        if not self._index.seekable or frame_index - self._last[0] <= _MAX_AHEAD:
            return True
        times, keys = self._index.times, self._index.keys
        key = keys[max(bisect.bisect_right(keys, times[frame_index]) - 1, 0)]
        return bisect.bisect_left(times, key) - self._last[0] <= _MAX_AHEAD

    def _seek(self, key: int) -> None:
        first = self._index.times[0]
        if self._container is None:
            self._restart()
        elif key == first or not self._has_decoded:
            self._jump(first)
        if key == first:
            return
        if not self._has_decoded:
            # Decode the first frame before the first seek: in some streams, only that frame has information that FFmpeg
            # needs for all later frames.
            next(self._ahead, None)
            self._has_decoded = True
        self._jump(key)

    def _jump(self, key: int) -> None:
        try:
            self._container.seek(key, stream=self._stream, backward=True, any_frame=False)
            self._begin()
        except self._av.FFmpegError:  # some files fail to seek to their start
            self._restart()

    def _restart(self, complete: bool = False) -> None:
        """Decode from the start of the file.

        Args:
            complete: Decode all frames, including frames that no other frame refers to.
        """
        self.close()
        self._open()
        self._begin(complete)

    def _begin(self, complete: bool = False) -> None:
        self._frame_stream = _VideoStream(self._av, self._container, self._stream)
        self._ahead, self._last, self._count = self._frame_stream.frames(), None, 0
        self._is_complete = complete or not self._index.seekable

    def _decode_up_to(self, frame_index: int) -> Any:
        """Decode up to a frame and return it; return None if the frame is missing or not intact."""
        assert self._frame_stream is not None
        # If the file is damaged, don't skip any frames: damage in a skipped frame would not be detected.
        decode_all = self._is_complete or self._is_damaged
        self._frame_stream.target_time = -math.inf if decode_all else self._index.times[frame_index]
        for frame, is_intact in self._ahead:
            self._has_decoded = True
            index = self._find_index(frame)
            if index is None:
                continue
            self._is_damaged = self._is_damaged or not is_intact
            self._last = (index, frame) if is_intact else None
            if index >= frame_index:
                return frame if index == frame_index and is_intact else None
        return None

    def _find_index(self, frame: Any) -> int | None:
        """Return the index of a decoded frame; None if `VideoIndex.times` doesn't contain the frame."""
        if not self._index.seekable:
            self._count += 1
            return self._count - 1
        time = _frame_time(frame)
        if time is None:
            return None
        index = bisect.bisect_left(self._index.times, time)
        return index if index < len(self._index) and self._index.times[index] == time else None

    def _convert(self, frame: Any, out: Tensor) -> None:
        converted = self._reformatter.reformat(
            frame,
            self._index.width,
            self._index.height,
            self._format if self._format != "rgb24" else self._choose_rgb_format(frame),
            interpolation=self._flags,
            **self._threads,
        )
        name = converted.format.name
        axes = (self._index.width, 3) if name == "rgb24" else (self._index.width,)
        planes = [_plane_rows(plane, axes) for plane in converted.planes]
        if self._turn:
            planes = [_rotate(plane, *self._turn) for plane in planes]
        if name == "rgb24":
            np.copyto(out.numpy(), planes[0])
        else:
            order = (2, 0, 1) if name == "gbrp" else (0, 1, 2)
            _interleave([planes[i] for i in order], out.numpy())

    def _choose_rgb_format(self, frame: Any) -> str:
        """Return the fastest FFmpeg format whose values are bit-identical to ``rgb24``.

        With exact rounding, FFmpeg is fast only if the output is separate planes (``gbrp``). For odd heights, chroma
        rows are not midway between luma rows, and FFmpeg weights chroma rows differently for planes, so the result of
        this function is ``rgb24``.
        """
        index = self._index
        is_exact = self._flags == _EXACT and frame.format.name in _PLANAR_FORMATS
        has_same_size = (frame.width, frame.height) == (index.width, index.height)
        return "gbrp" if is_exact and has_same_size and index.height % 2 == 0 else "rgb24"


def _rotate(plane: Any, quarters: int, is_mirrored: bool) -> Any:
    return np.rot90(plane[:, ::-1] if is_mirrored else plane, quarters)


def _plane_rows(plane: Any, axes: tuple[int, ...]) -> Any:
    """Return the rows of a plane, ``(height, *axes)``, without FFmpeg's padding."""
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    return rows[:, : math.prod(axes)].reshape(plane.height, *axes)


def _interleave(planes: Sequence[Any], out: Any) -> None:
    cv2 = opencv()
    if cv2 is not None and out.flags.c_contiguous:
        cv2.merge([np.ascontiguousarray(plane) for plane in planes], dst=out)
    else:
        np.stack(planes, -1, out=out)
