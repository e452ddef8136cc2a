"""Convert docstrings for the site's API reference, and add the options that `Pipeline` gets when it is imported."""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<title>Raises|Warns):\n(?P<text>(?:    .*(?:\n|\Z))+)", re.MULTILINE)


def as_prose(docstring: str) -> str:
    """Convert the sections ``Raises`` and ``Warns`` to paragraphs, and remove ``::`` before code."""

    def paragraph(section: re.Match[str]) -> str:
        return f"**{section['title']}** {' '.join(section['text'].split())}\n"

    return re.sub(r"^::$", "", re.sub(r"(?<=\S)::$", ":", _SECTION.sub(paragraph, docstring), flags=re.M), flags=re.M)


class Prose(griffe.Extension):
    """An extension of griffe, which reads the docstrings; it converts them with `as_prose`."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_prose(obj.docstring.value)

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Document the parameters of `Pipeline`, which are built from a table when it is imported."""
        from torchdali import Pipeline

        found = pkg["pipeline._pipeline.Pipeline"]
        found.docstring.value = as_prose(inspect.getdoc(Pipeline) or "")
        options = inspect.signature(Pipeline).parameters.values()
        found["__init__"].parameters = griffe.Parameters(*map(_parameter, options))


def _parameter(one: inspect.Parameter) -> griffe.Parameter:
    kind = griffe.ParameterKind[one.kind.name.lower()]
    return griffe.Parameter(one.name, annotation=str(one.annotation), kind=kind, default=repr(one.default))
