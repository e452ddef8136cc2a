"""Order of epochs, shards, padding, shuffling; saving, restoring, another number of ranks."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchdali.experimental.dynamic as ndd
from tests.helpers.encoded_images import encoded, smooth_image, tensor
from tests.helpers.inside import computed_in_one_piece
from tests.helpers.lines import lines_of
from torchdali import fn, pipeline_def
from torchdali.calls.decorators import reader
from torchdali.declaration.schema import OutputCount, shares
from torchdali.reading.cursor import Cursor, EpochOrder, reshard
from torchdali.reading.datasets import Dataset, LoaderOptions, check_dataset, reader_meta, shard_start


def cursor(size: int, seed: int = 0, **options: object) -> Cursor:
    return Cursor(EpochOrder(size, LoaderOptions(**options), seed))  # type: ignore[arg-type]


# A permutation of more records than the first number is computed piece by piece.
longest = st.sampled_from((1 << 24, 3, 0))


def batches(place: Cursor, batch_size: int, count: int) -> list[list[int]]:
    return [place.next_batch(batch_size).records.tolist() for _ in range(count)]


def epochs(place: Cursor, count: int) -> list[list[int]]:
    """Walk whole epochs, sample by sample."""
    out = []
    for _ in range(count):
        number, records = place.epoch, []
        while place.epoch == number:
            keys = place.next_batch(1)
            if not keys.padded[0]:
                records.append(int(keys.records[0]))
        out.append(records)
    return out


@pytest.mark.parametrize(
    ("size", "batch_size", "options", "expected"),
    [
        (10, 4, {}, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5]]),
        (10, 4, {"pad_last_batch": True}, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9, 9], [0, 1, 2, 3]]),
        (10, 2, {"num_shards": 3, "shard_id": 1}, [[3, 4], [5, 6], [7, 8], [9, 0], [1, 2], [3, 4]]),
        (
            10,
            2,
            {"num_shards": 3, "pad_last_batch": True},
            [[0, 1], [2, 2], [3, 4], [5, 5], [6, 7], [8, 9], [0, 1]],
        ),
        (10, 2, {"num_shards": 3, "stick_to_shard": True}, [[0, 1], [2, 0], [1, 2], [0, 1]]),
        (
            10,
            2,
            {"num_shards": 3, "stick_to_shard": True, "pad_last_batch": True},
            [[0, 1], [2, 2], [0, 1], [2, 2]],
        ),
        (3, 8, {}, [[0, 1, 2, 0, 1, 2, 0, 1], [2, 0, 1, 2, 0, 1, 2, 0]]),
        (3, 5, {"pad_last_batch": True}, [[0, 1, 2, 2, 2], [0, 1, 2, 2, 2]]),
        (5, 2, {"num_shards": 4, "pad_last_batch": True}, [[0, 0], [1, 1], [2, 2], [3, 4], [0, 0]]),
    ],
)
def test_order_without_shuffling(size, batch_size, options, expected) -> None:
    assert batches(cursor(size, **options), batch_size, len(expected)) == expected


def test_shard_borders() -> None:
    assert [shard_start(11, 4, shard) for shard in range(5)] == [0, 2, 5, 8, 11]


def test_keys_of_a_batch_across_epochs() -> None:
    place = cursor(3)
    place.next_batch(2)
    keys = place.next_batch(5)
    assert keys.records.tolist() == [2, 0, 1, 2, 0]
    assert keys.epochs.tolist() == [0, 1, 1, 1, 2]
    assert not keys.padded.any()
    assert keys.records.dtype == keys.epochs.dtype == np.int64


def test_keys_of_a_padded_batch() -> None:
    keys = cursor(3, pad_last_batch=True).next_batch(5)
    assert keys.records.tolist() == [0, 1, 2, 2, 2]
    assert keys.epochs.tolist() == [0] * 5
    assert keys.padded.tolist() == [False, False, False, True, True]


def test_left_counts_down_to_the_end_of_the_epoch() -> None:
    place = cursor(10, num_shards=3, pad_last_batch=True)
    counts = []
    for _ in range(5):
        counts.append(place.remaining())
        place.next_batch(2)
    assert counts == [4, 2, 4, 2, 4]


shard_modes = st.fixed_dictionaries(
    {"stick_to_shard": st.booleans(), "random_shuffle": st.booleans()}
) | st.just({"shuffle_after_epoch": True})


@settings(max_examples=20, deadline=None)
@given(
    size=st.integers(1, 40),
    shards=st.integers(1, 7),
    pad=st.booleans(),
    mode=shard_modes,
    seed=st.integers(-5, 2**40),
    kept=longest,
)
def test_shards_of_an_epoch_cover_the_dataset(size, shards, pad, mode, seed, kept) -> None:
    """Padding and shards also match if every rank has another seed."""
    shards = min(shards, size)
    with computed_in_one_piece(kept):
        walks = [
            epochs(cursor(size, seed + rank, shard_id=rank, num_shards=shards, pad_last_batch=pad, **mode), 3)
            for rank in range(shards)
        ]
    for epoch in range(3):
        together = [record for walk in walks for record in walk[epoch]]
        assert sorted(together) == list(range(size))


@settings(max_examples=20, deadline=None)
@given(
    size=st.integers(1, 40),
    shards=st.integers(1, 7),
    batch_size=st.integers(1, 9),
    mode=shard_modes,
)
def test_padding_gives_all_ranks_equally_many_full_batches(size, shards, batch_size, mode) -> None:
    shards = min(shards, size)
    per_shard = math.ceil(size / shards)
    wanted = math.ceil(per_shard / batch_size)
    for rank in range(shards):
        place = cursor(size, shard_id=rank, num_shards=shards, pad_last_batch=True, **mode)
        for epoch in range(3):
            for _ in range(wanted):
                keys = place.next_batch(batch_size)
                assert set(keys.epochs.tolist()) == {epoch}
                assert len(keys.records) == batch_size
                assert set(keys.records[keys.padded].tolist()) <= {keys.records[-1]}


def test_shuffling_depends_on_seed_and_epoch_only() -> None:
    first = epochs(cursor(50, 3, random_shuffle=True), 3)
    assert first == epochs(cursor(50, 3, random_shuffle=True), 3)
    assert len({tuple(walk) for walk in first}) == 3
    assert first != epochs(cursor(50, 4, random_shuffle=True), 3)
    place = cursor(50, 3, random_shuffle=True)
    assert [r for b in batches(place, 8, 18) for r in b] == list(chain(*first))[:144]


def test_shuffling_covers_the_set_of_orders() -> None:
    seen = Counter(
        tuple(EpochOrder(3, LoaderOptions(random_shuffle=True), s).records(0).tolist())
        for s in range(600)
    )
    assert len(seen) == 6
    assert min(seen.values()) > 60  # 100 expected, deviation 9


@pytest.mark.thin(9, 5)
@pytest.mark.parametrize("size", [3, 5, 64, 1000])
@pytest.mark.parametrize("options", [{"random_shuffle": True}, {"shuffle_after_epoch": True}])
def test_orders_of_long_datasets_are_shuffled_well(size: int, options: dict[str, bool]) -> None:
    """The first record, and the step from the first to the second, are spread evenly over 600 epochs."""
    with computed_in_one_piece(0):
        place = EpochOrder(size, LoaderOptions(**options), 3)
        orders = [place.records(epoch) for epoch in range(600)]
    assert all(sorted(order.tolist()) == list(range(size)) for order in orders[:20])
    for numbers in ([order[0] for order in orders], [(order[1] - order[0]) % size for order in orders]):
        counts = np.histogram(numbers, bins=min(size, 8), range=(0, size))[0]
        expected = counts[1:].mean() if size < 8 else 75  # a step is never 0
        assert np.abs(counts[1:] - expected).max() < 5 * expected**0.5


@pytest.mark.parametrize("size", [(1 << 24) + 1, 10**8, 1 << 31, 10**12])
@pytest.mark.parametrize("shuffled", [False, True])
def test_long_datasets_start_immediately(size: int, shuffled: bool) -> None:
    """The records are not listed: the longest list would need 8 TB."""
    tracemalloc.start()
    place = cursor(size, 5, random_shuffle=shuffled, pad_last_batch=True)
    first = place.next_batch(1000).records
    place.restore({**place.state(), "taken": size - 1000})
    last = place.next_batch(1000).records
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20
    assert len({*first.tolist(), *last.tolist()}) == 2000
    assert min(first.min(), last.min()) >= 0 and max(first.max(), last.max()) < size
    assert (first.tolist() == list(range(1000))) is not shuffled
    assert place.epoch == 1
    assert (place.next_batch(1000).records.tolist() == first.tolist()) is not shuffled


def test_the_stream_of_the_shuffle_never_changes() -> None:
    """Saved positions must give the same order with every version of NumPy."""
    long = EpochOrder(10**9, LoaderOptions(random_shuffle=True), 7)
    assert long.shard(2).records[:3].tolist() == [942996136, 672726800, 836116293]
    options = LoaderOptions(random_shuffle=True)
    assert EpochOrder(10, options, 7).records(2).tolist() == [5, 9, 3, 7, 8, 4, 6, 1, 0, 2]
    after = LoaderOptions(shuffle_after_epoch=True)
    assert EpochOrder(10, after).records(0).tolist() == [0, 5, 9, 7, 3, 8, 4, 6, 1, 2]


def test_a_rank_that_sticks_to_its_shard_keeps_its_records() -> None:
    options = {"random_shuffle": True, "stick_to_shard": True, "num_shards": 3, "shard_id": 1}
    walks = epochs(cursor(30, 5, **options), 4)
    assert len({frozenset(walk) for walk in walks}) == 1
    assert len({tuple(walk) for walk in walks}) == 4


def test_shards_change_their_records_when_shuffled_globally() -> None:
    walks = epochs(cursor(30, 5, random_shuffle=True, num_shards=3), 4)
    assert len({frozenset(walk) for walk in walks}) == 4


def test_shuffle_after_epoch_ignores_the_pipeline_seed() -> None:
    options = {"shuffle_after_epoch": True, "num_shards": 2}
    walks = epochs(cursor(20, 1, **options), 3)
    assert walks == epochs(cursor(20, 2, **options), 3)
    assert walks[0] != walks[1]
    assert walks != epochs(cursor(20, 1, shuffle_after_epoch_seed=9, **options), 3)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_shards": 2, "shard_id": 2}, RuntimeError, "greater than shard_id"),
        ({"num_shards": 0}, RuntimeError, "greater than shard_id"),
        ({"num_shards": 2, "shard_id": -1}, RuntimeError, "negative"),
        ({"shuffle_after_epoch": True, "random_shuffle": True}, RuntimeError, "both be true"),
        ({"shuffle_after_epoch": True, "stick_to_shard": True}, RuntimeError, "both be true"),
        ({"random_shuffle": True, "initial_fill": 0}, RuntimeError, "initial_fill"),
        ({"prefetch_queue_depth": 0}, RuntimeError, "at least 1"),
        ({"prefetch_queue_depth": -1}, ValueError, "positive"),
        ({"tensor_init_bytes": -1}, RuntimeError, "tensor_init_bytes"),
    ],
)
def test_contradictory_options_are_rejected(options, error, text) -> None:
    with pytest.raises(error, match=text):
        LoaderOptions(**options)


@pytest.mark.parametrize(("size", "text"), [(0, "no records"), (2, "input samples: 2, needs .* requested number of shards: 3")])
def test_too_few_records(size, text) -> None:
    with pytest.raises(RuntimeError, match=text):
        EpochOrder(size, LoaderOptions(num_shards=3))


@pytest.mark.parametrize(
    ("methods", "text"),
    [(("__len__", "read", "info"), ""), (("__len__", "read"), "'Records' has no info$"), (("read",), "no __len__, info$")],
)
def test_a_dataset_has_three_methods(methods, text) -> None:
    records = type("Records", (), dict.fromkeys(methods, lambda self, index: None))()
    if not text:
        return check_dataset(records)
    with pytest.raises(TypeError, match=text):
        check_dataset(records)


class Bare:
    """Records whose `read` returns one tensor, with as many rows as outputs, instead of a tuple."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value

    def __len__(self) -> int:
        return 4

    def read(self, index: int) -> torch.Tensor:
        return self.value

    def info(self, index: int) -> str:
        return f"record {index}"


JPEG = tensor(encoded(smooth_image(), "JPEG"))
READ = {
    "one": (Bare(torch.zeros(1)), 1, list),
    "two": (Bare(torch.zeros(2, 5)), 2, list),
    "views": (Bare(torch.zeros(2, 5)), 2, list),
    "decoded": (Bare(JPEG[None]), 1, lambda data: [fn.decoders.image(data[0])]),
    "resized": (Bare(JPEG[None]), 1, lambda data: [fn.resize(fn.decoders.image(data[0]), size=4)]),
}  # fmt: skip


@pytest.mark.usefixtures("own_operators")
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("more", [{}, {"debug": True}, {"num_processes": 2}])
def test_a_tensor_instead_of_a_tuple_is_rejected(name: str, more: dict[str, Any]) -> None:
    dataset, count, use = READ[name]

    @reader(name="_bare", outputs=lambda arguments: count, marks=("view",) if name == "views" else ())
    def bare(**options: Annotated[Any, shares(LoaderOptions)]) -> Annotated[Dataset, OutputCount(1)]:
        """Read records."""
        return dataset

    @pipeline_def(batch_size=3, num_threads=2, device_id=None, **more)
    def pipe() -> Any:
        return tuple(use(bare()))

    made = pipe()
    with pytest.raises(TypeError, match=r"record 0(.|\n)*tuple of tensors(.|\n)*return \(tensor,\)"):
        made.run()
    made.close()


def test_a_reader_of_the_dynamic_mode_warns_on_the_line_that_makes_it(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"a")
    with pytest.warns(UserWarning, match="no effect without shuffle_after_epoch") as said:
        ndd.readers.File(files=[str(tmp_path / "a.jpg")], shuffle_after_epoch_seed=3)
    assert ["ndd.readers.File(" in line for line in lines_of(said)] == [True]


@pytest.mark.parametrize("more", [{}, {"debug": True}])
@pytest.mark.parametrize("lazy_init", [False, True])
def test_seed_without_its_shuffle_warns_on_the_line_of_the_reader(
    tmp_path: Path, lazy_init: bool, more: dict[str, Any]
) -> None:
    (tmp_path / "a.jpg").write_bytes(b"a")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, **more)
    def define() -> Any:
        return fn.readers.file(
            files=[str(tmp_path / "a.jpg")], lazy_init=lazy_init, shuffle_after_epoch_seed=3
        )[0]

    pipe = define()
    with pytest.warns(UserWarning, match="no effect without shuffle_after_epoch") as said:
        pipe.run()
    assert lines_of(said) == ["return fn.readers.file("]
    pipe.close()


@pytest.mark.parametrize(
    ("options", "padded", "sticks"),
    [
        ({"num_shards": 3, "pad_last_batch": True}, 12, 0),
        ({"num_shards": 3}, 10, 0),
        ({"num_shards": 3, "stick_to_shard": True}, 10, 1),
        ({"num_shards": 3, "shuffle_after_epoch": True}, 10, 1),
    ],
)
def test_reader_meta(options, padded, sticks) -> None:
    assert reader_meta(10, LoaderOptions(**options)) == {
        "epoch_size": 10,
        "epoch_size_padded": padded,
        "number_of_shards": 3,
        "shard_id": 0,
        "pad_last_batch": int(options.get("pad_last_batch", False)),
        "stick_to_shard": sticks,
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pad_last_batch": True},
        {"random_shuffle": True},
        {"random_shuffle": True, "pad_last_batch": True, "num_shards": 3, "shard_id": 2},
        {"shuffle_after_epoch": True, "num_shards": 2},
    ],
)
def test_restoring_at_any_batch(options) -> None:
    place, states, walk = cursor(11, 5, **options), [], []
    for _ in range(12):
        states.append(json.loads(json.dumps(place.state())))
        walk.append(place.next_batch(4).records.tolist())
    for at, state in enumerate(states):
        other = cursor(11, 99, **options)  # the saved seed is used
        other.restore(state)
        assert batches(other, 4, 12 - at) == walk[at:]


@pytest.mark.parametrize(
    ("saved", "text"),
    [
        (cursor(12, num_shards=2), "10 records, got 12"),
        (cursor(10, num_shards=2, shard_id=1), "shard 1 of 2"),
        (cursor(10, num_shards=3), "reshard"),
    ],
)
def test_a_state_of_another_reader_is_rejected(saved, text) -> None:
    with pytest.raises(RuntimeError, match=text):
        cursor(10, num_shards=2).restore(saved.state())


def world(size: int, shards: int, seed: int, options: dict[str, bool]) -> list[Cursor]:
    return [
        cursor(size, seed + rank, shard_id=rank, num_shards=shards, **options)
        for rank in range(shards)
    ]


def run(ranks: list[Cursor], batch_size: int, steps: int, seen: Counter[tuple[int, int]]) -> None:
    """Let every rank deliver batches; count each sample by its key."""
    for _ in range(steps):
        for place in ranks:
            keys = place.next_batch(batch_size)
            real = ~keys.padded
            seen.update(zip(keys.epochs[real].tolist(), keys.records[real].tolist(), strict=True))


def change_world(ranks: list[Cursor], shards: int, options: dict[str, bool]) -> list[Cursor]:
    states = json.loads(json.dumps([place.state() for place in ranks]))
    new = world(ranks[0].order.size, shards, 1000, options)
    for place, state in zip(new, reshard(states[::-1], shards), strict=True):
        place.restore(state)
    return new


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(6, 40),
    worlds=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=2, max_size=4),
    batch_size=st.integers(1, 7),
    pad=st.booleans(),
    mode=shard_modes,
    kept=longest,
)
def test_another_number_of_ranks_loses_and_repeats_nothing(size, worlds, batch_size, pad, mode, kept) -> None:
    with computed_in_one_piece(kept):
        _change_worlds(size, worlds, batch_size, {"pad_last_batch": pad, **mode})


def _change_worlds(size: int, worlds: list[tuple[int, int]], batch_size: int, options: dict[str, bool]) -> None:
    seen: Counter[tuple[int, int]] = Counter()
    ranks = world(size, worlds[0][0], 3, options)
    run(ranks, batch_size, worlds[0][1], seen)
    for shards, steps in worlds[1:]:
        ranks = change_world(ranks, shards, options)
        run(ranks, batch_size, steps, seen)
    behind = min(place.epoch for place in ranks)
    for place in ranks:  # let every rank finish the epoch of the slowest
        while place.epoch <= behind:
            run([place], 1, 1, seen)
    assert set(seen.values()) == {1}
    assert {key for key in seen if key[0] <= behind} == {
        (epoch, record) for epoch in range(behind + 1) for record in range(size)
    }


def test_padding_counts_the_rest_of_a_resharded_epoch() -> None:
    options = {"pad_last_batch": True}
    ranks = world(16, 2, 0, options)
    run(ranks, 3, 1, Counter())
    three = change_world(ranks, 3, options)  # 10 samples are left: 4, 4 and 4 with padding
    assert [place.remaining() for place in three] == [4, 4, 4]
    run(three, 4, 1, Counter())
    assert [(place.epoch, place.remaining()) for place in three] == [(1, 6)] * 3
    assert three[0].state()["cuts"] == {}


def test_reshard_needs_one_state_of_each_rank() -> None:
    states = [place.state() for place in world(10, 2, 0, {})]
    with pytest.raises(ValueError, match="each of the 2 ranks"):
        reshard(states[:1], 4)
    with pytest.raises(ValueError, match=r"ranks \[0, 0\]"):
        reshard([states[0], states[0]], 4)
    with pytest.raises(ValueError, match="datasets of the same size"):
        reshard([states[0], {**states[1], "size": 9}], 4)
