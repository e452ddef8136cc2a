"""Compile a chain's source, bind it to a batch, and collect the outputs.

Binding prepares every operator of the chain for the layouts it will see; that is done once for each
combination of input layouts, so that running a sample is calls of prepared functions and nothing else.
"""

from __future__ import annotations

import functools
import linecache
import operator as op
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import torch

from torchdali.batching import Column, Lifted, Pieces, shaped, truth
from torchdali.errors import located
from torchdali.execute.bundles import (
    Bundled,
    ReadTogether,
    Together,
    bundled,
    can_lift,
    put,
    put_together,
)
from torchdali.execute.steps import values
from torchdali.graph import DataNode, Node
from torchdali.plan import Chain, Value, column
from torchdali.running import (
    Prepared,
    check_form,
    column_of,
    fitting,
    number_of_axes,
    prepare,
    taken_layout,
)
from torchdali.tensors import TensorList
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["Bodies", "BoundChain", "CompiledChain", "NotGrouped", "OpenBuffer", "OutputBuffer"]

Bind = Callable[..., Callable[[int], None]]
Send = Callable[[torch.Tensor, int], torch.Tensor]
_Axes = tuple[str, "int | None"]  # layout, and the number of axes as far as known


_TIMED = " timed"
_PIECE = 0.4  # of the room for a batch: what is copied to the device while the rest is computed
_LEAST_PIECE = 1 << 20  # bytes; a smaller one takes less time to copy than to start


class Bodies(NamedTuple):
    """The two functions of a chain's text.

    Attributes:
        bind: Takes the columns of a batch.
        bind_timed: Takes a `timings.ChainTimings`, then the columns.
    """

    bind: Bind
    bind_timed: Bind


@dataclass
class BoundChain:
    """A chain for certain layouts.

    Attributes:
        single: For columns with an item a sample.
        grouped: For columns with an item a group; None if an operator cannot do several samples in one call, or turned
            out not to.
        layouts: Of the chain's inputs and of all that it computes.
        bundled: How it does several samples of any shapes in one call; None if it cannot.
    """

    single: Bodies
    grouped: Bodies | None
    layouts: Mapping[DataNode, str]
    bundled: Bundled | Together | None = None


def _compile(text: str, file: str) -> CodeType:
    """Compile a chain so that tracebacks show its lines."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


class CompiledChain:
    """A chain, ready to be bound to batches.

    Args:
        chain: From the plan.
        index: Number of each node, as in the plan.
        readers: What reads a record, per reader node.
        name: Shown as the file name in tracebacks.
    """

    def __init__(
        self,
        chain: Chain,
        index: Mapping[Node, int],
        readers: Mapping[Node, Callable[[int], Any]],
        name: str,
    ) -> None:
        self.chain, self._index, self._readers = chain, index, readers
        self._file = f"<torchdali {name}>"
        self._code = _compile(chain.text, self._file)
        self._timed_code = _compile(chain.timed_text, self._file + _TIMED)
        self._bound: dict[tuple[_Axes, ...], BoundChain] = {}

    def bound(self, inputs: Mapping[DataNode, TensorList]) -> BoundChain:
        """Return ``bind``, for the layouts of the chain's inputs."""
        entering = (*self.chain.inputs, *(value.edge for value in self.chain.values))
        known = tuple(_axes(inputs[edge]) for edge in entering)
        # Batches of two threads may bind the same layouts at once. Either result serves both, and a dictionary stores
        # and reads in one step.
        if known not in self._bound:
            self._bound[known] = self._bind(dict(zip(entering, known, strict=True)))
        return self._bound[known]

    def _bind(self, found: dict[DataNode, _Axes]) -> BoundChain:
        names: dict[str, Any] = {"put": put, "truth": truth, **_SINGLE_VALUES}
        group_names: dict[str, Any] = {"put": put, **_GROUP_VALUES}
        bundle_names: dict[str, Any] = {"put": put_together, **_BUNDLE_VALUES}
        for node in self.chain.nodes:
            name = f"f{self._index[node]}"
            if node.operator.kind == "reader":
                names[name], group_names[name] = self._readers[node], None
                bundle_names[name] = ReadTogether(self._readers[node])
                layouts = node.operator.output_layouts((), node.constants)
            else:
                ready, layouts = _located(node, found)
                names[name], group_names[name] = ready.function, _group_body(node, ready)
                bundle_names[name] = _lifted(node, ready)
                per_frame = f"per_frame{self._index[node]}"
                names[per_frame] = group_names[per_frame] = _per_frame(node, found)
                bundle_names[per_frame] = names[per_frame]
            first = node.inputs[0] if node.inputs and node.operator.options.layout is None else None
            ndim = None if first is None else found[first][1]
            axes = [(layout, len(layout) if layout else ndim) for layout in layouts]
            found.update(zip(node.outputs, axes, strict=True))
        can_group = self.chain.grouped and None not in group_names.values()
        grouped = self._run_text(group_names) if can_group else None
        layouts_ = {e: layout for e, (layout, _) in found.items()}
        several: Bundled | Together | None = bundled(self.chain, self._index, self._readers)
        if several is None and can_lift(self.chain):
            rngs = tuple(name for name in self.chain.parameters if name.startswith("rng"))
            several = Together(*self._run_text(bundle_names), rngs)
        return BoundChain(self._run_text(names), grouped, layouts_, several)

    def _run_text(self, names: dict[str, Any]) -> Bodies:
        """Run the two texts of the chain, each in a namespace of its own."""
        plain, timed = dict(names), dict(names)
        exec(self._code, plain)
        exec(self._timed_code, timed)
        return Bodies(plain["bind"], timed["bind"])

    def node_at(self, error: BaseException) -> Node | None:
        """Return the operator in which an exception left the chain; of several fused into one, the one to blame."""
        node = self.node_in_chain(error)
        return None if node is None else node.culprit(error)

    def node_in_chain(self, error: BaseException) -> Node | None:
        """Return the node of the chain that an exception left."""
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file.startswith(self._file):
                return self.chain.lines[trace.tb_lineno - 1 - file.endswith(_TIMED)]
            trace = trace.tb_next
        return None

    def columns(
        self,
        inputs: Mapping[DataNode, TensorList],
        per_node: Mapping[str, Sequence[Any]],
        slots: Mapping[str, Sequence[Any]],
        done: Mapping[str, list[Any]],
        group: int = 1,
    ) -> dict[str, Sequence[Any]]:
        """Collect the columns that ``bind`` takes.

        Args:
            group: Samples for each item of a column.
        """
        found: dict[str, Sequence[Any]] = {**per_node, **slots, **done}
        for edge in self.chain.inputs:
            found[self._column("input", edge, edge.index)] = _samples(inputs[edge], group)
        for value in self.chain.values:
            name = self._column(value.kind, value.edge, value.detail)
            found[name] = _values(inputs[value.edge], value, group)
        return {name: found[name] for name in self.chain.parameters}

    def misshapen(self, inputs: Mapping[DataNode, TensorList]) -> dict[int, tuple[Exception, Node]]:
        """Return the samples that have several elements where an argument is one number, and the operators."""
        found: dict[int, tuple[Exception, Node]] = {}
        for value in self.chain.values:
            given = inputs[value.edge]
            per_frame = value.node.operator.is_per_frame(value.name, given.layout())
            if value.axes != 0 or given.dense() is not None or per_frame:
                continue
            for i, numbers in enumerate(values(given)):
                try:
                    shaped(numbers, 0, value.name, i)
                except RuntimeError as error:
                    found.setdefault(i, (error, value.node))
        return found

    def _column(self, kind: str, edge: DataNode, detail: object) -> str:
        assert edge.source is not None
        return column(kind, self._index[edge.source], detail)


def _samples(batch: TensorList, group: int) -> Sequence[torch.Tensor]:
    return batch.samples() if group == 1 else torch.split(batch.stacked(), group)


def _values(batch: TensorList, value: Value, group: int) -> Sequence[Any]:
    if group == 1 and value.axes is None:
        return values(batch)  # of a condition, or None where a branch did not compute one
    shaped_ = _shaped(batch, value)
    if group == 1:
        return shaped_.values
    if group >= len(shaped_):
        return [shaped_]
    return [shaped_[start : start + group] for start in range(0, len(shaped_), group)]


def _shaped(batch: TensorList, value: Value) -> Column:
    """Return the values of an argument; an error says which one, and on which of the user's lines."""
    per_frame = value.node.operator.is_per_frame(value.name, batch.layout())
    column_ = Column(values(batch)) if batch.dense() is None else column_of(batch, per_frame)
    column_.per_frame = per_frame
    try:
        return column_.shaped(value.axes, value.name)
    except RuntimeError as error:
        name, where = value.node.operator.name, value.node.where
        raise located(error, f"operator {name!r} failed on its arguments\n  {where}") from error


def _single_value(
    axes: int, value: torch.Tensor, name: str, per_frame: frozenset[str] = frozenset()
) -> Any:
    numbers = value.tolist()
    return numbers if name in per_frame else shaped(numbers, axes, name)


def _group_value(
    axes: int, value: torch.Tensor, name: str, per_frame: frozenset[str] = frozenset()
) -> Column:
    column_ = Column.of(value)
    column_.per_frame = name in per_frame
    return column_.shaped(axes, name)


def _values_of_each(
    value_of: Callable[..., Any], samples: Sequence[torch.Tensor], *rest: Any
) -> list[Any]:
    return [value_of(sample, *rest) for sample in samples]


_SINGLE_VALUES: dict[str, Callable[..., Any]] = {
    "numbers": torch.Tensor.tolist,
    "number": functools.partial(_single_value, 0),
    "list": functools.partial(_single_value, 1),
}
_GROUP_VALUES = {
    "numbers": Column.of,
    "number": functools.partial(_group_value, 0),
    "list": functools.partial(_group_value, 1),
}
_BUNDLE_VALUES = {k: functools.partial(_values_of_each, f) for k, f in _SINGLE_VALUES.items()}
"""Functions in the text of a chain for values that the chain computes: of a sample, a group, and a bundle."""


def _axes(batch: TensorList) -> _Axes:
    return batch.layout(), len(batch.layout()) or number_of_axes(batch)


def _located(node: Node, axes: Mapping[DataNode, _Axes]) -> tuple[Prepared, tuple[str, ...]]:
    """Prepare an operator; an error says which one, and on which of the user's lines."""
    try:
        return _ready(node, axes)
    except Exception as error:
        culprit = node.culprit(error)
        place = f"operator {culprit.operator.name!r} failed on its inputs\n  {culprit.where}"
        raise located(error, place) from error


def _ready(node: Node, axes: Mapping[DataNode, _Axes]) -> tuple[Prepared, tuple[str, ...]]:
    """Prepare an operator, and return the layouts of its outputs too."""
    given = [("", None) if e is None else axes[e] for e in node.inputs]
    layouts = tuple(layout for layout, _ in given)
    frames = _per_frame(node, axes)
    ready = prepare(node.operator, node.constants, layouts, frames)
    if not given or layouts[0]:
        return ready, ready.layouts
    taken = taken_layout(node.operator, *given[0])
    return ready, node.operator.output_layouts((taken, *layouts[1:]), node.constants)


def _per_frame(node: Node, axes: Mapping[DataNode, _Axes]) -> frozenset[str]:
    """Return the arguments that are given per frame."""
    is_per_frame = node.operator.is_per_frame
    return frozenset(k for k, e in node.per_sample.items() if is_per_frame(k, axes[e][0]))


def _group_body(node: Node, ready: Prepared) -> Callable[..., Any] | None:
    """Return a function for several samples in one call, or None where an operator has none for these layouts."""
    if ready.batched is None or node.operator.batched is None:
        return None
    return functools.partial(_run_group, ready.batched, node.operator.batched.writes)


def _lifted(node: Node, ready: Prepared) -> Lifted:
    """Return an operator on lists of samples."""
    takes = node.operator.schema.inputs[0].takes.dtypes if node.operator.schema.inputs else ()
    body = None if node.per_sample else ready.together
    return Lifted(ready.function, body, takes, several=len(ready.layouts) > 1)


def _run_group(
    body: Callable[..., Any],
    writes: bool,
    *inputs: torch.Tensor,
    out: torch.Tensor | None = None,
    **arguments: Any,
) -> Any:
    """Do several samples in one call, or raise `NotGrouped`.

    Args:
        writes: ``body`` takes ``out``.
        out: Output buffer for the results, if there is one.
    """
    found = body(*inputs, out=out, **arguments) if writes else body(*inputs, **arguments)
    if found is out and out is not None:
        return found
    for each in found if isinstance(found, tuple) else (found,):
        if not isinstance(each, torch.Tensor):  # NotImplemented, or samples of different shapes
            raise NotGrouped
    if isinstance(found, torch.Tensor):
        if any(found is each for each in inputs):
            found = found.clone()  # writing into the result must not change the input
        return found if out is None else put(out, found)
    return found


class NotGrouped(Exception):
    """An operator does these samples one by one."""


class Arena:
    """Page-locked memory into which samples of any shapes are put as they come, by several threads.

    Args:
        flat: The memory.
        send: Starts the copy of the first so many elements to the device, and returns all of them there; called once,
            by the thread that fills the last gap before them, while others fill the rest.

    Attributes:
        there: What `send` returned.
        sent: How many elements it was given.
    """

    def __init__(self, flat: torch.Tensor, send: Send | None = None) -> None:
        self.flat, self._used, self._lock = flat, 0, threading.Lock()
        self._size = flat.numel()
        self._open: set[int] = set()
        self._send = send if flat.nbytes * _PIECE >= _LEAST_PIECE else None
        self.there: torch.Tensor | None = None
        self.sent = 0

    @property
    def used(self) -> int:
        """Elements that are taken."""
        return min(self._used, self._size)

    def take(self, count: int) -> int:
        """Return the place of so many elements, or -1 where they do not fit."""
        with self._lock:  # workers take places side by side; what they write there is theirs alone
            place = self._used
            if place + count > self._size:
                return -1
            self._used = place + count
            if self._send is not None and count:
                self._open.add(place)
        return place

    def filled(self, place: int) -> None:
        """Note that the elements at a place are there, and send the first piece if it is whole now."""
        if self._send is None or self.sent:  # once sent, for good
            return
        with self._lock:
            self._open.remove(place)
            whole = min(self._open, default=self._used)
            if self.sent or whole < self._size * _PIECE:
                return
            self.sent = whole
        # Nobody writes below `whole` again. The chain is not done before this thread is back, so `there` is seen.
        self.there = self._send(self.flat, whole)


class ArenaColumn(list):  # type: ignore[type-arg]
    """Results of a chain; each is copied into the arena by the worker that computed it, while it is in cache."""

    def __init__(self, arena: Arena, count: int) -> None:
        super().__init__([None] * count)
        self._arena, self._places = arena, [-1] * count
        self._shapes: list[tuple[int, ...]] = [()] * count
        # NumPy copies a small image in a third of torch's time.
        self._dtype, self._elements = arena.flat.dtype, arena.flat.numpy()

    def __setitem__(self, i: Any, sample: Any) -> None:
        place = -1
        if (
            isinstance(sample, torch.Tensor)
            and sample.dtype == self._dtype
            and sample.is_cpu
            and not sample.requires_grad
        ):
            given = sample.numpy()
            size, self._shapes[i] = given.size, given.shape
            place = self._arena.take(size)
            if place >= 0:
                kept = self._elements[place : place + size].reshape(given.shape)
                kept[...] = given
                sample = torch.from_numpy(kept)
                if size:  # an empty sample has no place of its own
                    self._arena.filled(place)
        self._places[i] = place
        super().__setitem__(i, sample)

    def packed(self, layout: str, info: Sequence[str] | None) -> TensorList | None:
        """Return the batch in the arena; None where some did not fit."""
        if -1 in self._places:
            return None
        used = self._arena.flat[: self._arena.used]
        return TensorList.from_packed(used, self._places, self._shapes, layout, info)


class OpenBuffer(NamedTuple):
    """The output buffer of one batch: a tensor, or None where its shape is not known, and its parts for each call."""

    whole: torch.Tensor | None
    parts: Sequence[torch.Tensor | None]
    arena: Arena | None = None

    def column(self, count: int) -> list[Any]:
        """Return the list that the chain writes the results of so many calls into."""
        return [None] * count if self.arena is None else ArenaColumn(self.arena, count)


class OutputBuffer:
    """Allocates where the results of one edge are written: a tensor with the shape of the batch before.

    A wrong guess costs nothing: an operator that cannot use its part returns a tensor of its own, and the batch is
    ragged, or is stacked once.

    Args:
        packs: Samples of different shapes go into one piece of memory too, since they are copied to a device next.
        send: Starts that copy for the first of them, see `Arena`.
    """

    def __init__(self, buffers: BufferPool, packs: bool = False, send: Send | None = None) -> None:
        self._buffers, self._packs, self._send = buffers, packs, send
        self._ragged: tuple[int, torch.dtype] | None = None
        self._guess: tuple[tuple[int, ...], torch.dtype] | None = None

    def open(self, size: int, group: int = 1) -> OpenBuffer:
        """Return the buffer for a batch, with a part for each group of samples.

        A single group gets none: its result is the batch.
        """
        count = -(-size // group)
        # Read once: this thread starts a batch, while a worker may close an earlier one and guess anew.
        guess, ragged = self._guess, self._ragged
        if ragged is not None and group == 1 and size:
            elements, dtype = ragged
            arena = Arena(self._buffers.empty((elements,), dtype), self._send)
            return OpenBuffer(None, [None] * count, arena)
        if guess is None or size == 0 or (count == 1 and group > 1):
            return OpenBuffer(None, [None] * count)
        shape, dtype = guess
        whole = self._buffers.empty((size, *shape), dtype)
        return OpenBuffer(whole, whole.unbind(0) if group == 1 else torch.split(whole, group))

    def close(
        self, opened: OpenBuffer, done: list[Any], layout: str, info: Sequence[str] | None
    ) -> TensorList:
        """Make the batch of the results of single samples."""
        if _is_filled(opened, done):
            return _batch_of(opened.whole, layout, info)
        first = next((d for d in done if d is not None), None)
        layout = layout if first is None else fitting(layout, first.ndim)
        if first is None or any(
            d is None or d.shape != first.shape or d.dtype != first.dtype for d in done
        ):
            self._guess = None
            check_form(done)
            return self._ragged_batch(done, layout, info)
        self._ragged = None
        self._guess = tuple(first.shape), first.dtype
        stacked = torch.stack(done, out=self._buffers.empty((len(done), *first.shape), first.dtype))
        return TensorList.from_dense(stacked, layout, source_info=info)

    def _ragged_batch(self, done: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        packed = done.packed(layout, info) if isinstance(done, ArenaColumn) else None
        dtype = None if not done or done[0] is None else done[0].dtype
        alike = packed is not None or all(d is not None and d.dtype == dtype for d in done)
        if self._packs and alike and dtype is not None and dtype != torch.bfloat16:
            # A quarter more than the batch before: what does not fit costs a copy.
            elements = sum(d.numel() for d in done)
            room = self._ragged[0] if self._ragged is not None else 0
            if not elements * 1.1 <= room <= elements * 2:
                room = elements + elements // 4
            self._ragged = room, dtype
            if packed is not None:
                return packed
        return TensorList.from_samples(list(done), layout, source_info=info)

    def close_pieces(
        self, pieces: Sequence[Pieces], layout: str, info: Sequence[str] | None
    ) -> TensorList:
        """Make the batch of the results of bundles, each in one tensor."""
        self._guess = None
        rows = [piece.rows for piece in pieces]
        layout = fitting(layout, rows[0].ndim - (pieces[0].counts is None))
        if pieces[0].counts is None:
            whole = rows[0] if len(rows) == 1 else torch.cat(rows)
            return TensorList.from_dense(whole, layout, info)
        found = TensorList.from_blocks(rows, [piece.counts or [] for piece in pieces], layout)
        found.set_source_infos(info)
        return found

    def close_groups(
        self, opened: OpenBuffer, done: list[Any], layout: str, info: Sequence[str] | None
    ) -> TensorList:
        """Make the batch of the results of groups, ``(N, ...)`` each; of one done sample by sample, a list."""
        if _is_filled(opened, done):
            return _batch_of(opened.whole, layout, info)
        first = done[0]
        if any(
            isinstance(d, list) or d.shape[1:] != first.shape[1:] or d.dtype != first.dtype
            for d in done
        ):
            samples = [sample for d in done for sample in d]
            return self.close(OpenBuffer(None, ()), samples, layout, info)
        self._guess = tuple(first.shape[1:]), first.dtype
        whole = first
        if len(done) > 1:
            size = sum(map(len, done))
            whole = torch.cat(done, out=self._buffers.empty((size, *first.shape[1:]), first.dtype))
        return _batch_of(whole, layout, info)


def _is_filled(opened: OpenBuffer, done: list[Any]) -> bool:
    """Return True if every result is in its part of the buffer."""
    parts = opened.parts
    return opened.whole is not None and len(done) == len(parts) and all(map(op.is_, done, parts))


def _batch_of(whole: torch.Tensor | None, layout: str, info: Sequence[str] | None) -> TensorList:
    assert whole is not None
    return TensorList.from_dense(whole, fitting(layout, whole.ndim - 1), source_info=info)
