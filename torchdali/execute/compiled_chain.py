"""Make a chain ready for certain layouts, and bind it to a batch.

Every operator of a chain is prepared for the layouts that it will see; that is done once for each combination of input
layouts. To run a sample is then to call one prepared function after the other.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.batching import Column, Lifted, each_of, shaped, truth
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
from torchdali.kernels.memory import Empty
from torchdali.loader import row
from torchdali.plan import Argument, Call, Chain, Value, column, edges
from torchdali.running import (
    Prepared,
    channel_mistake,
    column_of,
    number_of_axes,
    prepare,
    taken_layout,
)
from torchdali.tensors import TensorList
from torchdali.tensors.arrays import Arrays

__all__ = ["BoundChain", "CompiledChain", "Loop", "Mark", "NotGrouped", "axes_after", "named"]

_Axes = tuple[str, "int | None"]  # layout, and the number of axes as far as known
Mark = Callable[[int, int], None]
"""Called with the item, and the number of the call that is done with it; -1 before the first."""
_Take = Callable[[int, list[Any]], Any]
_Step = Callable[[int, list[Any]], None]


@dataclass(frozen=True)
class Loop:
    """The calls of a chain, with a function for each.

    Attributes:
        functions: One a call.
        values: What makes values of results of the chain, by kind.
        put: Copies a result to its place, or returns it.
    """

    chain: Chain
    functions: Sequence[Callable[..., Any]]
    per_frame: Sequence[frozenset[str]]
    values: Mapping[str, Callable[..., Any]]
    put: Callable[..., Any]

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
                    step(i, results)
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
        first, places = call.first, range(call.first, call.first + call.count)
        is_one = call.count == 1 and not is_reader

        def compute(i: int, results: list[Any]) -> None:
            result = function(
                *[take(i, results) for take in inputs], **{name: take(i, results) for name, take in named.items()}
            )
            if is_one:
                results[first] = result
            else:
                for place, output in zip(places, result, strict=True):
                    results[place] = output

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

        def step(i: int, results: list[Any]) -> None:
            compute(i, results)
            for result, slots, done in ways:
                done[i] = results[result] if slots is None else put(slots[i], results[result])

        return step

    def _conditional(self, k: int, step: _Step, columns: Mapping[str, Any]) -> _Step:
        conditions = [(self._taken(k, each, columns), value) for each, value in self.chain.calls[k].conditions]

        def step_if(i: int, results: list[Any]) -> None:
            for take, wanted in conditions:
                value = take(i, results)
                if (truth(value) if isinstance(wanted, bool) else value) != wanted:
                    return
            step(i, results)

        return step_if

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
    def timed(i: int, results: list[Any]) -> None:
        step(i, results)
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
        grouped: For columns with an item a group; None if an operator cannot do several samples in one call.
        layouts: Of the chain's inputs and of all that it computes.
        bundled: How it does several samples of any shapes in one call; None if it cannot.
    """

    single: Loop
    grouped: Loop | None
    layouts: Mapping[DataNode, str]
    bundled: Bundled | Together | None = None


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

    def _bind(self, found: dict[DataNode, _Axes]) -> BoundChain:
        singles: list[Callable[..., Any]] = []
        groups: list[Callable[..., Any] | None] = []
        lifted: list[Callable[..., Any]] = []
        frames = []
        for node in self.chain.nodes:
            if node.operator.kind == "reader":
                read = self._readers[node]
                singles.append(read)
                groups.append(None)
                lifted.append(ReadTogether(read, self._is_passing(node)))
                frames.append(frozenset[str]())
                layouts = node.operator.output_layouts((), node.constants)
            else:
                ready, layouts = _located(node, found)
                singles.append(ready.function)
                groups.append(_group_body(node, ready))
                lifted.append(self._lifted(node, ready))
                frames.append(_per_frame(node, found))
            found.update(_axes_of_outputs(node, layouts, found))
        grouped = None
        bodies = [body for body in groups if body is not None]
        if self.chain.grouped and len(bodies) == len(groups):
            grouped = Loop(self.chain, bodies, frames, _GROUP_VALUES, put)
        layouts_ = {e: layout for e, (layout, _) in found.items()}
        several: Bundled | Together | None = bundled(self.chain, self._index, self._readers)
        if several is None and can_lift(self.chain):
            rngs = tuple(name for name in self.chain.parameters if name.startswith("rng"))
            gaining = [each for each in lifted if isinstance(each, Lifted) and each.gains]
            several = Together(Loop(self.chain, lifted, frames, _BUNDLE_VALUES, put_together), gaining, rngs)
        return BoundChain(Loop(self.chain, singles, frames, _SINGLE_VALUES, put), grouped, layouts_, several)

    def _lifted(self, node: Node, ready: Prepared) -> Lifted:
        """Return an operator on lists of samples."""
        declared, body = node.operator, None if node.per_sample else ready.together
        takes = declared.schema.inputs[0].takes.dtypes if declared.schema.inputs else ()
        allocates = body is not None and declared.together is not None and declared.together.allocates
        large = allocates and self._empty is not None and not self._is_used(node)
        if body is not None and large:
            body = functools.partial(body, empty=self._empty)
        return Lifted(ready.function, body, takes, several=len(ready.layouts) > 1, small=not large)

    def _is_passing(self, reader: Node) -> bool:
        """Return True if what a reader returns goes to decoders alone, whose results are in memory of their own."""
        own, delivered = set(map(id, reader.outputs)), set(map(id, self.chain.delivers))
        takers = [n for n in self.chain.nodes if not own.isdisjoint(map(id, edges(n)))]
        bodies = [node.operator.together for node in takers]
        return own.isdisjoint(delivered) and all(body is not None and body.allocates for body in bodies)

    def _is_used(self, node: Node) -> bool:
        """Return True if another operator of the chain takes what one returns."""
        taken = {id(edge) for other in self.chain.nodes for edge in edges(other)}
        return any(id(edge) in taken for edge in node.outputs)

    def columns(
        self,
        inputs: Mapping[DataNode, TensorList],
        per_node: Mapping[str, Sequence[Any]],
        slots: Mapping[str, Sequence[Any]],
        done: Mapping[str, list[Any]],
        group: int = 1,
        lazily: bool = False,
    ) -> dict[str, Sequence[Any]]:
        """Collect the columns that `Loop.bind` takes.

        Args:
            group: Samples for each item of a column.
            lazily: Leave arrays as they are until somebody asks for a tensor.
        """
        found: dict[str, Sequence[Any]] = {**per_node, **slots, **done}
        for edge in self.chain.inputs:
            found[self._column("input", edge, edge.index)] = _samples(inputs[edge], group, lazily)
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


def _samples(batch: TensorList, group: int, lazily: bool) -> Sequence[torch.Tensor]:
    if group > 1:
        whole = batch.stacked()
        return (whole,) if group >= len(whole) else torch.split(whole, group)
    stored = batch.stored()
    return stored if lazily and isinstance(stored, Arrays) else stored.samples()


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
        name, where = value.node.title, value.node.where
        raise located(error, f"operator {name!r} failed on its arguments\n  {where}") from error


def _single_value(axes: int, value: torch.Tensor, name: str, per_frame: frozenset[str] = frozenset()) -> Any:
    numbers = value.tolist()
    return numbers if name in per_frame else shaped(numbers, axes, name)


def _group_value(axes: int, value: torch.Tensor, name: str, per_frame: frozenset[str] = frozenset()) -> Column:
    column_ = Column.of(value)
    column_.per_frame = name in per_frame
    return column_.shaped(axes, name)


def _values_of_each(value_of: Callable[..., Any], samples: Sequence[torch.Tensor], *rest: Any) -> list[Any]:
    return [value_of(sample, *rest) for sample in samples]


_SINGLE_VALUES: dict[str, Callable[..., Any]] = {
    "value": torch.Tensor.tolist,
    "number": functools.partial(_single_value, 0),
    "list": functools.partial(_single_value, 1),
}
_GROUP_VALUES: dict[str, Callable[..., Any]] = {
    "value": Column.of,
    "number": functools.partial(_group_value, 0),
    "list": functools.partial(_group_value, 1),
}
_BUNDLE_VALUES: dict[str, Callable[..., Any]] = {
    kind: functools.partial(_values_of_each, value_of) for kind, value_of in _SINGLE_VALUES.items()
}
"""Functions that make values of what the chain computes: of a sample, a group, and a bundle."""


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
    given = [("", None) if e is None else axes[e] for e in node.inputs]
    layouts = tuple(layout for layout, _ in given)
    frames = _per_frame(node, axes)
    ready = prepare(node.operator, node.constants, layouts, frames)
    if not given or layouts[0]:
        return ready, ready.layouts
    taken = taken_layout(node.operator, *given[0])
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


def named(edge: DataNode, made: TensorList) -> TensorList:
    """Give a batch the layout that its operator assumed, if its axes were not known before it ran."""
    edge = _before_caches(edge)
    if edge.source is not None and edge.source.operator.options.layout is None:
        layout = taken_layout(edge.source.operator, "", number_of_axes(made))
        if layout:
            made.set_layout(layout)
    return made


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


def _group_body(node: Node, ready: Prepared) -> Callable[..., Any] | None:
    """Return a function for several samples in one call, or None if an operator has none for these layouts."""
    if ready.batched is None or node.operator.batched is None:
        return None
    alone = node.operator.schema.wants_out and len(node.outputs) == 1
    return functools.partial(_run_group, ready.batched, ready.function, node.operator.batched.writes, alone)


def _run_group(
    body: Callable[..., Any],
    single: Callable[..., Any],
    writes: bool,
    single_writes: bool,
    *inputs: torch.Tensor,
    out: torch.Tensor | None = None,
    **arguments: Any,
) -> Any:
    """Do several samples in one call.

    Args:
        single: Does one sample, if ``body`` has no better way for these.
        writes, single_writes: ``body`` and ``single`` take ``out``.
        out: Output buffer for the results, if there is one.

    Raises:
        NotGrouped: the results differ in shape.
    """
    found = body(*inputs, out=out, **arguments) if writes else body(*inputs, **arguments)
    if found is out and out is not None:
        return found
    outputs = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(output, torch.Tensor) for output in outputs):  # NotImplemented, or samples of many shapes
        found = _one_by_one(single, inputs, arguments, out if single_writes else None)
        if found is out and out is not None:
            return found
    if isinstance(found, torch.Tensor):
        if any(found is each for each in inputs):
            found = found.clone()  # writing into the result must not change the input
        return found if out is None else put(out, found)
    return found


def _one_by_one(
    single: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    arguments: Mapping[str, Any],
    out: torch.Tensor | None,
) -> Any:
    """Do samples that lie in one tensor one by one, and bring the results into one: ``out`` if they fit."""
    each = each_of(arguments)
    places = [{}] * len(inputs[0]) if out is None else [{"out": place} for place in out]
    rows = [
        single(*sample, **(each[i] if len(each) > 1 else each[0]), **places[i])
        for i, sample in enumerate(zip(*inputs, strict=True))
    ]
    if out is not None and all(row is place["out"] for row, place in zip(rows, places, strict=True)):
        return out
    columns = list(zip(*rows, strict=True)) if isinstance(rows[0], tuple) else [rows]
    if any(one.shape != column[0].shape or one.dtype != column[0].dtype for column in columns for one in column):
        raise NotGrouped
    stacked = tuple(torch.stack(list(column)) for column in columns)
    return stacked if isinstance(rows[0], tuple) else stacked[0]


class NotGrouped(Exception):
    """An operator gives these samples results of different shapes."""
