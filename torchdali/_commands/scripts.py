"""Load a pipeline, a loader or a batch from a script: ``SCRIPT[:NAME] [name=value ...]``."""

from __future__ import annotations

import ast
import inspect
import os
import re
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from torchdali import DataLoader, Loader, Pipeline
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali

__all__ = ["ERRORS", "load"]

ERRORS = (LookupError, RuntimeError, TypeError, ValueError, OSError, AssertionError)
"""Errors of scripts and of their pipelines, which commands show without a traceback."""

_MODULE = "torchdali_show"  # with this name, code under ``if __name__ == "__main__"`` does not run
_SHOWABLE = (Pipeline, Loader, torch.utils.data.DataLoader)


def load(target: str, arguments: Sequence[str], defaults: Mapping[str, int]) -> Any:
    """Return an object of a script. If the object is a function, call the function and return its result.

    Args:
        target: Path of a script, optionally followed by a colon and the name of a function or another object in it.
        arguments: Arguments of the function: ``name=value``.
        defaults: Options of a pipeline; they are used if the pipeline doesn't set them.

    Raises:
        OSError: the script does not exist. LookupError: the script has no object with this name.
        ValueError: an argument isn't ``name=value``. Exceptions of the script itself are raised unchanged.
    """
    path, name = _split_target(target)
    values = _parse_arguments(arguments)
    source = _find_object(path, name)
    return source if not _is_function(source) else _check(_call(source, values, defaults), path, name)


def _split_target(target: str) -> tuple[str, str]:
    if os.path.isfile(target):
        return target, ""
    path, _, name = target.rpartition(":")
    return (path, name) if path else (target, "")


def _parse_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    values = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise ValueError(f"arguments of a function must be name=value, for example size=224, got {argument!r}")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):  # the value is a text without quotes
            values[name] = text
    return values


def _find_object(path: str, name: str) -> Any:
    """Return the named object of a script; without a name, the script's only pipeline or loader."""
    if not os.path.isfile(path):
        raise OSError(f"no such file: {path!r}")
    alias_nvidia_dali()
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    variables = runpy.run_path(path, run_name=_MODULE)
    candidates = [each for each, value in variables.items() if _is_showable(value)]
    if name and name not in variables:
        hint = f"; it has {', '.join(candidates)}" if candidates else ""
        raise LookupError(f"{path} has no {name!r} at its top level{hint}{_describe_inner_loader(path, name)}")
    if not name and len(candidates) != 1:
        raise LookupError(
            f"{path} has {len(candidates)} pipelines and loaders ({', '.join(candidates)}); name one, for example "
            f"{path}:{candidates[0]}"
            if candidates
            else f"{path} has no pipeline and no loader at its top level{_describe_inner_loader(path)}"
        )
    return _check(variables[name or candidates[0]], path, name or candidates[0])


def _is_showable(value: Any) -> bool:
    """Return True for a pipeline, a loader, or a function that the script decorates with `pipeline_def`."""
    is_definition = getattr(value, "_is_pipeline_def", False) and getattr(value, "__module__", "") == _MODULE
    return isinstance(value, _SHOWABLE) or is_definition


def _check(value: Any, path: str, name: str) -> Any:
    """Return an object of a script unchanged, unless it is PyTorch's `DataLoader`.

    Raises:
        TypeError: the object is PyTorch's `DataLoader`.
    """
    if isinstance(value, torch.utils.data.DataLoader) and not isinstance(value, DataLoader):
        raise TypeError(
            f"{path}:{name} must be a torchdali loader, but is PyTorch's DataLoader; write `from "
            f"torchdali import DataLoader` in {path}"
        )
    return value


def _describe_inner_loader(path: str, name: str = "") -> str:
    """Return a hint if a script creates a loader only in code that this command doesn't run; otherwise ""."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found = next(((n, location) for n, location in _find_inner_loaders(tree) if name in ("", n)), None)
    if found is None:
        return ""
    return (
        f". It makes {found[0]!r} {found[1]}, which this command doesn't run; write a function that returns the "
        f"loader, for example make_{found[0]}(), and name that: {path}:make_{found[0]}"
    )


def _find_inner_loaders(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each variable to which a function or a ``__main__`` block assigns a loader, and the variable's location."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) or (
            isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)
        ):
            location = (
                f"in {statement.name}()"
                if isinstance(statement, ast.FunctionDef)
                else 'under if __name__ == "__main__"'
            )
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and re.search(r"\bLoader\b|DataLoader\(", ast.unparse(node.value)):
                    yield from ((target.id, location) for target in node.targets if isinstance(target, ast.Name))


def _is_function(source: Any) -> bool:
    return callable(source) and not isinstance(source, _SHOWABLE)


def _check_arguments(function: Any, arguments: Mapping[str, Any]) -> None:
    """Check the arguments of a function.

    Raises:
        TypeError: an argument is missing.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # the function has no signature
    parameters = signature.parameters.values()
    accepted = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    missing = [p.name for p in accepted if p.default is p.empty and p.name not in arguments]
    if missing:
        values = " ".join(f"{name}=..." for name in missing)
        raise TypeError(f"{getattr(function, '__name__', function)} needs arguments; add {values} to the command")


def _call(function: Any, arguments: Mapping[str, Any], defaults: Mapping[str, int]) -> Any:
    _check_arguments(function, arguments)
    result = function(**arguments)
    if not getattr(function, "_is_pipeline_def", False):
        return result
    missing: dict[str, Any] = {name: value for name, value in defaults.items() if getattr(result, name) is None}
    if isinstance(result.device_id, int) and not torch.cuda.is_available():
        missing["device_id"] = "cpu"
        print("there is no GPU, so its GPU operators run on the CPU", file=sys.stderr)
    return function(**{**arguments, **missing}) if missing else result
