"""Reads of a URL obey the limit, whatever a server states and sends; and no message shows secrets of a URL."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_recordio, write_tar, write_tfrecord
from tests.helpers.inside import without_pauses
from tests.helpers.object_server import object_server
from torchdali import fn, pipeline_def
from torchdali.formats import urls
from torchdali.formats.remote import Remote, RemoteOptions, read_url
from torchdali.formats.urls import represent
from torchdali.tfrecord import FixedLenFeature, int64, string

fsspec = pytest.importorskip("fsspec", reason="URLs are read by fsspec")
pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")

LIMIT = 100_000
BLOCK = bytes(10_000)
TOO_LARGE = r"has more than 100,000 bytes, .*TORCHDALI_MAX_URL_BYTES"


def _raw(handler: Any, headers: dict[str, str], parts: Iterator[bytes]) -> None:
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    for part in parts:
        handler.wfile.write(part)
        handler.server.sent += len(part)


def _chunked(handler: Any, parts: Iterator[bytes]) -> None:
    _raw(handler, {"Transfer-Encoding": "chunked"}, (b"%x\r\n%b\r\n" % (len(part), part) for part in parts))


def _endless() -> Iterator[bytes]:
    while True:
        yield BLOCK


BOMB = gzip.compress(bytes(20 << 20))
ANSWERS: dict[str, Callable[[Any], None]] = {
    "without a length": lambda h: _raw(h, {"Connection": "close"}, _endless()),
    "in chunks": lambda h: _chunked(h, _endless()),
    "of a terabyte": lambda h: _raw(h, {"Content-Length": str(1 << 40)}, _endless()),
    "one byte too large": lambda h: _raw(h, {"Content-Length": str(LIMIT + 1)}, iter([bytes(LIMIT + 1)])),
    "gzip": lambda h: _raw(h, {"Content-Encoding": "gzip", "Content-Length": str(len(BOMB))}, iter([BOMB])),
    "gzip in chunks": lambda h: (h.send_header("Content-Encoding", "gzip"), _chunked(h, iter([BOMB, b""])))[1],
    "deflate": lambda h: _raw(h, {"Content-Encoding": "deflate", "Connection": "close"}, iter([zlib.compress(bytes(5 << 20))])),
    "one after the other": lambda h: _raw(h, {"Content-Encoding": "gzip", "Connection": "close"}, iter([gzip.compress(bytes(60_000))] * 9)),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version, status = "HTTP/1.1", 200

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.requests.append(self.command)
        self.close_connection = True
        self.send_response(self.status)
        self.send_header("Content-Type", "text/html")
        with contextlib.suppress(OSError):  # the client has disconnected
            server.answer(self)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[Any], None] = ANSWERS["in chunks"]
        self.requests: list[str] = []
        self.sent, self.gate = 0, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients may disconnect."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setattr(urls, "MAX_BYTES", LIMIT)
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.gate.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_too_large_reply_is_cancelled(answer: str, server: _Server) -> None:
    server.answer = ANSWERS[answer]
    url = f"{server.url}/a.bin"
    with pytest.raises(RuntimeError, match=f"cannot read {url}: the response {TOO_LARGE}"):
        Remote().read(url)
    assert server.requests == ["GET"]  # it is not repeated
    assert server.sent < 20_000_000  # size of the buffers in between


@pytest.mark.parametrize("answer", ["in chunks", "of a terabyte", "gzip"])
def test_a_server_that_ignores_the_requested_range(answer: str, server: _Server) -> None:
    server.answer = ANSWERS[answer]
    with pytest.raises(RuntimeError, match=f"the whole file, which the server sent instead of the requested range, {TOO_LARGE}"):
        Remote().read(f"{server.url}/a.bin", 100, 50)


@pytest.mark.parametrize("answer", ["in chunks", "gzip"])
def test_lists_folders_and_indices_obey_the_limit_too(answer: str, server: _Server) -> None:
    server.answer = ANSWERS[answer]
    with pytest.raises(RuntimeError, match=TOO_LARGE):
        read_url(f"{server.url}/a.idx")
    with pytest.raises(RuntimeError, match=TOO_LARGE):
        Remote().list_folder(f"{server.url}/folder")
    with pytest.raises(RuntimeError, match=TOO_LARGE):
        Remote().head(f"{server.url}/a.npy", 100)


@pytest.mark.parametrize("reader", ["file", "numpy"])
def test_readers_name_the_limit(reader: str, server: _Server) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        found = getattr(fn.readers, reader)(files=[f"{server.url}/a.npy"])
        return found[0] if reader == "file" else found

    with pytest.raises(RuntimeError, match=TOO_LARGE):
        define().run()


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("compressed", [False, True])
def test_replies_within_the_limit_are_read(size: int, compressed: bool, server: _Server) -> None:
    data = np.random.default_rng(1).integers(0, 255, size, np.uint8).tobytes()
    sent = gzip.compress(data) if compressed else data
    headers = {"Content-Length": str(len(sent)), **({"Content-Encoding": "gzip"} if compressed else {})}
    server.answer = lambda handler: _raw(handler, headers, iter([sent]))
    assert Remote().read(f"{server.url}/a.bin").tobytes() == data


def test_other_stores_obey_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "MAX_BYTES", LIMIT)
    system = fsspec.filesystem("memory")
    for name, size in (("fits", LIMIT), ("large", LIMIT + 1)):
        system.pipe_file(f"/limits/{name}", bytes(size))
    assert len(Remote().read("memory://limits/fits")) == LIMIT
    with pytest.raises(RuntimeError, match=f"cannot read memory://limits/large: the response {TOO_LARGE}"):
        Remote().read("memory://limits/large")
    with pytest.raises(RuntimeError, match=f"cannot read memory://limits/large: a record {TOO_LARGE}"):
        Remote().read("memory://limits/large", 0, LIMIT + 1, "kind")
    system.rm("/limits", recursive=True)


@pytest.mark.slow
def test_the_environment_sets_the_limit() -> None:
    code = "from torchdali.formats import urls; print(urls.MAX_BYTES)"
    for given, limit in (("123456789", 123456789), ("5", 8 << 20)):  # blocks of containers have 8 MiB
        env = {**os.environ, "TORCHDALI_MAX_URL_BYTES": given}
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout
        assert int(said) == limit


def test_the_users_settings_of_fsspec_are_kept(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fsspec.config.conf, "http", {"client_kwargs": {"headers": {"X-Key": "mine"}}})
    keys: list[str | None] = []

    def answer(handler: Any) -> None:
        keys.append(handler.headers.get("X-Key"))
        _raw(handler, {"Content-Length": "1"}, iter([b"x"]))

    server.answer = answer
    assert Remote().read(f"{server.url}/a.bin").tobytes() == b"x" and keys == ["mine"]


def test_the_limit_error_shows_no_secret(server: _Server) -> None:
    url = server.url.replace("//", "//user:geheim@") + "/a.bin?sig=geheim"
    with pytest.raises(RuntimeError, match=TOO_LARGE) as caught:
        Remote().read(url)
    assert "geheim" not in str(caught.value) and "/a.bin?..." in str(caught.value)


def _redirected(target: str) -> Callable[[Any], None]:
    return lambda handler: _raw(handler, {"Location": target, "Content-Length": "0"}, iter(()))


@pytest.mark.parametrize("to", ["itself", "file:///etc/passwd?sig=geheim", "ftp://user:geheim@host/x", "http://user:geheim@host:none/"])
def test_a_broken_redirection_ends_and_shows_no_secret(to: str, server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answer = _redirected("/a.bin?sig=geheim" if to == "itself" else to)
    monkeypatch.setattr(_Handler, "status", 302)
    with pytest.raises(RuntimeError, match=f"cannot read {server.url}/a.bin") as caught:
        Remote(RemoteOptions(io_retries=0)).read(f"{server.url}/a.bin")
    assert "geheim" not in str(caught.value) and len(server.requests) < 20


def _slow(handler: Any) -> None:
    _chunked(handler, (b"x" for _ in iter(lambda: handler.server.gate.wait(0.01), True)))


@pytest.mark.parametrize("request_of", ["object", "part", "folder", "head"])
def test_a_slow_reply_has_a_time_limit(request_of: str, server: _Server) -> None:
    server.answer = _slow
    url, remote = f"{server.url}/a", Remote(RemoteOptions(io_retries=0, io_timeout=0.2))
    requests: dict[str, Callable[[], object]] = {
        "object": lambda: remote.read(url), "part": lambda: remote.read(url, 0, 10**4),
        "folder": lambda: remote.list_folder(url), "head": lambda: remote.head(url, 10**4),
    }  # fmt: skip
    with pytest.raises(RuntimeError, match=f"cannot read {url}.*Timeout"):
        requests[request_of]()


# ---------------------------------------------------------------- secrets

FEATURES = {"image": FixedLenFeature((), string, ""), "label": FixedLenFeature([1], int64, 0)}
READERS: dict[str, Callable[[Callable[[str], str], str], Any]] = {
    "tfrecord": lambda u, bad: tuple(fn.readers.tfrecord(path=u(bad), features=FEATURES).values()),
    "tfrecord, index": lambda u, bad: tuple(fn.readers.tfrecord(path=u("a.tfrecord"), index_path=u(bad), features=FEATURES).values()),
    "mxnet": lambda u, bad: tuple(fn.readers.mxnet(path=[u(bad)])),
    "mxnet, index": lambda u, bad: tuple(fn.readers.mxnet(path=[u("a.rec")], index_path=[u(bad)])),
    "webdataset": lambda u, bad: fn.readers.webdataset(paths=[u(bad)], ext=["jpg"]),
    "webdataset, index": lambda u, bad: fn.readers.webdataset(paths=[u("a.tar")], index_paths=[u(bad)], ext=["jpg"]),
    "webdataset, extension": lambda u, bad: fn.readers.webdataset(paths=[u("a.tar")], ext=["none"]),
    "files": lambda u, bad: fn.decoders.image(fn.readers.file(files=[u(bad)])[0]),
    "file_list": lambda u, bad: fn.readers.file(file_list=u(bad), file_root="/")[0],
    "file_root": lambda u, bad: fn.readers.file(file_root=u(bad))[0],
    "numpy": lambda u, bad: fn.readers.numpy(files=[u(bad)]),
    "numpy, part": lambda u, bad: fn.readers.numpy(files=[u(bad)], roi_start=[0], roi_end=[1]),
    "numpy, file_root": lambda u, bad: fn.readers.numpy(file_root=u(bad)),
    "numpy, file_list": lambda u, bad: fn.readers.numpy(file_list=u(bad), file_root="/"),
    "video": lambda u, bad: fn.readers.video(filenames=[u(bad)], sequence_length=2),
    "nemo_asr": lambda u, bad: fn.readers.nemo_asr(manifest_filepaths=[u(bad)])[0],
    "coco": lambda u, bad: fn.readers.coco(file_root=u(bad), annotations_file=u(bad))[0],
    "caffe": lambda u, bad: fn.readers.caffe(path=u(bad))[0],
    "cache": lambda u, bad: fn.cache(fn.readers.file(files=[u(bad)])[0], bytes=100),
    "a number for a file": lambda u, bad: fn.readers.file(files=[u(bad), 1])[0],
}  # fmt: skip


@pytest.fixture(scope="module")
def secret_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    folder = tmp_path_factory.mktemp("objects")
    write_tfrecord(folder / "a.tfrecord", [{"image": b"x", "label": [1]}] * 3)
    write_recordio(folder / "a.rec", [(b"x", [1.0])] * 3)
    write_tar(folder / "a.tar", [("0.jpg", b"x"), ("0.cls", b"1")])
    with object_server() as server:
        server.objects = {path.name: path.read_bytes() for path in folder.iterdir()}
        lists = f"{server.url}/x?sig=geheim no label\n".encode()
        server.objects |= {"empty": b"", "garbage": b"garbage \0\1 " * 50, "numbers": b"1 2\n3 99999\n5 -6\n", "list": lists}
        yield lambda name: server.url.replace("//", "//user:geheim@") + f"/{name}?sig=geheim"


def _messages(define: Callable[[], Any]) -> str:
    """Return all messages of a pipeline until it fails, and its descriptions."""
    pipe: Any = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = []
        try:
            pipe = pipeline_def(batch_size=1, num_threads=1, num_processes=1, device_id=None)(define)()
            pipe.run()
        except (RuntimeError, ValueError, TypeError) as error:
            said += [str(error), str(error.__cause__), *getattr(error, "__notes__", ())]
        with contextlib.suppress(RuntimeError, AttributeError):
            said += [repr(pipe), pipe.explain(), str(pipe.stats()), str(pipe.show_graph()), json.dumps(pipe.state_dict())]
    return "\n".join([*said, *(str(each.message) for each in caught)])


CASES = [(reader, bad) for reader in READERS for bad in ("nothing", "empty", "garbage", "numbers")]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("reader", "bad"), [*CASES, ("file_list", "list"), ("numpy, file_list", "list")])
def test_messages_contain_no_password_and_no_query(
    reader: str, bad: str, secret_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pauses(monkeypatch)
    said = _messages(lambda: READERS[reader](secret_url, bad))
    assert said and "geheim" not in said


def test_descriptions_of_arguments() -> None:
    url = "s3://key:geheim@bucket/a,b.tar?X=geheim"
    assert represent([url, (url, 1), "/a?b", None]) == "['s3://...@bucket/a,b.tar?...', ('s3://...@bucket/a,b.tar?...', 1), '/a?b', None]"
