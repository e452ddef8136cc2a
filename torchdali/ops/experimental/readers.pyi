"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Fits:
    """Read images of FITS files, plain or compressed, by the package astropy (extra ``astronomy``), on the CPU.

    Args:
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        dtypes: Of the outputs, to which the images are converted; the types of the files if left out.
        file_filter: Shell pattern of the names of files to take, for ``file_root`` alone.
        file_list: A text file with a path a line.
        file_root: Folder of the files, or what relative paths start from.
        files: Paths.
        hdu_indices: Numbers of the header-data units whose images are read, one an output; the primary one is
            1.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        Of each unit its image, the axes as NumPy has them: the last one of FITS comes first. Values that have a scale
        in the file come scaled.

    Raises:
        RuntimeError: nothing says which files, there are none, or arguments exclude each other. While running: a file
            cannot be read, or has no such image.
        MissingExtraError: astropy is not installed.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        dont_use_mmap: bool = False,
        dtypes: abc.Sequence[Any] | Any | None = None,
        file_filter: str = '*.fits',
        file_list: str | PathLike[str] | None = None,
        file_root: str | PathLike[str] | None = None,
        files: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
        hdu_indices: abc.Sequence[int] | int = [2],
        lazy_init: bool = False,
        name: str | None = None,
        num_shards: int = 1,
        pad_last_batch: bool = False,
        random_shuffle: bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        stick_to_shard: bool = False,
        bytes_per_sample_hint: Any = ...,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        preserve: Any = ...,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        tensor_init_bytes: int = 1048576,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Video:
    """Read clips of videos by the package av (extra ``video``), each exact to the frame.

    Args:
        adjust_orientation: Ours: turn frames as the container asks for, as videos from phones do; DALI never
            does.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        enable_frame_num: Also return numbers of frames, int32: ``"scalar"`` (or True) of the first one,
            ``"sequence"`` of all, ``"none"`` (or False).
        enable_timestamps: Also return when frames are shown, in seconds from the first one, float64.
        fast: Ours: do not interpolate chroma: up to three times as fast, and one or two levels off on average.
        file_list: A text file of lines ``path label [start [end]]``.
        file_list_format: What bounds in a list are: ``"timestamps"`` in seconds, or ``"frames"``; negative ones
            of these count from the end.
        file_list_include_end: Accepted; as in DALI, the end is not taken.
        file_list_rounding: ``"start_down_end_up"``, ``"start_up_end_down"``, ``"all_up"`` or ``"all_down"``:
            which frame a time between two stands for.
        file_root: Folder of folders of videos; each is a class.
        filenames: Paths.
        fill_value: Of frames that do not exist, one value or one a channel.
        image_type: RGB, or YCbCr as it is coded.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        labels: One a file of ``filenames``.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        pad_mode: What follows the last frame, as in `decoders.video`; ``"none"``: there are only whole
            sequences.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        sequence_length: Frames of a sequence.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        step: Frames from the beginning of one sequence to that of the next; a whole sequence, if negative.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        stride: Frames from one frame of a sequence to the next.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.
        uniform_sample: One sequence a video, of frames equally far apart from the first to the last.

    Returns:
        ``(F, H, W, 3)`` uint8; then the label ``(1,)`` int32 where there are labels, numbers and times of frames.

    Raises:
        RuntimeError: nothing says which files, or more than one thing does; there are no sequences; an argument is
            unknown or not positive. While running: a frame cannot be decoded.
        MissingExtraError: av is not installed.
    """
    def __init__(
        self,
        *,
        sequence_length: int,
        adjust_orientation: bool = False,
        device: Literal['cpu', 'gpu'] | None = None,
        dont_use_mmap: bool = False,
        enable_frame_num: Literal['none', 'scalar', 'sequence', True, False] = 'none',
        enable_timestamps: bool = False,
        fast: bool = False,
        file_list: str | PathLike[str] = '',
        file_list_format: Literal['timestamps', 'frames'] = 'timestamps',
        file_list_rounding: Literal['start_down_end_up', 'start_up_end_down', 'all_up', 'all_down'] = 'start_down_end_up',
        file_root: str | PathLike[str] = '',
        filenames: abc.Sequence[str | PathLike[str]] | str | PathLike[str] = [],
        fill_value: abc.Sequence[int] | int = [0],
        image_type: DALIImageType = DALIImageType.RGB,
        labels: abc.Sequence[int] | int | None = None,
        lazy_init: bool = False,
        name: str | None = None,
        num_shards: int = 1,
        pad_last_batch: bool = False,
        pad_mode: Literal['none', 'constant', 'edge', 'reflect_1001', 'symmetric', 'reflect_101', 'reflect'] = 'none',
        random_shuffle: bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        step: int = -1,
        stick_to_shard: bool = False,
        stride: int = 1,
        uniform_sample: bool = False,
        bytes_per_sample_hint: Any = ...,
        file_list_include_end: bool = True,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        preserve: Any = ...,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        tensor_init_bytes: int = 1048576,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
