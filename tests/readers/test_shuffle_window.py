"""Shuffling in blocks of runs: every record once, on any number of ranks and after any resume, in few requests; and prefetched bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_tar, write_tfrecord
from tests.helpers.inside import computed_in_one_piece
from tests.helpers.object_server import ObjectServer, object_server
from torchdali import Loader, fn, pipeline_def
from torchdali.formats.remote import RemoteOptions
from torchdali.reading.cursor import Cursor, EpochOrder, ShuffleRuns, reshard
from torchdali.reading.datasets import LoaderOptions
from torchdali.tfrecord import FixedLenFeature, string

pytest.importorskip("fsspec", reason="URLs are read by fsspec")
pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")

ORDERS = [  # records, run, block, ranks, options
    (1, 1, 1, 1, {}), (7, 3, 6, 1, {}), (100, 8, 24, 1, {}), (100, 8, 24, 3, {}), (101, 10, 10, 4, {}), (64, 8, 64, 2, {}), (5, 9, 18, 2, {}),
    (100, 8, 24, 3, {"stick_to_shard": True}), (103, 8, 24, 2, {"shuffle_after_epoch": True}), (97, 5, 20, 3, {"pad_last_batch": True}),
]  # fmt: skip


def order(size: int, run: int, block: int, ranks: int = 1, rank: int = 0, seed: int = 3, **options: Any) -> EpochOrder:
    options = {"random_shuffle": not options.get("shuffle_after_epoch"), **options}
    return EpochOrder(size, LoaderOptions(num_shards=ranks, shard_id=rank, **options), seed, ShuffleRuns(run, block))


@pytest.mark.thin(3)
@pytest.mark.parametrize("kept", [1 << 24, 4], ids=["at hand", "in pieces"])
@pytest.mark.parametrize(("size", "run", "block", "ranks", "options"), ORDERS)
def test_ranks_share_every_epoch(size: int, run: int, block: int, ranks: int, options: dict[str, Any], kept: int) -> None:
    epochs = []
    with computed_in_one_piece(kept):
        for epoch in range(3):
            parts = [order(size, run, block, ranks, rank, **options).records(epoch) for rank in range(ranks)]
            assert sorted(np.concatenate(parts).tolist()) == list(range(size))
            for rank, part in enumerate(parts):
                assert len(set((part // run).tolist())) <= -(-len(part) // run) + 2  # runs stay together
                records = order(size, run, block, ranks, rank, **options).shard(epoch).records
                assert [records[i : i + 1].tolist() for i in range(len(records))] == part[:, None].tolist()
            epochs.append(np.concatenate(parts).tolist())
    assert size < 20 or epochs[0] != epochs[1] != epochs[2]


@pytest.mark.thin(5)
@pytest.mark.parametrize("after", range(0, 26, 3))
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("old", [1, 2, 3])
def test_a_resume_is_exact_with_any_ranks(old: int, ranks: int, after: int) -> None:
    size, batch = 150, 6
    cursors = [Cursor(order(size, 7, 28, old, rank)) for rank in range(old)]
    seen: list[int] = []
    for _ in range(min(after, size // old // batch - 1)):
        for each in cursors:
            seen += each.next_batch(batch).records.tolist()
    states = [each.state() for each in cursors]
    if ranks == old:
        again = [Cursor(EpochOrder(size, each.order.options, 0, ShuffleRuns(7, 28))) for each in cursors]
        for each, state in zip(again, states, strict=True):
            each.restore(state)
        assert [each.next_batch(9).records.tolist() for each in again] == [each.next_batch(9).records.tolist() for each in cursors]
        return
    for rank, state in enumerate(reshard(states, ranks)):
        one = Cursor(order(size, 7, 28, ranks, rank))
        one.restore(state)
        seen += one.next_batch(one.remaining()).records.tolist() if one.epoch == 0 else []
    assert sorted(seen) == list(range(size))


def test_a_damaged_state_is_rejected() -> None:
    one = Cursor(order(100, 8, 24))
    for runs in ([0, 1], [1], "8", [8, 2.0], None):
        with pytest.raises(RuntimeError, match="'runs'"):
            one.restore(one.state() | {"runs": runs})
    for other in (Cursor(order(100, 8, 32)), Cursor(EpochOrder(100, one.order.options, 3))):
        with pytest.raises(RuntimeError, match="another shuffle_window"):
            other.restore(one.state())
        with pytest.raises(RuntimeError, match="another shuffle_window"):
            one.restore(other.state())
    with pytest.raises(ValueError, match="shuffle_window"):
        reshard([Cursor(order(100, 8, block, 2, rank)).state() for rank, block in ((0, 24), (1, 32))], 1)


def quality(records: Any, shard: int, batch: int = 64) -> tuple[float, float]:
    """Return the mean distance of neighbors (1: random), and the average of the largest share of one shard in a batch."""
    distance = float(np.abs(np.diff(records)).mean()) / (len(records) / 3)
    batches = [Counter((records[i : i + batch] // shard).tolist()) for i in range(0, len(records) - batch + 1, batch)]
    return distance, float(np.mean([max(each.values()) / batch for each in batches]))


def test_the_quality_of_the_order() -> None:
    distance, share = quality(order(200_000, 38, 38 * 61).records(0), 2500)  # 110 KB per record: 256 MB of 22 GB, shards of 275 MB
    assert distance > 0.95 and share < 0.12
    random_distance, random_share = quality(np.random.default_rng(1).permutation(200_000), 2500)
    assert abs(random_distance - 1) < 0.02 and random_share < 0.08


# ---------------------------------------------------------------- requests

COUNT, SIZE = 240, 2000


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    from torchdali import containers

    monkeypatch.setattr("torchdali.ops._readers._ranges._RANGE_SIZE", 20_000)
    images = [np.full(SIZE, i, np.uint8).tobytes() for i in range(COUNT)]
    (tmp_path / "data").mkdir()
    for shard in range(4):
        part = images[shard * 60 : shard * 60 + 60]
        write_tar(tmp_path / "data" / f"{shard}.tar", [(f"{i:03}.{e}", d) for i, image in enumerate(part) for e, d in (("bin", image), ("id", b"%d" % i))])
        containers.index("webdataset", str(tmp_path / "data" / f"{shard}.tar"))
        write_tfrecord(tmp_path / "data" / f"{shard}.tfrecord", [{"image": image} for image in part])
    with object_server() as server:
        server.objects = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
        server.tags = True
        yield server


def pipeline(server: ObjectServer, kind: str = "tar", depth: int = 2, **options: Any) -> Any:
    @pipeline_def(batch_size=8, num_threads=2, device_id=None, prefetch_queue_depth=depth)
    def define() -> Any:
        names = [f"{server.url}/{shard}" for shard in range(4)]
        if kind == "tfrecord":
            features = {"image": FixedLenFeature((), string, "")}
            return fn.readers.tfrecord(path=[f"{n}.tfrecord" for n in names], index_path=[f"{n}.tfrecord.idx" for n in names], features=features, **options)["image"]
        return tuple(fn.readers.webdataset(paths=[f"{n}.tar" for n in names], index_paths=[f"{n}.idx" for n in names], ext=["bin", "id"], **options))

    return define()


def epoch(pipe: Any, count: int = COUNT) -> list[int]:
    with pipe:
        pipe.build()
        return [sample[0].item() for _ in range(count // 8) for sample in pipe.run()[0].samples()]


def ranges(server: ObjectServer) -> list[tuple[str, int, int]]:
    found = [(path, *map(int, wanted[6:].split("-"))) for _, path, wanted in list(server.requests) if wanted]
    return [(path, first, last + 1) for path, first, last in found]


@pytest.mark.thin(5)
@pytest.mark.parametrize("kind", ["tar", "tfrecord"])
@pytest.mark.parametrize("options", [{}, {"random_shuffle": True, "shuffle_window": 100_000}, {"random_shuffle": True, "shuffle_window": "1GB"}])
def test_a_run_is_one_request(options: dict[str, Any], kind: str, server: ObjectServer) -> None:
    seen = epoch(pipeline(server, kind, **options, seed=5))
    assert sorted(seen) == list(range(COUNT)) and (seen == sorted(seen)) == (not options)
    asked = ranges(server)
    run = 6250 if options.get("shuffle_window") == 100_000 else 20_000  # a block has 16 runs or more
    data = sum(len(data) for name, data in server.objects.items() if name.endswith(kind))
    assert len(set(asked)) <= 1.6 * data / run + 8 and min(last - first for _, first, last in asked) >= SIZE


@pytest.mark.parametrize("cached", [False, True])
def test_two_ranks_share_the_bytes(cached: bool, server: ObjectServer, tmp_path: Path) -> None:
    seen, sizes = [], []
    for rank in range(2):
        server.requests.clear()
        more = {"cache_dir": str(tmp_path / f"cache{rank}")} if cached else {}
        seen += epoch(pipeline(server, random_shuffle=True, shuffle_window=100_000, shard_id=rank, num_shards=2, stick_to_shard=True, io_ahead=0, depth=1, **more), COUNT // 2)
        sizes.append(sum(last - first for _, first, last in set(ranges(server))))
    assert sorted(seen) == list(range(COUNT))
    data = sum(len(data) for name, data in server.objects.items() if name.endswith(".tar"))
    assert all(size < 1.3 * data / 2 for size in sizes), (sizes, data)


@pytest.mark.parametrize("options", [{}, {"pad_last_batch": True}, {"random_shuffle": True, "shuffle_window": 100_000, "pad_last_batch": True}])
def test_the_next_epoch_is_not_read_too_early(options: dict[str, Any], server: ObjectServer) -> None:
    with pipeline(server, depth=3, **options) as pipe:
        pipe.build()
        first = [sample[0].item() for _ in range(COUNT // 8) for sample in pipe.run()[0].samples()]
        asked = ranges(server)
        assert len(asked) == len(set(asked))
        again = [sample[0].item() for _ in range(COUNT // 8) for sample in pipe.run()[0].samples()]
        assert sorted(first) == sorted(again) == list(range(COUNT)) and len(ranges(server)) > len(asked)


def test_a_shuffle_window_needs_a_container(server: ObjectServer) -> None:
    with pytest.raises(ValueError, match="shuffle_window is only for containers"):
        fn.readers.file.implementation(files=[f"{server.url}/0.tar"], random_shuffle=True, shuffle_window="1MB")
    for options in ({"shuffle_window": "much"}, {"io_ahead": -1}):
        with pytest.raises(ValueError, match="a size must be"):
            RemoteOptions(**options)


@pytest.mark.parametrize("kind", ["tar", "tfrecord"])
def test_bytes_are_prefetched(kind: str, server: ObjectServer) -> None:
    few, many = [], []
    for ahead, counts in ((0, few), ("100MB", many)):
        with pipeline(server, kind, depth=1, random_shuffle=True, io_ahead=ahead) as pipe:
            pipe.build()
            server.requests.clear()
            for _ in range(4):
                pipe.run()
                counts.append(len(server.requests))
            pipe.run()
    assert many[-1] > max(few) + 20


def test_a_checkpoint_continues_while_bytes_are_prefetched(server: ObjectServer) -> None:
    options = {"random_shuffle": True, "shuffle_window": 100_000, "seed": 3}

    def define(**more: Any) -> Any:
        return pipeline_def(batch_size=8, num_threads=2, device_id=None, enable_checkpointing=True, **more)(
            lambda: fn.readers.webdataset(paths=[f"{server.url}/{i}.tar" for i in range(4)], index_paths=[f"{server.url}/{i}.idx" for i in range(4)], ext=["bin"], **options)
        )()

    with define() as pipe:
        for _ in range(5):
            pipe.run()
        state = pipe.checkpoint()
        rest = [[s[0].item() for s in pipe.run()[0].samples()] for _ in range(30)]
    with define(checkpoint=state) as pipe:
        assert [[s[0].item() for s in pipe.run()[0].samples()] for _ in range(30)] == rest


@pytest.mark.thin(10, 5)
@pytest.mark.parametrize("options", [{}, {"cache_dir": "cache"}, {"shuffle_window": None}])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_loader_resumes_exactly_at_each_batch_on_all_ranks(ranks: int, options: dict[str, Any], server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"random_shuffle": True, "shuffle_window": 100_000, **options}
    paths = {"paths": [f"{server.url}/{i}.tar" for i in range(4)], "index_paths": [f"{server.url}/{i}.idx" for i in range(4)]}
    define = pipeline_def(batch_size=24, num_threads=2, device_id=None)(lambda: fn.readers.webdataset(**paths, ext=["bin"], **given))
    everything: list[int] = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        with Loader(define, ragged=[0]) as loader:
            whole, states = [], []
            for samples in loader:
                whole.append([sample[0].item() for sample in samples])
                states.append(loader.state_dict())
        for i, state in enumerate(states[:-1]):
            with Loader(define, ragged=[0]) as again:
                again.load_state_dict(json.loads(json.dumps(state)))
                assert [[sample[0].item() for sample in samples] for samples in again] == whole[i + 1 :]
        everything += [number for batch in whole for number in batch]
    assert sorted(everything) == list(range(COUNT)) != everything
