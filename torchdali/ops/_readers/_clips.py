"""Find the videos that a reader's arguments select, and divide the videos into clips."""

from __future__ import annotations

import bisect
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchdali.codecs.video import VideoIndex
from torchdali.codecs.video_clips import pad_frames, uniform
from torchdali.codecs.video_files import index_file
from torchdali.errors import DecodeError, warn
from torchdali.formats.storage import read_text
from torchdali.ops._readers._class_folders import warn_of_classes
from torchdali.ops._readers._records import check_local

__all__ = ["ROUNDINGS", "Clip", "ListedVideo", "find_videos", "list_clips"]

ROUNDINGS = {
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}


@dataclass(frozen=True)
class ListedVideo:
    """A video file, its label, and the range that clips are taken from.

    Attributes:
        start: Start of the range in seconds or frames; None for the start of the file.
        end: End of the range in seconds or frames; None for the end of the file.
    """

    path: str
    label: int
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Clip:
    """A clip of a video.

    Attributes:
        frames: Indices of the frames in the file; -1 for a frame that consists of the fill value.
    """

    path: str
    label: int
    frames: tuple[int, ...]


def find_videos(
    names: Sequence[str], labels: Sequence[int] | None, root: str, file_list: str
) -> tuple[list[ListedVideo], bool]:
    """Return the files that a reader's arguments select, and whether the files have labels.

    Args:
        labels: Labels of `names`; None if the files have no labels.
        root: Folder that contains one folder of videos per class.
        file_list: Path of a list of files.

    Raises:
        RuntimeError: Not exactly one of `names`, `root` and `file_list` is passed, no files were found, or the numbers
            of names and labels differ.
    """
    if sum(map(bool, (names, root, file_list))) != 1:
        raise RuntimeError("pass exactly one of filenames, file_root and file_list")
    check_local(filenames=names, file_root=root, file_list=file_list)
    if file_list:
        return _list_videos(file_list), True
    if root:
        return _list_class_folders(root), True
    if labels is not None and len(labels) != len(names):
        raise RuntimeError(f"labels must have one value per file, got {len(names)} filenames and {len(labels)} labels")
    numbers = [0] * len(names) if labels is None else labels
    return [ListedVideo(*pair) for pair in zip(names, numbers, strict=True)], labels is not None


def _list_class_folders(root: str) -> list[ListedVideo]:
    try:
        folders = sorted(e.name for e in os.scandir(root) if e.is_dir())
    except OSError as error:
        raise RuntimeError(f"cannot read the file_root {root!r}: {error.strerror}") from None
    lists = [_list_files(os.path.join(root, folder)) for folder in folders]
    warn_of_classes(root, folders, list(map(len, lists)), "rename or remove it")
    return [ListedVideo(path, label) for label, paths in enumerate(lists) for path in paths]


def _list_files(folder: str) -> list[str]:
    paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return [path for path in paths if os.path.isfile(path)]


def _list_videos(path: str) -> list[ListedVideo]:
    try:
        lines = read_text(path).split("\n")
    except RuntimeError as error:
        raise RuntimeError(f"cannot read the file_list {path!r}: {str(error).rpartition(': ')[2]}") from None
    entries = [_parse_entry(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not entries:
        raise RuntimeError(f"the file_list {path!r} lists no files")
    folder = os.path.dirname(path)
    return [ListedVideo(_resolve_path(folder, v.path), v.label, v.start, v.end) for v in entries]


def _resolve_path(folder: str, path: str) -> str:
    """Resolve a relative path in a list.

    The path is relative to the working directory, or to the list's folder if the file exists only there.
    """
    candidate = os.path.join(folder, path)
    return path if os.path.exists(path) or not os.path.exists(candidate) else candidate


def _parse_entry(path: str, number: int, line: str) -> ListedVideo:
    parts = line.split()
    try:
        name, label, *bounds = parts
        start, end = [*map(float, bounds), None, None][:2]
        if any(map(math.isnan, map(float, bounds))):
            raise ValueError("a bound is not a number")
        video = ListedVideo(name, int(label), start, end)
    except ValueError:
        raise RuntimeError(
            f"{path!r}, line {number}: expected a path, a label and at most two bounds, found {line.strip()!r}"
        ) from None
    if video.label < 0 or len(bounds) > 2:
        raise RuntimeError(f"{path!r}, line {number}: expected a label of at least 0, and at most two bounds")
    return video


def list_clips(
    videos: Sequence[ListedVideo],
    length: int,
    step: int,
    stride: int,
    pad_mode: str,
    *,
    frames: bool,
    rounding: tuple[bool, bool],
    uniform_sample: bool,
) -> list[Clip]:
    """Return all clips of all videos, one file after another.

    A file that cannot be opened is skipped with a warning.

    Args:
        step: Number of frames from the start of a clip to the start of the next clip.
        stride: Number of frames from one frame of a clip to the next frame.
        pad_mode: How to fill clips that reach beyond the last frame; see `codecs.video_clips`. "none" returns only
            complete clips.
        frames: True if bounds are frames instead of seconds.
        rounding: Two values: True to round the start of a range up, False to round the start down; and the same for the
            end of the range.
        uniform_sample: Return one clip per video, with equally spaced frames from the first to the last frame of the
            range.

    Raises:
        RuntimeError: None of the files can be opened.
    """
    result: list[Clip] = []
    skipped = 0
    for video in videos:
        try:
            index = index_file(video.path)
        except DecodeError as error:
            skipped += 1
            if skipped == len(videos):
                raise RuntimeError(f"none of the videos can be opened: {error}") from error
            warn(f"skipped: {error}")
            continue
        start, end = _find_bounds(video, index, frames, rounding)
        if uniform_sample:
            starts = [uniform(start, end, length)] if end > start else []
        else:
            starts = _divide_range(start, end, length, step, stride, pad_mode)
        mode = "edge" if pad_mode == "none" else pad_mode
        result += [Clip(video.path, video.label, tuple(pad_frames(s, end, mode))) for s in starts]
    return result


def _divide_range(start: int, end: int, length: int, step: int, stride: int, mode: str) -> list[list[int]]:
    """Return the frame indices of each clip of a video; with padding, the last clip may reach beyond the end."""
    span = length * stride
    starts = list(range(start, end - span + 1, step))
    next_start = start + len(starts) * step
    if mode != "none" and next_start < end:
        starts.append(next_start)
    return [list(range(first, first + span, stride)) for first in starts]


def _find_bounds(video: ListedVideo, index: VideoIndex, frames: bool, rounding: tuple[bool, bool]) -> tuple[int, int]:
    """Return the first frame and the end frame (exclusive) of a video's range."""
    to_frame: Callable[[float, bool], int] = _round_frame if frames else _build_frame_finder(index)
    count = len(index)
    start = 0 if video.start is None else to_frame(video.start, rounding[0])
    end = count if video.end is None else to_frame(video.end, rounding[1])
    if frames:
        start, end = (start + count if start < 0 else start), (end + count if end < 0 else end)
    return max(start, 0), min(end, count)


def _round_frame(value: float, round_up: bool) -> int:
    return math.ceil(value) if round_up else math.floor(value)


def _build_frame_finder(index: VideoIndex) -> Callable[[float, bool], int]:
    """Return a function that finds the frame at a time.

    If the function's second argument is True, the function returns the first frame at or after the time.
    """
    times = [index.seconds(frame) for frame in range(len(index))]

    def find_frame(seconds: float, round_up: bool) -> int:
        shifted = seconds + (-1e-6 if round_up else 1e-6)  # allow for rounded times in lists
        return bisect.bisect_left(times, shifted) if round_up else max(bisect.bisect_right(times, shifted) - 1, 0)

    return find_frame
