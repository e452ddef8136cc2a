"""Data sets that are known: where their pictures lie, and what else a sample has.

Only torchvision's own code is known: a data set whose class has a `__getitem__` of its own is none of these. A data set
is asked for each sample when its batch is made, so that edited samples count. What a sample has besides its picture
comes from the data set's own `__getitem__`, with the path or the bare pixels in the place of the picture.
"""

from __future__ import annotations

import bisect
import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torchvision
from torch.utils.data import ConcatDataset, Subset
from torchvision.datasets.folder import default_loader
from torchvision.datasets.vision import StandardTransform

from torchdali.dataloader._rows import bases_of

__all__ = ["Leaf", "Leaves", "leaves_of"]

Sample = Callable[[int], tuple[Any, Any]]
"""Returns the path of a picture, or its pixels ``(H, W, C)``, and what else a sample has."""


@dataclass(frozen=True)
class Leaf:
    """A data set of torchvision.

    Attributes:
        transform: Of its pictures.
        sample: See `Sample`.
        target: Returns what a sample has besides its picture, if that is quicker.
        pixels: All pictures in memory, ``(N, H, W, C)``; None for files.
        has_loader: Files are opened by the attribute ``loader`` of the data set.
    """

    dataset: Any
    transform: Any
    sample: Sample
    target: Callable[[int], Any] | None = None
    pixels: torch.Tensor | None = None
    has_loader: bool = False

    @property
    def channels(self) -> int:
        """Channels of the pictures."""
        return 3 if self.pixels is None else self.pixels.shape[3]


class _File(str):
    """The path of a picture, in its place."""


# ---------------------------------------------------------------- classes of torchvision


def _by_loader(dataset: Any) -> Sample | None:
    """Take a data set apart that opens files by its attribute ``loader``."""
    if dataset.loader is not default_loader or torchvision.get_image_backend() != "PIL":
        return None
    bare = _bare(dataset)
    bare.loader = _File
    sample: Sample = bare.__getitem__
    return sample


def _gtsrb(dataset: Any) -> Sample:
    return lambda i: (_File(dataset._samples[i][0]), _targeted(dataset.target_transform, dataset._samples[i][1]))


def _pets(dataset: Any) -> Sample | None:
    if dataset._target_types != ["category"]:
        return None
    return lambda i: (_File(dataset._images[i]), _targeted(dataset.target_transform, dataset._labels[i]))


def _coco(dataset: Any) -> Sample:
    bare = _bare(dataset)
    bare._load_image = lambda number: _File(os.path.join(bare.root, bare.coco.loadImgs(number)[0]["file_name"]))
    sample: Sample = bare.__getitem__
    return sample


_FILES: dict[str, Callable[[Any], Sample | None]] = {
    **dict.fromkeys(
        (
            "DTD", "DatasetFolder", "FGVCAircraft", "Flowers102", "Food101", "Imagenette", "Places365", "RenderedSST2",
            "SUN397", "StanfordCars",
        ), _by_loader),
    "CocoDetection": _coco,
    "GTSRB": _gtsrb,
    "OxfordIIITPet": _pets,
}  # fmt: skip
"""By the class that has `__getitem__`: `ImageFolder`, `ImageNet` and others have that of `DatasetFolder`."""


class _Array(NamedTuple):
    """Attributes of a class with its pictures in memory."""

    pixels: str
    targets: str | None
    channels_first: bool = False


_ARRAYS = {
    "CIFAR10": _Array("data", "targets"),
    "MNIST": _Array("data", "targets"),
    "QMNIST": _Array("data", None),
    "SEMEION": _Array("data", "labels"),
    "STL10": _Array("data", None, True),
    "SVHN": _Array("data", "labels", True),
    "USPS": _Array("data", "targets"),
}


def _bare(dataset: Any) -> Any:
    """Return a copy of a data set that leaves pictures as they are."""
    bare = copy.copy(dataset)
    target_transform = getattr(dataset, "target_transform", None)
    bare.transform = None
    bare.transforms = None if target_transform is None else StandardTransform(None, target_transform)
    return bare


def _targeted(transform: Callable[[Any], Any] | None, target: Any) -> Any:
    return target if transform is None else transform(target)


def _leaf(dataset: Any) -> Leaf | None:
    """Return how a data set is read; None if it is not known."""
    method = type(dataset).__getitem__ if hasattr(type(dataset), "__getitem__") else None
    module, name = getattr(method, "__module__", ""), getattr(method, "__qualname__", "").partition(".")[0]
    if not module.startswith("torchvision.datasets.") or "__getitem__" in vars(dataset):
        return None
    joint = getattr(dataset, "transforms", None)
    if joint is not None and type(joint) is not StandardTransform:
        return None  # of picture and target together
    if name in _FILES:
        sample = _FILES[name](dataset)
        together = name in ("CocoDetection", "OxfordIIITPet", "Places365")  # these look at `transforms` alone
        transform = getattr(joint, "transform", None) if together else dataset.transform
        return None if sample is None else Leaf(dataset, transform, sample, has_loader=_FILES[name] is _by_loader)
    return _in_memory(dataset, _ARRAYS[name]) if name in _ARRAYS else None


def _in_memory(dataset: Any, array: _Array) -> Leaf | None:
    pixels = torch.as_tensor(getattr(dataset, array.pixels))
    if array.channels_first:
        pixels = pixels.permute(0, 2, 3, 1)
    pixels = pixels[..., None] if pixels.dim() == 3 else pixels
    if pixels.dtype != torch.uint8 or pixels.dim() != 4 or pixels.shape[3] not in (1, 3):
        return None
    bare = _bare(dataset)

    def sample(i: int) -> tuple[Any, Any]:
        image, target = bare[i]
        bytes_ = np.array(image)
        return bytes_ if bytes_.ndim == 3 else bytes_[:, :, None], target

    def target(i: int) -> Any:
        return _targeted(dataset.target_transform, int(getattr(dataset, array.targets)[i]))  # type: ignore[arg-type]

    return Leaf(dataset, dataset.transform, sample, None if array.targets is None else target, pixels)


# ---------------------------------------------------------------- parts and sums of data sets


class Leaves:
    """The data sets of which a data set is made.

    Attributes:
        leaves: They have the same transforms.
    """

    def __init__(self, dataset: Any, leaves: Sequence[Leaf]) -> None:
        self.dataset, self.leaves = dataset, leaves
        self._numbers = {id(leaf.dataset): leaf for leaf in leaves}

    def __len__(self) -> int:
        return len(self.dataset)

    def place(self, index: int) -> tuple[Leaf, int]:
        """Return the data set that a sample is of, and its number there.

        Raises:
            IndexError: there is no such sample.
        """
        dataset: Any = self.dataset
        while type(dataset) in (Subset, ConcatDataset):
            if type(dataset) is Subset:
                dataset, index = dataset.dataset, int(dataset.indices[index])
                continue
            size = len(dataset)
            if not -size <= index < size:
                raise IndexError(f"sample {index} of a data set of {size}")
            index = index + size if index < 0 else index
            number = bisect.bisect_right(dataset.cumulative_sizes, index)
            index -= dataset.cumulative_sizes[number - 1] if number else 0
            dataset = dataset.datasets[number]
        return self._numbers[id(dataset)], index

    def source(self, index: int) -> Any:
        """Return the path of a picture, or its pixels ``(H, W, C)``."""
        leaf, number = self.place(index)
        return leaf.sample(number)[0]

    def target(self, index: int) -> Any:
        """Return what a sample has besides its picture."""
        leaf, number = self.place(index)
        return leaf.sample(number)[1] if leaf.target is None else leaf.target(number)


def leaves_of(dataset: Any) -> Leaves | str:
    """Return what a data set is made of; or why it is not known."""
    leaves: dict[int, Leaf] = {}
    for base in bases_of(dataset):
        leaf = _leaf(base)
        if leaf is None:
            return f"{type(base).__name__}: not taken apart"
        leaves[id(base)] = leaf
    return Leaves(dataset, list(leaves.values()))
