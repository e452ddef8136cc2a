"""Debug mode: operators run while the function runs, with the results of the traced pipeline."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def
from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorListCPU


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
    @pipeline_def(
        batch_size=5, num_threads=2, device_id=None, seed=7, enable_conditionals=True, **arguments
    )
    def pipe():
        flip = fn.random.coin_flip()
        x = fn.random.uniform(range=[0, 1], shape=[3])
        if flip:
            x = x + fn.random.normal(mean=10, shape=[3])
        else:
            x = x * fn.random.uniform(range=[2, 3])
        return flip, x

    return pipe()


def test_random_numbers_and_branches_match_the_traced_pipeline():
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


def test_errors_are_raised_on_the_users_line():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def pipe():
        x = fn.random.uniform(shape=[2, 2, 3])
        return fn.crop(x, crop=[5, 5])

    with pytest.raises(
        RuntimeError, match=r"'crop' failed on sample 0 of batch 0(.|\n)*test_debug"
    ):
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


@pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
def fed():
    return fn.external_source(name="x") + 1


def two(number):
    return [np.float32(number), np.float32(number + 1)]


def test_a_source_can_be_fed_before_and_after_the_first_run():
    pipe = fed()
    pipe.feed_input("x", two(1))
    assert pipe.run()[0].tolist() == [2, 3]
    pipe.feed_input("x", two(5))
    assert pipe.run()[0].tolist() == [6, 7]
    assert pipe.run(x=two(8))[0].tolist() == [9, 10]
    with pytest.raises(KeyError, match='input operator with name "y"' ):
        pipe.feed_input("y", two(1))
    assert pipe.input_feed_count("x") == 1


def test_an_input_missing_in_the_first_run():
    pipe = fed()
    pipe.feed_input("x", two(1))
    pipe.feed_input("y", two(1))
    with pytest.raises(KeyError, match='input operator with name "y"' ):
        pipe.run()


def test_stats_count_the_operators():
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, debug=True)
    def pipe():
        return fn.external_source(source=numbers()) * 2 + fn.random.uniform()

    running = pipe()
    for _ in range(3):
        running.run()
    stats = running.stats()
    names = sorted(each.operator for each in stats.operators)
    assert names == ["external_source", "math.add", "math.mul", "random.uniform"]
    assert (stats.batches, stats.samples) == (3, 9) and stats.waited > 0
    assert all(each.line.startswith("test_debug.py:") for each in stats.operators)


class Pickler:
    used = 0

    @staticmethod
    def dumps(value):
        Pickler.used += 1
        return pickle.dumps(value)

    loads = pickle.loads


def one_sample(info):
    return np.float32(info.idx_in_epoch)


@pytest.mark.slow
def test_the_pickler_of_callbacks_is_used():
    @pipeline_def(
        batch_size=2,
        num_threads=1,
        device_id=None,
        debug=True,
        py_start_method="spawn",
        py_callback_pickler=Pickler,
    )
    def pipe():
        return fn.external_source(source=one_sample, batch=False, parallel=True)

    running = pipe()
    assert running.run()[0].tolist() == [0, 1] and Pickler.used == 1
    running.close()


BROKEN = {
    "a reader": (lambda data: data, "operator 'readers.file' failed on sample 1 of batch 0"),
    "a decoder": (fn.decoders.image, "operator 'decoders.image' failed on sample 0 of batch 0"),
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("what", "says"), BROKEN.values(), ids=BROKEN)
def test_errors_name_operator_sample_file_and_line(tmp_path, debug, what, says):
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    missing = ["missing.jpg"] if "readers" in says else []

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=debug)
    def pipe():
        data, _ = fn.readers.file(files=["broken.jpg", *missing], file_root=str(tmp_path))
        return what(data)

    with pytest.raises(RuntimeError) as caught:
        pipe().run()
    text = str(caught.value)
    assert text.startswith(says) and "test_debug.py" in text
    assert ("missing.jpg" if missing else "broken.jpg") in text.splitlines()[0]
    assert ("fn.readers.file(" if missing else "what(data)") in text.splitlines()[2]


@pytest.mark.parametrize("debug", [False, True])
def test_errors_over_the_batch_name_the_sample(debug):
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, debug=debug)
    def pipe():
        return 12 // fn.external_source(source=[[np.int32(k) for k in (3, 0, 2)]])

    with pytest.raises(
        ValueError, match=r"^operator 'math.floordiv' failed on sample 1 of batch 0"
    ):
        pipe().run()


def test_the_error_of_a_source_is_raised_unchanged():
    def source():
        raise LookupError("mine")

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, debug=True)
    def pipe():
        return fn.external_source(source=source)

    with pytest.raises(LookupError) as caught:
        pipe().run()
    assert type(caught.value) is LookupError and caught.value.args == ("mine",)


def debugged(function, batch_size=3):
    return pipeline_def(function, batch_size=batch_size, num_threads=1, device_id=None, debug=True)()


@pytest.mark.parametrize("kind", ["arrays", "tensors", "batch"])
def test_user_batches_are_valid_inputs(kind):
    arrays = [np.full((k + 1,), k, np.float32) for k in range(3)]
    made = {
        "arrays": arrays,
        "tensors": [torch.from_numpy(a) for a in arrays],
        "batch": TensorListCPU(arrays),
    }[kind]
    (out,) = debugged(lambda: fn.pad(made, fill_value=7)).run()
    assert out.as_array().tolist() == [[0, 7, 7], [1, 1, 7], [2, 2, 2]]


@pytest.mark.parametrize("kind", [lambda x: np.full(1, x), np.float32, np.float64, np.int64, np.bool_])
def test_user_batches_are_valid_arguments(kind):
    chances = [kind(0), kind(1), kind(0)]
    (out,) = debugged(lambda: fn.random.coin_flip(probability=chances)).run()
    assert out.as_array().tolist() == [0, 1, 0]


def test_scalars_are_a_batch_or_one_value_of_several_numbers():
    numbers = [np.float32(k) for k in (2, 3, 4)]
    (out,) = debugged(lambda: fn.copy(numbers)).run()
    assert out.as_array().tolist() == [2, 3, 4]
    (out,) = debugged(lambda: fn.reshape(np.zeros(24), shape=[np.int64(k) for k in (2, 3, 4)])).run()
    assert out.shape() == [(2, 3, 4)] * 3


def changing(first, later):
    calls = iter([first])
    return debugged(lambda: next(calls, later)())


def batch():
    return [np.zeros(1, np.float32)] * 3


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        (lambda: fn.cat(batch()), lambda: fn.cat(batch(), batch()), "'cat' with different number of inputs .* 1, .* 2"),
        (lambda: fn.cat(batch()), lambda: fn.cat(batch(), axis=0), "number of keyword arguments .* none, .* axis"),
        (lambda: fn.pad(batch()), lambda: fn.copy(batch()), "Unexpected operator 'copy'.* 'pad'"),
        (lambda: fn.copy(np.zeros(3)), lambda: fn.copy(batch()), "Input 0 for operator 'copy' is a batch"),
        (
            lambda: fn.random.coin_flip(probability=0.5),
            lambda: fn.random.coin_flip(probability=batch()),
            "Argument 'probability' for operator 'random.coin_flip' is a batch",
        ),
    ],
)
def test_calls_must_be_the_same_in_every_batch(first, later, message):
    pipe = changing(first, later)
    pipe.run()
    with pytest.raises(RuntimeError, match=message):
        pipe.run()


def test_a_source_must_not_change_the_batch_size_after_its_use():
    def define():
        flip = fn.random.coin_flip()
        return fn.external_source([[np.zeros(1)] * 2]), flip

    with pytest.raises(RuntimeError, match=r"Batch size must be uniform .* size 2; .* had 3"):
        debugged(define).run()


def source_and_reader(tmp_path, sizes, **options):
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]))

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3, **options)
    def pipe():
        source = fn.external_source([np.full((size, 1), size) for size in sizes], cycle="raise")
        data = fn.readers.file(file_root=str(tmp_path), files=[f"{i}.bin" for i in range(8)], random_shuffle=True)[0]
        return source, data, fn.random.uniform()

    return pipe()


def outcomes(pipe, count):
    """Return the values of each batch, "end" at the end of an epoch, and the first words of an error."""
    found = []
    for _ in range(count):
        try:
            found.append([out.as_array().tolist() for out in pipe.run()])
        except StopIteration:
            found.append("end")
            pipe.reset()
        except RuntimeError as error:
            found.append(str(error).split()[:2])
    return found


def test_readers_keep_their_position_at_the_end_of_a_source(tmp_path):
    traced, debugged = (source_and_reader(tmp_path, [2, 2], debug=debug) for debug in (False, True))
    expected = outcomes(traced, 8)
    assert expected[2] == expected[5] == "end"
    assert outcomes(debugged, 8) == expected


@pytest.mark.parametrize("sizes", [[1, 2, 2], [2, 2, 1]])
def test_a_source_and_a_reader_must_have_equal_batch_sizes(tmp_path, sizes):
    found = outcomes(source_and_reader(tmp_path, sizes, debug=True), 3)
    assert found[sizes.index(1)] == ["Batch", "size"] and [len(each) for each in found].count(3) == 2


def test_several_batches_are_scheduled():
    traced, debugged = random_pipeline(), random_pipeline(debug=True)
    debugged.schedule_run()
    debugged.schedule_run()
    for _ in range(2):
        for one, other in zip(traced.run(), debugged.outputs(), strict=True):
            assert np.array_equal(one.as_array(), other.as_array())
