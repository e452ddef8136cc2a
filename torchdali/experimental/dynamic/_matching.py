"""Compare the calls of a captured loop's body with the calls of its first iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from torchdali.declaration.registry import Operator
from torchdali.experimental.dynamic._operation import Operation, OperationResult, operation_of
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._structure import freeze
from torchdali.experimental.dynamic._value import LazyValue
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import edges
from torchdali.graph.rewrite import copy_node
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

__all__ = ["CallMatcher", "CallSignature", "copy_call_node"]

_PLAIN_TYPES = frozenset((
    bool, int, float, str, type(None), torch.dtype, DALIDataType, DALIImageType, DALIInterpType, RNG,
))  # fmt: skip


def copy_call_node(node: Node, copies: dict[DataNode, DataNode], calls: Collection[Node]) -> Node:
    """Copy a node and its parents that have no copy yet.

    Args:
        copies: Edges and their copies; the new copies are added.
        calls: The nodes that must be copied. Other operations' results are used without a copy.
    """

    def copy_edge(edge: DataNode) -> DataNode:
        if edge not in copies:
            assert edge.source is not None
            if edge.source not in calls and operation_of(edge.source) is not None:
                return edge
            copy_call_node(edge.source, copies, calls)
        return copies[edge]

    new = {edge: copy_edge(edge) for edge in edges(node)}
    copy = copy_node(node, new)
    copies.update(zip(node.outputs, copy.outputs, strict=True))
    return copy


class CallSignature:
    """A description of a call in the loop's body, by which the same call is recognized in a later iteration.

    The later call needn't be recorded.

    Args:
        kinds: Types of the inputs, followed by types of the named arguments.
        operands: The inputs and arguments: edges of the template (outputs of its nodes), plain values such as numbers,
            and results of `_types_and_values`.
        names: Names of the named arguments.
        size: The argument ``batch_size``.
        make_value: Class of the results; called to create each result.
        indices: Indices of the outputs that the call returns.
        several: True if the call returns a tuple.
    """

    __slots__ = ("_declared", "_indices", "_kinds", "_make_value", "_names", "_operands", "_several", "_size")

    def __init__(
        self,
        declared: Operator,
        kinds: tuple[type, ...],
        operands: Sequence[Any],
        names: tuple[str, ...],
        size: int | None,
        make_value: Callable[..., Any],
        indices: Sequence[int],
        several: bool,
    ) -> None:
        self._declared, self._kinds, self._operands = declared, kinds, operands
        self._names, self._size = names, size
        self._make_value, self._indices, self._several = make_value, indices, several

    @staticmethod
    def of(
        declared: Operator,
        inputs: Sequence[Any],
        arguments: Mapping[str, Any],
        size: int | None,
        result: Any,
        nodes: Collection[Node],
    ) -> CallSignature | None:
        """Return the signature of a call; None if an operand is neither a plain value nor an output of ``nodes``."""
        values = (*inputs, *arguments.values())
        kinds, operands = tuple(map(type, values)), list[Any]()
        for value, kind in zip(values, kinds, strict=True):
            edge = value._result.edge if isinstance(value, LazyValue) and value._result else None
            if edge is not None and edge.source in nodes:
                operands.append(edge)
            elif kind in _PLAIN_TYPES:
                operands.append(value)
            elif kind in (list, tuple) and _PLAIN_TYPES.issuperset(map(type, value)):
                operands.append(_types_and_values(value))
            else:
                return None
        outputs = result if isinstance(result, tuple) else (result,)
        indices = [each._result.index for each in outputs]
        return CallSignature(
            declared, kinds, operands, tuple(arguments), size,
            type(outputs[0]), indices, isinstance(result, tuple),
        )  # fmt: skip

    def matches(
        self,
        declared: Operator,
        inputs: Sequence[Any],
        arguments: Mapping[str, Any],
        size: int | None,
        copies: Mapping[DataNode, DataNode],
    ) -> bool:
        """Return True if a call has this form; ``copies`` maps the template's edges to this iteration's edges."""
        values = (*inputs, *arguments.values())
        if declared is not self._declared or size != self._size or tuple(arguments) != self._names:
            return False
        if tuple(map(type, values)) != self._kinds:
            return False
        for value, kind, expected in zip(values, self._kinds, self._operands, strict=True):
            if isinstance(value, LazyValue):
                # A computed value may require a gradient, which a prepared operation doesn't compute.
                if value._list is not None or value._result is None:
                    return False
                if value._result.edge is not copies.get(expected):
                    return False
            elif kind is list or kind is tuple:
                if _types_and_values(value) != expected:
                    return False
            elif value is not expected and (kind is RNG or value != expected):
                return False
        return True

    def results(self, operation: Operation) -> Any:
        """Return the results of a prepared operation, in the classes that the call returns."""
        outputs = [self._make_value(invocation_result=OperationResult(operation, i)) for i in self._indices]
        return tuple(outputs) if self._several else outputs[0]


def _types_and_values(values: Sequence[Any]) -> tuple[tuple[type, Any], ...]:
    return tuple((type(each), each) for each in values)


class CallMatcher:
    """Compares calls with the calls of the template.

    Args:
        calls: Nodes of the template's calls; other nodes are auxiliary, for example constants.
    """

    def __init__(self, calls: Collection[Node]) -> None:
        self._calls = calls

    def check(self, node: Node, expected: Node, copies: Mapping[DataNode, DataNode]) -> None:
        """Compare a call with the call of the first iteration.

        Raises:
            RuntimeError: The operator, the arguments or the operands differ.
        """
        if node.operator is not expected.operator:
            raise RuntimeError(
                f"the body of a captured loop must make the same calls in each iteration, got {node.operator.name!r} "
                f"in place of {expected.operator.name!r}\n  {node.where}"
            )
        if freeze(node.constants) != freeze(expected.constants):
            raise RuntimeError(
                f"the arguments of {node.operator.name!r} must be the same in each iteration of a captured loop: "
                f"{_describe_difference(node, expected)}\n  {node.where}"
            )
        pairs = [*zip(node.inputs, expected.inputs, strict=False)]
        pairs += [(node.per_sample.get(name), e) for name, e in expected.per_sample.items()]
        has_same_operands = (
            len(node.inputs) == len(expected.inputs) and node.per_sample.keys() == expected.per_sample.keys()
        )
        if not (has_same_operands and all(self._is_same(a, b, copies) for a, b in pairs)):
            raise RuntimeError(
                f"the operands of {node.operator.name!r} must be the same in each iteration of a captured loop: only "
                f"the loop's own data may change\n  {node.where}"
            )

    def _is_same(self, edge: DataNode | None, expected: DataNode | None, copies: Mapping[DataNode, DataNode]) -> bool:
        if edge is None or expected is None:
            return edge is expected
        if copies.get(expected, expected) is edge:
            return True
        value, expected_value = _computed_value(edge), _computed_value(expected)
        if value is not None and expected_value is not None and expected not in copies:
            return _equal_values(value, expected_value)
        # Auxiliary nodes, for example constants, are created again in each iteration.
        one, other = edge.source, expected.source
        if one is None or other is None or other in self._calls:
            return False
        try:
            self.check(one, other, copies)
        except RuntimeError:
            return False
        return True


def _describe_difference(node: Node, expected: Node) -> str:
    names = [n for n in {**node.constants, **expected.constants}
             if freeze(node.constants.get(n)) != freeze(expected.constants.get(n))]  # fmt: skip
    return ", ".join(f"{n}={node.constants.get(n)!r}, was {expected.constants.get(n)!r}" for n in names)


def _computed_value(edge: DataNode) -> TensorList | None:
    """Return the value of an edge, or None if it is not computed yet."""
    operation = None if edge.source is None else operation_of(edge.source)
    if operation is None or operation.results is None:
        return None
    return operation.results[edge.index]


def _equal_values(one: TensorList, other: TensorList) -> bool:
    if one.layout() != other.layout() or len(one) != len(other) or one.torch_dtype != other.torch_dtype:
        return False
    pairs = zip(one.samples(), other.samples(), strict=True)
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)
