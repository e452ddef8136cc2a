"""Run batches through the stages of a plan.

A stage first runs its *steps* (operators that process a whole batch). A step runs in any thread, but only for one batch
at a time, and in the order of the batches. Then the thread pool runs the stage's *chain* (operators that process one
sample after the other): the threads share the batch's samples. The thread that finishes the last sample starts the
next stage, so that no thread ever waits for a batch. Worker processes called *replicas* may run the first stages.

An *edge* is an output of an operator. If `bad_samples` lets the pipeline continue after errors, failed samples are
dropped or replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from torchdali.calls.chunk_function import reports
from torchdali.calls.layouts import matching_layout
from torchdali.calls.running import FunctionCache
from torchdali.errors import DecodeError, StoreError, is_batch_level, locate_error
from torchdali.execute.bad_samples import BadSamples, nodes_to_rerun
from torchdali.execute.batch import InFlightBatch, Settings
from torchdali.execute.chain_run import ChainRun
from torchdali.execute.compiled_chain import ChunkMode, CompiledChain, set_assumed_layout
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.hardware_decoding import HardwareDecoding
from torchdali.execute.memory_stats import MemoryStats
from torchdali.execute.output_buffer import DeviceImages, OutputBuffer
from torchdali.execute.source_info import read_edges, source_edges
from torchdali.execute.spans import add_span, span, wants_spans
from torchdali.execute.steps import deliver, find_failures, run_step
from torchdali.execute.sync import CallerQueue, Sequencer
from torchdali.execute.thread_pool import Job, ThreadPool
from torchdali.execute.timings import ChainTimings, Profile
from torchdali.execute.transfers import edges_to_upload, is_uploaded, order_device_last
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Plan, edges, may_share
from torchdali.kernels.memory import Allocator
from torchdali.reading.datasets import Dataset, RecordNames, missing_output, source_namer
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList
from torchdali.tensors._storage import PackedSamples
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["StageRunner"]

Done = Callable[[dict[int, BaseException]], None]


class StageRunner:
    """Runs batches through the stages of one plan, with its own threads, memory and device stream.

    Args:
        plan: The plan.
        settings: Settings of the pipeline.
        datasets: The dataset of each reader that runs in this process.
        bad_samples: The policy for samples that fail.
        start: Function that each thread calls first, with its index.
        remote_stages: Number of stages that a replica may run. Stage 0 is the first of them.
        end: Number of stages that this process runs. Stage 0 is the first of them. None for all stages.
        caller_queue: In a synchronous pipeline, a queue of tasks for the user's thread; otherwise None.
        buffers: Pool of memory for results; None to create a pool.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        datasets: Mapping[Node, Dataset],
        bad_samples: BadSamples,
        start: Callable[[int], None],
        *,
        remote_stages: int = 0,
        end: int | None = None,
        caller_queue: CallerQueue | None = None,
        buffers: BufferPool | None = None,
    ) -> None:
        self.plan, self.settings, self._datasets, self._bad_samples = plan, settings, datasets, bad_samples
        self._may_share = may_share(plan.graph.outputs)
        self._remote_stages, self._caller_queue = remote_stages, caller_queue
        self._end = len(plan.stages) if end is None else end
        self.device_stream = DeviceStream(settings.device, settings.stream_priority, settings.one_stream)
        self.buffers = BufferPool(pinned=self.device_stream.pins) if buffers is None else buffers
        self.profile, self.memory = Profile(), MemoryStats()
        self.threads = ThreadPool(settings.num_threads, start)
        delivered = [edge for s in plan.stages if s.chain for edge in s.chain.outputs]
        self._decoder = HardwareDecoding(
            self.device_stream, self.buffers, settings.batch_size, settings.num_threads, delivered
        )
        self._chains = [
            CompiledChain(s.chain, datasets, self.profile.record_fallback, self._empty()) if s.chain else None
            for s in plan.stages
        ]
        # The prepared operators of each step. Threads add entries without a lock. Two threads may add entries for the
        # same step at the same time if one of them reruns the step without bad samples. Then the entries are
        # equivalent.
        self._function_caches: dict[Node, FunctionCache] = {n: {} for s in plan.stages for n in s.steps}
        self._source_edges = [source_edges(s.chain.nodes if s.chain else ()) for s in plan.stages]
        self._output_buffers = {edge: OutputBuffer(self.buffers, self._uses_packing(edge)) for edge in delivered}
        self._orders = [order_device_last(s.steps) for s in plan.stages]
        self._uploads = [
            edges_to_upload([node for s in plan.stages[i:] for node in s.steps]) for i in range(len(plan.stages))
        ]
        self.reset_order(0, 0)

    def close(self) -> None:
        """End the threads."""
        self._decoder.close()  # first, because its thread submits jobs to `threads`
        self.threads.close()
        self.device_stream.close()

    def _empty(self) -> Allocator | None:
        """Return the function that allocates memory for results; None if operators allocate the memory themselves."""
        return None if self.device_stream.pins else self.buffers.empty

    def _uses_packing(self, edge: DataNode) -> bool:
        """Return whether samples of different shapes are stored in one block of memory, because they are copied."""
        stream = self.device_stream
        return (stream.pins or (stream.device is not None and stream.stream is None)) and is_uploaded(self.plan, edge)

    def reset_order(self, first: int, turn: int) -> None:
        """Set the `index` and the `turn` of the next batch (see `BatchDraw`)."""
        self._sequencers = [Sequencer(turn if k < self._remote_stages else first) for k in range(len(self.plan.stages))]

    def _order(self, batch: InFlightBatch, stage: int) -> int:
        """Return a batch's running number among the batches that run a stage in this process."""
        return batch.draw.turn if stage < self._remote_stages else batch.draw.index

    def begin(self, batch: InFlightBatch) -> None:
        """Start the first stage of a batch."""
        if self._sequencers:
            self._sequencers[0].enter(self._order(batch, 0), partial(self._run_steps, batch))

    def resume(self, batch: InFlightBatch, stage: int) -> None:
        """Start a batch at a later stage, after a replica has run the earlier stages."""
        batch.stage = stage
        for edge, values in batch.values.items():
            # A replica returns the outputs of a "mixed" operator on the CPU.
            if edge.device != "cpu" and values.device.type == "cpu":
                with self.device_stream.context():
                    batch.values[edge] = self.device_stream.to_device(values)
        self._enter(batch)

    def _run_steps(self, batch: InFlightBatch) -> None:
        """Run the steps of the batch's stage, then submit its chain."""
        # The batch belongs to this thread. The sequencer admits one batch at a time, so operators with state process
        # the batches in order.
        try:
            # Each thread has its own current stream, so this thread must select the pipeline's stream.
            with self.device_stream.context():
                self._run_all(batch, self._orders[batch.stage])
        except BaseException as error:
            # Admit the next batch before this batch ends with its error, so that the next batch doesn't wait.
            self._sequencers[batch.stage].leave()
            self.fail(batch, error, first=batch.stage + 1)
            return
        # The next batch may run these steps while workers run this batch's chain. If the next batch is already waiting,
        # `leave` runs its steps in this thread, before this batch's chain begins.
        self._sequencers[batch.stage].leave()
        try:
            self._run_chain(batch)
        except BaseException as error:
            self.fail(batch, error, first=batch.stage + 1)

    def _run_all(self, batch: InFlightBatch, steps: Sequence[Node]) -> None:
        uploaded = self.device_stream.stream is None
        for node in steps:
            if node.operator.kind == "source":
                continue
            if node.device != "cpu" and not uploaded:
                uploaded = True
                values = map(batch.values.get, self._uploads[batch.stage])
                pending = [v for v in values if v is not None and v.uploaded is None]
                if pending:
                    batch.values.uploaded += self.device_stream.upload_small(pending)
            with span(node.title, self.settings.device):
                self._run_step(batch, node)

    def _run_step(self, batch: InFlightBatch, node: Node) -> None:
        started = time.perf_counter()
        try:
            results = self._results(batch, node)
        except Exception as error:
            if isinstance(error, StopIteration) or not self._bad_samples.keeps_going:
                raise
            results = self._rerun_without_failures(batch, node, error)
        batch.values.update(zip(node.outputs, results, strict=True))
        self.profile.record_step(node, started, batch.draw.size, batch.draw.index)

    def _rerun_without_failures(self, batch: InFlightBatch, node: Node, error: Exception) -> tuple[TensorList, ...]:
        """Run a failed step again without the samples for which it fails.

        If the step fails for no single sample, raise the error.
        """
        while batch.draw.size:
            failing = find_failures(batch, node, self.device_stream, self._rng(batch, node))
            failures: dict[int, BaseException] = dict(failing)
            if not failures or (len(failures) == batch.draw.size and is_batch_level(*failures.values())):
                raise error
            self._handle_failures(batch, self._finished_nodes(batch, node), {}, failures, node.culprit)
            try:
                return self._results(batch, node)
            except Exception as rerun_error:
                error = rerun_error
        if batch.draw.original_indices is None:
            raise error  # the source delivered no samples
        return tuple(TensorList.from_samples([]) for _ in node.outputs)

    def _finished_nodes(self, batch: InFlightBatch, node: Node | None = None) -> set[Node]:
        """Return the nodes that have run for a batch when `node`, a step of the current stage, runs.

        If `node` is None, return the nodes that have run after the current stage's chain.
        """
        order = self._orders[batch.stage]
        steps = order if node is None else order[: order.index(node)]
        stages = self.plan.stages[: batch.stage + (node is None)]
        chained = [n for s in stages if s.chain is not None for n in s.chain.nodes]
        return {*steps, *chained, *(n for s in stages for n in s.steps)}

    def _handle_failures(
        self,
        batch: InFlightBatch,
        ran: Collection[Node],
        results: dict[DataNode, list[Any]],
        failures: dict[int, BaseException],
        node_of: Callable[[BaseException], Node | None],
    ) -> None:
        """Drop or replace the failed samples, and clear `failures`. Raise the error if this isn't possible.

        Args:
            batch: The batch.
            ran: The nodes that have run.
            results: Outputs of the chain in which the samples failed; empty if the samples failed in a step.
            failures: The errors, by the sample's index.
            node_of: Function that returns the node that raised an error.
        """
        nodes = {i: node_of(error) for i, error in failures.items()}
        # If a request to an object store failed, the sample itself may be good, so the sample must not be dropped.
        unread = [i for i, error in failures.items() if isinstance(error, StoreError)]
        first, bad_samples = min(unread or failures), self._bad_samples
        sample = None if is_batch_level(failures[first]) else first
        encoded = isinstance(failures[first], DecodeError) and not bad_samples.keeps_going
        hint = '; with bad_samples="skip", the pipeline skips undecodable samples' if encoded else ""
        error = locate_error(failures[first], batch.draw.location(nodes[first], sample), hint)
        to_rerun: Sequence[Node] | None = ()
        if bad_samples.keeps_going and len(failures) < batch.draw.size:
            smaller, can_run = bad_samples.policy == "skip", partial(self._can_recompute, batch)
            to_rerun = nodes_to_rerun(self.plan.graph, ran, smaller, can_run)
        if to_rerun is None or unread:
            failures.clear()
            raise error
        bad_samples.repair(batch, results, failures, nodes, error)
        for node in to_rerun:
            batch.values.update(zip(node.outputs, self._results(batch, node), strict=True))

    def _can_recompute(self, batch: InFlightBatch, node: Node) -> bool:
        """Return whether a node is a step without side effects and state, and its inputs still exist."""
        stateful = node.preserve or node.operator.options.make is not None
        return node in self._function_caches and not stateful and all(e in batch.values for e in edges(node))

    def _results(self, batch: InFlightBatch, node: Node) -> tuple[TensorList, ...]:
        before, reports.receiver = reports.receiver, partial(self.profile.record_fallback, node)
        try:
            return run_step(batch, node, self.device_stream, self._rng(batch, node), self._function_caches[node])
        finally:
            reports.receiver = before

    def _rng(self, batch: InFlightBatch, node: Node) -> BatchRng | None:
        return batch.rng_of(self.settings.seed, node) if node.operator.schema.random else None

    def _run_chain(self, batch: InFlightBatch) -> None:
        """Run the stage's chain, in this thread if the batch is small, otherwise in the pool's threads."""
        compiled = self._chains[batch.stage]
        if compiled is None or batch.draw.size == 0:
            if compiled is not None:
                batch.values.update({e: TensorList.from_samples([]) for e in compiled.chain.outputs})
            self._next_stage(batch)
            return
        if self._bad_samples.keeps_going and (misshapen := compiled.misshapen(batch.values)):
            nodes = {id(error): node for error, node in misshapen.values()}
            failures: dict[int, BaseException] = {i: error for i, (error, _) in misshapen.items()}
            self._handle_failures(batch, self._finished_nodes(batch), {}, failures, lambda e: nodes[id(e)])
            if batch.draw.size == 0:
                self._run_chain(batch)
                return
        # Several threads may run this method at the same time, for different batches. They share only `compiled` and
        # the output buffers, which are thread-safe.
        bound = compiled.bound(batch.values)
        result_bytes = max((self._output_buffers[e].sample_bytes for e in compiled.chain.outputs), default=0)
        timed = self.profile.is_timed(batch.draw.index)
        division = bound.divide(batch.values, batch.draw.size, self.threads.count, result_bytes, timed)
        in_tensors = division.chunk if division.mode is ChunkMode.TENSORS else 0
        buffers = {e: self._output_buffers[e].open(batch.draw.size, in_tensors) for e in compiled.chain.outputs}
        shared = [edge for edge, buffer in buffers.items() if self._decoder.open_share(edge, buffer)]
        timings, keep_going = ChainTimings() if timed else None, self._bad_samples.keeps_going
        run = ChainRun(
            batch=batch,
            bound=bound,
            division=division,
            buffers=buffers,
            shared=shared,
            timings=timings,
            keep_going=keep_going,
            bind=self._bind,
        )
        function: Callable[[int], None] = run
        if wants_spans(self.settings.device):
            function = add_span(function, " + ".join(n.title for n in compiled.chain.nodes), self.settings.device)
        if division.run_inline:
            # The chain runs in the thread that ran the stage's steps. In a synchronous pipeline, this is the user's
            # thread. If a KeyboardInterrupt arrives in the user's thread, the batch ends, as during a step.
            function(0)
            self._chain_done(run, {})
            return
        finish: Done = partial(self._chain_done, run)
        if self._caller_queue is not None:
            # Whichever thread finishes last (a worker thread or the hardware decoder's thread) passes the batch to the
            # user's thread, which waits in `Executor._wait`.
            finish = partial(_finish_in_caller, self._caller_queue, finish)
        if shared:
            finish = partial(self._finish_when_submitted, run, finish)
        # From here on, the batch belongs to the worker threads. This thread must not access the batch any more, because
        # a worker thread may already run the next stage.
        self.threads.submit(Job(function, run.count, finish, order=batch.draw.index, keep_going=keep_going))

    def _bind(self, run: ChainRun, mode: ChunkMode) -> Callable[[range], Collection[int]]:
        """Build the function that runs a range of samples through the chain.

        The random numbers don't depend on `mode`.
        """
        batch, chain = run.batch, run.bound.chain
        reads = {node: batch.draw.reads[node] for node in chain.nodes if node in batch.draw.keys}
        drawn = [node for node in chain.nodes if node.operator.schema.random and node.operator.kind != "reader"]
        rngs = {node: batch.rng_of(self.settings.seed, node).samples() for node in drawn}
        columns = run.bound.columns(mode, batch.values, reads, rngs, run.buffers)
        return run.bound.bind(mode, columns, run.blamed, run.timings if mode is run.division.mode else None)

    def _finish_when_submitted(self, run: ChainRun, finish: Done, failures: dict[int, BaseException]) -> None:
        """Submit the batch's remaining images to the hardware decoder, then call `finish` with `failures`.

        `finish` runs in a thread of the pool or in the user's thread, never in the hardware decoder's thread.
        """
        order = run.batch.draw.index

        def resume(in_engine_thread: bool) -> None:
            if in_engine_thread and self._caller_queue is None:
                self.threads.submit(Job(lambda _: None, 1, lambda _: finish(failures), order=order))
            else:
                finish(failures)

        self._decoder.submit([run.buffers[edge] for edge in run.shared], resume)

    def _chain_done(self, run: ChainRun, failures: dict[int, BaseException]) -> None:
        """Collect the results and start the next stage.

        `Job.work` counts the finished chunks under a lock, so this thread sees the results of all worker threads.
        """
        batch = run.batch
        if batch.finished.is_set():
            return  # the pipeline was closed, or an interrupt ended the batch
        try:
            if run.timings is not None:
                self.profile.record_chain(run.timings, run.bound.chain.nodes, batch.draw.index)
            failures = run.end(failures)
            self._collect(run, failures)
            if failures:
                results = {edge: buffer.samples() for edge, buffer in run.buffers.items()}
                self._handle_failures(batch, self._finished_nodes(batch), results, failures, run.node_of)
                run.buffers.update({edge: run.buffers[edge].replace_results(each) for edge, each in results.items()})
            for edge, buffer in run.buffers.items():
                if buffer.device_images is None:
                    batch.values[edge] = self._close_batch(edge, run)
            # Now all values of the batch exist. Small values are copied to the device together with larger values.
            for edge, buffer in run.buffers.items():
                if buffer.device_images is not None:
                    self._join_device_images(edge, run, buffer.device_images)
                elif edge.device != "cpu":
                    self._send_to_device(edge, run)
        except BaseException as error:
            self.fail(batch, error, first=batch.stage + 1)
            return
        self._next_stage(batch)

    def _close_batch(self, edge: DataNode, run: ChainRun) -> TensorList:
        """Create the batch of an edge from its results. Errors name the edge's operator."""
        layout, info = run.bound.layouts[edge], self._source_infos(run.batch, edge)
        try:
            values = self._output_buffers[edge].close(run.buffers[edge], layout, info)
        except RuntimeError as error:
            raise self._mismatch_error(run.batch, edge, error) from error
        return values if layout else set_assumed_layout(edge, values)

    def _mismatch_error(self, batch: InFlightBatch, edge: DataNode, error: RuntimeError) -> Exception:
        """Build the error for samples that can't form a batch, for example because their dtypes differ.

        The error names the operator. If a record of a dataset lacks an output, the error also names the record.
        """
        for origin in read_edges(edge):
            assert origin.source is not None
            dataset, keys = self._datasets[origin.source], batch.draw.keys[origin.source]
            missing = missing_output(dataset, keys.records.tolist(), origin.index)
            if missing is not None:
                sample, reason = missing
                return locate_error(RuntimeError(f"{reason}; {error}"), batch.draw.location(edge.source, sample))
        return locate_error(error, batch.draw.location(edge.source))

    def _collect(self, run: ChainRun, failures: dict[int, BaseException]) -> None:
        """Collect a batch's images from the hardware decoder."""
        for edge in run.shared:
            assert edge.source is not None
            before = set(failures)
            buffer = run.buffers[edge] = self._decoder.collect(edge, run.buffers[edge], failures)
            run.blamed.update({id(failures[i]): edge.source for i in failures.keys() - before})
            if buffer.device_images is not None:
                run.batch.values.device_images.append(buffer.device_images)

    def _join_device_images(self, edge: DataNode, run: ChainRun, device_images: DeviceImages) -> None:
        """Create the batch of an edge from the hardware decoder's images and the CPU's images."""
        batch, buffer = run.batch, run.buffers[edge]
        with self.device_stream.context():
            flat, starts, shapes, uploaded = device_images.join(
                buffer, self._pending_uploads(batch), self._outlives_batch(edge)
            )
        batch.values.uploaded += uploaded
        assert buffer.arena is not None
        self._output_buffers[edge].set_capacity(buffer.arena.used, buffer.arena.flat.dtype)
        layout, info = run.bound.layouts[edge], self._source_infos(batch, edge)
        values = TensorList.from_packed(flat, starts, shapes, matching_layout(layout, 3), info)
        batch.values[edge] = values if layout else set_assumed_layout(edge, values)

    def _pending_uploads(self, batch: InFlightBatch) -> list[TensorList]:
        """Return the CPU values that the next stage's steps need on the device, and that were not copied yet."""
        needed = self._uploads[batch.stage + 1] if batch.stage + 1 < len(self._uploads) else ()
        return [v for v in map(batch.values.get, needed) if v is not None and v.uploaded is None]

    def _outlives_batch(self, edge: DataNode) -> bool:
        """Return whether the images of an edge, or views of them, may still exist after the batch is computed."""
        consumers = [node for node in self.plan.graph.nodes if any(e is edge for e in edges(node))]
        is_consumed = all(node.operator.name == "_resize_crop_mirror_normalize" for node in consumers)
        return not is_consumed or any(e is edge for e in self.plan.graph.outputs)

    def _send_to_device(self, edge: DataNode, run: ChainRun) -> None:
        """Copy the samples of a "mixed" operator to the device, together with small values for the next stage."""
        batch, arena, stream = run.batch, run.buffers[edge].arena, self.device_stream
        values = batch.values[edge]
        stored = values.current_storage()
        # This thread enqueues the copy before any thread enqueues the next stage's steps. Therefore these steps run
        # after the copy.
        with stream.context():
            if arena is None or not isinstance(stored, PackedSamples) or stream.stream is None:
                batch.values[edge] = stream.to_device(values)
                return
            flat, uploaded = stream.copy_arena(arena, self._pending_uploads(batch))
        batch.values.uploaded += uploaded
        batch.values[edge] = TensorList.from_packed(
            flat, stored.offsets, stored.shape(), values.layout(), values.source_infos
        )

    def _source_infos(self, batch: InFlightBatch, edge: DataNode) -> Sequence[str] | None:
        """Return the origin (for example the file) of each sample of an edge; None if the origins are unknown."""
        origin = self._source_edges[batch.stage][edge]
        if origin is None:
            return None
        keys = batch.draw.keys.get(origin.source) if origin.source is not None else None
        if keys is None or origin not in self._source_edges[batch.stage]:
            return batch.values[origin].source_infos
        assert origin.source is not None
        name = source_namer(self._datasets[origin.source], origin.index)
        return None if name is None else RecordNames(name, keys.records)

    def _next_stage(self, batch: InFlightBatch) -> None:
        if self.settings.memory_stats:
            self.memory.record(batch.values)
        # The batch belongs to this thread, which finished the chain or ran the steps.
        for edge in self.plan.last_used[batch.stage]:
            batch.values.pop(edge, None)
        batch.stage += 1
        self._enter(batch)

    def _enter(self, batch: InFlightBatch) -> None:
        """Start the batch's current stage; after the last stage, end the batch."""
        if batch.stage == self._end:
            self.finish(batch)
        else:
            # If it is the batch's turn, this thread runs the next stage's steps. Otherwise, the thread that finishes
            # these steps for the previous batch will run them, and the batch now belongs to that thread.
            self._sequencers[batch.stage].enter(self._order(batch, batch.stage), partial(self._run_steps, batch))

    def fail(self, batch: InFlightBatch, error: BaseException, first: int = 0) -> None:
        """End a batch with an error.

        Args:
            batch: The batch.
            error: The error.
            first: The first stage that the batch hasn't entered.
        """
        for stage in range(first, self._end):
            # Later batches wait for this batch's turn. When the turn comes, the failed batch runs no steps, and admits
            # the next batch immediately.
            sequencer = self._sequencers[stage]
            sequencer.enter(self._order(batch, stage), sequencer.leave)
        self.finish(batch, error)

    def finish(self, batch: InFlightBatch, error: BaseException | None = None) -> None:
        """End a batch, unless it has ended."""
        if batch.finished.is_set():
            return  # `close` has already ended the batch
        batch.outcome.error = error
        batch.values.release_device()
        if error is None:
            with self.device_stream.context():
                batch.outcome.outputs = deliver(batch.values, self.plan.graph.outputs, self._may_share)
            # All kernels of this batch are enqueued before the event. Later kernels belong to later batches.
            batch.outcome.ready = self.device_stream.record()
        batch.values.clear()
        # After this line, the batch belongs to the user's thread. The user's thread waits for `finished`, so it sees
        # all writes above.
        batch.finished.set()


def _finish_in_caller(caller_queue: CallerQueue, finish: Done, failures: dict[int, BaseException]) -> None:
    """Let the thread that waits for the batch call `finish`."""
    caller_queue.put(partial(finish, failures))
