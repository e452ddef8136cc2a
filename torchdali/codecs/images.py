"""Decode images from encoded bytes to pixels, with the results of DALI's image decoders.

Encoded images are one-dimensional uint8 tensors on the CPU; pixels are ``(H, W, C)``. All functions are thread-safe.
For damaged images, the functions raise `DecodeError` with a message of one line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import torch
from torch import Tensor

from torchdali.codecs._image_colors import DTYPES, OUTPUT_TYPES, to_output
from torchdali.codecs._image_formats import (
    EXTENSIONS,
    FORMATS,
    OTHER_EXTENSIONS,
    Format,
    decode_file,
    gray_weights,
    read_header,
)
from torchdali.codecs._image_headers import (
    ImageHeader,
    build_image_error,
    check_size,
    encoded_view,
    flatten_encoded,
    jpeg_frame,
    jpeg_orientation,
)
from torchdali.codecs._image_orientation import turn
from torchdali.codecs._native import decode_jpegs
from torchdali.codecs._torchvision_ops import image_operator
from torchdali.codecs._turbo import decode_whole
from torchdali.errors import DecodeError, MissingExtraError
from torchdali.kernels.limits import limits

__all__ = ["EXTENSIONS", "FORMATS", "OTHER_EXTENSIONS", "Format", "ImageHeader", "decode", "peek_header", "peek_shape"]

_JPEG_MAGIC = b"\xff\xd8\xff"
_JPEG_MODES = {"RGB": 3, "GRAY": 1}  # the output types that libjpeg supports, with torchvision's mode numbers

_decode_jpeg: Callable[..., Tensor] | None = None


def decode(
    data: Tensor,
    *,
    output_type: str = "RGB",
    dtype: torch.dtype = torch.uint8,
    adjust_orientation: bool = True,
    fast: bool = False,
    fancy: bool = True,
) -> Tensor:
    """Decode one image of any supported format; the first bytes determine the format.

    The formats are JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, and other formats that Pillow supports, such as GIF and
    AVIF.

    Args:
        data: Encoded bytes, contiguous uint8 on the CPU.
        output_type: "RGB", "BGR", "GRAY", "YCbCr", or "ANY_DATA", which keeps the file's channels.
        dtype: uint8, int8, uint16, int16, uint32, int32 or float32. Values are rescaled from the file's full scale to
            the dtype's full scale (1.0 for float32).
        adjust_orientation: Turn the image according to its EXIF block.
        fast: Decode JPEGs to RGB uint8 with a faster, less exact transform if simplejpeg is installed. As in DALI, this
            has no effect on JPEGs that `adjust_orientation` turns.
        fancy: If True, upsample the chroma of JPEGs smoothly; if False, repeat chroma samples. False has an effect only
            if the native library or simplejpeg decodes the file. torchvision and Pillow always upsample smoothly.

    Returns:
        ``(H, W, C)``, contiguous.

    Raises:
        DecodeError: The data is empty, damaged, truncated, too large or of an unknown format.
        MissingExtraError: The format needs an optional package that is not installed.
        ValueError: `data` is not a contiguous uint8 tensor, or `output_type` or `dtype` is not supported.
    """
    mode = _JPEG_MODES.get(output_type)
    if data.dim() != 1:
        data = flatten_encoded(data)
    view = data.numpy().data
    if (
        mode is None
        or dtype is not torch.uint8
        or view.format != "B"
        or not view.c_contiguous
        or view[:3] != _JPEG_MAGIC
    ):
        return _decode_any(data, output_type, dtype, adjust_orientation, fancy)
    height, width, channels, exif, _, frame = jpeg_frame(view)
    decoder = _decode_jpeg or _load_decoder()
    if channels == 4 or decoder is None:
        return _decode_any(data, output_type, dtype, adjust_orientation, fancy)
    if not 0 < height * width * channels <= limits.unchecked_values:
        check_size(height, width, channels, "JPEG", view)
    orientation = jpeg_orientation(view, exif) if exif and adjust_orientation else 1
    pixels = _decode_colors(data, view, frame, fast and orientation == 1, fancy) if mode == 3 else None
    try:
        pixels = decoder(data, mode).permute(1, 2, 0) if pixels is None else pixels
    except RuntimeError as error:
        raise build_image_error(_describe_error(error), "JPEG", view) from error
    return turn(pixels, orientation)


def _load_decoder() -> Callable[..., Tensor] | None:
    global _decode_jpeg
    _decode_jpeg = image_operator("decode_jpeg")
    return _decode_jpeg


def _decode_colors(data: Tensor, view: memoryview, frame: int, fast: bool, fancy: bool) -> Tensor | None:
    """Decode a JPEG to RGB bytes without turning the image; return None if torchvision or Pillow must decode it."""
    pixels = None if fancy else decode_jpegs([data], False, fast, False)[0]
    if pixels is not None:
        return pixels
    turbo = decode_whole(view, frame, fast, fancy)
    return None if turbo is None else torch.from_numpy(turbo)


def _decode_any(data: Tensor, output_type: str, dtype: torch.dtype, adjust_orientation: bool, fancy: bool) -> Tensor:
    """Decode any image. For common JPEGs, `decode` has a faster path."""
    _check_choices(output_type, dtype)
    view = encoded_view(data)
    header = read_header(view)
    try:
        decoded = None
        if not fancy and header.format == "JPEG" and header.channels == 3 and output_type != "GRAY":
            decoded = _decode_colors(data, view, header.frame, False, False)
        pixels = decode_file(data, view, header, output_type) if decoded is None else decoded
        pixels = to_output(pixels, output_type, dtype, gray_weights(header, pixels))
    except (DecodeError, MissingExtraError):
        raise
    except _DECODING_ERRORS as error:
        raise build_image_error(_describe_error(error), header.format, view) from error
    return turn(pixels, header.orientation if adjust_orientation else 1)


# Exceptions that the decoding libraries raise for damaged data. Pillow raises SyntaxError.
_DECODING_ERRORS = (
    RuntimeError,
    OSError,
    ValueError,
    LookupError,
    ArithmeticError,
    TypeError,
    SyntaxError,
    EOFError,
    MemoryError,
    struct.error,
)


def _check_choices(output_type: str, dtype: torch.dtype) -> None:
    if output_type not in OUTPUT_TYPES:
        raise ValueError(f"output_type must be one of {', '.join(OUTPUT_TYPES)}, got {output_type!r}")
    if dtype not in DTYPES:
        names = ", ".join(str(supported).removeprefix("torch.") for supported in DTYPES)
        raise ValueError(f"the dtype of decoded images must be one of {names}, got {dtype}")


def _describe_error(error: BaseException) -> str:
    """Return the first line of a library's error message, without the name of the C++ source file."""
    line = str(error).strip().split("\n")[0]
    line = re.sub(r".*\.cpp:\d+[],:]\s*", "", line) or line
    return f"{type(error).__name__} {line}".strip() if isinstance(error, LookupError) or not line else line


def peek_shape(
    data: Tensor | bytes, *, image_type: str = "RGB", adjust_orientation: bool = True
) -> tuple[int, int, int]:
    """Return the shape ``(H, W, C)`` of the result of `decode`. Only the header is read."""
    header = peek_header(data)
    channels = {"GRAY": 1, "ANY_DATA": header.channels}.get(image_type, 3)
    return *header.size(adjust_orientation), channels


def peek_header(data: Tensor | bytes) -> ImageHeader:
    """Read the header of an image; raises the same errors as `decode`."""
    return read_header(memoryview(data) if isinstance(data, bytes) else encoded_view(data))
