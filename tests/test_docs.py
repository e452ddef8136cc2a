"""The examples of the pages run, and give what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import docs

PAGES = [
    "docs/pipelines.md", "docs/checkpoints.md", "docs/expressions.md", "docs/conditionals.md",
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(docs.blocks(page)) >= 2
    names = docs.run(page)
    wrong = []
    for code, result in docs.examples(page):
        found = str(eval(code, names))
        if found != result:
            wrong.append(f"{code}  # -> {found}, not {result}")
    assert not wrong, "\n".join(wrong)
