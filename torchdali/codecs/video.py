"""Video by PyAV: an index of the packets of a file, and frames by their numbers.

The index is made by demuxing alone: time stamps in the order of display, and which packets are keyframes. A frame is
then found by its time stamp, so that access is exact wherever a seek lands. A `VideoDecoder` stays open: frames that
lie ahead in the same group of pictures are decoded on from where it stands. On the way to a frame, those that no other
refers to are left out.
"""

from __future__ import annotations

import bisect
import importlib
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.errors import DecodeError, MissingExtraError
from torchdali.kernels.opencv import opencv

__all__ = ["VideoDecoder", "VideoIndex", "index_video"]

_BILINEAR, _FULL_CHROMA, _ACCURATE = 0x2, 0x2000, 0x40000
_EXACT = _BILINEAR | _FULL_CHROMA | _ACCURATE
_FAST = _BILINEAR
_SAME_IN_PLANES = frozenset(f"yuv{range_}{chroma}p" for range_ in ("", "j") for chroma in ("420", "422", "444")) | {
    "yuv420p10le",
    "yuv422p10le",
}
_LARGEST = 1 << 30  # bytes of a frame
_NEAR = 4  # frames that are sooner decoded than skipped by a seek
_DAMAGED = 100  # packets in a row that give no frame, after which a stream is given up


@dataclass(frozen=True)
class VideoIndex:
    """The frames of a video stream, in the order of display.

    Attributes:
        times: Time stamps, in units of `unit` seconds.
        keys: Time stamps of the keyframes.
    """

    times: tuple[int, ...]
    keys: tuple[int, ...]
    unit: Fraction
    width: int
    height: int

    def __len__(self) -> int:
        return len(self.times)

    def seconds(self, frame: int) -> float:
        """Return when a frame is shown, counted from the first one."""
        return float((self.times[frame] - self.times[0]) * self.unit)


def _av() -> Any:
    try:
        return importlib.import_module("av")
    except ImportError:
        raise MissingExtraError("av", "video", "decoding video") from None


def index_video(source: str | Tensor) -> VideoIndex:
    """List the frames of a file, or of its bytes ``(n,)`` uint8, without decoding them.

    Raises:
        DecodeError: it cannot be read, or has no frames.
        MissingExtraError: without PyAV.
    """
    av = _av()
    try:
        with _open(av, source) as container:
            return _index(av, container)
    except (av.FFmpegError, ValueError, MemoryError, OverflowError) as error:
        raise DecodeError(f"{_named(source)}: {_reason(error)}") from None


def _index(av: Any, container: Any) -> VideoIndex:
    stream = _stream(container)
    times, keys = [], []
    try:
        for packet in container.demux(stream):
            time = packet.pts if packet.pts is not None else packet.dts
            if packet.size and time is not None and not packet.is_discard:
                times.append(time)
                if packet.is_keyframe:
                    keys.append(time)
    except av.FFmpegError:
        pass  # a truncated file has the frames up to there
    if not times:
        raise DecodeError("the video has no frames")
    context = stream.codec_context
    if context.width * context.height * 3 > _LARGEST or not context.width * context.height:
        raise DecodeError(f"frames of {context.width} x {context.height}")
    unit = Fraction(stream.time_base or Fraction(1, 1000))
    return VideoIndex(tuple(sorted(set(times))), tuple(sorted(set(keys))), unit, context.width, context.height)


def _quarter_turns(stream: Any, frame: Any) -> int:
    """Return by how many quarters, counterclockwise, frames are to be turned; a container says it for all."""
    degrees = getattr(frame, "rotation", None)
    if degrees is None:  # PyAV before 13; FFmpeg said it there as a text, clockwise
        text = stream.metadata.get("rotate", "0")
        degrees = -int(text) if text.lstrip("-").isdigit() else 0
    return round(degrees / 90) % 4 if degrees % 90 == 0 else 0


def _open(av: Any, source: str | Tensor) -> Any:
    if isinstance(source, str):
        return av.open(source)
    return av.open(io.BytesIO(source.numpy().data))


def _stream(container: Any) -> Any:
    """Return the stream of moving pictures that FFmpeg takes for the main one."""
    found = container.streams.best("video")
    if found is None or found.codec_context is None:
        raise DecodeError("there is no video stream that can be decoded")
    found.thread_type = "NONE"
    found.codec_context.thread_count = 1
    return found


def _named(source: str | Tensor) -> str:
    return source if isinstance(source, str) else "video"


def _reason(error: Exception) -> str:
    found = getattr(error, "strerror", None) or str(error)
    return str(found) or type(error).__name__


class VideoDecoder:
    """An open video; not for several threads at once.

    Args:
        source: Path, or bytes ``(n,)`` uint8.
        index: Of the same source; made if not given.
        color: ``"RGB"``, or ``"YCbCr"`` (as coded, chroma at full resolution).
        fast: Let the conversion of colors round as it likes.
        upright: Turn frames as the container asks for.

    Raises:
        DecodeError: it cannot be opened.
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
        self._av = _av()
        self._source = source
        self._container: Any = None
        self._stream: Any = None
        self._ahead: Iterator[Any] = iter(())
        self._last: tuple[int, Any] | None = None
        self._wanted: float = 0  # time stamp before which frames that no other refers to need not be decoded
        self._index = index or self._listed()
        self._format = "rgb24" if color == "RGB" else "yuv444p"
        self._flags = _FAST if fast else _EXACT
        self._reformatter = self._av.video.reformatter.VideoReformatter()
        # One thread: ours are busy already, and a forked child that frees a reformatter would wait forever
        # for threads that it does not have. PyAV before 17 has no others.
        self._threads = {"threads": 1} if int(self._av.__version__.split(".")[0]) >= 17 else {}
        self._turns = self._asked_turns() if upright else 0

    def _listed(self) -> VideoIndex:
        """List the frames, and leave the file open: to open one takes as long as to decode several frames."""
        try:
            self._restart()
            return _index(self._av, self._container)
        except (self._av.FFmpegError, ValueError, MemoryError, OverflowError) as error:
            self.close()
            raise DecodeError(f"{_named(self._source)}: {_reason(error)}") from None
        except DecodeError:
            self.close()
            raise

    def _asked_turns(self) -> int:
        """Return by how many quarters the container wants frames turned; a frame is decoded to know it."""
        try:
            return _quarter_turns(self._stream, self._frame(0))
        except (self._av.FFmpegError, ValueError, MemoryError) as error:
            self.close()
            raise DecodeError(f"{_named(self._source)}: {_reason(error)}") from None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the frames as they are delivered."""
        height, width = self._index.height, self._index.width
        return (width, height, 3) if self._turns % 2 else (height, width, 3)

    @property
    def index(self) -> VideoIndex:
        return self._index

    def close(self) -> None:
        """Close the file."""
        if self._container is not None:
            self._container.close()
        self._container, self._stream, self._ahead, self._last = None, None, iter(()), None

    def read(self, frames: Sequence[int], out: Tensor | None = None) -> Tensor:
        """Return frames by their numbers, in any order, ``(F, H, W, 3)`` uint8.

        Args:
            out: Where they go, if given.

        Raises:
            DecodeError: a frame cannot be decoded.
        """
        made = torch.empty((len(frames), *self.shape), dtype=torch.uint8) if out is None else out
        places: dict[int, list[int]] = {}
        for place, frame in enumerate(frames):
            places.setdefault(frame, []).append(place)
        try:
            for frame in sorted(places):
                first, *others = places[frame]
                self._convert(self._frame(frame), made[first])
                for place in others:
                    made[place] = made[first]
        except (self._av.FFmpegError, ValueError, MemoryError) as error:
            self.close()
            raise DecodeError(f"{_named(self._source)}: {_reason(error)}") from None
        return made

    def _frame(self, number: int) -> Any:
        """Return a frame, as decoded."""
        time = self._index.times[number]
        if self._last is not None and self._last[0] == time:
            return self._last[1]
        if not self._lies_ahead(time):
            self._seek(time)
        found = self._decode_up_to(time)
        if found is None:  # the seek landed behind it, or a stream refers to what it calls unreferenced
            self._restart()
            found = self._decode_up_to(time, whole=True)
        if found is None:
            raise DecodeError(
                f"{_named(self._source)}: frame {number} at {self._index.seconds(number):.3f} s cannot be decoded"
            )
        return found

    def _key_before(self, time: int) -> int | None:
        keys = self._index.keys
        place = bisect.bisect_right(keys, time)
        return keys[place - 1] if place else None

    def _lies_ahead(self, time: int) -> bool:
        """True if decoding on is the way to a frame: it comes later, and a seek would save few frames."""
        if self._container is None or self._last is None or time <= self._last[0]:
            return False
        key, times = self._key_before(time), self._index.times
        if key is None or key <= self._last[0]:
            return True
        return bisect.bisect_left(times, key) - bisect.bisect_left(times, self._last[0]) <= _NEAR

    def _seek(self, time: int) -> None:
        key = self._key_before(time)
        first = key is None or key == self._index.times[0]
        if key is None or self._container is None:
            self._restart()
            if first:
                return
        try:
            self._container.seek(key, stream=self._stream, backward=True, any_frame=False)
        except self._av.FFmpegError:
            if not first:
                raise
            self._restart()  # some files have nothing to find at their start
            return
        self._ahead, self._last = self._decoded(), None

    def _restart(self) -> None:
        self.close()
        self._container = _open(self._av, self._source)
        self._stream = _stream(self._container)
        self._ahead, self._last = self._decoded(), None

    def _decoded(self) -> Iterator[Any]:
        """Yield what can be decoded; damaged packets are left out."""
        damaged, skipped = 0, None
        for packet in self._packets():
            skip = packet.pts is not None and packet.pts < self._wanted
            if skip is not skipped:
                self._stream.codec_context.skip_frame = "NONREF" if skip else "DEFAULT"
                skipped = skip
            try:
                frames = packet.decode()
                damaged = 0
            except self._av.FFmpegError:
                frames = []
                damaged += 1
            if damaged > _DAMAGED:
                return
            yield from frames

    def _packets(self) -> Iterator[Any]:
        try:
            yield from self._container.demux(self._stream)
        except self._av.FFmpegError:
            return

    def _decode_up_to(self, time: int, whole: bool = False) -> Any:
        """Return the frame shown at a time; None where what comes is later, or nothing comes.

        Args:
            whole: Decode all frames before it, even those that no other refers to.
        """
        self._wanted = -math.inf if whole else time
        for frame in self._ahead:
            shown = frame.pts if frame.pts is not None else frame.dts
            if shown is None:
                continue
            self._last = (shown, frame)
            if shown >= time:
                return frame if shown == time else None
        return None

    def _convert(self, frame: Any, place: Tensor) -> None:
        """Write a frame as colors."""
        made = self._reformatter.reformat(
            frame,
            self._index.width,
            self._index.height,
            self._format if self._format != "rgb24" else self._way_to_rgb(frame),
            interpolation=self._flags,
            **self._threads,
        )
        name = made.format.name
        axes = (self._index.width, 3) if name == "rgb24" else (self._index.width,)
        planes = [_rows(plane, axes) for plane in made.planes]
        if self._turns:
            planes = [np.rot90(plane, self._turns) for plane in planes]
        if name == "rgb24":
            np.copyto(place.numpy(), planes[0])
        else:
            order = (2, 0, 1) if name == "gbrp" else (0, 1, 2)
            _interleave([planes[i] for i in order], place.numpy())

    def _way_to_rgb(self, frame: Any) -> str:
        """Return a format of which FFmpeg computes the same bits sooner, where there is one.

        With rounding to the last bit it has vector instructions for planes only. Rows of chroma that do not lie in the
        middle between those of luma, as in odd heights, are weighted otherwise for planes.
        """
        index = self._index
        plain = self._flags == _EXACT and frame.format.name in _SAME_IN_PLANES
        same = (frame.width, frame.height) == (index.width, index.height)
        return "gbrp" if plain and same and index.height % 2 == 0 else "rgb24"


def _rows(plane: Any, axes: tuple[int, ...]) -> Any:
    """Return the lines of a plane, ``(height, *axes)``, without what FFmpeg pads them with."""
    lines = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    return lines[:, : math.prod(axes)].reshape(plane.height, *axes)


def _interleave(planes: Sequence[Any], out: Any) -> None:
    """Write planes as pixels."""
    cv2 = opencv()
    if cv2 is not None and out.flags.c_contiguous:
        cv2.merge([np.ascontiguousarray(plane) for plane in planes], dst=out)
    else:
        np.stack(planes, -1, out=out)
