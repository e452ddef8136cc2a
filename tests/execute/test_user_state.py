"""Operators that read from outside what changes between epochs, or write there: the same in threads and processes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import outside_values as outside
from tests.helpers.inside import executor_of
from tests.helpers.own_process import in_own_process
from torchdali import Pipeline, fn, operator, pipeline_def
from torchdali.calls.decorators import OperatorFunction
from torchdali.declaration.schema import Image
from torchdali.execute import user_state
from torchdali.execute.executor import Executor
from torchdali.execute.user_state import UserState
from torchdali.execute.user_writes import written_name
from torchdali.graph.plan import nodes_of
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs worker processes")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return outside.pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    outside.change(0.0)


# ---------------------------------------------------------------- reading

WAYS: dict[str, dict[str, Any]] = {
    "threads": {"num_processes": 1},
    "the thread of the user": {"num_processes": 1, "exec_async": False},
    "far ahead": {"num_processes": 1, "prefetch_queue_depth": 5},
}
APART: dict[str, dict[str, Any]] = {
    "forked": {"num_processes": 2},
    "forked, far ahead": {"num_processes": 2, "prefetch_queue_depth": 5},
    "started anew": {"num_processes": 2, "py_start_method": "spawn"},
}


def check(found: tuple[list[Any], list[Any], str], unchanged: tuple[list[Any], list[Any], str]) -> None:
    read, rest, _ = found
    for epoch, rows in enumerate(read):
        values = {name: {row[i] for row in rows} for i, name in enumerate(outside.NAMES)}
        assert values == {name: {float(epoch)} for name in outside.NAMES}
    assert rest == unchanged[1]


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_an_epoch_sees_the_values_at_its_beginning(root: str, options: dict[str, Any]) -> None:
    check(outside.epochs(root, **options), outside.epochs(root, changes=False, num_processes=1))


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), APART.items(), ids=APART)
def test_so_does_it_in_processes(root: str, name: str, options: dict[str, Any]) -> None:
    arguments = ", ".join(f"{k}={v!r}" for k, v in options.items())
    found = in_own_process("tests.helpers.outside_values", f"epochs({root!r}, {arguments})")
    assert f"2 worker processes, {name.partition(',')[0]}" in found[2]
    check(found, outside.epochs(root, changes=False, num_processes=1))


@linux
@pytest.mark.slow
def test_a_process_that_is_replaced_learns_what_has_changed(root: str) -> None:
    assert in_own_process("tests.helpers.outside_values", f"after_replacement({root!r})") == ([3.0], 0)


@linux
@pytest.mark.slow
def test_what_cannot_be_sent_is_warned_of_once(root: str) -> None:
    texts = in_own_process("tests.helpers.outside_values", f"warnings_of_what_cannot_be_sent({root!r})")
    (text,) = texts
    assert text.startswith("operator '_outside' reads the global 'LATER' of tests.helpers.outside_values, which has")
    assert "cannot pickle" in text and "num_processes=1" in text


@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_iterators_deliver_the_same_samples(root: str, policy: LastBatchPolicy) -> None:
    @pipeline_def(batch_size=7, num_threads=2, device_id=None, seed=1)
    def define() -> Any:
        data, _ = fn.readers.file(file_root=root, random_shuffle=True, name="Reader", pad_last_batch=True)
        return outside.adds_outside(fn.decoders.image(data), given=outside.GIVEN), fn.random.uniform(range=[0.0, 1.0])

    def run(changes: bool) -> tuple[list[Any], list[Any]]:
        outside.change(0.0)
        names = ["read", "number"]
        iterator = DALIGenericIterator(define(), names, reader_name="Reader", auto_reset=True, last_batch_policy=policy)
        read, numbers = [], []
        for epoch in range(3):
            outside.change(float(epoch * changes))
            for ((batch),) in iterator:
                read.append(sorted({epoch, *batch["read"].flatten().tolist()}))
                numbers.append(batch["number"].tolist())
        return read, numbers

    changed, unchanged = run(True), run(False)
    assert all(len(values) == 1 for values in changed[0])
    assert len(changed[0]) >= 9
    assert changed[1] == unchanged[1]


def test_the_place_and_the_numbers_of_batches_stay(root: str, tmp_path: Path) -> None:
    broken = tmp_path / "0"
    broken.mkdir()
    for i, path in enumerate(sorted(Path(root).rglob("*.png"))):
        (broken / path.name).write_bytes(b"no picture" if i == 3 else path.read_bytes())

    def run(changes: bool) -> tuple[Any, Any]:
        outside.change(0.0)
        pipe = outside.define(str(tmp_path), num_processes=1, bad_samples="skip")
        for epoch in range(3):
            outside.change(float(epoch * changes))
            for _ in range(6):
                pipe.run()
        report = sorted((bad.batch, bad.sample) for bad in pipe.bad_sample_report())
        return pipe.state_dict(), [entry for entry in report if entry[0] < 18]

    assert run(True) == run(False)
    assert len(run(True)[1]) == 3


@pytest.mark.parametrize("at", range(4))
def test_an_interrupt_loses_no_batch(root: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(changes: bool) -> list[Any]:
        outside.change(0.0)
        pipe = outside.define(root, num_processes=1, prefetch_queue_depth=3)
        found = [pipe.run() for _ in range(6)]
        outside.change(float(changes))
        with monkeypatch.context() as patch:
            calls, schedule = itertools.count(), Executor._schedule

            def interrupted(executor: Executor, *arguments: Any) -> None:
                if next(calls) == at:
                    raise KeyboardInterrupt
                schedule(executor, *arguments)

            if changes:  # the first call is that of `run`, the others make the batches in flight again
                patch.setattr(Executor, "_schedule", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    pipe.run()
        found += [pipe.run() for _ in range(6)]
        assert float(found[6][0].at(0)[0]) == changes
        return [numbers.as_array().tolist() for _, _, numbers, _ in found]

    assert run(True) == run(False)


def test_functions_with_side_effects_are_not_called_again(root: str) -> None:
    calls = []

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=1)
    def define() -> Any:
        image = fn.decoders.image(fn.readers.file(file_root=root)[0])
        return fn.python_function(outside.adds_outside(image, given=outside.GIVEN), function=lambda x: calls.append(1) or x)

    outside.change(0.0)
    pipe = define()
    for epoch in range(3):
        outside.change(float(epoch))
        for _ in range(6):
            pipe.run()
    pipe.close()
    assert len(calls) <= 4 * (18 + pipe.prefetch_depth)


LARGE = np.zeros(1 << 20)


@operator(name="_reads_large")
def _reads_large(image: Image, /) -> Image:
    """Read a large array."""
    return torch.tensor([float(LARGE[0])])


def test_of_what_is_large_only_the_binding_counts(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, num_processes=1)
    def define() -> Any:
        return _reads_large(fn.decoders.image(fn.readers.file(file_root=root)[0]))

    pipe = define()
    pipe.build()
    state = UserState(nodes_of(executor_of(pipe).plan.stages))
    assert LARGE.nbytes > user_state._LARGEST
    LARGE[1] = 1.0
    assert state.look(thorough=True) == 0
    monkeypatch.setitem(globals(), "LARGE", LARGE.copy())
    assert (state.look(), state.look(thorough=True)) == (1, 1)
    assert [title for title, _, _ in state.since(0).values] == [f"the global 'LARGE' of {__name__}"]
    monkeypatch.setitem(globals(), "LARGE", np.arange(3.0))
    assert state.look() == 2
    LARGE[1] = 7.0
    assert (state.look(), state.look()) == (3, 3)


# ---------------------------------------------------------------- writing

COUNT, SEEN, COUNTS, REMEMBERED = 0, [], {"calls": 0}, {}


def binds(x: Any) -> Any:
    global COUNT
    COUNT = COUNT + 1
    return x


def adds(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x


def appends(x: Any) -> Any:
    SEEN.append(1)
    return x


def adds_to_an_entry(x: Any) -> Any:
    COUNTS["calls"] += 1
    return x


def sets_an_attribute(x: Any) -> Any:
    outside.SETTINGS.calls = 1
    return x


def sets_an_attribute_of_its_own(x: Any) -> Any:
    sets_an_attribute_of_its_own.calls = 1  # type: ignore[attr-defined]
    return x


def inside(x: Any) -> Any:
    def inner() -> None:
        SEEN.append(2)

    inner()
    return x


def outer() -> tuple[Callable[..., Any], Callable[..., Any]]:
    count, seen = 0, set[int]()

    def counts(x: Any) -> Any:
        nonlocal count
        count += 1
        return x

    def collects(x: Any) -> Any:
        seen.add(1)
        return x

    return counts, collects


counts_outside, collects = outer()


def remembers(x: Any) -> Any:
    if len(x) not in REMEMBERED:
        REMEMBERED[len(x)] = x
    return REMEMBERED[len(x)]


def own_list(x: Any) -> Any:
    found = []
    found.append(x)
    found[0] += 1
    return found[0]


def own_count(x: Any) -> Any:
    count = 0

    def inner() -> None:
        nonlocal count
        count += 1

    inner()
    return x


def of_argument(x: Any, seen: Any = ()) -> Any:
    seen.add(x)
    x.names = 1
    return x


def reads(x: Any) -> Any:
    return x + COUNT + len(SEEN) + torch.add(x, x)


WRITES: dict[Any, str] = {
    binds: "COUNT", adds: "COUNT", appends: "SEEN", adds_to_an_entry: "COUNTS", sets_an_attribute: "outside",
    sets_an_attribute_of_its_own: "sets_an_attribute_of_its_own", inside: "SEEN", counts_outside: "count",
    collects: "seen", remembers: "", own_list: "", own_count: "", of_argument: "", reads: "",
}  # fmt: skip


@pytest.mark.parametrize(("function", "name"), WRITES.items(), ids=[f.__name__ for f in WRITES])
def test_writing(function: FunctionType, name: str) -> None:
    assert written_name([function]) == name


@operator(name="_writes")
def _writes(image: Image, /) -> Image:
    """Count the calls."""
    return appends(image)


@operator(name="_remembers")
def _remembers(image: Image, /) -> Image:
    """Remember the first image of each height."""
    return remembers(image)


@linux
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_writes, "operator '_writes' writes to 'SEEN', which is outside of it"),
        pytest.param(_remembers, "", marks=pytest.mark.slow),
    ],
)
def test_operators_that_write_stay(root: str, function: OperatorFunction[..., Any], words: str) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=2)
    def define() -> Any:
        return function(fn.decoders.image(fn.readers.file(file_root=root)[0]))

    pipe: Pipeline = define()
    assert (f"one process: {words}" in pipe.explain()) == bool(words)
    pipe.close()
