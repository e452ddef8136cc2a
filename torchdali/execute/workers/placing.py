"""Decide what runs in worker processes and how many there are."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from torchdali import pickling
from torchdali.execute.batch import Reader, Settings
from torchdali.graph import Node
from torchdali.plan import Chain, Plan, is_metadata
from torchdali.registry import registry

__all__ = ["Placing", "default_processes", "place"]

_THREADS = 4  # threads of one process that the GIL does not hold up much


def default_processes(threads: int, cores: int) -> int:
    """Return how many processes pay: about one for four threads that have a core each."""
    working = min(threads, cores)
    return 1 if working <= _THREADS else -(-working // _THREADS)


@dataclass(frozen=True)
class Placing:
    """The division of a plan among processes.

    Attributes:
        processes: Number of worker processes; 1 for none but that of the user.
        stages: Stages whose chains run there.
        reasons: Why other chains do not, by stage; of -1: why there is one process.
        forked: True if processes are copies of this one; otherwise the plan is sent to them.
    """

    processes: int
    stages: frozenset[int] = frozenset()
    reasons: Mapping[int, str] = field(default_factory=dict)
    forked: bool = True

    def __str__(self) -> str:
        if self.processes == 1:
            why = self.reasons.get(-1, "")
            return "one process" + (f": {why}" if why else "")
        how = "forked" if self.forked else "started by the server"
        lines = [f"{self.processes} worker processes, {how}"]
        lines += [f"  the chain of stage {i} runs there" for i in sorted(self.stages)]
        lines += [f"  the chain of stage {i} stays here: {why}" for i, why in self.reasons.items()]
        return "\n".join(lines)


def place(
    planned: Plan,
    readers: Mapping[Node, Reader],
    asked: int | None,
    settings: Settings,
    start_method: str,
) -> Placing:
    """Decide how many processes a plan gets, and what runs there.

    Args:
        asked: Number of processes; None for as many as pay.
    """
    count = asked
    if count is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        count = default_processes(settings.num_threads, cores or 1)
        if count > 1 and any(has_user_code(stage.chain) for stage in planned.stages):
            # Code of the user holds the GIL, and its random numbers are one thread's alone, see `worker.SeededSamples`.
            count = min(settings.num_threads, cores or 1)
    if count == 1:
        return Placing(1)
    why = _platform_refuses()
    if why:
        return Placing(1, reasons={-1: why})
    forked = start_method == "fork" and may_fork()
    reasons: dict[int, str] = {}
    stages = set()
    for i, stage in enumerate(planned.stages):
        if stage.chain is None:
            continue
        why = _reads_here(stage.chain, readers) or _stays(planned, i, forked)
        if why:
            reasons[i] = why
        else:
            stages.add(i)
    if not stages:
        why = "; ".join(dict.fromkeys(reasons.values())) or "no operator works on single samples"
        return Placing(1, reasons={-1: why})
    return Placing(count, frozenset(stages), reasons, forked)


def has_user_code(chain: Chain | None) -> bool:
    """Return True if an operator of a chain is declared outside of this package, or is given a function."""
    return chain is not None and any(
        not node.operator.body.__module__.startswith("torchdali.") or any(map(callable, node.constants.values()))
        for node in chain.nodes
        if node.operator.kind != "reader"
    )


def _platform_refuses() -> str:
    if sys.platform != "linux":
        return f"worker processes need Linux; this is {sys.platform}"
    if multiprocessing.current_process().daemon:
        return "this process is a daemon of multiprocessing (a worker of DataLoader?), which may have no children"
    return ""


def may_fork() -> bool:
    """Return True if this process can be copied: no other thread may hold a lock, no GPU may be in use."""
    # OpenMP's and OpenBLAS's threads do not count: they look after themselves, and workers run torch with one thread.
    uses_gpu: bool = torch.cuda.is_initialized()
    return threading.active_count() == 1 and not uses_gpu


def _stays(planned: Plan, i: int, forked: bool) -> str:
    """Return why a chain stays in the process of the user; empty if it need not."""
    chain = planned.stages[i].chain
    assert chain is not None
    if chain.grouped:
        return "it takes groups of small samples, which is quicker than sending them"
    if not _sees_data(planned, i):
        return "it computes numbers, which is quicker than sending them"
    for node in chain.nodes:
        name = node.operator.name
        if node.preserve or node.operator.options.preserve:
            return f"operator {name!r} has a side effect"
        own = not node.operator.body.__module__.startswith("torchdali.")
        if node.operator.options.make is not None and own:
            return f"operator {name!r} has a memory of its own"
        if not forked:
            why = _cannot_start_anew(node)
            if why:
                return why
    return ""


def _reads_here(chain: Chain, readers: Mapping[Node, Reader]) -> str:
    for node in chain.nodes:
        begin = getattr(readers[node].dataset, "begin", None) if node in readers else None
        if begin is not None and begin([]) is not None:
            return f"operator {node.operator.name!r} reads ahead, from far or from Python, in this process"
    return ""


def _cannot_start_anew(node: Node) -> str:
    name, body = node.operator.name, node.operator.body
    own = not body.__module__.startswith("torchdali.")
    is_local = own and "<locals>" in getattr(body, "__qualname__", "")
    if registry.get(name) is not node.operator or body.__module__ == "__main__" or is_local:
        where = f"a function of {body.__module__}" if is_local else body.__module__
        return f"operator {name!r} is declared in {where}, which a new process does not import"
    try:
        pickling.dumps(dict(node.constants))
    except Exception as error:
        return f"an argument of operator {name!r} cannot be pickled ({type(error).__name__}: {error})"
    return ""


def _sees_data(planned: Plan, i: int) -> bool:
    """Return True if a chain works on what a reader or source gave."""
    seen: set[Node] = set()
    for node in planned.graph.nodes:
        before = {e.source for e in node.inputs if e is not None and not is_metadata(e)}
        if node.operator.kind in ("reader", "source") or not seen.isdisjoint(before):
            seen.add(node)
    chain = planned.stages[i].chain
    return chain is not None and not seen.isdisjoint(chain.nodes)
