"""Take a pipeline, or what else it has to show, out of a script: ``SCRIPT[:NAME] [name=value ...]``."""

from __future__ import annotations

import ast
import inspect
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from torchdali import Loader, Pipeline
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali

__all__ = ["ERRORS", "load"]

ERRORS = (LookupError, RuntimeError, TypeError, ValueError, OSError, AssertionError)
"""Errors of scripts and of their pipelines, which commands show without a traceback."""

_MODULE = "torchdali_show"  # so that what stands under ``if __name__ == "__main__"`` does not run


def load(target: str, arguments: Sequence[str], defaults: Mapping[str, int]) -> Any:
    """Return an object of a script, or what a function of it returns.

    Args:
        target: Path of a script, and after a colon the name of a function in it, or of another object.
        arguments: Of the function: ``name=value``.
        defaults: Options of a pipeline that has none.

    Raises:
        ValueError, LookupError, OSError: there is no such script, or nothing in it of this name; or what the script
            raises.
    """
    path, name = _divide(target)
    values = _parsed(arguments)
    source = _chosen(path, name)
    return source if not _is_function(source) else _called(source, values, defaults)


def _divide(target: str) -> tuple[str, str]:
    if os.path.isfile(target):
        return target, ""
    path, _, name = target.rpartition(":")
    return (path, name) if path else (target, "")


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
    values = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r} is no argument of a function, such as size=224")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):  # a text without quotes
            values[name] = text
    return values


def _chosen(path: str, name: str) -> Any:
    """Return the object of a script that was named, or the only one that can be shown."""
    if not os.path.isfile(path):
        raise OSError(f"there is no file {path!r}")
    alias_nvidia_dali()
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    names = runpy.run_path(path, run_name=_MODULE)
    if name:
        if name not in names:
            raise LookupError(f"{path} has no {name!r}; what can be shown: {', '.join(_showable(names)) or 'nothing'}")
        return names[name]
    able = _showable(names)
    if len(able) != 1:
        raise LookupError(
            f"{path} has {len(able)} pipelines and loaders ({', '.join(able)}): name one, as in {path}:{able[0]}"
            if able
            else f"{path} has no pipeline, no loader, and no function under pipeline_def"
        )
    return names[able[0]]


def _showable(names: Mapping[str, Any]) -> list[str]:
    """Return the names of the pipelines, the loaders, and the functions under `pipeline_def` that a script has."""
    return [
        name
        for name, each in names.items()
        if isinstance(each, (Pipeline, Loader))
        or (getattr(each, "_is_pipeline_def", False) and getattr(each, "__module__", "") == _MODULE)
    ]


def _is_function(source: Any) -> bool:
    return callable(source) and not isinstance(source, (Pipeline, Loader))


def _check_arguments(function: Any, arguments: Mapping[str, Any]) -> None:
    """Check the arguments of a function.

    Raises:
        TypeError: one is missing, or there is none of this name.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # it has none that Python knows
    parameters = signature.parameters.values()
    able = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    missing = [p.name for p in able if p.default is p.empty and p.name not in arguments]
    if missing:
        values = " ".join(f"{name}=..." for name in missing)
        raise TypeError(f"{getattr(function, '__name__', function)} needs arguments: add {values} to the command")


def _called(function: Any, arguments: Mapping[str, Any], defaults: Mapping[str, int]) -> Any:
    _check_arguments(function, arguments)
    result = function(**arguments)
    if not getattr(function, "_is_pipeline_def", False):
        return result
    missing: dict[str, Any] = {name: value for name, value in defaults.items() if getattr(result, name) is None}
    if isinstance(result.device_id, int) and not torch.cuda.is_available():
        missing["device_id"] = "cpu"
        print("there is no GPU: its operators run on the CPU", file=sys.stderr)
    return function(**{**arguments, **missing}) if missing else result
