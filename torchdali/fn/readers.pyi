"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def file(
    *,
    bytes_per_sample_hint: Any = ...,
    case_sensitive_filter: bool = ...,
    device: str | None = None,
    dir_filters: abc.Sequence[str] | str | None = ...,
    dont_use_mmap: bool = ...,
    file_filters: abc.Sequence[str] | str = ...,
    file_list: str | None = ...,
    file_root: str | None = ...,
    files: abc.Sequence[str] | str | None = ...,
    initial_fill: int = ...,
    labels: abc.Sequence[int] | int | None = ...,
    lazy_init: bool = ...,
    name: str | None = None,
    num_shards: int = ...,
    pad_last_batch: bool = ...,
    prefetch_queue_depth: int = ...,
    preserve: Any = ...,
    random_shuffle: bool = ...,
    read_ahead: bool = ...,
    seed: int | None = ...,
    shard_id: int = ...,
    shuffle_after_epoch: bool = ...,
    shuffle_after_epoch_seed: int | None = ...,
    skip_cached_images: bool = ...,
    stick_to_shard: bool = ...,
    tensor_init_bytes: int = ...,
) -> abc.Sequence[DataNode]:
    """Read files and labels."""
    ...

def sequence(
    *,
    file_root: str,
    sequence_length: int,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = ...,
    image_type: DALIImageType = ...,
    initial_fill: int = ...,
    lazy_init: bool = ...,
    name: str | None = None,
    num_shards: int = ...,
    pad_last_batch: bool = ...,
    prefetch_queue_depth: int = ...,
    preserve: Any = ...,
    random_shuffle: bool = ...,
    read_ahead: bool = ...,
    seed: int | None = ...,
    shard_id: int = ...,
    shuffle_after_epoch: bool = ...,
    shuffle_after_epoch_seed: int | None = ...,
    skip_cached_images: bool = ...,
    step: int = ...,
    stick_to_shard: bool = ...,
    stride: int = ...,
    tensor_init_bytes: int = ...,
) -> DataNode:
    """Read sequences of frames that lie in folders as images, ordered by their names."""
    ...
