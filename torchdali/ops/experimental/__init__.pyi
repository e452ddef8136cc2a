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

class AudioResample:
    """Resample a signal, by a sinc under a Hann window."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Debayer:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    def __init__(
        self,
        *,
        blue_position: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Dilate:
    """Replace each pixel by the largest value of a rectangle around it."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
        border_mode: str = 'constant',
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = 1,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Equalize:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Erode:
    """Replace each pixel by the smallest value of a rectangle around it."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
        border_mode: str = 'constant',
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = 1,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Filter:
    """Correlate images with a window (which is not flipped)."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
        border: str = 'reflect_101',
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        mode: str = 'same',
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Inflate:
    """Decompress blocks of LZ4, by the package lz4 (extra ``inflate``); on the CPU, whatever the device."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MedianBlur:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        window_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PeekImageShape:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = True,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        image_type: DALIImageType = DALIImageType.RGB,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Remap:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
        name: str | None = None,
        pixel_origin: str = 'corner',
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Resize:
    """Resize images, frames or volumes."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TensorResize:
    """Resize some or all axes of a tensor."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class WarpPerspective:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
