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

from torchdali.calls.chunk_function import ChunkFunction, Implementation
from torchdali.calls.layouts import assume_layout, check_layout
from torchdali.calls.results import check_outputs
from torchdali.declaration.batching import Arguments
from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import InputConstraints, Schema
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
        prepared = _prepare(declared, constants, layouts, per_frame)
    except Exception as error:
        batch_level(error)
        raise
    if not per_frame:
        layout = layouts[0] if layouts else ""
        implementation = _bind_chunk(declared, "device", constants, layout) or _as_frames(declared, constants, layout)
        prepared = replace(prepared, on_device=implementation)
    if declared.kind == "sample" and not declared.is_ours:
        prepared = replace(prepared, single=check_outputs(prepared.single, len(prepared.layouts)), ragged=None)
    return prepared


def _prepare(
    declared: Operator,
    constants: Mapping[str, Any],
    layouts: tuple[str, ...],
    per_frame: frozenset[str],
) -> ChunkFunction:
    schema = declared.schema
    per_frame = frozenset(name for name in per_frame if schema.arguments[name].edge == "frame")
    function = declared.options.make() if declared.options.make is not None else declared.implementation
    bound_constants = {k: v for k, v in constants.items() if k != "seed"}
    implementation = functools.partial(function, **bound_constants)
    for i, layout in enumerate(layouts):
        check_layout(declared.name, schema.input(i).constraints, layout, i)
    outputs = declared.output_layouts(layouts, constants)
    if not schema.inputs or declared.kind != "sample":
        return ChunkFunction(_with_layout(implementation, schema, layouts[0] if layouts else ""), outputs)
    constraints = schema.inputs[0].constraints
    first = layouts[0] if layouts else ""
    if constraints.repeats_samples and per_frame and "F" not in first:
        single_frame = _adapt(implementation, schema, constraints, first, frozenset())
        repeated = _frame_by_frame(single_frame, per_frame, None)
        return ChunkFunction(repeated, tuple(layout and f"F{layout}" for layout in outputs))
    if first or not (constraints.layouts or per_frame):
        single = _adapt(implementation, schema, constraints, first, per_frame)
        if per_frame:
            return ChunkFunction(single, outputs)
        stacked = _bind_chunk(declared, "tensor", constants, first)
        if stacked is not None and constraints.dtypes:
            stacked = _check_dtypes(stacked, declared.name, constraints.dtypes)
        ragged = _bind_chunk(declared, "ragged", constants, first)
        return ChunkFunction(
            single=single, layouts=outputs, tensor=stacked, ragged=ragged, dtypes=frozenset(constraints.dtypes)
        )
    by_ndim: dict[int, Callable[..., Any]] = {}

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        function = by_ndim.get(x.ndim)
        if function is None:
            assumed = assume_layout(declared.name, constraints, x.ndim)
            function = by_ndim[x.ndim] = _adapt(implementation, schema, constraints, assumed, per_frame)
        return function(x, *rest, **arguments)

    return ChunkFunction(run, outputs)


def _bind_chunk(declared: Operator, form: str, constants: Mapping[str, Any], layout: str) -> Implementation | None:
    """Return the batched implementation for `form` (see `decorators.chunk`); None if the operator has none."""
    if form not in declared.chunks:
        return None
    implementation, defaults = declared.chunks[form], declared.schema.defaults
    bound_constants = {k: v for k, v in constants.items() if k != "seed"}
    layout_argument = {"layout": layout} if declared.schema.needs_layout else {}

    accepted, is_slower_on_cpu = (
        declared.chunk_arguments.get(form, _NO_NAMES),
        declared.only_on_devices and form == "tensor",
    )

    def run(*inputs: Any, out: Any = None, empty: Allocator = allocate, rng: Any = None, **columns: Any) -> Any:
        if not accepted.issuperset(columns) or (is_slower_on_cpu and inputs[0].is_cpu):
            return NotImplemented
        extras = {"out": out, "empty": empty, "rng": rng, **layout_argument}
        return implementation(*inputs, a=Arguments(defaults, {**bound_constants, **columns}, extras))

    return run


def _as_frames(declared: Operator, constants: Mapping[str, Any], layout: str) -> Implementation | None:
    """Return an implementation that processes samples of one shape as frames of one sample; None if unsupported."""
    if not declared.has("frames") or not layout or "F" in layout:
        return None
    constraints = declared.schema.inputs[0].constraints
    sequences = [each for each in constraints.layouts if "F" in each]
    if sequences and f"F{layout}" not in sequences:
        return None
    bound_constants = {k: v for k, v in constants.items() if k != "seed"}
    frames = _adapt(
        functools.partial(declared.implementation, **bound_constants),
        declared.schema,
        constraints,
        f"F{layout}",
        _NO_NAMES,
    )

    def run(data: TensorList, rng: None = None, **columns: Any) -> Any:
        return NotImplemented if columns or not data.is_dense_tensor() else frames(data.stack())

    return run


def _with_layout(implementation: Callable[..., Any], schema: Schema, layout: str) -> Callable[..., Any]:
    return functools.partial(implementation, layout=layout) if schema.needs_layout else implementation


def _adapt(
    implementation: Callable[..., Any],
    schema: Schema,
    constraints: InputConstraints,
    layout: str,
    per_frame: frozenset[str],
) -> Callable[..., Any]:
    if per_frame:
        axis = layout.find("F")
        single_frame = _adapt(implementation, schema, constraints, layout.replace("F", ""), frozenset())
        if axis >= 0:
            return _frame_by_frame(single_frame, per_frame, axis)
        return _without_frames(single_frame, per_frame, schema.name, layout)
    function = _with_layout(implementation, schema, layout)
    if constraints.channel_last and "C" in layout and not layout.endswith("C"):
        function = _channel_last(function, layout.index("C"))
    if constraints.dtypes:
        function = _check_dtypes(function, schema.name, constraints.dtypes)
    return function


def _channel_last(function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    def move_back(result: Any) -> Any:
        return result.movedim(-1, axis)

    def run(x: torch.Tensor, *rest: Any, **arguments: Any) -> Any:
        result = function(x.movedim(axis, -1), *rest, **arguments)
        return (move_back(result[0]), *result[1:]) if isinstance(result, tuple) else move_back(result)

    return run


def _check_dtypes(function: Callable[..., Any], name: str, dtypes: tuple[torch.dtype, ...]) -> Callable[..., Any]:
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
        common = {k: v for k, v in arguments.items() if k not in per_frame and k != "out"}
        if axis is None:
            frames: Sequence[torch.Tensor] = [x] * max(len(arguments[k]) for k in per_frame)
        else:
            frames = x.unbind(axis)
        frame_values = {k: each_frame_value(k, arguments[k], len(frames)) for k in per_frame}
        results = [
            function(frame, *rest, **common, **{k: v[i] for k, v in frame_values.items()})
            for i, frame in enumerate(frames)
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


def _without_frames(
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
