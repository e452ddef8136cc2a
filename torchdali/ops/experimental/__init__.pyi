"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


from . import decoders as decoders
from . import inputs as inputs
from . import readers as readers

class AudioResample:
    """Deprecated: use `audio_resample`.

    Resample a signal, by a sinc under a Hann window.

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
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        in_rate: float | DataNode | TensorList | None = None,
        name: str | None = None,
        out_length: int | DataNode | TensorList | None = None,
        out_rate: float | DataNode | TensorList | None = None,
        quality: float = 50.0,
        scale: float | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Debayer:
    """Deprecated: use `debayer`.

    Fill in the colors of a Bayer mosaic: from one channel to three.

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
    def __init__(
        self,
        *,
        blue_position: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: Literal['bilinear_ocv', 'edgeaware_ocv', 'vng_ocv', 'gray_ocv', 'default_npp'] | None = None,
        device: Literal['cpu', 'gpu'] | None = None,
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Dilate:
    """Replace each pixel by the largest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
        border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
        device: Literal['cpu', 'gpu'] | None = None,
        iterations: int = 1,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Equalize:
    """Deprecated: use `equalize`.

    Spread the values of images over the full range: histogram equalization, each channel by itself.

    ``out = round(255 * (below_or_at(v) - n0) / (n - n0))``, where ``below_or_at`` counts the pixels of a channel
    with values up to ``v``, ``n0`` the pixels of its smallest value, ``n`` all. A channel of one value stays as it
    is. The frames of a sequence are equalized one by one.

    Args:
        image: uint8, at most 128 channels; layout HW, HWC, CHW or the same after F.

    Raises:
        RuntimeError: another type, an image without pixels, no channels or too many.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Erode:
    """Replace each pixel by the smallest value of a rectangle around it.

    Args:
        data: Images or frames.
        anchor: Element of the rectangle that lies on the pixel; -1 for the middle.
        border_mode: What lies outside: ``constant`` (left out of account), ``replicate``, ``reflect``,
            ``reflect_101`` or ``wrap``.
        iterations: How often.
        mask_size: Height and width of the rectangle.
    """
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1, -1],
        border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
        device: Literal['cpu', 'gpu'] | None = None,
        iterations: int = 1,
        mask_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Filter:
    """Deprecated: use `filter`.

    Correlate images with a window (which is not flipped).

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
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
        border: Literal['reflect_101', 'reflect_1001', 'clamp', 'wrap', 'constant', '101', 'reflect101', '1001', 'reflect1001', 'reflect', 'edge', 'fill', 'pad'] = 'reflect_101',
        device: Literal['cpu', 'gpu'] | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        mode: Literal['same', 'valid'] = 'same',
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Inflate:
    """Deprecated: use `decoders.inflate`.

    Decompress blocks of LZ4, by the package lz4 (extra ``inflate``); on the CPU, whatever the device.

    Args:
        data: Compressed bytes, ``(n,)`` uint8: a block, or with offsets or sizes of chunks one a chunk.
        algorithm: ``"LZ4"``.
        check_output_size: Accepted; sizes are checked in any case.
        chunk_offsets: Where the chunks begin; without sizes each ends where the next begins.
        chunk_sizes: How many bytes the chunks have; without offsets they follow each other.
        dtype: Of the result.
        layout: Of a chunk.
        sequence_axis_name: Name of the first axis, where there are chunks and a layout.
        shape: Of a chunk.

    Returns:
        A tensor of the shape; where there are offsets or sizes of chunks ``(chunks, *shape)``.

    Raises:
        RuntimeError: the data is damaged, or does not have that many bytes; chunks lie outside of it; an argument is
            wrong. MissingExtraError: lz4 is not installed.
    """
    def __init__(
        self,
        *,
        shape: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: str = 'LZ4',
        chunk_offsets: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        chunk_sizes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        device: Literal['cpu', 'gpu'] | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        layout: str = '',
        name: str | None = None,
        sequence_axis_name: str = 'F',
        bytes_per_sample_hint: Any = ...,
        check_output_size: bool = False,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MedianBlur:
    """Replace each pixel by the median of a window around it; the edge is repeated outside.

    Args:
        data: Images or frames.
        window_size: Odd height and width, or one size for both.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        name: str | None = None,
        window_size: abc.Sequence[int] | int | DataNode | TensorList = [3, 3],
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PeekImageShape:
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
    def __init__(
        self,
        *,
        adjust_orientation: bool = True,
        device: Literal['cpu'] | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        image_type: DALIImageType = DALIImageType.RGB,
        name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Remap:
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
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
        name: str | None = None,
        pixel_origin: Literal['corner', 'center'] = 'corner',
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Resize:
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
    def __init__(
        self,
        *,
        antialias: bool = True,
        device: Literal['gpu'] | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | TensorList | None = None,
        max_size: abc.Sequence[float] | float | None = None,
        min_filter: DALIInterpType | DataNode | TensorList | None = None,
        mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
        name: str | None = None,
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
        bytes_per_sample_hint: Any = ...,
        minibatch_size: int = 32,
        preserve: Any = ...,
        temp_buffer_hint: int = 0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TensorResize:
    """Deprecated: use `tensor_resize`.

    Resize some or all axes of a tensor.

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
    def __init__(
        self,
        *,
        alignment: abc.Sequence[float] | float | DataNode | TensorList = [0.5],
        antialias: bool = True,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        device: Literal['cpu', 'gpu'] | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | TensorList | None = None,
        max_size: abc.Sequence[float] | float | None = None,
        min_filter: DALIInterpType | DataNode | TensorList | None = None,
        mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] = 'default',
        name: str | None = None,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        roi_relative: bool = False,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        scales: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        size_rounding: Literal['round', 'truncate', 'ceil'] = 'round',
        sizes: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        subpixel_scale: bool = True,
        bytes_per_sample_hint: Any = ...,
        minibatch_size: int = 32,
        preserve: Any = ...,
        temp_buffer_hint: int = 0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class WarpPerspective:
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
    def __init__(
        self,
        *,
        border_mode: Literal['constant', 'replicate', 'reflect', 'reflect_101', 'wrap'] = 'constant',
        device: Literal['cpu', 'gpu'] | None = None,
        fill_value: abc.Sequence[float] | float = [],
        interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool = True,
        matrix: abc.Sequence[float] | float | DataNode | TensorList = [],
        name: str | None = None,
        pixel_origin: Literal['corner', 'center'] = 'corner',
        size: abc.Sequence[float] | float | DataNode | TensorList = [],
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
