"""Readers of URLs: over memory, and from a web server with failures."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_recordio, write_tar, write_tfrecord
from tests.helpers.lines import lines_of
from tests.helpers.object_server import ObjectServer, object_server
from torchdali import containers, fn, pipeline_def
from torchdali.errors import MissingExtraError
from torchdali.formats import remote as remote_module
from torchdali.formats import urls
from torchdali.formats.disk_cache import DiskCache
from torchdali.formats.remote import Remote, RemoteFile, RemoteOptions
from torchdali.formats.storage import PlainFile
from torchdali.formats.urls import has_secret, redact
from torchdali.tfrecord import FixedLenFeature, int64, string

fsspec = pytest.importorskip("fsspec", reason="URLs are read by fsspec")

COUNT = 12
RNG = np.random.default_rng(3)
IMAGES = [RNG.integers(0, 256, 50 + 3000 * i, np.uint8).tobytes() for i in range(COUNT)]


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Write the same records into all containers, by name."""
    folder = tmp_path_factory.mktemp("containers")
    write_tfrecord(folder / "a.tfrecord", [{"image": image, "label": [i]} for i, image in enumerate(IMAGES)])
    write_recordio(folder / "a.rec", [(image, [float(i)]) for i, image in enumerate(IMAGES)])
    write_tar(
        folder / "a.tar",
        [(f"{i:03}.{e}", d) for i, image in enumerate(IMAGES) for e, d in (("jpg", image), ("cls", b"%d" % i))],
    )
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    found |= {f"files/class{i % 2}/{i:03}.jpg": image for i, image in enumerate(IMAGES)}
    found |= {f"npy/{i:03}.npy": npy(np.full((3, 2), i)) for i in range(COUNT)}
    return found


@pytest.fixture
def server(objects: dict[str, bytes]) -> Iterator[ObjectServer]:
    pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")
    with object_server() as server:
        server.objects = objects
        yield server


@pytest.fixture
def memory(objects: dict[str, bytes]) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name, data in objects.items():
        system.pipe_file(f"/store/{name}", data)
    yield "memory://store"
    system.rm("/store", recursive=True)


READERS: dict[str, Any] = {
    "tfrecord": lambda root, **o: list(fn.readers.tfrecord(
        path=f"{root}/a.tfrecord", features={"image": FixedLenFeature((), string, ""), "label": FixedLenFeature([1], int64, 0)}, **o).values()),
    "mxnet": lambda root, **o: fn.readers.mxnet(path=f"{root}/a.rec", **o),
    "webdataset": lambda root, **o: fn.readers.webdataset(paths=f"{root}/a.tar", ext=["jpg", "cls", "none"], **o),
    "file": lambda root, **o: fn.readers.file(file_root=f"{root}/files", **o),
    "files": lambda root, **o: fn.readers.file(files=[f"{root}/files/class1/001.jpg", "class0/002.jpg"] * 6, file_root=f"{root}/files", **o),
    "numpy": lambda root, **o: fn.readers.numpy(file_root=f"{root}/npy", roi_start=[1], roi_axes=[0], **o),
}  # fmt: skip


def pipeline(reader: str, root: str, options: dict[str, Any] | None = None, **arguments: Any) -> Any:
    @pipeline_def(batch_size=5, num_threads=2, device_id=None, **(options or {}))
    def define() -> Any:
        outputs = READERS[reader](root, **arguments)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    return define()


def values(outputs: Any) -> list[Any]:
    return [[sample.tolist() for sample in output.samples()] for output in outputs]


def run(reader: str, root: str, batches: int = 5, **arguments: Any) -> list[Any]:
    with pipeline(reader, root, **arguments) as pipe:
        return [values(pipe.run()) for _ in range(batches)]


@pytest.fixture(scope="module")
def local(objects: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("local")
    for name, data in objects.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return str(folder)


@pytest.mark.parametrize("reader", READERS)
def test_memory_urls_equal_local_files(reader: str, memory: str, local: str) -> None:
    shuffled = {"random_shuffle": True, "seed": 4, "shard_id": 1, "num_shards": 2}
    assert run(reader, memory) == run(reader, local)
    assert run(reader, memory, **shuffled) == run(reader, local, **shuffled)


@pytest.mark.parametrize("reader", READERS)
def test_a_server_with_failures_equals_local_files(reader: str, server: ObjectServer, local: str) -> None:
    server.failing = 0.1
    assert run(reader, server.url, io_retries=8, io_concurrency=8) == run(reader, local)


def test_folders_in_class_folders_are_skipped_with_a_warning(memory: str) -> None:
    fsspec.filesystem("memory").pipe_file("/store/files/class1/more/a.jpg", b"...")
    with pytest.warns(UserWarning, match=r"1 folders are inside class folders, for example 'class1/more'"):
        run("file", memory, batches=1)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_rejected_request_is_not_repeated(server: ObjectServer, status: int) -> None:
    server.objects, server.absent = {}, status
    with pytest.raises(RuntimeError, match=r"cannot read .*a\.tar: .*") as raised:
        run("webdataset", server.url, io_retries=5)
    assert "attempts" not in str(raised.value) and (status == 404 or str(status) in str(raised.value))
    assert len(server.requests) <= 4


def test_a_request_that_fails_temporarily_is_repeated(server: ObjectServer) -> None:
    server.objects, server.absent = {}, 503
    with pytest.raises(RuntimeError, match=r"after 2 attempts: the server's response has status 503"):
        run("webdataset", server.url, io_retries=1)


def test_a_server_without_ranges(server: ObjectServer, local: str) -> None:
    server.ranges = False
    assert run("mxnet", server.url) == run("mxnet", local)


def test_adjacent_records_are_one_request(server: ObjectServer) -> None:
    with pipeline("tfrecord", server.url, io_concurrency=4) as pipe:
        pipe.build()
        server.requests.clear()
        pipe.run()
        ranges = [each for each in server.requests if each[2]]
    assert 0 < len(ranges) <= 6  # a batch of five records each, some batches ahead


def test_no_more_requests_than_allowed(server: ObjectServer) -> None:
    run("file", server.url, io_concurrency=3, random_shuffle=True)
    assert server.most <= 3


def test_checkpoints(memory: str) -> None:
    options = {"random_shuffle": True, "seed": 3}
    with pipeline("webdataset", memory, {"enable_checkpointing": True}, **options) as pipe:
        pipe.run()
        state = pipe.checkpoint()
        rest = [values(pipe.run()) for _ in range(3)]
    with pipeline("webdataset", memory, {"checkpoint": state}, **options) as pipe:
        assert [values(pipe.run()) for _ in range(3)] == rest


def test_unreadable_urls_are_errors(server: ObjectServer) -> None:
    with pytest.raises(RuntimeError, match=r"cannot read http.*/b\.rec"):
        Remote().info(server.url + "/b.rec")
    server.failing = 1.0
    with pytest.raises(RuntimeError, match=r"cannot read http://127.0.0.1:\d+/a.rec, after 2 attempts: \w+"):
        Remote(RemoteOptions(io_retries=1)).read(server.url + "/a.rec")


def test_a_request_that_takes_too_long(server: ObjectServer) -> None:
    server.gate.clear()
    with pytest.raises(RuntimeError, match=r"after 1 attempts: .*Timeout"):
        Remote(RemoteOptions(io_retries=0, io_timeout=0.05)).read(server.url + "/a.rec", 0, 10)
    server.gate.set()


def test_one_bad_object_is_one_bad_sample(memory: str) -> None:
    fsspec.filesystem("memory").rm("/store/files/class1/001.jpg")
    with pipeline("files", memory, {"bad_samples": "skip"}) as pipe:
        outputs = pipe.run()
        assert [bytes(sample.tolist()) for sample in outputs[0].samples()] == [IMAGES[2]] * 2


def test_a_range_outside(memory: str) -> None:
    file = RemoteFile(Remote(), f"{memory}/a.rec")
    with pytest.raises(RuntimeError, match=r"cannot read 2 bytes at offset \d+ of memory://store/a.rec"):
        file.read(file.size - 1, 2)
    assert file.read(file.size, 0).size == 0


# ---------------------------------------------------------------- indices


def test_warnings_of_threads_that_read_indices_show_the_line_of_the_reader(memory: str) -> None:
    missing = {"paths": [f"{memory}/a.tar"] * 2, "index_paths": [f"{memory}/b.idx", f"{memory}/c.idx"]}

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.webdataset(ext=["jpg"], missing_component_behavior="empty", **missing)

    pipe = define()
    with pytest.warns(UserWarning, match="does not exist") as said:
        pipe.run()
    pipe.close()
    assert ["fn.readers.webdataset(" in line for line in lines_of(said)] == [True, True]


def test_an_index_at_a_url_is_read_and_never_written(memory: str, local: str) -> None:
    features = {"image": FixedLenFeature((), string, "")}

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.tfrecord(path=f"{memory}/a.tfrecord", index_path=f"{memory}/a.idx", features=features)[
            "image"
        ]

    with pytest.warns(UserWarning, match="memory://store/a.idx does not exist") as said, define() as pipe:
        first = values(pipe.run())
    assert "fn.readers.tfrecord(" in lines_of(said)[0]
    assert not fsspec.filesystem("memory").exists("/store/a.idx")
    assert containers.index("tfrecord", f"{memory}/a.tfrecord") == (f"{memory}/a.idx", COUNT)
    assert fsspec.filesystem("memory").cat_file("/store/a.idx").startswith(b"0 ")
    with define() as pipe:
        assert values(pipe.run()) == first


# ---------------------------------------------------------------- listings


class Entry(dict[str, Any]):
    """An entry of a listing; counts its instances."""

    now = most = 0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Entry.now += 1
        Entry.most = max(Entry.most, Entry.now)

    def __del__(self) -> None:
        Entry.now -= 1


class Listing:
    """A file system with one large folder, which it lists page by page, like s3fs."""

    async_impl = True
    loop = property(lambda self: fsspec.asyn.get_loop())

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.partition("/")
        return bucket, key, None

    async def _iterdir(self, bucket: str, prefix: str) -> Any:
        for page in range(20 if prefix == "large/" else 0):
            for entry in [Entry({"name": f"{bucket}/{prefix}{page}-{i}", "type": "file"}) for i in range(1000)]:
                yield entry
        if prefix == "large/":
            yield Entry({"name": f"{bucket}/large", "type": "file"})
            yield Entry({"name": f"{bucket}/large/folder", "type": "directory"})

    def ls(self, path: str, detail: bool) -> Any:
        raise AssertionError("all at once")


def test_a_large_listing_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Remote, "_system", lambda self, url: (Listing(), url.removeprefix("s3://")))
    folders, names = Remote().list_folder("s3://bucket/large")
    assert len(names) == 20_000 and names[0] == "0-0" and Entry.most < 2100
    assert folders == ["folder"]
    with pytest.raises(RuntimeError, match="cannot read s3://bucket/none"):
        Remote().list_folder("s3://bucket/none")


# ---------------------------------------------------------------- regions of arrays

TALL = np.arange(2000 * 128, dtype=np.float32).reshape(2000, 128)
REGIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("c", {"roi_start": [700], "roi_shape": [3], "roi_axes": [0]}, TALL[700:703]),
    ("c", {"roi_start": [700, 5], "roi_end": [702, 9]}, TALL[700:702, 5:9]),
    ("c", {"rel_roi_start": [0.5], "roi_shape": [0], "roi_axes": [0]}, TALL[1000:1000]),
    ("f", {"roi_start": [7], "roi_shape": [2], "roi_axes": [1]}, TALL[:, 7:9]),
    ("f", {"roi_start": [4, 7], "roi_shape": [5, 2]}, TALL[4:9, 7:9]),
]
ALL_OF_IT: list[tuple[str, dict[str, Any], Any]] = [
    ("c", {"roi_start": [0, 5], "roi_end": [2000, 9]}, TALL[:, 5:9]),
    ("f", {"roi_start": [4], "roi_shape": [5], "roi_axes": [0]}, TALL[4:9]),
    (
        "c",
        {"roi_start": [1999], "roi_shape": [2], "roi_axes": [0], "out_of_bounds_policy": "pad"},
        np.pad(TALL[1999:], ((0, 1), (0, 0))),
    ),
    (
        "c",
        {"roi_start": [1999], "roi_shape": [2], "roi_axes": [0], "out_of_bounds_policy": "trim_to_shape"},
        TALL[1999:],
    ),
]


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    np.save(tmp_path / "c.npy", TALL)
    np.save(tmp_path / "f.npy", np.asfortranarray(TALL))
    return tmp_path


def read_region(root: str, name: str, region: dict[str, Any]) -> Any:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        return fn.readers.numpy(files=[f"{root}/{name}.npy"], **region)

    with define() as pipe:
        (output,) = pipe.run()
        return output.as_array()[0]


@pytest.mark.parametrize(("name", "region", "expected"), [*REGIONS, *ALL_OF_IT])
def test_regions_of_remote_arrays(
    name: str, region: dict[str, Any], expected: Any, arrays: Path, server: ObjectServer
) -> None:
    server.objects = {f"{each}.npy": (arrays / f"{each}.npy").read_bytes() for each in "cf"}
    assert np.array_equal(read_region(server.url, name, region), expected)
    ranges = [[int(end) for end in wanted[6:].split("-")] for _, _, wanted in server.requests if wanted]
    longest = max(last - first + 1 for first, last in ranges)
    assert (longest < 70_000) == any(region is each for _, each, _ in REGIONS)


@pytest.mark.parametrize(("name", "region", "expected"), [*REGIONS, *ALL_OF_IT])
def test_regions_of_local_arrays(
    name: str, region: dict[str, Any], expected: Any, arrays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    read = PlainFile.read
    monkeypatch.setattr(
        PlainFile, "read", lambda self, offset, count: counts.append(count) or read(self, offset, count)
    )
    assert np.array_equal(read_region(str(arrays), name, region), expected)
    assert counts and max(counts) < 70_000


def test_a_region_after_the_longest_header(tmp_path: Path, server: ObjectServer) -> None:
    text = repr({"descr": "<f4", "fortran_order": False, "shape": TALL.shape}).ljust((1 << 16) - 1) + "\n"
    data = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode() + TALL.tobytes()
    (tmp_path / "c.npy").write_bytes(data)
    server.objects = {"c.npy": data}
    region = {"roi_start": [700], "roi_shape": [3], "roi_axes": [0]}
    for root in (str(tmp_path), server.url):
        assert np.array_equal(read_region(root, "c", region), TALL[700:703])


def test_a_region_of_a_truncated_array(arrays: Path, server: ObjectServer) -> None:
    data = (arrays / "c.npy").read_bytes()[:500_000]
    (arrays / "c.npy").write_bytes(data)
    server.objects = {"c.npy": data}
    region = {"roi_start": [1990], "roi_shape": [2], "roi_axes": [0]}
    with pytest.raises(RuntimeError, match="the array must have 1024000 bytes"):
        read_region(str(arrays), "c", region)
    with pytest.raises(RuntimeError, match="cannot read http"):
        read_region(server.url, "c", {**region, "io_retries": 0})


# ---------------------------------------------------------------- the cache


def test_cached_blocks_are_not_requested_again(server: ObjectServer, local: str, tmp_path: Path) -> None:
    cached = {"cache_dir": str(tmp_path), "random_shuffle": True, "seed": 1}
    first = run("file", server.url, **cached)
    server.requests.clear()
    assert run("file", server.url, **cached) == first
    assert not [path for _, path, _ in server.requests if path.endswith(".jpg")]


@pytest.mark.parametrize(
    "reader", ["tfrecord", *(pytest.param(r, marks=pytest.mark.slow) for r in ("mxnet", "webdataset"))]
)
def test_a_cache_gets_each_block_of_a_container_once(
    reader: str, server: ObjectServer, local: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urls, "BLOCK", 4096)
    cached = {"cache_dir": str(tmp_path), "random_shuffle": True, "seed": 1}
    assert run(reader, server.url, **cached) == run(reader, local, random_shuffle=True, seed=1)
    blocks = [wanted for _, _, wanted in server.requests if wanted]
    assert len(blocks) == len(set(blocks)) == -(-RemoteFile(Remote(), server.url + CONTAINERS[reader]).size // 4096)
    server.requests.clear()
    assert run(reader, server.url, cache_dir=str(tmp_path)) == run(reader, local)  # another order
    assert not [wanted for _, _, wanted in server.requests if wanted]


CONTAINERS = {"tfrecord": "/a.tfrecord", "mxnet": "/a.rec", "webdataset": "/a.tar"}


def test_a_cache_for_half_of_the_data_serves_half_of_it(
    server: ObjectServer, local: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urls, "BLOCK", 4096)
    size = len(server.objects["a.tfrecord"])
    cached = {
        "cache_dir": str(tmp_path),
        "cache_size": size // 2,
        "random_shuffle": True,
        "seed": 1,
        "pad_last_batch": True,
    }
    received = []
    with pipeline("tfrecord", server.url, **cached) as pipe:
        pipe.build()
        found = []
        for _ in range(3):  # epochs
            server.requests.clear()
            found += [values(pipe.run()) for _ in range(3)]
            ranges = [wanted.removeprefix("bytes=").split("-") for _, _, wanted in server.requests if wanted]
            received.append(sum(int(last) - int(first) + 1 for first, last in ranges))
    assert found == run("tfrecord", local, batches=9, random_shuffle=True, seed=1, pad_last_batch=True)
    assert 0.4 * size < received[2] < 0.65 * size
    kept = [path for path in (tmp_path / "torchdali").iterdir() if len(path.name) == 64]
    assert 0.4 * size < sum(path.stat().st_size for path in kept) <= size // 2


def test_the_cache_evicts_blocks_of_earlier_runs(tmp_path: Path) -> None:
    before = DiskCache(str(tmp_path), 1000)
    for i in range(20):
        before.put(f"old{i}", bytes([i]) * 90)
    assert before.is_full and before.get("old0") and before.get("old19") is None
    for path in (tmp_path / "torchdali").iterdir():
        os.utime(path, (0, 0))
    caches = [DiskCache(str(tmp_path), 1000) for _ in range(2)]  # as in two processes
    assert caches[0].get("old7") == bytes([7]) * 90
    for i in range(50):
        caches[i % 2].put(f"new{i}", bytes([i]) * 90)
        kept = [path for path in (tmp_path / "torchdali").iterdir() if len(path.name) == 64]
        assert sum(path.stat().st_size for path in kept) <= 1000
    assert [bool(caches[0].get(f"new{i}")) for i in range(50)] == [i < 9 for i in range(50)]
    assert caches[1].get("old7") and caches[1].get("old8") is None
    caches[0].put("large", bytes(1001))
    assert caches[0].get("large") is None


READ_ALL = """
import sys
from torchdali.formats import urls
urls.BLOCK = 4096
from torchdali.formats.remote import Remote, RemoteFile, RemoteOptions
remote = Remote(RemoteOptions(cache_dir=sys.argv[2], io_concurrency=1))
file = RemoteFile(remote, sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for offset in range(0, file.size, 4096):
    assert len(remote.read(sys.argv[1], offset, min(4096, file.size - offset), file.version))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="cache_dir needs locks of files")
def test_ranks_of_a_machine_download_each_block_once(server: ObjectServer, tmp_path: Path) -> None:
    server.latency = 0.01
    command = [sys.executable, "-c", READ_ALL, f"{server.url}/a.tar", str(tmp_path)]
    ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for rank in ranks:
        assert rank.stdout is not None and rank.stdout.readline() == "ready\n"
    server.requests.clear()
    for rank in ranks:
        rank.communicate("go\n", timeout=60)
        assert not rank.returncode
    ranges = [wanted for _, _, wanted in server.requests]
    assert len(ranges) == len(set(ranges)) == -(-len(server.objects["a.tar"]) // 4096)


def test_waiting_for_another_process_download_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    cache = DiskCache(str(tmp_path), 1000)
    monkeypatch.setattr("torchdali.formats.disk_cache.PATIENCE", 0.1)
    monkeypatch.setattr(fcntl, "lockf", lambda *_: (_ for _ in ()).throw(BlockingIOError))
    with cache.downloading("key"):
        cache.put("key", b"data")
    assert cache.get("key") == b"data"


def test_temporary_files_of_a_crash_are_removed(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    (tmp_path / "torchdali" / "x.part").write_bytes(bytes(900))
    os.utime(tmp_path / "torchdali" / "x.part", (0, 0))
    for i in range(20):
        cache.put(str(i), bytes(90))
    assert not list(tmp_path.rglob("*.part"))


# ---------------------------------------------------------------- secrets


SECRET = "https://user:geheim@host/a.tar?X-Signature=geheim#geheim"


def test_messages_do_not_show_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact(SECRET) == "https://...@host/a.tar?..." and has_secret(SECRET)
    assert not has_secret("s3://bucket/a@b/x.tar") and not has_secret("/a?b")

    def fail(url: str, **_: Any) -> Any:
        raise OSError(f"no answer from {url}, key geheim")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(RuntimeError) as caught:
        Remote(RemoteOptions(io_retries=0)).read(SECRET)
    assert "geheim" not in str(caught.value) and "host/a.tar" in str(caught.value)


def test_pipelines_with_credentials_are_not_saved(memory: str) -> None:
    with pipeline("files", memory) as pipe:
        assert memory in json.dumps(pipe.serialize().decode())

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.webdataset(paths=[SECRET], ext=["jpg"])

    pipe = define()
    with pytest.raises(RuntimeError, match="argument 'paths' is a URL with a user, a password or a query") as caught:
        pipe.serialize()
    assert "geheim" not in str(caught.value)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("options", [{"io_concurrency": 0}, {"io_retries": -1}, {"io_timeout": 0.0}, {"cache_size": 0}])
def test_arguments_that_are_too_small(options: dict[str, Any], memory: str) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        pipeline("mxnet", memory, **options).build()


@pytest.mark.slow
def test_a_hanging_server_does_not_block_the_exit(server: ObjectServer) -> None:
    server.gate.clear()
    code = (
        "import sys, torchdali.formats.remote as r; remote = r.Remote(r.RemoteOptions(io_concurrency=2));"
        f"waiting = [remote.start('{server.url}/a.rec', 0, 9) for _ in range(9)]; print('end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=25, check=False)
    server.gate.set()
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr


def test_without_fsspec(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(remote_module.importlib, "import_module", fail)
    with pytest.raises(MissingExtraError, match="remote"):
        Remote()


# ---------------------------------------------------------------- S3


@pytest.mark.slow
@pytest.mark.parametrize("package", ["s3fs", "obstore"])
def test_an_s3_server(
    package: str, objects: dict[str, bytes], local: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s3fs = pytest.importorskip("s3fs", reason="reads s3:// URLs")
    server_module = pytest.importorskip("moto.server", reason="is the S3 server")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "geheim")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        s3fs.S3FileSystem.clear_instance_cache()  # with another server's endpoint
        system = s3fs.S3FileSystem()
        system.mkdir(f"with-{package}")
        for name, data in objects.items():
            system.pipe_file(f"with-{package}/{name}", data)
        if package == "obstore":
            monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
            pytest.importorskip("obstore.fsspec", reason="reads s3:// URLs").register("s3")
        shuffled = {"random_shuffle": True, "seed": 4}
        for reader in ("tfrecord", "mxnet", "webdataset", "file", "numpy"):
            options = {"cache_dir": str(tmp_path / reader), **shuffled}
            assert run(reader, f"s3://with-{package}", **options) == run(reader, local, **shuffled)
            with pipeline(reader, f"s3://with-{package}") as pipe:
                assert b"geheim" not in pipe.serialize()
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        fsspec.register_implementation("s3", s3fs.S3FileSystem, clobber=True)
        server.stop()


def test_obstore_obeys_the_options(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore.fsspec", reason="reads s3:// URLs")
    pytest.importorskip("s3fs", reason="has s3:// otherwise")
    before = fsspec.get_filesystem_class("s3")
    names = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "key", "DEFAULT_REGION": "us-east-1", "ALLOW_HTTP": "true"}
    for name, value in {**names, "ENDPOINT_URL": server.url}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    obstore.register("s3")
    obstore.FsspecStore.clear_instance_cache()
    server.objects = {"bucket/a.rec": IMAGES[1]}
    try:
        for limit in (30.0, 10.0):
            server.failing = 0.0
            remote = Remote(RemoteOptions(io_retries=1, io_timeout=limit))
            part, whole = (remote.read("s3://bucket/a.rec", *place) for place in ((5, 10), ()))
            assert part.tobytes() == IMAGES[1][5:15]
            part[:] = 0  # is the reader's own memory
            assert whole.tobytes() == IMAGES[1]
            server.failing, done = 1.0, len(server.requests)
            with pytest.raises(RuntimeError, match="after 2 attempts"):
                remote.read("s3://bucket/a.rec", 5, 10)
            assert len(server.requests) == done + 2
        server.failing = 0.0
        server.gate.clear()
        with pytest.raises(RuntimeError, match=r"after 1 attempts: .*Timeout"):
            Remote(RemoteOptions(io_retries=0, io_timeout=0.05)).read("s3://bucket/a.rec", 0, 10)
    finally:
        server.gate.set()
        obstore.FsspecStore.clear_instance_cache()
        fsspec.register_implementation("s3", before, clobber=True)


LOCAL_ONLY: dict[str, Callable[[], Any]] = {
    "annotations_file": lambda: fn.readers.coco.implementation(file_root=".", annotations_file="s3://a@bucket/a.json?key"),
    "files": lambda: fn.experimental.readers.fits.implementation(files=["s3://a@bucket/a.fits?key"]),
    "filenames": lambda: fn.readers.video.implementation(filenames=["s3://a@bucket/a.mp4?key"], sequence_length=2),
}


@pytest.mark.parametrize("argument", LOCAL_ONLY)
def test_readers_of_local_files_reject_urls(argument: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{argument}: .* got the URL 's3://.*bucket/a.*readers\.file") as caught:
        LOCAL_ONLY[argument]()
    assert "key" not in str(caught.value)
