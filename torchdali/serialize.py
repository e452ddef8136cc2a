"""A graph as JSON values and back, and as a drawing.

Only data are saved: an operator whose argument is a Python object (a callback, a source, a module) is
refused with its name. Reading a saved graph runs no code of the file; it looks operators up by name, so
that modules which declare a user's own operators must be imported before.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali import types
from torchdali.graph import Condition, DataNode, Graph, Node, SourceLine
from torchdali.operator import Operator, lookup

__all__ = ["decode", "dot", "encode", "graph_from_json", "graph_to_json"]

Json = Any


# ---------------------------------------------------------------- values


def encode(value: Any) -> Json:
    """Return a value as JSON; what JSON does not know becomes ``{"kind": content}``.

    Raises:
        TypeError: a Python object that is not data.
    """
    if isinstance(value, Enum):
        return {"enum": [type(value).__name__, value.name]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, torch.Tensor):
        return {"tensor": encode(value.numpy(force=True))}
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        content = base64.b64encode(array.tobytes()).decode()
        return {"array": [array.dtype.str, list(np.shape(value)), content]}
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {"dict": {k: encode(v) for k, v in value.items()}}
    raise TypeError(f"{value!r} is a Python object of the type {type(value).__name__}, and no data")


def decode(data: Json) -> Any:
    """Return the value that `encode` turned into JSON; tuples come back as lists."""
    if isinstance(data, list):
        return [decode(v) for v in data]
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    return _DECODERS[kind](content)


def _decode_array(content: Json) -> np.ndarray[Any, Any]:
    dtype, shape, data = content
    if np.dtype(dtype).hasobject:
        raise ValueError(f"an array of the type {dtype!r} cannot be read: it holds Python objects")
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()


def _decode_enum(content: Json) -> Any:
    name, member = content
    if name not in _ENUMS:
        raise ValueError(f"unknown enumeration {name!r}")
    return _ENUMS[name][member]


_ENUMS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        types.DALIDataType, types.DALIImageType, types.DALIInterpType, types.StreamPolicy,
        types.OperatorConcurrency, types.PipelineAPIType,
    )
}  # fmt: skip

_DECODERS: dict[str, Any] = {
    "enum": _decode_enum,
    "float": float,
    "dtype": lambda name: types.to_torch_dtype(getattr(torch, name)),
    "bytes": base64.b64decode,
    "tensor": lambda data: torch.from_numpy(decode(data)),
    "array": _decode_array,
    "dict": lambda content: {k: decode(v) for k, v in content.items()},
}


# ---------------------------------------------------------------- graphs


def graph_to_json(graph: Graph) -> Json:
    """Return a graph as JSON values.

    Raises:
        RuntimeError: an argument is a Python object; names the operator, the argument and the user's line.
    """
    number = {node: i for i, node in enumerate(graph.nodes)}

    def edge(e: DataNode | None) -> Json:
        return None if e is None or e.source is None else [number[e.source], e.index]

    def node_to_json(node: Node) -> Json:
        return {
            "operator": node.operator.name,
            "name": node.name,
            "device": node.device,
            "inputs": [edge(e) for e in node.inputs],
            "constants": {k: _encode_argument(node, k, v) for k, v in node.constants.items()},
            "edges": {k: edge(e) for k, e in node.edges.items()},
            "scope": [[edge(c.edge), c.value] for c in node.scope],
            "preserve": node.preserve,
            "stream": node.stream,
            "outputs": len(node.outputs),
            "lines": [[line.file, line.line, line.function] for line in node.lines],
        }

    return {
        "nodes": [node_to_json(node) for node in graph.nodes],
        "outputs": [edge(e) for e in graph.outputs],
    }


def _encode_argument(node: Node, name: str, value: Any) -> Json:
    try:
        return encode(value)
    except TypeError as error:
        raise RuntimeError(
            f"could not serialize the operator {node.operator.name!r} ({node.name}): its argument {name!r} "
            f"cannot be saved: {error}\n  {node.where}"
        ) from None


def graph_from_json(data: Json) -> Graph:
    """Return the graph that `graph_to_json` wrote.

    Raises:
        RuntimeError: it uses an operator that is not declared.
    """
    nodes: list[Node] = []

    def edge(at: Json) -> DataNode | None:
        return None if at is None else nodes[at[0]].outputs[at[1]]

    def present(at: Json) -> DataNode:
        found = edge(at)
        assert found is not None
        return found

    for saved in data["nodes"]:
        node = Node(
            _operator(saved["operator"]),
            saved["name"],
            saved["device"],
            tuple(edge(at) for at in saved["inputs"]),
            {k: decode(v) for k, v in saved["constants"].items()},
            {k: present(at) for k, at in saved["edges"].items()},
            tuple(SourceLine(*line) for line in saved["lines"]),
            tuple(Condition(present(at), value) for at, value in saved["scope"]),
            saved["preserve"],
            saved["stream"],
        )
        where = "cpu" if node.device == "cpu" else "gpu"
        node.outputs = tuple(DataNode(node.name, where, node, i) for i in range(saved["outputs"]))
        nodes.append(node)
    return Graph(tuple(nodes), tuple(present(at) for at in data["outputs"]))


def _operator(name: str) -> Operator:
    try:
        return lookup(name).operator  # type: ignore[attr-defined, no-any-return]
    except KeyError:
        raise RuntimeError(
            f"the saved graph uses the operator {name!r}, which is not declared: import the module that declares it"
        ) from None


# ---------------------------------------------------------------- drawing


def dot(graph: Graph, *, show_tensors: bool = False, use_colors: bool = False) -> str:
    """Draw a graph in the language of Graphviz.

    Args:
        show_tensors: Draw the edges as boxes of their own.
        use_colors: Colour operators by device: CPU blue, GPU green, mixed cyan.
    """
    lines = ["digraph pipeline {"]
    for node in graph.nodes:
        color = f', color="{_COLORS[node.device]}"' if use_colors else ""
        lines.append(f'  "{node.name}" [label="{node.name}\\n{node.operator.name}"{color}];')
        for edge in node.outputs if show_tensors else ():
            lines.append(f'  "{_box(edge)}" [shape=box];')
            lines.append(f'  "{node.name}" -> "{_box(edge)}" [label="{edge.index}"];')
    for node in graph.nodes:
        for edge, label in _labelled(node):
            assert edge.source is not None
            start = _box(edge) if show_tensors else edge.source.name
            lines.append(f'  "{start}" -> "{node.name}"{label};')
    return "\n".join([*lines, "}", ""])


_COLORS = {"cpu": "blue", "gpu": "green", "mixed": "cyan"}


def _box(edge: DataNode) -> str:
    return f"{edge.name}:{edge.index}"


def _labelled(node: Node) -> list[tuple[DataNode, str]]:
    found = [(edge, "") for edge in node.inputs if edge is not None]
    found += [(edge, f' [label="{name}"]') for name, edge in node.edges.items()]
    return found + [(c.edge, f' [label="if {c.value}", style=dashed]') for c in node.scope]
