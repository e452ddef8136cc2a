"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType


class Fits(Reader):
    """Read images of FITS files, plain or compressed, by the package astropy (extra ``astronomy``), on the CPU."""
    def __init__(
        self,
        max_batch_size: Any = None,
        name: Any = None,
        device: Any = None,
        num_inputs: Any = None,
        *,
        dont_use_mmap: _bool = False,
        dtypes: abc.Sequence[Any] | Any | None = None,
        file_filter: str = '*.fits',
        file_list: str | None = None,
        file_root: str | None = None,
        files: abc.Sequence[str] | str | None = None,
        hdu_indices: abc.Sequence[int] | int = [2],
        initial_fill: int = 1024,
        lazy_init: _bool = False,
        num_shards: int = 1,
        pad_last_batch: _bool = False,
        prefetch_queue_depth: int = 1,
        random_shuffle: _bool = False,
        read_ahead: _bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: _bool = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: _bool = False,
        stick_to_shard: _bool = False,
        tensor_init_bytes: int = 1048576,
        enable_checkpointing: Any = ...,
        _backend: Any = ...,
    ) -> None: ...

class Video(Reader):
    """Read clips of videos by the package av (extra ``video``), each exact to the frame."""
    def __init__(
        self,
        max_batch_size: Any = None,
        name: Any = None,
        device: Any = None,
        num_inputs: Any = None,
        *,
        sequence_length: int,
        adjust_orientation: _bool = False,
        dont_use_mmap: _bool = False,
        enable_frame_num: str = 'none',
        enable_timestamps: _bool = False,
        fast: _bool = False,
        file_list: str = '',
        file_list_format: str = 'timestamps',
        file_list_include_end: _bool = True,
        file_list_rounding: str = 'start_down_end_up',
        file_root: str = '',
        filenames: abc.Sequence[str] | str = [],
        fill_value: abc.Sequence[int] | int = [0],
        image_type: DALIImageType = DALIImageType.RGB,
        initial_fill: int = 1024,
        labels: abc.Sequence[int] | int | None = None,
        lazy_init: _bool = False,
        num_shards: int = 1,
        pad_last_batch: _bool = False,
        pad_mode: str = 'none',
        prefetch_queue_depth: int = 1,
        random_shuffle: _bool = False,
        read_ahead: _bool = False,
        seed: int | None = -1,
        shard_id: int = 0,
        shuffle_after_epoch: _bool = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: _bool = False,
        step: int = -1,
        stick_to_shard: _bool = False,
        stride: int = 1,
        tensor_init_bytes: int = 1048576,
        uniform_sample: _bool = False,
        enable_checkpointing: Any = ...,
        _backend: Any = ...,
    ) -> None: ...
