"""The pipelines of `Loader.from_folder`: pictures in class folders, as networks for ImageNet are trained and tested."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from torchdali import fn, types
from torchdali.auto_aug import auto_augment, rand_augment, trivial_augment
from torchdali.pipeline import pipeline_def

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Augment",
    "Cache",
    "augmentation",
    "cores",
    "normalized",
    "testing",
    "training",
]

Augment = str | Callable[[Any], Any] | None
Cache = int | str | os.PathLike[str] | None
"""A size, as of `fn.cache`, or a folder: a path object, or a text with a separator."""

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SHOWN = 0.875  # part of the shorter side that the crop of a test shows
_AUGMENTS: dict[str, Callable[[Any], Any]] = {
    "auto": auto_augment.auto_augment,
    "rand": lambda images: rand_augment.rand_augment(images, n=2, m=9),
    "trivial": trivial_augment.trivial_augment_wide,
}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def augmentation(augment: Augment) -> Callable[[Any], Any]:
    """Return the function that augments images, by name or as it is.

    Raises:
        ValueError: there is none of this name.
    """
    if augment is None:
        return lambda images: images
    if callable(augment):
        return augment
    if augment not in _AUGMENTS:
        raise ValueError(f"augment={augment!r}: it is None, a function of images, or one of {', '.join(_AUGMENTS)}")
    return _AUGMENTS[augment]


@pipeline_def(enable_conditionals=True)
def training(
    root: str,
    size: int,
    augment: Augment,
    mean: Sequence[float],
    std: Sequence[float],
    on_device: bool = False,
    cache: Cache = None,
) -> Any:
    """Read shuffled pictures, crop and mirror them at random, augment, normalize."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.random_resized_crop(kept(fn.decoders.image(files, output_type=types.RGB), cache), size=size)
    if on_device:  # small bytes go up, as the CPU's fast path makes them
        images, labels = images.gpu(), labels.gpu()
    return normalized(augmentation(augment)(images), mean, std, mirror=fn.random.coin_flip()), labels


@pipeline_def
def testing(
    root: str, size: int, mean: Sequence[float], std: Sequence[float], on_device: bool = False, cache: Cache = None
) -> Any:
    """Read pictures in order, take the middle of each, normalize."""
    files, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.resize(fn.decoders.image(files, output_type=types.RGB), resize_shorter=round(size / _SHOWN))
    if on_device or cache is not None:
        images = kept(fn.crop(images, crop=(size, size)), cache)
        if on_device:
            images, labels = images.gpu(), labels.gpu()
        return normalized(images, mean, std), labels
    return normalized(images, mean, std, crop=(size, size)), labels


def kept(images: Any, cache: Cache) -> Any:
    """Return images that are kept in memory, of a size, or in a folder; unchanged if neither is given."""
    if cache is None:
        return images
    if isinstance(cache, os.PathLike) or (isinstance(cache, str) and os.sep in cache):
        return fn.cache(images, path=cache)
    return fn.cache(images, bytes=cache)


def normalized(images: Any, mean: Sequence[float], std: Sequence[float], **options: Any) -> Any:
    """Return bytes as planes of float32; mean and deviation are of pixels from 0 to 1."""
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * value for value in mean],
        std=[255 * value for value in std],
        **options,
    )
