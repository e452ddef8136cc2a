"""README.md: its Python code runs, and continuous integration runs its commands."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers import pages
from torchdali.declaration.registry import OperatorOptions

ROOT = pages.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``images`` with 128 small images, in which the examples run."""
    pages.pictures(tmp_path / "images")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "images"


def _names(root: Path) -> dict[str, Any]:
    """Names that the examples expect."""
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    given = {"torch": torch, "v2": v2, "DataLoader": DataLoader, "ImageFolder": ImageFolder}
    return {**given, "root": str(root)}


@pytest.mark.slow
def test_examples_run(images: Path) -> None:
    names = pages.check("README.md", _names(images))
    assert names["images"].shape == (64, 3, 224, 224)
    assert names["labels"].shape[0] == 64


def test_user_operators_work_as_shown() -> None:
    from torchdali import fn

    block = next(block for block in pages.blocks(README) if "invert" in block.code)
    image = torch.tensor([[[0, 10, 255]]], dtype=torch.uint8)
    with pages.own_operators():
        pages.run("README.md", [block])
        assert torch.as_tensor(fn.invert(image)).tolist() == [[[255, 245, 0]]]


@pytest.mark.parametrize(("page", "name"), [("README.md", "demo-command"), ("README.md", "test-command")])
def test_commands_are_one_line_each(page: str, name: str) -> None:
    """``.ci/run`` reads the commands between these marks, so that the two cannot diverge."""
    assert f"{page} {name}" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    text = (ROOT / page).read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1].split(f"\n<!-- /{name} -->")[0]
    fence, command, end = text.splitlines()
    assert (fence, end) == ("```sh", "```")
    assert "pip install -e" in command


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "native/README.md")]
PAGES += [page for folder, pattern in {"docs": "**/*.md", "examples": "*.md", "benchmarks": "*.md", "torchdali": "*/README.md"}.items() for page in (ROOT / folder).glob(pattern)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs generate them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    return named | {re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", heading)).lower().strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


def test_the_list_of_pages_has_all() -> None:
    listed = set(re.findall(r"\]\(([\w/]+\.md)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    assert _site_pages() - {"landing.md"} <= listed


def _site_pages() -> set[str]:
    """Return the paths of the pages in ``docs/``, without the generated reference."""
    paths = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob("**/*.md")}
    return {path for path in paths if not path.startswith("operators/")} - {"README.md"}


def test_the_site_has_all_pages() -> None:
    listed = set(re.findall(r"[\w/]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert _site_pages() - {"architecture.md", "landing.md"} <= listed


def test_every_option_of_a_declaration_is_in_the_table() -> None:
    options = {field.name for field in fields(OperatorOptions)}
    assert options == set(re.findall(r"^    (\w+): ", inspect.getdoc(OperatorOptions) or "", re.MULTILINE))
    page = (ROOT / "torchdali" / "declaration" / "README.md").read_text(encoding="utf-8")
    assert not {option for option in options if f"{option}=" not in page}
