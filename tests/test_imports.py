"""Every module can be the first of the package that is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs fork")]

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("__main__", "sitecustomize", "torchdali/plugin/ray/", "torchdali/kernels/device/")  # run, or need Ray or Triton
FRAMEWORK = ("reading", "declaration", "graph", "calls", "stubs")
PATTERNS = ("*.py", "*/__init__.py", "*/*/__init__.py", *(f"{folder}/[a-z]*.py" for folder in FRAMEWORK))
SCRIPT = """
import importlib, os, sys, traceback
import numpy, torch
for name in sys.argv[1:]:
    if not os.fork():
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    os.wait()
"""


def test_every_module_can_be_imported_first() -> None:
    paths = [path.relative_to(ROOT).as_posix() for pattern in PATTERNS for path in sorted((ROOT / "torchdali").glob(pattern))]
    names = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths if not any(part in path for part in LEFT_OUT)]
    assert len(names) > 50
    done = subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == ""
