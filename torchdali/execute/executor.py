"""Run the batches of a plan, several at a time.

The contract, which every line below keeps:

- *Success.* Batches are delivered in the order they were scheduled. Everything that has a state (sources,
  steps over a batch) sees them in that order; samples of a chain run in any order on any thread.
- *Failure.* An exception belongs to the batch it happened in. It is raised when that batch is popped, with
  operator, line, sample and file; the batches around it are whole, and the executor goes on.
- *End.* StopIteration from a source ends the epoch: that batch and those scheduled after it are empty and
  raise StopIteration when popped, until `reset`.
- *Cancellation.* Waiting in `pop` can be interrupted (Ctrl-C) at any moment and repeated.
- *One at a time.* A second thread that takes a batch while one is being taken, and a process forked after
  the threads were started, get an error.
- *Shutdown.* `close` may come at any time, from any thread, and again. Batches in flight end with an error,
  threads end after the sample they work on. Threads hold no executor while they sleep, so that dropping
  the last reference closes it too; the interpreter's exit does the same.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from torchdali.errors import note
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import Batch, Reader, Settings, known_outputs
from torchdali.execute.buffers import Buffers
from torchdali.execute.checkpoint import labels
from torchdali.execute.device import Lane
from torchdali.execute.memory_stats import MemoryStats
from torchdali.execute.order import Errands, Exclusive, Signal
from torchdali.execute.profile import Profile
from torchdali.execute.progress import Means, Progress
from torchdali.execute.threads import Threads, isolated_torch_threads, run_torch_alone
from torchdali.graph import Node
from torchdali.operator import Source, is_large
from torchdali.plan import Plan
from torchdali.plan import plan as make_plan
from torchdali.running import is_moderate
from torchdali.tensors import TensorList

__all__ = ["Executor"]


class Executor:
    """Runs a plan.

    Args:
        plan: What to run.
        settings: Sizes, seed and device.
        readers: Per reader node.
        sources: Per source node.
        bad_samples: What to do when a sample fails.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        readers: Mapping[Node, Reader],
        sources: Mapping[Node, Source],
        bad_samples: BadSamples,
    ) -> None:
        self.readers, self.sources, self.bad_samples = readers, sources, bad_samples
        self._labels = labels(plan.graph)
        self.lane = Lane(settings.device)
        self.buffers = Buffers(pinned=self.lane.pins)
        self.profile = Profile()
        self.memory = MemoryStats()
        self._errands = Errands() if settings.synchronous else None
        self._means = Means(
            settings, readers, bad_samples, self.lane, self.buffers, self.profile, self.memory,
            Threads(settings.num_threads, start=settings.start_thread), self._errands,
        )  # fmt: skip
        self._progress = Progress(plan, self._means)
        self._flight: deque[Batch] = deque()
        self._count = self._position = 0
        self._stopped = self._closed = False
        self._large: list[Node] = []
        self._moderate: list[Node] = []
        self._first_done: Signal | None = None
        self.place = self.state()
        self._lock, self._taking, self._process = threading.RLock(), Exclusive(), os.getpid()
        self._requests: queue.SimpleQueue[tuple[Executor, Batch] | None] = queue.SimpleQueue()
        with isolated_torch_threads(1) as ready:
            self._conductor = threading.Thread(
                target=_conduct,
                args=(self._requests, ready),
                name="torchdali-conductor",
                daemon=True,
            )
            self._conductor.start()

    @property
    def settings(self) -> Settings:
        """What the pipeline decided."""
        return self._means.settings

    @property
    def plan(self) -> Plan:
        """The plan for the next batch."""
        return self._progress.plan

    # ------------------------------------------------------------ the user's side

    @property
    def in_flight(self) -> int:
        """Batches scheduled and not yet popped."""
        return len(self._flight)

    @property
    def empty(self) -> bool:
        """Whether nothing is in flight but the end of an epoch; waits for the oldest batch to know it."""
        if not self._flight:
            return True
        oldest = self._flight[0]
        if self.sources or oldest.ended:  # readers never end
            self._wait(oldest)
        return isinstance(oldest.error, StopIteration)

    @property
    def stopped(self) -> bool:
        """Whether a source has come to its end; waits for the batches in flight to know it."""
        if self.sources and self._flight and not self._stopped:
            self._wait(self._flight[-1])
        return self._stopped

    def schedule(self, ended: bool = False) -> None:
        """Start one more batch; returns at once. With ``ended``, it is the end of the epoch instead.

        A synchronous executor returns when the batch is done, all steps having run in this thread.
        """
        self._check_open()
        with self._lock:
            for source in self.sources.values() if not ended else ():
                source.schedule()
            batch = Batch(-1, self.settings.batch_size, 0, ended=ended)
            self._flight.append(batch)
            if self._errands is None:
                self._ask()
        if self._errands is not None:
            self.profile.asked(0)
            self._wait(batch)

    def _ask(self) -> None:
        """Have all scheduled batches started. An interrupt may fall between any two lines: ask again then."""
        for batch in list(self._flight):
            if batch.asked:
                continue
            if self._errands is None:
                self._requests.put((self, batch))
            else:
                with self._errands.own(), torch.no_grad():
                    self.start(batch)
            batch.asked = True

    def _wait(self, batch: Batch) -> None:
        """Wait for a batch, in slices: close() in another thread must be noticed."""
        if not batch.asked:
            self._ask()
        while not batch.finished.is_set():
            self._check_open()
            if self._errands is None:
                batch.finished.wait(1.0)
                continue
            with torch.no_grad():
                self._errands.run_next(timeout=1.0)

    def _give_up(self, errands: Errands) -> None:
        """Drop the batches whose steps an interrupt tore apart, in this thread; it was raised then."""
        for batch in list(self._flight):
            if batch.index >= 0 and not batch.finished.is_set():
                batch.error = KeyboardInterrupt()
                batch.finished.set()
                self._flight.remove(batch)
        self._progress.line_up(self._count)
        errands.torn = False

    def pop(self) -> Batch:
        """Wait for the oldest batch and return it.

        Raises:
            StopIteration: a source is at its end. RuntimeError: nothing was scheduled, or the executor
            was closed. Otherwise what failed in the batch.
        """
        self._check_open()
        self.profile.asked(sum([batch.finished.is_set() for batch in list(self._flight)]))
        with self._taking:
            if not self._flight:
                raise RuntimeError(
                    "no batch was scheduled: call schedule_run() before asking for outputs"
                )
            batch = self._flight[0]
            self._wait(batch)
            self._flight.popleft()
            self.place = batch.state
        error, batch.error = batch.error, None  # whose frames hold the batch
        if error is not None:
            raise error
        self.profile.delivered(batch.size)
        self.lane.hand_over(batch.outputs)
        return batch

    def reset(self) -> None:
        """Drop the batches in flight and start the next epoch of all sources that ended."""
        self._drop_flight()
        for source in self.sources.values():
            source.reset()
        self._stopped = False
        self.place = self.state()

    def _drop_flight(self) -> None:
        self._check_open()
        with self._taking:
            while self._flight:
                self._wait(self._flight[0])
                self._flight.popleft()

    def close(self) -> None:
        """End all threads and fail what is in flight."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if os.getpid() != self._process:
            return  # the threads and processes are the parent's
        for source in self.sources.values():
            source.close()
        self._requests.put(None)
        self._means.threads.close()
        if self._conductor is not threading.current_thread():
            self._conductor.join(timeout=10)
        for batch in list(self._flight):
            error = RuntimeError("the pipeline was closed while this batch was in flight")
            self._progress.finish(batch, error)

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this pipeline was built in process {self._process} and its threads do not exist in process "
                f"{os.getpid()}, which was forked from it: build a pipeline in each process that runs one"
            )
        if self._closed:
            raise RuntimeError("the pipeline is closed")
        if self._errands is not None and self._errands.torn:
            self._give_up(self._errands)

    # ------------------------------------------------------------ starting a batch (conductor thread)

    def start(self, batch: Batch) -> None:
        """Draw the samples of a batch and begin its first stage."""
        if batch.index >= 0:
            return  # it was asked for twice
        try:
            batch.index, self._count = self._count, self._count + 1
            if self._stopped or batch.ended:
                raise StopIteration
            batch.position = self._position
            self._draw(batch)
            self._adapt(batch)
        except StopIteration as stop:
            self._stopped = True
            batch.state = self.state()
            self._progress.fail(batch, StopIteration(*stop.args))
        except BaseException as error:
            batch.state = self.state()
            self._progress.fail(batch, error)
        else:
            self._progress.begin(batch)

    def _draw(self, batch: Batch) -> None:
        """Advance every source, in the graph's order, and note the state after it."""
        sizes = self._pull(batch)
        for node, reader in self.readers.items():
            batch.keys[node] = reader.cursor.next_batch(self.settings.batch_size)
            batch.values.update(known_outputs(node, reader.dataset, batch.keys[node].records))
            sizes[node.name] = self.settings.batch_size
        if len(set(sizes.values())) > 1:
            raise RuntimeError(f"batch size clash: the sources of one batch gave {sizes}")
        batch.size = next(iter(sizes.values()), self.settings.batch_size)
        self._position += batch.size
        batch.info = self._names(batch)
        batch.state = self.state()

    def _pull(self, batch: Batch) -> dict[str, int]:
        """Take the next batch of every source, also of those after one that is at its end (as DALI does)."""
        sizes, ended = {}, False
        for node, source in self.sources.items():
            started = time.perf_counter()
            try:
                outputs = source.next(self.settings.batch_size)
            except StopIteration:
                ended = True
                continue
            except BaseException as error:
                note(error, batch.place(node))
                raise
            self.profile.step(node, started, max(1, len(outputs[0])), batch.index)
            batch.values.update(zip(node.outputs, self._placed(node, outputs), strict=True))
            sizes[node.name] = len(outputs[0])
        if ended:
            raise StopIteration
        return sizes

    def _placed(self, node: Node, outputs: tuple[TensorList, ...]) -> tuple[TensorList, ...]:
        """Bring the data of a source to the device of its node."""
        move = self.lane.to_cpu if node.device == "cpu" else self.lane.to_device
        with self.lane.context():
            return tuple(map(move, outputs))

    def _adapt(self, batch: Batch) -> None:
        """Plan anew when the first batch has shown which sources give large samples, and what is light."""
        if batch.index == 0:
            self._first_done = batch.finished
            for node in self.sources:
                large = [d for o in node.outputs if is_large(d := batch.values[o])]
                if large:
                    self._large.append(node)
                if all(map(is_moderate, large)):
                    self._moderate.append(node)
        elif self._first_done is None or not self._first_done.is_set():
            return
        planned = make_plan(
            self.plan.graph, self._large, self._progress.light, self._moderate, self._progress.alone
        )
        is_new = [s.steps for s in planned.stages] != [s.steps for s in self.plan.stages]
        if is_new and not self._runs_alone(batch):
            return
        if batch.index > 0:
            self._first_done = None
        if is_new:
            self._progress = Progress(planned, self._means, batch.index)

    def _runs_alone(self, batch: Batch) -> bool:
        """Wait for the batches before, which another plan runs; a synchronous executor cannot."""
        before = [b for b in list(self._flight) if 0 <= b.index < batch.index]
        for other in before:
            while self._errands is None and not (other.finished.wait(0.1) or self._closed):
                pass
        return all(b.finished.is_set() for b in before)

    def _names(self, batch: Batch) -> list[str] | None:
        for node, keys in batch.keys.items():
            return [self.readers[node].dataset.info(r) for r in keys.records.tolist()]
        for node in self.sources:
            infos = batch.values[node.outputs[0]].source_infos if node.outputs else None
            if infos is not None:
                return list(infos)
        return None

    def state(self) -> dict[str, Any]:
        """Return the place after the batches drawn so far, as JSON values."""
        return {
            "seed": self.settings.seed,
            "position": self._position,
            "stopped": self._stopped,
            "readers": {self._labels[n]: r.cursor.state() for n, r in self.readers.items()},
            "sources": {self._labels[n]: s.state() for n, s in self.sources.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a place; batches in flight are dropped."""
        self._drop_flight()
        for node, reader in self.readers.items():
            reader.cursor.restore(state["readers"][self._labels[node]])
        for node, source in self.sources.items():
            source.restore(state["sources"][self._labels[node]])
        self._means.settings = replace(self.settings, seed=state["seed"])
        self._position, self._stopped = state["position"], state["stopped"]
        self.place = self.state()


def _conduct(
    requests: queue.SimpleQueue[tuple[Executor, Batch] | None], ready: threading.Barrier
) -> None:
    """Start batches one after another; holds no executor between them."""
    run_torch_alone(ready)
    with torch.no_grad():
        while (request := requests.get()) is not None:
            executor, batch = request
            executor.start(batch)
            del request, executor, batch
