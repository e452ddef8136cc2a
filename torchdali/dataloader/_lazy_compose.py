"""Replace the last transforms of a torchvision `Compose`, in PyTorch's workers, by one faster call.

The conversion of an image to a tensor and the transforms after it, like `ToDtype` and `Normalize`, are *fused*: one
call decodes a lazy image, converts it and normalizes it. The transforms before the conversion still run one after the
other. Transforms are fused only if the user has not changed torchvision's code.
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
    """The transforms of a `Compose` that one call replaces.

    Attributes:
        start, stop: Range of the indices of the fused transforms.
        transforms: All transforms of the `Compose`.
        states: Attributes of each fused transform, to detect later changes.
        conversion: Conversion that replaces the fused transforms; None if no transforms are fused.
        planar: True if the resulting tensor is contiguous, like the result of `ToTensor`.
        expects_tensor: True if the input of the fused transforms is a tensor; False if it is a PIL image.
        kind: Class of the resulting tensor; None if the result has the same class as the input.
    """

    start: int
    stop: int
    transforms: tuple[Any, ...]
    states: tuple[dict[str, Any], ...] = ()
    conversion: TensorConversion | None = None
    planar: bool = False
    expects_tensor: bool = False
    kind: Any = None

    def is_current(self, transforms: Sequence[Any]) -> bool:
        """Return True if the transforms of the `Compose` and their attributes are unchanged."""
        if len(transforms) != len(self.transforms) or not all(map(operator.is_, transforms, self.transforms)):
            return False
        fused = self.transforms[self.start : self.stop]
        is_dtype_valid = self.conversion is None or torch.get_default_dtype() is torch.float32
        return is_dtype_valid and all(vars(t) == state for t, state in zip(fused, self.states, strict=True))

    def convert(self, image: Any) -> Tensor | None:
        """Apply the fused transforms to a PIL image or a uint8 tensor; None if torchvision must apply them."""
        if self.conversion is None or isinstance(image, Tensor) is not self.expects_tensor:
            return None
        if isinstance(image, Tensor):
            planes = convert_tensor(image, self.conversion)
        else:
            planes = convert_image(image, self.conversion, self.planar)
        kind = self.kind or type(image)
        return planes if planes is None or kind is Tensor else kind(planes)

    def convert_sample(self, inputs: tuple[Any, ...]) -> Any:
        """Apply the fused transforms to a sample; None if torchvision must apply them.

        If the sample has values besides the image, torchvision's own transforms process those values. To save time,
        the transforms get a tiny image instead of the real one.
        """
        leaves, spec = tree_flatten(inputs)
        image_indices = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Image.Image) or _is_image(leaf)]
        planes = self.convert(leaves[image_indices[0]]) if len(image_indices) == 1 else None
        if planes is None or len(leaves) == 1:
            return None if planes is None else tree_unflatten([planes], spec)
        (image_index,) = image_indices
        image = leaves[image_index]
        leaves[image_index] = image[:, :1, :1] if isinstance(image, Tensor) else Image.new("RGB", (1, 1))
        results = _apply_transforms(self.transforms[self.start : self.stop], tree_unflatten(leaves, spec))
        leaves, spec = tree_flatten(results)
        leaves[image_index] = planes
        return tree_unflatten(leaves, spec)


def _is_image(value: Any) -> bool:
    tv_tensors = sys.modules.get("torchvision.tv_tensors")
    return type(value) is Tensor or (tv_tensors is not None and type(value) is tv_tensors.Image)


def _apply_transforms(transforms: Sequence[Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    several = len(inputs) > 1
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if several else (outputs,)
    return inputs


def _find_fusible(transforms: Sequence[Any]) -> _FusedTransforms:
    """Find the longest sequence of supported transforms that begins with a conversion."""
    all_transforms = tuple(transforms)
    for start, t in enumerate(all_transforms):
        if name_of(t) in _CONVERSIONS or name_of(t) in _DTYPES:
            for stop in range(len(all_transforms), start, -1):
                fused = _try_fuse(all_transforms, start, stop)
                if fused is not None:
                    return fused
    return _FusedTransforms(0, 0, all_transforms)


def _try_fuse(all_transforms: tuple[Any, ...], start: int, stop: int) -> _FusedTransforms | None:
    candidates, first = all_transforms[start:stop], name_of(all_transforms[start])
    kind, resolved = None, []
    for t in candidates:
        kind = _kind_after(t, kind)
        resolved.append(_resolve_dtype(t, kind))
    transforms = compile_transforms(
        Compose(resolved if first in _CONVERSIONS else [PILToTensor(), *resolved])
    ).transforms
    conversion = None if transforms is None or transforms.steps or transforms.ends else transforms.conversion
    if conversion is None or not conversion.is_float or find_transform_change(list(candidates)):
        return None
    states = tuple(copy.deepcopy(vars(t)) for t in candidates)
    return _FusedTransforms(
        start, stop, all_transforms, states, conversion, first == "ToTensor", first in _DTYPES, kind
    )


def _kind_after(t: Any, kind: Any) -> Any:
    """Return the class of an image after a transform, from the class before the transform.

    None means that no transform has changed the class so far.
    """
    name = name_of(t)
    if name == "ToImage":
        return sys.modules["torchvision.tv_tensors"].Image
    return Tensor if name in ("PILToTensor", "ToPureTensor", "ToTensor") else kind


def _resolve_dtype(t: Any, kind: Any) -> Any:
    """Replace a `ToDtype` that has one dtype per class by a `ToDtype` for the image's class.

    Other transforms are returned unchanged.
    """
    dtypes = getattr(t, "dtype", None) if name_of(t) == "ToDtype" else None
    if not isinstance(dtypes, dict) or kind is None or type(t).__module__ != "torchvision.transforms.v2._misc":
        return t
    dtype = dtypes.get(kind, dtypes.get("others"))
    return type(t)(dtype, t.scale) if isinstance(dtype, torch.dtype) else t


_fused_by_compose: weakref.WeakKeyDictionary[Any, _FusedTransforms] = weakref.WeakKeyDictionary()
_searches = itertools.count()


def _reset_cache() -> None:
    global _searches
    _fused_by_compose.clear()
    _searches = itertools.count()


# Maximum number of times that a `Compose` is searched for transforms to fuse. A search is slow, and in a program that
# creates a new `Compose` for each sample, each result would be used only once.
_MAX_SEARCHES = 256


def _apply_fused(compose: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Apply the transforms of a `Compose`, with some of them fused; None if no transforms can be fused."""
    fused = _fused_by_compose.get(compose)
    try:
        if fused is None or not fused.is_current(compose.transforms):
            fused = _fused_by_compose[compose] = _find_fusible(
                compose.transforms if next(_searches) < _MAX_SEARCHES else ()
            )
    except Exception:  # e.g. attributes can't be compared; torchvision's own code must run
        return None
    if fused.conversion is None:
        return None
    inputs = _apply_transforms(fused.transforms[: fused.start], inputs)
    converted = fused.convert_sample(inputs)
    if converted is None:
        return _apply_transforms(fused.transforms[fused.start :], inputs)
    return _apply_transforms(fused.transforms[fused.stop :], converted)


def _has_image(inputs: tuple[Any, ...]) -> bool:
    for each in inputs:
        parts = each.values() if isinstance(each, dict) else each if isinstance(each, (tuple, list)) else (each,)
        if any(isinstance(part, Image.Image) for part in parts):
            return True
    return False


def _replacement(original: Callable[..., Any], is_active: Callable[[], bool]) -> Callable[..., Any]:
    """Wrap a method of `Compose`. The wrapper fuses transforms while `is_active` returns True."""

    @functools.wraps(original)
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if not named and is_active() and _has_image(inputs):
            outputs = _apply_fused(self, inputs)
            if outputs is not None:
                return outputs if len(inputs) > 1 else outputs[0]
        return original(self, *inputs, **named)

    return forward


def compose_replacements(is_active: Callable[[], bool]) -> list[tuple[type, str, Callable[..., Any]]]:
    """Return the replacements for methods of `Compose`, as tuples of class, name and function.

    Args:
        is_active: Function that returns True if transforms must be fused in the current thread.
    """
    _reset_cache()
    v2 = sys.modules.get("torchvision.transforms.v2")
    methods = [(Compose, "__call__"), *([] if v2 is None else [(v2.Compose, "forward")])]
    return [
        (kind, name, _replacement(vars(kind)[name], is_active)) for kind, name in methods if not find_class_change(kind)
    ]
