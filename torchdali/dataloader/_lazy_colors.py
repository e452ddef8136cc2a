"""Replacements for torchvision's color functions that record color changes in lazy images."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from torchvision.transforms import ColorJitter, RandomGrayscale
from torchvision.transforms import _functional_pil as pillow

from torchdali.dataloader._lazy_images import LazyImage
from torchdali.dataloader._pristine import find_class_change
from torchdali.ops._picture_colors import encode_operations

__all__ = ["color_replacements"]


class _Change(NamedTuple):
    """The native library's operation that is equivalent to a torchvision function.

    Attributes:
        operation: Name of the operation in `codecs.pixel_steps`.
        is_supported: Function that returns True if the library supports a value of the function's argument.
        keeps_info: True if the result has the same ``info`` dictionary as the image.
    """

    operation: str
    is_supported: Callable[[float], bool]
    keeps_info: bool = False


def _is_factor(value: float) -> bool:
    return 0 < value < 1000 and value != 1  # for 0 and 1, Pillow copies an image instead of computing


_CHANGES = {
    "adjust_brightness": _Change("brightness", _is_factor),
    "adjust_contrast": _Change("contrast", _is_factor),
    "adjust_saturation": _Change("saturation", _is_factor, True),
    "adjust_hue": _Change("hue", lambda value: -0.5 <= value <= 0.5),
    "to_grayscale": _Change("gray", lambda value: value == 3),
}


def _replacement(original: Any, change: _Change) -> Callable[..., Any]:
    """Return a replacement for a torchvision function. The replacement records the change if the image is lazy."""
    parameter = original.__code__.co_varnames[1]

    @functools.wraps(original)
    def function(image: Any, *arguments: Any, **named: Any) -> Any:
        result, values = None, [*arguments, *(value for key, value in named.items() if key == parameter)]
        if isinstance(image, LazyImage) and len(values) == 1 and len(arguments) + len(named) == 1:
            (value,) = values
            if type(value) in (int, float) and change.is_supported(value):
                steps = encode_operations([(change.operation, value)])
                result = image.change_colors(steps, lambda each: original(each, value), change.keeps_info)
        return original(image, *arguments, **named) if result is None else result

    return function


def color_replacements() -> list[tuple[dict[Any, Any], Any, Callable[..., Any]]]:
    """Return the replacements as tuples: dictionary, key, and new value.

    The dictionary is the namespace of a torchvision module, or a table of `transforms.v2`.
    """
    if find_class_change(ColorJitter) or find_class_change(RandomGrayscale):
        return []
    found: list[tuple[dict[Any, Any], Any, Callable[..., Any]]] = []
    for name, change in _CHANGES.items():
        function = _replacement(vars(pillow)[name], change)
        found += [
            (vars(pillow), name, function),
            *((table, LazyImage, function) for table in _find_kernel_tables(name)),
        ]
    return found


def _find_kernel_tables(name: str) -> list[dict[Any, Any]]:
    """Return the tables of `transforms.v2` that map an image's class to the function for this class."""
    utils = sys.modules.get("torchvision.transforms.v2.functional._utils")
    names = (name, "rgb_to_grayscale") if name == "to_grayscale" else (name,)
    tables = {} if utils is None else {each.__name__: table for each, table in utils._KERNEL_REGISTRY.items()}
    return [tables[each] for each in names if each in tables]
