"""Stores that fail, replace objects, redirect or are slow: every sample once, or an error that names the cause; and no unrequested writes."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.containers import write_tar, write_tfrecord
from tests.helpers.inside import without_pauses
from tests.helpers.object_server import ObjectServer, object_server
from torchdali import containers, fn, pipeline_def
from torchdali import dynamic as ndd
from torchdali.errors import PipelineError, StoreError
from torchdali.formats import remote as remote_module
from torchdali.formats import retries
from torchdali.formats.remote import NoSuchObject, Remote, RemoteOptions
from torchdali.tfrecord import FixedLenFeature, string

fsspec = pytest.importorskip("fsspec", reason="URLs are read by fsspec")
pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")

COUNT = 24
CLIENTS = ["http", "obstore", "s3fs"]
XML = "<Error><Code>{}</Code><Message>no</Message></Error>"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("far")
    images = [np.full(40_000, i, np.uint8).tobytes() for i in range(COUNT)]
    write_tar(folder / "a.tar", [(f"{i:03}.bin", image) for i, image in enumerate(images)])
    write_tfrecord(folder / "a.tfrecord", [{"image": image} for image in images])
    return {f"bucket/{path.name}": path.read_bytes() for path in folder.iterdir()} | {
        f"bucket/files/{i:03}.bin": image for i, image in enumerate(images)
    }


@pytest.fixture
def server(objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    without_pauses(monkeypatch)
    with object_server() as server:
        server.objects, server.tags = dict(objects), True
        yield server


def root(client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of the objects for a client."""
    if client == "http":
        return f"{server.url}/bucket"
    pytest.importorskip(client)
    if client == "s3fs":
        find = remote_module.stores.importlib.util.find_spec
        monkeypatch.setattr(remote_module.stores.importlib.util, "find_spec", lambda name: None if name == "obstore" else find(name))
    names = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "key", "DEFAULT_REGION": "us-east-1", "ENDPOINT_URL": server.url}
    for name, value in names.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for module in ("s3fs", "obstore.fsspec"):
        cls = getattr(pytest.importorskip(module), "S3FileSystem" if module == "s3fs" else "FsspecStore")
        cls.clear_instance_cache()
    return "s3://bucket"


def tar_pipeline(place: str, pipeline: dict[str, Any] | None = None, **options: Any) -> Any:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, **(pipeline or {}))
    def define() -> Any:
        return fn.readers.webdataset(paths=[f"{place}/a.tar"], ext=["bin"], **options)

    return define()


def file_pipeline(place: str, pipeline: dict[str, Any] | None = None, **options: Any) -> Any:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, **(pipeline or {}))
    def define() -> Any:
        return fn.readers.file(files=[f"{place}/files/{i:03}.bin" for i in range(COUNT)], **options)[0]

    return define()


def first_bytes(outputs: Any) -> list[int]:
    return [sample[0].item() for sample in outputs[0].samples()]


def epoch(pipe: Any) -> list[int]:
    with pipe:
        return [number for _ in range(COUNT // 4) for number in first_bytes(pipe.run())]


# --------------------------------------------------------------- valid inputs

PASSING: dict[str, tuple[int, dict[str, str], bytes]] = {
    "unavailable": (503, {}, b""),
    "too many": (429, {"Retry-After": "0"}, b""),
    "internal": (500, {}, b""),
    "expired": (400, {}, XML.format("ExpiredToken").encode()),
    "expired, forbidden": (403, {}, XML.format("ExpiredToken").encode()),
    "stall": (0, {}, bytes(500)),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_loses_and_repeats_no_sample(fault: str, client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    if client == "http" and fault.startswith("expired"):
        pytest.skip("web servers have no such code")
    place = root(client, server, monkeypatch)
    options = {"io_timeout": 0.3} if fault == "stall" else {}
    pipe = file_pipeline(place, {"bad_samples": "skip"}, **options)
    pipe.build()
    server.queued.extend([PASSING[fault]] * (2 if fault == "stall" else 12))
    assert epoch(pipe) == list(range(COUNT)) and not server.queued


def test_credentials_are_read_again_when_they_have_expired(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place, remote, opened = root("obstore", server, monkeypatch), Remote(), []
    open_system = remote_module.stores.open_system
    monkeypatch.setattr(remote_module.stores, "open_system", lambda *a: opened.append(a[2]) or open_system(*a))
    assert remote.read(f"{place}/files/007.bin")[0] == 7
    server.queued.append(PASSING["expired"])
    assert remote.read(f"{place}/files/008.bin")[0] == 8
    assert opened == [False, True]


@pytest.mark.parametrize("client", ["obstore", "s3fs"])
def test_expired_credentials_are_read_again_when_an_object_is_opened(client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root(client, server, monkeypatch)
    server.queued.extend([PASSING["expired, forbidden"]] * 2)  # HEAD, whose answer has no body, then GET
    assert Remote().info(f"{place}/files/007.bin").size == 40_000
    server.queued.extend([(403, {}, XML.format("AccessDenied").encode())] * 2)
    with pytest.raises(StoreError, match="403"):
        Remote().info(f"{place}/files/007.bin")
    assert not server.queued


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), (lambda: formatdate(__import__("time").time() + 60, usegmt=True), 60), ("soon", 0.05), (None, 0.05)])
def test_the_retry_after_header_sets_the_pause(header: Any, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    error = OSError("slow down")
    error.status, error.headers = 429, {} if header is None else {"retry-after": header() if callable(header) else header}  # type: ignore[attr-defined]
    answers = iter([error])

    def request() -> str:
        if (failure := next(answers, None)) is not None:
            raise failure
        return "done"

    assert retries.repeat(request, 300.0, None, 4.0, lambda: None) == "done"
    assert clock.now - 1000 == pytest.approx(seconds, rel=0.6)


def test_a_wait_beyond_the_deadline_is_an_error() -> None:
    error = OSError("slow down")
    error.headers = {"Retry-After": "500"}  # type: ignore[attr-defined]

    def request() -> None:
        raise error

    with pytest.raises(retries.RequestFailed) as caught:
        retries.repeat(request, 300.0, None, 4.0, lambda: None)
    assert caught.value.attempts == 1


class Clock:
    """A clock that only advances during waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(retries.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(retries.time, "sleep", self.wait)

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("status", [503, 500, None])
def test_a_short_outage_is_retried_and_a_long_one_is_an_error(status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for outage in (60, 3600):
        with monkeypatch.context() as patch:
            clock, options = Clock(patch), RemoteOptions()
            ends, sent = clock.now + outage, []

            def request(clock: Clock = clock, ends: float = ends, sent: list[float] = sent) -> str:
                sent.append(clock.now)
                if clock.now < ends:
                    error = OSError("down")
                    error.status = status  # type: ignore[attr-defined]
                    raise error
                return "done"

            send = lambda request=request, options=options: retries.repeat(request, options.io_deadline, options.io_retries, 4.0, lambda: None)  # noqa: E731
            if outage == 60:
                assert send() == "done" and clock.now < ends + 6 and len(sent) < 50
            else:
                with pytest.raises(retries.RequestFailed):
                    send()
                assert 290 < clock.now - 1000 <= 300
    assert RemoteOptions().io_timeout == 10.0  # the cost of a silent connection


def test_pauses_do_not_advance_the_programs_generators(server: ObjectServer) -> None:
    state = random.getstate()
    server.queued.extend([PASSING["unavailable"]] * 3)
    assert Remote().read(f"{server.url}/bucket/files/001.bin")[0] == 1
    assert random.getstate() == state


@pytest.mark.parametrize("client", ["http", "obstore"])
def test_a_slow_request_is_sent_twice_on_request(client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root(client, server, monkeypatch)
    remote = Remote(RemoteOptions(io_hedge=True, io_timeout=60.0, io_retries=0))
    server.queued.append(PASSING["stall"])
    assert remote.read(f"{place}/files/003.bin")[0] == 3
    assert not server.silence.is_set()
    server.queued.append(PASSING["unavailable"])
    with pytest.raises(StoreError, match="503"):
        remote.read(f"{place}/files/004.bin")


# -------------------------------------------------------------------- invalid inputs


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_an_outage_is_never_a_bad_sample(policy: str, client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with file_pipeline(root(client, server, monkeypatch), {"bad_samples": policy}, io_deadline=0.0) as pipe:
        pipe.build()
        server.wanted, server.failing = lambda method, path: path.endswith("001.bin"), 0.0
        server.queued.extend([(503, {}, b"")] * 50)
        with pytest.raises(PipelineError, match=r"StoreError: cannot read .*/001\.bin"):
            pipe.run()


@pytest.mark.parametrize(("status", "kind"), [(404, NoSuchObject), (410, RuntimeError), (403, StoreError), (401, StoreError)])
def test_invalid_arguments_are_rejected(status: int, kind: type, server: ObjectServer) -> None:
    server.queued.append((status, {}, b""))
    with pytest.raises(RuntimeError) as caught:
        Remote().read(f"{server.url}/bucket/a.tar", 0, 9)
    assert type(caught.value) is kind and len(server.requests) == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("conditions", [True, False])
def test_a_replaced_archive_is_an_error(conditions: bool, client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.conditions = conditions
    seen: list[int] = []
    with tar_pipeline(root(client, server, monkeypatch), {"bad_samples": "skip", "prefetch_queue_depth": 1}, random_shuffle=True, io_ahead=0) as pipe:
        seen += first_bytes(pipe.run())
        old = server.objects["bucket/a.tar"]
        server.objects["bucket/a.tar"] = bytes(byte ^ 0x80 if i % 512 > 400 else byte for i, byte in enumerate(old))
        with pytest.raises(PipelineError, match=r"a\.tar was replaced while torchdali read it"):
            for _ in range(COUNT):
                seen += first_bytes(pipe.run())
    assert max(seen) < COUNT
    if conditions:
        assert all(each.startswith('"') for each in server.asked[-3:])


def test_all_parts_of_an_array_have_the_same_version(server: ObjectServer, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((60_000, 4)))
    data = (tmp_path / "a.npy").read_bytes()
    server.objects["bucket/a.npy"] = data

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        return fn.readers.numpy(files=[f"{server.url}/bucket/a.npy"], roi_start=[50_000], roi_shape=[2], roi_axes=[0])

    with define() as pipe:
        pipe.run()
    assert server.asked[-2:][0] in ("", server.asked[-1]) and any(each.startswith('"') for each in server.asked)


# --------------------------------------------------------------------- no unrequested writes


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [503, 403])
def test_a_forbidden_index_is_an_error_and_is_not_written(status: int, client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.wanted = lambda method, path: path.endswith(".idx")
    server.queued.extend([(status, {}, b"")] * 9)
    place = root(client, server, monkeypatch)
    with pytest.raises(RuntimeError, match=rf"cannot read .*a\.idx.*{status}"):
        tar_pipeline(place, index_paths=[f"{place}/a.idx"], io_retries=1).build()
    assert {method for method, *_ in server.requests} <= {"GET", "HEAD"}
    assert not [path for method, path, _ in server.requests if method == "GET" and path.endswith(".tar")]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_remote_index_is_not_written(client: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root(client, server, monkeypatch)
    with pytest.warns(UserWarning, match="does not exist"):
        assert epoch(tar_pipeline(place, index_paths=[f"{place}/a.idx"])) == list(range(COUNT))
    assert {method for method, *_ in server.requests} <= {"GET", "HEAD"}


def test_padding_requests_an_object_once_per_batch(server: ObjectServer) -> None:
    @pipeline_def(batch_size=COUNT * 2, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        return fn.readers.file(files=[f"{server.url}/bucket/files/{i:03}.bin" for i in range(COUNT)], pad_last_batch=True, io_ahead=0)[0]

    with define() as pipe:
        assert first_bytes(pipe.run()) == [*range(COUNT), *[COUNT - 1] * COUNT]
    paths = [path for _, path, _ in server.requests]
    assert len(paths) == len(set(paths)) * (len(paths) // COUNT)


def test_s3fs_reads_an_object_in_one_request(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place, remote = root("s3fs", server, monkeypatch), Remote()
    assert [remote.read(f"{place}/files/{i:03}.bin")[0] for i in range(3)] == [0, 1, 2]
    assert [method for method, *_ in server.requests] == ["GET"] * 3


@pytest.mark.parametrize("client", ["memory", "obstore", "s3fs"])
def test_pack_writes_to_a_bucket_and_nowhere_else(client: str, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for label in "ab":
        (tmp_path / "images" / label).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(np.full((20 + i, 9, 3), 40 * i, np.uint8)).save(tmp_path / "images" / label / f"{i}.png")
    target = f"memory://far-{tmp_path.name}" if client == "memory" else f"{root(client, server, monkeypatch)}/packed"
    options = containers.PackOptions(shard_size=1500)
    local = containers.pack("images", "local", options)
    first, second = containers.pack("images", target, options), containers.pack("images", target, options)
    assert (first.samples, first.kept, second.kept) == (6, 0, len(local.shards)) and len(local.shards) > 1
    assert first.shards == [f"{target}/{os.path.basename(path)}" for path in local.shards]
    for name in sorted(os.listdir("local")):
        assert Remote().read(f"{target}/{name}").tobytes() == Path("local", name).read_bytes()
    assert sorted(os.listdir(".")) == ["images", "local"]
    with pytest.raises(RuntimeError, match="only shards of the same source"):
        containers.pack("images", target)
    problems, counts = containers.check([target])
    assert (problems, counts["samples"]) == ([], 6)
    with pytest.raises(RuntimeError, match=r"cannot read|nothing at"):
        containers.check([f"{target}/none"])


@pytest.mark.parametrize("client", CLIENTS)
def test_pack_reads_a_folder_in_a_bucket(client: str, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for label in "ab":
        (tmp_path / "images" / label).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(np.full((20 + i, 9, 3), 40 * i, np.uint8)).save(tmp_path / "images" / label / f"{i}.png")
            server.objects[f"bucket/images/{label}/{i}.png"] = (tmp_path / "images" / label / f"{i}.png").read_bytes()
    options = containers.PackOptions(shard_size=1500)
    near = containers.pack(str(tmp_path / "images"), str(tmp_path / "near"), options)
    far = containers.pack(f"{root(client, server, monkeypatch)}/images", str(tmp_path / "far"), options)
    assert far.samples == near.samples == 6 and len(far.shards) == len(near.shards) > 1
    for name in os.listdir(tmp_path / "near"):
        if name != "pack.json":  # named like the source
            assert (tmp_path / "far" / name).read_bytes() == (tmp_path / "near" / name).read_bytes()
    assert {method for method, *_ in server.requests} <= {"GET", "HEAD"}


# ---------------------------------------------------------------- processes and redirections

FORK = """
import os, sys
from torchdali.formats.remote import Remote
remote = Remote()
assert remote.read("s3://bucket/files/001.bin")[0] == 1
calls = [lambda: Remote().read("s3://bucket/files/001.bin"), lambda: Remote().info("s3://bucket/a.tar"), lambda: Remote().contents("s3://bucket"),
         lambda: remote.read("s3://bucket/files/001.bin"), lambda: remote.info("s3://bucket/a.tar")]
for call in calls:
    child = os.fork()
    if not child:
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_obstore_after_a_fork_is_an_error(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    root("obstore", server, monkeypatch)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count('multiprocessing_context="spawn"') == 5


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("request_of", ["object", "range", "size"])
def test_redirections_to_other_servers_must_be_allowed(request_of: str, allowed: bool, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{server.url}/bucket/files/003.bin"
    with object_server() as other:
        other.objects = {"bucket/files/003.bin": b"other"}
        for _ in range(4):
            server.queued.append((302, {"Location": f"{other.url}/bucket/files/003.bin"}, b""))
        if allowed:
            monkeypatch.setenv("TORCHDALI_REDIRECT_HOSTS", "elsewhere,127.0.0.1")
        call = {"object": lambda: Remote().read(url), "range": lambda: Remote().read(url, 0, 5), "size": lambda: Remote().info(url)}[request_of]
        if allowed:
            assert call() is not None and other.requests
        else:
            with pytest.raises(RuntimeError, match=r"must not redirect to another host, got 127\.0\.0\.1:\d+.*TORCHDALI_REDIRECT_HOSTS"):
                call()
            assert not other.requests


def test_redirections_inside_a_server_are_followed(server: ObjectServer) -> None:
    server.queued.append((302, {"Location": "/bucket/files/004.bin"}, b""))
    assert Remote().read(f"{server.url}/bucket/files/003.bin")[0] == 4


# ---------------------------------------------------------------- manifests


def many(server: ObjectServer, tmp_path: Path, shards: int = 9) -> list[str]:
    """Write small shards, with indices and a manifest; return their names."""
    for number in range(shards):
        write_tar(tmp_path / f"s{number}.tar", [(f"{i:03}.bin", bytes([10 * number + i]) * 100) for i in range(4)])
        containers.index("webdataset", str(tmp_path / f"s{number}.tar"))
    server.objects |= {f"bucket/{path.name}": path.read_bytes() for path in tmp_path.iterdir()}
    return [f"s{number}" for number in range(shards)]


EXPECTED = [10 * number + i for number in range(9) for i in range(4)]


def shards_pipeline(place: str, names: list[str], index: list[str], **options: Any) -> Any:
    @pipeline_def(batch_size=12, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.webdataset(paths=[f"{place}/{name}.tar" for name in names], index_paths=index, ext=["bin"], **options)

    return define()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("cached", [False, True])
def test_a_manifest_opens_all_shards_in_one_request(cached: bool, client: str, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, place = many(server, tmp_path), root(client, server, monkeypatch)
    assert containers.manifest("webdataset", [f"{place}/{name}.tar" for name in names], f"{place}/all.json") == (f"{place}/all.json", 36)
    options = {"cache_dir": str(tmp_path / "cache")} if cached else {}
    for more in (1 + cached, 1):
        server.requests.clear()
        with shards_pipeline(place, names, [f"{place}/all.json"], **options) as pipe:
            pipe.build()
            asked = [path for method, path, _ in list(server.requests) if method == "HEAD" or not path.endswith(".tar")]
            assert asked == ["bucket/all.json"] * more
            assert [number for _ in range(3) for number in first_bytes(pipe.run())] == EXPECTED


def test_a_shard_that_does_not_match_the_manifest_is_an_error(server: ObjectServer, tmp_path: Path) -> None:
    names = many(server, tmp_path)
    place = f"{server.url}/bucket"
    containers.manifest("webdataset", [str(tmp_path / f"{name}.tar") for name in names], str(tmp_path / "local.json"))
    containers.manifest("webdataset", [f"{place}/{name}.tar" for name in names], str(tmp_path / "all.json"))
    server.objects["bucket/s3.tar"] = server.objects["bucket/s3.tar"].replace(bytes([30]) * 100, bytes([99]) * 100)
    with shards_pipeline(place, names, [str(tmp_path / "all.json")]) as pipe, pytest.raises(PipelineError, match=r"s3\.tar was replaced"):
        [pipe.run() for _ in range(3)]
    with pytest.raises(RuntimeError, match=r"has no shard 's7\.tar'"):
        content = json.loads((tmp_path / "all.json").read_text())
        del content["shards"]["s7.tar"]
        (tmp_path / "few.json").write_text(json.dumps(content))
        shards_pipeline(place, names, [str(tmp_path / "few.json")]).build()
    with pytest.raises(RuntimeError, match="must be for tfrecord"):
        fn.readers.tfrecord.implementation(path=[f"{place}/a.tfrecord"], index_path=[str(tmp_path / "all.json")], features={"image": FixedLenFeature((), string, "")})


@pytest.mark.parametrize("text", ["{", "[]", '{"form": 1, "kind": "webdataset", "shards": {"s0.tar": {"size": "1"}}}', '{"shards": {"s0.tar": 3}}'])
def test_a_damaged_manifest_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(text)
    with pytest.raises(RuntimeError, match=r"the manifest .*all\.json is damaged"):
        shards_pipeline(str(tmp_path), ["s0"], [str(tmp_path / "all.json")]).build()


def test_indices_are_read_concurrently(server: ObjectServer, tmp_path: Path) -> None:
    names = many(server, tmp_path)
    place = f"{server.url}/bucket"
    with shards_pipeline(place, names, [f"{place}/{name}.idx" for name in names]) as pipe:
        pipe.build()
        assert len(server.requests) == 18
        assert [number for _ in range(3) for number in first_bytes(pipe.run())] == EXPECTED


def test_remote_data_in_the_dynamic_mode(server: ObjectServer) -> None:
    reader = ndd.readers.File(files=[f"{server.url}/bucket/files/{i:03}.bin" for i in range(COUNT)])
    found = [each[0].item() for data, _ in reader.next_epoch(batch_size=4) for each in map(np.asarray, data)]
    assert found == list(range(COUNT))


# ------------------------------------------------------------------------- counts


def test_statistics_contain_requests_bytes_and_cost(server: ObjectServer) -> None:
    server.queued.extend([PASSING["unavailable"]] * 2)
    server.wanted = lambda method, path: path.endswith("007.bin")
    eagerly = {"exec_async": False, "exec_pipelined": False}  # no request is sent while the numbers are compared
    with file_pipeline(f"{server.url}/bucket", eagerly, io_ahead=0) as pipe:
        assert [number for _ in range(COUNT // 4) for number in first_bytes(pipe.run())] == list(range(COUNT))
        stats = pipe.stats()
    (line,) = stats.stores
    requests, again = (int(word) for word in re.findall(r"(\d+) (?:requests|of them)", line))
    assert requests == len(server.requests) >= COUNT + 2 and again == 2
    assert f"{requests * 40_000 / 2**20:.1f}" <= line and "0.4 dollars for a million requests" in line and line in str(stats)
    with pipeline_def(batch_size=1, num_threads=1, device_id=None)(lambda: fn.readers.dataset(dataset=[1]))() as pipe:
        pipe.run()
        assert pipe.stats().stores == ()
