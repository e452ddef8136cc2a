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
        A node for the samples where it is true, and one for the others. Results that are computed from a part contain
        only its samples, also if they are outputs of the pipeline.

    Raises:
        RuntimeError: the predicate isn't a node, or no pipeline is being defined. ValueError: it is not on the CPU.
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
        input_0: Where the predicate is true. Of a node for the whole batch those samples are taken.
        input_1: Where it is false.
        predicate: A scalar of each sample, on the CPU.
        options: ``device``, ``name``, ``preserve``.

    Raises:
        RuntimeError: the predicate isn't a node; while the pipeline runs, types, dimensions or layouts of the parts
            differ. ValueError: the predicate is not on the CPU.
    """
    _check(predicate, "merge")
    merged: DataNode = lookup("_merge")(
        as_node(input_0), as_node(input_1), condition=predicate, what="the result of `merge`", **options
    )  # fmt: skip
    return merged


def not_(input: Any, /, **options: Any) -> Any:
    """Compute ``not`` of a scalar of each sample.

    Raises:
        RuntimeError: samples that are not scalars.
    """
    return lookup("_not")(input, **options)


def validate_logical(input: Any, /, *, expression_name: str, expression_side: str, **options: Any) -> Any:
    """Return an operand of ``and`` or ``or`` unchanged.

    Args:
        input: The operand.
        expression_name: ``"and"`` or ``"or"``, for the message.
        expression_side: ``"left"`` or ``"right"``.
        options: ``device``, ``name``, ``preserve``.

    Raises:
        RuntimeError: samples that are not bool scalars.
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
