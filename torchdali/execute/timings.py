"""Measure the time of operators, of waiting for batches, and of the user's loop."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torchdali.calls.chunk_function import raise_in_tests
from torchdali.graph.nodes import Node

__all__ = ["Fallback", "OperatorTime", "Profile", "Stats", "Times", "line_of"]

_EVERY = 8  # every eighth batch is timed operator by operator
_Event = tuple[str, str, float, float, str]  # operator, detail, start, seconds, thread


class Times(NamedTuple):
    """Times and failed batched calls that one process recorded.

    Attributes:
        operators: Seconds and number of samples of each operator. The keys are the nodes' indices in the graph.
        events: The intervals in which operators ran; empty if tracing is off.
        fallbacks: Number of failed batched calls and the first error, with the same keys.
    """

    operators: dict[int, tuple[float, int]]
    events: list[_Event]
    fallbacks: dict[int, tuple[int, str]]


@dataclass(frozen=True)
class Fallback:
    """An operator whose batched implementation failed. Its samples were then processed one by one, which is slower.

    Attributes:
        operator: Name of the operator in `fn`.
        line: The user's line.
        count: Number of failed calls.
        error: The first error.
    """

    operator: str
    line: str
    count: int
    error: str

    def __str__(self) -> str:
        return (
            f"{self.operator} ({self.line}): {self.count} calls failed, and a slower implementation processed their "
            f"samples. The results are correct. Please report this. The first error: {self.error}"
        )


@dataclass(frozen=True)
class OperatorTime:
    """Time of one operator, estimated from the timed batches.

    Attributes:
        operator: Name of the operator in `fn`.
        line: The user's line.
        per_sample: Seconds per sample, in one thread.
        share: Fraction of the total time of all operators, 0 to 1.
    """

    operator: str
    line: str
    per_sample: float
    share: float


@dataclass(frozen=True)
class Stats:
    """Result of `Pipeline.stats`; its string form is a table.

    Attributes:
        operators: Times of the operators, slowest first.
        batches: Number of batches delivered.
        samples: Number of samples delivered.
        ready: Average number of finished batches when the user requested a batch.
        waited: Seconds for which the user's loop waited for batches.
        consumed: Seconds between the delivery of a batch and the next request: the time of the user's loop.
        bytes_in_flight: Bytes of pooled memory for batches that are running, queued, or used by the user.
        processes: Lines about the worker processes: the number of running and replaced processes, then the cause for
            each process that died. Empty without worker processes.
        verdict: A sentence that says whether the loader or the user's loop limits the speed.
        caches: One line per `fn.cache`, with the number of hits, misses and bytes.
        fallbacks: Operators whose batched implementation failed.
        skipped: File and reason of each sample that was skipped or replaced.
        stores: One line per connection to an object store, with the number of requests and bytes, and the price.
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
    fallbacks: tuple[Fallback, ...] = ()
    skipped: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max([32, *(len(o.operator) for o in self.operators)])
        lines = [f"{'operator':<{width}}{'ms/sample':>12}{'share':>8}  line"]
        lines += [f"{o.operator:<{width}}{o.per_sample * 1e3:>12.3f}{o.share:>8.1%}  {o.line}" for o in self.operators]
        lines.append(
            f"{self.batches} batches, {self.samples} samples; {self.ready:.1f} batches ready when asked for; "
            f"waited {self.waited:.2f} s for the loader, {self.consumed:.2f} s in the consumer; "
            f"{self.bytes_in_flight / 2**20:.0f} MiB in flight"
        )
        if self.skipped:
            lines.append(f"{len(self.skipped)} bad samples were skipped, the first: {self.skipped[0]}")
        return "\n".join([*lines, *self.caches, *self.stores, *map(str, self.fallbacks), *self.processes, self.verdict])


class Profile:
    """Collects times while a pipeline runs.

    A *step* is an operator that processes a whole batch. A *chain* is a group of operators that process one sample
    after the other. To save time, chains are timed only in every eighth batch.
    """

    def __init__(self) -> None:
        self._seconds: dict[Node, float] = defaultdict(float)
        self._samples: dict[Node, int] = defaultdict(int)
        self._fallbacks: dict[Node, tuple[int, str]] = {}
        # The lock protects the times of operators. The pool's threads add times, and the user's thread reads them.
        self._lock = threading.Lock()
        self._events: list[_Event] | None = None
        self._requested_at: float | None = None
        self._delivered_at: float | None = None
        self.batches = self.samples = self._ready = 0
        self.waited = self.consumed = 0.0

    def trace(self) -> None:
        """From now on, time every batch, and store the intervals in which operators run for `write_trace`."""
        with self._lock:
            self._events = []

    def is_timed(self, index: int) -> bool:
        """Return whether the operators of chains must be timed in the batch with this index."""
        return self._events is not None or index % _EVERY == 0

    def note_request(self, ready: int) -> None:
        """Record that the user requests a batch. Repeated calls before the delivery belong to the same request.

        Args:
            ready: Number of finished batches that the user hasn't taken yet.
        """
        # Only the user's thread calls this method and `note_delivery`, so they need no lock.
        if self._requested_at is not None:
            return
        self._ready += ready
        self._requested_at = time.perf_counter()
        if self._delivered_at is not None:
            self.consumed += self._requested_at - self._delivered_at

    def note_delivery(self, size: int) -> None:
        """Record that the user received the requested batch."""
        assert self._requested_at is not None
        self.batches += 1
        self.samples += size
        self._delivered_at = time.perf_counter()
        self.waited += self._delivered_at - self._requested_at
        self._requested_at = None

    def record_step(self, node: Node, started: float, size: int, index: int) -> None:
        """Record the time of a step for one batch. Any thread may call this method."""
        seconds = time.perf_counter() - started
        with self._lock:
            self._seconds[node] += seconds
            self._samples[node] += size
        if self._events is not None:
            self._event(node, f"batch {index}", started, seconds, threading.current_thread().name)

    def record_chain(self, timings: ChainTimings, nodes: Iterable[Node], index: int) -> None:
        """Record the times of a chain's operators on the samples of one batch."""
        by_number = list(nodes)
        last: dict[range, float] = {}
        with self._lock:
            for samples, count, number, now, thread in timings.times:
                if number >= 0:
                    node, started, first = by_number[number], last[samples], samples.start
                    self._seconds[node] += now - started
                    self._samples[node] += count
                    which = f"sample {first}" if len(samples) == 1 else f"samples {first} to {samples.stop - 1}"
                    self._event(node, f"batch {index}, {which}", started, now - started, thread)
                last[samples] = now

    @property
    def is_traced(self) -> bool:
        """True if `trace` was called."""
        return self._events is not None

    def record_fallback(self, node: Node, error: Exception) -> None:
        """Record that a batched call failed, but its samples succeeded one by one. Any thread may call this method."""
        raise_in_tests(error)
        with self._lock:
            count, first = self._fallbacks.get(node, (0, f"{type(error).__name__}: {error}"))
            self._fallbacks[node] = count + 1, first

    def fallbacks(self) -> tuple[Fallback, ...]:
        """Return the operators whose batched implementation failed."""
        with self._lock:
            noted = dict(self._fallbacks)
        return tuple(Fallback(node.title, line_of(node), *each) for node, each in noted.items())

    def pop_times(self, index: Mapping[Node, int]) -> Times:
        """Return the recorded times, and clear them.

        A worker process sends the result to the main process, which calls `add_times`.
        """
        with self._lock:
            times = {index[node]: (seconds, self._samples[node]) for node, seconds in self._seconds.items()}
            self._seconds.clear()
            self._samples.clear()
            fallbacks = {index[node]: each for node, each in self._fallbacks.items()}
            self._fallbacks.clear()
            events = self._events or []
            if self._events is not None:
                self._events = []
        return Times(times, events, fallbacks)

    def add_times(self, times: Times, nodes: Sequence[Node]) -> None:
        """Add the times that another process recorded."""
        with self._lock:
            for number, (seconds, samples) in times.operators.items():
                self._seconds[nodes[number]] += seconds
                self._samples[nodes[number]] += samples
            for number, (count, error) in times.fallbacks.items():
                before, first = self._fallbacks.get(nodes[number], (0, error))
                self._fallbacks[nodes[number]] = before + count, first
            if self._events is not None:
                self._events += times.events

    def _event(self, node: Node, detail: str, started: float, seconds: float, thread: str) -> None:
        if self._events is not None:
            self._events.append((node.title, detail, started, seconds, thread))

    def by_node(self) -> dict[Node, OperatorTime]:
        """Return the times of each node that was timed, slowest first."""
        with self._lock:
            rates = {n: self._seconds[n] / max(1, self._samples[n]) for n in self._seconds}
        total = sum(rates.values()) or 1.0
        slowest = sorted(rates, key=rates.__getitem__, reverse=True)
        return {n: OperatorTime(n.title, line_of(n), rates[n], rates[n] / total) for n in slowest}

    def stats(self, bytes_in_flight: int, processes: tuple[str, ...] = (), caches: tuple[str, ...] = ()) -> Stats:
        """Return a summary of the times."""
        return Stats(
            operators=tuple(self.by_node().values()),
            batches=self.batches,
            samples=self.samples,
            ready=self._ready / max(1, self.batches),
            waited=self.waited,
            consumed=self.consumed,
            bytes_in_flight=bytes_in_flight,
            processes=processes,
            verdict=_verdict(self.waited, self.consumed),
            caches=caches,
            fallbacks=self.fallbacks(),
        )

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the intervals in which operators ran as JSON, for a trace viewer (Chrome's tracing, Perfetto).

        Raises:
            RuntimeError: `trace` was not called before.
        """
        if self._events is None:
            raise RuntimeError("nothing was traced: call trace() before running the pipeline")
        with self._lock:
            events = [_trace_event(event) for event in self._events]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


class ChainTimings:
    """The times at which the operators of a chain finished the chunks (ranges of samples) of one batch."""

    def __init__(self) -> None:
        self.times: list[tuple[range, int, int, float, str]] = []

    def note(self, samples: range, count: int, number: int) -> None:
        """Record that an operator has processed a chunk.

        Args:
            samples: The chunk.
            count: Number of the chunk's samples that the operator processed; fewer if the operator is in a branch.
            number: Index of the operator in the chain; -1 to record the start of the chunk.
        """
        # No lock is needed: appending to a list is atomic, and `Profile.record_chain` reads the list only after the
        # last worker has finished.
        self.times.append((samples, count, number, time.perf_counter(), threading.current_thread().name))


def _trace_event(event: _Event) -> Mapping[str, object]:
    name, detail, started, seconds, thread = event
    return {
        "name": name, "ph": "X", "ts": started * 1e6, "dur": seconds * 1e6, "pid": 1, "tid": thread,
        "args": {"what": detail},
    }  # fmt: skip


def line_of(node: Node) -> str:
    """Return file and line of a node; "" if the line is unknown."""
    return f"{Path(node.lines[0].file).name}:{node.lines[0].line}" if node.lines else ""


def _verdict(waited: float, consumed: float) -> str:
    total = waited + consumed
    if not total:
        return "No batch was delivered yet."
    share = waited / total
    if share > 0.5:
        return f"The loader is the bottleneck: the consumer waited {share:.0%} of the time."
    if share < 0.05:
        return f"The consumer is the bottleneck: it waited only {share:.0%} of the time for data."
    return f"Loader and consumer are about equally fast: the consumer waited {share:.0%} of the time."
