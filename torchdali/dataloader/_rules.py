"""Rules that translate torchvision's transforms into torchdali's own steps.

A rule is a function that returns the steps with the same result as a transform. The rule raises an error if a value of
the transform has an unsupported type, or if torchvision itself would raise an error for the value. Only torchvision's
own classes have rules. A rule supports the class in `transforms` and the class with the same name in `transforms.v2`.

A rule also depends on the *form* of the transform's input, which may be a PIL image, a uint8 tensor, a float tensor
from 0 to 1, or a normalized float tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification
from torchvision.transforms.functional import _interpolation_modes_from_int
from torchvision.transforms.v2.functional._geometry import _do_native_uint8_resize_on_cpu

from torchdali.dataloader._notes import NotSupportedError, own_transform_reason, unsupported_reason
from torchdali.ops._picture_bends import FILTERS, GeometricOptions, Perspective, RandomAffine, RandomRotation
from torchdali.ops._picture_colors import (
    Blur,
    ChannelPermutation,
    ColorAdjustment,
    ColorJitterStep,
    Distortion,
    RectangleFill,
)
from torchdali.ops._picture_erasing import Erasing, Rectangle
from torchdali.ops._picture_policies import AutoAugment, RandAugment, Space, TrivialAugment
from torchdali.ops._picture_steps import CenterCropStep, FlipStep, PadStep, RandomCropStep, RandomWindow, ResizeStep
from torchdali.ops._pictures import RandomSteps

__all__ = [
    "BYTES", "NORMALIZED", "PIL", "UNIT", "ImageForm", "Steps", "channels_after", "erasing_of", "flatten",
    "is_torchvision_transform", "is_v2", "require", "steps_of",
]  # fmt: skip

PIL, BYTES, UNIT, NORMALIZED = "a PIL image", "a uint8 tensor", "a tensor from 0 to 1", "a normalized tensor"
Steps = Sequence[Any]


class ImageForm(NamedTuple):
    """The form of a transform's input (one of this module's constants) and its number of channels."""

    form: str
    channels: int


# ---------------------------------------------------------------- values of transforms


def require(condition: object, rule: str) -> None:
    if not condition:
        raise ValueError(rule)


def _number(value: Any) -> float:
    """Check that a value is a finite int or float, and return it as a float.

    Objects of other classes, such as subclasses of float, aren't supported, because their methods may be user code.
    """
    require(type(value) in (int, float) and math.isfinite(value), f"numbers must be int or float, got {value!r}")
    return float(value)


def _integer(value: Any) -> int:
    require(type(value) is int, f"integers must be int, got {value!r}")
    return int(value)


def _numbers(values: Any) -> tuple[float, ...]:
    require(isinstance(values, (tuple, list)), f"ranges must be tuples or lists, got {values!r}")
    return tuple(map(_number, values))


def _range(values: Any, minimum: float = -math.inf, maximum: float = math.inf) -> tuple[float, float]:
    low, high = torch.tensor(_numbers(values), dtype=torch.float32).tolist()  # PyTorch converts the limits to float32
    require(
        minimum <= low <= high <= maximum and abs(low) + high < math.inf,
        f"must be in {minimum} to {maximum}, got {values}",
    )
    return low, high


def _size(size: Any) -> tuple[int, int]:
    height, width = map(_integer, size)
    require(min(height, width) > 0, f"sizes must be positive, got {size}")
    return height, width


def _ratio(t: Any) -> tuple[float, float]:
    """Return the range of aspect ratios, and check the logarithms of the range that `transforms.v2` stores."""
    ratio = _range(t.ratio, math.ulp(0.0))
    require(not is_v2(t) or torch.equal(t._log_ratio, torch.log(torch.tensor(t.ratio))), "ratio was replaced")
    return ratio


def _mode(t: Any) -> InterpolationMode:
    value = t.interpolation
    if isinstance(value, int):
        return _interpolation_modes_from_int(value)
    require(is_v2(t) or not isinstance(value, str), f"interpolation must be an InterpolationMode, got {value!r}")
    return InterpolationMode(value)


def _filter(t: Any, form: str) -> InterpolationMode:
    """Return the interpolation mode of a resize.

    Tensors are supported only if `transforms.v2` resizes them in uint8 arithmetic, as it does on most processors.
    """
    mode = _mode(t)
    in_bytes = form == PIL or (is_v2(t) and t.antialias is True and _do_native_uint8_resize_on_cpu(mode))
    require(in_bytes and (form == PIL or mode.value in FILTERS), f"resizes {form} in another way")
    require(mode is not InterpolationMode.NEAREST_EXACT, "interpolation must not be NEAREST_EXACT")
    return mode


def _fill(t: Any, image: ImageForm) -> Any:
    """Return the fill color of a transform: a number, or a tuple with one value or with one value per channel."""
    fill = t.fill
    if is_v2(t):
        ((key, fill),) = t._fill.items()
        require(key == "others", "fill must be the same for all types")
    fill = 0 if fill is None else fill
    if isinstance(fill, (tuple, list)):
        fill = tuple(fill)
        require(len(fill) in (1, image.channels), f"fill must have 1 or {image.channels} values, got {fill}")
    require(image.form == PIL or type(fill) is int, f"fill of tensors must be int, got {fill!r}")
    levels = _numbers(fill if isinstance(fill, tuple) else (fill,))
    require(all(0 <= level <= 255 for level in levels), f"fill must be in 0 to 255, got {fill}")
    return fill


def _borders(padding: Any) -> tuple[int, int, int, int]:
    """Return the widths of the left, top, right and bottom border."""
    values = [_integer(each) for each in (padding if isinstance(padding, (tuple, list)) else (padding,))]
    require(len(values) in (1, 2, 4), f"padding must have 1, 2 or 4 values, got {padding}")
    left, top, right, bottom = (values * 4)[:4]
    return left, top, right, bottom


def _create_pad(t: Any, padding: tuple[int, int, int, int], image: ImageForm) -> PadStep:
    mode = t.padding_mode
    require(image.form == PIL or min(padding) >= 0, f"padding of tensors must not be negative, got {padding}")
    require(mode in ("constant", "edge", "reflect", "symmetric"), f"unknown padding_mode {mode!r}")
    return PadStep(padding, _fill(t, image), str(mode), image.form != PIL)


# ---------------------------------------------------------------- steps


def _resize(t: Any, image: ImageForm) -> Steps:
    mode, size, longest = _filter(t, image.form), t.size, t.max_size
    if longest is not None:
        require(_integer(longest) > 0, f"max_size must be positive, got {longest}")
    if size is None:
        require(is_v2(t) and longest is not None, "size must be set")
        return [ResizeStep(None, longest, mode, image.form != PIL)]
    sizes = tuple(map(_integer, size if isinstance(size, (tuple, list)) else (size,)))
    require(len(sizes) in (1, 2) and min(sizes) > 0, f"size must be 1 or 2 positive integers, got {size}")
    require(
        longest is None or (len(sizes) == 1 and longest > sizes[0]),
        "max_size must be larger than size, which must be one side",
    )
    require(image.form == PIL or sizes[-1] > 1, "PyTorch resizes tensors to one column differently")
    return [ResizeStep(sizes, longest, mode, image.form != PIL)]


def _random_resized_crop(t: Any, image: ImageForm) -> Steps:
    mode, size = _filter(t, image.form), _size(t.size)
    require(image.form == PIL or size[1] > 1, "PyTorch resizes tensors to one column differently")
    return [RandomWindow(_range(t.scale, 0), _ratio(t)), ResizeStep(size, None, mode, image.form != PIL)]


def _center_crop(t: Any, image: ImageForm) -> Steps:
    return [CenterCropStep(_size(t.size))]


def _random_crop(t: Any, image: ImageForm) -> Steps:
    size, padding = _size(t.size), (0, 0, 0, 0)
    if t.padding is not None and is_v2(t):
        left, right, top, bottom = map(_integer, t.padding)
        padding = left, top, right, bottom
    elif t.padding is not None:
        padding = _borders(t.padding)
    pad = _create_pad(t, padding, image)
    # In these cases, padding twice isn't the same as padding once.
    pads_twice = min(padding) < 0 or pad.mode in ("reflect", "symmetric")
    if t.pad_if_needed and pads_twice and not is_v2(t):
        return [pad, RandomCropStep(size, replace(pad, padding=(0, 0, 0, 0)), True)]
    return [RandomCropStep(size, pad, bool(t.pad_if_needed))]


def _pad(t: Any, image: ImageForm) -> Steps:
    return [_create_pad(t, _borders(t.padding), image)]


def _flip(t: Any, image: ImageForm) -> Steps:
    return [FlipStep(_number(t.p), "Vertical" in type(t).__name__)]


def _with_probability(p: Any, *steps: Any) -> Steps:
    return [RandomSteps((steps, ()), (_number(p), 1.0))]


def _color(name: str, argument: str = "") -> Callable[[Any, ImageForm], Steps]:
    """Return the rule for a transform that applies a color operation with a probability.

    Args:
        name: Name of the operation.
        argument: Attribute of the transform with the operation's argument; "" for operations without an argument.
    """

    def rule(t: Any, image: ImageForm) -> Steps:
        value = _number(getattr(t, argument)) if argument else 0.0
        return _with_probability(t.p, ColorAdjustment(name, value))

    return rule


def _posterize(t: Any, image: ImageForm) -> Steps:
    bits = _integer(t.bits)
    require(1 <= bits <= 8, f"bits must be in 1 to 8, got {bits}")
    return _with_probability(t.p, ColorAdjustment("posterize", bits))


def _solarize(t: Any, image: ImageForm) -> Steps:
    threshold = _number(t.threshold)
    require(image.form == PIL or threshold <= 255, f"threshold must be below 256, got {threshold}")
    return _with_probability(t.p, ColorAdjustment("solarize", threshold))


def _grayscale(t: Any, image: ImageForm) -> Steps:
    if type(t).__name__ == "RandomGrayscale":
        return _with_probability(t.p, ColorAdjustment("gray", image.channels))
    channels = _integer(t.num_output_channels)
    require(channels in (1, 3), f"num_output_channels must be 1 or 3, got {channels}")
    return [ColorAdjustment("gray", channels)]


def _factors(t: Any) -> tuple[tuple[float, float] | None, ...]:
    positive = [None if each is None else _range(each, 0) for each in (t.brightness, t.contrast, t.saturation)]
    return (*positive, None if t.hue is None else _range(t.hue, -0.5, 0.5))


def _color_jitter(t: Any, image: ImageForm) -> Steps:
    ranges = _factors(t)
    require(image.form == PIL or ranges[1:] == (None, None, None), "rounds tensors differently")
    return [ColorJitterStep(ranges)]


def _distortion(t: Any, image: ImageForm) -> Steps:
    ranges = _factors(t)
    require(image.channels == 3 and None not in ranges, "must have 3 channels and four ranges")
    return [Distortion(ranges, _number(t.p)), *_with_probability(t.p, ChannelPermutation())]


def _permutation(t: Any, image: ImageForm) -> Steps:
    return [ChannelPermutation()] if image.channels == 3 else []


def _blur(t: Any, image: ImageForm) -> Steps:
    width, height = _size(t.kernel_size)
    require(width % 2 and height % 2, f"kernel_size must be odd, got {t.kernel_size}")
    return [Blur((width, height), _range(t.sigma, math.ulp(0.0)))]


def _geometric_options(t: Any, image: ImageForm) -> GeometricOptions:
    mode = _mode(t)
    require(mode.value in FILTERS, f"interpolation must be one of {', '.join(FILTERS)}, got {mode.value}")
    return GeometricOptions(mode, _fill(t, image), is_v2(t))


def _point(center: Any) -> tuple[float, ...] | None:
    if center is None:
        return None
    x, y = _numbers(center)
    return x, y


def _rotation(t: Any, image: ImageForm) -> Steps:
    return [RandomRotation(_range(t.degrees), bool(t.expand), _point(t.center), _geometric_options(t, image))]


def _affine(t: Any, image: ImageForm) -> Steps:
    translate = None if t.translate is None else _numbers(t.translate)
    require(translate is None or (len(translate) == 2 and min(translate) >= 0), f"translate is {translate}")
    scale = None if t.scale is None else _range(t.scale, math.ulp(0.0))
    shear = None if t.shear is None else (*_range(t.shear[:2]), *(_range(t.shear[2:]) if len(t.shear) > 2 else ()))
    return [RandomAffine(_range(t.degrees), translate, scale, shear, _point(t.center), _geometric_options(t, image))]  # type: ignore[arg-type]


def _perspective(t: Any, image: ImageForm) -> Steps:
    scale = _number(t.distortion_scale)
    require(0 <= scale <= 1, f"distortion_scale must be in 0 to 1, got {scale}")
    return _with_probability(t.p, Perspective(scale, _geometric_options(t, image)))


def _policy(t: Any, image: ImageForm) -> Steps:
    name, options = type(t).__name__, _geometric_options(t, image)
    space = Space.of(t, is_v2(t))
    if name == "RandAugment":
        return [RandAugment(space, _integer(t.num_ops), space.index(_integer(t.magnitude)), options)]
    if name == "TrivialAugmentWide":
        return [TrivialAugment(space, options)]
    policies = t._policies if is_v2(t) else t.policies
    return [AutoAugment(space, tuple(_operations(policy, space) for policy in policies), options)]


def _operations(policy: Any, space: Space) -> tuple[tuple[str, float, int | None], ...]:
    """Return the two operations of an AutoAugment policy.

    Each operation is a tuple of name, probability and index of the magnitude. The index is None if the operation has no
    magnitude.
    """
    operations = [
        (name, _number(p), None if index is None else space.index(_integer(index))) for name, p, index in policy
    ]
    is_valid = all((index is None) == (not space.magnitudes(name, (1, 1))[0]) for name, _, index in operations)
    require(len(operations) == 2 and is_valid, f"unknown policy {policy}")
    return tuple(operations)


def _rectangle(t: Any) -> Rectangle:
    return Rectangle(_number(t.p), _range(t.scale, 0), _ratio(t))


def _values(t: Any, channels: int) -> tuple[float, ...]:
    """Return the values that a `RandomErasing` writes: one value, or one per channel; () if the values are random."""
    if t.value is None or t.value == "random":
        return ()
    values = _numbers(t.value if isinstance(t.value, (tuple, list)) else (t.value,))
    require(len(values) in (1, channels), f"value must have 1 or {channels} values, got {values}")
    return values


def _fill_rectangle(t: Any, image: ImageForm) -> Steps:
    values = _values(t, image.channels)
    require(values and all(0 <= value <= 255 for value in values), f"value must be in 0 to 255, got {t.value}")
    color = [int(value) for value in values]
    return [RectangleFill(_rectangle(t), (color[0], color[len(color) // 2], color[-1]))]


def is_v2(t: Any) -> bool:
    return ".v2" in type(t).__module__


class _Rule(NamedTuple):
    """The rule for a class of transforms: a function that returns the steps, and the supported forms of the input."""

    steps: Callable[[Any, ImageForm], Steps]
    forms: tuple[str, ...] = (PIL, BYTES)


_ALL_FORMS = (PIL, BYTES, UNIT, NORMALIZED)
_RULES = {
    "AutoAugment": _Rule(_policy, (PIL,)),
    "CenterCrop": _Rule(_center_crop, (PIL, BYTES, UNIT)),
    "ColorJitter": _Rule(_color_jitter),
    "GaussianBlur": _Rule(_blur),
    "Grayscale": _Rule(_grayscale, (PIL,)),
    "Identity": _Rule(lambda t, image: [], _ALL_FORMS),
    "Pad": _Rule(_pad),
    "RGB": _Rule(lambda t, image: [ColorAdjustment("rgb")] if image.channels == 1 else [], (PIL,)),
    "RandAugment": _Rule(_policy, (PIL,)),
    "RandomAdjustSharpness": _Rule(_color("sharpness", "sharpness_factor"), (PIL,)),
    "RandomAffine": _Rule(_affine, (PIL,)),
    "RandomAutocontrast": _Rule(_color("autocontrast"), (PIL,)),
    "RandomChannelPermutation": _Rule(_permutation),
    "RandomCrop": _Rule(_random_crop),
    "RandomEqualize": _Rule(_color("equalize")),
    "RandomErasing": _Rule(_fill_rectangle, (BYTES,)),
    "RandomGrayscale": _Rule(_grayscale, (PIL,)),
    "RandomHorizontalFlip": _Rule(_flip, _ALL_FORMS),
    "RandomInvert": _Rule(_color("invert")),
    "RandomPerspective": _Rule(_perspective, (PIL,)),
    "RandomPhotometricDistort": _Rule(_distortion, (PIL,)),
    "RandomPosterize": _Rule(_posterize),
    "RandomResizedCrop": _Rule(_random_resized_crop),
    "RandomRotation": _Rule(_rotation, (PIL,)),
    "RandomSolarize": _Rule(_solarize),
    "RandomVerticalFlip": _Rule(_flip, _ALL_FORMS),
    "Resize": _Rule(_resize),
    "TrivialAugmentWide": _Rule(_policy, (PIL,)),
}


# ---------------------------------------------------------------- steps of transforms, also of nested transforms


def is_torchvision_transform(t: Any) -> bool:
    return type(t).__module__.startswith("torchvision.transforms")


def steps_of(t: Any, image: ImageForm) -> Steps:
    """Return the steps of one transform, which may contain other transforms, like `RandomApply`.

    Raises:
        NotSupportedError: the transform, or the form of its input, is not supported.
        ValueError: a value of the transform is not supported.
    """
    name, rule = type(t).__name__, _RULES.get(type(t).__name__)
    if not is_torchvision_transform(t):
        raise NotSupportedError(own_transform_reason(t))
    if name in ("RandomApply", "RandomChoice", "RandomOrder"):
        return _choice(t, name, image)
    if rule is None or image.form not in rule.forms:
        raise NotSupportedError(unsupported_reason(t, image.form))
    return rule.steps(t, image)


def _choice(t: Any, name: str, image: ImageForm) -> Steps:
    step_groups = [tuple(step for each in flatten(one) for step in steps_of(each, image)) for one in t.transforms]
    require(
        all(channels_after(group, image.channels) == image.channels for group in step_groups),
        "must keep the number of channels",
    )
    if name == "RandomOrder":
        return [RandomSteps(tuple(step_groups))]
    if name == "RandomApply":
        return _with_probability(t.p, *(step for group in step_groups for step in group))
    weights = [1.0] * len(step_groups) if t.p is None else _numbers(t.p)
    require(
        len(weights) == len(step_groups) and min(weights) >= 0 < sum(weights), f"p must be {len(step_groups)} weights"
    )
    return [RandomSteps(tuple(step_groups), tuple(end / sum(weights) for end in accumulate(weights)))]


def flatten(transform: Any) -> Iterator[Any]:
    """Yield the transforms of a `Compose`, a `Sequential` or a preset, recursively."""
    if type(transform).__name__ == "Compose" and is_torchvision_transform(transform):
        inner = transform.transforms
    elif type(transform) is torch.nn.Sequential:
        inner = transform
    elif type(transform) is ImageClassification:
        inner = _expand_preset(transform)
    else:
        yield transform
        return
    for each in inner:
        yield from flatten(each)


def _expand_preset(t: ImageClassification) -> list[Any]:
    """Return the transforms that an `ImageClassification`, the preset of a model's weights, consists of."""
    return [
        v1.Resize(t.resize_size, t.interpolation, antialias=t.antialias), v1.CenterCrop(t.crop_size), v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float), v1.Normalize(t.mean, t.std),
    ]  # fmt: skip


def channels_after(steps: Steps, channels: int) -> int:
    """Return an image's number of channels after some steps.

    Args:
        channels: Number of channels before the steps.
    """
    for step in steps:
        if isinstance(step, ColorAdjustment) and step.name in ("gray", "rgb"):
            channels = int(step.value) if step.name == "gray" else 3
    return channels


def erasing_of(t: Any, image: ImageForm) -> Erasing:
    """Return the erasing step for a `RandomErasing` of a float tensor."""
    return Erasing(_rectangle(t), _values(t, image.channels) or None)
