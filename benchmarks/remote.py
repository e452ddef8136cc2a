"""Read images from a server on the loopback address and from disk, in turns: ``python -m benchmarks.remote FOLDER``.

The server runs in a process of its own, answers after a latency and fails some requests. ``--server http`` is a plain
web server; ``--server s3`` is the same one, read by obstore as an object store: it answers HEAD and GET of S3, without
looking at signatures. ``--server s3fs`` and ``--server obstore`` are moto's S3, a test server in Python, read by the
package of that name. Both sides decode JPEGs to 224 pixels. It prints images per second of wall time, and CPU time per
image of this process and of the server.
"""

from __future__ import annotations

import argparse
import http.server
import importlib
import multiprocessing
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote

from torchdali import fn, pipeline_def, types
from torchdali.containers import PackOptions, pack

_BUCKET = "images/"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    conditions: Any = (0.0, 0.0)
    root = Path()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._respond(False)

    def do_GET(self) -> None:
        self._respond(True)

    def _respond(self, has_body: bool) -> None:
        time.sleep(self.conditions[0])
        path = self.root / unquote(self.path).lstrip("/").removeprefix(_BUCKET)
        if random.random() < self.conditions[1] or not path.is_file():
            self.send_response(503 if path.is_file() else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(wanted[1]), min(int(wanted[2]) + 1, size)) if wanted else (0, size)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns:x}-{size:x}"')
        self.send_header("Last-Modified", formatdate(path.stat().st_mtime, usegmt=True))
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if has_body:
            self.wfile.flush()
            with open(path, "rb") as file:
                self.connection.sendfile(file, start, end - start)


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients go away."""


def _serve_files(root: str, conditions: Any) -> Any:
    _Handler.root, _Handler.conditions = Path(root), conditions
    return _Server(("127.0.0.1", 0), _Handler)


def _serve_s3(root: str, conditions: Any) -> Any:
    backend = importlib.import_module("moto.moto_server.werkzeug_app")
    serving = importlib.import_module("werkzeug.serving")
    application = backend.DomainDispatcherApplication(backend.create_backend_app)

    def respond(environment: Any, start: Any) -> Any:
        time.sleep(conditions[0])
        if random.random() < conditions[1]:
            start("503 Slow Down", [("Content-Length", "0")])
            return []
        return application(environment, start)

    class Handler(serving.WSGIRequestHandler):  # type: ignore[misc, name-defined]
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            """Say nothing."""

    return serving.make_server("127.0.0.1", 0, respond, threaded=True, request_handler=Handler)


def _serve(pipe: Any, start: Any, root: str, conditions: Any) -> None:
    """Serve, and answer each message with the CPU time so far."""
    server = start(root, conditions)
    pipe.send(server.server_address[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while pipe.recv():
        pipe.send(time.process_time())


def _bucket(package: str, url: str) -> str:
    """Let the package read from the server, and return the URL of the bucket."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL=url, AWS_ALLOW_HTTP="true",
    )  # fmt: skip
    if package != "s3fs":
        importlib.import_module("obstore.fsspec").register("s3")
    return f"s3://{_BUCKET.rstrip('/')}"


def _upload(root: str, names: list[str]) -> None:
    """Put files into the bucket."""
    system = importlib.import_module("s3fs").S3FileSystem()
    system.mkdir(_BUCKET.rstrip("/"))
    for name in names:
        system.pipe_file(f"{_BUCKET}{name}", Path(root, name).read_bytes())


def _read(kind: str, location: str, names: list[str], shuffle: bool, options: dict[str, Any]) -> Any:
    common = {"random_shuffle": shuffle, "name": "Reader", **options}
    if kind == "tar":
        paths = [f"{location}/{name}" for name in names]
        index = [path.replace(".tar", ".idx") for path in paths]
        return fn.readers.webdataset(paths=paths, index_paths=index, ext=["jpg"], **common)
    return fn.readers.file(files=[f"{location}/{name}" for name in names], **common)[0]


def _measure(
    kind: str, location: str, names: list[str], shuffle: bool, batches: int, options: dict[str, Any],
    server: Callable[[], float],
) -> tuple[float, float, float]:  # fmt: skip
    @pipeline_def(batch_size=64, num_threads=2, device_id=None, prefetch_queue_depth=4)
    def define() -> Any:
        data = _read(kind, location, names, shuffle, options)
        images = fn.decoders.image_random_crop(data)
        images = fn.resize(images, size=[224, 224])
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[120.0], std=[60.0])

    with define() as pipe:
        for _ in range(4):
            pipe.run()
        began = time.perf_counter(), time.process_time(), server()
        for _ in range(batches):
            pipe.run()
        ended = time.perf_counter(), time.process_time(), server()
    wall, cpu, served = ((end - start) / (64 * batches) for start, end in zip(began, ended, strict=True))
    return 1 / wall, cpu * 1e3, served * 1e3


def main() -> None:
    """Print a line for each way of reading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--server", choices=["http", "s3", "s3fs", "obstore"], default="http")
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--failing", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--shard-size", type=int, default=256 << 20)
    parser.add_argument("--concurrency", type=int, default=96)
    parser.add_argument("--ways", nargs="*", choices=[*MODES], default=[*MODES])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        pack(args.folder, f"{root}/tar", PackOptions(shard_size=args.shard_size))
        Path(root, "files").symlink_to(Path(args.folder).resolve())
        tars = [f"tar/{path.name}" for path in sorted(Path(root, "tar").glob("*.tar"))]
        files = [f"files/{p.relative_to(args.folder)}" for p in sorted(Path(args.folder).rglob("*.*"))]
        _alternate(args, root, {"tar": tars, "files": files})


def _alternate(args: argparse.Namespace, root: str, names: dict[str, list[str]]) -> None:
    connection, server_connection = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    conditions = context.Array("d", [0.0, 0.0], lock=False)
    start = _serve_files if args.server in ("http", "s3") else _serve_s3
    server = context.Process(target=_serve, args=(server_connection, start, root, conditions), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{connection.recv()}"
    if args.server != "http":
        url = _bucket(args.server, url)
        index = [name.replace(".tar", ".idx") for name in names["tar"]]
        wanted = {MODES[mode][0] for mode in args.ways}
        objects = [*names["tar"], *index] if "tar" in wanted else []
        objects += names["files"] if "files" in wanted else []
        if args.server != "s3":
            _upload(root, objects)
    conditions[:] = [args.latency, args.failing]

    def server_time() -> float:
        connection.send(True)
        return float(connection.recv())

    for mode in args.ways:
        kind, shuffle, cached = MODES[mode]
        rows = []
        for _ in range(args.rounds):
            local = _measure(kind, root, names[kind], shuffle, args.batches, {}, server_time)
            with tempfile.TemporaryDirectory() as cache:
                options = {"io_concurrency": args.concurrency}
                options |= {"cache_dir": cache} if cached else {}
                remote = _measure(kind, url, names[kind], shuffle, args.batches, options, server_time)
            rows.append((*local, *remote, remote[0] / local[0]))
        a, b, _, c, d, e, f = (median(column) for column in zip(*rows, strict=True))
        least, most = min(row[6] for row in rows), max(row[6] for row in rows)
        print(
            f"{mode:24} local {a:5.0f}/s {b:.2f} ms CPU, remote {c:5.0f}/s {d:.2f} ms CPU, "
            f"server {e:.2f} ms, ratio {f:.2f} ({least:.2f} to {most:.2f})", flush=True,
        )  # fmt: skip
    server.terminate()


MODES = {
    "tar": ("tar", False, False),
    "tar-shuffled": ("tar", True, False),
    "tar-shuffled-cached": ("tar", True, True),
    "files-shuffled": ("files", True, False),
}


if __name__ == "__main__":
    main()
