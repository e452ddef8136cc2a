"""Convert a graph to JSON values and back, and draw it.

Only data is saved. If an argument is a Python object (a callback, a source, a module), an error names the operator.
When a graph is loaded, operators are looked up by name, so the modules that declare the user's operators must already
be imported.

Files are treated as untrusted: when a file is loaded, operators, arguments, conditions and line numbers are checked by
type and against the schemas. Code from the file is never executed. But the file selects operators and paths: a reader
may read any file, and `dump_image` may write any file.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

import numpy as np
import torch

from torchdali.declaration.registry import Operator, registry
from torchdali.formats.urls import has_secret
from torchdali.graph.nodes import Condition, DataNode, Graph, Node, SourceLine
from torchdali.tensors import dtypes

__all__ = ["decode", "dot", "encode", "graph_from_json", "graph_to_json"]

Json = Any
T = TypeVar("T")


# ---------------------------------------------------------------- values


def encode(value: Any) -> Json:
    """Convert a value to JSON.

    A value of a type that JSON lacks becomes ``{kind: content}``, for example ``{"dtype": "uint8"}``.

    Raises:
        TypeError: The value is a Python object that isn't data.
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
    raise TypeError(f"{value!r} is a Python object of type {type(value).__name__}, not plain data")


def decode(data: Json) -> Any:
    """Convert the result of `encode` back to the value. Tuples become lists.

    Raises:
        ValueError: `data` can't be a result of `encode`.
    """
    if isinstance(data, list):
        return [decode(v) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1 or not data.keys() <= _DECODERS.keys():
        raise ValueError(f"not a saved value: {_abbreviate(data)}")
    ((kind, content),) = data.items()
    try:
        return _DECODERS[kind](content)
    except (TypeError, AttributeError, KeyError, OverflowError) as error:
        raise ValueError(f"not a saved {kind}: {_abbreviate(content)} ({error})") from None


def _abbreviate(data: Json) -> str:
    text = repr(data)
    return text if len(text) <= 80 else text[:77] + "..."


def _decode_array(content: Json) -> np.ndarray[Any, Any]:
    name, shape, data = content
    dtype = np.dtype(_expect(name, str))
    if dtype.kind not in "biufcSU" or dtype.itemsize < 1:
        raise ValueError(f"an array must contain numbers or text, got dtype {name!r}")
    extents = [_expect_count(extent) for extent in _expect(shape, list)]
    return np.frombuffer(_decode_bytes(data), dtype).reshape(extents).copy()


def _decode_bytes(content: Json) -> bytes:
    return base64.b64decode(_expect(content, str), validate=True)


def _decode_tensor(content: Json) -> torch.Tensor:
    return torch.from_numpy(_expect(decode(content), np.ndarray))


def _decode_enum(content: Json) -> Any:
    name, member = content
    return _ENUMS[name][_expect(member, str)]


def _decode_float(content: Json) -> float:
    if content not in ("inf", "-inf", "nan"):
        raise ValueError(f"not a saved float: {_abbreviate(content)}")
    return float(content)


def _decode_dtype(content: Json) -> torch.dtype:
    dtype = getattr(torch, _expect(content, str), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"unknown torch dtype: {_abbreviate(content)}")
    return dtypes.to_torch_dtype(dtype)


def _expect(value: Any, kind: type[T]) -> T:
    """Check that a value has exactly this type, and return it."""
    if type(value) is not kind:
        raise ValueError(f"expected a value of type {kind.__name__}, got {_abbreviate(value)}")
    return value


def _expect_count(value: Any) -> int:
    if _expect(value, int) < 0:
        raise ValueError(f"a count must not be negative, got {value}")
    return int(value)


_ENUMS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        dtypes.DALIDataType, dtypes.DALIImageType, dtypes.DALIInterpType, dtypes.StreamPolicy,
        dtypes.OperatorConcurrency, dtypes.PipelineAPIType,
    )
}  # fmt: skip

_DECODERS: dict[str, Callable[[Json], Any]] = {
    "enum": _decode_enum,
    "float": _decode_float,
    "dtype": _decode_dtype,
    "bytes": _decode_bytes,
    "tensor": _decode_tensor,
    "array": _decode_array,
    "dict": lambda content: {_expect(k, str): decode(v) for k, v in content.items()},
}


# ---------------------------------------------------------------- graphs


def graph_to_json(graph: Graph) -> Json:
    """Return a graph as JSON values.

    Raises:
        RuntimeError: An argument can't be saved; the message names the operator, the argument and the user's line.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}

    def edge(e: DataNode | None) -> Json:
        return None if e is None or e.source is None else [position[e.source], e.index]

    def node_to_json(node: Node) -> Json:
        return {
            "operator": node.operator.name,
            "name": node.name,
            "device": node.device,
            "inputs": [edge(e) for e in node.inputs],
            "constants": {k: _encode_argument(node, k, v) for k, v in node.constants.items()},
            "edges": {k: edge(e) for k, e in node.per_sample.items()},
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
    if _has_secret(value):
        raise RuntimeError(
            f"could not serialize the operator {node.operator.name!r} ({node.name}): its argument {name!r} is a URL "
            f"with a user, a password or a query, which would be saved; let the store's package find the credentials "
            f"in the environment or in its configuration\n  {node.where}"
        )
    try:
        return encode(value)
    except TypeError as error:
        raise RuntimeError(
            f"could not serialize the operator {node.operator.name!r} ({node.name}): its argument {name!r} "
            f"cannot be saved: {error}\n  {node.where}"
        ) from None


def _has_secret(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_secret, value))
    return isinstance(value, str) and has_secret(value)


def graph_from_json(data: Json) -> Graph:
    """Build the graph from the result of `graph_to_json`.

    Raises:
        RuntimeError: The data isn't a graph, or uses an operator that isn't declared.
    """
    nodes: list[Node] = []
    with _locate_errors("its form"):
        if _expect(data, dict).keys() != {"nodes", "outputs"}:
            raise ValueError("expected a dictionary of nodes and outputs")
        saved_nodes, outputs = _expect(data["nodes"], list), _expect(data["outputs"], list)
    for i, saved in enumerate(saved_nodes):
        title = saved.get("name") if isinstance(saved, dict) else None
        with _locate_errors(f"node {i} ({_abbreviate(title)})"):
            nodes.append(_read_node(saved, nodes))
            if nodes[-1].name in {node.name for node in nodes[:-1]}:
                raise ValueError("another node has the same name")
    with _locate_errors("its outputs"):
        return Graph(tuple(nodes), tuple(_read_edge(saved_edge, nodes) for saved_edge in outputs))


@contextlib.contextmanager
def _locate_errors(part: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RuntimeError(f"the saved graph cannot be read, {part}: {error}") from None


def _read_node(saved: Json, nodes: list[Node]) -> Node:
    """Read a node. The node's inputs must be outputs of the earlier nodes in `nodes`."""
    if _expect(saved, dict).keys() != _KEYS:
        raise ValueError(f"expected the fields {', '.join(sorted(_KEYS))}, got {', '.join(saved)}")
    operator = _find_operator(_expect(saved["operator"], str))
    constants = {k: _read_constant(operator, k, v) for k, v in _expect(saved["constants"], dict).items()}
    inputs = _read_inputs(operator, _expect(saved["inputs"], list), nodes)
    node = Node(
        operator,
        _expect(saved["name"], str),
        _check_device(operator, saved["device"]),
        inputs,
        constants,
        {
            k: _read_per_sample(operator, k, saved_edge, nodes)
            for k, saved_edge in _expect(saved["edges"], dict).items()
        },
        tuple(_read_line(line) for line in _expect(saved["lines"], list)),
        tuple(_read_condition(each, nodes) for each in _expect(saved["scope"], list)),
        _expect(saved["preserve"], bool),
        _expect_count(saved["stream"]),
    )
    operator.schema.check_names({**constants, **node.per_sample})
    count = operator.count_outputs(constants, len(inputs))
    if _expect_count(saved["outputs"]) != count:
        raise ValueError(f"operator {operator.name!r} has {count} outputs, got {saved['outputs']}")
    side = "cpu" if node.device == "cpu" else "gpu"
    node.outputs = tuple(DataNode(node.name, side, node, i) for i in range(count))
    return node


_KEYS = frozenset((
    "operator", "name", "device", "inputs", "constants", "edges", "scope", "preserve", "stream", "outputs", "lines",
))  # fmt: skip


def _read_inputs(operator: Operator, saved: list[Json], nodes: list[Node]) -> tuple[DataNode | None, ...]:
    operator.schema.check_inputs(saved)
    return tuple(None if saved_edge is None else _read_edge(saved_edge, nodes) for saved_edge in saved)


def _read_edge(saved_edge: Json, nodes: list[Node]) -> DataNode:
    node, output = map(_expect_count, _expect(saved_edge, list))
    if node >= len(nodes) or output >= len(nodes[node].outputs):
        raise ValueError(f"an input must be an output of an earlier node, got output {output} of node {node}")
    return nodes[node].outputs[output]


def _check_device(operator: Operator, device: Json) -> str:
    if device not in operator.options.devices:
        raise ValueError(f"operator {operator.name!r} does not run on {_abbreviate(device)}")
    return str(device)


def _read_constant(operator: Operator, name: str, data: Json) -> Any:
    value = decode(data)
    operator.schema.check_known([name])
    argument = operator.schema.arguments.get(name)
    if argument is None or value is None:
        return value
    converted = argument.convert(value)
    if encode(converted) != data:
        raise ValueError(f"argument {name!r} of operator {operator.name!r} cannot be {_abbreviate(data)}")
    return converted


def _read_per_sample(operator: Operator, name: str, saved_edge: Json, nodes: list[Node]) -> DataNode:
    argument = operator.schema.arguments.get(name)
    if argument is None or argument.edge is None:
        raise ValueError(f"operator {operator.name!r} does not accept the argument {_abbreviate(name)} per sample")
    return _read_edge(saved_edge, nodes)


def _read_line(line: Json) -> SourceLine:
    file, number, function = _expect(line, list)
    return SourceLine(_expect(file, str), _expect_count(number), _expect(function, str))


def _read_condition(saved: Json, nodes: list[Node]) -> Condition:
    saved_edge, value = _expect(saved, list)
    if type(value) not in (bool, int):
        raise ValueError(f"a condition must compare with a bool or an int, got {_abbreviate(value)}")
    return Condition(_read_edge(saved_edge, nodes), value)


def _find_operator(name: str) -> Operator:
    if name not in registry:
        raise RuntimeError(
            f"the saved graph uses the operator {name!r}, which is not declared: import the module that declares it"
        )
    return registry[name]


# ---------------------------------------------------------------- drawing


def dot(graph: Graph, *, show_tensors: bool = False, use_colors: bool = False) -> str:
    """Draw a graph in Graphviz's dot language.

    Args:
        show_tensors: True to draw the operators' outputs as separate boxes.
        use_colors: True to color operators by device: CPU blue, GPU green, mixed cyan.
    """
    lines = ["digraph pipeline {"]
    for node in graph.nodes:
        color = f', color="{_COLORS[node.device]}"' if use_colors else ""
        lines.append(f"  {_quote(node.name)} [label={_quote(node.name, node.operator.name)}{color}];")
        for edge in node.outputs if show_tensors else ():
            lines.append(f"  {_quote_output(edge)} [shape=box];")
            lines.append(f'  {_quote(node.name)} -> {_quote_output(edge)} [label="{edge.index}"];')
    for node in graph.nodes:
        for edge, label in _label_edges(node):
            assert edge.source is not None
            start = _quote_output(edge) if show_tensors else _quote(edge.source.name)
            lines.append(f"  {start} -> {_quote(node.name)}{label};")
    return "\n".join([*lines, "}", ""])


_COLORS = {"cpu": "blue", "gpu": "green", "mixed": "cyan"}


def _quote_output(edge: DataNode) -> str:
    return _quote(f"{edge.name}:{edge.index}")


def _quote(*lines: str) -> str:
    r"""Join lines to one string of the dot language, with quotes as ``\"`` and line breaks as ``\n``."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _label_edges(node: Node) -> list[tuple[DataNode, str]]:
    arrows = [(edge, "") for edge in node.inputs if edge is not None]
    arrows += [(edge, f" [label={_quote(name)}]") for name, edge in node.per_sample.items()]
    return arrows + [(c.edge, f' [label="if {c.value}", style=dashed]') for c in node.scope]
