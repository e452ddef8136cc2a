"""Recognize the format of a file by its first bytes, for errors about files with unexpected content."""

from __future__ import annotations

import os
import re
from typing import Any

__all__ = ["HEAD", "describe_content", "describe_file", "is_compressed", "is_other_format"]

HEAD = 512  # number of bytes that `describe_content` examines

# Each item has a pattern of first bytes, and a description of the format with a remedy. The first match is used.
_COMPRESSED: tuple[tuple[bytes, str], ...] = (
    (rb"\x1f\x8b\x08", "compressed by gzip: decompress it with `gunzip`"),
    (rb"\x28\xb5\x2f\xfd", "compressed by Zstandard: decompress it with `unzstd`"),
    (rb"BZh[1-9]1AY&SY", "compressed by bzip2: decompress it with `bunzip2`"),
    (rb"\xfd7zXZ\0", "compressed by xz: decompress it with `unxz`"),
    (rb"\x04\x22\x4d\x18", "an LZ4 frame: decompress it with `unlz4`"),
    (rb"\x78[\x01\x9c\xda][^\0]", "probably compressed by zlib: decompress it first"),
    (rb"PK(?:\x03\x04|\x05\x06)", "a ZIP archive, like .npz and .pt files: unpack it first"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (rb"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (rb".{257}ustar", "a tar archive: read it with `fn.readers.webdataset`"),
)
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (
        rb"version https://git-lfs\.github\.com/",
        "a Git LFS pointer: fetch the file itself with `git lfs pull`",
    ),
    (rb"[^\n]{0,400}/annex/objects/", "a git-annex pointer: fetch the file itself with `git annex get`"),
    *_COMPRESSED,
    (
        rb"(?i:<!doctype html|<(?:html|head|body)\b)",
        "an HTML page, for example an error or login page of a web server: download the file again",
    ),
    (rb"(?:<\?xml[^>]*>\s*)?<Error\b", "an XML error message of an object store such as S3: download the file again"),
    (rb"(?i:(?:<\?xml[^>]*>\s*)?(?:<!doctype svg[^>]*>\s*)?<svg\b)", "an SVG drawing: convert it to pixels"),
    (rb"<\?xml\b", "XML"),
    (
        rb"ffconcat version|#EXTM3U|v=0\r?\no=|(?i:\[reference\]|<asx\b)",
        "a playlist: read the files that it names instead",
    ),
    (rb"%PDF-", "a PDF document"),
    (rb"\x93NUMPY", "a NumPy array: read it with `fn.readers.numpy`"),
    (rb"\x89HDF\r\n\x1a\n", "HDF5: read it with h5py, in a dataset class for `fn.readers.dataset`"),
    (rb"PAR1[\0-\x1f]", "Parquet: read it with the package `datasets`, and `fn.readers.dataset`"),
    (
        rb"ARROW1\0|\xff\xff\xff\xff[^\0]\S?\0\0\x10\0\0\0",
        "Arrow: read it with the package `datasets`, and `fn.readers.dataset`",
    ),
    (rb"SQLite format 3\0", "a SQLite database"),
    (rb"MATLAB [57]\.", "a MATLAB file"),
    (rb"SIMPLE  =", "FITS: read it with `fn.experimental.readers.fits`"),
    (rb"\x80[\x02-\x05][\x80-\x95(\]}cX]", "a Python pickle"),
    (rb"\xff\xd8\xff", "a JPEG image"),
    (rb"\x89PNG\r\n\x1a\n", "a PNG image"),
    (rb"GIF8[79]a[^/]", "a GIF image"),
    (rb"RIFF.{4}WEBP", "a WebP image"),
    (rb"(?:II\*\0|MM\0\*|II\+\0|MM\0\+)", "a TIFF image"),
    (rb"\0.{3}ftyp(?:avi[fs]|hei[cfsmx]|mif1|msf1)", "an AVIF or HEIF image"),
    (rb"\0\0\0\x0cjP  \r\n|\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (rb"BM.{4}\0\0\0\0", "a BMP image"),
    (rb"P[1-6]\n(?:#[^\n]*\n)*\d+\s+\d+\s", "a PNM image"),
    (rb"(?:RIFF|RIFX|RF64).{4}WAVE", "a sound, WAV"),
    (rb"fLaC[\0\x80]", "a sound, FLAC"),
    (rb"OggS\0", "Ogg, audio or video"),
    (rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xeb]", "a sound, MP3"),
    (rb"\xff[\xf0\xf1\xf8\xf9][^\0]", "a sound, AAC (ADTS)"),
    (rb"FORM.{4}AIF[CF]", "a sound, AIFF"),
    (rb"\.snd\0", "a sound, AU"),
    (rb"riff\x2e\x91\xcf\x11", "a sound, W64"),
    (rb"caff\0", "a sound, CAF"),
    (rb"#!AMR", "a sound, AMR"),
    (rb"\x0b\x77.{2}[^\0]", "a sound, AC-3"),
    (rb"\0.{3}ftypM4[AB] ", "a sound, M4A"),
    (rb"RIFF.{4}AVI ", "a video, AVI"),
    (rb"\0.{3}ftyp", "MP4, a video or a sound"),
    (rb"\x1a\x45\xdf\xa3", "Matroska or WebM, video or audio"),
    (rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "ASF, a video or a sound (WMA)"),
    (rb"FLV\x01", "a video, FLV"),
    (rb"(?:\xff\xfe|\xfe\xff)(?!\0\0)", "UTF-16: save it as UTF-8"),
)


def _pattern(signatures: tuple[tuple[bytes, str], ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(b"(%s)" % pattern for pattern, _ in signatures), re.DOTALL)


_PATTERN, _COMPRESSED_PATTERN = _pattern(_SIGNATURES), _pattern(_COMPRESSED)
_MAX_SHOWN = 40  # maximum number of characters of a text that are shown


def describe_content(data: Any, expected: str = "") -> str:
    """Describe the content of a file that does not have the expected format.

    Args:
        data: The file, or at least its first `HEAD` bytes: any object with the buffer protocol.
        expected: The expected content ("image", "sound", "video" ...). If the file has this content, the result is
            empty.

    Returns:
        The end of a message: ``"; it is ..."``. Empty if the bytes are unknown.
    """
    head = bytes(memoryview(data)[:HEAD])
    description = _identify(head)
    return f"; it {description}" if description and not (expected and expected in description.partition(":")[0]) else ""


def _identify(head: bytes) -> str:
    match = _PATTERN.match(head.lstrip(b"\xef\xbb\xbf \t\r\n") or head)
    if match is not None:
        return f"is {_SIGNATURES[(match.lastindex or 1) - 1][1]}"
    if not head:
        return "is empty"
    if not head.strip(b"\0"):
        return "begins with zeros, which an interrupted download or copy leaves"
    text = head.decode("utf-8", "ignore")
    if len(text.encode()) < len(head) - 3 or not all(c.isprintable() or c in "\t\n\r\f\ufeff" for c in text):
        return ""
    text = text.lstrip("\ufeff").strip()
    return f"is {'JSON' if text.startswith(('{', '[')) else 'text'}: {text[:_MAX_SHOWN]!r}"


def describe_file(path: str, expected: str = "") -> str:
    """Describe the content of a file on disk; see `describe_content`.

    The result is empty if the path isn't a readable, regular file.
    """
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return describe_content(file.read(HEAD), expected)
    except (OSError, ValueError):
        return ""


def is_compressed(head: bytes) -> bool:
    """Return whether the first bytes of a file show that the file is compressed or an archive."""
    return _COMPRESSED_PATTERN.match(head) is not None


def is_other_format(head: bytes, expected: str) -> bool:
    """Return whether a file's first bytes match a known format whose description does not contain `expected`."""
    match = _PATTERN.match(head)
    return match is not None and expected not in _SIGNATURES[(match.lastindex or 1) - 1][1]
