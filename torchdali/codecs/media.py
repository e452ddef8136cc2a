"""Open videos and audio files safely with FFmpeg (PyAV).

FFmpeg supports formats that refer to other files, hosts and devices: playlists, session descriptions, image sequences.
This module therefore passes FFmpeg a list of allowed formats, and an open file without a name, so that FFmpeg itself
opens nothing. The other modules of this package use FFmpeg only through this module.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import stat
import struct
from typing import Any, NoReturn

from torch import Tensor

from torchdali.codecs.signatures import HEAD, describe_content, describe_file, is_compressed
from torchdali.errors import DecodeError, MissingExtraError
from torchdali.kernels.limits import FREE_VALUES, MAX_VALUES_PER_BYTE, limits

__all__ = [
    "FORMATS",
    "Media",
    "check_frame",
    "decoding_options",
    "build_media_error",
    "media_errors",
    "open_media",
    "pyav",
]

FORMATS = (
    "mov", "mp4", "m4a", "3gp", "3g2", "mj2", "matroska", "webm", "avi", "asf", "flv", "ogg", "nut", "mxf", "gxf", "rm",
    "wtv", "dv", "mpegts", "mpeg", "mpegvideo", "m4v", "h261", "h263", "h264", "hevc", "vvc", "obu", "av1", "ivf",
    "vc1", "vc1test", "cavsvideo", "dirac", "dnxhd", "mjpeg", "yuv4mpegpipe", "gif", "apng", "aac", "ac3", "eac3",
    "amr",
)  # fmt: skip
"""FFmpeg's names of the allowed formats; files of these formats don't need other files."""

_OPEN_OPTIONS = {"format_whitelist": ",".join(FORMATS), "protocol_whitelist": "", "enable_drefs": "0"}
_MAX_PIXELS, _FREE_PIXELS, _PIXELS_PER_BYTE = (1 << 30) // 3, FREE_VALUES // 3, MAX_VALUES_PER_BYTE // 3  # pixels


def pyav(purpose: str) -> Any:
    """Import and return the module of PyAV.

    Raises:
        MissingExtraError: PyAV is not installed.
    """
    try:
        return importlib.import_module("av")
    except ImportError:
        raise MissingExtraError("av", "video", purpose) from None


def media_errors(av: Any) -> tuple[type[Exception], ...]:
    """Return the exception classes that are raised if a video or audio file cannot be read."""
    return av.FFmpegError, ValueError, MemoryError, OverflowError, OSError, IndexError


class Media:
    """An open container of PyAV, and the file that PyAV reads from."""

    def __init__(self, container: Any, file: io.FileIO | io.BytesIO) -> None:
        self.container, self._file = container, file

    def __enter__(self) -> Any:
        return self.container

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.container.close()
        self._file.close()


def open_media(av: Any, source: str | Tensor) -> Media:
    """Open a video or audio file.

    Args:
        source: Path of the file, or its content ``(n,)`` uint8.

    Raises:
        Exception: The file cannot be opened; `media_errors` returns the classes of this exception.
    """
    file = _UnnamedFile(source) if isinstance(source, str) else io.BytesIO(source.numpy().data)
    try:
        return Media(_open_container(av, file, decoding_options(source)), file)
    except BaseException:
        file.close()
        raise


_BOXES = (b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx", b"uuid")
_COUNT_FIELDS = re.compile(rb"(?:stsz.{4}.{4}|trun.{4})(.{4})", re.DOTALL)


def _check_counts(file: io.FileIO | io.BytesIO) -> None:
    """Raise ValueError if an MP4 file claims more samples than it has bytes.

    FFmpeg would allocate memory for all samples.
    """
    size, offset = file.seek(0, os.SEEK_END), 0
    while offset + 8 <= size:
        file.seek(offset)
        length, name = struct.unpack(">I4s", file.read(8))
        if name not in _BOXES:
            return
        if length == 1:
            length = int.from_bytes(file.read(8), "big")
        if name in (b"moov", b"moof"):
            for count in _COUNT_FIELDS.findall(file.read(min(length, size) or size)):
                if int.from_bytes(count, "big") > size:
                    raise ValueError(f"the file claims {int.from_bytes(count, 'big')} samples in {size} bytes")
        offset += max(length, 8) if length else size


def _open_container(av: Any, file: io.FileIO | io.BytesIO, options: dict[str, str]) -> Any:
    # FFmpeg mistakes one in some thousand gzip files for a raw H.263 stream, depending on the time in the gzip header.
    if is_compressed(file.read(HEAD)):
        raise ValueError("the file is neither video nor audio")
    _check_counts(file)
    file.seek(0)
    try:
        return av.open(file, options=options, container_options=_OPEN_OPTIONS, io_open=_reject_url)
    except av.error.ArgumentError:
        raise ValueError(
            "unsupported container format; supported formats include MP4, Matroska, WebM and AVI"
        ) from None


class _UnnamedFile(io.FileIO):
    """A regular file whose name is hidden from FFmpeg."""

    def __init__(self, path: str) -> None:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("must be a regular file")
        super().__init__(path)
        self.name = "media"

    def __del__(self) -> None:
        self.close()


def _reject_url(url: str, *rest: Any) -> NoReturn:
    raise ValueError(f"the file must not refer to another file, got {url!r}")


def decoding_options(source: str | Tensor) -> dict[str, str]:
    """Return options that make FFmpeg reject too large frames before it allocates memory for the frames.

    FFmpeg's limit is approximate, because FFmpeg also counts padding. `check_frame` is exact.
    """
    return {"max_pixels": str(2 * _max_pixels(source) + (1 << 16))}


def check_frame(width: int, height: int, source: str | Tensor) -> None:
    """Check the size of frames.

    Raises:
        ValueError: The frames are empty, exceed the limits, or are too large for the number of bytes in the file.
    """
    if not width * height:
        raise ValueError(f"frames must have a positive width and height, got {width} x {height}")
    if width * height > min(_FREE_PIXELS, limits.pixels) and width * height > (limit := _max_pixels(source)):
        raise ValueError(
            f"frames must have at most {limit} pixels, got {width} x {height}. The limit is max_pixels of the "
            f"pipeline, or TORCHDALI_MAX_PIXELS; above {_FREE_PIXELS} pixels, also {_PIXELS_PER_BYTE} pixels per byte "
            "of the file"
        )


def _max_pixels(source: str | Tensor) -> int:
    size = os.path.getsize(source) if isinstance(source, str) else source.numel()
    return min(limits.pixels, _MAX_PIXELS, max(_FREE_PIXELS, _PIXELS_PER_BYTE * size))


def build_media_error(source: str | Tensor, error: Exception, kind: str, name: str = "") -> DecodeError:
    """Build the error for a video or audio file that cannot be read.

    Args:
        source: Path of the file, or its content ``(n,)`` uint8.
        error: The exception.
        kind: Expected content, "video" or "sound".
        name: Name of the content in the message, if `source` isn't a path.
    """
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, IndexError):
        reason = "a second stream begins in the middle of the file, which PyAV can't decode"
    content = describe_file(source, kind) if isinstance(source, str) else describe_content(source.numpy(), kind)
    return DecodeError(f"{source if isinstance(source, str) else name or kind}: {reason}{content}")
