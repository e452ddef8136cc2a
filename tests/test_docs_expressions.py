"""The examples of ``docs/expressions.md``: each line with ``# ->`` gives what stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "expressions.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
EXAMPLE = re.compile(r"(?P<code>.*\S)\s+# -> (?P<result>.*)")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in BLOCKS:
        exec("\n".join(line for line in block.splitlines() if not EXAMPLE.fullmatch(line)), found)
    return found


EXAMPLES = [
    match for block in BLOCKS for line in block.splitlines() if (match := EXAMPLE.fullmatch(line))
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda match: match["code"])
def test_example(example: re.Match[str], names: dict[str, Any]) -> None:
    assert eval(example["code"], names) == example["result"]
