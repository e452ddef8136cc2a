"""Check arguments of a `DataLoader` for which PyTorch's own error messages don't help."""

from __future__ import annotations

import inspect
from typing import Any

from torchdali.errors import warn

__all__ = ["check_dataset", "check_policy"]


def check_dataset(dataset: Any) -> None:
    """Check that the argument ``dataset`` isn't an object that users often pass by mistake.

    A string, such as a path, only causes a warning.

    Raises:
        TypeError: the dataset is a class or a generator.
    """
    if isinstance(dataset, type) and not hasattr(type(dataset), "__len__"):  # an Enum has a length
        raise TypeError(f"dataset must be a dataset, got the class {dataset.__name__}. Write {dataset.__name__}(...)")
    if inspect.isgenerator(dataset):
        raise TypeError(
            "dataset must have `__len__` and `__getitem__`, got a generator. Write a subclass of "
            "torch.utils.data.IterableDataset whose `__iter__` creates the generator"
        )
    if isinstance(dataset, str):
        warn(
            f"dataset must be a dataset, got the string {dataset!r}, so each letter is a sample. For a folder "
            f"of images, write torchvision.datasets.ImageFolder({dataset!r}, transform)"
        )


def check_policy(policy: str, is_iterable: bool) -> None:
    """Check the argument ``bad_samples``.

    Raises:
        ValueError: the value is neither "error" nor "skip", or it is "skip" for an iterable dataset.
    """
    if policy not in ("error", "skip"):
        raise ValueError(f"bad_samples must be 'error' or 'skip', got {policy!r}")
    if policy == "skip" and is_iterable:
        raise ValueError(
            "bad_samples='skip' needs a dataset with `__getitem__`, got an iterable dataset. Skip samples in its "
            "`__iter__`"
        )
