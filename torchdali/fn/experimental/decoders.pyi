"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def image(
    data: _T,
    /,
    *,
    adjust_orientation: bool = ...,
    affine: bool = ...,
    bytes_per_sample_hint: Any = ...,
    cache_batch_copy: bool = ...,
    cache_debug: bool = ...,
    cache_size: int = ...,
    cache_threshold: int = ...,
    cache_type: str = ...,
    device: str | None = None,
    device_memory_padding: int = ...,
    device_memory_padding_jpeg2k: int = ...,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = ...,
    host_memory_padding_jpeg2k: int = ...,
    hw_decoder_load: float = ...,
    hybrid_huffman_threshold: int = ...,
    jpeg_fancy_upsampling: bool = ...,
    name: str | None = None,
    output_type: DALIImageType = ...,
    preallocate_height_hint: int = ...,
    preallocate_width_hint: int = ...,
    preserve: Any = ...,
    use_fast_idct: bool = ...,
) -> _T:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM; the format is found by the first bytes."""
    ...

def image_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = ...,
    affine: bool = ...,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = ...,
    crop_pos_y: float | DataNode | TensorList = ...,
    crop_pos_z: float | DataNode | TensorList = ...,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    device_memory_padding: int = ...,
    device_memory_padding_jpeg2k: int = ...,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = ...,
    host_memory_padding_jpeg2k: int = ...,
    hw_decoder_load: float = ...,
    hybrid_huffman_threshold: int = ...,
    jpeg_fancy_upsampling: bool = ...,
    name: str | None = None,
    output_type: DALIImageType = ...,
    preallocate_height_hint: int = ...,
    preallocate_width_hint: int = ...,
    preserve: Any = ...,
    rounding: str = ...,
    use_fast_idct: bool = ...,
) -> _T:
    """Decode images and cut a window out of each."""
    ...

def image_random_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = ...,
    affine: bool = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = ...,
    device_memory_padding_jpeg2k: int = ...,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = ...,
    host_memory_padding_jpeg2k: int = ...,
    hw_decoder_load: float = ...,
    hybrid_huffman_threshold: int = ...,
    jpeg_fancy_upsampling: bool = ...,
    name: str | None = None,
    num_attempts: int = ...,
    output_type: DALIImageType = ...,
    preallocate_height_hint: int = ...,
    preallocate_width_hint: int = ...,
    preserve: Any = ...,
    random_area: abc.Sequence[float] | float = ...,
    random_aspect_ratio: abc.Sequence[float] | float = ...,
    seed: int = ...,
    use_fast_idct: bool = ...,
) -> _T:
    """Decode images and cut a random window out of each."""
    ...

def image_slice(
    data: _T,
    anchor: _T | None = None,
    extents: _T | None = None,
    /,
    *,
    adjust_orientation: bool = ...,
    affine: bool = ...,
    axes: abc.Sequence[int] | int | DataNode | TensorList = ...,
    axis_names: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = ...,
    device_memory_padding_jpeg2k: int = ...,
    dtype: DALIDataType | torch.dtype = ...,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    host_memory_padding: int = ...,
    host_memory_padding_jpeg2k: int = ...,
    hw_decoder_load: float = ...,
    hybrid_huffman_threshold: int = ...,
    jpeg_fancy_upsampling: bool = ...,
    name: str | None = None,
    normalized_anchor: bool = ...,
    normalized_shape: bool = ...,
    output_type: DALIImageType = ...,
    preallocate_height_hint: int = ...,
    preallocate_width_hint: int = ...,
    preserve: Any = ...,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    use_fast_idct: bool = ...,
) -> _T:
    """Decode images and cut a slice out of each."""
    ...
