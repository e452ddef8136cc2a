"""Image programs: crops, resizes and flips in any order are bit-identical to Pillow, on all levels of vector instructions."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.encoded_images import encoded, smooth_image, tensor
from tests.helpers.native import native_codecs, needs_native
from torchdali.codecs import program as image_programs
from torchdali.codecs.program import ImageProgram
from torchdali.kernels import native
from torchdali.kernels.native import Filters, ImageOptions, Output

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
SIZES = [(1, 1), (1, 7), (9, 1), (2, 3), (17, 31), (33, 20), (100, 75), (64, 64), (203, 117)]
BYTES = ImageOptions(upright=False, match_pillow=True)
PLANES = ImageOptions(upright=False, output=Output.from_table(torch.arange(256.0).expand(3, 256), True), match_pillow=True)

pytestmark = needs_native


def pixels(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def rendered(options: ImageOptions, data: torch.Tensor, program: ImageProgram) -> np.ndarray:
    found = native_codecs.render(program.with_options(options), data)
    assert found is not None
    return found.numpy().transpose(1, 2, 0).astype(np.uint8) if options.result.planar else found.numpy()


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    for options in (BYTES, PLANES):
        options.set_level(request.param)
    yield request.param
    for options in (BYTES, PLANES):
        options.set_level(99)


@pytest.mark.parametrize("name", FILTERS)
def test_resize(name: str, level: int) -> None:
    for height, width in SIZES:
        image = Image.fromarray(pixels(height, width))
        for target in [(1, 1), (height, 1), (1, width), (height, 40), (50, width), (24, 24), (2 * height + 1, 3 * width), (150, 9)]:
            program = ImageProgram.of(height, width).resize(*target, name)
            assert program is not None
            expected = np.asarray(image.resize(target[::-1], FILTERS[name]))
            for options in (BYTES, PLANES):
                assert np.array_equal(rendered(options, torch.tensor(np.asarray(image)), program), expected), (height, width, target)


@pytest.mark.parametrize("seed", range(8))
def test_steps_in_a_row(seed: int, level: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        height, width = rng.choice(SIZES)
        image = Image.fromarray(pixels(height, width, seed))
        data, program = torch.tensor(np.asarray(image)), ImageProgram.of(height, width)
        for _ in range(rng.randint(1, 6)):
            program, image = any_step(rng, program, image)
        assert np.array_equal(rendered(rng.choice([BYTES, PLANES]), data, program), np.asarray(image)), program


def any_step(rng: random.Random, program: ImageProgram, image: Image.Image) -> tuple[ImageProgram, Image.Image]:
    kind = rng.choice(["mirror", "turn", "crop", "resize"])
    if kind in ("mirror", "turn"):
        turned = Image.Transpose.FLIP_LEFT_RIGHT if kind == "mirror" else Image.Transpose.FLIP_TOP_BOTTOM
        return program.flip(kind == "mirror", kind == "turn"), image.transpose(turned)
    if kind == "crop":
        height, width = rng.randint(1, image.height), rng.randint(1, image.width)
        top, left = rng.randint(0, image.height - height), rng.randint(0, image.width - width)
        cut = program.crop(top, left, height, width)
        assert cut is not None
        return cut, image.crop((left, top, left + width, top + height))
    name, size = rng.choice([*FILTERS]), (rng.randint(1, 90), rng.randint(1, 90))
    resized = program.resize(*size, name)
    return (program, image) if resized is None else (resized, image.resize(size[::-1], FILTERS[name]))


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray"])
def test_files(kind: str, level: int) -> None:
    source = Image.fromarray(smooth_image(117, 203))
    source = source.convert("L") if kind == "gray" else source
    options = {"subsampling": kind} if ":" in kind else {"progressive": True} if kind == "progressive" else {}
    data = encoded(source, "JPEG", quality=85, **options)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    for name in FILTERS:
        program = ImageProgram.of(117, 203).crop(11, 21, 90, 111).flip(True, False).resize(57, 76, name).crop(3, 4, 50, 60).flip(True, True)
        expected = image.crop((21, 11, 132, 101)).transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize((76, 57), FILTERS[name])
        expected = expected.crop((4, 3, 64, 53)).transpose(Image.Transpose.ROTATE_180)
        assert np.array_equal(rendered(PLANES, tensor(data), program), np.asarray(expected)), name


def test_a_flip_before_a_resize_differs_from_one_after_it() -> None:
    data, program = pixels(21, 30), ImageProgram.of(21, 30)
    before, behind = program.flip(True, False).resize(21, 15, "nearest"), program.resize(21, 15, "nearest").flip(True, False)
    assert np.array_equal(rendered(BYTES, torch.tensor(data), before), data[:, 28::-2])
    assert np.array_equal(rendered(BYTES, torch.tensor(data), behind), data[:, ::-2])


def test_older_versions_of_pillow_resize_tall_images(monkeypatch: pytest.MonkeyPatch) -> None:
    width_first = [True, False]
    monkeypatch.setattr(image_programs, "_is_width_first", lambda: width_first[0])
    assert ImageProgram.of(301, 3).resize(100, 2, "bilinear") is None
    assert ImageProgram.of(300, 3).resize(100, 2, "bilinear").filter == 3
    del width_first[0]
    assert ImageProgram.of(301, 3).resize(100, 2, "bilinear").filter == 3 + 8


def test_all_threads_use_one_options_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads the structure while other threads look it up: a second one must not replace it."""
    both = threading.Barrier(2)
    make = native._NativeOptions

    def slow(options: ImageOptions) -> native._NativeOptions:
        both.wait(10)
        return make(options)

    monkeypatch.setattr(native, "_NativeOptions", slow)
    options = ImageOptions(output=Output.from_table(torch.arange(256.0).expand(3, 256), True))
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(lambda: options.address) for _ in range(2))
        assert first.result(10) == second.result(10) == options.address


def test_options_of_consecutive_operators() -> None:
    linear, cubic = Filters(), Filters("cubic", "cubic")
    resized = ImageOptions(fast=True).mirror().resize(linear)
    assert resized is not None
    assert (resized.fast, resized.mirrors, resized.filters, resized.output) == (True, True, linear, None)
    assert resized.resize(cubic) is None
    floats = resized.convert(Output(torch.float32, True))
    assert floats.filters == linear and floats.result.shape(2, 5) == (3, 2, 5) and resized.result.shape(2, 5) == (2, 5, 3)
