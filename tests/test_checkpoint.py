"""Saving the place of a pipeline and continuing there, in every way a pipeline can run."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchdali
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

Values = list[Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files whose bytes are their own number; the length differs from file to file."""
    folder: Path = tmp_path_factory.mktemp("records")
    paths = [folder / f"{index:02d}.bin" for index in range(22)]
    for index, path in enumerate(paths):
        path.write_bytes(bytes([index]) * (index % 3 + 1))
    return [str(path) for path in paths]


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=7, enable_conditionals=True)
def augmented(files, **reader):
    """Random numbers, random decisions, and random numbers inside branches."""
    data, label = fn.readers.file(
        files=files, labels=list(range(len(files))), name="reader", **reader
    )
    scale = fn.random.uniform(range=[-1, 1])
    if fn.random.coin_flip(dtype=types.BOOL):  # noqa: SIM108
        value = label * scale
    else:
        value = label + fn.random.normal(stddev=2.0)
    return data, label, value, scale


SHUFFLED_SHARD = {
    "random_shuffle": True, "shard_id": 1, "num_shards": 2, "pad_last_batch": True,
}  # fmt: skip


def take(pipe: Pipeline) -> Values:
    """The next batch as plain values, or "end"."""
    try:
        return [[sample.tolist() for sample in map(np.asarray, output)] for output in pipe.run()]
    except StopIteration:
        return ["end"]


@contextlib.contextmanager
def closing(pipe: Pipeline) -> Iterator[Pipeline]:
    try:
        yield pipe
    finally:
        pipe.close()


def walk(pipe: Pipeline, count: int) -> tuple[list[Values], list[Any]]:
    """Take batches; return them and the JSON text of the place before each."""
    batches, places = [], []
    for _ in range(count):
        places.append(json.dumps(pipe.state_dict()))
        batches.append(take(pipe))
    return batches, places


def check_every_place(make: Callable[..., Pipeline], batches: int, **arguments: Any) -> None:
    """Save at every batch, continue in a new pipeline: what is left must be equal to the bit."""
    with closing(make(**arguments)) as pipe:
        expected, places = walk(pipe, batches)
    for done, place in enumerate(places):
        with closing(make(**arguments)) as pipe:
            pipe.load_state_dict(json.loads(place))
            found, again = walk(pipe, batches - done)
        assert found == expected[done:], f"after {done} batches"
        assert again == places[done:]


# ---------------------------------------------------------------- every batch, every way of running


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_batch_of_an_epoch(files, depth, threads) -> None:
    settings = {"prefetch_queue_depth": depth, "num_threads": threads}
    check_every_place(lambda: augmented(files, **SHUFFLED_SHARD, **settings), 4)


@pytest.mark.parametrize(
    "reader",
    [
        {},
        {"random_shuffle": True},
        {"random_shuffle": True, "seed": 3},
        {"shuffle_after_epoch": True},
        {"shuffle_after_epoch": True, "num_shards": 3, "shard_id": 2},
        {"num_shards": 3, "shard_id": 1},
        {"num_shards": 3, "shard_id": 1, "stick_to_shard": True, "random_shuffle": True},
        {"num_shards": 3, "shard_id": 2, "pad_last_batch": True},
    ],
    ids=str,
)
def test_every_order_of_a_reader_across_epochs(files, reader) -> None:
    check_every_place(lambda: augmented(files, **reader), 7)


@pytest.mark.parametrize(
    "settings", [{"exec_async": False}, {"exec_pipelined": False}, {"seed": None}], ids=str
)
def test_every_setting(files, settings) -> None:
    check_every_place(lambda: augmented(files, **SHUFFLED_SHARD, **settings), 4)


def test_a_place_continues_under_other_threads_and_depths(files) -> None:
    """A place says nothing about how it was reached, and the rest does not depend on it."""
    ways = [
        {"prefetch_queue_depth": depth, "num_threads": threads}
        for depth, threads in itertools.product((1, 4), (1, 4))
    ]
    walks = []
    for way in ways:
        with closing(augmented(files, **SHUFFLED_SHARD, **way)) as pipe:
            walks.append(walk(pipe, 4))
    assert all(found == walks[0] for found in walks)
    expected, places = walks[0]
    for way, (done, place) in zip(ways, enumerate(places), strict=True):
        with closing(augmented(files, **SHUFFLED_SHARD, **way)) as pipe:
            pipe.load_state_dict(json.loads(place))
            assert walk(pipe, 4 - done)[0] == expected[done:]


def test_another_batch_size_continues_with_the_next_sample(files) -> None:
    with closing(augmented(files, random_shuffle=True)) as pipe:
        take(pipe)
        place = pipe.state_dict()
        rest = [sample for _ in range(3) for sample in zip(*take(pipe), strict=True)]
    with closing(augmented(files, random_shuffle=True, batch_size=3)) as pipe:
        pipe.load_state_dict(place)
        found = [sample for _ in range(4) for sample in zip(*take(pipe), strict=True)]
    assert found == rest


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_batch_of_two_epochs_of_images(tmp_path, depth, threads) -> None:
    image = pytest.importorskip("PIL.Image")
    draw = np.random.default_rng(0)
    for index in range(22):
        pixels = draw.integers(0, 255, (20 + index, 30, 3), np.uint8)
        (tmp_path / f"c{index % 2}").mkdir(exist_ok=True)
        image.fromarray(pixels).save(tmp_path / f"c{index % 2}" / f"{index}.jpg")

    @pipeline_def(batch_size=4, device_id=None, seed=7, enable_conditionals=True)
    def training():
        data, label = fn.readers.file(file_root=str(tmp_path), **SHUFFLED_SHARD)
        images = fn.random_resized_crop(fn.decoders.image(data), size=[16, 16])
        mirror = fn.random.coin_flip()
        if fn.random.coin_flip(probability=0.3, dtype=types.BOOL):
            images = fn.crop_mirror_normalize(images, mirror=mirror, mean=[100.0], std=[50.0])
        else:
            images = fn.crop_mirror_normalize(images, dtype=types.FLOAT)
        return images, label

    settings = {"prefetch_queue_depth": depth, "num_threads": threads}
    check_every_place(lambda: training(**settings), 7)


# ---------------------------------------------------------------- random operators and sources

RANDOM: dict[str, Callable[[], Any]] = {
    "uniform": lambda: fn.random.uniform(range=[0, 9], shape=[3]),
    "uniform of values": lambda: fn.random.uniform(values=[1.0, 5.0, 7.0]),
    "normal": lambda: fn.random.normal(shape=[2]),
    "coin_flip": lambda: fn.random.coin_flip(probability=0.3),
    "choice": lambda: fn.random.choice(7),
    "beta": lambda: fn.random.beta(alpha=2.0, beta=3.0),
    "batch_permutation": lambda: fn.batch_permutation(),
    "own seed": lambda: fn.random.uniform(seed=5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_operators_without_a_reader(name) -> None:
    def make() -> Pipeline:
        pipe = Pipeline(3, 2, None, seed=4)
        with pipe:
            pipe.set_outputs(RANDOM[name](), RANDOM[name]())
        return pipe

    check_every_place(make, 4)


def numbers(count: int) -> Iterator[list[Any]]:
    for i in range(count):
        yield [np.array(i), np.array(-i)]


def three() -> Iterator[list[Any]]:
    yield from numbers(3)


def until(count: int, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(place: Any) -> Any:
        if getattr(place, "iteration", place) >= count:
            raise StopIteration
        return value(place)

    return call


SOURCES: dict[str, dict[str, Any]] = {
    "batch number": {"source": until(3, lambda i: [np.array(i)] * 2)},
    "batch info": {
        "source": until(3, lambda info: [np.array([info.iteration, info.epoch_idx])] * 2),
        "batch_info": True,
    },
    "sample info": {
        "source": until(3, lambda info: np.array([info.idx_in_epoch, info.epoch_idx])),
        "batch": False,
    },
    "list": {"source": list(numbers(3)), "cycle": "raise"},
    "endless list": {"source": list(numbers(3)), "cycle": "quiet"},
    "generator function": {"source": three, "cycle": "raise"},
    "two outputs": {"source": until(3, lambda i: ([np.array(i)], [np.array(-i)])), "num_outputs": 2},
}  # fmt: skip


def walk_epochs(pipe: Pipeline, count: int) -> tuple[list[Values], list[Any]]:
    """Like `walk`, resetting after the end of an epoch; places are also saved there."""
    batches, places = [], []
    for _ in range(count):
        places.append(pipe.state_dict())
        batches.append(take(pipe))
        if batches[-1] == ["end"]:
            places.append(pipe.state_dict())
            batches.append(["reset"])
            pipe.reset()
    return batches, places


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("depth", [1, 3])
def test_sources_at_every_batch_and_at_the_end(name, depth) -> None:
    def make() -> Pipeline:
        pipe = Pipeline(2, 2, None, seed=4, prefetch_queue_depth=depth)
        with pipe:
            found = fn.external_source(**SOURCES[name])
            outputs = found if isinstance(found, list) else [found]
            pipe.set_outputs(*outputs, fn.random.uniform())
        return pipe

    with closing(make()) as pipe:
        expected, places = walk_epochs(pipe, 9)
    for done, place in enumerate(places):
        with closing(make()) as pipe:
            pipe.load_state_dict(json.loads(json.dumps(place)))
            left = expected[done:]
            if left[0] == ["reset"]:
                assert take(pipe) == ["end"], "the end of an epoch stays, until reset()"
                pipe.reset()
                left = left[1:]
            found, _ = walk_epochs(pipe, sum(batch != ["reset"] for batch in left))
        assert found == left, f"after {done}"


def test_fed_batches_go_on_with_what_is_fed() -> None:
    def make() -> Pipeline:
        pipe = Pipeline(2, 2, None, seed=4, prefetch_queue_depth=1)
        with pipe:
            pipe.set_outputs(fn.external_source(name="fed"), fn.random.uniform())
        return pipe

    def step(pipe: Pipeline, i: int) -> Values:
        pipe.feed_input("fed", [np.array(i)] * 2)
        return take(pipe)

    with closing(make()) as pipe:
        step(pipe, 0)
        place, expected = pipe.state_dict(), step(pipe, 1)
    with closing(make()) as pipe:
        pipe.load_state_dict(place)
        assert step(pipe, 1) == expected


# ---------------------------------------------------------------- what a place is


def test_the_place_is_that_after_the_last_batch_taken(files) -> None:
    with closing(augmented(files, prefetch_queue_depth=4)) as pipe:
        before = pipe.state_dict()
        pipe.schedule_run()
        assert pipe.state_dict() == before, "batches in flight do not count"
        pipe.outputs()
        after = pipe.state_dict()
    assert (before["position"], after["position"]) == (0, 4)
    assert after["readers"]["reader"]["taken"] == 4


def test_a_place_is_small_json_for_any_number_of_records(files) -> None:
    with closing(augmented(files * 5000, random_shuffle=True)) as pipe:
        take(pipe)
        text = pipe.checkpoint()
        assert json.loads(text) == pipe.state_dict()
    assert len(text) < 3000


def test_loading_drops_what_is_in_flight(files) -> None:
    with closing(augmented(files, prefetch_queue_depth=3)) as pipe:
        start = pipe.state_dict()
        first = take(pipe)
        take(pipe)
        pipe.load_state_dict(start)
        assert take(pipe) == first


def test_a_failed_batch_counts_as_taken(files) -> None:
    names = [*files[:5], files[5] + ".gone", *files[6:12]]
    with closing(augmented(names)) as pipe:
        take(pipe)
        with pytest.raises(RuntimeError, match="gone"):
            pipe.run()
        place, expected = pipe.state_dict(), take(pipe)
    with closing(augmented(names)) as pipe:
        pipe.load_state_dict(place)
        assert take(pipe) == expected


# ---------------------------------------------------------------- checkpoints


def test_checkpoint_of_a_pipeline_and_of_a_file(files, tmp_path) -> None:
    with closing(augmented(files, random_shuffle=True, enable_checkpointing=True)) as pipe:
        assert not pipe.is_restored_from_checkpoint
        take(pipe)
        saved = pipe.checkpoint(str(tmp_path / "place.json"))
        expected = take(pipe)
    assert saved == (tmp_path / "place.json").read_bytes()
    for text in (saved, saved.decode()):
        new = augmented(files, random_shuffle=True, seed=99, checkpoint=text)
        assert not new.is_restored_from_checkpoint, "before it is built, as in DALI"
        with closing(new) as pipe:
            pipe.build()
            assert pipe.is_restored_from_checkpoint
            assert take(pipe) == expected, "the place brings its seed"


def test_a_seed_that_the_pipeline_chose_is_part_of_the_place() -> None:
    def make(**arguments: Any) -> Pipeline:
        pipe = Pipeline(3, 1, None, **arguments)
        with pipe:
            pipe.set_outputs(fn.random.uniform())
        return pipe

    with closing(make()) as one, closing(make(seed=-1)) as two:
        assert take(one) != take(two)
        place, expected = one.checkpoint(), take(one)
    with closing(make(checkpoint=place)) as pipe:
        assert take(pipe) == expected


def test_what_changes_only_place_speed_or_names_may_differ(files, tmp_path) -> None:
    def make(root: Path, unused: bool = False, **arguments: Any) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            if unused:
                fn.constant(fdata=[1.0])  # pruned; shifts the names of what follows
            _, label = fn.readers.file(file_root=str(root), **arguments)
            pipe.set_outputs(label, fn.random.uniform())
        return pipe

    for root in (tmp_path / "here", tmp_path / "there"):
        (root / "class").mkdir(parents=True)
        for i in range(5):
            (root / "class" / f"{i}.jpg").write_bytes(b"x")
    with closing(make(tmp_path / "here")) as pipe:
        take(pipe)
        place, expected = pipe.state_dict(), take(pipe)
    options = {"prefetch_queue_depth": 3, "read_ahead": True, "initial_fill": 7}
    with closing(make(tmp_path / "there", unused=True, **options)) as pipe:
        pipe.load_state_dict(place)
        assert take(pipe) == expected


def test_another_graph_is_refused_with_the_lines_that_differ(files) -> None:
    with closing(augmented(files, random_shuffle=True)) as pipe:
        place = pipe.state_dict()
    with closing(augmented(files)) as pipe:
        with pytest.raises(RuntimeError) as refused:
            pipe.load_state_dict(place)
        lines = str(refused.value).splitlines()
        assert "another graph" in lines[0]
        assert [line[0] for line in lines[1:] if line[0] != "?"] == ["-", "+"]
        assert "random_shuffle=True" in lines[1]
        assert take(pipe)[1] == [[0], [1], [2], [3]], "the pipeline works on"


def test_more_or_other_records_are_refused(files) -> None:
    with closing(augmented(files, shard_id=0, num_shards=2)) as pipe:
        place = pipe.state_dict()
    for others, options, message in [
        (files, {"shard_id": 1, "num_shards": 2}, r"shard 0 of 2.*reshard"),
        (files[:-1], {"shard_id": 0, "num_shards": 2}, "labels="),
    ]:
        pipe = augmented(others, **options)
        with closing(pipe), pytest.raises(RuntimeError, match=message):
            pipe.load_state_dict(place)


@pytest.mark.parametrize(
    ("checkpoint", "error", "message"),
    [
        ("garbage", RuntimeError, "no checkpoint"),
        (b"\x80\x04garbage", RuntimeError, "no checkpoint"),
        ("[1, 2]", RuntimeError, "no checkpoint"),
        ('{"version": 999, "graph": []}', RuntimeError, "version 999"),
        (5, TypeError, "int"),
    ],
    ids=str,
)
def test_what_is_no_checkpoint_is_refused(files, checkpoint, error, message) -> None:
    pipe = augmented(files, checkpoint=checkpoint)
    for _ in range(2):
        with pytest.raises(error, match=message):
            pipe.run()


def test_a_closed_pipeline_still_tells_its_place(files) -> None:
    pipe = augmented(files)
    take(pipe)
    place = pipe.state_dict()
    pipe.close()
    assert pipe.state_dict() == place


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
    """The batches that are left of this epoch, and those of the next ones."""
    return [[value.tolist() for value in batch[0].values()] for _ in range(epochs) for batch in it]


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
    """Labels with the random numbers that went with them."""
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
    """Samples of the epoch come exactly once, each with the numbers it would have had anyway."""
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


def test_an_undivided_reader_keeps_its_place(files) -> None:
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


def test_what_cannot_be_resharded_says_why(files) -> None:
    def make(**options: Any) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            number = fn.external_source(source=lambda i: [np.array(i)] * 2, name="numbers")
            _, label = fn.readers.file(files=files, **options)
            pipe.set_outputs(number, label)
        return pipe

    with closing(make()) as pipe, pytest.raises(ValueError, match=r"external source \(numbers\)"):
        torchdali.reshard([pipe.state_dict()], 2)
    with pytest.raises(ValueError, match="none"):
        torchdali.reshard([], 2)
    its = [iterator(pipe) for pipe in world(files, 2)]
    next(its[0])
    with pytest.raises(ValueError, match="same batch"):
        torchdali.reshard([it.state_dict() for it in its], 1)
