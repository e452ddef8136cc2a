"""The pipelines of `Loader.from_folder`, which load images in class folders with the common ImageNet transforms."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchdali import fn, types
from torchdali.auto_aug import auto_augment, rand_augment, trivial_augment
from torchdali.errors import hint_for_folder, warn
from torchdali.ops._caching import CacheLocation, cache_in
from torchdali.ops._pictures import _picture
from torchdali.pipeline import pipeline_def

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Augment",
    "check_arguments",
    "check_folder",
    "find_folder_labels",
    "normalize_planes",
    "parse_size",
    "testing",
    "training",
]

Augment = str | Callable[[Any], Any] | None

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TENSOR_RECIPES = {
    "torchvision": "call it on image.permute(2, 0, 1), and return the result's permute(1, 2, 0)",
    "albumentations": 'call it on image.numpy(), and return torch.from_numpy(result["image"])',
    "kornia": "call it on image.permute(2, 0, 1)[None] / 255, and convert the result back to bytes (H, W, C)",
}
_CROP_FRACTION = 0.875  # fraction of the shorter side that the center crop for testing keeps
_AUGMENTS: dict[str, Callable[[Any], Any]] = {
    "auto": auto_augment.auto_augment,
    "rand": lambda images: rand_augment.rand_augment(images, n=2, m=9),
    "trivial": trivial_augment.trivial_augment_wide,
}


_reader: Any = fn.readers.file
_VISIBLE: dict[str, Any] = {  # the reader's default filters, changed to skip hidden files and folders
    "dir_filters": ["[!.]*"],
    "file_filters": [f"[!.]{pattern}" for pattern in _reader.implementation.__kwdefaults__["file_filters"]],
}


def resolve_augment(augment: Augment) -> Callable[[Any], Any]:
    """Return the function of images that the argument `augment` specifies.

    Args:
        augment: Name of an augmentation, torchvision transforms, a function of images, or None for no augmentation.

    Raises:
        ValueError: the name is unknown.
        TypeError: a transform isn't supported.
    """
    if augment is None:
        return lambda images: images
    package = _find_package(augment)
    if package == "torchvision":
        return _wrap_transforms(augment)
    if package in _TENSOR_RECIPES:
        raise TypeError(_explain_rejection(augment, package))
    if callable(augment):
        return augment
    if not isinstance(augment, str) or augment not in _AUGMENTS:
        raise ValueError(
            f"augment must be None, a function of images, torchvision transforms, or one of {', '.join(_AUGMENTS)}, "
            f"got {augment!r}{_suggest(augment)}"
        )
    return _AUGMENTS[augment]


def _suggest(augment: Any) -> str:
    """Return a hint if an unknown name contains a known name (``"RandAugment"`` contains ``"rand"``); otherwise ""."""
    found = next((name for name in _AUGMENTS if name in str(augment).lower()), None)
    return f"; did you mean {found!r}?" if found and isinstance(augment, str) else ""


def _find_package(augment: Augment) -> str:
    """Return the name of the package that an augmentation's class belongs to.

    For a `Sequential`, return the package of its first module.
    """
    first = next(augment.children(), augment) if isinstance(augment, torch.nn.Sequential) else augment
    return type(first).__module__.partition(".")[0]


def _wrap_transforms(augment: Any) -> Callable[[Any], Any]:
    """Return a function that applies torchvision transforms to images, as `torchdali.DataLoader` does."""
    from torchdali.dataloader._chains import compile_augmentations

    try:
        transforms = compile_augmentations(augment)
    except TypeError as error:
        raise TypeError(f"{_explain_rejection(augment, 'torchvision')}; {error}") from None
    return functools.partial(_picture, transforms=transforms)


def _explain_rejection(augment: Any, package: str) -> str:
    return (
        f"augment={type(augment).__name__} is a {package} transform, and processes one image, not a batch. Write "
        f"augment=lambda "
        "images: fn.torch_python_function(images, function=one, batch_processing=False), and in one(image) "
        f'{_TENSOR_RECIPES[package]}. The operators of fn and augment="rand", "auto" or "trivial" are faster'
    )


def check_folder(root: str | os.PathLike[str]) -> str:
    """Check a folder of class folders; return its path or URL.

    Raises:
        FileNotFoundError: the folder doesn't exist, or contains no folders.
    """
    path = os.path.expanduser(root)
    if "://" in path:
        return path
    if not os.path.isdir(path):
        raise FileNotFoundError(f"root must be a folder that exists, got {path!r}{hint_for_folder(path)}")
    with os.scandir(path) as entries:
        if not any(entry.is_dir() for entry in entries):
            raise FileNotFoundError(
                f"root must have a folder for each class, as in {path}/cat/1.jpg and {path}/dog/1.jpg; {path!r} has no "
                "folders"
            )
    return path


def parse_size(size: int | Sequence[int]) -> tuple[int, int]:
    """Return the height and width that the argument `size` specifies.

    Raises:
        ValueError: the size isn't one or two integers of at least 1.
    """
    extents = (size, size) if isinstance(size, int) else tuple(size) if isinstance(size, (tuple, list)) else ()
    if len(extents) != 2 or not all(isinstance(side, int) and side >= 1 for side in extents):
        raise ValueError(
            f"size must be the height and width in pixels, one number for both or (height, width), got {size!r}"
        )
    return extents[0], extents[1]


def check_arguments(
    train: bool,
    batch_size: int,
    num_threads: int | None,
    augment: Augment,
    mean: Sequence[float],
    std: Sequence[float],
) -> None:
    """Check the arguments of `Loader.from_folder` that the pipeline itself doesn't check.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """
    if not isinstance(train, bool):
        raise TypeError(f"train must be True or False, got {train!r}; pass the folder as root")
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size!r}")
    if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 0):
        raise ValueError(f"num_threads must be None, for one per core, or at least 1, got {num_threads!r}")
    if augment is not None and not train:
        raise ValueError(f"augment must be None for train=False, got {augment!r}; use it with train=True")
    if max(*mean, *std) > 1:
        warn(f"mean and std must be on the scale 0 to 1, got mean={list(mean)} and std={list(std)}: divide both by 255")


@pipeline_def(enable_conditionals=True)
def training(
    root: str,
    size: tuple[int, int],
    augment: Augment,
    mean: Sequence[float],
    std: Sequence[float],
    on_device: bool = False,
    cache: CacheLocation = None,
    folder_labels: Sequence[int] | None = None,
) -> Any:
    """Read images in random order, crop and mirror them at random, augment and normalize them."""
    files, labels = labeled_files(root, folder_labels, random_shuffle=True)
    images = fn.random_resized_crop(cache_in(fn.decoders.image(files, output_type=types.RGB), cache), size=size)
    augmented = resolve_augment(augment)
    if _find_package(augment) == "torchvision":  # torchvision transforms are accelerated only on the CPU
        images, augmented = augmented(images), resolve_augment(None)
    if on_device:  # images are copied after the resize, because the resized uint8 images are small
        images, labels = images.gpu(), labels.gpu()
    return normalize_planes(augmented(images), mean, std, mirror=fn.random.coin_flip()), labels


@pipeline_def
def testing(
    root: str,
    size: tuple[int, int],
    mean: Sequence[float],
    std: Sequence[float],
    on_device: bool = False,
    cache: CacheLocation = None,
    folder_labels: Sequence[int] | None = None,
) -> Any:
    """Read images in order, resize them, crop their center and normalize them."""
    files, labels = labeled_files(root, folder_labels)
    resize_options: dict[str, Any] = {"size": [round(side / _CROP_FRACTION) for side in size], "mode": "not_smaller"}
    if size[0] == size[1]:
        resize_options = {"resize_shorter": round(size[0] / _CROP_FRACTION)}
    images = fn.resize(fn.decoders.image(files, output_type=types.RGB), **resize_options)
    if on_device or cache is not None:
        images = cache_in(fn.crop(images, crop=size), cache)
        if on_device:
            images, labels = images.gpu(), labels.gpu()
        return normalize_planes(images, mean, std), labels
    return normalize_planes(images, mean, std, crop=size), labels


def labeled_files(root: str, folder_labels: Sequence[int] | None, **options: Any) -> tuple[Any, Any]:
    """Read the files in class folders; return nodes of the encoded images and their labels.

    Args:
        root: Folder of the class folders.
        folder_labels: Label of each class folder, from `find_folder_labels`; None for the reader's labels.
        options: Arguments of `fn.readers.file` for the order of the files.
    """
    files, labels = fn.readers.file(file_root=root, name="Reader", **_VISIBLE, **options)
    if folder_labels is not None:
        labels = fn.lookup_table(labels, keys=list(range(len(folder_labels))), values=folder_labels, dtype=types.INT32)
    return files, labels


def find_folder_labels(root: str, classes: Sequence[str]) -> list[int]:
    """Return the label of each class folder, in the order of the folders' names.

    The label is the index of the folder's name in `classes`.

    Raises:
        ValueError: a folder's name is not in `classes`, or the root is a URL.
        TypeError: `classes` is a string.
    """
    if isinstance(classes, str):
        raise TypeError(f"classes must be a list of names, for example the classes of another Loader, got {classes!r}")
    if "://" in root:
        raise ValueError(f"classes can only be used with a local folder, got root={root!r}")
    labels = {name: number for number, name in reversed(list(enumerate(classes)))}
    folders = [e.name for e in os.scandir(root) if not e.name.startswith(".") and os.path.isdir(e.path)]
    unknown = sorted(set(folders) - set(labels))
    if unknown:
        names = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise ValueError(
            f"classes must contain every class folder of {root!r}, but {len(unknown)} are missing: {names}"
        )
    return [labels[class_folder] for class_folder in sorted(folders, key=os.fsencode)]


def normalize_planes(images: Any, mean: Sequence[float], std: Sequence[float], **options: Any) -> Any:
    """Normalize uint8 images to float32 in the layout CHW.

    Args:
        images: Node of the images.
        mean, std: Mean and standard deviation of each channel, for pixels in the range 0 to 1.
        options: Other arguments of `fn.crop_mirror_normalize`.
    """
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * value for value in mean],
        std=[255 * value for value in std],
        **options,
    )
