"""Programs with a pipeline in worker processes that are killed or suspended; as a script, this file runs many of them.

The script imports torchdali once, and forks a process for each program, in its own session. It prints a line of
JSON for each: how the program ended, after how many seconds, and which processes remained.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.helpers.inside import executor_of, server_of, spare_of
from torchdali import Pipeline, fn, pipeline_def

BATCHES, SIZE, EPOCHS = 6, 4, 3
LONGEST = 60.0  # seconds until a program that hangs is killed
PATIENCE = 10.0  # seconds for the exit of a program's remaining processes


@pipeline_def(batch_size=SIZE, num_threads=2, device_id=None, seed=3)
def images(root: str) -> Any:
    data, label = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    return fn.gaussian_blur(fn.decoders.image(data), sigma=1.0), label


class Numbers:
    def __call__(self, info: Any) -> Any:
        return np.full((60, 80), info.idx_in_epoch, np.float32)


@pipeline_def(batch_size=SIZE, num_threads=1, device_id=None, py_num_workers=2)
def parallel() -> Any:
    return fn.external_source(Numbers(), parallel=True, batch=False)


def digest(outputs: Any) -> str:
    found = hashlib.blake2b()
    for output in outputs:
        for sample in output.samples():
            found.update(sample.contiguous().numpy().tobytes())
    return found.hexdigest()


class Victims:
    """The processes of a pipeline."""

    def __init__(self, pipe: Pipeline) -> None:
        executor = executor_of(pipe)
        if executor.replicas is None:
            pools = [source._workers._workers._pool for source in executor.sources.values()]
        else:
            pools = [executor.replicas.pool]
        (self.pool,) = pools

    @property
    def replicas(self) -> list[int]:
        return [worker.process.pid for worker in self.pool.workers]

    @property
    def server(self) -> list[int]:
        if self.pool._starter is None:
            return [forkserver._forkserver._forkserver_pid]
        return [server_of(self.pool)]

    @property
    def spare(self) -> list[int]:
        return [spare_of(self.pool)]

    def hit(self, what: str, how: str) -> None:
        """Send a signal: to "replica", "replicas", "server", "spare", or several of them, with a + between."""
        for name in what.split("+") if what else ():
            pids = self.replicas[:1] if name == "replica" else getattr(self, name)
            for pid in pids:
                os.kill(pid, getattr(signal, how))


def program(root: str, method: str, what: str, how: str, when: int, end: str) -> None:
    """Run epochs, send signals to processes after some batches, compare with one process, and exit."""
    wanted: list[str] = []
    if method in ("parallel", "forkserver"):
        pipe = parallel(py_start_method="fork" if method == "parallel" else method)
    else:
        alone = images(root, num_processes=1)
        wanted = [digest(alone.run()) for _ in range(EPOCHS * BATCHES)]
        alone.close()
        del alone
        pipe = images(root, num_processes=2, py_start_method=method)
    pipe.build()
    for number in range(EPOCHS * BATCHES):
        if number == when:
            Victims(pipe).hit(what, how)
            if end == "at once":
                return
            if end == "close at once":
                pipe.close()
                return
        found = digest(pipe.run())
        assert not wanted or found == wanted[number], f"batch {number} differs"
    print("all batches", flush=True)
    if end == "close":
        pipe.close()
    elif end == "del":
        del pipe
        gc.collect()
    elif end == "exit":
        sys.exit(3)
    elif end == "error":
        raise LookupError("planted")
    elif end == "_exit":
        os._exit(4)
    elif end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif end == "interrupt":
        os.killpg(0, signal.SIGINT)
        signal.pause()


# ---------------------------------------------------------------- running them


def session(leader: int) -> Iterator[psutil.Process]:
    """Return the living processes of a session."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue


def waited(pid: int, seconds: float) -> bool:
    """Wait for the end of a process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def forked(run: Callable[[], None], output: Path) -> dict[str, Any]:
    """Run a program in a new process, and return how it ended."""
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os.setsid()
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        run()
        sys.exit()
    in_time = waited(pid, LONGEST)
    if not in_time:
        for process in session(pid):
            os.kill(process.pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    took, deadline = time.monotonic() - began, time.monotonic() + PATIENCE
    left = [p.pid for p in list(session(pid)) if not waited(p.pid, max(0.0, deadline - time.monotonic()))]
    for each in left:
        os.kill(each, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status) if in_time else "hangs"
    return {"code": code, "seconds": took, "left": len(left), "output": output.read_text()}


def main(root: str, cases: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for background jobs
    folder = Path(tempfile.mkdtemp())  # no TemporaryDirectory, which the programs would remove at their exit
    for case in json.loads(cases):
        print(json.dumps(forked(functools.partial(program, root, *case), folder / "output.txt")), flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
