"""Run an operator over a batch. If the operator is in a branch of an if statement, run it over the branch's samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchdali.calls.layouts import resolve_layouts
from torchdali.calls.running import FunctionCache, run_batch, to_column
from torchdali.errors import is_batch_level, locate_error
from torchdali.execute.batch import InFlightBatch
from torchdali.execute.chunks import branches_of
from torchdali.execute.device_stream import DeviceStream
from torchdali.graph.nodes import Condition, DataNode, Node, scope_of
from torchdali.graph.plan import edges
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList
from torchdali.tensors._sharing import separate

__all__ = ["deliver", "find_failures", "run_in_scope", "run_step"]


def run_step(
    batch: InFlightBatch,
    node: Node,
    device_stream: DeviceStream,
    rng: BatchRng | None,
    cache: FunctionCache | None = None,
) -> tuple[TensorList, ...]:
    """Run an operator over a batch, on its device.

    Args:
        batch: The batch.
        node: The operator.
        device_stream: The pipeline's device.
        rng: Random numbers of the batch; None if the operator isn't random.
        cache: Cache of functions that run this operator. The caller passes the same cache for every batch. None
            for no cache.

    Raises:
        Exception: The error names the operator and the line of the user's code that called the operator. If the
            operator can run on single samples, the error also names the failed sample and the sample's file.
    """
    on_cpu = node.device == "cpu"
    try:
        inputs = [None if e is None else batch.values[e] for e in node.inputs]
        first = next((v for v in inputs if v is not None), None) if inputs else None
        moves = node.operator.name == "_to_device"
        if not on_cpu or moves:
            inputs = _move(node, device_stream, inputs)
        if moves and not node.scope:  # `_move` has done the operator's work
            results = tuple(v for v in inputs if v is not None)
        else:
            arguments = {name: batch.values[e] for name, e in node.per_sample.items()}
            results = run_in_scope(node, inputs, arguments, rng, batch.draw.size, batch.values, cache)
            if not on_cpu:  # some operators return results on the CPU, for example shapes
                results = tuple(map(device_stream.to_device, results))
    except StopIteration:
        raise
    except Exception as error:
        sample = None
        # If the operator has a side effect, the operator must not run again only to find the sample.
        if on_cpu and not (node.preserve or is_batch_level(error)):
            sample = next((i for i, _ in find_failures(batch, node, device_stream, rng)), None)
        raise locate_error(error, batch.draw.location(node.culprit(error), sample)) from error
    if first is not None:
        for result in results:
            result.inherit_source_infos(first)
    return results


def _move(node: Node, device_stream: DeviceStream, inputs: Sequence[TensorList | None]) -> list[TensorList | None]:
    move = device_stream.to_cpu if node.device == "cpu" else device_stream.to_device
    return [None if v is None else move(v) for v in inputs]


def find_failures(
    batch: InFlightBatch, node: Node, device_stream: DeviceStream, rng: BatchRng | None
) -> Iterator[tuple[int, Exception]]:
    """Run an operator sample by sample, and yield the index and the error of each sample that fails.

    Yield nothing if the operator can't run on single samples.
    """
    needs = list(edges(node))
    is_separable = node.operator.is_separable({**node.constants, **node.per_sample})
    if not is_separable or not needs:
        return
    for i in range(batch.draw.size):
        part = {e: _pick(batch.values[e], [i]) for e in needs}
        inputs = [None if e is None else part[e] for e in node.inputs]
        if node.device != "cpu":
            inputs = _move(node, device_stream, inputs)
        arguments = {name: part[e] for name, e in node.per_sample.items()}
        try:
            run_in_scope(node, inputs, arguments, rng and rng.pick([i]), 1, part)
        except Exception as failure:
            if not node.preserve:
                _renumber(failure, batch.draw.original_index(i))
            yield i, failure


def _renumber(error: Exception, sample: int) -> None:
    """In the error of a single sample, replace "sample 0" by the sample's index in the batch."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (re.sub(r"\bsample 0\b", f"sample {sample}", error.args[0]),)


def run_in_scope(
    node: Node,
    inputs: Sequence[TensorList | None],
    arguments: Mapping[str, TensorList],
    rng: BatchRng | None,
    size: int,
    conditions: Mapping[DataNode, TensorList],
    cache: FunctionCache | None = None,
) -> tuple[TensorList, ...]:
    """Run an operator over those samples of a batch for which the operator's conditions hold.

    Args:
        node: The operator.
        inputs: The inputs, on the operator's device.
        arguments: The arguments that are passed per sample.
        rng: Random numbers of the batch; None if the operator isn't random.
        size: Number of samples of the batch.
        conditions: Values of the conditions in ``node.scope``.
        cache: Cache of functions that run this operator. The caller passes the same cache for every batch. None
            for no cache.

    Returns:
        Batches of `size` samples. If the conditions don't hold for a sample, the sample is None.
    """
    if not node.scope:
        return run_batch(node.operator, inputs, node.constants, arguments, rng, size, cache)
    chosen = _chosen(node.scope, conditions, size)
    layouts = resolve_layouts(node.operator, inputs)
    inputs = [None if v is None else _pick(v, chosen) for v in inputs]
    if chosen:
        arguments = {name: _pick(v, chosen) for name, v in arguments.items()}
        rng = None if rng is None else rng.pick(chosen)
        results = run_batch(node.operator, inputs, node.constants, arguments, rng, len(chosen), cache)
    else:
        output_layouts = node.operator.output_layouts(layouts, node.constants)
        results = tuple(TensorList.from_samples([], layout) for layout in output_layouts)
    return tuple(_spread(result, chosen, size) for result in results)


def _chosen(scope: Sequence[Condition], conditions: Mapping[DataNode, TensorList], size: int) -> Sequence[int]:
    chosen: Sequence[int] = range(size)
    for condition in scope:
        branches = branches_of(to_column(conditions[condition.edge], False), chosen, isinstance(condition.value, bool))
        chosen = branches.get(condition.value, ())
    return chosen


def _pick(batch: TensorList, chosen: Sequence[int]) -> TensorList:
    samples = batch.samples()
    return TensorList.from_samples([samples[i] for i in chosen], batch.layout())


def _spread(batch: TensorList, chosen: Sequence[int], size: int) -> TensorList:
    samples: list[Any] = [None] * size
    for i, sample in zip(chosen, batch.samples(), strict=True):
        samples[i] = sample
    return TensorList.from_samples(samples, batch.layout())


def deliver(
    batches: Mapping[DataNode, TensorList], outputs: Sequence[DataNode], may_share: bool = True
) -> tuple[TensorList, ...]:
    """Return the pipeline's outputs. The user may write to an output, so different outputs share no memory.

    Args:
        batches: The batch of each operator's output.
        outputs: The pipeline's outputs.
        may_share: True if some of these batches may share memory. Then the function copies batches that share memory.
    """
    by_edge = {edge: _present(batches, edge) for edge in outputs}
    if may_share:
        by_edge = dict(zip(by_edge, separate(list(by_edge.values())), strict=True))
    return tuple([by_edge[edge] for edge in outputs])


def _present(batches: Mapping[DataNode, TensorList], edge: DataNode) -> TensorList:
    """Return the batch of an output. An output in a branch has only the samples of the branch."""
    batch = batches[edge]
    if not scope_of(edge):
        return batch
    samples = [sample for sample in batch.samples() if sample is not None]
    return TensorList.from_samples(samples, batch.layout())
