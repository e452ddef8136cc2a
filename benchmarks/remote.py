"""Read images from a server on the loopback address and from disk, in turns: ``python -m benchmarks.remote FOLDER``.

The server runs in a process of its own, answers after a latency and fails some requests. Both sides decode JPEGs to 224
pixels. It prints images per second of wall time, and the CPU time of this process per image.
"""

from __future__ import annotations

import argparse
import http.server
import multiprocessing
import random
import re
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from torchdali import fn, pipeline_def, types
from torchdali.containers import pack


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    latency = failing = 0.0
    root = Path()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, body: bool) -> None:
        time.sleep(self.latency)
        path = self.root / self.path.lstrip("/")
        if random.random() < self.failing or not path.is_file():
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
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if body:
            with open(path, "rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end - start))


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients go away."""


def _serve(pipe: Any, root: str, latency: float, failing: float) -> None:
    _Handler.root, _Handler.latency, _Handler.failing = Path(root), latency, failing
    with _Server(("127.0.0.1", 0), _Handler) as server:
        pipe.send(server.server_address[1])
        server.serve_forever()


def _read(kind: str, place: str, names: list[str], shuffle: bool, options: dict[str, Any]) -> Any:
    common = {"random_shuffle": shuffle, "name": "Reader", **options}
    if kind == "tar":
        paths = [f"{place}/{name}" for name in names]
        index = [path.replace(".tar", ".idx") for path in paths]
        return fn.readers.webdataset(paths=paths, index_paths=index, ext=["jpg"], **common)
    return fn.readers.file(files=[f"{place}/{name}" for name in names], **common)[0]


def _measured(
    kind: str, place: str, names: list[str], shuffle: bool, batches: int, options: dict[str, Any]
) -> tuple[float, float]:
    @pipeline_def(batch_size=64, num_threads=2, device_id=None, prefetch_queue_depth=4)
    def define() -> Any:
        data = _read(kind, place, names, shuffle, options)
        images = fn.decoders.image_random_crop(data)
        images = fn.resize(images, size=[224, 224])
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[120.0], std=[60.0])

    with define() as pipe:
        for _ in range(4):
            pipe.run()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches):
            pipe.run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return 64 * batches / wall, cpu / (64 * batches) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--failing", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        pack(given.folder, f"{root}/tar")
        tars = [f"tar/{path.name}" for path in sorted(Path(root, "tar").glob("*.tar"))]
        Path(root, "files").symlink_to(Path(given.folder).resolve())
        files = [f"files/{p.relative_to(given.folder)}" for p in sorted(Path(given.folder).rglob("*.*"))]
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        server = context.Process(target=_serve, args=(theirs, root, given.latency, given.failing), daemon=True)
        server.start()
        url = f"http://127.0.0.1:{ours.recv()}"
        options = {"io_concurrency": 96}
        for kind, names, shuffle in (("tar", tars, False), ("tar", tars, True), ("files", files, True)):
            rows = []
            for _ in range(given.rounds):
                local = _measured(kind, root, names, shuffle, given.batches, {})
                remote = _measured(kind, url, names, shuffle, given.batches, options)
                rows.append((*local, *remote, remote[0] / local[0]))
            a, b, c, d, e = (median(column) for column in zip(*rows, strict=True))
            least, most = min(row[4] for row in rows), max(row[4] for row in rows)
            print(
                f"{kind:5} {'shuffled' if shuffle else 'in order':8} local {a:6.0f}/s {b:.2f} ms CPU, "
                f"remote {c:6.0f}/s {d:.2f} ms CPU, ratio {e:.2f} ({least:.2f} to {most:.2f})"
            )
        server.terminate()


if __name__ == "__main__":
    main()
