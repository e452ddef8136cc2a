"""Bind an operator to its constants and layouts. The result is a `ChunkFunction`.

The `ChunkFunction` moves the axes to the order that the schema declares, and rejects dtypes that the schema doesn't
allow. If arguments are passed per frame, the implementation receives one frame at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchdali.calls.chunk_function import Body, ChunkFunction
from torchdali.calls.layouts import assume_layout, check_layout
from torchdali.calls.results import check_outputs
from torchdali.declaration.batching import Arguments
from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import Schema, Takes
from torchdali.errors import batch_level
from torchdali.kernels.memory import Allocator, allocate
from torchdali.tensors import TensorList

__all__ = ["each_frame_value", "prepare", "unsupported_dtype"]

_NO_NAMES: frozenset[str] = frozenset()


def prepare(
    declared: Operator,
    constants: Mapping[str, Any],
    layouts: tuple[str, ...],
    per_frame: frozenset[str] = frozenset(),
) -> ChunkFunction:
    """Bind an operator to the values that are the same for all samples.

    Args:
        constants: Converted arguments.
        layouts: Layouts of the inputs; "" for unset layouts.
        per_frame: Names of arguments that have one value per frame.

    Raises:
        ValueError: The operator doesn't accept a layout.
    """
    try:
        ready = _prepare(declared, constants, layouts, per_frame)
    except Exception as error:
        batch_level(error)
        raise
    if not per_frame:
        layout = layouts[0] if layouts else ""
        body = _chunk_body(declared, "device", constants, layout) or _as_frames(declared, constants, layout)
        ready = replace(ready, on_device=body)
    if declared.kind == "sample" and not declared.is_ours:
        ready = replace(ready, single=check_outputs(ready.single, len(ready.layouts)), ragged=None)
    return ready


def _prepare(
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
        check_layout(declared.name, read.input(i).takes, layout, i)
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
            stacked = _pass_dtypes(stacked, declared.name, takes.dtypes)
        ragged = _chunk_body(declared, "ragged", constants, first)
        return ChunkFunction(
            single=single, layouts=outputs, tensor=stacked, ragged=ragged, dtypes=frozenset(takes.dtypes)
        )
    by_ndim: dict[int, Callable[..., Any]] = {}

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        function = by_ndim.get(x.ndim)
        if function is None:
            assumed = assume_layout(declared.name, takes, x.ndim)
            function = by_ndim[x.ndim] = _adapt(body, read, takes, assumed, per_frame)
        return function(x, *rest, **arguments)

    return ChunkFunction(run, outputs)


def _chunk_body(declared: Operator, form: str, constants: Mapping[str, Any], layout: str) -> Body | None:
    """Return the batched implementation for `form` (see `decorators.chunk`); None if the operator has none."""
    if form not in declared.chunks:
        return None
    body, defaults = declared.chunks[form], declared.schema.defaults
    fixed = {k: v for k, v in constants.items() if k != "seed"}
    known = {"layout": layout} if declared.schema.wants_layout else {}

    takes, no_gain = declared.takes.get(form, _NO_NAMES), declared.only_on_devices and form == "tensor"

    def run(*inputs: Any, out: Any = None, empty: Allocator = allocate, rng: Any = None, **columns: Any) -> Any:
        if not takes.issuperset(columns) or (no_gain and inputs[0].is_cpu):
            return NotImplemented
        others = {"out": out, "empty": empty, "rng": rng, **known}
        return body(*inputs, a=Arguments(defaults, {**fixed, **columns}, others))

    return run


def _as_frames(declared: Operator, constants: Mapping[str, Any], layout: str) -> Body | None:
    """Return an implementation that processes samples of one shape as frames of one sample; None if unsupported."""
    if not declared.has("frames") or not layout or "F" in layout:
        return None
    takes = declared.schema.inputs[0].takes
    sequences = [each for each in takes.layouts if "F" in each]
    if sequences and f"F{layout}" not in sequences:
        return None
    fixed = {k: v for k, v in constants.items() if k != "seed"}
    frames = _adapt(functools.partial(declared.body, **fixed), declared.schema, takes, f"F{layout}", _NO_NAMES)

    def run(data: TensorList, rng: None = None, **columns: Any) -> Any:
        return NotImplemented if columns or not data.is_dense_tensor() else frames(data.stack())

    return run


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
        function = _pass_dtypes(function, read.name, takes.dtypes)
    return function


def _channel_last(function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    def back(result: Any) -> Any:
        return result.movedim(-1, axis)

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        result = function(x.movedim(axis, -1), *rest, **arguments)
        return (back(result[0]), *result[1:]) if isinstance(result, tuple) else back(result)

    return run


def _pass_dtypes(function: Callable[..., Any], name: str, dtypes: tuple[torch.dtype, ...]) -> Callable[..., Any]:
    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        if x.dtype not in dtypes:
            raise unsupported_dtype(name, x.dtype, dtypes)
        return function(x, *rest, **arguments)

    return run


def unsupported_dtype(name: str, dtype: torch.dtype, dtypes: tuple[torch.dtype, ...]) -> RuntimeError:
    supported = ", ".join(str(d).removeprefix("torch.") for d in dtypes)
    kind = str(dtype).removeprefix("torch.")
    return RuntimeError(
        f"operator {name!r}: unsupported input type: {kind}; requested type: {supported} current buffer type: {kind}"
    )


def _frame_by_frame(function: Callable[..., Any], per_frame: frozenset[str], axis: int | None) -> Callable[..., Any]:
    """Wrap an implementation so that it is called once per frame, with the frame's values of the per-frame arguments.

    If an argument has a single value, all frames use this value. With ``axis=None``, the sample has no frame axis, and
    is repeated once per value.
    """

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
    """Return one value per frame. A single value is repeated for all frames.

    Raises:
        RuntimeError: The number of values is neither 1 nor the number of frames.
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
    """Wrap an implementation for samples without frames. Per-frame arguments must have a single value."""

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        for each in per_frame:
            if len(arguments[each]) != 1:
                raise RuntimeError(
                    f"operator {name!r}: {each} is specified per frame, so samples in the input 0 must contain "
                    f"frames too; the layout `{layout}` does not contain frames"
                )
        return function(x, *rest, **{**arguments, **{k: arguments[k][0] for k in per_frame}})

    return run
