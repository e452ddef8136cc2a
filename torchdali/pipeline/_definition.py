"""Defining the graph of a pipeline."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchdali import graph as _graph
from torchdali.graph import DataNode, Graph, Tracer
from torchdali.operator import as_node
from torchdali.pipeline._options import Options
from torchdali.types import ScalarConstant

__all__ = ["Definition", "as_output"]


class Definition(Options):
    """A pipeline that is being defined: operators are recorded in it, some of them are its outputs."""

    _outputs: tuple[DataNode, ...] | None = None
    _function: Callable[[], Any] | None = None
    _graph: Graph | None = None

    @functools.cached_property
    def _tracer(self) -> Tracer:
        return Tracer(self)

    def __enter__(self) -> Definition:
        self.push_current(self)
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.pop_current()

    @staticmethod
    def current() -> Any:
        """Return the pipeline that this thread is defining, or None."""
        tracer = _graph.current()
        return None if tracer is None else tracer.owner

    @staticmethod
    def push_current(pipeline: Definition) -> None:
        """Record operators in a pipeline, until `pop_current`."""
        pipeline._tracer.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Record operators where they were recorded before `push_current`.

        Raises:
            RuntimeError: no pipeline is being defined.
        """
        tracer = _graph.current()
        if tracer is None:
            raise RuntimeError("no pipeline is being defined: push_current() comes before")
        tracer.__exit__()

    def define_graph(self) -> Any:
        """Return the outputs: one, or a tuple or list of them; override it to define the graph in a subclass.

        Raises:
            NotImplementedError: nothing defines the graph.
        """
        if self._function is None:
            raise NotImplementedError(
                "the pipeline has no outputs: return them from the function under pipeline_def, call "
                "set_outputs(), or override define_graph()"
            )
        return self._function()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Name the outputs of the pipeline: nodes, or constants (numbers, arrays, lists of numbers).

        Raises:
            TypeError: a value that cannot be an output, such as None, a string, a dict or a nested list.
        """
        with self._tracer:
            self._outputs = tuple(as_output(value, i) for i, value in enumerate(output_data_nodes))

    def add_sink(self, edge: DataNode) -> None:
        """Run the operator of an edge although no output needs it.

        Raises:
            TypeError: something that is not an output of an operator.
        """
        if not isinstance(edge, DataNode) or edge.source is None:
            raise TypeError(f"a sink is an output of an operator, not {edge!r}")
        edge.source.preserve = True
        if edge.source not in self._tracer.nodes:
            self._tracer.nodes.append(edge.source)

    def _traced(self) -> Graph:
        """Return the graph, tracing what defines it the first time."""
        if self._graph is None:
            if not self._outputs:
                with self:
                    result = self.define_graph()
                self.set_outputs(*(result if isinstance(result, (tuple, list)) else (result,)))
            assert self._outputs is not None
            self._graph = Graph.of(self._outputs, self._tracer.nodes)
            for node in self._graph.nodes:
                if node not in self._tracer.nodes:  # made outside of the pipeline
                    self._tracer.number(node)
        return self._graph


_CONSTANTS = (bool, int, float, np.ndarray, np.generic, torch.Tensor, ScalarConstant)


def as_output(value: Any, index: int) -> DataNode:
    """Return the node of an output: itself, or a constant; TypeError for anything else."""
    if isinstance(value, (DataNode, *_CONSTANTS)) or hasattr(value, "as_node"):
        return as_node(value)
    if isinstance(value, (list, tuple)):
        if all(isinstance(v, (bool, int, float)) for v in value):
            return as_node(value)
        raise TypeError(
            f"illegal output type: output {index} is a nested {type(value).__name__} of {len(value)} elements; "
            "return the nodes one by one (for example with *)"
        )
    raise TypeError(
        f"illegal output type: output {index} is {value!r} of type {type(value).__name__}; an output is a "
        "DataNode, a number, an array or a list of numbers"
    )
