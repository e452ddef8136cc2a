"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


from . import decoders as decoders

class Debayer:
    """Fill in the colours of a Bayer mosaic: from one channel to three."""
    def __init__(
        self,
        *,
        blue_position: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: str | None = ...,
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
        anchor: abc.Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Equalize:
    """Spread the values of images over the full range: histogram equalisation, each channel by itself."""
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
        anchor: abc.Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Filter:
    """Correlate images with a window (which is not flipped)."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = ...,
        border: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        mode: str = ...,
        name: str | None = None,
        preserve: Any = ...,
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
        window_size: abc.Sequence[int] | int | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PeekImageShape:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        image_type: DALIImageType = ...,
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
        interp: DALIInterpType = ...,
        name: str | None = None,
        pixel_origin: str = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Resize:
    """Resize images, frames or volumes."""
    def __init__(
        self,
        *,
        antialias: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mode: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        resize_longer: float | DataNode | TensorList | None = ...,
        resize_shorter: float | DataNode | TensorList | None = ...,
        resize_x: float | DataNode | TensorList | None = ...,
        resize_y: float | DataNode | TensorList | None = ...,
        resize_z: float | DataNode | TensorList | None = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        save_attrs: bool = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TensorResize:
    """Resize some or all axes of a tensor."""
    def __init__(
        self,
        *,
        alignment: abc.Sequence[float] | float | DataNode | TensorList = ...,
        antialias: bool = ...,
        axes: abc.Sequence[int] | int | None = ...,
        axis_names: str | None = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mode: str = ...,
        name: str | None = None,
        preserve: Any = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        scales: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        size_rounding: str = ...,
        sizes: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class WarpPerspective:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``."""
    def __init__(
        self,
        *,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: abc.Sequence[float] | float = ...,
        interp_type: DALIInterpType = ...,
        inverse_map: bool = ...,
        matrix: abc.Sequence[float] | float | DataNode | TensorList = ...,
        name: str | None = None,
        pixel_origin: str = ...,
        preserve: Any = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
