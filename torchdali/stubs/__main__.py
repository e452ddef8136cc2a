"""``python -m torchdali.stubs``: write all stub files, and remove outdated stub files."""

from __future__ import annotations

import sys
from pathlib import Path

from torchdali.stubs.placeholders import replace_missing

__all__ = ["write"]


def write(package: Path) -> None:
    """Write the stub files into the folder of the package and its subfolders."""
    from torchdali.stubs import dynamic, operators

    texts = {package / path: text for path, text in {**operators.stubs(), **dynamic.stubs()}.items()}
    for folder in ("fn", "ops", "experimental/dynamic"):
        for old in {*(package / folder).rglob("*.pyi")} - texts.keys():
            old.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(texts)} type stubs in {package}")


if __name__ == "__main__":
    replace_missing()
    write(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1])
