"""Docstrings begin with a verb or a noun, and words that only this project used do not come back."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import pages

FIRST = re.compile(r"(What|Whether|Who|Where|Which|How|When)\b")
PRIVATE = re.compile(r"(interpreter's|Python's) lock|\b(conductor|obituary|LinkedChain|errands?)\b|\w*normalis\w*", re.IGNORECASE)


def _docstrings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""
        body = getattr(node, "body", None)
        for before, text_ in itertools.pairwise(body if isinstance(body, list) else []):  # below an assignment
            if isinstance(before, (ast.Assign, ast.AnnAssign)) and isinstance(text_, ast.Expr) and isinstance(text_.value, ast.Constant):
                yield str(text_.value.value)


def objections(text: str) -> list[str]:
    """Return the docstrings that begin wrongly, and the private words of a source file."""
    suspect = re.search(rf"[\"']\s*{FIRST.pattern}", text)  # to parse all files takes seconds
    begun = [doc.splitlines()[0] for doc in _docstrings(text) if FIRST.match(doc)] if suspect else []
    return begun + [found.group() for found in PRIVATE.finditer(text)]


PACKAGE = sorted(f"torchdali/{p.parent.name}" for p in (pages.ROOT / "torchdali").glob("*/__init__.py"))


@pytest.mark.parametrize("folder", [*PACKAGE, "torchdali/*.py", "benchmarks", "examples", "tests"])
def test_docstrings_begin_with_a_verb_or_a_noun(folder: str) -> None:
    root = pages.ROOT
    files: list[Path] = list(root.glob(folder)) if folder.endswith(".py") else list((root / folder).rglob("*.py"))
    files = [path for path in files if path != Path(__file__)]
    assert files
    assert {str(path): wrong for path in files if (wrong := objections(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [('"""What it does."""', 1), ('def f():\n    """Whether."""', 1), ("A = 1\n\"\"\"How much.\"\"\"", 1), ("# keeps Python's lock", 1), ('"""Whatever it is, return it."""', 0)],
)
def test_objections(text: str, count: int) -> None:
    assert len(objections(text)) == count
