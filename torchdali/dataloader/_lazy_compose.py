"""Conversion of images to normalized tensors in one call, where a `Compose` of torchvision runs in a worker.

A `Compose` calls its transforms one after the other, as always. Only the conversion of the image to a tensor and the
transforms after it, like `ToDtype` and `Normalize`, become one call: if they are torchvision's own and unchanged.
"""

from __future__ import annotations

import copy
import functools
import itertools
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten
from torchvision.transforms import Compose, PILToTensor

from torchdali.dataloader._chains import compile_transforms
from torchdali.dataloader._lazy_images import convert_image, convert_tensor
from torchdali.dataloader._notes import name_of
from torchdali.dataloader._pristine import find_class_change, find_transform_change
from torchdali.ops._pictures import TensorConversion

__all__ = ["compose_replacements"]

_CONVERSIONS, _DTYPES = ("PILToTensor", "ToImage", "ToTensor"), ("ConvertImageDtype", "ToDtype")


class _FusedTransforms(NamedTuple):
    """Transforms of a `Compose` that become one call.

    Attributes:
        start, stop: Their positions.
        transforms: All transforms of the `Compose`.
        states: The attributes of those that become one call.
        conversion: Does the same; None if there are none.
        planar: The tensor is contiguous, as `ToTensor` returns it.
        of_tensors: The input is a tensor already.
        kind: The class of the result; None for the class of the input.
    """

    start: int
    stop: int
    transforms: tuple[Any, ...]
    states: tuple[dict[str, Any], ...] = ()
    conversion: TensorConversion | None = None
    planar: bool = False
    of_tensors: bool = False
    kind: Any = None

    def is_current(self, transforms: Sequence[Any]) -> bool:
        """Return whether the transforms of the `Compose` are still the same."""
        if len(transforms) != len(self.transforms) or not all(map(operator.is_, transforms, self.transforms)):
            return False
        row = self.transforms[self.start : self.stop]
        usual = self.conversion is None or torch.get_default_dtype() is torch.float32
        return usual and all(vars(t) == state for t, state in zip(row, self.states, strict=True))

    def convert(self, image: Any) -> Tensor | None:
        """Return the tensor of an image, or of a tensor that was one; None if torchvision has to convert it."""
        if self.conversion is None or isinstance(image, Tensor) is not self.of_tensors:
            return None
        if isinstance(image, Tensor):
            planes = convert_tensor(image, self.conversion)
        else:
            planes = convert_image(image, self.conversion, self.planar)
        kind = self.kind or type(image)
        return planes if planes is None or kind is Tensor else kind(planes)

    def convert_sample(self, inputs: tuple[Any, ...]) -> Any:
        """Return a sample after these transforms; None if torchvision has to convert it.

        Everything but the image goes through torchvision's own code, with a tiny image as a placeholder.
        """
        leaves, form = tree_flatten(inputs)
        images = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Image.Image) or _is_image(leaf)]
        planes = self.convert(leaves[images[0]]) if len(images) == 1 else None
        if planes is None or len(leaves) == 1:
            return None if planes is None else tree_unflatten([planes], form)
        (place,) = images
        image = leaves[place]
        leaves[place] = image[:, :1, :1] if isinstance(image, Tensor) else Image.new("RGB", (1, 1))
        results = _run(self.transforms[self.start : self.stop], tree_unflatten(leaves, form))
        leaves, form = tree_flatten(results)
        leaves[place] = planes
        return tree_unflatten(leaves, form)


def _is_image(value: Any) -> bool:
    tv_tensors = sys.modules.get("torchvision.tv_tensors")
    return type(value) is Tensor or (tv_tensors is not None and type(value) is tv_tensors.Image)


def _run(transforms: Sequence[Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call transforms one after the other, as a `Compose` does."""
    several = len(inputs) > 1
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if several else (outputs,)
    return inputs


def _find_row(transforms: Sequence[Any]) -> _FusedTransforms:
    """Return the longest row of transforms that is one call, from the first conversion on."""
    everything = tuple(transforms)
    for start, t in enumerate(everything):
        if name_of(t) in _CONVERSIONS or name_of(t) in _DTYPES:
            for stop in range(len(everything), start, -1):
                row = _row_of(everything, start, stop)
                if row is not None:
                    return row
    return _FusedTransforms(0, 0, everything)


def _row_of(everything: tuple[Any, ...], start: int, stop: int) -> _FusedTransforms | None:
    row, first = everything[start:stop], name_of(everything[start])
    kind, known = None, []
    for t in row:
        kind = _kind_after(t, kind)
        known.append(_of_kind(t, kind))
    transforms = compile_transforms(Compose(known if first in _CONVERSIONS else [PILToTensor(), *known])).transforms
    conversion = None if transforms is None or transforms.steps or transforms.ends else transforms.conversion
    if conversion is None or not conversion.unit or find_transform_change(list(row)):
        return None
    states = tuple(copy.deepcopy(vars(t)) for t in row)
    return _FusedTransforms(start, stop, everything, states, conversion, first == "ToTensor", first in _DTYPES, kind)


def _kind_after(t: Any, kind: Any) -> Any:
    """Return the class of an image after a transform; None for the class that it had before the first one."""
    name = name_of(t)
    if name == "ToImage":
        return sys.modules["torchvision.tv_tensors"].Image
    return Tensor if name in ("PILToTensor", "ToPureTensor", "ToTensor") else kind


def _of_kind(t: Any, kind: Any) -> Any:
    """Return a conversion of dtypes with the dtype for a class of images, if it is known; others unchanged."""
    dtypes = getattr(t, "dtype", None) if name_of(t) == "ToDtype" else None
    if not isinstance(dtypes, dict) or kind is None or type(t).__module__ != "torchvision.transforms.v2._misc":
        return t
    dtype = dtypes.get(kind, dtypes.get("others"))
    return type(t)(dtype, t.scale) if isinstance(dtype, torch.dtype) else t


_rows: weakref.WeakKeyDictionary[Any, _FusedTransforms] = weakref.WeakKeyDictionary()
_searches = itertools.count()


def _forget_rows() -> None:
    """Check again whether transforms are unchanged."""
    global _searches
    _rows.clear()
    _searches = itertools.count()


_MOST = 256  # searches of a process: a program may make a `Compose` for each sample


def _call(compose: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the results of a `Compose` for its inputs; None if no part of it is one call."""
    row = _rows.get(compose)
    try:
        if row is None or not row.is_current(compose.transforms):
            row = _rows[compose] = _find_row(compose.transforms if next(_searches) < _MOST else ())
    except Exception:  # of attributes that can't be compared: torchvision's own code decides
        return None
    if row.conversion is None:
        return None
    inputs = _run(row.transforms[: row.start], inputs)
    converted = row.convert_sample(inputs)
    if converted is None:
        return _run(row.transforms[row.start :], inputs)
    return _run(row.transforms[row.stop :], converted)


def _has_image(inputs: tuple[Any, ...]) -> bool:
    """Return whether an image is among the inputs, or in a collection that is one."""
    for each in inputs:
        parts = each.values() if isinstance(each, dict) else each if isinstance(each, (tuple, list)) else (each,)
        if any(isinstance(part, Image.Image) for part in parts):
            return True
    return False


def _replacement(original: Callable[..., Any], is_active: Callable[[], bool]) -> Callable[..., Any]:
    """Return a method of a `Compose`, which makes one call of the conversion of an image."""

    @functools.wraps(original)
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if not named and is_active() and _has_image(inputs):
            outputs = _call(self, inputs)
            if outputs is not None:
                return outputs if len(inputs) > 1 else outputs[0]
        return original(self, *inputs, **named)

    return forward


def compose_replacements(is_active: Callable[[], bool]) -> list[tuple[type, str, Callable[..., Any]]]:
    """Return methods by which a `Compose` makes one call of conversions, where `is_active()`: class, name, function."""
    _forget_rows()
    v2 = sys.modules.get("torchvision.transforms.v2")
    methods = [(Compose, "__call__"), *([] if v2 is None else [(v2.Compose, "forward")])]
    return [
        (kind, name, _replacement(vars(kind)[name], is_active)) for kind, name in methods if not find_class_change(kind)
    ]
