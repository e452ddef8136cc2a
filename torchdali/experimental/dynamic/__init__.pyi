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
from . import experimental as experimental
from . import io as io
from . import noise as noise
from . import readers as readers
from . import reductions as reductions
from . import segmentation as segmentation
from . import transforms as transforms

from torchdali.experimental.dynamic import capture as capture
from torchdali.experimental.dynamic import checkpoint as checkpoint
from torchdali.experimental.dynamic import math as math
from torchdali.experimental.dynamic import random as random
from torchdali.experimental.dynamic._batch import Batch as Batch
from torchdali.experimental.dynamic._batch import as_batch as as_batch
from torchdali.experimental.dynamic._batch import batch as batch
from torchdali.experimental.dynamic._context import EvalContext as EvalContext
from torchdali.experimental.dynamic._device import Device as Device
from torchdali.experimental.dynamic._device import DeviceLike as DeviceLike
from torchdali.experimental.dynamic._device import device as device
from torchdali.experimental.dynamic._dtypes import DataType as DataType
from torchdali.experimental.dynamic._dtypes import DType as DType
from torchdali.experimental.dynamic._dtypes import ImageType as ImageType
from torchdali.experimental.dynamic._dtypes import InterpType as InterpType
from torchdali.experimental.dynamic._dtypes import bfloat16 as bfloat16
from torchdali.experimental.dynamic._dtypes import bool as bool
from torchdali.experimental.dynamic._dtypes import dtype as dtype
from torchdali.experimental.dynamic._dtypes import float16 as float16
from torchdali.experimental.dynamic._dtypes import float32 as float32
from torchdali.experimental.dynamic._dtypes import float64 as float64
from torchdali.experimental.dynamic._dtypes import int8 as int8
from torchdali.experimental.dynamic._dtypes import int16 as int16
from torchdali.experimental.dynamic._dtypes import int32 as int32
from torchdali.experimental.dynamic._dtypes import int64 as int64
from torchdali.experimental.dynamic._dtypes import type_id as type_id
from torchdali.experimental.dynamic._dtypes import uint8 as uint8
from torchdali.experimental.dynamic._dtypes import uint16 as uint16
from torchdali.experimental.dynamic._dtypes import uint32 as uint32
from torchdali.experimental.dynamic._dtypes import uint64 as uint64
from torchdali.experimental.dynamic._external_source import ExternalSource as ExternalSource
from torchdali.experimental.dynamic._mode import EvalMode as EvalMode
from torchdali.experimental.dynamic._stream import Stream as Stream
from torchdali.experimental.dynamic._stream import get_current_stream as get_current_stream
from torchdali.experimental.dynamic._stream import get_default_stream as get_default_stream
from torchdali.experimental.dynamic._stream import set_current_stream as set_current_stream
from torchdali.experimental.dynamic._stream import set_default_stream as set_default_stream
from torchdali.experimental.dynamic._stream import stream as stream
from torchdali.experimental.dynamic._tensor import Tensor as Tensor
from torchdali.experimental.dynamic._tensor import as_tensor as as_tensor
from torchdali.experimental.dynamic._tensor import tensor as tensor
from torchdali.experimental.dynamic._threads import ThreadPool as ThreadPool
from torchdali.experimental.dynamic._threads import get_num_threads as get_num_threads
from torchdali.experimental.dynamic._threads import set_num_threads as set_num_threads

@overload
def audio_resample(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    in_rate: float | Tensor | Batch | _torch.Tensor | None = None,
    out_length: int | Tensor | Batch | _torch.Tensor | None = None,
    out_rate: float | Tensor | Batch | _torch.Tensor | None = None,
    quality: float = 50.0,
    scale: float | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Resample a signal, by a sinc under a Hann window."""
    ...

@overload
def audio_resample(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    in_rate: float | Tensor | Batch | _torch.Tensor | None = None,
    out_length: int | Tensor | Batch | _torch.Tensor | None = None,
    out_rate: float | Tensor | Batch | _torch.Tensor | None = None,
    quality: float = 50.0,
    scale: float | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Resample a signal, by a sinc under a Hann window."""
    ...

def batch_permutation(
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    allow_repetitions: _bool = False,
    no_fixed_points: _bool = False,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`."""
    ...

@overload
def bb_flip(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    horizontal: int | Tensor | Batch | _torch.Tensor = 1,
    ltrb: _bool = False,
    vertical: int | Tensor | Batch | _torch.Tensor = 0,
    torch: Literal[False] = False,
) -> Batch:
    """Flip boxes along with their image."""
    ...

@overload
def bb_flip(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    horizontal: int | Tensor | Batch | _torch.Tensor = 1,
    ltrb: _bool = False,
    vertical: int | Tensor | Batch | _torch.Tensor = 0,
    torch: _bool = False,
) -> Any:
    """Flip boxes along with their image."""
    ...

@overload
def bbox_paste(
    input: Batch,
    /,
    *,
    ratio: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    ltrb: _bool = False,
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: Literal[False] = False,
) -> Batch:
    """Move boxes along with the image that `paste` puts on a canvas."""
    ...

@overload
def bbox_paste(
    input: Any,
    /,
    *,
    ratio: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    ltrb: _bool = False,
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: _bool = False,
) -> Any:
    """Move boxes along with the image that `paste` puts on a canvas."""
    ...

def bbox_rotate(
    bboxes: Any,
    labels: Any = None,
    /,
    *,
    angle: float | Tensor | Batch | _torch.Tensor,
    input_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    bbox_layout: str = 'xyXY',
    bbox_normalized: _bool = True,
    keep_size: _bool = False,
    mode: str = 'expand',
    remove_threshold: float = 0.1,
    shape_layout: str = 'HW',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
) -> Any:
    """Rotate boxes along with the image that `rotate` turns."""
    ...

def box_encoder(
    input_0: Any,
    input_1: Any,
    /,
    *,
    anchors: abc.Sequence[float] | float,
    batch_size: int | None = None,
    device: DeviceLike = None,
    criteria: float = 0.5,
    means: abc.Sequence[float] | float = [0.0, 0.0, 0.0, 0.0],
    offset: _bool = False,
    scale: float = 1.0,
    stds: abc.Sequence[float] | float = [1.0, 1.0, 1.0, 1.0],
    torch: _bool = False,
) -> Any:
    """Assign boxes to the anchors of a single-shot detector."""
    ...

@overload
def brightness(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    brightness_shift: float | Tensor | Batch | _torch.Tensor = 0.0,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Scale the brightness of images, then shift it."""
    ...

@overload
def brightness(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    brightness_shift: float | Tensor | Batch | _torch.Tensor = 0.0,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: _bool = False,
) -> Any:
    """Scale the brightness of images, then shift it."""
    ...

@overload
def brightness_contrast(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    brightness_shift: float | Tensor | Batch | _torch.Tensor = 0.0,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast_center: float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Scale the contrast of images around a centre, then scale and shift their brightness."""
    ...

@overload
def brightness_contrast(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    brightness_shift: float | Tensor | Batch | _torch.Tensor = 0.0,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast_center: float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: _bool = False,
) -> Any:
    """Scale the contrast of images around a centre, then scale and shift their brightness."""
    ...

@overload
def cast(
    input: Batch,
    /,
    *,
    dtype: DALIDataType | DType | _torch.dtype,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Convert to another element type."""
    ...

@overload
def cast(
    input: Any,
    /,
    *,
    dtype: DALIDataType | DType | _torch.dtype,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Convert to another element type."""
    ...

@overload
def cast_like(
    input_0: Batch,
    input_1: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Convert to the element type of another input; see `cast`."""
    ...

@overload
def cast_like(
    input_0: Any,
    input_1: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Convert to the element type of another input; see `cast`."""
    ...

@overload
def cat(
    input_0: Batch,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    axis_name: str | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Join inputs along an axis."""
    ...

@overload
def cat(
    input_0: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    axis_name: str | None = None,
    torch: _bool = False,
) -> Any:
    """Join inputs along an axis."""
    ...

@overload
def clahe(
    input: Batch,
    /,
    *,
    clip_limit: float,
    tiles_x: int,
    tiles_y: int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    bins: int = 256,
    luma_only: _bool = True,
    torch: Literal[False] = False,
) -> Batch:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE)."""
    ...

@overload
def clahe(
    input: Any,
    /,
    *,
    clip_limit: float,
    tiles_x: int,
    tiles_y: int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    bins: int = 256,
    luma_only: _bool = True,
    torch: _bool = False,
) -> Any:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE)."""
    ...

@overload
def color_space_conversion(
    input: Batch,
    /,
    *,
    image_type: DALIImageType,
    output_type: DALIImageType,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY."""
    ...

@overload
def color_space_conversion(
    input: Any,
    /,
    *,
    image_type: DALIImageType,
    output_type: DALIImageType,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY."""
    ...

@overload
def color_twist(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: Literal[False] = False,
) -> Batch:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step."""
    ...

@overload
def color_twist(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    brightness: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: _bool = False,
) -> Any:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step."""
    ...

def constant(
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fdata: abc.Sequence[float] | float | None = None,
    idata: abc.Sequence[int] | int | None = None,
    layout: str = '',
    shape: abc.Sequence[int] | int | None = None,
    torch: _bool = False,
) -> Any:
    """Return the same data for every sample."""
    ...

@overload
def contrast(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast_center: float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``."""
    ...

@overload
def contrast(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    contrast: float | Tensor | Batch | _torch.Tensor = 1.0,
    contrast_center: float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: _bool = False,
) -> Any:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``."""
    ...

@overload
def coord_flip(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    center_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    center_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    flip_x: int | Tensor | Batch | _torch.Tensor = 1,
    flip_y: int | Tensor | Batch | _torch.Tensor = 0,
    flip_z: int | Tensor | Batch | _torch.Tensor = 0,
    layout: str = '',
    torch: Literal[False] = False,
) -> Batch:
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped."""
    ...

@overload
def coord_flip(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    center_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    center_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    flip_x: int | Tensor | Batch | _torch.Tensor = 1,
    flip_y: int | Tensor | Batch | _torch.Tensor = 0,
    flip_z: int | Tensor | Batch | _torch.Tensor = 0,
    layout: str = '',
    torch: _bool = False,
) -> Any:
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped."""
    ...

@overload
def coord_transform(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    M: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    MT: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    T: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    torch: Literal[False] = False,
) -> Batch:
    """Transform points: ``out = M in + T`` on the last axis."""
    ...

@overload
def coord_transform(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    M: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    MT: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    T: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    torch: _bool = False,
) -> Any:
    """Transform points: ``out = M in + T`` on the last axis."""
    ...

@overload
def copy(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Copy."""
    ...

@overload
def copy(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Copy."""
    ...

@overload
def crop(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    out_of_bounds_policy: str = 'error',
    rounding: str = 'round',
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Cut a window out of images, frames or volumes."""
    ...

@overload
def crop(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    out_of_bounds_policy: str = 'error',
    rounding: str = 'round',
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Cut a window out of images, frames or volumes."""
    ...

@overload
def crop_mirror_normalize(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    fill_values: abc.Sequence[float] | float = [0.0],
    mean: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    out_of_bounds_policy: str = 'error',
    output_layout: str = 'CHW',
    pad_output: _bool = False,
    rounding: str = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Crop, mirror, normalize and transpose."""
    ...

@overload
def crop_mirror_normalize(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    fill_values: abc.Sequence[float] | float = [0.0],
    mean: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    out_of_bounds_policy: str = 'error',
    output_layout: str = 'CHW',
    pad_output: _bool = False,
    rounding: str = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Crop, mirror, normalize and transpose."""
    ...

@overload
def debayer(
    input: Batch,
    /,
    *,
    blue_position: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    algorithm: str | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    ...

@overload
def debayer(
    input: Any,
    /,
    *,
    blue_position: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    algorithm: str | None = None,
    torch: _bool = False,
) -> Any:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    ...

@overload
def dump_image(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    input_layout: str = 'HWC',
    suffix: str = '',
    torch: Literal[False] = False,
) -> Batch:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged."""
    ...

@overload
def dump_image(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    input_layout: str = 'HWC',
    suffix: str = '',
    torch: _bool = False,
) -> Any:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged."""
    ...

def element_extract(
    input: Any,
    /,
    *,
    element_map: abc.Sequence[int] | int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Take frames out of a sequence, each as an output of its own."""
    ...

@overload
def equalize(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    ...

@overload
def equalize(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    ...

@overload
def erase(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    axes: abc.Sequence[int] | int = [1, 0],
    axis_names: str = ...,
    centered_anchor: _bool = False,
    fill_value: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    normalized: _bool = False,
    normalized_anchor: _bool = False,
    normalized_shape: _bool = False,
    shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: Literal[False] = False,
) -> Batch:
    """Fill rectangular regions."""
    ...

@overload
def erase(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    axes: abc.Sequence[int] | int = [1, 0],
    axis_names: str = ...,
    centered_anchor: _bool = False,
    fill_value: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    normalized: _bool = False,
    normalized_anchor: _bool = False,
    normalized_shape: _bool = False,
    shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
) -> Any:
    """Fill rectangular regions."""
    ...

@overload
def expand_dims(
    data: Batch,
    /,
    *,
    axes: abc.Sequence[int] | int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    new_axis_names: str = '',
    torch: Literal[False] = False,
) -> Batch:
    """Insert axes of extent 1."""
    ...

@overload
def expand_dims(
    data: Any,
    /,
    *,
    axes: abc.Sequence[int] | int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    new_axis_names: str = '',
    torch: _bool = False,
) -> Any:
    """Insert axes of extent 1."""
    ...

@overload
def filter(
    data: Batch,
    filter: Any,
    fill_value: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1],
    border: str = 'reflect_101',
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    mode: str = 'same',
    torch: Literal[False] = False,
) -> Batch:
    """Correlate images with a window (which is not flipped)."""
    ...

@overload
def filter(
    data: Any,
    filter: Any,
    fill_value: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    anchor: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [-1],
    border: str = 'reflect_101',
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    mode: str = 'same',
    torch: _bool = False,
) -> Any:
    """Correlate images with a window (which is not flipped)."""
    ...

@overload
def flip(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    depthwise: int | Tensor | Batch | _torch.Tensor = 0,
    horizontal: int | Tensor | Batch | _torch.Tensor = 1,
    vertical: int | Tensor | Batch | _torch.Tensor = 0,
    torch: Literal[False] = False,
) -> Batch:
    """Reverse axes of images, frames or volumes."""
    ...

@overload
def flip(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    depthwise: int | Tensor | Batch | _torch.Tensor = 0,
    horizontal: int | Tensor | Batch | _torch.Tensor = 1,
    vertical: int | Tensor | Batch | _torch.Tensor = 0,
    torch: _bool = False,
) -> Any:
    """Reverse axes of images, frames or volumes."""
    ...

@overload
def full(
    fill_value: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    layout: str | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return data of a shape, filled with an input."""
    ...

@overload
def full(
    fill_value: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    layout: str | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Return data of a shape, filled with an input."""
    ...

@overload
def full_like(
    data_like: Batch,
    fill_value: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return data of the shape and type of an input, filled with another."""
    ...

@overload
def full_like(
    data_like: Any,
    fill_value: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Return data of the shape and type of an input, filled with another."""
    ...

@overload
def gaussian_blur(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    sigma: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [0],
    torch: Literal[False] = False,
) -> Batch:
    """Blur with a Gaussian window along every axis but frames and channels."""
    ...

@overload
def gaussian_blur(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    sigma: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [0],
    torch: _bool = False,
) -> Any:
    """Blur with a Gaussian window along every axis but frames and channels."""
    ...

@overload
def get_property(
    input: Batch,
    /,
    *,
    key: str,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return what is known about each sample, as text: 1D uint8."""
    ...

@overload
def get_property(
    input: Any,
    /,
    *,
    key: str,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Return what is known about each sample, as text: 1D uint8."""
    ...

@overload
def grid_mask(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    angle: float | Tensor | Batch | _torch.Tensor = 0.0,
    ratio: float | Tensor | Batch | _torch.Tensor = 0.5,
    shift_x: float | Tensor | Batch | _torch.Tensor = 0.0,
    shift_y: float | Tensor | Batch | _torch.Tensor = 0.0,
    tile: int | Tensor | Batch | _torch.Tensor = 100,
    torch: Literal[False] = False,
) -> Batch:
    """Set the squares of a grid to zero."""
    ...

@overload
def grid_mask(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    angle: float | Tensor | Batch | _torch.Tensor = 0.0,
    ratio: float | Tensor | Batch | _torch.Tensor = 0.5,
    shift_x: float | Tensor | Batch | _torch.Tensor = 0.0,
    shift_y: float | Tensor | Batch | _torch.Tensor = 0.0,
    tile: int | Tensor | Batch | _torch.Tensor = 100,
    torch: _bool = False,
) -> Any:
    """Set the squares of a grid to zero."""
    ...

@overload
def hsv(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    value: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: Literal[False] = False,
) -> Batch:
    """Turn the hue of RGB images, and scale their saturation and value."""
    ...

@overload
def hsv(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    value: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: _bool = False,
) -> Any:
    """Turn the hue of RGB images, and scale their saturation and value."""
    ...

@overload
def hue(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    torch: Literal[False] = False,
) -> Batch:
    """Turn the hue of RGB images, as `hsv` does."""
    ...

@overload
def hue(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    hue: float | Tensor | Batch | _torch.Tensor = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    torch: _bool = False,
) -> Any:
    """Turn the hue of RGB images, as `hsv` does."""
    ...

@overload
def jitter(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    nDegree: int = 2,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``."""
    ...

@overload
def jitter(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    nDegree: int = 2,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``."""
    ...

@overload
def jpeg_compression_distortion(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    quality: int | Tensor | Batch | _torch.Tensor = 50,
    torch: Literal[False] = False,
) -> Batch:
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding."""
    ...

@overload
def jpeg_compression_distortion(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    quality: int | Tensor | Batch | _torch.Tensor = 50,
    torch: _bool = False,
) -> Any:
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding."""
    ...

@overload
def laplacian(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    normalized_kernel: _bool = False,
    scale: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    smoothing_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3],
    torch: Literal[False] = False,
) -> Batch:
    """Sum the second derivatives along every axis but frames and channels."""
    ...

@overload
def laplacian(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    normalized_kernel: _bool = False,
    scale: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    smoothing_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    window_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [3],
    torch: _bool = False,
) -> Any:
    """Sum the second derivatives along every axis but frames and channels."""
    ...

@overload
def lookup_table(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    default_value: float = 0.0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    keys: abc.Sequence[int] | int = [],
    values: abc.Sequence[float] | float = [],
    torch: Literal[False] = False,
    output_dtype: Any = None,
) -> Batch:
    """Replace numbers by those that a table has for them."""
    ...

@overload
def lookup_table(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    default_value: float = 0.0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    keys: abc.Sequence[int] | int = [],
    values: abc.Sequence[float] | float = [],
    torch: _bool = False,
    output_dtype: Any = None,
) -> Any:
    """Replace numbers by those that a table has for them."""
    ...

@overload
def mel_filter_bank(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: str = 'slaney',
    nfilter: int = 128,
    normalize: _bool = True,
    sample_rate: float = 44100.0,
    torch: Literal[False] = False,
) -> Batch:
    """Sum spectra over triangles on the mel scale."""
    ...

@overload
def mel_filter_bank(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: str = 'slaney',
    nfilter: int = 128,
    normalize: _bool = True,
    sample_rate: float = 44100.0,
    torch: _bool = False,
) -> Any:
    """Sum spectra over triangles on the mel scale."""
    ...

@overload
def mfcc(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    dct_type: int = 2,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    normalize: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs."""
    ...

@overload
def mfcc(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    dct_type: int = 2,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    normalize: _bool = False,
    torch: _bool = False,
) -> Any:
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs."""
    ...

@overload
def multi_paste(
    input_0: Batch,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    in_anchors: Any | Tensor | Batch | _torch.Tensor | None = None,
    in_anchors_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    in_ids: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    out_anchors: Any | Tensor | Batch | _torch.Tensor | None = None,
    out_anchors_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    output_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    shapes: Any | Tensor | Batch | _torch.Tensor | None = None,
    shapes_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before."""
    ...

@overload
def multi_paste(
    input_0: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    in_anchors: Any | Tensor | Batch | _torch.Tensor | None = None,
    in_anchors_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    in_ids: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    out_anchors: Any | Tensor | Batch | _torch.Tensor | None = None,
    out_anchors_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    output_size: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    shapes: Any | Tensor | Batch | _torch.Tensor | None = None,
    shapes_rel: Any | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before."""
    ...

def nonsilent_region(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    cutoff_db: float = -60.0,
    reference_power: float | None = None,
    reset_interval: int = 8192,
    window_length: int = 2048,
    torch: _bool = False,
) -> Any:
    """Find what is not silent: from the first to the last window whose power reaches a cutoff."""
    ...

@overload
def normalize(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    batch: _bool = False,
    ddof: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    epsilon: float = 0.0,
    mean: Any | Tensor | Batch | _torch.Tensor | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: Any | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Subtract the mean, divide by the standard deviation."""
    ...

@overload
def normalize(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    batch: _bool = False,
    ddof: int = 0,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    epsilon: float = 0.0,
    mean: Any | Tensor | Batch | _torch.Tensor | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: Any | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Subtract the mean, divide by the standard deviation."""
    ...

@overload
def one_hot(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = -1,
    axis_name: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
    torch: Literal[False] = False,
) -> Batch:
    """Encode class numbers by a new axis that is on at the class and off elsewhere."""
    ...

@overload
def one_hot(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = -1,
    axis_name: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
    torch: _bool = False,
) -> Any:
    """Encode class numbers by a new axis that is on at the class and off elsewhere."""
    ...

def ones(
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    layout: str | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Return ones."""
    ...

@overload
def ones_like(
    data_like: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return ones in the shape of an input."""
    ...

@overload
def ones_like(
    data_like: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: _bool = False,
) -> Any:
    """Return ones in the shape of an input."""
    ...

@overload
def optical_flow(
    input_0: Batch,
    input_1: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    enable_external_hints: _bool = False,
    enable_temporal_hints: _bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    output_grid: int = 4,
    preset: float = 0.0,
    torch: Literal[False] = False,
    output_format: Any = None,
) -> Batch:
    """Find how far the pixels of each frame move to the next one."""
    ...

@overload
def optical_flow(
    input_0: Any,
    input_1: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    enable_external_hints: _bool = False,
    enable_temporal_hints: _bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    output_grid: int = 4,
    preset: float = 0.0,
    torch: _bool = False,
    output_format: Any = None,
) -> Any:
    """Find how far the pixels of each frame move to the next one."""
    ...

@overload
def pad(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    align: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axis_names: str | None = None,
    fill_value: float | Tensor | Batch | _torch.Tensor = 0.0,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape."""
    ...

@overload
def pad(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    align: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axis_names: str | None = None,
    fill_value: float | Tensor | Batch | _torch.Tensor = 0.0,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape."""
    ...

@overload
def paste(
    input: Batch,
    /,
    *,
    fill_value: abc.Sequence[int] | int,
    ratio: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    min_canvas_size: float | Tensor | Batch | _torch.Tensor = 0.0,
    n_channels: int = 3,
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: Literal[False] = False,
) -> Batch:
    """Paste images on larger canvases."""
    ...

@overload
def paste(
    input: Any,
    /,
    *,
    fill_value: abc.Sequence[int] | int,
    ratio: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    min_canvas_size: float | Tensor | Batch | _torch.Tensor = 0.0,
    n_channels: int = 3,
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: _bool = False,
) -> Any:
    """Paste images on larger canvases."""
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
def per_frame(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    replace: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Mark data as one value a frame, for the arguments of operators on sequences."""
    ...

@overload
def per_frame(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    replace: _bool = False,
    torch: _bool = False,
) -> Any:
    """Mark data as one value a frame, for the arguments of operators on sequences."""
    ...

@overload
def permute_batch(
    input: Batch,
    /,
    *,
    indices: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return the samples of the batch in another order."""
    ...

@overload
def permute_batch(
    input: Any,
    /,
    *,
    indices: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Return the samples of the batch in another order."""
    ...

@overload
def power_spectrum(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = -1,
    nfft: int | None = None,
    power: int = 2,
    torch: Literal[False] = False,
) -> Batch:
    """Transform an axis, and take the squares or the moduli."""
    ...

@overload
def power_spectrum(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = -1,
    nfft: int | None = None,
    power: int = 2,
    torch: _bool = False,
) -> Any:
    """Transform an axis, and take the squares or the moduli."""
    ...

@overload
def preemphasis_filter(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border: str = 'clamp',
    dtype: DALIDataType | DType | _torch.dtype = ...,
    preemph_coeff: float | Tensor | Batch | _torch.Tensor = 0.97,
    torch: Literal[False] = False,
) -> Batch:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``."""
    ...

@overload
def preemphasis_filter(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border: str = 'clamp',
    dtype: DALIDataType | DType | _torch.dtype = ...,
    preemph_coeff: float | Tensor | Batch | _torch.Tensor = 0.97,
    torch: _bool = False,
) -> Any:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``."""
    ...

def random_bbox_crop(
    boxes: Any,
    labels: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    all_boxes_above_threshold: _bool = True,
    allow_no_crop: _bool = True,
    aspect_ratio: abc.Sequence[float] | float = [1.0, 1.0],
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    crop_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    input_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    ltrb: _bool = ...,
    num_attempts: int = 1,
    output_bbox_indices: _bool = False,
    quiet: _bool = False,
    scaling: abc.Sequence[float] | float = [1.0, 1.0],
    shape_layout: str | None = None,
    threshold_type: str = 'iou',
    thresholds: abc.Sequence[float] | float = [0.0],
    total_num_attempts: int = -1,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it."""
    ...

def random_crop_generator(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose a window of random area and aspect ratio."""
    ...

@overload
def random_resized_crop(
    input: Batch,
    /,
    *,
    size: abc.Sequence[int] | int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    antialias: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    temp_buffer_hint: int = 0,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Cut out a random window and resize it."""
    ...

@overload
def random_resized_crop(
    input: Any,
    /,
    *,
    size: abc.Sequence[int] | int,
    batch_size: int | None = None,
    device: DeviceLike = None,
    antialias: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    temp_buffer_hint: int = 0,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Cut out a random window and resize it."""
    ...

@overload
def reinterpret(
    data: Batch,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    layout: str | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    src_dims: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape."""
    ...

@overload
def reinterpret(
    data: Any,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    layout: str | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    src_dims: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape."""
    ...

@overload
def reshape(
    data: Batch,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    layout: str | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    src_dims: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Give data another shape, or another layout."""
    ...

@overload
def reshape(
    data: Any,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    layout: str | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    src_dims: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Give data another shape, or another layout."""
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
def resize_crop_mirror(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    antialias: _bool = True,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    mode: str | None = None,
    resize_longer: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_shorter: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_x: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_y: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_z: float | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rounding: str = 'round',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
    torch: Literal[False] = False,
) -> Batch:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed."""
    ...

@overload
def resize_crop_mirror(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    antialias: _bool = True,
    crop: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    crop_d: float | Tensor | Batch | _torch.Tensor = ...,
    crop_h: float | Tensor | Batch | _torch.Tensor = ...,
    crop_pos_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_pos_z: float | Tensor | Batch | _torch.Tensor = 0.5,
    crop_w: float | Tensor | Batch | _torch.Tensor = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    mode: str | None = None,
    resize_longer: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_shorter: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_x: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_y: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_z: float | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rounding: str = 'round',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
    torch: _bool = False,
) -> Any:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed."""
    ...

def roi_random_crop(
    input: Any = None,
    /,
    *,
    crop_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    roi_start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    in_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    roi_shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose where a window lies that shows as much of a region as it can."""
    ...

@overload
def rotate(
    input: Batch,
    /,
    *,
    angle: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: _bool = False,
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: Literal[False] = False,
    output_dtype: Any = None,
) -> Batch:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis."""
    ...

@overload
def rotate(
    input: Any,
    /,
    *,
    angle: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: _bool = False,
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
    output_dtype: Any = None,
) -> Any:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis."""
    ...

@overload
def saturation(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: Literal[False] = False,
) -> Batch:
    """Scale the saturation of RGB images, as `hsv` does."""
    ...

@overload
def saturation(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: _bool = False,
) -> Any:
    """Scale the saturation of RGB images, as `hsv` does."""
    ...

@overload
def sequence_rearrange(
    input: Batch,
    /,
    *,
    new_order: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Put the frames of a sequence in another order."""
    ...

@overload
def sequence_rearrange(
    input: Any,
    /,
    *,
    new_order: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Put the frames of a sequence in another order."""
    ...

@overload
def slice(
    data: Batch,
    anchor: Any = None,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [1, 0],
    axis_names: str = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    end: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    normalized_anchor: _bool = True,
    normalized_shape: _bool = True,
    out_of_bounds_policy: str = 'error',
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape)."""
    ...

@overload
def slice(
    data: Any,
    anchor: Any = None,
    shape_input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor = [1, 0],
    axis_names: str = ...,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    end: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    normalized_anchor: _bool = True,
    normalized_shape: _bool = True,
    out_of_bounds_policy: str = 'error',
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape)."""
    ...

@overload
def spectrogram(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_windows: _bool = True,
    layout: str = 'ft',
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: _bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
    torch: Literal[False] = False,
) -> Batch:
    """Transform overlapping windows of a signal."""
    ...

@overload
def spectrogram(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_windows: _bool = True,
    layout: str = 'ft',
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: _bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
    torch: _bool = False,
) -> Any:
    """Transform overlapping windows of a signal."""
    ...

@overload
def sphere(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    torch: Literal[False] = False,
) -> Batch:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side."""
    ...

@overload
def sphere(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    torch: _bool = False,
) -> Any:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side."""
    ...

@overload
def squeeze(
    data: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axis_names: str | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Drop axes of extent 1."""
    ...

@overload
def squeeze(
    data: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    axis_names: str | None = None,
    torch: _bool = False,
) -> Any:
    """Drop axes of extent 1."""
    ...

@overload
def stack(
    input_0: Batch,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    axis_name: str | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Join inputs of one shape along a new axis."""
    ...

@overload
def stack(
    input_0: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: int = 0,
    axis_name: str | None = None,
    torch: _bool = False,
) -> Any:
    """Join inputs of one shape along a new axis."""
    ...

@overload
def tensor_resize(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    alignment: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.5],
    antialias: _bool = True,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    mode: str = 'default',
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    scales: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    size_rounding: str = 'round',
    sizes: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
    torch: Literal[False] = False,
) -> Batch:
    """Resize some or all axes of a tensor."""
    ...

@overload
def tensor_resize(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    alignment: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.5],
    antialias: _bool = True,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    interp_type: DALIInterpType | Tensor | Batch | _torch.Tensor = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | Tensor | Batch | _torch.Tensor | None = None,
    minibatch_size: int = 32,
    mode: str = 'default',
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    scales: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    size_rounding: str = 'round',
    sizes: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
    torch: _bool = False,
) -> Any:
    """Resize some or all axes of a tensor."""
    ...

@overload
def to_decibels(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    cutoff_db: float = -200.0,
    multiplier: float = 10.0,
    reference: float | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``."""
    ...

@overload
def to_decibels(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    cutoff_db: float = -200.0,
    multiplier: float = 10.0,
    reference: float | None = None,
    torch: _bool = False,
) -> Any:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``."""
    ...

@overload
def transpose(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    output_layout: str | None = None,
    perm: abc.Sequence[int] | int | None = None,
    transpose_layout: _bool = True,
    torch: Literal[False] = False,
) -> Batch:
    """Permute the axes."""
    ...

@overload
def transpose(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    output_layout: str | None = None,
    perm: abc.Sequence[int] | int | None = None,
    transpose_layout: _bool = True,
    torch: _bool = False,
) -> Any:
    """Permute the axes."""
    ...

@overload
def warp_affine(
    data: Batch,
    mtx: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: Literal[False] = False,
    output_dtype: Any = None,
) -> Batch:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``."""
    ...

@overload
def warp_affine(
    data: Any,
    mtx: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: _bool = True,
    matrix: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
    output_dtype: Any = None,
) -> Any:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``."""
    ...

@overload
def water(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = 0.04908738521234052,
    freq_y: float = 0.04908738521234052,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
    torch: Literal[False] = False,
) -> Batch:
    """Show images as under moving water."""
    ...

@overload
def water(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = 0.04908738521234052,
    freq_y: float = 0.04908738521234052,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
    torch: _bool = False,
) -> Any:
    """Show images as under moving water."""
    ...

def zeros(
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    layout: str | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
    """Return zeros."""
    ...

@overload
def zeros_like(
    data_like: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return zeros in the shape of an input."""
    ...

@overload
def zeros_like(
    data_like: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    torch: _bool = False,
) -> Any:
    """Return zeros in the shape of an input."""
    ...

def imread(
    filepaths: Any,
    /,
    *,
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
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
) -> Any:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    ...
