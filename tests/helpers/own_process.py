"""A call in a process of its own, for what the environment decides when it is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.helpers.pages import ROOT

PATIENCE = 240  # seconds; one that hangs says where its threads are


def in_own_process(module: str, call: str, **environment: str) -> Any:
    """Evaluate ``call``, with the names of a module, under another environment; return its value, which JSON can hold."""
    watch = f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE}, exit=True)"
    code = f"{watch}; import json; from {module} import *; print(json.dumps({call}))"
    given = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
