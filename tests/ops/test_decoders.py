"""Image decoders: windows of small and large images, random windows, errors with their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.both import batches
from tests.helpers.encoded_images import RGB, encoded, exif, tensor
from torchdali import fn, pipeline_def, types
from torchdali.kernels.random_window import random_window

PNG = tensor(encoded(RGB, "png"))
HEIGHT, WIDTH, _ = RGB.shape
WHOLE = torch.from_numpy(RGB)


# ---------------------------------------------------------------- windows


def test_windows_are_parts_of_the_whole() -> None:
    assert torch.equal(fn.decoders.image(PNG), WHOLE)
    crop = fn.decoders.image_crop(PNG, crop=[10, 20], crop_pos_x=0.0, crop_pos_y=1.0)
    assert torch.equal(crop, WHOLE[-10:, :20])
    assert torch.equal(fn.decoders.image_slice(PNG, start=[5, 7], shape=[3, 4]), WHOLE[7:11, 5:8])
    places = torch.tensor([5, 7]), torch.tensor([3, 4])
    assert torch.equal(fn.decoders.image_slice(PNG, *places), WHOLE[7:11, 5:8])


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("adjust", [True, False])
def test_windows_of_turned_photos_are_parts_of_the_whole(orientation: int, adjust: bool) -> None:
    data = tensor(encoded(RGB, "jpeg", exif=exif(orientation), quality=95))
    whole = fn.decoders.image(data, adjust_orientation=adjust)
    height, width = whole.shape[:2]
    crop = fn.decoders.image_crop(
        data, crop=[11, 13], crop_pos_x=0.0, crop_pos_y=0.0, adjust_orientation=adjust
    )
    assert torch.equal(crop, whole[:11, :13])
    cut = fn.decoders.image_slice(data, start=[3, 4], end=[9, 5], adjust_orientation=adjust)
    assert torch.equal(cut, whole[4:5, 3:9])
    part = fn.decoders.image_random_crop(data, seed=5, adjust_orientation=adjust)
    h, w = part.shape[:2]
    places = [(y, x) for y in range(height - h + 1) for x in range(width - w + 1)]
    assert any(torch.equal(part, whole[y : y + h, x : x + w]) for y, x in places)


def test_other_types_and_colors_are_cut_from_the_whole() -> None:
    gray = fn.decoders.image(PNG, output_type=types.GRAY, dtype=types.FLOAT)
    crop = fn.decoders.image_crop(PNG, crop=[4, 5], output_type=types.GRAY, dtype=types.FLOAT)
    y, x = (HEIGHT - 4 + 1) // 2, (WIDTH - 5 + 1) // 2
    assert crop.shape == (4, 5, 1) and torch.equal(crop, gray[y : y + 4, x : x + 5])


# ---------------------------------------------------------------- random windows


def draws(*numbers: float) -> Any:
    return iter(numbers).__next__


def test_the_first_window_that_fits_is_taken() -> None:
    found = random_window(
        draws(0.99, 0.99, 0.0, 0.5, 0.999, 0.0), 40, 60, 5, [0.25, 1.0], [0.5, 2.0]
    )
    h, w = found[2:]
    assert (h, w) == (24, 24) and found[:2] == (16, 0)


def test_all_windows_lie_inside_and_are_allowed() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        height, width = rng.integers(1, 60, 2).tolist()
        y, x, h, w = random_window(rng.random, height, width, 10, [0.08, 1.0], [3 / 4, 4 / 3])
        assert 0 <= y <= height - h and 0 <= x <= width - w and min(h, w) >= 1
        assert 3 / 4 <= w / h <= 4 / 3 or min(h, w) <= 3 or min(height, width) <= 3


@pytest.mark.parametrize(
    ("area", "ratio"),
    [([1.0, 0.5], [0.5, 2.0]), ([0.1, 1.0], [2.0, 0.5]), ([0.1, 1.0], [0.0, 1.0])],
)
def test_empty_ranges(area: list[float], ratio: list[float]) -> None:
    with pytest.raises(RuntimeError, match="must be ranges"):
        random_window(draws(), 10, 10, 10, area, ratio)


def test_random_windows_repeat_with_the_seed() -> None:
    def define(lib: Any) -> Any:
        return lib.fn.decoders.image_random_crop(lib.source([PNG.numpy()] * 4))

    one, two, other = (batches("torchdali", define, 2, batch_size=4, seed=s) for s in (1, 1, 2))
    flat = [
        [sample.tobytes() for (output,) in rows for sample in output.samples]
        for rows in (one, two, other)
    ]
    assert flat[0] == flat[1] != flat[2] and len(set(flat[0])) == 8


# ---------------------------------------------------------------- headers


def test_shapes_come_from_the_header_alone() -> None:
    assert fn.peek_image_shape(PNG[:60]).tolist() == [HEIGHT, WIDTH, 3]
    turned = tensor(encoded(RGB, "jpeg", exif=exif(6)))
    assert fn.peek_image_shape(turned).tolist() == [WIDTH, HEIGHT, 3]
    assert fn.peek_image_shape(turned, adjust_orientation=False).tolist() == [HEIGHT, WIDTH, 3]


# ---------------------------------------------------------------- in pipelines


def test_mixed_decoders_run_in_the_chain_and_deliver_on_the_device() -> None:
    @pipeline_def(batch_size=2, num_threads=2, device_id="cpu", seed=1)
    def define() -> Any:
        data = fn.external_source(lambda: [PNG.numpy()] * 2)
        images = fn.decoders.image(data, device="mixed")
        assert images.device == "gpu"
        return (
            images,
            fn.decoders.image_crop(data, device="mixed", crop=[5, 6]),
            fn.cast(images, dtype=types.FLOAT),
        )

    pipe = define()
    images, crops, floats = pipe.run()
    assert torch.equal(images.samples()[1], WHOLE) and crops.shape() == [(5, 6, 3)] * 2
    assert floats.dtype == types.FLOAT and floats.layout() == "HWC"
    pipe.close()


@pytest.mark.parametrize("name", ["image", "image_crop", "image_slice", "image_random_crop"])
def test_old_arguments_warn(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="split_stages"):
        given = {"start": [0, 0], "end": [1, 1]} if name == "image_slice" else {}
        getattr(fn.decoders, name)(PNG, split_stages=True, **given)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fn.peek_image_shape(PNG[None]), "one dimension, not 2"),
        (lambda: fn.decoders.image(PNG.float()), "unsupported input type: float32"),
        (lambda: fn.decoders.image(PNG, dtype=types.BOOL), "unsupported output type"),
        (lambda: fn.decoders.image(PNG[:0]), "empty"),
        (lambda: fn.decoders.image_crop(PNG, crop=[99, 9]), r"is not valid for image dimensions .45 x 61"),
        (lambda: fn.decoders.image_slice(PNG), "needs the inputs anchor and shape, or start"),
        (lambda: fn.decoders.image_slice(PNG, start=[1, 1, 1]), "expected shape 2 but got 3 values"),
        (lambda: fn.decoders.image_slice(PNG, start=[5], shape=[0], axes=[0]), "is empty"),
        (lambda: fn.decoders.image_slice(PNG, start=[0, 0], axes=[1, 1]), "occurs more than once"),
        (lambda: fn.peek_image_shape(PNG, dtype=types.INT8), "unsupported output type"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()
