"""Operators that decode images or windows of images, or read an image's shape from its header."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import narrows, operator
from torchdali.codecs.image_crops import decode_crop
from torchdali.codecs.images import decode, peek_header, peek_shape
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.batching import argument_names
from torchdali.declaration.narrowing import Edit, Narrow
from torchdali.declaration.schema import Data, DType, InputConstraints, shares
from torchdali.kernels.native import ImageOptions
from torchdali.kernels.random_window import random_window
from torchdali.ops._crop import crop_window
from torchdali.ops._slice import slice_window
from torchdali.rng import Rng
from torchdali.types import DALIImageType

__all__ = ["image", "image_crop", "image_random_crop", "image_slice", "peek_image_shape"]

Encoded = Annotated[Tensor, InputConstraints(dtypes=(torch.uint8,))]
Window = tuple[int, int, int, int]
"""A window of an image in pixels: y, x, height and width."""

_DEVICES = ("cpu", "mixed")
_MIXED = ("jpeg_fancy_upsampling",)
_DEPRECATED: dict[str, str | None] = {
    "memory_stats": None,
    "split_stages": None,
    "use_chunk_allocator": None,
}
_DTYPES = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.float32,
)  # fmt: skip
_SHAPE_DTYPES = (
    torch.int32, torch.uint32, torch.int64, torch.uint64, torch.float32, torch.float64,
)  # fmt: skip


def decoding(
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.uint8,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
) -> None:
    """Arguments that all image decoders share: the orientation, dtype and color space of the decoded image.

    Args:
        adjust_orientation: True to rotate the image as its EXIF orientation requires.
        dtype: Output dtype: uint8, int8, uint16, int16, uint32, int32 or float32. Values are rescaled: the largest
            value that the file can store becomes the largest value of the dtype, or 1 for float32.
        output_type: Color space of the output. ``ANY_DATA`` keeps the file's channels unchanged.
        use_fast_idct: True to decode JPEGs to uint8 RGB with libjpeg's faster inverse DCT. The pixels differ from the
            exact result by a few levels. The option has no effect on images that are rotated because of their EXIF
            orientation, or if the package simplejpeg (the extra ``image``) isn't installed.
    """


def decoder_hints(
    *,
    affine: bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
) -> None:
    """Arguments of DALI's decoders that tune memory and the GPU's JPEG decoder.

    Args:
        affine: Accepted without effect. In DALI, True pins the threads of the GPU decoder to cores.
        device_memory_padding: Accepted without effect. In DALI: bytes to reserve on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted without effect. In DALI: bytes to reserve on the GPU for JPEG 2000.
        host_memory_padding: Accepted without effect. In DALI: bytes of pinned memory to reserve for each thread.
        host_memory_padding_jpeg2k: Accepted without effect. In DALI: bytes of pinned memory to reserve for JPEG 2000.
        hw_decoder_load: Share of a batch, from 0 to 1, that the GPU's hardware JPEG decoder decodes. It applies to
            `image` and `image_random_crop` with ``device="mixed"`` on GPUs with a hardware JPEG decoder. In all other
            cases, it has no effect.
        hybrid_huffman_threshold: Accepted without effect. In DALI: number of pixels above which Huffman codes are
            decoded on the GPU.
        jpeg_fancy_upsampling: With ``device="mixed"``, True interpolates the chroma of JPEGs, and False repeats each
            chroma value. With ``device="cpu"``, chroma is always interpolated.
        preallocate_height_hint: Image height in pixels for which nvJPEG reserves memory, if ``TORCHDALI_NVJPEG`` is
            set; nvImageCodec ignores it. Default: 0, which means 1,024.
        preallocate_width_hint: Image width in pixels for which nvJPEG reserves memory, if ``TORCHDALI_NVJPEG`` is set;
            nvImageCodec ignores it. Default: 0, which means 1,024.
    """


def cache_hints(
    *,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = "",
) -> None:
    """Arguments of DALI's cache of decoded images on the GPU. In torchdali, these arguments have no effect.

    Args:
        cache_batch_copy: Accepted without effect. In DALI, True copies all cached images of a batch in one call.
        cache_debug: Accepted without effect. In DALI, True prints statistics of the cache.
        cache_size: Accepted without effect. In DALI: size of the cache in megabytes.
        cache_threshold: Accepted without effect. In DALI: smallest size in bytes of an image that is cached.
        cache_type: Accepted without effect. In DALI: the images to cache, ``"threshold"`` or ``"largest"``.
    """


@operator(name="decoders.image", layout="HWC", devices=_DEVICES, only_mixed=_MIXED, deprecated=_DEPRECATED)
def image(
    data: Encoded,
    /,
    **arguments: Annotated[Any, shares(decoding), shares(decoder_hints), shares(cache_hints)],
) -> Data:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF and other formats.

    The first bytes of the data determine the format.

    Args:
        data: Encoded bytes, uint8 of any shape, typically ``(n,)``.

    Returns:
        Images ``(H, W, C)``.

    Raises:
        DecodeError: the data is empty, damaged or truncated, the image is too large, or the format is unknown.
        RuntimeError: the dtype is not supported.
    """
    return _decode(data, **_select(arguments, _DECODING))


@operator(name="decoders.image_crop", layout="HWC", devices=_DEVICES, only_mixed=_MIXED, deprecated=_DEPRECATED)
def image_crop(
    data: Encoded,
    /,
    **arguments: Annotated[Any, shares(decoding), shares(crop_window), shares(decoder_hints)],
) -> Data:
    """Decode images and crop each image to a window.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.

    Returns:
        Windows ``(crop_h, crop_w, C)``. If ``crop_h`` or ``crop_w`` is below 1, the window has the image's full height
        or width.

    Raises:
        RuntimeError: the sizes contradict each other, or the window reaches outside of the image.
        DecodeError: see `image`.
    """
    window = _select(arguments, _CROP)

    def choose(height: int, width: int) -> Window:
        return complete_window((height, width), *crop_window((height, width), "HW", **window))

    return _decode_window(data, choose, **_select(arguments, _DECODING))


@operator(name="decoders.image_slice", layout="HWC", devices=_DEVICES, only_mixed=_MIXED, deprecated=_DEPRECATED)
def image_slice(
    data: Encoded,
    anchor: Data | None = None,
    extents: Data | None = None,
    /,
    **arguments: Annotated[Any, shares(decoding), shares(slice_window), shares(decoder_hints)],
) -> Data:
    """Decode images and crop each image to a slice.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        anchor: Start of the slice, one value per axis: int32 or int64 in pixels, or float32. If you pass ``anchor``,
            also pass ``extents``, but none of the arguments ``start``, ``end``, ``shape`` and so on.
        extents: Shape of the slice, one value per axis, in the anchor's dtype.

    Returns:
        Slices ``(h, w, C)``.

    Raises:
        RuntimeError: the slice's position is missing or passed twice, or the slice is empty or reaches outside of the
            image.
        DecodeError: see `image`.
    """
    window = _select(arguments, _SLICE)

    def choose(height: int, width: int) -> Window:
        size = (height, width)
        return complete_window(size, *slice_window(size, "HW", anchor, extents, **window))

    return _decode_window(data, choose, **_select(arguments, _DECODING))


def choose_window(
    rng: Rng,
    height: int,
    width: int,
    num_attempts: int = 10,
    random_area: tuple[float, float] | list[float] = (0.08, 1.0),
    random_aspect_ratio: tuple[float, float] | list[float] = (3 / 4, 4 / 3),
) -> Window:
    """Choose the window of a random crop. Return y, x, height and width of the window."""
    return random_window(rng.random, height, width, num_attempts, random_area, random_aspect_ratio)


@operator(name="decoders.image_random_crop", layout="HWC", devices=_DEVICES, only_mixed=_MIXED, deprecated=_DEPRECATED)
def image_random_crop(
    data: Encoded,
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    rng: Rng,
    **arguments: Annotated[Any, shares(decoding), shares(decoder_hints)],
) -> Data:
    """Decode images and crop each image to a random window.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        num_attempts: Maximum number of random windows to try. If none of these windows fits into the image, the largest
            allowed window is used.
        random_area: Minimum and maximum area of the window, as a fraction of the image's area.
        random_aspect_ratio: Minimum and maximum ratio of the window's width to its height.

    Returns:
        Windows ``(h, w, C)``, whose size differs from sample to sample.

    Raises:
        RuntimeError: the minimum of a range is above its maximum.
        DecodeError: see `image`.
    """

    def choose(height: int, width: int) -> Window:
        return choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)

    return _decode_window(data, choose, **_select(arguments, _DECODING))


@operator(layout="", devices=("cpu",))
def peek_image_shape(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.int64,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Data:
    """Read the shape ``(H, W, C)`` of encoded images from their headers, without decoding.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: True to swap height and width if the EXIF orientation requires it.
        dtype: Output dtype: int32, uint32, int64 (the default), uint64, float32 or float64.
        image_type: Color space to which the image would be decoded. It determines the number of channels.

    Raises:
        RuntimeError: the dtype is unsupported, the data has several axes, or its format is unknown.
    """
    if data.ndim != 1:
        raise RuntimeError(f"encoded data must have one dimension, got {data.ndim}. Is the data already decoded?")
    _check(dtype, _SHAPE_DTYPES)
    shape = peek_shape(data, image_type=image_type.name, adjust_orientation=adjust_orientation)
    return torch.tensor(shape, dtype=dtype)


# ---------------------------------------------------------------- shared by the decoders


_DECODING = ("adjust_orientation", "dtype", "jpeg_fancy_upsampling", "output_type", "use_fast_idct")
_CROP = (
    "crop", "crop_d", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding",
)  # fmt: skip


_SLICE = (
    "axes", "axis_names", "end", "normalized_anchor", "normalized_shape", "rel_end", "rel_shape", "rel_start",
    "shape", "start",
)  # fmt: skip


def _select(arguments: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: arguments[name] for name in names if name in arguments}


def _decode(
    data: Tensor,
    adjust_orientation: bool = True,
    dtype: torch.dtype = torch.uint8,
    jpeg_fancy_upsampling: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
) -> Tensor:
    _check(dtype, _DTYPES)
    return decode(
        data,
        output_type=output_type.name,
        dtype=dtype,
        adjust_orientation=adjust_orientation,
        fast=use_fast_idct,
        fancy=jpeg_fancy_upsampling,
    )


def _check(dtype: torch.dtype, allowed: tuple[torch.dtype, ...]) -> None:
    if dtype not in allowed:
        names = ", ".join(str(kind).removeprefix("torch.") for kind in allowed)
        raise RuntimeError(f"dtype must be one of {names}, got {dtype}")


def _decode_window(
    data: Tensor,
    choose: Callable[[int, int], Window],
    adjust_orientation: bool = True,
    dtype: torch.dtype = torch.uint8,
    jpeg_fancy_upsampling: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
) -> Tensor:
    """Decode a window of an image, and as few other pixels as possible.

    Args:
        choose: Function that returns the window for the image's height and width.
    """
    if dtype is torch.uint8 and output_type == DALIImageType.RGB:
        header = peek_header(data)
        window = choose(*header.size(adjust_orientation))
        return decode_crop(
            data, *window, adjust_orientation=adjust_orientation, fast=use_fast_idct, fancy=jpeg_fancy_upsampling,
            header=header,
        )  # fmt: skip
    pixels = _decode(data, adjust_orientation, dtype, jpeg_fancy_upsampling, output_type, use_fast_idct)
    y, x, h, w = choose(pixels.shape[0], pixels.shape[1])
    return pixels[y : y + h, x : x + w]


def complete_window(
    size: tuple[int, int], axes: Sequence[int], starts: Sequence[int], extents: Sequence[int]
) -> Window:
    """Return the window that is cropped on the axes in `axes`, and has the image's full extent on the other axes.

    Raises:
        RuntimeError: the window is empty or reaches outside of the image.
    """
    corner, sides = [0, 0], list(size)
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        corner[axis], sides[axis] = start, extent
    (y, x), (h, w) = corner, sides
    if h < 1 or w < 1:
        raise RuntimeError(f"the window [{y}:{y + h}, {x}:{x + w}] is empty")
    if y < 0 or x < 0 or y + h > size[0] or x + w > size[1]:
        raise RuntimeError(
            f"cropping window {y}..{y + h}, {x}..{x + w} is not valid for image dimensions [{size[0]} x {size[1]}]"
        )
    return y, x, h, w


# ---------------------------------------------------------------- edits of image programs


_HINTS = argument_names(decoder_hints) | argument_names(cache_hints) | frozenset(_DECODING)
_RANDOM = ("num_attempts", "random_area", "random_aspect_ratio")


def _edit(constants: Mapping[str, Any], narrow: Narrow | None = None) -> Edit | None:
    """Return the edit that adds a decoder to image programs; None if the decoder's result isn't uint8 RGB.

    An image program describes the region of an image to compute, and how to resize and flip the region.

    Args:
        constants: Arguments of the decoder that are the same for all samples.
        narrow: Function that adds the decoder's crop to a program; None if the decoder doesn't crop.
    """
    is_rgb = constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB
    if not is_rgb or constants.get("dtype", torch.uint8) != torch.uint8:
        return None
    options = decoding_options(constants)
    return Edit(narrow, lambda _: options)


def decoding_options(constants: Mapping[str, Any]) -> ImageOptions:
    """Return the options for image programs that a decoder's arguments specify."""
    return ImageOptions(
        upright=constants.get("adjust_orientation", True), fast=constants.get("use_fast_idct", False),
        fancy=constants.get("jpeg_fancy_upsampling", True),
    )  # fmt: skip


narrows(image, _HINTS)(_edit)


@narrows(image_crop, _HINTS | frozenset(_CROP), _CROP)
def _edit_crop(constants: Mapping[str, Any]) -> Edit | None:
    window = _select(constants, _CROP)

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Any) -> ImageProgram | None:
        return program.crop(*complete_window(program.size, *crop_window(program.size, "HW", **{**window, **arguments})))

    return _edit(constants, narrow)


@narrows(image_slice, _HINTS | frozenset(_SLICE), _SLICE)
def _edit_slice(constants: Mapping[str, Any]) -> Edit | None:
    window = _select(constants, _SLICE)

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Any) -> ImageProgram | None:
        inputs, sample_window = arguments["inputs"], _select(arguments, _SLICE)
        return program.crop(
            *complete_window(program.size, *slice_window(program.size, "HW", *inputs, **{**window, **sample_window}))
        )

    return _edit(constants, narrow)


@narrows(image_random_crop, _HINTS | frozenset(_RANDOM))
def _edit_random_crop(constants: Mapping[str, Any]) -> Edit | None:
    options = _select(constants, _RANDOM)

    def narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Rng) -> ImageProgram | None:
        return program.crop(*choose_window(rng, *program.size, **options))

    return _edit(constants, narrow)
