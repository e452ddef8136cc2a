"""A call in a new process: without the threads of other tests, or with another environment."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

import torch

from tests.helpers.pages import ROOT

PATIENCE = 240  # seconds; a hanging process prints its threads' stacks


def in_own_process(module: str, call: str, **environment: str) -> Any:
    """Evaluate ``call``, with the names of a module, in another process; return its value.

    Args:
        module: The module with the names.
        call: An expression.
        environment: Variables that modules read when they are loaded; then a new interpreter runs, and the value must fit JSON.
    """
    return _in_new_interpreter(module, call, environment) if environment else _in_forked_process(module, call)


def _in_new_interpreter(module: str, call: str, environment: dict[str, str]) -> Any:
    watch = f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE}, exit=True)"
    code = f"{watch}; import json; from {module} import *; print(json.dumps({call}))"
    given = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _in_forked_process(module: str, call: str) -> Any:
    """Evaluate a call in a fork of a process that has loaded torchdali, and has no threads."""
    context = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
    if hasattr(os, "fork"):
        context.set_forkserver_preload(["torchdali.fn", "torchdali.plugin.pytorch", "torchdali.dynamic", "pytest"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_evaluate, args=(module, call, theirs, dict(os.environ)))
    process.start()
    theirs.close()
    try:
        value, error = ours.recv()
    except EOFError:
        value, error = None, "it ended before it had a value"
    process.join()
    assert not error, error
    assert process.exitcode == 0
    return value


def _evaluate(module: str, call: str, answer: Connection, environment: dict[str, str]) -> None:
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    names: dict[str, Any] = {}
    try:
        exec(f"from {module} import *", names)
        answer.send((eval(call, names), ""))
    except BaseException:
        answer.send((None, traceback.format_exc()))
