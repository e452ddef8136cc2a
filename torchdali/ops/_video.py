"""Decoding of encoded videos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.codecs.video import VideoDecoder
from torchdali.codecs.video_clips import PAD_MODES, fill_frame, pad_frames, read_clip
from torchdali.declaration.schema import Data, PerSample, Takes, one_of

__all__ = ["video"]

Encoded = Annotated[Tensor, Takes((), (torch.uint8,))]


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
    """Decode videos, or some of their frames, by the package av (extra ``video``).

    Args:
        encoded: The bytes of a file, ``(n,)`` uint8.
        adjust_orientation: Ours: turn frames as the container asks for, as in videos of phones; DALI keeps the
            stored orientation.
        affine: Accepted: threads of DALI's that keep to their cores.
        build_index: Accepted: packets are always listed.
        end_frame: First frame that is not taken; not with ``sequence_length``.
        fast: Ours: do not interpolate chroma: up to three times as fast, and one or two levels off on average.
        fill_value: Value of frames that do not exist, one value or one per channel.
        frames: Numbers of the frames, in any order; not with the other ways.
        pad_mode: Frames beyond the end: ``"constant"``, ``"edge"`` or ``"repeat"`` the last one,
            ``"reflect_1001"`` or ``"symmetric"`` mirrored with the last one, ``"reflect_101"`` or ``"reflect"``
            without, ``"none"`` nothing.
        sequence_length: Number of frames.
        start_frame: First frame.
        stride: Frames from one to the next.

    Returns:
        ``(F, H, W, 3)`` uint8, RGB.

    Raises:
        DecodeError: the data is empty, damaged or of an unknown format, or a frame cannot be decoded.
        RuntimeError: arguments exclude each other, the start is outside, a number is not positive.
        MissingExtraError: av is not installed.
    """
    if encoded.ndim != 1:
        raise RuntimeError(f"encoded data has one dimension, not {encoded.ndim}: is it decoded already?")
    if not len(encoded):
        raise RuntimeError("decoders.video does not support empty input")
    _check(frames, start_frame, end_frame, sequence_length, stride)
    decoder = VideoDecoder(encoded, fast=fast, upright=adjust_orientation)
    try:
        count = len(decoder.index)
        indices = list(frames) if frames is not None else None
        if indices is None:
            indices = _range(count, start_frame or 0, end_frame, sequence_length, stride or 1)
        numbers = pad_frames(indices, count, pad_mode)
        return read_clip(decoder, numbers, fill_frame(fill_value))
    finally:
        decoder.close()


def _check_window(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that exclude each other; values per sample are checked with the sample."""
    names = ("frames", "start_frame", "end_frame", "sequence_length", "stride")
    _check(*[arguments.get(name) for name in names])


def _check(frames: Any, start: Any, end: Any, length: Any, stride: Any) -> None:
    if frames is not None and any(value is not None for value in (start, end, length, stride)):
        raise RuntimeError(
            "Cannot specify both `frames` and any of `start_frame`, `sequence_length`, `stride`, `end_frame` arguments"
        )
    if length is not None and end is not None:
        raise RuntimeError("Cannot specify both `sequence_length` and `end_frame` arguments")
    if length is not None and length < 0:
        raise RuntimeError(f"sequence_length={length}: it is not negative")
    if stride is not None and stride < 1:
        raise RuntimeError(f"stride={stride}: it is positive")


def _range(count: int, start: int, end: int | None, length: int | None, stride: int) -> list[int]:
    if not 0 <= start < count:
        raise RuntimeError(f"start_frame={start} is out of bounds [0, {count})")
    if end is not None and end <= start:
        raise RuntimeError(f"end_frame={end}: it is greater than start_frame={start}")
    if length is not None:
        return list(range(start, start + length * stride, stride))
    return list(range(start, count if end is None else end, stride))
