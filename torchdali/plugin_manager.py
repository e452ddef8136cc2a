"""Load Python files that declare operators, with the functions that DALI has for its plugins."""

from __future__ import annotations

from torchdali.dali.backend import LoadDirectory, LoadLibrary

__all__ = ["load_directory", "load_library"]


def load_library(library_path: str, global_symbols: bool = False) -> None:
    """Run a Python file that declares operators; raise RuntimeError if the file cannot be loaded."""
    LoadLibrary(library_path, global_symbols)


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> None:
    """Run the Python files of a folder, ordered by name."""
    LoadDirectory(plugin_dir_path, global_symbols)
