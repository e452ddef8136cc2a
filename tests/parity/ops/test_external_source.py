"""`external_source` against the real DALI: epochs, places, data, errors and their moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.helpers.sources import batch, batches, epochs, pipeline, run, source

pytestmark = pytest.mark.golden

EXCEPTIONS: dict[str, str] = {
    "callback errors": "DALI raises them when it schedules, batches ahead of their own; here an exception "
    "belongs to its batch, and the batches before it are delivered",
    "errors inside DALI": "its pipeline is invalid afterwards; here the next batch works",
    "signatures": "keyword-only parameters with defaults (as functools.partial makes) are allowed here",
    "data": "DLPack objects, the buffer protocol and torch tensors work without a GPU; DALI takes complex numbers for "
    "real ones and ignores the byte order, which is refused here",
    "iterator factories": "a function that returns an iterator is iterated; DALI refuses its result",
    "feed_input": "takes the operator (ops.ExternalSource) too",
    "parallel": "an exception of a worker keeps its class; DALI raises Exception",
}


def both(
    make: Callable[[], dict[str, Any]], *, runs: int = 5, count: int = 3, **settings: Any
) -> None:
    """Assert that two libraries deliver the same epochs; each gets its own source."""

    @golden.answered
    def delivered(library: str) -> Any:
        pipe = pipeline(source(**make()), library=library, **settings)
        pipe.build()
        return epochs(pipe, count, runs)

    assert delivered("torchdali") == delivered("nvidia.dali")


def generate(count: int) -> Iterator[list[Any]]:
    yield from batches(count)


def generate_five() -> Iterator[list[Any]]:
    yield from batches(5)


def sample_numbers(count: int) -> Iterator[Any]:
    for i in range(count):
        yield np.int32(i)


def ten_samples() -> Iterator[Any]:
    yield from sample_numbers(10)


# ---------------------------------------------------------------- epochs

CYCLES = [None, False, "no", True, "quiet", "raise"]
ENDLESS = (True, "quiet")


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("cycle", CYCLES)
def test_batches_of_iterables(cycle, count, depth) -> None:
    settings = {"prefetch_queue_depth": depth}
    both(lambda: {"source": batches(count), "cycle": cycle}, **settings)
    if count == 4:
        both(lambda: {"source": generate_five, "cycle": cycle}, runs=7, **settings)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 10, 11])
@pytest.mark.parametrize("cycle", CYCLES)
def test_samples_of_iterables(cycle, batch_size, depth) -> None:
    """Ten samples, in batch sizes that divide and that do not."""
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


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 10, 11])
def test_places_of_samples(batch_size, depth) -> None:
    settings = {"batch_size": batch_size, "prefetch_queue_depth": depth, "runs": 12}
    both(lambda: {"source": sample, "batch": False}, **settings)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "arguments", [{"source": informed, "batch_info": True}, {"source": numbered}], ids=["info", "i"]
)
def test_places_of_batches(arguments, depth) -> None:
    both(lambda: arguments, prefetch_queue_depth=depth)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("runs", range(1, 6))
@pytest.mark.parametrize("cycle", [None, "raise"])
def test_reset_before_the_end_is_seen(cycle, runs, depth) -> None:
    """It counts once the end is in flight, and is ignored before."""
    if runs == 2 and depth == 2:
        runs = 3  # DALI would deliver a batch of the old epoch in the new one
    both(lambda: {"source": batches(3), "cycle": cycle}, runs=runs, prefetch_queue_depth=depth)


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
    """Yield batches whose samples are arrays: DALI's workers take no NumPy scalars."""
    for each in function(*arguments):
        yield [np.asarray(s).reshape(1) for s in each]


def five_of_arrays() -> Iterator[Any]:
    yield from arrays(generate, 5)


@pytest.mark.parametrize("arguments", [c[1] for c in PARALLEL], ids=[c[0] for c in PARALLEL])
def test_parallel_epochs(arguments) -> None:
    if arguments["source"] is generate_five:
        arguments = {**arguments, "source": five_of_arrays}
    settings = {"py_num_workers": 2, "py_start_method": "fork"}
    both(lambda: {**arguments, "parallel": True}, runs=7, **settings)


# ---------------------------------------------------------------- data and refusals

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


@pytest.mark.parametrize(
    ("data", "arguments"), [c[1:] for c in DATA], ids=[f"{c[0]}-{i}" for i, c in enumerate(DATA)]
)
def test_data(data, arguments) -> None:
    """The same values, type and layout; or an error of the same class."""

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
    ("generator function with parameter", lambda: {"source": generate}),
    ("generator cycles", lambda: {"source": generate(2), "cycle": True}),
    ("generator raises", lambda: {"source": generate(2), "cycle": "raise"}),
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


@pytest.mark.parametrize("make", [c[1] for c in CALLS], ids=[c[0] for c in CALLS])
def test_wrong_calls(make) -> None:
    """Both raise, the same class."""

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


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_feeding(depth) -> None:
    assert _feeding("torchdali", depth) == _feeding("nvidia.dali", depth)


LAYOUTS = [(None, "HW"), ("HW", None), ("HW", "HW"), ("HW", "AB"), (None, None)]


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_layouts_of_fed_batches(layouts) -> None:
    """A layout may be added, and not taken away or changed."""

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


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_iter_setup(depth) -> None:
    assert _iter_setup("torchdali", depth) == _iter_setup("nvidia.dali", depth)


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


@pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES.keys())
def test_class(make) -> None:
    assert _used("torchdali", make) == _used("nvidia.dali", make)
