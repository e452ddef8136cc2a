"""Run-length encoding of BMP: against a decoder of single commands, against Pillow, and truncated files."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from torchdali.codecs import images
from torchdali.errors import DecodeError

PALETTE = np.array([(i * 16 % 256, 255 - i, i * 7 % 256) for i in range(256)], np.uint8)
Array = np.ndarray[Any, Any]


def bmp(body: bytes, shape: tuple[int, int], bits: int, palette: Array = PALETTE, size: int = 40, gap: int = 0, compression: int = 0) -> bytes:
    """Write a run-length encoded BMP, with a header of `size` bytes, and `gap` bytes before the runs."""
    colors = min(len(palette), 1 << bits)
    start = 14 + size + 4 * colors + gap
    head = b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start)
    height, width = shape
    fields = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression or (1 if bits == 8 else 2), len(body), 0, 0, colors, colors)
    entries = np.pad(palette[:colors, ::-1], [(0, 0), (0, 1)]).tobytes()
    return head + fields.ljust(size, b"\0") + entries + bytes(gap) + body


def decoded(data: bytes, output_type: str = "RGB") -> Array:
    return images.decode(torch.frombuffer(bytearray(data), dtype=torch.uint8), output_type=output_type).numpy()


def one_by_one(body: bytes, shape: tuple[int, int], bits: int) -> Array | None:
    """Return the indices, pixel by pixel; None if the data ends before the image does."""
    height, width = shape
    rows, x, y, at = np.zeros(shape, np.uint8), 0, 0, 0

    def put(value: int) -> None:
        nonlocal x
        if x < width:
            rows[y, x] = value
            x += 1

    while y < height:
        if at + 2 > len(body):
            return rows[::-1] if (y, x) == (height - 1, width) else None
        count, what = body[at], body[at + 1]
        at += 2
        if count:
            for i in range(count):
                put(what if bits == 8 else (what >> 4, what & 15)[i % 2])
        elif what == 0:
            x, y = 0, y + 1
        elif what == 1:
            break
        elif what == 2:
            if at + 2 > len(body):
                return None
            x, y, at = min(x + body[at], width), y + body[at + 1], at + 2
        else:
            used = what if bits == 8 else (what + 1) // 2
            if at + used > len(body):
                return None
            for i in range(what):
                put(body[at + i] if bits == 8 else (body[at + i // 2] >> 4, body[at + i // 2] & 15)[i % 2])
            at += used + used % 2
    return rows[::-1]


END, ROW = b"\0\1", b"\0\0"
# bits, height, width, commands; indices of the rows from the bottom, or None: rejected
CASES: dict[str, tuple[int, int, int, bytes, list[list[int]] | None]] = {
    "a run beyond the row": (8, 2, 3, b"\5\7" + ROW + b"\3\1" + ROW + END, [[7, 7, 7], [1, 1, 1]]),
    "runs behind a full row": (8, 2, 3, b"\3\7\2\6\1\5" + ROW + b"\3\1" + END, [[7, 7, 7], [1, 1, 1]]),
    "indices beyond the row": (8, 2, 3, b"\0\5\1\2\3\4\5\0" + ROW + b"\3\1" + END, [[1, 2, 3], [1, 1, 1]]),
    "a short row": (8, 2, 3, b"\1\7" + ROW + b"\3\1" + END, [[7, 0, 0], [1, 1, 1]]),
    "an empty row": (8, 3, 3, b"\3\7" + ROW + ROW + b"\3\1" + END, [[7, 7, 7], [0, 0, 0], [1, 1, 1]]),
    "an early end": (8, 3, 3, b"\2\7" + END, [[7, 7, 0], [0, 0, 0], [0, 0, 0]]),
    "no end": (8, 2, 3, b"\3\7" + ROW + b"\3\1", [[7, 7, 7], [1, 1, 1]]),
    "no end, but that of the row": (8, 2, 3, b"\3\7" + ROW + b"\2\1" + ROW, [[7, 7, 7], [1, 1, 0]]),
    "half a command behind the end of the row": (8, 1, 3, b"\3\7\0", [[7, 7, 7]]),
    "indices without their padding": (8, 1, 3, b"\0\3\1\2\3", [[1, 2, 3]]),
    "a jump to the right": (8, 1, 5, b"\1\7\0\2\2\0\2\1" + END, [[7, 0, 0, 1, 1]]),
    "a jump up": (8, 3, 4, b"\2\7\0\2\0\2\2\1" + END, [[7, 7, 0, 0], [0] * 4, [0, 0, 1, 1]]),
    "a jump beyond the row": (8, 2, 3, b"\1\7\0\2\xff\0\2\1" + ROW + b"\3\1" + END, [[7, 0, 0], [1, 1, 1]]),
    "a jump beyond the image": (8, 2, 3, b"\1\7\0\2\0\xff\2\1" + END, [[7, 0, 0], [0, 0, 0]]),
    "rows beyond the image": (8, 1, 3, b"\3\7" + ROW + b"\3\1" + ROW + b"\3\1", [[7, 7, 7]]),
    "4 bits": (4, 2, 5, b"\5\x12" + ROW + b"\2\x34\3\x50" + END, [[1, 2, 1, 2, 1], [3, 4, 5, 0, 5]]),
    "4 bits beyond the row": (4, 2, 3, b"\6\x12" + ROW + b"\0\5\x12\x34\x50\0" + END, [[1, 2, 1], [1, 2, 3]]),
    "4 bits, an odd count of indices": (4, 1, 5, b"\0\3\x12\x3f\2\x45" + END, [[1, 2, 3, 4, 5]]),
    "4 bits and a jump": (4, 5, 5, b"\5\x11" + ROW + b"\0\2\0\3\5\x11" + END, [[1] * 5, [0] * 5, [0] * 5, [0] * 5, [1] * 5]),
    "cut in the middle": (8, 2, 3, b"\3\7" + ROW, None),
    "cut in the last row": (8, 2, 3, b"\3\7" + ROW + b"\2\1", None),
    "cut indices": (8, 1, 4, b"\0\4\1\2\3", None),
    "a cut jump": (8, 2, 4, b"\3\7\0\2\1", None),
    "no runs": (8, 2, 4, b"", None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_run_lengths(case: str) -> None:
    bits, height, width, body, rows = CASES[case]
    data = bmp(body, (height, width), bits)
    if rows is None:
        with pytest.raises(DecodeError, match="run lengths end before the image does"):
            decoded(data)
    else:
        np.testing.assert_array_equal(decoded(data), PALETTE[rows[::-1]])


def commands(rng: np.random.Generator, bits: int, damage: int) -> bytes:
    """Write random commands; some files have changed bytes or are truncated."""
    body = b""
    for _ in range(rng.integers(1, 40)):
        kind, count = rng.integers(0, 10), int(rng.integers(3, 12))
        used = count if bits == 8 else (count + 1) // 2
        body += {0: ROW, 1: ROW, 2: b"\0\2" + rng.bytes(1)[:1] + b"\0", 3: b"\0\2\1\1"}.get(
            int(kind), b"\0" + bytes([count]) + rng.bytes(used + used % 2) if kind < 7 else bytes([count]) + rng.bytes(1)
        )
    changed = bytearray(body + END * int(rng.integers(0, 2)))
    for _ in range(damage):
        changed[rng.integers(len(changed))] = rng.choice([0, 1, 2, 3, 255, rng.integers(256)])
    return bytes(changed[: rng.integers(len(changed))] if damage and rng.integers(2) else changed)


@pytest.mark.thin(3)
@pytest.mark.parametrize("damage", [0, 3])
@pytest.mark.parametrize("bits", [4, 8])
def test_results_match_a_decoder_of_single_commands(bits: int, damage: int) -> None:
    rng, refused = np.random.default_rng(bits + damage), 0
    for _ in range(300):
        shape = (int(rng.integers(1, 8)), int(rng.integers(1, 30)))
        body = commands(rng, bits, damage)
        wanted = one_by_one(body, shape, bits)
        if wanted is None:
            refused += 1
            with pytest.raises(DecodeError):
                decoded(bmp(body, shape, bits))
        else:
            np.testing.assert_array_equal(decoded(bmp(body, shape, bits)), PALETTE[wanted])
    assert 10 < refused < 290


@pytest.mark.parametrize("room", [0, 1, 3])
@pytest.mark.parametrize("bits", [4, 8])
def test_results_match_pillow(bits: int, room: int) -> None:
    """Rows of runs and indices, padded as some tools do: the result matches Pillow.

    Pillow 12.0 and older read an odd number of indices of four bits wrongly: only even ones here.
    """
    rng = np.random.default_rng(bits)
    for width in (1, 2, 7, 70, 300):
        body = b""
        for _ in range(9):
            left = width
            while left > 3:
                count = int(rng.integers(3, min(left, 12) + 1))
                if bits == 4:
                    count = max(count - count % 2, 4)
                used = count * bits // 8
                is_run = rng.integers(2)
                body += bytes([count]) + rng.bytes(1) if is_run else b"\0" + bytes([count]) + rng.bytes(used + used % 2)
                left -= count
            body += (bytes([left + room]) + rng.bytes(1) if left + room else b"") + ROW
        data = bmp(body + END, (9, width), bits, gap=2 * room)
        wanted = np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB"))
        np.testing.assert_array_equal(decoded(data), wanted)


GRAYS = np.repeat(np.arange(256, dtype=np.uint8)[::-1, None], 3, 1)


def test_gray_palettes_have_one_channel() -> None:
    data = bmp(b"\2\7\1\5" + END, (1, 3), 8, GRAYS)
    assert decoded(data, "ANY_DATA").tolist() == [[[248], [248], [250]]]


@pytest.mark.parametrize("size, gap", [(40, 0), (40, 3), (64, 0), (108, 1), (124, 0)])
def test_headers_and_short_palettes(size: int, gap: int) -> None:
    """Indices beyond the palette are black."""
    data = bmp(b"\0\3\0\1\2\0\1\x09" + END, (1, 4), 8, PALETTE[:3], size, gap)
    assert decoded(data).tolist() == [[*PALETTE[:3].tolist(), [0, 0, 0]]]


def test_rows_from_the_top() -> None:
    data = bmp(b"\2\7" + ROW + b"\2\5" + END, (-2, 2), 8)
    np.testing.assert_array_equal(decoded(data), PALETTE[[[7, 7], [5, 5]]])


@pytest.mark.parametrize("bits, compression", [(4, 1), (8, 2), (1, 1)])
def test_run_lengths_of_other_bits(bits: int, compression: int) -> None:
    with pytest.raises(DecodeError, match=r"must have [48] bits per pixel, got [148]"):
        decoded(bmp(b"\2\7" + END, (1, 2), bits, compression=compression))


def test_a_short_file_allocates_no_more_than_its_pixels() -> None:
    body = b"\xff\7" * 100_000 + END  # 25 million pixels in a row of ten
    assert decoded(bmp(body, (1, 10), 8)).shape == (1, 10, 3)
