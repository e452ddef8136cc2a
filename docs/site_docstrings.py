"""Let prose in docstrings stay prose in the reference, and complete what is only known when torchdali is imported."""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<title>Raises|Warns):\n(?P<text>(?:    .*(?:\n|\Z))+)", re.MULTILINE)


def as_prose(docstring: str) -> str:
    """Return a docstring whose sections ``Raises`` and ``Warns`` are paragraphs, without ``::`` before code."""

    def paragraph(section: re.Match[str]) -> str:
        return f"**{section['title']}** {' '.join(section['text'].split())}\n"

    return re.sub(r"^::$", "", re.sub(r"(?<=\S)::$", ":", _SECTION.sub(paragraph, docstring), flags=re.M), flags=re.M)


class Prose(griffe.Extension):
    """Rewrites the docstrings that are read."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_prose(obj.docstring.value)

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Give `Pipeline` the options that it has when it is imported: they are made of a table."""
        from torchdali import Pipeline

        found = pkg["pipeline._pipeline.Pipeline"]
        found.docstring.value = as_prose(inspect.getdoc(Pipeline) or "")
        options = inspect.signature(Pipeline).parameters.values()
        found["__init__"].parameters = griffe.Parameters(*map(_parameter, options))


def _parameter(one: inspect.Parameter) -> griffe.Parameter:
    kind = griffe.ParameterKind[one.kind.name.lower()]
    return griffe.Parameter(one.name, annotation=str(one.annotation), kind=kind, default=repr(one.default))
