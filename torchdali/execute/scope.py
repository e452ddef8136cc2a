"""Parts of a batch: what an operator inside a branch of a conditional gets, and where its results go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchdali.graph import Condition, DataNode, Node
from torchdali.operator import run_batch
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["run_in_scope", "truth", "values"]


def run_in_scope(
    node: Node,
    inputs: Sequence[TensorList | None],
    edges: Mapping[str, TensorList],
    rng: BatchRng | None,
    size: int,
    conditions: Mapping[DataNode, TensorList],
) -> tuple[TensorList, ...]:
    """Run an operator over the samples of a batch for which its conditions hold.

    Args:
        inputs: On the operator's device.
        edges: Arguments given per sample.
        size: Samples of the batch.
        conditions: Values of the edges in ``node.scope``.

    Returns:
        Batches of ``size`` samples; those of the other branch are None until `_merge`.
    """
    if not node.scope:
        return run_batch(node.operator, inputs, node.constants, edges, rng, size)
    chosen = _chosen(node.scope, conditions, size)
    inputs = [None if v is None else _pick(v, chosen) for v in inputs]
    if chosen:
        edges = {name: _pick(v, chosen) for name, v in edges.items()}
        rng = None if rng is None else rng.pick(chosen)
        results = run_batch(node.operator, inputs, node.constants, edges, rng, len(chosen))
    else:
        layouts = tuple("" if v is None else v.layout() for v in inputs)
        found = node.operator.output_layouts(layouts, node.constants)
        results = tuple(TensorList.from_samples([], layout) for layout in found)
    return tuple(_spread(result, chosen, size) for result in results)


def _chosen(
    scope: Sequence[Condition], conditions: Mapping[DataNode, TensorList], size: int
) -> list[int]:
    chosen = list(range(size))
    for condition in scope:
        column = values(conditions[condition.edge])
        if isinstance(condition.value, bool):
            chosen = [i for i in chosen if truth(column[i]) == condition.value]
        else:
            chosen = [i for i in chosen if column[i] == condition.value]
    return chosen


def _pick(batch: TensorList, chosen: Sequence[int]) -> TensorList:
    samples = batch.samples()
    return TensorList.from_samples([samples[i] for i in chosen], batch.layout())


def _spread(batch: TensorList, chosen: Sequence[int], size: int) -> TensorList:
    places: list[Any] = [None] * size
    for i, sample in zip(chosen, batch.samples(), strict=True):
        places[i] = sample
    return TensorList.from_samples(places, batch.layout())


def values(batch: TensorList) -> list[Any]:
    """Return Python numbers or lists, one a sample; None where a branch did not compute one."""
    if batch.dense() is None and any(sample is None for sample in batch.samples()):
        return [None if sample is None else sample.tolist() for sample in batch.samples()]
    return batch.tolist()


def truth(value: Any) -> bool:
    """Return the truth of a condition's value; numbers are true when they are not 0.

    Raises:
        RuntimeError: it is not a scalar.
    """
    if isinstance(value, list):
        raise RuntimeError(
            "the condition of an `if` must be a scalar (0D), and this one has dimensions"
        )
    return bool(value)
