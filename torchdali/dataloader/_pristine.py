"""Check that PyTorch's loader would run only PyTorch's, torchvision's and Pillow's original code for a sample.

An accelerated loader replaces this code with its own implementation. If the user has changed the code, for example by
assigning another function to `PIL.Image.open`, results would differ, so the loader must not be accelerated.

A function is unchanged if its bytecode equals the bytecode in its module's file. The check covers all functions that
may be called to load a sample: starting from `__getitem__` or `__call__`, each name that a function's bytecode mentions
is looked up in the function's globals, in the object's class, and in `PIL.Image.Image`. The check calls none of these
functions.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, eq, getitem, is_
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from torchdali.dataloader import _notes as notes
from torchdali.dataloader._torch_internals import collate, fetch
from torchdali.errors import is_installed

__all__ = [
    "find_class_change", "find_collate_change", "find_dataset_change", "find_image_change", "find_transform_change",
]  # fmt: skip

_CHECKED_PACKAGES = ("torchvision", "PIL")  # packages whose functions are compared with their files
_TRUSTED_PACKAGES = {"torch", "torchvision", "PIL", "numpy", *sys.stdlib_module_names}
_VALUE_TYPES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    enum.Enum,
    torch.Tensor,
    torch.dtype,
    np.generic,
    np.ndarray,
)


class ChangedError(Exception):
    """Error for a function or attribute that the user has changed. The message contains the name."""


class _CheckRecord:
    """A record of a check: the checked names with their modules or classes, and the names' values.

    `is_current` quickly compares the recorded values with the current values. If all values are equal, the check need
    not be repeated.
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, Mapping[str, Any]] = {}
        self._sizes: dict[str, int] = {}  # a larger size shows that a name was added
        self._owners: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._codes: dict[FunctionType, CodeType] = {}

    def add_namespace(self, namespace: Mapping[str, Any], qualname: str) -> None:
        """Record the number of names in the namespace of a module or class."""
        self._namespaces[qualname], self._sizes[qualname] = namespace, len(namespace)

    def add(self, namespace: Mapping[str, Any], qualname: str, name: str) -> None:
        """Record the value of a name and, if the value is a function, its code."""
        key, value = (qualname, name), namespace[name]
        self.add_namespace(namespace, qualname)
        self._owners[key], self._names[key], self._values[key] = namespace, name, value
        if isinstance(value, FunctionType):
            self._codes[value] = value.__code__

    def is_current(self) -> bool:
        """Return True if the names still have the same values, and the functions still have the same code."""
        try:
            values = all(map(is_, map(getitem, self._owners.values(), self._names.values()), self._values.values()))
        except KeyError:
            return False
        sizes = all(map(eq, map(len, self._namespaces.values()), self._sizes.values()))
        return values and sizes and all(map(is_, map(attrgetter("__code__"), self._codes), self._codes.values()))


# ---------------------------------------------------------------- code of files


@functools.lru_cache(maxsize=1024)
def _codes(module: str) -> dict[str, list[CodeType]]:
    """Return the code objects of the functions in a module's file, by qualified name."""
    codes: dict[str, list[CodeType]] = {}

    def collect(code: CodeType, prefix: str) -> None:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                codes.setdefault(prefix + constant.co_name, []).append(constant)
                collect(constant, f"{prefix}{constant.co_name}.")

    spec = getattr(sys.modules.get(module), "__spec__", None)
    code = spec.loader.get_code(module) if spec is not None and hasattr(spec.loader, "get_code") else None
    if code is not None:
        collect(code, "")
    return codes


@functools.lru_cache(maxsize=1024)
def _constants(module: str) -> dict[str, Any]:
    """Return the constants that the classes in a module's file define, by qualified name.

    A name that its class sets more than once is omitted.
    """
    found: dict[str, list[Any]] = {}
    for qualname, code in ((qualname, code) for qualname, codes in _codes(module).items() for code in codes):
        if "__qualname__" in code.co_names:  # the body of a class
            for before, each in itertools.pairwise(dis.get_instructions(code)):
                if each.opname == "STORE_NAME":
                    is_constant = before.opcode in dis.hasconst
                    found.setdefault(f"{qualname}.{each.argval}", []).append((is_constant, before.argval))
    return {name: values[0][1] for name, values in found.items() if len(values) == 1 and values[0][0]}


@functools.cache
def _trusted_folders() -> tuple[str, ...]:
    specs = [importlib.util.find_spec(name) for name in ("torch", "torchvision", "PIL", "numpy", "torchdali")]
    folders = [folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
    return tuple(folder + os.sep for folder in folders)


def _is_trusted(function: FunctionType) -> bool:
    """Return True for a function of a trusted package or of Python, or a method of a named tuple or dataclass."""
    file = function.__code__.co_filename
    if file == "<string>":
        return function.__globals__.get("__name__") != "__main__"
    in_python = is_installed(file) and {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))
    return in_python or file.startswith(_trusted_folders())


def _root_package(module: Any) -> str:
    return str(module).partition(".")[0]


def _check_code(function: FunctionType, module: str, qualname: str) -> None:
    """Raise ChangedError if a function's bytecode differs from the bytecode in the module's file."""
    expected = _codes(module).get(qualname) if _is_checked(module) else None
    inner: Any = function
    while isinstance(inner, FunctionType):
        if expected is None and _is_trusted(inner):
            return  # the function is imported, or a decorator created it
        if expected is not None and inner.__code__ in expected:
            return
        if not _is_trusted(inner):
            break
        inner = getattr(inner, "__wrapped__", None) or _find_tagged(inner)
    raise ChangedError(f"`{module}.{qualname}` was replaced")


def _find_tagged(function: FunctionType) -> Any:
    """Return the original method if `torch.compile` has replaced a method of `nn.Module` by `function`; else None."""
    if function.__module__ != "torch._dynamo.mutation_guard":
        return None
    return next(_wrapped_functions(function), None)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _unwrap(value: Any) -> Iterable[Any]:
    """Return the functions in a `property`, `partial` or other wrapper, or the value itself if it isn't a wrapper."""
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return [each for each in (value.fget, value.fset, value.fdel) if each is not None]
    if isinstance(value, type(_codes)):  # a function under `functools.lru_cache`
        return (value.__wrapped__,)
    return (value if isinstance(value, FunctionType) else getattr(value, "func", value),)  # a `partial` has `func`


# ---------------------------------------------------------------- reachable functions


class _ReachableFunctions:
    """All functions that may be called, directly or indirectly, to load a sample. Each function is checked.

    Args:
        classes: Classes of the objects that load a sample.
        entries: Names of the methods that are called first.
        functions: Functions that are called first.

    Attributes:
        record: All names that were looked up, with their values, to detect later changes.
        names: Names of attributes and methods that the checked functions mention.
    """

    def __init__(self, classes: Iterable[type], entries: Iterable[str], functions: Iterable[FunctionType]) -> None:
        self.record = _CheckRecord()
        self.names: set[str] = set()
        self._todo: list[tuple[FunctionType, str]] = []
        self._seen: set[int] = set()
        self._classes: set[type] = set()
        has_images = any(map(_is_image_code, (*classes, *functions)))
        self._roots = (*classes, *([_image_class()] if has_images else ()))
        for kind in self._roots:
            self._add_class(kind, entries)
        for function in functions:
            self._add_inner(function)
        while self._todo:
            self._follow(*self._todo.pop())

    def _add_class(self, kind: type, entries: Iterable[str]) -> None:
        """Check a class's entry methods, its special methods, and methods whose names occur in checked functions."""
        self._classes.add(kind)
        for base in kind.__mro__:
            self.record.add_namespace(vars(base), f"{base.__module__}.{base.__qualname__}")
        for name in {*entries, *_IMPLICIT_METHODS, *self.names}:
            self._add_methods(kind, name)

    def _add_methods(self, kind: type, name: str) -> None:
        for base in kind.__mro__:
            if name in vars(base):
                self._add_method(kind, base, name)

    def _add_name(self, name: str) -> None:
        if name in self.names or name in _COMMON_ATTRIBUTES:
            return
        self.names.add(name)
        for kind in self._classes:
            self._add_methods(kind, name)

    def _add_method(self, kind: type, base: type, name: str) -> None:
        if _root_package(base.__module__) not in _TRUSTED_PACKAGES:
            raise ChangedError(f"{kind.__name__} defines `{name}`")
        self._bind(vars(base), name, base.__module__, f"{base.__qualname__}.{name}")

    def _bind(self, namespace: Mapping[str, Any], name: str, module: str, qualname: str) -> None:
        """Check a name of a module or class, and record its value."""
        value = namespace[name]
        self.record.add(namespace, f"{module}.{qualname}".removesuffix(f".{name}"), name)
        functions = [each for each in _unwrap(value) if isinstance(each, FunctionType)]
        is_data = not functions and not isinstance(value, (BuiltinFunctionType, type)) and _is_checked(module)
        if is_data and (qualname in _codes(module) or _is_changed_value(module, qualname, value)):
            raise ChangedError(f"`{module}.{qualname}` was replaced")
        for function in functions:
            self._add_function(function, module, qualname)

    def _add_function(self, function: FunctionType, module: str, qualname: str) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        _check_code(function, module, qualname)
        self._todo.append((function, function.__globals__["__name__"]))

    def _add_inner(self, function: FunctionType) -> None:
        self._add_function(function, function.__module__, function.__qualname__.replace(".<locals>", ""))

    def _follow(self, function: FunctionType, module: str) -> None:
        """Check each name that a function's code mentions."""
        for inner in (*_wrapped_functions(function), *_kernels(function)):
            self._add_inner(inner)
        if not _is_checked(module):
            return
        names = set(_names(function.__code__))
        for name in names:
            self._add_name(name)
            if name in function.__globals__:
                self._bind(function.__globals__, name, function.__globals__["__name__"], name)
                self._add_value(function.__globals__[name], name, names)
                for each in _iterate_functions(function.__globals__[name]) if name not in _REGISTRIES else ():
                    self._add_inner(each)
            elif name in vars(builtins):
                self._bind(vars(builtins), name, builtins.__name__, name)
            elif name in sys.modules:  # a module that the function imports
                self._add_module(sys.modules[name], names, {sys.modules[name]})

    def _add_value(self, value: Any, name: str, names: set[str]) -> None:
        """Check the value of a global variable that a function mentions.

        If the value is a module, check the module's names that the function mentions. If the value is a class, check
        the class's methods.
        """
        if isinstance(value, ModuleType):
            if _root_package(value.__name__) not in _TRUSTED_PACKAGES:
                raise ChangedError(f"the module `{name}` was replaced")
            self._add_module(value, names, {value})
        is_class = isinstance(value, type) and _is_checked(value.__module__) and value not in self._classes
        if is_class and not any(issubclass(root, value) for root in self._roots):
            self._add_class(value, ("__init__", "__new__"))

    def _add_module(self, module: ModuleType, names: set[str], seen: set[ModuleType]) -> None:
        """Check, in a module and its submodules, all names that a function mentions."""
        for name in names & vars(module).keys():
            value = vars(module)[name]
            self._bind(vars(module), name, module.__name__, name)
            if not isinstance(value, ModuleType):
                self._add_value(value, name, names)
            elif value not in seen and _root_package(value.__name__) in _TRUSTED_PACKAGES:
                seen.add(value)
                self._add_module(value, names, seen)


def _is_checked(module: str) -> bool:
    return _root_package(module) in _CHECKED_PACKAGES or module in _TORCH_MODULES


# Names of tables that contain functions. `_follow` doesn't check these functions, because `_openers` and
# `find_collate_change` do.
_REGISTRIES = {"DECODERS", "ENCODERS", "OPEN", "SAVE", "SAVE_ALL", "default_collate_fn_map"}
_COMMON_ATTRIBUTES = {"__class__", "__dict__", "__doc__", "__module__", "__name__", "__qualname__"}
_IMPLICIT_METHODS = (
    "__bool__", "__call__", "__contains__", "__enter__", "__eq__", "__exit__", "__getattr__", "__getattribute__",
    "__getitem__", "__iter__", "__len__", "__next__", "__torch_function__",
)  # fmt: skip
_TORCH_MODULES = (
    fetch.__name__,
    collate.__name__,
    "torch.utils.data.dataset",
    "torch.nn.modules.module",
    "torch.nn.modules.container",
)


def _is_image_code(definition: Any) -> bool:
    """Return True for a class or function of torchvision or Pillow, and for a subclass of one."""
    return any(
        _root_package(each.__module__) in _CHECKED_PACKAGES for each in getattr(definition, "__mro__", (definition,))
    )


def _image_class() -> type:
    from PIL import Image

    return Image.Image


def _wrapped_functions(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions that a decorator has wrapped."""
    for cell in function.__closure__ or ():
        try:
            inner = cell.cell_contents
        except ValueError:  # the variable of the closure isn't assigned yet
            continue
        for each in _unwrap(inner):
            if isinstance(each, FunctionType):
                yield each


def _iterate_functions(value: Any) -> Iterator[FunctionType]:
    """Yield the functions in a table: a dictionary, list or tuple, which may be nested."""
    if isinstance(value, (dict, list, tuple)) and len(value) < _MIN_DATA_SIZE:
        for each in value.values() if isinstance(value, dict) else value:
            yield from (each,) if isinstance(each, FunctionType) else _iterate_functions(each)


_MIN_DATA_SIZE = 1000  # a collection with at least this number of elements is data, not a table of functions


def _kernels(functional: Any) -> Iterator[FunctionType]:
    """Yield the functions that torchvision registered for images and tensors."""
    utils = sys.modules.get("torchvision.transforms.v2.functional._utils")
    registry = getattr(utils, "_KERNEL_REGISTRY", {})
    for kind, kernel in registry.get(functional, {}).items():
        if _root_package(getattr(kind, "__module__", "")) in _TRUSTED_PACKAGES:
            yield from (each for each in _unwrap(kernel) if isinstance(each, FunctionType))


def _is_changed_value(module: str, qualname: str, value: Any) -> bool:
    """Return True if a class attribute was changed.

    The attribute is compared with the constant in the module's file. If the module computes the value, the attribute is
    compared with its value at the first check.
    """
    if "." not in qualname:
        return False
    is_computed = isinstance(value, enum.Enum) or hasattr(type(value), "__get__")  # e.g. a named tuple's field
    if is_computed or qualname not in _constants(module):
        return _first_values.setdefault((module, qualname), value) is not value
    constant = _constants(module)[qualname]
    return type(value) is not type(constant) or bool(value != constant)


_first_values: dict[tuple[str, str], Any] = {}
_reachable_cache: dict[Any, _ReachableFunctions] = {}


def _find_reachable(
    classes: frozenset[type], entries: tuple[str, ...], functions: frozenset[Any] = frozenset()
) -> _ReachableFunctions:
    """Check all functions that may be called, or reuse an earlier result if nothing has changed since then.

    Raises:
        ChangedError: the user has changed one of the functions.
    """
    key = classes, entries, functions
    reachable = _reachable_cache.get(key)
    if reachable is None or not reachable.record.is_current():
        _reachable_cache.pop(key, None)
        reachable = _reachable_cache[key] = _ReachableFunctions(classes, entries, functions)
    return reachable


# ---------------------------------------------------------------- objects


def find_dataset_change(dataset: Any) -> str:
    """Return the reason why samples of a dataset don't come from torchvision's own code; "" if they do.

    The dataset's transforms aren't checked here, but by `find_transform_change`.
    """
    kind = type(dataset)
    try:
        transforms = getattr(dataset, "transforms", None)
        reachable = _find_reachable(frozenset([kind, type(transforms)]), ("__getitems__",))
        used = {
            name: value
            for name, value in vars(dataset).items()
            if name in reachable.names and name not in _TRANSFORM_ATTRIBUTES
        }
        _check_attributes(kind, used)
        functions = [value for value in used.values() if isinstance(value, FunctionType)]
        openers = _openers() if _is_image_code(kind) else []
        _find_reachable(frozenset(), (), frozenset([*functions, *openers]))
        for name, value in used.items():
            if not _is_installed_code(type(value)):
                raise ChangedError(f"`{name}` is a {type(value).__name__}")
    except ChangedError as change:
        return notes.changed_code_reason(f"{kind.__name__}: {change}")
    return ""


def _openers() -> list[Any]:
    """Return the functions that `PIL.Image.open` calls to recognize and open a JPEG."""
    from PIL import Image, JpegImagePlugin

    jpeg = str(JpegImagePlugin.JpegImageFile.format)
    formats = Image.ID[: Image.ID.index(jpeg) + 1]
    return [Image.OPEN[jpeg][0], *(accept for each in formats if (accept := Image.OPEN[each][1]) is not None)]


_TRANSFORM_ATTRIBUTES = ("transform", "target_transform", "transforms")


def find_transform_change(transform: Any) -> str:
    """Return the reason why a transform isn't torchvision's own code; "" if it is.

    The objects that the transform contains, for example other transforms, are checked too.
    """
    parts: dict[int, Any] = {}
    try:
        _collect_parts(transform, parts)
        for part in parts.values():
            _check_attributes(type(part), vars(part))
        _find_reachable(frozenset(map(type, parts.values())), ())
        hooks = sys.modules["torch.nn.modules.module"]
        if hooks._global_forward_hooks or hooks._global_forward_pre_hooks:
            raise ChangedError("modules have global hooks")
    except ChangedError as change:
        return notes.changed_code_reason(str(change))
    return ""


def find_class_change(kind: type) -> str:
    """Return the reason why the methods of a torchvision class aren't torchvision's own; "" if they are."""
    try:
        _find_reachable(frozenset([kind]), ())
    except ChangedError as change:
        return notes.changed_code_reason(str(change))
    return ""


def find_image_change() -> str:
    """Return the reason why the code that opens and changes JPEGs isn't Pillow's own; "" if it is."""
    from PIL import Image, JpegImagePlugin

    kind = JpegImagePlugin.JpegImageFile
    methods = sorted({name for base in kind.__mro__ for name in vars(base)} - _COMMON_ATTRIBUTES)
    try:
        _find_reachable(frozenset([kind]), tuple(methods), frozenset([Image.open, *_openers()]))
    except ChangedError as change:
        return notes.changed_code_reason(str(change))
    return ""


def _collect_parts(value: Any, parts: dict[int, Any]) -> None:
    """Add the objects that a transform contains to `parts`, by id."""
    if isinstance(value, _VALUE_TYPES) or id(value) in parts:
        return
    if isinstance(value, Mapping):
        _collect_all(value.values(), parts)
    elif isinstance(value, (list, tuple, set, frozenset)):
        _collect_all(value, parts)
    elif isinstance(value, FunctionType):
        _find_reachable(frozenset(), (), frozenset([value]))
    elif _root_package(type(value).__module__) not in _TRUSTED_PACKAGES or isinstance(value, MethodType):
        raise ChangedError(f"{getattr(value, '__name__', type(value).__name__)} isn't torchvision's")
    elif hasattr(value, "__dict__"):
        parts[id(value)] = value
        _collect_all(vars(value).values(), parts)


def _collect_all(values: Iterable[Any], parts: dict[int, Any]) -> None:
    for value in values:
        _collect_parts(value, parts)


def _check_attributes(kind: type, attributes: Mapping[str, Any]) -> None:
    """Raise ChangedError if an object's own attribute hides an attribute of its class, or if a module has hooks."""
    for name, value in attributes.items():
        if any(name in vars(base) for base in kind.__mro__):
            raise ChangedError(f"`{name}` was set on a {kind.__name__}")
        if name in ("_forward_hooks", "_forward_pre_hooks") and value:
            raise ChangedError(f"a {kind.__name__} has hooks")


def _is_installed_code(definition: Any) -> bool:
    """Return True for a class or function of the standard library, of an installed package, or of torchdali."""
    file = getattr(sys.modules.get(definition.__module__), "__file__", None)
    return _root_package(definition.__module__) in (*_TRUSTED_PACKAGES, "torchdali") or (
        file is not None and is_installed(file)
    )


def find_collate_change(collate_fn: Any) -> str:
    """Return the reason why PyTorch's own `default_collate` doesn't create the batches; "" if it does."""
    if collate_fn is not collate.default_collate:
        return notes.own_function_reason("collate_fn", collate_fn)
    try:
        used = [function for kind, function in collate.default_collate_fn_map.items() if kind in _COLLATE_FUNCTIONS]
        _find_reachable(frozenset([fetch._MapDatasetFetcher]), ("fetch",), frozenset([collate_fn, *used]))
    except ChangedError as change:
        return notes.changed_code_reason(str(change))
    functions = {
        kind: function.__name__
        for kind, function in collate.default_collate_fn_map.items()
        if kind in _COLLATE_FUNCTIONS
        or not _is_installed_code(function)  # packages register functions only for their own classes
    }
    if functions != _COLLATE_FUNCTIONS:
        return notes.changed_code_reason("`default_collate_fn_map` was changed")
    return ""


_COLLATE_FUNCTIONS = {
    torch.Tensor: "collate_tensor_fn", np.ndarray: "collate_numpy_array_fn",
    (np.bool_, np.number, np.object_): "collate_numpy_scalar_fn", float: "collate_float_fn", int: "collate_int_fn",
    str: "collate_str_fn", bytes: "collate_str_fn",
}  # fmt: skip
