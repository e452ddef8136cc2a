"""`from_torchvision`: a `Loader` in the place of a DataLoader over a data set of torchvision.

The transforms are taken in their order. Those that an operator does as well become operators; the others are called as
they are, with what they would get from the data set: images of Pillow before the conversion to tensors, tensors behind
it. What they would get is the *form* of an image; on its way through the pipeline it is `(H, W, C)` uint8 in all forms
but FLOAT.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DistributedSampler, Subset
from torchvision.datasets.folder import default_loader
from torchvision.datasets.vision import StandardTransform

from torchdali import fn, math, types
from torchdali.pipeline import pipeline_def
from torchdali.plugin.pytorch._folders import cores, normalized
from torchdali.plugin.pytorch.loader import Loader

__all__ = ["from_torchvision"]

_log = logging.getLogger(__name__)

# Forms: an image of Pillow; a tensor of bytes, (C, H, W); one of numbers from 0 to 1; any other tensor.
PIL, BYTES, UNIT, FLOAT, ARRAY = "Pillow", "bytes", "unit", "float", "array"


Shape = Any  # height and width of an image: an array of two numbers, or a node of such
Operator = Callable[[Any, Shape], tuple[Any, Shape]]


# ---------------------------------------------------------------- transforms that become operators
#
# Each function takes a transform of torchvision, and returns what operators do in its place, or None if none does the
# same: a function of the images and their shapes, which returns those that it makes.


def _random_resized_crop(t: Any) -> Operator | None:
    sampling = _sampling(t)
    if sampling is None:
        return None
    window: dict[str, Any] = {"random_area": list(t.scale), "random_aspect_ratio": list(t.ratio), "size": _pair(t.size)}
    return lambda images, shape: (fn.random_resized_crop(images, **window, **sampling), np.array(window["size"]))


def _resize(t: Any) -> Operator | None:
    sampling = _sampling(t)
    if sampling is None or t.max_size is not None or t.size is None:
        return None
    if not isinstance(t.size, int) and len(t.size) > 1:
        return lambda images, shape: (fn.resize(images, size=list(t.size), **sampling), np.array(t.size))
    (size,) = _pair(t.size)[:1]

    def resize(images: Any, shape: Shape) -> tuple[Any, Shape]:
        sizes = size * shape // fn.reductions.min(shape)  # rounded down; resize_shorter rounds to the nearest
        return fn.resize(images, size=fn.cast(sizes, dtype=types.FLOAT), **sampling), sizes

    return resize


def _center_crop(t: Any) -> Operator:
    size = np.array(_pair(t.size))

    def crop(images: Any, shape: Shape) -> tuple[Any, Shape]:
        room = shape - size
        start = room // 2 + room % 4 // 3  # round(room / 2) in Python, which takes halves to even numbers
        position = start / (room + (room == 0))
        where = {"crop_pos_y": position[0], "crop_pos_x": position[1]}
        return fn.crop(images, crop=size.tolist(), out_of_bounds_policy="pad", **where), size

    return crop


def _random_crop(t: Any) -> Operator | None:
    padding, size = t.padding or 0, np.array(_pair(t.size))
    if t.pad_if_needed or t.padding_mode != "constant" or t.fill != 0 or not isinstance(padding, int):
        return None

    def crop(images: Any, shape: Shape) -> tuple[Any, Shape]:
        room = shape + (2 * padding + 1) - size
        start = math.floor(fn.random.uniform(range=[0.0, 1.0], shape=[2]) * room) - padding
        start = fn.cast(start, dtype=types.INT32)
        window: dict[str, Any] = {"start": start, "shape": size.tolist(), "axes": [0, 1]}
        return fn.slice(images, out_of_bounds_policy="pad", **window), size

    return crop


def _horizontal_flip(t: Any) -> Operator:
    return lambda images, shape: (fn.flip(images, horizontal=fn.random.coin_flip(probability=t.p)), shape)


def _vertical_flip(t: Any) -> Operator:
    return lambda images, shape: (fn.flip(images, horizontal=0, vertical=fn.random.coin_flip(probability=t.p)), shape)


def _normalize(t: Any) -> Operator:
    mean, std = ([float(value) for value in values] for values in (t.mean, t.std))
    return lambda images, shape: (normalized(images, mean, std), shape)


def _nothing(t: Any) -> Operator | None:
    """Change the form alone: bytes become numbers from 0 to 1 with the last operator."""
    if not getattr(t, "scale", True) or getattr(t, "dtype", torch.float32) != torch.float32:
        return None
    return lambda images, shape: (images, shape)


class _Rule(NamedTuple):
    """Rule for a class of transforms.

    Attributes:
        operator: See above.
        after: The form behind it; None for the one before it.
        before: The forms that it knows.
    """

    operator: Callable[[Any], Operator | None]
    after: str | None = None
    before: tuple[str, ...] = (PIL, BYTES, UNIT)


_RULES = {
    "CenterCrop": _Rule(_center_crop),
    "ConvertImageDtype": _Rule(_nothing, UNIT, (BYTES,)),
    "Normalize": _Rule(_normalize, FLOAT, (UNIT,)),
    "PILToTensor": _Rule(_nothing, BYTES, (PIL,)),
    "RandomCrop": _Rule(_random_crop),
    "RandomHorizontalFlip": _Rule(_horizontal_flip),
    "RandomResizedCrop": _Rule(_random_resized_crop),
    "RandomVerticalFlip": _Rule(_vertical_flip),
    "Resize": _Rule(_resize),
    "ToDtype": _Rule(_nothing, UNIT, (BYTES, UNIT)),
    "ToImage": _Rule(_nothing, BYTES, (PIL, BYTES)),
    "ToTensor": _Rule(_nothing, UNIT, (PIL,)),
}

_INTERPOLATION = {
    "nearest": types.INTERP_NN,
    "nearest-exact": types.INTERP_NN,
    "bilinear": types.INTERP_LINEAR,
    "bicubic": types.INTERP_CUBIC,
    "lanczos": types.INTERP_LANCZOS3,
}


def _sampling(t: Any) -> dict[str, Any] | None:
    """Return how an operator resamples as a transform does; None if none does."""
    name = getattr(t.interpolation, "value", t.interpolation)
    if name not in _INTERPOLATION or t.antialias is False:
        return None
    return {"interp_type": _INTERPOLATION[name]}


def _pair(size: Any) -> list[int]:
    values = [size] if isinstance(size, int) else list(size)
    return values * 2 if len(values) == 1 else values


# ---------------------------------------------------------------- transforms that are called as they are


class _Calls:
    """Calls transforms in a row, for one image.

    Args:
        transforms: Of torchvision, or any functions of an image.
        form: What the first of them takes, see `_Images`.
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], form: str) -> None:
        self._transforms, self._form = list(transforms), form

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        value = _seen(image, self._form)
        for transform in self._transforms:
            value = transform(value)
        return _stored(value)


def _seen(image: torch.Tensor, form: str) -> Any:
    """Return an image as the transforms take it."""
    if form == FLOAT:
        return image
    if form == ARRAY:
        return image.numpy()
    if form == PIL:
        pixels = image.numpy()
        return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    planes = image.permute(2, 0, 1)
    return planes.float() / 255 if form == UNIT else planes.contiguous()


def _stored(value: Any) -> torch.Tensor:
    """Return what transforms returned as a node has it: bytes are ``(H, W, C)``."""
    if _form_of(value) in (FLOAT, ARRAY):
        return torch.as_tensor(value)
    if isinstance(value, torch.Tensor):
        return value.permute(1, 2, 0).contiguous()
    pixels = torch.from_numpy(np.array(value))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _form_of(value: Any) -> str:
    if isinstance(value, Image.Image):
        return PIL
    if isinstance(value, np.ndarray):
        return ARRAY
    return BYTES if isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.ndim == 3 else FLOAT


# ---------------------------------------------------------------- all transforms of a data set


class _Step(NamedTuple):
    """A transform, the forms before and behind it, and whether an operator does it."""

    transform: Callable[[Any], Any]
    before: str
    after: str
    is_operator: bool

    @property
    def operator(self) -> Operator:
        """The operators in its place."""
        operator = _RULES[type(self.transform).__name__].operator(self.transform)
        assert operator is not None
        return operator

    def __str__(self) -> str:
        name = getattr(self.transform, "__name__", type(self.transform).__name__)
        return f"{name}: {'an operator' if self.is_operator else 'called as it is, image by image'}"


def _steps(transform: Any, image: Any) -> list[_Step]:
    """Decide what does each transform; what those that are called return, the first image of the data set shows."""
    form, steps = _form_of(image), []
    with _random_states_kept():
        for each in _flat(transform):
            image = each(image)
            rule = _rule(each, form)
            after = _form_of(image) if rule is None else rule.after or form
            steps.append(_Step(each, form, after, rule is not None))
            form = after
    return steps


def _flat(transform: Any) -> Iterator[Callable[[Any], Any]]:
    """Yield the transforms of a Compose, and of those inside it."""
    if type(transform).__name__ == "Compose" and hasattr(transform, "transforms"):
        for each in transform.transforms:
            yield from _flat(each)
    elif transform is not None:
        yield transform


def _rule(transform: Any, form: str) -> _Rule | None:
    """Return what becomes of a transform of torchvision; None if no operator does the same."""
    rule = _RULES.get(type(transform).__name__)
    if rule is None or form not in rule.before or not type(transform).__module__.startswith("torchvision.transforms"):
        return None
    return None if rule.operator(transform) is None else rule


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    """Leave the program's random numbers as they are."""
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def _transformed(images: Any, shape: Any, form: str, steps: Sequence[_Step]) -> Any:
    """Trace the steps; return images ``(C, H, W)``."""
    for is_operator, group in itertools.groupby(steps, lambda step: step.is_operator):
        row = list(group)
        if is_operator:
            for step in row:
                images, shape = step.operator(images, images.shape()[:2] if shape is None else shape)
        else:
            function = _Calls([step.transform for step in row], row[0].before)
            layout = {FLOAT: "CHW", ARRAY: ""}.get(row[-1].after, "HWC")
            images, shape = fn.torch_python_function(images, function=function, output_layouts=layout), None
        form = row[-1].after
    if form in (FLOAT, ARRAY):
        return images
    return normalized(images, [0.0], [1.0]) if form == UNIT else fn.transpose(images, perm=[2, 0, 1])


# ---------------------------------------------------------------- data sets


class _Files(NamedTuple):
    """Image files and their labels."""

    paths: list[str]
    labels: list[int]

    def read(self, shuffle: bool) -> tuple[Any, Any, Any]:
        """Trace a reader of the files; return images, their shapes and labels."""
        files, labels = fn.readers.file(files=self.paths, labels=self.labels, random_shuffle=shuffle, name="Reader")
        images = fn.decoders.image(files, output_type=types.RGB, adjust_orientation=False)  # as torchvision does
        return images, fn.peek_image_shape(files, adjust_orientation=False)[:2], labels


class _Samples(NamedTuple):
    """A data set whose samples begin with an image."""

    dataset: Any

    def read(self, shuffle: bool) -> tuple[Any, ...]:
        """Trace a reader of the data set; return images, their shapes and what else there is."""
        images, *others = fn.readers.dataset(dataset=self.dataset, random_shuffle=shuffle, name="Reader")
        return images, None, *others


def _source(dataset: Any) -> _Files | _Samples:
    """Return what reads a data set, without the transforms of its images if it is torchvision's own."""
    indices, folder = _indices(dataset)
    if not _is_own(folder):
        return _Samples(dataset)
    if getattr(folder, "loader", None) is default_loader and hasattr(folder, "samples"):
        samples = folder.samples if indices is None else [folder.samples[i] for i in indices]
        label = folder.target_transform or (lambda target: target)
        labels = [label(target) for _, target in samples]
        if all(isinstance(each, int) for each in labels):
            return _Files([path for path, _ in samples], labels)
    return _Samples(_without_transform(dataset))


def _is_own(folder: Any) -> bool:
    """Return whether what a data set does for a sample is torchvision's code: only that is known, and taken apart."""
    return str(getattr(type(folder).__getitem__, "__module__", "")).startswith("torchvision.")


def _indices(dataset: Any) -> tuple[list[int] | None, Any]:
    """Return which samples of which data set these are; None for all."""
    if not isinstance(dataset, Subset):
        return None, dataset
    inner, folder = _indices(dataset.dataset)
    chosen = [int(i) for i in dataset.indices]
    return (chosen if inner is None else [inner[i] for i in chosen]), folder


def _without_transform(dataset: Any) -> Any:
    dataset = copy.copy(dataset)
    if isinstance(dataset, Subset):
        dataset.dataset = _without_transform(dataset.dataset)
    else:
        dataset.transform = None
        if getattr(dataset, "transforms", None) is not None:  # both together, in torchvision's own data sets
            dataset.transforms = StandardTransform(None, getattr(dataset, "target_transform", None))
    return dataset


@pipeline_def
def _pipeline(source: _Files | _Samples, form: str, steps: Sequence[_Step], shuffle: bool) -> Any:
    images, shape, *others = source.read(shuffle)
    if form == BYTES:  # a tensor of the data set, with the channels first
        if not steps:
            return images, *others
        images = fn.transpose(images, perm=[1, 2, 0], transpose_layout=False, output_layout="HWC")
    return _transformed(images, shape, form, steps), *others


def from_torchvision(
    dataset: Any,
    transform: Any = None,
    *,
    batch_size: int = 1,
    shuffle: bool = False,
    sampler: Any = None,
    num_workers: int = 0,
    drop_last: bool = False,
    prefetch_factor: int | None = None,
    seed: int | None = None,
    pin_memory: bool = False,
    persistent_workers: bool = False,
    outputs: Sequence[str] | type[Any] | None = None,
    ragged: Sequence[str | int] = (),
    file_names: bool = False,
) -> Loader:
    """Load a data set of torchvision, in the place of ``DataLoader(dataset, ...)``.

    ::

        loader = DataLoader(ImageFolder(root, transform), batch_size=64, shuffle=True, num_workers=4)
        loader = torchdali.from_torchvision(ImageFolder(root, transform), batch_size=64, shuffle=True, num_workers=4)

    Of an ``ImageFolder``, torchdali decodes the files. Transforms (of v1 and v2) that an operator does the same way are
    replaced by it; pixels agree within rounding, and random numbers are others. The rest is called as it is, image by
    image; so is a data set of your own, with all that its ``__getitem__`` does. The attribute ``notes`` of the result
    says which, and a logged warning if there are such. Photos are not turned as their EXIF says, as in torchvision.

    Args:
        dataset: An ``ImageFolder``, another data set of torchvision, a ``Subset`` of one, or any map-style data set
            whose samples begin with an image.
        transform: Of the images, in place of ``dataset.transform``.
        batch_size: Samples of a batch.
        shuffle: Shuffle every epoch.
        sampler: A ``DistributedSampler``: each rank has its part, no sample twice. Without one each rank has all.
        num_workers: Threads; as many as there are cores for 0.
        drop_last: Deliver full batches only.
        prefetch_factor: Batches in flight.
        seed: Of order and augmentation.
        pin_memory, persistent_workers: Accepted: batches are in ordinary memory, and threads stay.
        outputs, ragged, file_names: As for `Loader`.

    Raises:
        TypeError: the data set has no items or no length, or its samples are dictionaries; another sampler. What the
            data set and the transforms raise.
    """
    if sampler is not None:
        if not isinstance(sampler, DistributedSampler):
            raise TypeError(
                f"sampler={type(sampler).__name__}: it is a DistributedSampler, or shuffle=True without one. Another "
                "draws the records for an fn.external_source of a pipeline: see weighted sampling in "
                "docs/recipes/tasks.md"
            )
        shuffle = sampler.shuffle
    folder = _indices(dataset)[1]
    if not hasattr(type(folder), "__getitem__"):
        raise TypeError(f"{type(folder).__name__} has no items: from_torchvision takes a map-style data set")
    inner = getattr(folder, "transform", None) if _is_own(folder) else None
    own = transform if transform is not None else inner
    source = _source(dataset)
    first = source.dataset[0] if isinstance(source, _Samples) else (default_loader(source.paths[0]),)
    if isinstance(first, Mapping):
        raise TypeError(
            f"a sample of {type(folder).__name__} is a dictionary, and from_torchvision takes samples that begin "
            f"with an image: read it in a pipeline, by fn.readers.dataset(dataset=..., columns={list(first)}), which "
            "returns a dictionary of nodes"
        )
    image = first[0] if isinstance(first, tuple) else first
    steps = _steps(own, image)
    pipeline = functools.partial(
        _pipeline, source, _form_of(image), steps, shuffle, batch_size=batch_size, num_threads=num_workers or cores(),
        device_id=None, seed=seed, prefetch_queue_depth=prefetch_factor or 2,
    )  # fmt: skip
    loader = Loader(
        pipeline, outputs=outputs, ragged=ragged, file_names=file_names, drop_last=drop_last,
        classes=getattr(folder, "classes", None), distributed=sampler is not None,
    )  # fmt: skip
    loader._dataset, loader.notes = dataset, tuple(map(str, steps))
    kept = [str(step).partition(":")[0] for step in steps if not step.is_operator]
    if kept:
        _log.warning("from_torchvision: no operator does the same as %s: called image by image", ", ".join(kept))
    return loader
