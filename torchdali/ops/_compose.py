"""Chains of operator classes, and the names of the operators of a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchdali.declaration.registry import registry

__all__ = ["Compose", "cpu_ops", "gpu_ops", "mixed_ops"]


class _Composition:
    """Operators that are called one after another."""

    def __init__(self, operators: Sequence[Callable[..., Any]]) -> None:
        self._operators = tuple(operators)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Apply all; the arguments are the first one's."""
        first, *others = self._operators
        result = first(*inputs, **arguments)
        for operator in others:
            several = isinstance(result, list | tuple)
            result = operator(*result) if several else operator(result)
        return result


def Compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Return an operator that applies operators one after another; all outputs of one go to the next.

    Args:
        op_list: Objects of classes of `torchdali.ops`, or anything callable.

    Raises:
        TypeError: one of them is not callable. ValueError: there are none.
    """
    if not op_list:
        raise ValueError("Compose needs at least one operator")
    for each in op_list:
        if not callable(each):
            raise TypeError(f"Compose takes operators, not {type(each).__name__}")
    return op_list[0] if len(op_list) == 1 else _Composition(op_list)


def _on(device: str) -> set[str]:
    return {each.schema_name for each in registry.values() if device in each.options.devices}


def cpu_ops() -> set[str]:
    """Return the schema names, like ``readers__File``, of the operators that run on the CPU."""
    return _on("cpu")


def gpu_ops() -> set[str]:
    """Return the schema names of the operators that run on the accelerator."""
    return _on("gpu")


def mixed_ops() -> set[str]:
    """Return the schema names of the operators that take CPU data to the accelerator."""
    return _on("mixed")
