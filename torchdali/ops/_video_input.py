"""The operator `experimental.inputs.video`, which decodes videos from `Pipeline.feed_input` to sequences of frames."""

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
    """Source that decodes the fed videos one after the other, and returns sequences of frames.

    Args:
        length: Number of frames in a sequence.
        padded: True to pad the last sequence of a video with zeros; False to return a shorter sequence.
        upright: True to rotate frames as the container's metadata specifies.
        blocking: True to wait until a video is fed; False to raise RuntimeError if no video was fed.
    """

    def __init__(self, length: int, *, padded: bool, blocking: bool, upright: bool) -> None:
        self._length, self._padded, self._blocking, self._upright = length, padded, blocking, upright
        self._videos: deque[Tensor] = deque()
        self._decoder: VideoDecoder | None = None
        self._next = 0
        self._changed = queue.SimpleQueue[None]()
        self._closed = False

    def feed(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> None:
        """Queue a video. The user's thread calls this method.

        Args:
            data: Batch with a single sample: the bytes of the video.
            layout: Ignored.
            cuda_stream: Ignored.

        Raises:
            RuntimeError: the data isn't exactly one video, or isn't uint8.
        """
        samples = data.samples() if isinstance(data, TensorList) else list(data)
        if len(samples) != 1:
            raise RuntimeError(f"inputs.video takes one video at a time, got {len(samples)}")
        encoded = torch.as_tensor(np.array(samples[0])).reshape(-1)
        if encoded.dtype != torch.uint8:
            raise RuntimeError(f"encoded videos must be uint8, got {encoded.dtype}")
        self._videos.append(encoded)
        self._changed.put(None)

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return a batch of the next sequences. All sequences of a batch are from one video."""
        decoder = self._open_decoder()
        count = len(decoder.index)
        samples: list[Tensor] = []
        while len(samples) < batch_size and self._next < count:
            end = min(self._next + self._length, count)
            frames = decoder.read(range(self._next, end))
            samples.append(self._fill_sequence(frames))
            self._next = end
        if self._next == count:
            self._close_decoder()
        return (TensorList.from_samples(samples, "FHWC"),)

    def _fill_sequence(self, frames: Tensor) -> Tensor:
        missing = self._length - len(frames)
        if not missing or not self._padded:
            return frames
        return torch.cat([frames, frames.new_zeros((missing, *frames.shape[1:]))])

    def _open_decoder(self) -> VideoDecoder:
        if self._decoder is None:
            self._decoder, self._next = VideoDecoder(self._next_video(), upright=self._upright), 0
        return self._decoder

    def _next_video(self) -> Tensor:
        if not self._videos and not self._blocking and not self._closed:
            raise RuntimeError(
                "No data was provided to the InputOperator. Make sure to feed it properly. "
                "Call feed_input for every video"
            )
        return wait_for_data(self._videos, self._changed, lambda: self._closed)

    def _close_decoder(self) -> None:
        if self._decoder is not None:
            self._decoder.close()
        self._decoder = None

    def reset(self, epoch: object = None) -> None:
        """Do nothing: a new epoch continues with the current video."""

    def close(self) -> None:
        """Stop the source. A call of `next` that waits for a video then ends."""
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
    """Cut the videos that `Pipeline.feed_input` passes to the pipeline into sequences of frames.

    The package ``av`` decodes the videos; the extra ``video`` installs it. All sequences of a batch are from the same
    video, so the last batch of a video may have fewer samples than the batch size.

    Args:
        adjust_orientation: If True (the default), frames are rotated as the video file's metadata specifies. Videos
            from phones need this. If False, frames aren't rotated. DALI doesn't have this argument, and never rotates.
        affine: Accepted for compatibility with DALI, without effect.
        blocking: If True, the pipeline waits until a video is fed. By default the pipeline raises RuntimeError if no
            video was fed.
        last_sequence_policy: Handling of a video's last sequence if it has too few frames: ``"partial"`` (the default)
            returns a shorter sequence, ``"pad"`` adds frames of zeros.
        no_copy: Accepted for compatibility with DALI, without effect: fed data is copied.
        sequence_length: Number of frames in a sequence.

    Returns:
        Sequences ``(F, H, W, 3)``, uint8, RGB.

    Raises:
        RuntimeError: the policy is unknown, ``sequence_length`` isn't positive, several videos are fed in one call, or
            no video was fed.
        DecodeError: the video cannot be decoded.
    """
    if last_sequence_policy not in _POLICIES:
        raise RuntimeError(f"last_sequence_policy must be 'partial' or 'pad', got {last_sequence_policy!r}")
    if sequence_length < 1:
        raise RuntimeError(f"sequence_length must be positive, got {sequence_length}")
    padded = last_sequence_policy == "pad"
    return VideoInput(sequence_length, padded=padded, blocking=blocking, upright=adjust_orientation)
