"""The worker processes of `external_source(parallel=True)`: errors, crashes, and the shutdown."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.garbage import let_go, released
from tests.helpers.sources import batch, parallel, pipeline, processes, run
from torchdali import fn, pipeline_def
from torchdali.plugin.pytorch import DALIGenericIterator

PROMPT = 5.0  # seconds within which an error must surface
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, which Linux has")


@pytest.fixture(autouse=True)
def check_nothing_remains() -> Iterator[None]:
    yield
    assert released(lambda: processes() == []), processes()


def numbered(i: int) -> list[Any]:
    return batch(i)


def generate() -> Iterator[list[Any]]:
    yield batch(0)


class OwnError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(number, text)


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("not to be pickled")
        self.lock = multiprocessing.Lock

    def __reduce__(self) -> Any:
        raise TypeError("no")


ERRORS = [
    (KeyError("key"), KeyError),
    (OwnError(1, "own"), OwnError),
    (Unpicklable(), RuntimeError),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=[type(e[0]).__name__ for e in ERRORS])
def test_exceptions_of_the_source(error, kind, tmp_path) -> None:
    """The error keeps its class, the worker's traceback is the cause, and the pipeline continues."""
    flag = tmp_path / "fails"
    flag.touch()

    def fails_once(i: int) -> Any:
        if i == 1 and flag.exists():
            flag.unlink()
            raise error
        return batch(i)

    pipe = parallel(fails_once, batch=True, workers=1)
    assert run(pipe) == [0] * 3
    with pytest.raises(kind) as caught:
        pipe.run()
    assert str(error) in str(caught.value)
    assert "in fails_once" in str(caught.value.__cause__)
    if sys.version_info >= (3, 11):
        assert "external_source" in caught.value.__notes__[0]
    assert [run(pipe) for _ in range(2)] == [[1] * 3, [2] * 3]
    pipe.close()


GARBAGE: list[tuple[str, Any]] = [
    ("None", None),
    ("text", "abc"),
    ("numbers", [1, 2]),
    ("objects", [np.zeros(2, "O")]),
    ("axes differ", [np.zeros(2), np.zeros((2, 2))]),
    ("too many", batch(0, 4)),
]


@pytest.mark.slow
@pytest.mark.parametrize("data", [c[1] for c in GARBAGE], ids=[c[0] for c in GARBAGE])
def test_garbage(data) -> None:
    pipe = parallel(lambda i: data, batch=True)
    start = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        pipe.run()
    assert time.monotonic() - start < PROMPT
    assert "worker process" not in str(caught.value)
    pipe.close()


def kill(i: int) -> Any:
    if i == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch(i)


def leave(i: int) -> Any:
    if i == 1:
        sys.exit(3)
    return batch(i)


@pytest.mark.parametrize(("what", "message"), [(kill, "SIGKILL.*If memory ran out"), (leave, "code 3 while it processed")])
def test_a_worker_that_dies(what, message) -> None:
    """Every later run raises the same error, and the other workers are ended."""
    pipe = parallel(what, batch=True)
    start = time.monotonic()
    while (found := run(pipe)) == [0] * 3:
        pass
    assert found == "RuntimeError"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            pipe.run()
    assert time.monotonic() - start < PROMPT
    assert processes() == []
    pipe.close()


def test_a_worker_that_dies_idle() -> None:
    pipe = parallel(numbered, batch=True, workers=1)
    pipe.build()
    (worker,) = processes()
    worker.kill()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="SIGKILL"):
        pipe.run()
    assert time.monotonic() - start < PROMPT
    pipe.close()


def stop(i: int) -> Any:
    if i == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return batch(i)


@linux
def test_a_suspended_worker() -> None:
    """A suspended worker is killed after some time; the error names the worker, its task and the reason."""
    pipe = parallel(stop, batch=True)
    pipe.build()
    ids = {worker.pid for worker in processes()}
    start = time.monotonic()
    while (found := run(pipe)) == [0] * 3:
        pass
    assert found == "RuntimeError"
    with pytest.raises(RuntimeError, match=r"\(pid (\d+)\).* was suspended .* did not continue for 1 s.* batch 1") as caught:
        pipe.run()
    assert any(f"(pid {pid})" in str(caught.value) for pid in ids)
    assert time.monotonic() - start < PROMPT
    pipe.close()


def forever(i: int) -> Any:
    signal.sigwait([signal.SIGUSR1])


def deaf(i: int) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever(i)


@pytest.mark.parametrize("what", [forever, deaf])
def test_closing_ends_busy_workers(what) -> None:
    pipe = parallel(what, batch=True)
    pipe.schedule_run()
    start = time.monotonic()
    pipe.close()
    assert time.monotonic() - start < PROMPT
    assert processes() == []


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Disable the collection of cycles: only the last reference may end an object."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def use_and_drop(use: Callable[[Any], Any], **options: Any) -> None:
    pipe = parallel(numbered, batch=True, **options)
    use(pipe)
    assert len(processes()) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        run,
        lambda pipe: pipe.start_py_workers(),
        lambda pipe: next(DALIGenericIterator(pipe, ["data"])),
        lambda pipe: (pipe.run(), pipe.reset(), pipe.explain()),
    ],
    ids=["run", "not built", "iterator", "reset and explain"],
)
def test_the_last_reference_ends_the_workers(use, no_collector) -> None:
    use_and_drop(use)
    let_go()
    assert processes() == []


def test_the_last_reference_ends_the_workers_at_the_end_of_an_epoch(no_collector) -> None:
    """A source that has ended in the user's thread holds no frame of the thread."""

    def use() -> None:
        def define(package: Any) -> list[Any]:
            ended = package.fn.external_source([batch(i) for i in range(3)])
            return [package.fn.external_source(numbered, parallel=True, batch=True), ended]

        pipe = pipeline(define, py_num_workers=2)
        for _ in range(2):
            pipe.run()
        assert len(processes()) == 2

    use()
    let_go()
    assert processes() == []


@pytest.mark.parametrize("what", [numbered, generate])
def test_the_last_reference_ends_the_workers_after_the_last_batch(what, no_collector) -> None:
    """The StopIteration that `run` raised holds no frame of the caller."""

    def until_stopped(pipe: Any) -> None:
        with contextlib.suppress(StopIteration):
            for _ in range(4):
                pipe.run()

    def use() -> None:
        pipe = parallel(what, batch=True)
        until_stopped(pipe)
        assert processes()

    use()
    let_go()
    assert processes() == []


def test_the_last_reference_ends_the_workers_of_debug_mode(no_collector) -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, py_num_workers=2, debug=True)
    def pipe():
        return fn.external_source(numbered, parallel=True, batch=True)

    def use() -> None:
        made = pipe()
        made.run()
        assert len(processes()) == 2

    use()
    let_go()
    assert processes() == []


def test_a_pipeline_that_is_never_built() -> None:
    for _ in range(2):
        pipe = parallel(numbered, batch=True)
        pipe.start_py_workers()
        assert len(processes()) == 2
        pipe.close()
        assert processes() == []
    pipe = parallel(numbered, batch=True)
    pipe.start_py_workers()
    assert len(processes()) == 2
    del pipe
    assert released(lambda: processes() == []), processes()


# ---------------------------------------------------------------- spawned workers


class Pickler:
    """Counts the objects that it pickles; its loads shows it."""

    @staticmethod
    def dumps(value: Any, extra: int = 0) -> bytes:
        return pickle.dumps((extra, value))

    @staticmethod
    def loads(data: bytes, more: int = 0) -> Any:
        extra, value = pickle.loads(data)
        os.environ["TORCHDALI_TEST_PICKLED"] = str(extra + more)
        return value


def pickled(i: int) -> Any:
    return [np.int32(os.environ["TORCHDALI_TEST_PICKLED"])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pickler", "expected"),
    [(Pickler, 0), ((Pickler, {"extra": 2}), 2), ((Pickler, {"extra": 2}, {"more": 3}), 5)],
)
def test_own_pickler(pickler, expected) -> None:
    pipe = parallel(pickled, batch=True, method="spawn", workers=1, py_callback_pickler=pickler)
    assert run(pipe) == [expected]
    pipe.close()


@pytest.mark.slow
def test_local_functions_are_spawned() -> None:
    factor = 3

    def helper(i: int) -> Any:
        return np.int32(factor * i)

    pipe = parallel(lambda i: [helper(i)], batch=True, method="spawn", workers=1)
    assert [run(pipe) for _ in range(2)] == [[0], [3]]
    pipe.close()


def test_sources_that_cannot_be_pickled_are_rejected() -> None:
    with pytest.raises(TypeError, match="pickle"):
        parallel(generate(), batch=True, method="spawn").build()
    assert processes() == []


class FailsToLoad:
    def __call__(self, i: int) -> Any:
        return batch(i)

    def __setstate__(self, state: Any) -> None:
        raise LookupError("cannot be loaded")

    def __getstate__(self) -> Any:
        return {"a": 1}


@pytest.mark.slow
def test_sources_that_cannot_be_unpickled_are_errors() -> None:
    pipe = parallel(FailsToLoad(), batch=True, method="spawn", workers=1)
    with pytest.raises(LookupError, match="cannot be loaded"):
        pipe.run()
    pipe.close()


# ---------------------------------------------------------------- the end of the program

PROGRAM = """
    import multiprocessing, signal, sys
    import numpy as np
    from torchdali import Pipeline, fn

    def source(i):
        if i == 5 and sys.argv[1] == "busy":
            signal.sigwait([signal.SIGUSR1])
        return [np.int32(i)] * 2

    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, py_num_workers=2)
    with pipe:
        pipe.set_outputs(fn.external_source(source, parallel=True, batch=True))
    pipe.run()
    try:
        print(*(p.pid for p in multiprocessing.active_children()), flush=True)
        if sys.argv[1] == "error":
            raise SystemExit("failed")
        while sys.argv[1] in ("run", "busy"):
            pipe.run()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
"""


@contextlib.contextmanager
def program(folder: Path, mode: str) -> Iterator[tuple[Any, list[int]]]:
    """Run the program in its own process group until it has printed the workers' ids."""
    script = folder / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        [sys.executable, str(script), mode], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, [int(word) for word in process.stdout.readline().split()]
    finally:
        process.kill()
        process.communicate()


def gone(pid: int, seconds: float) -> bool:
    """Wait for the end of a process that is not a child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("mode", "code"), [("end", 0), ("error", 1)])
def test_end_of_the_interpreter(mode, code, tmp_path) -> None:
    with program(tmp_path, mode) as (process, workers):
        assert len(workers) == 2
        _, errors = process.communicate(timeout=20)
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        assert all(gone(pid, PROMPT) for pid in workers)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["run", "busy"])
def test_interrupt(mode, tmp_path) -> None:
    """Ctrl-C reaches all processes of the group; only the main process prints it."""
    with program(tmp_path, mode) as (process, workers):
        assert len(workers) == 2
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=PROMPT + 5)
        assert output == "interrupted\n"
        assert errors.count("KeyboardInterrupt") == 1, errors
        assert all(gone(pid, PROMPT) for pid in workers)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["run", "busy"])
def test_workers_end_when_the_parent_is_killed(mode, tmp_path) -> None:
    with program(tmp_path, mode) as (process, workers):
        process.kill()
        assert all(gone(pid, PROMPT) for pid in workers)


# --------------------------------------------------------------------------- the start of a spawned process

SCRIPT = """
    import sys
    import numpy as np
    from torchdali import Pipeline, fn

    class Source:
        def __call__(self, info):
            return np.int32(info.idx_in_epoch)

    {first}

    def main():
        pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, py_num_workers=1, py_start_method={method!r})
        with pipe:
            pipe.set_outputs(fn.external_source(Source(), parallel=True, batch=False))
        print(pipe.run()[0].as_array().tolist())

    {last}
"""
GUARD = 'if __name__ == "__main__": main()'
STARTS = {
    "no guard": ("", "main()", 'put the code that builds and runs the pipeline under `if __name__ == "__main__":`'),
    "the script raises": ('if __name__ != "__main__": raise KeyError("planted")', GUARD, "imports the script first"),
    "the script ends": ('if __name__ != "__main__": sys.exit(5)', GUARD, "exited with code 5 while it started"),
    "as it should be": ("", GUARD, "[0, 1]"),
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("method", "case"), [*(("spawn", case) for case in STARTS), ("forkserver", "no guard")])
def test_a_worker_that_does_not_start_names_the_cure(method, case, tmp_path) -> None:
    first, last, words = STARTS[case]
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(SCRIPT).format(first=first, last=last, method=method))
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    ours = done.stdout + done.stderr[done.stderr.rfind("worker process 0") :]
    assert words in ours
    assert (done.returncode == 0) == (words == "[0, 1]")
    assert "memory" not in ours
