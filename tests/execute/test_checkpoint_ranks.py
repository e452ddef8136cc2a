"""Iterators that continue at any batch, and epochs that continue with another number of ranks."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import torchdali
from tests.helpers.places import closing, numbered_files, take
from torchdali import Pipeline, fn, pipeline_def
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return numbered_files(tmp_path_factory.mktemp("records"), 22)


# ---------------------------------------------------------------- iterators


def iterator(pipe: Pipeline, policy: LastBatchPolicy = LastBatchPolicy.PARTIAL) -> Any:
    return DALIGenericIterator(
        pipe, ["data", "label", "value", "scale"][-pipe.num_outputs :], reader_name="reader",
        auto_reset=True, last_batch_policy=policy,
    )  # fmt: skip


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=7)
def labels_only(files, **reader):
    _, label = fn.readers.file(files=files, labels=list(range(len(files))), name="reader", **reader)
    return label + 0, fn.random.uniform()


def rest_of(it: Any, epochs: int = 1) -> list[Any]:
    """Return the remaining batches of this epoch, and the batches of the next epochs."""
    return [[value.tolist() for value in batch[0].values()] for _ in range(epochs) for batch in it]


@pytest.mark.thin(5)
@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("padded", [True, False])
def test_iterators_continue_at_every_batch(files, policy, padded) -> None:
    def make(**more: Any) -> Pipeline:
        return labels_only(files, random_shuffle=True, pad_last_batch=padded, **more)

    pipe = make()
    it, states, checkpoints = iterator(pipe, policy), [], []
    expected = []
    for _ in range(2):
        states.append(json.loads(json.dumps(it.state_dict())))
        checkpoints += it.checkpoints()
        for batch in it:
            expected.append([value.tolist() for value in batch[0].values()])
            states.append(json.loads(json.dumps(it.state_dict())))
            checkpoints += it.checkpoints()
    pipe.close()
    done = [0, *range(1, len(expected) // 2 + 1)]
    for skipped, state, checkpoint in zip(done, states, checkpoints, strict=False):
        with closing(make()) as pipe, closing(make(checkpoint=checkpoint)) as restored:
            it = iterator(pipe, policy)
            it.load_state_dict(state)
            left = rest_of(it, 2)[: len(expected) - skipped]
            assert left == expected[skipped : skipped + len(left)] and left
            again = rest_of(iterator(restored, policy), 2)[: len(expected) - skipped]
            assert again == left


# ---------------------------------------------------------------- another number of ranks


def world(files: list[str], ranks: int, **options: Any) -> list[Pipeline]:
    return [labels_only(files, shard_id=k, num_shards=ranks, **options) for k in range(ranks)]


def drain(pipes: list[Pipeline], batches: int) -> Counter[tuple[int, float]]:
    """Return labels with their random numbers."""
    found: Counter[tuple[int, float]] = Counter()
    for pipe in pipes:
        for _ in range(batches):
            labels, draws = pipe.run()
            found.update(zip(np.ravel(labels.as_array()).tolist(), draws.as_array().tolist(), strict=True))  # fmt: skip
    return found


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("kind", ["state_dict", "checkpoint"])
def test_pipelines_continue_with_another_number_of_ranks(files, ranks, shuffle, kind) -> None:
    """Each sample of the epoch is delivered once, with the same random numbers as without resharding."""
    options = {"random_shuffle": shuffle, "batch_size": 1}
    with closing(world(files, 1, **options)[0]) as pipe:
        expected = drain([pipe], len(files))
    old = world(files, 2, **options)
    seen = drain(old, 4)
    states = [getattr(pipe, kind)() for pipe in old]
    places = torchdali.reshard(list(reversed(states)), ranks)
    new = world(files, ranks, **options)
    for k, (pipe, place) in enumerate(zip(new, places, strict=True)):
        pipe.load_state_dict(json.loads(place) if kind == "checkpoint" else place)
        left = 14 * (k + 1) // ranks - 14 * k // ranks
        seen += drain([pipe], left)
    for pipe in (*old, *new):
        pipe.close()
    assert seen == expected


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("kind", ["state_dict", "checkpoints"])
def test_iterators_continue_with_another_number_of_ranks(files, ranks, kind) -> None:
    options = {"random_shuffle": True, "pad_last_batch": True, "batch_size": 3}
    old = [iterator(pipe) for pipe in world(files, 2, **options)]
    seen = [n for it in old for _ in range(2) for n in next(it)[0]["value"].ravel().tolist()]
    if kind == "state_dict":
        places = torchdali.reshard([it.state_dict() for it in old], ranks)
        new = [iterator(pipe) for pipe in world(files, ranks, **options)]
        for it, place in zip(new, places, strict=True):
            it.load_state_dict(place)
    else:
        places = torchdali.reshard([it.checkpoints()[0] for it in old], ranks)
        new = [
            iterator(labels_only(files, shard_id=k, num_shards=ranks, checkpoint=place, **options))
            for k, place in enumerate(places)
        ]
    batches = [rest_of(it) for it in new]
    assert len({len(epoch) for epoch in batches}) == 1, "all ranks take as many steps"
    seen += [n for epoch in batches for batch in epoch for (n,) in batch[0]]
    assert sorted(seen) == list(range(len(files)))
    after = [n for it in new for batch in rest_of(it) for (n,) in batch[0]]
    assert sorted(after) == list(range(len(files))), "the next epoch is whole"


def test_an_unsharded_reader_keeps_its_position(files) -> None:
    def make(rank: int, ranks: int) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            options = {"files": files, "labels": list(range(len(files)))}
            _, divided = fn.readers.file(name="a", shard_id=rank, num_shards=ranks, **options)
            _, whole = fn.readers.file(name="b", **options)
            pipe.set_outputs(divided, whole)
        return pipe

    with closing(make(0, 2)) as one, closing(make(1, 2)) as two:
        take(one), take(two), take(two)
        with pytest.raises(ValueError):
            torchdali.reshard([one.state_dict()], 1)
        (place,) = torchdali.reshard([one.state_dict(), two.state_dict()], 1)
    with closing(make(0, 1)) as pipe:
        pipe.load_state_dict(place)
        assert take(pipe) == [[[2], [3]], [[2], [3]]]


def test_states_that_cannot_be_resharded_give_a_reason(files) -> None:
    def make(**options: Any) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            number = fn.external_source(source=lambda i: [np.array(i)] * 2, name="numbers")
            _, label = fn.readers.file(files=files, **options)
            pipe.set_outputs(number, label)
        return pipe

    with (
        closing(make()) as pipe,
        pytest.raises(ValueError, match=r"external source \(numbers\).*external_context"),
    ):
        torchdali.reshard([pipe.state_dict()], 2)
    with pytest.raises(ValueError, match="none"):
        torchdali.reshard([], 2)
    its = [iterator(pipe) for pipe in world(files, 2)]
    next(its[0])
    with pytest.raises(ValueError, match="same batch"):
        torchdali.reshard([it.state_dict() for it in its], 1)
