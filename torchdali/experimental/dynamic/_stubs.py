"""Type stubs of the dynamic mode's operators, readers and mathematical functions; see `torchdali.stubs`.

A function of a batch returns a `Batch`; what one of other operands returns depends on all of them, and is ``Any``.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torchdali.experimental.dynamic as dynamic
from torchdali import math
from torchdali.experimental.dynamic._publish import is_wanted
from torchdali.registry import Operator, registry
from torchdali.schema import Argument
from torchdali.stubs import argument_text, doc_text, path_of

__all__ = ["stubs"]

_PACKAGE = "experimental/dynamic"
_HEAD = '''"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType
'''
_KINDS = inspect.Parameter
_OWN = {
    "batch_size": "int | None = None",
    "device": "DeviceLike = None",
    "rng": "RNG | None = None",
}


def stubs() -> dict[str, str]:
    """Return the text of every stub file by its path below `torchdali`."""
    spaces: dict[str, list[Operator]] = defaultdict(list)
    for operator in registry.values():
        own = operator.body.__module__.startswith("torchdali.")
        if own and not operator.options.hidden and is_wanted(operator):
            spaces[operator.name.rpartition(".")[0]].append(operator)
    for space in list(spaces):
        while space:
            space = space.rpartition(".")[0]
            spaces.setdefault(space, [])
    files = {f"{_PACKAGE}/math.pyi": _math()}
    for space, operators in spaces.items():
        below = sorted(s.rpartition(".")[2] for s in spaces if s and s.rpartition(".")[0] == space)
        parts = [_HEAD]
        names = [n for n in below if n != "random"] if not space else below
        parts.append("\n".join(f"from . import {name} as {name}" for name in names))
        if space in ("", "random"):
            parts.append(_again(space))
        operators.sort(key=lambda operator: operator.name)
        parts += [_class(o) if o.kind == "reader" else _function(o) for o in operators]
        if not space:
            parts.append(_imread())
        files[path_of(_PACKAGE, space, bool(below))] = "\n\n".join(filter(None, parts)) + "\n"
    return files


def _imread() -> str:
    parameters = list(inspect.signature(dynamic.imread).parameters.values())
    return _one(registry["decoders.image"], "imread", parameters[:1], parameters[1:], "", "Any", "")


def _again(space: str) -> str:
    """Write the names that a module imports and offers besides."""
    module: Any = getattr(dynamic, space) if space else dynamic
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    lines = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            lines += [
                f"from {node.module} import {a.name} as {a.name}"
                for a in node.names
                if a.name in module.__all__ and a.name != "imread"
            ]
    return "\n".join(lines)


def _function(operator: Operator) -> str:
    name = operator.name.rpartition(".")[2]
    function: Any = dynamic
    for part in operator.name.split("."):
        function = getattr(function, part)
    parameters = list(inspect.signature(function).parameters.values())
    inputs = [p for p in parameters if p.kind is not _KINDS.KEYWORD_ONLY]
    named = [p for p in parameters if p.kind is _KINDS.KEYWORD_ONLY]
    if not _decides(operator, inputs):
        return _one(operator, name, inputs, named, "", "Any")
    return "\n\n".join((
        _one(operator, name, inputs, named, "Batch", "Batch"),
        _one(operator, name, inputs, named, "", "Any"),
    ))  # fmt: skip


def _one(
    operator: Operator, name: str, inputs: list[inspect.Parameter], named: list[inspect.Parameter],
    first: str, result: str, decorator: str | None = None,
) -> str:  # fmt: skip
    """Write one form of a function; ``first`` is the type of its first input, if that decides."""
    lines, positional = [], False
    for i, each in enumerate(inputs):
        kind = first if first and not i else "Any"
        star = "*" if each.kind is _KINDS.VAR_POSITIONAL else ""
        lines.append(f"{star}{each.name}: {kind}{' = None' if each.default is None else ''}")
        positional |= each.kind is _KINDS.POSITIONAL_ONLY
        if positional and (i + 1 == len(inputs) or inputs[i + 1].kind is not each.kind):
            lines.append("/")
            positional = False
    if not any(line.startswith("*") for line in lines):
        lines.append("*")
    arguments = operator.schema.arguments
    required: list[str] = []
    rest: list[str] = []
    for each in named:
        argument = arguments.get(each.name)
        if each.name == "torch":
            rest.append("torch: Literal[False] = False" if first else "torch: bool = False")
        elif argument is None:
            rest.append(f"{each.name}: {_OWN.get(each.name, 'Any = None')}")
        else:
            (required if argument.required else rest).append(_argument(argument))
    text = _plain(",\n    ".join([*lines, *required, *rest]))
    head = "@overload\n" if _decides(operator, inputs) else ""
    head = head if decorator is None else decorator
    return f"{head}def {name}(\n    {text},\n) -> {result}:\n{doc_text(operator)}\n    ..."


def _decides(operator: Operator, inputs: list[inspect.Parameter]) -> bool:
    several = operator.options.outputs is not None or operator.schema.outputs > 1
    return bool(inputs) and inputs[0].default is not None and not several


def _plain(text: str) -> str:
    """Write Python's ``bool`` so that it is not the element type of the same name."""
    return re.sub(r"\bbool\b", "_bool", text)


def _argument(argument: Argument) -> str:
    return argument_text(argument, "Tensor | Batch | _torch.Tensor").replace("torch.dtype", "DType | _torch.dtype", 1)


def _class(operator: Operator) -> str:
    made: Any = dynamic
    for part in f"{operator.name.rpartition('.')[0]}.{operator.class_name}".split("."):
        made = getattr(made, part)
    arguments = operator.schema.arguments
    lines = ["self"]
    required: list[str] = []
    rest: list[str] = []
    for each in inspect.signature(made.__init__).parameters.values():
        argument = arguments.get(each.name)
        if each.kind is not _KINDS.KEYWORD_ONLY:
            if each.name != "self":
                lines.append(f"{each.name}: Any = None")
        elif argument is None:
            rest.append(f"{each.name}: {_OWN.get(each.name, 'Any = ...')}")
        else:
            (required if argument.required else rest).append(_argument(argument))
    text = _plain(",\n        ".join([*lines, "*", *required, *rest]))
    init = f"def __init__(\n        {text},\n    ) -> None: ..."
    return f"class {operator.class_name}(Reader):\n{doc_text(operator)}\n    {init}"


def _math() -> str:
    parts = [_HEAD]
    for name in math.__all__:
        parameters = inspect.signature(getattr(dynamic.math, name)).parameters
        for kind, result in (("Batch", "Batch"), ("Any", "Any")):
            operands = ", ".join(f"{p}: {kind if not i else 'Any'}" for i, p in enumerate(parameters))
            parts.append(f"@overload\ndef {name}({operands}) -> {result}: ...")
    return "\n\n".join(parts) + "\n"
