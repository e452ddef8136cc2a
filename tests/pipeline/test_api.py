"""The parts of the Pipeline API that need no DALI to compare with: threads, processes, statistics, plugins."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import queue
import re
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

import torchdali
from torchdali import (
    OperatorConcurrency,
    Pipeline,
    StreamPolicy,
    backend,
    dynamic,
    fn,
    operator,
    ops,
    pipeline_def,
    plugin_manager,
    types,
)
from torchdali.pipeline import experimental
from torchdali.pipeline._options import Option, PipelineOptions
from torchdali.schema import Data
from torchdali.tensors import TensorList
from torchdali.tensors.buffer_pool import BufferPool

seen: list[Any] = []


@operator(name="_test_note", over="batch", hidden=True)
def note(value: Data, /, *, what: Callable[[], Any]) -> Data:
    """Note something on the thread that runs the step."""
    seen.append(what())
    return value


@operator(name="_test_note_sample", hidden=True)
def note_sample(value: Data, /, *, what: Callable[[], Any]) -> Data:
    """Note something on a worker thread."""
    seen.append(what())
    return value.clone()


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


def counting(
    source: Callable[[int], Any] | None = None, background: bool = False, **arguments: Any
) -> Pipeline:
    """A pipeline whose batches are numbered."""
    numbered = source or (lambda i: [np.array(i)] * 2)
    pipe = Pipeline(**{"batch_size": 2, "num_threads": 2, "device_id": None, **arguments})
    with pipe:
        found = fn.external_source(source=numbered, name="source", background=background)
        pipe.set_outputs(found)
    return pipe


def number(outputs: tuple[TensorList, ...]) -> int:
    return int(outputs[0].at(0))


# ---------------------------------------------------------------- names


def test_the_public_names() -> None:
    for name in torchdali.__all__:
        assert getattr(torchdali, name) is not None
    for name in torchdali.pipeline.__all__:
        assert getattr(torchdali.pipeline, name) is not None
    for name in backend.__all__:
        assert getattr(backend, name) is not None
    assert torchdali.data_node.DataNode is torchdali.DataNode
    assert torchdali.types.StreamPolicy is StreamPolicy
    assert torchdali.types.OperatorConcurrency is OperatorConcurrency
    with pytest.raises(AttributeError, match="nonsense"):
        torchdali.nonsense  # noqa: B018


def test_the_experimental_pipeline_def() -> None:
    @experimental.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe():
        return fn.constant(idata=[3])

    assert pipe().run()[0].as_array().tolist() == [[3], [3]]


def test_errors_in_a_pipeline_function_leave_no_pipeline_current() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert Pipeline.current() is None
    with pytest.raises(RuntimeError, match="no pipeline is being defined"):
        Pipeline.pop_current()


def test_each_thread_defines_its_own_pipeline() -> None:
    found: list[Any] = []
    with Pipeline(2, 1, None):
        thread = threading.Thread(target=lambda: found.append(Pipeline.current()))
        thread.start()
        thread.join()
    assert found == [None]


# ---------------------------------------------------------------- sinks


def test_a_sink_runs_though_no_output_needs_it() -> None:
    pipe = Pipeline(2, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.add_sink(note(fn.constant(idata=[1]), what=lambda: "ran"))
        note(fn.constant(idata=[1]), what=lambda: "pruned")
        pipe.set_outputs(fn.constant(idata=[2]))
    pipe.run()
    pipe.close()
    assert seen == ["ran"]


@pytest.mark.parametrize("edge", [5, None, "name"])
def test_a_sink_is_an_edge(edge) -> None:
    with pytest.raises(TypeError, match="sink"):
        Pipeline(2, 1, None).add_sink(edge)


# ---------------------------------------------------------------- synchronous running


@pytest.mark.parametrize("setting", ["exec_async", "exec_pipelined"])
def test_without_asynchrony_steps_run_on_the_callers_thread(setting) -> None:
    me = threading.get_ident()

    def here() -> bool:
        return threading.get_ident() == me

    def source(i: int) -> Any:
        seen.append(here())
        return [np.array(i)] * 2

    pipe = Pipeline(2, 2, None, prefetch_queue_depth=2, **{setting: False})
    with pipe:
        first = note(fn.external_source(source=source), what=here)
        middle = note_sample(fn.decoders.image(_pictures()), what=lambda: True)
        second = note(middle, what=here)
        pipe.set_outputs(first, second)
    pipe.schedule_run()
    count = len(seen)
    assert count and all(seen), "everything is done when schedule_run returns"
    assert number(pipe.outputs()) == 0
    assert len(seen) == count
    pipe.close()


def _pictures() -> Any:
    """Encoded images, so that a chain runs between the steps."""
    data = np.frombuffer(b"P5\n2 1\n255\n\x01\x02", np.uint8)
    return fn.external_source(source=lambda: [data] * 2)


def test_asynchronous_steps_run_on_other_threads() -> None:
    me = threading.get_ident()
    pipe = Pipeline(2, 2, None)
    with pipe:
        pipe.set_outputs(note(fn.constant(idata=[1]), what=lambda: threading.get_ident() == me))
    pipe.run()
    pipe.close()
    assert seen and not any(seen)


def test_errors_of_a_synchronous_pipeline_come_with_their_batch() -> None:
    calls = iter(range(9))

    def source(i: int) -> Any:
        if (call := next(calls)) == 1:
            raise ZeroDivisionError("source")
        return [np.array(call)] * 2

    pipe = counting(source, exec_async=False, exec_pipelined=False)
    pipe.schedule_run()
    assert number(pipe.outputs()) == 0
    pipe.schedule_run()
    with pytest.raises(ZeroDivisionError):
        pipe.outputs()
    pipe.schedule_run()
    assert number(pipe.outputs()) == 2
    pipe.close()


# ---------------------------------------------------------------- threads and processes


def test_two_threads_cannot_take_a_batch_at_once() -> None:
    go = threading.Event()

    def source(i: int) -> Any:
        assert go.wait(30)
        return [np.array(i)] * 2

    pipe = counting(source, prefetch_queue_depth=1, background=True)
    pipe.schedule_run()
    found: queue.Queue[Any] = queue.Queue()

    def take() -> None:
        try:
            found.put(number(pipe.share_outputs()))
        except Exception as error:
            found.put(error)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    refused = found.get(timeout=30)  # the other one waits for the source
    assert isinstance(refused, RuntimeError) and "another thread" in str(refused)
    go.set()
    assert found.get(timeout=30) == 0
    for thread in threads:
        thread.join()
    pipe.close()


@pytest.mark.parametrize("options", [{"prefetch_queue_depth": 4097}, {"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 10**6}}, {"num_threads": 4097}])
def test_options_that_would_take_all_memory(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} is .*at most 4096"):
        Pipeline(**{"batch_size": 1, "num_threads": 1, "device_id": None} | options)


@pytest.mark.parametrize("name", ["num_processes", "py_num_workers"])
def test_numbers_of_processes_have_a_limit(name):
    with pytest.raises(ValueError, match=f"{name} is 1025; at most 1024 are allowed"):
        Pipeline(batch_size=2, num_threads=1, device_id=None, **{name: 1025})


def test_one_thread_may_schedule_and_another_take() -> None:
    pipe = counting(prefetch_queue_depth=3)
    taken: list[int] = []
    scheduled = threading.Semaphore(0)

    def take() -> None:
        for _ in range(20):
            assert scheduled.acquire(timeout=30)
            taken.append(number(pipe.outputs()))

    thread = threading.Thread(target=take)
    thread.start()
    pipe.schedule_run()
    for _ in range(20):
        pipe.schedule_run()
        scheduled.release()
    thread.join()
    pipe.close()
    assert taken == list(range(20))


def in_child(run: Callable[[], Any]) -> str:
    """Run in a forked process; return what it printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(run())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_gets_an_error_and_not_a_hang() -> None:
    pipe = counting()
    pipe.enable_api_check(False)
    assert number(pipe.run()) == 0
    place = pipe.state_dict()
    for call in (pipe.run, pipe.schedule_run, pipe.outputs, lambda: pipe.load_state_dict(place)):
        assert "built in process" in in_child(call)
    assert in_child(pipe.close) == "None"
    assert number(pipe.run()) == 1, "the parent's pipeline works on"
    pipe.close()
    assert in_child(lambda: number(counting().run())) == "0", "a pipeline of its own is fine"


def test_a_closed_pipeline_says_so() -> None:
    pipe = counting()
    pipe.run()
    pipe.close()
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.run()


# ---------------------------------------------------------------- affinity

linux = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind threads to cores"
)


def cores_of_workers(**arguments: Any) -> set[frozenset[int]]:
    """The cores that worker threads may use while they work on samples."""
    gate = threading.Barrier(2)

    def where() -> frozenset[int]:
        gate.wait(30)  # so that both threads take part
        return frozenset(os.sched_getaffinity(0))

    pipe = Pipeline(2, 2, None, prefetch_queue_depth=1, **arguments)
    with pipe:
        pipe.set_outputs(note_sample(fn.decoders.image(_pictures()), what=where))
    pipe.run()
    pipe.close()
    return set(seen)


@linux
def test_worker_threads_are_bound_to_the_cores_of_the_mask(monkeypatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("DALI_AFFINITY_MASK", f"{cores[0]},{cores[-1]}")
    assert cores_of_workers(set_affinity=True) == {frozenset([cores[0]]), frozenset([cores[-1]])}
    assert sorted(os.sched_getaffinity(0)) == cores, "the caller stays free"


@linux
def test_threads_beyond_the_mask_stay_free(monkeypatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("DALI_AFFINITY_MASK", str(cores[0]))
    assert cores_of_workers(set_affinity=True) == {frozenset([cores[0]]), frozenset(cores)}


@linux
@pytest.mark.parametrize("bound", [True, False])
def test_without_mask_or_gpu_nothing_is_bound(monkeypatch, bound) -> None:
    if bound:
        monkeypatch.delenv("DALI_AFFINITY_MASK", raising=False)
    else:
        monkeypatch.setenv("DALI_AFFINITY_MASK", str(min(os.sched_getaffinity(0))))
    assert cores_of_workers(set_affinity=bound) == {frozenset(os.sched_getaffinity(0))}


@linux
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [("a,b", ValueError, "core numbers"), ("0,99999", RuntimeError, "99999")],
)
def test_wrong_masks(monkeypatch, mask, error, message) -> None:
    monkeypatch.setenv("DALI_AFFINITY_MASK", mask)
    with pytest.raises(error, match=message):
        counting(set_affinity=True).build()


# ---------------------------------------------------------------- outputs and statistics


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"output_dtype": types.FLOAT}, r"Data type in the output_idx=0 .*Expected: FLOAT. Received: INT64"),
        ({"output_ndim": [2]}, r"Number of dim.*output_idx=0 .*Expected: 2. Received: 0"),
        ({"output_layout": "HW"}, r"Layout in the output_idx=0 .*Expected: HW. Received: \."),
        ({"output_ndim": [0, 0]}, r"Lengths of .*\[0, 0\].*1 outputs do not match"),
    ],
    ids=str,
)
def test_declared_outputs_say_what_differs(declared, message) -> None:
    pipe = counting(**declared)
    with pytest.raises(RuntimeError, match=message):
        pipe.run()
    pipe.close()


def test_what_is_not_as_declared_does_not_stop_the_pipeline() -> None:
    kinds = [np.int64(1), np.int64(2)]
    pipe = counting(lambda i: [np.array([[i]])] * 2 if i == 1 else [kinds[0]] * 2, output_ndim=0)
    pipe.run()
    with pytest.raises(RuntimeError):
        pipe.run()
    pipe.close()


def test_memory_statistics_count_what_operators_deliver() -> None:
    sizes = iter([[3, 5], [2, 2], [1, 1]])
    pipe = Pipeline(2, 2, None, enable_memory_stats=True, prefetch_queue_depth=1)
    with pipe:
        data = fn.external_source(
            source=lambda: [np.zeros(n, np.uint8) for n in next(sizes)], name="data"
        )
        pipe.set_outputs(data)
    pipe.run()
    pipe.run()
    found = pipe.executor_statistics()
    pipe.close()
    sizes_found = {
        "real_memory_size": [4],
        "max_real_memory_size": [5],
        "reserved_memory_size": [4],
        "max_reserved_memory_size": [5],
    }
    assert found == {"CPU_data": sizes_found, "CPU_output_0": sizes_found}


def test_memory_statistics_have_all_operators_and_outputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_memory_stats=True)
    def define():
        image = fn.external_source(lambda: [np.zeros((4, 6, 3), np.uint8)] * 2, layout="HWC", name="data")
        return fn.crop_mirror_normalize(fn.resize(image, size=[2, 2]), mirror=fn.random.coin_flip())

    pipe = define()
    pipe.run()
    found = {name: sizes["real_memory_size"] for name, sizes in pipe.executor_statistics().items()}
    assert found == {
        "CPU_data": [2 * 72], "CPU___CoinFlip_2": [2 * 4], "CPU___Resize_1": [0],
        "CPU___CropMirrorNormalize_3": [2 * 48], "CPU_output_0": [2 * 48],
    }  # fmt: skip


def test_no_statistics_unless_asked_for() -> None:
    pipe = counting()
    pipe.run()
    assert pipe.executor_statistics() == {}
    assert pipe.output_stream() is None
    pipe.close()


def test_given_options_are_told() -> None:
    pipe = Pipeline(
        2, 1, None, max_streams=4, default_cuda_stream_priority=-1, bytes_per_sample=10,
        stream_policy=StreamPolicy.SINGLE, concurrency=OperatorConcurrency.FULL,
    )  # fmt: skip
    assert (pipe.max_streams, pipe.default_cuda_stream_priority, pipe.bytes_per_sample) == (
        4,
        -1,
        10,
    )
    assert (pipe.stream_policy, pipe.concurrency) == (StreamPolicy.SINGLE, OperatorConcurrency.FULL)
    with pytest.warns(DeprecationWarning, match="exec_dynamic"):
        Pipeline(2, 1, None, experimental_exec_dynamic=True)


# ---------------------------------------------------------------- backend and plugins


def test_unused_memory_is_released() -> None:
    pool = BufferPool()
    pool.empty((1 << 21,), torch.uint8)
    kept = pool.empty((1 << 21,), torch.uint8)
    kept.fill_(7)
    del kept
    assert pool.bytes_free
    backend.ReleaseUnusedMemory()
    assert not pool.bytes_free


def test_growth_factors_come_from_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("DALI_BUFFER_GROWTH_FACTOR", "1.5")
    monkeypatch.setenv("DALI_HOST_BUFFER_GROWTH_FACTOR", "2")
    monkeypatch.setenv("DALI_HOST_BUFFER_SHRINK_THRESHOLD", "0.25")
    try:
        fresh = importlib.reload(backend)
        found = [
            fresh.GetHostBufferGrowthFactor(),
            fresh.GetDeviceBufferGrowthFactor(),
            fresh.GetHostBufferShrinkThreshold(),
        ]
    finally:
        monkeypatch.undo()
        importlib.reload(backend)
    assert found == [2.0, 1.5, 0.25]
    assert backend.GetHostBufferGrowthFactor() == 1.1


@pytest.mark.parametrize("value", ["0", "1"])
def test_pinned_memory_may_be_restricted(monkeypatch, value) -> None:
    monkeypatch.setenv("DALI_RESTRICT_PINNED_MEM", value)
    assert backend.RestrictPinnedMemUsage() is (value == "1")


def test_plugins_are_python_files(tmp_path) -> None:
    text = (
        "from torchdali import operator\nfrom torchdali.schema import Data\n"
        "@operator\ndef {name}(value: Data, /) -> Data:\n    '''Add.'''\n    return value + {n}\n"
    )
    for i, name in enumerate(["plugged_one", "plugged_two"]):
        (tmp_path / f"{name}.py").write_text(text.format(name=name, n=i + 1))
    try:
        plugin_manager.load_library(str(tmp_path / "plugged_one.py"))
        plugin_manager.load_directory(str(tmp_path))
        one = torch.ones(2)
        assert fn.plugged_one(one).tolist() == [2, 2]
        assert fn.plugged_two(one).tolist() == [3, 3]
        assert backend.GetSchema("PluggedTwo").MinNumInput() == 1
        assert dynamic.plugged_one(dynamic.as_tensor(one)).torch().tolist() == [2, 2]
        assert dynamic.plugged_two(dynamic.as_batch([one, one])).torch().tolist() == [[3, 3]] * 2
    finally:
        for name in ("plugged_one", "plugged_two"):
            _undeclare(name)


def _undeclare(name: str) -> None:
    """Other tests look at the registry."""
    declared = importlib.import_module("torchdali.operator").registry._operators.pop(name, None)
    if declared is not None:
        delattr(fn, name)
        delattr(torchdali.ops, declared.class_name)
        delattr(dynamic, name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [("lib.so", "", "Python file"), ("bad.py", "1 / 0", "division by zero")],
)
def test_plugins_that_cannot_be_loaded(tmp_path, name, text, message) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(RuntimeError, match=message):
        plugin_manager.load_library(str(path))
    with pytest.warns(UserWarning, match=message):
        backend.LoadLibrary(str(path), allow_fail=True)


def test_a_function_without_outputs_is_named() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def nothing() -> None:
        fn.random.uniform()

    with pytest.raises(NotImplementedError, match=r"'nothing' \(File .*test_api\.py.*, line \d+\) returns nothing"):
        nothing().build()


def test_conditionals_can_be_enabled_when_a_pipeline_is_made() -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=3)
    def define() -> Any:
        number = fn.random.coin_flip()
        if number == 1:
            result = number + 10
        else:
            result = number
        return result

    with pytest.raises(TypeError, match="enable_conditionals"):
        define()
    assert set(np.ravel(define(enable_conditionals=True).run()[0].as_array()).tolist()) <= {0, 11}


INTEGERS = ("batch_size", "num_threads", "seed", "py_num_workers", "prefetch_queue_depth", "max_bad_samples")


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_numpy_are_integers(name: str) -> None:
    pipe = Pipeline(**{"batch_size": 1, "num_threads": 1, name: np.int64(3)})
    assert type(getattr(pipe._options, name)) is int
    assert getattr(pipe._options, name) == 3
    with pytest.raises(TypeError, match=name):
        Pipeline(**{name: 3.0})


def test_pipelines_cannot_be_pickled_and_say_what_to_do() -> None:
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied.*in the process that uses it"):
            duplicate(Pipeline(1, 1, None))


def test_arguments_have_properties_and_descriptions() -> None:
    pipe = Pipeline(1, 1, None)
    for name in inspect.signature(Pipeline).parameters:
        assert name in Pipeline.__doc__ or name == "experimental_exec_dynamic", name
    for name, option in vars(Pipeline).items():
        if isinstance(option, Option):
            assert option.__doc__
            assert getattr(pipe, name) == getattr(pipe._options, name)
            with pytest.raises(AttributeError, match="where the pipeline is made"):
                setattr(pipe, name, 1)


VALUES: dict[str, Any] = {"batch_size": 7, "num_threads": 3, "seed": 5, "prefetch_queue_depth": 4, "py_num_workers": 2}


def test_parameters_properties_and_documentation_come_from_one_table() -> None:
    table = {each.name: each.metadata for each in fields(PipelineOptions) if each.init}
    text = inspect.getdoc(Pipeline) or ""
    named = re.findall(r"^    ((?:\w+, )*\w+): ", text[text.index("Args:") : text.index("Raises:")], re.MULTILINE)
    assert ", ".join(named).split(", ") == list(table) == list(inspect.signature(Pipeline).parameters)
    pipe = Pipeline(**VALUES)
    for name, entry in table.items():
        assert entry["text"].endswith(".")
        assert isinstance(inspect.getattr_static(Pipeline, name, None), Option) == bool(entry["shown"]), name
        if entry["shown"]:
            assert inspect.getattr_static(Pipeline, name).__doc__ == entry["shown"]
            assert getattr(pipe, name) == VALUES.get(name, getattr(PipelineOptions(), name)), name


# ---------------------------------------------------------------- input sets, iter_setup, lazy readers, saved graphs


def _numbers(*values: float) -> Any:
    return fn.constant(fdata=list(values))


def test_several_outputs_of_input_sets_come_as_one_list_each() -> None:
    class Pipe(Pipeline):
        def define_graph(self):
            clip = ops.ElementExtract(element_map=[0, 1])
            sets = [fn.reshape(_numbers(1, 2), shape=[2, 1]), fn.reshape(_numbers(3, 4), shape=[2, 1])]
            firsts, seconds = clip(sets)
            assert isinstance(firsts, list) and isinstance(seconds, list)
            return *firsts, *seconds

    outputs = Pipe(1, 1, None).run()
    assert [float(o.as_array().item()) for o in outputs] == [1, 3, 2, 4]


def test_input_sets_have_one_length() -> None:
    with Pipeline(1, 1, None), pytest.raises(ValueError, match="same length, not 1 and 2"):
        fn.cat([_numbers(1)], [_numbers(1), _numbers(2)])


def test_python_functions_take_no_input_sets() -> None:
    with Pipeline(1, 1, None), pytest.raises(TypeError, match="do not support multiple input sets"):
        fn.python_function([_numbers(1), _numbers(2)], function=lambda x: x)


def test_none_at_the_call_of_a_class_leaves_its_argument() -> None:
    class Pipe(Pipeline):
        def define_graph(self):
            resize = ops.Slice(start=[1], end=[3], axes=[0])
            return resize(_numbers(1, 2, 3, 4), start=None, end=None)

    assert Pipe(1, 1, None).run()[0].as_array().tolist() == [[2, 3]]


def test_iter_setup_is_not_called_between_its_end_and_reset() -> None:
    class Pipe(Pipeline):
        calls = 0

        def define_graph(self):
            return fn.external_source(name="data")

        def iter_setup(self):
            self.calls += 1
            if self.calls % 4 == 0:
                raise StopIteration
            self.feed_input("data", [np.float32(self.calls)])

    pipe = Pipe(1, 1, None)
    for epoch in range(2):
        found = []
        with pytest.raises(StopIteration):
            while True:
                found.append(pipe.run()[0].as_array().item())
        assert found == [4 * epoch + k for k in (1, 2, 3)]
        with pytest.raises(StopIteration):
            pipe.run()
        assert pipe.calls == 4 * epoch + 4
        pipe.reset()


@pytest.mark.parametrize("lazy", [False, True])
def test_a_lazy_reader_opens_its_files_with_the_first_batch(tmp_path, lazy: bool) -> None:
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(*fn.readers.file(file_root=str(tmp_path / "none"), lazy_init=lazy))
    if lazy:
        pipe.build()
    with pytest.raises(RuntimeError, match="cannot list the folder"):
        pipe.build() if not lazy else pipe.run()


@pytest.mark.parametrize("wrong", ["a name", 42])
def test_serialize_takes_a_function(wrong) -> None:
    pipe = Pipeline(1, 1, None)
    with pytest.raises(TypeError, match=r"define_graph=.* must be callable"):
        pipe.serialize(wrong)


@pytest.mark.parametrize(
    ("own", "expected"),
    [({}, (3, 2, 5)), ({"batch_size": 2}, (2, 2, 5)), ({"num_threads": 1, "seed": 7}, (3, 1, 7))],
)
def test_what_a_pipeline_was_not_given_comes_from_the_saved_one(own, expected) -> None:
    @pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=5)
    def define():
        return fn.random.uniform(range=[0, 1])

    saved = define().serialize()
    pipe = Pipeline(**own)
    pipe.deserialize_and_build(saved)
    assert (len(pipe.run()[0]), pipe.num_threads, pipe.seed) == expected


def test_arguments_that_cannot_be_are_refused_when_a_pipeline_is_built() -> None:
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.to_decibels(_numbers(1), reference=0.0))
    with pytest.raises(RuntimeError, match=r"'to_decibels' cannot be built\n(.|\n)*can't be zero"):
        pipe.build()
