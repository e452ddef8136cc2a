"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""
from builtins import bool as _bool
from collections import abc
from os import PathLike
from typing import Any, Literal, overload
import torch as _torch
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
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
    """Resample a signal, by a sinc under a Hann window.

    The ratio is ``scale``, or ``out_rate / in_rate``, or what gives ``out_length`` samples; of these, one is given.
    The window is not widened where the rate goes down. A result of another type is scaled from full scale to full
    scale: for unsigned types, silence lies in the middle.

    Args:
        data: ``(samples,)`` or ``(samples, channels)``: integers of up to 32 bits, or float32.
        dtype: Of these types; the input's own, if not given.
        in_rate: Sample rate of the input.
        out_length: Samples of the result.
        out_rate: Sample rate of the result.
        quality: From 0 to 100; 0, 50 and 100 stand for 3, 16 and 64 lobes of the window.
        scale: Samples of the result for one of the input.

    Raises:
        RuntimeError: no ratio, or more than one; a negative one; a rate that is not positive; another type.
    """
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
    """Resample a signal, by a sinc under a Hann window.

    The ratio is ``scale``, or ``out_rate / in_rate``, or what gives ``out_length`` samples; of these, one is given.
    The window is not widened where the rate goes down. A result of another type is scaled from full scale to full
    scale: for unsigned types, silence lies in the middle.

    Args:
        data: ``(samples,)`` or ``(samples, channels)``: integers of up to 32 bits, or float32.
        dtype: Of these types; the input's own, if not given.
        in_rate: Sample rate of the input.
        out_length: Samples of the result.
        out_rate: Sample rate of the result.
        quality: From 0 to 100; 0, 50 and 100 stand for 3, 16 and 64 lobes of the window.
        scale: Samples of the result for one of the input.

    Raises:
        RuntimeError: no ratio, or more than one; a negative one; a rate that is not positive; another type.
    """
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
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`.

    Args:
        allow_repetitions: Draw each index for itself, so that some may repeat and others be missing.
        no_fixed_points: No sample gets its own index (where the batch has more than one); without repetitions
            the permutation is then a single cycle.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
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
    """Flip boxes along with their image.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        horizontal: Mirror left and right.
        ltrb: The boxes are left, top, right and bottom instead.
        vertical: Mirror top and bottom.
    """
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
    """Flip boxes along with their image.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        horizontal: Mirror left and right.
        ltrb: The boxes are left, top, right and bottom instead.
        vertical: Mirror top and bottom.
    """
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
    """Move boxes along with the image that `paste` puts on a canvas.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        ltrb: They are left, top, right and bottom instead.
        paste_x: As of `paste`.
        paste_y: As of `paste`.
        ratio: As of `paste`; below 1, the canvas shows the image's right lower part, wherever it is pasted.
    """
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
    """Move boxes along with the image that `paste` puts on a canvas.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        ltrb: They are left, top, right and bottom instead.
        paste_x: As of `paste`.
        paste_y: As of `paste`.
        ratio: As of `paste`; below 1, the canvas shows the image's right lower part, wherever it is pasted.
    """
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
    bbox_layout: Literal['xyWH', 'xyXY'] = 'xyXY',
    bbox_normalized: _bool = True,
    keep_size: _bool = False,
    mode: Literal['expand', 'halfway', 'fixed'] = 'expand',
    remove_threshold: float = 0.1,
    shape_layout: str = 'HW',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [],
    torch: _bool = False,
) -> Any:
    """Rotate boxes along with the image that `rotate` turns.

    Args:
        boxes: ``(N, 4)`` float32.
        labels: ``(N,)`` or ``(N, 1)`` int32: those of boxes that are removed go too.
        angle: Degrees, counter-clockwise.
        bbox_layout: ``"xyXY"``: two corners, or ``"xyWH"``: corner and size.
        bbox_normalized: Boxes are relative to the image (and the result to the canvas), not in pixels.
        input_shape: Of the image, in the order of ``shape_layout``.
        keep_size: The canvas is as large as the image; otherwise it grows as with `rotate`.
        mode: ``"expand"``: boxes hold all of what they held; ``"fixed"``: they keep their size, with its sides
            swapped beyond 45 degrees; ``"halfway"``: between both.
        remove_threshold: Boxes of which less than this share lies on the canvas are removed.
        shape_layout: Where height and width are in ``input_shape``.
        size: Height and width of the canvas.

    Raises:
        RuntimeError: an unknown layout or mode, or shapes that do not fit.
    """
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
    """Assign boxes to the anchors of a single-shot detector.

    An anchor gets the box with which its intersection over union is the largest, if that is above ``criteria``.
    The best anchor of each box gets it in any case. Of equal ones, the last counts.

    Args:
        boxes: ``(N, 4)`` float32: left, top, right and bottom.
        labels: ``(N,)`` int32, not 0.
        anchors: M times left, top, right and bottom.
        criteria: Threshold, in [0, 1].
        means: Of the offsets: subtracted from x, y, width and height.
        offset: Return offsets ``((center - anchor's) / anchor's size - mean) / std`` and ``(log(size / anchor's
            size) - mean) / std`` instead of boxes; 0 for anchors without a box.
        scale: Applied to boxes and anchors before offsets are computed.
        stds: Of the offsets, which are divided by them; not 0.

    Returns:
        ``(M, 4)`` float32: centre x, centre y, width and height of the box (of the anchor itself where it has
        none); and ``(M,)`` int32: its label, 0 for none.

    Raises:
        RuntimeError: arguments out of range or of a wrong length, labels that are not int32 or too few.
    """
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
    """Scale the brightness of images, then shift it.

    ``out = brightness * in + brightness_shift * full_scale``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier; 1 keeps the image.
        brightness_shift: Offset in units of the output type's full scale: 1 is white.
        dtype: Of the output; the input's own when None.
    """
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
    """Scale the brightness of images, then shift it.

    ``out = brightness * in + brightness_shift * full_scale``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier; 1 keeps the image.
        brightness_shift: Offset in units of the output type's full scale: 1 is white.
        dtype: Of the output; the input's own when None.
    """
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
    """Scale the contrast of images around a centre, then scale and shift their brightness.

    ``out = brightness_shift * full_scale + brightness * (center + contrast * (in - center))``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier.
        brightness_shift: Offset, in units of the output type's full scale (255 for uint8, 1 for floats).
        contrast: Multiplier of the distance from the centre.
        contrast_center: Intensity that contrast leaves as it is; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
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
    """Scale the contrast of images around a centre, then scale and shift their brightness.

    ``out = brightness_shift * full_scale + brightness * (center + contrast * (in - center))``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier.
        brightness_shift: Offset, in units of the output type's full scale (255 for uint8, 1 for floats).
        contrast: Multiplier of the distance from the centre.
        contrast_center: Intensity that contrast leaves as it is; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
    ...

def cache(
    input_0: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    bytes: Any | None = None,
    path: str | PathLike[str] | None = None,
    torch: _bool = False,
) -> Any:
    """Keep samples, so that what stands before this is computed once for each record; not in DALI.

    In a pipeline, a sample that is kept is neither read nor computed again, while its file keeps size and time of
    change. Whatever is random comes behind it. Everywhere else (called on tensors, in debug mode, in the dynamic mode)
    it returns its inputs. See `docs/cache.md`.

    Args:
        data: Any; on the CPU, and computed sample by sample from the records of one reader.
        others: The same, of the same reader. All are kept together.
        bytes: How much is kept at most: a number, or a text such as ``"8GB"``. What comes first stays.
        path: A folder to keep samples in, for further runs and other processes as well; without it they are in
            memory. Without ``bytes``, a tenth of the disk stays free.

    Returns:
        The inputs, unchanged.

    Raises:
        ValueError: neither ``bytes`` nor ``path`` is given. RuntimeError, when a pipeline is built: something before it
            is random, sees more than one sample, or comes from no record of a file.
    """
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
    """Convert to another element type.

    Floats are rounded half away from zero, everything saturates: 300 becomes 255 in uint8. Nothing is rescaled.

    Args:
        data: Any shape and type.
        dtype: Of the output.
    """
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
    """Convert to another element type.

    Floats are rounded half away from zero, everything saturates: 300 becomes 255 in uint8. Nothing is rescaled.

    Args:
        data: Any shape and type.
        dtype: Of the output.
    """
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
    """Convert to the element type of another input; see `cast`.

    Args:
        data: Any shape and type.
        other: Only its type counts.
    """
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
    """Convert to the element type of another input; see `cast`.

    Args:
        data: Any shape and type.
        other: Only its type counts.
    """
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
    """Join inputs along an axis.

    Args:
        first: What comes first.
        others: Of the same type, and of shapes that differ in that axis at most.
        axis: Along which they are joined; negative numbers count from the end.
        axis_name: The same by the axis's name in the layout.

    Raises:
        RuntimeError: shapes or types that do not fit, an axis out of range or not in the layout, both given.
    """
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
    """Join inputs along an axis.

    Args:
        first: What comes first.
        others: Of the same type, and of shapes that differ in that axis at most.
        axis: Along which they are joined; negative numbers count from the end.
        axis_name: The same by the axis's name in the layout.

    Raises:
        RuntimeError: shapes or types that do not fit, an axis out of range or not in the layout, both given.
    """
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
    luma_only: _bool = True,
    torch: Literal[False] = False,
    bins: int = 256,
) -> Batch:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE).

    Each tile is equalized by its own histogram, whose bins are cut at ``clip_limit`` times their mean; what was cut
    is dealt out evenly. A pixel is mapped by the four tiles around it, weighted bilinearly. Source: K. Zuiderveld,
    "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Args:
        image: ``(H, W, 1)`` or ``(H, W, 3)`` uint8; colors are RGB.
        bins: Accepted; histograms have 256 bins, as those of DALI's CPU operator.
        clip_limit: Largest bin, in units of the mean bin; no limit from 0 down.
        luma_only: Equalize only the lightness of colors (L of CIE Lab), instead of each channel.
        tiles_x: Tiles across the image.
        tiles_y: Tiles down the image.

    Raises:
        ValueError: another type or number of channels. RuntimeError: an image without pixels, or tiles below 1.
    """
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
    luma_only: _bool = True,
    torch: _bool = False,
    bins: int = 256,
) -> Any:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE).

    Each tile is equalized by its own histogram, whose bins are cut at ``clip_limit`` times their mean; what was cut
    is dealt out evenly. A pixel is mapped by the four tiles around it, weighted bilinearly. Source: K. Zuiderveld,
    "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Args:
        image: ``(H, W, 1)`` or ``(H, W, 3)`` uint8; colors are RGB.
        bins: Accepted; histograms have 256 bins, as those of DALI's CPU operator.
        clip_limit: Largest bin, in units of the mean bin; no limit from 0 down.
        luma_only: Equalize only the lightness of colors (L of CIE Lab), instead of each channel.
        tiles_x: Tiles across the image.
        tiles_y: Tiles down the image.

    Raises:
        ValueError: another type or number of channels. RuntimeError: an image without pixels, or tiles below 1.
    """
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
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Args:
        image: ``(..., H, W, C)`` uint8.
        image_type: Color space of the input.
        output_type: Of the output.

    Raises:
        RuntimeError: the image has not 3 channels, or 1 if it is gray.
    """
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
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Args:
        image: ``(..., H, W, C)`` uint8.
        image_type: Color space of the input.
        output_type: Of the output.

    Raises:
        RuntimeError: the image has not 3 channels, or 1 if it is gray.
    """
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
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: Literal[False] = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Batch:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step.

    Args:
        image: ``(..., H, W, 3)``.
        brightness: Multiplier of the result.
        contrast: Multiplier of the distance from 128 (integers) or 0.5 (floats).
        dtype: Of the output; the input's own when None.
        hue: Degrees; see `hsv`.
        image_type: Accepted; images are RGB.
        saturation: Multiplier.
    """
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
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: _bool = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Any:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step.

    Args:
        image: ``(..., H, W, 3)``.
        brightness: Multiplier of the result.
        contrast: Multiplier of the distance from 128 (integers) or 0.5 (floats).
        dtype: Of the output; the input's own when None.
        hue: Degrees; see `hsv`.
        image_type: Accepted; images are RGB.
        saturation: Multiplier.
    """
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
    """Return the same data for every sample.

    Args:
        dtype: Of the output, rounded and saturated; float32 for ``fdata``, int32 for ``idata`` when None.
        fdata: Floating values in row-major order, or one for all elements.
        idata: Integer values, likewise.
        layout: Of the output.
        shape: Of a sample; 1D when None.

    Raises:
        RuntimeError: not exactly one of ``fdata`` and ``idata`` is given, or the number of values or the layout
            does not fit the shape.
    """
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
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``.

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        contrast: Multiplier; 1 keeps the image.
        contrast_center: Intensity that stays; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
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
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``.

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        contrast: Multiplier; 1 keeps the image.
        contrast_center: Intensity that stays; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
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
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped.

    Args:
        points: ``(N, D)`` float32 with D up to 3.
        center_x: Position that stays.
        center_y: Position that stays.
        center_z: Position that stays.
        flip_x: Mirror x.
        flip_y: Mirror y.
        flip_z: Mirror z.
        layout: Order of the coordinates; ``"x"``, ``"xy"`` or ``"xyz"`` when not given.
    """
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
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped.

    Args:
        points: ``(N, D)`` float32 with D up to 3.
        center_x: Position that stays.
        center_y: Position that stays.
        center_z: Position that stays.
        flip_x: Mirror x.
        flip_y: Mirror y.
        flip_z: Mirror z.
        layout: Order of the coordinates; ``"x"``, ``"xy"`` or ``"xyz"`` when not given.
    """
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
    """Transform points: ``out = M in + T`` on the last axis.

    Args:
        points: ``(..., N, D)``: uint8, int16, uint16, int32 or float32. Without frames beside arguments with
            frames: the same points for each.
        M: ``(rows, D)``, row by row: the output has ``rows`` coordinates. One number scales all.
        MT: ``(rows, D + 1)``: M with T as its last column.
        T: One number a coordinate of the output, or one for all.
        dtype: Of the output: float32 or the input's own, rounded and saturated.

    Raises:
        RuntimeError: sizes that do not fit, or ``MT`` beside the others.
    """
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
    """Transform points: ``out = M in + T`` on the last axis.

    Args:
        points: ``(..., N, D)``: uint8, int16, uint16, int32 or float32. Without frames beside arguments with
            frames: the same points for each.
        M: ``(rows, D)``, row by row: the output has ``rows`` coordinates. One number scales all.
        MT: ``(rows, D + 1)``: M with T as its last column.
        T: One number a coordinate of the output, or one for all.
        dtype: Of the output: float32 or the input's own, rounded and saturated.

    Raises:
        RuntimeError: sizes that do not fit, or ``MT`` beside the others.
    """
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
    """Copy.

    Args:
        data: Any shape and type.
    """
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
    """Copy.

    Args:
        data: Any shape and type.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rounding: Literal['round', 'truncate'] = 'round',
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Cut a window out of images, frames or volumes.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel, in the output's type
            (converted as C does: truncated, and wrapped).
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or
            how the image goes on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.

    Raises:
        RuntimeError: the window reaches outside, or contradictory arguments.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rounding: Literal['round', 'truncate'] = 'round',
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Cut a window out of images, frames or volumes.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel, in the output's type
            (converted as C does: truncated, and wrapped).
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or
            how the image goes on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.

    Raises:
        RuntimeError: the window reaches outside, or contradictory arguments.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill'] = 'error',
    output_layout: str = 'CHW',
    pad_output: _bool = False,
    rounding: Literal['round', 'truncate'] = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Crop, mirror, normalize and transpose.

    ``out = (in - mean) / std * scale + shift``; what lies outside the image is ``fill_values``, not normalized.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output: float32, float16, uint8 or int8 (rounded, saturated).
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel of the output.
        mean: One value, or one a channel.
        mirror: Reverse the rows when not 0.
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
        output_layout: Order of the output's axes: a permutation of the input's; the input's own when empty.
        pad_output: Add channels up to a power of two, of ``fill_values`` or, unless the policy is ``"pad"``, of
            0.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        scale: Multiplies the normalized value.
        shift: Is added to it.
        std: One value, or one a channel. 0 gives infinities, and NaN where the value is the mean.

    Raises:
        RuntimeError: the window reaches outside, an unsupported dtype, an output layout that is no permutation,
            or a number of values that is neither one nor the number of channels.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill'] = 'error',
    output_layout: str = 'CHW',
    pad_output: _bool = False,
    rounding: Literal['round', 'truncate'] = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Crop, mirror, normalize and transpose.

    ``out = (in - mean) / std * scale + shift``; what lies outside the image is ``fill_values``, not normalized.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output: float32, float16, uint8 or int8 (rounded, saturated).
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel of the output.
        mean: One value, or one a channel.
        mirror: Reverse the rows when not 0.
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
        output_layout: Order of the output's axes: a permutation of the input's; the input's own when empty.
        pad_output: Add channels up to a power of two, of ``fill_values`` or, unless the policy is ``"pad"``, of
            0.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        scale: Multiplies the normalized value.
        shift: Is added to it.
        std: One value, or one a channel. 0 gives infinities, and NaN where the value is the mean.

    Raises:
        RuntimeError: the window reaches outside, an unsupported dtype, an output layout that is no permutation,
            or a number of values that is neither one nor the number of channels.
    """
    ...

@overload
def debayer(
    input: Batch,
    /,
    *,
    blue_position: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    algorithm: Literal['bilinear_ocv', 'edgeaware_ocv', 'vng_ocv', 'gray_ocv', 'default_npp'] | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Fill in the colors of a Bayer mosaic: from one channel to three.

    As in DALI, the CPU's algorithms (those of OpenCV) put the color found at ``blue_position`` into the *first*
    channel and that of the opposite corner of the 2x2 cell into the third; ``default_npp`` puts it into the third.

    Args:
        image: ``(H, W)``, ``(H, W, 1)`` or sequences of these, uint8 or uint16; height and width are even.
        algorithm: ``bilinear_ocv`` (means of neighbours; the default on the CPU), ``edgeaware_ocv`` (green
            along the smaller gradient), ``vng_ocv`` (variable number of gradients, Chang, Cheung and Pang 1999;
            uint8 only), ``gray_ocv`` (one channel, luma of bilinear), or, on accelerators only, ``default_npp``
            (the default there; means of neighbours).
        blue_position: Row and column, 0 or 1, of the blue pixel in each 2x2 cell: ``(0, 0)`` is BGGR, ``(0,
            1)`` GBRG, ``(1, 0)`` GRBG, ``(1, 1)`` RGGB. One number stands for both.

    Returns:
        ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray_ocv``, of the input's type.

    Raises:
        RuntimeError: another type, an odd extent, several channels, no pixels, a position outside of the cell, or an
            algorithm that is unknown or not available.
    """
    ...

@overload
def debayer(
    input: Any,
    /,
    *,
    blue_position: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    algorithm: Literal['bilinear_ocv', 'edgeaware_ocv', 'vng_ocv', 'gray_ocv', 'default_npp'] | None = None,
    torch: _bool = False,
) -> Any:
    """Fill in the colors of a Bayer mosaic: from one channel to three.

    As in DALI, the CPU's algorithms (those of OpenCV) put the color found at ``blue_position`` into the *first*
    channel and that of the opposite corner of the 2x2 cell into the third; ``default_npp`` puts it into the third.

    Args:
        image: ``(H, W)``, ``(H, W, 1)`` or sequences of these, uint8 or uint16; height and width are even.
        algorithm: ``bilinear_ocv`` (means of neighbours; the default on the CPU), ``edgeaware_ocv`` (green
            along the smaller gradient), ``vng_ocv`` (variable number of gradients, Chang, Cheung and Pang 1999;
            uint8 only), ``gray_ocv`` (one channel, luma of bilinear), or, on accelerators only, ``default_npp``
            (the default there; means of neighbours).
        blue_position: Row and column, 0 or 1, of the blue pixel in each 2x2 cell: ``(0, 0)`` is BGGR, ``(0,
            1)`` GBRG, ``(1, 0)`` GRBG, ``(1, 1)`` RGGB. One number stands for both.

    Returns:
        ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray_ocv``, of the input's type.

    Raises:
        RuntimeError: another type, an odd extent, several channels, no pixels, a position outside of the cell, or an
            algorithm that is unknown or not available.
    """
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
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged.

    The file of sample ``i`` is ``{i}-{suffix}-0.ppm``, a portable pixmap in text form (P3; P2 for one channel); the
    next batch overwrites it.

    Args:
        data: ``(H, W, 3)`` or ``(H, W, 1)`` uint8.
        input_layout: Only ``"HWC"``.
        suffix: Middle part of the file names.

    Raises:
        RuntimeError: another type, shape or layout, an image without pixels, or a file that cannot be written.
    """
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
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged.

    The file of sample ``i`` is ``{i}-{suffix}-0.ppm``, a portable pixmap in text form (P3; P2 for one channel); the
    next batch overwrites it.

    Args:
        data: ``(H, W, 3)`` or ``(H, W, 1)`` uint8.
        input_layout: Only ``"HWC"``.
        suffix: Middle part of the file names.

    Raises:
        RuntimeError: another type, shape or layout, an image without pixels, or a file that cannot be written.
    """
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
    """Take frames out of a sequence, each as an output of its own.

    Args:
        data: ``(F, ...)`` of at least two axes.
        element_map: Numbers of the frames.

    Raises:
        RuntimeError: no sequence, or a frame that it does not have.
    """
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
    """Spread the values of images over the full range: histogram equalization, each channel by itself.

    ``out = round(255 * (below_or_at(v) - n0) / (n - n0))``, where ``below_or_at`` counts the pixels of a channel
    with values up to ``v``, ``n0`` the pixels of its smallest value, ``n`` all. A channel of one value stays as it
    is. The frames of a sequence are equalized one by one.

    Args:
        image: uint8, at most 128 channels; layout HW, HWC, CHW or the same after F.

    Raises:
        RuntimeError: another type, an image without pixels, no channels or too many.
    """
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
    """Spread the values of images over the full range: histogram equalization, each channel by itself.

    ``out = round(255 * (below_or_at(v) - n0) / (n - n0))``, where ``below_or_at`` counts the pixels of a channel
    with values up to ``v``, ``n0`` the pixels of its smallest value, ``n`` all. A channel of one value stays as it
    is. The frames of a sequence are equalized one by one.

    Args:
        image: uint8, at most 128 channels; layout HW, HWC, CHW or the same after F.

    Raises:
        RuntimeError: another type, an image without pixels, no channels or too many.
    """
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
    """Fill rectangular regions.

    On each axis, elements ``int(anchor)`` to ``int(anchor + shape)``, exclusive; regions are clipped to the data.

    Args:
        data: Any shape and type.
        anchor: Where the regions start: one value an axis and region, region after region; 0 when empty.
        axes: That anchor and shape tell about; the regions span the other axes. All but the channels by
            default.
        axis_names: The same by names of the layout; it has precedence.
        centered_anchor: The anchors are the middles of the regions.
        fill_value: One value, or one a channel (converted as C does: truncated, and wrapped).
        normalized: Anchor and shape are relative to the extents of the data.
        normalized_anchor: The anchor is.
        normalized_shape: The shape is.
        shape: Of the regions, in the order of ``anchor``.

    Raises:
        RuntimeError: no layout to find ``axis_names`` in, axes that do not exist, or a wrong number of values.
    """
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
    """Fill rectangular regions.

    On each axis, elements ``int(anchor)`` to ``int(anchor + shape)``, exclusive; regions are clipped to the data.

    Args:
        data: Any shape and type.
        anchor: Where the regions start: one value an axis and region, region after region; 0 when empty.
        axes: That anchor and shape tell about; the regions span the other axes. All but the channels by
            default.
        axis_names: The same by names of the layout; it has precedence.
        centered_anchor: The anchors are the middles of the regions.
        fill_value: One value, or one a channel (converted as C does: truncated, and wrapped).
        normalized: Anchor and shape are relative to the extents of the data.
        normalized_anchor: The anchor is.
        normalized_shape: The shape is.
        shape: Of the regions, in the order of ``anchor``.

    Raises:
        RuntimeError: no layout to find ``axis_names`` in, axes that do not exist, or a wrong number of values.
    """
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
    """Insert axes of extent 1.

    Args:
        data: Any shape and type.
        axes: Where they lie in the output; not negative.
        new_axis_names: One character each, in the order of ``axes``; without them the output has no layout.

    Raises:
        RuntimeError: axes that are negative, repeated or beyond the end; names for data without a layout.
    """
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
    """Insert axes of extent 1.

    Args:
        data: Any shape and type.
        axes: Where they lie in the output; not negative.
        new_axis_names: One character each, in the order of ``axes``; without them the output has no layout.

    Raises:
        RuntimeError: axes that are negative, repeated or beyond the end; names for data without a layout.
    """
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
    border: Literal['reflect_101', 'reflect_1001', 'clamp', 'wrap', 'constant', '101', 'reflect101', '1001', 'reflect1001', 'reflect', 'edge', 'fill', 'pad'] = 'reflect_101',
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    mode: Literal['same', 'valid'] = 'same',
    torch: Literal[False] = False,
) -> Batch:
    """Correlate images with a window (which is not flipped).

    Args:
        data: Images or frames.
        window: ``(h, w)`` float32.
        fill_value: What lies outside, for the constant border; 0 when left out.
        anchor: Element of the window that lies on the pixel, y and x; -1 for the middle.
        border: ``reflect_101`` (or ``101``), ``reflect_1001`` (``1001``, ``reflect``), ``clamp`` (``edge``),
            ``wrap`` or ``constant`` (``fill``, ``pad``).
        dtype: The input's own, or float32.
        mode: ``"same"`` keeps the shape; ``"valid"`` computes only pixels whose window lies inside.

    Raises:
        RuntimeError: an unknown mode, an anchor outside of the window, or no pixel whose window lies inside.
    """
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
    border: Literal['reflect_101', 'reflect_1001', 'clamp', 'wrap', 'constant', '101', 'reflect101', '1001', 'reflect1001', 'reflect', 'edge', 'fill', 'pad'] = 'reflect_101',
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    mode: Literal['same', 'valid'] = 'same',
    torch: _bool = False,
) -> Any:
    """Correlate images with a window (which is not flipped).

    Args:
        data: Images or frames.
        window: ``(h, w)`` float32.
        fill_value: What lies outside, for the constant border; 0 when left out.
        anchor: Element of the window that lies on the pixel, y and x; -1 for the middle.
        border: ``reflect_101`` (or ``101``), ``reflect_1001`` (``1001``, ``reflect``), ``clamp`` (``edge``),
            ``wrap`` or ``constant`` (``fill``, ``pad``).
        dtype: The input's own, or float32.
        mode: ``"same"`` keeps the shape; ``"valid"`` computes only pixels whose window lies inside.

    Raises:
        RuntimeError: an unknown mode, an anchor outside of the window, or no pixel whose window lies inside.
    """
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
    """Reverse axes of images, frames or volumes.

    Args:
        data: In any layout.
        depthwise: Reverse D when not 0; no effect where there is none.
        horizontal: Reverse W.
        vertical: Reverse H.
    """
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
    """Reverse axes of images, frames or volumes.

    Args:
        data: In any layout.
        depthwise: Reverse D when not 0; no effect where there is none.
        horizontal: Reverse W.
        vertical: Reverse H.
    """
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
    """Return data of a shape, filled with an input.

    Args:
        fill_value: A number, or what broadcasts to the shape; gives the type.
        layout: Of the output.
        shape: Of the output; 0D when None, and then the first element is taken.

    Raises:
        RuntimeError: the layout does not fit the shape, or the input does not broadcast to it.
    """
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
    """Return data of a shape, filled with an input.

    Args:
        fill_value: A number, or what broadcasts to the shape; gives the type.
        layout: Of the output.
        shape: Of the output; 0D when None, and then the first element is taken.

    Raises:
        RuntimeError: the layout does not fit the shape, or the input does not broadcast to it.
    """
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
    """Return data of the shape and type of an input, filled with another.

    Args:
        data_like: Gives shape, type and layout.
        fill_value: A number, or what broadcasts to the shape; it is converted as by `cast`.
    """
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
    """Return data of the shape and type of an input, filled with another.

    Args:
        data_like: Gives shape, type and layout.
        fill_value: A number, or what broadcasts to the shape; it is converted as by `cast`.
    """
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
    """Blur with a Gaussian window along every axis but frames and channels.

    One of the two arguments follows from the other where it is 0:
    ``window = 2 * ceil(3 * sigma) + 1``, ``sigma = 0.3 * ((window - 1) / 2 - 1) + 0.8``. Borders are reflected
    without repeating the edge.

    Args:
        data: Any layout; without one, every axis is blurred.
        dtype: The input's own, or float32.
        sigma: Standard deviation in pixels, one for all axes or one an axis in the order of the layout.
        window_size: Odd number of pixels, likewise.

    Raises:
        RuntimeError: both are 0, a window is even, or wider than 131072.
    """
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
    """Blur with a Gaussian window along every axis but frames and channels.

    One of the two arguments follows from the other where it is 0:
    ``window = 2 * ceil(3 * sigma) + 1``, ``sigma = 0.3 * ((window - 1) / 2 - 1) + 0.8``. Borders are reflected
    without repeating the edge.

    Args:
        data: Any layout; without one, every axis is blurred.
        dtype: The input's own, or float32.
        sigma: Standard deviation in pixels, one for all axes or one an axis in the order of the layout.
        window_size: Odd number of pixels, likewise.

    Raises:
        RuntimeError: both are 0, a window is even, or wider than 131072.
    """
    ...

@overload
def get_property(
    input: Batch,
    /,
    *,
    key: Literal['source_info', 'layout'],
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: Literal[False] = False,
) -> Batch:
    """Return what is known about each sample, as text: 1D uint8.

    Args:
        data: Any.
        key: ``"source_info"``: where the sample comes from (the path of its file as the reader knows it, ""
            where nothing is known); ``"layout"``: names of the axes.

    Raises:
        RuntimeError: an unknown key.
    """
    ...

@overload
def get_property(
    input: Any,
    /,
    *,
    key: Literal['source_info', 'layout'],
    batch_size: int | None = None,
    device: DeviceLike = None,
    torch: _bool = False,
) -> Any:
    """Return what is known about each sample, as text: 1D uint8.

    Args:
        data: Any.
        key: ``"source_info"``: where the sample comes from (the path of its file as the reader knows it, ""
            where nothing is known); ``"layout"``: names of the axes.

    Raises:
        RuntimeError: an unknown key.
    """
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
    """Set the squares of a grid to zero.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, int32 or float32.
        angle: By which the grid is turned, in radians.
        ratio: Side of the squares, in units of a tile.
        shift_x: Of the grid, in pixels.
        shift_y: The same downwards.
        tile: Side of a tile, in pixels.

    Raises:
        RuntimeError: ``tile`` is not positive.
    """
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
    """Set the squares of a grid to zero.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, int32 or float32.
        angle: By which the grid is turned, in radians.
        ratio: Side of the squares, in units of a tile.
        shift_x: Of the grid, in pixels.
        shift_y: The same downwards.
        tile: Side of a tile, in pixels.

    Raises:
        RuntimeError: ``tile`` is not positive.
    """
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
    """Turn the hue of RGB images, and scale their saturation and value.

    Hue is a rotation of the chroma plane of YIQ, not an HSV conversion: one 3x3 matrix a pixel.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output: uint8 unless given.
        hue: Degrees.
        saturation: Multiplier; 0 gives gray.
        value: Multiplier of all channels.
    """
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
    """Turn the hue of RGB images, and scale their saturation and value.

    Hue is a rotation of the chroma plane of YIQ, not an HSV conversion: one 3x3 matrix a pixel.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output: uint8 unless given.
        hue: Degrees.
        saturation: Multiplier; 0 gives gray.
        value: Multiplier of all channels.
    """
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
    torch: Literal[False] = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Batch:
    """Turn the hue of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        hue: Degrees; 0 keeps the image.
        image_type: Accepted; images are RGB.
    """
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
    torch: _bool = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Any:
    """Turn the hue of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        hue: Degrees; 0 keeps the image.
        image_type: Accepted; images are RGB.
    """
    ...

@overload
def jitter(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    nDegree: int = 2,
    rng: RNG | None = None,
    torch: Literal[False] = False,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
) -> Batch:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``.

    Args:
        image: ``(H, W, C)``.
        fill_value: Value of everything outside.
        interp_type: Accepted; the positions are whole pixels.
        mask: 0 leaves the image as it is.
        nDegree: Pixels between the greatest movements to both sides.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    ...

@overload
def jitter(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    fill_value: float = 0.0,
    mask: int | Tensor | Batch | _torch.Tensor = 1,
    nDegree: int = 2,
    rng: RNG | None = None,
    torch: _bool = False,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
) -> Any:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``.

    Args:
        image: ``(H, W, C)``.
        fill_value: Value of everything outside.
        interp_type: Accepted; the positions are whole pixels.
        mask: 0 leaves the image as it is.
        nDegree: Pixels between the greatest movements to both sides.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
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
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding.

    On the CPU the images are encoded and decoded by libjpeg-turbo; on an accelerator, and under `torch.compile`,
    the same arithmetic runs without the bytes in between: YCbCr, chroma halved both ways, cosine transform of 8x8
    blocks, rounding to multiples of the quantization tables of ITU-T T.81 annex K scaled by the quality, and back.

    Args:
        image: ``(H, W, 3)`` or ``(F, H, W, 3)`` uint8, RGB; the frames are distorted one by one.
        quality: From 1, the strongest distortion, to 100; what lies beyond is taken for the nearest of these.

    Raises:
        RuntimeError: another type or number of channels, or an image without pixels.
    """
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
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding.

    On the CPU the images are encoded and decoded by libjpeg-turbo; on an accelerator, and under `torch.compile`,
    the same arithmetic runs without the bytes in between: YCbCr, chroma halved both ways, cosine transform of 8x8
    blocks, rounding to multiples of the quantization tables of ITU-T T.81 annex K scaled by the quality, and back.

    Args:
        image: ``(H, W, 3)`` or ``(F, H, W, 3)`` uint8, RGB; the frames are distorted one by one.
        quality: From 1, the strongest distortion, to 100; what lies beyond is taken for the nearest of these.

    Raises:
        RuntimeError: another type or number of channels, or an image without pixels.
    """
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
    """Sum the second derivatives along every axis but frames and channels.

    The derivative along an axis is smoothed along the others.

    Args:
        data: Any layout; without one, every axis counts.
        dtype: The input's own, or float32.
        normalized_kernel: Scale each derivative by ``2 ** (n + 2 - s)``, s being the sum of its window sizes.
        scale: Multiplier of each derivative.
        smoothing_size: Odd size of the smoothing along each axis, up to 31; when None, each derivative is
            smoothed by its own ``window_size``.
        window_size: Odd size of each derivative, from 3 to 31.

    Raises:
        RuntimeError: a window that is even, too small or above 31, or ``scale`` together with ``normalized_kernel``.
    """
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
    """Sum the second derivatives along every axis but frames and channels.

    The derivative along an axis is smoothed along the others.

    Args:
        data: Any layout; without one, every axis counts.
        dtype: The input's own, or float32.
        normalized_kernel: Scale each derivative by ``2 ** (n + 2 - s)``, s being the sum of its window sizes.
        scale: Multiplier of each derivative.
        smoothing_size: Odd size of the smoothing along each axis, up to 31; when None, each derivative is
            smoothed by its own ``window_size``.
        window_size: Odd size of each derivative, from 3 to 31.

    Raises:
        RuntimeError: a window that is even, too small or above 31, or ``scale`` together with ``normalized_kernel``.
    """
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
    """Replace numbers by those that a table has for them.

    Args:
        data: Integers of any type and shape.
        default_value: For numbers that are no keys.
        dtype: Of the output; the values are rounded to it and saturate.
        keys: From 0 to 65535; the last one counts where one is repeated.
        values: One for each key.

    Raises:
        RuntimeError: keys out of range, another number of values.
    """
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
    """Replace numbers by those that a table has for them.

    Args:
        data: Integers of any type and shape.
        default_value: For numbers that are no keys.
        dtype: Of the output; the values are rounded to it and saturate.
        keys: From 0 to 65535; the last one counts where one is repeated.
        values: One for each key.

    Raises:
        RuntimeError: keys out of range, another number of values.
    """
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
    mel_formula: Literal['slaney', 'htk'] = 'slaney',
    nfilter: int = 128,
    normalize: _bool = True,
    sample_rate: float = 44100.0,
    torch: Literal[False] = False,
) -> Batch:
    """Sum spectra over triangles on the mel scale.

    Args:
        data: float32 spectra from 0 Hz to half the sample rate, along the axis ``f`` of the layout; without
            one, along the last but one, or the only axis.
        freq_high: Where the last triangle ends, in Hz; half the sample rate, if it is 0.
        freq_low: Where the first triangle begins.
        mel_formula: ``"slaney"``: linear up to 1 kHz, then logarithmic; ``"htk"``: ``1127 ln(1 + f / 700)``.
        nfilter: Number of triangles.
        normalize: Make the area of each triangle, in Hz, 1.
        sample_rate: Of the signal, in Hz.

    Returns:
        The axis has ``nfilter`` values.

    Raises:
        RuntimeError: a layout without ``f``, another type or formula, or frequencies in the wrong order.
    """
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
    mel_formula: Literal['slaney', 'htk'] = 'slaney',
    nfilter: int = 128,
    normalize: _bool = True,
    sample_rate: float = 44100.0,
    torch: _bool = False,
) -> Any:
    """Sum spectra over triangles on the mel scale.

    Args:
        data: float32 spectra from 0 Hz to half the sample rate, along the axis ``f`` of the layout; without
            one, along the last but one, or the only axis.
        freq_high: Where the last triangle ends, in Hz; half the sample rate, if it is 0.
        freq_low: Where the first triangle begins.
        mel_formula: ``"slaney"``: linear up to 1 kHz, then logarithmic; ``"htk"``: ``1127 ln(1 + f / 700)``.
        nfilter: Number of triangles.
        normalize: Make the area of each triangle, in Hz, 1.
        sample_rate: Of the signal, in Hz.

    Returns:
        The axis has ``nfilter`` values.

    Raises:
        RuntimeError: a layout without ``f``, another type or formula, or frequencies in the wrong order.
    """
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
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs.

    Args:
        data: float32, two dimensions or more.
        axis: To transform.
        dct_type: From 1 to 4.
        lifter: Multiplies coefficient i by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``, if it is not 0.
        n_mfcc: Number of coefficients, at most as many as the axis has values.
        normalize: Make the transform orthonormal (not type 1); otherwise it is the plain sum of products.

    Raises:
        RuntimeError: an axis that does not exist, another type, a number that is not positive.
    """
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
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs.

    Args:
        data: float32, two dimensions or more.
        axis: To transform.
        dct_type: From 1 to 4.
        lifter: Multiplies coefficient i by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``, if it is not 0.
        n_mfcc: Number of coefficients, at most as many as the axis has values.
        normalize: Make the transform orthonormal (not type 1); otherwise it is the plain sum of products.

    Raises:
        RuntimeError: an axis that does not exist, another type, a number that is not positive.
    """
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
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before.

    The regions come from the samples of the batch that ``in_ids`` names, or else, one region each, from the
    sample's own images in all inputs. There are ``(regions, 2)`` anchors and shapes a sample, y before x.

    Args:
        images: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        others: More images.
        dtype: Of the output, rounded and saturated; the input's own when None.
        in_anchors: Upper left corner of each region in its image, in pixels; (0, 0) when not given.
        in_anchors_rel: The same in units of the image, rounded down.
        in_ids: Indices of samples in the batch, for one input.
        out_anchors: Upper left corner of each region on the canvas; (0, 0) when not given.
        out_anchors_rel: The same in units of the canvas, rounded down.
        output_size: Height and width of the canvas; that of the images when not given.
        shapes: Height and width of each region; up to the end of the image when not given.
        shapes_rel: The same in units of the image, rounded up.

    Raises:
        RuntimeError: a region reaches outside, or contradictory arguments.
    """
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
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before.

    The regions come from the samples of the batch that ``in_ids`` names, or else, one region each, from the
    sample's own images in all inputs. There are ``(regions, 2)`` anchors and shapes a sample, y before x.

    Args:
        images: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        others: More images.
        dtype: Of the output, rounded and saturated; the input's own when None.
        in_anchors: Upper left corner of each region in its image, in pixels; (0, 0) when not given.
        in_anchors_rel: The same in units of the image, rounded down.
        in_ids: Indices of samples in the batch, for one input.
        out_anchors: Upper left corner of each region on the canvas; (0, 0) when not given.
        out_anchors_rel: The same in units of the canvas, rounded down.
        output_size: Height and width of the canvas; that of the images when not given.
        shapes: Height and width of each region; up to the end of the image when not given.
        shapes_rel: The same in units of the image, rounded up.

    Raises:
        RuntimeError: a region reaches outside, or contradictory arguments.
    """
    ...

def nonsilent_region(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    cutoff_db: float = -60.0,
    reference_power: float | None = None,
    window_length: int = 2048,
    torch: _bool = False,
    reset_interval: int = 8192,
) -> Any:
    """Find what is not silent: from the first to the last window whose power reaches a cutoff.

    The power of a window is the mean of the squares of its samples.

    Args:
        data: ``(samples,)``, integers or float32.
        cutoff_db: Least power, in decibels.
        reference_power: What the decibels refer to; the power of the loudest window, if not given.
        reset_interval: Accepted: how often DALI's sums of floats start anew; a multiple of ``window_length``,
            or -1.
        window_length: Samples of a window.

    Returns:
        Start and length, int32 scalars; 0 and 0 where all is silent.

    Raises:
        RuntimeError: more than one dimension, another type, a length or power that is not positive.
    """
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
    """Subtract the mean, divide by the standard deviation.

    ``out = (in - mean) / sqrt(variance + epsilon) * scale + shift``; a zero divisor gives ``shift``.

    Args:
        data: Any shape.
        axes: Over which mean and deviation are taken. By default all; if one of them is given as an array,
            those in which that has the extent 1: ``(1, 1, 3)`` for a value a channel of ``HWC``.
        axis_names: The same, as letters of the layout.
        batch: Pool the samples of the batch.
        ddof: Subtracted from the number of values when the variance is computed.
        dtype: Of the output; integers are rounded and saturated.
        epsilon: Added to the variance, also to the square of a given ``stddev``.
        mean: Given instead of computed: a number, or an array of as many axes as the data, 1 in each of
            ``axes``.
        scale: Multiplies the result.
        shift: Is added to it.
        stddev: Given instead of computed.
    """
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
    """Subtract the mean, divide by the standard deviation.

    ``out = (in - mean) / sqrt(variance + epsilon) * scale + shift``; a zero divisor gives ``shift``.

    Args:
        data: Any shape.
        axes: Over which mean and deviation are taken. By default all; if one of them is given as an array,
            those in which that has the extent 1: ``(1, 1, 3)`` for a value a channel of ``HWC``.
        axis_names: The same, as letters of the layout.
        batch: Pool the samples of the batch.
        ddof: Subtracted from the number of values when the variance is computed.
        dtype: Of the output; integers are rounded and saturated.
        epsilon: Added to the variance, also to the square of a given ``stddev``.
        mean: Given instead of computed: a number, or an array of as many axes as the data, 1 in each of
            ``axes``.
        scale: Multiplies the result.
        shift: Is added to it.
        stddev: Given instead of computed.
    """
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
    """Encode class numbers by a new axis that is on at the class and off elsewhere.

    Args:
        data: Class numbers, floats truncated; those outside of ``0 .. num_classes - 1`` are off everywhere.
        axis: Where the new axis lies; -1 is the end. By default, if all samples have one element, the others
            go.
        axis_name: Its name; without one the output has no layout.
        dtype: Of the output, an integer type or a float of at least 32 bits.
        num_classes: Extent of the new axis.
        off_value: Converted as C does: truncated, wrapped around.
        on_value: The same.

    Raises:
        RuntimeError: other types, an axis out of range, a name for data whose layout is not known.
    """
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
    """Encode class numbers by a new axis that is on at the class and off elsewhere.

    Args:
        data: Class numbers, floats truncated; those outside of ``0 .. num_classes - 1`` are off everywhere.
        axis: Where the new axis lies; -1 is the end. By default, if all samples have one element, the others
            go.
        axis_name: Its name; without one the output has no layout.
        dtype: Of the output, an integer type or a float of at least 32 bits.
        num_classes: Extent of the new axis.
        off_value: Converted as C does: truncated, wrapped around.
        on_value: The same.

    Raises:
        RuntimeError: other types, an axis out of range, a name for data whose layout is not known.
    """
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
    """Return ones.

    Args:
        dtype: Of the output.
        layout: Of the output.
        shape: Of a sample; 0D when None.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
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
    """Return ones in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
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
    """Return ones in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
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
    """Find how far the pixels of each frame move to the next one.

    This is Lucas and Kanade's method from coarse to fine, in torch (see `kernels.optical_flow`), not NVIDIA's
    hardware: the vectors mean the same, but their values differ.

    Args:
        frames: ``(F, H, W, C)`` uint8, at least two frames.
        hints: ``(F - 1, h, w, 2)``: flows to start from, on the cells of ``hint_grid``.
        enable_external_hints: Use ``hints``.
        enable_temporal_hints: Start from the flow of the frames before.
        hint_grid: Width of a cell of ``hints`` in pixels: 1, 2, 4 or 8.
        image_type: RGB, BGR or GRAY.
        output_grid: Width of a cell of the output in pixels: 1, 2 or 4. A cell has the mean of its pixels.
        preset: 0, 0.5 or 1: from the best to the fastest.

    Returns:
        ``(F - 1, ceil(H / output_grid), ceil(W / output_grid), 2)`` float32: x and y, in pixels of the input.

    Raises:
        RuntimeError: one frame only, hints that are missing, not asked for or of another shape, or an argument
            that is none of its values.
    """
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
    """Find how far the pixels of each frame move to the next one.

    This is Lucas and Kanade's method from coarse to fine, in torch (see `kernels.optical_flow`), not NVIDIA's
    hardware: the vectors mean the same, but their values differ.

    Args:
        frames: ``(F, H, W, C)`` uint8, at least two frames.
        hints: ``(F - 1, h, w, 2)``: flows to start from, on the cells of ``hint_grid``.
        enable_external_hints: Use ``hints``.
        enable_temporal_hints: Start from the flow of the frames before.
        hint_grid: Width of a cell of ``hints`` in pixels: 1, 2, 4 or 8.
        image_type: RGB, BGR or GRAY.
        output_grid: Width of a cell of the output in pixels: 1, 2 or 4. A cell has the mean of its pixels.
        preset: 0, 0.5 or 1: from the best to the fastest.

    Returns:
        ``(F - 1, ceil(H / output_grid), ceil(W / output_grid), 2)`` float32: x and y, in pixels of the input.

    Raises:
        RuntimeError: one frame only, hints that are missing, not asked for or of another shape, or an argument
            that is none of its values.
    """
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
    """Grow samples at their ends, to the largest extent in the batch or to a given shape.

    Args:
        data: Any shape and type.
        align: Then grow each axis to a multiple of this; one value, or one an axis.
        axes: To grow; all when None.
        axis_names: The same by names of the layout.
        fill_value: Of what is added, in the type of the data (converted as C does: truncated, and wrapped).
        shape: Extent that each axis has at least; what is not positive means the largest one in the batch.

    Raises:
        RuntimeError: axes that do not exist, or that are given in both ways; an ``align`` that is not positive,
            or as many values as there are no axes.
    """
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
    """Grow samples at their ends, to the largest extent in the batch or to a given shape.

    Args:
        data: Any shape and type.
        align: Then grow each axis to a multiple of this; one value, or one an axis.
        axes: To grow; all when None.
        axis_names: The same by names of the layout.
        fill_value: Of what is added, in the type of the data (converted as C does: truncated, and wrapped).
        shape: Extent that each axis has at least; what is not positive means the largest one in the batch.

    Raises:
        RuntimeError: axes that do not exist, or that are given in both ways; an ``align`` that is not positive,
            or as many values as there are no axes.
    """
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
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: Literal[False] = False,
    n_channels: int = 3,
) -> Batch:
    """Paste images on larger canvases.

    Args:
        image: ``(H, W, C)`` uint8.
        fill_value: Color of the canvas, one value or one a channel.
        min_canvas_size: Least height and width of the canvas, in pixels.
        n_channels: Accepted; the image tells.
        paste_x: Where the image lies: 0 is at the left edge, 1 at the right one.
        paste_y: The same from top to bottom.
        ratio: Canvas in units of the image, 1 or more; rounded down to whole pixels.

    Raises:
        RuntimeError: ``ratio`` below 1, ``min_canvas_size`` below 0, a position outside [0, 1], or a wrong number of
            fill values.
    """
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
    paste_x: float | Tensor | Batch | _torch.Tensor = 0.5,
    paste_y: float | Tensor | Batch | _torch.Tensor = 0.5,
    torch: _bool = False,
    n_channels: int = 3,
) -> Any:
    """Paste images on larger canvases.

    Args:
        image: ``(H, W, C)`` uint8.
        fill_value: Color of the canvas, one value or one a channel.
        min_canvas_size: Least height and width of the canvas, in pixels.
        n_channels: Accepted; the image tells.
        paste_x: Where the image lies: 0 is at the left edge, 1 at the right one.
        paste_y: The same from top to bottom.
        ratio: Canvas in units of the image, 1 or more; rounded down to whole pixels.

    Raises:
        RuntimeError: ``ratio`` below 1, ``min_canvas_size`` below 0, a position outside [0, 1], or a wrong number of
            fill values.
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
    """Read the shape of encoded images from their headers: ``(H, W, C)``.

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
    """Read the shape of encoded images from their headers: ``(H, W, C)``.

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
def per_frame(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    replace: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Mark data as one value a frame, for the arguments of operators on sequences.

    Args:
        data: ``(F, ...)``.
        replace: Whether the first name of a layout that does not start with F is replaced by it.

    Raises:
        RuntimeError: data without axes, or a layout that does not start with F.
    """
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
    """Mark data as one value a frame, for the arguments of operators on sequences.

    Args:
        data: ``(F, ...)``.
        replace: Whether the first name of a layout that does not start with F is replaced by it.

    Raises:
        RuntimeError: data without axes, or a layout that does not start with F.
    """
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
    """Return the samples of the batch in another order.

    Args:
        data: Any.
        indices: Which sample comes to each place; one number a sample, or a list for the whole batch.

    Raises:
        RuntimeError: there are more or fewer indices than samples, or one of them is no sample's.
    """
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
    """Return the samples of the batch in another order.

    Args:
        data: Any.
        indices: Which sample comes to each place; one number a sample, or a list for the whole batch.

    Raises:
        RuntimeError: there are more or fewer indices than samples, or one of them is no sample's.
    """
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
    """Transform an axis, and take the squares or the moduli.

    Args:
        data: float32, any shape.
        axis: To transform; the last one, if negative.
        nfft: Size of the transform: the axis is cut or padded with zeros. Its own, if not positive.
        power: 2 for squares, 1 for moduli.

    Returns:
        The axis has ``nfft // 2 + 1`` values.

    Raises:
        RuntimeError: another power or type, an axis that does not exist or has no values.
    """
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
    """Transform an axis, and take the squares or the moduli.

    Args:
        data: float32, any shape.
        axis: To transform; the last one, if negative.
        nfft: Size of the transform: the axis is cut or padded with zeros. Its own, if not positive.
        power: 2 for squares, 1 for moduli.

    Returns:
        The axis has ``nfft // 2 + 1`` values.

    Raises:
        RuntimeError: another power or type, an axis that does not exist or has no values.
    """
    ...

@overload
def preemphasis_filter(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border: Literal['clamp', 'reflect', 'zero'] = 'clamp',
    dtype: DALIDataType | DType | _torch.dtype = ...,
    preemph_coeff: float | Tensor | Batch | _torch.Tensor = 0.97,
    torch: Literal[False] = False,
) -> Batch:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``.

    Args:
        data: Any shape, integers or floats; the samples follow each other as in memory.
        border: What stands before the first sample: ``"clamp"`` the sample itself, ``"reflect"`` the second
            one, ``"zero"`` 0.
        dtype: Of the result: integers, float32 or float64; integers are rounded.
        preemph_coeff: Part of the sample before.

    Raises:
        RuntimeError: another border or type.
    """
    ...

@overload
def preemphasis_filter(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    border: Literal['clamp', 'reflect', 'zero'] = 'clamp',
    dtype: DALIDataType | DType | _torch.dtype = ...,
    preemph_coeff: float | Tensor | Batch | _torch.Tensor = 0.97,
    torch: _bool = False,
) -> Any:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``.

    Args:
        data: Any shape, integers or floats; the samples follow each other as in memory.
        border: What stands before the first sample: ``"clamp"`` the sample itself, ``"reflect"`` the second
            one, ``"zero"`` 0.
        dtype: Of the result: integers, float32 or float64; integers are rounded.
        preemph_coeff: Part of the sample before.

    Raises:
        RuntimeError: another border or type.
    """
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
    threshold_type: Literal['iou', 'overlap'] = 'iou',
    thresholds: abc.Sequence[float] | float = [0.0],
    total_num_attempts: int = -1,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it.

    A round draws one of ``thresholds``, or the whole image, then makes ``num_attempts`` attempts to find a
    window. A window will do if its aspect ratio is allowed, the boxes reach the threshold and at least one of
    them is kept. Rounds go on until there is one.

    Args:
        boxes: ``(N, 4)`` or ``(N, 6)`` float32 in [0, 1], relative to the image (or volume).
        labels: ``(N, ...)``, any type: those of boxes that are left out go too.
        all_boxes_above_threshold: All boxes must reach the threshold, not just one.
        allow_no_crop: A round may also draw the whole image, with all its boxes. No effect with ``crop_shape``.
        aspect_ratio: Least and greatest ratio of width to height; of volumes also three pairs, for x/y, x/z and
            y/z. In pixels where ``input_shape`` is given, else relative to the image. Where both are the same,
            the larger extent is drawn and the other follows.
        bbox_layout: Order of the numbers of a box: x, y (and z) with X, Y, Z for ends or W, H, D for sizes;
            ``"xyXY"`` or ``"xyzXYZ"`` when None.
        bbox_prune_threshold: Keep boxes of which at least this share is seen (and anything at all); when None,
            those whose centre is.
        crop_shape: Extents of the window, in pixels; needs ``input_shape``.
        input_shape: Extents of the image.
        ltrb: False: x, y, width and height. Deprecated: use ``bbox_layout``.
        num_attempts: Of a round.
        output_bbox_indices: Add an output: the indices of the boxes that were kept, int32.
        quiet: Do not warn when no window would do.
        scaling: Least and greatest extent of the window on each axis, relative to the image.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape_layout: Order of ``crop_shape`` and ``input_shape``; ``"WH"`` or ``"WHD"`` when None.
        threshold_type: Thresholds are about ``"iou"``, intersection over union of box and window, or
            ``"overlap"``, the share of a box that is in the window.
        thresholds: In [0, 1].
        total_num_attempts: Take the best window after so many attempts; -1 for no end.

    Returns:
        Start of the window ``(d,)`` and its extent ``(d,)``, x first, float32, relative to the image (in pixels
        with ``crop_shape``); the boxes that are kept, clipped and relative to the window; their labels, if given;
        their indices, if wanted. The window is empty if attempts are limited and none had an allowed ratio.

    Raises:
        RuntimeError: arguments out of range or that exclude each other, boxes out of [0, 1], or no window after
            100,000 attempts.
    """
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
    """Choose a window of random area and aspect ratio.

    Each attempt draws an area, a share of the image's, and an aspect ratio, evenly on a logarithmic scale; the
    first window that fits is placed anywhere. If none does, the largest allowed one of the ratio nearest to the
    image's is.

    Args:
        shape: Of the image: ``(H, W)`` or ``(H, W, C)``, integers.
        num_attempts: Windows to try.
        random_area: Least and greatest share, or one value for both.
        random_aspect_ratio: Least and greatest ratio of width to height, or one value for both.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Returns:
        Anchor and shape of the window, both ``(H, W)``, int32.

    Raises:
        RuntimeError: another shape or type of input, or an empty range.
    """
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
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    rng: RNG | None = None,
    torch: Literal[False] = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Batch:
    """Cut out a random window and resize it.

    Args:
        data: Images, or frames, which share the window.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        size: Of the output: ``[H, W]``, or one value for both.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
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
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    rng: RNG | None = None,
    torch: _bool = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Any:
    """Cut out a random window and resize it.

    Args:
        data: Images, or frames, which share the window.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        size: Of the output: ``[H, W]``, or one value for both.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
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
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample, in elements of the new type.
        dtype: The new type; the input's own when None. Without a shape, the last extent changes with its size.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: See `reshape`.
        shape: See `reshape`.
        src_dims: See `reshape`.

    Raises:
        RuntimeError: another number of bytes, contradictory arguments, a layout of another length.
    """
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
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample, in elements of the new type.
        dtype: The new type; the input's own when None. Without a shape, the last extent changes with its size.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: See `reshape`.
        shape: See `reshape`.
        src_dims: See `reshape`.

    Raises:
        RuntimeError: another number of bytes, contradictory arguments, a layout of another length.
    """
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
    """Give data another shape, or another layout.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: Extents as multiples of those of the input, rounded; -1 as in ``shape``.
        shape: Extents; one may be negative: it takes what the others leave.
        src_dims: Axes of the input that the extents (or, with ``rel_shape``, what is multiplied) come from; -1
            stands for an extent of 1.

    Raises:
        RuntimeError: another number of elements, contradictory arguments, a layout of another length.
    """
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
    """Give data another shape, or another layout.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: Extents as multiples of those of the input, rounded; -1 as in ``shape``.
        shape: Extents; one may be negative: it takes what the others leave.
        src_dims: Axes of the input that the extents (or, with ``rel_shape``, what is multiplied) come from; -1
            stands for an extent of 1.

    Raises:
        RuntimeError: another number of elements, contradictory arguments, a layout of another length.
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
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    resize_longer: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_shorter: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_x: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_y: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_z: float | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rounding: Literal['round', 'truncate'] = 'round',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    torch: Literal[False] = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Batch:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed.

    Args:
        data: Images, frames or volumes.
        antialias: Stretch the filter where the image shrinks.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mirror: Bits: 1 mirrors rows (horizontally), 2 vertically, 4 in depth.
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
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
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
    mirror: int | Tensor | Batch | _torch.Tensor = 0,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    resize_longer: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_shorter: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_x: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_y: float | Tensor | Batch | _torch.Tensor | None = None,
    resize_z: float | Tensor | Batch | _torch.Tensor | None = None,
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rounding: Literal['round', 'truncate'] = 'round',
    size: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    torch: _bool = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed.

    Args:
        data: Images, frames or volumes.
        antialias: Stretch the filter where the image shrinks.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mirror: Bits: 1 mirrors rows (horizontally), 2 vertically, 4 in depth.
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
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
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
    """Choose where a window lies that shows as much of a region as it can.

    On each axis, the window lies in the region where it is smaller, and covers it where it is larger; it stays
    inside the data where their shape is known.

    Args:
        data: Only its shape counts.
        crop_shape: Of the window; one value an axis.
        in_shape: Shape of the data, instead of the input.
        roi_end: Of the region, exclusive.
        roi_shape: Of the region, instead of ``roi_end``.
        roi_start: Of the region.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Returns:
        Start of the window: one value an axis, int64.

    Raises:
        RuntimeError: not exactly one of ``roi_end`` and ``roi_shape``; ``in_shape`` beside an input; a window
            larger than the data, a region outside of them, or a number of values that does not fit.
    """
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
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        angle: Degrees; one a frame is possible.
        axis: ``(x, y, z)`` of the axis that volumes turn around; not needed for images.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        keep_size: Of the output: the input's; otherwise the canvas grows so that nothing is lost.
        size: Height and width (depth first) of the output.

    Raises:
        RuntimeError: a volume without an axis.
    """
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
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        angle: Degrees; one a frame is possible.
        axis: ``(x, y, z)`` of the axis that volumes turn around; not needed for images.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        keep_size: Of the output: the input's; otherwise the canvas grows so that nothing is lost.
        size: Height and width (depth first) of the output.

    Raises:
        RuntimeError: a volume without an axis.
    """
    ...

@overload
def saturation(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: Literal[False] = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Batch:
    """Scale the saturation of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        image_type: Accepted; images are RGB.
        saturation: Multiplier; 0 makes the image gray, 1 keeps it.
    """
    ...

@overload
def saturation(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    saturation: float | Tensor | Batch | _torch.Tensor = 1.0,
    torch: _bool = False,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Any:
    """Scale the saturation of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        image_type: Accepted; images are RGB.
        saturation: Multiplier; 0 makes the image gray, 1 keeps it.
    """
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
    """Put the frames of a sequence in another order.

    Args:
        data: ``(F, ...)`` of at least two axes.
        new_order: Number of the frame at each place of the output; frames may be repeated and left out.

    Raises:
        RuntimeError: no sequence, an empty order, or a frame that the sequence does not have.
    """
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
    """Put the frames of a sequence in another order.

    Args:
        data: ``(F, ...)`` of at least two axes.
        new_order: Number of the frame at each place of the output; frames may be repeated and left out.

    Raises:
        RuntimeError: no sequence, an empty order, or a frame that the sequence does not have.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: Literal[False] = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Batch:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape).

    ``round(start) : round(end)`` of each axis, halves rounded away from zero, ``end = start + shape``.

    Args:
        data: Any shape and type.
        anchor: Where the part starts, one value an axis. int32 or int64: in elements. float32: see
            ``normalized_anchor``.
        extent: Its shape, of the type of ``anchor``.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image. Data
            without a layout are taken for HW, HWC or DHWC.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        end: In elements, exclusive.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        out_of_bounds_policy: For parts that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or how
            the data go on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.

    Raises:
        RuntimeError: the part reaches outside or ends before it starts, axes that do not exist, or arguments
            that exclude each other.
    """
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
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rel_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_shape: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rel_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    start: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
    image_type: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape).

    ``round(start) : round(end)`` of each axis, halves rounded away from zero, ``end = start + shape``.

    Args:
        data: Any shape and type.
        anchor: Where the part starts, one value an axis. int32 or int64: in elements. float32: see
            ``normalized_anchor``.
        extent: Its shape, of the type of ``anchor``.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image. Data
            without a layout are taken for HW, HWC or DHWC.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        end: In elements, exclusive.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        out_of_bounds_policy: For parts that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or how
            the data go on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.

    Raises:
        RuntimeError: the part reaches outside or ends before it starts, axes that do not exist, or arguments
            that exclude each other.
    """
    ...

@overload
def spectrogram(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_windows: _bool = True,
    layout: Literal['ft', 'tf'] = 'ft',
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: _bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
    torch: Literal[False] = False,
) -> Batch:
    """Transform overlapping windows of a signal.

    Args:
        data: ``(samples,)`` float32; other axes of one value are left out.
        center_windows: The first window is centered on the first sample, as if the signal went on beyond its
            ends.
        layout: ``"ft"``, a column for each window, or ``"tf"``, a row.
        nfft: Size of the transform, at least ``window_length``, which it is by default.
        power: 2 for squares, 1 for moduli.
        reflect_padding: Beyond its ends the signal is mirrored, without its first and last sample; otherwise it
            is 0.
        window_fn: What windows are multiplied with; ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2`` by
            default.
        window_length: Samples of a window.
        window_step: Samples from one window to the next.

    Returns:
        ``(nfft // 2 + 1, windows)``, or the transpose.

    Raises:
        RuntimeError: a size that is not positive, a transform smaller than the window, another type, layout or power,
            a signal that is empty, of several dimensions, or too short for one window.
    """
    ...

@overload
def spectrogram(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center_windows: _bool = True,
    layout: Literal['ft', 'tf'] = 'ft',
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: _bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
    torch: _bool = False,
) -> Any:
    """Transform overlapping windows of a signal.

    Args:
        data: ``(samples,)`` float32; other axes of one value are left out.
        center_windows: The first window is centered on the first sample, as if the signal went on beyond its
            ends.
        layout: ``"ft"``, a column for each window, or ``"tf"``, a row.
        nfft: Size of the transform, at least ``window_length``, which it is by default.
        power: 2 for squares, 1 for moduli.
        reflect_padding: Beyond its ends the signal is mirrored, without its first and last sample; otherwise it
            is 0.
        window_fn: What windows are multiplied with; ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2`` by
            default.
        window_length: Samples of a window.
        window_step: Samples from one window to the next.

    Returns:
        ``(nfft // 2 + 1, windows)``, or the transpose.

    Raises:
        RuntimeError: a size that is not positive, a transform smaller than the window, another type, layout or power,
            a signal that is empty, of several dimensions, or too short for one window.
    """
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
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side.

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        fill_value: Value of everything outside.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
    """
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
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side.

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        fill_value: Value of everything outside.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
    """
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
    """Drop axes of extent 1.

    Args:
        data: Any shape and type.
        axes: The axes; those that the data do not have are left out. With a negative one, none is dropped.
        axis_names: The same by their names in the layout.

    Raises:
        RuntimeError: an extent that is not 1 (unless the sample stays empty), a name that is not in the layout,
            both or none given.
    """
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
    """Drop axes of extent 1.

    Args:
        data: Any shape and type.
        axes: The axes; those that the data do not have are left out. With a negative one, none is dropped.
        axis_names: The same by their names in the layout.

    Raises:
        RuntimeError: an extent that is not 1 (unless the sample stays empty), a name that is not in the layout,
            both or none given.
    """
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
    """Join inputs of one shape along a new axis.

    Args:
        first: What comes first.
        others: Of the same shape and type.
        axis: Where the new axis lies in the output; negative numbers count from its end.
        axis_name: Name of the new axis; without one the output has no layout.

    Raises:
        RuntimeError: shapes or types that differ, an axis out of range, a name for data without a layout.
    """
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
    """Join inputs of one shape along a new axis.

    Args:
        first: What comes first.
        others: Of the same shape and type.
        axis: Where the new axis lies in the output; negative numbers count from its end.
        axis_name: Name of the new axis; without one the output has no layout.

    Raises:
        RuntimeError: shapes or types that differ, an axis out of range, a name for data without a layout.
    """
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
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] = 'default',
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    scales: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    size_rounding: Literal['round', 'truncate', 'ceil'] = 'round',
    sizes: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    torch: Literal[False] = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Batch:
    """Resize some or all axes of a tensor.

    Args:
        data: uint8, int16, uint16 or float32, of any shape.
        alignment: Point of the axis that stays where it is when ``subpixel_scale`` corrects a rounded size: 0
            is the start, 1 the end.
        antialias: Stretch the filter where the image shrinks.
        axes: Which axes are resized; all when neither this nor ``axis_names`` is given.
        axis_names: The same, by names in the layout.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and proportions meet: ``"default"``, ``"stretch"``, ``"not_larger"``, ``"not_smaller"``.
        roi_end: Where the region to show ends.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        scales: Output size in units of the input's, one for all axes or one an axis.
        size_rounding: ``"round"``, ``"truncate"`` or ``"ceil"``.
        sizes: Output sizes, one for all axes or one an axis; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one of ``sizes`` and ``scales``, or lists of a wrong length.
        ValueError: an axis twice. IndexError: an axis that is not there.
    """
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
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] = 'default',
    roi_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    roi_relative: _bool = False,
    roi_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    scales: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    size_rounding: Literal['round', 'truncate', 'ceil'] = 'round',
    sizes: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    subpixel_scale: _bool = True,
    torch: _bool = False,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize some or all axes of a tensor.

    Args:
        data: uint8, int16, uint16 or float32, of any shape.
        alignment: Point of the axis that stays where it is when ``subpixel_scale`` corrects a rounded size: 0
            is the start, 1 the end.
        antialias: Stretch the filter where the image shrinks.
        axes: Which axes are resized; all when neither this nor ``axis_names`` is given.
        axis_names: The same, by names in the layout.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and proportions meet: ``"default"``, ``"stretch"``, ``"not_larger"``, ``"not_smaller"``.
        roi_end: Where the region to show ends.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        scales: Output size in units of the input's, one for all axes or one an axis.
        size_rounding: ``"round"``, ``"truncate"`` or ``"ceil"``.
        sizes: Output sizes, one for all axes or one an axis; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one of ``sizes`` and ``scales``, or lists of a wrong length.
        ValueError: an axis twice. IndexError: an axis that is not there.
    """
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
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``.

    Args:
        data: float32, any shape.
        cutoff_db: Least result.
        multiplier: 10 for squares, 20 for moduli.
        reference: What gives 0; the largest value of the sample, if not given.

    Raises:
        RuntimeError: the reference is 0, or another type.
    """
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
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``.

    Args:
        data: float32, any shape.
        cutoff_db: Least result.
        multiplier: 10 for squares, 20 for moduli.
        reference: What gives 0; the largest value of the sample, if not given.

    Raises:
        RuntimeError: the reference is 0, or another type.
    """
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
    """Permute the axes.

    Args:
        data: Any shape and type.
        output_layout: Of the output; goes before ``transpose_layout``.
        perm: Axis of the input that each axis of the output comes from; all axes reversed when None.
        transpose_layout: Whether the layout is permuted too.

    Raises:
        RuntimeError: ``perm`` is no permutation of the axes, a layout of another length.
    """
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
    """Permute the axes.

    Args:
        data: Any shape and type.
        output_layout: Of the output; goes before ``transpose_layout``.
        perm: Axis of the input that each axis of the output comes from; all axes reversed when None.
        transpose_layout: Whether the layout is permuted too.

    Raises:
        RuntimeError: ``perm`` is no permutation of the axes, a layout of another length.
    """
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
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``.

    Positions are ``(x, y[, z])`` in pixels, pixel centres at one half.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        mtx: The matrix, as an input: ``(2, 3)``, ``(3, 4)`` for volumes; with a leading axis, one a frame.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``; the image is not smoothed where it shrinks.
        inverse_map: The matrix takes positions of the output to those of the input; otherwise the other way
            round.
        matrix: The matrix, row by row.
        size: Height and width (depth first) of the output; the input's when not given.

    Raises:
        RuntimeError: no matrix, or one of another size.
    """
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
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``.

    Positions are ``(x, y[, z])`` in pixels, pixel centres at one half.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        mtx: The matrix, as an input: ``(2, 3)``, ``(3, 4)`` for volumes; with a leading axis, one a frame.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``; the image is not smoothed where it shrinks.
        inverse_map: The matrix takes positions of the output to those of the input; otherwise the other way
            round.
        matrix: The matrix, row by row.
        size: Height and width (depth first) of the output; the input's when not given.

    Raises:
        RuntimeError: no matrix, or one of another size.
    """
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
    """Show images as under moving water.

    ``out(x, y) = in(x + ampl_x sin(freq_x y + phase_x), y + ampl_y cos(freq_y x + phase_y))``

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        ampl_x: Amplitude of the waves along x, in pixels.
        ampl_y: Along y.
        fill_value: Value of everything outside.
        freq_x: Frequency, in radians a pixel.
        freq_y: Of the waves along y.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
        phase_x: Phase, in radians.
        phase_y: Of the waves along y.
    """
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
    """Show images as under moving water.

    ``out(x, y) = in(x + ampl_x sin(freq_x y + phase_x), y + ampl_y cos(freq_y x + phase_y))``

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        ampl_x: Amplitude of the waves along x, in pixels.
        ampl_y: Along y.
        fill_value: Value of everything outside.
        freq_x: Frequency, in radians a pixel.
        freq_y: Of the waves along y.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
        phase_x: Phase, in radians.
        phase_y: Of the waves along y.
    """
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
    """Return zeros.

    Args:
        dtype: Of the output.
        layout: Of the output.
        shape: Of a sample; 0D when None.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
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
    """Return zeros in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
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
    """Return zeros in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
    ...

def imread(
    filepaths: Any,
    /,
    *,
    device: DeviceLike = None,
    adjust_orientation: _bool = True,
    dtype: DALIDataType | DType | _torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: _bool = False,
    memory_stats: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
    affine: _bool = True,
    cache_batch_copy: _bool = True,
    cache_debug: _bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: _bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
) -> Any:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes.

    Args:
        data: Encoded bytes, uint8 of any shape; ``(n,)`` in general.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        cache_batch_copy: Accepted: whether DALI copies cached images of a batch at once.
        cache_debug: Accepted: whether DALI prints what its cache does.
        cache_size: Accepted: megabytes of DALI's cache.
        cache_threshold: Accepted: bytes from which on DALI caches an image.
        cache_type: Accepted: how DALI's cache fills, ``"threshold"`` or ``"largest"``.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(H, W, C)``.

    Raises:
        DecodeError: the data is empty, damaged, truncated, too large or of an unknown format.
        RuntimeError: the dtype is not supported.
    """
    ...
