"""Expensive files: Pillow's pixel limit applies, and holes after an image are not read."""

from __future__ import annotations

import os
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.utils.data
import torchvision.transforms as v1
from PIL import Image
from torchvision.datasets import ImageFolder

from torchdali import DataLoader

HEIGHT, WIDTH = 300, 400
PIXELS = HEIGHT * WIDTH


def own(image: Any) -> Any:
    return image


STEPS = {
    "resize": [v1.Resize((64, 64))], "crop": [v1.RandomCrop(20)], "larger crop": [v1.CenterCrop((500, 300))],
    "padded crop": [v1.RandomCrop((500, 300), pad_if_needed=True)], "larger": [v1.Resize((600, 500))], "padding": [v1.Pad(150)],
    "several": [v1.Pad(150), v1.Resize((30, 40)), v1.CenterCrop((900, 900)), v1.Resize(9)],
    "own": [v1.Lambda(own), v1.Resize((64, 64))], "own, larger crop": [v1.Lambda(own), v1.CenterCrop((500, 300))],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    (root / "a").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    Image.fromarray(pixels).save(root / "a" / "0.jpg")
    return root


def outcome(loader: Any) -> tuple[str, bool]:
    """Return the error of the first batch, if any, and whether Pillow warned."""
    error = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            next(iter(loader))
        except Exception as raised:
            error = type(raised).__name__
    return error, any(issubclass(each.category, Image.DecompressionBombWarning) for each in caught)


@pytest.mark.thin(5)
@pytest.mark.parametrize("most", [None, PIXELS, PIXELS - 1, PIXELS // 2, PIXELS // 2 - 1, 0, -1])
@pytest.mark.parametrize("name", STEPS)
def test_the_current_pixel_limit_of_pillow_applies(name: str, most: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ImageFolder(str(folder), v1.Compose([*STEPS[name], v1.PILToTensor()]))
    loader = DataLoader(dataset)
    assert outcome(loader) == ("", False)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    expected = outcome(torch.utils.data.DataLoader(dataset))
    assert outcome(loader) == outcome(DataLoader(dataset)) == expected


@pytest.mark.parametrize("name", ["resize", "own"])
@pytest.mark.parametrize("ending", ["jpg", "png", "bmp", "tiff"])
def test_a_hole_after_an_image_is_not_read(name: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / f"0.{ending}"
    Image.fromarray(np.full((30, 40, 3), 7, np.uint8)).save(path)
    os.truncate(path, 256 << 20)
    loader = DataLoader(ImageFolder(str(tmp_path), v1.Compose([*STEPS[name], v1.PILToTensor()])))
    tracemalloc.start()
    try:
        images, _ = next(iter(loader))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert (images - 7.0).abs().max() < 2
