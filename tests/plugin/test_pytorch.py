"""Iterators over pipelines: epochs, policies, resets, errors, checkpoints."""

from __future__ import annotations

import json
import logging
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.fake_pipeline import FakePipeline, ReaderPipeline, SourcePipeline, records_of
from torchdali import fn, pipeline_def
from torchdali.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    LastBatchPolicy,
)
from torchdali.tensors import TensorListCPU

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL
Epoch = list[list[list[int]]]


def iterator(
    size: int, batch_size: int, ranks: list[int] | None = None, **arguments: Any
) -> DALIGenericIterator:
    """Return an iterator over readers; `arguments` are the iterator's, the others the readers'."""
    own = {
        key: arguments.pop(key)
        for key in ("auto_reset", "last_batch_policy", "prepare_first_batch")
        if key in arguments
    }
    pipes = [ReaderPipeline(size, batch_size, shard_id=rank, **arguments) for rank in ranks or [0]]
    return DALIGenericIterator(pipes, ["a"], reader_name="reader", **own)


def numbers(batch: list[dict[str, torch.Tensor]]) -> list[list[int]]:
    return [part["a"].ravel().tolist() for part in batch]


def walk(it: DALIGenericIterator, epochs: int) -> list[Epoch]:
    return [[numbers(batch) for batch in it] for _ in range(epochs)]


def one(epochs: list[Epoch]) -> list[list[list[int]]]:
    """Return the epochs of an iterator with a single pipeline."""
    return [[batch[0] for batch in epoch] for epoch in epochs]


def nexts(it: DALIGenericIterator, count: int) -> list[list[int] | str]:
    """Return the results of `next`, and the names of exceptions."""
    out: list[list[int] | str] = []
    for _ in range(count):
        try:
            out.append(numbers(next(it))[0])
        except Exception as error:
            out.append(type(error).__name__)
    return out


A, B, C = [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]


@pytest.mark.parametrize(
    ("policy", "pad", "expected"),
    [
        (FILL, False, [[A, B, C], [[2, 3, 4, 5], [6, 7, 8, 9]], [A, B, C]]),
        (FILL, True, [[A, B, [8, 9, 9, 9]]] * 3),
        (DROP, False, [[A, B], [[2, 3, 4, 5], [6, 7, 8, 9]], [B, C]]),
        (DROP, True, [[A, B]] * 3),
        (
            PARTIAL,
            False,
            [[A, B, [8, 9]], [[2, 3, 4, 5], [6, 7, 8, 9], [0, 1]], [B, C, [2, 3]]],
        ),
        (PARTIAL, True, [[A, B, [8, 9]]] * 3),
    ],
)
def test_policies(policy, pad, expected) -> None:
    it = iterator(10, 4, last_batch_policy=policy, pad_last_batch=pad, auto_reset=True)
    assert one(walk(it, 3)) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (FILL, [[[[0, 1, 2, 3], [5, 6, 7, 8]], [[4, 4, 4, 4], [9, 10, 10, 10]]]]),
        (PARTIAL, [[[[0, 1, 2, 3], [5, 6, 7, 8]], [[4], [9, 10]]]]),
        (DROP, [[[[0, 1, 2, 3], [5, 6, 7, 8]]]]),
    ],
)
def test_two_pipelines_with_padding_change_their_shards(policy, expected) -> None:
    it = iterator(
        11, 4, [0, 1], num_shards=2, pad_last_batch=True, last_batch_policy=policy, auto_reset=True
    )
    assert len(it) == len(expected[0])
    first, second = walk(it, 2)
    assert first == expected[0]
    assert second == [batch[::-1] for batch in first]


def test_a_rank_without_remaining_samples_delivers_an_empty_last_batch() -> None:
    it = iterator(9, 4, num_shards=2, pad_last_batch=True, last_batch_policy=PARTIAL)
    assert one(walk(it, 1)) == [[[0, 1, 2, 3], []]]


def test_dropped_padded_batches_do_not_appear_in_the_next_epoch() -> None:
    it = iterator(9, 4, num_shards=2, pad_last_batch=True, last_batch_policy=DROP, auto_reset=True)
    assert one(walk(it, 3)) == [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[0, 1, 2, 3]]]


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 40),
    world=st.integers(1, 6),
    batch_size=st.integers(1, 9),
    policy=st.sampled_from(LastBatchPolicy),
    pad=st.booleans(),
    stick=st.booleans(),
)
def test_all_ranks_deliver_equally_many_batches(size, world, batch_size, policy, pad, stick) -> None:
    world = min(world, size)
    if policy is DROP and size // world < batch_size:
        return
    options = {"num_shards": world, "pad_last_batch": pad, "stick_to_shard": stick}
    counts = set()
    for rank in range(world):
        it = iterator(
            size, batch_size, [rank], last_batch_policy=policy, auto_reset=True, **options
        )
        expected = []
        found = []
        for _ in range(4):
            expected.append(len(it))
            found.append(sum(1 for _ in it))
        assert found == expected
        counts.add(tuple(found))
    assert len(counts) == 1


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 40),
    world=st.integers(1, 6),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
)
def test_partial_with_padding_delivers_the_epoch_exactly_once(
    size, world, batch_size, shuffle
) -> None:
    world = min(world, size)
    options = {"num_shards": world, "pad_last_batch": True, "random_shuffle": shuffle}
    walks = [
        walk(
            iterator(size, batch_size, [k], last_batch_policy=PARTIAL, auto_reset=True, **options),
            2,
        )
        for k in range(world)
    ]
    for epoch in range(2):
        seen = [n for w in walks for batch in w[epoch] for n in batch[0]]
        assert sorted(seen) == list(range(size))


# ---------------------------------------------------------------- resets


def test_without_auto_reset_the_epoch_stays_ended_until_reset() -> None:
    it = iterator(8, 4)
    assert nexts(it, 4) == [A, B, "StopIteration", "StopIteration"]
    it.reset()
    assert nexts(it, 3) == [A, B, "StopIteration"]


@pytest.mark.parametrize("auto_reset", [True, "yes"])
def test_with_auto_reset_the_next_epoch_starts_automatically(auto_reset) -> None:
    it = iterator(8, 4, auto_reset=auto_reset)
    assert nexts(it, 6) == [A, B, "StopIteration", A, B, "StopIteration"]


@pytest.mark.parametrize("auto_reset", [False, "no", None])
def test_a_new_loop_starts_a_new_epoch(auto_reset) -> None:
    assert one(walk(iterator(8, 4, auto_reset=auto_reset), 2)) == [[A, B], [A, B]]


def test_reset_in_the_middle_is_ignored_with_a_warning(caplog) -> None:
    it = iterator(8, 4)
    assert nexts(it, 1) == [A]
    with caplog.at_level(logging.WARNING):
        it.reset()
    assert "not finished" in caplog.text
    assert caplog.text.index("'next' begins") < caplog.text.index("'restart' begins")
    assert nexts(it, 2) == [B, "StopIteration"]


@pytest.mark.parametrize(
    ("policy", "pad", "size", "said"),
    [(FILL, False, 10, 1), (FILL, True, 10, 0), (FILL, False, 8, 0), (PARTIAL, False, 10, 0), (DROP, False, 10, 0)],
)
@pytest.mark.parametrize("auto_reset", [True, False])
def test_the_end_of_an_epoch_with_samples_of_the_next_is_logged_once(policy, pad, size, said, auto_reset, caplog) -> None:
    it = iterator(size, 4, last_batch_policy=policy, pad_last_batch=pad, auto_reset=auto_reset)
    walk(it, 3)
    assert caplog.text.count("Epoch 0 delivered 12 samples per rank, but the reader has 10") == said


def test_the_log_entry_is_no_warning_if_the_reader_shuffles(caplog) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def shuffled() -> Any:
        return fn.readers.dataset(dataset=list(range(10)), random_shuffle=True, name="Reader")

    with caplog.at_level(logging.INFO):
        walk(DALIGenericIterator(shuffled(), ["a"], reader_name="Reader"), 2)
    assert [(r.levelname, r.message[:21]) for r in caplog.records] == [("INFO", "Epoch 0 delivered 12 ")]


def test_reset_at_the_start_does_not_warn(caplog) -> None:
    it = iterator(8, 4)
    it.reset()
    iter(it)
    assert caplog.text == ""
    assert nexts(it, 2) == [A, B]


def test_a_loop_after_break_continues(caplog) -> None:
    it = iterator(10, 4, auto_reset=True)
    for _ in it:
        break
    assert one(walk(it, 2)) == [[B, C], [[2, 3, 4, 5], [6, 7, 8, 9]]]
    assert "not finished" in caplog.text


def test_reset_after_the_last_batch_before_stop_iteration() -> None:
    it = iterator(8, 4)
    assert nexts(it, 2) == [A, B]
    it.reset()
    assert nexts(it, 3) == [A, B, "StopIteration"]


# ---------------------------------------------------------------- sources, sizes


def sources(batches: list[Any], cycle: bool = False, **arguments: Any) -> DALIGenericIterator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DALIGenericIterator(SourcePipeline(batches, 4, cycle), ["a"], **arguments)


def test_a_source_ends_the_epoch() -> None:
    assert one(walk(sources([A, B], cycle=True), 3)) == [[A, B]] * 3
    assert one(walk(sources([A, B], cycle=True, auto_reset=True), 3)) == [[A, B]] * 3
    assert one(walk(sources([A, B]), 3)) == [[A, B], [], []]
    assert len(sources([A])) == 0
    assert sources([A]).size == -1


def test_smaller_batches_of_a_source_are_delivered_unchanged() -> None:
    it = sources([A, [4, 5]], cycle=True, last_batch_policy=DROP)
    assert one(walk(it, 2)) == [[A, [4, 5]]] * 2


@pytest.mark.parametrize(
    ("size", "policy", "padded", "expected"),
    [
        (10, FILL, False, [[A, B, C], [A, B], [C, A, B]]),
        (10, FILL, True, [[A, B, C], [A, B, C]]),
        (10, DROP, False, [[A, B], [A, B]]),
        (10, PARTIAL, False, [[A, B, [8, 9]], [A, B, [8, 9]]]),
        (8, FILL, False, [[A, B], [C, A], [B, C]]),
        (12, FILL, False, [[A, B, C], [A, B, C]]),
    ],
)
def test_epochs_of_an_explicit_size(size, policy, padded, expected) -> None:
    it = sources(
        [A, B, C],
        cycle=True,
        size=size,
        last_batch_policy=policy,
        last_batch_padded=padded,
        auto_reset=True,
    )
    assert it.size == size
    assert len(it) == len(expected[0])
    assert one(walk(it, len(expected))) == expected


def test_a_source_that_ends_before_the_explicit_size() -> None:
    assert one(walk(sources([A, B], size=12), 2)) == [[A, B], []]


# -------------------------------------------------------------------------- outputs


def test_batches_share_the_pipelines_tensors() -> None:
    made = [records_of([i]) for i in range(3)]
    it = DALIGenericIterator(SourcePipeline(list(made), 1), ["a"])
    kept = [batch[0]["a"] for batch in it]
    assert [t.data_ptr() for t in kept] == [m[0].dense().data_ptr() for m in made]
    assert [t.tolist() for t in kept] == [[[0]], [[1]], [[2]]]


def test_a_truncated_batch_is_a_view() -> None:
    pipe = ReaderPipeline(3, 2)
    it = DALIGenericIterator(pipe, ["a"], reader_name="reader", last_batch_policy=PARTIAL)
    last = list(it)[-1][0]["a"]
    assert last.shape == (1, 1)
    assert last._is_view()


def test_several_outputs_and_the_classification_names() -> None:
    batch = (*records_of([1, 2]), *records_of([3, 4]))
    it = DALIClassificationIterator([SourcePipeline([batch], 2)])
    (found,) = it.next()
    assert list(found) == ["data", "label"]
    assert found["label"].tolist() == [[3], [4]]


def test_separate_samples_of_equal_shape_are_stacked() -> None:
    samples = TensorListCPU.from_samples([torch.zeros(2), torch.ones(2)])
    it = DALIGenericIterator(SourcePipeline([(samples,)], 2), ["a"])
    assert next(it)[0]["a"].tolist() == [[0, 0], [1, 1]]


def test_the_error_of_different_shapes_names_the_alternative() -> None:
    samples = TensorListCPU.from_samples([torch.zeros(2), torch.ones(3)])
    it = DALIGenericIterator(SourcePipeline([(samples,)], 2), ["image"], prepare_first_batch=False)
    with pytest.raises(RuntimeError, match=r"'image'.*DALIRaggedIterator"):
        next(it)


def test_a_failed_batch_is_skipped_and_the_epoch_continues() -> None:
    batches = [A, ValueError("broken"), B]
    assert nexts(sources(batches, size=12), 4) == [A, "ValueError", B, "StopIteration"]


def test_several_pipelines_stay_synchronized_if_one_fails() -> None:
    pipes = [SourcePipeline([A, ValueError("broken"), B], 4), SourcePipeline([A, B, C], 4)]
    with pytest.warns(Warning, match="reader_name"):
        it = DALIGenericIterator(pipes, ["a"], size=24)
    assert numbers(next(it)) == [A, A]
    with pytest.raises(ValueError, match="broken"):
        next(it)
    assert numbers(next(it)) == [B, C]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_queue_stays_full_and_never_overflows(depth) -> None:
    pipe = ReaderPipeline(10, 4, depth=depth)
    it = DALIGenericIterator(pipe, ["a"], reader_name="reader", auto_reset=True)
    for _ in range(3):
        for _ in it:
            assert pipe.in_flight == depth


def test_the_first_batch_is_prefetched_by_default() -> None:
    broken = [ValueError("broken")]
    with pytest.raises(ValueError, match="broken"):
        DALIGenericIterator(SourcePipeline(broken, 4), ["a"])
    it = DALIGenericIterator(SourcePipeline(broken, 4), ["a"], prepare_first_batch=False)
    assert nexts(it, 2) == ["ValueError", "StopIteration"]


# ---------------------------------------------------------------- arguments


def two_shards(**other: Any) -> list[FakePipeline]:
    return [ReaderPipeline(8, 4, num_shards=2), ReaderPipeline(8, 4, shard_id=1, **other)]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"size": 8, "reader_name": "reader"}, AssertionError, "pass either size or reader_name"),
        ({"size": 0}, AssertionError, "Size cannot be 0"),
        ({"reader_name": "reader", "last_batch_padded": True}, AssertionError, "omit last_b"),
        ({"reader_name": "other"}, RuntimeError, "other"),
        ({"auto_reset": "maybe"}, ValueError, "auto_reset"),
        ({"auto_reset": 1}, ValueError, "auto_reset"),
        ({"last_batch_policy": "PARTIAL"}, ValueError, "LastBatchPolicy.PARTIAL"),
        ({"last_batch_policy": 2}, ValueError, "LastBatchPolicy"),
    ],
)
def test_contradictory_arguments(arguments, error, text) -> None:
    with pytest.raises(error, match=text):
        DALIGenericIterator(ReaderPipeline(8, 4), ["a"], **arguments)


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["a", "b"], KeyError),
        ([], IndexError),
        (["a", "a"], AssertionError),
        ("ab", AssertionError),
    ],
)
def test_names_that_do_not_fit_the_outputs(names, error) -> None:
    with pytest.raises(error):
        DALIGenericIterator(ReaderPipeline(8, 4), names)


@pytest.mark.parametrize(
    ("pipelines", "arguments", "error", "text"),
    [
        ([], {}, IndexError, "empty"),
        ([ReaderPipeline(8, 4), ReaderPipeline(8, 2)], {"size": 8}, AssertionError, "batch size"),
        ([ReaderPipeline(8, 4), ReaderPipeline(8, 4)], {}, AssertionError, "only for a single pipeline"),
        (
            [ReaderPipeline(8, 4), ReaderPipeline(9, 4)],
            {"reader_name": "reader"},
            AssertionError,
            "number of records",
        ),
        (two_shards(num_shards=3), {"reader_name": "reader"}, AssertionError, "num_shards"),
        (
            two_shards(num_shards=2, pad_last_batch=True),
            {"reader_name": "reader"},
            AssertionError,
            "pad_last_batch",
        ),
        (
            two_shards(num_shards=2, stick_to_shard=True),
            {"reader_name": "reader"},
            AssertionError,
            "stick_to_shard",
        ),
    ],
)
def test_pipelines_that_do_not_fit_together(pipelines, arguments, error, text) -> None:
    with pytest.raises(error, match=text):
        DALIGenericIterator(pipelines, ["a"], **arguments)


def test_dropping_all_batches_is_rejected() -> None:
    with pytest.raises(RuntimeError, match="smallest shard has 5"):
        iterator(5, 8, last_batch_policy=DROP)


def test_a_source_without_data_is_rejected() -> None:
    with pytest.raises(RuntimeError, match="no data"):
        sources([])
    assert one(walk(sources([], prepare_first_batch=False), 2)) == [[], []]


@pytest.mark.parametrize(("flag", "last"), [(True, C), (False, [8, 9])])
def test_the_old_spelling_of_the_policy_warns(flag, last) -> None:
    with pytest.warns(Warning, match="fill_last_batch is deprecated"):
        it = DALIGenericIterator(
            ReaderPipeline(10, 4),
            ["a"],
            reader_name="reader",
            fill_last_batch=flag,
            last_batch_policy=DROP,
        )
    assert one(walk(it, 1)) == [[A, B, last]]


def test_an_explicit_size_warns() -> None:
    with pytest.warns(Warning, match="pass its name as reader_name") as found:
        DALIGenericIterator(ReaderPipeline(10, 4), ["a"], size=10)
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    ("policy", "pad", "expected"),
    [(FILL, False, 8), (FILL, True, 6), (PARTIAL, False, 8), (PARTIAL, True, 6), (DROP, True, 5)],
)
def test_size(policy, pad, expected) -> None:
    it = iterator(11, 4, num_shards=2, last_batch_policy=policy, pad_last_batch=pad)
    assert it.size == expected


# ------------------------------------------------------------- saving a checkpoint

MODES = [
    {"last_batch_policy": policy, "pad_last_batch": pad, "random_shuffle": shuffle}
    for policy in LastBatchPolicy
    for pad in (False, True)
    for shuffle in (False, True)
]


@pytest.mark.thin(5)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("auto_reset", [False, True])
def test_a_checkpoint_can_be_saved_before_any_call(mode, auto_reset) -> None:
    def make() -> DALIGenericIterator:
        return iterator(11, 4, [1], num_shards=2, auto_reset=auto_reset, **mode)

    def step(it: DALIGenericIterator) -> list[int] | str:
        try:
            return numbers(next(it))[0]
        except StopIteration:
            it.reset()
            return "end"

    it, states, seen = make(), [], []
    for _ in range(9):
        states.append(json.loads(json.dumps(it.state_dict())))
        seen.append(step(it))
    for at, state in enumerate(states):
        other = make()
        next(other)
        other.load_state_dict(state)
        assert [step(other) for _ in range(9 - at)] == seen[at:]


def test_checkpoints_continue_in_a_new_iterator() -> None:
    it = iterator(11, 4, last_batch_policy=PARTIAL)
    assert nexts(it, 2) == [A, B]
    (text,) = it.checkpoints()
    pipe = ReaderPipeline(11, 4)
    pipe.restore_checkpoint(text)
    other = DALIGenericIterator(pipe, ["a"], reader_name="reader", last_batch_policy=PARTIAL)
    assert nexts(other, 2) == [[8, 9, 10], "StopIteration"]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (iterator(12, 4), "epoch size"),
        (iterator(10, 5), "batch size"),
        (iterator(10, 4, num_shards=2), "number of ranks"),
        (iterator(10, 4, [0, 0]), "pipelines must be 1, got 2"),
    ],
)
def test_the_state_of_another_iterator_is_rejected(other, text) -> None:
    with pytest.raises(ValueError, match=text):
        iterator(10, 4).load_state_dict(other.state_dict())


def test_pipelines_without_checkpoints_raise_an_error() -> None:
    with pytest.raises(RuntimeError, match="state_dict"):
        sources([A]).state_dict()


# ---------------------------------------------------------------- explaining


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            {"pad_last_batch": True},
            [
                "epoch 0: 11 samples, 2 ranks, batch size 4, FILL, with padding: 2 batches on",
                "rank 0: shard 0, samples 0 to 4, 5 of them; 8 delivered, 3 of them padding",
                "rank 1 (here): shard 1, samples 5 to 10, 6 of them; 8 delivered, 2 of them p",
                "ceil(6 / 4)",
            ],
        ),
        ({}, ["8 delivered, 3 of them from the next epoch", "count for the next epoch"]),
        ({"last_batch_policy": DROP}, ["4 delivered, 2 dropped", "5 // 4"]),
        ({"last_batch_policy": PARTIAL}, ["6 delivered, 2 of them in the last batch"]),
    ],
)
def test_explain_epoch(arguments, lines, capsys) -> None:
    iterator(11, 4, [1], num_shards=2, **arguments).explain_epoch()
    text = capsys.readouterr().out
    for line in lines:
        assert line in text


def test_explain_an_epoch_that_started_in_the_previous_one(capsys) -> None:
    it = iterator(10, 4, auto_reset=True)
    walk(it, 1)
    it.explain_epoch()
    assert "2 of them came with the previous epoch, 8 delivered" in capsys.readouterr().out


def test_explain_an_epoch_that_the_source_ends(capsys) -> None:
    sources([A]).explain_epoch()
    assert "ends when a source" in capsys.readouterr().out


# ---------------------------------------------------------------- warnings


def shuffled(count: int, **reader: Any) -> Any:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def numbers() -> Any:
        data = [np.int64(i) for i in range(count)]
        return fn.readers.dataset(dataset=data, name="Reader", **{"random_shuffle": True, **reader})

    return numbers()


@pytest.mark.parametrize("policy", [LastBatchPolicy.PARTIAL, LastBatchPolicy.DROP])
def test_mixed_epochs_warn(policy: LastBatchPolicy) -> None:
    with pytest.warns(UserWarning, match="from the second epoch on, some samples are missing.*'Reader' shuffles"):
        DALIGenericIterator(shuffled(10), ["x"], reader_name="Reader", last_batch_policy=policy)


@pytest.mark.parametrize(
    "count, reader, policy",
    [
        (10, {"pad_last_batch": True}, LastBatchPolicy.PARTIAL),
        (12, {}, LastBatchPolicy.PARTIAL),
        (10, {"random_shuffle": False}, LastBatchPolicy.DROP),
        (10, {}, LastBatchPolicy.FILL),
    ],
)
def test_complete_epochs_do_not_warn(count: int, reader: dict[str, Any], policy: LastBatchPolicy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DALIGenericIterator(shuffled(count, **reader), ["x"], reader_name="Reader", last_batch_policy=policy)


def test_a_changing_length_warns_once() -> None:
    iterator = DALIGenericIterator(shuffled(10), ["x"], reader_name="Reader")
    with pytest.warns(UserWarning, match="differs from epoch to epoch.*Lightning") as said:
        assert [len(iterator), len(iterator)] == [3, 3]
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(DALIGenericIterator(shuffled(12), ["x"], reader_name="Reader")) == 3


def test_the_fn_module_of_the_plugin_has_all_operators() -> None:
    names: dict[str, Any] = {}
    exec("from torchdali import fn\nfrom torchdali.plugin.pytorch import *", names)
    assert names["fn"].readers is fn.readers and names["fn"].torch_python_function is fn.torch_python_function


def test_errors_of_the_constructor_show_few_frames() -> None:
    with pytest.raises(RuntimeError) as raised:
        DALIGenericIterator(shuffled(10), ["x"], reader_name="Raeder")
    assert len(raised.traceback) <= 5  # this test, the constructors, and the function that raised it
