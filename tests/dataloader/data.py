"""Datasets for the tests of `torchdali.DataLoader`: torchvision's, without a download, and user datasets."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
import torchvision.datasets as tvd
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset
from torchvision.datasets.folder import default_loader

COUNT = 10  # samples of each dataset
LAZY = "torchdali decodes the images, only as far as your transforms need them"  # a note of a loader


def is_lazy(image: Any) -> bool:
    """Return True for an image of torchdali, which Pillow opened; its class is Pillow's after the image is decoded."""
    return isinstance(image, PIL.Image.Image) and type(image).__module__.startswith("torchdali.")


def write_images(root: Path) -> list[str]:
    """Write images of odd sizes in two class folders: JPEGs in color, gray and CMYK, PNGs with palette and alpha."""
    rng, paths = np.random.default_rng(0), []
    modes = ["RGB", "RGB", "L", "RGB", "CMYK", "RGB", "P", "RGBA", "RGB", "LA"]
    for number, mode in enumerate(modes):
        height, width = int(rng.integers(30, 80)), int(rng.integers(30, 80))
        small = PIL.Image.fromarray(rng.integers(0, 256, (7, 9, 3), np.uint8))
        image = small.resize((width, height), PIL.Image.Resampling.BICUBIC)
        ending = "png" if mode in ("P", "RGBA", "LA") else "jpg"
        path = root / f"class{number % 2}" / f"{number:02d}.{ending}"
        path.parent.mkdir(exist_ok=True, parents=True)
        image.convert(mode).save(path, quality=95)
        paths.append(str(path))
    return paths


def bare(kind: type, **attributes: Any) -> Any:
    """Return a torchvision dataset with some attributes, as its constructor would set them after a download."""
    dataset = kind.__new__(kind)
    target_transform = attributes.get("target_transform")
    transform = attributes["transform"]
    both = tvd.vision.StandardTransform(transform, target_transform)
    vars(dataset).update({"target_transform": None, "transforms": both, "root": "", **attributes})
    return dataset


def of_files(name: str, paths: list[str], transform: Any, **attributes: Any) -> Any:
    """Return a torchvision dataset of files."""
    labels = [number % 3 for number in range(len(paths))]
    pairs = list(zip(paths, labels, strict=True))
    kind = getattr(tvd, name)
    known: dict[str, Any] = {
        "Imagenette": {"_samples": pairs}, "StanfordCars": {"_samples": pairs}, "RenderedSST2": {"_samples": pairs},
        "GTSRB": {"_samples": pairs}, "Places365": {"imgs": pairs},
        "OxfordIIITPet": {"_images": paths, "_labels": labels, "_target_types": ["category"]},
    }.get(name, {"_image_files": paths, "_labels": labels})
    return bare(kind, transform=transform, loader=default_loader, **known, **attributes)


def in_memory(name: str, transform: Any, **attributes: Any) -> Any:
    """Return a torchvision dataset of arrays."""
    rng = np.random.default_rng(1)
    gray = rng.integers(0, 256, (COUNT, 28, 28), np.uint8)
    labels = [int(label) for label in rng.integers(0, 10, COUNT)]
    color = rng.integers(0, 256, (COUNT, 32, 32, 3), np.uint8)
    known: dict[str, Any] = {
        "CIFAR10": {"data": color, "targets": labels},
        "CIFAR100": {"data": color, "targets": labels},
        "SVHN": {"data": color.transpose(0, 3, 1, 2), "labels": np.array(labels)},
        "STL10": {"data": color.transpose(0, 3, 1, 2), "labels": np.array(labels)},
        "USPS": {"data": gray, "targets": labels},
        "SEMEION": {"data": gray, "labels": np.array(labels)},
        "QMNIST": {"data": torch.from_numpy(gray), "targets": torch.tensor(labels)[:, None].expand(-1, 8), "compat": True},
    }.get(name, {"data": torch.from_numpy(gray), "targets": torch.tensor(labels)})
    return bare(getattr(tvd, name), transform=transform, **known, **attributes)


FILES = (
    "DTD", "FGVCAircraft", "Flowers102", "Food101", "GTSRB", "Imagenette", "OxfordIIITPet", "Places365", "RenderedSST2",
    "SUN397", "StanfordCars",
)  # fmt: skip
ARRAYS = (
    "CIFAR10", "CIFAR100", "EMNIST", "FashionMNIST", "KMNIST", "MNIST", "QMNIST", "SEMEION", "STL10", "SVHN", "USPS",
)  # fmt: skip

Point = collections.namedtuple("Point", "x y")


class Own(Dataset[Any]):
    """A user dataset, which returns a function's result for an index."""

    def __init__(self, sample: Any, count: int = COUNT) -> None:
        self.sample, self.count = sample, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


class Several(Own):
    """A user dataset with a method for several indices."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self.sample(index) for index in indices]


class Stream(IterableDataset[Any]):
    """Numbers."""

    def __iter__(self) -> Any:
        worker = torch.utils.data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(range(first, COUNT, step))


def picture(index: int) -> torch.Tensor:
    return torch.full((3, 4, 5), index, dtype=torch.uint8)


SAMPLES: dict[str, Any] = {
    "a tuple": lambda i: (picture(i), i),
    "a list": lambda i: [picture(i), i],
    "a tensor": picture,
    "a number": lambda i: i / 7,
    "a large number": lambda i: 1_700_000_000.25 + i,
    "a text": lambda i: f"sample {i}",
    "a dictionary": lambda i: {"image": picture(i), "name": f"{i}", "size": (i, i / 2)},
    "a named tuple": lambda i: Point(picture(i), i),
    "two views": lambda i: ((picture(i), picture(i + 1)), i),
    "nested": lambda i: (picture(i), (i, {"a": [i, i + 1]})),
    "an array": lambda i: (np.full((2, 3), i, np.float64), np.int16(i)),
    "bytes": lambda i: bytes([i]),
}


def parts(dataset: Any) -> dict[str, Any]:
    """Return subsets and concatenations of a dataset."""
    generator = torch.Generator().manual_seed(5)
    return {
        "whole": dataset,
        "a subset": Subset(dataset, [7, 1, 4, 4, -1]),
        "a subset of a subset": Subset(Subset(dataset, [7, 1, 4, 0]), [3, 1]),
        "a split": torch.utils.data.random_split(dataset, [0.7, 0.3], generator)[0],
        "twice": ConcatDataset([dataset, Subset(dataset, [2, 3])]),
    }


def rows() -> TensorDataset:
    """Return a dataset of tensors."""
    return TensorDataset(torch.arange(COUNT * 6).view(COUNT, 2, 3), torch.arange(COUNT) * 0.5)
