"""The functions of `fn._conditional`, which divide a batch into two nodes and merge the nodes, without an ``if``.

One of DALI's notebooks calls these functions directly.
"""

from __future__ import annotations

from typing import Any

from torchdali.declaration.registry import lookup
from torchdali.graph import nodes
from torchdali.graph.constants import as_node
from torchdali.graph.nodes import Condition, DataNode

__all__ = ["merge", "not_", "split", "validate_logical"]


def split(input: Any, /, *, predicate: DataNode, **options: Any) -> list[DataNode]:
    """Divide the samples of a batch into two nodes, by a predicate.

    Args:
        input: Data of any shape and dtype.
        predicate: One scalar per sample, on the CPU; values other than 0 are true.
        options: The arguments ``device``, ``name`` and ``preserve``.

    Returns:
        A node with the samples whose predicate is true, and a node with the other samples. Results that are computed
        from one of these nodes contain only the node's samples, even if the results are outputs of the pipeline.

    Raises:
        RuntimeError: the predicate isn't a node, or no pipeline is being defined.
        ValueError: the predicate is not on the CPU.
    """
    tracer = nodes.current()
    if tracer is None:
        raise RuntimeError("`split` must be called while a pipeline is being defined")
    _check(predicate, "split")
    outer, value, branches = tracer.scope, as_node(input), []
    inside = max(outer, nodes.scope_of(value), nodes.scope_of(predicate), key=len)
    name = options.pop("name", None)
    try:
        for truth in (True, False):
            tracer.scope = (*inside, Condition(predicate, truth))
            named = {"name": name if truth else f"{name}[1]"} if name else {}
            branches.append(lookup("_part")(value, **named, **options))
    finally:
        tracer.scope = outer
    return branches


def merge(input_0: Any, input_1: Any, /, *, predicate: DataNode, **options: Any) -> DataNode:
    """Merge the two nodes that `split` returned, or two results that were computed from these nodes, to one batch.

    Args:
        input_0: Node with the samples whose predicate is true. If the node also contains samples whose predicate is
            false, these samples are ignored.
        input_1: Node with the samples whose predicate is false. If the node also contains samples whose predicate is
            true, these samples are ignored.
        predicate: One scalar per sample, on the CPU, the same as in the call of `split`.
        options: The arguments ``device``, ``name`` and ``preserve``.

    Raises:
        RuntimeError: the predicate isn't a node. If the two inputs differ in dtype, number of axes or layout, the error
            is raised when the pipeline runs.
        ValueError: the predicate is not on the CPU.
    """
    _check(predicate, "merge")
    merged: DataNode = lookup("_merge")(
        as_node(input_0), as_node(input_1), condition=predicate, what="the result of `merge`", **options
    )  # fmt: skip
    return merged


def not_(input: Any, /, **options: Any) -> Any:
    """Compute ``not`` for one scalar per sample.

    Raises:
        RuntimeError: a sample is not a scalar.
    """
    return lookup("_not")(input, **options)


def validate_logical(input: Any, /, *, expression_name: str, expression_side: str, **options: Any) -> Any:
    """Check an operand of ``and`` or ``or``, and return the operand unchanged.

    Args:
        input: The operand.
        expression_name: ``"and"`` or ``"or"``, for the error message.
        expression_side: ``"left"`` or ``"right"``, for the error message.
        options: The arguments ``device``, ``name`` and ``preserve``.

    Raises:
        RuntimeError: a sample is not a bool scalar.
    """
    return lookup("_logical")(input, expression=expression_name, side=expression_side, **options)


def _check(predicate: Any, name: str) -> None:
    if not isinstance(predicate, DataNode):
        raise RuntimeError(f"the predicate of `{name}` must be a node with one scalar per sample, got {predicate!r}")
    if predicate.device != "cpu":
        raise ValueError(
            f"Invalid device \"gpu\" for argument 'predicate' of operator 'fn._conditional.{name}': {predicate} must "
            "be on the CPU; use .cpu()"
        )
