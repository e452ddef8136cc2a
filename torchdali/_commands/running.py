"""``torchdali run script.py``: run a program with torchdali instead of ``nvidia.dali`` and PyTorch's ``DataLoader``."""

from __future__ import annotations

import atexit
import functools
import os
import runpy
import sys
from collections.abc import Sequence
from types import TracebackType

from torchdali._commands import startup
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali
from torchdali._commands.startup.torchdali_loader import replace_dataloader

__all__ = ["run"]


def run(program: str, arguments: Sequence[str], is_module: bool = False) -> None:
    """Run a script or a module like ``python [-m] program arguments ...``, with torchdali instead of ``nvidia.dali``.

    torchdali's ``DataLoader`` also replaces PyTorch's. At its end, the program prints a summary of its loaders. The
    replacements also apply to Python processes that the program starts.
    """
    alias_nvidia_dali()
    replace_dataloader()
    atexit.register(_print_report)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*startup.__path__, *([inherited] if inherited else [])])
    if is_module:
        sys.argv = [program, *arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    path = os.path.abspath(program)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(path))
    sys.excepthook = functools.partial(_print_error, path)
    runpy.run_path(path, run_name="__main__")


def _print_report() -> None:
    """Print which loaders of the script were accelerated, and how long the script waited for data."""
    reports = sys.modules.get("torchdali.dataloader._reports")
    if reports is not None and (text := reports.summary()):
        print(f"torchdali run: {text}", file=sys.stderr)


def _print_error(script: str, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an error of the script without the outer frames of this command."""
    script_traceback = traceback
    while script_traceback is not None and script_traceback.tb_frame.f_code.co_filename != script:
        script_traceback = script_traceback.tb_next
    shown = script_traceback or traceback
    sys.__excepthook__(kind, error.with_traceback(shown), shown)
