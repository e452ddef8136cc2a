"""Type stubs of `fn` and `ops`, derived from the declarations: ``python -m torchdali.stubs`` writes them.

Editors complete operators and arguments from these files, and type checkers check calls.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import typing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchdali.ops import _compose as compose
from torchdali.ops._python import PLACES
from torchdali.registry import Operator, registry
from torchdali.schema import COMMON, Argument, plain_list, split

__all__ = ["argument_text", "doc_text", "path_of", "stubs", "write"]

_HEAD = '''"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)
'''


def stubs() -> dict[str, str]:
    """Return the text of every stub file by its path below the package."""
    spaces: dict[str, list[Operator]] = defaultdict(list)
    for operator in registry.values():
        if not operator.options.hidden and operator.body.__module__.startswith("torchdali."):
            spaces[operator.name.rpartition(".")[0]].append(operator)
    for space in list(spaces):  # namespaces that hold only other namespaces
        while space:
            space = space.rpartition(".")[0]
            spaces.setdefault(space, [])
    files = {}
    for space, operators in spaces.items():
        below = sorted(s.rpartition(".")[2] for s in spaces if s and s.rpartition(".")[0] == space)
        operators.sort(key=lambda operator: operator.name)
        for package, write_one in (("fn", _function), ("ops", _class)):
            path = path_of(package, space, bool(below))
            lines = [f"from . import {name} as {name}" for name in below]
            if (package, space) == ("ops", ""):
                lines += [f"from ._compose import {name} as {name}" for name in compose.__all__]
            parts = [_HEAD, "\n".join(lines), *map(write_one, operators)]
            files[path] = "\n\n".join(part for part in parts if part) + "\n"
    return files


def path_of(package: str, space: str, has_below: bool) -> str:
    """Return the path of the stub of a namespace in a package."""
    parts = [package, *(space.split(".") if space else [])]
    leaf = "/__init__.pyi" if has_below or not space else ".pyi"
    return "/".join(parts) + leaf


def _function(operator: Operator) -> str:
    name = operator.name.rpartition(".")[2]
    schema = operator.schema
    inputs = []
    for each in schema.inputs:
        inputs.append(
            f"*{each.name}: _T" if each.variadic else f"{each.name}: _T{' | None = None' if each.optional else ''}"
        )
    if inputs and not schema.variadic:
        inputs.append("/")
    result = "_T" if schema.inputs and not schema.input(0).optional else "DataNode"
    if operator.options.outputs is not None:
        result = "Any"
    elif schema.outputs > 1:
        result = f"abc.Sequence[{result}]"
    star = [] if schema.variadic else ["*"]
    lines = ",\n    ".join([*inputs, *_positional(operator), *star, *_arguments(operator)])
    return f"def {name}(\n    {lines},\n) -> {result}:\n{doc_text(operator)}\n    ..."


def _class(operator: Operator) -> str:
    arguments = {line.partition(":")[0]: line for line in _arguments(operator)}
    placed = [arguments.pop(name) for name in PLACES.get(operator.name, ())]
    lines = ",\n        ".join(["self", *_positional(operator), *placed, "*", *arguments.values()])
    call = "def __call__(self, *inputs: Any, **arguments: Any) -> Any: ..."
    init = f"def __init__(\n        {lines},\n    ) -> None: ..."
    return f"class {operator.class_name}:\n{doc_text(operator)}\n    {init}\n    {call}"


def doc_text(operator: Operator) -> str:
    """Write the docstring of an operator: its first line."""
    text = inspect.getdoc(operator.body) or ""
    return f'    """{text.splitlines()[0]}"""' if text else '    """"""'


def _positional(operator: Operator) -> list[str]:
    """Write the arguments that may be given by position too: of a function of its own, as external_source."""
    arguments = operator.schema.arguments
    parameters = inspect.signature(operator.function).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return [argument_text(arguments[name]) for name in names]


def _arguments(operator: Operator) -> list[str]:
    schema = operator.schema
    positional = _positional(operator)
    written = {a.name: argument_text(a) for a in schema.arguments.values() if not a.hidden}
    written |= {name: f"{name}: Any = ..." for name in COMMON}
    written |= {name: f"{name}: str | None = None" for name in ("device", "name")}
    required = [a.name for a in schema.arguments.values() if a.required]
    order = [*required, *sorted(written.keys() - set(required))]
    return [written[name] for name in order if written[name] not in positional]


def argument_text(argument: Argument, varying: str = "DataNode | TensorList") -> str:
    """Write an argument with its type and default; ``varying`` are the types of values given per sample."""
    base, marks, optional = split(argument.annotation)
    text = "DALIDataType | torch.dtype" if "dtype" in marks else _type(base)
    if argument.edge:
        text += f" | {varying}"
    if optional:
        text += " | None"
    return f"{argument.name}: {text}{'' if argument.required else f' = {_default(argument.default)}'}"


def _default(value: Any) -> str:
    """Write a default as text; dots for one that has no short text."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    plain = value is None or type(value) in (bool, int, float, str)
    plain = plain or (type(value) is list and all(type(v) in (bool, int, float, str) for v in value))
    text = repr(value)
    return text if plain and len(text) <= 40 and "inf" not in text else "..."


def _type(base: Any) -> str:
    base = plain_list(base)
    origin = typing.get_origin(base)
    if origin is list:
        (element,) = typing.get_args(base)
        inner = _type(split(element)[0])
        return f"abc.Sequence[{inner}] | {inner}"
    if base in (int, float, str, bool):
        return str(base.__name__)
    if inspect.isclass(base) and issubclass(base, enum.Enum):
        return base.__name__
    return "Any"


def write(folder: Path, files: Mapping[str, str], packages: Sequence[str]) -> list[Path]:
    """Write stub files below a folder, and remove old ones of the packages; return their paths."""
    for package in packages:
        for old in (folder / package).rglob("*.pyi"):
            old.unlink()
    written = []
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _main() -> None:
    folder = Path(__file__).parent
    for module, packages in ((stubs, ("fn", "ops")), (_of_dynamic(), (_DYNAMIC,))):
        for file in write(folder, module(), packages):
            print(file)


_DYNAMIC = "experimental/dynamic"


def _of_dynamic() -> Callable[[], dict[str, str]]:
    """Return the function that writes the stubs of the dynamic mode, which a lower layer than this module has."""
    found: Any = importlib.import_module("torchdali.experimental.dynamic._stubs")
    made: Callable[[], dict[str, str]] = found.stubs
    return made


if __name__ == "__main__":
    import torchdali.ops  # noqa: F401  declares the operators

    _main()
