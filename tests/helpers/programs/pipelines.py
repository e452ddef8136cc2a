"""Programs with pipelines: driven by hand, deserialized, with constants."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from tests.helpers.programs._table import (
    PROGRAMS,
    Counter,
    counting,
    fed,
    feed,
    files,
    numbers,
    pair,
    plugin,
    program,
    taken,
)

# ---------------------------------------------------------------- driven by hand

@program
def fed_in_iter_setup(dali: Any) -> Iterator[Any]:
    class Fed(dali.Pipeline):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(2, 1, None)
            self.next, self.source = 0, dali.ops.ExternalSource()

        def define_graph(self) -> Any:
            self.data = self.source()
            return self.data

        def iter_setup(self) -> None:
            if self.next == 3:
                self.next = 0
                raise StopIteration
            self.feed_input(self.data, pair(self.next))
            self.next += 1

    it = plugin(dali).DALIGenericIterator(Fed(), ["a"], auto_reset=True)
    yield [taken(batch) for batch in it], [taken(batch) for batch in it]
    pipe = Fed()
    pipe.build()
    pipe._prefetch()
    yield numbers(pipe.share_outputs())
    pipe.release_outputs()
    pipe.schedule_run()
    yield numbers(pipe.outputs())


@program
def prefetch_and_share(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.build()
    pipe._prefetch()
    for _ in range(4):
        yield numbers(pipe.share_outputs())
        pipe.release_outputs()
        pipe.schedule_run()


@program
def prefetch_and_outputs(dali: Any) -> Iterator[Any]:
    pipe = counting(dali, prefetch_queue_depth=3)
    pipe.build()
    pipe._prefetch()
    for _ in range(4):
        yield numbers(pipe.outputs())
        pipe._run_once()


@program
def prefetch_without_pipelining(dali: Any) -> Iterator[Any]:
    pipe = counting(dali, prefetch_queue_depth=3, exec_async=False, exec_pipelined=False)
    pipe.build()
    pipe._prefetch()
    for _ in range(3):
        yield numbers(pipe.outputs())
    pipe.schedule_run()
    yield numbers(pipe.outputs())


@program
def prefetch_twice(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.build()
    pipe._prefetch()
    pipe._prefetch()
    yield numbers(pipe.outputs())


@program
def prefetch_and_run(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.build()
    pipe._prefetch()
    yield numbers(pipe.run())
    yield numbers(pipe.run())


@program
def inner_run(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.build()
    pipe._run()
    yield numbers(pipe._outputs())
    yield numbers(pipe._outputs())


@program
def schedule_without_batch(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.build()
    yield numbers(pipe.share_outputs())


@program
def scheduled_more_than_once(dali: Any) -> Iterator[Any]:
    pipe = counting(dali)
    pipe.schedule_run()
    pipe.schedule_run()
    for _ in range(4):
        yield numbers(pipe.outputs())


@program
def scope_of_an_iterator(dali: Any) -> Iterator[Any]:
    pipe, api = counting(dali), dali.types.PipelineAPIType
    pipe.build()
    with pipe._check_api_type_scope(api.ITERATOR) as check:
        pipe.schedule_run()
    yield check, pipe._api_type.name
    with pipe._check_api_type_scope(api.ITERATOR):
        yield numbers(pipe.share_outputs())
    pipe.run()


@program
def style_is_set(dali: Any) -> Iterator[Any]:
    pipe, api = counting(dali), dali.types.PipelineAPIType
    pipe.run()
    pipe._api_type = None
    pipe.schedule_run()
    yield numbers(pipe.outputs())
    pipe._skip_api_check = True
    yield numbers(pipe.run())
    pipe._skip_api_check = False
    pipe._check_api_type(api.SCHEDULED)
    pipe._check_api_type(api.BASIC)


@program
def end_and_reset(dali: Any) -> Iterator[Any]:
    pipe = counting(dali, 3)
    pipe.build()
    pipe._prefetch()
    for _ in range(2):
        try:
            while True:
                yield numbers(pipe.share_outputs())
                pipe.release_outputs()
                pipe.schedule_run()
        except StopIteration:
            yield pipe.empty()
        pipe.reset()
        if pipe.empty():
            pipe.schedule_run()


@program
def attributes(dali: Any) -> Iterator[Any]:
    pipe = files(dali)
    for _ in range(2):
        for name in (
            "_max_batch_size", "_num_threads", "_device_id", "_seed", "_exec_pipelined", "_exec_async",
            "_prefetch_queue_depth", "_py_graph_built", "_built", "_names_and_devices", "_api_type", "_first_iter",
            "_last_iter", "_skip_api_check", "_py_num_workers", "_cpu_queue_size", "_gpu_queue_size",
            "_batches_to_consume", "_enable_memory_stats", "_is_restored_from_checkpoint", "_deserialized",
        ):  # fmt: skip
            value = getattr(pipe, name)
            yield name, getattr(value, "name", value)
        yield pipe._pipe is None, len(pipe._graph_out)
        pipe.run()


@program
def hooks_of_a_pipeline(dali: Any) -> Iterator[Any]:
    calls: list[str] = []

    def hook(name: str) -> Any:
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return getattr(super(Hooked, self), name)(*arguments, **named)

        return call

    class Hooked(dali.Pipeline):  # type: ignore[misc,name-defined]
        def define_graph(self) -> Any:
            calls.append("define_graph")
            return dali.fn.external_source(Counter())

    for name in (
        "iter_setup", "schedule_run", "share_outputs", "release_outputs", "outputs", "reset", "empty", "run",
        "_prefetch", "_run_once", "_outputs",
    ):  # fmt: skip
        setattr(Hooked, name, hook(name))
    first, second = Hooked(2, 1, None), Hooked(2, 1, None)
    steps = (
        first.build, first.run, first.run,
        second.schedule_run, second.outputs, second.schedule_run, second.share_outputs, second.release_outputs,
    )  # fmt: skip
    for step in steps:
        step()
        yield list(calls)
        calls.clear()


# ---------------------------------------------------------------- deserialized pipelines

def _deserialized(name: str, drive: Callable[[Any], Iterator[Any]], **options: Any) -> None:
    def run(dali: Any) -> Iterator[Any]:
        return drive(dali.Pipeline.deserialize(fed(dali, **options).serialize()))

    PROGRAMS[f"deserialized: {name} {options or ''}"] = run


def _one_a_run(pipe: Any) -> Iterator[Any]:
    pipe.build()
    for i in range(3):
        feed(pipe, i)
        yield numbers(pipe.run())


def _fed_before_build(pipe: Any) -> Iterator[Any]:
    feed(pipe, 1)
    yield numbers(pipe.run())


def _inputs(pipe: Any) -> Iterator[Any]:
    for i in range(3):
        yield numbers(pipe.run(A=pair(i), B=pair(-i)))


def _ahead(pipe: Any) -> Iterator[Any]:
    for i in range(4):
        feed(pipe, i)
    for _ in range(4):
        yield numbers(pipe.run())


def _mixed(pipe: Any) -> Iterator[Any]:
    yield numbers(pipe.run(A=pair(0), B=pair(1)))
    pipe.feed_input("A", pair(2))
    yield numbers(pipe.run(B=pair(3)))


def _scheduled(pipe: Any) -> Iterator[Any]:
    for i in range(3):
        feed(pipe, i)
        pipe.schedule_run()
        yield numbers(pipe.share_outputs())
        pipe.release_outputs()


for _depth in (1, 2, 3, 4):
    for _options in ({}, {"exec_async": False, "exec_pipelined": False}, {"exec_dynamic": False}):
        for _drive in (_one_a_run, _inputs, _ahead):
            _deserialized(_drive.__name__, _drive, prefetch_queue_depth=_depth, **_options)
for _drive in (_mixed, _scheduled, _fed_before_build):
    _deserialized(_drive.__name__, _drive)


@program
def fed_and_prefetched(dali: Any) -> Iterator[Any]:
    pipe = fed(dali)
    pipe.build()
    feed(pipe, 1)
    feed(pipe, 2)
    pipe._prefetch()
    yield numbers(pipe.outputs())
    feed(pipe, 3)
    pipe.schedule_run()
    yield numbers(pipe.outputs())
    yield numbers(pipe.outputs())


@program
def run_with_inputs_of_a_new_pipeline(dali: Any) -> Iterator[Any]:
    yield numbers(fed(dali, prefetch_queue_depth=1).run(A=pair(1), B=pair(2)))
    fed(dali).run(A=pair(1), B=pair(2))


@program
def deserialized_from_a_file(dali: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.dali")
        fed(dali).serialize(filename=path)
        yield from _one_a_run(dali.Pipeline.deserialize(filename=path, prefetch_queue_depth=4))


@program
def deserialized_under_an_iterator(dali: Any) -> Iterator[Any]:
    pipe = dali.Pipeline.deserialize(fed(dali).serialize())
    pipe.build()
    for i in range(4):
        feed(pipe, i)
    it = plugin(dali).DALIGenericIterator(pipe, ["a", "b"])
    for _ in range(3):
        yield taken(next(it))


@program
def written_for_triton(dali: Any) -> Iterator[Any]:
    mark = import_module(f"{dali.__name__}.plugin.triton").autoserialize

    @mark
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def first() -> Any:
        return dali.fn.external_source(name="DALI_INPUT_0") + 1

    @mark
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def second() -> Any:
        return dali.fn.external_source(name="DALI_INPUT_0") * 2

    for each in (first, second):
        pipe = dali.Pipeline.deserialize(each().serialize())
        for i in (1, 2):
            yield numbers(pipe.run(DALI_INPUT_0=pair(i)))


# ---------------------------------------------------------------- constants

@program
def doubles_in_arithmetic(dali: Any) -> Iterator[Any]:
    types = dali.types

    def run(make: Callable[[Any], Any]) -> Any:
        pipe = dali.Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            pipe.set_outputs(make(dali.fn.cast(np.array([1, 7]), dtype=types.FLOAT64)))
        (output,) = pipe.run()
        return output.as_array().dtype.name, output.as_array().ravel().tolist()

    yield run(lambda x: x * types.Constant(0.1, dtype=types.FLOAT64))
    yield run(lambda x: types.Constant(1 / 3).float64() + x)
    yield run(lambda x: x - types.Constant(np.float64(0.1)))
    yield run(lambda x: x * types.Constant(np.array([0.1, 1])))
    yield run(lambda x: x * types.Constant(math.pi))
    yield types.Constant(0.1).value
