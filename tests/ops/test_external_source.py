"""`external_source` in the main process against the real DALI: all sources and data types, feeding, epochs, and when errors are raised."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.helpers.sources import batch, batches, epochs, parallel, pipeline, run, source, values
from torchdali import types
from torchdali.tensors import TensorListCPU


def generate() -> Iterator[list[Any]]:
    yield from batches(2)


def generate_many(count: int = 3) -> Iterator[list[Any]]:
    yield from batches(count)


class Batches:
    """A class whose instances iterate."""

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(batches(2))


class Counted:
    """Batches of a dataset that may have changed."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(batches(self.count))


class Numbered:
    """A callable object; and a method."""

    def __call__(self, i: int) -> list[Any]:
        return batch(i)

    def method(self, i: int) -> list[Any]:
        return batch(i)


class CallableIterable(Batches):
    def __call__(self) -> list[Any]:
        return batch(9)


def counting() -> Callable[[], list[Any]]:
    found = iter(batches(2))
    return lambda: next(found)


B0, B1, B2, B3 = batches(4)
BATCHES = [values([TensorListCPU(b)]) for b in (B0, B1, B2, B3)]
b0, b1, b2, b3 = BATCHES
STOP = "stop"

KINDS: list[tuple[str, Callable[[], Any], list[Any]]] = [
    ("no parameter", counting, [b0, b1, STOP, STOP]),
    ("the number of the batch", lambda: lambda i: batch(i), [b0, b1, b2, b3]),
    ("a default counts as a parameter", lambda: lambda i=7: batch(i), [b0, b1, b2, b3]),
    ("callable object", Numbered, [b0, b1, b2, b3]),
    ("method", lambda: Numbered().method, [b0, b1, b2, b3]),
    ("partial", lambda: functools.partial(lambda a, i: batch(a + i), 1), [b1, b2, b3]),
    ("list", lambda: batches(2), [b0, b1, STOP, STOP]),
    ("empty list", list, [STOP, STOP]),
    ("tuple", lambda: tuple(batches(1)), [b0, STOP]),
    ("iterator", lambda: iter(batches(2)), [b0, b1, STOP]),
    ("iterable", Batches, [b0, b1, STOP]),
    ("class that iterates", lambda: Batches, [b0, b1, STOP]),
    ("callable iterable iterates", CallableIterable, [b0, b1, STOP]),
    ("generator", generate, [b0, b1, STOP, STOP]),
    ("generator function", lambda: generate, [b0, b1, STOP, STOP]),
    ("its defaults", lambda: generate_many, [b0, b1, b2, STOP]),
    ("partial generator function", lambda: functools.partial(generate_many, 1), [b0, STOP]),
    ("function that returns an iterator", lambda: lambda: iter(batches(2)), [b0, b1, STOP]),
]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("make", "expected"), [k[1:] for k in KINDS], ids=[k[0] for k in KINDS])
def test_kinds_of_sources(make, expected, depth) -> None:
    pipe = pipeline(source(make()), prefetch_queue_depth=depth)
    assert [run(pipe) for _ in expected] == expected


# ---------------------------------------------------------------- epochs

CYCLES: list[tuple[Any, list[list[Any]]]] = [
    (None, [[b0, b1, STOP, STOP], [STOP] * 4]),
    (False, [[b0, b1, STOP, STOP], [STOP] * 4]),
    ("no", [[b0, b1, STOP, STOP], [STOP] * 4]),
    (True, [[b0, b1, b0, b1], [b0, b1, b0, b1]]),
    ("quiet", [[b0, b1, b0, b1], [b0, b1, b0, b1]]),
    ("raise", [[b0, b1, STOP, STOP], [b0, b1, STOP, STOP]]),
]
ANEW = {
    "list": lambda: batches(2),
    "generator function": lambda: generate,
    "class": lambda: Batches,
    "iterable": Batches,
}


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ANEW)
@pytest.mark.parametrize(("cycle", "expected"), CYCLES)
def test_cycles(kind, cycle, expected, depth) -> None:
    pipe = pipeline(source(ANEW[kind](), cycle=cycle), prefetch_queue_depth=depth)
    assert epochs(pipe) == expected


def test_sample_and_batch_infos() -> None:
    seen: list[Any] = []

    def sample(info: types.SampleInfo) -> Any:
        place = (info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx)
        seen.append(place)
        if info.idx_in_epoch == 7:
            raise StopIteration
        return np.int32(info.idx_in_epoch)

    pipe = pipeline(source(sample, batch=False), prefetch_queue_depth=1)
    # The seventh sample is in a batch that is never full: it is dropped.
    assert epochs(pipe, runs=3) == [[[0, 1, 2], [3, 4, 5], STOP]] * 2
    first = [(i, i % 3, i // 3, 0) for i in range(8)]
    assert seen == first + [(*place[:3], 1) for place in first]


def test_batch_info() -> None:
    def whole(info: types.BatchInfo) -> Any:
        if info.iteration == 2:
            raise StopIteration
        return [np.int32([info.iteration, info.epoch_idx])]

    pipe = pipeline(source(whole, batch_info=True))
    assert epochs(pipe, runs=3) == [[[[0, 0]], [[1, 0]], STOP], [[[0, 1]], [[1, 1]], STOP]]


SAMPLES: list[tuple[Any, list[list[Any]]]] = [
    (None, [[[0, 1, 2], [3, 4, 5], STOP], [STOP] * 3]),
    (True, [[[0, 1, 2], [3, 4, 5], [6, 0, 1]], [[2, 3, 4], [5, 6, 0], [1, 2, 3]]]),
    ("raise", [[[0, 1, 2], [3, 4, 5], STOP]] * 2),
]


@pytest.mark.parametrize(("cycle", "expected"), SAMPLES)
def test_iterables_of_samples(cycle, expected) -> None:
    """A partial batch is dropped; with "quiet" it continues in the next pass."""
    numbers = [np.int32(i) for i in range(7)]
    pipe = pipeline(source(numbers, batch=False, cycle=cycle), prefetch_queue_depth=1)
    assert epochs(pipe, runs=3) == expected


class OneIterator(Batches):
    """An iterable whose `iter` continues, so that it has no items after its first pass."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = iter(items)

    def __iter__(self) -> Iterator[Any]:
        return self.items


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize(
    ("make", "batch", "expected"),
    [
        (lambda: OneIterator(batches(2)), True, [b0, b1, STOP, STOP]),
        (lambda: OneIterator([np.int32(0)] * 4), False, [b0, STOP, STOP, STOP]),
        (list, True, [STOP] * 4),
        (lambda: functools.partial(generate_many, 0), True, [STOP] * 4),
    ],
    ids=["batches", "samples", "empty list", "empty generator"],
)  # fmt: skip
def test_a_quiet_cycle_without_items_ends_the_epoch(make, batch, expected, workers) -> None:
    """As in DALI; restarting the iterable repeatedly would hang."""
    if workers and batch:
        pipe = parallel(make(), cycle="quiet")
    else:
        pipe = pipeline(source(make(), batch=batch, cycle="quiet"))
    assert epochs(pipe) == [expected, [STOP] * 4]


def test_sources_of_one_pipeline_advance_together() -> None:
    """The other sources lose a batch when one ends, as in DALI."""
    pipe = pipeline(
        lambda dali: [
            dali.fn.external_source(batches(2), cycle="raise"),
            dali.fn.external_source(batches(5, 10), cycle="raise"),
        ]
    )
    firsts = [[b if b == STOP else b[1][0] for b in epoch] for epoch in epochs(pipe, 3, 3)]
    assert firsts == [[10, 11, STOP], [13, 14, STOP], [10, 11, STOP]]


def test_reset_in_an_epoch_is_ignored() -> None:
    pipe = pipeline(source(lambda i: batch(i)))
    assert run(pipe) == b0
    pipe.reset()
    assert run(pipe) == b1


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_every_batch_before_the_end_is_delivered(depth) -> None:
    calls: list[int] = []

    def until_five(i: int) -> list[Any]:
        calls.append(i)
        if i == 5:
            raise StopIteration
        return batch(i)

    pipe = pipeline(source(until_five), prefetch_queue_depth=depth)
    assert [run(pipe) for _ in range(7)] == [[i] * 3 for i in range(5)] + [STOP] * 2
    assert calls == list(range(6))  # not called again before reset


# ---------------------------------------------------------------------- errors of user code


class OwnError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(number, text)


ERRORS = [KeyError("key"), ValueError("value"), OwnError(1, "own"), OSError(2, "no file")]


@pytest.mark.parametrize("error", ERRORS, ids=[type(e).__name__ for e in ERRORS])
def test_exceptions_pass_through(error) -> None:
    """Errors are unchanged, with the position in a note; the next run requests the same batch again."""
    failures = [error]

    def fails_once(i: int) -> list[Any]:
        if i == 1 and failures:
            raise failures.pop()
        return batch(i)

    pipe = pipeline(source(fails_once))
    assert run(pipe) == b0
    with pytest.raises(type(error)) as caught:
        pipe.run()
    assert caught.value is error
    if sys.version_info >= (3, 11):
        (note,) = error.__notes__
        assert "external_source" in note and "batch 1" in note and "line" in note
    assert [run(pipe) for _ in range(2)] == [b1, b2]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, TypeError),
        (3, TypeError),
        (np.float32(3), IndexError),
        (np.zeros((1, 4)), IndexError),
        ({"a": 1}, KeyError),
    ],
    ids=lambda each: type(each).__name__,
)
def test_results_that_are_not_a_tuple_of_outputs(data: Any, error: type[Exception]) -> None:
    pipe = pipeline(source(lambda i: data, num_outputs=2))
    with pytest.raises(error) as caught:
        pipe.run()
    assert f"must return a tuple of num_outputs=2 values, got {type(data).__name__}" in str(
        caught.value
    )


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="exceptions have no notes before Python 3.11"
)
@pytest.mark.parametrize("batch_info", [False, True])
def test_a_source_of_samples_that_gives_batches_names_the_cure(batch_info: bool) -> None:
    def of_samples(info: types.SampleInfo) -> Any:
        return np.int32(info.idx_in_epoch)

    pipe = pipeline(source(of_samples, batch_info=batch_info))
    with pytest.raises(AttributeError, match="idx_in_epoch") as caught:
        pipe.run()
    assert any(
        "with batch=False it passes a SampleInfo" in note for note in caught.value.__notes__
    )


def test_other_attribute_errors_get_no_explanation() -> None:
    pipe = pipeline(source(lambda i: None.missing))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError) as caught:
        pipe.run()
    assert not any("SampleInfo" in note for note in getattr(caught.value, "__notes__", ()))


def test_a_failed_generator_has_ended() -> None:
    def fails() -> Iterator[list[Any]]:
        yield batch(0)
        raise ValueError("torn")

    pipe = pipeline(source(fails, cycle=True))
    assert [run(pipe) for _ in range(4)] == [b0, "ValueError", b0, "ValueError"]


def test_sizes_of_sources_clash() -> None:
    sizes = (2, 3)
    pipe = pipeline(lambda dali: [source([batch(0, n)])(dali) for n in sizes])
    with pytest.raises(RuntimeError, match=r"Batch size clash!.*size 3.*than 2 returned") as caught:
        pipe.run()
    assert str(caught.value).count("lambda") >= 2  # the lines of both


# ---------------------------------------------------------------- devices and states


def test_gpu_sources() -> None:
    """The device stage on the CPU: the data is moved to the pipeline's device."""
    pipe = pipeline(source(lambda i: batch(i), device="gpu"), device_id="cpu")
    assert [run(pipe) for _ in range(2)] == [b0, b1]
    with pytest.raises(RuntimeError, match="GPU"):
        pipeline(source(lambda i: batch(i), device="gpu")).run()


def infos(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch >= 13:
        raise StopIteration
    return np.int32([info.idx_in_epoch, info.iteration, info.epoch_idx])


def until_four(i: int) -> list[Any]:
    if i == 4:
        raise StopIteration
    return batch(i)


def many_batches() -> Iterator[list[Any]]:
    yield from batches(4)


STATES: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("samples", lambda: {"source": infos, "batch": False}),
    ("batches", lambda: {"source": until_four}),
    ("infos", lambda: {"source": lambda i: [np.int32([i.iteration])], "batch_info": True}),
    ("list", lambda: {"source": batches(4)}),
    ("cycling list", lambda: {"source": batches(3), "cycle": True}),
    ("list that ends", lambda: {"source": batches(4), "cycle": "raise"}),
    ("generator function", lambda: {"source": many_batches, "cycle": "raise"}),
    ("generator", lambda: {"source": many_batches()}),
    ("samples of a list", lambda: {"source": [np.int32(i) for i in range(14)], "batch": False}),
    (
        "cycling samples",
        lambda: {"source": [np.int32(i) for i in range(7)], "batch": False, "cycle": "quiet"},
    ),
    ("function without parameter", lambda: {"source": iter(batches(4)).__next__}),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("make", [c[1] for c in STATES], ids=[c[0] for c in STATES])
def test_restored_at_every_batch(make, depth) -> None:
    """The remaining epoch and the next one are the same; batches in flight do not count."""
    for before in range(5):
        pipe = pipeline(source(**make()), prefetch_queue_depth=depth)
        taken = [run(pipe) for _ in range(before)]
        state = pipe.state_dict()
        assert STOP not in taken
        again = pipeline(source(**make()), prefetch_queue_depth=depth)
        again.load_state_dict(state)
        assert epochs(again, 2, 5) == epochs(pipe, 2, 5), before


def test_an_iterator_cannot_be_rewound() -> None:
    pipe = pipeline(source(iter(batches(4))), prefetch_queue_depth=1)
    start = pipe.state_dict()
    run(pipe)
    with pytest.raises(RuntimeError, match="iterator"):
        pipe.load_state_dict(start)


def test_a_shorter_iterable_is_detected() -> None:
    pipe = pipeline(source(Counted(4)), prefetch_queue_depth=1)
    assert [run(pipe) for _ in range(3)] == [b0, b1, b2]
    with pytest.raises(RuntimeError, match="2 items"):
        pipeline(source(Counted(2))).load_state_dict(pipe.state_dict())


# ---------------------------------------------------------------- the thread of the source


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("background", [False, True])
def test_the_thread_of_a_source(background: bool, asynchronous: bool) -> None:
    seen: list[str] = []

    def get() -> Any:
        seen.append(threading.current_thread().name)
        return batch(0)

    own = threading.current_thread().name
    define = source(get, background=background)
    pipe = pipeline(define, exec_async=asynchronous, exec_pipelined=asynchronous)
    pipe.run()
    expected = "torchdali-scheduler" if background and asynchronous else own
    assert set(seen) == {expected}


def test_two_threads_that_schedule_take_turns() -> None:
    """A generator never runs twice concurrently, and no batch is lost."""
    count = itertools.count()
    pipe = pipeline(source(lambda: batch(next(count))), prefetch_queue_depth=1)
    pipe.schedule_run()
    pipe.outputs()
    threads = [threading.Thread(target=pipe.schedule_run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [values(pipe.outputs())[0] for _ in threads] == list(range(1, 9))


def test_closing_while_a_source_waits() -> None:
    """close() does not wait for the user's code, which runs in another thread."""
    entered, go = threading.Event(), threading.Event()

    def get() -> Any:
        entered.set()
        assert go.wait(30)
        return batch(0)

    pipe = pipeline(source(get), prefetch_queue_depth=1)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run(pipe)))
    thread.start()
    assert entered.wait(30)
    pipe.close()
    go.set()
    thread.join()
    assert found == ["RuntimeError"]


def test_a_checkpoint_does_not_count_batches_in_flight() -> None:
    define = source([batch(i) for i in range(9)])
    pipe = pipeline(define, prefetch_queue_depth=3)
    assert [run(pipe)[0] for _ in range(2)] == [0, 1]
    again = pipeline(define)
    again.load_state_dict(pipe.state_dict())
    assert run(again)[0] == run(pipe)[0] == 2


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS: dict[str, str] = {
    "callback errors": "DALI raises the exception while it schedules, several batches early; here an exception "
    "belongs to its batch, and the batches before it are delivered",
    "errors inside DALI": "DALI's pipeline is invalid after an error; here the next batch works",
    "signatures": "a source may have keyword-only parameters with defaults (`functools.partial` creates them)",
    "data": "DLPack objects, the buffer protocol and torch tensors work without a GPU; DALI treats complex numbers as "
    "real ones and ignores the byte order, here both are errors",
    "iterator factories": "if the source is a function that returns an iterator, the iterator is used; DALI refuses "
    "the iterator",
    "feed_input": "also accepts the operator (`ops.ExternalSource`)",
    "parallel": "a worker's exception keeps its class; DALI raises Exception",
}


def both(
    make: Callable[[], dict[str, Any]], *, runs: int = 5, count: int = 3, **settings: Any
) -> None:
    """Assert that two libraries deliver the same epochs, each from its own source."""

    @golden.answered
    def delivered(library: str) -> Any:
        pipe = pipeline(source(**make()), library=library, **settings)
        pipe.build()
        return epochs(pipe, count, runs)

    assert delivered("torchdali") == delivered("nvidia.dali")


def generated(count: int) -> Iterator[list[Any]]:
    yield from batches(count)


def generate_five() -> Iterator[list[Any]]:
    yield from batches(5)


def sample_numbers(count: int) -> Iterator[Any]:
    for i in range(count):
        yield np.int32(i)


def ten_samples() -> Iterator[Any]:
    yield from sample_numbers(10)


# ---------------------------------------------------------------- epochs

ALL_CYCLES = [None, False, "no", True, "quiet", "raise"]
ENDLESS = (True, "quiet")


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("cycle", ALL_CYCLES)
def test_batches_of_iterables(cycle, count, depth) -> None:
    settings = {"prefetch_queue_depth": depth}
    both(lambda: {"source": batches(count), "cycle": cycle}, **settings)
    if count == 4:
        both(lambda: {"source": generate_five, "cycle": cycle}, runs=7, **settings)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 10, 11])
@pytest.mark.parametrize("cycle", ALL_CYCLES)
def test_samples_of_iterables(cycle, batch_size, depth) -> None:
    """Ten samples, in batch sizes that divide ten and that do not."""
    settings = {"batch_size": batch_size, "prefetch_queue_depth": depth, "runs": 12}
    numbers = list(sample_numbers(10))
    both(lambda: {"source": numbers, "batch": False, "cycle": cycle}, **settings)
    both(lambda: {"source": ten_samples, "batch": False, "cycle": cycle}, **settings)


def sample(info: Any) -> Any:
    if info.idx_in_epoch >= 10:
        raise StopIteration
    return np.int64([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


def informed(info: Any) -> Any:
    if info.iteration == 3:
        raise StopIteration
    return [np.int64([info.iteration, info.epoch_idx])]


def numbered(i: int) -> Any:
    if i == 3:
        raise StopIteration
    return batch(i, i + 1)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 10, 11])
def test_places_of_samples(batch_size, depth) -> None:
    settings = {"batch_size": batch_size, "prefetch_queue_depth": depth, "runs": 12}
    both(lambda: {"source": sample, "batch": False}, **settings)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "arguments", [{"source": informed, "batch_info": True}, {"source": numbered}], ids=["info", "i"]
)
def test_places_of_batches(arguments, depth) -> None:
    both(lambda: arguments, prefetch_queue_depth=depth)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("runs", range(1, 6))
@pytest.mark.parametrize("cycle", [None, "raise"])
def test_reset_before_the_end_is_seen(cycle, runs, depth) -> None:
    """Reset takes effect once the end is in flight, and is ignored before."""
    if runs == 2 and depth == 2:
        runs = 3  # DALI would deliver a batch of the old epoch in the new one
    both(lambda: {"source": batches(3), "cycle": cycle}, runs=runs, prefetch_queue_depth=depth)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("cycle", [None, True, "raise"])
def test_two_sources_of_different_length(cycle, depth) -> None:
    def define(dali: Any) -> Any:
        return [
            dali.fn.external_source(batches(2), cycle=cycle),
            dali.fn.external_source(batches(5, 10), cycle=cycle),
        ]

    @golden.answered
    def delivered(library: str) -> Any:
        pipe = pipeline(define, library=library, prefetch_queue_depth=depth)
        pipe.build()
        return epochs(pipe, 4, 4)

    assert delivered("torchdali") == delivered("nvidia.dali")


PARALLEL: list[tuple[str, dict[str, Any]]] = [
    ("samples", {"source": sample, "batch": False}),
    ("infos", {"source": informed, "batch_info": True}),
    ("generator", {"source": generate_five}),
    ("generator that ends", {"source": generate_five, "cycle": "raise"}),
    ("generator that cycles", {"source": generate_five, "cycle": True}),
]


def arrays(function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    """Yield batches whose samples are arrays: DALI's workers reject NumPy scalars."""
    for each in function(*arguments):
        yield [np.asarray(s).reshape(1) for s in each]


def five_of_arrays() -> Iterator[Any]:
    yield from arrays(generated, 5)


@pytest.mark.golden
@pytest.mark.parametrize("arguments", [c[1] for c in PARALLEL], ids=[c[0] for c in PARALLEL])
def test_parallel_epochs(arguments) -> None:
    if arguments["source"] is generate_five:
        arguments = {**arguments, "source": five_of_arrays}
    settings = {"py_num_workers": 2, "py_start_method": "fork"}
    both(lambda: {**arguments, "parallel": True}, runs=7, **settings)


# ---------------------------------------------------------- data, and rejected data

WHOLE = np.arange(6, dtype=np.float32).reshape(2, 3)
DATA: list[tuple[str, Any, dict[str, Any]]] = [
    ("ragged", [np.int32([1, 2]), np.int32([3])], {}),
    ("tuple", (np.int32([1, 2]), np.int32([3])), {}),
    ("array", WHOLE, {}),
    ("1D array", np.arange(3), {}),
    ("read-only", [np.frombuffer(b"ab", np.uint8)], {}),
    ("memoryview", [memoryview(b"ab")], {}),
    ("empty", [], {}),
    ("empty samples", [np.zeros(0, np.uint8)], {}),
    ("layout", [WHOLE], {"layout": "HW"}),
    ("layout too long", [WHOLE], {"layout": "HWC"}),
    ("ndim", [WHOLE], {"ndim": 2}),
    ("ndim wrong", [WHOLE], {"ndim": 3}),
    ("dtype wrong", [WHOLE], {"dtype": "INT32"}),
    ("dtype", [WHOLE], {"dtype": "FLOAT"}),
    ("0-dimensional", np.array(1), {}),
    ("None", None, {}),
    ("None in it", [np.int32(1), None], {}),
    ("text", "abc", {}),
    ("texts", ["abc"], {}),
    ("bytes", [b"abc"], {}),
    ("numbers", [1, 2], {}),
    ("nested", [[1, 2]], {}),
    ("number", 3, {}),
    ("dictionary", {0: WHOLE}, {}),
    ("too many", batch(0, 4), {}),
    ("types", [np.int32([1]), np.float32([1])], {}),
    ("axes", [np.int32([1]), np.int32([[1]])], {}),
    ("objects", [np.zeros(1, "O")], {}),
    ("texts of NumPy", [np.zeros(1, "U2")], {}),
    *[
        (t, [np.ones(2, t)], {})
        for t in ["bool", "uint8", "int8", "uint16", "int16", "uint32", "uint64", "int64"]
    ],
    *[(t, [np.ones(2, t)], {}) for t in ("float16", "float32", "float64")],
]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("data", "arguments"), [c[1:] for c in DATA], ids=[f"{c[0]}-{i}" for i, c in enumerate(DATA)]
)
def test_data(data, arguments) -> None:
    """Compare values, dtype and layout, or the class of the error."""

    def define(dali: Any) -> Any:
        rest = dict(arguments)
        if "dtype" in rest:
            rest["dtype"] = getattr(dali.types, rest["dtype"])
        return dali.fn.external_source(lambda: data, **rest)

    @golden.answered
    def delivered(library: str) -> Any:
        pipe = pipeline(define, library=library, prefetch_queue_depth=1)
        try:
            (output,) = pipe.run()
        except Exception as error:
            return type(error)
        samples = [np.array(output.at(i)).tolist() for i in range(len(output))]
        return samples, str(output.dtype).rpartition(".")[2], output.layout()

    ours, theirs = delivered("torchdali"), delivered("nvidia.dali")
    if isinstance(theirs, type):
        assert isinstance(ours, type) and issubclass(ours, theirs)
    else:
        assert ours == theirs


X, Y = [np.int32(1)], [np.float32([2])]
OUTPUTS: list[tuple[str, Any, dict[str, Any]]] = [
    ("tuple", (X, Y), {}),
    ("list", [X, Y], {}),
    ("array", np.zeros((2, 1, 2), np.int32), {}),
    ("dictionary", {0: X, 1: Y}, {}),
    ("too few", (X,), {}),
    ("too many", (X, Y, X), {}),
    ("None", None, {}),
    ("number", 3, {}),
    ("layouts", ([WHOLE], [WHOLE[0]]), {"layout": ["HW", "W"]}),
    ("one layout", ([WHOLE], [WHOLE]), {"layout": "HW"}),
    ("layout for one", ([WHOLE], [WHOLE]), {"layout": ["HW"]}),
    ("axes", (X, Y), {"ndim": [0, 1]}),
    ("axes wrong", (X, Y), {"ndim": [0, 0]}),
    ("sizes", (X, Y * 2), {}),
]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("data", "arguments"), [c[1:] for c in OUTPUTS], ids=[c[0] for c in OUTPUTS]
)
def test_several_outputs(data, arguments) -> None:
    both(lambda: {"source": lambda i: data, "num_outputs": 2, **arguments}, runs=1, count=1)


# ---------------------------------------------------------------- wrong calls and feeding

CALLS: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("two parameters", lambda: {"source": lambda i, j: 0}),
    ("two defaults", lambda: {"source": lambda i=1, j=2: 0}),
    ("*args", lambda: {"source": lambda *a: 0}),
    ("**kwargs", lambda: {"source": lambda **a: 0}),
    ("number", lambda: {"source": 5}),
    ("generator function with parameter", lambda: {"source": generated}),
    ("generator cycles", lambda: {"source": generated(2), "cycle": True}),
    ("generator raises", lambda: {"source": generated(2), "cycle": "raise"}),
    ("callable cycles", lambda: {"source": numbered, "cycle": True}),
    ("callable does not", lambda: {"source": numbered, "cycle": "no"}),
    ("bogus cycle", lambda: {"source": batches(1), "cycle": "bogus"}),
    ("1 as cycle", lambda: {"source": batches(1), "cycle": 1}),
    ("cycle alone", lambda: {"cycle": True}),
    ("outputs alone", lambda: {"num_outputs": 2}),
    ("named outputs", lambda: {"source": numbered, "num_outputs": 2, "name": "x"}),
    ("unknown", lambda: {"source": numbered, "color": 2}),
    ("axes and layout", lambda: {"source": numbered, "ndim": 3, "layout": "HW"}),
    ("negative axes", lambda: {"source": numbered, "ndim": -1}),
    ("depth", lambda: {"source": numbered, "prefetch_queue_depth": 2}),
    ("hint", lambda: {"source": numbered, "bytes_per_sample_hint": 2}),
    ("parallel no parameter", lambda: {"source": lambda: 0, "parallel": True}),
    ("parallel samples", lambda: {"source": batches(1), "parallel": True, "batch": False}),
    ("parallel copies", lambda: {"source": numbered, "parallel": True, "no_copy": False}),
    ("parallel depth", lambda: {"source": numbered, "parallel": True, "prefetch_queue_depth": 0}),
    ("no workers", lambda: {"source": numbered, "parallel": True, "batch": True}),
]


@pytest.mark.golden
@pytest.mark.parametrize("make", [c[1] for c in CALLS], ids=[c[0] for c in CALLS])
def test_wrong_calls(make) -> None:
    """Check that both raise the same class."""

    @golden.answered
    def refused(library: str) -> type[Exception]:
        with pytest.raises(Exception) as caught:
            pipeline(source(**make()), library=library, py_num_workers=0).build()
        return caught.type

    assert refused("torchdali") is refused("nvidia.dali")


@golden.answered
def _feeding(library: str, depth: int) -> list[Any]:
    pipe = pipeline(source(name="in"), library=library, prefetch_queue_depth=depth)
    found: list[Any] = [pipe.input_feed_count("in")]
    for i in range(depth + 1):
        pipe.feed_input("in", batch(i))
    found += [run(pipe) for _ in range(2)]
    pipe.feed_input("in", batch(7))
    found += [run(pipe) for _ in range(depth)]
    steps: list[Callable[[], Any]] = [
        lambda: pipe.feed_input("other", batch(0)),
        lambda: pipe.feed_input(3, batch(0)),
        lambda: pipe.feed_input("in", None),
        lambda: pipe.feed_input("in", batch(0, 4)),
        lambda: pipe.input_feed_count("other"),
    ]
    for step in steps:
        with pytest.raises(Exception) as caught:
            step()
        found.append(caught.type)
    return found


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_feeding(depth) -> None:
    assert _feeding("torchdali", depth) == _feeding("nvidia.dali", depth)


LAYOUTS = [(None, "HW"), ("HW", None), ("HW", "HW"), ("HW", "AB"), (None, None)]


@pytest.mark.golden
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_layouts_of_fed_batches(layouts) -> None:
    """A layout may be added, but not removed or changed."""

    @golden.answered
    def attempt(library: str) -> list[Any]:
        pipe = pipeline(source(name="in"), library=library, prefetch_queue_depth=1)
        found: list[Any] = []
        for layout in layouts:
            pipe.feed_input("in", np.zeros((2, 2, 2), np.uint8), layout=layout)
            try:
                found.append(pipe.run()[0].layout())
            except Exception as error:
                found.append(type(error))
        return found

    assert attempt("torchdali") == attempt("nvidia.dali")


@golden.answered
def _iter_setup(library: str, depth: int) -> list[Any]:
    import importlib

    package = importlib.import_module(library)
    ops = importlib.import_module(f"{library}.ops")

    class Fed(package.Pipeline):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__(3, 1, None, prefetch_queue_depth=depth)
            self.input, self.number = ops.ExternalSource(), 0

        def define_graph(self) -> Any:
            self.data = self.input()
            return self.data

        def iter_setup(self) -> None:
            if self.number == 3:
                raise StopIteration
            self.feed_input(self.data, batch(self.number))
            self.number += 1

    pipe = Fed()
    pipe.build()
    found = []
    for _ in range(3):
        found.append([run(pipe) for _ in range(5)])
        pipe.reset()
        pipe.number = 0
    return found


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_iter_setup(depth) -> None:
    assert _iter_setup("torchdali", depth) == _iter_setup("nvidia.dali", depth)


@pytest.mark.golden
@pytest.mark.parametrize("settings", [{"prefetch_queue_depth": 1}, {"exec_pipelined": False}, {}])
def test_inputs_of_run(settings) -> None:
    @golden.answered
    def attempt(library: str) -> list[Any]:
        pipe = pipeline(source(name="in"), library=library, **settings)
        found: list[Any] = []
        for i in range(2):
            try:
                found.append(len(pipe.run(**{"in": batch(i)})[0]))
            except Exception as error:
                found.append(type(error))
        return found

    assert attempt("torchdali") == attempt("nvidia.dali")


CLASSES: dict[str, Callable[[Any], Any]] = {
    "source": lambda ops: ops.ExternalSource(source=numbered)(),
    "positional": lambda ops: ops.ExternalSource(lambda i: (batch(i), batch(i)), 2)(),
    "at the call": lambda ops: ops.ExternalSource()(source=numbered),
    "samples": lambda ops: ops.ExternalSource(sample, batch=False)(),
    "samples at the call": lambda ops: ops.ExternalSource(sample)(batch=False),
    "cycle": lambda ops: ops.ExternalSource(batches(2), cycle="raise")(),
    "twice": lambda ops: ops.ExternalSource(numbered)(source=numbered),
    "layout twice": lambda ops: ops.ExternalSource(numbered, layout="H")(layout="H"),
    "batch twice": lambda ops: ops.ExternalSource(numbered, batch=True)(batch=True),
    "cycle apart": lambda ops: ops.ExternalSource(batches(2))(cycle=True),
    "input": lambda ops: ops.ExternalSource(numbered)(1),
    "outputs at the call": lambda ops: ops.ExternalSource(numbered)(num_outputs=1),
    "unknown": lambda ops: ops.ExternalSource(numbered, color=1)(),
    "named outputs": lambda ops: ops.ExternalSource(numbered, 2, name="x"),
}


@golden.answered
def _used(library: str, make: Callable[[Any], Any]) -> Any:
    import importlib

    ops = importlib.import_module(f"{library}.ops")
    try:
        pipe = pipeline(lambda dali: make(ops), library=library)
        pipe.build()
    except Exception as error:
        return type(error)
    return epochs(pipe)


@pytest.mark.golden
@pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES.keys())
def test_class(make) -> None:
    assert _used("torchdali", make) == _used("nvidia.dali", make)
