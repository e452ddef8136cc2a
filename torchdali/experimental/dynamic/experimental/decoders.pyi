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


@overload
def image(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    cache_batch_copy: _bool = True,
    cache_debug: _bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    use_fast_idct: _bool = False,
    torch: Literal[False] = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Batch:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    ...

@overload
def image(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    cache_batch_copy: _bool = True,
    cache_debug: _bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    use_fast_idct: _bool = False,
    torch: _bool = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Any:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    ...

@overload
def image_crop(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rounding: str = 'round',
    use_fast_idct: _bool = False,
    torch: Literal[False] = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Batch:
    """Decode images and cut a window out of each."""
    ...

@overload
def image_crop(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rounding: str = 'round',
    use_fast_idct: _bool = False,
    torch: _bool = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Any:
    """Decode images and cut a window out of each."""
    ...

@overload
def image_random_crop(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    use_fast_idct: _bool = False,
    rng: RNG | None = None,
    torch: Literal[False] = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Batch:
    """Decode images and cut a random window out of each."""
    ...

@overload
def image_random_crop(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    use_fast_idct: _bool = False,
    rng: RNG | None = None,
    torch: _bool = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Any:
    """Decode images and cut a random window out of each."""
    ...

@overload
def image_slice(
    input_0: Batch,
    input_1: Any = None,
    input_2: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [1, 0],
    axis_names: str = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    end: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    normalized_anchor: _bool = True,
    normalized_shape: _bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    use_fast_idct: _bool = False,
    torch: Literal[False] = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Batch:
    """Decode images and cut a slice out of each."""
    ...

@overload
def image_slice(
    input_0: Any,
    input_1: Any = None,
    input_2: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    affine: _bool = True,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [1, 0],
    axis_names: str = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    end: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    normalized_anchor: _bool = True,
    normalized_shape: _bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    use_fast_idct: _bool = False,
    torch: _bool = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Any:
    """Decode images and cut a slice out of each."""
    ...
