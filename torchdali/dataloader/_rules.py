"""Rules: the steps that replace each transform of torchvision.

A rule takes a transform and returns steps that do the same. It raises if there are none: if a value isn't of the type
that the rule reads, or if torchvision refuses it. Only torchvision's own classes have rules, of `transforms` and of
`transforms.v2`. The *form* of a transform's input decides, too: a PIL image, then a uint8 tensor, then a tensor from 0
to 1, then a normalized tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification
from torchvision.transforms.functional import _interpolation_modes_from_int
from torchvision.transforms.v2.functional._geometry import _do_native_uint8_resize_on_cpu

from torchdali.dataloader._notes import (
    NotSupportedError,
    breaks_rule,
    has_no_tensors,
    is_own_transform,
    is_unsupported,
    name_of,
)  # fmt: skip
from torchdali.ops._picture_bends import FILTERS, Bent, Perspective, RandomAffine, RandomRotation
from torchdali.ops._picture_colors import Blur, Channels, Color, ColorJitter, Distortion, Fill
from torchdali.ops._picture_erasing import Erasing, Rectangle
from torchdali.ops._picture_policies import AutoAugment, RandAugment, Space, TrivialAugment
from torchdali.ops._picture_steps import CenterCrop, Flip, Pad, RandomCrop, RandomWindow, Resize
from torchdali.ops._pictures import Chain, Choice, Finish, Order

__all__ = ["Compiled", "augmentations", "compiled", "name_of"]

PIL, BYTES, UNIT, NORMALIZED = "a PIL image", "a uint8 tensor", "a tensor from 0 to 1", "a normalized tensor"
Steps = Sequence[Any]


class _Input(NamedTuple):
    """Form and channels of the images that a transform receives."""

    form: str
    channels: int


# ---------------------------------------------------------------- values of transforms


def _require(condition: object, rule: str) -> None:
    if not condition:
        raise ValueError(rule)


def _number(value: Any) -> float:
    """Return a number; others than Python's own have methods that torch calls."""
    _require(type(value) in (int, float) and math.isfinite(value), f"numbers must be int or float, got {value!r}")
    return float(value)


def _integer(value: Any) -> int:
    _require(type(value) is int, f"integers must be int, got {value!r}")
    return int(value)


def _numbers(values: Any) -> tuple[float, ...]:
    _require(isinstance(values, (tuple, list)), f"ranges must be tuples or lists, got {values!r}")
    return tuple(map(_number, values))


def _range(values: Any, least: float = -math.inf, most: float = math.inf) -> tuple[float, float]:
    low, high = torch.tensor(_numbers(values), dtype=torch.float32).tolist()  # of which torch draws
    _require(least <= low <= high <= most and abs(low) + high < math.inf, f"must be in {least} to {most}, got {values}")
    return low, high


def _size(size: Any) -> tuple[int, int]:
    height, width = map(_integer, size)
    _require(min(height, width) > 0, f"sizes must be positive, got {size}")
    return height, width


def _ratio(t: Any) -> tuple[float, float]:
    """Return the range of aspect ratios, of which v2 reads the logarithms."""
    ratio = _range(t.ratio, math.ulp(0.0))
    _require(not _is_v2(t) or torch.equal(t._log_ratio, torch.log(torch.tensor(t.ratio))), "ratio was replaced")
    return ratio


def _mode(t: Any) -> InterpolationMode:
    value = t.interpolation
    if isinstance(value, int):
        return _interpolation_modes_from_int(value)
    _require(_is_v2(t) or not isinstance(value, str), f"interpolation must be an InterpolationMode, got {value!r}")
    return InterpolationMode(value)


def _filter(t: Any, form: str) -> InterpolationMode:
    """Return the filter of a resize; tensors must be resized in bytes, as v2 does on most processors."""
    mode = _mode(t)
    in_bytes = form == PIL or (_is_v2(t) and t.antialias is True and _do_native_uint8_resize_on_cpu(mode))
    _require(in_bytes and (form == PIL or mode.value in FILTERS), f"resizes {form} in another way")
    _require(mode is not InterpolationMode.NEAREST_EXACT, "interpolation must not be NEAREST_EXACT")
    return mode


def _fill(t: Any, image: _Input) -> Any:
    """Return the color of borders as torchvision's functions take it."""
    fill = t.fill
    if _is_v2(t):
        ((key, fill),) = t._fill.items()
        _require(key == "others", "fill must be one color for all types")
    fill = 0 if fill is None else fill
    if isinstance(fill, (tuple, list)):
        fill = tuple(fill)
        _require(len(fill) in (1, image.channels), f"fill must have 1 or {image.channels} values, got {fill}")
    _require(image.form == PIL or type(fill) is int, f"fill of tensors must be int, got {fill!r}")
    levels = _numbers(fill if isinstance(fill, tuple) else (fill,))
    _require(all(0 <= level <= 255 for level in levels), f"fill must be in 0 to 255, got {fill}")
    return fill


def _borders(padding: Any) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom."""
    values = [_integer(each) for each in (padding if isinstance(padding, (tuple, list)) else (padding,))]
    _require(len(values) in (1, 2, 4), f"padding must have 1, 2 or 4 values, got {padding}")
    left, top, right, bottom = (values * 4)[:4]
    return left, top, right, bottom


def _pad_of(t: Any, padding: tuple[int, int, int, int], image: _Input) -> Pad:
    mode = t.padding_mode
    _require(image.form == PIL or min(padding) >= 0, f"padding of tensors must not be negative, got {padding}")
    _require(mode in ("constant", "edge", "reflect", "symmetric"), f"unknown padding_mode {mode!r}")
    return Pad(padding, _fill(t, image), str(mode), image.form != PIL)


# ---------------------------------------------------------------- steps


def _resize(t: Any, image: _Input) -> Steps:
    mode, size, longest = _filter(t, image.form), t.size, t.max_size
    if longest is not None:
        _require(_integer(longest) > 0, f"max_size must be positive, got {longest}")
    if size is None:
        _require(_is_v2(t) and longest is not None, "size must be set")
        return [Resize(None, longest, mode, image.form != PIL)]
    sizes = tuple(map(_integer, size if isinstance(size, (tuple, list)) else (size,)))
    _require(len(sizes) in (1, 2) and min(sizes) > 0, f"size must be 1 or 2 positive integers, got {size}")
    _require(longest is None or (len(sizes) == 1 and longest > sizes[0]), "max_size must be above size, of one side")
    _require(image.form == PIL or sizes[-1] > 1, "PyTorch resizes tensors to one column in another way")
    return [Resize(sizes, longest, mode, image.form != PIL)]


def _random_resized_crop(t: Any, image: _Input) -> Steps:
    mode, size = _filter(t, image.form), _size(t.size)
    _require(image.form == PIL or size[1] > 1, "PyTorch resizes tensors to one column in another way")
    return [RandomWindow(_range(t.scale, 0), _ratio(t)), Resize(size, None, mode, image.form != PIL)]


def _center_crop(t: Any, image: _Input) -> Steps:
    return [CenterCrop(_size(t.size))]


def _random_crop(t: Any, image: _Input) -> Steps:
    size, padding = _size(t.size), (0, 0, 0, 0)
    if t.padding is not None and _is_v2(t):
        left, right, top, bottom = map(_integer, t.padding)
        padding = left, top, right, bottom
    elif t.padding is not None:
        padding = _borders(t.padding)
    pad = _pad_of(t, padding, image)
    twice = min(padding) < 0 or pad.mode in ("reflect", "symmetric")  # the second border differs from a wider first one
    if t.pad_if_needed and twice and not _is_v2(t):
        return [pad, RandomCrop(size, replace(pad, padding=(0, 0, 0, 0)), True)]
    return [RandomCrop(size, pad, bool(t.pad_if_needed))]


def _pad(t: Any, image: _Input) -> Steps:
    return [_pad_of(t, _borders(t.padding), image)]


def _flip(t: Any, image: _Input) -> Steps:
    return [Flip(_number(t.p), "Vertical" in type(t).__name__)]


def _sometimes(p: Any, *steps: Any) -> Steps:
    return [Choice((steps, ()), (_number(p), 1.0))]


def _color(name: str, argument: str = "") -> Callable[[Any, _Input], Steps]:
    """Return a rule for an operation that has a probability."""

    def rule(t: Any, image: _Input) -> Steps:
        value = _number(getattr(t, argument)) if argument else 0.0
        return _sometimes(t.p, Color(name, value))

    return rule


def _posterize(t: Any, image: _Input) -> Steps:
    bits = _integer(t.bits)
    _require(1 <= bits <= 8, f"bits must be in 1 to 8, got {bits}")
    return _sometimes(t.p, Color("posterize", bits))


def _solarize(t: Any, image: _Input) -> Steps:
    threshold = _number(t.threshold)
    _require(image.form == PIL or threshold <= 255, f"threshold must be below 256, got {threshold}")
    return _sometimes(t.p, Color("solarize", threshold))


def _grayscale(t: Any, image: _Input) -> Steps:
    if type(t).__name__ == "RandomGrayscale":
        return _sometimes(t.p, Color("gray", image.channels))
    channels = _integer(t.num_output_channels)
    _require(channels in (1, 3), f"num_output_channels must be 1 or 3, got {channels}")
    return [Color("gray", channels)]


def _factors(t: Any) -> tuple[tuple[float, float] | None, ...]:
    """Return the ranges of brightness, contrast, saturation and hue."""
    positive = [None if each is None else _range(each, 0) for each in (t.brightness, t.contrast, t.saturation)]
    return (*positive, None if t.hue is None else _range(t.hue, -0.5, 0.5))


def _color_jitter(t: Any, image: _Input) -> Steps:
    ranges = _factors(t)
    _require(image.form == PIL or ranges[1:] == (None, None, None), "rounds tensors in another way")
    return [ColorJitter(ranges)]


def _distortion(t: Any, image: _Input) -> Steps:
    ranges = _factors(t)
    _require(image.channels == 3 and None not in ranges, "must have 3 channels and four ranges")
    return [Distortion(ranges, _number(t.p)), *_sometimes(t.p, Channels())]


def _permutation(t: Any, image: _Input) -> Steps:
    return [Channels()] if image.channels == 3 else []


def _blur(t: Any, image: _Input) -> Steps:
    width, height = _size(t.kernel_size)
    _require(width % 2 and height % 2, f"kernel_size must be odd, got {t.kernel_size}")
    return [Blur((width, height), _range(t.sigma, math.ulp(0.0)))]


def _bent(t: Any, image: _Input) -> Bent:
    mode = _mode(t)
    _require(mode.value in FILTERS, f"interpolation must be one of {', '.join(FILTERS)}, got {mode.value}")
    return Bent(mode, _fill(t, image), _is_v2(t))


def _point(center: Any) -> tuple[float, ...] | None:
    if center is None:
        return None
    x, y = _numbers(center)
    return x, y


def _rotation(t: Any, image: _Input) -> Steps:
    return [RandomRotation(_range(t.degrees), bool(t.expand), _point(t.center), _bent(t, image))]


def _affine(t: Any, image: _Input) -> Steps:
    translate = None if t.translate is None else _numbers(t.translate)
    _require(translate is None or (len(translate) == 2 and min(translate) >= 0), f"translate is {translate}")
    scale = None if t.scale is None else _range(t.scale, math.ulp(0.0))
    shear = None if t.shear is None else (*_range(t.shear[:2]), *(_range(t.shear[2:]) if len(t.shear) > 2 else ()))
    return [RandomAffine(_range(t.degrees), translate, scale, shear, _point(t.center), _bent(t, image))]  # type: ignore[arg-type]


def _perspective(t: Any, image: _Input) -> Steps:
    scale = _number(t.distortion_scale)
    _require(0 <= scale <= 1, f"distortion_scale must be in 0 to 1, got {scale}")
    return _sometimes(t.p, Perspective(scale, _bent(t, image)))


def _policy(t: Any, image: _Input) -> Steps:
    name, bent = type(t).__name__, _bent(t, image)
    space = Space.of(t, _is_v2(t))
    if name == "RandAugment":
        return [RandAugment(space, _integer(t.num_ops), space.index(_integer(t.magnitude)), bent)]
    if name == "TrivialAugmentWide":
        return [TrivialAugment(space, bent)]
    policies = t._policies if _is_v2(t) else t.policies
    return [AutoAugment(space, tuple(_operations(policy, space) for policy in policies), bent)]


def _operations(policy: Any, space: Space) -> tuple[tuple[str, float, int | None], ...]:
    """Return the two operations of a policy: names, probabilities and indices of magnitudes."""
    rows = [(name, _number(p), None if index is None else space.index(_integer(index))) for name, p, index in policy]
    usual = all((index is None) == (not space.magnitudes(name, (1, 1))[0]) for name, _, index in rows)
    _require(len(rows) == 2 and usual, f"unknown policy {policy}")
    return tuple(rows)


def _rectangle(t: Any) -> Rectangle:
    return Rectangle(_number(t.p), _range(t.scale, 0), _ratio(t))


def _values(t: Any, channels: int) -> tuple[float, ...]:
    """Return the values of an erasing; none for random ones."""
    if t.value is None or t.value == "random":
        return ()
    values = _numbers(t.value if isinstance(t.value, (tuple, list)) else (t.value,))
    _require(len(values) in (1, channels), f"value must have 1 or {channels} values, got {values}")
    return values


def _fill_rectangle(t: Any, image: _Input) -> Steps:
    values = _values(t, image.channels)
    _require(values and all(0 <= value <= 255 for value in values), f"value must be in 0 to 255, got {t.value}")
    color = [int(value) for value in values]
    return [Fill(_rectangle(t), (color[0], color[len(color) // 2], color[-1]))]


def _is_v2(t: Any) -> bool:
    return ".v2" in type(t).__module__


class _Rule(NamedTuple):
    """Steps of a class of transforms, and the forms that these know."""

    steps: Callable[[Any, _Input], Steps]
    forms: tuple[str, ...] = (PIL, BYTES)


_EVERYWHERE = (PIL, BYTES, UNIT, NORMALIZED)
_RULES = {
    "AutoAugment": _Rule(_policy, (PIL,)),
    "CenterCrop": _Rule(_center_crop, (PIL, BYTES, UNIT)),
    "ColorJitter": _Rule(_color_jitter),
    "GaussianBlur": _Rule(_blur),
    "Grayscale": _Rule(_grayscale, (PIL,)),
    "Identity": _Rule(lambda t, image: [], _EVERYWHERE),
    "Pad": _Rule(_pad),
    "RGB": _Rule(lambda t, image: [Color("rgb")] if image.channels == 1 else [], (PIL,)),
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
    "RandomPosterize": _Rule(_posterize),
    "RandomResizedCrop": _Rule(_random_resized_crop),
    "RandomRotation": _Rule(_rotation, (PIL,)),
    "RandomSolarize": _Rule(_solarize),
    "RandomVerticalFlip": _Rule(_flip, _EVERYWHERE),
    "Resize": _Rule(_resize),
    "TrivialAugmentWide": _Rule(_policy, (PIL,)),
}


# ---------------------------------------------------------------- conversions


def _converted(t: Any, form: str) -> str | None:
    """Return the form after a conversion; None if it is none, or of another kind."""
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


def _normalization(t: Any, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    mean, std = _channel_values(t.mean, channels), _channel_values(t.std, channels)
    _require(all(std), f"std must not be 0, got {t.std}")
    return mean, std


def _channel_values(values: Any, channels: int) -> tuple[float, ...]:
    """Return one value for all channels or for each, as torchvision converts them."""
    converted = torch.as_tensor(values, dtype=torch.float32).numpy()
    usual = converted.ndim < 2 and converted.size in (1, channels)
    _require(usual, f"mean and std must have 1 or {channels} values, got shape {converted.shape}")
    return tuple(converted.reshape(-1).tolist())


# ---------------------------------------------------------------- all transforms of a dataset


@dataclass(frozen=True)
class Compiled:
    """Transforms as a chain.

    Attributes:
        chain: The steps; None if a transform has no rule.
        known: Names of the transforms that have one.
        unknown: The first that has none, and why.
    """

    chain: Chain | None
    known: tuple[str, ...]
    unknown: str = ""


@dataclass
class _Draft:
    """The chain of the transforms so far.

    Attributes:
        image: The input of the next transform.
        multiplies: The conversion to floats multiplies, as `Finish` says.
    """

    image: _Input
    steps: list[Any] = field(default_factory=list)
    ends: list[Erasing] = field(default_factory=list)
    normalization: tuple[Any, Any] = (None, None)
    multiplies: bool = False

    def add(self, t: Any) -> None:
        """Append a transform."""
        form, channels = self.image
        name, after = type(t).__name__, _converted(t, form)
        if not _is_own(t):
            raise NotSupportedError(is_own_transform(t))
        if after is not None:
            self.image = self.image._replace(form=after)
            self.multiplies |= _is_v2(t) and form == BYTES and after == UNIT
        elif name == "Normalize" and form == UNIT:
            mean, std = self.normalization = _normalization(t, channels)
            self.image = self.image._replace(form=NORMALIZED)
            self.ends = [replace(each, mean=mean, std=std) for each in self.ends]
        elif name == "RandomErasing" and form in (UNIT, NORMALIZED):
            self.ends.append(_erasing(t, self.image))
        else:
            _require(not self.ends, "follows an erasing")
            steps = _steps(t, self.image)
            blurred = any(isinstance(step, Blur) for step in _atoms([*self.steps, *steps]))
            _require(not (blurred and any(map(_jumps, _atoms(steps)))), "could make one level of a blur many")
            self.steps += steps
            self.image = self.image._replace(channels=_channels(steps, channels))

    def finish(self) -> Chain:
        """Return the chain."""
        if self.image.form == PIL:
            raise NotSupportedError(has_no_tensors())
        finish = Finish(self.image.form != BYTES, *self.normalization, self.image.channels, self.multiplies)
        return Chain(tuple(self.steps), finish, tuple(self.ends))


def compiled(transform: Any, channels: int = 3) -> Compiled:
    """Return the chain of a dataset's transforms, whose input is PIL images."""
    t, known, draft = transform, list[str](), _Draft(_Input(PIL, channels))
    try:
        dtype = torch.get_default_dtype()
        _require(dtype is torch.float32, f"torch.get_default_dtype() must be torch.float32, got {dtype}")
        for t in _flat(transform):
            draft.add(t)
            known.append(name_of(t))
        return Compiled(draft.finish(), tuple(known))
    except NotSupportedError as reason:
        return Compiled(None, tuple(known), str(reason))
    except Exception as error:  # of a value that the rule does not expect: torchvision says whether it is wrong
        return Compiled(None, tuple(known), breaks_rule(t, error))


def augmentations(transform: Any) -> Chain:
    """Return the steps between a random crop and the conversion to a normalized tensor, which others do.

    Raises:
        TypeError: a transform has no rule, or is of another kind. ValueError: it does what others do.
    """
    image, steps = _Input(PIL, 3), list[Any]()
    for t in _flat(transform):
        name = name_of(t)
        if _is_own(t) and (_converted(t, PIL) or name in _OF_OTHERS):
            raise ValueError(
                f"augment=: leave {name} out: size=, mean= and std= say how pictures are cropped and normalized"
            )
        try:
            rows = _steps(t, image)
            _require(_channels(rows, 3) == 3, "the images must keep 3 channels")
        except Exception as error:
            raise TypeError(f"{name} has no rule: {error}") from error
        steps += rows
    return Chain(tuple(steps))


_OF_OTHERS = ("RandomResizedCrop", "Normalize", "ConvertImageDtype", "ToDtype", "ToPureTensor")


def _erasing(t: Any, image: _Input) -> Erasing:
    """Return the erasing of a tensor of floats."""
    return Erasing(_rectangle(t), _values(t, image.channels) or None)


def _atoms(steps: Steps) -> Iterator[Any]:
    """Yield steps, and those among which others choose."""
    for step in steps:
        if isinstance(step, (Choice, Order)):
            yield from _atoms([each for row in step.rows for each in row])
        else:
            yield step


def _jumps(step: Any) -> bool:
    """Return True if levels that are next to each other may become far apart."""
    if isinstance(step, Color):
        return step.name in ("autocontrast", "equalize", "posterize") or (step.name == "solarize" and step.value != 128)
    return isinstance(step, (AutoAugment, RandAugment, TrivialAugment))


def _channels(steps: Steps, channels: int) -> int:
    """Return the channels after steps, of which one by itself may change them."""
    for step in steps:
        if isinstance(step, Color) and step.name in ("gray", "rgb"):
            channels = int(step.value) if step.name == "gray" else 3
    return channels


def _is_own(t: Any) -> bool:
    return type(t).__module__.startswith("torchvision.transforms")


def _steps(t: Any, image: _Input) -> Steps:
    """Return the steps of one transform, which may choose among others."""
    name, rule = type(t).__name__, _RULES.get(type(t).__name__)
    if not _is_own(t):
        raise NotSupportedError(is_own_transform(t))
    if name in ("RandomApply", "RandomChoice", "RandomOrder"):
        return _choice(t, name, image)
    if rule is None or image.form not in rule.forms:
        raise NotSupportedError(is_unsupported(t, image.form))
    return rule.steps(t, image)


def _choice(t: Any, name: str, image: _Input) -> Steps:
    rows = [tuple(step for each in _flat(one) for step in _steps(each, image)) for one in t.transforms]
    _require(all(_channels(row, image.channels) == image.channels for row in rows), "must keep the channels")
    if name == "RandomOrder":
        return [Order(tuple(rows))]
    if name == "RandomApply":
        return _sometimes(t.p, *(step for row in rows for step in row))
    weights = [1.0] * len(rows) if t.p is None else _numbers(t.p)
    _require(len(weights) == len(rows) and min(weights) >= 0 < sum(weights), f"p must be {len(rows)} weights")
    return [Choice(tuple(rows), tuple(end / sum(weights) for end in accumulate(weights)))]


def _flat(transform: Any) -> Iterator[Any]:
    """Yield the transforms of a Compose, a Sequential or a preset, and of those inside it."""
    if type(transform).__name__ == "Compose" and _is_own(transform):
        inner = transform.transforms
    elif type(transform) is torch.nn.Sequential:
        inner = transform
    elif type(transform) is ImageClassification:
        inner = _of_weights(transform)
    else:
        yield transform
        return
    for each in inner:
        yield from _flat(each)


def _of_weights(t: ImageClassification) -> list[Any]:
    """Return the transforms that the preset of a model's weights consists of."""
    return [
        v1.Resize(t.resize_size, t.interpolation, antialias=t.antialias), v1.CenterCrop(t.crop_size), v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float), v1.Normalize(t.mean, t.std),
    ]  # fmt: skip
