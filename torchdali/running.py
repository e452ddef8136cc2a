"""An operator's body made ready for its constants and layouts, and run over a batch.

`run_batch` is the reference for what an operator means; fused chains do the same, sample by sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from torchdali.errors import for_all
from torchdali.kernels.arrays import is_array
from torchdali.rng import BatchRng
from torchdali.schema import Column, Schema, Takes
from torchdali.tensors import TensorList

if TYPE_CHECKING:
    from torchdali.operator import Operator

__all__ = [
    "LARGE", "Bodies", "Prepared", "collect", "fitting", "is_large", "is_moderate", "number_of_axes", "prepare",
    "run_batch", "taken_layout", "taken_layouts",
]  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """A body made ready for its constants and layouts.

    Attributes:
        function: Takes one sample of each input, per-sample arguments, rng, out.
        layouts: Of the outputs.
        dense: Takes each input as one tensor ``(batch, ...)``, if the operator can.
    """

    function: Callable[..., Any]
    layouts: tuple[str, ...]
    dense: Callable[..., Any] | None = None


def prepare(
    declared: Operator,
    constants: Mapping[str, Any],
    layouts: tuple[str, ...],
    per_frame: frozenset[str] = frozenset(),
) -> Prepared:
    """Decide once what is the same for all samples.

    Args:
        constants: Converted arguments.
        layouts: Of the inputs, "" where unset.
        per_frame: Arguments that have one value a frame; a body that takes these itself (`PerSample`) gets
            all of them.

    Raises:
        ValueError: a layout the operator does not take.
    """
    try:
        ready = _prepared(declared, constants, layouts, per_frame)
    except Exception as error:
        for_all(error)
        raise
    if declared.kind != "sample" or declared.body.__module__.partition(".")[0] == "torchdali":
        return ready
    checked = _checked(ready.function, len(ready.layouts))
    return Prepared(checked, ready.layouts, ready.dense)


def _checked(function: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Check what an operator of somebody else's returns for a sample; others would fail on it later."""

    def run(*inputs: Any, **arguments: Any) -> Any:
        result = function(*inputs, **arguments)
        if outputs == 1 and isinstance(result, torch.Tensor):
            return result
        found = result if isinstance(result, tuple) else (result,)
        _check_count(len(found), outputs)
        for each in found:
            if not isinstance(each, torch.Tensor):
                raise TypeError(f"the operator returned {_kind(each)}, not a tensor")
        return result if outputs > 1 else found[0]

    return run


def _check_count(found: int, declared: int) -> None:
    """Check the number of outputs that an operator returned."""
    if found != declared:
        raise TypeError(
            f"the operator returned {_counted(found)}, and is declared to return {_counted(declared)}: several are a "
            "tuple, and annotated as one (-> tuple[torch.Tensor, torch.Tensor])"
        )


def _counted(count: int, what: str = "output") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _kind(value: Any) -> str:
    """Return what a value is: None, "an int", "a list"."""
    name = type(value).__name__
    article = "an" if name[0] in "aeiou" else "a"
    return "None" if value is None else f"{article} {name}"


def _prepared(
    declared: Operator,
    constants: Mapping[str, Any],
    layouts: tuple[str, ...],
    per_frame: frozenset[str],
) -> Prepared:
    read = declared.schema
    per_frame = frozenset(name for name in per_frame if read.arguments[name].edge == "frame")
    made = declared.make() if declared.make is not None else declared.body
    body = functools.partial(made, **{k: v for k, v in constants.items() if k != "seed"})
    for i, layout in enumerate(layouts):
        _check_layout(declared.name, read.input(i).takes, layout)
    outputs = declared.output_layouts(layouts, constants)
    if not read.inputs or declared.kind != "sample":
        return Prepared(_with_layout(body, read, layouts[0] if layouts else ""), outputs)
    takes = read.inputs[0].takes
    first = layouts[0] if layouts else ""
    if first or not (takes.layouts or per_frame):
        can = declared.dense is not None and not per_frame
        whole = _dense(declared, body.keywords, takes, first) if can else None
        return Prepared(_adapt(body, read, takes, first, per_frame), outputs, whole)
    by_ndim: dict[int, Callable[..., Any]] = {}

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        function = by_ndim.get(x.ndim)
        if function is None:
            assumed = _assume(declared.name, takes, x.ndim)
            function = by_ndim[x.ndim] = _adapt(body, read, takes, assumed, per_frame)
        return function(x, *rest, **arguments)

    return Prepared(run, outputs)


def _dense(
    declared: Operator, constants: Mapping[str, Any], takes: Takes, layout: str
) -> Callable[..., Any]:
    assert callable(declared.dense)
    function: Callable[..., Any] = functools.partial(declared.dense, **constants)
    function = _with_layout(function, declared.schema, layout)
    return _typed(function, declared.name, takes.dtypes) if takes.dtypes else function


def _check_layout(name: str, takes: Takes, layout: str) -> None:
    if layout and takes.layouts and layout not in takes.layouts:
        raise ValueError(
            f"operator {name!r} does not take the layout {layout!r}; it takes {', '.join(takes.layouts)}"
        )


def _assume(name: str, takes: Takes, ndim: int) -> str:
    for layout in takes.layouts:
        if len(layout) == ndim:
            return layout
    if takes.layouts:
        raise ValueError(
            f"operator {name!r} does not take {ndim}D data without a layout; it takes {', '.join(takes.layouts)}"
        )
    return ""


def taken_layout(declared: Operator, layout: str, ndim: int | None) -> str:
    """Return the layout that counts for the outputs, of a first input of so many axes.

    An unset one is the first of that length that the operator takes.
    """
    inputs = declared.schema.inputs
    if layout or ndim is None or not inputs or not inputs[0].takes.names:
        return layout
    return next((each for each in inputs[0].takes.layouts if len(each) == ndim), "")


def taken_layouts(declared: Operator, inputs: Sequence[TensorList | None]) -> tuple[str, ...]:
    """Return the layouts of a batch of each input; see `taken_layout`."""
    layouts = ["" if v is None else v.layout() for v in inputs]
    first = inputs[0] if inputs else None
    if first is not None and not layouts[0] and declared.schema.inputs[0].takes.layouts:
        layouts[0] = taken_layout(declared, "", number_of_axes(first))
    return tuple(layouts)


def number_of_axes(batch: TensorList) -> int | None:
    """Return the number of axes of the samples, or None where there are none."""
    if not (batch.dense() is None and batch.rows() is None and batch.arrays() is None):
        return batch.ndim()
    return next((sample.ndim for sample in batch.samples() if sample is not None), None)


def _with_layout(body: Callable[..., Any], read: Schema, layout: str) -> Callable[..., Any]:
    return functools.partial(body, layout=layout) if read.wants_layout else body


def _adapt(
    body: Callable[..., Any], read: Schema, takes: Takes, layout: str, per_frame: frozenset[str]
) -> Callable[..., Any]:
    if per_frame and layout.startswith("F"):
        return _frame_by_frame(_adapt(body, read, takes, layout[1:], frozenset()), per_frame)
    function = _with_layout(body, read, layout)
    if takes.channel_last and "C" in layout and not layout.endswith("C"):
        function = _channel_last(function, layout.index("C"))
    if takes.dtypes:
        function = _typed(function, read.name, takes.dtypes)
    return function


def _channel_last(function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    def back(result: Any) -> Any:
        return result.movedim(-1, axis)

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        result = function(x.movedim(axis, -1), *rest, **arguments)
        return (back(result[0]), *result[1:]) if isinstance(result, tuple) else back(result)

    return run


def _typed(
    function: Callable[..., Any], name: str, dtypes: tuple[torch.dtype, ...]
) -> Callable[..., Any]:
    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        if x.dtype not in dtypes:
            supported = ", ".join(str(d).removeprefix("torch.") for d in dtypes)
            raise RuntimeError(
                f"operator {name!r}: unsupported type: {str(x.dtype).removeprefix('torch.')}; it takes {supported}"
            )
        return function(x, *rest, **arguments)

    return run


def _frame_by_frame(function: Callable[..., Any], per_frame: frozenset[str]) -> Callable[..., Any]:
    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        same = {k: v for k, v in arguments.items() if k not in per_frame and k != "out"}
        frames = [
            function(frame, *rest, **same, **{k: arguments[k][i] for k in per_frame})
            for i, frame in enumerate(x)
        ]
        return torch.stack(frames)

    return run


_NO_NAMES: frozenset[str] = frozenset()
Bodies = dict[tuple[tuple[str, ...], frozenset[str]], Prepared]
"""What was prepared, by the layouts of the inputs and the arguments per frame."""


def run_batch(
    declared: Operator,
    inputs: Sequence[TensorList | None],
    constants: Mapping[str, Any],
    edges: Mapping[str, TensorList],
    rng: BatchRng | None,
    size: int = 1,
    bodies: Bodies | None = None,
) -> tuple[TensorList, ...]:
    """Run an operator over one batch, sample by sample or as a whole.

    Args:
        size: Samples of the batch, where no input tells.
        bodies: What was prepared for batches before, for a call with the same constants each time.

    The reference for what an operator means: eager calls, debug mode and steps over a batch use it; fused
    chains do the same, sample by sample.
    """
    frames = _NO_NAMES
    if edges:
        frames = frozenset([k for k, v in edges.items() if v.layout()[:1] == "F"])
    layouts = taken_layouts(declared, inputs)
    ready = bodies.get((layouts, frames)) if bodies is not None else None
    if ready is None:
        ready = prepare(declared, constants, layouts, frames)
        if bodies is not None and declared.make is None:
            bodies[layouts, frames] = ready
    arguments: dict[str, Any] = {key: _column(value) for key, value in edges.items()}
    if declared.kind == "batch":
        for given in (*inputs, *arguments.values()):
            if given is not None:
                size = len(given)
                break
        if rng is not None:
            arguments["rng"] = rng
        if declared.schema.wants_size:
            arguments["size"] = size
        return _of_size(collect(ready.function(*inputs, **arguments), ready.layouts), size)
    if ready.dense is not None and rng is None and (declared.columns or not arguments):
        form = TensorList.shape if declared.by_shape else _whole
        whole = [None if v is None else form(v) for v in inputs]
        if all((w is None) == (v is None) for w, v in zip(whole, inputs, strict=True)):
            found = ready.dense(*whole, **arguments)
            if any(found is w for w in whole):
                found = found.clone()  # whoever writes into the result must not meet the input
            if found is not NotImplemented:
                return collect(found, ready.layouts)
            if bodies is not None:
                bodies[layouts, frames] = replace(ready, dense=None)
    if rng is not None:
        arguments["rng"] = rng.samples(declared.draws)
    columns = [None if v is None else v.samples() for v in inputs]
    size = next((len(c) for c in [*columns, *arguments.values()] if c is not None), size)
    rows = [
        ready.function(
            *[None if c is None else c[i] for c in columns],
            **{k: v[i] for k, v in arguments.items()},
        )
        for i in range(size)
    ]
    if len(ready.layouts) == 1:
        return collect(rows, ready.layouts)
    return collect(
        tuple(map(list, zip(*rows, strict=True))) or ([],) * len(ready.layouts), ready.layouts
    )


def _column(batch: TensorList) -> Column:
    """Return the values of an argument given per sample."""
    column, dense = Column(batch.tolist()), batch.dense()
    if dense is not None and dense.ndim > 1 and is_array(dense):
        column.array = dense.numpy()
    return column


def _of_size(batches: tuple[TensorList, ...], size: int) -> tuple[TensorList, ...]:
    for batch in batches:
        if len(batch) != size:
            raise RuntimeError(
                f"the operator returned {_counted(len(batch), 'sample')} for a batch of {size}"
            )
    return batches


LARGE = 1 << 14  # bytes of a sample; beyond, a call costs less than leaving the cache


def is_large(batch: TensorList) -> bool:
    """Whether operators had better take the samples of a batch one by one than all at once."""
    dense = batch.dense()
    if dense is not None:
        return dense.nbytes > LARGE * len(dense)
    samples = batch.samples()
    return bool(samples) and samples[0].nbytes > LARGE


_MODERATE = 1 << 18  # bytes of a sample; beyond, several threads had better share a copy


def is_moderate(batch: TensorList) -> bool:
    """Whether a batch is one tensor, copied at once in less time than sample by sample."""
    dense = batch.dense()
    return dense is not None and dense.nbytes <= _MODERATE * len(dense)


def _whole(batch: TensorList) -> torch.Tensor | None:
    """Return a batch as one tensor, if it is stored as one or is cheaply brought into that form."""
    if batch.dense() is None:
        samples = batch.samples()
        few = len(samples) < 2 or any(sample is None for sample in samples)
        if few or is_large(batch) or not batch.is_dense_tensor():
            return None
    return batch.stacked()


def collect(results: Any, layouts: tuple[str, ...]) -> tuple[TensorList, ...]:
    """Make `TensorList`s of what a body over a batch returned: dense tensors, lists, or `TensorList`s."""
    columns = results if isinstance(results, tuple) else (results,)
    _check_count(len(columns), len(layouts))
    if len(columns) == 1:
        return (_collect(columns[0], layouts[0]),)
    return tuple(map(_collect, columns, layouts))


def _collect(column: Any, layout: str) -> TensorList:
    if isinstance(column, TensorList):
        return column
    if isinstance(column, torch.Tensor):
        if column.ndim == 0:
            raise TypeError(
                "the operator returned a tensor without dimensions; the first one of a batch counts its samples"
            )
        return TensorList.from_dense(column, fitting(layout, column.ndim - 1))
    _check_samples(column)
    layout = fitting(layout, column[0].ndim) if column else layout
    if column and all(c.shape == column[0].shape for c in column):
        whole = torch.stack(column) if len(column) > 1 else column[0].unsqueeze(0)
        return TensorList.from_dense(whole, layout)
    return TensorList.from_samples(list(column), layout)


def _check_samples(column: Any) -> None:
    """Refuse what an operator over the batch returned, unless it is a list of tensors."""
    if not isinstance(column, (list, tuple)):
        raise TypeError(
            f"the operator returned {_kind(column)}; over a batch it returns a TensorList, a list of "
            "tensors (one a sample), or one tensor whose first dimension is the batch"
        )
    for i, sample in enumerate(column):
        if not isinstance(sample, torch.Tensor):
            raise TypeError(f"the operator returned {_kind(sample)} for sample {i}, not a tensor")


def fitting(layout: str, ndim: int) -> str:
    """Return the layout; none where the operator turned out to change the number of axes."""
    return layout if len(layout) == ndim else ""
