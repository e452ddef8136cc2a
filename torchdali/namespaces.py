"""Modules made from the registry: ``fn.readers``, ``ops.random`` and so on, importable like files."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from torchdali.errors import did_you_mean
from torchdali.registry import Operator, registry

__all__ = ["publish", "put"]


def publish(
    package: str,
    entry: Callable[[Operator], tuple[str, Any]],
    wanted: Callable[[Operator], bool] = lambda operator: True,
) -> Callable[[str], Any]:
    """Fill a package, and modules below it, with an entry for each operator, now and later.

    Args:
        package: Name of the imported package.
        entry: Returns the dotted name inside the package, and what stands there.
        wanted: Selects operators; hidden ones are left out in any case.

    Returns:
        A ``__getattr__`` for the package, whose error names the closest operators.
    """

    def add(operator: Operator) -> None:
        if not operator.options.hidden and wanted(operator):
            put(package, *entry(operator))

    for operator in registry.values():
        add(operator)
    registry.listeners.append(add)
    return lambda name: _missing(package, name)


def put(package: str, name: str, value: Any) -> None:
    """Put a value under a dotted name into a package."""
    space, _, leaf = name.rpartition(".")
    setattr(_module(package, space), leaf, value)


def _module(package: str, space: str) -> types.ModuleType:
    """Return the module of a namespace, made if need be, with those above it."""
    if not space:
        return sys.modules[package]
    full = f"{package}.{space}"
    if full not in sys.modules:
        module = types.ModuleType(full, f"Operators of the namespace {space!r}; see `{package}`.")
        module.__path__ = []
        sys.modules[full] = module
        parent, _, leaf = space.rpartition(".")
        setattr(_module(package, parent), leaf, module)
    return sys.modules[full]


_UNDER_ANOTHER_NAME = {
    "adjust_brightness": "brightness", "adjust_contrast": "contrast", "adjust_hue": "hue",
    "adjust_saturation": "saturation", "auto_augment": "torchdali.auto_aug.auto_augment",
    "center_crop": "crop, which takes the center by default",
    "color_jitter": "color_twist with fn.random.uniform as brightness, contrast, saturation and hue",
    "elastic_transform": "warp_affine or a displacement by python_function",
    "grayscale": "color_space_conversion", "horizontal_flip": "flip",
    "perspective": "experimental.warp_perspective", "rand_augment": "torchdali.auto_aug.rand_augment",
    "random_affine": "warp_affine with fn.transforms of random numbers",
    "random_crop": "crop with fn.random.uniform as crop_pos_x and crop_pos_y, or decoders.image_random_crop",
    "random_erasing": "erase with fn.random.uniform as anchor",
    "random_flip": "flip with horizontal=fn.random.coin_flip()",
    "random_horizontal_flip": "flip with horizontal=fn.random.coin_flip()",
    "random_rotation": "rotate with angle=fn.random.uniform(range=[-30, 30])",
    "random_vertical_flip": "flip with horizontal=0 and vertical=fn.random.coin_flip()",
    "rgb_to_grayscale": "color_space_conversion", "sharpen": "filter",
    "to_dtype": "cast", "to_float": "cast", "to_tensor": "crop_mirror_normalize",
    "trivial_augment": "torchdali.auto_aug.trivial_augment",
    "trivial_augment_wide": "torchdali.auto_aug.trivial_augment",
    "vertical_flip": "flip with horizontal=0 and vertical=1", "zoom": "resize",
}  # fmt: skip
"""Operations that other libraries have under a name, and what to use here."""


def _missing(package: str, name: str) -> Any:
    hint = did_you_mean(name, vars(sys.modules[package]), 3)
    if other := _UNDER_ANOTHER_NAME.get(name):
        hint = f"; use {other}"
    raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name)
