"""Constants, and other nodes, created outside of the pipeline that uses them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from torchdali import Pipeline, fn, ops, pipeline_def, types

BEFORE = [types.Constant(np.array([k, k + 1])) for k in range(12)]  # many constants, before any pipeline


def pipeline():
    return Pipeline(batch_size=2, num_threads=1, device_id=None)


def first(pipe):
    pipe.build()
    return [np.array(output.at(0)).tolist() for output in pipe.run()]


@pytest.mark.parametrize("k", range(12))
def test_constants_from_outside_and_inside_may_be_combined(k):
    pipe = pipeline()
    with pipe:
        total = fn.copy(BEFORE[k])
        for j in range(12):
            total = total + types.Constant(np.array([j, j]))
        pipe.set_outputs(total)
    assert first(pipe) == [[k + 66, k + 67]]


def test_many_outside_constants_in_several_pipelines():
    for _ in range(2):
        pipe = pipeline()
        with pipe:
            pipe.set_outputs(sum(BEFORE[1:], BEFORE[0]), BEFORE[3], types.Constant(np.array([9])))
        assert first(pipe) == [[66, 78], [3, 4], [9]]
        again = Pipeline.deserialize(pipe.serialize())
        assert first(again) == [[66, 78], [3, 4], [9]]


def test_outside_arithmetic_and_operators():
    node = fn.cast(BEFORE[1] + types.Constant(np.array([1, 1])), dtype=types.FLOAT)
    constant = ops.Constant(idata=[3, 4])()
    pipe = pipeline()
    with pipe:
        pipe.set_outputs(node * types.Constant(np.array([2, 2])), constant + BEFORE[0], fn.constant(idata=[5]))
    assert first(pipe) == [[4.0, 6.0], [3, 5], [5]]


def test_outside_constants_in_branches():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def define():
        condition = fn.external_source(source=lambda: [np.bool_(True), np.bool_(False)])
        if condition:
            value = BEFORE[2] + 1
        else:
            value = BEFORE[2] + types.Constant(np.array([5, 5]))
        return value

    pipe = define()
    pipe.build()
    (output,) = pipe.run()
    assert [np.array(output.at(i)).tolist() for i in range(2)] == [[3, 4], [7, 8]]


def test_pipelines_in_several_threads():
    results = []

    def work():
        constant = types.Constant(np.array([1, 2]))
        pipe = pipeline()
        with pipe:
            pipe.set_outputs(constant + types.Constant(np.array([0, 1])))
        results.append(first(pipe))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[1, 3]]] * 4


def test_equal_user_defined_names_are_rejected():
    pipe = pipeline()
    with pipe:
        pipe.set_outputs(fn.constant(idata=[1], name="same"), fn.constant(idata=[2], name="same"))
    with pytest.raises(RuntimeError, match="2 operators are called 'same'"):
        pipe.build()


def test_a_double_in_a_constant_has_the_bits_of_a_float():
    pipe = pipeline()
    with pipe:
        zero = fn.constant(idata=[0])
        pipe.set_outputs(zero + types.Constant(np.float64(2.1)), zero + types.Constant(2.1, dtype=types.FLOAT64))
    assert first(pipe) == [[float(np.float32(2.1))]] * 2


@pytest.mark.parametrize(("given", "number"), [(None, None), ("cpu", 0), ("cuda:1", 1)])
def test_the_device_of_a_pipeline_is_a_number(given, number):
    assert Pipeline(batch_size=1, num_threads=1, device_id=given).device_id == number


def test_shards_by_device():
    @pipeline_def(batch_size=2, num_threads=1, device_id="cpu")
    def define():
        records = [np.int32([i]) for i in range(4)]
        return fn.readers.dataset(dataset=records, shard_id=Pipeline.current().device_id, num_shards=2)

    assert first(define()) == [[0]]
