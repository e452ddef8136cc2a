"""One side of `benchmarks.operators`: a process that builds a case when asked and measures it when asked.

Requests are lines of JSON, ``{"case": ..., "size": ..., "seconds": ...}``; so are the replies.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import operator_cases, operator_cases_small
from .operator_cases import Api
from .operator_inputs import BATCH, FEEDS, SIZES, Batches, batches

CASES = (*operator_cases.CASES, *operator_cases_small.CASES)
SOURCE = "source"  # the case that delivers the images and does nothing else
_POLL = 0.0005
_WARM_UP, _PATIENCE = 8, 1.0  # batches, seconds


class Bench:
    """The pipeline of the latest case.

    Args:
        package: ``torchdali`` or ``nvidia.dali``.
        threads: Of the pipeline.
    """

    def __init__(self, package: str, threads: int) -> None:
        self._package, self._threads = package, threads
        self._key: tuple[str, str] | None = None
        self._pipe: Any = None
        self._pace = 0.0

    def measure(self, case: str, size: str, seconds: float) -> dict[str, float]:
        """Run about so many seconds; return CPU and wall milliseconds a batch."""
        if self._key != (case, size):
            self._pipe = None
            self._pipe = self._build(case, size)
            self._key = case, size
            self._pace = self._warm_up()
        count = min(max(round(seconds / self._pace), 1), 2000)
        cpu, wall = self._time_batches(count)
        return {"cpu": 1e3 * cpu / count, "wall": 1e3 * wall / count, "batches": count}

    def _warm_up(self) -> float:
        """Run as many batches at a stretch as let all buffers come to exist; return the seconds of a batch."""
        pace = self._time_batches(1)[1]
        count = min(round(_PATIENCE / pace), _WARM_UP)
        return self._time_batches(count)[1] / count if count else pace

    def _build(self, name: str, size: str) -> Any:
        module = importlib.import_module(self._package)
        fn, types, math = (importlib.import_module(f"{self._package}.{m}") for m in ("fn", "types", "math"))
        api = Api(fn, types, math, *SIZES.get(size, SIZES["224"]))
        case = next((c for c in CASES if c.name == name), None)
        feed, dtype = (case.feed, case.dtype) if case else ("image", "uint8")
        data = batches(feed, api.height, api.width, dtype)
        pipe = module.Pipeline(BATCH, self._threads, None, seed=1)
        with pipe:
            inputs = _source(fn, data, FEEDS[feed][1])
            found = case.call(api, *inputs) if case else inputs[0]
            pipe.set_outputs(*found) if isinstance(found, (list, tuple)) else pipe.set_outputs(found)
        pipe.build()
        return pipe

    def _time_batches(self, count: int) -> tuple[float, float]:
        """Return CPU and wall seconds of some batches.

        The queues are full and all threads asleep before and after, so that as many batches are computed.
        """
        _settle()
        start, start_cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            self._pipe.run()
        polling_start = time.thread_time()
        end = _settle()
        polling = time.thread_time() - polling_start
        return time.process_time() - start_cpu - polling, end - start


def _source(fn: Any, data: Batches, layouts: tuple[str, ...]) -> list[Any]:
    if not data:
        return []
    found = fn.external_source(lambda: data, num_outputs=len(data), batch=True, no_copy=True, layout=list(layouts))
    return list(found)


def _settle() -> float:
    """Wait until all other threads sleep; return since when they do."""
    since, quiet = time.perf_counter(), 0
    while quiet < 4:
        time.sleep(_POLL)
        if any(state in "RD" for state in _other_states()):
            since, quiet = time.perf_counter(), 0
        else:
            quiet += 1
    return since


def _other_states() -> Iterator[str]:
    own_id = str(threading.get_native_id())
    for task in Path("/proc/self/task").iterdir():
        if task.name != own_id:
            try:
                yield (task / "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                continue


def main() -> None:
    """Answer the questions on standard input until it ends."""
    bench = Bench(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply: dict[str, Any] = dict(bench.measure(**request))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
