"""Rules: what becomes of each transform of torchvision.

A rule takes a transform and returns steps that do the same, or None if there are none. Only torchvision's own classes
are known, of `transforms` and of `transforms.v2`. Which transforms follow each other decides, too: the *form* of what a
transform gets is an image of Pillow, then bytes in a tensor, then numbers from 0 to 1, then normalized ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification

from torchdali.ops._picture_bends import FILTERS, Bent, Perspective, RandomAffine, RandomRotation
from torchdali.ops._picture_colors import Blur, Channels, Color, ColorJitter, Distortion, Fill
from torchdali.ops._picture_erasing import Erasing, Rectangle
from torchdali.ops._picture_policies import AutoAugment, RandAugment, Space, TrivialAugment
from torchdali.ops._picture_steps import CenterCrop, Flip, Pad, RandomCrop, RandomWindow, Resize
from torchdali.ops._pictures import Chain, Choice, Finish, Order

__all__ = ["Compiled", "augmentations", "compiled", "name_of"]

PIL, BYTES, UNIT, NORMALIZED = "an image of Pillow", "a tensor of bytes", "a tensor from 0 to 1", "a normalized tensor"
Steps = Sequence[Any]


class _Input(NamedTuple):
    """Form and channels of pictures that a transform gets."""

    form: str
    channels: int


def _size(size: Any) -> tuple[int, int]:
    values = [int(size)] if isinstance(size, int) else [int(each) for each in size]
    return values[0], values[-1]


def _pair(values: Any) -> tuple[float, float]:
    low, high = (float(value) for value in values)
    return low, high


def _mode(t: Any) -> InterpolationMode | None:
    value = t.interpolation
    if isinstance(value, int):
        modes = {0: "nearest", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming", 1: "lanczos"}
        value = modes.get(value)
    try:
        return InterpolationMode(getattr(value, "value", value))
    except ValueError:
        return None


def _filter(t: Any, form: str) -> InterpolationMode | None:
    """Return the filter of a resize; None if what it gets is resized in another way than by Pillow."""
    mode = _mode(t)
    if form == PIL:
        return None if mode is InterpolationMode.NEAREST_EXACT else mode
    antialias = getattr(t, "antialias", True)
    return mode if form == BYTES and mode is InterpolationMode.BILINEAR and antialias in (True, "warn") else None


def _fill(t: Any, picture: _Input) -> Any:
    """Return the color of borders as torchvision's functions take it; None for one that they do not take."""
    fill = 0 if t.fill is None else t.fill
    if isinstance(fill, Sequence) and not isinstance(fill, str):
        fill = tuple(fill)
    values = fill if isinstance(fill, tuple) else (fill,)
    usual = all(isinstance(value, (int, float)) and 0 <= value <= 255 for value in values)
    if picture.form != PIL and not isinstance(fill, int):
        return None
    return fill if usual and (not isinstance(fill, tuple) or len(fill) in (1, picture.channels)) else None


def _borders(padding: Any) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom."""
    values = [padding] if isinstance(padding, int) else [int(each) for each in padding]
    if len(values) == 4:
        return values[0], values[1], values[2], values[3]
    return values[0], values[-1], values[0], values[-1]


# ---------------------------------------------------------------- steps


def _resize(t: Any, picture: _Input) -> Steps | None:
    mode = _filter(t, picture.form)
    size = t.size if t.size is None else [t.size] if isinstance(t.size, int) else t.size
    if mode is None or (picture.form == BYTES and size is not None and size[-1] == 1):  # one column is wrong in PyTorch
        return None
    return [Resize(None if size is None else tuple(map(int, size)), t.max_size, mode)]


def _random_resized_crop(t: Any, picture: _Input) -> Steps | None:
    mode, size = _filter(t, picture.form), _size(t.size)
    if mode is None or (picture.form == BYTES and size[1] == 1):
        return None
    return [RandomWindow(_pair(t.scale), _pair(t.ratio)), Resize(size, None, mode)]


def _center_crop(t: Any, picture: _Input) -> Steps | None:
    return [CenterCrop(_size(t.size))]


def _random_crop(t: Any, picture: _Input) -> Steps | None:
    padding, fill = (0, 0, 0, 0), _fill(t, picture)
    if t.padding:  # v2 has them in another order: left, right, top, bottom
        padding = _borders(t.padding)
        if _is_v2(t) and len(t.padding) == 4:
            padding = padding[0], padding[2], padding[1], padding[3]
    if fill is None:
        return None
    return [RandomCrop(_size(t.size), padding, bool(t.pad_if_needed), fill, _border(t))]


def _pad(t: Any, picture: _Input) -> Steps | None:
    fill = _fill(t, picture)
    return None if fill is None else [Pad(_borders(t.padding), fill, _border(t))]


def _border(t: Any) -> str:
    return str(getattr(t.padding_mode, "value", t.padding_mode))


def _flip(t: Any, picture: _Input) -> Steps | None:
    return [Flip(float(t.p), "Vertical" in type(t).__name__)]


def _sometimes(p: Any, *steps: Any) -> Steps:
    return [Choice((steps, ()), (float(p), 1.0))]


def _color(name: str, argument: str = "") -> Callable[[Any, _Input], Steps | None]:
    """Return a rule for an operation that has a probability."""

    def rule(t: Any, picture: _Input) -> Steps | None:
        value = float(getattr(t, argument)) if argument else 0.0
        if (name == "posterize" and not 1 <= value <= 8) or (
            name == "solarize" and value > 255 and picture.form != PIL
        ):
            return None
        return _sometimes(t.p, Color(name, int(value) if name == "posterize" else value))

    return rule


def _grayscale(t: Any, picture: _Input) -> Steps | None:
    if type(t).__name__ == "RandomGrayscale":
        return _sometimes(t.p, Color("gray", picture.channels))
    return [Color("gray", int(t.num_output_channels))]


def _color_jitter(t: Any, picture: _Input) -> Steps | None:
    ranges = (t.brightness, t.contrast, t.saturation, t.hue)
    if picture.form != PIL and any(each is not None for each in ranges[1:]):  # of tensors, not rounded as here
        return None
    return [ColorJitter(tuple(None if each is None else _pair(each) for each in ranges))]


def _distortion(t: Any, picture: _Input) -> Steps | None:
    if picture.channels != 3:
        return None
    ranges = tuple(map(_pair, (t.brightness, t.contrast, t.saturation, t.hue)))
    return [Distortion(ranges, float(t.p)), *_sometimes(t.p, Channels())]


def _permutation(t: Any, picture: _Input) -> Steps | None:
    return [Channels()] if picture.channels == 3 else []


def _blur(t: Any, picture: _Input) -> Steps | None:
    return [Blur(_size(t.kernel_size), _pair(t.sigma))]


def _bent(t: Any, picture: _Input) -> Bent | None:
    mode, fill = _mode(t), _fill(t, picture)
    return None if mode is None or mode.value not in FILTERS or fill is None else Bent(mode, fill)


def _point(center: Any) -> tuple[float, ...] | None:
    return None if center is None else tuple(center)


def _rotation(t: Any, picture: _Input) -> Steps | None:
    bent = _bent(t, picture)
    return None if bent is None else [RandomRotation(_pair(t.degrees), bool(t.expand), _point(t.center), bent)]


def _affine(t: Any, picture: _Input) -> Steps | None:
    bent = _bent(t, picture)
    if bent is None:
        return None
    translate, scale = (None if each is None else _pair(each) for each in (t.translate, t.scale))
    shear = None if t.shear is None else tuple(float(each) for each in t.shear)
    return [RandomAffine(_pair(t.degrees), translate, scale, shear, _point(t.center), bent)]


def _perspective(t: Any, picture: _Input) -> Steps | None:
    bent = _bent(t, picture)
    return None if bent is None else _sometimes(t.p, Perspective(float(t.distortion_scale), bent))


def _policy(t: Any, picture: _Input) -> Steps | None:
    name, bent = type(t).__name__, _bent(t, picture)
    if bent is None:
        return None
    space = Space(name, _is_v2(t), getattr(t, "num_magnitude_bins", 10))
    if name == "RandAugment":
        return [RandAugment(space, t.num_ops, t.magnitude, bent)]
    if name == "TrivialAugmentWide":
        return [TrivialAugment(space, bent)]
    return [AutoAugment(space, tuple(map(tuple, t._policies if space.is_v2 else t.policies)), bent)]


def _rectangle(t: Any) -> Rectangle:
    return Rectangle(float(t.p), _pair(t.scale), _pair(t.ratio))


def _values(t: Any, channels: int) -> tuple[float, ...] | None:
    """Return the values of an erasing; none for random ones, None for those that torchvision refuses."""
    value = () if t.value is None or t.value == "random" else t.value
    values = tuple(float(each) for each in value) if isinstance(value, Sequence) else (float(value),)
    return values if len(values) in (0, 1, channels) else None


def _fill_rectangle(t: Any, picture: _Input) -> Steps | None:
    values = _values(t, picture.channels)
    if not values or not all(0 <= value <= 255 for value in values):
        return None
    color = [int(value) for value in values]
    return [Fill(_rectangle(t), (color[0], color[len(color) // 2], color[-1]))]


def _is_v2(t: Any) -> bool:
    return ".v2" in type(t).__module__


class _Rule(NamedTuple):
    """Steps of a class of transforms, and the forms that these know."""

    steps: Callable[[Any, _Input], Steps | None]
    forms: tuple[str, ...] = (PIL, BYTES)


_EVERYWHERE = (PIL, BYTES, UNIT, NORMALIZED)
_RULES = {
    "AutoAugment": _Rule(_policy, (PIL,)),
    "CenterCrop": _Rule(_center_crop, (PIL, BYTES, UNIT)),
    "ColorJitter": _Rule(_color_jitter),
    "GaussianBlur": _Rule(_blur),
    "Grayscale": _Rule(_grayscale, (PIL,)),
    "Identity": _Rule(lambda t, picture: [], _EVERYWHERE),
    "Pad": _Rule(_pad),
    "RGB": _Rule(lambda t, picture: [Color("rgb")] if picture.channels == 1 else [], (PIL,)),
    "RandAugment": _Rule(_policy, (PIL,)),
    "RandomAdjustSharpness": _Rule(_color("sharpness", "sharpness_factor"), (PIL,)),
    "RandomAffine": _Rule(_affine, (PIL,)),
    "RandomAutocontrast": _Rule(_color("autocontrast"), (PIL,)),
    "RandomChannelPermutation": _Rule(_permutation),
    "RandomCrop": _Rule(_random_crop),
    "RandomEqualize": _Rule(_color("equalize")),
    "RandomErasing": _Rule(_fill_rectangle, (BYTES,)),
    "RandomGrayscale": _Rule(_grayscale, (PIL,)),
    "RandomHorizontalFlip": _Rule(_flip, _EVERYWHERE),
    "RandomInvert": _Rule(_color("invert")),
    "RandomPerspective": _Rule(_perspective, (PIL,)),
    "RandomPhotometricDistort": _Rule(_distortion, (PIL,)),
    "RandomPosterize": _Rule(_color("posterize", "bits")),
    "RandomResizedCrop": _Rule(_random_resized_crop),
    "RandomRotation": _Rule(_rotation, (PIL,)),
    "RandomSolarize": _Rule(_color("solarize", "threshold")),
    "RandomVerticalFlip": _Rule(_flip, _EVERYWHERE),
    "Resize": _Rule(_resize),
    "TrivialAugmentWide": _Rule(_policy, (PIL,)),
}


# ---------------------------------------------------------------- conversions


def _converted(t: Any, form: str) -> str | None:
    """Return the form behind a conversion; None if it is none, or of another kind."""
    name = type(t).__name__
    if name == "ToTensor":
        return UNIT if form == PIL else None
    if name in ("PILToTensor", "ToImage"):
        return BYTES if form == PIL else form if name == "ToImage" and form != PIL else None
    if name == "ToPureTensor":
        return None if form == PIL else form
    if name in ("ConvertImageDtype", "ToDtype"):
        scales = getattr(t, "scale", True) and t.dtype == torch.float32
        return UNIT if scales and form in (BYTES, UNIT) else None
    return None


def _normalization(t: Any, form: str, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if form != UNIT or type(t).__name__ != "Normalize":
        return None
    mean, std = (tuple(float(value) for value in values) for values in (t.mean, t.std))
    usual = {len(mean), len(std)} <= {1, channels} and all(std)
    return (mean, std) if usual else None


# ---------------------------------------------------------------- all transforms of a data set


@dataclass(frozen=True)
class Compiled:
    """Transforms as a chain.

    Attributes:
        chain: The steps; None if a transform has no rule.
        known: Names of the transforms that have one.
        unknown: Of the first that has none, and why.
        is_image: The results are `torchvision.tv_tensors.Image`.
    """

    chain: Chain | None
    known: tuple[str, ...]
    unknown: str = ""
    is_image: bool = False


def compiled(transform: Any, channels: int = 3) -> Compiled:
    """Return what becomes of the transforms of a data set whose pictures are images of Pillow."""
    picture, steps, ends, known = _Input(PIL, channels), list[Any](), list[Erasing](), list[str]()
    normalization: Any = None
    is_image = False
    for t in _flat(transform):
        name = name_of(t)
        if not type(t).__module__.startswith("torchvision.transforms"):
            return Compiled(None, tuple(known), f"{name}: no transform of torchvision")
        after, end = _converted(t, picture.form), _end(t, picture)
        rows = None if ends else _steps(t, picture)  # what is erased is not moved
        normal = _normalization(t, *picture)
        if after is not None:
            picture, is_image = picture._replace(form=after), _is_image(t, is_image)
        elif normal is not None:
            picture, normalization = picture._replace(form=NORMALIZED), normal
            ends = [replace(each, mean=normal[0], std=normal[1]) for each in ends]
        elif end is not None:
            ends.append(end)
        elif rows is not None:
            steps += rows
            picture = picture._replace(channels=_channels(rows, picture.channels))
        else:
            return Compiled(None, tuple(known), f"{name}: has no rule for {picture.form} with these arguments")
        known.append(name)
    if picture.form == PIL:
        return Compiled(None, tuple(known), "the samples are no tensors")
    mean, std = normalization or (None, None)
    finish = Finish(picture.form != BYTES, mean, std, picture.channels)
    return Compiled(Chain(tuple(steps), finish, tuple(ends)), tuple(known), is_image=is_image)


def augmentations(transform: Any) -> Chain:
    """Return what transforms do between a random crop and the conversion to a normalized tensor, which others do.

    Raises:
        TypeError: a transform has no rule, or is of another kind. ValueError: it does what others do.
    """
    picture, steps = _Input(PIL, 3), list[Any]()
    for t in _flat(transform):
        name = name_of(t)
        own = type(t).__module__.startswith("torchvision.transforms")
        if own and (_converted(t, PIL) or name in _OF_OTHERS):
            raise ValueError(
                f"augment=: leave {name} out: size=, mean= and std= say how pictures are cropped and normalized"
            )
        rows = _steps(t, picture) if own else None
        if rows is None or _channels(rows, 3) != 3:
            raise TypeError(f"{name} has no rule")
        steps += rows
    return Chain(tuple(steps))


_OF_OTHERS = ("RandomResizedCrop", "Normalize", "ConvertImageDtype", "ToDtype", "ToPureTensor")


def _is_image(t: Any, before: bool) -> bool:
    name = type(t).__name__
    return name == "ToImage" or (before and name != "ToPureTensor")


def _end(t: Any, picture: _Input) -> Erasing | None:
    """Return what a transform of normalized values, or of those from 0 to 1, becomes; None if there is nothing."""
    if type(t).__name__ != "RandomErasing" or picture.form not in (UNIT, NORMALIZED):
        return None
    values = _values(t, picture.channels)
    return None if values is None else Erasing(_rectangle(t), values or None)


def _channels(steps: Steps, channels: int) -> int:
    """Return the channels behind steps, of which one by itself may change them."""
    for step in steps:
        if isinstance(step, Color) and step.name in ("gray", "rgb"):
            channels = int(step.value) if step.name == "gray" else 3
    return channels


def _steps(t: Any, picture: _Input) -> Steps | None:
    """Return the steps of one transform, which may choose among others."""
    name = type(t).__name__
    if name in ("RandomApply", "RandomChoice", "RandomOrder"):
        return _choice(t, name, picture)
    rule = _RULES.get(name)
    return rule.steps(t, picture) if rule is not None and picture.form in rule.forms else None


def _choice(t: Any, name: str, picture: _Input) -> Steps | None:
    rows = []
    for each in [t.transforms] if name == "RandomApply" else [[one] for one in t.transforms]:
        row = [_steps(one, picture) for one in _flat(list(each))]
        if any(steps is None or _channels(steps, picture.channels) != picture.channels for steps in row):
            return None
        rows.append(tuple(step for steps in row for step in steps or ()))
    if name == "RandomOrder":
        return [Order(tuple(rows))]
    if name == "RandomApply":
        return _sometimes(t.p, *rows[0])
    weights = [1.0] * len(rows) if t.p is None else [float(p) for p in t.p]
    return [Choice(tuple(rows), tuple(end / sum(weights) for end in accumulate(weights)))]


def _flat(transform: Any) -> Iterator[Any]:
    """Yield the transforms of a Compose, a Sequential or a preset, and of those inside it."""
    inner = None
    if type(transform).__name__ == "Compose" and type(transform).__module__.startswith("torchvision.transforms"):
        inner = transform.transforms
    elif isinstance(transform, list) or type(transform) in (torch.nn.Sequential, torch.nn.ModuleList):
        inner = transform
    elif type(transform) is ImageClassification:
        inner = _of_weights(transform)
    if inner is None:
        yield from () if transform is None else (transform,)
        return
    for each in inner:
        yield from _flat(each)


def _of_weights(t: ImageClassification) -> list[Any]:
    """Return the transforms that the preset of a model's weights consists of."""
    return [
        v1.Resize(t.resize_size, t.interpolation, antialias=t.antialias), v1.CenterCrop(t.crop_size), v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float), v1.Normalize(t.mean, t.std),
    ]  # fmt: skip


def name_of(transform: Any) -> str:
    """Return the name of a transform."""
    return str(getattr(transform, "__name__", type(transform).__name__))
