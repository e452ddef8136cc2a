"""Streams, events and memory with vector clocks, which record the operations that are known to be done.

Each operation on a stream is one tick of it. A stream's clock states up to which tick of each stream its next operation
is known to run after; the host's clock states the same for the host's next operation. Waiting merges clocks. An access of
memory that the clock does not cover is a race, even if it would have succeeded.

The host has one clock for all its threads: objects that pass between threads order them.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from tests.pretend.report import Report, line

Stamp = tuple[int, int]
"""A stream and its tick."""


class State:
    """State that all streams of one mock accelerator share.

    Args:
        lag: Number of queries that events deny before they report that they are done.
    """

    def __init__(self, report: Report, devices: int, lag: int) -> None:
        self.report, self.devices, self.lag = report, devices, lag
        self.lock = threading.RLock()
        self.host: Counter[int] = Counter()
        self.here = threading.local()
        self.contexts: set[int] = set()  # devices with operations, which cost memory for a context
        self.capture: tuple[int, str] | None = None  # the thread that captures a graph, and its mode
        self.defaults = [Stream(i) for i in range(devices)] if self._own() else []
        self.contexts.clear()

    def _own(self) -> bool:
        global _state
        _state = self
        return True

    @property
    def device(self) -> int:
        """Return the current device of this thread."""
        return getattr(self.here, "device", 0)

    @device.setter
    def device(self, index: int) -> None:
        self.here.device = index

    def index(self, device: Any = None) -> int:
        """Return the index of a device, or the current device's if it has none."""
        if device is None:
            return self.device
        index = device if isinstance(device, int) else torch.device(device).index
        index = self.device if index is None else index
        if not 0 <= index < self.devices:
            raise RuntimeError(f"CUDA error: invalid device ordinal (cuda:{index})")
        return index

    def current(self, device: Any = None) -> Stream:
        """Return the current stream of this thread on a device."""
        index = self.index(device)
        streams = getattr(self.here, "streams", {})
        return streams.get(index, self.defaults[index])

    def host_learns(self, clock: Counter[int]) -> None:
        merge(self.host, clock)

    def check_capture(self, call: str) -> None:
        """Reject host calls that CUDA rejects while any thread, or this thread, captures a graph."""
        thread, mode = self.capture or (0, "relaxed")
        if mode == "global" or (mode == "thread_local" and thread == threading.get_ident()):
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({call})")


_state: State | None = None
_handles = itertools.count(1)


def state() -> State:
    assert _state is not None, "the pretended accelerator is not installed"
    return _state


def merge(into: Counter[int], clock: Counter[int]) -> None:
    for stream, tick in clock.items():
        into[stream] = max(into[stream], tick)


class Stream:
    """A replacement of `torch.cuda.Stream`, which runs operations in order."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        own = state()
        # Caches of the process outlive a mock accelerator: handles are unique.
        self.id = self.cuda_stream = self.stream_id = next(_handles)
        self.device = torch.device("cuda", own.index(device))
        own.contexts.add(own.index(device))
        self.priority = priority
        self.clock: Counter[int] = Counter()

    def tick(self) -> Stamp:
        """Enqueue an operation. Call with the lock held."""
        merge(self.clock, state().host)
        self.clock[self.id] += 1
        return self.id, self.clock[self.id]

    def knows(self, stamp: Stamp) -> bool:
        return self.clock[stamp[0]] >= stamp[1]

    def wait_stream(self, other: Stream) -> None:
        with state().lock:
            merge(self.clock, other.clock)

    def wait_event(self, event: Event) -> None:
        with state().lock:
            merge(self.clock, event.clock)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        own = state()
        own.check_capture("cudaStreamSynchronize")
        own.report.count("sync")
        with own.lock:
            own.host_learns(self.clock)

    def query(self) -> bool:
        return False

    def __enter__(self) -> Stream:
        self._inside = InStream(self)
        self._inside.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._inside.__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return self.id


class Event:
    """A replacement of `torch.cuda.Event`, which reports completion with a delay."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.clock: Counter[int] = Counter()
        self._blocking = blocking
        self._asked = 0

    def record(self, stream: Stream | None = None) -> None:
        own = state()
        with own.lock:
            self.clock, self._asked = Counter((stream or own.current()).clock), 0

    def query(self) -> bool:
        if _state is None:  # a pipeline is closed after the mock was removed
            return True
        own = state()
        own.check_capture("cudaEventQuery")
        with own.lock:
            self._asked += 1
            if self._asked <= own.lag:
                return False
            own.host_learns(self.clock)
            return True

    def synchronize(self) -> None:
        own = state()
        own.check_capture("cudaEventSynchronize")
        own.report.count("sync")
        if not self._blocking:  # CUDA lets the thread poll, which occupies a core
            own.report.count("spin")
        with own.lock:
            own.host_learns(self.clock)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or state().current()).wait_event(self)

    def elapsed_time(self, other: Event) -> float:
        return 0.0


class InStream:
    """A replacement of `torch.cuda.stream`: makes a stream and its device current in this thread.

    At its end it restores the previous device, which creates a context there.
    """

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is None:
            return
        own, index = state(), self._stream.device.index
        streams = getattr(own.here, "streams", None)
        if streams is None:
            streams = own.here.streams = {}
        self._before = own.device, streams.get(index)
        own.device, streams[index] = index, self._stream

    def __exit__(self, *exc: object) -> None:
        if self._stream is None:
            return
        own, index = state(), self._stream.device.index
        own.device, stream = self._before
        if own.device != index:
            own.contexts.add(own.device)
        if stream is None:
            del own.here.streams[index]
        else:
            own.here.streams[index] = stream


class Graph:
    """A replacement of `torch.cuda.CUDAGraph`: captured operations run immediately, and are not replayed."""

    def replay(self) -> None: ...


class Capture:
    """A replacement of `torch.cuda.graph`: captures a graph in this thread."""

    def __init__(self, graph: Graph, *, capture_error_mode: str = "global") -> None:
        self._mode, self._stream, self._before = capture_error_mode, Stream(), state().current()
        self._inside = InStream(self._stream)

    def __enter__(self) -> None:
        self._stream.wait_stream(self._before)
        self._inside.__enter__()
        state().capture = threading.get_ident(), self._mode

    def __exit__(self, *exc: object) -> None:
        state().capture = None
        self._inside.__exit__(*exc)
        self._before.wait_stream(self._stream)


class Memory:
    """A block of device memory, as from the caching allocator: it belongs to the stream of its allocation.

    It is freed with its last tensor. Its stream may then reuse it, after the stream's earlier operations
    and the operations that the host knows to be done.
    """

    def __init__(self, owner: Stream) -> None:
        self.owner, self.where, self._state = owner, line(), state()
        self._state.contexts.add(owner.device.index)
        self.write: Stamp | None = None
        self.reads: list[Stamp] = []
        self.recorded: set[int] = set()

    def read(self, stream: Stream, stamp: Stamp) -> None:
        if self.write is not None and not stream.knows(self.write):
            state().report.race(
                f"stream {stream.id} uses what stream {self.write[0]} wrote (of {self.where}) without a wait"
            )
        self.reads = [kept for kept in self.reads if kept[0] != stamp[0]] + [stamp]

    def written(self, stream: Stream, stamp: Stamp) -> None:
        for other in self.reads:
            if not stream.knows(other):
                state().report.race(f"stream {stream.id} writes over what stream {other[0]} reads (of {self.where})")
        if self.write is not None and not stream.knows(self.write):
            state().report.race(f"stream {stream.id} writes over what stream {self.write[0]} writes (of {self.where})")
        self.write, self.reads = stamp, []

    def __del__(self) -> None:
        own = self._state
        if _state is None:  # the mock, or the interpreter, has ended
            return
        with own.lock:
            known = Counter(self.owner.clock)
            merge(known, own.host)
            for stream, tick in [*self.reads, *([self.write] if self.write else [])]:
                if known[stream] < tick and stream not in self.recorded:
                    own.report.race(
                        f"memory of stream {self.owner.id} (of {self.where}) is let go while stream {stream} may use it"
                    )


class HostMemory:
    """Pinned memory: copies from and to it are asynchronous to the host."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.size = start, size
        self.copies: list[tuple[int, int, Stamp, bool]] = []  # first byte, last byte, time, whether it is written

    def copied(self, low: int, high: int, stamp: Stamp, writes: bool) -> None:
        known = state().host
        self.copies = [copy for copy in self.copies if known[copy[2][0]] < copy[2][1]]
        self.copies.append((low, high, stamp, writes))

    def used(self, low: int, high: int, writes: bool) -> None:
        """Check a read or write of the host against copies that are not known to be done."""
        own = state()
        for first, last, (stream, tick), written in self.copies:
            if first < high and low < last and own.host[stream] < tick and (writes or written):
                what = "is still being written by" if written else "may still be read by"
                own.report.race(f"the host uses page-locked memory that {what} stream {stream}")


class PinnedMemories:
    """The existing blocks of pinned memory."""

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[int, HostMemory] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()  # a dictionary must not grow during an iteration

    def add(self, memory: HostMemory) -> None:
        with self._lock:
            self._held[memory.start] = memory

    def find(self, address: int) -> HostMemory | None:
        for memory in self:
            if memory.start <= address < memory.start + memory.size:
                return memory
        return None

    def __iter__(self) -> Iterator[HostMemory]:
        with self._lock:
            return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)
