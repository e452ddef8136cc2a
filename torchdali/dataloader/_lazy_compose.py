"""Conversion of images to normalized tensors in one call, where a `Compose` of torchvision runs in a worker.

A `Compose` calls its transforms one after the other, as always. Only the conversion of the image to a tensor and what
follows it, such as `ToDtype` and `Normalize`, become one call: if they are torchvision's own and unchanged.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from PIL import Image
from torchvision.transforms import Compose

from torchdali.dataloader._lazy_images import convert_image
from torchdali.dataloader._pristine import find_transform_change
from torchdali.dataloader._rules import compiled, name_of
from torchdali.ops._pictures import Finish

__all__ = ["replace_calls"]

_CONVERSIONS = ("PILToTensor", "ToImage", "ToTensor")


class _Tail(NamedTuple):
    """Transforms that become one call.

    Attributes:
        start, stop: Their positions in the `Compose`.
        transforms: All transforms of it.
        states: The attributes of those that become one call.
        finish: Does the same; None if there are none.
    """

    start: int
    stop: int
    transforms: tuple[Any, ...]
    states: tuple[dict[str, Any], ...] = ()
    finish: Finish | None = None
    planar: bool = False
    is_image: bool = False

    def is_current(self, transforms: Sequence[Any]) -> bool:
        """Return whether the transforms of the `Compose` are still the same."""
        if len(transforms) != len(self.transforms) or torch.get_default_dtype() is not torch.float32:
            return False
        same = all(map(_is, transforms, self.transforms))
        return same and all(vars(t) == state for t, state in zip(transforms[self.start :], self.states, strict=False))


def _is(one: Any, other: Any) -> bool:
    return one is other


def _find_tail(transforms: Sequence[Any]) -> _Tail:
    """Return the longest row of transforms that is one call."""
    everything = tuple(transforms)
    start = next((i for i, t in enumerate(everything) if name_of(t) in _CONVERSIONS), len(everything))
    for stop in range(len(everything), start, -1):
        row = everything[start:stop]
        chain = compiled(Compose(row))
        if chain.chain is None or chain.chain.steps or chain.chain.ends or find_transform_change(list(row)):
            continue
        finish = chain.chain.finish
        if finish is not None and finish.unit:
            states = tuple(copy.deepcopy(vars(t)) for t in row)
            return _Tail(start, stop, everything, states, finish, name_of(row[0]) == "ToTensor", chain.is_image)
    return _Tail(0, 0, everything)


_tails: weakref.WeakKeyDictionary[Any, _Tail] = weakref.WeakKeyDictionary()


def _tail_of(compose: Any) -> _Tail:
    tail = _tails.get(compose)
    if tail is None or not tail.is_current(compose.transforms):
        tail = _tails[compose] = _find_tail(compose.transforms)
    return tail


def _call(compose: Any, image: Any) -> tuple[bool, Any]:
    """Return whether a part of the transforms was one call, and the result."""
    try:
        tail = _tail_of(compose)
    except Exception:  # of attributes that can't be compared: torchvision's own code decides
        return False, None
    if tail.finish is None:
        return False, None
    for transform in tail.transforms[: tail.start]:
        image = transform(image)
    planes = convert_image(image, tail.finish, tail.planar)
    if planes is not None:
        image = sys.modules["torchvision.tv_tensors"].Image(planes) if tail.is_image else planes
    for transform in tail.transforms[tail.start if planes is None else tail.stop :]:
        image = transform(image)
    return True, image


def _replacement(original: Callable[..., Any], is_active: Callable[[], bool]) -> Callable[..., Any]:
    """Return a method of a `Compose`, which makes one call of the conversion of an image."""

    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if len(inputs) == 1 and not named and isinstance(inputs[0], Image.Image) and is_active():
            is_done, result = _call(self, inputs[0])
            if is_done:
                return result
        return original(self, *inputs, **named)

    return forward


def replace_calls(is_active: Callable[[], bool]) -> Callable[[], None]:
    """Let a `Compose` make one call of conversions, where `is_active()`; return the function that undoes it."""
    v2 = sys.modules.get("torchvision.transforms.v2")
    methods = [(Compose, "__call__"), *([] if v2 is None else [(v2.Compose, "forward")])]
    originals = [(kind, name, vars(kind)[name]) for kind, name in methods]
    for kind, name, original in originals:
        setattr(kind, name, _replacement(original, is_active))

    def restore() -> None:
        for kind, name, original in originals:
            setattr(kind, name, original)

    return restore
