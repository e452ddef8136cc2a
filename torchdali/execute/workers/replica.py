"""A replica: a worker process that computes batches.

A replica runs the first *stages* (groups of operators) of a pipeline, with the same code as a pipeline without worker
processes. The replica's main thread receives messages, and its other threads run the stages. The replica ends when the
pipeline's main process closes the connection or ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import BatchDraw, BatchRequest, InFlightBatch, Settings, ThreadStart, metadata_outputs
from torchdali.execute.chain_run import ChainRun
from torchdali.execute.chunks import runs_user_code
from torchdali.execute.compiled_chain import ChunkMode
from torchdali.execute.process_state import ProcessId, has_thread_memory
from torchdali.execute.stages import StageRunner
from torchdali.execute.workers.batches import needed_after
from torchdali.execute.workers.channel import Channel, kill_suspended_server, prepare_worker
from torchdali.execute.workers.messages import (
    BatchReply,
    Ready,
    Refused,
    SentDraw,
    receive,
    send,
    write_failure,
)
from torchdali.execute.workers.placing import has_user_code
from torchdali.execute.workers.served import NO_MEMORY
from torchdali.formats.shared_value import mark_new_values_as_copies
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Plan, is_metadata
from torchdali.reading.datasets import Dataset, RecordNames, start_reads
from torchdali.reading.user_random import seed_sample, seed_worker
from torchdali.tensors import TensorList
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["ReplicaTask", "SampleSeeds", "compute_batches", "serve"]


@dataclass
class ReplicaTask:
    """The work of a replica.

    Attributes:
        plan: Plan of the whole pipeline.
        stages: Number of stages that run in the replica. Stage 0 is the first of them.
        datasets: Opened datasets of these stages' readers, by reader.
        settings: Settings of the pipeline, but with this replica's number of threads.
        first_thread: Index of the replica's first thread among all threads of the pipeline.
        cores: Cores on which the replica's threads run; empty for all cores.
        bad_samples: The policy for samples that fail.
    """

    plan: Plan
    stages: int
    datasets: Mapping[Node, Dataset]
    settings: Settings
    first_thread: int
    cores: tuple[int, ...]
    bad_samples: BadSamples


class SampleSeeds:
    """Seeds the global random generators of `random`, `numpy.random` and torch before the user's code gets a sample.

    Each sample has its own seed. Therefore the user's code gets the same random numbers for a sample in any thread, and
    with any number of processes. All threads of a process share the global generators, so only one sample at a time can
    run through the user's code. If the user's function processes a whole batch, the first sample's seed is used.
    """

    _lock = threading.Lock()

    def __init__(self, seed: int, batch: InFlightBatch) -> None:
        self._seed = seed
        uses_sample_keys = batch.request.random_keys is None
        epochs, records = batch.draw.sample_keys()
        self._epochs: Sequence[int] = epochs.tolist() if uses_sample_keys else [0] * batch.draw.size
        self._records: Sequence[int] = records.tolist() if uses_sample_keys else range(batch.draw.size)

    @contextlib.contextmanager
    def of(self, sample: int) -> Iterator[None]:
        """Seed the generators for a sample at the start of a `with` block. Other samples wait for the block's end."""
        with self._lock:
            seed_worker(self._seed)
            seed_sample(self._epochs[sample], self._records[sample])
            yield


def serve(connection: Any, create_task: Callable[[], ReplicaTask], main_process: ProcessId) -> None:
    """Compute batches until the main process closes the connection or ends. Then end this process."""
    server, channel = os.getppid(), Channel(connection)
    if has_thread_memory():
        prepare_worker(main_process)
        compute_batches(channel, create_task)
        kill_suspended_server(main_process, server)
    else:
        channel.send(Refused("memory can't be allocated; check `ulimit -v` (RLIMIT_AS)"))
    os._exit(0)


def compute_batches(channel: Channel, create_task: Callable[[], ReplicaTask]) -> None:
    """Compute batches until the main process closes the connection or ends.

    Args:
        channel: The connection to the main process.
        create_task: Function that creates the task. If it raises an error, the main process receives the error.
    """
    mark_new_values_as_copies()
    with contextlib.suppress(ConnectionError):
        try:
            replica = _Replica(channel, create_task())
        except Exception as error:
            channel.send(Refused(f"{type(error).__name__}: {error}"))
            return
        replica.run()


class _Stages(StageRunner):
    """The stages of a replica. They pass each finished batch to the function `hand_over`."""

    def __init__(self, task: ReplicaTask, buffers: BufferPool, hand_over: Callable[[InFlightBatch], None]) -> None:
        start, first = task.settings.thread_start(), task.first_thread
        super().__init__(
            task.plan, task.settings, task.datasets, task.bad_samples, lambda number: start(first + number),
            remote_stages=task.stages, end=task.stages, buffers=buffers,
        )  # fmt: skip
        self._hand_over = hand_over

    def finish(self, batch: InFlightBatch, error: BaseException | None = None) -> None:
        """Pass a finished batch to `hand_over`. If the batch failed because memory is exhausted, end the process."""
        if _is_out_of_memory(error):
            os._exit(NO_MEMORY)  # another replica will compute the batch, and may have enough memory
        batch.outcome.error = error
        batch.finished.set()
        self._hand_over(batch)

    def _bind(self, run: ChainRun, mode: ChunkMode) -> Callable[[range], Collection[int]]:
        function = super()._bind(run, mode)
        if not has_user_code(run.bound.chain):
            return function
        seeds = SampleSeeds(self.settings.seed, run.batch)

        def run_seeded(samples: range) -> Collection[int]:
            with seeds.of(samples.start):
                return function(samples)

        return run_seeded

    def _results(self, batch: InFlightBatch, node: Node) -> tuple[TensorList, ...]:
        if not runs_user_code(node) or batch.draw.size == 0:
            return super()._results(batch, node)
        with SampleSeeds(self.settings.seed, batch).of(0):
            return super()._results(batch, node)


class _Replica:
    def __init__(self, channel: Channel, task: ReplicaTask) -> None:
        self._channel, self._task = channel, task
        self._turns = 0
        self._warnings: list[tuple[str, type[Warning], str, int]] = []
        warnings.showwarning = self._collect_warning  # the main process shows the warnings
        index = task.plan.index
        self._needed = [
            (index[edge.source], edge)
            for edge in needed_after(task.plan, task.stages)
            if edge.source is not None and edge.source.operator.kind != "source" and not is_metadata(edge)
        ]
        if task.cores:
            os.sched_setaffinity(0, task.cores)  # threads that are started later inherit these cores
        ThreadStart(task.settings.max_pixels, task.settings.exact)(task.first_thread)
        self._stages = _Stages(task, channel.buffers, self._hand_over)
        self._numbers: dict[int, int] = {}  # numbers of the messages that requested batches, by `BatchDraw.turn`
        channel.send(Ready({index[n]: len(d) for n, d in task.datasets.items()}))

    def run(self) -> None:
        """Process messages until the connection ends."""
        with torch.no_grad():
            for message in self._channel.messages():
                self._begin_batch(message)

    def _collect_warning(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
    ) -> None:
        with self._channel.lock:
            self._warnings.append((str(message), category, filename, lineno))

    def _begin_batch(self, draw: SentDraw) -> None:
        """Begin a batch that the main process requested. This method runs in the main thread."""
        # Only this thread frees blocks, starts reads and assigns turns, so no lock is needed. The batch belongs to this
        # thread until `begin` or `fail`, and then to the threads that run its stages.
        self._channel.views.record_job(draw.number)
        self._channel.free(draw.returned)
        batch = InFlightBatch(
            draw=BatchDraw(size=draw.size, index=draw.index, position=draw.position, turn=self._turns),
            request=BatchRequest(random_keys=draw.random_keys),
        )
        self._numbers[self._turns] = draw.number
        self._turns += 1
        if draw.traced and not self._stages.profile.is_traced:
            self._stages.profile.trace()
        if draw.seed != self._stages.settings.seed:
            self._stages.settings = replace(self._stages.settings, seed=draw.seed)
        nodes = self._task.plan.graph.nodes
        try:
            for (k, i), value in draw.values.items():
                batch.values[nodes[k].outputs[i]] = receive(value, self._channel.views.tensor)
            for k, keys in draw.keys.items():
                node = nodes[k]
                batch.draw.keys[node] = keys
                dataset = self._task.datasets.get(node)
                if dataset is None:
                    continue
                batch.draw.reads[node] = start_reads(dataset, keys.records.tolist(), keys.epochs.tolist())
                batch.values.update(metadata_outputs(node, dataset, keys.records))
            batch.draw.info = self._infos(batch)
        except Exception as error:
            self._stages.fail(batch, error)
            return
        self._stages.begin(batch)

    def _infos(self, batch: InFlightBatch) -> Sequence[str] | None:
        for node, keys in batch.draw.keys.items():
            dataset = self._task.datasets.get(node)
            return None if dataset is None else RecordNames(dataset.info, keys.records)
        for value in batch.values.values():
            if value.source_infos is not None:
                return list(value.source_infos)
        return None

    def _hand_over(self, batch: InFlightBatch) -> None:
        """Send a finished batch to the main process, in the thread that ran its last stage."""
        try:
            self._send_reply(batch)
        except OSError:
            os._exit(1)  # the main process has ended, or memory is exhausted
        except Exception as error:
            batch.outcome.error = error
            batch.values.clear()
            self._send_reply(batch)

    def _send_reply(self, batch: InFlightBatch) -> None:
        shared_tensors: list[torch.Tensor] = []
        values = {}
        error, batch.outcome.error = batch.outcome.error, None
        if error is None:
            values = {
                (k, edge.index): send(batch.values[edge], self._channel.buffers, shared_tensors)
                for k, edge in self._needed
                if edge in batch.values
            }
        index = self._task.plan.index
        # The tensors in `shared_tensors` are in shared memory. After `Channel.send`, the main process reads them. They
        # must exist until the main process sends the numbers of their blocks back.
        sizes = self._stages.memory.pop() if self._stages.settings.memory_stats else {}
        with self._channel.lock:
            reply = BatchReply(
                number=self._numbers.pop(batch.draw.turn),
                values=values,
                original_indices=None if batch.draw.original_indices is None else tuple(batch.draw.original_indices),
                error=None if error is None else write_failure(error),
                bad=self._task.bad_samples.pop(batch.draw.index),
                budget=tuple((count, write_failure(each)) for count, each in batch.outcome.bad_samples),
                times=self._stages.profile.pop_times(index),
                sizes={(index[_source(e)], e.index): size for e, size in sizes.items()},
                warnings=tuple(self._warnings),
            )
            self._warnings.clear()
            self._channel.send(reply, values.values(), shared_tensors)
        batch.values.clear()


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that the system's memory is exhausted."""
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        error = error.__cause__
    return False


def _source(edge: DataNode) -> Node:
    assert edge.source is not None
    return edge.source
