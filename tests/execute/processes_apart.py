"""Pipelines in several processes: the same results as in one, also if processes die.

`test_processes.py` runs this file in a separate process: these tests fork, and the threads of all other tests
would still be running.
"""

from __future__ import annotations

import errno
import gc
import os
import pdb
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.garbage import released
from tests.helpers.inside import count_blocks, executor_of, pool_of, server_of, spare_of, with_blocks_from
from tests.helpers.native import needs_native
from torchdali import fn, pipeline_def, types
from torchdali.calls.decorators import operator
from torchdali.declaration.registry import lookup
from torchdali.declaration.schema import Image
from torchdali.errors import PipelineError
from torchdali.execute.batch import ReaderState
from torchdali.execute.process_state import has_gil
from torchdali.execute.workers import placing
from torchdali.execute.workers import pool as pool_module
from torchdali.execute.workers import replica as replica_module
from torchdali.execute.workers.blocks import SharedBuffers
from torchdali.pipeline import Pipeline

COUNT, SIZE = 12, 24
BOUND = 2.0  # seconds within which a death is detected
LONGEST = 30.0  # the same on a busy machine


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    for i in range(COUNT):
        (root / f"{i % 3}").mkdir(exist_ok=True)
        pixels = np.roll(smooth_image(40 + 5 * i, 90 - 4 * i), 7 * i, axis=(0, 1))
        (root / f"{i % 3}" / f"{i:02}.jpg").write_bytes(encoded(pixels, "jpeg", quality=80))
    return root


@operator(name="_hazard", pure=True)
def _hazard(image: Image, /, *, how: str = "", marks: str = "", parent: int = 0, height: int = 0) -> Image:
    """Fail in a worker on images of one height, once per marker file."""
    if height and image.shape[0] != height:
        return image
    if how and os.getpid() != parent and _took(marks):
        if how == "raise":
            raise ValueError("sour")
        if how == "exit":
            os._exit(7)
        if how == "slow":
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                pass
        else:
            os.kill(os.getpid(), getattr(signal, how))
    return image


def _took(marks: str) -> bool:
    for path in sorted(Path(marks).iterdir()):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        return True
    return False


@pipeline_def(batch_size=4, num_threads=3, device_id=None, seed=5)
def training(root: Path, how: str = "", marks: str = "", height: int = 0) -> Any:
    data, label = fn.readers.file(file_root=str(root), random_shuffle=True, name="Reader")
    images = fn.decoders.image(data)
    images = lookup("_hazard")(images, how=how, marks=marks, parent=os.getpid(), height=height)
    images = fn.random_resized_crop(images, size=[SIZE, SIZE])
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[120.0] * 3,
        std=[60.0] * 3,
        mirror=mirror,
    )
    return images, label, mirror


def run_batches(pipe: Pipeline, count: int) -> list[torch.Tensor]:
    return [torch.stack([sample.clone() for sample in batch.samples()]) for _ in range(count) for batch in pipe.run()]


def same(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    return len(found) == len(wanted) and all(map(torch.equal, found, wanted))


@pytest.fixture(scope="module")
def expected(photos: Path) -> list[torch.Tensor]:
    return run_batches(training(photos, num_processes=1), 6)


def children(pipe: Pipeline) -> list[psutil.Process]:
    return [psutil.Process(worker.process.pid) for worker in pool_of(pipe).workers]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def marks(folder: Path, count: int) -> str:
    folder.mkdir()
    for i in range(count):
        (folder / str(i)).touch()
    return str(folder)


@pytest.mark.parametrize("count", [2, 3])
def test_results_do_not_depend_on_the_processes(photos: Path, expected: Any, count: int) -> None:
    pipe = training(photos, num_processes=count)
    assert same(run_batches(pipe, 6), expected)
    assert f"{count} worker processes, forked" in pipe.explain()
    running = children(pipe)
    assert len(running) == count
    pipe.close()
    assert not any(child.is_running() for child in running)


@pytest.mark.slow
def test_processes_that_start_again(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=5)
    def define() -> Any:
        data, label = fn.readers.file(file_root=str(photos), random_shuffle=True)
        images = fn.decoders.image(data)
        if fn.random.coin_flip():
            images = fn.rotate(images, angle=fn.random.uniform(range=[0.0, 90.0]))
        else:
            images = fn.flip(images)
        return fn.resize(images, size=[SIZE, SIZE]), label

    wanted = run_batches(define(enable_conditionals=True, num_processes=1), 6)
    pipe = define(enable_conditionals=True, num_processes=2, py_start_method="spawn")
    assert same(run_batches(pipe, 6), wanted)
    assert "2 worker processes, spawned" in pipe.explain()


@pytest.mark.parametrize("how", ["SIGKILL", "exit", "SIGSTOP", "slow"])
def test_the_work_of_a_lost_process_is_repeated(photos: Path, expected: Any, tmp_path: Path, how: str) -> None:
    pipe = training(photos, how, marks(tmp_path / "marks", 1), num_processes=2)
    pipe.build()
    running, started = children(pipe), time.monotonic()
    assert same(run_batches(pipe, 6), expected)
    assert time.monotonic() - started < LONGEST
    alive = [child for child in running if child.is_running()]
    assert len(alive) == (2 if how == "slow" else 1)
    replaced(pipe, 0 if how == "slow" else 1)
    running = children(pipe)
    assert len(running) == 2 and all(child.is_running() for child in running)
    pipe.close()
    assert not any(child.is_running() for child in running)


def test_a_process_without_memory_loses_no_batch(photos: Path, expected: Any) -> None:
    pipe = training(photos, num_processes=2)
    pipe.build()
    victim, started = children(pipe)[0], time.monotonic()
    most = victim.memory_info().vms
    resource.prlimit(victim.pid, resource.RLIMIT_AS, (most, most))  # before it has opened any block of shared memory
    assert same(run_batches(pipe, 6), expected)
    assert time.monotonic() - started < LONGEST
    replaced(pipe, 1)
    running = children(pipe)
    pipe.close()
    assert not any(child.is_running() for child in [victim, *running])


def test_a_sample_that_kills_two_processes_is_an_error(photos: Path, tmp_path: Path) -> None:
    twice = marks(tmp_path / "marks", 2)
    pipe = training(photos, "SIGKILL", twice, 55, num_processes=3, prefetch_queue_depth=1)
    with pytest.raises(PipelineError, match=r"worker process \d \(pid \d+\) .* was killed by SIGKILL"):
        run_batches(pipe, 3)
    assert len(run_batches(pipe, 4)) == 12  # the third continues
    pipe.close()


def replaced(pipe: Pipeline, count: int) -> None:
    """Wait until `count` processes were replaced."""
    pool = pool_of(pipe)
    end = time.monotonic() + LONGEST
    while pool.replaced < count:
        assert time.monotonic() < end
        pipe.run()
    assert pool.replaced == count


def test_all_processes_are_replaced(photos: Path, expected: Any) -> None:
    # A batch may be passed to a worker that is dead, too: it has not started the batch, which is not lost.
    pipe = training(photos, num_processes=2)
    found = run_batches(pipe, 1)
    for round_ in (1, 2):
        for child in children(pipe):
            child.kill()
        found += run_batches(pipe, 2)
        replaced(pipe, 2 * round_)
        pipe.load_state_dict(state_after(photos, 1 + 2 * round_))
    assert same(found, expected[: len(found)])
    stats = pipe.stats()
    assert len(stats.processes) == 5
    assert "2 of 2 worker processes run, 4 were replaced" in str(stats)
    assert "was killed by SIGKILL" in stats.processes[1]
    assert stats.processes[0] in pipe.explain()
    pipe.close()


@pytest.mark.parametrize("gone", ["nobody", "the server", "the spare"])
def test_no_batch_is_lost_or_doubled_if_all_processes_are_killed(photos: Path, expected: Any, gone: str) -> None:
    pipe = training(photos, num_processes=3, prefetch_queue_depth=4)
    found = run_batches(pipe, 1)
    pool = pool_of(pipe)
    first = [server_of(pool), spare_of(pool)]
    if gone != "nobody":
        os.kill(first[gone == "the spare"], signal.SIGKILL)
    for child in children(pipe):
        child.kill()
    found += run_batches(pipe, 5)
    assert same(found, expected)
    end = time.monotonic() + LONGEST
    while gone != "nobody" and {server_of(pool), spare_of(pool)} & {first[gone == "the spare"]}:
        assert time.monotonic() < end  # the next spare starts soon
    second = [server_of(pool), spare_of(pool)]
    assert len({*first, *second}) == 2 + (gone != "nobody")
    pipe.close()
    left = [psutil.Process(pid) for pid in second if psutil.pid_exists(pid)]
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]


def test_close_does_not_wait_for_a_suspended_server(photos: Path) -> None:
    pipe = training(photos, num_processes=2)
    run_batches(pipe, 1)
    pool = pool_of(pipe)
    pids = [*(child.pid for child in children(pipe)), server_of(pool), spare_of(pool)]
    os.kill(server_of(pool), signal.SIGSTOP)
    started = time.monotonic()
    pipe.close()
    assert time.monotonic() - started < LONGEST
    gone(pids)


REFUSED = {
    "memory": (replica_module, "has_thread_memory", lambda: False, "memory can't be allocated; check `ulimit -v`"),
    "processes": (os, "fork", lambda: refuse_fork(), "BlockingIOError"),
}
_FORK = os.fork
_HERE = os.getpid()


def refuse_fork() -> int:
    """Simulate a failing fork of the server."""
    if os.getpid() == _HERE:
        return _FORK()
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.mark.parametrize(("module", "name", "instead", "words"), REFUSED.values(), ids=REFUSED)
def test_a_process_that_cannot_start_reports_the_reason_immediately(
    photos: Path, expected: Any, module: Any, name: str, instead: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, instead)
    started = time.monotonic()
    pipe = training(photos, num_processes=2)
    pipe.build()
    assert time.monotonic() - started < LONGEST
    assert f"one process: a process could not be started: {words}" in pipe.explain()
    assert same(run_batches(pipe, 6), expected)
    pipe.close()


@operator(name="_read_stdin", pure=True)
def _read_stdin(image: Image, /, *, how: str) -> Image:
    """Read from stdin."""
    if how == "breakpoint":
        breakpoint()
    elif how == "pdb":
        pdb.Pdb().set_trace()  # as pdb.set_trace does; pytest replaces it
    else:
        input()
    return image


@pytest.mark.parametrize("how", ["breakpoint", "pdb", "input"])
def test_processes_have_no_stdin_and_report_it(photos: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)  # pytest replaces stdin

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        return lookup("_read_stdin")(fn.decoders.image(fn.readers.file(file_root=str(photos))[0]), how=how)

    pipe = define(num_processes=2)
    with pytest.raises(PipelineError, match=r"a worker process, which has no keyboard.* with debug=True, or num_processes=1"):
        pipe.run()
    pipe.close()


def state_after(photos: Path, count: int) -> dict[str, Any]:
    pipe = training(photos, num_processes=1)
    run_batches(pipe, count)
    return pipe.state_dict()


def test_processes_that_die_repeatedly_are_not_replaced(photos: Path) -> None:
    pipe = training(photos, num_processes=2)
    pipe.build()
    pool = pool_of(pipe)
    most = 2 * pool_module._RESTARTS
    with pytest.raises(PipelineError, match="was killed by SIGKILL"):
        while pool.replaced <= most:
            for worker in pool.workers:
                worker.process.kill()
            pipe.run()
    assert pool.replaced <= most
    pipe.close()


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def fed() -> Any:
    """Large images from a source, which shared memory passes to the processes."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (4, 80, 90, 3)).astype(np.uint8) for _ in range(3)]
    count = iter(range(1 << 30))
    data = fn.external_source(lambda: images[next(count) % 3])
    return fn.resize(fn.flip(data), size=[60, 70]), fn.gaussian_blur(data, sigma=1.0)


def test_memory_of_a_replaced_process_is_not_reused() -> None:
    pipe, wanted = fed(num_processes=2), run_batches(fed(num_processes=1), 40)
    found = run_batches(pipe, 3)
    buffers = executor_of(pipe).replicas.buffers
    before = count_blocks(buffers)
    children(pipe)[0].kill()
    pool = pool_of(pipe)
    while not pool.replaced:
        found += run_batches(pipe, 1)
    found += run_batches(pipe, 6)
    end = time.monotonic() + LONGEST
    while min(buffers._memory) < before:  # a batch in flight may have held a block
        assert time.monotonic() < end
        found += run_batches(pipe, 1)
    after = count_blocks(buffers)
    found += run_batches(pipe, 10)
    assert count_blocks(buffers) <= after + 2
    assert same(found[: len(wanted)], wanted[: len(found)])
    pipe.close()


class Forgetful(set[int]):
    """Return the blocks of a worker that was started later."""

    def add(self, number: int) -> None:
        pass


@pytest.mark.parametrize("ragged", [False, True])
def test_a_process_without_blocks_receives_data_over_the_pipe(
    photos: Path, ragged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_blocks_from(monkeypatch, SharedBuffers, 0)
    data = [np.fromfile(path, np.uint8) for path in sorted(photos.rglob("*.jpg"))[:4]]
    given: Any = data if ragged else np.stack([data[0]] * 4)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        images = fn.decoders.image(fn.external_source(lambda: given))
        return fn.resize(images, size=[8, 8])

    wanted = run_batches(define(num_processes=1), 2)
    pipe = define(num_processes=2)
    pipe.build()
    for worker in pool_of(pipe).workers:
        worker.blocks = Forgetful()
    assert same(run_batches(pipe, 2), wanted)
    pipe.close()


def test_pipelines_share_the_server(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = training(photos, num_processes=2)
    wanted = run_batches(first, 2)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        return fn.resize(fn.decoders.image(fn.readers.file(file_root=str(photos))[0]), size=[8, 8])

    alone = run_batches(define(num_processes=1), 2)
    second = define(num_processes=2)
    assert same(run_batches(second, 2), alone)
    assert "2 worker processes, spawned" in second.explain()
    servers = {child.ppid() for pipe in (first, second) for child in children(pipe)}
    assert len(servers) == 1
    first.close()
    assert same(run_batches(second, 2), run_batches(define(num_processes=1), 4)[2:])
    second.close()
    gone([*servers])
    assert len(wanted) == 6


def test_the_error_of_the_first_sample_is_raised(photos: Path, tmp_path: Path) -> None:
    messages = []
    for count in (1, 3):
        root = tmp_path / str(count)
        (root / "0").mkdir(parents=True)
        for i, source in enumerate(sorted(photos.rglob("*.jpg"))):
            data = source.read_bytes()
            (root / "0" / f"{i:02}.jpg").write_bytes(b"broken" if i in (5, 9) else data)

        @pipeline_def(batch_size=12, num_threads=3, device_id=None)
        def define(root: str = str(root)) -> Any:
            return fn.resize(fn.decoders.image(fn.readers.file(file_root=root)[0]), size=[8, 8])

        pipe = define(num_processes=count)
        with pytest.raises(PipelineError) as raised:
            pipe.run()
        messages.append(str(raised.value).replace(str(root), "root"))
        left_out = define(num_processes=count, bad_samples="skip")
        assert len(left_out.run()[0]) == 10
        report = left_out.bad_sample_report()
        assert [(bad.sample, bad.operator) for bad in report if bad.batch == 0] == [
            (5, "decoders.image"),
            (9, "decoders.image"),
        ]
    assert messages[0] == messages[1]
    assert "'decoders.image' failed on sample 5 of batch 0" in messages[0]
    assert "05.jpg" in messages[0]


def test_ragged_results_and_values_of_a_source(photos: Path) -> None:
    files = sorted(map(str, photos.rglob("*.jpg")))

    def source(info: Any) -> Any:
        return np.fromfile(files[info.idx_in_epoch % COUNT], np.uint8), np.float32(info.idx_in_epoch)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=5)
    def define() -> Any:
        data, angle = fn.external_source(source, num_outputs=2, batch=False)
        images = fn.decoders.image(data)
        return fn.rotate(images, angle=angle), images.shape()

    def batches(count: int) -> list[torch.Tensor]:
        pipe = define(num_processes=count)
        assert ("worker processes" in pipe.explain()) == (count > 1)
        found = [s.clone() for _ in range(5) for out in pipe.run() for s in out.samples()]
        pipe.close()
        return found

    wanted = batches(1)
    assert same(batches(2), wanted)
    assert same(batches(3), wanted)


def test_warnings_are_shown_once_on_the_users_line(photos: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        images = fn.resize(fn.decoders.image(fn.readers.file(file_root=str(photos))[0]), size=[8, 8])
        return fn.crop_mirror_normalize(images, mean=[0.4] * 3, std=[0.2] * 3)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        pipe = define(num_processes=2)
        run_batches(pipe, 6)
        pipe.close()
    (warning,) = [each for each in seen if "multiply both by 255" in str(each.message)]
    assert warning.filename == __file__


def test_nothing_remains(photos: Path) -> None:
    def once() -> None:
        pipe = training(photos, num_processes=2)
        kept = pipe.run()[0].as_tensor()
        pipe.close()
        assert kept.shape()[0] == 4

    once()
    gc.collect()
    before = descriptors(), len(psutil.Process().children())
    for _ in range(3):
        once()
    assert released(lambda: (descriptors(), len(psutil.Process().children())) == before)


def test_memory_is_reused() -> None:
    pipe = fed(num_processes=2)
    run_batches(pipe, 6)
    replicas = executor_of(pipe).replicas
    views = [worker.views for worker in replicas.pool.workers]
    before = count_blocks(replicas.buffers), descriptors()
    run_batches(pipe, 60)
    most = 8 if has_gil() else 16  # without the GIL, memory that another thread drops is returned later
    assert count_blocks(replicas.buffers) <= 6
    blocks = [view._blocks for view in views]
    assert max(map(len, blocks)) <= most
    assert descriptors() <= before[1] + 2  # the thread that watches the workers opens files, too
    held = [pipe.run()[0].as_tensor() for _ in range(20)]
    assert sum(len(view._loans) for view in views) >= 20
    assert descriptors() <= before[1] + 2  # held blocks have no descriptor
    del held
    run_batches(pipe, 20)
    assert max(map(len, blocks)) <= most
    pipe.close()


def test_shared_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    allocate = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(MemoryError, match=r"cannot allocate .* MiB in .* for batches"):  # in the main process or a worker
        run_batches(fed(num_processes=2), 4)
    pipe = fed(num_processes=2)
    pipe.build()  # the replicas are copies of a process without shared memory
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", allocate)
        pipe.schedule_run()
        with pytest.raises(MemoryError, match=r"cannot allocate .* MiB in .* for batches"):
            pipe.outputs()
    pipe.close()


def test_files_replace_missing_shared_memory(
    photos: Path, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pipe = training(photos, num_processes=2)
    assert same(run_batches(pipe, 6), expected)
    assert not any(tmp_path.iterdir())
    pipe.close()


@pytest.mark.parametrize("how", ["SIGKILL", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_processes_end_with_their_parent(photos: Path, how: str) -> None:
    program = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from tests.execute.processes_apart import children, training
        pipe = training(Path(sys.argv[1]), num_processes=2)
        pipe.run()
        running = children(pipe)
        print(*(child.pid for child in running), running[0].ppid())
        sys.stdout.flush()
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(photos), how],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -getattr(signal, how), done.stderr
    pids = [int(pid) for pid in done.stdout.split()]
    assert len({*pids, os.getpid()}) == 4  # two workers and their server
    gone(pids)


def gone(pids: list[int]) -> None:
    """Wait for processes to exit; fail if they do not."""
    left = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(left, timeout=LONGEST)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_why_there_is_one_process(photos: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def numbers() -> Any:
        return fn.random.uniform(range=[0.0, 1.0])

    pipe = numbers(num_processes=2)
    assert "one process: it computes numbers" in pipe.explain()
    with pytest.raises(ValueError, match="num_processes must be positive"):
        training(photos, num_processes=0)


# ------------------------------------------------------------ random graphs


class Images:
    """A random pipeline of images: readers or a source, random operators, branches, arithmetic."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)

    def define(self) -> Any:
        choose = self.random
        label: Any = fn.random.uniform(range=[0.0, 1.0])
        if choose.random() < 0.7:
            data, label = fn.readers.file(file_root=str(self.root), random_shuffle=choose.random() < 0.5, name="Reader")
            images = fn.decoders.image(data)
        else:
            count = iter(range(1 << 30))
            rng = np.random.default_rng(1)
            given = [[rng.integers(0, 256, (30 + i, 50, 3)).astype(np.uint8) for i in range(4)] for _ in range(5)]
            images = fn.external_source(lambda: given[next(count) % 5], layout="HWC")
        numbers = fn.random.uniform(range=[0.5, 1.5])
        for _ in range(choose.randint(1, 4)):
            images = self.step(images, numbers)
        outputs = [images, label, images.shape(), numbers]
        if choose.random() < 0.5:
            outputs.append(fn.resize(images, size=[9, 11]))
        choose.shuffle(outputs)
        return tuple(outputs)

    def step(self, images: Any, numbers: Any) -> Any:
        way = self.random.randrange(8)
        if way == 0:
            return fn.rotate(images, angle=numbers * 30, keep_size=self.random.random() < 0.5)
        if way == 1:
            return fn.random_resized_crop(images, size=[20, 25])
        if way == 2:
            return fn.color_twist(images, brightness=numbers, hue=numbers * 10)
        if way == 3:
            return fn.gaussian_blur(images, sigma=numbers)
        if way == 4:
            return fn.flip(images, horizontal=fn.random.coin_flip(), vertical=self.random.randrange(2))
        if way == 5:
            return fn.cast(images * numbers, dtype=types.UINT8)
        if way == 6:
            return fn.permute_batch(images, indices=fn.batch_permutation())
        return fn.noise.gaussian(images, stddev=numbers * 5)


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 1 << 30))
def test_random_graphs_are_equal_in_any_number_of_processes(photos: Path, seed: int) -> None:
    def batches(pipe: Pipeline, count: int) -> list[Any]:
        found = []
        for _ in range(count):
            found += [[s.clone() for s in out.samples()] for out in pipe.run()]
        return found

    def made(**options: Any) -> Pipeline:
        return pipeline_def(Images(photos, seed).define)(batch_size=4, device_id=None, seed=3, **options)

    alone = made(num_processes=1, num_threads=2)
    wanted = batches(alone, 6)
    alone.close()
    for processes, threads in ((2, 2), (3, 3), (4, 4), (2, 5)):
        pipe = made(num_processes=processes, num_threads=threads)
        found = batches(pipe, 3)
        if not executor_of(pipe).sources:
            state = pipe.state_dict()
            pipe.close()
            pipe = made(num_processes=processes % 4 + 1, num_threads=threads)  # another count
            pipe.load_state_dict(state)
        found += batches(pipe, 3)
        pipe.close()
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert len(one) == len(other) and all(map(torch.equal, one, other))


# ------------------------------------------------------------ the default


def test_the_default_follows_from_the_graph(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "has_gil", lambda: True)
    monkeypatch.delenv("TORCHDALI_PROCESSES")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    pipe = fed()
    assert "2 worker processes, forked; each processes entire batches" in pipe_text(pipe)
    pipe.close()
    assert "worker processes" not in pipe_text(fed(num_threads=1))

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def boxes() -> Any:
        return fn.bb_flip(fn.external_source(lambda: [np.ones((3, 4), np.float32)] * 4))

    assert "one process: it computes numbers" in pipe_text(boxes())
    assert "one process: exec_async=False" in pipe_text(fed(exec_async=False))
    monkeypatch.setenv("TORCHDALI_PROCESSES", "1")
    assert "worker processes" not in pipe_text(fed())
    monkeypatch.setenv("TORCHDALI_PROCESSES", "many")
    with pytest.raises(ValueError, match="TORCHDALI_PROCESSES must be an integer of at least 1, got 'many'"):
        fed().build()


@needs_native
def test_the_fast_path_has_threads_by_default(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "has_gil", lambda: True)
    monkeypatch.delenv("TORCHDALI_PROCESSES")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def fast(blur: bool) -> Any:
        images = fn.decoders.image(fn.readers.file(file_root=str(photos))[0])
        images = fn.random_resized_crop(images, size=[SIZE, SIZE])
        if blur:
            images = fn.gaussian_blur(images, sigma=1.0)
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT)

    assert "worker processes" not in pipe_text(fast(False))
    blurred = fast(True)
    assert "2 worker processes" in pipe_text(blurred)
    blurred.close()


def pipe_text(pipe: Pipeline) -> str:
    pipe.build()
    return pipe.explain()


@pytest.fixture
def late_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a pipeline with two threads start processes automatically, while its threads run batches."""
    monkeypatch.setattr(placing, "has_gil", lambda: True)
    monkeypatch.delenv("TORCHDALI_PROCESSES")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)  # which prevents forks of this process
    other.start()
    yield
    stop.set()
    other.join()


def until_processes(executor: Any) -> None:
    end = time.monotonic() + LONGEST
    while executor.replicas is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_threads_run_batches_until_a_new_server_is_ready(late_processes: None) -> None:
    wanted = run_batches(fed(num_processes=1), 60)
    pipe = fed()
    found = run_batches(pipe, 2)
    executor = executor_of(pipe)
    assert executor.replicas is None
    until_processes(executor)
    found += run_batches(pipe, 20)
    assert executor.replicas.pool.workers
    assert all(map(torch.equal, found, wanted))
    closed_at_once = fed()
    closed_at_once.run()
    closed_at_once.close()
    pipe.close()


def test_processes_may_start_while_a_batch_is_scheduled(
    photos: Path, late_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads read, and run operators without random numbers."""
    pipe, next_keys, late = training(photos, num_threads=2), ReaderState.next_keys, []

    def waiting(reader: ReaderState, *arguments: Any) -> Any:
        if not late:
            late.append(executor_of(pipe).replicas is None)
            until_processes(executor_of(pipe))
        return next_keys(reader, *arguments)

    wanted = run_batches(training(photos, num_threads=2, num_processes=1), 12)
    pipe.build()
    monkeypatch.setattr(ReaderState, "next_keys", waiting)
    found = run_batches(pipe, 12)
    assert late == [True]
    assert all(map(torch.equal, found, wanted))
    pipe.close()


@pytest.fixture(autouse=True)
def no_children() -> Iterator[None]:
    """Check that no processes of a test keep running."""
    before = {child.pid for child in psutil.Process().children()}
    yield
    gc.collect()
    left = [child for child in psutil.Process().children() if child.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=LONGEST)
    assert not alive
