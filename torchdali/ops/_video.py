"""The operator `decoders.video`: decode videos or some of their frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.codecs.video import VideoDecoder
from torchdali.codecs.video_clips import PAD_MODES, fill_frame, pad_frames, read_clip
from torchdali.declaration.schema import Data, InputConstraints, PerSample, one_of

__all__ = ["video"]

Encoded = Annotated[Tensor, InputConstraints((), (torch.uint8,))]


@operator(
    name="decoders.video", layout="FHWC", devices=("cpu", "mixed"),
    check=lambda arguments: _check_window(arguments),
)  # fmt: skip
def video(
    encoded: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    build_index: bool = True,
    end_frame: PerSample[int] | None = None,
    fast: bool = False,
    fill_value: list[int] = [0],  # noqa: B006  never changed
    frames: PerSample[list[int]] | None = None,
    pad_mode: PerSample[Annotated[str, one_of(PAD_MODES)]] = "constant",
    sequence_length: PerSample[int] | None = None,
    start_frame: PerSample[int] | None = None,
    stride: PerSample[int] | None = None,
) -> Data:
    """Decode videos, or some of their frames.

    The package ``av`` decodes the videos; the extra ``video`` installs it.

    Args:
        encoded: Bytes of a video file, ``(n,)`` uint8.
        adjust_orientation: If True (the default), frames are rotated as the video file's metadata specifies. Videos
            from phones need this. If False, frames aren't rotated. DALI doesn't have this argument, and never rotates.
        affine: Accepted for compatibility with DALI, without effect.
        build_index: Accepted for compatibility with DALI, without effect.
        end_frame: Index of the frame after the last frame to decode. This argument excludes ``sequence_length``. By
            default frames are decoded up to the video's end.
        fast: If True, chroma isn't interpolated. Decoding is then up to three times as fast, and pixel values differ by
            1 or 2 on average. By default False. DALI doesn't have this argument.
        fill_value: Color of missing frames for ``pad_mode="constant"``: one value, or one value per channel. By default
            0.
        frames: Indices of the frames to decode, in any order, instead of ``start_frame``, ``end_frame``,
            ``sequence_length`` and ``stride``.
        pad_mode: Frames to return for indices after the video's end. ``"constant"`` (the default): frames of the color
            ``fill_value``; ``"edge"`` or ``"repeat"``: the last frame; ``"reflect_1001"`` or ``"symmetric"``: the
            frames in reverse order, starting with the last frame; ``"reflect_101"`` or ``"reflect"``: the frames in
            reverse order, starting with the frame before the last frame; ``"none"``: no frames.
        sequence_length: Number of frames to return.
        start_frame: Index of the first frame to decode. By default 0.
        stride: Distance between decoded frames, in frames. By default 1.

    Returns:
        Frames ``(F, H, W, 3)``, uint8, RGB.

    Raises:
        DecodeError: the data is empty or damaged, its format is unknown, or a frame cannot be decoded.
        RuntimeError: arguments exclude each other, ``start_frame`` is outside the video, ``end_frame`` isn't after
            ``start_frame``, ``sequence_length`` is negative, or ``stride`` isn't positive.
        MissingExtraError: ``av`` isn't installed.
    """
    if encoded.ndim != 1:
        raise RuntimeError(f"encoded data must have one dimension, got {encoded.ndim}. Is the data already decoded?")
    if not len(encoded):
        raise RuntimeError("decoders.video does not support empty input")
    _check_frames(frames, start_frame, end_frame, sequence_length, stride)
    decoder = VideoDecoder(encoded, fast=fast, upright=adjust_orientation)
    try:
        count = len(decoder.index)
        indices = list(frames) if frames is not None else None
        if indices is None:
            indices = _frame_range(count, start_frame or 0, end_frame, sequence_length, stride or 1)
        numbers = pad_frames(indices, count, pad_mode)
        return read_clip(decoder, numbers, fill_frame(fill_value))
    finally:
        decoder.close()


def _check_window(arguments: Mapping[str, Any]) -> None:
    """Raise RuntimeError if constant arguments exclude each other. `video` checks the arguments of each sample."""
    names = ("frames", "start_frame", "end_frame", "sequence_length", "stride")
    _check_frames(*[arguments.get(name) for name in names])


def _check_frames(frames: Any, start: Any, end: Any, length: Any, stride: Any) -> None:
    if frames is not None and any(value is not None for value in (start, end, length, stride)):
        raise RuntimeError(
            "Cannot specify both `frames` and any of `start_frame`, `sequence_length`, `stride`, `end_frame` arguments"
        )
    if length is not None and end is not None:
        raise RuntimeError("Cannot specify both `sequence_length` and `end_frame` arguments")
    if length is not None and length < 0:
        raise RuntimeError(f"sequence_length must not be negative, got {length}")
    if stride is not None and stride < 1:
        raise RuntimeError(f"stride must be positive, got {stride}")


def _frame_range(count: int, start: int, end: int | None, length: int | None, stride: int) -> list[int]:
    if not 0 <= start < count:
        raise RuntimeError(f"start_frame={start} is out of bounds [0, {count})")
    if end is not None and end <= start:
        raise RuntimeError(f"end_frame must be greater than start_frame={start}, got {end}")
    if length is not None:
        return list(range(start, start + length * stride, stride))
    return list(range(start, count if end is None else end, stride))
