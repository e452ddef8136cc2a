"""Console script ``torchdali``: runs ``torchdali/cli.py`` without importing the package around it.

``import torchdali`` loads torch and declares all operators, which takes seconds; ``torchdali --help`` needs neither.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["main"]


def _cli() -> ModuleType:
    package = find_spec("torchdali")  # found, not imported
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'torchdali'", name="torchdali")
    spec = spec_from_file_location("torchdali_command.cli", Path(package.origin).with_name("cli.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Run a command and return the exit status."""
    status: int = _cli().main()
    return status
