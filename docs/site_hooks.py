"""Bring pages outside of ``docs/`` to the site, and make links between files of the repository work there."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "examples/migrate_from_dataloader.md": "from_dataloader.md",
    "examples/migrate_from_dali.md": "from_dali.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/NOTES.md": "notes.md",
    "torchdali/execute/README.md": "execute.md",
}
"""Pages by their paths in the repository, and their names on the site."""

_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!\w+:)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of `OUTSIDE`."""
    files.remove(files.get_file_from_path("README.md"))
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page: to another page of the site, or to the file on GitHub."""
    names = {name: path for path, name in OUTSIDE.items()}
    here = page.file.src_uri
    folder = posixpath.dirname(names.get(here, f"docs/{here}"))

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        name = OUTSIDE.get(path, path.removeprefix("docs/"))
        if (path in OUTSIDE or path.startswith("docs/")) and files.get_file_from_path(name):
            return posixpath.relpath(name, posixpath.dirname(here) or ".") + (link["anchor"] or "")
        if (ROOT / path).exists():
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"{config['repo_url']}/{kind}/main/{path}{link['anchor'] or ''}"
        return link[0]  # which mkdocs reports

    parts = _CODE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(target, part) for part in parts)
