"""Create importable modules such as ``fn.readers`` and ``ops.random`` from the registry of operators."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from torchdali.declaration.registry import Operator, registry
from torchdali.errors import did_you_mean
from torchdali.submodules import import_submodule

__all__ = ["publish", "add_entry"]


def publish(package: str, name: Callable[[Operator], str | None], value: Callable[[Operator], Any]) -> None:
    """Add an entry for each public operator to a package and its modules.

    Operators that are declared later are also added. The error for an unknown attribute suggests the closest operators.

    Args:
        package: Name of the imported package.
        name: Function that returns an operator's dotted name inside the package, or None to omit the operator.
        value: Function that returns the entry for an operator.
    """

    def add(operator: Operator) -> None:
        full_name = None if operator.hidden else name(operator)
        if full_name is not None:
            add_entry(package, full_name, value(operator))

    _customize(sys.modules[package])
    for operator in registry.values():
        add(operator)
    registry.listeners.append(add)


def add_entry(package: str, name: str, value: Any) -> None:
    """Store a value in a package, under a dotted name. Modules in the name are created if necessary."""
    namespace, _, short_name = name.rpartition(".")
    setattr(_get_module(package, namespace), short_name, value)


def _get_module(package: str, namespace: str) -> types.ModuleType:
    if not namespace:
        return sys.modules[package]
    full_name = f"{package}.{namespace}"
    if full_name not in sys.modules:
        module = types.ModuleType(full_name, f"Operators of the namespace {namespace!r}; see `{package}`.")
        module.__path__ = []
        _customize(module)
        sys.modules[full_name] = module
        parent, _, short_name = namespace.rpartition(".")
        setattr(_get_module(package, parent), short_name, module)
    return sys.modules[full_name]


def _customize(module: types.ModuleType) -> None:
    """Restrict `dir(module)` to its operators, and suggest close matches for unknown names."""
    vars(module).update(__getattr__=partial(_find_missing, module), __dir__=partial(_list_names, module))


def _find_missing(module: types.ModuleType, name: str) -> Any:
    if name == "__all__":
        return [each for each in _list_names(module) if not each.startswith("_")]
    if (submodule := import_submodule(module.__name__, name)) is not None:
        return submodule
    raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}{_hint(module, name)}", name=name)


def _list_names(module: types.ModuleType) -> list[str]:
    """List the operators and the public names of a module, without its imports."""
    own = (name for name, value in vars(module).items() if name.startswith("__") or _belongs_to(value, module))
    return sorted({*own, *vars(module).get("__all__", ())})


def _belongs_to(value: Any, module: types.ModuleType) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith(module.__name__)
    return hasattr(value, "operator") or str(getattr(value, "__module__", None)).startswith(module.__name__)


_REPLACEMENTS = {
    "adjust_brightness": "brightness", "adjust_contrast": "contrast", "adjust_hue": "hue",
    "adjust_saturation": "saturation", "auto_augment": "torchdali.auto_aug.auto_augment",
    "batch": "batch_size of the pipeline",
    "cache": "num_threads and prefetch_queue_depth; files are cached by the system", "choice": "random.choice",
    "clip": "math.clamp",
    "compose": "call the operators one after the other, in a function with @pipeline_def",
    "concatenate": "cat", "cutmix": "a recipe: docs/recipes/tasks.md",
    "gaussian_noise": "noise.gaussian",
    "map": "python_function or torch_python_function, with your own function",
    "mean": "reductions.mean", "mixup": "a recipe: docs/recipes/tasks.md", "sum": "reductions.sum",
    "where": "an `if` on a node, or arithmetic with a mask",
    "center_crop": "crop, which takes the center by default",
    "color_jitter": "color_twist with fn.random.uniform as brightness, contrast, saturation and hue",
    "elastic_transform": "warp_affine, or a displacement computed in python_function",
    "grayscale": "color_space_conversion", "horizontal_flip": "flip",
    "perspective": "experimental.warp_perspective", "rand_augment": "torchdali.auto_aug.rand_augment",
    "random_affine": "warp_affine with random fn.transforms",
    "random_crop": "crop with fn.random.uniform as crop_pos_x and crop_pos_y, or decoders.image_random_crop",
    "random_erasing": "erase with fn.random.uniform as anchor",
    "random_flip": "flip with horizontal=fn.random.coin_flip()",
    "random_horizontal_flip": "flip with horizontal=fn.random.coin_flip()",
    "random_rotation": "rotate with angle=fn.random.uniform(range=[-30, 30])",
    "random_vertical_flip": "flip with horizontal=0 and vertical=fn.random.coin_flip()",
    "rgb_to_grayscale": "color_space_conversion", "sharpen": "filter",
    "repeat": "a loop over a Loader for each epoch", "shuffle": "random_shuffle=True of a reader",
    "to_dtype": "cast", "to_pilimage": "PIL.Image.fromarray(batch.as_array()[0]), on the results of run()",
    "to_float": "cast", "to_tensor": "crop_mirror_normalize",
    "trivial_augment": "torchdali.auto_aug.trivial_augment",
    "trivial_augment_wide": "torchdali.auto_aug.trivial_augment",
    "vertical_flip": "flip with horizontal=0 and vertical=1", "zoom": "resize",
}  # fmt: skip
"""Names of operations in other libraries, and the operator or expression to use here."""


def _hint(module: types.ModuleType, name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if replacement := _REPLACEMENTS.get(snake):
        return f"; use {replacement}"
    public = [each for each in _list_names(module) if not each.startswith("_")]
    return did_you_mean(snake, public, 3)
