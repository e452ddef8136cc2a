"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Dilate:
    """Replace each pixel by the largest value of a rectangle around it."""
    def __init__(
        self,
        *,
        anchor: Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: Sequence[int] | int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Erode:
    """Replace each pixel by the smallest value of a rectangle around it; see `dilate`."""
    def __init__(
        self,
        *,
        anchor: Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: Sequence[int] | int | DataNode | TensorList = ...,
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
        window_size: Sequence[int] | int | DataNode | TensorList = ...,
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
        max_size: Sequence[float] | float | None = ...,
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
        roi_end: Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: Sequence[float] | float | DataNode | TensorList | None = ...,
        save_attrs: bool = ...,
        size: Sequence[float] | float | DataNode | TensorList | None = ...,
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
        fill_value: Sequence[float] | float = ...,
        interp_type: DALIInterpType = ...,
        inverse_map: bool = ...,
        matrix: Sequence[float] | float | DataNode | TensorList = ...,
        name: str | None = None,
        pixel_origin: str = ...,
        preserve: Any = ...,
        size: Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
