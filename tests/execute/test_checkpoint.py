"""Saving a pipeline's position and continuing from it, in every execution mode."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.places import Values, check_every_checkpoint, closing, numbered_files, take, walk
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return numbered_files(tmp_path_factory.mktemp("records"), 22)


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=7, enable_conditionals=True)
def augmented(files, **reader):
    """Random numbers, random decisions, and random numbers inside branches."""
    data, label = fn.readers.file(
        files=files, labels=list(range(len(files))), name="reader", **reader
    )
    scale = fn.random.uniform(range=[-1, 1])
    if fn.random.coin_flip(dtype=types.BOOL):
        value = label * scale
    else:
        value = label + fn.random.normal(stddev=2.0)
    return data, label, value, scale


SHUFFLED_SHARD = {
    "random_shuffle": True, "shard_id": 1, "num_shards": 2, "pad_last_batch": True,
}  # fmt: skip


# ---------------------------------------------------------------- every batch, every execution mode


@pytest.mark.thin(5)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_batch_of_an_epoch(files, depth, threads) -> None:
    settings = {"prefetch_queue_depth": depth, "num_threads": threads}
    check_every_checkpoint(lambda: augmented(files, **SHUFFLED_SHARD, **settings), 4)


@pytest.mark.thin(3)
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
    check_every_checkpoint(lambda: augmented(files, **reader), 7)


@pytest.mark.parametrize(
    "settings", [{"exec_async": False}, {"exec_pipelined": False}, {"seed": None}], ids=str
)
def test_every_setting(files, settings) -> None:
    check_every_checkpoint(lambda: augmented(files, **SHUFFLED_SHARD, **settings), 4)


def test_the_device_stage(files) -> None:
    """With device_id="cpu" the device stage runs on the CPU, on the same path as on a GPU."""

    def make() -> Pipeline:
        pipe = Pipeline(4, 2, "cpu", seed=7)
        with pipe:
            options = {"files": files, "labels": list(range(len(files)))}
            _, label = fn.readers.file(random_shuffle=True, **options)
            pipe.set_outputs(label.gpu() * fn.random.uniform(device="gpu", range=[1, 2]))
        return pipe

    check_every_checkpoint(make, 7)


def test_a_checkpoint_continues_with_other_threads_and_depths(files) -> None:
    """A checkpoint does not depend on threads and depths, and neither do the remaining batches."""
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
    check_every_checkpoint(lambda: training(**settings), 7)


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

    check_every_checkpoint(make, 4)


ON_IMAGES: dict[str, dict[str, Any]] = {
    "noise.gaussian": {"stddev": 20.0},
    "noise.shot": {"factor": 10.0},
    "noise.salt_and_pepper": {"prob": 0.3},
    "random_resized_crop": {"size": [3, 3]},
    "decoders.image_random_crop": {},
}


@pytest.mark.parametrize("name", ON_IMAGES)
def test_random_operators_on_images(name) -> None:
    """Random operators draw by a sample's index; without a reader, samples are counted."""
    pixels = bytes(range(0, 252, 4))
    encoded = np.frombuffer(b"P6\n7 3\n255\n" + pixels, np.uint8)

    def make() -> Pipeline:
        pipe = Pipeline(2, 2, None, seed=4)
        with pipe:
            data = fn.external_source(source=lambda i: [encoded] * 2)
            inputs = data if name.startswith("decoders.") else fn.decoders.image(data)
            operator: Any = fn
            for part in name.split("."):
                operator = getattr(operator, part)
            pipe.set_outputs(operator(inputs, **ON_IMAGES[name]))
        return pipe

    check_every_checkpoint(make, 4)
    with closing(make()) as pipe:
        one, two = take(pipe), take(pipe)
    assert one != two


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
    "worker process": {
        "source": until(3, lambda info: np.array([info.idx_in_epoch, info.epoch_idx])),
        "batch": False,
        "parallel": True,
    },
    "two outputs": {"source": until(3, lambda i: ([np.array(i)], [np.array(-i)])), "num_outputs": 2},
}  # fmt: skip


def walk_epochs(pipe: Pipeline, count: int) -> tuple[list[Values], list[Any]]:
    """Like `walk`, but reset after the end of an epoch, and also save a checkpoint there."""
    batches, places = [], []
    for _ in range(count):
        places.append(pipe.state_dict())
        batches.append(take(pipe))
        if batches[-1] == ["end"]:
            places.append(pipe.state_dict())
            batches.append(["reset"])
            pipe.reset()
    return batches, places


@pytest.mark.thin(3)
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


def test_data_of_a_source_is_not_part_of_the_graph() -> None:
    class Data(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise AssertionError("the data were looked at")

    def fingerprint(source: Any) -> Any:
        pipe = Pipeline(2, 1, None, seed=4)
        with pipe:
            pipe.set_outputs(fn.external_source(source=source))
        return pipe._fingerprint

    one, other = ([np.full((2, 3), k)] * 5 for k in (1, 2))
    graph = fingerprint(Data(one))
    assert graph == fingerprint(Data(other))
    assert "source=Data of 5" in graph[0]
    assert graph != fingerprint(Data(one * 2))
    assert fingerprint(np.ones((4, 2))) == fingerprint(np.zeros((4, 2)))


def test_numbers_of_an_operator_are_part_of_the_graph() -> None:
    """An unused operator is not part of it, but later operators draw other numbers without it."""

    def make(unused: int) -> Pipeline:
        with Pipeline(2, 1, None, seed=4) as pipe:
            for _ in range(unused):
                fn.random.uniform()
            pipe.set_outputs(fn.random.uniform())
        return pipe

    state = make(1).state_dict()
    make(1).load_state_dict(state)
    with pytest.raises(RuntimeError, match="a different graph"):
        make(0).load_state_dict(state)


def test_fed_pipelines_continue_with_new_data() -> None:
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


# ------------------------------------------------------- contents of a checkpoint


def test_a_checkpoint_is_the_position_after_the_last_returned_batch(files) -> None:
    with closing(augmented(files, prefetch_queue_depth=4)) as pipe:
        before = pipe.state_dict()
        pipe.schedule_run()
        assert pipe.state_dict() == before, "batches in flight do not count"
        pipe.outputs()
        after = pipe.state_dict()
    assert (before["position"], after["position"]) == (0, 4)
    assert after["readers"]["reader"]["taken"] == 4


def test_a_checkpoint_is_small_json_for_any_number_of_records(files) -> None:
    with closing(augmented(files * 5000, random_shuffle=True)) as pipe:
        take(pipe)
        text = pipe.checkpoint()
        assert json.loads(text) == pipe.state_dict()
    assert len(text) < 3000


def test_loading_drops_batches_in_flight(files) -> None:
    with closing(augmented(files, prefetch_queue_depth=3)) as pipe:
        start = pipe.state_dict()
        first = take(pipe)
        take(pipe)
        pipe.load_state_dict(start)
        assert take(pipe) == first


def test_a_failed_batch_counts_as_returned(files) -> None:
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


def test_a_seed_that_the_pipeline_chose_is_part_of_the_checkpoint() -> None:
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


@pytest.mark.usefixtures("own_operators")
def test_paths_of_a_user_defined_reader_may_differ(files, tmp_path) -> None:
    class Letters:
        def __len__(self) -> int:
            return 6

        def read(self, index: int) -> tuple[torch.Tensor]:
            return (torch.tensor([index]),)

        def info(self, index: int) -> str:
            return f"letter {index}"

    @reader(name="readers._letters")
    def letters(*, root: FilePath, others: list[FilePath] = [], case: str = "") -> Any:  # noqa: B006
        return Letters()

    def make(**arguments: Any) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            pipe.set_outputs(letters(**arguments))
        return pipe

    with closing(make(root="here", others=["a"])) as pipe:
        take(pipe)
        place, expected = pipe.state_dict(), take(pipe)
    with closing(make(root="there", others=["b", "c"])) as pipe:
        pipe.load_state_dict(place)
        assert take(pipe) == expected
    with closing(make(root="here", case="upper")) as pipe, pytest.raises(RuntimeError, match=r"case='upper'"):
        pipe.load_state_dict(place)


def test_options_of_speed_device_and_names_may_differ(files, tmp_path) -> None:
    def make(root: Path, unused: bool = False, **arguments: Any) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=1)
        with pipe:
            if unused:
                fn.constant(fdata=[1.0])  # pruned; shifts the names of later nodes
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


def test_another_graph_is_rejected_with_the_lines_that_differ(files) -> None:
    with closing(augmented(files, random_shuffle=True)) as pipe:
        place = pipe.state_dict()
    with closing(augmented(files)) as pipe:
        with pytest.raises(RuntimeError) as refused:
            pipe.load_state_dict(place)
        lines = str(refused.value).splitlines()
        assert "a different graph" in lines[0]
        assert [line[0] for line in lines[1:] if line[0] != "?"] == ["-", "+"]
        assert "random_shuffle=True" in lines[1]
        assert take(pipe)[1] == [[0], [1], [2], [3]], "the pipeline works on"


def test_more_or_other_records_are_rejected(files) -> None:
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
        ("garbage", RuntimeError, "not a torchdali checkpoint"),
        (b"\x80\x04garbage", RuntimeError, "not a torchdali checkpoint"),
        ("[1, 2]", RuntimeError, "not a torchdali checkpoint"),
        ('{"version": 999, "graph": []}', RuntimeError, "version 999"),
        (5, TypeError, "int"),
    ],
    ids=str,
)
def test_other_data_than_a_checkpoint_is_rejected(files, checkpoint, error, message) -> None:
    pipe = augmented(files, checkpoint=checkpoint)
    for _ in range(2):
        with pytest.raises(error, match=message):
            pipe.run()


def test_a_closed_pipeline_still_returns_a_checkpoint(files) -> None:
    pipe = augmented(files)
    take(pipe)
    place = pipe.state_dict()
    pipe.close()
    assert pipe.state_dict() == place


READER = ("readers", "r")
DAMAGED: list[tuple[tuple[str, ...], Any]] = [
    *(((*READER, "taken"), v) for v in (-1, 10**9, 2.5, "x", None, True)),
    *(((*READER, "epoch"), v) for v in (-1, 10**18, 10**30)),
    *(((*READER, "seed"), v) for v in (2**70, "x")),
    *(((*READER, "cuts"), v) for v in ({"0": [{"taken": [-3], "seeds": [1]}]}, {"x": []}, [], {"0": [{}]})),
    *((("position",), v) for v in (-1, 10**30, "x")),
    *((("sources", "s"), v) for v in (None, {"items": -1}, {}, {"epoch": "x", "iteration": 0, "sample": 0})),
    *(((name,), v) for name in ("readers", "sources", "graph") for v in (None, {}, [])),
    (("seed",), "x"),
    (("stopped",), 1),
]  # fmt: skip


def test_damaged_checkpoints_are_rejected(files) -> None:
    """Loading never hangs or misreads a file; every error names the damage."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1)
    def make() -> Any:
        _, labels = fn.readers.file(files=files, random_shuffle=True, name="r")
        return labels, fn.external_source(source=itertools.cycle([[np.array(1)] * 4]), name="s")

    with closing(make()) as pipe:
        pipe.run()
        text = json.dumps(pipe.state_dict())
    for path, value in DAMAGED:
        state = inside = json.loads(text)
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value
        with closing(make()) as pipe, pytest.raises(RuntimeError, match=r"checkpoint"):
            pipe.load_state_dict(state)


def test_a_failed_write_keeps_the_old_checkpoint(
    files, tmp_path, monkeypatch
) -> None:
    path = tmp_path / "state.json"
    with closing(augmented(files)) as pipe:
        written = pipe.checkpoint(str(path))
        assert path.read_bytes() == written
        pipe.run()

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            pipe.checkpoint(str(path))
    assert path.read_bytes() == written
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


# -------------------------------------------------------------------- skipping batches


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("reader", [{}, SHUFFLED_SHARD], ids=["whole", "padded shard"])
def test_batches_after_skipped_batches_are_the_same(files, reader, depth) -> None:
    with closing(augmented(files, **reader)) as whole, closing(
        augmented(files, **reader, prefetch_queue_depth=depth)
    ) as pipe:
        values, places = zip(*((take(whole), whole.state_dict()) for _ in range(16)), strict=True)
        number = 0
        for passed in (0, 3, 1, 0, 7):
            pipe.skip(passed)
            pipe.submit()
            number += passed
            found = [[sample.tolist() for sample in map(np.asarray, out)] for out in pipe.outputs()]
            assert found == values[number]
            assert pipe.state_dict() == places[number]
            number += 1


def test_sources_cannot_skip_batches(files) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def fed():
        return fn.external_source(name="fed")

    with closing(fed()) as pipe, pytest.raises(RuntimeError, match=r"has the source 'fed'"):
        pipe.skip(1)
    with closing(augmented(files)) as pipe, pytest.raises(ValueError, match=r"must be at least 0, got -1"):
        pipe.skip(-1)
