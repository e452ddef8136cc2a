"""Hooks of mkdocs: write the operators' pages, add pages from outside of ``docs/``, and convert links for the site."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import torchdali.ops  # noqa: F401  declares the operators

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "docs/landing.md": "index.md",
    "examples/migrate_from_dataloader.md": "from_dataloader.md",
    "examples/migrate_from_dali.md": "from_dali.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages that are added to the site: paths in the repository, and names on the site."""

BOOSTS = {
    "faq": 2,
    "dataloader": 2,
    "performance": 2,
    "api/": 0.5,
    "operators/": 0.7,
    "contributing": 0.2,
    "changelog": 0.2,
}
"""Weights of pages in the search, by the start of their path: guides come before the reference."""

_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_SHOWN_AS_CODE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_LINK = re.compile(r"(?<=\]\()(?!\w+:)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")

_OPERATORS = re.compile(r"https://torchdali\.github\.io/torchdali/latest/operators/(?:(\w+)/)?")
"""Links to the operators' pages. These aren't in the repository, so its pages link to their address on the site."""


def on_startup(command: str, dirty: bool) -> None:
    """Write the reference of the operators."""
    sys.path.insert(0, str(ROOT))
    from docs.reference import write

    write(ROOT / "docs" / "operators")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of `OUTSIDE`."""
    for source, page in OUTSIDE.items():
        if own := files.get_file_from_path(source.removeprefix("docs/")):
            files.remove(own)
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Set a page's weight in the search, and let its links point to pages of the site or to files on GitHub."""
    names = {name: path for path, name in OUTSIDE.items()}
    here = page.file.src_uri
    page.meta.setdefault(
        "search", {"boost": next((boost for start, boost in BOOSTS.items() if here.startswith(start)), 1)}
    )
    folder = posixpath.dirname(names.get(here, f"docs/{here}"))

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        name = OUTSIDE.get(path, path.removeprefix("docs/"))
        page_file = files.get_file_from_path(name) if path in OUTSIDE or path.startswith("docs/") else None
        if page_file and page_file.inclusion.is_included():
            return posixpath.relpath(name, posixpath.dirname(here) or ".") + (link["anchor"] or "")
        if (ROOT / path).exists():
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"{config['repo_url']}/{kind}/main/{path}{link['anchor'] or ''}"
        return link[0]  # mkdocs reports the broken link

    def operators(link: re.Match[str]) -> str:
        return posixpath.relpath(f"docs/operators/{link[1] or 'README'}.md", folder or ".")

    parts = _CODE.split(_OPERATORS.sub(operators, markdown))
    return "".join(part if part.startswith("```") else _LINK.sub(target, part) for part in parts)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> None:
    """Check that no paragraph is indented so far that it is shown as code.

    Raises:
        PluginError: A block of code has a Markdown link.
    """
    for block in _SHOWN_AS_CODE.findall(html):
        if link := re.search(r"\]\([^)\s]+\.md[)#]", _TAG.sub("", block)):
            raise PluginError(
                f"{page.file.src_uri} shows a paragraph as code, indent it by 4 spaces at most: {link[0]}"
            )
