"""Debug mode: the pipeline's function runs for every batch, and each operator runs when the function calls it.

In debug mode, a node contains its batch. You can print the node, or call `DebugNode.get`, for example at a breakpoint.
In normal mode, the function runs only once, to build the graph. The results are the same in both modes.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from torchdali.calls.dispatch import CheckedCall, record
from torchdali.calls.results import check_uniform
from torchdali.declaration.registry import Operator
from torchdali.errors import locate_error, note
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import InFlightBatch, ReaderState, Settings, metadata_outputs, random_key
from torchdali.execute.executor import Executor
from torchdali.execute.steps import deliver, run_step
from torchdali.execute.workers.batches import Replicas
from torchdali.graph.nodes import DataNode, Graph, Node, Tracer
from torchdali.graph.plan import plan
from torchdali.graph.unpacking import explain_unpacking
from torchdali.reading.cursor import Keys
from torchdali.reading.datasets import Read, missing_output, read_row, source_namer
from torchdali.reading.sources import BatchSource
from torchdali.rng import BatchRng
from torchdali.tensors import Tensor, TensorList, TensorListCPU

__all__ = ["DebugNode", "DebugRun"]


class DebugNode(DataNode):
    """A node that contains its batch."""

    __slots__ = ("value",)
    value: TensorList

    def get(self) -> TensorList:
        """Return the batch."""
        return self.value

    def __repr__(self) -> str:
        return f"{self.name} = {self.value}"

    __str__ = __repr__


@dataclass(frozen=True)
class _RecordedCall:
    """A call of an operator by the pipeline's function. Every run of the function must make the same calls.

    Attributes:
        operator: The operator.
        inputs: For each input, True if it is a batch.
        arguments: For each argument's name, True if the argument has one value per sample.
    """

    operator: Operator
    inputs: tuple[bool, ...]
    arguments: Mapping[str, bool]

    def check(self, before: _RecordedCall) -> None:
        """Check that this call has the same operator, inputs and arguments as `before`, the call in the first run.

        Raises:
            RuntimeError: the calls differ; the message explains the difference.
        """
        name = self.operator.name
        if self.operator is not before.operator:
            raise RuntimeError(
                f"Unexpected operator {name!r}, where the first batch had {before.operator.name!r}. Debug mode does "
                "not support changing the order of operators executed within the pipeline."
            )
        counts = len(before.inputs), len(self.inputs)
        if counts[0] != counts[1]:
            raise RuntimeError(
                f"Trying to use operator {name!r} with different number of inputs than when it was built. It had "
                f"{counts[0]}, and now has {counts[1]}"
            )
        if before.arguments.keys() != self.arguments.keys():
            raise RuntimeError(
                f"Trying to use operator {name!r} with different number of keyword arguments than when it was built. "
                f"It had {_join_names(before.arguments)}, and now has {_join_names(self.arguments)}"
            )
        pairs = zip(before.inputs, self.inputs, strict=True)
        for i, (was, now) in enumerate(pairs):
            if was != now:
                raise RuntimeError(f"Input {i} for operator {name!r} is {_describe_change(now)}")
        for key, now in self.arguments.items():
            if before.arguments[key] != now:
                raise RuntimeError(f"Argument {key!r} for operator {name!r} is {_describe_change(now)}")


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _describe_change(now: bool) -> str:
    kinds = ("one value for all samples", "a batch")
    return f"{kinds[now]}, where it was {kinds[not now]} with the first batch"


class _Restart(BaseException):
    """Signal to run the function again, because the random numbers of this run are wrong.

    Random numbers are computed from the samples' keys. When a reader is called for the first time, it changes the keys.
    """


_ARRAYS = (np.ndarray, torch.Tensor, Tensor)
_NUMBERS = (*_ARRAYS, np.generic)


class _LiveTracer(Tracer):
    """Tracer for one run of the function. Each operator is computed when the function calls it.

    Args:
        batch: The batch that the run computes.
        calls: The calls of operators in the first run, in order. The first run appends its calls.
        size: Batch size. If the function passes a list with this number of arrays, the list is a batch.
        compute: Function that computes the operator of a node.
    """

    live = True

    def __init__(
        self, owner: Any, batch: InFlightBatch, calls: list[_RecordedCall], size: int, compute: Callable[[Node], None]
    ) -> None:
        super().__init__(owner)
        self._batch, self._calls, self._size, self._compute = batch, calls, size, compute
        self._next_call = 0

    def adopt(
        self, declared: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the inputs and arguments of a call, with batches replaced by nodes.

        A batch is a `TensorList`, or a list with an array, a tensor or a NumPy scalar for each sample. If an argument
        consists of several numbers, a list of NumPy scalars is one value of the argument, not a batch.
        """
        schema_arguments = declared.schema.arguments
        return [self._adopt(value, _NUMBERS) for value in inputs], {
            name: self._adopt(value, _NUMBERS if schema_arguments[name].axes == 0 else _ARRAYS)
            if name in schema_arguments and schema_arguments[name].edge
            else value
            for name, value in arguments.items()
        }

    def _adopt(self, value: Any, samples: tuple[type, ...]) -> Any:
        if (
            isinstance(value, (list, tuple))
            and len(value) == self._size
            and all(isinstance(sample, samples) for sample in value)
        ):
            value = TensorListCPU(list(value))
        if not isinstance(value, TensorList):
            return value
        node = DebugNode(f"__batch_{len(self._batch.values)}", "cpu" if value.device.type == "cpu" else "gpu")
        node.value = self._batch.values[node] = value
        return node

    def _check_call(self, declared: Operator, checked: CheckedCall) -> None:
        call = _RecordedCall(
            declared,
            tuple(isinstance(value, DataNode) for value in checked.inputs),
            {**dict.fromkeys(checked.constants, False), **dict.fromkeys(checked.per_sample, True)},
        )
        if self._next_call == len(self._calls):
            self._calls.append(call)
        else:
            call.check(self._calls[self._next_call])
        self._next_call += 1

    def run(self, declared: Operator, checked: CheckedCall) -> Any:
        """Record a call and compute it immediately."""
        self._check_call(declared, checked)
        result = record(declared, checked)
        if isinstance(result, list):
            return [self._create_debug_node(edge) for edge in result]
        return self._create_debug_node(result)

    def _create_debug_node(self, edge: DataNode) -> DebugNode:
        assert edge.source is not None
        if edge not in self._batch.values:
            self._compute(edge.source)
        debug_node = DebugNode(edge.name, edge.device, edge.source, edge.index)
        debug_node.value = self._batch.values[debug_node] = self._batch.values[edge]
        return debug_node


class DebugRun(Executor):
    """Executor of a pipeline in debug mode. The pipeline's function computes each batch in the user's thread.

    A reader or source is opened when the function calls it for the first time.

    Args:
        owner: The pipeline; stored as a weak reference.
        function: The pipeline's function, which returns the output nodes. The function is called once per batch.
        open_reader: Function that opens a reader.
        open_source: Function that opens a source that isn't a reader.
    """

    def __init__(
        self,
        owner: Any,
        settings: Settings,
        function: Callable[[], Sequence[DataNode]],
        open_reader: Callable[[Node], ReaderState],
        open_source: Callable[[Node], BatchSource],
    ) -> None:
        super().__init__(plan(Graph.of([])), replace(settings, synchronous=True), {}, {}, BadSamples())
        self._owner, self._function = weakref.ref(owner), function
        self._open_reader, self._open_source = open_reader, open_source
        self._opened: list[tuple[Node, ReaderState | BatchSource]] = []
        self._stored_feeds: dict[str, list[tuple[Any, ...]]] = {}
        self._nodes: dict[tuple[str, Operator], Node] = {}  # the first run's nodes, for `stats`
        self._calls: list[_RecordedCall] = []
        self.knows_sources = False

    def store_feed(self, name: str, *data: Any) -> None:
        """Store a batch of `feed_input` until the first run of the function opens the source.

        Args:
            name: Name of the source's node.
            data: Arguments of the source's `feed`.
        """
        self._stored_feeds.setdefault(name, []).append(data)

    def schedule(self, ended: bool = False, *args: Any, **request: Any) -> None:
        """Run the function for the next batch, or once more for a batch whose run was interrupted."""
        self._check_open()
        if self._interrupted and request.get("tag") is None:
            with self._single_caller.lock():
                self._rerun_interrupted()
        else:
            super().schedule(ended, *args, **request)

    def _begin(self, batch: InFlightBatch, replicas: Replicas | None) -> None:
        try:
            batch.outcome.outputs = self._run(batch)
        except Exception as error:
            self._stopped |= isinstance(error, StopIteration)
            self._stages.fail(batch, error)
        else:
            batch.outcome.ready = self.device_stream.record()
            batch.values.clear()
            batch.finished.set()

    def _run(self, batch: InFlightBatch) -> tuple[TensorList, ...]:
        while True:
            self._batch, self._next_source = batch, 0
            self._computed = self._guessed_keys = False
            if not self.knows_sources:
                self._calls.clear()
            tracer = _LiveTracer(self._owner(), batch, self._calls, self.settings.batch_size, self.compute)
            try:
                with tracer:
                    outputs = self._function()
            except _Restart:
                continue
            except TypeError as error:
                explain_unpacking(error, tracer.nodes)
                raise
            finally:
                tracer.leave()
            self.knows_sources = True
            if self._stored_feeds:
                raise KeyError(f'Could not find an input operator with name "{self._stored_feeds.popitem()[0]}"')
            with self.device_stream.context():
                return deliver(batch.values, outputs)

    def compute(self, node: Node) -> None:
        """Compute the operator of a node and store the results in the batch."""
        batch, started = self._batch, time.perf_counter()
        if node.operator.kind in ("reader", "source"):
            results = self._next(node)
        else:
            self._computed = True
            with self.device_stream.context():
                results = run_step(batch, node, self.device_stream, self._rng(node))
        batch.values.update(zip(node.outputs, results, strict=True))
        if node.operator.kind != "source":  # `_draw_source` and `Executor._prepare` measure sources
            first_node = self._nodes.setdefault((node.name, node.operator), node)
            self.profile.record_step(first_node, started, batch.draw.size, batch.draw.index)

    def _rng(self, node: Node) -> BatchRng | None:
        if not node.operator.schema.random:
            return None
        self._guessed_keys |= not self._batch.draw.keys
        return BatchRng(random_key(self.settings.seed, node), *self._batch.draw.sample_keys())

    def _next(self, node: Node) -> Sequence[TensorList]:
        """Return the outputs of a reader or source for the current batch. The first call opens the reader or source."""
        if self._next_source == len(self._opened):
            source = (self._open_reader if node.operator.kind == "reader" else self._open_source)(node)
            for data in self._stored_feeds.pop(node.name, ()):
                source.feed(*data)  # type: ignore[union-attr]
            self._opened.append((node, source))
        first_node, source = self._opened[self._next_source]
        self._next_source += 1
        if first_node.operator is not node.operator:
            raise RuntimeError(
                f"the pipeline function must call readers and sources in the same order in every run, got "
                f"{node.operator.name!r} in place of {first_node.operator.name!r}"
            )
        if isinstance(source, ReaderState):
            if first_node not in self.readers:
                self._draw_reader(first_node, source)
            return self._read(node, source, self._batch.draw.keys[first_node], self._batch.draw.reads[first_node])
        if first_node not in self.sources:
            self._draw_source(first_node, source)
        return [self._batch.values[edge] for edge in first_node.outputs]

    def _draw(self, batch: InFlightBatch, replicas: Replicas | None) -> None:
        self._state_before = self.state()
        super()._draw(batch, replicas)

    def _draw_reader(self, node: Node, reader: ReaderState) -> None:
        """Choose the records of a reader's first batch, and start to read the records."""
        batch, size = self._batch, self.settings.batch_size
        self._check_size(f"Operator {node.title!r}", size)
        label = self._labels[node] = str(len(self._labels))
        for state in (self._state_before, self.taken.state):
            state["readers"][label] = reader.cursor.state()
        self.readers = {**self.readers, node: reader}
        keys = batch.draw.keys[node] = reader.next_keys(size, None)
        batch.draw.reads[node] = reader.start_reads(keys, size, None)
        batch.values.update(metadata_outputs(node, reader.dataset, keys.records))
        batch.draw.info, batch.draw.state = self._source_infos(batch), self.state()
        if self._guessed_keys:
            raise _Restart

    def _draw_source(self, node: Node, source: BatchSource) -> None:
        """Get the first batch of a source."""
        batch, size, started = self._batch, self.settings.batch_size, time.perf_counter()
        prepared = source.prepare(size, self._opened)
        spare, self._labels[node] = batch.backup, str(len(self._labels))
        batch.backup = spare if prepared is None else {**spare, node: prepared}
        self.sources = {**self.sources, node: source}
        if (
            prepared is not None and prepared.is_repeated
        ):  # this batch fails; the next batch uses the other sources' data
            self._restore_readers(self._state_before)
            self._prepared = dict(spare)
        try:
            outputs = source.next(size, prepared)
        except StopIteration:
            raise
        except BaseException as error:
            note(error, batch.draw.location(node))
            raise
        size = len(outputs[0])
        self._check_size("External Source operator", size)
        batch.draw.size, self._position = size, batch.draw.position + size
        batch.values.update(zip(node.outputs, self._on_device(node, outputs), strict=True))
        batch.draw.info, batch.draw.state = self._source_infos(batch), self.state()
        self.profile.record_step(node, started, size, batch.draw.index)

    def _check_size(self, title: str, size: int) -> None:
        if size != self._batch.draw.size and (self._computed or len(self._opened) > 1):
            raise RuntimeError(
                f"Batch size must be uniform across an iteration. {title} returned batch size {size}; operators before "
                f"it had {self._batch.draw.size}"
            )

    def _read(self, node: Node, reader: ReaderState, keys: Keys, reads: Sequence[Read]) -> list[TensorList]:
        rows = [self._read_sample(node, reader, i, r) for i, r in enumerate(reads)]
        layouts = node.operator.output_layouts((), node.constants)
        metadata = metadata_outputs(node, reader.dataset, keys.records)
        columns = zip(zip(*rows, strict=True), layouts[: len(layouts) - len(metadata)], strict=True)
        batches = [self._read_column(node, reader, keys, i, list(c), layout) for i, (c, layout) in enumerate(columns)]
        batches += metadata.values()
        for output, batch in enumerate(batches):
            name = source_namer(reader.dataset, output)
            if name is not None:
                batch.set_source_infos([name(record) for record in keys.records.tolist()])
        return batches

    def _read_column(
        self, node: Node, reader: ReaderState, keys: Keys, output: int, column: list[torch.Tensor], layout: str
    ) -> TensorList:
        """Create the batch of a reader's output. An error names the record that caused it."""
        try:
            check_uniform(column)
        except RuntimeError as error:
            sample, reason = missing_output(reader.dataset, keys.records.tolist(), output) or (None, "")
            full_error = RuntimeError(f"{reason}; {error}") if reason else error
            raise locate_error(full_error, self._batch.draw.location(node, sample)) from error
        return TensorList.from_samples(column, layout)

    def _read_sample(self, node: Node, reader: ReaderState, sample: int, read: Read) -> Any:
        try:
            arguments = {
                name: self._batch.values[edge].samples()[sample].tolist() for name, edge in node.per_sample.items()
            }
            return read_row(read, range(len(node.outputs)) if node.operator.has("view") else (), **arguments)
        except Exception as error:
            raise locate_error(error, self._batch.draw.location(node, sample)) from error
