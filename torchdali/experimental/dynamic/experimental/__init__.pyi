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


from . import decoders as decoders
from . import readers as readers

@overload
def dilate(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: str = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: Literal[False] = False,
) -> Batch:
    """Replace each pixel by the largest value of a rectangle around it."""
    ...

@overload
def dilate(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: str = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: _bool = False,
) -> Any:
    """Replace each pixel by the largest value of a rectangle around it."""
    ...

@overload
def erode(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: str = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: Literal[False] = False,
) -> Batch:
    """Replace each pixel by the smallest value of a rectangle around it."""
    ...

@overload
def erode(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: str = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: _bool = False,
) -> Any:
    """Replace each pixel by the smallest value of a rectangle around it."""
    ...

@overload
def median_blur(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: Literal[False] = False,
) -> Batch:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    ...

@overload
def median_blur(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: _bool = False,
) -> Any:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    ...

@overload
def peek_image_shape(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    torch: Literal[False] = False,
) -> Batch:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    ...

@overload
def peek_image_shape(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    torch: _bool = False,
) -> Any:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    ...

@overload
def remap(
    input: Batch,
    mapx: Any,
    mapy: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = 'corner',
    torch: Literal[False] = False,
) -> Batch:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``."""
    ...

@overload
def remap(
    input: Any,
    mapx: Any,
    mapy: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = 'corner',
    torch: _bool = False,
) -> Any:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``."""
    ...

def resize(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    antialias: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    resize_longer: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_shorter: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_x: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_y: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_z: float | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    save_attrs: _bool = False,
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
    torch: _bool = False,
    image_type: Any = None,
) -> Any:
    """Resize images, frames or volumes."""
    ...

@overload
def warp_perspective(
    input: Batch,
    matrix_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border_mode: str = 'constant',
    fill_value: abc.Sequence[float] | float = [],
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    pixel_origin: str = 'corner',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: Literal[False] = False,
) -> Batch:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``."""
    ...

@overload
def warp_perspective(
    input: Any,
    matrix_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border_mode: str = 'constant',
    fill_value: abc.Sequence[float] | float = [],
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    pixel_origin: str = 'corner',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
) -> Any:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``."""
    ...
