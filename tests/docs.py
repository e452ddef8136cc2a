"""Run the examples of a page: its blocks of Python, one after the other, in one namespace.

A line ``code  # -> result`` is an example apart: the code must give what stands behind the arrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

__all__ = ["ROOT", "Block", "blocks", "examples", "pictures", "run"]

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"(?P<code>.*\S)\s+# -> (?P<result>.*)")


@dataclass(frozen=True)
class Block:
    """One block of Python, and where it stands."""

    page: Path
    line: int
    text: str

    def run(self, names: dict[str, Any]) -> None:
        """Run it without its examples; its functions keep their place on the page."""
        lines = ["" if _EXAMPLE.fullmatch(line) else line for line in self.text.splitlines()]
        text = "\n" * self.line + "\n".join(lines)
        exec(compile(text, str(self.page), "exec"), names)


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, which is named by its path below the root."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    return [Block(path, text[: m.start(1)].count("\n"), m[1]) for m in _BLOCK.finditer(text)]


def examples(page: str) -> list[tuple[str, str]]:
    """Return code and result of every example."""
    lines = [line for block in blocks(page) for line in block.text.splitlines()]
    return [(m["code"], m["result"]) for m in map(_EXAMPLE.fullmatch, lines) if m]


def run(page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run all blocks without their examples; return the names that they leave."""
    names = {"__name__": "page", **(names or {})}
    for block in blocks(page):
        block.run(names)
    return names


def pictures(root: Path, count: int = 128) -> None:
    """Make a folder of two classes of small, even pictures."""
    for number in range(count):
        folder = root / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.full((40, 50, 3), number, np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.jpg")
