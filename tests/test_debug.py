"""Debug mode: operators run as the function runs, with the results of the traced pipeline."""

from __future__ import annotations

import numpy as np
import pytest

from torchdali import fn, pipeline_def
from torchdali.graph import DataNode


def numbers(count=4):
    return [[np.float32([i, i + 0.5]) for i in range(k, k + 3)] for k in range(count)]


def test_nodes_hold_their_batch():
    seen = []

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, debug=True)
    def pipe():
        x = fn.external_source(source=numbers())
        y = x * 2
        seen.append((str(y), y.get().as_array()))
        return y

    running = pipe()
    for k in range(2):
        (out,) = running.run()
        assert np.array_equal(out.as_array()[:, 0], 2.0 * np.arange(k, k + 3))
    assert len(seen) == 2, "the function runs once a batch"
    assert "TensorListCPU" in seen[0][0] and np.array_equal(seen[1][1], out.as_array())


def random_pipeline(**arguments):
    @pipeline_def(batch_size=5, num_threads=2, device_id=None, seed=7, enable_conditionals=True, **arguments)
    def pipe():
        flip = fn.random.coin_flip()
        x = fn.random.uniform(range=[0, 1], shape=[3])
        if flip:
            x = x + fn.random.normal(mean=10, shape=[3])
        else:
            x = x * fn.random.uniform(range=[2, 3])
        return flip, x

    return pipe()


def test_random_numbers_and_branches_are_those_of_the_traced_pipeline():
    traced, debugged = random_pipeline(), random_pipeline(debug=True)
    for _ in range(4):
        for one, other in zip(traced.run(), debugged.run(), strict=True):
            assert np.array_equal(one.as_array(), other.as_array())


def test_a_random_operator_before_the_reader_has_its_keys(tmp_path):
    files = []
    for i in range(6):
        path = tmp_path / f"{i}.bin"
        path.write_bytes(bytes([i]))
        files.append(str(path))

    def make(debug):
        @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3, debug=debug)
        def pipe():
            noise = fn.random.uniform(range=[0, 1])
            data, label = fn.readers.file(files=files, random_shuffle=True)
            return noise, data, label

        return pipe()

    for _ in range(2):
        traced, debugged = make(False), make(True)
        for _ in range(5):
            for one, other in zip(traced.run(), debugged.run(), strict=True):
                assert np.array_equal(one.as_array(), other.as_array())


def test_the_end_of_a_source_and_the_next_epoch():
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, debug=True)
    def pipe():
        return fn.external_source(source=numbers(2), cycle="raise")

    running = pipe()
    for _ in range(2):
        assert len([running.run(), running.run()]) == 2
        with pytest.raises(StopIteration):
            running.run()
        running.reset()


def test_errors_come_from_the_line():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def pipe():
        x = fn.random.uniform(shape=[2, 2, 3])
        return fn.crop(x, crop=[5, 5])

    with pytest.raises(RuntimeError, match=r"operator 'crop' failed on batch 0(.|\n)*test_debug"):
        pipe().run()


def test_debug_can_be_chosen_at_the_call():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe():
        x = fn.random.uniform()
        assert isinstance(x, DataNode) and hasattr(x, "get")
        return x

    pipe(debug=True).run()
    with pytest.raises(AssertionError):
        pipe()
