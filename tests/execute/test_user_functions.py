"""User functions: where they run, and which values of the program they read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import outside_values as outside
from tests.helpers.inside import executor_of
from tests.helpers.own_process import in_own_process
from torchdali import Pipeline, WeightedReader, fn, operator, pipeline_def
from torchdali.declaration.schema import Image
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy, as_operator

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs worker processes")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return outside.write_images(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    outside.change(0.0)


# ---------------------------------------------------------------- values that change

THREADS: dict[str, dict[str, Any]] = {
    "threads": {},
    "the user's thread": {"exec_async": False},
    "the user's thread, far ahead": {"exec_async": False, "prefetch_queue_depth": 5},
    "far ahead": {"prefetch_queue_depth": 5},
    "further than an epoch": {"prefetch_queue_depth": 15},
    "shared": {"is_pure": True, "prefetch_queue_depth": 5},
}
PROCESSES: dict[str, dict[str, Any]] = {
    "forked": {},
    "forked, far ahead": {"prefetch_queue_depth": 5},
    "spawned": {"py_start_method": "spawn"},
}


@pytest.mark.parametrize("options", THREADS.values(), ids=THREADS)
def test_an_epoch_reads_the_values_at_its_start(root: str, options: dict[str, Any]) -> None:
    read, rest, _ = outside.epochs(root, num_processes=1, **options)
    assert read == [[0.0], [1.0], [2.0]]
    assert rest == outside.epochs(root, changes=False, num_processes=1)[1]


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), PROCESSES.items(), ids=PROCESSES)
def test_an_epoch_in_processes_reads_the_values_at_its_start(root: str, name: str, options: dict[str, Any]) -> None:
    arguments = ", ".join(f"{k}={v!r}" for k, v in options.items())
    call = f"epochs({root!r}, is_pure=True, num_processes=2, {arguments})"
    read, rest, placing = in_own_process("tests.helpers.outside_values", call)
    assert f"2 worker processes, {name.partition(',')[0]}" in placing
    assert read == [[0.0], [1.0], [2.0]]
    assert rest == outside.epochs(root, changes=False, num_processes=1)[1]


@pytest.mark.parametrize(
    ("policy", "padded"),
    [*((policy, True) for policy in LastBatchPolicy), (LastBatchPolicy.FILL, False)],  # whose epochs are the reader's
)
def test_iterators_deliver_the_same_samples(root: str, policy: LastBatchPolicy, padded: bool) -> None:
    @pipeline_def(batch_size=7, num_threads=2, device_id=None, seed=1)
    def define() -> Any:
        data, _ = fn.readers.file(file_root=root, random_shuffle=True, name="Reader", pad_last_batch=padded)
        return outside.reads_global(fn.decoders.image(data)), fn.random.uniform(range=[0.0, 1.0])

    def run(changes: bool) -> tuple[list[Any], list[Any]]:
        outside.change(0.0)
        names = ["read", "number"]
        iterator = DALIGenericIterator(define(), names, reader_name="Reader", auto_reset=True, last_batch_policy=policy)
        read, numbers = [], []
        for epoch in range(4):
            outside.change(float(epoch * changes))
            for ((batch),) in iterator:
                read.append({float(epoch), *batch["read"].flatten().tolist()})
                numbers.append(batch["number"].tolist())
        return read, numbers

    changed, unchanged = run(True), run(False)
    assert all(len(values) == 1 for values in changed[0])
    assert len(changed[0]) >= 12
    assert changed[1] == unchanged[1]


def test_position_and_statistics_do_not_depend_on_changed_values(root: str, tmp_path: Path) -> None:
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


@linux
@pytest.mark.slow
def test_a_shared_global_is_inherited_and_a_second_copy_of_it_is_an_error(root: str) -> None:
    found, placing = in_own_process("tests.helpers.outside_values", f"read_from_global({root!r})")
    assert (found, "forked" in placing) == ("2.0", True)
    found, placing = in_own_process(
        "tests.helpers.outside_values", f"read_from_global({root!r}, py_start_method='spawn')"
    )
    assert "spawned" in placing
    assert "pass it to the operator as an argument" in found


# ----------------------------------------------------------------------- devices


@operator(name="_pure", pure=True)
def _pure(image: Image, /) -> Image:
    return 255 - image


@operator(name="_impure")
def _impure(image: Image, /) -> Image:
    return 255 - image


def negative(image: Any) -> Any:
    return 255 - image


def images(root: str) -> Any:
    return fn.decoders.image(fn.readers.file(file_root=root)[0])


def of_dataset(pure: bool) -> Callable[[str], Any]:
    def make(root: str) -> Any:
        numbers, values = fn.readers.dataset(dataset=outside.Counted(), pure=pure)
        return numbers, values

    return make


PLACED: dict[str, tuple[Callable[[str], Any], str]] = {
    "ours": (images, ""),
    "an operator": (lambda root: _impure(images(root)), "_impure"),
    "a pure operator": (lambda root: _pure(images(root)), ""),
    "a transform": (lambda root: as_operator(negative)(images(root)), "_negative_"),
    "a pure transform": (lambda root: as_operator(negative, pure=True)(images(root)), ""),
    "a function": (
        lambda root: fn.resize(fn.python_function(images(root), function=negative), size=[5, 6]), "python_function",
    ),
    "a pure function": (
        lambda root: fn.resize(fn.python_function(images(root), function=negative, pure=True), size=[5, 6]), "",
    ),
    "a pure function of tensors": (
        lambda root: fn.resize(fn.torch_python_function(images(root), function=negative, pure=True), size=[5, 6]), "",
    ),
    "a dataset": (of_dataset(False), "readers.dataset"),
    "a pure dataset": (of_dataset(True), ""),
    "a mixture": (
        lambda root: fn.readers.mixture(sources=[WeightedReader(fn.readers.dataset, proportion=1, dataset=[np.zeros(9)] * 8)]),
        "readers.mixture",
    ),
    "cached": (lambda root: fn.flip(fn.cache(_impure(images(root)), bytes=1 << 20)), "_cached"),
    "cached, pure": (lambda root: fn.flip(fn.cache(_pure(images(root)), bytes=1 << 20)), ""),
}  # fmt: skip


def stays(name: str, root: str) -> tuple[str, list[list[Any]]]:
    """Return where a pipeline of `PLACED` runs, and its outputs."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=2)
    def define() -> Any:
        return PLACED[name][0](root)

    pipe: Pipeline = define()
    outputs = [[s.flatten().tolist() for s in each.samples()] for _ in range(3) for each in pipe.run()]
    text = pipe.explain()
    pipe.close()
    return text, outputs


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", PLACED)
def test_functions_run_in_worker_processes_if_they_are_declared_pure(name: str, root: str) -> None:
    text, outputs = in_own_process("tests.execute.test_user_functions", f"stays({name!r}, {root!r})")
    operator_name = PLACED[name][1]
    if operator_name.endswith("function"):  # stages before it contain no user code
        assert "2 worker processes" in text
        assert f"stages from 1 on run in this process: operator {operator_name!r} runs your own code" in text
    elif operator_name:
        assert f"one process: operator '{operator_name}" in text
        assert "runs your own code, which isn't declared with pure=True" in text
    else:
        assert "2 worker processes" in text and "run in this process" not in text
    alone = pipeline_def(batch_size=4, num_threads=1, device_id=None, num_processes=1)(PLACED[name][0])(root)
    assert outputs == [[s.flatten().tolist() for s in each.samples()] for _ in range(3) for each in alone.run()]


def draws() -> np.ndarray[Any, Any]:
    return np.array([np.random.random(), torch.rand(()).item()])


def random_functions(root: str, processes: int) -> tuple[str, list[Any]]:
    """Return random numbers that a pure function draws in processes."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1, num_processes=processes)
    def define() -> Any:
        return fn.python_function(images(root), function=lambda image: draws(), pure=True)

    pipe: Pipeline = define()
    outputs = [s.tolist() for _ in range(8) for s in pipe.run()[0].samples()]
    placing = str(executor_of(pipe).placement)
    pipe.close()
    return placing, outputs


@linux
@pytest.mark.slow
def test_random_numbers_of_a_pure_function_do_not_depend_on_the_number_of_processes(root: str) -> None:
    found = [
        in_own_process("tests.execute.test_user_functions", f"random_functions({root!r}, {processes})")
        for processes in (2, 3)
    ]
    assert "2 worker processes" in found[0][0] and "3 worker processes" in found[1][0]
    assert found[0][1] == found[1][1]
    assert len({tuple(numbers) for numbers in found[0][1]}) == 32
