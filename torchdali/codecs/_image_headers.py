"""Parse the headers of image files: size, channels, depth, orientation.

All functions read a `memoryview` and allocate no memory for the image. Therefore, an absurd size in a header does
no harm. Depths are bits per channel. Sizes refer to the stored image, before the image is turned upright.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from torchdali.errors import DecodeError
from torchdali.kernels.limits import FREE_VALUES, MAX_SCANS, MAX_VALUES_PER_BYTE, limits

__all__ = [
    "ImageHeader",
    "bmp_header",
    "bmp_masks",
    "check_size",
    "encoded_view",
    "exif_orientation",
    "build_image_error",
    "flatten_encoded",
    "jpeg2000_header",
    "find_cmyk_marker",
    "jpeg_frame",
    "jpeg_header",
    "jpeg_orientation",
    "png_chunks",
    "png_header",
    "pnm_fields",
    "pnm_header",
    "tiff_header",
    "webp_header",
    "strip_exif",
]


class ImageHeader(NamedTuple):
    """The values in the header of an image file.

    Attributes:
        height: Height of the stored image.
        width: Width of the stored image.
        channels: Number of channels in the output type ANY_DATA, which keeps all channels of the file. A palette image
            has three channels, but a BMP with a gray palette has one. An alpha plane is a channel.
        depth: Bits per channel. For a BMP with 32-bit pixels in bit fields, this is 32.
        orientation: EXIF orientation, 1 to 8.
        frame: Offset of a JPEG's frame header.
    """

    format: str
    height: int
    width: int
    channels: int
    depth: int
    orientation: int = 1
    frame: int = 0

    def size(self, adjust_orientation: bool) -> tuple[int, int]:
        """Return height and width of the upright image, or of the stored image if `adjust_orientation` is False."""
        if adjust_orientation and self.orientation > 4:
            return self.width, self.height
        return self.height, self.width


_DECODED_HINT = "; is it a decoded image? With the proxy, pass loader=str to ImageFolder, so that it returns paths"


def encoded_view(data: Tensor) -> memoryview:
    """Return encoded bytes as a one-dimensional memoryview.

    Raises:
        ValueError: The tensor is not contiguous uint8, or has the shape of an image.
    """
    if data.dtype != torch.uint8 or not data.is_contiguous():
        raise ValueError(f"encoded data must be contiguous uint8, got {data.dtype} with strides {data.stride()}")
    if data.dim() != 1:
        data = flatten_encoded(data)
    return data.numpy().data


def flatten_encoded(data: Tensor) -> Tensor:
    """Return encoded bytes as a one-dimensional tensor.

    Raises:
        ValueError: The tensor has the shape of an image.
    """
    if data.ndim == 3 and data.shape[-1] in (1, 3, 4) and min(data.shape[:2]) > 1:
        raise ValueError(f"encoded data must not have the shape of an image, got {tuple(data.shape)}{_DECODED_HINT}")
    return data.reshape(-1)


def build_image_error(reason: str, format: str, view: memoryview) -> DecodeError:
    """Build an error that states the reason, the detected format and the number of encoded bytes."""
    return DecodeError(f"cannot decode image: {reason} (format {format}, {len(view)} bytes)")


def check_size(height: int, width: int, channels: int, format: str, view: memoryview) -> None:
    """Check the size in a header.

    Raises:
        DecodeError: The image is empty, exceeds the limits, or is too large for the number of encoded bytes.
    """
    values = height * width * channels
    if height <= 0 or width <= 0 or channels <= 0:
        raise build_image_error(f"the image has no pixels ({width} x {height})", format, view)
    if values <= limits.unchecked_values:
        return
    claim = f"the header claims {width} x {height} pixels of {channels} channels, too many"
    if height * width > limits.pixels or values > 4 * limits.pixels:
        limit = f"at most {limits.pixels}: max_pixels of the pipeline, or TORCHDALI_MAX_PIXELS"
        raise build_image_error(f"{claim} ({limit})", format, view)
    if values > FREE_VALUES and values > len(view) * MAX_VALUES_PER_BYTE:
        raise build_image_error(f"{claim} for {len(view)} bytes", format, view)


# Markers of frame headers: SOF0 to SOF15. The codes C4 (DHT), C8 (JPG) and CC (DAC) are other markers.
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SKIPPED_MARKERS = frozenset((0xC4, 0xDB, 0xDD, 0xE0, 0xE2, 0xED, 0xFE))  # segments that are skipped
_EXIF = b"Exif\0\0"


def jpeg_frame(view: memoryview) -> tuple[int, int, int, int, bool, int]:
    """Read a JPEG's markers up to the frame header.

    This function runs before every JPEG is decoded, and takes one or two microseconds for a typical file.

    Returns:
        Height, width, number of components, offset of the EXIF block (0 without EXIF), whether there is an Adobe
        marker, and offset of the frame header.
    """
    position, end, exif, adobe = 2, len(view) - 9, 0, False
    while position < end:
        marker = view[position + 1]
        if view[position] != 0xFF or marker == 0xFF:
            position += 1  # a fill byte, or another byte between segments, which decoders skip, too
            continue
        if marker in _SKIPPED_MARKERS:
            position += 2 + (view[position + 2] << 8 | view[position + 3])
            continue
        if marker in _FRAME_MARKERS:
            if marker & 0b11 == 0b10:  # progressive
                _check_scans(view)
            size = view[position + 5 : position + 10]
            return size[0] << 8 | size[1], size[2] << 8 | size[3], size[4], exif, adobe, position
        if marker == 0xE1:
            if not exif and view[position + 4 : position + 10] == _EXIF:
                exif = position + 10
        elif marker == 0xEE:
            adobe = adobe or bytes(view[position + 4 : position + 9]) == b"Adobe"
        elif marker == 0xDA or marker == 0xD9:
            break
        elif marker <= 0x01 or 0xD0 <= marker <= 0xD8:
            position += 2
            continue
        position += 2 + (view[position + 2] << 8 | view[position + 3])
    raise build_image_error("no frame header before the pixel data or the end", "JPEG", view)


_SCAN = re.compile(b"\xff\xda")
_SCAN_BYTES = 10  # size of the smallest scan, with its header


def _check_scans(view: memoryview) -> None:
    """Reject a progressive JPEG that has too many scans.

    Each scan covers the whole image, so decoding many scans would take too long.

    Raises:
        DecodeError: The JPEG has more scans than the environment variable ``DALI_MAX_JPEG_SCANS`` allows, 256 by
            default.
    """
    if len(view) <= MAX_SCANS * _SCAN_BYTES:
        return
    # Compressed data doesn't contain the bytes FF DA: in compressed data, only 00 or the code of a restart marker
    # follows FF.
    count = sum(1 for _ in itertools.islice(_SCAN.finditer(view), MAX_SCANS + 1))
    if count > MAX_SCANS:
        raise build_image_error(
            f"Error in CPU decoding: The number of scans ({count}) during progressive decoding is over the limit of "
            f"{MAX_SCANS}, which the environment variable DALI_MAX_JPEG_SCANS sets",
            "JPEG",
            view,
        )


def jpeg_header(view: memoryview) -> ImageHeader:
    height, width, channels, exif, _, frame = jpeg_frame(view)
    return ImageHeader("JPEG", height, width, channels, 8, jpeg_orientation(view, exif), frame)


def jpeg_orientation(view: memoryview, exif: int) -> int:
    """Return the EXIF orientation of a JPEG.

    Args:
        exif: Offset of the EXIF block that `jpeg_frame` found, or 0.
    """
    if not exif:
        return 1
    length = view[exif - 8] << 8 | view[exif - 7]
    return exif_orientation(view[exif : exif - 8 + length])


def strip_exif(view: memoryview) -> bytes:
    """Return a copy of a JPEG without its EXIF blocks, so that Pillow doesn't warn about damaged blocks."""
    encoded = bytes(view)
    while exif := jpeg_frame(memoryview(encoded))[3]:
        length = encoded[exif - 8] << 8 | encoded[exif - 7]
        encoded = encoded[: exif - 10] + encoded[exif - 8 + length :]
    return encoded


def exif_orientation(tiff: memoryview) -> int:
    """Return the orientation, 1 to 8, from an EXIF block, which is a small TIFF file; 1 if the block is damaged."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]), "")
    try:
        (offset,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, offset)
        directory = tiff[offset + 2 : offset + 2 + 12 * count]
        if order and len(directory) == 12 * count:
            for tag, orientation in struct.iter_unpack(order + "H6xHxx", directory):
                if tag == 0x0112:  # the field's type is ignored, as in DALI
                    return orientation if 1 <= orientation <= 8 else 1
    except struct.error:
        pass
    return 1


def png_chunks(view: memoryview) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type of each PNG chunk, and the start and length of its data.

    Raises:
        ValueError: The IEND chunk is missing.
    """
    position, kind = 8, b""
    while kind != b"IEND":
        if position + 12 > len(view):
            raise ValueError("the data ends before the image does")
        length, kind = struct.unpack_from(">I4s", view, position)
        yield kind, position + 8, length
        position += 12 + length


def png_header(view: memoryview) -> ImageHeader:
    width, height, depth, color = struct.unpack_from(">IIBB", view, 16)
    if bytes(view[12:16]) != b"IHDR" or color not in _PNG_CHANNELS:
        raise ValueError
    if max(width, height) > _PNG_SIDE:
        raise build_image_error(f"the header claims {width} x {height} pixels, too many on one side", "PNG", view)
    return ImageHeader("PNG", height, width, _PNG_CHANNELS[color], depth, _png_orientation(view))


def _png_orientation(view: memoryview) -> int:
    try:
        for kind, start, length in png_chunks(view):
            if kind == b"eXIf":
                return exif_orientation(view[start : start + length])
    except ValueError:  # the file is truncated, so decoding will raise an error
        pass
    return 1


_PNG_SIDE = 1_000_000  # libpng's limit
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


def bmp_header(view: memoryview) -> ImageHeader:
    (size,) = struct.unpack_from("<I", view, 14)
    if size == 12:  # OS/2: 16-bit width and height, and palette entries of three bytes
        width, height, depth = struct.unpack_from("<HHxxH", view, 18)
        colors, entry = 0, 3
    else:
        width, height, depth, colors = struct.unpack_from("<iixxH16xI", view, 18)
        entry = 4
    if depth > 8:
        has_fields = depth == 32 and view[30] == 3 and any(view[54:66])
        return ImageHeader("BMP", abs(height), width, len(bmp_masks(view) or (0, 0, 0)), 32 if has_fields else 8)
    colors = min(colors, 1 << depth) or 1 << depth
    palette = view[14 + size : 14 + size + colors * entry]
    gray = palette[0::entry] == palette[1::entry] == palette[2::entry]
    return ImageHeader("BMP", abs(height), width, 1 if gray else 3, 8)


def bmp_masks(view: memoryview) -> tuple[int, ...] | None:
    """Return the bit masks of red, green, blue and, if present, alpha.

    Return None if a pixel has neither 16 nor 32 bits.
    """
    (size,) = struct.unpack_from("<I", view, 14)
    depth, compression = struct.unpack_from("<HI", view, 28) if size >= 40 else (0, 0)
    if depth not in (16, 32):
        return None
    if compression in (3, 6):
        has_alpha = size >= 56 or compression == 6
        masks: tuple[int, ...] = struct.unpack_from("<IIII" if has_alpha else "<III", view, 54)
        if any(masks[:3]):
            return masks if all(masks[3:]) else masks[:3]
    return (0x7C00, 0x3E0, 0x1F) if depth == 16 else (0xFF0000, 0xFF00, 0xFF)


def webp_header(view: memoryview) -> ImageHeader:
    kind = bytes(view[12:16])
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", view, 26)
        return ImageHeader("WebP", height & 0x3FFF, width & 0x3FFF, 3, 8)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", view, 21)
        channels = 4 if bits >> 28 & 1 else 3
        return ImageHeader("WebP", (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1, channels, 8)
    if kind != b"VP8X":
        raise ValueError
    flags = view[20]
    width = int.from_bytes(view[24:27], "little") + 1
    height = int.from_bytes(view[27:30], "little") + 1
    channels = 4 if flags & 0x10 else 3
    return ImageHeader("WebP", height, width, channels, 8, _webp_orientation(view) if flags & 8 else 1)


def _webp_orientation(view: memoryview) -> int:
    position = 12
    while position + 8 <= len(view):
        kind, length = struct.unpack_from("<4sI", view, position)
        if kind == b"EXIF":
            block = view[position + 8 : position + 8 + length]
            return exif_orientation(block[6:] if block[:6] == _EXIF else block)
        position += 8 + length + length % 2
    return 1


def jpeg2000_header(view: memoryview) -> ImageHeader:
    start = 0 if view[0] == 0xFF else _find_codestream(view)
    if bytes(view[start : start + 4]) != b"\xff\x4f\xff\x51":
        raise ValueError
    right, bottom, left, top = struct.unpack_from(">IIII", view, start + 8)
    (channels,) = struct.unpack_from(">H", view, start + 40)
    depths = [(view[start + 42 + 3 * i] & 0x7F) + 1 for i in range(channels)]
    return ImageHeader("JPEG 2000", bottom - top, right - left, channels, max(depths))


_COLR = re.compile(rb"colr([\1-\4])..", re.DOTALL)
_CMYK = struct.pack(">I", 12)


def find_cmyk_marker(view: memoryview) -> int | None:
    """Return the offset of the four bytes that declare CMYK colors; None if the image has other colors.

    The bytes are either JP2's number for CMYK, or the name CMYK in a color profile. Only the file's first color
    description is used.
    """
    boxes = bytes(view[: 0 if view[0] == 0xFF else _find_codestream(view)])
    match = _COLR.search(boxes)
    if match is None:
        return None
    offset, name = (match.end(), _CMYK) if match[1] == b"\1" else (match.end() + 16, b"CMYK")
    return offset if boxes[offset : offset + 4] == name else None


def _find_codestream(view: memoryview) -> int:
    position = 0
    while True:
        length, kind = struct.unpack_from(">I4s", view, position)
        header = 8
        if length == 1:
            (length,) = struct.unpack_from(">Q", view, position + 8)
            header = 16
        if kind == b"jp2c":
            return position + header
        if length < header:
            raise ValueError
        position += length


def pnm_header(view: memoryview) -> ImageHeader:
    kind = view[1] - ord("0")
    _, width, height, largest = pnm_fields(view)
    return ImageHeader("PNM", height, width, 3 if kind in (3, 6) else 1, 16 if largest == 65535 else 8)


def pnm_fields(view: memoryview) -> tuple[int, int, int, int]:
    """Return the offset of the pixels, the width, the height and the largest possible value of a PNM file."""
    numbers: list[int] = []
    position, count = 2, 2 if view[1] in b"14" else 3
    while len(numbers) < count:
        if view[position] == ord("#"):
            while view[position] not in b"\r\n":
                position += 1
        elif view[position] in b"0123456789":
            start = position
            while view[position] in b"0123456789":
                position += 1
            numbers.append(int(bytes(view[start : min(position, start + 12)])))
            continue
        elif view[position] not in b" \t\r\n\v\f":
            raise ValueError
        position += 1
    return position + 1, numbers[0], numbers[1], numbers[2] if count == 3 else 1


def tiff_header(view: memoryview) -> ImageHeader:
    from torchdali.codecs._tiff import Directory  # imported late, because the module imports Pillow

    directory = Directory(view)
    width, height = directory.tile
    check_size(height or 1, width or 1, directory.samples, "TIFF", view)
    return ImageHeader(
        "TIFF", directory.height, directory.width, directory.channels, max(directory.depths), directory.orientation
    )
