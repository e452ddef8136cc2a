"""``python -m torchdali.stubs``: write all stub files, and remove those that are no longer made."""

from __future__ import annotations

from pathlib import Path

from torchdali.stubs import dynamic, operators


def main() -> None:
    """Write the files below the package, and print their paths."""
    folder = Path(__file__).parents[1]
    for package in ("fn", "ops", "experimental/dynamic"):
        for old in (folder / package).rglob("*.pyi"):
            old.unlink()
    for path, text in {**operators.stubs(), **dynamic.stubs()}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
