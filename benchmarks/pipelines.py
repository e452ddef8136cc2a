"""The measured pipelines in DALI's API; torchdali and the real DALI run the same functions."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]

# What turns on torchdali's mode for large photos, which the real DALI does not have.
LARGE_PHOTOS: dict[str, Any] = {"scaled_decode": True}

# Pipelines of automatic augmentation, called like the modules of `auto_aug`, and the functions there.
AUGMENT = {
    "rand_augment": "rand_augment",
    "auto_augment": "auto_augment",
    "trivial_augment": "trivial_augment_wide",
}


def _read(fn: Any, root: str, **options: Any) -> tuple[Any, Any]:
    files, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader", **options)
    return files, labels


def normalize(fn: Any, types: Any, images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, **options)


def train(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """Read, decode, random crop to 224, mirror at random, normalize."""
    files, labels = _read(fn, root)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=224)
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


def decode(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """Read and decode only."""
    files, labels = _read(fn, root)
    return fn.decoders.image(files, output_type=types.RGB), labels


def val(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """Read, decode, shorter side to 256, centre crop to 224, normalize."""
    files, labels = _read(fn, root)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256)
    return normalize(fn, types, images, crop=(224, 224)), labels


def roi(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """Read, decode a random part, resize to 224, mirror at random, normalize."""
    files, labels = _read(fn, root)
    images = fn.decoders.image_random_crop(files, output_type=types.RGB)
    images = fn.resize(images, size=(224, 224))
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


@functools.cache
def _encoded(root: str) -> list[np.ndarray[Any, Any]]:
    """Return the first 512 files of a folder of classes, in memory."""
    paths = sorted(path for path in Path(root).glob("*/*") if path.is_file())[:512]
    return [np.fromfile(path, np.uint8) for path in paths]


def fed(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` on encoded bytes, which a Python function hands over sample by sample."""
    files = _encoded(root)

    def sample(info: Any) -> tuple[Any, Any]:
        k = info.idx_in_epoch % len(files)
        return files[k], np.array([k], np.int32)

    encoded, labels = fn.external_source(source=sample, num_outputs=2, batch=False)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=224)
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


def photo(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` on large photos; the shuffling window is kept small, for DALI's memory."""
    files, labels = _read(fn, root, initial_fill=16)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=224)
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


def heavy(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` with drawn colors, a blur and a drawn rotation."""
    uniform = fn.random.uniform
    files, labels = _read(fn, root)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=224)
    colors = {
        "brightness": [0.6, 1.4],
        "contrast": [0.6, 1.4],
        "saturation": [0.6, 1.4],
        "hue": [-36, 36],
    }
    images = fn.color_twist(images, **{name: uniform(range=ends) for name, ends in colors.items()})
    images = fn.gaussian_blur(images, window_size=9)
    images = fn.rotate(images, angle=uniform(range=[-30, 30]), keep_size=True, fill_value=0)
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


def _augmented(fn: Any, types: Any, root: str, name: str, **options: Any) -> tuple[Any, Any]:
    package = fn.__name__.removesuffix(".fn")
    augment = getattr(importlib.import_module(f"{package}.auto_aug.{name}"), AUGMENT[name])
    files, labels = _read(fn, root)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = augment(fn.random_resized_crop(images, size=224), **options)
    return normalize(fn, types, images, mirror=fn.random.coin_flip()), labels


def rand_augment(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` with two of RandAugment's augmentations."""
    return _augmented(fn, types, root, "rand_augment", n=2, m=9)


def auto_augment(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` with AutoAugment's policy for ImageNet."""
    return _augmented(fn, types, root, "auto_augment")


def trivial_augment(fn: Any, types: Any, root: str) -> tuple[Any, Any]:
    """``train`` with TrivialAugment Wide."""
    return _augmented(fn, types, root, "trivial_augment")


class OnDevice:
    """`fn` whose decoders are "mixed" and whose labels go to the device, for pipelines written for the CPU.

    Args:
        fn: The module of operators.
    """

    def __init__(self, fn: Any) -> None:
        self._fn, self.__name__ = fn, fn.__name__
        self.decoders = self.readers = self

    def file(self, **options: Any) -> Any:
        files, labels = self._fn.readers.file(**options)
        return files, labels.gpu()

    def image(self, files: Any, **options: Any) -> Any:
        return self._fn.decoders.image(files, device="mixed", **options)

    def image_random_crop(self, files: Any, **options: Any) -> Any:
        return self._fn.decoders.image_random_crop(files, device="mixed", **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fn, name)


def build(package: str, name: str, root: str, mixed: bool = False, **settings: Any) -> Any:
    """Build a pipeline of this module with ``torchdali`` or ``nvidia.dali``.

    Args:
        package: Name of the package that defines ``pipeline_def``, ``fn`` and ``types``.
        name: Name of a function of this module.
        root: Folder with one folder a class.
        mixed: Decode for the device and go on there; the CPU is in its place.
        settings: Of the pipeline: ``batch_size``, ``num_threads``, ``seed`` ...
    """
    fn = importlib.import_module(f"{package}.fn")
    types = importlib.import_module(f"{package}.types")
    define = importlib.import_module(package).pipeline_def
    definition = define(globals()[name], enable_conditionals=name in AUGMENT)
    extra = LARGE_PHOTOS if (name, package) == ("photo", "torchdali") else {}
    where = "cpu" if mixed else None
    pipeline = definition(OnDevice(fn) if mixed else fn, types, root, device_id=where, **extra, **settings)
    pipeline.build()
    return pipeline
