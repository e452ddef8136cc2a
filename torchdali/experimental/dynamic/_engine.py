"""Compute operations: collect them and their inputs into a graph, plan the graph as in a pipeline, and run it.

Graphs of the same structure share one executor (a *runner*), so a loop's graph is planned once. The structure consists
of operators, constants, connections, and source lines of the user's code. Input values, the readers' records and the
keys of random numbers are passed to each run. An *edge* is an output of a node of the graph.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.calls.running import run_batch
from torchdali.errors import locate_error
from torchdali.execute.device_stream import resolve_device
from torchdali.experimental.dynamic._device import to_torch_device
from torchdali.experimental.dynamic._operation import Operation, OperationResult, operation_of
from torchdali.experimental.dynamic._structure import Structure, StructureRunner, structure_of
from torchdali.graph.nodes import DataNode, Node
from torchdali.kernels.memory import SMALL_SAMPLE
from torchdali.reading.cursor import Keys
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["OperationEngine"]

_MAX_CACHED = 8  # number of recently used executors to cache
_MAX_DIRECT = 3  # up to this number of operators on small values run faster one by one than in an executor


class OperationEngine:
    """Runs operations on threads.

    Args:
        num_threads: Number of threads.
        device_id: Index of the accelerator, or None.
    """

    def __init__(self, num_threads: int, device_id: int | None) -> None:
        self.num_threads = num_threads
        self._device: torch.device | None = resolve_device(device_id)
        self._runners: OrderedDict[Any, StructureRunner] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, operations: Sequence[Operation]) -> None:
        """Compute operations and their inputs; set the results of all operations whose results are referenced."""
        for work in _group_work(operations):
            # A runner that is in use isn't in the cache, so another thread creates its own runner.
            runner = self._pop_runner(work.key) or self._create_runner(work, several=False)
            try:
                outputs = runner.run(*work.arguments())
            except BaseException:
                runner.close()  # an interrupt may have left an unfinished batch in the runner
                raise
            self._cache_runner(work.key, runner)
            work.deliver(outputs)

    def begin(self, results: Sequence[OperationResult], runners: dict[Any, StructureRunner]) -> Callable[[], None]:
        """Begin to compute results; return a function that waits for the results and sets them.

        Results that aren't in `results` are not set, even if they are referenced, because another thread may change the
        references at any moment. The caller must call the returned functions in the order in which they were returned,
        from any thread.

        Args:
            results: The results to compute.
            runners: The caller's runners, by structure: a dictionary that is empty at first, and is passed to
                `give_back` at the end.
        """
        started: list[tuple[StructureRunner, _OperationWork]] = []
        try:
            for work in _group_work(list(dict.fromkeys(r.operation for r in results)), results):
                key = work.key
                if key not in runners:
                    runners[key] = self._pop_runner((key,)) or self._create_runner(work, several=True)
                started.append((runner := runners[key], work))
                runner.start(work, *work.arguments())
        except BaseException:  # drop the runners whose batches will never be taken
            for _, work in started:
                runners.pop(work.key, None)
            raise

        errors: list[Exception] = []

        def finish() -> None:
            while started:
                runner, work = started[0]
                try:
                    work.deliver(runner.finish(work))
                except Exception as error:  # the error is raised when all batches were taken from their runners
                    errors.append(error)
                del started[0]
            if errors:
                raise errors[0]

        return finish

    def give_back(self, runners: dict[Any, StructureRunner]) -> None:
        """Cache runners for the next caller of `begin`. All batches of the runners must be finished."""
        while runners:
            key, runner = runners.popitem()
            self._cache_runner((key,), runner)

    def _create_runner(self, work: _OperationWork, several: bool) -> StructureRunner:
        return StructureRunner(work.structure, self.num_threads, work.device or self._device, work.size, several)

    def _pop_runner(self, key: Any) -> StructureRunner | None:
        with self._lock:
            return self._runners.pop(key, None)

    def _cache_runner(self, key: Any, runner: StructureRunner) -> None:
        """Cache a runner for the next graph with the same structure; close the runners that the cache can't hold."""
        with self._lock:
            self._runners[key] = runner
            closed = [self._runners.popitem(last=False)[1] for _ in range(len(self._runners) - _MAX_CACHED)]
        for old in closed:
            old.close()


@dataclass(frozen=True)
class _OperationWork:
    """Operations on batches of one size, which one executor computes.

    Attributes:
        structure: Structure of the operations' graph.
        values: Known values, by edge.
        size: Number of samples of a batch.
        device: The accelerator on which operators run; None if all operators run on the CPU.
    """

    structure: Structure
    values: Mapping[DataNode, TensorList]
    size: int
    device: torch.device | None

    @property
    def key(self) -> Any:
        """Key of the runners that can compute this work."""
        return self.structure.key, self.device

    def arguments(self) -> tuple[list[TensorList], list[Keys], list[int | None]]:
        """Return the arguments of `StructureRunner.start`, except the tag."""
        operations = [(n, o) for n in self.structure.nodes if (o := operation_of(n))]
        keys = [o.key for n, o in operations if n.operator.schema.random]
        records = [o.records for _, o in operations if o.records is not None]
        return [self.values[e] for e in self.structure.inputs], records, keys

    def deliver(self, outputs: Sequence[TensorList]) -> None:
        """Set the results of the operations."""
        edges = self.structure.outputs
        results = dict(zip(edges, outputs, strict=True))
        for node in dict.fromkeys(e.source for e in edges):
            assert node is not None
            operation = operation_of(node)
            assert operation is not None
            operation.finish(tuple(results.get(e) for e in node.outputs))


def _group_work(
    operations: Sequence[Operation], results: Sequence[OperationResult] | None = None
) -> Iterator[_OperationWork]:
    """Group operations by size and accelerator, and yield each group as work for an executor.

    A group of a few operators on small samples isn't yielded; it is computed immediately.

    Args:
        results: The results to compute; by default, all referenced results.
    """
    for (size, device), chosen in _divide(operations).items():
        nodes = _needed_nodes(chosen)
        computed = [n for n in nodes if _results(n) is None]
        if not computed:
            continue
        values = {
            edge: value
            for node in nodes
            for edge, value in zip(node.outputs, _results(node) or (), strict=False)
            if value is not None
        }
        if _is_small(computed, values):
            _run_one_by_one(computed, values, size)
            continue
        if results is None:
            edges = _wanted_edges(computed, chosen)
        else:
            edges = [r.edge for r in results if r.operation.node in computed]
        yield _OperationWork(structure_of(computed, edges, size), values, size, device)


def _divide(operations: Sequence[Operation]) -> dict[tuple[int, torch.device | None], list[Operation]]:
    """Group operations by batch size and accelerator.

    A CPU operation joins the group of an accelerator if both have the same batch size.
    """
    groups: dict[tuple[int, torch.device | None], list[Operation]] = {}
    accelerators = {o.size: to_torch_device(o.device) for o in reversed(operations) if o.device.device_id is not None}
    for each in operations:
        on_cpu = each.device.device_id is None
        device = accelerators.get(each.size) if on_cpu else to_torch_device(each.device)
        groups.setdefault((each.size, device), []).append(each)
    return groups


def _results(node: Node) -> tuple[TensorList | None, ...] | None:
    operation = operation_of(node)
    return None if operation is None else operation.results


def _needed_nodes(operations: Iterable[Operation]) -> list[Node]:
    """Return the nodes that operations need, in topological order; known results end the search."""
    order: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(o.node, False) for o in operations]
    while stack:
        node, done = stack.pop()
        if node in order:
            continue
        if done or _results(node) is not None:
            order.setdefault(node)
            continue
        stack.append((node, True))
        stack.extend((parent, False) for parent in node.parents())
    return list(order)


def _wanted_edges(nodes: Sequence[Node], operations: Sequence[Operation]) -> list[DataNode]:
    """Return the edges whose values are referenced or requested."""
    targets = set(operations)
    edges = []
    for node in nodes:
        operation = operation_of(node)
        if operation is not None:
            referenced = operation.referenced_outputs()
            edges += [e for e in node.outputs if e.index in referenced or operation in targets]
    return edges


def _is_small(nodes: Sequence[Node], values: dict[DataNode, TensorList]) -> bool:
    """Return True if there are few operators, each of them processes a batch in one call, and the samples are small."""
    if len(nodes) > _MAX_DIRECT or not all(map(_accepts_batches, nodes)):
        return False
    inputs = [values[e] for n in nodes for e in n.inputs if e is not None and e in values]
    return not any(sample.nbytes > SMALL_SAMPLE for batch in inputs for sample in batch.samples()[:1])


def _accepts_batches(node: Node) -> bool:
    declared = node.operator
    return node.device == "cpu" and (declared.kind == "batch" or declared.accepts_tensors)


def _run_one_by_one(nodes: Sequence[Node], values: dict[DataNode, TensorList], size: int) -> None:
    for node in nodes:
        operation = operation_of(node)
        inputs = [None if e is None else values[e] for e in node.inputs]
        per_sample = {name: values[e] for name, e in node.per_sample.items()}
        key = operation.key if operation is not None else None
        rng = None if key is None else BatchRng.following(key, 0, size)
        try:
            results = run_batch(node.operator, inputs, node.constants, per_sample, rng, size)
        except Exception as error:
            where = f"operator {node.operator.name!r} failed\n  {node.where}"
            raise locate_error(error, where) from error
        values.update(zip(node.outputs, results, strict=True))
        if operation is not None:
            operation.finish(results)
