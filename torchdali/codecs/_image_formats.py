"""The image formats: `FORMATS` says how each format is recognized, read and decoded.

Decoders return the pixels of the file, ``(H, W, C)``, in the file's dtype and orientation, before any conversion. Each
format is decoded by the fastest library whose results match DALI's and that survives damaged data. torchvision's PNG
decoder is not used, because the decoder crashes the process on damaged pixel data.
"""

from __future__ import annotations

import importlib
import io
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._bmp import bmp_colors, bmp_fields, bmp_runs
from torchdali.codecs._image_colors import Weights, gray
from torchdali.codecs._image_headers import (
    ImageHeader,
    bmp_header,
    bmp_masks,
    build_image_error,
    check_size,
    find_cmyk_marker,
    jpeg2000_header,
    jpeg_frame,
    jpeg_header,
    png_chunks,
    png_header,
    pnm_fields,
    pnm_header,
    strip_exif,
    tiff_header,
    webp_header,
)
from torchdali.codecs._opencv import decode_bytes_by_opencv, decode_opencv
from torchdali.codecs._pillow import pillow_pixels
from torchdali.codecs._pillow_formats import decode_by_pillow, pillow_header
from torchdali.codecs._torchvision_ops import image_operator
from torchdali.codecs.files import open_bytes
from torchdali.codecs.signatures import describe_content
from torchdali.errors import DecodeError
from torchdali.kernels.memory import Array

__all__ = ["EXTENSIONS", "FORMATS", "OTHER_EXTENSIONS", "Format", "decode_file", "gray_weights", "read_header"]


_UNCHANGED, _GRAY = 0, 1  # torchvision's ImageReadMode

_FIXED_15 = Weights(9798, 19235, 3735, 1 << 14, 15)
_FIXED_14 = Weights(4899, 9617, 1868, 1 << 13, 14)
_TRUNCATED = Weights(9798, 19235, 3735, 0, 15)
_PNG = Weights(9797, 19234, 3737, 0, 15)
_PNG_16 = Weights(9797, 19234, 3737, 1 << 14, 15)


class Format(NamedTuple):
    """An image format.

    Attributes:
        name: Name in `ImageHeader.format` and in error messages.
        extensions: File extensions of this format; readers list files with these extensions.
        matches: Function that returns whether a file that begins with the passed 12 bytes has this format.
        header: Function that reads size, channels and depth. For a damaged header, the function raises ``ValueError``,
            ``IndexError`` or ``struct.error``.
        decode: Function ``decode(data, view, header, output_type)`` that returns the pixels of the file. ``data`` is
            the encoded file as a tensor, ``view`` the same memory as a memoryview. For damaged data, any exception may
            be raised.
        gray: Function ``gray(header, pixels)`` that returns the fixed-point weights by which DALI converts the pixels
            to gray, or None if DALI uses floating point.
    """

    name: str
    extensions: tuple[str, ...]
    matches: Callable[[bytes], bool]
    header: Callable[[memoryview], ImageHeader]
    decode: Callable[[Tensor, memoryview, ImageHeader, str], Tensor]
    gray: Callable[[ImageHeader, Tensor], Weights | None] = lambda header, pixels: None


def read_header(view: memoryview) -> ImageHeader:
    """Parse the header of an image, and check the size in the header.

    Raises:
        DecodeError: The format is unknown, the header is damaged, or the image is too large.
    """
    head = bytes(view[:12])
    format = next((format for format in FORMATS.values() if format.matches(head)), FALLBACK)
    try:
        header = format.header(view)
    except (IndexError, ValueError, OverflowError, struct.error) as error:
        reason = ": ".join(filter(None, ("the header is truncated or damaged", str(error))))
        raise build_image_error(reason, format.name, view) from error
    check_size(header.height, header.width, header.channels, header.format, view)
    return header


def decode_file(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    """Decode to the pixels of the file. Only a JPEG is decoded to gray if `output_type` is ``"GRAY"``.

    Damaged data may raise any exception: RuntimeError, OSError, ValueError and others.
    """
    return FORMATS.get(header.format, FALLBACK).decode(data, view, header, output_type)


def gray_weights(header: ImageHeader, pixels: Tensor) -> Weights | None:
    """Return the weights by which DALI converts a file's pixels to gray; None if DALI uses floating point."""
    return FORMATS.get(header.format, FALLBACK).gray(header, pixels)


# ---------------------------------------------------------------- decoders


def _jpeg(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    decoder = image_operator("decode_jpeg")
    want_gray = output_type == "GRAY"
    mode = _GRAY if want_gray and header.channels != 4 else _UNCHANGED
    pixels = decoder(data, mode).permute(1, 2, 0) if decoder else _decode_jpeg_with_pillow(view, mode)
    if header.channels != 4 or output_type == "ANY_DATA":
        return pixels
    colors = _cmyk_to_rgb(pixels, adobe=jpeg_frame(view)[4])
    return gray(colors, rounded=False) if want_gray else colors


def _decode_jpeg_with_pillow(view: memoryview, mode: int) -> Tensor:
    """Decode a JPEG by Pillow. CMYK pixels aren't converted to RGB."""
    from PIL.JpegImagePlugin import JpegImageFile

    with JpegImageFile(io.BytesIO(strip_exif(view))) as image:
        if mode == _GRAY:
            image.draft("L", image.size)
        pixels = _to_tensor(image)
    return 255 - pixels if pixels.shape[2] == 4 else pixels


def _cmyk_to_rgb(pixels: Tensor, adobe: bool, full_scale: int = 255) -> Tensor:
    """Convert CMYK to RGB: ``color = light of the ink * light of black / full_scale``, rounded down.

    The light of an ink is the amount of light that the ink transmits.

    Args:
        adobe: True if the values are amounts of light, as in Adobe's files; False if the values are amounts of ink.
        full_scale: The largest value.
    """
    wide = torch.int32 if full_scale == 255 else torch.int64
    light = pixels.to(wide) if adobe else full_scale - pixels.to(wide)
    return light[:, :, :3].mul(light[:, :, 3:]).floor_divide_(full_scale).to(pixels.dtype)


def _png(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    essential = _essential_chunks(view)
    drop_alpha = output_type != "ANY_DATA"
    color = essential[25]
    if header.depth in (8, 16) and (color in (0, 2) or (color == 6 and drop_alpha)):
        # OpenCV is faster than Pillow, since Pillow stores RGB with four bytes per pixel. If OpenCV fails, use Pillow.
        pixels = decode_bytes_by_opencv(essential, color == 0, header.depth == 16)
        if pixels is not None and pixels.shape[:2] == (header.height, header.width):
            return pixels
    if header.depth == 16:
        return _decode_png_16(essential, header)
    return _decode_with_pillow("Png", essential, header, drop_alpha=drop_alpha)


def _essential_chunks(view: memoryview) -> bytes | memoryview:
    """Return a PNG with only its critical chunks, and verify their checksums.

    Data is copied only if there are chunks to remove.
    """
    parts = [view[:8]]
    for kind, start, length in png_chunks(view):
        if kind[0] < ord("a"):
            parts.append(view[start - 8 : start + length + 4])
            (checksum,) = struct.unpack_from(">I", view, start + length)
            if zlib.crc32(view[start - 4 : start + length]) != checksum:
                raise ValueError(f"wrong checksum of the chunk {kind.decode('latin-1')}")
    end = start + length + 4
    return view[:end] if end == sum(map(len, parts)) else b"".join(parts)


def _decode_png_16(encoded: bytes | memoryview, header: ImageHeader) -> Tensor:
    """Decode 16 bits per channel by two calls of Pillow: each call returns only one half of the bits.

    An image with gray and alpha has four bytes per pixel. This function declares the image as 8-bit RGBA, which also
    has four bytes per pixel, and Pillow decodes the bytes unchanged.
    """
    if header.channels == 1:
        return _decode_with_pillow("Png", encoded, header)
    pixels = np.empty((header.height, header.width, header.channels), "<u2")
    halves = pixels.view(np.uint8).reshape(*pixels.shape, 2)
    if header.channels == 2:
        encoded = bytes(encoded)
        start = encoded[12:24] + b"\x08\x06" + encoded[26:29]
        checksum = struct.pack(">I", zlib.crc32(start))
        pairs = _decode_with_pillow("Png", encoded[:12] + start + checksum + encoded[33:], header)
        halves[..., 0], halves[..., 1] = pairs[:, :, 1::2], pairs[:, :, 0::2]
    else:
        lower = "RGB;16L" if header.channels == 3 else "RGBA;16L"
        halves[..., 1] = _decode_with_pillow("Png", encoded, header)
        halves[..., 0] = _decode_with_pillow("Png", encoded, header, lower)
    return torch.from_numpy(pixels.astype(np.uint16, copy=False))


def _webp(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    decoder = image_operator("decode_webp")
    animated = bytes(view[12:16]) == b"VP8X" and view[20] & 0x02
    if decoder is None or animated:
        return _decode_with_pillow("WebP", view, header)[:, :, : header.channels]
    pixels: Tensor = decoder(data, _UNCHANGED).permute(1, 2, 0)
    return pixels


def _jpeg2000(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    cmyk_offset = find_cmyk_marker(view) if header.channels == 4 else None
    pixels = _jpeg2000_samples(view, header, cmyk_offset)
    if cmyk_offset is None or output_type == "ANY_DATA":
        return pixels
    return _cmyk_to_rgb(
        pixels, adobe=False, full_scale=(1 << header.depth) - 1 if pixels.dtype == torch.uint16 else 255
    )


def _jpeg2000_samples(view: memoryview, header: ImageHeader, cmyk_offset: int | None) -> Tensor:
    if header.depth > 8 and header.channels > 1:  # Pillow's values overflow for two channels
        if cmyk_offset is not None and bytes(view[cmyk_offset : cmyk_offset + 4]) == b"\0\0\0\x0c":
            marker = b"\0\0\0\x10"  # declare the colors as sRGB, because OpenCV rejects CMYK
            view = memoryview(b"".join((view[:cmyk_offset], marker, view[cmyk_offset + 4 :])))
        return decode_opencv(view, "JPEG 2000 of more than 8 bits")
    pixels = _decode_with_pillow("Jpeg2K", view, header)
    if pixels.dtype == torch.uint16 and header.depth < 16:  # Pillow scales values to 16 bits, DALI does not
        return (pixels.to(torch.int32) >> (16 - header.depth)).to(torch.uint16)
    return pixels


def _tiff(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    from torchdali.codecs._tiff import Directory, decode_tiff  # imported late, because the module imports Pillow

    return torch.from_numpy(decode_tiff(view, Directory(view)))


def _bmp(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    masks = bmp_masks(view)
    pixels = bmp_fields(view, header, masks) if masks else bmp_colors(view, header)
    pixels = bmp_runs(view, header) if pixels is None else pixels
    return _decode_with_pillow("Bmp", view, header)[:, :, : header.channels] if pixels is None else pixels


def _pnm(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    """Decode a PNM file. As in DALI, the values of binary files are not scaled to the dtype's range."""
    if view[1] in b"123":
        return _decode_with_pillow("Ppm", view, header)
    start, width, height, largest = pnm_fields(view)
    if view[1] == ord("4"):
        rows = np.frombuffer(view, np.uint8, height * -(-width // 8), start).reshape(height, -1)
        bits = np.unpackbits(rows, axis=1)[:, :width, None]
        return torch.from_numpy((1 - bits) * np.uint8(255))
    shape = (height, width, header.channels)
    dtype = np.dtype("u1" if largest < 256 else ">u2")
    values = np.frombuffer(view, dtype, height * width * header.channels, start).reshape(shape)
    if 255 < largest < 65535:
        values = values >> 8
    return torch.from_numpy(values.astype(np.uint16 if largest == 65535 else np.uint8))


# Icons and textures, which contain files of other formats.
_CONTAINER_SIGNATURES = (b"\0\0\1\0", b"\0\0\2\0", b"icns", b"BLP")
_EMBEDDED_SIGNATURES = re.compile(b"\x89PNG\r\n\x1a\n|\xff\x4f\xff\x51")


def _check_embedded(view: memoryview) -> None:
    """Check the size of each image in an icon or texture file.

    Without this check, Pillow would allocate memory for an image of any size.
    """
    for match in _EMBEDDED_SIGNATURES.finditer(view):
        format = next(format for format in FORMATS.values() if format.matches(match[0]))
        try:
            header = format.header(view[match.start() :])
        except (DecodeError, IndexError, ValueError, struct.error):  # not an image
            continue
        check_size(header.height, header.width, header.channels, header.format, view)


def _fallback_header(view: memoryview) -> ImageHeader:
    head = bytes(view[:12])
    if not head:
        raise build_image_error("the data is empty", "none", view)
    if head.startswith(_CONTAINER_SIGNATURES):
        _check_embedded(view)
    try:
        header = pillow_header(view)
    except Exception as error:  # Pillow has its own exception for images that are too large
        raise build_image_error(f"{error or type(error).__name__}", "unknown", view) from error
    if header is None:
        description = describe_content(view) or f", the data begins with {head!r}"
        raise build_image_error(f"unknown format{description}", "unknown", view)
    return header


def _decode_fallback(data: Tensor, view: memoryview, header: ImageHeader, output_type: str) -> Tensor:
    try:
        pixels = torch.from_numpy(decode_by_pillow(view, header))
    except Exception as error:  # Pillow also raises its own exception classes
        raise ValueError(f"{error or type(error).__name__}") from error
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _decode_with_pillow(
    plugin: str,
    data: memoryview | bytes,
    header: ImageHeader,
    unpack: str | None = None,
    drop_alpha: bool = False,
) -> Tensor:
    """Decode with a Pillow plugin. The direct call skips Pillow's format detection and warnings about the size.

    Args:
        header: Header of the file. The image's size in the header must match the size that Pillow reads.
        unpack: Pillow's raw mode, which selects the bytes of each value.
        drop_alpha: Drop the alpha channel of RGBA images.
    """
    module = importlib.import_module(f"PIL.{plugin}ImagePlugin")
    with getattr(module, f"{plugin}ImageFile")(open_bytes(data)) as image:
        if image.size != (header.width, header.height):  # only the header's size was checked against the limit
            raise ValueError("the headers contradict each other")
        if unpack:
            image.tile = [(*tile[:3], unpack) for tile in image.tile]
        return _to_tensor(image, _without_alpha if drop_alpha and image.mode == "RGBA" else None)


def _without_alpha(pixels: Array) -> Array:
    return pixels[..., :3]


def _to_tensor(image: Any, change: Callable[[Array], Array] | None = None) -> Tensor:
    """Return the pixels of a PIL image as ``(H, W, C)``; palette indices are converted to colors."""
    if image.mode == "P":
        entries = np.array(image.getpalette("RGB"), np.uint8).reshape(-1, 3)
        palette = np.zeros((256, 3), np.uint8)  # indices without an entry in the file's palette are black
        palette[: len(entries)] = entries
        return torch.from_numpy(pillow_pixels(image, palette.__getitem__))
    pixels = pillow_pixels(image, change)
    if pixels.dtype == np.bool_:
        pixels = np.not_equal(pixels.view(np.uint8), 0, out=pixels).view(np.uint8)
        pixels *= np.uint8(255)
    elif pixels.dtype != np.uint8:  # 16-bit values, which Pillow before 11 stores in 32 bits
        pixels = pixels.astype(np.uint16, copy=False)
    return torch.from_numpy(pixels if pixels.ndim == 3 else pixels[:, :, None])


# ---------------------------------------------------------------- the table


def _starts_with(*magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magic)


def _constant_weights(weights: Weights) -> Callable[[ImageHeader, Tensor], Weights]:
    return lambda header, pixels: weights


def _png_gray(header: ImageHeader, pixels: Tensor) -> Weights:
    return _PNG if pixels.dtype == torch.uint8 else _PNG_16


def _bmp_gray(header: ImageHeader, pixels: Tensor) -> Weights:
    return _TRUNCATED if header.depth == 32 else _FIXED_14


FORMATS = {
    format.name: format
    for format in (
        Format("JPEG", (".jpg", ".jpeg"), _starts_with(b"\xff\xd8\xff"), jpeg_header, _jpeg),
        Format("PNG", (".png",), _starts_with(b"\x89PNG\r\n\x1a\n"), png_header, _png, _png_gray),
        Format("BMP", (".bmp",), _starts_with(b"BM"), bmp_header, _bmp, _bmp_gray),
        Format("TIFF", (".tif", ".tiff"), _starts_with(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), tiff_header, _tiff),
        Format(
            "PNM", (".pnm", ".ppm", ".pgm", ".pbm"),
            lambda head: head[:1] == b"P" and head[1:2] in (b"1", b"2", b"3", b"4", b"5", b"6"),
            pnm_header, _pnm, _constant_weights(_FIXED_14),
        ),
        Format(
            "JPEG 2000", (".jp2",),
            _starts_with(b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"),
            jpeg2000_header, _jpeg2000, _constant_weights(_FIXED_15),
        ),
        Format(
            "WebP", (".webp",),
            lambda head: head[:4] == b"RIFF" and head[8:] == b"WEBP",
            webp_header, _webp, _constant_weights(_FIXED_15),
        ),
    )
}  # fmt: skip
"""The formats, in the order in which they are tried."""

FALLBACK = Format("unknown", (), lambda head: True, _fallback_header, _decode_fallback)
"""The entry for all formats that are not in `FORMATS`. Pillow detects and decodes these formats."""

EXTENSIONS = tuple(extension for format in FORMATS.values() for extension in format.extensions)
"""File extensions of images. Readers skip files with other extensions, unless the user passes a pattern."""

OTHER_EXTENSIONS = (
    ".gif", ".avif", ".avifs", ".tga", ".qoi", ".dds", ".ico", ".cur", ".icns", ".psd", ".pcx", ".dcx", ".sgi", ".rgb",
    ".blp", ".ftc", ".ftu", ".ras", ".xbm", ".xpm", ".fli", ".flc", ".pxr", ".gbr", ".jpe", ".jfif", ".dib", ".j2k",
    ".j2c", ".jpc", ".jpf", ".jpx",
)  # fmt: skip
"""Extensions of files that can be decoded, but are not in `EXTENSIONS`."""
