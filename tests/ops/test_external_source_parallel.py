"""`external_source(parallel=True)`: the same results, shared work, memory, states."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import odd_arrays
from tests.helpers.garbage import released
from tests.helpers.sources import (
    batch,
    batches,
    epochs,
    parallel,
    pipeline,
    processes,
    run,
    source,
    values,
)
from torchdali import types
from torchdali.tensors import TensorListCPU

STOP = "stop"
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, which Linux has")


@pytest.fixture(autouse=True)
def check_nothing_remains() -> Iterator[None]:
    before = _named_memory()  # of torch's own loader, in earlier tests
    yield
    assert released(lambda: processes() == [] and _named_memory() <= before), (processes(), _named_memory() - before)


def _named_memory() -> set[str]:
    """Return the named shared memory that this process has mapped; the prefix pym- belongs to multiprocessing's locks."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return {line for line in lines if "/dev/shm/" in line and "/dev/shm/pym-" not in line}


# ---------------------------------------------------------------- the same as in one process


def sample_infos(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch >= 7:
        raise StopIteration
    numbers = (info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx)
    return np.int64(numbers)


def numbered(i: int) -> list[Any]:
    if i == 2:
        raise StopIteration
    return batch(i)


def informed(info: types.BatchInfo) -> Any:
    if info.iteration == 2:
        raise StopIteration
    return np.int32([[info.iteration, info.epoch_idx]])


def generate() -> Iterator[list[Any]]:
    yield from batches(2)


SOURCES: dict[str, dict[str, Any]] = {
    "samples": {"source": sample_infos, "batch": False},
    "batches": {"source": numbered, "batch": True},
    "infos": {"source": informed, "batch": True, "batch_info": True},
    "list": {"source": batches(2), "batch": True},
    "list that cycles": {"source": batches(2), "batch": True, "cycle": True},
    "list that ends": {"source": batches(2), "batch": True, "cycle": "raise"},
    "generator function": {"source": generate, "batch": True},
    "generator function that ends": {"source": generate, "batch": True, "cycle": "raise"},
}


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", SOURCES)
def test_forked_workers_give_the_same_epochs(name, depth) -> None:
    arguments = dict(SOURCES[name])
    made = arguments.pop("source")
    expected = epochs(pipeline(source(made, **arguments)), 3)
    pipe = parallel(made, prefetch_queue_depth=depth, **arguments)
    assert epochs(pipe, 3) == expected
    pipe.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samples", "generator function that ends"])
def test_spawned_workers_give_the_same_epochs(name) -> None:
    arguments = dict(SOURCES[name])
    made = arguments.pop("source")
    expected = epochs(pipeline(source(made, **arguments)))
    pipe = parallel(made, method="spawn", **arguments)
    assert epochs(pipe) == expected
    pipe.close()


def test_a_generator_object_is_forked() -> None:
    pipe = parallel(generate(), batch=True)
    assert [run(pipe) for _ in range(3)] == [[0] * 3, [1] * 3, STOP]
    pipe.close()


def test_parallel_classes_take_samples() -> None:
    """With parallel=True the class takes samples, as in DALI."""
    pipe = pipeline(lambda dali: dali.ops.ExternalSource(sample_infos, parallel=True)(), py_num_workers=2)
    assert values(pipe.run())[1] == [1, 1, 0, 0]
    pipe.close()


DATA: list[tuple[str, Any, str]] = [
    ("ragged", [np.zeros((2, 3), np.uint8), np.ones((1, 3), np.uint8)], ""),
    ("array", np.arange(6.0).reshape(2, 3), ""),
    ("scalars", [np.float16(1), np.float16(2)], ""),
    ("flags", [np.array([True, False])], ""),
    ("torch", [torch.arange(3), torch.arange(2)], ""),
    ("strings of bytes", [np.frombuffer(b"abc", np.uint8)], ""),
    ("TensorList", TensorListCPU(np.ones((2, 1, 1), np.int16), layout="HW"), "HW"),
    ("empty samples", [np.zeros(0, np.uint8), np.zeros(3, np.uint8)], ""),
    ("nothing", [], ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("data", "layout"), [c[1:] for c in DATA], ids=[c[0] for c in DATA])
def test_data(data, layout) -> None:
    expected = pipeline(source(lambda i: data)).run()
    pipe = parallel(lambda i: data, batch=True)
    (output,) = pipe.run()
    assert values([output]) == values(expected)
    assert (output.dtype, output.layout()) == (expected[0].dtype, layout)
    pipe.close()


ODD = odd_arrays.arrays()


class Odd:
    def __call__(self, info: types.SampleInfo) -> Any:
        return tuple(ODD.values())


class OddBatches:
    def __call__(self, number: int) -> Any:
        return tuple([each, each] for each in ODD.values())


@pytest.mark.thin(2)
@pytest.mark.parametrize("batches_", [False, True])
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_arrays_of_any_type_and_shape(method, batches_) -> None:
    pipe = parallel(OddBatches() if batches_ else Odd(), len(ODD), batch=batches_, method=method, batch_size=2)
    for name, output in zip(ODD, pipe.run(), strict=True):
        expected = odd_arrays.facts(ODD[name].astype(ODD[name].dtype.newbyteorder("=")))
        assert [odd_arrays.facts(sample.clone()) for sample in output.samples()] == [expected] * 2, name
    pipe.close()


def test_several_sources_and_outputs() -> None:
    def both(info: types.SampleInfo) -> Any:
        return np.int32(info.idx_in_epoch), np.float32([info.iteration])

    define: Callable[[Any], Any] = lambda dali: [  # noqa: E731
        *dali.fn.external_source(both, 2, batch=False, parallel=True),
        dali.fn.external_source(batches(4, 10), batch=True, parallel=True),
        dali.fn.external_source(batches(4, 20), batch=True, parallel=True),
        dali.fn.external_source(lambda i: batch(i)),
    ]
    pipe = pipeline(define, py_num_workers=2)
    assert run(pipe) == [[0, 1, 2], [[0.0]] * 3, [10] * 3, [20] * 3, [0] * 3]
    assert run(pipe) == [[3, 4, 5], [[1.0]] * 3, [11] * 3, [21] * 3, [1] * 3]
    pipe.close()


# -------------------------------------------------------------------------- threads


def test_workers_share_the_samples_of_a_batch() -> None:
    """Parts of a batch wait for each other: neither worker can run more than half."""
    meeting = multiprocessing.get_context("fork").Barrier(2)

    def sample(info: types.SampleInfo) -> Any:
        if info.idx_in_batch % 2 == 0:  # the first of a part of two
            meeting.wait(10)
        return np.int64(os.getpid())

    pipe = parallel(sample, batch=False, batch_size=8)
    seen = [pid for _ in range(3) for pid in run(pipe)]
    shares = [seen.count(pid) for pid in set(seen)]
    assert shares == [12, 12]
    assert os.getpid() not in seen
    pipe.close()


def test_batches_are_prefetched() -> None:
    made = multiprocessing.get_context("fork").Semaphore(0)

    def counted(i: int) -> Any:
        made.release()
        return batch(i)

    pipe = parallel(counted, batch=True, prefetch_queue_depth=3, prefetch_queue_depth_=1, workers=1)
    assert run(pipe) == [0] * 3
    for _ in range(4):  # the returned batch, and three more
        assert made.acquire(timeout=10)
    assert not made.acquire(block=False)
    pipe.close()


def test_an_iterable_needs_one_process() -> None:
    pipe = parallel(batches(2), batch=True, workers=4)
    pipe.build()
    assert len(processes()) == 1
    pipe.close()


def test_workers_may_start_before_the_pipeline() -> None:
    pipe = parallel(numbered, batch=True)
    pipe.start_py_workers()
    before = {p.pid for p in processes()}
    assert len(before) == 2
    assert run(pipe) == [0] * 3
    assert {p.pid for p in processes()} == before
    pipe.close()


@pytest.mark.thin(3)
@pytest.mark.parametrize("count", [0, -1, None])
def test_no_workers(count) -> None:
    with pytest.raises(RuntimeError, match="py_num_workers"):
        parallel(numbered, batch=True, workers=count).build()


def test_unknown_start_method() -> None:
    with pytest.raises(ValueError, match="telepathy"):
        parallel(numbered, batch=True, method="telepathy").build()


# ---------------------------------------------------------------- memory


def image(info: types.SampleInfo) -> Any:
    return np.full((64, 64, 3), info.idx_in_epoch, np.int32)


def test_held_batches_are_not_overwritten() -> None:
    pipe = parallel(image, batch=False)
    kept = [pipe.run()[0] for _ in range(12)]
    pipe.close()
    for i, output in enumerate(kept):
        assert [output.at(k).flat[0] for k in range(3)] == [3 * i, 3 * i + 1, 3 * i + 2]


@pytest.mark.slow
@linux
def test_memory_is_reused() -> None:
    """Blocks of unreferenced batches are reused."""

    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:torchdali")

    pipe = parallel(image, batch=False)
    for _ in range(50):  # the number of blocks in use depends on timing
        pipe.run()
    before = mapped()
    assert before > 0
    for _ in range(150):
        pipe.run()
    assert mapped() <= before + 4
    pipe.close()


def test_blocks_grow() -> None:
    pipe = parallel(lambda i: [np.full(1 << 2 * i, i, np.uint8)] * 2, batch=True)
    for i in range(10):
        (output,) = pipe.run()
        assert output.shape() == [(1 << 2 * i,)] * 2
        assert output.at(1)[-1] == i
    pipe.close()


@pytest.mark.slow
@linux
def test_no_file_descriptor_leaks() -> None:
    def once() -> None:
        pipe = parallel(image, batch=False)
        pipe.run()
        pipe.close()

    once()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        once()
    assert released(lambda: len(os.listdir("/proc/self/fd")) <= before)


# ---------------------------------------------------------------- states


def unending(info: types.SampleInfo) -> Any:
    return np.int64([info.idx_in_epoch, info.iteration, info.epoch_idx])


STATES: list[tuple[str, dict[str, Any]]] = [
    ("samples", {"source": unending, "batch": False}),
    ("samples that end", {"source": sample_infos, "batch": False}),
    ("list", {"source": batches(3), "batch": True}),
    ("list that ends", {"source": batches(3), "batch": True, "cycle": "raise"}),
    ("generator function", {"source": generate, "batch": True, "cycle": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("arguments", [c[1] for c in STATES], ids=[c[0] for c in STATES])
def test_restored_at_every_batch(arguments, depth) -> None:
    what = arguments["source"]
    rest = {k: v for k, v in arguments.items() if k != "source"}
    for before in range(3):
        pipe = parallel(what, prefetch_queue_depth_=depth, **rest)
        for _ in range(before):
            run(pipe)
        state = pipe.state_dict()
        again = parallel(what, prefetch_queue_depth=3, **rest)
        again.load_state_dict(state)
        assert epochs(again, 2, 5) == epochs(pipe, 2, 5), before
        again.load_state_dict(state)  # also of a pipeline that has advanced
        del pipe, again
        gc.collect()
