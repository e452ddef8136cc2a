"""The reference of all operators, derived from their declarations: ``python -m torchdali.reference`` prints it.

``docs/operators.md`` is its output. Its examples stand in `_examples`; ``--pictures docs/pictures`` draws what those of
image operators do.
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections import defaultdict
from typing import Any

import torch

from torchdali.descriptions import descriptions, sections
from torchdali.reference._examples import EXAMPLES, INPUTS, PICTURES
from torchdali.registry import Operator, registry
from torchdali.schema import IMAGE_LAYOUTS, Argument, Input, plain_list, split

__all__ = ["descriptions", "is_alias", "is_public", "reference"]

_HEAD = """# Operators

Generated from the declarations by `python -m torchdali.reference > docs/operators.md`; do not edit.

Every operator is a function of `torchdali.fn` and a class of `torchdali.ops`. Besides its own arguments it takes
`device`, `name`, `preserve` and `bytes_per_sample_hint`. *Per sample* means that a node, or a batch, gives each sample
its own value; *per frame* that `fn.per_frame` may give one a frame as well.

![image](pictures/image.jpg)

The examples work on a batch of two: this picture and its mirror image. What they give for the first is shown beside
them; numbers other than uint8 are stretched to the range of a picture. They begin with these names:

"""

_ALIASES = """## Deprecated names

They warn, and mean the same as the operators they stand for:
"""


def reference() -> str:
    """Return the reference of all public operators as Markdown."""
    spaces: dict[str, list[Operator]] = defaultdict(list)
    for operator in sorted(registry.values(), key=lambda each: each.name):
        if is_public(operator) and not is_alias(operator):
            spaces[operator.name.rpartition(".")[0]].append(operator)
    names = "".join(f"- `{name}`: {text}\n" for name, text in INPUTS.items())
    parts = [_HEAD + names, _contents(spaces)]
    for space, operators in sorted(spaces.items()):
        parts += [f"## {_title(space)}\n", *map(_entry, operators)]
    return "\n".join([*parts, _ALIASES, *map(_alias, filter(is_alias, registry.values()))]) + "\n"


def is_public(operator: Operator) -> bool:
    """True if it is one of torchdali's, and stands in `fn`."""
    return not operator.options.hidden and operator.body.__module__.startswith("torchdali.")


def _contents(spaces: dict[str, list[Operator]]) -> str:
    lines = [
        f"- [{_title(space)}](#{_title(space).replace('.', '')}): "
        + ", ".join(f"[{o.name.rpartition('.')[2]}](#{o.name.replace('.', '')})" for o in operators)
        for space, operators in sorted(spaces.items())
    ]
    return "\n".join(lines) + "\n"


def _title(space: str) -> str:
    return f"fn.{space}" if space else "fn"


def is_alias(operator: Operator) -> bool:
    """True if it is only another name of an operator."""
    return operator.options.instead in registry and registry[operator.options.instead].body is operator.body


def _entry(operator: Operator) -> str:
    sections = _sections(inspect.getdoc(operator.body) or "")
    sections.pop("Args", None)
    described = {name: _plain(text) for name, text in descriptions(operator).items()}
    text = [f"### {operator.name}\n", f"`fn.{operator.name}({_signature(operator)})`\n"]
    if operator.options.instead:
        text.append(f"Deprecated: use {_link(operator.options.instead)}.\n")
    text += [sections.pop("") + "\n", *_example(operator.name), _devices(operator) + "\n"]
    text += [_input(each, described) for each in operator.schema.inputs]
    arguments = [a for a in operator.schema.arguments.values() if not a.hidden]
    text += [_argument(each, described) for each in sorted(arguments, key=lambda a: a.name)]
    text += [_deprecated(old, new) for old, new in operator.schema.deprecated.items()]
    text += [f"\n{name}: {' '.join(words.split())}" for name, words in sections.items()]
    return "\n".join(text) + "\n"


def _example(name: str) -> list[str]:
    lines = [f"Example: `{EXAMPLES[name]}`\n"] if name in EXAMPLES else []
    return lines + ([f"![before](pictures/image.jpg) ![after](pictures/{name}.jpg)\n"] if name in PICTURES else [])


def _alias(operator: Operator) -> str:
    return f"- `fn.{operator.name}`, `ops.{_class(operator)}`: {_link(operator.options.instead)}"


def _link(name: str) -> str:
    return f"[{name}](#{name.replace('.', '')})" if name in registry else f"`{name}`"


def _sections(doc: str) -> dict[str, str]:
    """Divide a docstring, for Markdown."""
    return {name: _plain(text) for name, text in sections(doc).items()}


def _plain(text: str) -> str:
    """Turn the docstrings' double backticks into Markdown's single ones."""
    return text.replace("``", "`")


def _signature(operator: Operator) -> str:
    schema = operator.schema
    inputs = [f"*{i.name}" if i.variadic else f"{i.name}{'=None' if i.optional else ''}" for i in schema.inputs]
    inputs += ["/"] if inputs and not schema.variadic else []
    named = sorted(a.name for a in schema.arguments.values() if not a.hidden)
    star = ["*"] if named and not schema.variadic else []
    return ", ".join([*inputs, *star, *named])


def _devices(operator: Operator) -> str:
    kinds = {"reader": "reads data", "source": "brings data", "batch": "over the whole batch"}
    kind = kinds.get(operator.kind, "sample by sample")
    outputs = operator.schema.outputs
    count = "outputs depend on arguments" if operator.options.outputs else f"{outputs} output"
    words = f"{', '.join(operator.options.devices)}; {kind}; {count}{'s' if outputs > 1 else ''}"
    return f"*{words}{'; random' if operator.schema.random else ''}.* Class: `ops.{_class(operator)}`."


def _class(operator: Operator) -> str:
    space = operator.name.rpartition(".")[0]
    return f"{space}.{operator.class_name}" if space else operator.class_name


def _input(given: Input, described: dict[str, str]) -> str:
    takes = given.takes
    layouts = "image layouts" if takes.layouts == IMAGE_LAYOUTS else " ".join(takes.layouts)
    limits = [layouts, " ".join(str(d).removeprefix("torch.") for d in takes.dtypes)]
    facts = ["input", *(["optional"] if given.optional else []), *filter(None, limits)]
    return _line(given.name, facts, described.get(given.name, ""))


def _argument(argument: Argument, described: dict[str, str]) -> str:
    base, marks, _ = split(argument.annotation)
    facts = [_type(base, marks)]
    facts += [f"per {argument.edge.removesuffix('s')}"] if argument.edge else []
    facts.append("required" if argument.required else f"default `{_value(argument.shown)}`")
    return _line(argument.name, facts, described.get(argument.name, ""))


def _deprecated(old: str, new: str | None) -> str:
    return _line(old, ["deprecated"], f"Use `{new}`." if new else "Without effect.")


def _line(name: str, facts: list[str], text: str) -> str:
    return f"- `{name}` ({', '.join(filter(None, facts))}){': ' + text if text else ''}"


def _type(base: Any, marks: tuple[Any, ...]) -> str:
    base = plain_list(base)
    if "dtype" in marks or base is torch.dtype:
        return "type"
    origin = typing.get_origin(base)
    if origin is list:
        (element,) = typing.get_args(base)
        kind, inner, _ = split(element)
        return f"{_type(kind, inner)} or list"
    return base.__name__ if inspect.isclass(base) else ""


def _value(value: Any) -> str:
    return f"types.{value.name}" if isinstance(value, enum.Enum) else repr(value)
