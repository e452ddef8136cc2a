"""Run the batches of a plan, several at a time.

The contract, which every line below keeps:

- *Sources.* Plain Python sources are called in the thread that calls `schedule`, inside the call and in the graph's
  order; everything else happens in the scheduler thread and the pool.
- *Success.* Batches are delivered in the order they were scheduled. Everything that has a state (sources,
  steps over a batch) sees them in that order; samples of a chain run in any order on any thread.
- *Failure.* An exception belongs to the batch it happened in. It is raised when that batch is popped, with
  operator, line, sample and file; the batches around it are whole, and the executor goes on.
- *End.* StopIteration from a source ends the epoch: that batch and those scheduled after it are empty and
  raise StopIteration when popped, until `reset`.
- *The user's state.* If functions of the user may read values that change, the first batch of an epoch begins when it
  is taken, so that the epoch sees the values at its beginning. Pipelines with sources have no such epochs.
- *Cancellation.* An exception from outside (Ctrl-C, an alarm) may leave `schedule`, `pop` and `reset` between any two
  instructions. The next call continues: sources are asked for the same batch again, by its identity, and return the
  same data. `pop` takes a batch in a single assignment. If the caller didn't receive it, it can take the batch again,
  by its number. A synchronous executor computes an interrupted batch again, or refuses to continue if a source may have
  lost its data.
- *One at a time.* A second thread that takes a batch while one is being taken, and a process forked after
  the threads were started, get an error.
- *Shutdown.* Any thread may call `close`, at any time and repeatedly. Batches in flight end with an error,
  threads end after the sample they work on. Threads hold no executor while they sleep, so that dropping
  the last reference closes it too; the interpreter's exit does the same.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from torchdali.errors import note
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import (
    BatchDraw,
    BatchRequest,
    InFlightBatch,
    ReaderState,
    Settings,
    Taken,
    ThreadStart,
    metadata_outputs,
)
from torchdali.execute.caching import CachedDataset, KeptSamples
from torchdali.execute.checkpoint import labels
from torchdali.execute.process_state import has_room
from torchdali.execute.spans import span
from torchdali.execute.stages import StageRunner
from torchdali.execute.sync import CallerQueue, SingleCaller
from torchdali.execute.thread_pool import Job, ThreadPool
from torchdali.execute.timings import Stats
from torchdali.execute.workers.batches import BatchJob, Replicas
from torchdali.execute.workers.messages import Made, read_failure
from torchdali.execute.workers.placing import Placing, may_see_changes
from torchdali.execute.workers.pool import WorkerPool
from torchdali.execute.workers.starting import Starter
from torchdali.execute.workers.worker import NotStarted, Worker
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan, nodes_of
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread
from torchdali.reading.cursor import Keys
from torchdali.reading.datasets import Indices, RecordNames
from torchdali.reading.file_lists import list_identity
from torchdali.reading.sources import BatchSource, SourceBatch
from torchdali.reading.user_random import seed_of_name
from torchdali.tensors import TensorList
from torchdali.threads import Thread, close_at_end, patience

__all__ = ["Executor"]

_warned: dict[Any, Any] = {}  # warnings of replicas: each is shown once, as of one process


class Executor:
    """Runs a plan.

    Args:
        plan: The plan to run.
        settings: Sizes, seed and device.
        readers: Per reader node.
        sources: Per source node.
        bad_samples: The policy for samples that fail.
        placing: The number of processes, and their stages; one if None.
        start: Makes the starter of processes, from the arguments of `Starter`.

    Raises:
        MemoryError: there is none for threads.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        readers: Mapping[Node, ReaderState],
        sources: Mapping[Node, BatchSource],
        bad_samples: BadSamples,
        placing: Placing | None = None,
        start: Callable[..., Any] = Starter,
    ) -> None:
        if not has_room():
            raise MemoryError(
                "the threads of a pipeline get no memory: ulimit -v, RLIMIT_AS or the system sets a limit"
            )
        self.placing = Placing(1) if placing is None else placing
        self.readers, self.sources, self.bad_samples = readers, sources, bad_samples
        self._sees_changes = any(map(may_see_changes, nodes_of(plan.stages)))
        starter, processes = self._start_processes(start, plan, settings, readers)  # before there are threads
        self._labels = labels(plan.graph)
        self._caller_queue = CallerQueue() if settings.synchronous else None
        self._remote_stages, self._turns = (0, 0) if starter is None else (self.placing.stages, 0)
        self._stages = StageRunner(
            plan, settings, {node: reader.dataset for node, reader in readers.items()}, bad_samples, settings.starter(),
            remote_stages=self._remote_stages, caller_queue=self._caller_queue,
        )  # fmt: skip
        self.device_stream, self.buffers = self._stages.device_stream, self._stages.buffers
        self.profile, self.memory = self._stages.profile, self._stages.memory
        self.replicas: Replicas | None = None
        self._closed = False
        self._lock, self._process = threading.RLock(), os.getpid()
        if starter is not None and processes:
            self._join(starter, processes, self._stages.threads)
        elif starter is not None:
            _start_later(weakref.ref(self), starter, self._stages.threads)
        self._flight: list[InFlightBatch] = []  # no deque: a copy of one is several steps without the GIL
        self._count = self._position = 0
        self._stopped = self._ended = self._is_lost = False
        self._again: list[InFlightBatch] = []  # see `_repeat`
        self._whole = 0  # batches in flight before those
        self._scheduled = self._skipped = 0
        self._prepared: dict[Node, SourceBatch] = {}  # index of the next batch; it identifies the batch to sources
        self._begun: object = None  # the epoch that an interrupted `reset` begins
        self.taken = Taken(state=self.state())
        self._taking = SingleCaller()
        self._drawn: Mapping[Node, Keys] = {}  # state after the last batch that was drawn
        self._asking_sources = threading.RLock()
        self._requests: queue.SimpleQueue[Executor | None] = queue.SimpleQueue()
        with keep_torch_threads(1) as ready:
            begin = ThreadStart(settings.max_pixels, settings.exact)
            self._scheduler = Thread(_schedule_batches, (self._requests, ready, begin), "torchdali-scheduler")
            self._scheduler.start()
        close_at_end(self)

    def _start_processes(
        self, start: Callable[..., Any], plan: Plan, settings: Settings, readers: Mapping[Node, ReaderState]
    ) -> tuple[Starter | None, list[Worker]]:
        if not self.placing.stages:
            return None, []
        try:
            starter = start(self.placing, plan, settings, readers, self.bad_samples)
            return starter, starter.start_all() if self.placing.waits else []
        except NotStarted as error:
            self.placing = Placing(1, reason=str(error))
        except (OSError, MemoryError) as error:
            self.placing = Placing(1, reason=f"a process could not be started: {error}")
        return None, []

    def _join(self, starter: Starter, processes: list[Worker], threads: ThreadPool) -> bool:
        """Let processes that have started make the batches from now on; return False if the executor is closed."""
        with self._lock:
            if self._closed:
                return False
            device = self.device_stream.device if self.device_stream.pins else None
            pool = WorkerPool(processes, partial(_run_on, threads), starter, device=device)
            # The last write: the scheduler thread, which reads it, sees all of the replicas or none.
            self.replicas = Replicas(starter.plan, self._remote_stages, self.readers, pool)
        return True

    @property
    def settings(self) -> Settings:
        """Settings of the pipeline."""
        return self._stages.settings

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._stages.plan

    def stats(self) -> Stats:
        """Return the times of the operators, and the state of the worker processes."""
        caches = tuple(kept.summary() for kept in self.caches)
        far = [*(reader.dataset for reader in self.readers.values()), *self.sources.values()]
        remotes = {remote for each in far for remote in getattr(each, "remotes", ())}
        stores = tuple(each.summary(self.profile.samples) for each in remotes)
        if self.replicas is None:
            return replace(self.profile.stats(self.buffers.bytes_out, caches=caches), stores=stores)
        used = self.buffers.bytes_out + self.replicas.bytes_out
        return replace(self.profile.stats(used, self.replicas.summary(), caches), stores=stores)

    @property
    def caches(self) -> list[KeptSamples]:
        """The samples that are kept, of each `fn.cache`."""
        datasets = [reader.dataset for reader in self.readers.values()]
        return [each.kept for each in datasets if isinstance(each, CachedDataset)]

    @property
    def exits(self) -> tuple[str, ...]:
        """Number of worker processes and how each ended that died; empty if none did."""
        lines = () if self.replicas is None else self.replicas.summary()
        return lines if len(lines) > 1 else ()

    # ------------------------------------------------------------ the user's side

    @property
    def in_flight(self) -> int:
        """Batches scheduled and not yet popped."""
        # This needs no lock: only the user's thread adds and removes, and the length of a list is one read.
        self._settle()
        return len(self._flight)

    @property
    def empty(self) -> bool:
        """True if all batches are taken. May wait for the oldest batch to find out."""
        self._settle()
        if not self._flight:
            return True
        oldest = self._flight[0]
        if self.sources or oldest.request.ended:  # readers never end
            self._wait(oldest)
        return isinstance(oldest.outcome.error, StopIteration)

    @property
    def stopped(self) -> bool:
        """True if a source has ended. May wait for the batches in flight to find out."""
        if self.sources and self._flight and not self._stopped:
            # The scheduler thread writes `_stopped` before it ends the batch, and the batch's event orders that write
            # before the read below.
            self._wait(self._flight[-1])
        return self._stopped

    @property
    def taken_state(self) -> Mapping[str, Any]:
        """The position after the batch that was taken last."""
        return self.taken.state

    def release(self) -> None:
        """Let go of the batch that was taken last."""
        self._settle()
        self.taken = self.taken.release()

    def schedule(
        self,
        ended: bool = False,
        random_keys: Sequence[int] | None = None,
        records: Indices | None = None,
        fed: Mapping[Node, SourceBatch] | None = None,
        tag: object = None,
    ) -> None:
        """Put one more batch in flight; returns once its sources were called.

        With ``ended``, it is the end of the epoch, and not a batch.

        With ``random_keys``, random operators draw for these, whatever the position of the batch. With ``records``, the
        batch has these records of each reader, any number of them, and the readers' positions don't change. With
        ``fed``, the batch uses this data instead of asking these sources. The ``tag`` says which batch it is when it is
        taken. A synchronous executor returns when the batch is done, all steps having run in this thread, unless the
        batch waits for its epoch to begin.
        """
        self._check_open()
        self._check_whole()
        if self._again:
            with self._taking.lock():
                self._repeat()
        with self._asking_sources:  # not under the lock: close() must not wait for the user's code
            self._ended |= ended
            request = BatchRequest(
                ended=ended, random_keys=random_keys, records=records, skipped=self._skipped, fed=fed or {}, tag=tag
            )
            batch = InFlightBatch(draw=BatchDraw(size=self.settings.batch_size), request=request)
            if not self._ended and not self._stopped:
                self._prepare(batch)
            self._put_in_flight(batch)

    def _settle(self) -> None:
        """Finish the step that an exception interrupted: take out a batch that was taken, and forget data in flight."""
        flight = self._flight
        if flight and flight[-1].prepared is self._prepared:
            self._prepared, self._skipped = {}, 0
        if flight and flight[0] is self.taken.batch:
            del flight[0]

    def skip(self, count: int) -> None:
        """Pass over batches between the last that was scheduled and the next."""
        self._check_open()
        if self.sources:
            raise RuntimeError(
                f"skip() needs a pipeline whose data come from readers alone; this one has the source "
                f"{next(iter(self.sources)).name!r}, whose batches only it can make"
            )
        self._skipped += count

    def _prepare(self, batch: InFlightBatch) -> None:
        """Take the next batch of all sources that belong in this thread, in the graph's order.

        Interrupted, the batches already taken wait in `_prepared` for the next call, so that sources stay in step.
        """
        # Only this thread can see the batch so far: the scheduler thread sees it, and its content, after the request.
        batch.prepared = self._prepared
        for node, source in self.sources.items():
            if node in batch.request.fed:
                continue
            if node not in self._prepared:
                started = time.perf_counter()
                prepare = partial(source.prepare, self.settings.batch_size, self._prepared)
                (prepared,) = _prepared_in_own_frames(prepare)  # to its end: closing a generator swallows interrupts
                if prepared is None:
                    continue
                self._prepared[node] = prepared
                size = len(prepared.outputs[0]) if prepared.outputs else 1
                self.profile.step(node, started, max(1, size), self._scheduled)
        taken = self._prepared
        self._ended = any([isinstance(each.error, StopIteration) for each in taken.values()])
        if any([each.is_repeated for each in taken.values()]):
            # The batch has only the error; the data of the others is for the next one.
            batch.prepared = {node: each for node, each in taken.items() if each.is_repeated}
            self._prepared = {node: each for node, each in taken.items() if not each.is_repeated}

    def _put_in_flight(self, batch: InFlightBatch) -> None:
        with self._lock:
            self._check_open()
            # Only the user's thread adds batches in flight, under the lock; `close`, which may run in any thread, only
            # reads a copy, which is made in one step.
            if self._caller_queue is not None:
                batch.spare = dict(batch.prepared)
            self._flight.append(batch)
            self._scheduled += 1
            self._settle()
            if self._caller_queue is None:
                self._request()
        if self._caller_queue is not None:
            self.profile.note_request(0)
            self._request()
            if batch.draw.index >= 0:
                self._wait(batch)

    def _request(self) -> None:
        """Start those batches in flight that were not started yet; safe to repeat, as after a KeyboardInterrupt."""
        if self._caller_queue is None:
            # The request holds the executor, the scheduler thread itself does not: see the end of the file.
            self._requests.put(self)
        else:
            with self._caller_queue.own(), torch.no_grad(), self.settings.here():
                self.start()

    def _wait(self, batch: InFlightBatch) -> None:
        """Wait for a batch, in slices: close() in another thread must be noticed."""
        # Set before the next line, so that the scheduler thread, which holds batches back, sees one of the two.
        batch.wanted = True
        if batch.draw.index < 0:
            self._request()
        if self._caller_queue is None:
            while not batch.finished.is_set():
                self._check_open()
                # Set by the thread that ran the last stage; all it wrote to the batch came before.
                batch.finished.wait(1.0)
        elif not batch.finished.is_set():
            with torch.no_grad(), self.settings.here():
                while not batch.finished.is_set():
                    self._check_open()
                    # The stages after a chain run here: workers leave them in the queue, and nothing of the batch is
                    # touched by them after that.
                    self._caller_queue.run_next(timeout=1.0)

    def _give_up(self, caller_queue: CallerQueue) -> None:
        """Make batches again that an exception from outside interrupted in this thread."""
        started = [batch for batch in self._flight if batch.draw.index >= 0]
        half = [batch for batch in started if not batch.finished.is_set() or _is_interrupt(batch.outcome.error)]
        if half and not self._again:
            whole = self._flight.index(half[0])
            self._again, self._whole = self._flight[whole:], whole
        for batch in half:
            # Sources that this thread asks may already be past this batch.
            self._is_lost |= any(node not in batch.spare and node not in batch.request.fed for node in self.sources)
            batch.outcome.error = KeyboardInterrupt()
            batch.finished.set()
        self._stages.reset_order(self._count, self._turns)
        caller_queue.interrupted = False

    def pop(self, stream: Any = None, after: int | None = None) -> InFlightBatch:
        """Wait for the oldest batch and return it.

        Args:
            stream: On which the caller will use it; see `DeviceStream.hand_over`.
            after: Number of batches that the caller has got, see `Taken.number`. If one more was taken, as an interrupt
                came between, it is returned again.

        Raises:
            StopIteration: a source is at its end. RuntimeError: nothing was scheduled, or the executor
            was closed. Otherwise the error of the batch.
        """
        self._check_open()
        self._check_whole()
        self.profile.note_request(sum([batch.finished.is_set() for batch in self._flight.copy()]))
        with self._taking.lock():
            batch = self._take() if after is None or after >= self.taken.number else self.taken.batch
        if batch is None:
            raise RuntimeError("the error of this batch is unknown: an interrupt has come before it was raised")
        error, batch.outcome.error = batch.outcome.error, None  # whose frames hold the batch
        if error is not None:
            self.taken = self.taken.release()
            try:
                raise error
            finally:
                del error  # or it, its traceback and this frame keep each other and the pipeline alive
        self.bad_samples.check_budget(batch)
        self.profile.note_delivery(batch.draw.size)
        # In the user's thread, which does not wait: its stream does, for the kernels of this batch alone.
        self.device_stream.hand_over(batch.outcome.outputs, batch.outcome.ready, stream)
        return batch

    def _take(self) -> InFlightBatch:
        if not self._flight and not self._again:
            raise RuntimeError("no batch was scheduled: call schedule_run() before asking for outputs")
        self.taken = self.taken.release()
        if self._again:
            self._repeat()
        with span("wait for a batch", self.settings.device):
            batch = self._flight[0]
            self._wait(batch)
        if self._caller_queue is not None and _is_interrupt(batch.outcome.error):
            self._caller_queue.interrupted = True
            raise KeyboardInterrupt
        # The state was noted by the scheduler thread when it drew the batch, and not changed since: batches drawn
        # meanwhile have states of their own, so that a checkpoint counts only batches that were taken.
        number = self.taken.number + (not isinstance(batch.outcome.error, StopIteration))
        # After an interrupt before this store the next call finds the batch.
        self.taken = Taken(number, batch, batch.request.tag, batch.draw.state)
        self._settle()
        return batch

    def _repeat(self) -> None:
        """Make batches of a synchronous executor again, all in flight after those that are whole.

        An interrupt may fall anywhere: batches to make again are remembered until they are scheduled.
        """
        again, whole = self._again, self._whole
        del self._flight[whole:]
        self._count = min((batch.draw.index for batch in again if batch.draw.index >= 0), default=self._count)
        self._stages.reset_order(self._count, self._turns)
        before = self._flight[whole - 1] if whole else None
        self._restore_readers(self.taken_state if before is None else before.draw.state)
        self._drawn = {} if before is None else before.draw.keys
        for batch in again:
            self.bad_samples.take(batch.draw.index)
            draw = BatchDraw(size=self.settings.batch_size)
            new = InFlightBatch(draw=draw, request=batch.request, prepared=dict(batch.spare))
            self._put_in_flight(new)
        self._again = []

    def reset(self) -> None:
        """Drop the batches in flight and start the next epoch of all sources that ended."""
        # Once nothing is in flight, the scheduler thread has no request left: until the next `schedule`, sources and
        # counters are this thread's.
        self._check_open()
        self._again = []
        with self._taking.lock():
            for newest in reversed(self._flight.copy()):
                self._wait(newest)
                for node, prepared in newest.prepared.items():
                    self.sources[node].take_back(prepared)
                self._flight.remove(newest)
        self._begun = self._begun or object()
        for source in self.sources.values():
            source.reset(self._begun)
        self.taken = self.taken._replace(state={**self.state(), "stopped": False})
        self._stopped, self._ended, self._begun = False, False, None

    def _drop_flight(self) -> None:
        """Wait for the batches in flight and forget them; the caller holds the lock."""
        while self._flight:
            self._wait(self._flight[0])
            del self._flight[0]

    def close(self) -> None:
        """End all threads, fail the batches in flight, and release the caches' stores."""
        if os.getpid() != self._process:
            return  # the threads and processes are the parent's, and one of its threads may have held the lock
        with self._lock:
            if self._closed:
                return
            self._closed = True
        # First the sources: the scheduler thread may wait in one, for `feed_input` or for a worker process, and would
        # not come to see the end of its requests.
        for source in self.sources.values():
            source.close()
        # Ends the scheduler thread after the remaining requests; it does not join the workers, so the order of
        # the two does not matter.
        self._requests.put(None)
        if self.replicas is not None:
            self.replicas.pool.close()
        self._stages.close()
        if self._scheduler is not threading.current_thread():
            self._scheduler.join(patience())
        # All threads are gone, so nobody else touches these batches any more. A thread that is stuck in the user's code
        # for longer finds them finished when it returns, and does not touch them.
        for batch in self._flight.copy():
            error = RuntimeError("the pipeline was closed while this batch was in flight")
            self._stages.finish(batch, error)
        for kept in self.caches:
            kept.close()

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this pipeline was built in process {self._process} and its threads do not exist in process "
                f"{os.getpid()}, which was forked from it: build a pipeline in each process that runs one"
            )
        if self._closed:
            raise RuntimeError("the pipeline is closed")
        self._settle()
        if self._caller_queue is not None and self._caller_queue.interrupted:
            self._give_up(self._caller_queue)

    def _check_whole(self) -> None:
        if self._is_lost:
            raise RuntimeError(
                "a source of this synchronous pipeline was interrupted while it made a batch, and may have lost it: "
                "build the pipeline again, or continue at a state_dict()"
            )

    # ------------------------------------------------------------ starting a batch (scheduler thread)

    def start(self) -> None:
        """Start the batches in flight in order, until one must wait."""
        for batch in self._flight.copy():
            if self._closed or (batch.draw.index < 0 and self._holds_back(batch)):
                return
            if batch.draw.index < 0:
                # From here the batch is the scheduler thread's, until a chain gives it to the workers.
                self._start(batch)

    def _holds_back(self, batch: InFlightBatch) -> bool:
        """Return whether a batch waits until it is wanted, since another epoch begins with it.

        Values that functions of the user read may change until then; of remote data, the program may end before.
        """
        if batch.wanted or self.sources or batch.request.ended or batch.request.records is not None:
            return False
        return any(
            (self._sees_changes or reader.is_remote)
            and reader.leaves_epoch(self.settings.batch_size, self._drawn[node])
            for node, reader in self.readers.items()
            if node in self._drawn
        )

    def _start(self, batch: InFlightBatch) -> None:
        try:
            # Only here are the counters and the cursors of readers advanced: by one thread, so without a lock, and in
            # the order of the requests.
            batch.draw.index, self._count = self._count, self._count + 1
            if self._stopped or batch.request.ended:
                raise StopIteration
            batch.draw.position = self._position
            # Asked once per batch: processes may become ready at any moment, and records that are read here must also
            # run here.
            replicas = self.replicas
            self._draw(batch, replicas)
        except StopIteration as stop:
            self._stopped = True
            batch.draw.state = self.state()
            self._stages.fail(batch, StopIteration(*stop.args), first=self._remote_stages)
        except BaseException as error:
            if self._caller_queue is not None and _is_interrupt(error):
                raise
            batch.draw.state = self.state()
            self._stages.fail(batch, error, first=self._remote_stages)
        else:
            self._begin(batch, replicas)

    def _begin(self, batch: InFlightBatch, replicas: Replicas | None) -> None:
        """Start the stages of a batch, here or in a replica."""
        if replicas is None:
            batch.draw.turn, self._turns = self._turns, self._turns + 1
            self._stages.begin(batch)
            return
        try:
            # From here on the batch belongs to the replica, and then to the thread that calls `_came_back`.
            replicas.submit(batch, self.settings.seed, self.profile.is_traced, self._came_back)
        except BaseException as error:  # no room in shared memory
            self._stages.fail(batch, error, first=self._remote_stages)

    def _came_back(self, job: BatchJob) -> None:
        """Go on with a batch that a replica has made, in the thread that runs its later stages."""
        if self._caller_queue is None:
            self._take_over(job)
        else:
            self._caller_queue.put(partial(self._take_over, job))

    def _take_over(self, job: BatchJob) -> None:
        batch, reply, first = job.batch, job.reply, self._remote_stages
        if batch.finished.is_set():
            return  # closed, or interrupted and given up
        assert self.replicas is not None
        try:
            if reply is not None:
                self._note(batch, reply)
            if job.error is not None:
                raise job.error
            self.replicas.take_over(batch, job.values)
        except BaseException as error:
            self._stages.fail(batch, error, first=first)
        else:
            self._stages.go_on(batch, first)
        finally:
            job.error, job.values = None, {}

    def _note(self, batch: InFlightBatch, reply: Made) -> None:
        """Record a replica's measurements, and the samples that it dropped."""
        nodes = self.plan.graph.nodes
        for text, category, file, line in reply.warnings:
            warnings.warn_explicit(text, category, file, line, registry=_warned)
        self.profile.add_times(reply.times, nodes)
        self.memory.add({nodes[k].outputs[i]: sizes for (k, i), sizes in reply.sizes.items()})
        self.bad_samples.add(batch, reply.bad, reply.kept)
        batch.outcome.bad_samples += [(count, read_failure(failure)) for count, failure in reply.budget]

    def _draw(self, batch: InFlightBatch, replicas: Replicas | None) -> None:
        """Advance every source, in the graph's order, note the state after it, and start this process's reads."""
        self._pass_over(batch.request.skipped)
        is_repeated = any(each.is_repeated for each in batch.prepared.values())
        try:
            sizes = self._pull(batch)
        except StopIteration:
            raise
        except Exception:
            if not is_repeated:
                for reader in self.readers.values():  # they are past the batch, as its sources are
                    reader.next_keys(self.settings.batch_size, batch.request.records)
            raise
        for node, reader in self.readers.items():
            batch.draw.keys[node] = keys = reader.next_keys(self.settings.batch_size, batch.request.records)
            if replicas is None or replicas.reads_here(node):
                batch.draw.reads[node] = reader.start_reads(keys, self.settings.batch_size, batch.request.records)
            batch.values.update(metadata_outputs(node, reader.dataset, keys.records))
            sizes[node] = len(keys.records)
        if len(set(sizes.values())) > 1:
            raise RuntimeError(_clash(sizes))
        if batch.request.records is None:
            self._drawn = batch.draw.keys
        batch.draw.size = next(iter(sizes.values()), self.settings.batch_size)
        self._position += batch.draw.size
        batch.draw.info = self._source_infos(batch)
        batch.draw.state = self.state()

    def _pass_over(self, count: int) -> None:
        for _ in range(count):
            for reader in self.readers.values():
                reader.cursor.next_batch(self.settings.batch_size)
            self._position += self.settings.batch_size

    def _pull(self, batch: InFlightBatch) -> dict[Node, int]:
        """Take the next batch of every source, also of those after one that fails or is at its end (as DALI does)."""
        sizes: dict[Node, int] = {}
        ended, failure = False, None
        repeated = [node for node, each in batch.prepared.items() if each.is_repeated]
        for node, source in ((node, self.sources[node]) for node in repeated or self.sources):
            started = time.perf_counter()
            prepared = batch.request.fed.get(node) or batch.prepared.pop(node, None)
            try:
                with span(node.operator.name, self.settings.device):
                    outputs = source.next(self.settings.batch_size, prepared)
            except StopIteration:
                ended = True
                continue
            except Exception as error:
                if failure is None:
                    note(error, batch.draw.location(node))
                    failure = error
                continue
            except BaseException as error:
                note(error, batch.draw.location(node))
                raise
            if prepared is None:
                self.profile.step(node, started, max(1, len(outputs[0])), batch.draw.index)
            batch.values.update(zip(node.outputs, self._on_device(node, outputs), strict=True))
            sizes[node] = len(outputs[0])
        if failure is not None:
            try:
                raise failure
            finally:
                del failure
        if ended:
            raise StopIteration
        return sizes

    def _on_device(self, node: Node, outputs: tuple[TensorList, ...]) -> tuple[TensorList, ...]:
        """Bring the data of a source to the device of its node."""
        move = self.device_stream.to_cpu if node.device == "cpu" else self.device_stream.adopt
        # The copy is enqueued on the stream of the pipeline, before any step of this batch: steps need not wait for it,
        # whichever thread enqueues them.
        with self.device_stream.context():
            return tuple(map(move, outputs))

    def _source_infos(self, batch: InFlightBatch) -> Sequence[str] | None:
        for node, keys in batch.draw.keys.items():
            return RecordNames(self.readers[node].dataset.info, keys.records)
        for node in self.sources:
            infos = batch.values[node.outputs[0]].source_infos if node.outputs else None
            if infos is not None:
                return list(infos)
        return None

    def state(self) -> dict[str, Any]:
        """Return the checkpoint state after the batches drawn so far, as JSON values."""
        return {
            "seed": self.settings.seed,
            "position": self._position,
            "stopped": self._stopped,
            "readers": {self._labels[n]: r.cursor.state() for n, r in self.readers.items()},
            "sources": {self._labels[n]: s.state() for n, s in self.sources.items()},
        }

    def file_lists(self) -> dict[str, str]:
        """Return digests of the files of those readers whose order is the files' order."""
        lists = {self._labels[node]: list_identity(reader.dataset) for node, reader in self.readers.items()}
        return {label: identity.hex() for label, identity in lists.items() if identity is not None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint state; batches in flight are dropped."""
        self._check_open()
        self._again = []
        with self._taking.lock():
            self._drop_flight()
        self._restore_readers(state)
        for node, source in self.sources.items():
            source.reseed(seed_of_name(state["seed"], node.name))
            source.restore(state["sources"][self._labels[node]])
        self._prepared, self._skipped, self._is_lost, self._ended = {}, 0, False, self._stopped
        self.taken = Taken(self.taken.number, state=self.state())

    def _restore_readers(self, state: Mapping[str, Any]) -> None:
        # As in `reset`: with nothing in flight, no other thread reads cursors, settings or counters.
        for node, reader in self.readers.items():
            reader.cursor.restore(state["readers"][self._labels[node]])
            if reader.processes is not None:
                reader.processes.seed = seed_of_name(state["seed"], node.name)
        self._stages.settings = replace(self.settings, seed=state["seed"])
        self._position, self._stopped, self._drawn = state["position"], state["stopped"], {}


def _start_later(executor: weakref.ref[Executor], starter: Starter, threads: ThreadPool) -> None:
    """Start processes while threads make the first batches; holds no executor meanwhile.

    The thread isn't a daemon. It may hold the last reference to the executor, and with it tensors; if a daemon drops
    one while the interpreter ends, the process aborts.
    """

    def start() -> None:
        try:
            started = starter.start_all()
        except NotStarted as error:
            if (owner := executor()) is not None:
                owner.placing = Placing(1, reason=str(error))
            return
        owner = executor()
        if owner is None or not owner._join(starter, started, threads):
            WorkerPool(started, partial(_run_on, threads), starter).close()

    threading.Thread(target=start, name="torchdali-start", daemon=False).start()


def _run_on(threads: ThreadPool, function: Callable[[], None]) -> None:
    """Run a function on one of the threads."""

    def run(_: int) -> None:
        function()

    threads.submit(Job(run, 1, _nothing, order=-1))  # at once: a batch waits for it


def _nothing(failures: dict[int, BaseException]) -> None:
    pass


def _prepared_in_own_frames(prepare: Callable[[], SourceBatch | None]) -> Iterator[SourceBatch | None]:
    """Yield the batch of a source, from frames that do not lead to the caller's once the call is over.

    An exception that waits for its batch keeps the frames it left, and with them the user's that called `run`: they
    would hold the pipeline, which would end with the garbage collector instead of its last reference.
    """
    yield prepare()


def _is_interrupt(error: BaseException | None) -> bool:
    return isinstance(error, KeyboardInterrupt)


def _clash(sizes: Mapping[Node, int]) -> str:
    """Return which sources gave batches of which sizes, and on which of the user's lines they are."""
    first, size = next(iter(sizes.items()))
    other, its_size = next((node, count) for node, count in sizes.items() if count != size)
    return (
        f'Batch size clash! The input operator "{other.name}" returned a batch size {its_size} which is different than '
        f'{size} returned by "{first.name}". All sources must give as many samples in a batch\n  {other.where}\n  '
        f"{first.where}"
    )


def _schedule_batches(
    requests: queue.SimpleQueue[Executor | None],
    ready: threading.Barrier,
    begin: ThreadStart,
) -> None:
    """Start batches one after another; holds no executor between them."""
    use_one_torch_thread(ready)
    begin(0)
    with torch.no_grad():
        while (executor := requests.get()) is not None:
            executor.start()
            del executor
