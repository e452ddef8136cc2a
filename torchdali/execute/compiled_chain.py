"""Make a chain ready for certain layouts, and bind it to a batch.

Every operator of a chain is prepared for the layouts that it will see; that is done once for each combination of input
layouts. To run a sample is then to call one prepared function after the other.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from torchdali.calls.chunk_function import ChunkFunction, put
from torchdali.calls.running import (
    LARGE,
    Prepared,
    channel_mistake,
    column_of,
    number_of_axes,
    prepare,
    stacked_if_small,
    taken_layout,
)
from torchdali.declaration.batching import Column, shaped
from torchdali.errors import located
from torchdali.execute.chunks import (
    ChunkColumn,
    ChunkReader,
    Fused,
    PartialResult,
    Places,
    bytes_in_tensors,
    can_be_chunk,
    chunk_size,
    fused,
    holds,
    is_encoded,
    is_foreign,
    places_of,
    put_chunk,
)
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.steps import values
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Argument, Call, Chain, Value, column, edges
from torchdali.kernels.memory import Empty
from torchdali.reading.datasets import row
from torchdali.tensors import TensorList
from torchdali.tensors._storage import arrays_of

__all__ = ["BoundChain", "CompiledChain", "Loop", "Mark", "axes_after", "named"]

_Axes = tuple[str, "int | None"]  # layout, and the number of axes as far as known
Mark = Callable[[int, int], None]
"""Called with the item, and the number of the call that is done with it; -1 before the first."""
_Take = Callable[[int, list[Any]], Any]
_Step = Callable[[int, list[Any], "Places | None"], None]


@dataclass(frozen=True)
class Loop:
    """The calls of a chain, with a function for each.

    Attributes:
        functions: One a call.
        values: What makes values of results of the chain, by kind.
        put: Copies a result to its place, or returns it.
        in_chunks: An item is a chunk: conditions select samples of it.
    """

    chain: Chain
    functions: Sequence[Callable[..., Any]]
    per_frame: Sequence[frozenset[str]]
    values: Mapping[str, Callable[..., Any]]
    put: Callable[..., Any]
    in_chunks: bool = False

    def bind(
        self, columns: Mapping[str, Any], blamed: dict[int, Node], mark: Mark | None = None
    ) -> Callable[[int], None]:
        """Return what takes an item, a sample or several, through the chain.

        Args:
            columns: Of the batch.
            blamed: Gets the node that an exception has left, by the identity of the exception.
            mark: Notes the time after each call.
        """
        steps = [self._step(k, columns, mark) for k in range(len(self.chain.calls))]
        nodes = self.chain.nodes
        count = sum(call.count for call in self.chain.calls)

        def run(i: int) -> None:
            results: list[Any] = [None] * count  # what a branch does not compute is None in the other one
            k = 0
            try:
                for step in steps:
                    step(i, results, None)
                    k += 1
            except BaseException as error:
                blamed[id(error)] = nodes[k]
                raise

        def run_timed(i: int) -> None:
            assert mark is not None
            mark(i, -1)
            run(i)

        return run if mark is None else run_timed

    def _step(self, k: int, columns: Mapping[str, Any], mark: Mark | None) -> _Step:
        """Return one call, bound to the columns of a batch."""
        call, function = self.chain.calls[k], self.functions[k]
        inputs = [self._taken(k, each, columns) for each in call.inputs]
        named = {name: self._taken(k, each, columns) for name, each in call.arguments}
        named.update({name: _of_column(columns[column]) for name, column in call.columns})
        is_reader = call.node.operator.kind == "reader"
        if is_reader:
            function = _row_of(function)
        numbers = range(call.first, call.first + call.count)
        is_one = call.count == 1 and not is_reader

        def compute(i: int, results: list[Any], places: Places | None) -> None:
            items = [take(i, results) for take in inputs]
            arguments = {name: take(i, results) for name, take in named.items()}
            if places is not None:
                items = list(map(places.part, items))
                arguments = {name: places.part(each) for name, each in arguments.items() if name != "out"}
            result = function(*items, **arguments)
            for number, output in zip(numbers, (result,) if is_one else result, strict=True):
                results[number] = output if places is None else PartialResult(output, places)

        step: _Step = compute
        if call.deliveries:
            step = self._delivering(step, call, columns)
        if mark is not None:
            step = _marked(step, k, mark)
        return step if not call.conditions else self._conditional(k, step, columns)

    def _delivering(self, compute: _Step, call: Call, columns: Mapping[str, Any]) -> _Step:
        put = self.put
        ways = [
            (call.first + each.result, None if each.slot is None else columns[each.slot], columns[each.done])
            for each in call.deliveries
        ]

        def step(i: int, results: list[Any], places: Places | None) -> None:
            compute(i, results, places)
            for result, slots, done in ways:
                done[i] = results[result] if slots is None else put(slots[i], results[result])

        return step

    def _conditional(self, k: int, step: _Step, columns: Mapping[str, Any]) -> _Step:
        conditions = [(self._taken(k, each, columns), value) for each, value in self.chain.calls[k].conditions]

        def step_if(i: int, results: list[Any], _: Places | None) -> None:
            if all(holds(take(i, results), wanted) for take, wanted in conditions):
                step(i, results, None)

        def step_for_some(i: int, results: list[Any], _: Places | None) -> None:
            places = places_of((take(i, results), wanted) for take, wanted in conditions)
            if places is not None:
                step(i, results, places if len(places.numbers) < places.size else None)

        return step_for_some if self.in_chunks else step_if

    def _taken(self, k: int, argument: Argument | None, columns: Mapping[str, Any]) -> _Take:
        """Return what gives an argument, for an item and the results so far."""
        if argument is None:
            return _nothing
        if isinstance(argument.place, str):
            return _of_column(columns[argument.place])
        place = argument.place
        if argument.form == "tensor":
            return lambda i, results: results[place]
        value = self.values[argument.form]
        if argument.form == "value":
            return lambda i, results: value(results[place])
        name, frames = argument.name, self.per_frame[k] if argument.frames else frozenset()
        return lambda i, results: value(results[place], name, frames)


def _marked(step: _Step, k: int, mark: Mark) -> _Step:
    def timed(i: int, results: list[Any], places: Places | None) -> None:
        step(i, results, places)
        mark(i, k)

    return timed


def _of_column(column: Any) -> _Take:
    return lambda i, results: column[i]


def _nothing(i: int, results: list[Any]) -> None:
    return None


def _row_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs, **arguments: row(function(*inputs, **arguments))


@dataclass
class BoundChain:
    """A chain for certain layouts.

    Attributes:
        single: For columns with an item a sample.
        chunks: For columns with an item a chunk.
        layouts: Of the chain's inputs and of all that it computes.
        tensors: Each operator has a body for samples in one tensor.
        chunkable: Each operator can take several samples in one call.
        alone: One thread may take a batch of small samples: nothing is read, and no operator is the user's.
        ragged: Operators with a body for samples of any shapes.
        fused: How an operator of the fast path does several samples in one call.
    """

    chain: Chain
    single: Loop
    chunks: Loop
    layouts: Mapping[DataNode, str]
    tensors: bool
    chunkable: bool
    alone: bool
    ragged: Sequence[ChunkFunction]
    fused: Fused | None

    def chunk(self, batches: Mapping[DataNode, TensorList], count: int, threads: int, result: int) -> tuple[str, int]:
        """Choose the form of chunks, and how many samples one has.

        Args:
            count: Samples of the batch.
            result: Bytes of a sample of the largest result, as far as known.

        Returns:
            ``single`` for operators that take one sample at a time. If the samples are small, one thread takes them
            all: several threads would wait for the GIL.
        """
        if count < 2:
            return "single", 1
        if self.fused is not None:
            return "encoded", chunk_size("encoded", count, threads, 0)
        asks = bool(self.chain.inputs) and (self.tensors or self.alone)
        sample = bytes_in_tensors(self.chain.inputs, batches, count) if asks else None
        small = sample is not None and self.alone and max(sample, result) <= LARGE
        small = small and not any(is_encoded(batches[edge]) for edge in self.chain.inputs)
        if sample is not None and (self.tensors or (small and self.chunkable)):
            size = chunk_size("tensor", count, threads, sample)
            return ("single", 1) if size == 1 else ("tensor", size)
        if self.ragged:
            return "ragged", chunk_size("ragged", count, threads, max(each.bytes for each in self.ragged))
        return "single", chunk_size("single", count, threads, sample or 0) if small else 1


class CompiledChain:
    """A chain, ready to be bound to batches.

    Args:
        chain: From the plan.
        index: Number of each node, as in the plan.
        readers: What reads a record, per reader node.
        empty: Gives memory for what the chain delivers.
    """

    def __init__(
        self,
        chain: Chain,
        index: Mapping[Node, int],
        readers: Mapping[Node, Callable[[int], Any]],
        empty: Empty | None = None,
    ) -> None:
        self.chain, self._index, self._readers, self._empty = chain, index, readers, empty
        self._bound: dict[tuple[_Axes, ...], BoundChain] = {}

    def bound(self, inputs: Mapping[DataNode, TensorList]) -> BoundChain:
        """Return the chain for the layouts of its inputs."""
        entering = (*self.chain.inputs, *(value.edge for value in self.chain.values))
        known = tuple(_axes(inputs[edge]) for edge in entering)
        # Batches of two threads may bind the same layouts at once. Either result serves both, and a dictionary stores
        # and reads in one step.
        if known not in self._bound:
            self._bound[known] = self._bind(dict(zip(entering, known, strict=True)))
            self._warn_of_channels(inputs)
        return self._bound[known]

    def _warn_of_channels(self, inputs: Mapping[DataNode, TensorList]) -> None:
        for node in self.chain.nodes:
            batch = inputs.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
            if batch is None or batch.layout() or not node.lines:
                continue
            shape = next((sample.shape for sample in batch.samples() if sample is not None), ())
            if text := channel_mistake(node.operator, shape):
                line = node.lines[0]
                warnings.warn_explicit(f"{node.operator.name}: {text}", UserWarning, line.file, line.line)

    def _bind(self, axes: dict[DataNode, _Axes]) -> BoundChain:
        singles: list[Callable[..., Any]] = []
        chunks: list[Callable[..., Any]] = []
        frames = []
        for node in self.chain.nodes:
            if node.operator.kind == "reader":
                read = self._readers[node]
                singles.append(read)
                chunks.append(ChunkReader(read, self._is_passing(node)))
                frames.append(frozenset[str]())
                layouts = node.operator.output_layouts((), node.constants)
            else:
                ready, layouts = _located(node, axes)
                singles.append(ready.function)
                chunks.append(self._chunk_function(node, ready.chunk))
                frames.append(_per_frame(node, axes))
            axes.update(_axes_of_outputs(node, layouts, axes))
        functions = [each for each in chunks if isinstance(each, ChunkFunction)]
        chunkable = all(map(can_be_chunk, self.chain.nodes))
        reads = any(node.operator.kind == "reader" for node in self.chain.nodes)  # how much, nobody knows before
        alone = not reads and not any(map(is_foreign, self.chain.nodes))
        return BoundChain(
            self.chain,
            Loop(self.chain, singles, frames, _VALUES, put),
            Loop(self.chain, chunks, frames, _CHUNK_VALUES, put_chunk, True),
            {e: layout for e, (layout, _) in axes.items()},
            self.chain.in_chunks and all(each.tensor is not None for each in functions),
            chunkable,
            alone,
            [each for each in functions if each.ragged is not None] if chunkable else [],
            fused(self.chain, self._index, self._readers),
        )

    def _chunk_function(self, node: Node, chunk: ChunkFunction) -> ChunkFunction:
        """Return an operator on chunks; one whose results are delivered as they are gets memory for them."""
        if node.operator.options.merges:
            return replace(chunk, ragged=None, stacks=True)
        if node.per_sample:
            return replace(chunk, ragged=None)
        if node.operator.allocates and self._empty is not None and not self._is_used(node):
            return replace(chunk, empty=self._empty)
        return replace(chunk)  # it counts bytes of its own

    def _is_passing(self, reader: Node) -> bool:
        """Return True if what a reader returns goes to decoders alone, whose results are in memory of their own."""
        own, delivered = set(map(id, reader.outputs)), set(map(id, self.chain.delivers))
        takers = [n for n in self.chain.nodes if not own.isdisjoint(map(id, edges(n)))]
        return own.isdisjoint(delivered) and all(node.operator.allocates for node in takers)

    def _is_used(self, node: Node) -> bool:
        """Return True if another operator of the chain takes what one returns."""
        taken = {id(edge) for other in self.chain.nodes for edge in edges(other)}
        return any(id(edge) in taken for edge in node.outputs)

    def columns(
        self,
        form: str,
        chunk: int,
        inputs: Mapping[DataNode, TensorList],
        per_node: Mapping[str, Sequence[Any]],
        opened: Mapping[DataNode, OpenBuffer],
        done: Mapping[DataNode, list[Any]],
    ) -> dict[str, Any]:
        """Collect the columns that `Loop.bind` takes.

        Args:
            form: Of the chunks; ``single`` for an item a sample, as what is ``encoded`` takes, too.
            chunk: Samples of a chunk.
        """
        by_sample = form in ("single", "encoded")
        columns: dict[str, Any] = dict(per_node)
        for edge in self.chain.delivers:
            buffer = opened[edge]
            columns[self._column("slot", edge, edge.index)] = buffer.parts if by_sample else buffer.whole
            columns[self._column("done", edge, edge.index)] = done[edge]
        for edge in self.chain.inputs:
            columns[self._column("input", edge, edge.index)] = _samples(inputs[edge], form)
        for value in self.chain.values:
            name = self._column(value.kind, value.edge, value.detail)
            columns[name] = _values(inputs[value.edge], value, by_sample)
        if by_sample:
            return {name: columns[name] for name in self.chain.parameters}
        return {name: ChunkColumn(columns[name], chunk) for name in self.chain.parameters}

    def misshapen(self, inputs: Mapping[DataNode, TensorList]) -> dict[int, tuple[Exception, Node]]:
        """Return the samples that have several elements where an argument is one number, and the operators."""
        failures: dict[int, tuple[Exception, Node]] = {}
        for value in self.chain.values:
            batch = inputs[value.edge]
            per_frame = value.node.operator.is_per_frame(value.name, batch.layout())
            if value.axes != 0 or batch.dense() is not None or per_frame:
                continue
            for i, numbers in enumerate(values(batch)):
                try:
                    shaped(numbers, 0, value.name, i)
                except RuntimeError as error:
                    failures.setdefault(i, (error, value.node))
        return failures

    def _column(self, kind: str, edge: DataNode, detail: object) -> str:
        assert edge.source is not None
        return column(kind, self._index[edge.source], detail)


def _samples(batch: TensorList, form: str) -> Any:
    whole = stacked_if_small(batch) if form == "tensor" else None
    if whole is not None:
        return whole
    stored = batch.stored()
    # Arrays stay what they are until somebody asks for a tensor.
    return stored if form == "ragged" and arrays_of(stored) is not None else stored.samples()


def _values(batch: TensorList, value: Value, by_sample: bool) -> Sequence[Any]:
    if not by_sample and value.name:
        return _shaped(batch, value)
    if value.axes is None:
        return values(batch)  # of a condition, or None where a branch did not compute one
    return _shaped(batch, value).values


def _shaped(batch: TensorList, value: Value) -> Column:
    """Return the values of an argument; an error says which one, and on which of the user's lines."""
    per_frame = value.node.operator.is_per_frame(value.name, batch.layout())
    column_ = Column(values(batch)) if batch.dense() is None else column_of(batch, per_frame)
    column_.per_frame = per_frame
    try:
        return column_.shaped(value.axes, value.name)
    except RuntimeError as error:
        name, where = value.node.title, value.node.where
        raise located(error, f"operator {name!r} failed on its arguments\n  {where}") from error


def _single_value(axes: int, value: torch.Tensor, name: str, per_frame: frozenset[str] = frozenset()) -> Any:
    numbers = value.tolist()
    return numbers if name in per_frame else shaped(numbers, axes, name)


def _chunk_value(kind: str, samples: Any, name: str = "", per_frame: frozenset[str] = frozenset()) -> Any:
    """Return the values of a chunk: a `Column` of what is in one tensor, or a list."""
    if samples is None:
        return None  # no sample is in that branch
    if not isinstance(samples, torch.Tensor):
        value_of = _VALUES[kind]
        rest = () if kind == "value" else (name, per_frame)
        return [None if sample is None else value_of(sample, *rest) for sample in samples]
    column_ = Column.of(samples)
    if kind == "value":
        return column_
    column_.per_frame = name in per_frame
    return column_.shaped(_AXES[kind], name)


_AXES = {"number": 0, "list": 1}
_VALUES: dict[str, Callable[..., Any]] = {
    "value": torch.Tensor.tolist,
    **{kind: functools.partial(_single_value, axes) for kind, axes in _AXES.items()},
}
_CHUNK_VALUES: dict[str, Callable[..., Any]] = {kind: functools.partial(_chunk_value, kind) for kind in _VALUES}
"""Functions that make values of what the chain computes: of a sample, and of a chunk."""


def _axes(batch: TensorList) -> _Axes:
    return batch.layout(), len(batch.layout()) or number_of_axes(batch)


def _located(node: Node, axes: Mapping[DataNode, _Axes]) -> tuple[Prepared, tuple[str, ...]]:
    """Prepare an operator; an error says which one, and on which of the user's lines."""
    try:
        return _ready(node, axes)
    except Exception as error:
        culprit = node.culprit(error)
        place = f"operator {culprit.title!r} failed on its inputs\n  {culprit.where}"
        raise located(error, place) from error


def _ready(node: Node, axes: Mapping[DataNode, _Axes]) -> tuple[Prepared, tuple[str, ...]]:
    """Prepare an operator, and return the layouts of its outputs too."""
    inputs = [("", None) if e is None else axes[e] for e in node.inputs]
    layouts = tuple(layout for layout, _ in inputs)
    frames = _per_frame(node, axes)
    ready = prepare(node.operator, node.constants, layouts, frames)
    if not inputs or layouts[0]:
        return ready, ready.layouts
    taken = taken_layout(node.operator, *inputs[0])
    return ready, node.operator.output_layouts((taken, *layouts[1:]), node.constants)


def _axes_of_outputs(node: Node, layouts: tuple[str, ...], axes: Mapping[DataNode, _Axes]) -> dict[DataNode, _Axes]:
    first = node.inputs[0] if node.inputs and node.operator.options.layout is None else None
    ndim = None if first is None else axes[first][1]
    return {e: (layout, len(layout) if layout else ndim) for e, layout in zip(node.outputs, layouts, strict=True)}


def axes_after(node: Node, axes: Mapping[DataNode, _Axes]) -> dict[DataNode, _Axes]:
    """Return layout and number of axes of what an operator delivers, as far as they are known before it runs.

    Args:
        axes: Of its inputs.
    """
    if node.operator.kind == "reader":
        layouts = node.operator.output_layouts((), node.constants)
    else:
        _, layouts = _located(node, axes)
    return _axes_of_outputs(node, layouts, axes)


def named(edge: DataNode, batch: TensorList) -> TensorList:
    """Give a batch the layout that its operator assumed, if its axes were not known before it ran."""
    edge = _before_caches(edge)
    if edge.source is not None and edge.source.operator.options.layout is None:
        layout = taken_layout(edge.source.operator, "", number_of_axes(batch))
        if layout:
            batch.set_layout(layout)
    return batch


def _before_caches(edge: DataNode) -> DataNode:
    """Return what a cache keeps, of a reader that stands for the cache; of other edges, the edge."""
    source = edge.source
    if source is not None and source.parts:
        source = source.parts[-1]
    while source is not None and source.operator.name == "cache" and edge.index < len(source.inputs):
        kept = source.inputs[edge.index]
        assert kept is not None
        edge, source = kept, kept.source
    return edge


def _per_frame(node: Node, axes: Mapping[DataNode, _Axes]) -> frozenset[str]:
    """Return the arguments that are given per frame."""
    is_per_frame = node.operator.is_per_frame
    return frozenset(k for k, e in node.per_sample.items() if is_per_frame(k, axes[e][0]))
