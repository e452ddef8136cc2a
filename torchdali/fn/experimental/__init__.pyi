"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


from . import decoders as decoders
from . import inputs as inputs
from . import readers as readers

def audio_resample(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    in_rate: float | DataNode | TensorList | None = None,
    name: str | None = None,
    out_length: int | DataNode | TensorList | None = None,
    out_rate: float | DataNode | TensorList | None = None,
    preserve: Any = ...,
    quality: float = 50.0,
    scale: float | DataNode | TensorList | None = None,
) -> _T:
    """Resample a signal, by a sinc under a Hann window."""
    ...

def debayer(
    image: _T,
    /,
    *,
    blue_position: abc.Sequence[int] | int | DataNode | TensorList,
    algorithm: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    ...

def dilate(
    data: _T,
    /,
    *,
    anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
    border_mode: str = 'constant',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Replace each pixel by the largest value of a rectangle around it."""
    ...

def equalize(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    ...

def erode(
    data: _T,
    /,
    *,
    anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
    border_mode: str = 'constant',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Replace each pixel by the smallest value of a rectangle around it."""
    ...

def filter(
    data: _T,
    window: _T,
    fill_value: _T | None = None,
    /,
    *,
    anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
    border: str = 'reflect_101',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mode: str = 'same',
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Correlate images with a window (which is not flipped)."""
    ...

def inflate(
    data: _T,
    /,
    *,
    shape: abc.Sequence[int] | int | DataNode | TensorList,
    algorithm: str = 'LZ4',
    bytes_per_sample_hint: Any = ...,
    check_output_size: bool = False,
    chunk_offsets: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    chunk_sizes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    layout: str = '',
    name: str | None = None,
    preserve: Any = ...,
    sequence_axis_name: str = 'F',
) -> _T:
    """Decompress blocks of LZ4, by the package lz4 (extra ``inflate``); on the CPU, whatever the device."""
    ...

def median_blur(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    window_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
) -> _T:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    ...

def peek_image_shape(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    ...

def remap(
    image: _T,
    mapx: _T,
    mapy: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    name: str | None = None,
    pixel_origin: str = 'corner',
    preserve: Any = ...,
) -> _T:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``."""
    ...

def resize(
    data: _T,
    /,
    *,
    antialias: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    save_attrs: bool = False,
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize images, frames or volumes."""
    ...

def tensor_resize(
    data: _T,
    /,
    *,
    alignment: abc.Sequence[float] | float | DataNode | TensorList = [0.5],
    antialias: bool = True,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mode: str = 'default',
    name: str | None = None,
    preserve: Any = ...,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    scales: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    size_rounding: str = 'round',
    sizes: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize some or all axes of a tensor."""
    ...

def warp_perspective(
    image: _T,
    matrix_input: _T | None = None,
    /,
    *,
    border_mode: str = 'constant',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    fill_value: abc.Sequence[float] | float = [],
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: abc.Sequence[float] | float | DataNode | TensorList = [],
    name: str | None = None,
    pixel_origin: str = 'corner',
    preserve: Any = ...,
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
) -> _T:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``."""
    ...
