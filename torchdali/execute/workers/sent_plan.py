"""Send a pipeline's plan to a replica (a worker process that computes batches).

A plan is a graph, divided into *stages* (groups of operators). The replica rebuilds the plan and opens the readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchdali.declaration.registry import is_ours
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import Settings
from torchdali.execute.sent_graph import SentGraph
from torchdali.execute.workers.replica import ReplicaTask
from torchdali.execute.workers.server import ForkRequest
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan, list_nodes, plan

__all__ = ["SentPlan", "new_task", "readers_of"]


def readers_of(planned: Plan, stages: int) -> list[Node]:
    """Return the readers in the first `stages` stages."""
    return [node for node in list_nodes(planned.stages[:stages]) if node.operator.kind == "reader"]


def new_task(
    planned: Plan,
    stages: int,
    datasets: Mapping[Node, Any],
    settings: Settings,
    bad_samples: BadSamples,
    request: ForkRequest,
) -> ReplicaTask:
    """Create the task of a replica. Its settings have no device, because only the main process uses the device.

    Args:
        planned: The plan.
        stages: Number of stages that run in the replica. Stage 0 is the first of them.
        datasets: The datasets that the main process opened, by reader.
        settings: Settings of the pipeline.
        bad_samples: The policy for samples that fail.
        request: The request, with the threads and cores of the replica.
    """
    # torchdali's own datasets map files, so a forked process can use them. Other datasets are opened again, because a
    # forked process would share the position of an open file with its parent.
    replica_datasets = {
        n: d if is_ours(type(getattr(d, "origin", d))) else n.operator.implementation(**n.constants)
        for n, d in datasets.items()
    }
    replica_settings = replace(settings, device=None, synchronous=False, num_threads=request.threads)
    unreported = BadSamples(bad_samples.policy, bad_samples.budget)
    return ReplicaTask(
        planned, stages, replica_datasets, replica_settings, request.first_thread, request.cores, unreported
    )


@dataclass(frozen=True)
class SentPlan:
    """The message from which a replica's process creates its task."""

    graph: SentGraph
    stages: int
    settings: Settings
    bad_samples: BadSamples

    @classmethod
    def of(cls, planned: Plan, stages: int, settings: Settings, bad_samples: BadSamples) -> SentPlan:
        needed = {node for node in list_nodes(planned.stages[:stages]) if node.operator.kind != "source"}
        return cls(SentGraph.of(planned.graph, needed), stages, settings, bad_samples)

    def task(self, request: ForkRequest) -> ReplicaTask:
        """Rebuild the graph and the plan, open the readers, and return the task."""
        planned = plan(self.graph.graph())
        readers = readers_of(planned, self.stages)
        datasets = {n: n.operator.implementation(**n.constants) for n in readers}
        return new_task(planned, self.stages, datasets, self.settings, self.bad_samples, request)
