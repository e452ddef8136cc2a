"""`external_source` without a source: feeding, by all names and in all forms; and the class."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.garbage import released
from tests.helpers.sources import batch, batches, pipeline, run, source, values
from torchdali import Pipeline, fn, ops, types

B0, B1, B2 = batches(3)
b0, b1, b2, b3 = ([i] * 3 for i in range(4))
STOP = "stop"


def fed(depth: int = 1, **arguments: Any) -> Any:
    return pipeline(source(name="in", **arguments), prefetch_queue_depth=depth)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_one_feed_for_every_run(depth) -> None:
    pipe = fed(depth)
    assert pipe.input_feed_count("in") == depth
    for i in range(depth):
        pipe.feed_input("in", batch(i))
    found = []
    for i in range(5):
        found.append(run(pipe))
        pipe.feed_input("in", batch(depth + i))
    assert found == [[i] * 3 for i in range(5)]


def test_fed_batches_are_queued() -> None:
    pipe = fed(2)
    for i in range(4):
        pipe.feed_input("in", batch(i))
    assert [run(pipe) for _ in range(6)] == [b0, b1, b2, b3, "IndexError", "IndexError"]


def test_data_fed_after_a_run_is_used_by_the_next() -> None:
    pipe = fed(2)
    pipe.feed_input("in", B0)
    pipe.schedule_run()  # two batches, and data for one
    pipe.feed_input("in", B1)
    assert values(pipe.outputs()) == b0
    with pytest.raises(IndexError):
        pipe.outputs()
    pipe.schedule_run()
    assert values(pipe.outputs()) == b1


def test_repeat_last() -> None:
    pipe = fed(repeat_last=True)
    assert run(pipe) == "IndexError"
    pipe.feed_input("in", B0)
    assert [run(pipe) for _ in range(3)] == [b0] * 3
    pipe.feed_input("in", B1)
    assert [run(pipe) for _ in range(2)] == [b1] * 2


def test_blocking_waits() -> None:
    pipe = fed(2, blocking=True)
    pipe.schedule_run()
    feeder = threading.Thread(target=lambda: [pipe.feed_input("in", batch(i)) for i in range(2)])
    feeder.start()
    assert [values(pipe.outputs()) for _ in range(2)] == [b0, b1]
    feeder.join()


def test_closing_ends_a_blocking_wait() -> None:
    pipe = fed(blocking=True)
    pipe.schedule_run()
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.outputs()


def test_a_waiting_pipeline_can_be_dropped() -> None:
    pipe = fed(blocking=True)
    pipe.schedule_run()
    gone = weakref.ref(pipe)
    del pipe
    assert released(lambda: gone() is None)


def test_feed_by_name_node_and_operator() -> None:
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    operator = ops.ExternalSource()
    with pipe:
        nodes = [fn.external_source(name="a"), fn.external_source(), operator()]
        pipe.set_outputs(*nodes)
    pipe.feed_input("a", B0)
    pipe.feed_input(nodes[1], B1)
    pipe.feed_input(operator, B2)
    assert run(pipe) == [b0, b1, b2]


def test_feed_errors() -> None:
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        unused = fn.external_source(name="unused")
        own = fn.external_source(lambda: B0, name="own")
        constant = fn.constant(idata=[1], shape=[1], name="constant")
        pipe.set_outputs(own, constant, fn.external_source(name="in"))
    for unknown in ("unknown", "constant", constant, "unused", unused):
        with pytest.raises(KeyError):
            pipe.feed_input(unknown, B0)
    with pytest.raises(KeyError):
        pipe.input_feed_count("unknown")
    with pytest.raises(TypeError):
        pipe.feed_input(3, B0)
    for source_of_its_own in ("own", own):
        with pytest.raises(RuntimeError, match="source"):
            pipe.feed_input(source_of_its_own, B0)
    for wrong in ("text", None, batch(0, 4), [np.zeros(2, "U2")]):
        with pytest.raises(RuntimeError):
            pipe.feed_input("in", wrong)
    pipe.feed_input("in", B1)
    assert run(pipe)[2] == b1


LAYOUTS: list[tuple[str | None, str | None, Any]] = [
    (None, None, ""),
    (None, "HW", "HW"),
    ("AB", None, "AB"),
    ("AB", "AB", "AB"),
    ("AB", "HW", RuntimeError),
]


@pytest.mark.parametrize(("declared", "given", "expected"), LAYOUTS)
def test_layouts_of_fed_data(declared, given, expected) -> None:
    pipe = fed(layout=declared)
    pipe.feed_input("in", [np.zeros((2, 2))], layout=given)
    if isinstance(expected, str):
        assert pipe.run()[0].layout() == expected
    else:
        with pytest.raises(expected):
            pipe.run()


@pytest.mark.parametrize("no_copy", [None, False, True])
def test_fed_memory(no_copy) -> None:
    pipe = fed(no_copy=no_copy)
    data = np.array([[1], [2]])
    pipe.feed_input("in", data)
    data[0] = 99
    assert run(pipe) == [[99] if no_copy else [1], [2]]


@pytest.mark.parametrize("arguments", [{"prefetch_queue_depth": 1}, {"exec_pipelined": False}])
def test_inputs_of_run(arguments) -> None:
    pipe = pipeline(source(name="in"), **arguments)
    assert values(pipe.run(**{"in": B0})) == b0
    assert values(pipe.run(**{"in": B1})) == b1
    with pytest.raises(KeyError):
        pipe.run(other=B0)
    with pytest.raises(IndexError):
        pipe.run()


def test_inputs_of_run_need_one_batch_in_flight() -> None:
    with pytest.raises(RuntimeError, match=r"`prefetch_queue_depth`.*to 1"):
        pipeline(source(name="in")).run(**{"in": B0})


class Subclass(Pipeline):
    """Pipelines in the form before `pipeline_def`."""

    def __init__(self, depth: int, last: int) -> None:
        super().__init__(2, 1, None, prefetch_queue_depth=depth)
        self.input = ops.ExternalSource()
        self.number, self.last = 0, last

    def define_graph(self) -> Any:
        self.images = self.input()
        return self.images

    def iter_setup(self) -> None:
        if self.number == self.last:
            raise StopIteration
        self.feed_input(self.images, batch(self.number, 2))
        self.number += 1


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_iter_setup(depth) -> None:
    """Fed batches are delivered before the end."""
    pipe = Subclass(depth, last=3)
    found = []
    for _ in range(2):
        found.append([run(pipe) for _ in range(5)])
        pipe.reset()
        pipe.number = 0
    assert found == [[[0, 0], [1, 1], [2, 2], STOP, STOP]] * 2


# ---------------------------------------------------------------- the class


def used(make: Callable[[], Any], runs: int = 1) -> list[Any]:
    pipe = pipeline(lambda dali: make())
    return [run(pipe) for _ in range(runs)]


CLASSES: list[tuple[str, Callable[[], Any], Any]] = [
    ("source before", lambda: ops.ExternalSource(source=lambda: B1)(), b1),
    ("by position", lambda: ops.ExternalSource(lambda i: (B1, B2), 2)(), [b1, b2]),
    ("source at the call", lambda: ops.ExternalSource()(source=lambda: B1), b1),
    ("outputs before", lambda: ops.ExternalSource(num_outputs=1)(source=lambda i: [B1]), b1),
    (
        "samples",
        lambda: ops.ExternalSource(lambda i: np.int32(i.idx_in_epoch), batch=False)(),
        [0, 1, 2],
    ),
    (
        "samples at the call",
        lambda: ops.ExternalSource(lambda i: np.int32(i.idx_in_epoch))(batch=False),
        [0, 1, 2],
    ),
    ("checks at the call", lambda: ops.ExternalSource(lambda: B1)(dtype=types.INT32, ndim=0), b1),
    ("a name of the call", lambda: ops.ExternalSource(lambda: B1, name="a")(name="b"), b1),
]


@pytest.mark.parametrize(
    ("make", "expected"), [c[1:] for c in CLASSES], ids=[c[0] for c in CLASSES]
)
def test_class(make, expected) -> None:
    assert used(make) == [expected]


def test_class_cycles_and_is_used_twice() -> None:
    cycling = ops.ExternalSource([B1, B2], cycle=True)
    assert used(cycling, 3) == [b1, b2, b1]
    numbered = ops.ExternalSource(lambda i: batch(i))
    assert used(lambda: [numbered(), numbered()], 2) == [[b0, b0], [b1, b1]]


WRONG_CLASSES: list[tuple[str, Callable[[], Any], type[Exception]]] = [
    ("source twice", lambda: ops.ExternalSource(lambda: B0)(source=lambda: B1), RuntimeError),
    ("layout twice", lambda: ops.ExternalSource(lambda: B0, layout="H")(layout="W"), RuntimeError),
    ("batch twice", lambda: ops.ExternalSource(lambda: B0, batch=True)(batch=False), ValueError),
    ("cycle apart", lambda: ops.ExternalSource([B0])(cycle=True), ValueError),
    ("an input", lambda: ops.ExternalSource(lambda: B0)(3), TypeError),
    ("outputs at the call", lambda: ops.ExternalSource(lambda: B0)(num_outputs=1), KeyError),
    ("unknown", lambda: ops.ExternalSource(lambda: B0, color=3), ValueError),
    ("named outputs", lambda: ops.ExternalSource(lambda: B0, 2, name="x"), ValueError),
]


@pytest.mark.parametrize(
    ("make", "error"), [c[1:] for c in WRONG_CLASSES], ids=[c[0] for c in WRONG_CLASSES]
)
def test_wrong_classes(make, error) -> None:
    with pytest.raises(error):
        make()


def test_module() -> None:
    from torchdali import external_source as module

    assert module.external_source is fn.external_source
    assert module.ExternalSource is ops.ExternalSource
