"""The notebook of the first hour: its cells run in order, offline."""

from __future__ import annotations

import ast
import json
import linecache
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers import pages

PATH = pages.ROOT / "examples" / "first_hour.ipynb"
BOOK = json.loads(PATH.read_text(encoding="utf-8"))
SOURCES = [(cell["cell_type"], "".join(cell["source"])) for cell in BOOK["cells"]]
CODE = [text for kind, text in SOURCES if kind == "code"]
TEXT = "\n".join(text for kind, text in SOURCES if kind == "markdown")


def test_the_notebook_has_no_outputs() -> None:
    assert (BOOK["nbformat"], BOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in BOOK["cells"]}) == len(SOURCES) > 10
    assert not [cell for cell in BOOK["cells"] if cell.get("outputs") or cell.get("execution_count")]
    assert CODE[0].startswith("%pip install") and not re.search(r"^[%!]", "\n".join(CODE[1:]), re.MULTILINE)


def test_badge_and_links_of_the_notebook_work() -> None:
    name = PATH.relative_to(pages.ROOT).as_posix()
    assert f"](https://colab.research.google.com/github/torchdali/torchdali/blob/main/{name})" in TEXT
    links = re.findall(r"https://torchdali\.github\.io/torchdali/latest/([\w/]+)/\)", TEXT)
    assert len(links) == 3
    assert all((pages.ROOT / "docs" / f"{link}.md").is_file() for link in links if link != "operators")


@pytest.mark.slow
def test_the_cells_of_the_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(pages.ROOT))
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with pages.own_operators():
        for number, code in enumerate(CODE[1:], 1):
            tree, name = ast.parse(code), f"<cell {number}>"
            linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # the default folder of notebooks
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), names)
            if isinstance(last, ast.Expr):  # which a notebook displays
                shown.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    printed = capsys.readouterr().out
    assert "torch.Size([16, 3, 64, 64])" in printed and "RandomResizedCrop: accelerated" in printed
    assert printed.count(" images correct") == 4 and "the same batch: True" in printed
    assert [type(each).__name__ for each in shown if each is not None] == ["Image", "Image"]
    assert isinstance(names["images"], torch.Tensor)
