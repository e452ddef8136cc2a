"""Choose the frames of a video clip, pad the clip after the video's end, and read the clip."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.codecs.video import VideoDecoder

__all__ = ["PAD_MODES", "fill_frame", "pad_frames", "read_clip", "uniform"]

PAD_MODES = ("none", "constant", "edge", "repeat", "reflect_1001", "symmetric", "reflect_101", "reflect")


def uniform(start: int, end: int, count: int) -> list[int]:
    """Return equally spaced frame indices, from the first to the last frame of a range.

    Args:
        start: First frame of the range.
        end: End of the range (exclusive).
        count: Number of frames.
    """
    if count == 1:
        return [start]
    span = end - 1 - start
    return [start + (2 * i * span + count - 1) // (2 * (count - 1)) for i in range(count)]


def pad_frames(frames: Sequence[int], end: int, mode: str) -> list[int]:
    """Replace frame indices beyond the end of a range.

    As in DALI, reflection may go back to the first frame of the file, even if the clip's range starts later.

    Args:
        end: End of the range (exclusive).
        mode: One of `PAD_MODES`. With "none", indices beyond the end are removed.

    Returns:
        The new indices; -1 for a frame with the fill value.

    Raises:
        RuntimeError: The mode is unknown.
    """
    if mode not in PAD_MODES:
        raise RuntimeError(f"Invalid pad_mode: {mode!r}; must be one of {', '.join(PAD_MODES)}")
    if mode == "none":
        return [frame for frame in frames if frame < end]
    return [_replacement_frame(frame, end, mode) for frame in frames]


def _replacement_frame(frame: int, end: int, mode: str) -> int:
    if frame < 0:
        return -1
    if frame < end:
        return frame
    if mode in ("constant", "edge", "repeat"):
        return -1 if mode == "constant" else end - 1
    if mode in ("reflect_101", "reflect"):
        frame %= max(2 * (end - 1), 1)
        return min(frame, 2 * (end - 1) - frame)
    frame %= 2 * end
    return min(frame, 2 * end - 1 - frame)


def fill_frame(values: Sequence[int], channels: int = 3) -> Tensor:
    """Return the color of padding frames, ``(channels,)`` uint8.

    Raises:
        RuntimeError: The number of values is neither 1 nor the number of channels, or a value is not from 0 to 255.
    """
    if len(values) not in (1, channels):
        raise RuntimeError(f"fill_value must have 1 or {channels} values, got {len(values)}")
    if not all(0 <= value <= 255 for value in values):
        raise RuntimeError(f"fill_value must be in 0 to 255, got {list(values)}")
    return torch.tensor(list(values) * (channels // len(values)), dtype=torch.uint8)


def read_clip(decoder: VideoDecoder, frames: Sequence[int], fill: Tensor, out: Tensor | None = None) -> Tensor:
    """Read frames of a video.

    Args:
        frames: Frame indices; -1 for a frame with the fill value.
        fill: The fill value, ``(3,)`` uint8.
        out: Tensor to write the frames to; None for a new tensor.

    Returns:
        ``(F, H, W, 3)`` uint8.
    """
    present = [frame for frame in frames if frame >= 0]
    if len(present) == len(frames):
        return decoder.read(frames, out)
    decoded = decoder.read(present)
    clip = fill.expand(len(frames), *decoder.shape).clone() if out is None else out.copy_(fill)
    if present:
        clip[[i for i, frame in enumerate(frames) if frame >= 0]] = decoded
    return clip
