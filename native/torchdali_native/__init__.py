"""The shared library of torchdali's native path; torchdali finds and calls it."""

from pathlib import Path

__all__ = ["path"]


def path() -> str:
    """Return the file of the shared library."""
    folder = Path(__file__).resolve().parent
    return str(next(folder / name for name in ("library.so", "library.dll") if (folder / name).exists()))
