"""Support for ``if``, ``and``, ``or`` and ``not`` on `DataNode`s, by rewriting the pipeline function's syntax tree.

If the condition of an ``if`` is a node, both branches run while the pipeline is traced. Each node that a branch records
gets the branch's condition, so that its operator later runs only for the samples of the branch. Then the values of the
variables that the branches set are merged. Other conditions work as in Python.

Functions, methods, objects with a `__call__`, torch modules, and `functools.partial` objects that the pipeline function
calls are also rewritten when they are called. Installed code and code marked with `do_not_convert` aren't rewritten.

Loops and other constructs that can't be rewritten stay unchanged. If a node is the condition of an unchanged construct,
an error suggests other code; see `python_only`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from torchdali.declaration.registry import is_ours
from torchdali.errors import is_installed
from torchdali.graph.conditionals._branches import (
    and_,
    if_else,
    if_return,
    load,
    make_undefined,
    not_,
    or_,
    python_only,
    read,
    store_attribute,
    store_item,
)
from torchdali.graph.conditionals._rewriting import RUNTIME, rewrite
from torchdali.graph.nodes import DataNode

__all__ = [
    "and_", "convert", "convert_callable", "do_not_convert", "if_else", "if_return", "load", "make_undefined", "not_",
    "or_", "python_only", "read", "store_attribute", "store_item",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def do_not_convert(func: F) -> F:
    """Mark a function that must not be rewritten when a pipeline with conditionals calls it."""
    func._do_not_convert = True  # type: ignore[attr-defined]
    return func


def convert(function: Callable[..., Any], *, always: bool = False) -> Callable[..., Any]:
    """Return a function in which ``if``, ``and``, ``or`` and ``not`` also work on nodes.

    A function that can't or needn't be rewritten is returned unchanged. A function of an installed package is rewritten
    only if `always` is true.
    """
    if isinstance(function, types.MethodType):
        return types.MethodType(convert(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(convert(function.func), *function.args, **function.keywords)
    if isinstance(function, types.FunctionType):
        return _rewrite_function(function) if always or _is_convertible(function) else function
    return _convert_object(function)


def _convert_object(value: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rewritten callable for an object that isn't a Python function or method."""
    if isinstance(value, torch.nn.Module):
        return functools.partial(_call_module, value)
    if isinstance(value, functools._lru_cache_wrapper):
        return functools.partial(_call_cached, value)
    if any(value is each for each in _CALLERS):
        return functools.partial(_call_converting, value)
    if isinstance(value, type) or not callable(value):
        return value
    call: Any = type(value).__call__
    if not isinstance(call, types.FunctionType):
        return value
    function = convert(call)
    return value if function is call else types.MethodType(function, value)


_CALLERS = (map, filter, functools.reduce)
"""Functions that call their first argument. They are written in C, so they can't be rewritten."""


def _call_converting(caller: Callable[..., Any], function: Any, *arguments: Any) -> Any:
    return caller(convert(function), *arguments)


def _call_cached(cached: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function that has `functools.cache`.

    If an argument is a node, bypass the cache, because the result belongs to one branch.
    """
    if _has_node((*arguments, *named.values())):
        return convert(cached.__wrapped__)(*arguments, **named)
    return cached(*arguments, **named)


def _has_node(values: tuple[Any, ...]) -> bool:
    return any(_has_node(each) if isinstance(each, tuple) else isinstance(each, DataNode) for each in values)


def _call_module(module: torch.nn.Module, *arguments: Any, **named: Any) -> Any:
    """Call a torch module after rewriting its `forward` method and the methods of its submodules."""
    modules = [each for each in module.modules() if "forward" not in vars(each)]
    for each in modules:
        vars(each)["forward"] = convert(each.forward)
    try:
        return module(*arguments, **named)
    finally:
        for each in modules:
            del vars(each)["forward"]


def _is_convertible(function: types.FunctionType) -> bool:
    return not (
        hasattr(function, "_do_not_convert")
        or hasattr(function, "operator")
        or is_ours(function)
        or (is_installed(function.__code__.co_filename) and not _wraps_user_function(function))
        or inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
    )


def _wraps_user_function(function: types.FunctionType) -> bool:
    """Return whether a function is an installed decorator's wrapper around the user's function."""
    inner = inspect.unwrap(function)
    return inner is not function and isinstance(inner, types.FunctionType) and _is_convertible(inner)


@functools.lru_cache(maxsize=256)
def _rewrite_code(code: types.CodeType, class_name: str) -> types.CodeType | None:
    """Rewrite the code of a function; return None if its source isn't available, or if it is already rewritten."""
    if RUNTIME in code.co_freevars:
        return None
    try:
        definition = _parse_lambda(code) if code.co_name == "<lambda>" else _parse_definition(code)
    except (OSError, TypeError, SyntaxError):
        return None
    if definition is None:
        return None
    definition.decorator_list = []
    rewrite(definition, class_name)
    # The rewritten function gets another name, so that a recursive function finds the global function under its own
    # name.
    definition.name = "__function__"
    _clear_type_parameters(definition)
    # The function's free variables must stay free variables. Therefore they become parameters of a function around it.
    free = (*code.co_freevars, RUNTIME)
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    enclosed: list[ast.stmt] = [definition]
    if class_name:  # the compiler changes private names (`__x`) by the name of the class around them
        enclosed = [] if class_name in free else [ast.Global([class_name])]
        enclosed.append(ast.ClassDef(class_name, [], [], [definition], []))
    factory = ast.FunctionDef("__factory__", arguments, enclosed, [])
    for each in (enclosed[-1], factory):
        _clear_type_parameters(each)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE)
    outer = _find_inner_code(compiled, "__factory__")
    return _find_inner_code(_find_inner_code(outer, class_name) if class_name else outer, definition.name).replace(
        co_name=code.co_name
    )


def _clear_type_parameters(definition: ast.stmt) -> None:
    if "type_params" in definition._fields:
        # The type parameters are free variables of the function, so they needn't be defined again.
        vars(definition)["type_params"] = []


def _find_enclosing_class(name: str) -> str:
    """Return the name of the innermost class around a function, from its qualified name; "" without a class."""
    *outer, _ = name.split(".")
    while outer and outer[-1] == "<locals>":
        del outer[-2:]
    return outer[-1] if outer else ""


def _parse_definition(code: types.CodeType) -> ast.FunctionDef | None:
    lines, first = inspect.getsourcelines(code)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    definition = tree.body[0]
    return definition if isinstance(definition, ast.FunctionDef) else None


def _parse_lambda(code: types.CodeType) -> ast.FunctionDef | None:
    """Return a lambda's syntax tree, as a function; None if its line has several lambdas with equal parameters."""
    tree = ast.parse("".join(inspect.findsource(code)[0]))
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lambdas = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == names
    ]
    if len(lambdas) != 1:
        return None
    body = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0])
    function = ast.FunctionDef("__lambda__", lambdas[0].args, [body], [])
    _clear_type_parameters(function)
    return ast.copy_location(function, lambdas[0])


_FUTURE = __import__("__future__").annotations.compiler_flag


def _find_inner_code(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _rewrite_function(function: types.FunctionType) -> Callable[..., Any]:
    code = _rewrite_code(function.__code__, _find_enclosing_class(_qualified_name(function)))
    if code is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(sys.modules[__name__])
    closure = tuple(cells[name] for name in code.co_freevars)
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(result, function)


def _qualified_name(function: types.FunctionType) -> str:
    """Return the qualified name of a function's code.

    In Python 3.10, code has no qualified name, and the function's own qualified name is returned.
    """
    fallback = function.__name__ if hasattr(function, "__wrapped__") else function.__qualname__
    name: str = getattr(function.__code__, "co_qualname", fallback)
    return name


def convert_callable(function: Any) -> Any:
    """Return the rewritten version of a callable that the user's code calls."""
    return convert(function)
