"""Every end of a loop over a proxy is quick, has a message, and frees all processes and memory.

Each case is a script in its own process group: it must end by itself, with a message, without a
remaining process of the group or file of shared memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchdali.dali.proxy import arrivals

pytestmark = pytest.mark.skipif(
    not Path("/dev/shm").is_dir(), reason="looks at processes and shared memory as Linux shows them"
)

SECONDS = 20.0
START = """
import os, signal, sys
from tests.helpers import proxy_data as data
from torchdali import fn, pipeline_def
from torchdali.plugin.pytorch.experimental import proxy
from torchdali.tensors import TensorList

@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def pipe():
    return fn.external_source(name="x", no_copy=True) * 2

server = proxy.DALIServer(pipe())
def load(make, length=4000, **options):
    samples = data.Made(server.proxy, make, length=length)
    return proxy.DataLoader(server, samples, batch_size=4, **{"num_workers": 2, **options})
def ready():
    print("ready", flush=True)
"""

# Only the main thread receives the signal of a dead child.
IN_A_THREAD = """
import threading
def loop():
    try:
        for batch in load(data.dies_at_6, {options}):
            pass
    except RuntimeError as error:
        print("seen by the loop:", error, file=sys.stderr)
ready()
thread = threading.Thread(target=loop)
thread.start()
while thread.is_alive():
    try:
        thread.join()
    except RuntimeError as error:
        print(error, file=sys.stderr)
"""

CASES = {
    "a worker is killed": (
        """
with server:
    ready()
    for batch in load(data.dies_at_6):
        pass
""",
        "killed by signal|exited unexpectedly",
    ),
    "a worker is killed, by a loop in a thread": (
        IN_A_THREAD.format(options=""),
        "seen by the loop: .* exited unexpectedly",
    ),
    "a worker is killed, by a loop in a thread, persistent": (
        IN_A_THREAD.format(options="persistent_workers=True"),
        "seen by the loop: .* exited unexpectedly",
    ),
    "a worker is killed, by a loop in a thread that is patient": (
        IN_A_THREAD.format(options="timeout=60"),
        "seen by the loop: .* exited unexpectedly",
    ),
    "a loop in a thread waits in vain": (
        IN_A_THREAD.format(options="timeout=1").replace("dies_at_6", "never_returns_at_6"),
        "seen by the loop: DataLoader timed out after 1 seconds",
    ),
    "the loop ends early while all workers are stuck": (
        """
with server:
    for batch in load(data.never_returns_from_6, num_workers=3):
        ready()
        break
    del batch
print("left the loop", file=sys.stderr)
""",
        "left the loop",
    ),
    "the pipeline raises": (
        """
def raising(batch):
    raise OSError("the disk is gone")
@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def broken():
    return fn.python_function(fn.external_source(name="x"), function=raising)
server = proxy.DALIServer(broken())
with server:
    ready()
    for batch in load(data.plain):
        pass
""",
        "the disk is gone|python_function",
    ),
    "the pipeline is closed": (
        """
with server:
    batches = iter(load(data.plain))
    next(batches)
    ready()
    server._pipe.close()
    next(batches)
""",
        "closed",
    ),
    "the loop ends early": (
        """
with server:
    for batch in load(data.plain):
        ready()
        break
print("left the loop", file=sys.stderr)
""",
        "left the loop",
    ),
    "the script ends in mid-epoch": (
        """
server.start_thread()
batches = iter(load(data.plain))
next(batches)
ready()
print("at the end", file=sys.stderr)
""",
        "at the end",
    ),
    "persistent workers, the script raises": (
        """
with server:
    loader = load(data.plain, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    ready()
    raise ValueError("the step failed")
""",
        "the step failed",
    ),
    "a worker is stopped": (
        """
import multiprocessing
with server:
    batches = iter(load(data.row))
    next(batches)
    ready()
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)
    for batch in batches:
        pass
""",
        r"DataLoader worker \(pid\(s\) \d+\) was suspended .* and was killed",
    ),
    "a worker is stopped, by a loop in a thread that is patient": (
        IN_A_THREAD.format(options="timeout=60").replace("dies_at_6", "stops_at_6"),
        r"DataLoader worker \(pid\(s\) \d+\) was suspended .* and was killed",
    ),
    "the script ends with a worker that is stopped": (
        """
import multiprocessing
server.start_thread()
batches = iter(load(data.plain, num_workers=1))
next(batches)
ready()
os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)
print("at the end", file=sys.stderr)
""",
        "at the end",
    ),
    "Ctrl-C": (
        """
with server:
    for i, batch in enumerate(load(data.plain, length=10**9)):
        if i == 3:
            ready()
""",
        "KeyboardInterrupt",
    ),
    "Ctrl-C while a worker is stuck": (
        """
with server:
    for i, batch in enumerate(load(data.never_returns_at_6, num_workers=1)):
        if i == 0:
            ready()
""",
        "KeyboardInterrupt",
    ),
}


@pytest.fixture
def no_new_shared_memory() -> Iterator[None]:
    """Check that no files of torch's shared memory remain."""
    before = set(os.listdir("/dev/shm"))
    yield
    left = {name for name in os.listdir("/dev/shm") if name.startswith("torch_")} - before
    assert not left


def _alive(group: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("no_new_shared_memory")
@pytest.mark.parametrize("case", CASES)
def test_programs_end_soon_with_a_message(case: str) -> None:
    body, message = CASES[case]
    script = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", START + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        start_new_session=True,
    )
    try:
        assert script.stdout is not None
        assert select.select([script.stdout], [], [], 60)[0], "it never became ready"
        line = script.stdout.readline()
        started = time.perf_counter()
        if case.startswith("Ctrl-C"):
            os.killpg(script.pid, signal.SIGINT)
        _, errors = script.communicate(timeout=60)
        lasted = time.perf_counter() - started
        assert line == "ready\n", errors
        assert re.search(message, errors)
        assert lasted < SECONDS, errors
        assert _alive(script.pid) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)


def test_a_worker_that_dies_while_it_sends_a_sample_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "END_TIMEOUT", 0.0)
    context = multiprocessing.get_context("fork")
    waiting, dying = context.Process(target=signal.pause), context.Process(target=os._exit, args=(1,))
    waiting.start()
    dying.start()
    dying.join()
    try:
        deaths = [arrivals._death_error(processes) for processes in ([waiting], [waiting, dying])]
        assert deaths[0] is None and f"(pid(s) {dying.pid}) is killed" in str(deaths[1])
    finally:
        waiting.kill()
        waiting.join()
