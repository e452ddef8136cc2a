"""Choose one of several operations for each sample."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchdali.declaration.registry import lookup
from torchdali.graph import nodes
from torchdali.graph.conditionals import convert
from torchdali.graph.constants import as_node
from torchdali.graph.nodes import Condition, DataNode

__all__ = ["select"]

_MAX_INPUTS = 64  # greatest number of inputs of an operator
_MERGEABLE = (DataNode, bool, int, float, np.generic, np.ndarray)


def select(ops: Sequence[Callable[..., Any]], selected_op_idx: DataNode, *op_args: Any, **op_kwargs: Any) -> Any:
    """Apply one of several operations to each sample: ``ops[selected_op_idx](*op_args, **op_kwargs)``.

    A sample is processed only by the operation that is selected for the sample. All operations must return results of
    the same structure. The results are merged into one result.

    Args:
        ops: Functions of nodes, or augmentations.
        selected_op_idx: An index per sample. A negative index selects the first operation; an index beyond the end
            selects the last operation.
        op_args: Positional arguments of each operation.
        op_kwargs: Keyword arguments of each operation.

    Raises:
        ValueError: the list of operations is empty, or the results differ in structure.
        TypeError: a result is neither a node nor a number.
        RuntimeError: the index is on the accelerator, or no pipeline is being defined. While the pipeline runs, the
            error is raised if the results differ in dtype, number of axes or layout.
    """
    if not ops:
        raise ValueError("`select` needs at least one operation, got an empty list")
    if len(ops) == 1:
        return convert(ops[0])(*op_args, **op_kwargs)
    tracer = nodes.current()
    if tracer is None:
        raise RuntimeError("`select` must be called while a pipeline is being defined")
    index = as_node(selected_op_idx)
    if index.device != "cpu":
        raise RuntimeError(f"the index {index} must be on the CPU; use .cpu()")
    case = lookup("_case")(index, count=len(ops))
    if len(ops) > _MAX_INPUTS:
        starts = range(0, len(ops), _MAX_INPUTS)
        groups = [functools.partial(select, ops[s : s + _MAX_INPUTS], case - s) for s in starts]
        return select(groups, case // _MAX_INPUTS, *op_args, **op_kwargs)
    outer, results = tracer.scope, []
    try:
        for number, op in enumerate(ops):
            tracer.scope = (*outer, Condition(case, number))
            results.append(convert(op)(*op_args, **op_kwargs))
    finally:
        tracer.scope = outer
    return _merge(case, results, "the result of `select`")


def _merge(case: DataNode, values: Sequence[Any], description: str) -> Any:
    """Merge the results of all operations; merge lists, tuples and dicts element by element."""
    first = values[0]
    if all(value is first for value in values):
        return first
    if isinstance(first, (list, tuple)):
        _check_structure(values, description, [len(v) if type(v) is type(first) else None for v in values])
        columns = zip(*values, strict=True)
        return type(first)(_merge(case, c, f"{description}[{i}]") for i, c in enumerate(columns))
    if isinstance(first, dict):
        _check_structure(values, description, [v.keys() if isinstance(v, dict) else None for v in values])
        return {k: _merge(case, [v[k] for v in values], f"{description}[{k!r}]") for k in first}
    invalid = next((v for v in values if not isinstance(v, _MERGEABLE)), None)
    if any(v is None for v in values) or invalid is not None:
        raise TypeError(
            f"{description} must be a node, a number, an array, or a list or dict of these in each operation, got a "
            f"{type(invalid).__name__}"
        )
    return lookup("_choose")(*map(as_node, values), case=case, what=description)


def _check_structure(values: Sequence[Any], description: str, structures: Sequence[Any]) -> None:
    if any(structure != structures[0] for structure in structures):
        raise ValueError(f"{description} must have the same structure in each operation, got {list(values)}")
