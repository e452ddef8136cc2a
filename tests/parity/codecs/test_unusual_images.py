"""Unusual images against the real DALI: equal pixels if DALI decodes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.encoded_images import RGB, tiff
from tests.helpers.unusual_images import UNUSUAL
from tests.parity.codecs.test_images import Job, differences, written

pytestmark = pytest.mark.parity

# Errors of DALI, and why torchdali does not reproduce them; output types, or all of them.
DALI_ERRORS = {
    "tiff planes": "it reads planes of more than 8 bits as if their samples were interleaved",
    "tiff of 10 bits, big endian": "planes",
    "tiff tiles of planes": "planes",
    "bigtiff planes": "planes",
    "tiff planes and alpha": "it multiplies colors by alpha, as it does in no file without planes",
    "header of 40": "bit fields of 32 bits: it takes bytes for blue, green and red whatever the masks are",
}

# One level off: DALI converts 10 to 14 bits to gray before it stretches them, and some files by another library.
GRAY = ("of 10 bits", "of 12 bits", "of 14 bits", "inks", "YCbCr", "old JPEG", "png animation")


def _is_compared(name: str, kind: str) -> bool:
    if kind == "GRAY" and any(part in name for part in GRAY):
        return False
    return not any(part in name for part in DALI_ERRORS)


def test_unusual_images(tmp_path: Path) -> None:
    for library in ("tifffile", "imagecodecs"):
        pytest.importorskip(library, reason=f"needs {library}: install the extra 'tiff'")
    made = {name: data for name, (data, _) in UNUSUAL.items()} | {"tiff Lab": tiff(RGB, 8), "Lab, deflated": tiff(RGB, 8, deflate=True)}
    paths = written(made, tmp_path)
    jobs = [
        Job(path, kind, dtype)
        for name, path in paths.items()
        for kind in ("RGB", "GRAY", "ANY_DATA")
        for dtype in ("UINT8", "UINT16", "FLOAT")
        if _is_compared(name, kind)
    ]
    assert differences(jobs, tmp_path) == []
