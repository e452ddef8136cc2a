"""A small object store: a web server on the loopback address, over memory, with latency and failures on request."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class ObjectServer(ThreadingHTTPServer):
    """Serves `objects`, by path, with ranges and listings.

    Attributes:
        objects: By path without the first slash.
        latency: Seconds before each reply.
        failing: Share of the requests that fail: with the status 503, a closed connection, or half of the bytes.
        ranges: It supports ranges.
        absent: The status for missing objects.
        requests: Method, path and range of each request.
        most: Largest number of concurrent requests.
        gate: While it is not set, no reply is sent.
        tags: It sends ETags.
        conditions: It supports If-Match.
        queued: Replies that are sent first: status, headers, content; a status of 0 sends half a reply, and then nothing.
        wanted: The requests that get the queued replies.
        asked: The If-Match header of each request for content.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.latency = self.failing = 0.0
        self.ranges = True
        self.absent = 404
        self.requests: list[tuple[str, str, str]] = []
        self.most = self.now = 0
        self.gate, self.silence = threading.Event(), threading.Event()
        self.gate.set()
        self.tags, self.conditions = False, True
        self.queued: deque[tuple[int, dict[str, str], bytes]] = deque()
        self.wanted: Callable[[str, str], bool] = lambda method, path: True
        self.asked: list[str] = []
        self.random, self.lock = random.Random(1), threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients may disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_PUT(self) -> None:
        name = unquote(urlsplit(self.path).path).lstrip("/")
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.requests.append((self.command, name, ""))
            self.server.objects = {**self.server.objects, name: content}
        self._reply(200, {"ETag": _tag(content)}, b"", body=False)

    def do_DELETE(self) -> None:
        name = unquote(urlsplit(self.path).path).lstrip("/")
        self.server.objects = {key: value for key, value in self.server.objects.items() if key != name}
        self._reply(204, {}, b"", body=False)

    def _reply(self, status: int, headers: dict[str, str], content: bytes, body: bool = True) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _send_queued(self, body: bool) -> None:
        status, headers, content = self.server.queued.popleft()
        self._reply(status or 200, headers | ({} if status else {"Content-Length": "1000"}), content, body)
        if not status:
            self.wfile.flush()
            self.close_connection = True
            self.server.silence.wait()

    def _answer(self, body: bool) -> None:
        server = self.server
        path, wanted = unquote(urlsplit(self.path).path).lstrip("/"), self.headers.get("Range", "")
        with server.lock:
            server.requests.append((self.command, path, wanted))
            server.now += 1
            server.most = max(server.most, server.now)
            failure = server.random.choice(("status", "cut", "half")) if server.random.random() < server.failing else ""
        try:
            server.gate.wait()
            if server.latency:
                time.sleep(server.latency)
            if server.queued and server.wanted(self.command, path):
                self._send_queued(body)
            elif "list-type=2" in self.path:
                self._list(path)
            else:
                self._send(path, wanted, body, failure)
        finally:
            with server.lock:
                server.now -= 1

    def _send(self, path: str, wanted: str, body: bool, failure: str) -> None:
        if failure == "cut":
            self.close_connection = True
            return
        data, status = self._content(path), 200
        if failure == "status" or data is None:
            data, status = b"", 503 if failure else self.server.absent
        headers = {"Accept-Ranges": "bytes", "Content-Type": "text/html" if path not in self.server.objects else "application/octet-stream"}
        if body:
            self.server.asked.append(self.headers.get("If-Match", ""))
        if self.server.tags and status == 200:
            headers |= {"ETag": _tag(data), "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            if self.server.conditions and self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
                self._reply(412, {}, b"", body)
                return
        if wanted.startswith("bytes=") and status == 200 and self.server.ranges:
            first, _, last = wanted[6:].partition("-")
            start, end = int(first), min(int(last or len(data)) + 1, len(data))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            data, status = data[start:end], 206
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body and failure == "half":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif body:
            self.wfile.write(data)

    def _list(self, bucket: str) -> None:
        """Reply to ListObjectsV2 of S3."""
        query = parse_qs(urlsplit(self.path).query)
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        names = [n.removeprefix(f"{bucket.rstrip('/')}/") for n in self.server.objects if n.startswith(f"{bucket.rstrip('/')}/")]
        inside = sorted(n for n in names if n.startswith(prefix))
        deep = {prefix + n[len(prefix):].split("/")[0] + "/" for n in inside if delimiter and "/" in n[len(prefix):]}
        files = [n for n in inside if not delimiter or "/" not in n[len(prefix):]]
        rows = "".join(f"<Contents><Key>{n}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>" for n in files)
        rows += "".join(f"<CommonPrefixes><Prefix>{each}</Prefix></CommonPrefixes>" for each in sorted(deep))
        self._reply(200, {"Content-Type": "application/xml"}, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def _content(self, path: str) -> bytes | None:
        objects = self.server.objects
        if path in objects:
            return objects[path]
        prefix = f"{path.rstrip('/')}/" if path else ""
        names = {name[len(prefix) :].partition("/") for name in objects if name.startswith(prefix)}
        if not names:
            return None
        links = sorted({head + slash for head, slash, _ in names})
        return "".join(f'<a href="/{prefix}{link}">{link}</a>\n' for link in links).encode()


def _tag(content: bytes) -> str:
    return f'"{zlib.crc32(content):08x}"'


@contextlib.contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a server in threads of this process."""
    with ObjectServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.silence.set()
            server.shutdown()
            thread.join()
