"""The programs of ``docs/recipes`` and ``docs/first_script.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.helpers.pages import ROOT

__all__ = ["Recipe", "recipes"]

_SECTION = re.compile(r"^## (?P<title>[^\n]*)\n(?P<text>.*?)^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLED = re.compile(r"`pip install ([^`]*)`")
_PRINTED = re.compile(r"\bprint\(.*\)\s+# -> (.*)")
_COMMAND = re.compile(r"# (?P<launcher>python|torchrun|accelerate launch) (?P<options>.*)\b(?P<file>\w+\.py)\n")


@dataclass(frozen=True)
class Recipe:
    """A program of a page.

    Attributes:
        page: Path of the page, below the root.
        title: Heading.
        packages: Names of packages to install, as in the text, such as ``torchdali[video]``.
        code: The program.
    """

    page: str
    title: str
    packages: tuple[str, ...]
    code: str

    @property
    def printed(self) -> list[str]:
        """Lines that it prints, in their order."""
        return _PRINTED.findall(self.code)

    @property
    def file(self) -> str:
        """Name of its file, from the command in its first line."""
        return self._command["file"]

    @property
    def processes(self) -> int:
        """Number of processes that run it."""
        return 1 if self._command["launcher"] == "python" else 2

    @property
    def _command(self) -> re.Match[str]:
        found = _COMMAND.match(self.code)
        assert found is not None, f"{self.title}: the first line is the command that runs it"
        return found


def recipes() -> list[Recipe]:
    """Find the programs of all pages."""
    return [
        Recipe(str(page.relative_to(ROOT)), m["title"], tuple(" ".join(_INSTALLED.findall(m["text"])).replace('"', "").split()), m["code"])
        for page in [ROOT / "docs" / "first_script.md", *sorted((ROOT / "docs" / "recipes").glob("*.md"))]
        for m in _SECTION.finditer(page.read_text(encoding="utf-8"))
    ]
