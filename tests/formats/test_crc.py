"""Checksums of TFRecord: published values, the mask, and the behavior without the package."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from torchdali import fn
from torchdali.errors import MissingExtraError
from torchdali.formats import tfrecord
from torchdali.tfrecord import FixedLenFeature, string

# RFC 3720, B.4, and the common check value.
KNOWN = [
    (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E), (b"", 0),
]  # fmt: skip


@pytest.mark.parametrize(("data", "crc"), KNOWN)
def test_published_values(data: bytes, crc: int) -> None:
    pytest.importorskip("google_crc32c")
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
    assert tfrecord.masked_crc32c(data) == tfrecord.masked_crc32c(np.frombuffer(data, np.uint8)) == masked


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(MissingExtraError, match="verifying the checksums of TFRecord files needs the package 'google-crc32c'"):
        tfrecord.write_record(io.BytesIO(), b"abc")
    with pytest.raises(MissingExtraError):
        fn.readers.tfrecord.implementation(path=["none"], features={"image": FixedLenFeature((), string, "")}, verify=True)
