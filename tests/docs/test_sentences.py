"""The pages that users read first are written in short sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.pages import ROOT
from tests.helpers.sentences import mean_length, sentences

OTHERS = {"README", "landing", "architecture", "differences"}
"""Pages of ``docs/`` for explanation and development, and the list of pages."""

START = ["README.md", "docs/installation.md", "docs/first_script.md", *(f"examples/migrate_from_{it}.md" for it in ("dataloader", "dali"))]
GUIDES = [
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path.stem not in OTHERS and f"docs/{path.name}" not in START),
    *(f"docs/readers/{path.name}" for path in sorted((ROOT / "docs" / "readers").glob("*.md"))),
]
RECIPES = [f"docs/recipes/{path.name}" for path in sorted((ROOT / "docs" / "recipes").glob("*.md"))]


@pytest.mark.parametrize("page", START + GUIDES + RECIPES)
def test_the_mean_sentence_is_shorter_than_16_words(page: str) -> None:
    text = Path(ROOT / page).read_text(encoding="utf-8")
    longest = sorted(sentences(text), key=lambda sentence: -len(sentence.split()))[:5]
    assert mean_length(text) < 16, f"{mean_length(text):.1f} words; divide the longest: {longest}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Heading\n\nOne two three. Four\nfive.\n", ["One two three.", "Four five."]),
        ("A [link\nto `x.y`](page.md#here) is read: so. `torch` too!\n", ["A link to code is read: so.", "code too!"]),
        ("Text:\n\n```python\ncode. Code.\n```\n\n| a. | b. |\n|---|---|\n<!-- no. -->\n", ["Text:"]),
        ("- **First.** one\n- second\n  goes on; so.\n\n1. third\n", ["**First.**", "one", "second goes on; so.", "third"]),
        ("It took 2.5 s (or less.) Good.", ["It took 2.5 s (or less.)", "Good."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
