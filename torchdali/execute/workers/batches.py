"""Send batches from the main process to replicas (processes that compute batches), and receive the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchdali.execute.batch import InFlightBatch, ReaderState
from torchdali.execute.source_info import source_edges
from torchdali.execute.workers.blocks import SharedBuffers, Views
from torchdali.execute.workers.messages import BatchReply, SentBatch, SentDraw, read_failure, receive, send
from torchdali.execute.workers.pool import WorkerPool
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Plan, edges, is_metadata, list_nodes
from torchdali.reading.datasets import RecordNames, source_namer
from torchdali.tensors import TensorList

__all__ = ["BatchJob", "Replicas", "needed_after"]


def needed_after(plan: Plan, stages: int) -> set[DataNode]:
    """Return the edges (outputs of operators) that the main process needs after the first `stages` stages."""
    return {*plan.graph.outputs, *(edge for node in list_nodes(plan.stages[stages:]) for edge in edges(node))}


class Replicas:
    """The replicas of a pipeline.

    Args:
        plan: Plan of the pipeline.
        stages: Number of stages that run in the replicas. Stage 0 is the first of them.
        readers: The state of each reader node.
        pool: The replicas' processes.
    """

    def __init__(self, plan: Plan, stages: int, readers: Mapping[Any, ReaderState], pool: WorkerPool) -> None:
        self.plan, self.stages, self.pool, self._readers = plan, stages, pool, readers
        self.buffers = SharedBuffers(pool.announce, pool.forget)
        pool.on_join = self.buffers.renew
        nodes = list_nodes(plan.stages[:stages])
        inputs = {edge for node in nodes for edge in edges(node)}
        self._sources = [
            (plan.index[node], edge)
            for node in plan.graph.nodes
            if node.operator.kind == "source"
            for edge in node.outputs
            if edge in inputs and edge.device == "cpu"
        ]
        self._nodes = frozenset(nodes)
        self._origins = source_edges(nodes)

    def submit(self, batch: InFlightBatch, seed: int, traced: bool, callback: Callable[[BatchJob], None]) -> None:
        """Request a batch from the replicas. Until `callback` is called, no other code may access the batch.

        Args:
            batch: The batch.
            seed: Seed of the pipeline.
            traced: True to record when each operator begins and ends.
            callback: Function that a thread of the pipeline calls with the job when the batch is done.
        """
        shared_tensors: list[torch.Tensor] = []
        values = {
            (k, edge.index): send(batch.values[edge], self.buffers, shared_tensors, with_infos=True)
            for k, edge in self._sources
        }
        keys = {self.plan.index[node]: keys for node, keys in batch.draw.keys.items()}
        draw = SentDraw(
            number=-1,
            index=batch.draw.index,
            position=batch.draw.position,
            size=batch.draw.size,
            seed=seed,
            random_keys=batch.request.random_keys,
            keys=keys,
            values=values,
            traced=traced,
            returned=(),
        )
        self.pool.submit(
            BatchJob(replicas=self, batch=batch, draw=draw, callback=callback, shared_tensors=shared_tensors)
        )

    @property
    def bytes_out(self) -> int:
        """Bytes of shared memory in use for the replicas' inputs and outputs."""
        return self.buffers.bytes_out + sum(worker.views.bytes_out for worker in self.pool.workers)

    def is_read_by_main(self, reader: Node) -> bool:
        """Return whether the main process, not a replica, reads the records of a reader."""
        return reader not in self._nodes

    def store_results(self, batch: InFlightBatch, results: Mapping[DataNode, TensorList]) -> None:
        """Store a replica's results in the batch, and set the samples' origins (for example files)."""
        for edge, values in results.items():
            origin = self._origins[edge]
            if origin is not None and origin.source is not None and not is_metadata(origin):
                keys = batch.draw.keys.get(origin.source)
                if keys is not None:
                    name = source_namer(self._readers[origin.source].dataset, origin.index)
                    values.set_source_infos(None if name is None else RecordNames(name, keys.records))
                elif origin in batch.values:
                    values.inherit_source_infos(batch.values[origin])
            batch.values[edge] = values

    def summary(self) -> tuple[str, ...]:
        """Return a line with the number of processes, and a line with the cause for each process that has died."""
        pool = self.pool
        alive, exits = sum(worker.alive for worker in pool.workers), tuple(pool.exits)
        if not exits:
            return (f"{alive} worker processes",)
        run = f"{alive} of {len(pool.workers)} worker processes run, {pool.replaced} were replaced"
        return (run, *exits)


@dataclass(eq=False)
class BatchJob:
    """A batch while a replica computes it. This class implements `WorkerJob`.

    Attributes:
        replicas: The replicas of the pipeline.
        batch: The batch.
        draw: The message for the replica.
        callback: Function that is called with the job when it is done.
        shared_tensors: Tensors in shared memory that the replica reads.
        owner: None, because any replica may run the job.
        losses: Number of replicas that died after they began the batch.
        reply: The replica's reply; None before the reply arrives.
        values: The results.
        error: The error of the batch; None if the batch succeeded.
    """

    replicas: Replicas
    batch: InFlightBatch
    draw: SentDraw
    callback: Callable[[BatchJob], None]
    shared_tensors: list[torch.Tensor]
    owner: None = None
    losses: int = 0
    reply: BatchReply | None = None
    values: dict[DataNode, TensorList] = field(default_factory=dict)
    error: BaseException | None = None

    @property
    def order(self) -> int:
        return self.draw.index

    @property
    def title(self) -> str:
        return f"batch {self.draw.index}"

    def begin(self) -> bool:
        """Return True: a batch that was requested is always needed."""
        return True

    def message(self, number: int, blocks: set[int], returned: tuple[int, ...]) -> SentDraw:
        tensor, has_block = self.replicas.buffers.tensor, blocks.__contains__
        values = {k: v.without_blocks(has_block, tensor) for k, v in self.draw.values.items()}
        return replace(self.draw, number=number, values=values, returned=returned)

    def set_reply(self, reply: BatchReply, views: Views) -> None:
        """Store a replica's results. The thread that receives messages calls this method."""
        # This thread doesn't access the batch. The pool later calls `finish` in a thread of the pipeline, and then the
        # batch belongs to that thread. The replica must not write to the results' blocks of shared memory before the
        # tensors in these blocks are deleted, so `lend` must record the tensors now.
        blocks = [position.block for value in reply.values.values() for position in value.positions()]
        tensor = views.lend(blocks)
        nodes = self.replicas.plan.graph.nodes

        def batch_of(value: SentBatch) -> TensorList:
            return receive(value, tensor)

        self.values = {nodes[k].outputs[i]: batch_of(value) for (k, i), value in reply.values.items()}
        self.reply = reply
        if reply.error is not None:
            self.error = read_failure(reply.error)

    def fail(self, error: Exception) -> None:
        self.error = error

    def finish(self) -> None:
        """Pass the job to the callback. A thread of the pipeline calls this method."""
        self.shared_tensors.clear()
        self.callback(self)
