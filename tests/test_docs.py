"""The Python examples of ``docs/*.md`` run: those of a page one after the other, in one namespace.

A block that cannot run has a reason on the line before it: ``<!-- not run: needs a GPU -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .*\S.* -->\s*\Z")


@dataclass(frozen=True)
class Block:
    """An example: its code, and the line of the page that it begins on."""

    code: str
    line: int
    runs: bool


def blocks(text: str) -> list[Block]:
    """Find the Python examples of a page."""
    return [
        Block(
            match[1],
            text.count("\n", 0, match.start(1)) + 1,
            not NOT_RUN.search(text, 0, match.start()),
        )
        for match in FENCE.finditer(text)
    ]


def run(page: str, examples: list[Block]) -> None:
    """Run examples; tracebacks show the lines of the page."""
    names: dict[str, Any] = {"__name__": page}
    for block in examples:
        if block.runs:
            exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), names)


PAGES = [path for path in sorted(DOCS.glob("**/*.md")) if blocks(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(str(page), blocks(page.read_text(encoding="utf-8")))


EXAMPLE = """
# A page

```python
a = 1
```

<!-- not run: needs a GPU -->
```python
raise AssertionError
```

text

```python
assert a == 1
a.missing
```
"""


def test_blocks_are_found() -> None:
    found = blocks(EXAMPLE)
    assert [(b.line, b.runs) for b in found] == [(5, True), (10, False), (16, True)]


def test_a_failing_example_names_its_line() -> None:
    with pytest.raises(AttributeError) as caught:
        run("page.md", blocks(EXAMPLE))
    assert caught.traceback[-1].lineno == 16  # counted from 0
    assert str(caught.traceback[-1].path).endswith("page.md")


def test_a_mark_needs_a_reason() -> None:
    assert blocks("<!-- not run: -->\n```python\n1\n```\n")[0].runs
