"""Run the batches of a plan, several at a time.

A *plan* is a pipeline's graph, divided into *stages*. A stage first runs its *steps* (operators that process a whole
batch), then its *chain* (operators that process one sample after the other). A *reader* reads records of a dataset, and
a *source* is a user's function that returns data. A *replica* is a worker process that computes whole batches. The user
*takes* a batch when `pop` returns it. The executor guarantees the following:

- *Threads.* `schedule` calls the sources in the caller's thread, in the graph's order. Sources with worker processes
  are an exception. All other work runs in the scheduler thread and the thread pool.
- *Order.* Batches are delivered in the order in which they were scheduled. Sources and steps process the batches in the
  same order. A chain's samples may run in any order and on any thread.
- *Failure.* If an operator raises an exception, `pop` raises the same exception when the user takes the batch. The
  exception names operator, line, sample and file. The other batches are not affected.
- *End.* If a source raises StopIteration, the epoch ends. `pop` then raises StopIteration for this batch and for all
  batches that were already scheduled after it. `reset` starts the next epoch.
- *The user's state.* If the user's functions may read values that the program changes, the first batch of an epoch
  starts only when the user takes it. Then the functions read the current values. In pipelines with sources, the first
  batch starts immediately.
- *Interrupts.* An exception from outside (Ctrl-C, an alarm) may end `schedule`, `pop` and `reset` between any two
  instructions. The next call of `schedule` requests the same batch from the sources again, and the sources return the
  same data. If `pop` has taken a batch, but the caller didn't receive the batch, `pop` can return it again. A
  synchronous executor computes an interrupted batch again, or raises an error if a source may have lost the batch's
  data.
- *One caller.* If two threads take a batch at the same time, one of them gets an error. A forked process gets an error
  if it uses an executor of its parent, because the executor's threads don't exist in the forked process.
- *Shutdown.* Any thread may call `close`, at any time and repeatedly. Batches in flight (scheduled, but not taken) end
  with an error, and threads end after their current sample. The executor is also closed when the program drops its last
  reference to the executor, and when the interpreter exits.
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
    TakenBatch,
    ThreadStart,
    metadata_outputs,
)
from torchdali.execute.caching import CachedDataset, SampleCache
from torchdali.execute.checkpoint import labels
from torchdali.execute.process_state import has_thread_memory
from torchdali.execute.spans import span
from torchdali.execute.stages import StageRunner
from torchdali.execute.sync import CallerQueue, SingleCaller
from torchdali.execute.thread_pool import Job, ThreadPool
from torchdali.execute.timings import Stats
from torchdali.execute.workers.batches import BatchJob, Replicas
from torchdali.execute.workers.messages import BatchReply, read_failure
from torchdali.execute.workers.placing import Placement, may_see_changes
from torchdali.execute.workers.pool import WorkerPool
from torchdali.execute.workers.starting import Starter
from torchdali.execute.workers.worker import NotStarted, Worker
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan, list_nodes
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread
from torchdali.reading.cursor import Keys
from torchdali.reading.datasets import Indices, RecordNames
from torchdali.reading.file_lists import list_identity
from torchdali.reading.sources import BatchSource, SourceBatch
from torchdali.reading.user_random import seed_of_name
from torchdali.tensors import TensorList
from torchdali.threads import Thread, close_at_end, patience

__all__ = ["Executor"]

# `warnings.warn_explicit` uses this registry to show each of the replicas' warnings only once.
_warning_registry: dict[Any, Any] = {}


class Executor:
    """Runs the batches of a plan.

    Args:
        plan: The plan to run.
        settings: Batch size, seed, device and similar settings.
        readers: The state of each reader node.
        sources: The source of each source node.
        bad_samples: The policy for samples that fail.
        placement: The number of worker processes, and the stages that these processes run. None to use only this
            process.
        start: Function that creates the object that starts the worker processes; by default the class `Starter`.

    Raises:
        MemoryError: No memory is available for threads.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        readers: Mapping[Node, ReaderState],
        sources: Mapping[Node, BatchSource],
        bad_samples: BadSamples,
        placement: Placement | None = None,
        start: Callable[..., Any] = Starter,
    ) -> None:
        if not has_thread_memory():
            raise MemoryError("cannot allocate memory for the pipeline's threads; check `ulimit -v` (RLIMIT_AS)")
        self.placement = Placement(1) if placement is None else placement
        self.readers, self.sources, self.bad_samples = readers, sources, bad_samples
        self._sees_changes = any(map(may_see_changes, list_nodes(plan.stages)))
        # Start the processes before any thread, because the processes may be forked.
        starter, processes = self._start_processes(start, plan, settings, readers)
        self._labels = labels(plan.graph)
        self._caller_queue = CallerQueue() if settings.synchronous else None
        self._remote_stages, self._turns = (0, 0) if starter is None else (self.placement.stages, 0)
        self._stages = StageRunner(
            plan, settings, {node: reader.dataset for node, reader in readers.items()}, bad_samples,
            settings.thread_start(),
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
            _start_in_background(weakref.ref(self), starter, self._stages.threads)
        self._flight: list[InFlightBatch] = []  # a list and not a deque, because copying a deque is not atomic
        self._count = self._position = 0
        self._stopped = self._ended = self._is_lost = False
        self._interrupted: list[InFlightBatch] = []  # see `_rerun_interrupted`
        self._complete_count = 0  # number of batches in `_flight` before the batches in `_interrupted`
        self._scheduled = self._skipped = 0
        # Data of the next batch. If sources receive the same dictionary object again, they return the same data again.
        self._prepared: dict[Node, SourceBatch] = {}
        self._epoch_token: object = (
            None  # if `reset` is interrupted, the next call passes the same object to the sources
        )
        self.taken = TakenBatch(state=self.state())
        self._single_caller = SingleCaller()
        self._last_keys: Mapping[Node, Keys] = {}  # keys of the last batch that was drawn
        self._source_lock = threading.RLock()
        self._requests: queue.SimpleQueue[Executor | None] = queue.SimpleQueue()
        with keep_torch_threads(1) as ready:
            thread_start = ThreadStart(settings.max_pixels, settings.exact)
            self._scheduler = Thread(_schedule_batches, (self._requests, ready, thread_start), "torchdali-scheduler")
            self._scheduler.start()
        close_at_end(self)

    def _start_processes(
        self, start: Callable[..., Any], plan: Plan, settings: Settings, readers: Mapping[Node, ReaderState]
    ) -> tuple[Starter | None, list[Worker]]:
        if not self.placement.stages:
            return None, []
        try:
            starter = start(self.placement, plan, settings, readers, self.bad_samples)
            return starter, starter.start_all() if self.placement.waits_for_replicas else []
        except NotStarted as error:
            self.placement = Placement(1, reason=str(error))
        except (OSError, MemoryError) as error:
            self.placement = Placement(1, reason=f"a process could not be started: {error}")
        return None, []

    def _join(self, starter: Starter, processes: list[Worker], threads: ThreadPool) -> bool:
        """Let the started processes compute all later batches.

        Return False if the executor is closed. Then the caller must end the processes.
        """
        with self._lock:
            if self._closed:
                return False
            device = self.device_stream.device if self.device_stream.pins else None
            pool = WorkerPool(processes, partial(_run_on, threads), starter, device=device)
            # This assignment comes last, so that the scheduler thread reads either None or complete replicas.
            self.replicas = Replicas(starter.plan, self._remote_stages, self.readers, pool)
        return True

    @property
    def settings(self) -> Settings:
        return self._stages.settings

    @property
    def plan(self) -> Plan:
        return self._stages.plan

    def stats(self) -> Stats:
        """Return the times of the operators, and the state of the worker processes."""
        caches = tuple(cache.summary() for cache in self.caches)
        origins = [*(reader.dataset for reader in self.readers.values()), *self.sources.values()]
        remotes = {remote for each in origins for remote in getattr(each, "remotes", ())}
        stores = tuple(each.summary(self.profile.samples) for each in remotes)
        if self.replicas is None:
            return replace(self.profile.stats(self.buffers.bytes_out, caches=caches), stores=stores)
        used = self.buffers.bytes_out + self.replicas.bytes_out
        return replace(self.profile.stats(used, self.replicas.summary(), caches), stores=stores)

    @property
    def caches(self) -> list[SampleCache]:
        """The samples that each `fn.cache` has stored."""
        datasets = [reader.dataset for reader in self.readers.values()]
        return [each.cache for each in datasets if isinstance(each, CachedDataset)]

    @property
    def exits(self) -> tuple[str, ...]:
        """If worker processes died, a line with their number, then a line with the cause for each of them."""
        lines = () if self.replicas is None else self.replicas.summary()
        return lines if len(lines) > 1 else ()

    # ------------------------------------------------------------ the user's side

    @property
    def in_flight(self) -> int:
        """Number of batches that were scheduled and aren't taken yet."""
        # No lock is needed: only the user's thread adds and removes batches, and reading a list's length is atomic.
        self._settle()
        return len(self._flight)

    @property
    def empty(self) -> bool:
        """True if no scheduled batch remains to be taken.

        Reading this property may wait for the oldest batch in flight, because a source may end the epoch at this batch.
        """
        self._settle()
        if not self._flight:
            return True
        oldest = self._flight[0]
        if self.sources or oldest.request.ended:  # readers never end
            self._wait(oldest)
        return isinstance(oldest.outcome.error, StopIteration)

    @property
    def stopped(self) -> bool:
        """True if a source has ended. Reading this property may wait for the batches in flight."""
        if self.sources and self._flight and not self._stopped:
            # The scheduler thread writes `_stopped` before it sets the batch's event `finished`, and this thread reads
            # `_stopped` after the event.
            self._wait(self._flight[-1])
        return self._stopped

    @property
    def taken_state(self) -> Mapping[str, Any]:
        """The pipeline's position after the batch that was taken last."""
        return self.taken.state

    def release(self) -> None:
        """Drop the reference to the batch that was taken last."""
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
        """Schedule one more batch. Call the batch's sources before returning.

        In a synchronous executor, this method also computes the batch before returning, unless `_must_wait` postpones
        the batch until the user takes it.

        Args:
            ended: Schedule the end of the epoch instead of a batch.
            random_keys: Keys of the random numbers. By default, the random numbers depend on the batch's position.
            records: Indices of the records that each reader reads. The readers' positions then don't change. None for
                the next records of the epoch.
            fed: Data for some of the sources. These sources are not called for this batch.
            tag: A value that is stored with the batch, so that the caller can recognize the batch later.
        """
        self._check_open()
        self._check_not_lost()
        if self._interrupted:
            with self._single_caller.lock():
                self._rerun_interrupted()
        with self._source_lock:  # not under `_lock`: close() must not wait for the user's code
            self._ended |= ended
            request = BatchRequest(
                ended=ended, random_keys=random_keys, records=records, skipped=self._skipped, fed=fed or {}, tag=tag
            )
            batch = InFlightBatch(draw=BatchDraw(size=self.settings.batch_size), request=request)
            if not self._ended and not self._stopped:
                self._prepare(batch)
            self._put_in_flight(batch)

    def _settle(self) -> None:
        """Finish the work that an interrupt may have prevented.

        If the oldest batch in flight was already taken, remove the batch. If the data in `_prepared` already belongs to
        a batch in flight, clear `_prepared`.
        """
        flight = self._flight
        if flight and flight[-1].prepared is self._prepared:
            self._prepared, self._skipped = {}, 0
        if flight and flight[0] is self.taken.batch:
            del flight[0]

    def skip(self, count: int) -> None:
        """Skip a number of batches after the last scheduled batch."""
        self._check_open()
        if self.sources:
            raise RuntimeError(
                f"skip() needs a pipeline that gets all of its data from readers; this pipeline has the source "
                f"{next(iter(self.sources)).name!r}, whose batches cannot be skipped"
            )
        self._skipped += count

    def _prepare(self, batch: InFlightBatch) -> None:
        """Get the next batch's data from all sources that must run in this thread, in the graph's order.

        If an interrupt ends this method, the sources' data so far is still in `_prepared`. The next call of this method
        then calls only the remaining sources.
        """
        # The batch belongs to this thread until `_request` passes it to the scheduler thread.
        batch.prepared = self._prepared
        for node, source in self.sources.items():
            if node in batch.request.fed:
                continue
            if node not in self._prepared:
                started = time.perf_counter()
                prepare = partial(source.prepare, self.settings.batch_size, self._prepared)
                # Unpacking runs the generator to its end. If the generator were closed early, an interrupt could be
                # lost.
                (prepared,) = _prepare_in_generator(prepare)
                if prepared is None:
                    continue
                self._prepared[node] = prepared
                size = len(prepared.outputs[0]) if prepared.outputs else 1
                self.profile.record_step(node, started, max(1, size), self._scheduled)
        prepared_batches = self._prepared
        self._ended = any([isinstance(each.error, StopIteration) for each in prepared_batches.values()])
        if any([each.is_repeated for each in prepared_batches.values()]):
            # If a source has raised an exception and will return the same batch again, this batch gets only the
            # exception. The other sources' data is stored for the next batch.
            batch.prepared = {node: each for node, each in prepared_batches.items() if each.is_repeated}
            self._prepared = {node: each for node, each in prepared_batches.items() if not each.is_repeated}

    def _put_in_flight(self, batch: InFlightBatch) -> None:
        with self._lock:
            self._check_open()
            # Only the user's thread adds batches in flight, under the lock. If `close` runs in another thread, `close`
            # reads a copy of the list, and copying a list is atomic.
            if self._caller_queue is not None:
                batch.backup = dict(batch.prepared)
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
        """Start the batches in flight that were not started yet. Repeated calls are harmless."""
        if self._caller_queue is None:
            # The batches now belong to the scheduler thread. Only while the scheduler thread handles this request, it
            # holds a reference to the executor (see `_schedule_batches`).
            self._requests.put(self)
        else:
            with self._caller_queue.as_task(), torch.no_grad(), self.settings.apply():
                self.start()

    def _wait(self, batch: InFlightBatch) -> None:
        """Wait for a batch.

        The waits have timeouts, so that this thread notices if another thread has called `close`.
        """
        # Set `is_awaited` before the request. If the scheduler thread has held the batch back, the request makes the
        # scheduler thread read `is_awaited` again.
        batch.is_awaited = True
        if batch.draw.index < 0:
            self._request()
        if self._caller_queue is None:
            while not batch.finished.is_set():
                self._check_open()
                # The batch belongs to the thread that runs the last stage, until that thread sets the event. From then
                # on, the batch belongs to this thread.
                batch.finished.wait(1.0)
        elif not batch.finished.is_set():
            with torch.no_grad(), self.settings.apply():
                while not batch.finished.is_set():
                    self._check_open()
                    # The worker thread that finishes a chain puts a task for the next stages into the queue. From then
                    # on, the batch belongs to this thread, and this thread runs the next stages.
                    self._caller_queue.run_next(timeout=1.0)

    def _abandon_interrupted(self, caller_queue: CallerQueue) -> None:
        """End the batches that an interrupt left incomplete, so that `_rerun_interrupted` computes these batches again.

        Only a synchronous executor calls this method, because the interrupted thread computed these batches.
        """
        started = [batch for batch in self._flight if batch.draw.index >= 0]
        interrupted = [batch for batch in started if not batch.finished.is_set() or _is_interrupt(batch.outcome.error)]
        if interrupted and not self._interrupted:
            complete_count = self._flight.index(interrupted[0])
            self._interrupted, self._complete_count = self._flight[complete_count:], complete_count
        for batch in interrupted:
            # A source whose data isn't in `backup` may have advanced past this batch, and can't return the batch's data
            # again.
            self._is_lost |= any(node not in batch.backup and node not in batch.request.fed for node in self.sources)
            batch.outcome.error = KeyboardInterrupt()
            batch.finished.set()
        self._stages.reset_order(self._count, self._turns)
        caller_queue.interrupted = False

    def pop(self, stream: Any = None, after: int | None = None) -> InFlightBatch:
        """Wait for the oldest batch, take it and return it.

        Args:
            stream: The stream on which the caller will use the batch; see `DeviceStream.hand_over`.
            after: Number of batches that the caller has received. If `pop` has already taken more batches than this
                number, an interrupt prevented the caller from receiving the last batch. Then `pop` returns the last
                batch again.

        Raises:
            StopIteration: A source has ended.
            RuntimeError: No batch was scheduled, or the executor was closed.
            BaseException: The error of the batch.
        """
        self._check_open()
        self._check_not_lost()
        self.profile.note_request(sum([batch.finished.is_set() for batch in self._flight.copy()]))
        with self._single_caller.lock():
            batch = self._take_oldest() if after is None or after >= self.taken.number else self.taken.batch
        if batch is None:
            raise RuntimeError(
                "the error of this batch is unknown, because an interrupt arrived before the error was raised"
            )
        # The error's frames refer to the batch. To avoid a cycle of references, the batch drops its error.
        error, batch.outcome.error = batch.outcome.error, None
        if error is not None:
            self.taken = self.taken.release()
            try:
                raise error
            finally:
                # The error's traceback refers to this frame, and this frame refers to the error. Break this cycle.
                del error
        self.bad_samples.check_budget(batch)
        self.profile.note_delivery(batch.draw.size)
        # The caller's stream waits for this batch's kernels. The caller's thread doesn't wait.
        self.device_stream.hand_over(batch.outcome.outputs, batch.outcome.ready, stream)
        return batch

    def _take_oldest(self) -> InFlightBatch:
        if not self._flight and not self._interrupted:
            raise RuntimeError("no batch was scheduled: call schedule_run() before asking for outputs")
        self.taken = self.taken.release()
        if self._interrupted:
            self._rerun_interrupted()
        with span("wait for a batch", self.settings.device):
            batch = self._flight[0]
            self._wait(batch)
        if self._caller_queue is not None and _is_interrupt(batch.outcome.error):
            self._caller_queue.interrupted = True
            raise KeyboardInterrupt
        # `draw.state` is the position after this batch. Therefore a checkpoint doesn't count the batches in flight.
        number = self.taken.number + (not isinstance(batch.outcome.error, StopIteration))
        # If an interrupt arrives before this assignment, the batch is still in flight, and the next call takes it.
        self.taken = TakenBatch(number, batch, batch.request.tag, batch.draw.state)
        self._settle()
        return batch

    def _rerun_interrupted(self) -> None:
        """Compute the interrupted batches of a synchronous executor again.

        Another interrupt may end this method at any point. Therefore `_interrupted` contains the batches until all of
        them are scheduled.
        """
        interrupted, complete_count = self._interrupted, self._complete_count
        del self._flight[complete_count:]
        self._count = min((batch.draw.index for batch in interrupted if batch.draw.index >= 0), default=self._count)
        self._stages.reset_order(self._count, self._turns)
        before = self._flight[complete_count - 1] if complete_count else None
        self._restore_readers(self.taken_state if before is None else before.draw.state)
        self._last_keys = {} if before is None else before.draw.keys
        for batch in interrupted:
            self.bad_samples.pop(batch.draw.index)
            draw = BatchDraw(size=self.settings.batch_size)
            new = InFlightBatch(draw=draw, request=batch.request, prepared=dict(batch.backup))
            self._put_in_flight(new)
        self._interrupted = []

    def reset(self) -> None:
        """Drop the batches in flight, and start the next epoch of all sources that have ended."""
        # Once no batch is in flight, the scheduler thread sleeps until the next call of `schedule`. Meanwhile, only
        # this thread accesses the sources and the counters.
        self._check_open()
        self._interrupted = []
        with self._single_caller.lock():
            for newest in reversed(self._flight.copy()):
                self._wait(newest)
                for node, prepared in newest.prepared.items():
                    self.sources[node].take_back(prepared)
                self._flight.remove(newest)
        self._epoch_token = self._epoch_token or object()
        for source in self.sources.values():
            source.reset(self._epoch_token)
        self.taken = self.taken._replace(state={**self.state(), "stopped": False})
        self._stopped, self._ended, self._epoch_token = False, False, None

    def _drop_flight(self) -> None:
        """Wait for the batches in flight, and drop them. The caller must hold the lock."""
        while self._flight:
            self._wait(self._flight[0])
            del self._flight[0]

    def close(self) -> None:
        """End all threads and processes, fail the batches in flight, and close the caches."""
        if os.getpid() != self._process:
            return  # in a forked process, the threads don't exist, and the lock may never be released
        with self._lock:
            if self._closed:
                return
            self._closed = True
        # Close the sources first, because the scheduler thread may be waiting inside a source, for `feed_input` or for
        # a worker process. Then it wouldn't read the None below.
        for source in self.sources.values():
            source.close()
        # None ends the scheduler thread after the remaining requests. The scheduler thread never waits for the worker
        # threads, so the worker threads may end earlier.
        self._requests.put(None)
        if self.replicas is not None:
            self.replicas.pool.close()
        self._stages.close()
        if self._scheduler is not threading.current_thread():
            self._scheduler.join(patience())
        # The threads have ended, so the batches belong to this thread. If a thread didn't end before the timeout, it is
        # still running the user's code. When that code returns, the batch is already finished, and the thread doesn't
        # access the batch any more.
        for batch in self._flight.copy():
            error = RuntimeError("the pipeline was closed while this batch was in flight")
            self._stages.finish(batch, error)
        for cache in self.caches:
            cache.close()

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this pipeline was built in process {self._process}, and its threads do not exist in process "
                f"{os.getpid()}, which was forked from it; build a pipeline in each process that runs one"
            )
        if self._closed:
            raise RuntimeError("the pipeline is closed")
        self._settle()
        if self._caller_queue is not None and self._caller_queue.interrupted:
            self._abandon_interrupted(self._caller_queue)

    def _check_not_lost(self) -> None:
        if self._is_lost:
            raise RuntimeError(
                "a source of this synchronous pipeline was interrupted during a batch, and may have lost the batch; "
                "build the pipeline again, or resume from a state_dict()"
            )

    # ------------------------------------------------------------ starting a batch (scheduler thread)

    def start(self) -> None:
        """Start the batches in flight in order, up to the first batch that must wait until the user takes it."""
        for batch in self._flight.copy():
            if self._closed or (batch.draw.index < 0 and self._must_wait(batch)):
                return
            if batch.draw.index < 0:
                # From here on, the batch belongs to the scheduler thread (in a synchronous executor, to the user's
                # thread), until it is passed to the workers of a chain or to a replica.
                self._start(batch)

    def _must_wait(self, batch: InFlightBatch) -> bool:
        """Return whether a batch must wait until the user takes it.

        Only the first batch of an epoch waits. It waits if the user's functions may read values that the program
        changes meanwhile. It also waits if its data is in a remote store, so that no data is requested for an epoch
        that the program doesn't use.
        """
        if batch.is_awaited or self.sources or batch.request.ended or batch.request.records is not None:
            return False
        return any(
            (self._sees_changes or reader.is_remote)
            and reader.crosses_epoch(self.settings.batch_size, self._last_keys[node])
            for node, reader in self.readers.items()
            if node in self._last_keys
        )

    def _start(self, batch: InFlightBatch) -> None:
        try:
            # Only the scheduler thread runs this method, in the order of the requests. Therefore the counters and the
            # readers' cursors need no lock.
            batch.draw.index, self._count = self._count, self._count + 1
            if self._stopped or batch.request.ended:
                raise StopIteration
            batch.draw.position = self._position
            # Read the attribute once per batch, because replicas may become ready at any moment. If this process starts
            # to read a batch's records, this process must also compute the batch.
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
        """Start the stages of a batch, in this process or in a replica."""
        if replicas is None:
            batch.draw.turn, self._turns = self._turns, self._turns + 1
            self._stages.begin(batch)
            return
        try:
            # From here on, the batch belongs to the replica. When the replica has replied, the batch belongs to the
            # thread that calls `_on_reply`.
            replicas.submit(batch, self.settings.seed, self.profile.is_traced, self._on_reply)
        except BaseException as error:  # for example because shared memory is full
            self._stages.fail(batch, error, first=self._remote_stages)

    def _on_reply(self, job: BatchJob) -> None:
        """Continue a batch after its first stages ran in a replica."""
        if self._caller_queue is None:
            self._handle_reply(job)
        else:
            self._caller_queue.put(partial(self._handle_reply, job))

    def _handle_reply(self, job: BatchJob) -> None:
        batch, reply, first = job.batch, job.reply, self._remote_stages
        if batch.finished.is_set():
            return  # the executor was closed, or an interrupt ended the batch
        assert self.replicas is not None
        try:
            if reply is not None:
                self._record_reply(batch, reply)
            if job.error is not None:
                raise job.error
            self.replicas.store_results(batch, job.values)
        except BaseException as error:
            self._stages.fail(batch, error, first=first)
        else:
            self._stages.resume(batch, first)
        finally:
            job.error, job.values = None, {}

    def _record_reply(self, batch: InFlightBatch, reply: BatchReply) -> None:
        """Record a replica's measurements and warnings, and the samples that it dropped."""
        nodes = self.plan.graph.nodes
        for text, category, file, line in reply.warnings:
            warnings.warn_explicit(text, category, file, line, registry=_warning_registry)
        self.profile.add_times(reply.times, nodes)
        self.memory.add({nodes[k].outputs[i]: sizes for (k, i), sizes in reply.sizes.items()})
        self.bad_samples.add(batch, reply.bad, reply.original_indices)
        batch.outcome.bad_samples += [(count, read_failure(failure)) for count, failure in reply.budget]

    def _draw(self, batch: InFlightBatch, replicas: Replicas | None) -> None:
        """Get the sources' data, choose the records of each reader, and note the position after the batch.

        If this process reads the records, start to read them.
        """
        self._skip_batches(batch.request.skipped)
        is_repeated = any(each.is_repeated for each in batch.prepared.values())
        try:
            sizes = self._call_sources(batch)
        except StopIteration:
            raise
        except Exception:
            if not is_repeated:
                for reader in self.readers.values():  # the readers also advance past this batch
                    reader.next_keys(self.settings.batch_size, batch.request.records)
            raise
        for node, reader in self.readers.items():
            batch.draw.keys[node] = keys = reader.next_keys(self.settings.batch_size, batch.request.records)
            if replicas is None or replicas.is_read_by_main(node):
                batch.draw.reads[node] = reader.start_reads(keys, self.settings.batch_size, batch.request.records)
            batch.values.update(metadata_outputs(node, reader.dataset, keys.records))
            sizes[node] = len(keys.records)
        if len(set(sizes.values())) > 1:
            raise RuntimeError(_describe_clash(sizes))
        if batch.request.records is None:
            self._last_keys = batch.draw.keys
        batch.draw.size = next(iter(sizes.values()), self.settings.batch_size)
        self._position += batch.draw.size
        batch.draw.info = self._source_infos(batch)
        batch.draw.state = self.state()

    def _skip_batches(self, count: int) -> None:
        for _ in range(count):
            for reader in self.readers.values():
                reader.cursor.next_batch(self.settings.batch_size)
            self._position += self.settings.batch_size

    def _call_sources(self, batch: InFlightBatch) -> dict[Node, int]:
        """Get the batch's data from every source. Return the number of samples of each source.

        If a source fails or has ended, the other sources are still called, as in DALI. Afterwards, the method raises
        the first error, or StopIteration if no source failed.
        """
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
                self.profile.record_step(node, started, max(1, len(outputs[0])), batch.draw.index)
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
        """Copy the data of a source to the device of its node."""
        move = self.device_stream.to_cpu if node.device == "cpu" else self.device_stream.adopt
        # The batch's steps are enqueued later on the same stream, so the steps see the copies without an event, even if
        # another thread enqueues the steps.
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
        """Return the position after the last batch that was started, as JSON values for a checkpoint."""
        return {
            "seed": self.settings.seed,
            "position": self._position,
            "stopped": self._stopped,
            "readers": {self._labels[n]: r.cursor.state() for n, r in self.readers.items()},
            "sources": {self._labels[n]: s.state() for n, s in self.sources.items()},
        }

    def file_lists(self) -> dict[str, str]:
        """Return a digest of each reader's list of files. Readers without a list of files are not included."""
        lists = {self._labels[node]: list_identity(reader.dataset) for node, reader in self.readers.items()}
        return {label: identity.hex() for label, identity in lists.items() if identity is not None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a position from `state`. Batches in flight are dropped."""
        self._check_open()
        self._interrupted = []
        with self._single_caller.lock():
            self._drop_flight()
        self._restore_readers(state)
        for node, source in self.sources.items():
            source.reseed(seed_of_name(state["seed"], node.name))
            source.restore(state["sources"][self._labels[node]])
        self._prepared, self._skipped, self._is_lost, self._ended = {}, 0, False, self._stopped
        self.taken = TakenBatch(self.taken.number, state=self.state())

    def _restore_readers(self, state: Mapping[str, Any]) -> None:
        # No batch is in flight, so only this thread accesses the cursors, settings and counters.
        for node, reader in self.readers.items():
            reader.cursor.restore(state["readers"][self._labels[node]])
            if reader.processes is not None:
                reader.processes.seed = seed_of_name(state["seed"], node.name)
        self._stages.settings = replace(self.settings, seed=state["seed"])
        self._position, self._stopped, self._last_keys = state["position"], state["stopped"], {}


def _start_in_background(executor: weakref.ref[Executor], starter: Starter, threads: ThreadPool) -> None:
    """Start processes in a separate thread, while this process computes the first batches.

    While the processes start, the thread holds no reference to the executor. The thread isn't a daemon: a daemon thread
    could free a tensor of the executor while the interpreter exits, and this would abort the process.
    """

    def start() -> None:
        try:
            started = starter.start_all()
        except NotStarted as error:
            if (owner := executor()) is not None:
                owner.placement = Placement(1, reason=str(error))
            return
        owner = executor()
        if owner is None or not owner._join(starter, started, threads):
            WorkerPool(started, partial(_run_on, threads), starter).close()

    threading.Thread(target=start, name="torchdali-start", daemon=False).start()


def _run_on(threads: ThreadPool, function: Callable[[], None]) -> None:
    """Run a function on one of the pool's threads, before all other jobs."""

    def run(_: int) -> None:
        function()

    # `order=-1` puts the job before all other jobs, because a batch waits for this function.
    threads.submit(Job(run, 1, _noop, order=-1))


def _noop(failures: dict[int, BaseException]) -> None:
    pass


def _prepare_in_generator(prepare: Callable[[], SourceBatch | None]) -> Iterator[SourceBatch | None]:
    """Call a source from a generator, because a finished generator's frame doesn't refer to the caller's frame.

    If a source raises an exception, the executor stores the exception. With a normal call, the exception's traceback
    would refer to the pipeline, and only the garbage collector could free the pipeline.
    """
    yield prepare()


def _is_interrupt(error: BaseException | None) -> bool:
    return isinstance(error, KeyboardInterrupt)


def _describe_clash(sizes: Mapping[Node, int]) -> str:
    """Return the message for sources with different batch sizes, with the user's lines that created the sources."""
    first, size = next(iter(sizes.items()))
    other, its_size = next((node, count) for node, count in sizes.items() if count != size)
    return (
        f'Batch size clash! The input operator "{other.name}" returned a batch size {its_size} which is different than '
        f'{size} returned by "{first.name}". All sources must return the same number of samples per batch\n  '
        f"{other.where}\n  {first.where}"
    )


def _schedule_batches(
    requests: queue.SimpleQueue[Executor | None],
    ready: threading.Barrier,
    thread_start: ThreadStart,
) -> None:
    """Start the batches of each request, until None is received. This is the scheduler thread's main function.

    Between requests, the thread holds no reference to the executor.
    """
    use_one_torch_thread(ready)
    thread_start(0)
    with torch.no_grad():
        while (executor := requests.get()) is not None:
            executor.start()
            del executor
