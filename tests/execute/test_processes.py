"""The number of processes of a pipeline, and its tests in several processes, which run in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchdali.execute.workers import placing

APART = Path(__file__).with_name("processes_apart.py")
LONGEST = 400.0  # seconds; a hanging process must not delay the other tests


@pytest.mark.slow
def test_several_processes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(APART)]
    done = subprocess.run(
        command, cwd=APART.parents[2], capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("threads", "cores", "is_fast", "gil", "count"),
    [(1, 64, False, True, 1), (4, 64, False, True, 4), (8, 2, False, True, 2), (16, 16, True, True, 1), (2, 2, True, True, 1), (4, 64, False, False, 1)],
)
def test_the_default(
    threads: int, cores: int, is_fast: bool, gil: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "has_gil", lambda: gil)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert placing.default_processes(threads, is_fast) == count


@pytest.mark.slow
def test_the_interpreter_ends_after_what_starts_processes() -> None:
    """A thread that drops tensors during interpreter exit aborts the process."""
    script = """
import threading, weakref
from torchdali.execute.executor import _start_in_background
from torchdali.execute.workers.worker import NotStarted

class Owner:
    pass

class Starter:
    def start_all(self):
        threading.main_thread().join()  # the script is over
        print("began", sum(range(5_000_000)) > 0)
        raise NotStarted("not here")

owner = Owner()
_start_in_background(weakref.ref(owner), Starter(), None)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=LONGEST)
    assert (done.returncode, done.stdout) == (0, "began True\n"), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is Linux's")
@pytest.mark.parametrize("room", [-(200 << 20), 0, 8 << 20])
def test_without_memory_for_threads_build_fails_immediately(room: int) -> None:
    """Python may wait forever for a thread that it has started without memory."""
    script = f"""
import resource, numpy as np
from torchdali import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=2, device_id=None, num_processes=2)
def define():
    return fn.gaussian_blur(fn.external_source(lambda: [np.zeros((90, 90, 3), np.uint8)] * 2), sigma=1.0)

pipe = define()
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + {room}, resource.RLIM_INFINITY))
try:
    pipe.build()
except MemoryError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert "cannot allocate memory for the pipeline's threads; check `ulimit -v`" in done.stdout, done.stderr
