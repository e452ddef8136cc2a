"""Branches without an `if`: `fn._conditional`, for scripts that call it directly, like one of DALI's notebooks."""

from __future__ import annotations

from typing import Any

from torchdali.declaration.registry import lookup
from torchdali.graph import nodes
from torchdali.graph.constants import as_node
from torchdali.graph.nodes import Condition, DataNode

__all__ = ["merge", "not_", "split", "validate_logical"]


def split(input: Any, /, *, predicate: DataNode, **options: Any) -> list[DataNode]:
    """Divide a batch by a truth value of each sample.

    Args:
        input: Any shape and type.
        predicate: A scalar per sample, on the CPU; values other than 0 are true.
        options: ``device``, ``name``, ``preserve``.

    Returns:
        A node for the samples where the predicate is true, and a node for the other samples. Results that are computed
        from a part contain only the part's samples, even if they are outputs of the pipeline.

    Raises:
        RuntimeError: the predicate isn't a node, or no pipeline is being defined.
        ValueError: the predicate is not on the CPU.
    """
    tracer = nodes.current()
    if tracer is None:
        raise RuntimeError("`split` works while a pipeline is being defined")
    _check(predicate, "split")
    outer, value, parts = tracer.scope, as_node(input), []
    inside = max(outer, nodes.scope_of(value), nodes.scope_of(predicate), key=len)
    name = options.pop("name", None)
    try:
        for truth in (True, False):
            tracer.scope = (*inside, Condition(predicate, truth))
            named = {"name": name if truth else f"{name}[1]"} if name else {}
            parts.append(lookup("_part")(value, **named, **options))
    finally:
        tracer.scope = outer
    return parts


def merge(input_0: Any, input_1: Any, /, *, predicate: DataNode, **options: Any) -> DataNode:
    """Merge the parts of a batch that `split` made with the same predicate.

    Args:
        input_0: The samples where the predicate is true, or a node for the whole batch, whose other samples are
            ignored.
        input_1: The samples where the predicate is false, or a node for the whole batch.
        predicate: A scalar per sample, on the CPU.
        options: ``device``, ``name``, ``preserve``.

    Raises:
        RuntimeError: the predicate isn't a node; or, while the pipeline runs, the parts differ in dtype, number of
            axes or layout.
        ValueError: the predicate is not on the CPU.
    """
    _check(predicate, "merge")
    merged: DataNode = lookup("_merge")(
        as_node(input_0), as_node(input_1), condition=predicate, what="the result of `merge`", **options
    )  # fmt: skip
    return merged


def not_(input: Any, /, **options: Any) -> Any:
    """Compute ``not`` of one scalar per sample.

    Raises:
        RuntimeError: a sample is not a scalar.
    """
    return lookup("_not")(input, **options)


def validate_logical(input: Any, /, *, expression_name: str, expression_side: str, **options: Any) -> Any:
    """Return an operand of ``and`` or ``or`` unchanged.

    Args:
        input: The operand.
        expression_name: ``"and"`` or ``"or"``, for the error message.
        expression_side: ``"left"`` or ``"right"``.
        options: ``device``, ``name``, ``preserve``.

    Raises:
        RuntimeError: a sample is not a bool scalar.
    """
    return lookup("_logical")(input, expression=expression_name, side=expression_side, **options)


def _check(predicate: Any, name: str) -> None:
    if not isinstance(predicate, DataNode):
        raise RuntimeError(f"the predicate of `{name}` is a node with one scalar per sample, not {predicate!r}")
    if predicate.device != "cpu":
        raise ValueError(
            f"Invalid device \"gpu\" for argument 'predicate' of operator 'fn._conditional.{name}': {predicate} must "
            "be on the CPU; use .cpu()"
        )
