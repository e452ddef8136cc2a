"""One function a format: encoded bytes to the pixels of the file, before they are converted.

Each returns ``(H, W, C)`` in the file's own type and orientation. Which library decodes what was
chosen by comparing with the real DALI: the fastest of those that agree and survive damaged data.
torchvision's PNG decoder does not: it crashes the process on a damaged stream of pixels.
"""

from __future__ import annotations

import importlib
import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._image_colors import Weights, gray
from torchdali.codecs._image_headers import (
    Header,
    jpeg_frame,
    png_chunks,
    pnm_fields,
    without_exif,
)
from torchdali.codecs._opencv import decode_opencv
from torchdali.codecs._torchvision_ops import image_operator

__all__ = ["decode_file", "gray_weights"]

_UNCHANGED, _GRAY = 0, 1  # torchvision's ImageReadMode

# How formats make grey from colours; those that are not here weight in floating point.
_FIXED_15 = Weights(9798, 19235, 3735, 1 << 14, 15)
_FIXED_14 = Weights(4899, 9617, 1868, 1 << 13, 14)
_TRUNCATED = Weights(9798, 19235, 3735, 0, 15)
_PNG = Weights(9797, 19234, 3737, 0, 15)
_PNG_16 = Weights(9797, 19234, 3737, 1 << 14, 15)


def gray_weights(header: Header, pixels: Tensor) -> Weights | None:
    """Return how DALI makes grey from the pixels of such a file."""
    if header.format == "PNG":
        return _PNG if pixels.dtype == torch.uint8 else _PNG_16
    if header.format == "BMP":
        return _TRUNCATED if pixels.shape[2] == 4 else _FIXED_14
    return {"PNM": _FIXED_14, "WebP": _FIXED_15, "JPEG 2000": _FIXED_15}.get(header.format)


def decode_file(data: Tensor, view: memoryview, header: Header, output_type: str) -> Tensor:
    """Decode to the pixels of the file; of a JPEG, to grey where that is wanted.

    Raises RuntimeError, OSError, ValueError and others for damaged data.
    """
    if header.format == "JPEG":
        return _jpeg(data, view, header, output_type)
    return _DECODERS[header.format](data, view, header)


def _jpeg(data: Tensor, view: memoryview, header: Header, output_type: str) -> Tensor:
    decoder = image_operator("decode_jpeg")
    want_gray = output_type == "GRAY"
    mode = _GRAY if want_gray and header.channels != 4 else _UNCHANGED
    pixels = decoder(data, mode).permute(1, 2, 0) if decoder else _pillow_jpeg(view, mode)
    if header.channels != 4 or output_type == "ANY_DATA":
        return pixels
    colors = _from_inks(pixels, adobe=jpeg_frame(view)[4])
    return gray(colors, rounded=False) if want_gray else colors


def _pillow_jpeg(view: memoryview, mode: int) -> Tensor:
    """Decode without torchvision; libjpeg makes the grey, inks come as they are stored."""
    from PIL.JpegImagePlugin import JpegImageFile

    with JpegImageFile(io.BytesIO(without_exif(view))) as image:
        if mode == _GRAY:
            image.draft("L", image.size)
        pixels = _tensor(image)
    return 255 - pixels if pixels.shape[2] == 4 else pixels


def _from_inks(pixels: Tensor, adobe: bool) -> Tensor:
    """Multiply the light that each ink lets through by that of black, rounding down.

    Adobe stores light, others ink.
    """
    light = pixels.to(torch.int32) if adobe else 255 - pixels.to(torch.int32)
    return light[:, :, :3].mul(light[:, :, 3:]).floor_divide_(255).to(torch.uint8)


def _png(data: Tensor, view: memoryview, header: Header) -> Tensor:
    essential = _essential_chunks(view)
    return _pillow("Png", essential, header) if header.depth < 16 else _png_16(essential, header)


def _essential_chunks(view: memoryview) -> bytes:
    """Keep what describes the pixels, checked; drop profiles, texts and animations."""
    parts = [view[:8]]
    for kind, start, length in png_chunks(view):
        if kind[0] < ord("a"):
            parts.append(view[start - 8 : start + length + 4])
            (checksum,) = struct.unpack_from(">I", view, start + length)
            if zlib.crc32(view[start - 4 : start + length]) != checksum:
                raise ValueError(f"wrong checksum of the chunk {kind.decode('latin-1')}")
    return b"".join(parts)


def _png_16(encoded: bytes, header: Header) -> Tensor:
    """Decode 16 bits a channel, of which Pillow keeps the upper half: ask twice.

    Grey with alpha goes as 8-bit RGBA, which has the same bytes.
    """
    if header.channels == 1:
        return _pillow("Png", encoded, header)
    if header.channels == 2:
        start = encoded[12:24] + b"\x08\x06" + encoded[26:29]
        checksum = struct.pack(">I", zlib.crc32(start))
        pairs = _pillow("Png", encoded[:12] + start + checksum + encoded[33:], header)
        upper, lower = pairs[:, :, 0::2], pairs[:, :, 1::2]
    else:
        upper = _pillow("Png", encoded, header)
        lower = _pillow("Png", encoded, header, "RGB;16L" if header.channels == 3 else "RGBA;16L")
    return upper.to(torch.int32).mul_(256).add_(lower).to(torch.uint16)


def _webp(data: Tensor, view: memoryview, header: Header) -> Tensor:
    decoder = image_operator("decode_webp")
    animated = bytes(view[12:16]) == b"VP8X" and view[20] & 0x02
    if decoder is None or animated:
        return _pillow("WebP", view, header)[:, :, : header.channels]
    pixels: Tensor = decoder(data, _UNCHANGED).permute(1, 2, 0)
    return pixels


def _jpeg2000(data: Tensor, view: memoryview, header: Header) -> Tensor:
    if header.depth > 8 and header.channels > 1:
        return decode_opencv(view, "JPEG 2000 of more than 8 bits")
    pixels = _pillow("Jpeg2K", view, header)
    if pixels.dtype == torch.uint16 and header.depth < 16:  # Pillow stretches, DALI does not
        return (pixels.to(torch.int32) >> (16 - header.depth)).to(torch.uint16)
    return pixels


def _tiff(data: Tensor, view: memoryview, header: Header) -> Tensor:
    from torchdali.codecs._tiff import decode_tiff  # it imports Pillow

    pixels = decode_tiff(view)
    if pixels is None:
        return decode_opencv(view, "this kind of TIFF (colour space or bit depth)")
    return torch.from_numpy(pixels)


def _bmp(data: Tensor, view: memoryview, header: Header) -> Tensor:
    pixels = _pillow("Bmp", view, header)
    if header.depth == 16:  # five or six bits a colour: the lower ones stay empty
        green = 0xFC if view[30] == 3 and bytes(view[58:62]) == b"\xe0\x07\0\0" else 0xF8
        return pixels & torch.tensor([0xF8, green, 0xF8], dtype=torch.uint8)
    return pixels[:, :, :1] if header.channels == 1 else pixels


def _pnm(data: Tensor, view: memoryview, header: Header) -> Tensor:
    """Read binary files as they are: values are not stretched to full scale, as DALI does not."""
    if view[1] in b"123":
        return _pillow("Ppm", view, header)
    start, width, height, largest = pnm_fields(view)
    if view[1] == ord("4"):
        rows = np.frombuffer(view, np.uint8, height * -(-width // 8), start).reshape(height, -1)
        bits = np.unpackbits(rows, axis=1)[:, :width, None]
        return torch.from_numpy((1 - bits) * np.uint8(255))
    shape = (height, width, header.channels)
    kind = np.dtype("u1" if largest < 256 else ">u2")
    values = np.frombuffer(view, kind, height * width * header.channels, start).reshape(shape)
    if 255 < largest < 65535:
        values = values >> 8
    return torch.from_numpy(values.astype(np.uint16 if largest == 65535 else np.uint8))


def _pillow(
    plugin: str, data: memoryview | bytes, header: Header, unpack: str | None = None
) -> Tensor:
    """Decode by one plugin of Pillow, called directly: no sniffing, no warning about the size."""
    module = importlib.import_module(f"PIL.{plugin}ImagePlugin")
    with getattr(module, f"{plugin}ImageFile")(io.BytesIO(data)) as image:
        if image.size != (header.width, header.height):  # the size that was checked
            raise ValueError("the headers contradict each other")
        if unpack:  # which bytes of the samples to take
            image.tile = [(*tile[:3], unpack) for tile in image.tile]
        return _tensor(image)


def _tensor(image: Any) -> Tensor:
    """Return what Pillow decoded as ``(H, W, C)``, a palette applied."""
    if image.mode == "P":
        palette = np.array(image.getpalette("RGB"), np.uint8).reshape(-1, 3)
        return torch.from_numpy(palette[np.array(image)])
    pixels = np.array(image)
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype != np.uint8:  # 16 bits; Pillow before 11 has them as 32
        pixels = pixels.astype(np.uint16)
    return torch.from_numpy(pixels if pixels.ndim == 3 else pixels[:, :, None])


_DECODERS: dict[str, Callable[[Tensor, memoryview, Header], Tensor]] = {
    "PNG": _png,
    "BMP": _bmp,
    "TIFF": _tiff,
    "WebP": _webp,
    "JPEG 2000": _jpeg2000,
    "PNM": _pnm,
}
