"""``torchdali run script.py``: run a script that imports ``nvidia.dali`` on torchdali."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from torchdali._commands import startup
from torchdali._commands.startup.torchdali_alias import alias_nvidia_dali

__all__ = ["run"]


def run(script: str, arguments: Sequence[str]) -> None:
    """Run a script as ``python script arguments ...`` does, with torchdali for ``nvidia.dali``.

    The Python processes that it starts have torchdali there as well.
    """
    alias_nvidia_dali()
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [*startup.__path__, *([inherited] if inherited else [])]
    )
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")
