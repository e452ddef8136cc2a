"""Twelve datasets as users write them: two epochs, and the random state after each sample, equal torch's loader.

Wraps torchvision's own dataset: an accelerated dataset draws its own numbers.
"""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

from tests.dataloader.data import Own
from tests.dataloader.test_lazy_images import write
from torchdali import DataLoader

SIZE, COUNT = 32, 10
FLOAT = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
BEFORE = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
TRAIN = v2.Compose([*BEFORE, v2.PILToTensor(), *FLOAT])


def _folder(root: Path) -> Any:
    return ImageFolder(str(root), TRAIN)


def _called(root: Path) -> Any:
    return ImageFolder(str(root), v2.Compose([*TRAIN.transforms[:3], lambda image: image, *TRAIN.transforms[3:]]))


def _paths(root: Path) -> list[str]:
    return [path for path, _ in ImageFolder(str(root)).samples]


def _pil(root: Path) -> Any:
    paths = _paths(root)

    def sample(index: int) -> Any:
        with Image.open(paths[index]) as image:
            image = image.convert("RGB")  # type: ignore[assignment]
        return TRAIN(image), index % 3

    return Own(sample)


def _validate(root: Path) -> Any:
    paths, transform = _paths(root), v2.Compose([v2.Resize(40, antialias=True), v2.CenterCrop(SIZE), v2.PILToTensor(), *FLOAT])

    def sample(index: int) -> Any:
        with open(paths[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        return transform(image), index % 3

    return Own(sample)


def _zip(root: Path) -> Any:
    name = str(root / "images.zip")
    with zipfile.ZipFile(name, "w") as archive:
        for index, path in enumerate(_paths(root)):
            archive.write(path, f"{index}.jpg")
    opened: list[zipfile.ZipFile] = []

    def sample(index: int) -> Any:
        if not opened:
            opened.append(zipfile.ZipFile(name))
        return TRAIN(Image.open(io.BytesIO(opened[0].read(f"{index}.jpg"))).convert("RGB")), index

    return Own(sample)


def _segment(root: Path) -> Any:
    paths = _paths(root)
    dtypes = {tv_tensors.Image: torch.float32, "others": None}
    transform = v2.Compose([*BEFORE, v2.ToImage(), v2.ToDtype(dtypes, scale=True)])

    def sample(index: int) -> Any:
        image = Image.open(paths[index])
        labels = np.random.default_rng(index).integers(0, 21, (image.height, image.width), np.uint8)
        png = io.BytesIO()
        Image.fromarray(labels).save(png, "PNG")
        return transform(image.convert("RGB"), tv_tensors.Mask(Image.open(png)))

    return Own(sample)


def _views(root: Path) -> Any:
    paths, colors = _paths(root), v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8)
    transform = v2.Compose([*BEFORE, colors, v2.RandomGrayscale(0.2), v2.PILToTensor(), *FLOAT])

    def sample(index: int) -> Any:
        image = Image.open(paths[index]).convert("RGB")
        return torch.stack([transform(image), transform(image)]), index

    return Own(sample)


def _tvio(root: Path) -> Any:
    paths, transform = _paths(root), v2.Compose([*BEFORE, *FLOAT])
    return Own(lambda index: (transform(decode_image(paths[index], ImageReadMode.RGB)), index))


def _opencv(root: Path) -> Any:
    cv2, paths = pytest.importorskip("cv2"), _paths(root)

    def sample(index: int) -> Any:
        cv2.setNumThreads(0)
        image = cv2.cvtColor(cv2.imread(paths[index]), cv2.COLOR_BGR2RGB)
        y, x = int(torch.randint(20, ())), int(torch.randint(20, ()))
        image = cv2.resize(image[y : y + 60, x : x + 60], (SIZE, SIZE))
        if torch.rand(()) < 0.5:
            image = image[:, ::-1]
        return torch.from_numpy((np.ascontiguousarray(image).transpose(2, 0, 1).astype(np.float32) / 255 - 0.45) / 0.22), index

    return Own(sample)


def _array(root: Path) -> Any:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (COUNT, 3, 32, 32), np.uint8))
    transform = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(), *FLOAT])
    return Own(lambda index: (transform(images[index]), index))


def _heavy(root: Path) -> Any:
    def sample(index: int) -> Any:
        noise = np.random.default_rng(index).random((64, 64, 3), dtype=np.float32)
        return torch.from_numpy(np.ascontiguousarray(np.sort(noise, 0).transpose(2, 0, 1))), random.random() + np.random.rand()

    return Own(sample)


def _tokens(root: Path) -> Any:
    tokens = np.arange(COUNT * 1024 + 1)
    return Own(lambda index: tuple(torch.from_numpy(tokens[index * 1024 + k :][:1024].copy()) for k in (0, 1)))


DATASETS: list[Callable[[Path], Any]] = [
    _folder, _called, _pil, _validate, _zip, _segment, _views, _tvio, _opencv, _array, _heavy, _tokens,
]  # fmt: skip


def _states() -> list[int]:
    """Return checksums of the random states of torch, Python and NumPy."""
    states = torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode(), repr(np.random.get_state()).encode()
    return list(map(zlib.crc32, states))


class Watched(Dataset[Any]):
    """Samples of a dataset, and the random state after each."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index], _states()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for index in range(COUNT):
        (folder / f"class{index % 2}").mkdir(exist_ok=True)
        write(folder / f"class{index % 2}" / f"{index}.jpg", 100 + index, 120, "L" if index == 3 else "RGB")
    return folder


def epochs(kind: Any, dataset: Any, workers: int, size: int = 4) -> list[Any]:
    """Return the batches of two epochs, and the random state after them."""
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    loader = kind(dataset, size, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    return [*(batch for _ in range(2) for batch in loader), _states()]


def is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return type(one) is type(other) and one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)
    if isinstance(one, dict):
        one, other = [*one.items()], [*other.items()]
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return bool(one == other)


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", DATASETS, ids=lambda make: make.__name__.strip("_"))
def test_two_epochs_equal_torchs_loader(root: Path, dataset: Any, workers: int) -> None:
    samples = dataset(root)
    each = samples if dataset is _called else Watched(samples)
    assert is_equal(epochs(DataLoader, each, workers), epochs(TorchLoader, each, workers))
