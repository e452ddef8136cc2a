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


def image(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image`.

    Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes.

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

def image_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    rounding: Literal['round', 'truncate'] = 'round',
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_crop`.

    Decode images and cut a window out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
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
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(crop_h, crop_w, C)``; an extent that is not positive is the image's.

    Raises:
        RuntimeError: contradictory sizes, or a window that reaches outside; otherwise as `image`.
    """
    ...

def image_random_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_random_crop`.

    Decode images and cut a random window out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
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
        num_attempts: Windows to try before the largest allowed one is taken.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(h, w, C)``, different for each sample.

    Raises:
        RuntimeError: an empty range; otherwise as `image`.
    """
    ...

def image_slice(
    data: _T,
    anchor: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    extents: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    adjust_orientation: bool = True,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_slice`.

    Decode images and cut a slice out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        anchor: Where the slice starts, one value an axis: int32 or int64 in pixels, or float32. Together with
            ``extents``, and without ``start``, ``end`` and the like.
        extents: Of the slice, of the same type.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image. Data
            without a layout are taken for HW, HWC or DHWC.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        end: In elements, exclusive.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(h, w, C)``.

    Raises:
        RuntimeError: nothing says where the slice lies, more than one thing does, it is empty or reaches outside
            of the image; otherwise as `image`.
    """
    ...

def video(
    encoded: _T,
    /,
    *,
    adjust_orientation: bool = False,
    device: Literal['cpu', 'mixed'] | None = None,
    end_frame: int | DataNode | TensorList | None = None,
    fast: bool = False,
    fill_value: abc.Sequence[int] | int = [0],
    frames: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    pad_mode: Literal['none', 'constant', 'edge', 'reflect_1001', 'symmetric', 'reflect_101', 'reflect'] | DataNode | TensorList = 'constant',
    sequence_length: int | DataNode | TensorList | None = None,
    start_frame: int | DataNode | TensorList | None = None,
    stride: int | DataNode | TensorList | None = None,
    affine: bool = True,
    build_index: bool = True,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.video`.

    Decode videos, or some of their frames, by the package av (extra ``video``).

    Args:
        encoded: The bytes of a file, ``(n,)`` uint8.
        adjust_orientation: Ours: turn frames as the container asks for, as videos from phones do; DALI never
            does.
        affine: Accepted: threads of DALI's that keep to their cores.
        build_index: Accepted: packets are always listed.
        end_frame: First frame that is not taken; not with ``sequence_length``.
        fast: Ours: do not interpolate chroma: up to three times as fast, and one or two levels off on average.
        fill_value: Of frames that do not exist, one value or one a channel.
        frames: Numbers of the frames, in any order; not with the other ways.
        pad_mode: What stands for frames beyond the end: ``"constant"``, ``"edge"`` the last one,
            ``"reflect_1001"`` or ``"symmetric"`` mirrored with the last one, ``"reflect_101"`` or ``"reflect"``
            without, ``"none"`` nothing.
        sequence_length: Number of frames.
        start_frame: First frame.
        stride: Frames from one to the next.

    Returns:
        ``(F, H, W, 3)`` uint8, RGB.

    Raises:
        DecodeError: the data is empty, damaged or of an unknown format, or a frame cannot be decoded.
        RuntimeError: arguments exclude each other, the start lies outside, a number is not positive.
        MissingExtraError: av is not installed.
    """
    ...
