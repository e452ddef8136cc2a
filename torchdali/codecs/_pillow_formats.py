"""Formats that only Pillow decodes (GIF, AVIF, QOI, Photoshop, icons, ...), detected by their content.

Some formats that Pillow supports are excluded: those that start another program (EPS), decompress without a limit
(FITS), call the system (WMF, EMF), can be read only partly or not at all (MPEG, GRIB, HDF5, BUFR), or have no signature
(SPIDER, IPTC).
"""

from __future__ import annotations

import importlib
import struct
from typing import Any

import numpy as np

from torchdali.codecs._image_headers import ImageHeader, exif_orientation
from torchdali.codecs._pillow import pillow_pixels
from torchdali.codecs.files import open_bytes
from torchdali.kernels.memory import Array

__all__ = ["decode_by_pillow", "pillow_header"]

# TGA must be last: its files have no signature.
_PLUGINS = (
    "Gif", "Avif", "Ppm", "Ico", "Cur", "Icns", "Psd", "Qoi", "Dds", "Pcx", "Dcx", "Sgi", "Blp", "Ftex", "Sun", "Msp",
    "Xbm", "Xpm", "Fli", "Pixar", "XVThumb", "McIdas", "Gbr", "Tga",
)  # fmt: skip
# Number of channels of each mode that isn't converted.
_CHANNELS = {"1": 1, "L": 1, "I": 1, "F": 1, "I;16": 1, "I;16B": 1, "LA": 2, "P": 3, "RGB": 3, "RGBA": 4}
_CONVERTED_MODES = {"RGBa": "RGBA", "PA": "RGBA"}  # other modes are converted to RGB

_FORMAT_ERRORS = (SyntaxError, IndexError, TypeError, KeyError, ValueError, EOFError, OSError, struct.error)


def pillow_header(view: memoryview) -> ImageHeader | None:
    """Read the header of an image; return None if Pillow does not support the format."""
    image = _open(view)
    if image is None:
        return None
    with image:
        mode = _target_mode(image)
        exif = memoryview((image.info.get("exif") or b"").removeprefix(b"Exif\0\0"))
        depth = 16 if ";16" in mode else 8
        return ImageHeader(image.format, image.height, image.width, _CHANNELS[mode], depth, exif_orientation(exif))


def decode_by_pillow(view: memoryview, header: ImageHeader) -> Array:
    """Decode to ``(H, W)`` or ``(H, W, C)``.

    Raises:
        ValueError: The image contradicts the header, or Pillow does not support the format.
    """
    image = _open(view)
    if image is None:
        raise ValueError("Pillow doesn't recognize the format")
    with image:
        if image.size != (header.width, header.height):  # only the header's size was checked against the limit
            raise ValueError("the headers contradict each other")
        mode = "RGB" if image.mode == "P" else _target_mode(image)
        image.load()  # may change the mode, since icons contain images of other formats
        pixels = pillow_pixels(image if mode == image.mode else image.convert(mode))
    if pixels.dtype == np.bool_:
        pixels = pixels * np.uint8(255)
    if pixels.shape[:2] != (header.height, header.width) or pixels[0, 0].size != header.channels:
        raise ValueError("the headers contradict each other")
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _open(view: memoryview) -> Any:
    """Open an image without decoding its pixels; return None if no plugin supports it.

    The plugins are called directly, since `PIL.Image.open` has its own size limit, and issues warnings.
    """
    head = bytes(view[:16])
    for plugin in _PLUGINS:
        try:
            module = importlib.import_module(f"PIL.{plugin}ImagePlugin")
            if plugin == "Tga" or module._accept(head):
                return getattr(module, f"{plugin}ImageFile")(open_bytes(view))
        except (ImportError, *_FORMAT_ERRORS):
            continue  # an older Pillow doesn't have this plugin, or the data only looks like the format
    return None


def _target_mode(image: Any) -> str:
    return image.mode if image.mode in _CHANNELS else _CONVERTED_MODES.get(image.mode, "RGB")
