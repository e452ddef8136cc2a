"""Python functions as operators: NumPy, torch, DLPack; by sample and by batch; several outputs; errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import TorchPythonFunction, as_operator

DATA = [
    np.arange(6, dtype=np.uint8).reshape(1, 2, 3),
    np.arange(12, dtype=np.uint8).reshape(2, 2, 3),
]


def run(define, threads=2):
    @pipeline_def(batch_size=2, num_threads=threads, device_id=None)
    def pipe():
        x = fn.external_source(source=lambda: DATA, layout="HWC")
        result = define(x)
        return tuple(result) if isinstance(result, list) else result

    running = pipe()
    outputs = running.run()
    running.close()
    return [([np.array(o.at(i)) for i in range(len(o))], o.layout()) for o in outputs]


@pytest.mark.parametrize(
    ("name", "function", "batched"),
    [
        ("python_function", lambda a: a * 2, False),
        ("python_function", lambda b: [a * 2 for a in b], True),
        ("torch_python_function", lambda t: t * 2, False),
        ("torch_python_function", lambda b: [t * 2 for t in b], True),
        ("dl_tensor_python_function", lambda c: torch.from_dlpack(c) * 2, False),
        ("dl_tensor_python_function", lambda b: [torch.from_dlpack(c) * 2 for c in b], True),
    ],
)
def test_one_output(name, function, batched):
    ((samples, layout),) = run(
        lambda x: getattr(fn, name)(x, function=function, batch_processing=batched)
    )
    assert layout == "" and all(
        np.array_equal(s, d * 2) for s, d in zip(samples, DATA, strict=True)
    )


def test_several_outputs_and_layouts():
    def split(a):
        return a[:1], a.sum(keepdims=True).astype(np.int64)

    (first, layout), (total, other) = run(
        lambda x: fn.python_function(
            x, function=split, num_outputs=2, output_layouts=["HWC", "CHW"]
        )
    )
    assert (layout, other) == ("HWC", "CHW")
    assert first[1].shape == (1, 2, 3) and total[1].item() == DATA[1].sum()


def test_several_inputs_and_a_dense_result():
    def stacked(one, other):
        return torch.stack(
            [a.float().mean() + b.float().mean() for a, b in zip(one, other, strict=True)]
        )

    ((samples, _),) = run(
        lambda x: fn.torch_python_function(x, x, function=stacked, batch_processing=True)
    )
    assert samples[0].shape == () and samples[0] == pytest.approx(2 * DATA[0].mean())


def test_torch_functions_see_one_sample_by_default():
    seen = []
    run(lambda x: fn.torch_python_function(x, function=lambda t: seen.append(t.shape) or t))
    assert seen[:2] == [d.shape for d in DATA]


def changes_the_first(batch):
    return [batch[0].clone(), *batch[1:]]


def transformed(mode, batched):
    transforms = pytest.importorskip("torchvision.transforms.v2", reason="needs torchvision")
    flip = transforms.RandomHorizontalFlip(p=1.0)
    function = {
        "plain": flip,
        "composed": transforms.Compose([flip]),
        "wrapped": lambda batch: flip(batch),
        "module": torch.nn.Sequential(flip),
    }[mode]
    return run(
        lambda x: fn.torch_python_function(x, function=function, batch_processing=batched)
    )


@pytest.mark.parametrize("mode", ["plain", "composed", "wrapped", "module"])
def test_transforms_of_torchvision_change_all_samples_or_none(mode):
    ((samples, _),) = transformed(mode, False)
    assert all(np.array_equal(s, d[..., ::-1]) for s, d in zip(samples, DATA, strict=True))
    with pytest.raises(RuntimeError, match="changed only the first of 2 samples"):
        transformed(mode, True)


def test_functions_that_change_only_the_first_sample_are_rejected():
    with pytest.raises(RuntimeError, match="batch_processing=False to call the function once per sample"):
        run(
            lambda x: fn.torch_python_function(
                x, function=changes_the_first, batch_processing=True
            )
        )
    ((samples, _),) = run(
        lambda x: fn.torch_python_function(x, function=lambda b: list(b), batch_processing=True)
    )
    assert np.array_equal(samples[1], DATA[1])


def test_changing_an_array_does_not_affect_other_outputs():
    def emptied(array):
        array[:] = 7
        return array

    (original, _), (changed, _) = run(lambda x: [x, fn.python_function(x, function=emptied)])
    assert np.array_equal(original[1], DATA[1]) and (changed[1] == 7).all()


def test_no_inputs_and_no_outputs():
    seen = []
    ((samples, _),) = run(lambda x: fn.python_function(function=lambda: np.float32([1, 2])))
    assert samples[1].tolist() == [1, 2]
    run(
        lambda x: fn.python_function(x, function=lambda a: seen.append(a.shape), num_outputs=0) or x
    )
    assert seen[:2] == [(1, 2, 3), (2, 2, 3)], "a function without outputs is not pruned"


def test_functions_see_batches_in_order_on_one_thread_at_a_time():
    seen = []

    @pipeline_def(batch_size=1, num_threads=4, device_id=None, prefetch_queue_depth=4)
    def pipe():
        x = fn.external_source(source=lambda i: [np.int64([i])], batch=True)
        y = fn.copy(fn.crop(fn.random.uniform(shape=[4, 4, 3]), crop=[2, 2]))
        return fn.python_function(x, y, function=lambda a, b: (seen.append(int(a[0])), a)[1])

    running = pipe()
    for _ in range(8):
        running.run()
    assert seen[:8] == list(range(8))
    running.close()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: 5, "must return NumPy arrays, got int"),
        (lambda a: None, "got None"),
        (lambda a: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda a: a.fill(0), "got None"),
    ],
)
def test_errors_are_runtime_errors_that_name_the_function(function, message):
    with pytest.raises(RuntimeError, match=message):
        run(lambda x: fn.python_function(x, function=function))


@pytest.mark.parametrize("different", [np.float32([2]), np.int64([[2]])])
def test_results_of_different_dtypes_or_axes_are_errors(different):
    results = {1: np.int64([1]), 2: different}

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define():
        data = fn.external_source(lambda: [np.array(1), np.array(2)])
        return fn.python_function(data, function=lambda x: results[int(x)])

    with pytest.raises(RuntimeError, match=r"python_function(.|\n)*one dtype and one number of axes; sample 1"):
        define().run()


def test_too_few_outputs():
    with pytest.raises(RuntimeError, match="got 1, expected 2"):
        run(lambda x: fn.python_function(x, function=lambda a: (a,), num_outputs=2))


def test_modules_and_transforms_run_in_the_chain():
    scale = as_operator(torch.nn.ReLU(), output_layout="HWC")
    ((samples, layout),) = run(lambda x: scale(fn.cast(x, dtype=torch.float32) - 3.0))
    assert layout == "HWC" and samples[0].min() == 0
    transforms = pytest.importorskip("torchvision.transforms.v2", reason="needs torchvision")
    flip = as_operator(transforms.RandomHorizontalFlip(p=1.0))
    ((samples, _),) = run(lambda x: flip(x))
    assert np.array_equal(samples[0], DATA[0][..., ::-1])


@pytest.mark.parametrize(
    ("arguments", "function", "expected"),
    [
        ({}, lambda a: a * 2, [[[0, 2, 4], [6, 8, 10]]]),
        ({"batch_processing": False}, lambda a: a.sum(1), [[3, 5, 7]]),
        ({"batch_processing": True}, lambda b: [a + len(b) for a in b], [[[2, 3, 4], [5, 6, 7]]]),
    ],
    ids=["default", "sample", "batch"],
)
def test_torch_functions_as_a_class_of_the_plugin(arguments, function, expected):
    operator = TorchPythonFunction(function, **arguments)
    ((samples, _),) = run(lambda x: operator(fn.cast(x, dtype=types.FLOAT)))
    assert samples[0].tolist() == expected
