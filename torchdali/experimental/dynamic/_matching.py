"""Compare the calls of a captured loop's body with those of its first iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch

from torchdali.experimental.dynamic._operation import operation_of
from torchdali.experimental.dynamic._structure import frozen
from torchdali.graph import DataNode, Node
from torchdali.tensors import TensorList

__all__ = ["CallMatcher", "copied_node"]


def copied_node(node: Node, copies: dict[DataNode, DataNode], calls: Collection[Node]) -> Node:
    """Copy a node, and those before it that are not copied yet; results of operations not in ``calls`` stay."""

    def copied(edge: DataNode) -> DataNode:
        if edge not in copies:
            assert edge.source is not None
            if edge.source not in calls and operation_of(edge.source) is not None:
                return edge
            copied_node(edge.source, copies, calls)
        return copies[edge]

    inputs = tuple(None if edge is None else copied(edge) for edge in node.inputs)
    per_sample = {name: copied(e) for name, e in node.per_sample.items()}
    made = Node(
        node.operator, node.name, node.device, inputs, node.constants, per_sample,
        node.lines, preserve=node.preserve,
    )  # fmt: skip
    made.outputs = tuple(DataNode(e.name, e.device, made, e.index) for e in node.outputs)
    copies.update(zip(node.outputs, made.outputs, strict=True))
    return made


class CallMatcher:
    """Compares calls with those of a template.

    Args:
        calls: Nodes of the template's calls; other nodes only serve these.
    """

    def __init__(self, calls: Collection[Node]) -> None:
        self._calls = calls

    def check(self, node: Node, expected: Node, copies: Mapping[DataNode, DataNode]) -> None:
        """Compare a call with the one of the first iteration.

        Raises:
            RuntimeError: operator, arguments or operands differ.
        """
        if node.operator is not expected.operator:
            raise RuntimeError(
                f"the body of a captured loop called {node.operator.name!r} where it called "
                f"{expected.operator.name!r} in "
                f"its first iteration\n  {node.where}"
            )
        if frozen(node.constants) != frozen(expected.constants):
            raise RuntimeError(
                f"an argument of {node.operator.name!r} changed since the first iteration of a captured loop: "
                f"{_difference(node, expected)}\n  {node.where}"
            )
        pairs = [*zip(node.inputs, expected.inputs, strict=False)]
        pairs += [(node.per_sample.get(name), e) for name, e in expected.per_sample.items()]
        wired = (
            len(node.inputs) == len(expected.inputs)
            and node.per_sample.keys() == expected.per_sample.keys()
        )
        if not (wired and all(self._same(a, b, copies) for a, b in pairs)):
            raise RuntimeError(
                f"an operand of {node.operator.name!r} is not the one of the first iteration of a captured loop: "
                f"only the loop's own data may change\n  {node.where}"
            )

    def _same(
        self, edge: DataNode | None, expected: DataNode | None, copies: Mapping[DataNode, DataNode]
    ) -> bool:
        if edge is None or expected is None:
            return edge is expected
        if copies.get(expected, expected) is edge:
            return True
        value, its_value = _known(edge), _known(expected)
        if value is not None and its_value is not None and expected not in copies:
            return _equal_values(value, its_value)
        # Nodes that only serve another one, such as constants, are made anew in each iteration.
        one, other = edge.source, expected.source
        if one is None or other is None or other in self._calls:
            return False
        try:
            self.check(one, other, copies)
        except RuntimeError:
            return False
        return True


def _difference(node: Node, expected: Node) -> str:
    names = [n for n in {**node.constants, **expected.constants}
             if frozen(node.constants.get(n)) != frozen(expected.constants.get(n))]  # fmt: skip
    return ", ".join(
        f"{n}={node.constants.get(n)!r}, was {expected.constants.get(n)!r}" for n in names
    )


def _known(edge: DataNode) -> TensorList | None:
    """Return the value of an edge, if it is there."""
    operation = None if edge.source is None else operation_of(edge.source)
    if operation is None or operation.results is None:
        return None
    return operation.results[edge.index]


def _equal_values(one: TensorList, other: TensorList) -> bool:
    if (
        one.layout() != other.layout()
        or len(one) != len(other)
        or one.torch_dtype != other.torch_dtype
    ):
        return False
    pairs = zip(one.samples(), other.samples(), strict=True)
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)
