"""Generate the stubs of `fn` and `ops`, and the stub text of single arguments and docstrings."""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
import typing
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from torchdali.declaration.descriptions import descriptions
from torchdali.declaration.registry import Operator, registry
from torchdali.declaration.schema import COMMON, Argument, Choices, InputSpec, plain_list, split
from torchdali.ops import _compose as compose
from torchdali.ops._python import POSITIONAL_ARGUMENTS

__all__ = ["argument_text", "doc_text", "ignored_arguments", "path_of", "stubs"]

_HEAD = '''"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)
'''


def stubs() -> dict[str, str]:
    """Return the text of every stub file, by its path relative to the package `torchdali`."""
    spaces: dict[str, list[Operator]] = defaultdict(list)
    for operator in registry.values():
        if not operator.hidden and operator.is_ours:
            spaces[operator.name.rpartition(".")[0]].append(operator)
    for space in list(spaces):  # namespaces that hold only other namespaces
        while space:
            space = space.rpartition(".")[0]
            spaces.setdefault(space, [])
    files = {}
    for space, operators in spaces.items():
        children = sorted(s.rpartition(".")[2] for s in spaces if s and s.rpartition(".")[0] == space)
        operators.sort(key=lambda operator: operator.name)
        for package, write_one in (("fn", _function), ("ops", _class)):
            path = path_of(package, space, bool(children))
            lines = [f"from . import {name} as {name}" for name in children]
            if (package, space) == ("ops", ""):
                lines += [f"from ._compose import {name} as {name}" for name in compose.__all__]
            parts = [_HEAD, "\n".join(lines), *map(write_one, operators)]
            files[path] = "\n\n".join(part for part in parts if part) + "\n"
    return files


def path_of(package: str, space: str, has_children: bool) -> str:
    """Return the path of a stub file.

    Args:
        package: ``"fn"`` or ``"ops"``.
        space: Namespace of the operators, for example ``"readers"``; empty for the package itself.
        has_children: True if the namespace contains other namespaces.
    """
    parts = [package, *(space.split(".") if space else [])]
    leaf = "/__init__.pyi" if has_children or not space else ".pyi"
    return "/".join(parts) + leaf


def _function(operator: Operator) -> str:
    name = operator.name.rpartition(".")[2]
    schema = operator.schema
    inputs = [_input(each, not i) for i, each in enumerate(schema.inputs)]
    if inputs and not schema.variadic:
        inputs.append("/")
    star = [] if schema.variadic else ["*"]
    overloads = _overloads(operator)
    texts = []
    for changed, result in overloads:
        arguments = [*_positional(operator), *star, *_arguments(operator)]
        lines = [changed.get(line.partition(":")[0], line) for line in (*inputs, *arguments)]
        head = "@overload\n" if len(overloads) > 1 else ""
        text = ",\n    ".join(lines)
        texts.append(f"{head}def {name}(\n    {text},\n) -> {result}:\n{doc_text(operator)}\n    ...")
    return "\n\n".join(texts)


def _input(operand: InputSpec, is_first: bool) -> str:
    """Return the stub text of an input.

    If the input has neither required layouts nor required dtypes, numbers may replace the data. Arrays may replace the
    data too, except in the first input, whose type determines the type of the result.
    """
    text = "_T"
    if not operand.constraints.layouts and not operand.constraints.dtypes:
        text += " | abc.Sequence[float] | float"
        if operand.variadic or not is_first:
            text += " | np.ndarray[Any, Any]"
    if operand.variadic:
        return f"*{operand.name}: {text}"
    return f"{operand.name}: {text} | None = None" if operand.optional else f"{operand.name}: {text}"


def _overloads(operator: Operator) -> list[tuple[Mapping[str, str], str]]:
    """Return the overloads of an operator.

    An overload is a pair: a dictionary with the stub text of each argument that differs between overloads, by the
    argument's name; and the result's type. Several outputs have the type of a tuple, so that type checkers know the
    number of outputs. At run time, the outputs are a list, as in DALI.
    """
    schema, options = operator.schema, operator.options
    output_type = "_T" if schema.inputs and not schema.input(0).optional else "DataNode"
    if options.results is not None:
        return [({}, options.results.__annotations__.get("return", "Any"))]
    if options.outputs is None:
        return [({}, output_type if schema.outputs == 1 else _tuple(output_type, schema.outputs))]
    default_count = _count(operator, {})
    if schema.variadic and default_count == len(schema.inputs):
        return [({}, "Any")]  # one output per input; a list only for several inputs
    counts = {
        argument.name: {_count(operator, {argument.name: value}) for value in _values(argument)}
        for argument in schema.arguments.values()
    }
    counts = {name: possible for name, possible in counts.items() if possible - {default_count}}
    if isinstance(default_count, int):
        returns_list = all(isinstance(count, int) for possible in counts.values() for count in possible)
        return [({}, f"tuple[{output_type}, ...]" if returns_list else "Any")]
    if default_count is not None or len(counts) != 1:
        return [({}, "Any")]
    ((name, possible),) = counts.items()
    default = schema.arguments[name].default
    if name == "num_outputs":
        default_type = "None" if default is None else f"Literal[{default}]"
        return [
            ({name: f"{name}: {default_type} = {default}"}, output_type),
            ({name: f"{name}: int = ..."}, f"tuple[{output_type}, ...]"),
        ]
    if default is False:
        (count,) = possible - {default_count}
        return [
            ({name: f"{name}: Literal[False] = False"}, output_type),
            ({name: f"{name}: Literal[True]"}, _tuple(output_type, int(count))),
            ({name: f"{name}: bool"}, "Any"),
        ]
    return [({}, "Any")]


def _tuple(output_type: str, count: int) -> str:
    return f"tuple[{', '.join([output_type] * count)}]"


def _count(operator: Operator, arguments: Mapping[str, Any]) -> Any:
    """Return the number of outputs that the operator's rule computes from the arguments.

    None means a single output that isn't in a list. If the rule fails, return the name of the exception's class.
    """
    rule = operator.options.outputs
    try:
        return None if rule is None else rule({**operator.arguments(arguments), "inputs": len(operator.schema.inputs)})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return type(error).__name__


def _values(argument: Argument) -> Sequence[Any]:
    """Return some values of an argument, to test whether the number of outputs depends on the argument."""
    base, marks, _ = split(argument.annotation)
    for mark in marks:
        if isinstance(mark, Choices):
            return mark.values
    if typing.get_origin(base) is list:
        return [[1], [1, 2]]
    examples: dict[Any, Sequence[Any]] = {bool: [False, True], int: [2, 3], str: ["a", "b"]}
    return examples.get(base, [])


def _class(operator: Operator) -> str:
    arguments = {line.partition(":")[0]: line for line in _arguments(operator)}
    positional = [arguments.pop(name) for name in POSITIONAL_ARGUMENTS.get(operator.name, ())]
    lines = ",\n        ".join(["self", *_positional(operator), *positional, "*", *arguments.values()])
    call = "def __call__(self, *inputs: Any, **arguments: Any) -> Any: ..."
    init = f"def __init__(\n        {lines},\n    ) -> None: ..."
    return f"class {operator.class_name}:\n{doc_text(operator)}\n    {init}\n    {call}"


def doc_text(operator: Operator) -> str:
    """Return the docstring of an operator's stub, which editors show at a call."""
    text = (inspect.getdoc(operator.function) or "").strip()
    if operator.replacement:
        text = f"Deprecated: use `{operator.replacement}`.\n\n{text}"
    start, end = "r" if "\\" in text else "", "\n" if "\n" in text else ""
    return textwrap.indent(f'{start}"""{text}{end}"""', "    ")


def ignored_arguments(operator: Operator) -> frozenset[str]:
    """Return the names of arguments that have no effect.

    These are the arguments that every operator has, and arguments whose description contains a sentence that begins
    with "Accepted".
    """
    texts = descriptions(operator)
    return frozenset(COMMON) | {name for name, text in texts.items() if re.match(r"(.*\. )?Accepted\b", text)}


def _positional(operator: Operator) -> list[str]:
    """Return the stub text of the arguments that may also be passed by position, as in `external_source`."""
    arguments = operator.schema.arguments
    parameters = inspect.signature(operator.function).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return [argument_text(arguments[name]) for name in names]


def _arguments(operator: Operator) -> list[str]:
    schema = operator.schema
    positional = _positional(operator)
    texts = {a.name: argument_text(a) for a in schema.arguments.values() if not a.hidden}
    texts |= {name: f"{name}: Any = ..." for name in COMMON}
    texts["device"] = f"device: {_literal(operator.options.devices)} | None = None"
    texts["name"] = "name: str | None = None"
    required = [a.name for a in schema.arguments.values() if a.required]
    ignored = ignored_arguments(operator) - set(required)
    order = [*required, *sorted(texts.keys() - set(required), key=lambda name: (name in ignored, name))]
    return [texts[name] for name in order if texts[name] not in positional]


def argument_text(argument: Argument, varying: str = "DataNode | TensorList") -> str:
    """Return the stub text of an argument, with its type and default; ``varying`` is the type of per-sample values."""
    base, marks, optional = split(argument.annotation)
    text = _type(base, marks)
    if argument.edge:
        text += f" | {varying}"
    if optional:
        text += " | None"
    return f"{argument.name}: {text}{'' if argument.required else f' = {_default(argument.default)}'}"


def _default(value: Any) -> str:
    """Return a default as text, or ``...`` if its text would be long."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    is_literal = value is None or type(value) in (bool, int, float, str)
    is_literal = is_literal or (type(value) is list and all(type(v) in (bool, int, float, str) for v in value))
    text = repr(value)
    return text if is_literal and len(text) <= 40 and "inf" not in text else "..."


def _literal(values: Sequence[Any]) -> str:
    return f"Literal[{', '.join(map(repr, values))}]"


def _type(base: Any, marks: Sequence[Any]) -> str:
    for mark in marks:
        if isinstance(mark, Choices):
            return _literal(mark.values)
    if "dtype" in marks:
        return "DALIDataType | torch.dtype"
    if "path" in marks:
        return "str | PathLike[str]"
    base = plain_list(base)
    if typing.get_origin(base) is list:
        (element,) = typing.get_args(base)
        inner = _type(*split(element)[:2])
        return f"abc.Sequence[{inner}] | {inner}"
    if base in (int, float, str, bool):
        return str(base.__name__)
    if inspect.isclass(base) and issubclass(base, enum.Enum):
        return base.__name__
    return "Any"
