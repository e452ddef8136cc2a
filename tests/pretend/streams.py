"""Streams, events and memory with vector clocks: what is known to be done when.

Each operation on a stream is one tick of it. A stream's clock says up to which tick of each stream its next operation
is known to run after; the host's clock the same for what the host does next. Waiting merges clocks. An access of memory
that the clock does not know of is a race, whether or not it would have gone well.

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
    """State that all streams of one pretended accelerator share.

    Args:
        lag: How often events answer that they are not done, before they say that they are.
    """

    def __init__(self, report: Report, devices: int, lag: int) -> None:
        self.report, self.devices, self.lag = report, devices, lag
        self.lock = threading.RLock()
        self.host: Counter[int] = Counter()
        self.here = threading.local()
        self.contexts: set[int] = set()  # devices on which something was done, of which each costs memory there
        self.capture: tuple[int, str] | None = None  # the thread that captures a graph, and its mode
        self.defaults = [Stream(i) for i in range(devices)] if self._own() else []
        self.contexts.clear()

    def _own(self) -> bool:
        global _state
        _state = self
        return True

    @property
    def device(self) -> int:
        """The current device of this thread."""
        return getattr(self.here, "device", 0)

    @device.setter
    def device(self, index: int) -> None:
        self.here.device = index

    def index(self, device: Any = None) -> int:
        """Return the number of a device, the current one where it has none."""
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
        """Refuse a call of the host that CUDA refuses while a graph is captured: by any thread, or the one that does."""
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
    """A stream in order, in place of `torch.cuda.Stream`."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        own = state()
        # Caches of the process outlive a pretended accelerator: no handle comes twice.
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
    """An event, in place of `torch.cuda.Event`, that is seen to be done later than it could be."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.clock: Counter[int] = Counter()
        self._blocking = blocking
        self._asked = 0

    def record(self, stream: Stream | None = None) -> None:
        own = state()
        with own.lock:
            self.clock, self._asked = Counter((stream or own.current()).clock), 0

    def query(self) -> bool:
        if _state is None:  # a pipeline is closed after the pretence
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
        if not self._blocking:  # CUDA lets the thread ask without end, which takes a core
            own.report.count("spin")
        with own.lock:
            own.host_learns(self.clock)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or state().current()).wait_event(self)

    def elapsed_time(self, other: Event) -> float:
        return 0.0


class InStream:
    """Makes a stream and its device current in this thread, in place of `torch.cuda.stream`.

    At its end it sets the device from before, which makes a context there.
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
    """A graph, in place of `torch.cuda.CUDAGraph`: what is captured is done at once, and not again."""

    def replay(self) -> None: ...


class Capture:
    """Captures a graph in this thread, in place of `torch.cuda.graph`."""

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
    """A piece of device memory, as the caching allocator gives it out: it belongs to the stream it was asked for on.

    It dies with the last tensor that lies in it. From then on its stream may use it again, behind what the stream has
    been given so far and what the host knows to be done.
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
        if _state is None:  # it is over, or the interpreter is
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
    """Page-locked memory: copies from and to it go on while the host does."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.size = start, size
        self.copies: list[tuple[int, int, Stamp, bool]] = []  # first byte, last, when, is it written

    def copied(self, low: int, high: int, stamp: Stamp, writes: bool) -> None:
        known = state().host
        self.copies = [copy for copy in self.copies if known[copy[2][0]] < copy[2][1]]
        self.copies.append((low, high, stamp, writes))

    def used(self, low: int, high: int, writes: bool) -> None:
        """The host reads or writes: copies that are not known to be done must not be in the way."""
        own = state()
        for first, last, (stream, tick), written in self.copies:
            if first < high and low < last and own.host[stream] < tick and (writes or written):
                what = "is still being written by" if written else "may still be read by"
                own.report.race(f"the host uses page-locked memory that {what} stream {stream}")


class PinnedMemories:
    """The page-locked pieces of memory that exist."""

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[int, HostMemory] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()  # a dictionary must not grow under an iteration

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
