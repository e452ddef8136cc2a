"""Measure where the time goes: per operator, in queues, in the user's loop."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchdali.graph.nodes import Node

__all__ = ["OperatorTime", "Profile", "Stats", "Times", "line_of"]

_EVERY = 8  # one batch in so many has its samples timed operator by operator
_Event = tuple[str, str, float, float, str]  # operator, detail, start, seconds, thread
Times = tuple[dict[int, tuple[float, int]], list[_Event]]
"""Times of the operators of a graph: seconds and samples by index of the node, and the intervals."""


@dataclass(frozen=True)
class OperatorTime:
    """Time that one operator took, estimated from the batches that were timed.

    Attributes:
        operator: Its name in `fn`.
        line: The user's line.
        per_sample: Seconds a sample, of one thread.
        share: Of all operators' time.
    """

    operator: str
    line: str
    per_sample: float
    share: float


@dataclass(frozen=True)
class Stats:
    """Result of `Pipeline.stats`; printing it gives a table.

    Attributes:
        operators: Slowest first.
        batches: Delivered so far.
        samples: Delivered so far.
        ready: Batches that were ready when the user asked for one, on average.
        waited: Seconds the user waited for batches.
        consumed: Seconds between a batch and the next request: what the user's loop took.
        bytes_in_flight: Pooled memory of batches that are running, queued, or held by the user.
        processes: Worker processes: how many run and were replaced, then how each ended that died; empty for none.
        verdict: Which of the two limits the speed.
        caches: Hits, misses and bytes of each `fn.cache`; empty for none.
    """

    operators: tuple[OperatorTime, ...]
    batches: int
    samples: int
    ready: float
    waited: float
    consumed: float
    bytes_in_flight: int
    processes: tuple[str, ...]
    verdict: str
    caches: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{'operator':<32}{'ms/sample':>12}{'share':>8}  line"]
        lines += [f"{o.operator:<32}{o.per_sample * 1e3:>12.3f}{o.share:>8.1%}  {o.line}" for o in self.operators]
        lines.append(
            f"{self.batches} batches, {self.samples} samples; {self.ready:.1f} batches ready when asked for; "
            f"waited {self.waited:.2f} s for the loader, {self.consumed:.2f} s in the consumer; "
            f"{self.bytes_in_flight / 2**20:.0f} MiB in flight"
        )
        return "\n".join([*lines, *self.caches, *self.processes, self.verdict])


class Profile:
    """Collects times while a pipeline runs. Cheap: one batch in eight is timed by sample."""

    def __init__(self) -> None:
        self._seconds: dict[Node, float] = defaultdict(float)
        self._samples: dict[Node, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._events: list[_Event] | None = None
        self._asked_at: float | None = None
        self._delivered_at: float | None = None
        self.batches = self.samples = self._ready = 0
        self.waited = self.consumed = 0.0

    def trace(self) -> None:
        """Time every batch from now on, and keep each interval for `write_trace`."""
        with self._lock:
            self._events = []

    def wants(self, index: int) -> bool:
        """Return whether the samples of a batch are to be timed."""
        return self._events is not None or index % _EVERY == 0

    def asked(self, ready: int) -> None:
        """Note that the user asks for a batch; until it is delivered, further calls are part of the same wish."""
        # This and `delivered` are called in the user's thread alone; steps and chains report from any thread, under the
        # lock.
        if self._asked_at is not None:
            return
        self._ready += ready
        self._asked_at = time.perf_counter()
        if self._delivered_at is not None:
            self.consumed += self._asked_at - self._delivered_at

    def delivered(self, size: int) -> None:
        """Note that the user got a batch, that was asked for before."""
        assert self._asked_at is not None
        self.batches += 1
        self.samples += size
        self._delivered_at = time.perf_counter()
        self.waited += self._delivered_at - self._asked_at
        self._asked_at = None

    def step(self, node: Node, started: float, size: int, index: int) -> None:
        """Note the time of a step over a batch."""
        seconds = time.perf_counter() - started
        with self._lock:
            self._seconds[node] += seconds
            self._samples[node] += size
        if self._events is not None:
            self._event(node, f"batch {index}", started, seconds, threading.current_thread().name)

    def chain(self, timings: ChainTimings, nodes: Iterable[Node], index: int) -> None:
        """Note the times of a chain's operators on the samples of one batch."""
        by_number = list(nodes)
        last: dict[int, float] = {}
        with self._lock:
            for item, number, now, thread in timings.times:
                if number >= 0:
                    node, started = by_number[number], last[item]
                    first, count = timings.samples(item)
                    self._seconds[node] += now - started
                    self._samples[node] += count
                    which = f"sample {first}" if count == 1 else f"samples {first} to {first + count - 1}"
                    self._event(node, f"batch {index}, {which}", started, now - started, thread)
                last[item] = now

    @property
    def is_traced(self) -> bool:
        """True if `trace` was called."""
        return self._events is not None

    def take_times(self, index: Mapping[Node, int]) -> Times:
        """Return the times so far, and forget them: another process adds them to its own."""
        with self._lock:
            times = {index[node]: (seconds, self._samples[node]) for node, seconds in self._seconds.items()}
            self._seconds.clear()
            self._samples.clear()
            events = self._events or []
            if self._events is not None:
                self._events = []
        return times, events

    def add_times(self, times: Times, nodes: Sequence[Node]) -> None:
        """Add times that another process took."""
        with self._lock:
            for number, (seconds, samples) in times[0].items():
                self._seconds[nodes[number]] += seconds
                self._samples[nodes[number]] += samples
            if self._events is not None:
                self._events += times[1]

    def _event(self, node: Node, detail: str, started: float, seconds: float, thread: str) -> None:
        if self._events is not None:
            self._events.append((node.title, detail, started, seconds, thread))

    def operators(self) -> tuple[OperatorTime, ...]:
        """Return the times per operator, slowest first."""
        return tuple(self.by_node().values())

    def by_node(self) -> dict[Node, OperatorTime]:
        """Return the times of each node that was timed, slowest first."""
        with self._lock:
            rates = {n: self._seconds[n] / max(1, self._samples[n]) for n in self._seconds}
        total = sum(rates.values()) or 1.0
        slowest = sorted(rates, key=rates.__getitem__, reverse=True)
        return {n: OperatorTime(n.title, line_of(n), rates[n], rates[n] / total) for n in slowest}

    def stats(self, bytes_in_flight: int, processes: tuple[str, ...] = (), caches: tuple[str, ...] = ()) -> Stats:
        """Summarise."""
        return Stats(
            self.operators(), self.batches, self.samples, self._ready / max(1, self.batches),
            self.waited, self.consumed, bytes_in_flight, processes, _verdict(self.waited, self.consumed),
            caches,
        )  # fmt: skip

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the intervals as JSON for a browser's trace viewer (Chrome's tracing, Perfetto).

        Raises:
            RuntimeError: `trace` was not called before.
        """
        if self._events is None:
            raise RuntimeError("nothing was traced: call trace() before running the pipeline")
        with self._lock:
            events = [_trace_event(event) for event in self._events]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


class ChainTimings:
    """The times at which one batch's samples passed the operators of a chain.

    Args:
        size: Of the batch.
        chunk: Samples that pass together.
    """

    def __init__(self, size: int, chunk: int = 1) -> None:
        self._size, self._chunk = size, chunk
        self.times: list[tuple[int, int, float, str]] = []

    def __call__(self, item: int, number: int) -> None:
        """Note that an operator (by its number in the chain; -1 for the start) is done with a sample or chunk."""
        # Several workers append, which is one step each; `Profile.chain` reads when the last one is done.
        self.times.append((item, number, time.perf_counter(), threading.current_thread().name))

    def samples(self, item: int) -> tuple[int, int]:
        """Return the first sample of a chunk, and how many it has."""
        first = item * self._chunk
        return first, min(self._chunk, self._size - first)


def _trace_event(event: _Event) -> Mapping[str, object]:
    name, detail, started, seconds, thread = event
    return {
        "name": name, "ph": "X", "ts": started * 1e6, "dur": seconds * 1e6, "pid": 1, "tid": thread,
        "args": {"what": detail},
    }  # fmt: skip


def line_of(node: Node) -> str:
    """Return file and line of a node."""
    return f"{Path(node.lines[0].file).name}:{node.lines[0].line}" if node.lines else ""


def _verdict(waited: float, consumed: float) -> str:
    total = waited + consumed
    if not total:
        return "Nothing was delivered yet."
    share = waited / total
    if share > 0.5:
        return f"The loader is the bottleneck: the consumer waited {share:.0%} of the time."
    if share < 0.05:
        return f"The consumer is the bottleneck: it waited only {share:.0%} of the time for data."
    return f"Loader and consumer are about even: the consumer waited {share:.0%} of the time."
