"""Large PNGs, decoded in strips: the pixels, and the errors, of whole ones."""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.encoded_images import encoded, png, tensor
from torchdali.codecs import _png_strips, images
from torchdali.errors import DecodeError

pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")

HEIGHT, WIDTH = 23, 17
CHANNELS = {0: 1, 2: 3, 6: 4}  # by type of color


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I4s", len(data), kind) + data + struct.pack(">I", zlib.crc32(kind + data))


FOUR_BITS = (
    b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 4, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(9 * (1 + 5)))) + chunk(b"IEND", b"")
)  # fmt: skip


def filtered(values: Any, line: int, step: int) -> bytes:
    """Return the rows of a PNG with its five filters in turn; `step` is the bytes of a pixel."""
    rows = np.pad(values.reshape(-1, line).astype(np.int16), ((1, 0), (step, 0)))
    parts = []
    for y in range(1, len(rows)):
        row, up = rows[y, step:], rows[y - 1, step:]
        left, corner = rows[y, :-step], rows[y - 1, :-step]
        far = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
        paeth = np.choose(np.argmin(far, axis=0), [left, up, corner])
        kind = y * 2 % 5
        guess = [0, left, up, (left + up) // 2, paeth][kind]
        parts.append(bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes())
    return b"".join(parts)


def made(color: int, depth: int, sizes: tuple[int, ...]) -> tuple[bytes, Any]:
    """Return a PNG whose data lies in chunks of these sizes, and its values."""
    shape = (HEIGHT, WIDTH, CHANNELS[color])
    values = np.random.default_rng(color).integers(0, 1 << depth, shape).astype(f">u{depth // 8}")
    line = values[0].nbytes
    rest = zlib.compress(filtered(values.view(np.uint8), line, line // WIDTH))
    parts = []
    for size in itertools.cycle(sizes):
        parts.append(chunk(b"IDAT", rest[:size]))
        rest = rest[size:]
        if not rest:
            return with_data(color, depth, *parts), values


def with_data(color: int, depth: int, *chunks: bytes) -> bytes:
    """Return a PNG with these chunks of data."""
    whole = png(np.zeros((HEIGHT, WIDTH, CHANNELS[color])), color, depth)
    return b"".join([whole[:33], *chunks, whole[-12:]])


@pytest.fixture
def strips(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Decode all in strips of 200 bytes; the list of what came of it."""
    results: list[Any] = []
    real = _png_strips.decode_png_in_strips

    def noted(*arguments: Any) -> Any:
        results.append(real(*arguments))
        return results[-1]

    monkeypatch.setattr("torchdali.codecs._image_formats.decode_png_in_strips", noted)
    monkeypatch.setattr(_png_strips, "_LARGE", 1)
    monkeypatch.setattr(_png_strips, "_STRIP", 200)
    return results


@pytest.mark.parametrize("color", CHANNELS)
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("sizes", [(1 << 20,), (1, 5, 100)])
def test_strips_have_the_pixels_of_the_file(strips: list[Any], color: int, depth: int, sizes: tuple[int, ...]) -> None:
    data, values = made(color, depth, sizes)
    dtype = torch.uint8 if depth == 8 else torch.uint16
    for kind in ("RGB", "GRAY", "ANY_DATA"):
        found = images.decode(tensor(data), output_type=kind, dtype=dtype)
        assert strips[-1] is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_png_strips, "_LARGE", 1 << 40)
            assert torch.equal(found, images.decode(tensor(data), output_type=kind, dtype=dtype))
    assert np.array_equal(found.numpy(), values)


@pytest.mark.parametrize(
    "data",
    [
        encoded(np.zeros((9, 9), bool), "PNG"),
        FOUR_BITS,
        encoded(Image.fromarray(np.zeros((9, 9), np.uint8)).convert("P"), "PNG"),
        png(np.zeros((9, 9, 2), np.uint8), 4, 8),
        png(np.zeros((9, 9, 3), np.uint8), 2, 8, extra=chunk(b"PLTE", bytes(6))),
    ],
)
def test_other_kinds_are_left_to_others(strips: list[Any], data: bytes) -> None:
    assert images.decode(tensor(data)).shape == (9, 9, 3)
    assert [result is None for result in strips] == [True]


@pytest.mark.parametrize("change", ["filter", "short", "long", "check", "cut", "trailing"])
def test_damaged_streams_are_judged_as_whole_ones(strips: list[Any], change: str, capfd: Any) -> None:
    values = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH))
    rows = bytearray(filtered(values, WIDTH, 1))
    if change == "filter":
        rows[15 * (WIDTH + 1)] = 9
    elif change == "short":
        del rows[-WIDTH - 1 :]
    elif change == "long":
        rows += bytes(WIDTH + 1)
    stream = bytearray(zlib.compress(rows))
    if change == "check":
        stream[-1] ^= 1
    elif change == "cut":
        del stream[-9:]
    elif change == "trailing":
        stream += b"abc"
    data = with_data(0, 8, chunk(b"IDAT", bytes(stream)))
    assert outcome(data) == outcome(data, whole=True)
    assert (strips[0] is None) == (change != "trailing")


def outcome(data: bytes, whole: bool = False) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if whole:
            patch.setattr(_png_strips, "_LARGE", 1 << 40)
        try:
            return images.decode(tensor(data), output_type="ANY_DATA").numpy().tobytes()
        except DecodeError as error:
            return str(error)


@pytest.mark.parametrize("color", CHANNELS)
def test_mutants_are_judged_as_whole_ones(strips: list[Any], color: int, capfd: Any) -> None:
    chance = random.Random(color)
    _, values = made(color, 8, (1 << 20,))
    rows = filtered(values, WIDTH * CHANNELS[color], CHANNELS[color])
    for _ in range(60):
        broken = bytearray(zlib.compress(rows, 0) if chance.random() < 0.7 else zlib.compress(rows))
        for _ in range(chance.randrange(1, 4)):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        mutant = with_data(color, 8, chunk(b"IDAT", bytes(broken)))
        assert outcome(mutant) == outcome(mutant, whole=True)
