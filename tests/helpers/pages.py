"""Run the examples of a page: its blocks of Python, in order, in one namespace.

A line ``code  # -> result`` is a separate example: the code must return the result after the arrow. A block that cannot
run has a reason on the line before it: ``<!-- not run: needs a GPU -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.codecs.images import FORMATS
from torchdali.declaration.registry import registry

__all__ = ["ROOT", "Block", "blocks", "check", "own_operators", "pictures", "run"]

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: .*\S.* -->\s*\Z")
_EXAMPLE = re.compile(r"(?P<code>.*\S)\s+# -> (?P<result>.*)")


@dataclass(frozen=True)
class Block:
    """An example: its code, and its first line on the page."""

    code: str
    line: int
    runs: bool = True

    @property
    def examples(self) -> list[tuple[str, str]]:
        """Code and result of its lines with an arrow."""
        matches = map(_EXAMPLE.fullmatch, self.code.splitlines())
        return [(m["code"], m["result"]) for m in matches if m]


def blocks(text: str) -> list[Block]:
    """Find the Python examples of a page."""
    return [
        Block(m[1], text.count("\n", 0, m.start(1)) + 1, not _NOT_RUN.search(text, 0, m.start()))
        for m in _BLOCK.finditer(text)
    ]


def run(page: str, examples: list[Block], names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run examples; tracebacks show the lines of the page. Return the namespace.

    Raises:
        AssertionError: Lines with an arrow that return another result.
    """
    names = {"__name__": "__main__", **(names or {})}
    wrong: list[str] = []
    for block in examples:
        if block.runs:
            lines = ["" if _EXAMPLE.fullmatch(line) else line for line in block.code.splitlines()]
            text = "\n" * (block.line - 1) + "\n".join(lines) + "\n"
            exec(compile(text, page, "exec"), names)
            found = [(code, result, str(eval(code, names))) for code, result in block.examples]
            wrong += [f"{code}  # -> {got}, not {said}" for code, said, got in found if got != said]
    assert not wrong, "\n".join(wrong)
    return names


def check(page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run all examples of a page, which is named by its path below the root."""
    path = ROOT / page
    with own_operators():
        return run(str(path), blocks(path.read_text(encoding="utf-8")), names)


@contextmanager
def own_operators() -> Iterator[None]:
    """Remove the operators and formats that a page declares: stubs and reference are generated from the registry."""
    before, formats = dict(registry), dict(FORMATS)
    try:
        yield
    finally:
        registry._operators = before
        FORMATS.clear()
        FORMATS.update(formats)


def pictures(root: Path, count: int = 128) -> None:
    """Write a folder of two classes of small, constant images."""
    for number in range(count):
        folder = root / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.full((40, 50, 3), number, np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.jpg")
