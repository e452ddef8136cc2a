"""The readers of video clips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.codecs.video_clips import PAD_MODES, fill_frame, read_clip
from torchdali.codecs.video_files import VideoFiles, index_file
from torchdali.declaration.batching import argument_names
from torchdali.declaration.schema import DType, FilePath, OutputCount, one_of, shares
from torchdali.formats.storage import file_identity
from torchdali.ops._readers._clips import ROUNDINGS, Clip, find_videos, list_clips
from torchdali.ops._resize import resampling, resize, sizing
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.reading.file_lists import list_digest
from torchdali.types import DALIImageType

__all__ = ["VideoDataset", "experimental_video", "video", "video_resize"]

_NUMBERS = ("none", "scalar", "sequence")
_BOUNDS = ("timestamps", "frames")


class VideoDataset:
    """Clips of videos, and their metadata.

    Args:
        fill: Color of the frames that pad a clip after the video's end.
        returns_labels: Return the label of the file.
        numbers: Frame numbers to return: ``"scalar"`` for the number of the first frame, ``"sequence"`` for the numbers
            of all frames, or ``"none"``.
        returns_times: Return the time at which each frame is shown, in seconds.
        finish: Function that is applied to the frames; None to return the frames unchanged.

    Raises:
        RuntimeError: No clips were found.
    """

    def __init__(
        self,
        clips: Sequence[Clip],
        fill: Tensor,
        files: VideoFiles,
        *,
        returns_labels: bool,
        numbers: str,
        returns_times: bool,
        finish: Callable[..., Tensor] | None = None,
    ) -> None:
        if not clips:
            raise RuntimeError("no video has enough frames for a sequence")
        self._clips, self._fill, self._files = clips, fill, files
        self._returns_labels, self._numbers, self._returns_times, self._finish = (
            returns_labels,
            numbers,
            returns_times,
            finish,
        )

    def __len__(self) -> int:
        return len(self._clips)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a clip; if `index` is None, return the identity of the list of files.

        The identity of a clip consists of the file's identity and the frames' indices.
        """
        if index is None:
            return list_digest(list(dict.fromkeys(clip.path for clip in self._clips)))
        identity = file_identity(self._clips[index].path)
        return None if identity is None else identity + repr(self._clips[index]).encode("utf-8", "surrogateescape")

    def read(self, index: int, **varying: Any) -> tuple[Tensor, ...]:
        """Return the frames ``(F, H, W, C)``, and the requested metadata: label, frame numbers, times.

        Args:
            varying: Arguments of ``finish`` with one value per sample.
        """
        clip = self._clips[index]
        with self._files.lend(clip.path) as decoder:
            frames = read_clip(decoder, clip.frames, self._fill)
        frames = frames if self._finish is None else self._finish(frames, **varying)
        return (frames, *self._metadata_outputs(clip))

    def _metadata_outputs(self, clip: Clip) -> list[Tensor]:
        outputs = []
        if self._returns_labels:
            outputs.append(torch.tensor([clip.label], dtype=torch.int32))
        if self._numbers != "none":
            numbers = clip.frames if self._numbers == "sequence" else clip.frames[:1]
            outputs.append(torch.tensor(numbers, dtype=torch.int32))
        if self._returns_times:
            index = index_file(clip.path)
            seconds = [index.seconds(frame) if frame >= 0 else -1.0 for frame in clip.frames]
            outputs.append(torch.tensor(seconds, dtype=torch.float64))
        return outputs

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of a clip's file; an empty string if `output` is above 0."""
        return "" if output else self._clips[index].path


def _normalize_frame_numbers(value: str) -> str:
    """Return the normalized value of ``enable_frame_num``; older versions accepted a bool, which arrives as text."""
    return {"True": "scalar", "False": "none"}.get(value, value)


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    labels = arguments["labels"] is not None or arguments["file_list"] or arguments["file_root"]
    count = (
        1
        + bool(labels)
        + (_normalize_frame_numbers(arguments["enable_frame_num"]) != "none")
        + bool(arguments["enable_timestamps"])
    )
    return count if count > 1 else None


def _output_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    return ("FHWC", *[""] * ((_count_outputs(arguments) or 1) - 1))


def selection(
    *,
    adjust_orientation: bool = True,
    enable_frame_num: Annotated[str, one_of(_NUMBERS, [True, False])] = "none",
    enable_timestamps: bool = False,
    fast: bool = False,
    file_list: FilePath = "",
    file_root: FilePath = "",
    filenames: list[FilePath] = [],  # noqa: B006  never changed
    image_type: DALIImageType = DALIImageType.RGB,
    labels: list[int] | None = None,
    sequence_length: int,
    step: int = -1,
    stride: int = 1,
) -> None:
    """Arguments that select the files, and the frames of a sequence.

    Args:
        adjust_orientation: Rotate frames as the container's metadata requires, for example in videos from phones. DALI
            doesn't have this argument, and keeps the stored orientation.
        enable_frame_num: Also return frame numbers, int32. ``"scalar"`` or True: the number of the first frame.
            ``"sequence"``: the numbers of all frames. ``"none"`` or False: no numbers.
        enable_timestamps: Also return the times at which frames are shown, in seconds from the first frame, float64.
        fast: Don't interpolate chroma. Decoding is up to three times as fast, but pixels differ by one or two levels on
            average. DALI doesn't have this argument.
        file_list: A text file with lines ``path label [start [end]]``.
        file_root: Folder that contains one folder of videos per class.
        filenames: Paths of the videos.
        image_type: RGB, or YCbCr for the coded values.
        labels: Labels, one per file of ``filenames``.
        sequence_length: Number of frames in a sequence.
        step: Number of frames from the start of a sequence to the start of the next sequence. If negative, a sequence
            starts where the previous sequence ends.
        stride: Number of frames from one frame of a sequence to the next.
    """


def _check_arguments(length: int, step: int, stride: int, numbers: str, kind: DALIImageType, mode: str) -> None:
    if length < 1 or stride < 1 or not step:
        raise RuntimeError(f"sequence_length, stride and step must be positive, got {length}, {stride} and {step}")
    if numbers not in _NUMBERS:
        raise RuntimeError(f"enable_frame_num must be one of {', '.join(_NUMBERS)}, got {numbers!r}")
    if kind not in (DALIImageType.RGB, DALIImageType.YCbCr):
        raise RuntimeError(f"image_type must be RGB or YCbCr, got {kind.name}")
    if mode not in PAD_MODES:
        raise RuntimeError(f"Invalid pad_mode: {mode!r}; expected one of {', '.join(PAD_MODES)}")


def _open_dataset(
    arguments: Mapping[str, Any],
    fill: Tensor,
    pad_mode: str,
    *,
    frames: bool,
    rounding: tuple[bool, bool],
    uniform_sample: bool = False,
    finish: Callable[..., Tensor] | None = None,
) -> VideoDataset:
    options = {"adjust_orientation": True, "enable_frame_num": "none", "enable_timestamps": False, "fast": False,
              "file_list": "", "file_root": "", "filenames": [], "image_type": DALIImageType.RGB, "labels": None,
              "step": -1, "stride": 1, **arguments}  # fmt: skip
    options["enable_frame_num"] = _normalize_frame_numbers(options["enable_frame_num"])
    length, step, stride = options["sequence_length"], options["step"], options["stride"]
    _check_arguments(length, step, stride, options["enable_frame_num"], options["image_type"], pad_mode)
    videos, labeled = find_videos(options["filenames"], options["labels"], options["file_root"], options["file_list"])
    sequences = list_clips(
        videos, length, step if step > 0 else length * stride, stride, pad_mode,
        frames=frames, rounding=rounding, uniform_sample=uniform_sample,
    )  # fmt: skip
    files = VideoFiles(options["image_type"].name, options["fast"], options["adjust_orientation"])
    return VideoDataset(
        sequences, fill, files, returns_labels=labeled, numbers=options["enable_frame_num"],
        returns_times=options["enable_timestamps"], finish=finish,
    )  # fmt: skip


@reader(name="experimental.readers.video", outputs=_count_outputs, layout=_output_layouts, devices=("cpu", "gpu"))
def experimental_video(
    *,
    file_list_format: Annotated[str, one_of(_BOUNDS)] = "timestamps",
    file_list_include_end: bool = True,
    file_list_rounding: Annotated[str, one_of(ROUNDINGS)] = "start_down_end_up",
    fill_value: list[int] = [0],  # noqa: B006  never changed
    pad_mode: Annotated[str, one_of(PAD_MODES)] = "none",
    uniform_sample: bool = False,
    **arguments: Annotated[Any, shares(selection), shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read clips of videos with exact frame positions, by the package av (extra ``video``).

    Args:
        file_list_format: Unit of the start and end in ``file_list``: ``"timestamps"`` in seconds, or ``"frames"``.
            Negative frame numbers count from the end.
        file_list_include_end: Accepted without effect: as in DALI, the end of a range is exclusive.
        file_list_rounding: How to round a start and an end that are between two frames: ``"start_down_end_up"``,
            ``"start_up_end_down"``, ``"all_up"`` or ``"all_down"``.
        fill_value: Color of the frames that ``pad_mode="constant"`` adds: one value, or one value per channel.
        pad_mode: How to fill sequences that reach beyond the end of a video; see `decoders.video`. ``"none"`` returns
            only complete sequences.
        uniform_sample: Return one sequence per video, with equally spaced frames from the first to the last frame.

    Returns:
        The frames, ``(F, H, W, 3)`` uint8; if requested, followed by the label ``(1,)`` int32, the frame numbers and
        the times.

    Raises:
        RuntimeError: No argument or several arguments select the files; no sequences were found; or an argument is
            unknown or not positive. While the pipeline runs: a frame cannot be decoded.
        MissingExtraError: av is not installed.
    """
    if file_list_format not in _BOUNDS:
        raise RuntimeError(f"Invalid file_list_format: {file_list_format!r}; expected one of {', '.join(_BOUNDS)}")
    if file_list_rounding not in ROUNDINGS:
        raise RuntimeError(
            f"Invalid file_list_rounding: {file_list_rounding!r}; expected one of {', '.join(ROUNDINGS)}"
        )
    return _open_dataset(
        arguments, fill_frame(fill_value), pad_mode, frames=file_list_format == "frames",
        rounding=ROUNDINGS[file_list_rounding], uniform_sample=uniform_sample,
    )  # fmt: skip


def legacy_options(
    *,
    additional_decode_surfaces: int = 2,
    channels: int = 3,
    dtype: DType = torch.uint8,
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    normalized: bool = False,
    pad_sequences: bool = False,
    skip_vfr_check: bool = False,
) -> None:
    """Arguments for the conversion of frames, and for the format of ``file_list``.

    Args:
        additional_decode_surfaces: Accepted without effect.
        channels: Number of channels; must be 3.
        dtype: Output dtype: uint8 or float32.
        file_list_frame_num: The start and end in ``file_list`` are frame numbers instead of seconds. Negative numbers
            count from the end.
        file_list_include_preceding_frame: If True, a range begins with the frame that is visible at the start time. If
            False, a range begins with the first frame that is shown at or after the start time.
        normalized: Scale float32 values to 0 to 1; without effect for uint8.
        pad_sequences: If True, pad an incomplete last sequence of a file with black frames; if False, skip this
            sequence.
        skip_vfr_check: Accepted without effect: frame rates may vary.
    """


def _open_legacy_dataset(arguments: Mapping[str, Any], finish: Callable[..., Tensor] | None = None) -> VideoDataset:
    kind, normalized = arguments.get("dtype", torch.uint8), arguments.get("normalized", False)
    if kind not in (torch.uint8, torch.float32):
        raise RuntimeError(f"dtype must be uint8 or float32, got {kind}")
    if arguments.get("channels", 3) != 3:
        raise RuntimeError(f"channels must be 3, got {arguments['channels']}")

    def convert_frames(frames: Tensor, **varying: Any) -> Tensor:
        frames = frames if finish is None else finish(frames, **varying)
        if kind == torch.uint8:
            return frames
        return frames.float().mul_(1 / 255) if normalized else frames.float()

    bounds_are_frames = arguments.get("file_list_frame_num", False)
    include_preceding = arguments.get("file_list_include_preceding_frame", False)
    return _open_dataset(
        arguments, fill_frame([0]), "constant" if arguments.get("pad_sequences") else "none",
        frames=bounds_are_frames, rounding=(not include_preceding, False), finish=convert_frames,
    )  # fmt: skip


@reader(name="readers.video", outputs=_count_outputs, layout=_output_layouts, devices=("cpu", "gpu"))
def video(
    **arguments: Annotated[Any, shares(selection), shares(legacy_options), shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read clips of videos with the package av (extra ``video``); see `experimental.readers.video`.

    Returns:
        The frames, ``(F, H, W, 3)``; if requested, followed by the label ``(1,)`` int32, the frame numbers and the
        times.

    Raises:
        RuntimeError: As for `experimental.readers.video`; or the dtype or the number of channels is unsupported.
    """
    return _open_legacy_dataset(arguments)


@reader(name="readers.video_resize", outputs=_count_outputs, layout=_output_layouts, devices=("cpu", "gpu"))
def video_resize(
    **arguments: Annotated[
        Any,
        shares(selection),
        shares(legacy_options),
        shares(sizing),
        shares(resampling),
        shares(LoaderOptions),
    ],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read clips of videos, and resize their frames; see `readers.video` and `resize`.

    Returns:
        The frames, ``(F, h, w, 3)``; if requested, followed by the label ``(1,)`` int32, the frame numbers and the
        times.

    Raises:
        RuntimeError: See `readers.video` and `resize`.
    """
    names = {*argument_names(sizing), *argument_names(resampling)} - {"dtype"}
    constants = {name: value for name, value in arguments.items() if name in names}
    resize_operator: Any = resize

    def resize_frames(frames: Tensor, **varying: Any) -> Tensor:
        resized: Tensor = resize_operator.implementation(frames, layout="FHWC", **{**constants, **varying})
        return resized

    return _open_legacy_dataset(arguments, resize_frames)
