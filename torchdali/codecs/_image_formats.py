"""One function a format: encoded bytes to the pixels of the file, before colours and types are converted.

Each returns ``(H, W, C)`` in the file's own type and orientation. Which library decodes what was chosen by comparing
with the real DALI; where several agree, the fastest.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._image_colors import Weights
from torchdali.codecs._image_headers import Header, failure, pnm_fields
from torchdali.codecs._opencv import decode_opencv
from torchdali.codecs._tiff import decode_tiff
from torchdali.codecs._torchvision_ops import image_operator

__all__ = ["decode_file", "gray_weights"]

_UNCHANGED, _RGB = 0, 3  # torchvision's ImageReadMode

# How each format makes grey from colours. TIFF, and what is not here, is weighted in floating point.
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


def decode_file(data: Tensor, view: memoryview, header: Header) -> Tensor:
    """Decode to the pixels of the file; RuntimeError, OSError or ValueError for damaged data."""
    return _DECODERS[header.format](data, view, header)


def _jpeg(data: Tensor, view: memoryview, header: Header) -> Tensor:
    decoder = image_operator("decode_jpeg")
    if decoder is None:
        return _pillow("JpegImagePlugin", "JpegImageFile", view)
    pixels: Tensor = decoder(data, _UNCHANGED).permute(1, 2, 0)
    return _from_cmyk(pixels) if pixels.shape[2] == 4 else pixels


def _from_cmyk(pixels: Tensor) -> Tensor:
    """Multiply the inks (stored inverted, so 255 is none) by the inverted black, rounding down."""
    inks = pixels.to(torch.int32)
    return inks[:, :, :3].mul(inks[:, :, 3:]).floor_divide_(255).to(torch.uint8)


def _png(data: Tensor, view: memoryview, header: Header) -> Tensor:
    decoder = image_operator("decode_png")
    if decoder is None:
        return _pillow("PngImagePlugin", "PngImageFile", view)
    palette = view[25] == 3
    pixels: Tensor = decoder(data, _RGB if palette else _UNCHANGED).permute(1, 2, 0)
    return pixels


def _webp(data: Tensor, view: memoryview, header: Header) -> Tensor:
    decoder = image_operator("decode_webp")
    animated = bytes(view[12:16]) == b"VP8X" and view[20] & 0x02
    if decoder is None or animated:
        return _pillow("WebPImagePlugin", "WebPImageFile", view)[:, :, : header.channels]
    pixels: Tensor = decoder(data, _UNCHANGED).permute(1, 2, 0)
    return pixels


def _jpeg2000(data: Tensor, view: memoryview, header: Header) -> Tensor:
    if header.depth > 8 and header.channels > 1:
        return decode_opencv(view, "JPEG 2000 of more than 8 bits")
    return _pillow("Jpeg2KImagePlugin", "Jpeg2KImageFile", view)


def _tiff(data: Tensor, view: memoryview, header: Header) -> Tensor:
    pixels = decode_tiff(view)
    if pixels is None:
        return decode_opencv(view, "this kind of TIFF (colour space or bit depth)")
    return torch.from_numpy(pixels)


def _bmp(data: Tensor, view: memoryview, header: Header) -> Tensor:
    return _pillow("BmpImagePlugin", "BmpImageFile", view)


def _pnm(data: Tensor, view: memoryview, header: Header) -> Tensor:
    """Read binary files as they are: values are not stretched to full scale, as DALI does not."""
    if view[1] in b"123":
        return _pillow("PpmImagePlugin", "PpmImageFile", view)
    start, width, height, largest = pnm_fields(view)
    if view[1] == ord("4"):
        rows = np.frombuffer(view, np.uint8, height * -(-width // 8), start).reshape(height, -1)
        bits = np.unpackbits(rows, axis=1)[:, :width, None]
        return torch.from_numpy(np.where(bits, np.uint8(0), np.uint8(255)))
    shape = (height, width, header.channels)
    if largest < 256:
        values = np.frombuffer(view, np.uint8, height * width * header.channels, start)
        return torch.from_numpy(values.reshape(shape).copy())
    wide = np.frombuffer(view, ">u2", height * width * header.channels, start).reshape(shape)
    return torch.from_numpy(wide.astype(np.uint16) if largest == 65535 else (wide >> 8).astype(np.uint8))


def _pillow(module: str, plugin: str, view: memoryview) -> Tensor:
    """Decode by one Pillow plugin, called directly: no sniffing, no warning about the size."""
    import importlib

    opener = getattr(importlib.import_module(f"PIL.{module}"), plugin)
    with opener(io.BytesIO(view)) as image:
        return torch.from_numpy(_array(image))


def _array(image: object) -> np.ndarray:  # type: ignore[type-arg]
    mode = image.mode  # type: ignore[attr-defined]
    if mode == "P":
        image = image.convert("RGB")  # type: ignore[attr-defined]
    pixels = np.array(image)
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype.itemsize == 2:
        pixels = pixels.astype(np.uint16)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


_DECODERS: dict[str, Callable[[Tensor, memoryview, Header], Tensor]] = {
    "JPEG": _jpeg,
    "PNG": _png,
    "BMP": _bmp,
    "TIFF": _tiff,
    "WebP": _webp,
    "JPEG 2000": _jpeg2000,
    "PNM": _pnm,
}
