"""`Compose` for the operator classes of `torchdali.ops`, and functions that list the operators of a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchdali.declaration.registry import registry

__all__ = ["Compose", "cpu_ops", "gpu_ops", "mixed_ops"]


class _Composition:
    """A sequence of operators, called like a single operator."""

    def __init__(self, operators: Sequence[Callable[..., Any]]) -> None:
        self._operators = tuple(operators)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Call the operators one after the other. The arguments are passed to the first operator."""
        first, *rest = self._operators
        result = first(*inputs, **arguments)
        for operator in rest:
            is_sequence = isinstance(result, list | tuple)
            result = operator(*result) if is_sequence else operator(result)
        return result


def Compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Combine operators into one: the outputs of each operator are the inputs of the next operator.

    Args:
        op_list: Instances of classes in `torchdali.ops`, or other callables.

    Raises:
        TypeError: an item is not callable.
        ValueError: the list is empty.
    """
    if not op_list:
        raise ValueError("Compose needs at least one operator")
    for item in op_list:
        if not callable(item):
            raise TypeError(f"Compose takes operators, got {type(item).__name__}")
    return op_list[0] if len(op_list) == 1 else _Composition(op_list)


def _on(device: str) -> set[str]:
    return {operator.schema_name for operator in registry.values() if device in operator.options.devices}


def cpu_ops() -> set[str]:
    """Return the schema names, like ``readers__File``, of the operators that run on the CPU."""
    return _on("cpu")


def gpu_ops() -> set[str]:
    """Return the schema names of the operators that run on the accelerator."""
    return _on("gpu")


def mixed_ops() -> set[str]:
    """Return the schema names of the operators that have inputs on the CPU and outputs on the accelerator."""
    return _on("mixed")
