"""``torchdali run script.py`` or ``-m module``: run a program that imports ``nvidia.dali`` on torchdali."""

from __future__ import annotations

import functools
import os
import runpy
import sys
from collections.abc import Sequence
from types import TracebackType

from torchdali._commands import startup
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali

__all__ = ["run"]


def run(program: str, arguments: Sequence[str], is_module: bool = False) -> None:
    """Run a script, or a module, as ``python [-m] program arguments ...`` does, with torchdali for ``nvidia.dali``.

    The Python processes that it starts have torchdali there as well.
    """
    alias_nvidia_dali()
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
    sys.excepthook = functools.partial(_show, path)
    runpy.run_path(path, run_name="__main__")


def _show(script: str, kind: type[BaseException], error: BaseException, found: TracebackType | None) -> None:
    """Print an error of the script without the frames that are outside of it."""
    inner = found
    while inner is not None and inner.tb_frame.f_code.co_filename != script:
        inner = inner.tb_next
    shown = inner or found
    sys.__excepthook__(kind, error.with_traceback(shown), shown)
