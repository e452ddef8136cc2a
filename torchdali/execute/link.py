"""Turn the text of a chain into a function, and its results into batches.

Linking prepares every operator of the chain for the layouts it will see; that is done once for each
combination of input layouts, so that running a sample is calls of prepared functions and nothing else.
"""

from __future__ import annotations

import functools
import linecache
import operator as op
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from torchdali.errors import located
from torchdali.execute.buffers import Buffers
from torchdali.execute.scope import truth, values
from torchdali.graph import DataNode, Node
from torchdali.operator import Prepared, prepare
from torchdali.plan import Chain, column
from torchdali.running import fitting, number_of_axes, taken_layout
from torchdali.schema import Column
from torchdali.tensors import TensorList

__all__ = ["Linked", "LinkedChain", "Slots"]

Bind = Callable[..., Callable[[int], None]]
_Axes = tuple[str, "int | None"]  # layout, and the number of axes as far as known


_TIMED = " timed"


@dataclass(frozen=True)
class Linked:
    """A chain for certain layouts.

    Attributes:
        bind: Takes the columns of a batch.
        bind_timed: Takes a `profile.Marks`, then the columns.
        spans: The same two for columns of spans; None where an operator cannot do several samples at once.
        layouts: Of the chain's inputs and of all that it computes.
    """

    bind: Bind
    bind_timed: Bind
    spans: tuple[Bind, Bind] | None
    layouts: Mapping[DataNode, str]


def _compile(text: str, file: str) -> CodeType:
    """Compile a chain so that tracebacks show its lines."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


class LinkedChain:
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
        self._linked: dict[tuple[_Axes, ...], Linked] = {}

    def link(self, inputs: Mapping[DataNode, TensorList]) -> Linked:
        """Return ``bind``, for the layouts of the chain's inputs."""
        entering = (*self.chain.inputs, *self.chain.values)
        known = tuple(_axes(inputs[edge]) for edge in entering)
        if known not in self._linked:
            self._linked[known] = self._link(dict(zip(entering, known, strict=True)))
        return self._linked[known]

    def _link(self, found: dict[DataNode, _Axes]) -> Linked:
        names: dict[str, Any] = {"put": put, "truth": truth}
        at_once: dict[str, Any] = dict(names)
        for node in self.chain.nodes:
            name = f"f{self._index[node]}"
            if node.operator.kind == "reader":
                names[name], at_once[name] = self._readers[node], None
                layouts = node.operator.output_layouts((), node.constants)
            else:
                ready, layouts = _located(node, found)
                names[name], at_once[name] = ready.function, self._at_once(node, ready)
            first = node.inputs[0] if node.inputs and node.operator.layout is None else None
            ndim = None if first is None else found[first][1]
            axes = [(layout, len(layout) if layout else ndim) for layout in layouts]
            found.update(zip(node.outputs, axes, strict=True))
        timed = dict(names)
        exec(self._code, names)
        exec(self._timed_code, timed)
        spans = None
        if None not in at_once.values():
            at_once_timed = dict(at_once)
            exec(self._code, at_once)
            exec(self._timed_code, at_once_timed)
            spans = at_once["bind"], at_once_timed["bind"]
        layouts_ = {e: layout for e, (layout, _) in found.items()}
        return Linked(names["bind"], timed["bind"], spans, layouts_)

    def _at_once(self, node: Node, ready: Prepared) -> Callable[..., Any] | None:
        """Return what does several samples in one call, or None where an operator cannot."""
        declared = node.operator
        is_plain = not (node.scope or declared.schema.random or declared.by_shape)
        if ready.dense is None or not is_plain:
            return None
        if node.edges and not (
            declared.columns and set(node.edges.values()) <= {*self.chain.values}
        ):
            return None
        return functools.partial(_together, ready.dense, declared.dense_writes)

    def node_at(self, error: BaseException) -> Node | None:
        """Return the operator in which an exception left the chain."""
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file.startswith(self._file):
                node = self.chain.lines[trace.tb_lineno - 1 - file.endswith(_TIMED)]
                return None if node is None else node.culprit(error)
            trace = trace.tb_next
        return None

    def columns(
        self,
        inputs: Mapping[DataNode, TensorList],
        per_node: Mapping[str, Sequence[Any]],
        slots: Mapping[str, Sequence[Any]],
        done: Mapping[str, list[Any]],
        span: int = 1,
    ) -> dict[str, Sequence[Any]]:
        """Collect the columns that ``bind`` takes.

        Args:
            span: Samples for each item of a column.
        """
        found: dict[str, Sequence[Any]] = {**per_node, **slots, **done}
        for edge in self.chain.inputs:
            found[self._column("input", edge)] = _samples(inputs[edge], span)
        for edge in self.chain.values:
            numbers: Sequence[Any] = values(inputs[edge])
            if span > 1:
                starts = range(0, len(numbers), span)
                numbers = [Column(numbers[start : start + span]) for start in starts]
            found[self._column("value", edge)] = numbers
        return {name: found[name] for name in self.chain.parameters}

    def _column(self, kind: str, edge: DataNode) -> str:
        assert edge.source is not None
        return column(kind, self._index[edge.source], edge.index)


def _samples(batch: TensorList, span: int) -> Sequence[torch.Tensor]:
    if span == 1:
        return batch.samples()
    dense = batch.dense()
    assert dense is not None
    return torch.split(dense, span)


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
    frames = frozenset(k for k, e in node.edges.items() if axes[e][0].startswith("F"))
    ready = prepare(node.operator, node.constants, layouts, frames)
    if not given or layouts[0]:
        return ready, ready.layouts
    taken = taken_layout(node.operator, *given[0])
    return ready, node.operator.output_layouts((taken, *layouts[1:]), node.constants)


def put(slot: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    """Copy a result to its place in the batch; if it has none or does not fit, return it for itself."""
    if slot is not None and slot.shape == value.shape and slot.dtype == value.dtype:
        return slot.copy_(value)
    return value.contiguous()


def _together(
    dense: Callable[..., Any],
    writes: bool,
    *inputs: torch.Tensor,
    out: torch.Tensor | None = None,
    **arguments: Any,
) -> torch.Tensor:
    """Do several samples in one call, or raise `_NotTogether`.

    Args:
        writes: ``dense`` takes ``out``.
        out: Where the results belong, if there is a place for them.
    """
    found = dense(*inputs, out=out, **arguments) if writes else dense(*inputs, **arguments)
    if found is NotImplemented:
        raise _NotTogether
    assert isinstance(found, torch.Tensor)
    return found if out is None or found is out else put(out, found)


class _NotTogether(Exception):
    """With these arguments, an operator does samples one by one."""


class Slots:
    """Where the results of one edge are written: a dense tensor, guessed from the batch before.

    The guess costs nothing when it is wrong: an operator that cannot use its slot returns a tensor of
    its own, and the batch is ragged, or is stacked once.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._guess: tuple[tuple[int, ...], torch.dtype] | None = None

    @property
    def guesses(self) -> bool:
        """Whether there is a dense tensor for the next batch."""
        return self._guess is not None

    def open(
        self, size: int, span: int = 1
    ) -> tuple[torch.Tensor | None, Sequence[torch.Tensor | None]]:
        """Return the dense tensor, or None, and its parts: samples, or spans of several."""
        if self._guess is None or size == 0:
            return None, [None] * size
        shape, dtype = self._guess
        dense = self._buffers.empty((size, *shape), dtype)
        return dense, dense.unbind(0) if span == 1 else torch.split(dense, span)

    def close(
        self,
        dense: torch.Tensor | None,
        slots: Sequence[torch.Tensor | None],
        done: list[Any],
        layout: str,
        info: Sequence[str] | None,
    ) -> TensorList:
        """Make the batch of what the chain delivered."""
        whole = dense is not None and len(done) == len(slots) and all(map(op.is_, done, slots))
        if dense is not None and whole:
            return TensorList.from_dense(dense, fitting(layout, dense.ndim - 1), source_info=info)
        first = next((d for d in done if d is not None), None)
        layout = layout if first is None else fitting(layout, first.ndim)
        if first is None or any(
            d is None or d.shape != first.shape or d.dtype != first.dtype for d in done
        ):
            self._guess = None
            return TensorList.from_samples(done, layout, source_info=info)
        self._guess = tuple(first.shape), first.dtype
        stacked = torch.stack(done, out=self._buffers.empty((len(done), *first.shape), first.dtype))
        return TensorList.from_dense(stacked, layout, source_info=info)
