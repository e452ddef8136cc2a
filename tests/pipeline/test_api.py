"""The parts of the Pipeline API that need no comparison with DALI: outputs, statistics, plugins."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
import threading
from typing import Any

import numpy as np
import pytest
import torch

import torchdali
from tests.helpers.counting import counting, note, seen
from torchdali import (
    OperatorConcurrency,
    Pipeline,
    StreamPolicy,
    backend,
    dali,
    dynamic,
    fn,
    ops,
    pipeline_def,
    plugin_manager,
    types,
)
from torchdali.pipeline import experimental
from torchdali.tensors.buffer_pool import BufferPool


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


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
        pipe.add_sink(note(fn.constant(idata=[1]), event=lambda: "ran"))
        note(fn.constant(idata=[1]), event=lambda: "pruned")
        pipe.set_outputs(fn.constant(idata=[2]))
    pipe.run()
    pipe.close()
    assert seen == ["ran"]


@pytest.mark.parametrize("edge", [5, None, "name"])
def test_a_sink_is_an_edge(edge) -> None:
    with pytest.raises(TypeError, match="sink"):
        Pipeline(2, 1, None).add_sink(edge)


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


def test_undeclared_outputs_do_not_stop_the_pipeline() -> None:
    kinds = [np.int64(1), np.int64(2)]
    pipe = counting(lambda i: [np.array([[i]])] * 2 if i == 1 else [kinds[0]] * 2, output_ndim=0)
    pipe.run()
    with pytest.raises(RuntimeError):
        pipe.run()
    pipe.close()


def test_memory_statistics_count_the_bytes_of_outputs() -> None:
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


def test_statistics_are_off_by_default() -> None:
    pipe = counting()
    pipe.run()
    assert pipe.executor_statistics() == {}
    assert pipe.output_stream() is None
    pipe.close()


def test_a_pipeline_reports_its_options() -> None:
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
        importlib.reload(dali.backend)
        found = [
            backend.GetHostBufferGrowthFactor(),
            backend.GetDeviceBufferGrowthFactor(),
            backend.GetHostBufferShrinkThreshold(),
        ]
    finally:
        monkeypatch.undo()
        importlib.reload(dali.backend)
    assert found == [2.0, 1.5, 0.25]
    assert backend.GetHostBufferGrowthFactor() == 1.1


@pytest.mark.parametrize("value", ["0", "1"])
def test_pinned_memory_may_be_restricted(monkeypatch, value) -> None:
    monkeypatch.setenv("DALI_RESTRICT_PINNED_MEM", value)
    assert backend.RestrictPinnedMemUsage() is (value == "1")


def test_plugins_are_python_files(tmp_path) -> None:
    text = (
        "from torchdali import operator\nfrom torchdali.declaration.schema import Data\n"
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
    """Other tests inspect the registry."""
    declared = importlib.import_module("torchdali.calls.decorators").registry._operators.pop(name, None)
    if declared is not None:
        for module, leaf in ((fn, name), (torchdali.ops, declared.class_name), (dynamic, name)):
            delattr(module, leaf)


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

    with pytest.raises(NotImplementedError, match=r"'nothing' \(File .*test_api\.py.*, line \d+\) must return the outputs of the pipeline"):
        nothing().build()


def test_conditionals_can_be_enabled_when_a_pipeline_is_created() -> None:
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
    if name != "max_bad_samples":  # it has no property
        value = getattr(pipe, name)
        assert type(value) is int and value == 3
    with pytest.raises(TypeError, match=name):
        Pipeline(**{name: 3.0})


def test_the_error_of_pickling_a_pipeline_has_a_cure() -> None:
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied.*in the process that uses it"):
            duplicate(Pipeline(1, 1, None))


VALUES: dict[str, Any] = {"batch_size": 7, "num_threads": 3, "seed": 5, "prefetch_queue_depth": 4, "py_num_workers": 2}
CHOSEN = {"max_streams": -1, "default_cuda_stream_priority": 0, "exec_dynamic": True}  # for the default, None


def test_arguments_have_properties_and_descriptions() -> None:
    parameters, text = inspect.signature(Pipeline).parameters, inspect.getdoc(Pipeline) or ""
    described = re.findall(r"^    ((?:\w+, )*\w+): ", text[text.index("Args:") : text.index("Raises:")], re.MULTILINE)
    assert ", ".join(described).split(", ") == list(parameters)
    pipe = Pipeline(**VALUES)
    options = [name for name in parameters if inspect.isdatadescriptor(inspect.getattr_static(Pipeline, name, None))]
    assert len(options) > 15 and VALUES.keys() <= set(options)
    for name in options:
        assert inspect.getattr_static(Pipeline, name).__doc__.endswith(".")
        assert getattr(pipe, name) == {**VALUES, **CHOSEN}.get(name, parameters[name].default), name
        with pytest.raises(AttributeError, match="when the pipeline is created"):
            setattr(pipe, name, 1)


# ---------------------------------------------------------------- input sets, iter_setup, lazy readers, saved graphs


def _numbers(*values: float) -> Any:
    return fn.constant(fdata=list(values))


def test_each_output_of_input_sets_is_a_list() -> None:
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


def test_python_functions_reject_input_sets() -> None:
    with Pipeline(1, 1, None), pytest.raises(TypeError, match="do not support multiple input sets"):
        fn.python_function([_numbers(1), _numbers(2)], function=lambda x: x)


def test_none_in_a_call_keeps_the_argument_of_the_class() -> None:
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
def test_serialize_accepts_a_function(wrong) -> None:
    pipe = Pipeline(1, 1, None)
    with pytest.raises(TypeError, match=r"define_graph must be callable"):
        pipe.serialize(wrong)


@pytest.mark.parametrize(
    ("own", "expected"),
    [({}, (3, 2, 5)), ({"batch_size": 2}, (2, 2, 5)), ({"num_threads": 1, "seed": 7}, (3, 1, 7))],
)
def test_omitted_options_come_from_the_saved_pipeline(own, expected) -> None:
    @pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=5)
    def define():
        return fn.random.uniform(range=[0, 1])

    saved = define().serialize()
    pipe = Pipeline(**own)
    pipe.deserialize_and_build(saved)
    assert (len(pipe.run()[0]), pipe.num_threads, pipe.seed) == expected


def test_invalid_arguments_are_errors_of_build() -> None:
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.to_decibels(_numbers(1), reference=0.0))
    with pytest.raises(RuntimeError, match=r"'to_decibels' cannot be built\n(.|\n)*can't be zero"):
        pipe.build()
