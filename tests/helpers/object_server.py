"""A small object store: a web server on the loopback address, over memory, with latency and failures on request."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class ObjectServer(ThreadingHTTPServer):
    """Serves `objects`, by path, with ranges and listings.

    Attributes:
        objects: By path without the first slash.
        latency: Seconds before each answer.
        failing: Part of the requests that fail: with the status 503, a cut connection, or half of the bytes.
        ranges: It knows ranges.
        absent: The status of what it does not have.
        requests: Method, path and range of each request.
        most: Requests that were answered at the same time.
        gate: While it is not set, no answer is sent.
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
        self.gate = threading.Event()
        self.gate.set()
        self.random, self.lock = random.Random(1), threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients may go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

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


@contextlib.contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a server in threads of this process."""
    with ObjectServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
