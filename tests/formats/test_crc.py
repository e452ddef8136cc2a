"""CRC-32C against a bit by bit reference and published values."""

from __future__ import annotations

import numpy as np
import pytest

from torchdali.formats.crc import crc32c, crc32c_by_numpy, masked_crc32c


def reference(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# RFC 3720, B.4, and the usual check value.
KNOWN = [
    (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E), (b"", 0),
]  # fmt: skip


@pytest.mark.parametrize(("data", "crc"), KNOWN)
def test_published_values(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc32c_by_numpy(data) == crc


@pytest.mark.parametrize("size", [1, 63, 1023, 1024, 1025, 4096, 5000, 9999])
def test_sizes(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert crc32c(data) == crc32c_by_numpy(data) == reference(data.tobytes())


def test_mask() -> None:
    crc = crc32c(b"abc")
    assert masked_crc32c(b"abc") == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
