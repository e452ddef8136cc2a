"""The examples of the pages on pipelines and checkpoints run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["pipelines.md", "checkpoints.md"])
def test_examples_run(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, Any] = {"__name__": page}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
