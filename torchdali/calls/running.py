"""Bind an operator to its constants and layouts, and evaluate it over a batch.

`ChunkFunction` does one sample, or several in one call, with the same results. `run_batch` does a batch: eager calls,
debug mode and steps of a pipeline use it. A chain takes one sample, or several, through its operators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from torchdali.calls.chunk_function import Body, ChunkFunction, Items
from torchdali.declaration.batching import Arguments, Column
from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import Schema, Takes
from torchdali.errors import batch_level
from torchdali.kernels.memory import SMALL_SAMPLE, Empty, fresh
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Packed, Samples

__all__ = [
    "Bodies", "channel_mistake", "check_form", "collect", "column_of",
    "each_frame_value", "fitting", "number_of_axes", "prepare", "run_batch", "stacked_if_small", "taken_layout",
    "taken_layouts",
]  # fmt: skip


_NO_NAMES: frozenset[str] = frozenset()


def prepare(
    declared: Operator,
    constants: Mapping[str, Any],
    layouts: tuple[str, ...],
    per_frame: frozenset[str] = frozenset(),
) -> ChunkFunction:
    """Decide once what is the same for all samples.

    Args:
        constants: Converted arguments.
        layouts: Of the inputs, "" where unset.
        per_frame: Arguments that have one value a frame.

    Raises:
        ValueError: a layout the operator does not take.
    """
    try:
        ready = _prepared(declared, constants, layouts, per_frame)
    except Exception as error:
        batch_level(error)
        raise
    if not per_frame:
        layout = layouts[0] if layouts else ""
        body = _chunk_body(declared, "device", constants, layout) or _as_frames(declared, constants, layout)
        ready = replace(ready, on_device=body)
    if declared.kind == "sample" and not declared.is_ours:
        ready = replace(ready, single=_checked(ready.single, len(ready.layouts)), ragged=None)
    return ready


def _checked(function: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Check what an operator of somebody else's returns for a sample; others would fail on it later."""

    def run(*inputs: Any, **arguments: Any) -> Any:
        result = function(*inputs, **arguments)
        if outputs == 1 and isinstance(result, torch.Tensor):
            return result
        results = result if isinstance(result, tuple) else (result,)
        _check_count(len(results), outputs)
        for each in results:
            if not isinstance(each, torch.Tensor):
                raise TypeError(f"the operator returned {_kind(each)}, not a tensor")
        return result if outputs > 1 else results[0]

    return run


def _check_count(count: int, declared: int) -> None:
    """Check the number of outputs that an operator returned."""
    if count != declared:
        raise TypeError(
            f"the operator returned {_counted(count)}, and is declared to return {_counted(declared)}: several are a "
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
) -> ChunkFunction:
    read = declared.schema
    per_frame = frozenset(name for name in per_frame if read.arguments[name].edge == "frame")
    function = declared.options.make() if declared.options.make is not None else declared.body
    fixed = {k: v for k, v in constants.items() if k != "seed"}
    body = functools.partial(function, **fixed)
    for i, layout in enumerate(layouts):
        _check_layout(declared.name, read.input(i).takes, layout, i)
    outputs = declared.output_layouts(layouts, constants)
    if not read.inputs or declared.kind != "sample":
        return ChunkFunction(_with_layout(body, read, layouts[0] if layouts else ""), outputs)
    takes = read.inputs[0].takes
    first = layouts[0] if layouts else ""
    if takes.repeats and per_frame and "F" not in first:
        still = _adapt(body, read, takes, first, frozenset())
        repeated = _frame_by_frame(still, per_frame, None)
        return ChunkFunction(repeated, tuple(layout and f"F{layout}" for layout in outputs))
    if first or not (takes.layouts or per_frame):
        single = _adapt(body, read, takes, first, per_frame)
        if per_frame:
            return ChunkFunction(single, outputs)
        stacked = _chunk_body(declared, "tensor", constants, first)
        if stacked is not None and takes.dtypes:
            stacked = _typed(stacked, declared.name, takes.dtypes)
        ragged = _chunk_body(declared, "ragged", constants, first)
        return ChunkFunction(single, outputs, stacked, ragged, frozenset(takes.dtypes))
    by_ndim: dict[int, Callable[..., Any]] = {}

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        function = by_ndim.get(x.ndim)
        if function is None:
            assumed = _assume(declared.name, takes, x.ndim)
            function = by_ndim[x.ndim] = _adapt(body, read, takes, assumed, per_frame)
        return function(x, *rest, **arguments)

    return ChunkFunction(run, outputs)


def _chunk_body(declared: Operator, form: str, constants: Mapping[str, Any], layout: str) -> Body | None:
    """Return a body for several samples, with all but what differs from call to call; None if there is none."""
    if form not in declared.chunks:
        return None
    body, defaults = declared.chunks[form], declared.schema.defaults
    fixed = {k: v for k, v in constants.items() if k != "seed"}
    known = {"layout": layout} if declared.schema.wants_layout else {}

    takes, no_gain = declared.takes.get(form, _NO_NAMES), declared.only_on_devices and form == "tensor"

    def run(*inputs: Any, out: Any = None, empty: Empty = fresh, rng: Any = None, **columns: Any) -> Any:
        if not takes.issuperset(columns) or (no_gain and inputs[0].is_cpu):
            return NotImplemented
        others = {"out": out, "empty": empty, "rng": rng, **known}
        return body(*inputs, a=Arguments(defaults, {**fixed, **columns}, others))

    return run


def _as_frames(declared: Operator, constants: Mapping[str, Any], layout: str) -> Body | None:
    """Return a body that does samples of one shape as the frames of one sample; None if the operator cannot."""
    if not declared.has("frames") or not layout or "F" in layout:
        return None
    takes = declared.schema.inputs[0].takes
    sequences = [each for each in takes.layouts if "F" in each]
    if sequences and f"F{layout}" not in sequences:
        return None
    fixed = {k: v for k, v in constants.items() if k != "seed"}
    frames = _adapt(functools.partial(declared.body, **fixed), declared.schema, takes, f"F{layout}", _NO_NAMES)

    def run(data: TensorList, rng: None = None, **columns: Any) -> Any:
        return NotImplemented if columns or not data.is_dense_tensor() else frames(data.stacked())

    return run


def _check_layout(name: str, takes: Takes, layout: str, index: int) -> None:
    if layout and takes.layouts and layout not in takes.layouts:
        raise ValueError(
            f'operator {name!r}: the layout "{layout}" does not match any of the allowed layouts for input '
            f"{index}, {', '.join(takes.layouts)}"
        )


def _assume(name: str, takes: Takes, ndim: int) -> str:
    for layout in takes.layouts:
        if len(layout) == ndim:
            return layout
    if takes.layouts:
        hint = "; the bytes of a file are decoded first, by fn.decoders.image" if ndim == 1 else ""
        raise ValueError(
            f"operator {name!r}: the number of dimensions {ndim} does not match any of the allowed layouts, "
            f"{', '.join(takes.layouts)}{hint}"
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


def channel_mistake(declared: Operator, shape: Sequence[int]) -> str:
    """Say what is wrong if an operator takes channels for rows, or mixes them, without a layout; empty for others."""
    if len(shape) != 3 or not declared.schema.inputs:
        return ""
    takes = declared.schema.inputs[0].takes
    first = shape[0] in (1, 3, 4) and min(shape[1:]) > _MOST_CHANNELS
    last = shape[2] in (3, 4) and min(shape[:2]) > _MOST_CHANNELS
    of_samples = f"samples of the shape {tuple(shape)} without a layout"
    if takes.every_axis and (last or (first and shape[0] > 1)):
        layout = "CHW" if first else "HWC"
        return (
            f"{of_samples} are filtered along all three axes, that of the channels too, which mixes the colors. Say "
            f'where they come from which axis is which: layout="{layout}"'
        )
    if not first or next((each for each in takes.layouts if len(each) == 3), "") != "HWC":
        return ""
    return (
        f"{of_samples} are taken for HWC, images of {shape[0]} rows. If their channels come first, say so where they "
        'come from: layout="CHW"'
    )


_MOST_CHANNELS = 4  # of usual images


def taken_layouts(declared: Operator, inputs: Sequence[TensorList | None]) -> tuple[str, ...]:
    """Return the layouts of a batch of each input; see `taken_layout`."""
    layouts = ["" if v is None else v.layout() for v in inputs]
    first = inputs[0] if inputs else None
    if first is not None and not layouts[0] and declared.schema.inputs[0].takes.layouts:
        layouts[0] = taken_layout(declared, "", number_of_axes(first))
    return tuple(layouts)


def number_of_axes(batch: TensorList) -> int | None:
    """Return the number of axes of the samples, or None if there are none."""
    stored = batch.stored()
    if not isinstance(stored, Samples) or stored.arrays is not None:
        return batch.ndim()
    return next((sample.ndim for sample in batch.samples() if sample is not None), None)


def _with_layout(body: Callable[..., Any], read: Schema, layout: str) -> Callable[..., Any]:
    return functools.partial(body, layout=layout) if read.wants_layout else body


def _adapt(
    body: Callable[..., Any], read: Schema, takes: Takes, layout: str, per_frame: frozenset[str]
) -> Callable[..., Any]:
    if per_frame:
        axis = layout.find("F")
        still = _adapt(body, read, takes, layout.replace("F", ""), frozenset())
        if axis >= 0:
            return _frame_by_frame(still, per_frame, axis)
        return _for_no_frames(still, per_frame, read.name, layout)
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


def _typed(function: Callable[..., Any], name: str, dtypes: tuple[torch.dtype, ...]) -> Callable[..., Any]:
    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        if x.dtype not in dtypes:
            raise _unsupported(name, x.dtype, dtypes)
        return function(x, *rest, **arguments)

    return run


def _unsupported(name: str, dtype: torch.dtype, dtypes: tuple[torch.dtype, ...]) -> RuntimeError:
    supported = ", ".join(str(d).removeprefix("torch.") for d in dtypes)
    kind = str(dtype).removeprefix("torch.")
    return RuntimeError(
        f"operator {name!r}: unsupported input type: {kind}; requested type: {supported} current buffer type: {kind}"
    )


def _frame_by_frame(function: Callable[..., Any], per_frame: frozenset[str], axis: int | None) -> Callable[..., Any]:
    """Call a body for each frame with its values; one value, or a sample without that axis, stands for all frames."""

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        same = {k: v for k, v in arguments.items() if k not in per_frame and k != "out"}
        if axis is None:
            frames: Sequence[torch.Tensor] = [x] * max(len(arguments[k]) for k in per_frame)
        else:
            frames = x.unbind(axis)
        each = {k: each_frame_value(k, arguments[k], len(frames)) for k in per_frame}
        results = [
            function(frame, *rest, **same, **{k: v[i] for k, v in each.items()}) for i, frame in enumerate(frames)
        ]
        return torch.stack(results, axis or 0)

    return run


def each_frame_value(name: str, values: list[Any], frames: int) -> list[Any]:
    """Return one value a frame, of an argument that has as many, or one for all.

    Raises:
        RuntimeError: it has another number.
    """
    if len(values) not in (1, frames):
        raise RuntimeError(
            f"the tensor argument `{name}` contains {len(values)} per-frame parameters, but there are {frames} "
            "frames in the corresponding sample of input 0"
        )
    return values if len(values) == frames else values * frames


def _for_no_frames(
    function: Callable[..., Any], per_frame: frozenset[str], name: str, layout: str
) -> Callable[..., Any]:
    """Call a body for a sample without frames with the only value of each argument per frame."""

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        for each in per_frame:
            if len(arguments[each]) != 1:
                raise RuntimeError(
                    f"operator {name!r}: {each} is specified per frame, so samples in the input 0 must contain "
                    f"frames too; the layout `{layout}` does not contain frames"
                )
        return function(x, *rest, **{**arguments, **{k: arguments[k][0] for k in per_frame}})

    return run


Bodies: TypeAlias = dict[tuple[tuple[str, ...], frozenset[str]], ChunkFunction]
"""Prepared bodies, by the layouts of the inputs and the arguments per frame."""


def run_batch(
    declared: Operator,
    inputs: Sequence[TensorList | None],
    constants: Mapping[str, Any],
    per_sample: Mapping[str, TensorList],
    rng: BatchRng | None,
    size: int = 1,
    bodies: Bodies | None = None,
) -> tuple[TensorList, ...]:
    """Run an operator over one batch, sample by sample or as a whole.

    Args:
        size: Samples of the batch, if no input tells.
        bodies: What was prepared for batches before, for a call with the same constants each time.

    The reference for what an operator means: eager calls, debug mode and steps over a batch use it.
    """
    frames = _NO_NAMES
    if per_sample:
        frames = frozenset([k for k, v in per_sample.items() if declared.is_per_frame(k, v.layout())])
    layouts = taken_layouts(declared, inputs)
    ready = bodies.get((layouts, frames)) if bodies is not None else None
    if ready is None:
        ready = prepare(declared, constants, layouts, frames)
        if bodies is not None and declared.options.make is None:
            bodies[layouts, frames] = ready
    arguments: dict[str, Any] = {
        name: column_of(value, name in frames).shaped(declared.axes_of(name), name)
        for name, value in per_sample.items()
    }
    if declared.kind == "batch":
        for values in (*inputs, *arguments.values()):
            if values is not None:
                size = len(values)
                break
        if not size:
            return tuple(TensorList.from_samples([], layout) for layout in ready.layouts)
        if rng is not None:
            arguments["rng"] = rng
        if declared.schema.wants_size:
            arguments["size"] = size
        _check_batches(declared, inputs)
        return _of_size(collect(ready.single(*inputs, **arguments), ready.layouts), size)
    if ready.on_device is not None and inputs and inputs[0] is not None:
        first = inputs[0]
        if first.device.type != "cpu" and len(first):
            results = ready.on_device(*inputs, rng=rng, **arguments)
            if results is not NotImplemented:
                return collect(results, ready.layouts)
    if rng is not None:
        arguments["rng"] = rng.samples()
    columns = [None if v is None else _items(v, ready) for v in inputs]
    if any(c is not None for c in columns) or arguments:
        return collect(ready(*columns, **arguments), ready.layouts)
    return collect([ready.single() for _ in range(size)], ready.layouts)


def _items(batch: TensorList, chunk: ChunkFunction) -> Items:
    """Return a batch as one tensor if a body takes that, and it is one, or small, or may become one on a device."""
    whole = None
    if chunk.tensor is not None:
        may_be = batch.device.type != "cpu" and len(batch) and batch.is_dense_tensor()
        whole = batch.stacked() if may_be else stacked_if_small(batch)
    return batch.samples() if whole is None else whole


def column_of(batch: TensorList, per_frame: bool) -> Column:
    """Return the values of an argument given per sample, or per frame; None if a branch did not compute one."""
    dense = batch.dense()
    column = Column(_numbers(batch)) if dense is None else Column.of(dense)
    column.per_frame = per_frame
    column.uploaded = batch.uploaded
    return column


def _numbers(batch: TensorList) -> list[Any]:
    if any(sample is None for sample in batch.samples()):
        return [None if sample is None else sample.tolist() for sample in batch.samples()]
    return batch.tolist()


def _check_batches(declared: Operator, inputs: Sequence[TensorList | None]) -> None:
    """Check types and numbers of axes of what an operator over the batch gets.

    Raises:
        RuntimeError: a type that it does not take.
        ValueError: a number of axes that no layout of its has.
    """
    for i, batch in enumerate(inputs):
        takes = declared.schema.input(i).takes
        if batch is None or not (takes.dtypes or takes.layouts):
            continue
        kind = batch.torch_dtype
        if takes.dtypes and kind is not None and kind not in takes.dtypes and len(batch):
            raise batch_level(_unsupported(declared.name, kind, takes.dtypes))
        ndim = number_of_axes(batch) if takes.layouts else None
        if ndim is not None and all(len(layout) != ndim for layout in takes.layouts):
            _assume(declared.name, takes, ndim)


def _of_size(batches: tuple[TensorList, ...], size: int) -> tuple[TensorList, ...]:
    for batch in batches:
        if len(batch) != size:
            raise RuntimeError(f"the operator returned {_counted(len(batch), 'sample')} for a batch of {size}")
    return batches


def stacked_if_small(batch: TensorList) -> torch.Tensor | None:
    """Return a batch as one tensor if it is stored as one, or if its samples are small and of one shape."""
    if batch.dense() is None:
        samples = batch.samples()
        few = len(samples) < 2 or any(sample is None for sample in samples)
        if few or samples[0].nbytes > SMALL_SAMPLE or not batch.is_dense_tensor():
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
    if isinstance(column, Packed):
        column = column.straight().samples()
    if isinstance(column, torch.Tensor):
        if column.ndim == 0:
            raise TypeError(
                "the operator returned a tensor without dimensions; the first one of a batch counts its samples"
            )
        return TensorList.from_dense(column, fitting(layout, column.ndim - 1))
    _check_samples(column)
    check_form(column)
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


def check_form(samples: Sequence[torch.Tensor | None]) -> None:
    """Refuse samples of a batch that differ in type or number of axes; None is one that a branch did not compute.

    Raises:
        RuntimeError: with the first that differs.
    """
    forms = [(i, s.dtype, s.ndim) for i, s in enumerate(samples) if s is not None]
    for i, dtype, ndim in forms:
        first, its_dtype, its_ndim = forms[0]
        if dtype != its_dtype or ndim != its_ndim:
            raise batch_level(
                RuntimeError(
                    f"the samples of a batch have one type and one number of axes; sample {i} has {dtype} and {ndim}, "
                    f"sample {first} {its_dtype} and {its_ndim}"
                )
            )


def fitting(layout: str, ndim: int) -> str:
    """Return the layout; none if the operator turned out to change the number of axes."""
    return layout if len(layout) == ndim else ""
