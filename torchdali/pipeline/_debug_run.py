"""Run a pipeline's function again for every batch, operator by operator, in the user's thread.

In debug mode every node holds its batch: it can be printed, inspected with `DebugNode.get`, and breakpoints in the
function stop where the data is. The results match the executor's, which `DebugRun` replaces.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchdali.calls.dispatch import CheckedCall, record
from torchdali.calls.results import check_form
from torchdali.declaration.registry import Operator
from torchdali.errors import located, note
from torchdali.execute.batch import BatchRequest, InFlightBatch, Reader, Settings, Taken, metadata_outputs, random_key
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.steps import delivered, run_step
from torchdali.execute.timings import Profile, Stats
from torchdali.graph.nodes import DataNode, Node, Tracer
from torchdali.graph.unpacking import explain_unpacking
from torchdali.reading.cursor import Keys
from torchdali.reading.datasets import Read, missing_output, read_row, source_namer, start_reads
from torchdali.reading.sources import Source
from torchdali.rng import BatchRng
from torchdali.tensors import Tensor, TensorList, TensorListCPU
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["DebugNode", "DebugRun"]


class DebugNode(DataNode):
    """A node that holds its batch."""

    __slots__ = ("value",)
    value: TensorList

    def get(self) -> TensorList:
        """Return the batch."""
        return self.value

    def __repr__(self) -> str:
        return f"{self.name} = {self.value}"

    __str__ = __repr__


@dataclass(frozen=True)
class _Seen:
    """The way in which the function called an operator in its first run.

    Attributes:
        inputs: For each, whether it is a batch.
        arguments: By name, whether it is given per sample.
    """

    operator: Operator
    inputs: tuple[bool, ...]
    arguments: Mapping[str, bool]

    def check(self, before: _Seen) -> None:
        """Refuse a call that is not like the one before in its place.

        Raises:
            RuntimeError: says how they differ.
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
                f"It had {_listed(before.arguments)}, and now has {_listed(self.arguments)}"
            )
        pairs = zip(before.inputs, self.inputs, strict=True)
        for i, (was, now) in enumerate(pairs):
            if was != now:
                raise RuntimeError(f"Input {i} for operator {name!r} is {_changed(now)}")
        for key, now in self.arguments.items():
            if before.arguments[key] != now:
                raise RuntimeError(f"Argument {key!r} for operator {name!r} is {_changed(now)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _changed(now: bool) -> str:
    kinds = ("one value for all samples", "a batch")
    return f"{kinds[now]}, where it was {kinds[not now]} with the first batch"


_ARRAYS = (np.ndarray, torch.Tensor, Tensor)
_NUMBERS = (*_ARRAYS, np.generic)


class _Restart(BaseException):
    """A reader was met after random numbers were drawn, whose keys depend on it: start over."""


class DebugRun(Tracer):
    """Replaces the executor of a pipeline in debug mode.

    Args:
        owner: The pipeline.
        settings: As for the executor.
        function: Returns the output nodes; called once a batch.
        open_reader: Makes the runtime side of a reader.
        open_source: Makes the runtime side of another source.
    """

    live = True

    def __init__(
        self,
        owner: Any,
        settings: Settings,
        function: Callable[[], Sequence[DataNode]],
        open_reader: Callable[[Node], Reader],
        open_source: Callable[[Node], Source],
    ) -> None:
        super().__init__(owner)
        self._settings, self._function = settings, function
        self._open_reader, self._open_source = open_reader, open_source
        self._device_stream = DeviceStream(settings.device, settings.stream_priority, settings.one_stream)
        self._opened: list[tuple[Node, Reader | Source]] = []
        self._drawn: list[Any] = []
        self._prepared: dict[Any, Any] = {}  # of the batch that is being run, see `_draw`; it identifies the batch
        self._flight: deque[InFlightBatch] = deque()
        self.taken = Taken()
        self._count = self._position = 0
        self._nodes: dict[tuple[str, Operator], Node] = {}
        self._fed: dict[str, list[tuple[Any, ...]]] = {}
        self._calls: list[_Seen] = []
        self.stopped = self.knows_sources = False
        self.profile = Profile()
        self.buffers = BufferPool()

    # ------------------------------------------------------------ the executor's interface

    @property
    def in_flight(self) -> int:
        """Batches that were run and not yet popped."""
        self._settle()
        return len(self._flight)

    @property
    def empty(self) -> bool:
        """True if all batches are taken."""
        return not self._flight or isinstance(self._flight[0].error, StopIteration)

    @property
    def sources(self) -> Mapping[Node, Source]:
        """The sources that are not readers."""
        return {n: s for n, s in self._opened if not isinstance(s, Reader)}

    @property
    def readers(self) -> Mapping[Node, Reader]:
        """The readers."""
        return {n: s for n, s in self._opened if isinstance(s, Reader)}

    def release(self) -> None:
        """Let go of the batch that was taken last."""
        self._settle()
        self.taken = self.taken.released()

    def schedule(self, ended: bool = False, *, tag: object = None) -> None:
        """Run the function for one more batch, or note that the data has come to its end."""
        self._settle()
        batch = InFlightBatch(
            self._settings.batch_size, index=self._count, position=self._position, request=BatchRequest(tag=tag)
        )
        batch.prepared = self._prepared
        for number in () if ended else range(len(self._opened)):
            self._prepare(number)
        try:
            if ended:
                raise StopIteration
            self.profile.asked(0)
            self._batch = batch
            self._drawn = self._draw_all()
            with self._settings.here():
                batch.outputs = self._run(batch)
        except StopIteration as stop:
            self.stopped = True
            batch.error = stop
        except Exception as error:
            batch.error = error
        self._flight.append(batch)
        self._settle()

    def _settle(self) -> None:
        """Finish the step that an exception interrupted: take out a batch that was taken; go on after one in flight."""
        flight = self._flight
        if flight and flight[-1].prepared is self._prepared:
            latest = flight[-1]
            repeated = [key for key, each in self._prepared.items() if getattr(each, "is_repeated", False)]
            # See `SourceBatch.is_repeated`.
            self._prepared = {key: each for key, each in self._prepared.items() if repeated and key not in repeated}
            self._count, self._position = latest.index + 1, latest.position + latest.size
        if flight and flight[0] is self.taken.batch:
            flight.popleft()

    def pop(self, stream: Any = None, after: int | None = None) -> InFlightBatch:
        """Return the oldest batch, or raise its error; see `Executor.pop`."""
        self._settle()
        batch = self._take() if after is None or after >= self.taken.number else self.taken.batch
        if batch is None:
            raise RuntimeError("the error of this batch is unknown: an interrupt has come before it was raised")
        error, batch.error = batch.error, None  # whose frames hold the batch
        if error is not None:
            self.release()
            try:
                raise error
            finally:
                del error  # see `Executor.pop`
        self.profile.delivered(batch.size)
        self._device_stream.hand_over(batch.outputs, self._device_stream.record(), stream)
        return batch

    def _take(self) -> InFlightBatch:
        if not self._flight:
            raise RuntimeError("no batch was scheduled: call schedule_run() before asking for outputs")
        batch = self._flight[0]
        self.taken = Taken(self.taken.number + (not isinstance(batch.error, StopIteration)), batch, batch.request.tag)
        self._settle()
        return batch

    def hold(self, name: str, *data: Any) -> None:
        """Keep a batch for a source that the first run of the function will open."""
        self._fed.setdefault(name, []).append(data)

    def stats(self) -> Stats:
        """Return where the time goes."""
        return self.profile.stats(self.buffers.bytes_out)

    def reset(self) -> None:
        """Start the next epoch of all sources that ended."""
        self._flight.clear()
        for source in self.sources.values():
            source.reset()
        self.stopped = False

    def close(self) -> None:
        """Drop the batches that were not popped, and close the sources."""
        self._flight.clear()
        for source in self.sources.values():
            source.close()

    # ------------------------------------------------------------ running the function

    def _run(self, batch: InFlightBatch) -> tuple[TensorList, ...]:
        while True:
            self.restart()
            self._used = self._called = 0
            self._computed = False
            self._guessed_keys = False
            if not self.knows_sources:
                self._calls.clear()
            batch.values.clear()
            try:
                with self:
                    outputs = self._function()
            except _Restart:
                continue
            except TypeError as error:
                explain_unpacking(error, self.nodes)
                raise
            self.knows_sources = True
            if self._fed:
                raise KeyError(f'Could not find an input operator with name "{self._fed.popitem()[0]}"')
            with self._device_stream.context():
                return delivered(batch.values, outputs)

    def adopt(
        self, declared: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the inputs and arguments of a call with nodes in the place of batches.

        A batch is a `TensorList`, or a list with an array, a tensor or a NumPy scalar for each sample. For an
        argument of several numbers, a list of NumPy scalars is one value.
        """
        known = declared.schema.arguments
        return [self._adopted(value, _NUMBERS) for value in inputs], {
            name: self._adopted(value, _NUMBERS if known[name].axes == 0 else _ARRAYS)
            if name in known and known[name].edge
            else value
            for name, value in arguments.items()
        }

    def _adopted(self, value: Any, samples: tuple[type, ...]) -> Any:
        if (
            isinstance(value, (list, tuple))
            and len(value) == self._settings.batch_size
            and all(isinstance(sample, samples) for sample in value)
        ):
            value = TensorListCPU(list(value))
        if not isinstance(value, TensorList):
            return value
        node = DebugNode(f"__batch_{len(self._batch.values)}", "cpu" if value.device.type == "cpu" else "gpu")
        node.value = self._batch.values[node] = value
        return node

    def _check_call(self, declared: Operator, checked: CheckedCall) -> None:
        call = _Seen(
            declared,
            tuple(isinstance(value, DataNode) for value in checked.inputs),
            {**dict.fromkeys(checked.constants, False), **dict.fromkeys(checked.per_sample, True)},
        )
        if self._called == len(self._calls):
            self._calls.append(call)
        else:
            call.check(self._calls[self._called])
        self._called += 1

    def run(self, declared: Operator, checked: CheckedCall) -> Any:
        """Record a call and compute it at once."""
        self._check_call(declared, checked)
        result = record(declared, checked)
        if isinstance(result, list):
            return [self._show(edge) for edge in result]
        return self._show(result)

    def _show(self, edge: DataNode) -> DebugNode:
        assert edge.source is not None
        if edge not in self._batch.values:
            self._compute(edge.source)
        shown = DebugNode(edge.name, edge.device, edge.source, edge.index)
        shown.value = self._batch.values[shown] = self._batch.values[edge]
        return shown

    def _compute(self, node: Node) -> None:
        started = time.perf_counter()
        if node.operator.kind in ("reader", "source"):
            results = self._next(node)
        else:
            rng = self._rng(node) if node.operator.schema.random else None
            self._computed = True
            with self._device_stream.context():
                results = run_step(self._batch, node, self._device_stream, rng)
        self._batch.values.update(zip(node.outputs, results, strict=True))
        same = self._nodes.setdefault((node.name, node.operator), node)
        self.profile.step(same, started, self._batch.size, self._batch.index)

    def _next(self, node: Node) -> Sequence[TensorList]:
        """Return the batch of a reader or source; both are opened in the first run."""
        if self._used == len(self._opened):
            opened = self._open_reader if node.operator.kind == "reader" else self._open_source
            self._opened.append((node, opened(node)))
            for data in self._fed.pop(node.name, ()):
                self._opened[-1][1].feed(*data)  # type: ignore[union-attr]
            self._prepare(len(self._opened) - 1)
            self._drawn.append(self._draw(len(self._opened) - 1))
            if self._guessed_keys and isinstance(self._opened[-1][1], Reader):
                raise _Restart
        known, source = self._opened[self._used]
        drawn = self._drawn[self._used]
        self._used += 1
        if known.operator is not node.operator:
            raise RuntimeError(
                f"the pipeline function called {node.operator.name!r} where it called {known.operator.name!r} in its "
                "first run; readers and sources must be called in the same order every time"
            )
        if isinstance(source, Reader):
            self._batch.info = [source.dataset.info(record) for record in drawn.records.tolist()]
            return self._read(node, source, drawn)
        outputs: Sequence[TensorList] = drawn
        size = len(outputs[0])
        if self._computed and size != self._batch.size:
            raise RuntimeError(
                "Batch size must be uniform across an iteration. External Source operator returned batch size "
                f"{size}; operators before it had {self._batch.size}"
            )
        self._batch.size = size
        if self._batch.info is None and outputs[0].source_infos is not None:
            self._batch.info = list(outputs[0].source_infos)
        move = self._device_stream.to_cpu if node.device == "cpu" else self._device_stream.adopt
        with self._device_stream.context():
            return tuple(map(move, outputs))

    def _draw_all(self) -> list[Any]:
        """Return the next data of everything that is open; if some fail, raise the first error after the others."""
        drawn: list[Any] = []
        failures: list[Exception] = []
        for number in range(len(self._opened)):
            try:
                drawn.append(self._draw(number))
            except Exception as error:
                failures.append(error)
        try:
            if failures:
                raise failures[0]
        finally:
            failures.clear()  # or it, its traceback and this frame keep each other alive
        return drawn

    def _prepare(self, number: int) -> None:
        """Note the position of a reader, or the data of a source; they stay until the batch is in flight."""
        source, prepared = self._opened[number][1], self._prepared
        if number in prepared:
            return
        if isinstance(source, Reader):
            prepared[number] = source.cursor.state()
        else:
            prepared[number] = source.prepare(self._settings.batch_size, prepared)

    def _draw(self, number: int) -> Any:
        """Return the next records of a reader, or the data of a source."""
        node, source = self._opened[number]
        if isinstance(source, Reader):
            source.cursor.restore(self._prepared[number])
            return source.cursor.next_batch(self._settings.batch_size)
        try:
            return source.next(self._settings.batch_size, self._prepared[number])
        except StopIteration:
            raise
        except BaseException as error:
            note(error, self._batch.location(node))
            raise

    def _read(self, node: Node, reader: Reader, keys: Keys) -> list[TensorList]:
        reads = start_reads(reader.dataset, keys.records.tolist(), keys.epochs.tolist())
        rows = [self._read_one(node, reader, i, r) for i, r in enumerate(reads)]
        layouts = node.operator.output_layouts((), node.constants)
        known = metadata_outputs(node, reader.dataset, keys.records)
        columns = zip(zip(*rows, strict=True), layouts[: len(layouts) - len(known)], strict=True)
        batches = [self._read_column(node, reader, keys, i, list(c), layout) for i, (c, layout) in enumerate(columns)]
        batches += known.values()
        for output, batch in enumerate(batches):
            name = source_namer(reader.dataset, output)
            if name is not None:
                batch.set_source_infos([name(record) for record in keys.records.tolist()])
        return batches

    def _read_column(
        self, node: Node, reader: Reader, keys: Keys, output: int, column: list[torch.Tensor], layout: str
    ) -> TensorList:
        """Make the batch of an output of a reader; an error says which record differs."""
        try:
            check_form(column)
        except RuntimeError as error:
            sample, reason = missing_output(reader.dataset, keys.records.tolist(), output) or (None, "")
            told = RuntimeError(f"{reason}; {error}") if reason else error
            raise located(told, self._batch.location(node, sample)) from error
        return TensorList.from_samples(column, layout)

    def _read_one(self, node: Node, reader: Reader, sample: int, read: Read) -> Any:
        try:
            arguments = {
                name: self._batch.values[edge].samples()[sample].tolist() for name, edge in node.per_sample.items()
            }
            return read_row(read, range(len(node.outputs)) if node.operator.has("view") else (), **arguments)
        except Exception as error:
            raise located(error, self._batch.location(node, sample)) from error

    def _rng(self, node: Node) -> BatchRng:
        for drawn in self._drawn:
            if isinstance(drawn, Keys):
                self._batch.keys = {node: drawn}
                break
        else:
            self._guessed_keys = True
        return BatchRng(random_key(self._settings.seed, node), *self._batch.sample_keys())
