"""Arithmetic, comparison, bitwise and mathematical functions on nodes, batches and tensors.

This module declares one hidden operator (not in `fn`) for each function of `torchdali.kernels.arithmetic`:
``math.add``, ``math.sqrt`` and so on. It also registers the functions that the Python operators of `DataNode` (such as
``__add__``) and the functions of `torchdali.math` call.

In a pipeline's graph, each call of an operator is a node. Operands that are numbers don't become nodes. Instead, the
node of the function has a text argument ``constants`` with one item per operand: a number and its dtype, or ``_`` for
an operand that isn't a number. For example, ``Constant(255).uint8() - x`` is recorded as
``math.sub(x, constants="255:uint8, _")``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from torchdali import types
from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.registry import define_expression, lookup
from torchdali.declaration.schema import Arguments, Data, Out
from torchdali.graph import nodes
from torchdali.graph.constants import to_native
from torchdali.graph.nodes import DataNode
from torchdali.kernels import arithmetic
from torchdali.kernels.arithmetic import Number
from torchdali.kernels.convert import integer_limits
from torchdali.kernels.memory import copy_to_out
from torchdali.tensors import TensorList

__all__: list[str] = []

Numbers: TypeAlias = "tuple[Number | None, ...]"


def common_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    """Return the longest layout. Each layout must be a suffix of every longer layout.

    Raises:
        RuntimeError: two layouts do not match.
    """
    longest = ""
    for layout in layouts:
        if not (longest.endswith(layout) or layout.endswith(longest)):
            raise RuntimeError(
                f"the layouts of the operands, {longest!r} and {layout!r}, do not match. They must be equal or one "
                "must be a suffix of the other."
            )
        longest = max(longest, layout, key=len)
    return longest


@functools.lru_cache(maxsize=4096)
def _compile(name: str, constants: str, dtypes: tuple[torch.dtype, ...]) -> Callable[..., Tensor]:
    return arithmetic.function(name, *_operands(constants, dtypes))


@functools.lru_cache(maxsize=4096)
def _compile_into(name: str, constants: str, dtypes: tuple[torch.dtype, ...]) -> Callable[..., bool] | None:
    return arithmetic.function_into(name, *_operands(constants, dtypes))


def _operands(constants: str, dtypes: tuple[torch.dtype, ...]) -> list[arithmetic.Operand]:
    numbers = _parse_numbers(constants) or (None,) * len(dtypes)
    tensors = iter(dtypes)
    return [next(tensors) if p is None else p for p in numbers]


def _parse_numbers(constants: str) -> Numbers:
    """Parse a text like ``"255:uint8, _"``. Return a `Number` for each number, and None for each ``_``."""
    return tuple(_parse_number(text) for text in constants.split(", ")) if constants else ()


def _parse_number(text: str) -> Number | None:
    if text == "_":
        return None
    value, _, dtype = text.partition(":")
    number = float(value) if dtype.startswith("float") else int(value)
    return Number(number, getattr(torch, dtype))


def _format_numbers(numbers: Numbers) -> str:
    if all(p is None for p in numbers):
        return ""
    return ", ".join("_" if p is None else f"{p.value}:{str(p.dtype)[6:]}" for p in numbers)


def _declare(name: str) -> None:
    """Declare a hidden operator with a batched implementation, and register the function that calls the operator."""

    def implementation(*operands: Data, constants: str = "", out: Out = None) -> Data:
        dtypes = tuple([x.dtype for x in operands])
        compute = _compile(name, constants, dtypes)
        try:
            if out is None:
                return compute(*operands).contiguous()
            write = _compile_into(name, constants, dtypes)
            if write is not None and write(out, *operands):
                return out
            return copy_to_out(compute(*operands), out).contiguous()
        except RuntimeError:
            _check_shapes(operands)
            raise

    def batched_implementation(*operands: Tensor, a: Arguments) -> Tensor:
        return implementation(*arithmetic.broadcast_batches(*operands), constants=a.constants, out=a.out)

    def expression(*operands: Any) -> Any:
        return _record(name, operands)

    implementation.__doc__ = f"Compute ``{name}`` with DALI's type promotion, element by element."
    declared = operator(name=f"math.{name}", layout=common_layout)(implementation)
    chunk(declared)(batched_implementation)
    define_expression(name)(expression)


for _name in arithmetic.ARITY:
    _declare(_name)


def _check_shapes(operands: tuple[Tensor, ...]) -> None:
    try:
        torch.broadcast_shapes(*[x.shape for x in operands])
    except RuntimeError:
        shapes = " and ".join(" x ".join(map(str, x.shape)) for x in operands)
        raise RuntimeError(
            f"the operands' shapes must be broadcastable, got {shapes}. Counted from the last axis, extents must be "
            f"equal or 1. Resize, crop or pad images to one shape first"
        ) from None


# ---------------------------------------------------------------- operands


def _record(name: str, operands: tuple[Any, ...]) -> Any:
    if len(operands) != arithmetic.ARITY[name]:
        raise TypeError(f"{name!r} takes {arithmetic.ARITY[name]} operands, got {len(operands)}")
    recorded = nodes.current() is not None or any(isinstance(o, DataNode) for o in operands)
    for i, operand in enumerate(operands):
        _check_nesting(name, i, operand)
    if recorded:
        operands = tuple(map(to_native, operands))
    numbers = tuple(_as_number(operand, recorded) for operand in operands)
    inputs = [_as_input(o, recorded) for o, p in zip(operands, numbers, strict=True) if p is None]
    if not inputs:
        raise ValueError(f"{name!r} needs at least one operand that is a node, a batch or a tensor")
    constants = _format_numbers(numbers)
    function = lookup(f"math.{name}")
    return function(*inputs, constants=constants) if constants else function(*inputs)


def _check_nesting(name: str, index: int, operand: Any) -> None:
    """Raise an error if an operand is a list that contains nodes."""
    if isinstance(operand, (list, tuple)) and any(isinstance(o, DataNode) for o in operand):
        raise TypeError(
            f"input {index} of operator `{arithmetic.SYMBOLS.get(name, name)}` must be a node, a number, an array "
            f"or a types.Constant. Got a `{type(operand).__name__}` with nested DataNode; fn.stack combines several "
            f"nodes into one."
        )


def _as_float(value: float) -> float:
    """Round a number to float32, as DALI does for constants of any floating-point dtype."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _as_number(operand: Any, recorded: bool) -> Number | None:
    """Return a constant operand as a `Number`; None if the operand is an array, a batch or a node.

    Args:
        recorded: True if the function becomes a node of a graph. In a graph, an array without axes is a constant too.

    Raises:
        OverflowError: an integer is out of range for its dtype (int32 for Python integers).
    """
    if isinstance(operand, types.ScalarConstant) and operand.dtype == types.FLOAT64:
        return Number(_as_float(operand.value), torch.float64)
    if isinstance(operand, (bool, int, float, np.generic)):
        operand = types.ScalarConstant(operand, _dali_type_of(operand))
    elif recorded and isinstance(operand, (np.ndarray, Tensor)) and operand.ndim == 0:
        operand = types.ScalarConstant(operand)
    if not isinstance(operand, types.ScalarConstant):
        return None
    dtype = types.to_torch_dtype(operand.dtype)
    if not (dtype.is_floating_point or dtype == torch.bool):
        low, high = integer_limits(dtype)
        if not low <= operand.value <= high:
            raise OverflowError(f"the integer {operand.value} is out of range for {operand.dtype}")
    return Number(operand.value if dtype != torch.bool else int(operand.value), dtype)


def _dali_type_of(number: Any) -> Any:
    return types.to_dali_type(number.dtype) if isinstance(number, np.generic) else None


def _as_input(operand: Any, recorded: bool) -> Any:
    """Convert an operand that isn't a number to an input of the function.

    Nodes, batches and samples of a batch are returned unchanged. In a graph, tensors, arrays and lists become constant
    nodes; outside of a graph, they become tensors.
    """
    if isinstance(operand, (DataNode, TensorList)):
        return operand
    if not isinstance(operand, (np.ndarray, Tensor, list, tuple)):
        if hasattr(operand, "torch"):  # a sample of a batch
            return operand
        if hasattr(operand, "__array__"):
            return _as_input(np.asarray(operand), recorded)
        raise TypeError(
            f"an operand must be a node, a number, an array or a types.Constant, got {type(operand).__name__}"
        )
    if recorded:
        return types.Constant(operand)
    return operand if isinstance(operand, Tensor) else torch.from_numpy(np.asarray(operand))
