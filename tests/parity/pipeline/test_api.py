"""The Pipeline API against the real DALI: the same results and the same classes of exceptions.

Each case is a function of a library; it runs on both, and its results or exceptions are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.libraries import Case, Library, check, described, table

pytestmark = pytest.mark.golden


def numbers(count: int = 10**6) -> Callable[[int], Any]:
    """A source whose batches are numbered."""

    def source(i: int) -> Any:
        if i >= count:
            raise StopIteration
        return [np.full(1, i, np.int32)] * 2

    return source


def counting(lib: Library, count: int = 10**6, **arguments: Any) -> Any:
    pipe = lib.Pipeline(**{"batch_size": 2, "num_threads": 1, "device_id": None, **arguments})
    with pipe:
        pipe.set_outputs(lib.fn.external_source(source=numbers(count)))
    return pipe


def first(outputs: Any) -> int:
    return int(np.asarray(outputs[0].at(0))[0])


# ---------------------------------------------------------------- outputs


def outputs(*values: Any) -> Case:
    def case(lib: Library) -> Any:
        pipe = lib.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(*(v(lib) if callable(v) else v for v in values))
        return described(pipe.run())

    return case


OUTPUTS = {
    "int": outputs(3),
    "float": outputs(1.5),
    "bool": outputs(True),
    "array of float64": outputs(np.array([1.5, 2.5])),
    "array of int64": outputs(np.arange(6).reshape(2, 3)),
    "array of uint8": outputs(np.arange(3, dtype=np.uint8)),
    "NumPy number": outputs(np.float64(2.5)),
    "list of ints": outputs([1, 2, 3]),
    "list of floats": outputs([1, 2.5]),
    "tuple of ints": outputs((1, 2)),
    "empty list": outputs([]),
    "constant": outputs(lambda lib: lib.types.Constant(3)),
    "constant of a type": outputs(lambda lib: lib.types.Constant(3).uint8()),
    "one twice": outputs(*[lambda lib: lib.fn.constant(idata=[7], shape=[])] * 2),
    "nested nodes": outputs(lambda lib: [lib.fn.random.uniform(), lib.fn.random.uniform()]),
    "nested tuple": outputs(1, lambda lib: (lib.fn.random.uniform(),)),
    "nested list": outputs([1, [2]]),
    "None": outputs(None),
    "str": outputs("a"),
    "dict": outputs({"a": 1}),
    "nothing": outputs(),
}


@table(OUTPUTS)
def test_outputs(case) -> None:
    check(case)


def defined(function: Callable[[Library], Any]) -> Case:
    def case(lib: Library) -> Any:
        @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipe():
            return function(lib)

        return described(pipe().run())

    return case


def subclassed(function: Callable[[Library], Any]) -> Case:
    def case(lib: Library) -> Any:
        class Own(lib.Pipeline):
            def __init__(self) -> None:
                super().__init__(2, 1, None, seed=1)

            def define_graph(self) -> Any:
                return function(lib)

        return described(Own().run())

    return case


RETURNED: dict[str, Callable[[Library], Any]] = {
    "a node": lambda lib: lib.fn.constant(idata=[1, 2]),
    "a tuple": lambda lib: (lib.fn.constant(idata=[1]), 2, np.array([3.0])),
    "a list of numbers": lambda lib: [1, 2, 3],
    "a list of nodes": lambda lib: [lib.fn.constant(idata=[1]), lib.fn.constant(idata=[2])],
    "a nested list": lambda lib: (1, [lib.fn.constant(idata=[1])]),
    "None": lambda lib: None,
    "a str": lambda lib: "a",
    "a dict": lambda lib: {"a": lib.fn.constant(idata=[1])},
}


@pytest.mark.parametrize("returned", RETURNED.values(), ids=RETURNED)
@pytest.mark.parametrize("way", [defined, subclassed])
def test_what_a_function_returns(returned, way) -> None:
    check(way(returned))


DECLARED = {
    "dtype": {"output_dtype": "INT32"},
    "dtypes": {"output_dtype": ["INT32", "FLOAT"]},
    "wrong dtype": {"output_dtype": ["INT32", "INT32"]},
    "some dtypes": {"output_dtype": [None, "FLOAT"]},
    "too few dtypes": {"output_dtype": ["INT32"]},
    "no dtypes": {"output_dtype": []},
    "NO_TYPE": {"output_dtype": "NO_TYPE"},
    "NO_TYPE in a list": {"output_dtype": ["NO_TYPE", "FLOAT"]},
    "dtype as number": {"output_dtype": [1, 2]},
    "dtype of NumPy": {"output_dtype": np.float32},
    "ndim": {"output_ndim": 1},
    "ndims": {"output_ndim": [1, 1]},
    "wrong ndim": {"output_ndim": [1, 2]},
    "zero ndim": {"output_ndim": 0},
    "some ndims": {"output_ndim": [1, None]},
    "too many ndims": {"output_ndim": [1, 1, 1]},
    "negative ndim": {"output_ndim": -1},
    "float ndim": {"output_ndim": 1.0},
    "str ndim": {"output_ndim": "x"},
    "empty layout": {"output_layout": ""},
    "layouts": {"output_layout": ["X", ""]},
    "wrong layout": {"output_layout": "Y"},
    "some layouts": {"output_layout": [None, "Y"]},
    "layout as number": {"output_layout": 5},
    "layout as number in a list": {"output_layout": [5, 5]},
}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
def test_declared_outputs(declared) -> None:
    def case(lib: Library) -> Any:
        def member(value: Any) -> Any:
            return getattr(lib.types, value) if isinstance(value, str) else value

        arguments = dict(declared)
        if "output_dtype" in arguments:
            given = arguments["output_dtype"]
            arguments["output_dtype"] = (
                [*map(member, given)] if isinstance(given, list) else member(given)
            )
        pipe = lib.Pipeline(2, 1, None, **arguments)
        with pipe:
            one = lib.fn.reshape(lib.fn.constant(idata=[1, 2]), layout="X")
            pipe.set_outputs(one, lib.fn.constant(fdata=[1.0]))
        names = [None if d is None else d.name for d in pipe.output_dtype()]
        return names, pipe.output_ndim(), described(pipe.run())

    check(case)


# ---------------------------------------------------------------- pipeline_def


def test_arguments_of_pipeline_def() -> None:
    def case(lib: Library) -> Any:
        @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3)
        def plain(q=5):
            return lib.fn.constant(idata=[q])

        @lib.pipeline_def
        def bare(q, /, *rest, seed=8):
            return lib.fn.constant(idata=[q, *rest, seed])

        one, two, three = plain(), plain(4, batch_size=7, seed=9), plain(q=1)
        four = bare(1, 2, batch_size=1, num_threads=1, device_id=None)
        five = bare(1, seed=4, batch_size=1, num_threads=1, device_id=None)
        return [
            (pipe.max_batch_size, pipe.seed, described(pipe.run())[0][2][0])
            for pipe in (one, two, three, four, five)
        ]

    check(case)


WRONG_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "unknown keyword": lambda plain, bare: plain(foo=1),
    "missing argument": lambda plain, bare: bare(batch_size=1, num_threads=1, device_id=None),
    "too many arguments": lambda plain, bare: plain(1, 2),
    "no batch size": lambda plain, bare: bare(1, num_threads=1, device_id=None).build(),
    "no threads": lambda plain, bare: bare(1, batch_size=1, device_id=None).build(),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_calls_of_a_pipeline_def(call) -> None:
    def case(lib: Library) -> Any:
        @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def plain(q=5):
            return lib.fn.constant(idata=[q])

        @lib.pipeline_def
        def bare(q):
            return lib.fn.constant(idata=[q])

        return call(plain, bare)

    check(case)


def test_wrong_decorations() -> None:
    check(lambda lib: lib.pipeline_def(foo=3)(lambda: 3)())
    check(lambda lib: lib.pipeline_def(batch_size=3)(5)())


# ---------------------------------------------------------------- the constructor

CONSTRUCTED: dict[str, dict[str, Any]] = {
    "nothing": {"batch_size": None, "num_threads": None},
    "plain": {},
    "synchronous": {"exec_async": False},
    "not pipelined": {"exec_pipelined": False},
    "neither": {"exec_pipelined": False, "exec_async": False},
    "dynamic": {"exec_dynamic": True},
    "not dynamic": {"exec_dynamic": False},
    "dynamic, synchronous": {"exec_dynamic": True, "exec_async": False},
    "old name": {"experimental_exec_dynamic": False},
    "old name wins": {"exec_dynamic": True, "experimental_exec_dynamic": False},
    "depth": {"prefetch_queue_depth": 3},
    "two depths": {"prefetch_queue_depth": {"cpu_size": 1, "gpu_size": 2}},
    "two depths, synchronous": {
        "prefetch_queue_depth": {"cpu_size": 1, "gpu_size": 2},
        "exec_async": False,
    },
    "one depth missing": {"prefetch_queue_depth": {"cpu_size": 1}},
    "depth zero": {"prefetch_queue_depth": 0},
    "negative depth": {"prefetch_queue_depth": -1},
    "depth of a wrong type": {"prefetch_queue_depth": "a"},
    "float depth": {"prefetch_queue_depth": 2.5},
    "batch size zero": {"batch_size": 0},
    "negative batch size": {"batch_size": -1},
    "batch size of a wrong type": {"batch_size": "a"},
    "float batch size": {"batch_size": 2.5},
    "no batch size": {"batch_size": None},
    "no threads": {"num_threads": None},
    "zero threads": {"num_threads": 0},
    "negative threads": {"num_threads": -1},
    "seed": {"seed": 5},
    "seed -1": {"seed": -1},
    "negative seed": {"seed": -5},
    "wrong seed": {"seed": "a"},
    "unknown": {"foo": 1},
    "workers": {"py_num_workers": 3, "py_start_method": "spawn"},
    "statistics": {"enable_memory_stats": True, "set_affinity": True, "bytes_per_sample": 100},
}

PROPERTIES = (
    "max_batch_size", "num_threads", "device_id", "seed", "exec_pipelined", "exec_async", "exec_separated",
    "exec_dynamic", "set_affinity", "max_streams", "prefetch_queue_depth", "default_cuda_stream_priority",
    "num_outputs", "py_num_workers", "py_start_method", "enable_memory_stats", "cpu_queue_size",
    "gpu_queue_size", "stream_policy", "concurrency", "is_restored_from_checkpoint",
)  # fmt: skip


@pytest.mark.parametrize("arguments", CONSTRUCTED.values(), ids=CONSTRUCTED)
def test_the_constructor(arguments) -> None:
    def case(lib: Library) -> Any:
        pipe = counting(lib, **arguments)
        properties = [getattr(pipe, name) for name in PROPERTIES]
        return properties, first(pipe.run())

    check(case)


def test_properties_cannot_be_set() -> None:
    check(lambda lib: setattr(counting(lib), "num_threads", 3))


# ---------------------------------------------------------------- running

STYLES: dict[str, Callable[[Any, Library], Any]] = {
    "run": lambda pipe, lib: first(pipe.run()),
    "schedule_run": lambda pipe, lib: pipe.schedule_run(),
    "share_outputs": lambda pipe, lib: first(pipe.share_outputs()),
    "outputs": lambda pipe, lib: first(pipe.outputs()),
    "release_outputs": lambda pipe, lib: pipe.release_outputs(),
    "reset": lambda pipe, lib: pipe.reset(),
    "iterator": lambda pipe, lib: int(next(lib.iterator(pipe, ["a"]))[0]["a"][0, 0]),
}


UNCHECKED = [
    pair
    for pair in itertools.product(STYLES, repeat=2)
    if not {"share_outputs", "iterator"} & set(pair)  # DALI counts batches differently there
]


@pytest.mark.parametrize(
    ("one", "two", "checked"),
    [
        *((*pair, True) for pair in itertools.product(STYLES, repeat=2)),
        *((*pair, False) for pair in UNCHECKED),
    ],
)
def test_mixed_styles_of_running(one, two, checked) -> None:
    def case(lib: Library) -> Any:
        pipe = counting(lib)
        pipe.build()
        pipe.enable_api_check(checked)
        return STYLES[one](pipe, lib), STYLES[two](pipe, lib)

    check(case)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("style", ["run", "schedule"])
def test_the_end_of_a_source_and_empty(depth, style) -> None:
    def take(pipe: Any) -> Any:
        try:
            if style == "run":
                return first(pipe.run()), pipe.empty()
            found = first(pipe.share_outputs()), pipe.empty()
            pipe.release_outputs()
        except StopIteration:
            found = "end", pipe.empty()
        pipe.schedule_run()
        return found, pipe.empty()

    def case(lib: Library) -> Any:
        pipe = counting(lib, 3, prefetch_queue_depth=depth)
        pipe.build()
        before = pipe.empty()
        if style == "schedule":
            pipe.schedule_run()
        found = [take(pipe) if style == "schedule" else ended(take, pipe) for _ in range(6)]
        pipe.reset()
        after = pipe.empty()
        if style == "schedule":
            pipe.schedule_run()
        return before, found, after, [ended(take, pipe) for _ in range(3)]

    check(case)


def ended(take: Callable[[Any], Any], pipe: Any) -> Any:
    try:
        return take(pipe)
    except StopIteration:
        return "end", pipe.empty()


def test_reset_in_mid_epoch_does_nothing() -> None:
    def case(lib: Library) -> Any:
        pipe = counting(lib, 5)
        found = []
        for _ in range(3):
            found.append(first(pipe.run()))
            pipe.reset()
        return found

    check(case)


UNBUILT: dict[str, Callable[[Any], Any]] = {
    "outputs": lambda pipe: pipe.outputs(),
    "share_outputs": lambda pipe: pipe.share_outputs(),
    "release_outputs": lambda pipe: pipe.release_outputs(),
    "reset": lambda pipe: pipe.reset(),
    "empty": lambda pipe: pipe.empty(),
    "epoch_size": lambda pipe: pipe.epoch_size(),
    "epoch_size of": lambda pipe: pipe.epoch_size("foo"),
    "reader_meta": lambda pipe: pipe.reader_meta(),
    "reader_meta of": lambda pipe: pipe.reader_meta("foo"),
    "num_outputs": lambda pipe: pipe.num_outputs,
    "output_dtype": lambda pipe: pipe.output_dtype(),
    "executor_statistics": lambda pipe: pipe.executor_statistics(),
    "shm": lambda pipe: pipe.external_source_shm_statistics(),
    "input_feed_count": lambda pipe: pipe.input_feed_count("foo"),
    "run with input": lambda pipe: pipe.run(foo=[np.zeros(1)]),
    "build twice": lambda pipe: (pipe.build(), pipe.build()),
    "start_py_workers": lambda pipe: pipe.start_py_workers(),
}


@pytest.mark.parametrize("call", UNBUILT.values(), ids=UNBUILT)
def test_before_build(call) -> None:
    check(lambda lib: call(counting(lib)))


def test_without_a_graph() -> None:
    for call in (lambda p: p.build(), lambda p: p.run(), lambda p: p.num_outputs):
        check(lambda lib, call=call: call(lib.Pipeline(2, 1, None)))


def test_memory_statistics() -> None:
    def case(lib: Library) -> Any:
        options = {"enable_memory_stats": True, "exec_async": False, "exec_pipelined": False}
        pipe = lib.Pipeline(3, 1, None, exec_dynamic=False, **options)
        with pipe:
            pipe.set_outputs(lib.fn.random.uniform(shape=[2], name="u"))
        pipe.run()
        return pipe.executor_statistics()["CPU_u"]

    check(case)


# ---------------------------------------------------------------- defining


def test_the_current_pipeline() -> None:
    def case(lib: Library) -> Any:
        pipe, other = lib.Pipeline(2, 1, None), lib.Pipeline(2, 1, None)
        seen = [lib.Pipeline.current() is None]
        with pipe as entered:
            seen += [entered is pipe, lib.Pipeline.current() is pipe]
            with other:
                seen.append(lib.Pipeline.current() is other)
            seen.append(lib.Pipeline.current() is pipe)
        lib.Pipeline.push_current(other)
        seen.append(lib.Pipeline.current() is other)
        lib.Pipeline.pop_current()
        return [*seen, lib.Pipeline.current() is None]

    check(case)


def test_nodes_made_elsewhere() -> None:
    def case(lib: Library) -> Any:
        detached = lib.fn.constant(idata=[1])
        one, two = lib.Pipeline(2, 1, None), lib.Pipeline(2, 1, None)
        with one:
            foreign = lib.fn.constant(idata=[2])
        two.set_outputs(detached, foreign)
        return described(two.run())

    check(case)


def test_detached_random_operators_differ() -> None:
    def case(lib: Library) -> Any:
        one, two = lib.fn.random.uniform(), lib.fn.random.uniform()
        pipe = lib.Pipeline(2, 1, None, seed=1)
        pipe.set_outputs(one, two)
        a, b = pipe.run()
        return np.array_equal(a.as_array(), b.as_array())

    check(case)


def test_names_are_unique() -> None:
    def twice(lib: Library) -> Any:
        pipe = lib.Pipeline(2, 1, None)
        with pipe:
            names = [lib.fn.random.uniform(name="a"), lib.fn.random.normal(name="a")]
            pipe.set_outputs(*names)
        return pipe.build()

    check(twice)


def test_iter_setup_of_a_subclass() -> None:
    def case(lib: Library) -> Any:
        class Own(lib.Pipeline):
            def __init__(self) -> None:
                super().__init__(2, 1, None, seed=1)
                self.calls = 0

            def define_graph(self) -> Any:
                self.fed = lib.fn.external_source(name="fed")
                return self.fed

            def iter_setup(self) -> None:
                if self.calls == 4:
                    raise StopIteration
                self.feed_input(self.fed, [np.full(1, self.calls)] * 2)
                self.calls += 1

        pipe, found = Own(), []
        try:
            while True:
                found.append(first(pipe.run()))
        except StopIteration:
            return found

    check(case)
