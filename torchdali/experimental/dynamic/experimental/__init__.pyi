"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from os import PathLike
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
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: Literal[False] = False,
) -> Batch:
    """Replace each pixel by the largest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
    ...

@overload
def dilate(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: _bool = False,
) -> Any:
    """Replace each pixel by the largest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
    ...

@overload
def erode(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: Literal[False] = False,
) -> Batch:
    """Replace each pixel by the smallest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
    ...

@overload
def erode(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1, -1],
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    iterations: int = 1,
    mask_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3, 3],
    torch: _bool = False,
) -> Any:
    """Replace each pixel by the smallest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
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
    """Replace each pixel by the median of a window around it; the edge is repeated outside.

    Args:
        data: Images or frames.
        window_size: Odd height and width, or one size for both.
    """
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
    """Replace each pixel by the median of a window around it; the edge is repeated outside.

    Args:
        data: Images or frames.
        window_size: Odd height and width, or one size for both.
    """
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
    """Deprecated: use `peek_image_shape`.

    Read the shape of encoded images from their headers: ``(H, W, C)``.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Swap the sides as the EXIF block says.
        dtype: Of the output: int32, uint32, int64, uint64, float32 or float64.
        image_type: Color space that decides the channels.

    Raises:
        RuntimeError: another dtype, data of more than one dimension, or of an unknown format.
    """
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
    """Deprecated: use `peek_image_shape`.

    Read the shape of encoded images from their headers: ``(H, W, C)``.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Swap the sides as the EXIF block says.
        dtype: Of the output: int32, uint32, int64, uint64, float32 or float64.
        image_type: Color space that decides the channels.

    Raises:
        RuntimeError: another dtype, data of more than one dimension, or of an unknown format.
    """
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
    pixel_origin: Literal['corner', 'center'] = 'corner',
    torch: Literal[False] = False,
) -> Batch:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``.

    Outside of the image is 0.

    Args:
        image: ``(..., H, W, C)``.
        mapx: Horizontal positions in pixels, ``(h, w)`` or ``(h, w, 1)``, with a leading axis for one a frame.
        mapy: Vertical positions, of the same shape.
        interp: ``INTERP_NN``, ``INTERP_LINEAR`` or ``INTERP_CUBIC``.
        pixel_origin: Whole numbers are pixel ``"corner"`` or ``"center"``.

    Raises:
        RuntimeError: maps of different shapes, or not one a frame.
    """
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
    pixel_origin: Literal['corner', 'center'] = 'corner',
    torch: _bool = False,
) -> Any:
    """Take each pixel of the output from where maps say: ``out(x, y) = in(mapx(x, y), mapy(x, y))``.

    Outside of the image is 0.

    Args:
        image: ``(..., H, W, C)``.
        mapx: Horizontal positions in pixels, ``(h, w)`` or ``(h, w, 1)``, with a leading axis for one a frame.
        mapy: Vertical positions, of the same shape.
        interp: ``INTERP_NN``, ``INTERP_LINEAR`` or ``INTERP_CUBIC``.
        pixel_origin: Whole numbers are pixel ``"corner"`` or ``"center"``.

    Raises:
        RuntimeError: maps of different shapes, or not one a frame.
    """
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
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
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
    torch: _bool = False,
    image_type: Any = None,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize images, frames or volumes.

    The size is given in exactly one way: ``size``; any of ``resize_x``, ``resize_y``, ``resize_z``;
    ``resize_shorter``; or ``resize_longer``.

    Args:
        data: Images, frames or volumes; uint8, int16, uint16 or float32.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        save_attrs: Also return the original spatial shape, int32.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one way of giving the size, or contradictory arguments.
    """
    ...

@overload
def warp_perspective(
    input: Batch,
    matrix_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    fill_value: abc.Sequence[float] | float = [],
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    pixel_origin: Literal['corner', 'center'] = 'corner',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: Literal[False] = False,
) -> Batch:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``.

    Positions are exact, but of int16 with ``INTERP_LINEAR``, where they are rounded to 1/32 pixel as in DALI.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, uint16 or float32.
        matrix_input: The matrix, as an input: ``(3, 3)``; with a leading axis, one a frame.
        border_mode: What is outside: ``"constant"``, ``"replicate"``, ``"reflect"``, ``"reflect_101"``,
            ``"wrap"``.
        fill_value: For ``"constant"``: one value or one a channel; 0 when not given.
        interp_type: ``INTERP_NN``, ``INTERP_LINEAR`` or ``INTERP_CUBIC``.
        inverse_map: The matrix takes positions of the output to those of the input; otherwise the other way
            round.
        matrix: The matrix, row by row.
        pixel_origin: Whole numbers are pixel ``"corner"`` or ``"center"``.
        size: Height and width of the output; the input's when not given.

    Raises:
        RuntimeError: no matrix of 9 numbers, one as an input and one as an argument, or a wrong number of fill values.
    """
    ...

@overload
def warp_perspective(
    input: Any,
    matrix_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
    fill_value: abc.Sequence[float] | float = [],
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    pixel_origin: Literal['corner', 'center'] = 'corner',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
) -> Any:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``.

    Positions are exact, but of int16 with ``INTERP_LINEAR``, where they are rounded to 1/32 pixel as in DALI.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, uint16 or float32.
        matrix_input: The matrix, as an input: ``(3, 3)``; with a leading axis, one a frame.
        border_mode: What is outside: ``"constant"``, ``"replicate"``, ``"reflect"``, ``"reflect_101"``,
            ``"wrap"``.
        fill_value: For ``"constant"``: one value or one a channel; 0 when not given.
        interp_type: ``INTERP_NN``, ``INTERP_LINEAR`` or ``INTERP_CUBIC``.
        inverse_map: The matrix takes positions of the output to those of the input; otherwise the other way
            round.
        matrix: The matrix, row by row.
        pixel_origin: Whole numbers are pixel ``"corner"`` or ``"center"``.
        size: Height and width of the output; the input's when not given.

    Raises:
        RuntimeError: no matrix of 9 numbers, one as an input and one as an argument, or a wrong number of fill values.
    """
    ...
