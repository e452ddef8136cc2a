"""Build the graph of a pipeline from the calls of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from torchdali.errors import warn, warnings_on
from torchdali.graph.constants import as_node, is_other_array
from torchdali.graph.nodes import DataNode, Graph, Node, Tracer, scope_of
from torchdali.graph.unpacking import explain_output_name, explain_unpacking
from torchdali.types import ScalarConstant

__all__ = ["GraphBuilder", "as_output"]


class GraphBuilder:
    """Builds the graph of a pipeline: records operators and outputs.

    Args:
        owner: The pipeline; stored as a weak reference.

    Attributes:
        tracer: Records the operators.
        function: Function that defines the graph, or None.
        graph: The finished graph; None before `trace`.
        function_title: Name and line of the function that `pipeline_def` decorates.
    """

    def __init__(self, owner: Any) -> None:
        self.tracer = Tracer(owner)
        self.function: Callable[[], Any] | None = None
        self.graph: Graph | None = None
        self.function_title = ""
        self._outputs: tuple[DataNode, ...] | None = None

    def call_definition(self) -> Any:
        """Call the function that defines the graph; raise NotImplementedError if there isn't one."""
        if self.function is None:
            raise NotImplementedError(
                f"the function {self.function_title} must return the outputs of the pipeline, but returned nothing"
                if self.function_title
                else "the pipeline has no outputs. Return them from the function under pipeline_def, call "
                "set_outputs(), or override define_graph()"
            )
        return self.function()

    def set_outputs(self, values: Sequence[Any]) -> None:
        """Record the outputs; see `Pipeline.set_outputs`."""
        with self.tracer:
            self._outputs = tuple(as_output(value, i, self.tracer.nodes) for i, value in enumerate(values))
        for i, edge in enumerate(self._outputs):
            _warn_of_missing_samples(edge, i)

    def add_sink(self, edge: DataNode) -> None:
        """Mark an operator that must run even if no output needs it; see `Pipeline.add_sink`."""
        if not isinstance(edge, DataNode) or edge.source is None:
            raise TypeError(f"a sink must be an output of an operator, got {edge!r}")
        edge.source.preserve = True
        if edge.source not in self.tracer.nodes:
            self.tracer.nodes.append(edge.source)

    def trace(self, define: Callable[[], Any]) -> Graph:
        """Return the graph. The first call runs `define`, unless the outputs are already set."""
        if self.graph is None:
            if not self._outputs:
                try:
                    with self.tracer:
                        result = define()
                except TypeError as error:
                    explain_unpacking(error, self.tracer.nodes)
                    raise
                self.set_outputs(result if isinstance(result, (tuple, list)) else (result,))
            assert self._outputs is not None
            self.graph = Graph.of(self._outputs, self.tracer.nodes)
            for node in self.graph.nodes:
                if node not in self.tracer.nodes:  # the node was created outside of the pipeline
                    self.tracer.assign_stream(node)
        return self.graph


def _warn_of_missing_samples(edge: DataNode, index: int) -> None:
    """Warn if an output was computed inside a branch of an ``if``, and so lacks the samples of the other branch."""
    scope = scope_of(edge)
    if not scope or edge.source is None or not edge.source.lines:
        return
    conditions = " and ".join(f"{each.edge} is {each.value}" for each in scope)
    line = edge.source.lines[0]
    with warnings_on(line.file, line.line):
        warn(
            f"output {index} has only the samples for which {conditions}. It was created in a branch of an `if`, and "
            f"used outside through a list, dictionary or object. Set a variable in both branches instead"
        )


_CONSTANTS = (bool, int, float, np.ndarray, np.generic, torch.Tensor, ScalarConstant)


def as_output(value: Any, index: int, nodes: Sequence[Node] = ()) -> DataNode:
    """Convert an output to a node. Nodes are returned unchanged, constants are converted.

    Args:
        nodes: Nodes of the pipeline, for the error message.

    Raises:
        TypeError: The value is neither a node nor a constant.
    """
    if isinstance(value, (DataNode, *_CONSTANTS)) or hasattr(value, "as_node") or is_other_array(value):
        return as_node(value)
    if isinstance(value, (list, tuple)):
        if all(isinstance(v, (bool, int, float)) for v in value):
            return as_node(value)
        raise TypeError(
            f"illegal output type: output {index} is a nested {type(value).__name__} of {len(value)} elements. "
            f"Return the nodes one by one (for example with *). An operator called with a list, for example all "
            f"outputs "
            "of a reader, returns a list: pass one of them, as in files, labels = fn.readers.file(...)"
        )
    if isinstance(value, Mapping) and value:
        keys = [f"outputs[{key!r}]" for key in value]
        raise TypeError(
            f"illegal output type: output {index} is a dictionary. Return its nodes one by one, as in outputs = "
            f"fn.readers.dataset(...); return {', '.join(keys)}. Loader(pipeline, outputs={list(value)}) names them "
            "again"
        )
    raise TypeError(
        f"illegal output type: output {index} is {value!r} of type {type(value).__name__}. An output must be a "
        f"DataNode, a number, an array or a list of numbers{explain_output_name(value, nodes)}"
    )
