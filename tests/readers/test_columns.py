"""Tables of Parquet, Arrow and Lance, and shards of MDS: values, order, ranks, exact resuming, remote and local."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.object_server import ObjectServer, object_server
from torchdali import Loader, WeightedReader, fn, pipeline_def

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

COUNT = 60


def columns(start: int, stop: int) -> dict[str, Any]:
    numbers = range(start, stop)
    return {
        "image": [bytes([i]) * (300 + 10 * i) for i in numbers],
        "label": list(numbers),
        "box": [[float(i), 2.0, 3.0, 4.0] for i in numbers],
        "text": [f"number {i}" for i in numbers],
        "photo": [{"bytes": bytes([i, i]), "path": None} for i in numbers],
        "ratio": [i / 2 for i in numbers],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two files of each kind; the row groups of the first have 8, 8, 8, 8 and 5 rows, of the second 10, 10 and 3."""
    folder = tmp_path_factory.mktemp("columns")
    for name, (start, stop, rows) in {"a": (0, 37, 8), "b": (37, COUNT, 10)}.items():
        table = arrow.table(columns(start, stop))
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=rows)
        with arrow.ipc.new_file(str(folder / f"{name}.arrow"), table.schema) as file:
            file.write_table(table, max_chunksize=7)
        with arrow.ipc.new_stream(str(folder / f"{name}.feather"), table.schema) as file:
            file.write_table(table)
    return folder


@pytest.fixture
def server(folder: Path) -> Iterator[ObjectServer]:
    pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")
    with object_server() as server:
        server.objects, server.tags = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}, True
        yield server


def loader(paths: list[str], names: list[str] | None = None, batch: int = 7, **options: Any) -> Loader:
    @pipeline_def(batch_size=batch, num_threads=2, device_id=None, seed=4)
    def define() -> Any:
        outputs = fn.readers.table(paths=paths, columns=names or ["label"], **options)
        return tuple(outputs[name] for name in names or ["label"])

    return Loader(define)


def labels(batches: Any) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_values(ending: str, folder: Path) -> None:
    names = ["image", "label", "box", "text", "photo", "ratio"]
    with loader([str(folder / f"{name}.{ending}") for name in "ab"], names, batch=1) as batches:
        for i, (image, label, box, text, photo, ratio) in enumerate(batches):
            assert image[0].tolist() == [i] * (300 + 10 * i) and label.tolist() == [i] and photo[0].tolist() == [i, i]
            assert box[0].tolist() == [i, 2, 3, 4] and box.dtype == torch.float64 and ratio.item() == i / 2
            assert bytes(text[0].tolist()).decode() == f"number {i}"
    assert i == COUNT - 1


@pytest.mark.thin(5)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_shuffled_epochs_resume_exactly_at_each_batch_on_all_ranks(ranks: int, ending: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(folder / f"{name}.{ending}") for name in "ab"]
    options = {"random_shuffle": True}
    epochs = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        with loader(paths, **options) as batches:
            whole, states = [], []
            for batch in batches:
                whole.append(batch.tolist())
                states.append(batches.state_dict())
            assert labels(batches) != whole
        for i, state in enumerate(states[:-1]):
            with loader(paths, **options) as again:
                again.load_state_dict(state)
                assert labels(again) == whole[i + 1 :]
        epochs.append(whole)
    everything = list(itertools.chain(*itertools.chain(*epochs)))
    assert sorted(everything) == list(range(COUNT)) != everything


def test_each_row_group_is_read_once_in_an_epoch(server: ObjectServer) -> None:
    with loader([f"{server.url}/{name}.parquet" for name in "ab"], ["image"], batch=1, random_shuffle=True, shuffle_window=25_000) as batches:
        batches.pipeline.build()
        server.requests.clear()
        seen = [batch[0, 0].item() for batch in batches]
    assert sorted(seen) == list(range(COUNT))
    ranges = [(path, wanted) for method, path, wanted in server.requests if wanted]
    assert len(ranges) == len(set(ranges)) == 8  # one per group
    groups = [0 if i < 8 else 1 if i < 16 else 2 if i < 24 else 3 if i < 32 else 4 if i < 37 else 5 if i < 47 else 6 if i < 57 else 7 for i in seen]
    assert len(set(groups[:10])) > 1 and groups != sorted(groups)


def test_a_remote_table_equals_a_local_one(server: ObjectServer, folder: Path, tmp_path: Path) -> None:
    names = ["label", "ratio"]
    near = [str(folder / f"{name}.parquet") for name in "ab"]
    far = [f"{server.url}/{name}.parquet" for name in "ab"]
    options = {"random_shuffle": True, "seed": 5}
    whole = [[value.tolist() for value in batch] for batch in loader(near, names, **options)]
    server.failing = 0.05
    cached = {**options, "cache_dir": str(tmp_path)}
    assert [[value.tolist() for value in batch] for batch in loader(far, names, **cached)] == whole
    server.requests.clear()
    assert [[value.tolist() for value in batch] for batch in loader(far, names, **cached)] == whole
    assert {method for method, *_ in server.requests} == {"HEAD"}


def test_tables_in_a_mixture(folder: Path) -> None:
    source = lambda name, **w: WeightedReader(fn.readers.table, paths=[str(folder / f"{name}.parquet")], columns=["label"], **w)  # noqa: E731

    def define(**options: Any) -> Any:
        make = pipeline_def(batch_size=6, num_threads=2, device_id=None)
        return make(lambda: fn.readers.mixture(sources=[source("a", choose=30), source("b", choose=15)], random_shuffle=True, **options)["label"])

    with Loader(define(stratified=True)) as batches:
        for _ in range(2):
            epoch = labels(batches)
            assert all(abs(sum(label < 37 for label in batch) - len(batch) * 2 / 3) <= 1 for batch in epoch)
            taken = Counter(itertools.chain(*epoch))
            assert sum(taken.values()) == 45 and sum(count for label, count in taken.items() if label < 37) == 30
    with pytest.raises(Exception, match="need stratified=True"):
        define()().build()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "column": ({"names": ["lable"]}, r"must be among \['image', 'label'.*got \['lable'\]"),
    "endings": ({"paths": ["a.parquet", "b.arrow"]}, "must all end in"),
    "ending": ({"paths": ["a.csv"]}, r"got \['.csv'\]"),
    "nothing": ({"paths": []}, "paths is empty"),
    "no file": ({"paths": ["none.parquet"]}, "cannot open none.parquet"),
    "shuffling": ({"shuffle_after_epoch": True}, "shuffle_after_epoch must be False"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(case: str, folder: Path) -> None:
    options, text = WRONG[case]
    with pytest.raises(RuntimeError, match=text):
        loader(**{"paths": [str(folder / "a.parquet")], **options}).pipeline.build()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damaged_files_are_named(ending: str, folder: Path, tmp_path: Path) -> None:
    for size in (0, 3, 100):
        path = tmp_path / f"{size}.{ending}"
        path.write_bytes((folder / f"a.{ending}").read_bytes()[:size])
        with pytest.raises(RuntimeError, match=path.name):
            loader([str(path)]).pipeline.build()


def test_a_null_is_an_error_that_names_its_column(tmp_path: Path) -> None:
    parquet.write_table(arrow.table({"label": [1, None]}), tmp_path / "a.parquet")
    with loader([str(tmp_path / "a.parquet")]) as batches, pytest.raises(Exception, match="column 'label'"):
        list(batches)


def test_lance(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    lance.write_dataset(arrow.table({k: v for k, v in columns(0, COUNT).items() if k != "photo"}), str(tmp_path / "a.lance"))
    for batch in (1, 7):
        with loader([str(tmp_path / "a.lance")], ["label"] if batch > 1 else ["label", "image"], batch=batch, random_shuffle=True) as batches:
            seen: list[int] = []
            for each in batches:
                numbers, images = each if batch == 1 else (each, ())
                seen += numbers.tolist()
                assert all(image.tolist() == [seen[-1]] * (300 + 10 * seen[-1]) for image in images)
        assert sorted(seen) == list(range(COUNT)) != seen


# ---------------------------------------------------------------- MDS

FIELDS = {"id": "int", "jpg": "jpeg", "label": "uint8", "name": "str", "point": "ndarray:float32:2,2"}
SIZES = {"int": 8, "uint8": 1, "ndarray:float32:2,2": 16}


def write_mds(folder: Path, counts: tuple[int, ...], compression: str | None = None, fields: dict[str, str] = FIELDS) -> None:
    """Write shards as in the format's documentation."""
    folder.mkdir(exist_ok=True)
    shards, number = [], 0
    sizes = [SIZES.get(kind) for kind in fields.values()]
    for shard, count in enumerate(counts):
        samples = []
        for i in range(number, number + count):
            values = {"id": np.int64(i).tobytes(), "jpg": bytes([i]) * (50 + i), "label": bytes([i]), "name": f"n{i}".encode(), "point": np.full((2, 2), i, np.float32).tobytes()}
            data = [values.get(name, b"?") for name in fields]
            heads = [np.uint32(len(each)).tobytes() for each, size in zip(data, sizes, strict=True) if size is None]
            samples.append(b"".join([*heads, *data]))
        config = json.dumps({"encodings": fields}).encode()
        offsets = np.cumsum([4 + 4 * (count + 1) + len(config), *map(len, samples)]).astype(np.uint32)
        content = np.uint32(count).tobytes() + offsets.tobytes() + config + b"".join(samples)
        name = f"shard.{shard:05}.mds"
        (folder / name).write_bytes(content)
        shards.append({
            "column_names": list(fields), "column_encodings": list(fields.values()), "column_sizes": sizes, "compression": compression,
            "format": "mds", "hashes": [], "raw_data": {"basename": name, "bytes": len(content), "hashes": {}}, "samples": count,
            "size_limit": 1 << 26, "version": 2, "zip_data": None,
        })  # fmt: skip
        number += count
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def mds_loader(path: str, names: tuple[str, ...] = ("id", "jpg", "label", "name", "point"), batch: int = 1, **options: Any) -> Loader:
    @pipeline_def(batch_size=batch, num_threads=2, device_id=None)
    def define() -> Any:
        outputs = fn.readers.mds(path=path, columns=list(names), **options)
        return tuple(outputs[name] for name in names)

    return Loader(define)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_mds(shuffled: bool, far: bool, tmp_path: Path, server: ObjectServer) -> None:
    write_mds(tmp_path / "mds", (9, 14, 1))
    server.objects = {f"mds/{path.name}": path.read_bytes() for path in (tmp_path / "mds").iterdir()}
    place = f"{server.url}/mds" if far else str(tmp_path / "mds")
    options = {"random_shuffle": True, "shuffle_window": 2000} if shuffled else {}
    with mds_loader(place, **options) as batches:
        batches.pipeline.build()
        assert not far or len(server.requests) == 4
        seen = []
        for number, image, label, name, point in batches:
            i = number.item()
            assert image[0].tolist() == [i] * (50 + i) and label.item() == i and bytes(name[0].tolist()).decode() == f"n{i}"
            assert torch.equal(point[0], torch.full((2, 2), float(i)))
            seen.append(i)
    assert (sorted(seen) == list(range(24)) != seen) if shuffled else seen == list(range(24))


def test_mds_shards_of_the_streaming_library(tmp_path: Path) -> None:
    streaming = pytest.importorskip("streaming", exc_type=ImportError)
    with streaming.MDSWriter(out=str(tmp_path / "mds"), columns=FIELDS, size_limit=2000) as out:
        for i in range(24):
            out.write({"id": i, "jpg": bytes([i]) * (50 + i), "label": np.uint8(i), "name": f"n{i}", "point": np.full((2, 2), i, np.float32)})
    with mds_loader(str(tmp_path / "mds"), ("id", "jpg")) as batches:
        assert [(number.item(), image[0].tolist()) for number, image in batches] == [(i, [i] * (50 + i)) for i in range(24)]


def _cut(folder: Path) -> None:
    path = folder / "shard.00000.mds"
    path.write_bytes(path.read_bytes()[:-5])


def _without_shards(folder: Path) -> None:
    (folder / "index.json").write_text('{"version": 2}')


def _wrong_sizes(folder: Path) -> None:
    path = folder / "shard.00000.mds"
    data = bytearray(path.read_bytes())
    start = int.from_bytes(data[4:8], "little")
    data[start] += 1
    path.write_bytes(bytes(data))


DAMAGE = {
    "cut": (_cut, "its header doesn't match index.json"), "index": (_without_shards, r"index\.json is damaged"),
    "sizes": (_wrong_sizes, "cannot read the sample .*its columns must have"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_shards_are_named(case: str, tmp_path: Path) -> None:
    damage, text = DAMAGE[case]
    write_mds(tmp_path / "mds", (9,))
    damage(tmp_path / "mds")
    with pytest.raises(RuntimeError, match=text), mds_loader(str(tmp_path / "mds")) as batches:
        list(batches)


def test_unsupported_shards_are_errors(tmp_path: Path) -> None:
    write_mds(tmp_path / "a", (3,), compression="zstd")
    write_mds(tmp_path / "b", (3,), fields={**FIELDS, "more": "pkl"})
    with pytest.raises(RuntimeError, match=r"is compressed\. Use fn\.readers\.stream"):
        mds_loader(str(tmp_path / "a")).pipeline.build()
    with pytest.raises(RuntimeError, match="'more' has the encoding 'pkl'"):
        mds_loader(str(tmp_path / "b"), ("more",)).pipeline.build()
    assert len(list(mds_loader(str(tmp_path / "b"), ("id",)))) == 3
    with pytest.raises(RuntimeError, match=r"columns must be among \['id', 'jpg'"):
        mds_loader(str(tmp_path / "a" / ".." / "b"), ("none",)).pipeline.build()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_reads_its_own_row_groups(rank: int, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with loader([f"{server.url}/{name}.parquet" for name in "ab"], ["image"], batch=1, random_shuffle=True) as batches:
        batches.pipeline.build()
        server.requests.clear()
        seen = [batch[0, 0].item() for batch in batches]
    assert len(set(seen)) == COUNT // 2 and seen != sorted(seen)
    assert len([wanted for *_, wanted in server.requests if wanted]) <= 6  # of 8 groups, one of them at the border
