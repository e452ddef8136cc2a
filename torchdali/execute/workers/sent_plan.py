"""A plan on its way to a process that knows no graph, which plans again and opens the readers there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchdali.execute.bad_samples import BadSamples, Policy
from torchdali.execute.batch import Settings
from torchdali.execute.sent_graph import SentGraph
from torchdali.execute.workers.replica import Task
from torchdali.execute.workers.server import Order
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan, plan

__all__ = ["Begin", "SentPlan", "begin_of", "new_task", "readers_of"]

Begin = tuple[Settings, Policy, "int | None"]
"""Settings of a replica, and what to do when a sample fails."""


def begin_of(settings: Settings, bad_samples: BadSamples) -> Begin:
    """Return what a replica begins with; the device, and the budget of bad samples, are the user's process's."""
    return replace(settings, device=None, synchronous=False), bad_samples.policy, bad_samples.budget


def readers_of(planned: Plan, stages: int) -> list[Node]:
    """Return the readers in the first stages."""
    chains = [stage.chain for stage in planned.stages[:stages]]
    return [n for c in chains if c is not None for n in c.nodes if n.operator.kind == "reader"]


def new_task(
    planned: Plan,
    stages: int,
    datasets: Mapping[Node, Any],
    begin: Begin,
    order: Order,
) -> Task:
    """Return the task of a replica.

    Args:
        planned: The plan, of which the first `stages` run there.
        datasets: Per reader, as the process of the user opened it.
    """
    opened = {n: d if _is_ours(d) else n.operator.body(**n.constants) for n, d in datasets.items()}
    settings, policy, budget = begin
    return Task(
        planned, stages, opened, replace(settings, num_threads=order.threads), order.first_thread, order.cores,
        BadSamples(policy, budget),
    )  # fmt: skip


def _is_ours(dataset: Any) -> bool:
    """Return True for a data set that keeps no file open, or position in one: those of torchdali map files."""
    return type(getattr(dataset, "origin", dataset)).__module__.startswith("torchdali.")


@dataclass(frozen=True)
class SentPlan:
    """The message from which such a process makes its task."""

    graph: SentGraph
    stages: int
    begin: Begin

    @classmethod
    def of(cls, planned: Plan, stages: int, begin: Begin) -> SentPlan:
        first = planned.stages[:stages]
        needed = {
            n for s in first for n in (*s.steps, *(s.chain.nodes if s.chain else ())) if n.operator.kind != "source"
        }
        return cls(SentGraph.of(planned.graph, needed), stages, begin)

    def task(self, order: Order) -> Task:
        """Make the graph and the plan again, and open the readers."""
        planned = plan(self.graph.graph())
        readers = readers_of(planned, self.stages)
        datasets = {n: n.operator.body(**n.constants) for n in readers}
        return new_task(planned, self.stages, datasets, self.begin, order)
