"""Calls of operators in the dynamic mode: check them, and compute or record them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from torchdali.calls.dispatch import CheckedCall, bind, copy_returned_inputs, record
from torchdali.calls.running import run_batch
from torchdali.declaration.registry import Operator, expression
from torchdali.errors import locate_error
from torchdali.experimental.dynamic._batch import Batch, _batch_of
from torchdali.experimental.dynamic._capture import current_capture
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._convert import as_list, move
from torchdali.experimental.dynamic._device import Device, device, to_torch_device
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._given import make_result
from torchdali.experimental.dynamic._mode import EvalMode
from torchdali.experimental.dynamic._operation import Operation, OperationResult, operation_of
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor, _tensor_of
from torchdali.experimental.dynamic._value import HOOKS, LazyValue
from torchdali.graph.nodes import DataNode, Node
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["invoke", "invoke_arithmetic", "invoke_subscript"]


def invoke(
    declared: Operator,
    inputs: Sequence[Any],
    arguments: Mapping[str, Any],
    batch_size: int | None = None,
    device_like: Any = None,
    rng: RNG | None = None,
) -> Any:
    """Compute an operator, or record it for later (see `EvalMode`).

    Args:
        inputs: Tensors, batches and other data; None for an omitted optional input.
        arguments: Named arguments; per-sample arguments may be tensors or batches.
        batch_size: Number of samples of the result. By default, the batch size of the operands; if no operand is a
            batch, the result is a single tensor.
        device_like: Device of the operator; the first input's device by default.
        rng: Generator of the random numbers, for a random operator; the call advances the generator.

    Returns:
        A `Tensor` or `Batch`, or a tuple of them.

    Raises:
        ValueError: The batches have different sizes.
        TypeError: An argument is unknown, or the number of inputs is wrong.
    """
    try:
        declared.schema.check_inputs(inputs)
    except ValueError as error:
        raise TypeError(str(error)) from None
    present = {name: value for name, value in arguments.items() if value is not None}
    size = _common_size([*inputs, *present.values()], batch_size)
    call = _EagerCall(size, _is_deferred(size, [*inputs, *present.values()]))
    target = _device_of(declared, device_like, inputs)
    backend = _backend_of(declared, target)
    source = Device.CPU if backend == "mixed" else target
    operands = [None if v is None else call.operand(v, source) for v in inputs]
    named = {name: call.argument(declared, name, value) for name, value in present.items()}
    if target.device_type == "gpu" or device_like is not None:
        named["device"] = backend
    checked = bind(declared, operands, named)
    chosen = declared.select_variant(dict.fromkeys(checked.per_sample) | checked.constants)
    if call.deferred:
        return call.record(chosen, checked, target, rng)
    return call.compute(chosen, checked, target, rng)


def invoke_arithmetic(name: str, operands: Sequence[Any]) -> Any:
    """Compute an arithmetic operator or a mathematical function, or record it for later (see `EvalMode`)."""
    size = _common_size(operands, None)
    call = _EagerCall(size, _is_deferred(size, operands))
    target = next((o.device for o in operands if isinstance(o, LazyValue)), Device.current())
    numbers = (bool, int, float)
    converted = [o if isinstance(o, numbers) else call.operand(o, target) for o in operands]
    if all(isinstance(o, numbers) for o in converted):
        converted[0] = call.operand(converted[0], target)
    return call.wrap(expression(name)(*converted), target)


def invoke_subscript(data: LazyValue, ranges: Any) -> Any:
    """Index into a tensor, or into each sample of a batch."""
    parts = ranges if isinstance(ranges, tuple) else (ranges,)
    numbers = [n for p in parts for n in ((p.start, p.stop, p.step) if isinstance(p, slice) else (p,))]
    operands = [data, *[n for n in numbers if isinstance(n, LazyValue)]]
    size = _common_size(operands, None)
    call = _EagerCall(size, _is_deferred(size, operands))

    def convert_index(part: Any) -> Any:
        if isinstance(part, slice):
            return slice(*map(convert_index, (part.start, part.stop, part.step)))
        return call.operand(part, Device.CPU) if isinstance(part, LazyValue) else part

    index = tuple(map(convert_index, parts))
    result = expression("subscript")(call.operand(data, data.device), index)
    return call.wrap(result, data.device)


class _EagerCall:
    """One call of an operator.

    Attributes:
        size: Number of samples; None for a single tensor.
        deferred: True if the call is recorded now and computed later.
    """

    def __init__(self, size: int | None, deferred: bool) -> None:
        self.size, self.deferred = size, deferred
        self._results: list[OperationResult] = []

    def operand(self, value: Any, target: Device) -> Any:
        """Convert an operand to a node (for a recorded call) or to a batch."""
        if isinstance(value, LazyValue) and isinstance(value, Batch) == (self.size is not None):
            if self.deferred and value.device == target:
                return value._edge()
            values = value._values()
        else:
            values = as_list(value._single() if isinstance(value, LazyValue) else value, self.size)
        if values.device != to_torch_device(target):
            values = move(values, target)
        return self._add_value(values, target) if self.deferred else values

    def _add_value(self, values: TensorList, target: Device) -> DataNode:
        result = make_result(values, target)
        self._results.append(result)  # retained until the operation that needs the result refers to it
        return result.edge

    def argument(self, declared: Operator, name: str, value: Any) -> Any:
        """Convert a named argument. Tensors and batches become per-sample values; constants are returned unchanged."""
        if isinstance(value, DType):
            return value.type_id
        if not isinstance(value, (LazyValue, torch.Tensor)):
            return value
        schema_argument = declared.schema.arguments.get(name)
        if schema_argument is not None and schema_argument.edge is None:
            single = value._single().torch() if isinstance(value, LazyValue) else value
            return single.tolist()
        return self.operand(value, Device.CPU)

    def compute(self, declared: Operator, checked: CheckedCall, target: Device, generator: RNG | None) -> Any:
        """Run the call now, in this thread."""
        size = 1 if self.size is None else self.size
        rng = None if generator is None else BatchRng.following(generator._key(), 0, size)
        try:
            results = run_batch(declared, checked.inputs, checked.constants, checked.per_sample, rng, size)
        except Exception as error:  # raise the same class of exception as calls that are computed later
            raise locate_error(error, f"operator {declared.name!r} failed") from error
        if checked.device == "mixed":
            results = tuple([move(each, target) for each in results])
        if self.size is None:
            results = tuple(copy_returned_inputs(declared, results, checked.inputs))
        values = [_tensor_of(r) if self.size is None else _batch_of(r) for r in results]
        several = declared.returns_list(checked.constants, len(checked.inputs))
        return tuple(values) if several else values[0]

    def record(self, declared: Operator, checked: CheckedCall, target: Device, rng: RNG | None) -> Any:
        return self.wrap(record(declared, checked), target, rng)

    def wrap(self, result: Any, target: Device, rng: RNG | None = None) -> Any:
        """Wrap an operator's results, nodes or batches, in this mode's classes."""
        if isinstance(result, (list, tuple)):
            return tuple(self.wrap(each, target, rng) for each in result)
        if isinstance(result, torch.Tensor):
            result = TensorList.from_samples([result])
        if isinstance(result, TensorList):
            return _tensor_of(result) if self.size is None else _batch_of(result)
        return self._pending(result, target, rng)

    def _pending(self, edge: DataNode, target: Device, rng: RNG | None) -> LazyValue:
        assert edge.source is not None
        operation = operation_of(edge.source) or self._operation(edge.source, target, rng)
        result = OperationResult(operation, edge.index)
        output = (Tensor if self.size is None else Batch)(invocation_result=result)
        if EvalMode.current() in (EvalMode.sync_cpu, EvalMode.sync_full):
            output.evaluate()
        return output

    def _operation(self, node: Node, target: Device, rng: RNG | None) -> Operation:
        size = 1 if self.size is None else self.size
        key = None if rng is None else rng._key()
        context = EvalContext.current()
        operation = Operation(node, size, context, target, key, rng=rng)
        capture = current_capture()
        if capture is not None:
            operation = capture.operation(operation)
        context.add(operation)
        return operation


def _common_size(operands: Sequence[Any], batch_size: int | None) -> int | None:
    """Return the batches' common size, or None if no operand is a batch; raise ValueError if the sizes differ."""
    size = batch_size
    for operand in operands:
        if isinstance(operand, Batch):
            if size is not None and operand.batch_size != size:
                raise ValueError(f"inconsistent batch size: {operand.batch_size} != {size}")
            size = operand.batch_size
    return size


def _is_deferred(size: int | None, operands: Sequence[Any]) -> bool:
    """Return True if a call must be recorded and computed later.

    Calls with batches are recorded, so that several calls are computed together. Calls with single tensors are recorded
    only in deferred mode. Calls that need gradients are never recorded.
    """
    if any(isinstance(o, LazyValue) and _needs_gradient(o) for o in operands):
        return False
    return size is not None or EvalMode.current() is EvalMode.deferred


def _needs_gradient(value: LazyValue) -> bool:
    if value._list is None or not torch.is_grad_enabled():
        return False
    dense = value._list.dense()
    if dense is not None:
        return dense.requires_grad
    return any(sample.requires_grad for sample in value._list.samples())


def _device_of(declared: Operator, device_like: Any, inputs: Sequence[Any]) -> Device:
    target = device(device_like)
    if target is not None:
        return target
    first = next((v for v in inputs if isinstance(v, LazyValue)), None)
    if first is None:
        return Device.current()
    return first.device


def _backend_of(declared: Operator, target: Device) -> str:
    if target.device_type == "cpu":
        return "cpu"
    return "gpu" if "gpu" in declared.options.devices else "mixed"


HOOKS.arithmetic, HOOKS.subscript = invoke_arithmetic, invoke_subscript
