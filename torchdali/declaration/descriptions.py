"""Collect the docstrings' texts about the inputs and arguments of an operator, including shared arguments."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from torchdali.declaration.registry import Operator

__all__ = ["descriptions", "help_text", "sections"]

_WIDTH = 108


def sections(doc: str) -> dict[str, str]:
    """Split a docstring at ``Args:``, ``Attributes:``, ``Returns:`` and ``Raises:``.

    In the result, the text before the first of these headings has the key ''.
    """
    first, *rest = re.split(r"^(Args|Attributes|Returns|Raises):\n", doc, flags=re.MULTILINE)
    return {"": first.strip()} | dict(zip(rest[::2], rest[1::2], strict=True))


def descriptions(operator: Operator) -> dict[str, str]:
    """Return a dictionary that maps the name of each input and argument of an operator to its description."""
    own = _parse_arguments(sections(inspect.getdoc(operator.implementation) or "").get("Args", ""))
    seed = {"seed": "Seed of the random numbers; derived from the pipeline's seed by default."}
    return seed | _collect_shared(operator) | own


def help_text(operator: Operator) -> str:
    """Return an operator's docstring, with texts for all arguments, including the arguments of shared functions."""
    texts = sections(inspect.getdoc(operator.implementation) or "")
    argument_texts = descriptions(operator)
    names = [each.name for each in operator.schema.inputs]
    names += sorted(a.name for a in operator.schema.arguments.values() if not a.hidden)
    parts = [texts.pop("")]
    texts.pop("Args", None)
    described = [name for name in names if argument_texts.get(name)]
    if described:
        parts.append("Args:\n" + "\n".join(_format_item(name, argument_texts[name]) for name in described))
    parts += [f"{title}:\n{text.rstrip()}" for title, text in texts.items()]
    return "\n\n".join(parts) + "\n"


@functools.cache
def _format_item(name: str, text: str) -> str:
    return textwrap.fill(
        f"{name}: {text}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _collect_shared(operator: Operator) -> dict[str, str]:
    texts: dict[str, str] = {}
    for source in operator.schema.shared:
        texts |= _read_descriptions(source)
    return texts


@functools.cache
def _read_descriptions(source: Callable[..., Any]) -> dict[str, str]:
    doc = sections(inspect.getdoc(source) or "")
    return _parse_arguments(doc.get("Args", "") or doc.get("Attributes", ""))


def _parse_arguments(section: str) -> dict[str, str]:
    """Split the section ``Args:`` into one text per name; ``a, b: text`` applies to both names."""
    texts: dict[str, str] = {}
    for item in re.split(r"^ {4}(?=\S)", section, flags=re.MULTILINE)[1:]:
        names, _, text = item.partition(":")
        for name in names.split(","):
            texts[name.strip(" `*")] = " ".join(text.split())
    return texts
