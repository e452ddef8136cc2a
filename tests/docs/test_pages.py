"""The Python examples of ``docs/*.md`` and of the guides run, and return the stated results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.helpers import pages
from torchdali.kernels import native

PAGES = [
    str(path.relative_to(pages.ROOT))
    for path in [*sorted((pages.ROOT / "docs").glob("**/*.md")), pages.ROOT / "torchdali" / "declaration" / "README.md", pages.ROOT / "CONTRIBUTING.md"]
    if pages.blocks(path.read_text(encoding="utf-8")) and path.parent.name != "recipes" and path.stem != "first_script"  # see test_recipes
]


LONG = ("docs/differentiable.md",)


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in PAGES])
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page == "docs/readers/records.md":
        pytest.importorskip("lmdb", reason="writes a database by the package lmdb")
    monkeypatch.chdir(tmp_path)
    # The pages always show plans without the library.
    monkeypatch.setattr(native, "status", lambda: native.Status(None, "not used here"))
    pages.check(page)


@pytest.mark.parametrize(
    "page", ["examples/migrate_from_dataloader.md", "examples/migrate_from_dali.md"]
)
def test_migrations(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.pictures(tmp_path / "images" / "train", count=40)
    pages.check(page)


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
a + 1  # -> 2
a.missing
```
"""


def test_examples_are_found() -> None:
    found = pages.blocks(EXAMPLE)
    assert [(b.line, b.runs) for b in found] == [(5, True), (10, False), (16, True)]
    assert found[2].examples == [("a + 1", "2")]


def test_a_failing_example_names_its_line() -> None:
    with pytest.raises(AttributeError) as caught:
        pages.run("page.md", pages.blocks(EXAMPLE))
    assert caught.traceback[-1].lineno == 17  # counted from 0
    assert str(caught.traceback[-1].path).endswith("page.md")


def test_a_wrong_result_is_reported() -> None:
    with pytest.raises(AssertionError, match=r"1 \+ 1  # -> 2, not 3"):
        pages.run("page.md", pages.blocks("```python\n1 + 1  # -> 3\n```\n"))


def test_a_not_run_mark_needs_a_reason() -> None:
    assert pages.blocks("<!-- not run: -->\n```python\n1\n```\n")[0].runs


def test_images_match_their_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, page = pages.ROOT / "docs" / "show", "docs/visualize.md"
    shown = set(re.findall(r"\]\(show/([\w.]+)\)", (pages.ROOT / page).read_text(encoding="utf-8")))
    assert shown == {path.name for path in folder.iterdir()}
    assert all(path.stat().st_size < 60_000 for path in folder.iterdir())
    monkeypatch.chdir(tmp_path)
    pages.check(page)
    for name in sorted(shown - {"notebook.png", "graph.svg"}):
        expected, drawn = (np.asarray(PIL.Image.open(place / name).convert("RGB"), np.int16) for place in (folder, tmp_path))
        assert expected.shape == drawn.shape, name
        assert np.abs(expected - drawn).mean() < 8, name  # few colors make small files
