"""Choose the number of a pipeline's *replicas* (processes that compute batches), and the stages that run in replicas.

A *stage* is a group of operators. Its *chain* has the operators that process one sample after the other. On the *fast
path*, one call of the native library runs a whole chain without the GIL.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from torchdali import pickling
from torchdali.cores import cores
from torchdali.declaration.registry import Operator, registry
from torchdali.environment import read_number
from torchdali.execute.batch import ReaderState, Settings
from torchdali.execute.caching import CachedDataset, SampleCache
from torchdali.execute.chunks import runs_user_code
from torchdali.execute.process_state import has_gil, wait_for_other_threads
from torchdali.formats.shared_value import Shared
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Chain, Plan, Stage, edges, is_metadata, is_shared

__all__ = [
    "Placement",
    "default_processes",
    "has_user_code",
    "may_fork",
    "may_see_changes",
    "choose_placement",
    "choose_remote_placement",
]


def default_processes(threads: int, is_fast: bool) -> int:
    """Return a pipeline's default number of replicas; 1 means that only the main process computes batches.

    Args:
        threads: Number of threads of the pipeline.
        is_fast: True if the pipeline's chains run on the fast path.
    """
    if is_fast or not has_gil():
        return 1
    return max(1, min(threads, cores()))


@dataclass(frozen=True)
class Placement:
    """The number of replicas, and the stages that run in replicas.

    Attributes:
        processes: Number of replicas; 1 if there are no replicas.
        stages: Number of stages that run in replicas. Stage 0 is the first of them. 0 if there are no replicas.
        reason: The reason why some or all stages run in the main process; "" if there is no reason to report.
        forked: True if replicas are forked from the main process; False if the plan is sent to new processes.
        waits_for_replicas: True if the first batch waits for the replicas; False if the main process computes batches
            until the replicas are ready.
    """

    processes: int
    stages: int = 0
    reason: str = ""
    forked: bool = True
    waits_for_replicas: bool = True

    def __str__(self) -> str:
        if not self.stages:
            return "one process" + (f": {self.reason}" if self.reason else "")
        how = "forked" if self.forked else "spawned"
        lines = [f"{self.processes} worker processes, {how}; each processes entire batches"]
        if self.reason:
            lines.append(f"  stages from {self.stages} on run in this process: {self.reason}")
        return "\n".join(lines)


def choose_placement(
    planned: Plan,
    readers: Mapping[Node, ReaderState],
    processes: int | None,
    settings: Settings,
    start_method: str,
    is_fast: bool = False,
) -> Placement:
    """Choose the number of replicas, and the stages that run in replicas.

    The default is one replica per thread, but at most one per core. If the pipeline has only one thread, or if its
    threads rarely need the GIL (on the fast path or in free-threaded Python), the default is to use no replicas.

    Args:
        planned: The plan.
        readers: The state of each reader node.
        processes: Number of replicas; None for the default.
        settings: Settings of the pipeline.
        start_method: "fork" to fork processes if possible.
        is_fast: True if the pipeline's chains run on the fast path.
    """
    processes = _requested_processes() if processes is None else processes
    if processes is None and settings.synchronous:
        return Placement(1, reason="exec_async=False, or exec_pipelined=False")
    count = default_processes(settings.num_threads, is_fast) if processes is None else processes
    if count == 1:
        return Placement(1)
    obstacle = _find_platform_obstacle()
    if obstacle:
        return Placement(1, reason=obstacle)
    forked = start_method == "fork" and may_fork()
    stages, obstacle = 0, ""
    for stage in planned.stages:
        obstacle = _find_obstacle(stage, readers, forked)
        if obstacle:
            break
        stages += 1
    if not any(_is_worthwhile(planned, stage) for stage in planned.stages[:stages]):
        return Placement(
            1, reason=obstacle or "it computes numbers or small samples, which is faster than sending them"
        )
    return Placement(
        processes=count,
        stages=stages,
        reason=obstacle,
        forked=forked,
        waits_for_replicas=forked or processes is not None,
    )


def choose_remote_placement(planned: Plan, readers: Mapping[Node, ReaderState], processes: int) -> Placement:
    """Choose the stages that run in replicas on other machines.

    Raises:
        RuntimeError: No stage can run in a replica; the message has the reason.
    """
    stages, obstacle = 0, ""
    for stage in planned.stages:
        obstacle = _find_obstacle(stage, readers, forked=False, is_remote=True)
        if obstacle:
            break
        stages += 1
    if not stages:
        raise RuntimeError(f"no stage of this pipeline can run in another process: {obstacle}")
    return Placement(processes, stages, obstacle, forked=False)


def _requested_processes() -> int | None:
    """Return the number of processes from the environment variable ``TORCHDALI_PROCESSES``; None if it isn't set."""
    return read_number("TORCHDALI_PROCESSES", 0, 1) or None


def has_user_code(chain: Chain) -> bool:
    """Return whether a chain calls the user's code: an operator of the user, or a function that is an argument."""
    return any(node.operator.kind != "reader" and runs_user_code(node) for node in chain.nodes)


def may_see_changes(node: Node) -> bool:
    """Return whether a node may read values that the program changes.

    This is possible if the node calls user code that isn't declared pure, or has an argument of the class `Shared`.
    """
    return any(_is_impure(call) or any(map(_contains_shared, call.constants.values())) for call in _calls(node))


def _contains_shared(argument: Any) -> bool:
    dataset = getattr(argument, "users_dataset", argument)  # some arguments contain the user's dataset
    return isinstance(dataset, Shared) or any(
        isinstance(each, Shared) for each in getattr(dataset, "__dict__", {}).values()
    )


class _OperatorCall(Protocol):
    """An operator and its arguments: a node of the graph, or one of the readers that a reader mixes."""

    @property
    def operator(self) -> Operator: ...
    @property
    def constants(self) -> Mapping[str, Any]: ...


def _calls(node: Node) -> Sequence[_OperatorCall]:
    """Return the operators that a node runs.

    If the node reads a cache, these are the operators before the cache. If the node mixes several readers, these are
    its own operator and the mixed readers.
    """
    cache = node.constants.get("samples")
    if isinstance(cache, SampleCache):
        return cache.graph.nodes
    sources = node.constants.get("sources")
    return (node, *[each for each in sources if hasattr(each, "operator")]) if isinstance(sources, list) else (node,)


def _is_impure(call: _OperatorCall) -> bool:
    """Return whether an operator, other than a source, runs the user's code and isn't declared pure."""
    is_users = runs_user_code(call) or any(hasattr(value, "users_dataset") for value in call.constants.values())
    return is_users and call.operator.kind != "source" and not _is_pure(call)


def _is_pure(call: _OperatorCall) -> bool:
    return call.operator.options.pure or bool(call.constants.get("pure"))


def _find_platform_obstacle() -> str:
    if sys.platform != "linux":
        return f"worker processes need Linux; this is {sys.platform}"
    if multiprocessing.current_process().daemon:
        return "this process is a multiprocessing daemon (a DataLoader worker?), which can't have child processes"
    return ""


def may_fork() -> bool:
    """Return whether this process can be forked safely.

    The process must have no other Python threads, its native threads must sleep, and CUDA must not be initialized.
    """
    # Sleeping threads of OpenMP and OpenBLAS don't prevent a fork, because these libraries handle forks.
    uses_gpu: bool = torch.cuda.is_initialized()
    return threading.active_count() == 1 and not uses_gpu and wait_for_other_threads()


def _find_obstacle(stage: Stage, readers: Mapping[Node, ReaderState], forked: bool, is_remote: bool = False) -> str:
    """Return the reason why only the main process can run a stage; "" if a replica can run it."""
    steps = [node for node in stage.steps if node.operator.kind != "source"]
    chained = () if stage.chain is None else stage.chain.nodes
    for node in (*steps, *chained):
        name = node.operator.name
        if node.device == "gpu" or name == "_to_device":
            return f"operator {name!r} runs on the device"
        if any(map(_is_impure, _calls(node))):
            return f"operator {name!r} runs your own code, which isn't declared with pure=True"
        if (node.preserve or node.operator.options.preserve) and not _is_pure(node):
            return f"operator {name!r} has a side effect"
        if any(map(is_shared, node.outputs)):
            return "a hardware engine of the device decodes images"
        if not forked and (obstacle := _find_spawn_obstacle(node)):
            return obstacle
        if node in readers and (obstacle := _find_read_obstacle(node, readers[node], is_remote)):
            return obstacle
    if stage.chain is not None and stage.chain.accepts_tensors and has_user_code(stage.chain):
        return "one of your operators processes several samples per call"
    return ""


def _find_read_obstacle(node: Node, reader: ReaderState, is_remote: bool) -> str:
    if is_remote and isinstance(reader.dataset, CachedDataset) and reader.dataset.cache.in_memory:
        return "fn.cache stores samples in this machine's memory; pass path=, a folder that all machines share"
    if reader.processes is not None or (_reads_ahead(node, reader.dataset) and not is_remote):
        return f"operator {node.operator.name!r} reads ahead from a remote store or from Python, in this process"
    return ""


def _reads_ahead(node: Node, dataset: Any) -> bool:
    """Return whether a reader requests records in advance, over connections of the main process or with Python code."""
    return bool(getattr(dataset, "remotes", ())) or (not node.operator.is_ours and hasattr(dataset, "read_many"))


def _find_spawn_obstacle(node: Node) -> str:
    name, implementation = node.operator.name, node.operator.implementation
    is_local = not node.operator.is_ours and "<locals>" in getattr(implementation, "__qualname__", "")
    if registry.get(name) is not node.operator or implementation.__module__ == "__main__" or is_local:
        where = f"a function of {implementation.__module__}" if is_local else implementation.__module__
        return f"operator {name!r} is declared in {where}, which a new process does not import"
    try:
        pickling.dumps(dict(node.constants))
    except Exception as error:
        return f"an argument of operator {name!r} cannot be pickled ({type(error).__name__}: {error})"
    return ""


def _is_worthwhile(planned: Plan, stage: Stage) -> bool:
    """Return whether a stage is worth running in a replica.

    The stage is worth it if its chain processes data of a reader or a source one sample after the other.
    """
    seen: set[Node] = set()
    for node in planned.graph.nodes:
        sources = {e.source for e in edges(node) if not is_metadata(e)}
        if node.operator.kind in ("reader", "source") or not seen.isdisjoint(sources):
            seen.add(node)
    return stage.chain is not None and not stage.chain.accepts_tensors and not seen.isdisjoint(stage.chain.nodes)
