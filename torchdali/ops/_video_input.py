"""Videos that the user feeds to a pipeline, cut into sequences."""

from __future__ import annotations

import queue
from collections import deque
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import source
from torchdali.codecs.video import VideoDecoder
from torchdali.declaration.schema import OutputCount, one_of
from torchdali.reading.sources import BatchSource, SourceBatch, wait_for_data
from torchdali.tensors import TensorList

__all__ = ["VideoInput", "video_input"]

_POLICIES = ("partial", "pad")


class VideoInput(BatchSource):
    """A source of the sequences of the fed videos, one video after the other.

    Args:
        length: Number of frames in a sequence.
        padded: Pad the last sequence of a video with zeros; otherwise it is shorter.
        upright: Rotate frames as the container's metadata requires.
        blocking: Wait for data; otherwise a run without data raises RuntimeError.
    """

    def __init__(self, length: int, *, padded: bool, blocking: bool, upright: bool) -> None:
        self._length, self._padded, self._blocking, self._upright = length, padded, blocking, upright
        self._fed: deque[Tensor] = deque()
        self._decoder: VideoDecoder | None = None
        self._next = 0
        self._changed = queue.SimpleQueue[None]()
        self._closed = False

    def feed(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> None:
        """Queue the bytes of one video, passed as a batch of one sample (on the user's thread).

        Raises:
            RuntimeError: the data isn't exactly one video, or isn't uint8.
        """
        samples = data.samples() if isinstance(data, TensorList) else list(data)
        if len(samples) != 1:
            raise RuntimeError(f"inputs.video is fed one video at a time, not {len(samples)}")
        encoded = torch.as_tensor(np.array(samples[0])).reshape(-1)
        if encoded.dtype != torch.uint8:
            raise RuntimeError(f"encoded videos are uint8, not {encoded.dtype}")
        self._fed.append(encoded)
        self._changed.put(None)

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next sequences. All sequences of a batch are from one video."""
        decoder = self._current()
        count = len(decoder.index)
        samples: list[Tensor] = []
        while len(samples) < batch_size and self._next < count:
            end = min(self._next + self._length, count)
            frames = decoder.read(range(self._next, end))
            samples.append(self._fill_sequence(frames))
            self._next = end
        if self._next == count:
            self._let_go()
        return (TensorList.from_samples(samples, "FHWC"),)

    def _fill_sequence(self, frames: Tensor) -> Tensor:
        missing = self._length - len(frames)
        if not missing or not self._padded:
            return frames
        return torch.cat([frames, frames.new_zeros((missing, *frames.shape[1:]))])

    def _current(self) -> VideoDecoder:
        if self._decoder is None:
            self._decoder, self._next = VideoDecoder(self._take(), upright=self._upright), 0
        return self._decoder

    def _take(self) -> Tensor:
        if not self._fed and not self._blocking and not self._closed:
            raise RuntimeError(
                "No data was provided to the InputOperator. Make sure to feed it properly. "
                "Call feed_input for every video"
            )
        return wait_for_data(self._fed, self._changed, lambda: self._closed)

    def _let_go(self) -> None:
        if self._decoder is not None:
            self._decoder.close()
        self._decoder = None

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch. The current video continues."""

    def close(self) -> None:
        """Wake a waiting run."""
        self._closed = True
        self._changed.put(None)


@source(
    name="experimental.inputs.video", layout="FHWC",
    devices=("cpu", "mixed"),
)  # fmt: skip
def video_input(
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    blocking: bool = False,
    last_sequence_policy: Annotated[str, one_of(_POLICIES)] = "partial",
    no_copy: bool = False,
    sequence_length: int,
) -> Annotated[BatchSource, OutputCount(1)]:
    """Cut videos from `Pipeline.feed_input` into sequences, with the package av (extra ``video``).

    Each batch contains sequences of one video; a video's last batch may contain fewer.

    Args:
        adjust_orientation: Rotate frames as the container's metadata requires, as for videos from phones. DALI doesn't
            have this argument, and keeps the stored orientation.
        affine: Accepted: whether DALI pins its threads to cores.
        blocking: Wait for a video; otherwise a run without a video raises RuntimeError.
        last_sequence_policy: The last sequence of a video: ``"partial"``, shorter, or ``"pad"``, padded with zeros.
        no_copy: Accepted; fed data is copied.
        sequence_length: Number of frames in a sequence.

    Returns:
        ``(F, H, W, 3)`` uint8.

    Raises:
        RuntimeError: the policy is unknown, or the length isn't positive; or, while the pipeline runs, no video or
            several videos were fed.
        DecodeError: the video cannot be decoded.
    """
    if last_sequence_policy not in _POLICIES:
        raise RuntimeError(f"last_sequence_policy={last_sequence_policy!r}: 'partial' or 'pad'")
    if sequence_length < 1:
        raise RuntimeError(f"sequence_length={sequence_length}: it is positive")
    padded = last_sequence_policy == "pad"
    return VideoInput(sequence_length, padded=padded, blocking=blocking, upright=adjust_orientation)
