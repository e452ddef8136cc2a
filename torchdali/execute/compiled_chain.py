"""Prepare a chain (operators that process one sample after the other), and run it on the samples of a batch.

A chain is prepared once for each combination of its inputs' layouts. The result is a `BoundChain`, with one function
per operator. The functions process *chunks*, groups of consecutive samples of a batch. On the *fast path*, one call of
the native library replaces all functions of the chain. An *edge* is an output of an operator.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, NamedTuple

import torch

from torchdali.calls.chunk_function import ChunkFunction, reports
from torchdali.calls.layouts import channel_mistake, number_of_axes, resolve_layout
from torchdali.calls.preparing import prepare
from torchdali.calls.running import stack_if_small, to_column
from torchdali.declaration.batching import Column, shape_values
from torchdali.declaration.registry import is_ours
from torchdali.errors import locate_error
from torchdali.execute.chunks import (
    Chunk,
    ChunkReader,
    Columns,
    Fused,
    PartialResult,
    Selection,
    branches_of,
    bytes_in_tensors,
    bytes_of_sample,
    can_be_chunk,
    chunk_size,
    fuse,
    is_encoded,
    is_small,
    runs_user_code,
)
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.timings import ChainTimings
from torchdali.graph.nodes import Condition, DataNode, Node
from torchdali.graph.plan import Chain, HostValue, create_host_value, edges, is_metadata
from torchdali.kernels.memory import SMALL_SAMPLE, Allocator
from torchdali.reading.datasets import Dataset, Read
from torchdali.tensors import TensorList
from torchdali.tensors._storage import arrays_of

__all__ = ["BoundChain", "CompiledChain", "Division", "ChunkMode", "axes_after", "set_assumed_layout"]

_Axes = tuple[str, "int | None"]  # layout, and number of axes (None if unknown)
_Getter = Callable[[Chunk], Any]


class ChunkMode(Enum):
    """The ways to run the samples of a chunk through a chain.

    Attributes:
        SAMPLES: Each operator processes one sample per call.
        CHUNKS: Each operator receives the whole chunk, as a list of samples.
        TENSORS: Each operator receives the whole chunk, as one tensor if the chain's input is one tensor.
        FUSED: The fast path processes the whole chunk in one call.
    """

    SAMPLES = auto()
    CHUNKS = auto()
    TENSORS = auto()
    FUSED = auto()


class Division(NamedTuple):
    """The division of a batch into chunks.

    Attributes:
        chunk: Number of samples per chunk. The last chunk may be smaller.
        mode: How the samples of a chunk run through the chain; see `ChunkMode`.
        run_inline: True if the current thread runs the whole batch, because waking another thread would take longer.
    """

    chunk: int
    mode: ChunkMode = ChunkMode.SAMPLES
    run_inline: bool = False


@dataclass
class BoundChain:
    """A chain whose operators are prepared for certain layouts.

    Attributes:
        chain: The chain.
        functions: The prepared operators, one per node.
        per_frame: The names of the arguments that are passed per video frame, one set per node.
        layouts: Layouts of the chain's inputs and results.
        accepts_tensors: True if each operator accepts samples in one tensor.
        chunkable: True if each operator can process several samples in one call.
        allows_single_thread: True if a single thread may run a whole batch of small samples. False if the chain has a
            reader or one of the user's operators, because these may take long for small samples.
        ragged: True if an operator has a batched implementation for samples of different shapes.
        fused: The fast path; None if the chain can't use the fast path.
        on_fallback: Function that is called with an operator and an error if the operator's batched implementation
            failed, but the rerun of the samples one by one succeeded.
        sample_bytes: Average number of bytes per sample in the chain's largest value. It is measured in the first chunk
            of each batch; 0 before the first batch.
    """

    chain: Chain
    functions: Sequence[ChunkFunction | ChunkReader]
    per_frame: Sequence[frozenset[str]]
    layouts: Mapping[DataNode, str]
    accepts_tensors: bool
    chunkable: bool
    allows_single_thread: bool
    ragged: bool
    fused: Fused | None
    on_fallback: Callable[[Node, Exception], None]
    sample_bytes: int = 0

    def divide(
        self, batches: Mapping[DataNode, TensorList], count: int, threads: int, result_bytes: int, timed: bool = False
    ) -> Division:
        """Choose how a batch is divided into chunks.

        Args:
            batches: The values of the chain's inputs.
            count: Number of samples of the batch.
            threads: Number of threads.
            result_bytes: Bytes per sample of the largest result; 0 if unknown.
            timed: True if each operator's time is measured. Then `ChunkMode.FUSED` isn't used, because one call runs
                all operators.
        """
        if count < 2:
            return Division(1)
        if self.fused is not None and not timed:
            return Division(self.fused.chunk_size(count, threads), ChunkMode.FUSED)
        may_use_tensors = bool(self.chain.inputs) and (self.accepts_tensors or self.allows_single_thread)
        sample_bytes = bytes_in_tensors(self.chain.inputs, batches, count) if may_use_tensors else None
        small = (
            sample_bytes is not None and self.allows_single_thread and max(sample_bytes, result_bytes) <= SMALL_SAMPLE
        )
        small = small and not any(is_encoded(batches[edge]) for edge in self.chain.inputs)
        if sample_bytes is not None and (self.accepts_tensors or (small and self.chunkable)):
            size = count if is_small(sample_bytes) else chunk_size(count, threads, sample_bytes, count)
            return Division(size, ChunkMode.TENSORS if size > 1 else ChunkMode.SAMPLES, run_inline=size == count)
        if small or not self.chunkable:
            run_inline = small and is_small(sample_bytes or 0)
            return Division(count if run_inline else 1, run_inline=run_inline)
        if self.ragged:
            # Use one chunk per thread. The calls are short, and after each call a thread waits for the GIL. Even a
            # chunk of one sample uses the batched implementation, because the implementation for one sample may round
            # differently.
            return Division(chunk_size(count, threads, self.sample_bytes, parts=1), ChunkMode.CHUNKS)
        size = chunk_size(count, threads, self.sample_bytes) if self.sample_bytes else 1
        return Division(size, ChunkMode.CHUNKS if size > 1 else ChunkMode.SAMPLES)

    def bind(
        self, mode: ChunkMode, columns: Columns, blamed: dict[int, Node], timings: ChainTimings | None
    ) -> Callable[[range], Collection[int]]:
        """Build the function that processes a range of samples. That function returns the indices that it skipped.

        Args:
            mode: How the samples run through the chain.
            columns: The values of the batch.
            blamed: Dictionary for errors. If a node raises an exception, the function adds the node, with the
                exception's `id` as the key.
            timings: Records each operator's time; None if times are not measured.
        """
        if mode is ChunkMode.FUSED:
            assert self.fused is not None
            return self.fused.bind(columns)
        # The threads that run the batch's chunks share these functions. Each chunk's data is stored only in its `Chunk`
        # object, which belongs to one thread.
        steps = [self._build_step(k, columns, mode is not ChunkMode.SAMPLES) for k in range(len(self.chain.nodes))]
        receivers = [functools.partial(self.on_fallback, node) for node in self.chain.nodes]

        def run(samples: range) -> tuple[()]:
            chunk, k, before = Chunk(samples), 0, reports.receiver
            if timings is not None:
                timings.note(samples, len(samples), -1)
            try:
                for k, step in enumerate(steps):
                    reports.receiver = receivers[k]
                    count = step(chunk)
                    if timings is not None and count:
                        timings.note(samples, count, k)
            except BaseException as error:
                blamed[id(error)] = self.chain.nodes[k]
                raise
            finally:
                reports.receiver = before
            if self.chunkable and not samples.start:
                # Threads that run different batches may write this attribute at the same time. No lock is needed,
                # because their values are similar.
                self.sample_bytes = max(map(bytes_of_sample, chunk.results.values()), default=0)
            return ()

        return run

    def columns(
        self,
        mode: ChunkMode,
        inputs: Mapping[DataNode, TensorList],
        reads: Mapping[Node, Sequence[Read]],
        rngs: Mapping[Node, Sequence[Any]],
        buffers: Mapping[DataNode, OpenBuffer],
    ) -> Columns:
        """Collect the values that the chain needs from a batch."""
        data = {edge: _samples(inputs[edge], mode is ChunkMode.TENSORS, self.ragged) for edge in self.chain.inputs}
        numbers: dict[object, Column] = {
            value.key: _shape_argument(inputs[value.edge], value) for value in self.chain.values
        }
        return Columns(data=data, values=numbers, reads=reads, rngs=rngs, buffers=buffers)

    def _build_step(self, k: int, columns: Columns, is_batched: bool) -> Callable[[Chunk], int]:
        """Build the function that runs operator `k` on a chunk. That function returns the number of samples it ran."""
        node, reads = self.chain.nodes[k], self.chain.nodes[k].operator.kind == "reader"
        function = self.functions[k] if is_batched else self.functions[k].one_by_one
        inputs = (
            [_build_slicer(columns.reads[node])]
            if reads
            else [_build_data_getter(edge, columns) for edge in node.inputs]
        )
        arguments = {
            name: self._build_value_getter(k, create_host_value(e, node, name), columns)
            for name, e in node.per_sample.items()
        }
        if node in columns.rngs:
            arguments["rng"] = _build_slicer(columns.rngs[node])
        outputs = [edge for edge in node.outputs if not is_metadata(edge)]
        buffers = [(edge, columns.buffers[edge]) for edge in outputs if edge in columns.buffers]
        writes = node.operator.writes or (node.operator.schema.accepts_out and len(node.outputs) == 1)
        out_buffer = columns.buffers.get(node.outputs[0]) if writes else None
        select = self._build_selector(k, node.scope, columns) if node.scope else None
        is_one = len(outputs) == 1 and not reads

        def step(chunk: Chunk) -> int:
            selection = None if select is None else select(chunk)
            if selection is not None and not selection.indices:
                return 0
            items = [get(chunk) for get in inputs]
            named = {name: get(chunk) for name, get in arguments.items()}
            if selection is not None and len(selection.indices) < selection.size:
                items, named = (
                    [*map(selection.select, items)],
                    {name: selection.select(each) for name, each in named.items()},
                )
            else:  # if the branch has all samples of the chunk, run the operator as if it were in no branch
                selection = None
                if out_buffer is not None:
                    named["out"] = out_buffer.rows(chunk.samples)
            result = function(*items, **named)
            for edge, each in zip(outputs, (result,) if is_one else result, strict=True):
                chunk.results[edge] = each if selection is None else PartialResult(each, selection)
            for edge, buffer in buffers:
                buffer.store(chunk.samples, chunk.results[edge])
            return len(chunk.samples) if selection is None else len(selection.indices)

        return step

    def _build_selector(self, k: int, scope: Sequence[Condition], columns: Columns) -> Callable[[Chunk], Selection]:
        """Build the function that finds the samples of a chunk for which an operator's conditions hold."""
        *outer, last = scope
        outer_select = self._build_selector(k, outer, columns) if outer else None
        get_values = self._build_value_getter(k, create_host_value(last.edge, self.chain.nodes[k]), columns)
        by_truth = isinstance(last.value, bool)
        key = (*((id(each.edge), each.value) for each in outer), id(last.edge), by_truth)

        def select(chunk: Chunk) -> Selection:
            branches = chunk.branches.get(key)
            if branches is None:
                indices = range(len(chunk.samples)) if outer_select is None else outer_select(chunk).indices
                # If the enclosing conditions hold for no sample, this condition has no values.
                items = get_values(chunk) if indices else None
                branches = chunk.branches[key] = branches_of(items, indices, by_truth)
            return Selection(branches.get(last.value, ()), len(chunk.samples))

        return select

    def _build_value_getter(self, k: int, value: HostValue, columns: Columns) -> _Getter:
        """Build the function that returns the values of an argument or condition for a chunk."""
        if value.key in columns.values:
            return _build_slicer(columns.values[value.key])
        edge, name = value.edge, value.name
        per_frame = name in self.per_frame[k]
        return lambda chunk: _values_of(chunk.results.get(edge), value.axes, name, per_frame)


def _build_slicer(column: Any) -> _Getter:
    return lambda chunk: column[chunk.part]


def _build_data_getter(edge: DataNode | None, columns: Columns) -> _Getter:
    """Build the function that returns a chunk's samples of an edge, from the chunk's results or from the batch."""
    if edge is None:
        return lambda chunk: None
    if edge not in columns.data:
        return lambda chunk: chunk.results.get(edge)
    column = columns.data[edge]

    def get(chunk: Chunk) -> Any:
        if edge not in chunk.results:
            chunk.results[edge] = column[chunk.part]
        return chunk.results[edge]

    return get


def _values_of(samples: Any, axes: int | None, name: str, per_frame: bool) -> Column | None:
    """Convert an operator's output to values of an argument; None if no sample of the chunk has a value."""
    if samples is None:
        return None
    if isinstance(samples, torch.Tensor):
        column = Column.of(samples)
        column.per_frame = per_frame
        return column.shape_values(axes, name)
    numbers = [None if sample is None else sample.tolist() for sample in samples]
    column = Column(numbers if per_frame else [shape_values(each, axes, name) for each in numbers])
    column.per_frame = per_frame
    return column


class CompiledChain:
    """A chain of a plan, and its `BoundChain` for each combination of layouts.

    Args:
        chain: The chain.
        datasets: The dataset of each reader.
        on_fallback: See `BoundChain`.
        empty: Function that allocates memory for the chain's outputs; None if operators allocate this memory.
    """

    def __init__(
        self,
        chain: Chain,
        datasets: Mapping[Node, Dataset],
        on_fallback: Callable[[Node, Exception], None],
        empty: Allocator | None = None,
    ) -> None:
        self.chain, self._datasets, self._empty = chain, datasets, empty
        self._on_fallback = on_fallback
        self._bound: dict[tuple[_Axes, ...], BoundChain] = {}

    def bound(self, inputs: Mapping[DataNode, TensorList]) -> BoundChain:
        """Return the chain, prepared for the layouts of these inputs."""
        entering_edges = (*self.chain.inputs, *(value.edge for value in self.chain.values))
        axes = tuple(_axes(inputs[edge]) for edge in entering_edges)
        # Two threads may prepare the chain for the same layouts at the same time. No lock is needed, because their
        # results are equivalent, and each access to a dictionary is atomic.
        if axes not in self._bound:
            self._bound[axes] = self._bind(dict(zip(entering_edges, axes, strict=True)))
            self._warn_of_channels(inputs)
        return self._bound[axes]

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
        functions: list[ChunkFunction | ChunkReader] = []
        frames = []
        for node in self.chain.nodes:
            if node.operator.kind == "reader":
                functions.append(ChunkReader(self._is_temporary(node), self._outputs_to_copy(node)))
                frames.append(frozenset[str]())
                layouts = node.operator.output_layouts((), node.constants)
            else:
                function, layouts = _prepare_located(node, axes)
                functions.append(self._chunk_function(node, function))
                frames.append(_per_frame(node, axes))
            axes.update(_axes_of_outputs(node, layouts, axes))
        chunk_functions = [each for each in functions if isinstance(each, ChunkFunction)]
        has_reader = len(chunk_functions) < len(functions)  # True if the chain has a reader
        nodes = self.chain.nodes
        return BoundChain(
            chain=self.chain,
            functions=functions,
            per_frame=frames,
            layouts={e: layout for e, (layout, _) in axes.items()},
            accepts_tensors=self.chain.accepts_tensors and all(each.tensor is not None for each in chunk_functions),
            chunkable=all(map(can_be_chunk, nodes)) and not any(map(self._is_read_by_user, nodes)),
            allows_single_thread=not has_reader and not any(map(runs_user_code, nodes)),
            ragged=any(each.ragged is not None for each in chunk_functions),
            fused=fuse(self.chain),
            on_fallback=self._on_fallback,
        )

    def _is_read_by_user(self, node: Node) -> bool:
        """Return whether a node is a reader of a dataset class that the user wrote.

        Failed chunks are rerun, but the code of the user's dataset must not be called again.
        """
        dataset = self._datasets.get(node)
        return dataset is not None and not is_ours(type(dataset))

    def _chunk_function(self, node: Node, chunk: ChunkFunction) -> ChunkFunction:
        """Configure an operator's prepared function for its use in this chain.

        If no other operator of the chain uses the operator's output, the function allocates the output with `empty`.
        """
        if node.operator.options.merges:
            return replace(chunk, ragged=None, stacks=True)
        if node.per_sample:
            return replace(chunk, ragged=None)
        if node.operator.allocates and self._empty is not None and not self._is_used(node):
            return replace(chunk, empty=self._empty)
        return chunk

    def _outputs_to_copy(self, reader: Node) -> frozenset[int]:
        """Return the indices of the outputs that the user receives and that may be views of the dataset's memory."""
        delivered = {edge.index for edge in self.chain.outputs if edge.source is reader}
        return frozenset(delivered if reader.operator.has("view") else ())

    def _is_temporary(self, reader: Node) -> bool:
        """Return whether a reader's data is unused once the next operators, for example decoders, have run."""
        outputs, delivered = set(map(id, reader.outputs)), set(map(id, self.chain.outputs))
        consumers = [n for n in self.chain.nodes if not outputs.isdisjoint(map(id, edges(n)))]
        return outputs.isdisjoint(delivered) and all(node.operator.allocates for node in consumers)

    def _is_used(self, node: Node) -> bool:
        """Return whether another operator of the chain uses an operator's output."""
        inputs = {id(edge) for other in self.chain.nodes for edge in edges(other)}
        return any(id(edge) in inputs for edge in node.outputs)

    def misshapen(self, inputs: Mapping[DataNode, TensorList]) -> dict[int, tuple[Exception, Node]]:
        """Find the samples for which the value of an argument has the wrong shape.

        Returns:
            A dictionary from the sample's index to the error and the operator.
        """
        failures: dict[int, tuple[Exception, Node]] = {}
        for value in self.chain.values:
            batch = inputs[value.edge]
            per_frame = value.node.operator.is_per_frame(value.name, batch.layout())
            if value.axes is None or batch.dense() is not None or per_frame:
                continue
            for i, numbers in enumerate(to_column(batch, per_frame)):
                try:
                    shape_values(numbers, value.axes, value.name, i)
                except RuntimeError as error:
                    failures.setdefault(i, (error, value.node))
        return failures


def _samples(batch: TensorList, in_tensors: bool, ragged: bool) -> Any:
    tensor = stack_if_small(batch) if in_tensors else None
    if tensor is not None:
        return tensor
    stored = batch.current_storage()
    # Arrays remain arrays, and are converted to tensors only if an operator needs tensors.
    return stored if ragged and arrays_of(stored) is not None else stored.samples()


def _shape_argument(batch: TensorList, value: HostValue) -> Column:
    """Return the values of an argument or condition, one per sample. Errors name the operator and the user's line.

    If the values are computed in a branch, samples outside of the branch get None.
    """
    per_frame = value.node.operator.is_per_frame(value.name, batch.layout())
    try:
        return to_column(batch, per_frame).shape_values(value.axes, value.name)
    except RuntimeError as error:
        name, where = value.node.title, value.node.where
        raise locate_error(error, f"operator {name!r} failed on its arguments\n  {where}") from error


def _axes(batch: TensorList) -> _Axes:
    return batch.layout(), len(batch.layout()) or number_of_axes(batch)


def _prepare_located(node: Node, axes: Mapping[DataNode, _Axes]) -> tuple[ChunkFunction, tuple[str, ...]]:
    """Prepare an operator, and return it with its outputs' layouts. Errors name the operator and the user's line."""
    inputs = [("", None) if e is None else axes[e] for e in node.inputs]
    layouts = tuple(layout for layout, _ in inputs)
    try:
        function = prepare(node.operator, node.constants, layouts, _per_frame(node, axes))
        if not inputs or layouts[0]:
            return function, function.layouts
        first = resolve_layout(node.operator, *inputs[0])
        return function, node.operator.output_layouts((first, *layouts[1:]), node.constants)
    except Exception as error:
        culprit = node.culprit(error)
        location = f"operator {culprit.title!r} failed on its inputs\n  {culprit.where}"
        raise locate_error(error, location) from error


def _axes_of_outputs(node: Node, layouts: tuple[str, ...], axes: Mapping[DataNode, _Axes]) -> dict[DataNode, _Axes]:
    first = node.inputs[0] if node.inputs and node.operator.options.layout is None else None
    ndim = None if first is None else axes[first][1]
    return {e: (layout, len(layout) if layout else ndim) for e, layout in zip(node.outputs, layouts, strict=True)}


def axes_after(node: Node, axes: Mapping[DataNode, _Axes]) -> dict[DataNode, _Axes]:
    """Return the layout and number of axes of an operator's outputs, as far as known before the operator runs.

    Args:
        node: The operator.
        axes: Layout and number of axes of the operator's inputs.
    """
    if node.operator.kind == "reader":
        layouts = node.operator.output_layouts((), node.constants)
    else:
        _, layouts = _prepare_located(node, axes)
    return _axes_of_outputs(node, layouts, axes)


def set_assumed_layout(edge: DataNode, batch: TensorList) -> TensorList:
    """Set the layout of an operator's output if the operator had an input without a layout.

    The operator then assumes a layout. The assumed layout depends on the number of axes, which may be unknown before
    the operator runs.
    """
    edge = _before_caches(edge)
    if edge.source is not None and edge.source.operator.options.layout is None:
        layout = resolve_layout(edge.source.operator, "", number_of_axes(batch))
        if layout:
            batch.set_layout(layout)
    return batch


def _before_caches(edge: DataNode) -> DataNode:
    """Return the edge whose values a cache stores if `edge` is an output of the cache; otherwise return `edge`."""
    source = edge.source
    if source is not None and source.parts:
        source = source.parts[-1]
    while source is not None and source.operator.name == "cache" and edge.index < len(source.inputs):
        cached = source.inputs[edge.index]
        assert cached is not None
        edge, source = cached, cached.source
    return edge


def _per_frame(node: Node, axes: Mapping[DataNode, _Axes]) -> frozenset[str]:
    """Return the names of the arguments that are passed per video frame."""
    is_per_frame = node.operator.is_per_frame
    return frozenset(k for k, e in node.per_sample.items() if is_per_frame(k, axes[e][0]))
