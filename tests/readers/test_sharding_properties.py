"""Shards in training: one iterator per rank, any number of samples, ranks, batch size, policy and shuffling.

The properties of all combinations: every rank gets the same number of batches in every epoch, no rank gets a sample of
another's shard, and all ranks' samples form the epoch. The readers only count (`tests.helpers.fake_pipeline`);
one test uses files.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.fake_pipeline import ReaderPipeline
from torchdali import fn, pipeline_def
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from torchdali.reading.cursor import Cursor, EpochOrder
from torchdali.reading.datasets import LoaderOptions

EPOCHS = 4
SHUFFLES: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"random_shuffle": True},
    "shuffled between epochs": {"shuffle_after_epoch": True},
}
Epoch = list[list[int]]
"""The batches of an epoch, on one rank."""


@dataclass(frozen=True)
class Setting:
    """A dataset, and its sharding."""

    samples: int
    world: int
    batch_size: int
    policy: LastBatchPolicy
    padded: bool
    sticky: bool
    shuffle: str

    def options(self, rank: int) -> dict[str, Any]:
        """Return the reader's arguments on a rank."""
        return {
            "shard_id": rank, "num_shards": self.world, "pad_last_batch": self.padded,
            "stick_to_shard": self.sticky, **SHUFFLES[self.shuffle],
        }  # fmt: skip

    def order(self, rank: int) -> EpochOrder:
        """Return the order of a rank, which has its own seed."""
        return EpochOrder(self.samples, LoaderOptions(**self.options(rank)), seed=100 + rank)

    @property
    def smallest(self) -> int:
        """The number of samples of the smallest shard."""
        return self.samples // self.world

    @property
    def largest(self) -> int:
        """The number of samples of the largest shard."""
        return -(-self.samples // self.world)

    @property
    def is_empty(self) -> bool:
        """Return True if no sample remains, which is an error."""
        return self.policy is LastBatchPolicy.DROP and self.smallest < self.batch_size


@st.composite
def settings_of(
    draw: st.DrawFn,
    /,
    samples: int = 40,
    worlds: int = 6,
    policy: LastBatchPolicy | None = None,
    **fixed: Any,
) -> Setting:
    world = draw(st.integers(1, worlds))
    given_values: dict[str, Any] = {
        "samples": draw(st.integers(world, max(samples, world))),
        "world": world,
        "batch_size": draw(st.integers(1, 9)),
        "policy": policy or draw(st.sampled_from(LastBatchPolicy)),
        "padded": draw(st.booleans()),
        "sticky": draw(st.booleans()),
        "shuffle": draw(st.sampled_from(list(SHUFFLES))),
    } | fixed
    if given_values["shuffle"] == "shuffled between epochs":
        given_values["sticky"] = False  # they exclude each other
    return Setting(**given_values)


def _iterator(setting: Setting, rank: int) -> DALIGenericIterator:
    pipe: Any = ReaderPipeline(setting.samples, setting.batch_size, **setting.options(rank))
    pipe.cursor = Cursor(setting.order(rank))
    return _over(pipe, setting, ["a"])


def _over(pipe: Any, setting: Setting, names: list[str]) -> DALIGenericIterator:
    return DALIGenericIterator(
        [pipe], names, reader_name="reader", auto_reset=True, last_batch_policy=setting.policy
    )


def _walk(iterator: DALIGenericIterator) -> Iterator[Epoch]:
    for _ in range(EPOCHS):
        announced = len(iterator)
        epoch = [batch[0]["a"].ravel().tolist() for batch in iterator]
        assert len(epoch) == announced
        yield epoch


def _ranks(setting: Setting) -> list[list[Epoch]]:
    """Return the epochs of every rank."""
    return [list(_walk(_iterator(setting, rank))) for rank in range(setting.world)]


def _samples(epoch: Epoch) -> list[int]:
    return [sample for batch in epoch for sample in batch]


@given(settings_of())
@settings(max_examples=50, deadline=None)
def test_every_rank_gets_equally_many_batches(setting: Setting) -> None:
    if setting.is_empty:
        with pytest.raises(RuntimeError, match="drops every batch"):
            _ranks(setting)
        return
    for epochs in zip(*_ranks(setting), strict=True):
        assert len({len(epoch) for epoch in epochs}) == 1
        full = epochs[0][:-1] if setting.policy is LastBatchPolicy.PARTIAL else epochs[0]
        assert all(len(batch) == setting.batch_size for batch in full)


@given(settings_of(policy=LastBatchPolicy.PARTIAL, padded=True))
@settings(max_examples=26, deadline=None)
def test_partial_batches_of_padded_shards_form_the_epoch(setting: Setting) -> None:
    for epochs in zip(*_ranks(setting), strict=True):
        together = [sample for epoch in epochs for sample in _samples(epoch)]
        assert sorted(together) == list(range(setting.samples))


@given(settings_of(policy=LastBatchPolicy.FILL, padded=True))
@settings(max_examples=26, deadline=None)
def test_padding_repeats_only_the_last_sample_of_a_shard(setting: Setting) -> None:
    for number, epochs in enumerate(zip(*_ranks(setting), strict=True)):
        assert {sample for epoch in epochs for sample in _samples(epoch)} == set(
            range(setting.samples)
        )
        for rank, epoch in enumerate(epochs):
            shard = setting.order(rank).shard(number)
            count = len(shard.records)
            assert _samples(epoch)[:count] == shard.records[:].tolist()
            assert set(_samples(epoch)[count:]) <= {shard.filler}
            assert len(epoch) == -(-setting.largest // setting.batch_size)


@pytest.mark.slow
@given(settings_of(policy=LastBatchPolicy.FILL, padded=False))
@settings(max_examples=26, deadline=None)
def test_filled_batches_lose_and_repeat_no_sample_across_epochs(setting: Setting) -> None:
    """A rank delivers the first samples of its walk through shard after shard; shards of an epoch are disjoint."""
    ranks = _ranks(setting)
    for rank, epochs in enumerate(ranks):
        delivered = [sample for epoch in epochs for sample in _samples(epoch)]
        walk: list[int] = []
        number = 0
        while len(walk) < len(delivered):
            walk += setting.order(rank).records(number).tolist()
            number += 1
        assert delivered == walk[: len(delivered)]
        assert len(delivered) >= sum(len(setting.order(rank).records(e)) for e in range(EPOCHS))
    for number in range(EPOCHS):
        shards = [setting.order(rank).records(number).tolist() for rank in range(setting.world)]
        assert sorted(itertools.chain(*shards)) == list(range(setting.samples))


@given(settings_of(policy=LastBatchPolicy.DROP, padded=True))
@settings(max_examples=26, deadline=None)
def test_drop_skips_less_than_a_batch_and_a_sample(setting: Setting) -> None:
    if setting.is_empty:
        return
    for number, epochs in enumerate(zip(*_ranks(setting), strict=True)):
        together = Counter(sample for epoch in epochs for sample in _samples(epoch))
        assert set(together.values()) == {1}
        for rank, epoch in enumerate(epochs):
            records = setting.order(rank).records(number).tolist()
            assert _samples(epoch) == records[: len(_samples(epoch))]
            assert len(records) - len(_samples(epoch)) <= setting.batch_size


@given(settings_of(sticky=True, shuffle="shuffled"))
@settings(max_examples=20, deadline=None)
def test_a_rank_that_sticks_to_its_shard_sees_no_other(setting: Setting) -> None:
    if setting.is_empty:
        return
    for rank, epochs in enumerate(_ranks(setting)):
        own = set(setting.order(rank).records(0).tolist())
        assert all(set(_samples(epoch)) <= own for epoch in epochs)


@given(settings_of(sticky=False, shuffle="in order", padded=True, policy=LastBatchPolicy.PARTIAL))
@settings(max_examples=13, deadline=None)
def test_ranks_take_turns_with_the_shards(setting: Setting) -> None:
    ranks = _ranks(setting)
    for number in range(EPOCHS - 1):
        for rank, epochs in enumerate(ranks):
            after = ranks[(rank - 1) % setting.world][number + 1]
            assert _samples(epochs[number]) == _samples(after)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("records")
    made = [folder / f"{number:02d}.bin" for number in range(24)]
    for number, path in enumerate(made):
        path.write_bytes(bytes([number]))
    return [str(path) for path in made]


@given(settings_of(samples=24, worlds=3))
@settings(max_examples=10, deadline=None)
def test_pipelines_over_files_match_the_counting_readers(
    files: list[str], setting: Setting
) -> None:
    if setting.is_empty:
        return

    @pipeline_def(batch_size=setting.batch_size, num_threads=1, device_id=None)
    def define(rank: int) -> Any:
        options = setting.options(rank)
        return tuple(fn.readers.file(files=files[: setting.samples], name="reader", **options))

    for rank in range(setting.world):
        pipe = define(rank, seed=100 + rank)
        wanted = list(_walk(_iterator(setting, rank)))
        found = list(_walk(_over(pipe, setting, ["a", "label"])))
        pipe.close()
        if setting.shuffle == "shuffled":  # its seed is the operator's, which is unknown here
            assert [len(epoch) for epoch in found] == [len(epoch) for epoch in wanted]
            assert _alike(setting, found, wanted)
        else:
            assert found == wanted


def _alike(setting: Setting, found: list[Epoch], wanted: list[Epoch]) -> bool:
    """Return True if complete epochs contain the same samples, in any order."""
    if not setting.padded or setting.policy is not LastBatchPolicy.PARTIAL:
        return True
    return [sorted(_samples(epoch)) for epoch in found] == [
        sorted(_samples(epoch)) for epoch in wanted
    ]
