"""Processes that are killed while they write to a cache; a process without threads forks them."""

from __future__ import annotations

import os
import random
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.helpers.inside import executor_of
from torchdali import fn, pipeline_def
from torchdali.formats.sample_store import DiskStore, MemoryStore, SampleStore

_PUTS = 8  # per process, at most, before it is killed


def _forked(function: Callable[[int], Any]) -> tuple[int, int]:
    """Run a function with a pipe to write to in a fork; return the process id, and the pipe to read from."""
    there, here = os.pipe()
    pid = os.fork()
    if pid:
        os.close(here)
        return pid, there
    try:
        function(here)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _killed(function: Callable[[int], Any], random_: random.Random) -> bool:
    """Run a function that writes a byte before each sample, and kill it shortly after one; return False if it has ended.

    A function without further samples is killed as well.
    """
    pid, pipe = _forked(function)
    for _ in range(random_.randrange(1, _PUTS)):
        if not select.select([pipe], [], [], 0.3)[0] or not os.read(pipe, 1):
            break
    select.select([], [], [], random_.random() * 3e-4)
    os.kill(pid, signal.SIGKILL)
    os.close(pipe)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def _announced(pipe: int) -> None:
    """Let all stores of this process write a byte before each sample."""
    put = SampleStore.put

    def announced(store: SampleStore, key: bytes, tensors: Any) -> bool:
        os.write(pipe, b".")
        return put(store, key, tensors)

    SampleStore.put = announced  # type: ignore[method-assign]


# ---------------------------------------------------------------------- stores


def _sample(number: int) -> tuple[bytes, torch.Tensor]:
    size = 1 + number * 7919 % 50_000
    return b"%016d" % number, torch.arange(number, number + size, dtype=torch.int32)


def stores(folder: str, count: int, where: str) -> dict[str, int]:
    """Kill processes, of which two write to one store at a time, and compare all its samples; return the number of kills."""
    random_, found = random.Random(1), {"killed": 0, "read": 0, "wrong": 0}
    memory = MemoryStore(1 << 40)

    def opened() -> SampleStore:
        return memory if where == "memory" else DiskStore(folder, "store", None)

    def write(pipe: int, first: int, most: int) -> None:
        _announced(pipe)
        store = opened()
        for number in range(first, first + most):
            key, value = _sample(number)
            store.put(key, (value,))

    def compare(store: SampleStore, keys: set[bytes]) -> None:
        for key in keys:
            value = store.get(key)
            found["read"] += 1
            found["wrong"] += value is None or not torch.equal(value[0], _sample(int(key))[1])

    seen: set[bytes] = set()
    for number in range(count):
        first = number * _PUTS  # other processes write most of the killed process's samples, too
        other, pipe = _forked(lambda pipe, first=first: write(pipe, first, 2 * _PUTS))  # type: ignore[misc]
        found["killed"] += _killed(lambda pipe, first=first: write(pipe, first, 10**9), random_)  # type: ignore[misc]
        os.waitpid(other, 0)
        os.close(pipe)
        store = opened()
        assert len(store)
        keys = set(store._locations)
        compare(store, keys - seen)
        seen |= keys
    compare(opened(), seen)
    return found


# ---------------------------------------------------------------- pipelines


def _pipeline(images: str, keep: dict[str, Any]) -> Any:
    @pipeline_def(batch_size=5, num_threads=2, num_processes=1, device_id=None, seed=1)
    def define() -> Any:
        files, labels = fn.readers.file(file_root=images, random_shuffle=True)
        kept = fn.resize(fn.decoders.image(files), size=[120, 160])
        return (fn.cache(kept, **keep) if keep else kept), labels

    return define()


def _batches(pipe: Any) -> list[Any]:
    return [np.array(sample) for _ in range(8) for output in pipe.run() for sample in output]


def _check(images: str, keep: dict[str, Any], expected: Path, pipe: int) -> None:
    built = _pipeline(images, keep)
    arrays = _batches(built)
    with np.load(expected) as known:
        wrong = not all(np.array_equal(array, known[f"arr_{i}"]) for i, array in enumerate(arrays))
    (kept,) = executor_of(built).caches
    os.write(pipe, f"{int(wrong)} {kept.hits} {kept.misses}".encode())


def pipelines(images: str, root: str, count: int) -> dict[str, int]:
    """Kill pipelines that write to a cache, and let others read it; return the cached samples that they found."""
    random_, found = random.Random(2), {"killed": 0, "wrong": 0, "hits": 0, "misses": 0}
    expected = Path(root, "expected.npz")
    pid, pipe = _forked(lambda pipe: np.savez(expected, *_batches(_pipeline(images, {}))))
    assert os.waitpid(pid, 0)[1] == 0
    os.close(pipe)

    def run(pipe: int, folder: str) -> None:
        _announced(pipe)
        built = _pipeline(images, {"path": folder})
        while True:
            built.run()

    for number in range(count):
        folder = os.path.join(root, str(number))
        for _ in range(2):
            found["killed"] += _killed(lambda pipe, folder=folder: run(pipe, folder), random_)  # type: ignore[misc]
        pid, pipe = _forked(lambda pipe, folder=folder: _check(images, {"path": folder}, expected, pipe))  # type: ignore[misc]
        said = os.read(pipe, 100)
        os.close(pipe)
        assert os.waitpid(pid, 0)[1] == 0
        for name, value in zip(("wrong", "hits", "misses"), map(int, said.split()), strict=True):
            found[name] += value
    return found
