"""Represent existing values as nodes of a graph."""

from __future__ import annotations

from typing import Any

from torchdali.calls.decorators import source
from torchdali.declaration.registry import registry
from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._operation import Operation, OperationResult
from torchdali.graph import nodes
from torchdali.reading.sources import BatchSource, SourceBatch
from torchdali.tensors import TensorList

__all__ = ["VALUE_OPERATOR", "ValueSource", "make_result"]


class ValueSource(BatchSource):
    """A source whose data is passed to `Executor.schedule` with each batch."""

    def next(self, batch_size: int, prepared: SourceBatch | None = None) -> tuple[TensorList, ...]:
        assert prepared is not None
        return prepared.outputs

    def state(self) -> dict[str, Any]:
        """Return an empty state, because the code that sets the values stores the position."""
        return {}


@source(name="_given_value")
def _given_value() -> BatchSource:
    """Return batches that already exist."""
    return ValueSource()


VALUE_OPERATOR = registry["_given_value"]


def make_result(values: TensorList, device: Device) -> OperationResult:
    """Wrap values as the result of a finished operation."""
    kind = "cpu" if device.device_type == "cpu" else "gpu"
    node = nodes.add_node(VALUE_OPERATOR, [], {}, {}, device=kind, outputs=1)
    operation = Operation(node, len(values), None, device, results=(values,))
    return OperationResult(operation, 0)
