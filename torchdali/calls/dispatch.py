"""Check calls of operators, and record them in a graph or run them immediately."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.running import run_batch
from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import STATE, Schema
from torchdali.errors import warn
from torchdali.formats.urls import represent
from torchdali.graph import nodes
from torchdali.graph.constants import ScalarConstant, as_node, explain_text_input
from torchdali.graph.nodes import DataNode
from torchdali.kernels.memory import is_traced
from torchdali.rng import BatchRng, mix
from torchdali.tensors import TensorList
from torchdali.tensors._sharing import separate

__all__ = ["CheckedCall", "bind", "call", "copy_returned_inputs", "record", "run_now"]


@dataclass
class CheckedCall:
    """A checked call, with the arguments divided into converted constants and per-sample arguments."""

    inputs: list[Any]
    constants: dict[str, Any]
    per_sample: dict[str, Any]
    device: str | None
    name: str | None
    preserve: bool


def call(declared: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    """Record the call if an input or argument is a node, or a pipeline is being defined; otherwise run it."""
    tracer: Any = nodes.current()
    if tracer is None or tracer.draws is None:
        return _call(declared, inputs, arguments)
    tracer.draws.warn()
    try:
        return _call(declared, inputs, arguments)
    finally:
        tracer.draws.ignore_draws()


def _call(declared: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    tracer: Any = nodes.current()
    if tracer is not None and tracer.live:
        inputs, arguments = tracer.adopt(declared, inputs, arguments)
    checked = bind(declared, inputs, arguments)
    uploaded = declared.kind == "reader" and checked.device == "gpu" and "gpu" in declared.options.devices
    checked.device = "cpu" if uploaded else checked.device
    results = _record_or_run(declared, checked)
    if uploaded:  # a reader with device="gpu" reads on the CPU, then the outputs are copied to the device
        results = [node.gpu() for node in results] if isinstance(results, list) else results.gpu()
    return results if declared.options.results is None else declared.options.results(checked.constants, results)


def _record_or_run(declared: Operator, checked: CheckedCall) -> Any:
    declared = declared.select_variant(dict.fromkeys(checked.per_sample) | checked.constants)
    operands = [*checked.inputs, *checked.per_sample.values()]
    tracer: Any = nodes.current()
    if tracer is not None and tracer.live:
        return tracer.run(declared, checked)
    if any(map(_has_node, operands)) or tracer is not None or not operands:
        return record(declared, checked)
    if declared.schema.random and torch.compiler.is_compiling():
        return _run_uncompiled(declared, checked)
    return run_now(declared, checked)


def _has_node(value: Any) -> bool:
    """Return whether a value is a node, or a list that contains a node (several input sets)."""
    return isinstance(value, DataNode) or (isinstance(value, list) and any(map(_has_node, value)))


def _run_uncompiled(declared: Operator, checked: CheckedCall) -> Any:
    """Run immediately, outside of `torch.compile`'s graphs, so that each call draws new random numbers."""
    return torch.compiler.disable(run_now)(declared, checked)


# The decorator `torch.compiler.disable` sets the same attributes, but also imports the compiler.
vars(_run_uncompiled).update(
    _torchdynamo_disable=True,
    _torchdynamo_disable_msg="random numbers are drawn at every call",
)


def bind(declared: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> CheckedCall:
    """Check a call against the schema.

    Raises:
        KeyError: An argument is unknown.
        RuntimeError: A required argument is missing.
        ValueError: The number of inputs or the device is wrong, or a value can't be converted.
        TypeError: A node was passed for an argument that must be a constant.
    """
    remaining = dict(arguments)
    device, name = remaining.pop("device", None), remaining.pop("name", None)
    schema = declared.schema
    if declared.replacement:
        warn(f"operator {declared.name!r} is deprecated: use {declared.replacement}", DeprecationWarning)
    remaining = _rename_arguments(schema, remaining)
    if schema.random and STATE in remaining:
        remaining["seed"] = _seed_from_state(remaining.pop(STATE))
    schema.check_inputs(inputs)
    schema.check_names(remaining)
    if not isinstance(name, str | None):
        raise TypeError(f"the name of an operator must be a string, got {name!r}")
    if device is not None and device not in ("cpu", "gpu", "mixed"):
        raise ValueError(f"unsupported device type {device!r}; expected 'cpu', 'gpu' or 'mixed'")
    remaining.pop("bytes_per_sample_hint", None)
    preserve = bool(remaining.pop("preserve", False)) or declared.options.preserve
    checked = CheckedCall(inputs=list(inputs), constants={}, per_sample={}, device=device, name=name, preserve=preserve)
    for key, value in remaining.items():
        if value is not None:
            _bind_argument(checked, declared, key, value)
    for key in declared.options.only_mixed:
        constant = checked.constants.pop(key, schema.defaults[key])
        if device == "mixed":
            checked.constants[key] = constant
    return checked


def _deprecation_message(name: str, new: str | None) -> str:
    if new:
        return f"The argument `{name}` is a deprecated alias for `{new}`. Use `{new}` instead."
    if name == "seed":
        return 'The argument "seed" should not be used with operators that don\'t use random numbers.'
    return f"The argument `{name}` is no longer used and will be removed in a future release."


def _rename_arguments(schema: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    old_names = [key for key in arguments if key in schema.deprecated and key not in schema.arguments]
    if "seed" in arguments and "seed" not in schema.arguments:
        old_names.append("seed")
    for key in old_names:
        new, value = schema.deprecated.get(key), arguments.pop(key)
        if value is None:
            continue
        if new in arguments:
            raise TypeError(
                f"operator {schema.name!r} got unexpected {key!r}, the old name of {new!r}, which is passed too; "
                f"remove {key!r}"
            )
        warn(_deprecation_message(key, new), DeprecationWarning)
        if new:
            arguments[new] = value
    return arguments


def _seed_from_state(state: Any) -> int:
    """Compute a seed from the state of a generator, which must have at least seven numbers.

    If the state is a batch, its first sample is used.
    """
    if isinstance(state, DataNode):
        raise TypeError(f"{STATE!r} must not be passed in a pipeline; pass a seed")
    first = state.samples()[0] if isinstance(state, TensorList) else state
    words = np.asarray(first).ravel().tolist()
    if len(words) < 7:
        raise RuntimeError(f"{STATE!r} must have at least 7 numbers, got {len(words)}")
    return mix(*words) >> 1


def _bind_argument(checked: CheckedCall, declared: Operator, key: str, value: Any) -> None:
    argument = declared.schema.arguments[key]
    if isinstance(value, (DataNode, TensorList)):
        if argument.edge is None:
            raise TypeError(
                f"argument {key!r} of operator {declared.name!r} must be known when the pipeline is "
                f"built; it should not be a {type(value).__name__}"
            )
        if isinstance(value, DataNode) and value.device != "cpu":
            raise ValueError(
                f"invalid device \"{value.device}\" for argument '{key}' of operator {declared.name!r}: named "
                "arguments must be on the CPU"
            )
        checked.per_sample[key] = value
        return
    try:
        constant = value.value if isinstance(value, ScalarConstant) else value
        checked.constants[key] = argument.convert(constant)
    except (TypeError, ValueError) as error:
        if argument.edge is not None and isinstance(value, (np.ndarray, torch.Tensor)):
            raise RuntimeError(
                f"argument {key!r} of operator {declared.name!r}: an array of shape {tuple(value.shape)} cannot be "
                f"converted: {error}"
            ) from None
        hint = _hint(value) if argument.edge is not None else ""
        raise type(error)(
            f"argument {key!r} of operator {declared.name!r}: invalid value {represent(value)}: {error}{hint}"
        ) from None


def _hint(value: Any) -> str:
    """Return advice for a list that an argument does not accept; empty for other values."""
    if not isinstance(value, (list, tuple)):
        return ""
    if any(isinstance(v, DataNode) for v in value):
        return "; combine several nodes with fn.stack(...), or with fn.cat(...) along an axis"
    if len(value) == 2:
        return f"; for a random one, pass fn.random.uniform(range={list(value)})"
    return (
        "; for a value per sample, pass a node, for example fn.random.uniform(range=[low, high])"
        if len(value) > 2
        else ""
    )


def record(declared: Operator, checked: CheckedCall) -> Any:
    """Add a node to the graph; return its output, or the list of its outputs."""
    sets = [v for v in checked.inputs if isinstance(v, list) and _has_node(v)]
    if sets:
        return _record_sets(declared, checked, {len(v) for v in sets})
    inputs = [None if v is None else as_node(v) for v in checked.inputs]
    device = checked.device or ("gpu" if any(n is not None and n.device == "gpu" for n in inputs) else "cpu")
    if device not in declared.options.devices:
        raise ValueError(
            f"operator {declared.name!r} is not available on device {device!r}; it runs on "
            f"{', '.join(map(repr, declared.options.devices))}"
        )
    _check_devices(declared, inputs, device)
    node = nodes.add_node(
        declared, inputs, checked.constants, checked.per_sample, device=device,
        outputs=declared.count_outputs(checked.constants, len(inputs)),
        name=checked.name, preserve=checked.preserve,
    )  # fmt: skip
    returns_list = declared.returns_list(checked.constants, len(inputs))
    return list(node.outputs) if returns_list else node.outputs[0]


def _record_sets(declared: Operator, checked: CheckedCall, lengths: set[int]) -> Any:
    """Record one call for each *input set*, a set of inputs from lists of nodes.

    The i-th nodes of all lists are the i-th set. The result is a list of outputs; if the operator has several outputs,
    a list with one list per output. For a single set, the result is the call's result.
    """
    for each in itertools.chain(*(v for v in checked.inputs if isinstance(v, list))):
        if not isinstance(each, DataNode):
            raise TypeError(
                f"operator {declared.name!r}: input sets must be lists of nodes, got a list of {type(each).__name__}"
            )
    if len(lengths) > 1:
        raise ValueError(
            f"operator {declared.name!r}: the argument lists for multiple input sets must have the same length, "
            f"not {' and '.join(map(str, sorted(lengths)))}"
        )
    if any(map(callable, checked.constants.values())):
        raise TypeError(
            f"operator {declared.name!r} calls a Python function; Python operators do not support multiple input "
            f"sets (lists of nodes). Call the operator once for each set"
        )
    results = [record(declared, _select_set(checked, i)) for i in range(lengths.pop())]
    if len(results) == 1:
        return results[0]
    return [list(each) for each in zip(*results, strict=True)] if isinstance(results[0], list) else results


def _select_set(checked: CheckedCall, i: int) -> CheckedCall:
    inputs = [v[i] if isinstance(v, list) else v for v in checked.inputs]
    name = f"{checked.name}[{i}]" if checked.name else None
    return CheckedCall(
        inputs=inputs,
        constants=checked.constants,
        per_sample=checked.per_sample,
        device=checked.device,
        name=name,
        preserve=checked.preserve,
    )


def _check_devices(declared: Operator, inputs: Sequence[DataNode | None], device: str) -> None:
    if declared.has("anywhere"):
        return
    for i, edge in enumerate(inputs):
        if edge is not None and edge.device == "gpu" and device != "gpu":
            raise RuntimeError(
                f'input {i} of operator {declared.name!r} is stored on incompatible device "gpu": the '
                f"operator runs on {device!r}. Use .cpu(), or run it with device='gpu'"
            )


# ---------------------------------------------------------------- run immediately


def run_now(declared: Operator, checked: CheckedCall, rng: BatchRng | None = None) -> Any:
    """Run immediately on tensors or `TensorList`s. Return tensors if no input or argument is a `TensorList`.

    The results share memory with the inputs only if the operator may return views.
    """
    returns_tensors = not any(isinstance(v, TensorList) for v in [*checked.inputs, *checked.per_sample.values()])
    inputs = [None if v is None else _as_batch(v) for v in checked.inputs]
    rng = rng or _create_rng(declared, checked, inputs)
    outputs = run_batch(declared, inputs, checked.constants, checked.per_sample, rng)
    results = [o.samples()[0] if returns_tensors else o for o in copy_returned_inputs(declared, outputs, inputs)]
    return results[0] if len(results) == 1 else tuple(results)


def copy_returned_inputs(
    declared: Operator, outputs: Sequence[TensorList], inputs: Sequence[TensorList | None]
) -> Sequence[TensorList]:
    """Copy outputs that share memory with an input, so that a write to an output doesn't change the input.

    Operators that may return views are exempt.
    """
    if declared.has("view") or is_traced():
        return outputs
    return separate(outputs, [batch for batch in inputs if batch is not None])


def _as_batch(value: Any) -> TensorList:
    if isinstance(value, TensorList):
        return value
    layout = value.layout() if hasattr(value, "layout") and callable(value.layout) else ""
    if hasattr(value, "torch"):
        value = value.torch()
    if isinstance(value, str):
        raise TypeError(explain_text_input(value))
    tensor = value if isinstance(value, torch.Tensor) else _from_array(np.asarray(value))
    return TensorList.from_samples([tensor], layout=layout)


def _from_array(array: npt.NDArray[Any]) -> torch.Tensor:
    """Convert an array to a tensor.

    The tensor shares the array's memory if the array is writable and has no negative strides.
    """
    shared = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.as_tensor(array if shared else array.copy())


def _create_rng(declared: Operator, checked: CheckedCall, inputs: Sequence[TensorList | None]) -> BatchRng | None:
    if not declared.schema.random:
        return None
    size = next((len(v) for v in [*inputs, *checked.per_sample.values()] if v is not None), 1)
    seed = checked.constants.get("seed", -1)
    if seed == -1:
        seed = int(torch.randint(1 << 62, ()).item())
    return BatchRng.following(mix(seed), 0, size)
