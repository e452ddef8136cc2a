"""Functions that read torchvision's datasets: the paths or pixels of images, and the other values of a sample.

The values are read from the dataset for each batch. If the user changes the samples of the dataset, the next batch has
the new values. To get the path of an image, the functions call the dataset's own `__getitem__` on a copy of the
dataset. In the copy, the function that opens an image returns the path instead.
"""

from __future__ import annotations

import bisect
import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torchvision
from torch.utils.data import ConcatDataset, Subset
from torchvision.datasets.folder import default_loader
from torchvision.datasets.vision import StandardTransform

from torchdali.dataloader import _notes as notes
from torchdali.dataloader._notes import NotSupportedError
from torchdali.dataloader._rows import find_leaf_datasets

__all__ = ["DatasetSource", "DatasetTree", "build_dataset_tree"]

SampleReader = Callable[[int], tuple[str, Any]]
"""Function that returns the path of a sample's image, and the sample's other values."""


@dataclass(frozen=True)
class DatasetSource:
    """A torchvision dataset, and the functions that read it.

    Attributes:
        dataset: The dataset.
        transform: Transform of the dataset's images.
        source: Function that returns the path of a sample's image, or the image's pixels ``(H, W, C)``.
        target: Function that returns a sample's values without the image.
        pixels: All images, ``(N, H, W, C)``, if the dataset stores them in memory; None if they are files.
    """

    dataset: Any
    transform: Any
    source: Callable[[int], Any]
    target: Callable[[int], Any]
    pixels: torch.Tensor | None = None

    @property
    def channels(self) -> int:
        """Number of channels of the images."""
        return 3 if self.pixels is None else self.pixels.shape[3]


class _ImagePath(str):
    """Path of an image. `__getitem__` of a dataset's copy returns this path in place of the image."""


# ---------------------------------------------------------------- torchvision's classes


def _read_by_loader(dataset: Any) -> SampleReader:
    """Return the function that reads samples of a dataset with the attribute ``loader``, which opens image files."""
    if dataset.loader is not default_loader:
        raise NotSupportedError(notes.own_function_reason("loader", dataset.loader))
    untransformed = _copy_without_transforms(dataset)
    untransformed.loader = _ImagePath
    sample: SampleReader = untransformed.__getitem__
    return sample


def _gtsrb(dataset: Any) -> SampleReader:
    return lambda i: (_ImagePath(dataset._samples[i][0]), dataset._samples[i][1])


def _pets(dataset: Any) -> SampleReader:
    if dataset._target_types != ["category"]:
        raise NotSupportedError(notes.unsupported_reason(dataset, argument=f"target_types={dataset._target_types}"))
    return lambda i: (_ImagePath(dataset._images[i]), dataset._labels[i])


def _coco(dataset: Any) -> SampleReader:
    untransformed = _copy_without_transforms(dataset)
    untransformed._load_image = lambda image_id: _ImagePath(
        os.path.join(untransformed.root, untransformed.coco.loadImgs(image_id)[0]["file_name"])
    )
    sample: SampleReader = untransformed.__getitem__
    return sample


_FILE_DATASETS: dict[str, Callable[[Any], SampleReader]] = {
    **dict.fromkeys(
        (
            "DTD", "DatasetFolder", "FGVCAircraft", "Flowers102", "Food101", "Imagenette", "Places365", "RenderedSST2",
            "SUN397", "StanfordCars",
        ), _read_by_loader),
    "CocoDetection": _coco,
    "GTSRB": _gtsrb,
    "OxfordIIITPet": _pets,
}  # fmt: skip
"""Functions that return the function that reads a dataset's samples, by the name of the class with `__getitem__`.

`ImageFolder`, `ImageNet` and other classes inherit `__getitem__` from `DatasetFolder`.
"""


class _ArrayLayout(NamedTuple):
    """Description of a dataset class with images in memory.

    Attributes:
        targets: Name of the attribute that contains the targets; None if `__getitem__` must compute them.
        channels_first: True if images are stored as ``(C, H, W)``.
    """

    targets: str | None = "targets"
    channels_first: bool = False


_ARRAY_DATASETS = {
    **dict.fromkeys(("CIFAR10", "MNIST", "USPS"), _ArrayLayout()),
    "QMNIST": _ArrayLayout(None),
    "SEMEION": _ArrayLayout("labels"),
    "STL10": _ArrayLayout(None, channels_first=True),
    "SVHN": _ArrayLayout("labels", channels_first=True),
}


def _copy_without_transforms(dataset: Any) -> Any:
    """Return a copy of a dataset without transforms."""
    untransformed = copy.copy(dataset)
    untransformed.transform = untransformed.transforms = None
    return untransformed


def _create_source(dataset: Any) -> DatasetSource:
    """Return the `DatasetSource` of one torchvision dataset.

    Raises:
        NotSupportedError: the dataset can't be accelerated.
    """
    method = getattr(type(dataset), "__getitem__", None)
    module, name = getattr(method, "__module__", ""), getattr(method, "__qualname__", "").partition(".")[0]
    joint = getattr(dataset, "transforms", None)
    if not module.startswith("torchvision.datasets.") or name not in (*_FILE_DATASETS, *_ARRAY_DATASETS):
        raise NotSupportedError(notes.unsupported_reason(dataset))
    if joint is not None and type(joint) is not StandardTransform:
        raise NotSupportedError(notes.own_function_reason("transforms", joint))
    if dataset.target_transform is not None or getattr(joint, "target_transform", None) is not None:
        raise NotSupportedError(notes.own_function_reason("target_transform", dataset.target_transform))
    if name in _ARRAY_DATASETS:
        return _create_array_source(dataset, _ARRAY_DATASETS[name])
    if torchvision.get_image_backend() != "PIL":
        raise NotSupportedError(notes.unsupported_reason(dataset, "the image backend accimage"))
    sample = _FILE_DATASETS[name](dataset)
    joint_only = name in ("CocoDetection", "OxfordIIITPet", "Places365")  # these classes only use `transforms`
    transform = getattr(joint, "transform", None) if joint_only else dataset.transform
    return DatasetSource(dataset, transform, lambda i: sample(i)[0], lambda i: sample(i)[1])


def _create_array_source(dataset: Any, array: _ArrayLayout) -> DatasetSource:
    pixels = torch.as_tensor(dataset.data)
    if array.channels_first:
        pixels = pixels.permute(0, 2, 3, 1)
    pixels = pixels[..., None] if pixels.dim() == 3 else pixels
    if pixels.dtype != torch.uint8 or pixels.dim() != 4 or pixels.shape[3] not in (1, 3):
        raise NotSupportedError(
            notes.unsupported_reason(dataset, f"{pixels.dtype} data of shape {tuple(pixels.shape)}")
        )
    return DatasetSource(
        dataset, dataset.transform, lambda i: pixels[i].contiguous(), _target_reader(dataset, array), pixels
    )


def _target_reader(dataset: Any, array: _ArrayLayout) -> Callable[[int], Any]:
    """Return a function that returns the same target as `__getitem__`."""
    if array.targets is None:
        untransformed = _copy_without_transforms(dataset)
        return lambda i: untransformed[i][1]
    targets = getattr(dataset, array.targets)
    converts = "int" in type(dataset).__getitem__.__code__.co_names  # `_pristine` checks that the code is torchvision's
    return (lambda i: int(targets[i])) if converts else targets.__getitem__


# ---------------------------------------------------------------- subsets and concatenations


class DatasetTree:
    """A dataset, with the torchvision datasets that it consists of.

    The dataset may be a torchvision dataset, or nested subsets and concatenations of torchvision datasets.

    Attributes:
        dataset: The whole dataset.
        leaves: One `DatasetSource` for each torchvision dataset.
    """

    def __init__(self, dataset: Any, leaves: Sequence[DatasetSource]) -> None:
        self.dataset, self.leaves = dataset, leaves
        self._leaf_by_id = {id(leaf.dataset): leaf for leaf in leaves}

    def __len__(self) -> int:
        return len(self.dataset)

    def locate(self, index: int) -> tuple[DatasetSource, int]:
        """Return the `DatasetSource` that contains a sample, and the sample's index in this `DatasetSource`.

        Args:
            index: Index of the sample in the whole dataset.

        Raises:
            IndexError: the sample does not exist.
        """
        dataset: Any = self.dataset
        while type(dataset) in (Subset, ConcatDataset):
            if type(dataset) is Subset:
                dataset, index = dataset.dataset, int(dataset.indices[index])
                continue
            size = len(dataset)
            if not -size <= index < size:
                raise IndexError(f"the index must be below the dataset's {size} samples, got {index}")
            index = index + size if index < 0 else index
            child = bisect.bisect_right(dataset.cumulative_sizes, index)
            index -= dataset.cumulative_sizes[child - 1] if child else 0
            dataset = dataset.datasets[child]
        return self._leaf_by_id[id(dataset)], index

    def source(self, index: int) -> Any:
        """Return the path of a sample's image, or the image's pixels ``(H, W, C)``."""
        leaf, leaf_index = self.locate(index)
        return leaf.source(leaf_index)

    def target(self, index: int) -> Any:
        """Return a sample's values without the image."""
        leaf, leaf_index = self.locate(index)
        return leaf.target(leaf_index)


def build_dataset_tree(dataset: Any) -> DatasetTree:
    """Find the torchvision datasets that a dataset consists of.

    Raises:
        NotSupportedError: one of the datasets can't be accelerated.
    """
    leaves = {id(leaf): _create_source(leaf) for leaf in find_leaf_datasets(dataset)}
    return DatasetTree(dataset, list(leaves.values()))
