"""Images of Pillow that are decoded late: whatever is asked of them, they have Pillow's bits."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter
from torchvision.datasets.folder import pil_loader

from tests.helpers.inside import decoded_late
from torchdali.dataloader import _late
from torchdali.pipeline import native_status

pytestmark = pytest.mark.skipif(not native_status().library, reason="decodes by the library")

SIZES = [(97, 131), (240, 180), (33, 300), (300, 33)]


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: "x".join(map(str, size)))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    height, width = request.param
    noise = Image.fromarray(np.random.default_rng(height).integers(0, 255, (height, width, 3), np.uint8))
    file = tmp_path_factory.mktemp("late") / "a.jpg"
    noise.filter(ImageFilter.GaussianBlur(2)).save(file, quality=92)
    return str(file)


@pytest.fixture(autouse=True)
def all_late(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded_late(monkeypatch)


def changed(image: Image.Image, seed: int) -> Image.Image:
    """Return an image after some calls of a user."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 5)):
        width, height = image.size
        left, top = rng.randint(0, width // 2), rng.randint(0, height // 2)
        right, bottom = rng.randint(left + 1, width + 1), rng.randint(top + 1, height + 1)  # outside, too
        size, filter_ = (rng.randint(1, 200), rng.randint(1, 200)), rng.choice([None, *range(6)])
        call = rng.choice(["crop", "crop", "resize", "resize", "resize_box", "transpose", "copy", "convert"])
        if call == "crop":
            image = image.crop((left, top, right, bottom))
        elif call == "resize":
            image = image.resize(size, filter_)
        elif call == "resize_box":
            image = image.resize(size, 2, (left / 3, top / 3, width, height))
        elif call == "transpose":
            image = image.transpose(Image.Transpose(rng.choice([0, 1, 2])))
        else:
            image = image.copy() if call == "copy" else image.convert("RGB")
    return image


@pytest.mark.parametrize("seed", range(40))
def test_pixels_are_those_of_pillow(path: str, seed: int) -> None:
    late, expected = changed(_late.Opener()(path), seed), changed(pil_loader(path), seed)
    assert late.size == expected.size and late.mode == expected.mode
    assert np.array_equal(np.asarray(late), np.asarray(expected))


def test_a_resize_of_a_part_decodes_nothing_before_it_is_looked_at(path: str) -> None:
    late = _late.Opener()(path).crop((3, 4, 30, 31)).resize((10, 12))
    assert isinstance(late, _late.LateImage) and late._im is None
    assert late.size == (10, 12) and len(late.getbands()) == 3


def test_a_damaged_file_has_the_error_of_pillow(path: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jpg"
    data = Path(path).read_bytes()
    damaged.write_bytes(data[: len(data) // 2])

    def part(image: Image.Image) -> Image.Image:
        return image.crop((0, 0, 30, 31)).resize((10, 12)).rotate(3)

    with pytest.raises(OSError) as expected:
        part(pil_loader(str(damaged)))
    with pytest.raises(OSError) as error:
        part(_late.Opener()(str(damaged)))
    assert str(error.value) == str(expected.value)
