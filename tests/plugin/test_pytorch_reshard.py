"""Iterators that continue an epoch with another number of ranks."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.fake_pipeline import ReaderPipeline
from torchdali.plugin import _epochs
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from torchdali.reading import cursor

Rank = tuple[ReaderPipeline, DALIGenericIterator]


def world(size: int, batch_size: int, ranks: int, **options: Any) -> list[Rank]:
    policy = options.pop("last_batch_policy")
    pipes = [
        ReaderPipeline(size, batch_size, shard_id=k, num_shards=ranks, **options)
        for k in range(ranks)
    ]
    return [
        (
            pipe,
            DALIGenericIterator(
                pipe, ["a"], reader_name="reader", auto_reset=True, last_batch_policy=policy
            ),
        )
        for pipe in pipes
    ]


def step(ranks: list[Rank], seen: Counter[int]) -> bool:
    """Run one batch on every rank; return False if the epoch is over, which all ranks must agree on."""
    ends = []
    for _, it in ranks:
        try:
            seen.update(next(it)[0]["a"].ravel().tolist())
        except StopIteration:
            ends.append(it)
    assert len(ends) in (0, len(ranks))
    return not ends


def change(old: list[Rank], size: int, batch_size: int, ranks: int, **options: Any) -> list[Rank]:
    states = [json.loads(json.dumps(it.state_dict())) for _, it in old]
    places = cursor.reshard([state["pipelines"][0] for state in states], ranks)
    counter = {
        **_epochs.reshard(states[0]["iterator"], ranks),
        "over": states[0]["iterator"]["over"],
    }
    new = world(size, batch_size, ranks, **options)
    for (_, it), place in zip(new, places, strict=True):
        it.load_state_dict({"iterator": counter, "pipelines": [place]})
    return new


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    size=st.integers(6, 40),
    worlds=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=2, max_size=4),
    batch_size=st.integers(1, 6),
    shuffle=st.booleans(),
)
def test_partial_with_padding_ends_the_epoch_exactly(size, worlds, batch_size, shuffle) -> None:
    options = {
        "pad_last_batch": True,
        "random_shuffle": shuffle,
        "last_batch_policy": LastBatchPolicy.PARTIAL,
    }
    seen: Counter[int] = Counter()
    ranks = world(size, batch_size, worlds[0][0], **options)
    going = True
    for index, (count, steps) in enumerate(worlds):
        if index and going:
            ranks = change(ranks, size, batch_size, count, **options)
        for _ in range(steps):
            going = going and step(ranks, seen)
    while going:
        going = step(ranks, seen)
    assert seen == Counter(range(size))
    while step(ranks, seen):  # the next epoch is complete again
        pass
    assert seen == Counter(list(range(size)) * 2)


@settings(max_examples=80, deadline=None)
@given(
    size=st.integers(8, 40),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    steps=st.integers(0, 6),
    stick=st.booleans(),
)
def test_filled_batches_count_samples_of_the_next_epoch(
    size, before, after, steps, stick
) -> None:
    """After any number of epochs, the ranks have delivered just enough batches for them."""
    batch_size = 2
    options = {"stick_to_shard": stick, "last_batch_policy": LastBatchPolicy.FILL}
    seen: Counter[int] = Counter()
    ranks = world(size, batch_size, before, **options)
    ended = sum(not step(ranks, seen) for _ in range(steps))
    ranks = change(ranks, size, batch_size, after, **options)
    while ended < 3:
        ended += not step(ranks, seen)
    assert all(seen[record] >= 3 for record in range(size))
    assert sum(seen.values()) <= 3 * size + max(before, after) * 2 * batch_size
