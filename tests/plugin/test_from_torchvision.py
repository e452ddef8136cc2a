"""`from_torchvision` beside a DataLoader over the same data set."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader, Subset
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import torchdali

STATISTICS: dict[str, Any] = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
TRANSFORMS: dict[str, Any] = {
    "testing": v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(**STATISTICS)]),
    "one size": v1.Compose([v1.Resize((32, 24)), v1.ToTensor()]),
    "second version": v2.Compose([
        v2.Resize((32, 32)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(**STATISTICS),
    ]),
    "bytes": v1.Compose([v1.Resize((32, 32)), v1.PILToTensor()]),
    "a function": v1.Compose([v1.Resize((32, 32)), v1.ToTensor(), v1.Lambda(lambda image: image * 2)]),
    "gray": v1.Compose([v1.Resize((32, 32)), v1.Grayscale(3), v1.ToTensor()]),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    root: Path = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(10):
        (root / f"class{number % 2}").mkdir(exist_ok=True)
        small = PIL.Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8))
        small.resize((60 + 5 * number, 50 + number), PIL.Image.Resampling.BICUBIC).save(
            root / f"class{number % 2}" / f"{number}.png"
        )
    return str(root)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_batches_are_those_of_a_data_loader(folder: str, name: str) -> None:
    dataset = ImageFolder(folder, TRANSFORMS[name])
    with torchdali.from_torchvision(dataset, batch_size=4) as loader:
        batches = list(loader)
    wanted = list(DataLoader(dataset, batch_size=4))
    assert len(batches) == len(wanted) == 3
    scale = 255 if name == "bytes" else 1
    for (images, labels), (others, classes) in zip(batches, wanted, strict=True):
        assert torch.equal(labels, classes) and labels.dtype == classes.dtype
        assert images.shape == others.shape and images.dtype == others.dtype
        assert (images.float() - others.float()).abs().mean() < 0.02 * scale


def test_subsets_keep_their_order(folder: str) -> None:
    subset = Subset(ImageFolder(folder, TRANSFORMS["one size"]), [7, 1, 4])
    with torchdali.from_torchvision(subset, batch_size=3) as loader:
        ((images, labels),) = list(loader)
    assert labels.tolist() == [subset[i][1] for i in range(3)]
    for image, (wanted, _) in zip(images, (subset[i] for i in range(3)), strict=True):
        assert (image - wanted).abs().mean() < 0.02


def test_every_epoch_has_all_samples_in_another_order(folder: str) -> None:
    random = v1.Compose([v1.RandomResizedCrop(16), v1.RandomHorizontalFlip(), v1.ToTensor()])
    with torchdali.from_torchvision(ImageFolder(folder, random), batch_size=5, shuffle=True, seed=3) as loader:
        epochs = [torch.cat([labels for _, labels in loader]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == [0] * 5 + [1] * 5 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_a_loader_can_be_pickled(folder: str) -> None:
    dataset = ImageFolder(folder, TRANSFORMS["one size"])
    with pickle.loads(pickle.dumps(torchdali.from_torchvision(dataset, batch_size=5))) as loader:
        assert [len(labels) for _, labels in loader] == [5, 5]
