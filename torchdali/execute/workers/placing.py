"""Decide how many processes a pipeline has, and which of its stages run there."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from torchdali import pickling
from torchdali.declaration.registry import registry
from torchdali.execute.batch import Reader, Settings
from torchdali.execute.caching import CachedDataset
from torchdali.execute.process_state import has_gil, others_sleep
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Chain, Plan, Stage, edges, is_metadata

__all__ = ["Placing", "default_processes", "has_user_code", "may_fork", "place", "place_elsewhere"]


def default_processes(threads: int, is_fast: bool) -> int:
    """Return how many processes a pipeline has by default."""
    if is_fast or not has_gil():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(threads, cores or 1))


@dataclass(frozen=True)
class Placing:
    """The choice of what runs in other processes.

    Attributes:
        processes: Number of replicas.
        stages: How many stages, from the first one on, run there; 0 if there are no replicas.
        reason: Why there is one process, or why the stages behind these stay.
        forked: True if processes are copies of this one; otherwise the plan is sent to them.
        waits: Start them before the first batch; otherwise threads make batches meanwhile.
    """

    processes: int
    stages: int = 0
    reason: str = ""
    forked: bool = True
    waits: bool = True

    def __str__(self) -> str:
        if not self.stages:
            return "one process" + (f": {self.reason}" if self.reason else "")
        how = "forked" if self.forked else "started anew"
        lines = [f"{self.processes} worker processes, {how}; each makes whole batches"]
        if self.reason:
            lines.append(f"  stages from {self.stages} on stay here: {self.reason}")
        return "\n".join(lines)


def place(
    planned: Plan,
    readers: Mapping[Node, Reader],
    asked: int | None,
    settings: Settings,
    start_method: str,
    is_fast: bool = False,
) -> Placing:
    """Decide how many processes a plan gets, and what runs there.

    Threads, if there is one, or they need no lock: in free-threaded Python, and where the fast path makes the samples
    from file to batch; else as many replicas as threads, but not more than there are cores.

    Args:
        asked: Number of processes; None for this choice.
        is_fast: The fast path makes the samples.
    """
    asked = _wanted() if asked is None else asked
    count = default_processes(settings.num_threads, is_fast) if asked is None else asked
    if count == 1:
        return Placing(1)
    why = _platform_refuses()
    if why:
        return Placing(1, reason=why)
    forked = start_method == "fork" and may_fork()
    stages, why = 0, ""
    for stage in planned.stages:
        why = _stays(stage, readers, forked)
        if why:
            break
        stages += 1
    if not any(_pays(planned, stage) for stage in planned.stages[:stages]):
        return Placing(1, reason=why or "it computes numbers or small samples, which is quicker than sending them")
    return Placing(count, stages, why, forked, forked or asked is not None)


def place_elsewhere(planned: Plan, readers: Mapping[Node, Reader], processes: int) -> Placing:
    """Decide what runs in replicas on other machines.

    Raises:
        RuntimeError: nothing can; says why.
    """
    stages, why = 0, ""
    for stage in planned.stages:
        why = _stays(stage, readers, forked=False, elsewhere=True)
        if why:
            break
        stages += 1
    if not stages:
        raise RuntimeError(f"nothing of this pipeline can run in another process: {why}")
    return Placing(processes, stages, why, forked=False)


def _wanted() -> int | None:
    """Return the number that the environment asks for, if it does."""
    text = os.environ.get("TORCHDALI_PROCESSES", "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"TORCHDALI_PROCESSES={text!r}: it is the number of processes, 1 or more")
    return int(text) if text else None


def has_user_code(chain: Chain | None) -> bool:
    """Return True if an operator of a chain is declared outside of this package, or is given a function."""
    return chain is not None and any(map(_is_of_user, chain.nodes))


def _is_of_user(node: Node) -> bool:
    if node.operator.kind in ("reader", "source"):
        return False
    own = not node.operator.body.__module__.startswith("torchdali.")
    return own or any(map(callable, node.constants.values()))


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
    return threading.active_count() == 1 and not uses_gpu and others_sleep()


def _stays(stage: Stage, readers: Mapping[Node, Reader], forked: bool, elsewhere: bool = False) -> str:
    """Return why a stage, and those behind it, stay in the process of the user; empty if they need not."""
    steps = [node for node in stage.steps if node.operator.kind != "source"]
    chained = () if stage.chain is None else stage.chain.nodes
    for node in (*steps, *chained):
        name = node.operator.name
        if node.device == "gpu" or name == "_to_device":
            return f"operator {name!r} runs on the device"
        if node.preserve or node.operator.options.preserve:
            return f"operator {name!r} has a side effect"
        if node.operator.options.make is not None and _is_of_user(node):
            return f"operator {name!r} has a memory of its own"
        if name == "_decode_share":
            return "nvImageCodec decodes images on the device"
        if not forked and (why := _cannot_start_anew(node)):
            return why
        if node in readers and (why := _reads_here(node, readers[node], elsewhere)):
            return why
    of_user = next((node for node in steps if _is_of_user(node)), None)
    if of_user is not None:
        return f"operator {of_user.operator.name!r} is yours and works on whole batches"
    if stage.chain is not None and stage.chain.in_chunks and has_user_code(stage.chain):
        return "an operator of yours takes groups of samples"
    return ""


def _reads_here(node: Node, reader: Reader, elsewhere: bool) -> str:
    if elsewhere and isinstance(reader.dataset, CachedDataset) and reader.dataset.kept.in_memory:
        return "fn.cache keeps samples in the memory of this machine: give it path=, a folder that all machines share"
    if elsewhere and getattr(reader.dataset, "work", None) is None:
        return ""
    begin = getattr(reader.dataset, "begin", None)
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


def _pays(planned: Plan, stage: Stage) -> bool:
    """Return True if a stage works sample by sample on what a reader or source gave, and not on small samples."""
    seen: set[Node] = set()
    for node in planned.graph.nodes:
        before = {e.source for e in edges(node) if not is_metadata(e)}
        if node.operator.kind in ("reader", "source") or not seen.isdisjoint(before):
            seen.add(node)
    return stage.chain is not None and not stage.chain.in_chunks and not seen.isdisjoint(stage.chain.nodes)
