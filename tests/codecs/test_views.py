"""Views: crops, resizes and flips in any order, with the bits of Pillow, on all levels of vector instructions."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.encoded_images import encoded, picture, tensor
from tests.helpers.native import needs_native
from torchdali.codecs import views
from torchdali.codecs.pixel_steps import Work
from torchdali.codecs.views import View
from torchdali.kernels.native import Recipe

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
SIZES = [(1, 1), (1, 7), (9, 1), (2, 3), (17, 31), (33, 20), (100, 75), (64, 64), (203, 117)]
BYTES = Recipe(upright=False)
PLANES = Recipe(upright=False, planar=True, dtype=torch.float32, values=torch.arange(256.0).expand(3, 256).contiguous())

pytestmark = needs_native


def pixels(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def rendered(recipe: Recipe, data: torch.Tensor, view: View) -> np.ndarray:
    found = Work(view).render(recipe, data)
    assert found is not None
    return found.numpy().transpose(1, 2, 0).astype(np.uint8) if recipe.planar else found.numpy()


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    for recipe in (BYTES, PLANES):
        recipe.set_level(request.param)
    yield request.param
    for recipe in (BYTES, PLANES):
        recipe.set_level(99)


@pytest.mark.parametrize("name", FILTERS)
def test_resize(name: str, level: int) -> None:
    for height, width in SIZES:
        image = Image.fromarray(pixels(height, width))
        for target in [(1, 1), (height, 1), (1, width), (height, 40), (50, width), (24, 24), (2 * height + 1, 3 * width), (150, 9)]:
            view = View.of(height, width).resize(*target, name)
            assert view is not None
            expected = np.asarray(image.resize(target[::-1], FILTERS[name]))
            for recipe in (BYTES, PLANES):
                assert np.array_equal(rendered(recipe, torch.tensor(np.asarray(image)), view), expected), (height, width, target)


@pytest.mark.parametrize("seed", range(8))
def test_steps_in_a_row(seed: int, level: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        height, width = rng.choice(SIZES)
        image = Image.fromarray(pixels(height, width, seed))
        data, view = torch.tensor(np.asarray(image)), View.of(height, width)
        for _ in range(rng.randint(1, 6)):
            view, image = any_step(rng, view, image)
        assert np.array_equal(rendered(rng.choice([BYTES, PLANES]), data, view), np.asarray(image)), view


def any_step(rng: random.Random, view: View, image: Image.Image) -> tuple[View, Image.Image]:
    kind = rng.choice(["mirror", "turn", "crop", "resize"])
    if kind in ("mirror", "turn"):
        turned = Image.Transpose.FLIP_LEFT_RIGHT if kind == "mirror" else Image.Transpose.FLIP_TOP_BOTTOM
        return view.flip(kind == "mirror", kind == "turn"), image.transpose(turned)
    if kind == "crop":
        height, width = rng.randint(1, image.height), rng.randint(1, image.width)
        top, left = rng.randint(0, image.height - height), rng.randint(0, image.width - width)
        cut = view.crop(top, left, height, width)
        assert cut is not None
        return cut, image.crop((left, top, left + width, top + height))
    name, size = rng.choice([*FILTERS]), (rng.randint(1, 90), rng.randint(1, 90))
    resized = view.resize(*size, name)
    return (view, image) if resized is None else (resized, image.resize(size[::-1], FILTERS[name]))


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray"])
def test_files(kind: str, level: int) -> None:
    source = Image.fromarray(picture(117, 203))
    source = source.convert("L") if kind == "gray" else source
    options = {"subsampling": kind} if ":" in kind else {"progressive": True} if kind == "progressive" else {}
    data = encoded(source, "JPEG", quality=85, **options)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    for name in FILTERS:
        view = View.of(117, 203).crop(11, 21, 90, 111).flip(True, False).resize(57, 76, name).crop(3, 4, 50, 60).flip(True, True)
        expected = image.crop((21, 11, 132, 101)).transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize((76, 57), FILTERS[name])
        expected = expected.crop((4, 3, 64, 53)).transpose(Image.Transpose.ROTATE_180)
        assert np.array_equal(rendered(PLANES, tensor(data), view), np.asarray(expected)), name


def test_a_flip_before_a_resize_is_another_one_than_behind_it() -> None:
    data, view = pixels(21, 30), View.of(21, 30)
    before, behind = view.flip(True, False).resize(21, 15, "nearest"), view.resize(21, 15, "nearest").flip(True, False)
    assert np.array_equal(rendered(BYTES, torch.tensor(data), before), data[:, 28::-2])
    assert np.array_equal(rendered(BYTES, torch.tensor(data), behind), data[:, ::-2])


def test_tall_pictures_are_left_to_an_older_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    width_first = [True, False]
    monkeypatch.setattr(views, "_is_width_first", lambda: width_first[0])
    assert View.of(301, 3).resize(100, 2, "bilinear") is None
    assert View.of(300, 3).resize(100, 2, "bilinear").filter == 3
    del width_first[0]
    assert View.of(301, 3).resize(100, 2, "bilinear").filter == 3 + 8
