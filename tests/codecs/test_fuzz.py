"""Damaged images of every format: pixels or a `DecodeError`, the same in every decoder, and no more memory than the header states."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.helpers.encoded_images import encoded, smooth_image, tensor
from tests.helpers.inside import memory_before
from torchdali.codecs.image_crops import decode_crop, decode_upper
from torchdali.codecs.images import decode, peek_shape
from torchdali.errors import DecodeError, MissingExtraError

COUNT = 1500
PICTURE = smooth_image(56, 72)
SEEDS: dict[str, list[bytes]] = {
    "JPEG": [
        encoded(PICTURE, "JPEG", **options)
        for options in ({}, {"progressive": True}, {"restart_marker_rows": 1}, {"subsampling": 0})
    ],
    "PNG": [
        encoded(Image.fromarray(PICTURE).convert(mode), "PNG") for mode in ("RGB", "P", "RGBA", "1")
    ],
    "BMP": [encoded(Image.fromarray(PICTURE).convert(mode), "BMP") for mode in ("RGB", "P", "1")],
    "WebP": [encoded(PICTURE, "WEBP", lossless=lossless) for lossless in (False, True)],
    "TIFF": [
        encoded(PICTURE, "TIFF", compression=kind)
        for kind in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "jpeg")
    ],
    "JPEG 2000": [encoded(PICTURE, "JPEG2000", irreversible=lossy) for lossy in (False, True)],
    "PNM": [encoded(PICTURE, "PPM"), encoded(PICTURE[:, :, 0].copy(), "PPM")],
}

Change = Callable[[random.Random, bytearray, int], None]


def _flip(chance: random.Random, data: bytearray, position: int) -> None:
    data[position] ^= 1 << chance.randrange(8)


def _overwrite(chance: random.Random, data: bytearray, position: int) -> None:
    new = chance.choice(
        [b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff", b"\xff\xda", b"\xff\xd9"]
    )
    data[position : position + len(new)] = new


def _cut(chance: random.Random, data: bytearray, position: int) -> None:
    del data[max(16, position) :]


def _remove(chance: random.Random, data: bytearray, position: int) -> None:
    del data[position : position + chance.randrange(1, 30)]


def _repeat(chance: random.Random, data: bytearray, position: int) -> None:
    data[position:position] = data[position : position + chance.randrange(1, 100)]


CHANGES: list[Change] = [_flip, _flip, _overwrite, _cut, _remove, _repeat]


def damaged(seeds: list[bytes], name: str) -> Iterator[bytes]:
    """Change each file in one to four places, more often in its first bytes."""
    chance = random.Random(name)
    for number in range(COUNT):
        data = bytearray(seeds[number % len(seeds)])
        for _ in range(chance.randrange(1, 5)):
            end = min(len(data), chance.choice([64, 300, 1 << 20]))
            chance.choice(CHANGES)(chance, data, chance.randrange(end))
        if chance.random() < 0.3 and name == "JPEG":
            data += b"\xff\xd9"
        yield bytes(data)


def _tried(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except (DecodeError, MissingExtraError):
        return None


def _check(data: Tensor) -> bool:
    """Decode by every function, into memory filled with one color and another; return whether pixels were returned."""
    shape = _tried(peek_shape, data)
    if shape is None or shape[0] * shape[1] > 1 << 22:
        return False
    found = []
    for poison in (0x11, 0xEE):
        with memory_before(poison):
            upper = _tried(decode_upper, data, shape[0])
        found.append(None if upper is None else upper[: shape[0]].clone())
    whole = _tried(decode, data)
    assert (whole is None) == (found[0] is None) == (found[1] is None)
    if whole is None:
        return False
    assert torch.equal(found[0], whole) and torch.equal(found[1], whole)
    height, width = shape[0] // 2 + 1, shape[1] // 2 + 1
    crop = _tried(decode_crop, data, 0, 0, height, width)
    assert crop is not None and torch.equal(crop, whole[:height, :width])
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_images(name: str) -> None:
    for seed in SEEDS[name]:
        decode(tensor(seed))
    before, decoded = _peak(), 0
    for data in damaged(SEEDS[name], name):
        decoded += _check(tensor(data))
    assert 0 < decoded < COUNT
    assert _peak() - before < 512 << 20, "more memory than any of these images may claim"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
