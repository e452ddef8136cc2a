"""The end of pipelines: closed, dropped, interrupted, or at interpreter exit; and state that they must not change."""

from __future__ import annotations

import contextlib
import gc
import linecache
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.garbage import let_go, released
from tests.helpers.inside import executor_of
from torchdali import Pipeline, fn, pipeline_def
from torchdali.calls.decorators import operator
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Data
from torchdali.threads import patience

SYNCHRONOUS = {"exec_async": False, "exec_pipelined": False}
PATIENCE = 20.0  # seconds, for operations of milliseconds; never slept through


class Gate:
    """Gate at which samples wait until it opens."""

    def __init__(self) -> None:
        self.arrived, self.opened = threading.Event(), threading.Event()

    def pass_through(self, data: torch.Tensor) -> torch.Tensor:
        self.arrived.set()
        assert self.opened.wait(PATIENCE), "nobody opened the gate"
        return data.clone()


@pytest.fixture
def gate(own_operators: None) -> Iterator[Gate]:
    made = Gate()

    @operator(name="_gate")
    def through(data: Data, /) -> Data:
        return made.pass_through(data)

    yield made
    made.opened.set()


def gated(batch_size: int = 2, **settings: Any) -> Pipeline:
    """Return a pipeline of the numbers 0, 1, 2 ... whose samples pass the gate."""

    @pipeline_def(batch_size=batch_size, **{"num_threads": 2, "device_id": None, **settings})
    def define() -> Any:
        number = fn.external_source(lambda info: np.int64(info.idx_in_epoch), batch=False)
        return registry["_gate"].function(number)

    return define()


def plain(**settings: Any) -> Pipeline:
    @pipeline_def(**{"batch_size": 2, "num_threads": 2, "device_id": None, **settings})
    def define() -> Any:
        number = fn.external_source(lambda info: np.int64(info.idx_in_epoch), batch=False)
        return fn.copy(number)

    return define()


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("torchdali")}


@pytest.fixture(autouse=True)
def check_nothing_remains() -> Iterator[None]:
    before = threads()
    yield
    gc.collect()
    for thread in threads() - before:
        thread.join(PATIENCE)
    assert threads() <= before


def numbers(pipe: Pipeline) -> list[int]:
    return [int(number) for number in pipe.run()[0].tolist()]


# ---------------------------------------------------------------- close


@pytest.mark.parametrize("count", [1, 3])
def test_close_ends_all_threads(count: int) -> None:
    before = threads()
    pipe = plain(num_threads=count)
    pipe.build()
    assert len(threads() - before) == count + 1
    numbers(pipe)
    pipe.close()
    assert threads() == before
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.run()


def test_outputs_outlive_their_pipeline() -> None:
    pipe = plain()
    (output,) = pipe.run()
    pipe.close()
    del pipe
    gc.collect()
    assert output.tolist() == [0, 1]


def test_close_before_and_without_a_run() -> None:
    pipe = plain()
    pipe.close()  # not built
    pipe.build()
    pipe.close()


def test_close_while_another_thread_waits(gate: Gate) -> None:
    pipe = gated()
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            pipe.run()
        except BaseException as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert gate.arrived.wait(PATIENCE)
    closing = threading.Thread(target=pipe.close)
    closing.start()
    gate.opened.set()
    for thread in (waiting, closing):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [type(error) for error in raised] in (
        [RuntimeError],
        [],
    )  # it may have received its batch just before


def test_close_with_batches_in_flight(gate: Gate) -> None:
    pipe = gated(prefetch_queue_depth=4)
    pipe.schedule_run()
    assert gate.arrived.wait(PATIENCE)
    gate.opened.set()
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.outputs()


def test_a_failed_build_leaves_no_threads() -> None:
    before = threads()

    @pipeline_def(batch_size=1, num_threads=2, device_id=None)
    def define() -> Any:
        return fn.readers.file(file_root="/nope")[0]

    with pytest.raises(RuntimeError, match="/nope"):
        define().build()
    assert threads() == before


# ---------------------------------------------------------------- garbage collection


def test_a_dropped_pipeline_ends_its_threads() -> None:
    before = threads()
    pipe = plain(prefetch_queue_depth=3)
    numbers(pipe)
    gone = weakref.ref(pipe)
    gc.disable()  # the last reference is enough
    try:
        del pipe
        let_go()
        assert gone() is None and threads() == before
    finally:
        gc.enable()


def test_a_pipeline_dropped_at_the_end_of_its_data_ends_its_threads() -> None:
    """An exception that was raised keeps no frame that holds the pipeline."""
    before = threads()

    def use() -> weakref.ref[Any]:
        pipe = ending(fn.external_source, [np.zeros((2, 1), np.uint8)] * 2)
        with contextlib.suppress(StopIteration):
            while True:
                pipe.run()
        return weakref.ref(pipe)

    gc.disable()
    try:
        gone = use()
        let_go()
        assert gone() is None and threads() == before
    finally:
        gc.enable()


def test_a_pipeline_dropped_with_an_error_in_flight_ends_its_threads() -> None:
    """An exception that waits for its batch keeps no frame that holds the pipeline."""
    before = threads()
    batches = iter([[np.zeros(1, np.uint8)] * 2])

    def source() -> Any:
        return next(batches, None) or bytes(1)[1]  # IndexError in the second batch

    def use() -> weakref.ref[Any]:
        pipe = pipeline_def(
            lambda: fn.external_source(source), batch_size=2, num_threads=2, device_id=None,
            prefetch_queue_depth=2,
        )()  # fmt: skip
        pipe.run()
        return weakref.ref(pipe)

    gc.disable()
    try:
        gone = use()
        let_go()
        assert gone() is None and threads() == before
    finally:
        gc.enable()


def ending(source: Any, data: Any) -> Any:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def define() -> Any:
        return source(data)

    return define()


def test_a_pipeline_dropped_with_batches_in_flight_ends_its_threads(gate: Gate) -> None:
    before = threads()
    pipe = gated(prefetch_queue_depth=3)
    pipe.schedule_run()
    assert gate.arrived.wait(PATIENCE)
    gate.opened.set()
    gone = weakref.ref(pipe)
    del pipe
    assert released(lambda: gone() is None and threads() == before)


def test_a_pipeline_dropped_after_an_error_ends_its_threads(tmp_path: Path) -> None:
    before = threads()

    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def define() -> Any:
        return fn.readers.file(files=[str(tmp_path / "missing")])[0]

    pipe = define()
    with pytest.raises(RuntimeError, match="missing"):
        pipe.run()
    gone = weakref.ref(pipe)
    del pipe
    assert released(lambda: gone() is None and threads() == before)


def test_many_pipelines_leave_no_threads(tmp_path: Path) -> None:
    before, descriptors = threads(), _descriptors()
    for _ in range(20):
        numbers(plain())
    assert released(lambda: threads() == before and _descriptors() == descriptors)


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_pipelines_share_an_operator_and_end_independently(gate: Gate) -> None:
    gate.opened.set()
    one, two = gated(), gated()
    assert numbers(one) == numbers(two) == [0, 1]
    one.close()
    assert numbers(two) == [2, 3]
    two.close()


# ---------------------------------------------------------------- interrupts


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupt_leaves_a_usable_pipeline(gate: Gate, depth: int, times: int) -> None:
    pipe = gated(prefetch_queue_depth=depth)
    main = threading.main_thread()
    assert threading.current_thread() is main and main.ident is not None

    def interrupt() -> None:
        until = time.monotonic() + PATIENCE
        while not _waits_in_the_executor(main.ident) and time.monotonic() < until:
            gate.arrived.wait(PATIENCE)
        signal.pthread_kill(main.ident or 0, signal.SIGINT)

    for _ in range(times):
        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            pipe.run()
        other.join(PATIENCE)
    gate.opened.set()
    assert [numbers(pipe) for _ in range(5)] == [[2 * i, 2 * i + 1] for i in range(5)]
    pipe.close()


def _waits_in_the_executor(thread: int | None) -> bool:
    frame = sys._current_frames().get(thread or 0)
    inside = []
    while frame is not None:
        inside.append(frame.f_code.co_name)
        frame = frame.f_back
    return inside[:1] == ["wait"] and "_wait" in inside and "pop" in inside


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"prefetch_queue_depth": 1}, SYNCHRONOUS], ids=str)
def test_an_interrupt_at_any_line_of_a_run_leaves_a_usable_pipeline(
    settings: dict[str, Any],
) -> None:
    interrupted = 0
    for line in range(1, 1000, 3 if settings is SYNCHRONOUS else 1):  # it runs many more lines
        pipe = plain(num_threads=1, **settings)
        assert numbers(pipe) == [0, 1]
        if not _interrupted(pipe, line):
            pipe.close()
            break
        interrupted += 1
        watchdog = threading.Timer(PATIENCE, pipe.close)
        watchdog.start()
        try:
            firsts = [numbers(pipe)[0] for _ in range(3)]
        finally:
            watchdog.cancel()
            pipe.close()
        # Either the batch that was being returned may be lost, or the batch that its source was computing;
        # the others arrive in order.
        assert firsts in ([2, 4, 6], [4, 6, 8], [2, 6, 8]), f"interrupted at line event {line}"
    assert interrupted > 30


@pytest.mark.parametrize("settings", [{}, SYNCHRONOUS], ids=str)
def test_an_interrupt_in_a_source_leaves_a_usable_pipeline(settings: dict[str, Any]) -> None:
    calls = iter(range(100))

    def source() -> list[np.ndarray]:
        number = next(calls)
        if number == 2:
            raise KeyboardInterrupt
        return [np.array(number)] * 2

    @pipeline_def(**{"batch_size": 2, "num_threads": 1, "device_id": None, **settings})
    def define() -> Any:
        return fn.copy(fn.external_source(source))

    pipe = define()
    found: list[Any] = []
    for _ in range(5):
        try:
            found += numbers(pipe)[:1]
        except KeyboardInterrupt:
            found.append("interrupt")
    pipe.close()
    # It hits the call that schedules the batch: one ahead, and one more per additional process.
    ahead = 0 if settings else executor_of(pipe).placement.processes
    assert found == [*range(2 - ahead), "interrupt", *range(2 - ahead, 2), 3, 4]


def _interrupted(pipe: Pipeline, line: int) -> bool:
    """Run, with a KeyboardInterrupt at the n-th line of executor or pipeline; return whether it came."""
    left = line
    inside: set[tuple[Any, int]] = set()

    def local(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if event != "line":
            return local
        if linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            # The line runs again when the block ends. No signal arrives there: CPython handles them after
            # calls and jumps.
            inside.symmetric_difference_update({(frame, frame.f_lineno)})
            if (frame, frame.f_lineno) not in inside:
                return local
        left -= 1
        if left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return local

    def trace(frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename.replace("\\", "/")
        return local if "torchdali/execute/" in file or "torchdali/pipeline/" in file else None

    before = sys.gettrace()
    gc.collect()
    gc.disable()  # an interrupt in a finaliser would be lost
    sys.settrace(trace)
    try:
        pipe.run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
        gc.enable()
    return False


# ---------------------------------------------------------------- exit of the interpreter


START = """
import sys, threading
import numpy as np, torch
from torchdali import fn, pipeline_def
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data

busy = threading.Event()

@operator(name="_busy")
def work(data: Data, /) -> Data:
    busy.set()
    for _ in range(200):
        data = torch.sin(data)
    return data

@pipeline_def(batch_size=16, num_threads=3, device_id=None, prefetch_queue_depth=4)
def define():
    return work(fn.external_source(lambda: [np.ones(10000, np.float32)] * 16))
"""
ENDS = {
    "after a run": "pipe = define(); pipe.run()",
    "after scheduling": "pipe = define(); pipe.build(); pipe.schedule_run(); busy.wait()",
    "in a cycle": "class A: pass\na = A(); a.a = a; a.pipe = define(); a.pipe.run()",
    "from a thread": "def main():\n    global pipe\n    pipe = define(); pipe.run()\n"
    "t = threading.Thread(target=main); t.start(); t.join()",
    "in the builtins": "import builtins; builtins.pipe = define(); builtins.pipe.run()",
    "run at exit": "import atexit\npipe = define()\natexit.register(lambda: pipe.run()); pipe.run()",
}


def child(text: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, "-c", START + text], cwd=root, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_with_batches_in_flight(end: str) -> None:
    ended = child(ENDS[end])
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_an_uncaught_error_prints_nothing_else() -> None:
    ended = child("pipe = define(); pipe.run(); raise SystemError('mine')")
    assert ended.returncode == 1 and ended.stderr.strip().endswith("SystemError: mine")
    assert ended.stderr.count("Traceback") == 1


# ---------------------------------------------------------------- the user's torch


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_the_users_torch_threads_are_untouched(wanted: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        pipe = plain()
        inside: list[int] = []
        numbers(pipe)
        other = threading.Thread(target=lambda: inside.append(torch.get_num_threads()))
        other.start()
        other.join(PATIENCE)
        torch.ones(1000, 1000).sum()
        assert torch.get_num_threads() == wanted and inside == [wanted]
        pipe.close()
        assert torch.get_num_threads() == wanted
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("own_operators")
def test_workers_run_torch_single_threaded_and_without_gradients() -> None:
    seen: list[tuple[int, bool]] = []

    @operator(name="_look")
    def look(data: Data, /) -> Data:
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))
        return data

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        return look(fn.external_source(lambda: [np.ones(3, np.float32)] * 4))

    pipe = define()
    pipe.run()
    pipe.close()
    assert set(seen) == {(1, False)} and torch.is_grad_enabled()


def test_a_dropped_pipeline_may_be_collected_under_any_lock() -> None:
    """An allocation may start a garbage collection even while `threading` holds the lock that ending threads need."""
    before = threads()
    pipe: Any = plain()
    numbers(pipe)
    pipe.itself = pipe  # only the collector ends it
    del pipe
    with threading._active_limbo_lock:  # type: ignore[attr-defined]
        started = time.monotonic()
        gc.collect()
        assert time.monotonic() - started < patience() / 2, "it waited for threads that wait for the lock"
    end = time.monotonic() + PATIENCE
    while threads() != before:
        assert time.monotonic() < end, threads()


def test_a_process_may_be_forked_after_a_pipeline_was_dropped() -> None:
    before = threading.active_count()
    pipe: Any = plain()
    numbers(pipe)
    pipe.itself = pipe
    del pipe
    gc.collect()
    assert threading.active_count() == before
