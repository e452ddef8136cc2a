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
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    ...

def image_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    rounding: str = 'round',
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a window out of each."""
    ...

def image_random_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a random window out of each."""
    ...

def image_slice(
    data: _T,
    anchor: _T | None = None,
    extents: _T | None = None,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a slice out of each."""
    ...

def video(
    encoded: _T,
    /,
    *,
    adjust_orientation: bool = False,
    affine: bool = True,
    build_index: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    end_frame: int | DataNode | TensorList | None = None,
    fast: bool = False,
    fill_value: abc.Sequence[int] | int = [0],
    frames: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    pad_mode: str | DataNode | TensorList = 'constant',
    preserve: Any = ...,
    sequence_length: int | DataNode | TensorList | None = None,
    start_frame: int | DataNode | TensorList | None = None,
    stride: int | DataNode | TensorList | None = None,
) -> _T:
    """Decode videos, or some of their frames, by the package av (extra ``video``)."""
    ...
