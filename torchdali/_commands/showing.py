"""``torchdali show SCRIPT[:FUNCTION]``: a contact sheet of the next batch of a pipeline or a loader."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from torchdali import Loader, Pipeline, pictures
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali

__all__ = ["run"]

_MODULE = "torchdali_show"  # so that what stands under ``if __name__ == "__main__"`` does not run
_DEFAULTS = {"batch_size": 8, "num_threads": 2}  # of a pipeline that is given none


def run(target: str, arguments: Sequence[str], output: Path, each: bool, count: int | None) -> int:
    """Draw what a script loads, and return the exit status.

    Args:
        target: Path of a script, and after a colon the name of a function in it that makes a pipeline, a loader or a
            batch, or of such an object.
        arguments: Of the function: ``name=value``.
    """
    path, name = _divide(target)
    try:
        given = _parsed(arguments)
        source = _chosen(path, name)
        made = source if not _is_function(source) else _called(source, given)
        options: dict[str, Any] = {} if count is None else {"count": count}
        if isinstance(made, (Pipeline, Loader)):
            sheet = made.show(output, each=each, **options)
            made.close()
        else:
            sheet = pictures.show(made, output, **options)
    except (LookupError, RuntimeError, TypeError, ValueError, OSError, AssertionError) as error:
        print(f"torchdali show: {error}", file=sys.stderr)
        return 1
    print(f"{output}: {sheet.width} x {sheet.height} pixels")
    return 0


def _divide(target: str) -> tuple[str, str]:
    if os.path.isfile(target):
        return target, ""
    path, _, name = target.rpartition(":")
    return (path, name) if path else (target, "")


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
    given = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r} is no argument of a function, such as size=224")
        try:
            given[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):  # a text without quotes
            given[name] = text
    return given


def _chosen(path: str, name: str) -> Any:
    """Return the object of a script that is to be shown."""
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
        what = f"several: say which, such as {path}:{able[0]} ({', '.join(able)})" if able else "none"
        raise LookupError(f"pipelines, functions under pipeline_def and loaders in {path}: {what}")
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


def _called(function: Any, given: Mapping[str, Any]) -> Any:
    made = function(**given)
    if not getattr(function, "_is_pipeline_def", False):
        return made
    missing: dict[str, Any] = {name: value for name, value in _DEFAULTS.items() if getattr(made, name) is None}
    if isinstance(made.device_id, int) and not torch.cuda.is_available():
        missing["device_id"] = "cpu"
        print("there is no GPU: its operators run on the CPU", file=sys.stderr)
    return function(**{**given, **missing}) if missing else made
