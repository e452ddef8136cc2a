"""Damaged JPEGs: results contain no pixel of an earlier image, in any decoder."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.encoded_images import encoded, smooth_image, tensor
from tests.helpers.inside import memory_before
from torchdali import fn, pipeline_def
from torchdali.codecs.image_crops import decode_crop, decode_scaled_crop, decode_upper
from torchdali.codecs.images import decode
from torchdali.errors import DecodeError

HEIGHT, WIDTH = 64, 72
SOUND = {
    "sequential": encoded(smooth_image(HEIGHT, WIDTH), "JPEG"),
    "progressive": encoded(smooth_image(HEIGHT, WIDTH), "JPEG", progressive=True),
    "restarts": encoded(smooth_image(HEIGHT, WIDTH), "JPEG", restart_marker_rows=1),
}

WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": decode,
    "upper": lambda data: decode_upper(data, HEIGHT)[:HEIGHT],
    "upper half": lambda data: decode_upper(data, HEIGHT // 2)[: HEIGHT // 2],
    "crop": lambda data: decode_crop(data, 8, 8, 24, 40),
    "scaled": lambda data: decode_scaled_crop(data, 0, 0, 32, 64, 8, 16).pixels,
}


def changed(kind: str, offset: int, value: int) -> bytes:
    """Change one byte, counted from the first scan."""
    data = bytearray(SOUND[kind])
    data[data.index(b"\xff\xda") + offset] = value
    return bytes(data)


def inserted(kind: str, marker: bytes, rubbish: bytes) -> bytes:
    """Insert garbage before the first marker of a kind."""
    data = SOUND[kind]
    place = data.index(marker)
    return data[:place] + rubbish + data[place:]


def outcome(data: bytes, way: str, poison: int) -> Tensor | None:
    """Decode into memory filled with one color; None for a `DecodeError`."""
    try:
        with memory_before(poison):
            return WAYS[way](tensor(data)).clone()
    except DecodeError:
        return None


DAMAGED = {
    "an unsupported marker in a scan": changed("progressive", 14, 255),
    "impossible spectral selection": changed("progressive", 11, 255),
    "a table that is not there": changed("sequential", 6, 0x33),
    "rubbish that looks like a restart in the header": inserted(
        "restarts", b"\xff\xc4", b"ab\xff\xd0"
    ),
    "rubbish in the header": inserted("sequential", b"\xff\xc4", b"rubbish"),
    "rubbish before the scan": inserted("sequential", b"\xff\xda", b"rubbish"),
    "cut, with an end": SOUND["sequential"][:-300] + b"\xff\xd9",
    "cut, progressive, with an end": SOUND["progressive"][:-300] + b"\xff\xd9",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_results_contain_no_uninitialized_memory(damage: str, way: str) -> None:
    first, second = (outcome(DAMAGED[damage], way, poison) for poison in (0x11, 0xEE))
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert torch.equal(first, second)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SOUND)
def test_random_damage(kind: str, way: str) -> None:
    chance, refused = random.Random(kind), 0
    body = SOUND[kind].index(b"\xff\xda")
    for _ in range(150):
        data = bytearray(SOUND[kind])
        data[chance.randrange(body, len(data) - 2)] = chance.choice((0, 255, 0xD9, 0x40))
        first, second = (outcome(bytes(data), way, poison) for poison in (0x11, 0xEE))
        assert (first is None) == (second is None)
        assert first is None or (second is not None and torch.equal(first, second))
        refused += first is None
    assert refused < 150


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "damage", ["an unsupported marker in a scan", "impossible spectral selection"]
)
def test_a_fatal_error_is_an_error_in_every_decoder(damage: str, way: str) -> None:
    assert outcome(DAMAGED[damage], way, 7) is None


@pytest.mark.parametrize("damage", ["rubbish in the header", "cut, with an end"])
def test_crops_of_jpegs_with_warnings_match_the_whole_image(damage: str) -> None:
    data = tensor(DAMAGED[damage])
    whole = decode(data)
    assert torch.equal(decode_crop(data, 8, 8, 24, 40), whole[8:32, 8:48])
    assert torch.equal(decode_upper(data, 40)[:40], whole[:40])


@pytest.mark.parametrize(
    "name", ["image", "image_crop", "image_slice", "image_random_crop", "fused"]
)
def test_pipelines_reject_jpegs_with_fatal_errors(name: str) -> None:
    size = [HEIGHT, WIDTH]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)  # type: ignore[untyped-decorator]
    def define() -> object:
        data = fn.external_source(name="data")
        if name == "image_crop":
            return fn.decoders.image_crop(data, crop=size)
        if name == "image_slice":
            return fn.decoders.image_slice(data, start=[0, 0], shape=size, axis_names="HW")
        if name == "image_random_crop":
            return fn.decoders.image_random_crop(data)
        image = fn.decoders.image(data)
        if name == "image":
            return image
        small = fn.random_resized_crop(image, size=[32, 32])
        return fn.crop_mirror_normalize(small)

    pipe = define()
    pipe.feed_input("data", [np.frombuffer(SOUND["sequential"], np.uint8)])
    pipe.run()
    pipe.feed_input("data", [np.frombuffer(DAMAGED["an unsupported marker in a scan"], np.uint8)])
    with pytest.raises(RuntimeError, match="Unsupported marker type"):
        pipe.run()
    pipe.close()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_progressive_jpegs_with_too_many_scans_are_rejected(way: Callable[[Tensor], Tensor]) -> None:
    data = SOUND["progressive"]
    last = data.rindex(b"\xff\xda")
    scan = data[last:-2]
    with pytest.raises(DecodeError, match=r"The number of scans \(257\) .* over the limit of 256"):
        way(tensor(data[:last] + scan * 256 + data[-2:]))


def test_sequential_jpegs_are_not_searched_for_scans() -> None:
    data = SOUND["sequential"]
    comment = b"\xff\xfe" + (2 + 2 * 5000).to_bytes(2, "big") + b"\xff\xda" * 5000
    assert torch.equal(decode(tensor(data[:2] + comment + data[2:])), decode(tensor(data)))
