"""Locks, values and loaders in a process that is forked while other threads of its parent hold or compute them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import torchdali.experimental.dynamic as ndd
from tests.helpers.object_server import object_server
from tests.helpers.own_process import in_own_process
from torchdali import Loader, fn, pipeline_def
from torchdali.forks import ForkSafeLock, cached_property
from torchdali.formats.remote import Remote, RemoteFile

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")

PATIENCE = 60  # seconds for an operation of less than one


class Held:
    """A thread that works during a `with` block, and ends with it."""

    def __init__(self, work: Callable[[threading.Event, threading.Event], None]) -> None:
        self._inside, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=work, args=(self._inside, self._leave))

    def __enter__(self) -> None:
        self._thread.start()
        assert self._inside.wait(PATIENCE)

    def __exit__(self, *exc: object) -> None:
        self._leave.set()
        self._thread.join()


def held(lock):
    def work(inside, leave):
        with lock:
            inside.set()
            leave.wait(PATIENCE)

    return Held(work)


def ends_in_child(function):
    """Fork this process, call a function in the child, and return whether it returned in time."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join(PATIENCE)
    code = child.exitcode
    child.kill()
    return code == 0


# ------------------------------------------------------------ locks


def a_lock_that_a_thread_holds():
    def take_all():
        for lock in locks:
            with lock:
                pass

    _context = ndd.EvalContext()  # has a lock, too
    locks = [value for value in gc.get_objects() if type(value) is ForkSafeLock]
    values = [value for name, module in sys.modules.items() if name.startswith("torchdali") for value in vars(module).values()]
    others = sum(type(value) in (type(threading.Lock()), type(threading.RLock())) for value in values)
    results = []
    for lock in locks:
        with held(lock):
            results.append(ends_in_child(take_all))
    return others, results


def test_a_lock_that_another_thread_holds_is_free_in_a_forked_process():
    others, results = in_own_process("tests.test_forks", "a_lock_that_a_thread_holds()")
    assert not others, "locks of modules are fork-safe"
    assert len(results) >= 8 and all(results)


def a_lock_of_the_thread_that_forks():
    lock = ForkSafeLock()

    def leave():
        lock.release()  # raises if it is not held
        with lock:
            pass

    with lock:
        return ends_in_child(leave)


def test_a_lock_of_the_forking_thread_stays_held():
    assert in_own_process("tests.test_forks", "a_lock_of_the_thread_that_forks()")


# ------------------------------------------------------------ computed values


class Circle:
    """Counts how often its area is computed."""

    count = 0

    @cached_property
    def area(self):
        """Area."""
        self.count += 1
        return 3.0


def test_a_cached_property_is_computed_once():
    first, second = Circle(), Circle()
    assert (first.area, first.area, first.count, second.count) == (3.0, 3.0, 1, 0)
    first.area = 4.0
    assert (first.area, second.area) == (4.0, 3.0)
    assert Circle.area.__doc__ == "Area."


class Numbers:
    """A dataset whose first sample waits on request."""

    def __init__(self, inside=None, leave=None):
        self.inside, self.leave = inside, leave

    def __len__(self):
        return 20

    def __getitem__(self, i):
        if self.inside is not None:
            self.inside.set()
            self.leave.wait(PATIENCE)
        return np.int32([i])


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def numbers(dataset):
    return fn.readers.dataset(dataset=dataset, name="Reader")


def a_pipeline_during_the_start_of_another():
    def work(inside, leave):
        list(Loader(numbers(Numbers(inside, leave))))

    def load():
        assert sum(map(len, Loader(numbers(Numbers())))) == 20

    with Held(work):
        return ends_in_child(load)


def test_a_forked_process_loads_while_its_parent_inspects_a_dataset():
    # The parent's thread is inside `MapStyle.first`, which is computed once per dataset.
    assert in_own_process("tests.test_forks", "a_pipeline_during_the_start_of_another()")


def just_started_loaders(count):
    results = []
    for _ in range(count):
        loader = Loader(numbers(Numbers()))
        batches = iter(loader)
        next(batches)
        results.append(ends_in_child(lambda: list(loader)))  # noqa: B023  called at once
        loader.close()
    return results


def used_by_the_parent():
    def flip():
        batch = ndd.flip(images, horizontal=1)
        for angle in range(5):
            batch = ndd.rotate(batch, angle=angle + angles, keep_size=True)
        batch.evaluate()

    def read():
        return [batch.cpu().torch(pad=True).flatten().tolist() for batch in reader.next_epoch(batch_size=10)]

    def numbers():
        assert read() == [list(range(10)), list(range(10, 20))]

    images = ndd.as_batch([np.zeros((64, 64, 3), np.uint8)] * 3, layout="HWC")
    angles = ndd.as_batch([1.0, 2.0, 3.0])
    reader = ndd.readers.Dataset(dataset=Numbers())
    flip()
    read()
    with ndd.EvalContext():
        flip()
        return [*map(ends_in_child, (flip, numbers))]


def test_dynamic_mode_continues_in_a_forked_process():
    assert in_own_process("tests.test_forks", "used_by_the_parent()") == [True, True]


def a_remote_file_of_the_parent():
    def read():
        assert bytes(file.read(5, 10)) == data[5:15] and bytes(file.read(size - 10, 10)) == data[-10:]

    data = bytes(range(251)) * 20_000
    size = len(data)
    with object_server() as server:
        server.objects = {"a": data}
        file = RemoteFile(Remote(), f"{server.url}/a")
        file.read(0, 1)
        return [ends_in_child(read), ends_in_child(read)]


def test_a_remote_file_is_readable_in_a_forked_process():
    pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")
    assert in_own_process("tests.test_forks", "a_remote_file_of_the_parent()") == [True, True]


@pytest.mark.slow
def test_a_just_started_loader_continues_in_a_forked_process():
    assert all(in_own_process("tests.test_forks", "just_started_loaders(50)"))
