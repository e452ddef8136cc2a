"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Fits:
    """Read images of FITS files, plain or compressed, by the package astropy (extra ``astronomy``), on the CPU."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dont_use_mmap: bool = False,
        dtypes: abc.Sequence[Any] | Any | None = None,
        file_filter: str = '*.fits',
        file_list: str | None = None,
        file_root: str | None = None,
        files: abc.Sequence[str] | str | None = None,
        hdu_indices: abc.Sequence[int] | int = [2],
        initial_fill: int = 1024,
        lazy_init: bool = False,
        name: str | None = None,
        num_shards: int = 1,
        pad_last_batch: bool = False,
        prefetch_queue_depth: int = 1,
        preserve: Any = ...,
        random_shuffle: bool = False,
        read_ahead: bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool = False,
        stick_to_shard: bool = False,
        tensor_init_bytes: int = 1048576,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Video:
    """Read clips of videos by the package av (extra ``video``), each exact to the frame."""
    def __init__(
        self,
        *,
        sequence_length: int,
        adjust_orientation: bool = False,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dont_use_mmap: bool = False,
        enable_frame_num: str = 'none',
        enable_timestamps: bool = False,
        fast: bool = False,
        file_list: str = '',
        file_list_format: str = 'timestamps',
        file_list_include_end: bool = True,
        file_list_rounding: str = 'start_down_end_up',
        file_root: str = '',
        filenames: abc.Sequence[str] | str = [],
        fill_value: abc.Sequence[int] | int = [0],
        image_type: DALIImageType = DALIImageType.RGB,
        initial_fill: int = 1024,
        labels: abc.Sequence[int] | int | None = None,
        lazy_init: bool = False,
        name: str | None = None,
        num_shards: int = 1,
        pad_last_batch: bool = False,
        pad_mode: str = 'none',
        prefetch_queue_depth: int = 1,
        preserve: Any = ...,
        random_shuffle: bool = False,
        read_ahead: bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool = False,
        step: int = -1,
        stick_to_shard: bool = False,
        stride: int = 1,
        tensor_init_bytes: int = 1048576,
        uniform_sample: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
