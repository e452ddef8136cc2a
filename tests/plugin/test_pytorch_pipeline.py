"""Iterators over real pipelines: readers, sources, errors, memory."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write files whose bytes are their own index; their lengths differ."""
    folder: Path = tmp_path_factory.mktemp("records")
    paths = [folder / f"{index:02d}.bin" for index in range(20)]
    for index, path in enumerate(paths):
        path.write_bytes(bytes([index]) * (index % 3 + 1))
    return [str(path) for path in paths]


def reader(
    files: list[str], size: int = 10, batch_size: int = 4, both: bool = False, **options: Any
) -> Pipeline:
    """Return a pipeline of a reader's labels, and of its bytes if `both`."""
    pipe = Pipeline(batch_size=batch_size, num_threads=2, device_id=None, seed=1)
    with pipe:
        data, label = fn.readers.file(
            files=files[:size], labels=list(range(size)), name="reader", **options
        )
        pipe.set_outputs(*((data, label) if both else (label,)))
    return pipe


def source(produce: Any, **options: Any) -> Pipeline:
    pipe = Pipeline(batch_size=4, num_threads=2, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(source=produce, **options))
    return pipe


def numbers(iterator: Any) -> list[list[int]]:
    return [batch[0]["a"].ravel().tolist() for batch in iterator]


def test_epochs_of_a_reader(files) -> None:
    it = DALIGenericIterator(
        reader(files, pad_last_batch=True),
        ["a"],
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    assert [numbers(it) for _ in range(3)] == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]] * 3


def test_shards_of_a_shuffled_epoch_are_disjoint_and_complete(files) -> None:
    options = {"num_shards": 3, "pad_last_batch": True, "random_shuffle": True}
    it = DALIGenericIterator(
        [reader(files, 20, shard_id=rank, **options) for rank in range(3)],
        ["a"],
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    epochs = [
        [n for batch in it for part in batch for n in part["a"].ravel().tolist()] for _ in range(2)
    ]
    assert [sorted(epoch) for epoch in epochs] == [list(range(20))] * 2
    assert epochs[0] != epochs[1]


def test_data_matches_labels(files) -> None:
    it = DALIRaggedIterator(
        reader(files, 20, both=True, random_shuffle=True),
        ["data", "label"],
        reader_name="reader",
        output_types=[DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG],
    )
    for batch in it:
        for data, label in zip(batch[0]["data"], batch[0]["label"].ravel().tolist(), strict=True):
            assert data.tolist() == [label] * (label % 3 + 1)


def test_the_error_of_different_shapes_names_the_alternative(files) -> None:
    with pytest.raises(RuntimeError, match=r"'data'.*DALIRaggedIterator"):
        DALIClassificationIterator(reader(files, both=True), reader_name="reader")


def test_a_loop_may_hold_every_batch(files) -> None:
    """Held batches are not overwritten, and batches are not copied."""
    it = DALIGenericIterator(reader(files), ["a"], size=-1)
    kept = [next(it)[0]["a"] for _ in range(30)]
    assert len({tensor.data_ptr() for tensor in kept}) == 30
    flat = torch.cat(kept).ravel().tolist()
    assert flat == [index % 10 for index in range(120)]


HOLDS = {
    "the tensor": lambda batch: batch,
    "a sample": lambda batch: batch[1],
    "a view": lambda batch: batch.flatten()[::7],
    "an array": lambda batch: batch[2].numpy(),
    "a parameter": lambda batch: torch.nn.Parameter(batch[:, 0]),
}


def test_a_loop_may_hold_any_part_of_large_batches() -> None:
    """Memory returns to the pool, and is reused, only after all references to a batch are gone."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=3)
    def noise() -> Any:
        images = fn.random.uniform(range=[0, 255], shape=[40, 40, 3], dtype=types.UINT8)
        images = fn.resize(images, size=(160, 170))
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW")

    it = DALIGenericIterator(noise(), ["data"])
    kept, places = [], []
    for number, hold in zip(range(50), itertools.cycle([*HOLDS.values(), None]), strict=False):
        batch = next(it)[0]["data"]
        assert batch.nbytes > 1 << 20  # smaller ones are not pooled
        places.append(batch.data_ptr())
        if hold is not None:
            held = hold(batch)
            kept.append((number, held, torch.as_tensor(held).detach().clone()))
            del held
        del batch
    assert len(set(places)) < len(places), "no memory was used again: this test shows nothing"
    for number, held, before in kept:
        assert torch.equal(torch.as_tensor(held), before), f"batch {number} was overwritten"


def test_an_ended_source_is_restarted() -> None:
    def produce(iteration: int) -> np.ndarray[Any, Any]:
        if iteration == 3:
            raise StopIteration
        return np.full((4, 1), iteration)

    it = DALIGenericIterator(source(produce), ["a"], auto_reset=True)
    assert [numbers(it) for _ in range(3)] == [[[0] * 4, [1] * 4, [2] * 4]] * 3


def test_an_epoch_without_batches_warns(caplog: pytest.LogCaptureFixture) -> None:
    def once() -> Iterator[Any]:
        yield [np.int32(1)] * 4

    for cycle, batches, said in ((None, [1, 0], 1), ("raise", [1, 1], 0)):
        caplog.clear()
        it = DALIGenericIterator(source(once, cycle=cycle), ["a"], auto_reset=True)
        assert [len(list(it)) for _ in range(2)] == batches
        assert caplog.text.count("Epoch 1 has no batches: a source of the pipeline") == said
        assert caplog.text.count('cycle="raise"') == said


def test_the_epoch_continues_after_a_failed_batch() -> None:
    made = iter([np.zeros((4, 1)), "not a batch", np.ones((4, 1))])
    it = DALIGenericIterator(source(lambda: next(made)), ["a"])
    assert next(it)[0]["a"].ravel().tolist() == [0] * 4
    with pytest.raises((TypeError, RuntimeError)):
        next(it)
    assert next(it)[0]["a"].ravel().tolist() == [1] * 4
    with pytest.raises(StopIteration):
        next(it)


def test_the_error_names_a_missing_file_and_the_epoch_continues(files) -> None:
    names = [*files[:5], files[5] + ".gone", *files[6:10]]
    it = DALIGenericIterator(
        reader(names), ["a"], reader_name="reader", prepare_first_batch=False, auto_reset=True
    )
    found = []
    for _ in range(4):
        try:
            found.append(next(it)[0]["a"].ravel().tolist())
        except StopIteration:
            found.append("end")
        except Exception as error:
            assert ".gone" in str(error)
            found.append("gone")
    assert found == [[0, 1, 2, 3], "gone", [8, 9, 0, 1], "end"]


def test_an_endless_loop_warns(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.bin").write_bytes(b"abc")

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def files() -> Any:
        return fn.readers.file(files=[str(tmp_path / f"{number}.bin") for number in range(3)], name="Files")[0]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def numbers() -> Any:
        return fn.external_source(lambda: np.zeros((2, 1)))

    DALIGenericIterator(files(), ["x"], reader_name="Files")
    DALIGenericIterator(files(), ["x"], size=3)
    DALIGenericIterator(numbers(), ["x"])
    assert not caplog.records
    DALIGenericIterator(files(), ["x"])
    assert [record.getMessage().endswith("Pass reader_name='Files'.") for record in caplog.records] == [True]


def test_pipelines_in_debug_mode_deliver_the_same(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{number}.bin") for number in range(5)]
    for number, name in enumerate(names):
        Path(name).write_bytes(bytes([number]))

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3)
    def files() -> Any:
        data, label = fn.readers.file(files=names, name="Files", random_shuffle=True)
        return data + fn.cast(fn.random.uniform(range=[0, 100]), dtype=types.UINT8), label

    def epochs(debug: bool, **options: Any) -> Any:
        loader = DALIGenericIterator(files(debug=debug), ["x", "y"], auto_reset=True, **options)
        return [[batch[0]["x"].tolist() for batch in loader] for _ in range(2)]

    for options in ({}, {"prepare_first_batch": False}):
        expected = epochs(False, reader_name="Files", **options)
        assert epochs(True, reader_name="Files", **options) == expected
        assert [len(epoch) for epoch in expected] == [3, 2]
    loader = DALIGenericIterator(files(debug=True), ["x", "y"], reader_name="Files")
    with pytest.raises(RuntimeError, match=r"must have a state_dict\(\) to save"):
        loader.state_dict()


def test_an_error_in_debug_mode_is_raised_when_the_reader_is_searched() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def nothing() -> Any:
        return fn.readers.file(files=["nowhere.bin"], name="Files")[0]

    with pytest.raises(RuntimeError, match=r"'readers.file' failed on sample 0 of batch 0 \(nowhere.bin\)"):
        DALIGenericIterator(nothing(), ["x"], reader_name="Files")


# ------------------------------------------------------------------------------ break, and new loops


def broken_off(it: Any, after: int) -> list[list[int]]:
    return numbers(itertools.islice(it, after))


@pytest.mark.parametrize("policy", list(LastBatchPolicy))
@pytest.mark.parametrize("auto_reset", [False, True])
def test_a_loop_after_break_restarts(files, policy: LastBatchPolicy, auto_reset: bool) -> None:
    def make(on_break: str) -> Any:
        pipe = reader(files, random_shuffle=True)
        return DALIGenericIterator(
            pipe, ["a"], reader_name="reader", last_batch_policy=policy, auto_reset=auto_reset, on_break=on_break
        )  # fmt: skip

    whole = make("continue")
    expected = [numbers(whole), numbers(whole), numbers(whole)]
    it = make("restart")
    assert broken_off(it, 1) == expected[0][:1]
    assert broken_off(it, 0) == []
    assert broken_off(it, 1) == expected[0][:1]
    assert numbers(it) == expected[0]
    assert broken_off(it, 1) == expected[1][:1]
    assert [numbers(it), numbers(it)] == expected[1:]


def test_a_loop_over_a_source_restarts_after_break() -> None:
    batches = [[np.int32(i)] * 4 for i in range(3)]
    it = DALIGenericIterator(
        source(batches, cycle="raise"), ["a"], on_break="restart", auto_reset=True
    )
    assert broken_off(it, 2) == [[0] * 4, [1] * 4]
    for _ in range(2):
        assert numbers(it) == [[0] * 4, [1] * 4, [2] * 4]


@pytest.mark.thin(5)
@pytest.mark.parametrize("policy", list(LastBatchPolicy))
@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_loop_after_break_starts_the_next_epoch(files, policy, auto_reset, shards) -> None:
    def make(on_break: str) -> Any:
        options = {"random_shuffle": True, "pad_last_batch": True, "num_shards": shards}
        pipes = [reader(files, size=20, batch_size=3, **options, shard_id=i) for i in range(shards)]
        return DALIGenericIterator(
            pipes, ["a"], reader_name="reader", last_batch_policy=policy, auto_reset=auto_reset, on_break=on_break
        )  # fmt: skip

    def parts(batches: Any) -> list[Any]:
        return [[part["a"].ravel().tolist() for part in batch] for batch in batches]

    whole = make("continue")
    expected = [parts(whole) for _ in range(4)]
    it = make("next")
    for epoch, after in ((0, 1), (1, 0), (1, 2), (2, 1)):  # a loop that ran no batch doesn't start its epoch
        assert parts(itertools.islice(it, after)) == expected[epoch][:after]
    assert parts(it) == expected[3]


def test_every_sample_is_delivered_again_after_a_break(files) -> None:
    it = DALIGenericIterator(reader(files), ["a"], reader_name="reader", on_break="next")
    for _ in range(3):
        assert broken_off(it, 2) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert numbers(it) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def test_after_a_break_only_batches_in_flight_are_computed() -> None:
    calls: list[int] = []

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=2, seed=1)
    def counted() -> Any:
        _, label = fn.readers.file(files=[__file__] * 100, labels=list(range(100)), name="reader")
        return fn.python_function(label, function=lambda x: calls.append(int(x[0])) or x)

    it = DALIGenericIterator(counted(), ["a"], reader_name="reader", on_break="next", prepare_first_batch=False)
    assert broken_off(it, 3) == [[0], [1], [2]]
    assert broken_off(it, 2) == [[0], [1]]
    assert len(calls) <= 3 + 2 + 2 + 2


@pytest.mark.parametrize("taken", [0, 1])
def test_the_position_is_correct_after_a_break(files, taken: int) -> None:
    def make() -> Any:
        pipe = reader(files, random_shuffle=True, pad_last_batch=True)
        return DALIGenericIterator(pipe, ["a"], reader_name="reader", on_break="next", prepare_first_batch=False)

    whole, it, again = make(), make(), make()
    expected = [numbers(whole) for _ in range(2)][1]
    assert len(broken_off(it, 1)) == 1
    assert broken_off(it, taken) == expected[:taken]
    again.load_state_dict(it.state_dict())
    assert (again._counter, numbers(again)) == (4 * taken, expected[taken:])


@pytest.mark.parametrize("arguments", [{}, {"size": 16}])
def test_a_loop_over_a_source_starts_the_next_epoch_after_break(arguments) -> None:
    batches = [[np.int32(i)] * 4 for i in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        it = DALIGenericIterator(source(batches, cycle="raise"), ["a"], on_break="next", auto_reset=True, **arguments)
    assert broken_off(it, 2) == [[0] * 4, [1] * 4]
    for _ in range(2):
        assert numbers(it) == [[i] * 4 for i in range(4)]


def test_a_source_with_sample_infos_starts_the_next_epoch() -> None:
    def told(info: Any) -> Any:
        if info.idx_in_epoch >= 4:
            raise StopIteration
        return np.int32([info.epoch_idx, info.idx_in_epoch])

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.external_source(source=told, batch=False)

    it = DALIGenericIterator(define(), ["a"], on_break="next", auto_reset=True)
    next(iter(it))
    assert [batch[0]["a"].tolist() for batch in it] == [[[1, 0], [1, 1]], [[1, 2], [1, 3]]]


def test_wrong_on_break() -> None:
    with pytest.raises(ValueError, match=r"on_break must be .*, got 'again'"):
        DALIGenericIterator(source([]), ["a"], on_break="again")


@pytest.mark.parametrize("on_break", ["continue", "restart", "next"])
def test_a_loop_after_load_state_dict_continues_without_a_warning(files, on_break, caplog) -> None:
    make = lambda: DALIGenericIterator(reader(files), ["a"], reader_name="reader", on_break=on_break)  # noqa: E731
    it = make()
    next(it)
    place = it.state_dict()
    rest = numbers(it) if on_break == "continue" else [next(it)[0]["a"].ravel().tolist() for _ in range(2)]
    caplog.clear()
    again = make()
    again.load_state_dict(place)
    assert numbers(again) == rest
    assert "not finished" not in caplog.text


def test_attributes_that_published_scripts_read(files) -> None:
    it = DALIGenericIterator(reader(files), ["a"], reader_name="reader")
    assert it._size == it.size == 12 and it._num_gpus == 1


def test_an_iterator_is_not_a_dataset(files) -> None:
    it = DALIGenericIterator(reader(files), ["a"], reader_name="reader")
    assert not hasattr(it, "dataset")
    with pytest.raises(AttributeError, match="shard_id and num_shards"):
        _ = it.dataset
    with pytest.raises(TypeError, match="cannot be indexed"):
        next(iter(torch.utils.data.DataLoader(it, batch_size=None)))
