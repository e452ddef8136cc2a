"""Streams: samples of other libraries' iterable datasets, and archives in one pass, with their positions."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_tar
from tests.helpers.object_server import ObjectServer, object_server
from torchdali import Loader, TarStream, fn, pipeline_def
from torchdali.formats import remote as remote_module
from torchdali.reading import tar_stream

COUNT = 23


class Plain:
    """A stream without a position."""

    def __init__(self, count: int = COUNT) -> None:
        self.count, self.epoch, self.drawn = count, 0, 0

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.count):
            self.drawn += 1
            yield {"data": bytes([self.epoch, number]), "label": number}

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Stateful(Plain):
    """A stream with torchdata's two methods."""

    start = place = 0

    def __iter__(self) -> Iterator[Any]:
        self.place, self.start = self.start, 0
        while self.place < self.count:
            self.place += 1
            self.drawn += 1
            yield {"data": bytes([self.epoch, self.place - 1]), "label": self.place - 1}

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.start, self.epoch = state["place"], state["epoch"]


class Mosaic(Stateful):
    """A stream with a state like mosaicml's, which depends on the samples since the start of the loop."""

    before = 0

    def __iter__(self) -> Iterator[Any]:
        self.before = self.start
        return super().__iter__()

    def state_dict(self, num_samples: int, from_beginning: bool) -> dict[str, Any]:  # type: ignore[override]
        assert from_beginning is False
        return {"place": self.before + num_samples, "epoch": self.epoch}


class Counted(Stateful):
    """A stream that counts loops, like mosaicml's, has items by index, and is its own iterator, like litdata's."""

    loops = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return {"data": bytes([self.epoch, index]), "label": index}

    def __iter__(self) -> Iterator[Any]:
        self.place, self.start = self.start, 0
        self.loops += 1
        return self

    def __next__(self) -> Any:
        if self.place >= self.count:
            raise StopIteration
        self.place += 1
        return self[self.place - 1]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert not self.loops
        super().load_state_dict(state)


def loader(dataset: Any, batch: int = 5, **options: Any) -> Loader:
    @pipeline_def(batch_size=batch, num_threads=2, device_id=None)
    def define() -> Any:
        outputs = fn.readers.stream(dataset=dataset, columns=["data", "label"], **options)
        return outputs["data"], outputs["label"]

    return Loader(define)


def rows(batches: Any) -> list[list[list[int]]]:
    return [data.tolist() for data, labels in batches if data[:, 1].tolist() == labels.tolist()]


@pytest.mark.parametrize("kind", [Plain, Stateful, Mosaic, Counted])
def test_each_epoch_is_a_pass(kind: type[Plain]) -> None:
    with loader(kind()) as batches:
        for epoch in range(3):
            assert list(itertools.chain(*rows(batches))) == [[epoch, i] for i in range(COUNT)]


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", [Plain, Stateful, Mosaic, Counted])
@pytest.mark.parametrize(("count", "epoch_size"), [(COUNT, None), (20, None), (COUNT, 9), (4, 9)])
def test_resuming_at_each_batch_is_exact(kind: type[Plain], count: int, epoch_size: int | None) -> None:
    with loader(kind(count), epoch_size=epoch_size) as batches:
        whole, states = [], []
        for _ in range(2):
            for data, _ in batches:
                whole.append(data.tolist())
                states.append(batches.state_dict())
    for i, state in enumerate(states):
        dataset = kind(count)
        with loader(dataset, epoch_size=epoch_size) as again:
            again.load_state_dict(state)
            rest: list[Any] = []
            while len(rest) < len(whole) - i - 1:
                rest += rows(again)
            assert rest[: len(whole) - i - 1] == whole[i + 1 :]


def test_a_stream_with_a_position_reads_nothing_twice() -> None:
    with loader(Stateful()) as batches:
        iterator = iter(batches)
        [next(iterator) for _ in range(3)]
        state = batches.state_dict()
    dataset = Stateful()
    with loader(dataset) as again:
        again.load_state_dict(state)
        dataset.drawn = 0
        assert len(list(itertools.chain(*rows(again)))) == COUNT - 15
        assert dataset.drawn <= COUNT - 15 + 1


def test_epochs_of_a_size_continue_the_stream() -> None:
    with loader(Plain(), epoch_size=9) as batches:
        seen = [row for _ in range(5) for batch in rows(batches) for row in batch]
    assert seen == [[i // COUNT, i % COUNT] for i in range(45)]


def test_streams_of_hugging_face_are_delivered_encoded() -> None:
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.full((8, 9, 3), 10 * i, np.uint8)) for i in range(12)]
    table = datasets.Dataset.from_dict(
        {"image": pictures, "label": list(range(12))},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}),
    )

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        sample = fn.readers.stream(dataset=table.to_iterable_dataset(num_shards=3))
        return fn.decoders.image(sample["image"]), sample["label"]

    with Loader(define) as batches:
        whole = [(images[:, 0, 0, 0].tolist(), labels.tolist()) for images, labels in batches]
        assert whole == [([10 * i for i in part], list(part)) for part in (range(4), range(4, 8), range(8, 12))]
    with Loader(define) as batches:
        next(iter(batches))
        state = batches.state_dict()
    with Loader(define) as again:
        again.load_state_dict(state)
        assert [(images[:, 0, 0, 0].tolist(), labels.tolist()) for images, labels in again] == whole[1:]


def test_webdataset_is_a_stream(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    write_tar(
        tmp_path / "a.tar",
        [(f"{i:03}.{ext}", data) for i in range(7) for ext, data in (("bin", bytes([0, i])), ("cls", b"%d" % i))],
    )

    dataset = wds.WebDataset(str(tmp_path / "a.tar"), shardshuffle=False).to_tuple("bin", "cls")

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.stream(dataset=dataset)[0]

    with Loader(define) as batches:
        assert [row for batch in batches for row in batch.tolist()] == [[0, i] for i in range(7)]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "iterator": (lambda: iter([1, 2]), TypeError, "must start again at each iter"),
    "number": (lambda: 3, TypeError, "must start again"),
    "empty": (list, RuntimeError, "is empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_datasets_that_are_not_streams(case: str) -> None:
    dataset, kind, text = WRONG[case]
    with pytest.raises(kind, match=text):
        pipeline_def(batch_size=1, num_threads=1, device_id=None)(
            lambda: fn.readers.stream(dataset=dataset())
        )().build()


def test_errors_of_a_stream_are_raised() -> None:
    class Broken(Plain):
        def __iter__(self) -> Iterator[Any]:
            yield from itertools.islice(super().__iter__(), 7)
            raise OSError("the network is down")

    with loader(Broken()) as batches, pytest.raises(Exception, match="the network is down"):
        list(batches)
    with loader(Plain()) as batches, pytest.raises(RuntimeError, match="damaged"):
        state = batches.state_dict()
        next(iter(state["pipelines"][0]["sources"].values()))["taken"] = -1
        batches.load_state_dict(state)


class Failing(Plain):
    """Fails once at some samples, and continues with the same sample."""

    def __iter__(self) -> Iterator[Any]:
        return FailingIterator()


class FailingIterator:
    def __init__(self) -> None:
        self.place, self.failures = -1, [7, 11, 12]

    def __iter__(self) -> FailingIterator:
        return self

    def __next__(self) -> dict[str, Any]:
        if self.place + 1 in self.failures:
            self.failures.remove(self.place + 1)
            raise OSError("the network is down")
        self.place += 1
        if self.place == COUNT:
            raise StopIteration
        return {"data": bytes([0, self.place]), "label": self.place}


@pytest.mark.parametrize("epoch_size", [None, 2 * COUNT])
def test_an_error_loses_no_sample(epoch_size: int | None) -> None:
    pipe = pipeline_def(batch_size=5, num_threads=1, device_id=None)(
        lambda: fn.readers.stream(dataset=Failing(), columns=["label"], epoch_size=epoch_size)["label"]
    )()
    seen: list[int] = []
    failures = 0
    while len(seen) < (COUNT if epoch_size is None else 2 * COUNT):
        try:
            seen += pipe.run()[0].stack().flatten().tolist()
        except OSError as error:
            assert "the network is down" in str(error)
            failures += 1
    assert seen == list(range(COUNT)) * (1 if epoch_size is None else 2) and failures == (
        3 if epoch_size is None else 6
    )


# ---------------------------------------------------------------- archives

SIZES = (40, 10, 3, 17)


def members(shard: int) -> list[tuple[str, bytes]]:
    long = "long" * 30 if shard == 1 else ""
    return [
        (f"{long}{shard}{i:03}.{ext}", data)
        for i in range(SIZES[shard])
        for ext, data in (("bin", bytes([shard, i]) * 1500), ("cls", b"%d" % i))
    ]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("archives")
    for shard in range(len(SIZES)):
        _write(folder / f"{shard}.tar", members(shard))
    return [folder / f"{shard}.tar" for shard in range(len(SIZES))]


def _write(path: Path, content: list[tuple[str, bytes]]) -> None:
    """Write with tarfile, which writes separate headers for long names."""
    import io
    import tarfile

    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
        for name, data in content:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))


def taken(stream: Any) -> list[tuple[int, int]]:
    found = []
    for sample in stream:
        assert sample["bin"] == sample["bin"][:2] * 1500 and sample["bin"][1] == sample["cls"]
        found.append((sample["bin"][0], sample["cls"]))
    return found


EVERY = [(shard, i) for shard, size in enumerate(SIZES) for i in range(size)]


def test_archives_are_read_in_order_or_shuffled(archives: list[Path]) -> None:
    paths = list(map(str, archives))
    assert taken(TarStream(paths)) == EVERY
    stream = TarStream(paths, shuffle=True, buffer=16, seed=2)
    first = taken(stream)
    stream.set_epoch(1)
    second = taken(stream)
    assert first != second and sorted(first) == sorted(second) == EVERY
    ranks = [taken(TarStream(paths, shuffle=True, seed=2, shard_id=rank, num_shards=3)) for rank in range(3)]
    assert sorted(itertools.chain(*ranks)) == EVERY and all(ranks)


@pytest.mark.thin(5)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_resuming_archives_at_each_batch_is_exact(ranks: int, shuffle: bool, archives: list[Path]) -> None:
    everything: Counter[tuple[int, int]] = Counter()
    for rank in range(ranks):
        make = partial(TarStream, list(map(str, archives)), shuffle=shuffle, buffer=16, shard_id=rank, num_shards=ranks)
        for i, each in enumerate(_states(make)):
            whole, state = each
            again = make()
            again.load_state_dict(state)
            assert taken(again) == whole[i + 1 :], (i, state)
        everything.update(whole)
    assert everything == Counter(EVERY)


def _states(make: Any) -> Iterator[tuple[list[tuple[int, int]], dict[str, int]]]:
    stream, whole = make(), taken(make())
    for _ in stream:
        yield whole, stream.state_dict()


def test_archives_in_a_pipeline(archives: list[Path]) -> None:
    @pipeline_def(batch_size=8, num_threads=2, device_id=None)
    def define() -> Any:
        sample = fn.readers.stream(dataset=TarStream(list(map(str, archives)), shuffle=True, buffer=16))
        return sample["bin"], sample["cls"]

    with Loader(define) as batches:
        epochs = [
            [(data[i, 0].item(), labels[i].item()) for data, labels in batches for i in range(len(data))]
            for _ in range(2)
        ]
    assert epochs[0] != epochs[1] and sorted(epochs[0]) == sorted(epochs[1]) == EVERY


@pytest.fixture
def server(archives: list[Path]) -> Iterator[ObjectServer]:
    pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")
    with object_server() as server:
        server.objects, server.tags = {path.name: path.read_bytes() for path in archives}, True
        yield server


def test_each_byte_is_read_once_and_the_first_sample_comes_before_the_last_byte(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_module, "READ_BLOCK", 4096)
    monkeypatch.setattr(tar_stream, "BATCH", 8)
    stream = TarStream([f"{server.url}/{shard}.tar" for shard in range(len(SIZES))])
    last_archive = server.objects.pop("3.tar")  # it arrives later
    samples = iter(stream)
    next(samples)
    server.objects["3.tar"] = last_archive
    found = 1 + sum(1 for _ in samples)
    ranges = [(path, wanted) for method, path, wanted in server.requests if method == "GET" and wanted]
    assert found == len(EVERY) and len(ranges) == len(set(ranges))
    sizes = sum(
        int(last) - int(begin) + 1 for _, wanted in ranges for begin, last in [wanted.removeprefix("bytes=").split("-")]
    )
    assert sizes <= sum(map(len, server.objects.values()))


def test_requests_of_archives_are_counted(server: ObjectServer) -> None:
    dataset = TarStream([f"{server.url}/{shard}.tar" for shard in range(len(SIZES))])
    with Loader(
        pipeline_def(batch_size=8, num_threads=1, device_id=None)(
            lambda: fn.readers.stream(dataset=dataset, columns=["bin"])["bin"]
        )
    ) as batches:
        assert sum(map(len, batches)) == len(EVERY)
        (line,) = batches.stats().stores
    assert line.startswith(f"stores: {len(server.requests):,} requests, 0 of them again")


def test_members_larger_than_a_block_are_read_once(tmp_path: Path, server: ObjectServer) -> None:
    size = 5 << 20
    write_tar(tmp_path / "a.tar", [(f"{i}.bin", bytes([i]) * size) for i in range(6)])
    server.objects["large.tar"] = (tmp_path / "a.tar").read_bytes()
    assert [sample["bin"] for sample in TarStream([f"{server.url}/large.tar"])] == [bytes([i]) * size for i in range(6)]
    ranges = [
        tuple(map(int, wanted[6:].split("-"))) for method, _, wanted in server.requests if method == "GET" and wanted
    ]
    starts, ends = zip(*sorted(ranges), strict=True)
    assert starts == (0, *(last + 1 for last in ends[:-1])) and ends[-1] + 1 == len(server.objects["large.tar"])
    assert len(ranges) < len(server.objects["large.tar"]) / (2 << 20)


def test_invalid_arguments_of_archives(archives: list[Path]) -> None:
    with pytest.raises(ValueError, match="number of archives must hold, got 0, 5, 4"):
        TarStream(list(map(str, archives)), num_shards=5)
    with pytest.raises(ValueError, match="buffer must be at least 1"):
        TarStream(["a.tar"], buffer=0)
    with pytest.raises(RuntimeError, match=r"none\.tar"):
        list(TarStream(["none.tar"]))
