"""Encode images again when they are packed: photos as JPEG or WebP, other images without loss.

Images with a palette, with few values or with large areas of few colors (label maps, drawings), and 16-bit images don't
count as photos. Label maps and palette images are shrunk without mixing values. 16-bit images keep all bits.
"""

from __future__ import annotations

import io
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps

from torchdali import fn, types
from torchdali.codecs.images import peek_header
from torchdali.containers._png import write_png

__all__ = ["FORMATS", "EncodedImage", "encode", "psnr"]

FORMATS = {"jpeg": "jpg", "webp": "webp", "raw": "npy"}
_MAX_PSNR = 100.0  # dB, the PSNR of equal pixels
_MAX_LABELS = 64  # a gray image with at most this number of different values counts as a label map
_MAX_COLORS = 256
# An image has large areas of one color if at least this share of pixels equal their left neighbor.
_MIN_FLAT_SHARE = 0.8

Pixels = npt.NDArray[Any]


class EncodedImage(NamedTuple):
    """An image that was encoded again.

    Attributes:
        pixels: The pixels that were encoded.
        is_photo: True if the image was encoded with loss.
    """

    extension: str
    content: bytes
    pixels: Pixels
    is_photo: bool


class _DecodedImage(NamedTuple):
    """A decoded image.

    Attributes:
        pixels: ``(H, W, C)``, uint8 or uint16; palette indices if the image has a palette.
        is_map: True if the values are labels or palette indices, which must not be averaged.
        palette: See `write_png`.
        alpha: See `write_png`.
    """

    pixels: Pixels
    is_map: bool = False
    palette: bytes = b""
    alpha: bytes = b""

    def colors(self) -> Pixels:
        """Return the colors of palette indices, ``(H, W, 3)``."""
        palette = np.zeros((256, 3), np.uint8)
        entries = np.frombuffer(self.palette, np.uint8).reshape(-1, 3)
        palette[: len(entries)] = entries
        colors: Pixels = palette[self.pixels[:, :, 0]]
        return colors

    @property
    def needs_lossless(self) -> bool:
        """True if the image must not be encoded with loss, even if a lossy format was requested."""
        return self.is_map or self.pixels.dtype == np.uint16


def encode(content: bytes, shorter: int | None, format: str | None, quality: int) -> EncodedImage | None:
    """Encode an image again, to shrink it or to convert it to another format.

    Args:
        shorter: Shrink larger images so that their shorter side has this number of pixels; None keeps all sizes.
        format: One of `FORMATS`; None to encode only shrunk images: photos as JPEG, other images as PNG.
        quality: Quality of JPEG and WebP.

    Returns:
        The new image; None if the encoded image should be used unchanged.

    Raises:
        RuntimeError: The image cannot be decoded.
    """
    decoded = _decode(content, format)
    if decoded is None:
        return None
    pixels = decoded.pixels
    is_jpeg = content.startswith(b"\xff\xd8\xff")
    if shorter is not None and min(pixels.shape[:2]) > shorter:
        interpolation = types.INTERP_NN if decoded.is_map else types.INTERP_LINEAR
        small = fn.resize(torch.from_numpy(pixels), resize_shorter=float(shorter), interp_type=interpolation)
        decoded = decoded._replace(pixels=np.asarray(small))
    elif format is None or (format == "jpeg" and is_jpeg and shorter) or (format != "raw" and decoded.needs_lossless):
        return None
    return _encode(decoded, format, quality)


def _encode(decoded: _DecodedImage, format: str | None, quality: int) -> EncodedImage:
    pixels = decoded.pixels
    if format == "raw":
        file = io.BytesIO()
        np.save(file, decoded.colors() if decoded.palette else pixels)
        return EncodedImage(FORMATS[format], file.getvalue(), pixels, False)
    if decoded.needs_lossless or pixels.shape[2] != 3:
        return EncodedImage("png", write_png(pixels, decoded.palette, decoded.alpha), pixels, False)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP" if format == "webp" else "JPEG", quality=quality)
    return EncodedImage(FORMATS[format or "jpeg"], file.getvalue(), pixels, True)


def _decode(content: bytes, format: str | None) -> _DecodedImage | None:
    """Decode an image.

    Return None if the caller must use the encoded image unchanged: `format` is None, and the image has more than 16
    bits or more than four channels.
    """
    data = torch.from_numpy(np.frombuffer(content, np.uint8).copy())
    header = peek_header(data)
    if header.format == "JPEG":
        return _DecodedImage(np.asarray(fn.decoders.image(data)))
    palette = _decode_palette(content)
    if palette is not None:
        return palette
    depth = 8 if header.format == "BMP" else header.depth
    if depth > 16 or header.channels > 4:
        return None if format is None else _DecodedImage(np.asarray(fn.decoders.image(data)))
    dtype = types.UINT16 if depth > 8 else types.UINT8
    pixels = np.asarray(fn.decoders.image(data, output_type=types.ANY_DATA, dtype=dtype))
    decoded = _DecodedImage(pixels, _is_map(pixels))
    if format is None or decoded.needs_lossless or pixels.shape[2] == 3:
        return decoded
    return _DecodedImage(np.asarray(fn.decoders.image(data)))


def _decode_palette(content: bytes) -> _DecodedImage | None:
    """Return an image as palette indices; None if the image has no palette."""
    try:
        opened = Image.open(io.BytesIO(content))
        if opened.mode != "P":
            return None
        image = ImageOps.exif_transpose(opened)
        indices = np.array(image)[:, :, None]
    except Exception:  # Pillow raises exceptions of many classes; the caller then tries another decoder
        return None
    alpha = image.info.get("transparency", b"")
    if isinstance(alpha, int):
        alpha = b"\xff" * alpha + b"\0"
    return _DecodedImage(indices, True, bytes(image.getpalette("RGB") or b"")[: 3 * 256], alpha)


def _is_map(pixels: Pixels) -> bool:
    """Return whether an image is a label map or a drawing: it has few values, or large areas of few colors."""
    channels = pixels.shape[2]
    if channels == 1 and len(np.unique(pixels)) <= _MAX_LABELS:
        return True
    if pixels.shape[1] < 2 or (channels == 1 and pixels.dtype == np.uint8):
        return False
    like_its_neighbor = (pixels[:, 1:] == pixels[:, :-1]).all(2)
    if like_its_neighbor.mean() < _MIN_FLAT_SHARE:
        return False
    return len(np.unique(pixels.reshape(-1, channels), axis=0)) <= _MAX_COLORS


def psnr(encoded: EncodedImage) -> float:
    """Return the PSNR of an encoded image in dB."""
    data = torch.from_numpy(np.frombuffer(encoded.content, np.uint8).copy())
    decoded = np.asarray(fn.decoders.image(data))
    error = float(np.mean((encoded.pixels.astype(np.float32) - decoded) ** 2))
    return min(_MAX_PSNR, 10 * math.log10(255.0**2 / error)) if error else _MAX_PSNR
