"""Arithmetic, comparison, bitwise and mathematical functions with DALI's type promotion.

`function` builds the function for operands of given dtypes. The built function converts the operands to their common
dtype and then calls one PyTorch function. Integers wrap around on overflow. ``//`` and ``%`` of integers truncate
toward zero. A signed and an unsigned integer are compared by value.

PyTorch has no arithmetic for uint16, uint32 and uint64. If the signed dtype of the same width gives the same bits, the
function is computed in this dtype. Otherwise it is computed in the next wider signed dtype. No signed dtype is wider
than uint64, so uint64 has its own functions in `kernels.unsigned`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels import unsigned
from torchdali.kernels.convert import integer_limits

__all__ = [
    "ARITY", "SYMBOLS", "Number", "broadcast_batches", "function", "function_into", "promote", "result_type",
]  # fmt: skip


class Number(NamedTuple):
    """A constant operand, with the dtype that it has in DALI."""

    value: float
    dtype: torch.dtype


Operand: TypeAlias = "torch.dtype | Number"
Function: TypeAlias = Callable[..., Tensor]

ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "pow", "min", "max", "clamp")
FLOATING = ("truediv", "atan2", "fpow")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BITWISE = ("and", "or", "xor", "lshift", "rshift", "invert")
SIGNS = ("pos", "neg", "abs")
FUNCTIONS: dict[str, Function] = {
    "fabs": torch.abs,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "cbrt": lambda x: _cube_root(x),
    "exp": torch.exp,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": lambda x: _compute_in_float64(torch.sinh, x),
    "cosh": lambda x: _compute_in_float64(torch.cosh, x),
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": lambda x: _compute_in_float64(torch.atanh, x),
}
"""Mathematical functions of one operand; integers are converted to float32."""

ARITY = dict.fromkeys((*ARITHMETIC, *FLOATING, *COMPARISONS, *BITWISE), 2)
ARITY |= dict.fromkeys((*SIGNS, "invert", *FUNCTIONS), 1) | {"clamp": 3}
"""Number of operands of each function."""

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
_SIGNED_BY_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SAME_BITS = frozenset(("add", "sub", "mul", "pos", "neg", "and", "or", "xor", "invert", "lshift", "eq", "ne"))
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>", "invert": "~", "neg": "-", "eq": "==", "ne": "!=", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
"""Python's operator symbols of functions, for error messages."""


# ---------------------------------------------------------------- types


def promote(left: torch.dtype, right: torch.dtype) -> torch.dtype:
    """Return the common dtype of two operands.

    If an operand is floating point, the result is the larger floating-point dtype. Of two signed or two unsigned
    dtypes, the result is the larger dtype. For a signed dtype and an unsigned dtype, the result is a signed dtype that
    holds the values of both, but at most int64 (also with uint64).
    """
    if left == right or right == torch.bool:
        return left
    if left == torch.bool:
        return right
    floats = [d for d in (left, right) if d.is_floating_point]
    if floats:
        return max(floats, key=lambda d: d.itemsize)
    if left.is_signed == right.is_signed:
        return max(left, right, key=lambda d: d.itemsize)
    signed, other = (left, right) if left.is_signed else (right, left)
    return _SIGNED_BY_SIZE[min(max(signed.itemsize, 2 * other.itemsize), 8)]


def result_type(name: str, *dtypes: torch.dtype) -> torch.dtype:
    """Return the dtype of a function's result for operands of these dtypes.

    Raises:
        RuntimeError: the function does not support these dtypes.
    """
    common = functools.reduce(promote, dtypes)
    _check_types(name, common)
    if name in COMPARISONS:
        return torch.bool
    if (name in FLOATING or name in FUNCTIONS) and not common.is_floating_point:
        return torch.float32
    return common


def _check_types(name: str, common: torch.dtype) -> None:
    symbol = SYMBOLS.get(name, name)
    if name in BITWISE:
        if common.is_floating_point:
            raise RuntimeError(
                f"inputs to bitwise operator `{symbol}` must be of integral type or booleans, not {_name(common)}"
            )
    elif common == torch.bool and name not in COMPARISONS and name not in ("mul", "pos"):
        raise RuntimeError(
            f"inputs to arithmetic operator `{symbol}` cannot be booleans. Consider using bitwise operators "
            "(`|`, `&`, `^`, `~`), or convert one to a number."
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ---------------------------------------------------------------- building a function


def function(name: str, *operands: Operand) -> Function:
    """Build the function that computes an operation on tensors and constants.

    Args:
        name: Name of the operation: a key of `ARITY`.
        operands: For each operand, the dtype of a tensor, or a constant.

    Returns:
        A function of the tensors, without the constants, in the order of the operands. The tensors must have the dtypes
        in `operands`, and shapes that broadcast; they may be on any device.

    Raises:
        RuntimeError: the function does not support these dtypes.
    """
    dtypes = [o.dtype if isinstance(o, Number) else o for o in operands]
    result = result_type(name, *dtypes)
    compute = _build(name, operands, dtypes, result)
    return _reject_cpu(compute) if torch.float16 in dtypes and name != "pos" else compute


def function_into(name: str, *operands: Operand) -> Callable[..., bool] | None:
    """Build a function that writes its result to an existing tensor, which may be one of the operands.

    The operation must be a sum, difference, product or quotient of a tensor and a number, or of two tensors. If an
    image is processed in several steps, each step can reuse the image's memory, which then stays in the CPU's cache.

    Args:
        name, operands: See `function`.

    Returns:
        A function of the output tensor and the operands. If the output tensor doesn't have the result's dtype and
        shape, the function computes nothing and returns False. None if the operation isn't supported.
    """
    dtypes = [o.dtype if isinstance(o, Number) else o for o in operands]
    if name not in ("add", "sub", "mul", "truediv") or torch.float16 in dtypes:
        return None
    result = result_type(name, *dtypes)
    if _carrier(name, result, dtypes) != result:
        return None
    core = _core(name, result, result, operands[-1])
    numbers = [_constant(o, result) if isinstance(o, Number) else None for o in operands]

    def compute_unary(out: Tensor, x: Tensor) -> bool:
        if out.dtype != result or out.shape != x.shape or x.requires_grad:
            return False
        operand = x if x.dtype == result else out.copy_(x)
        left, right = numbers
        core(operand if left is None else left, operand if right is None else right, out=out)
        return True

    def compute_binary(out: Tensor, x: Tensor, y: Tensor) -> bool:
        fits = out.dtype == x.dtype == y.dtype == result and out.shape == x.shape == y.shape
        if not fits or x.requires_grad or y.requires_grad:
            return False
        core(x, y, out=out)
        return True

    return compute_binary if numbers == [None, None] else compute_unary


def _reject_cpu(compute: Function) -> Function:
    def run(*tensors: Tensor) -> Tensor:
        if all(t.device.type == "cpu" for t in tensors):
            raise RuntimeError("unsupported type: float16; arithmetic on the CPU doesn't support float16")
        return compute(*tensors)

    return run


def _build(name: str, operands: tuple[Operand, ...], dtypes: list[torch.dtype], result: torch.dtype) -> Function:
    if name in COMPARISONS and _mixes_uint64(dtypes):
        compare = functools.partial(unsigned.compare_mixed, name, dtypes[0] == torch.uint64)
        return _bind(compare, operands, torch.int64, None)
    common = _common_dtype(name, operands, dtypes, result)
    carrier = _carrier(name, common, dtypes)
    core = _core(name, common, carrier, operands[-1])
    out_dtype = None if name in COMPARISONS or carrier == common else common
    return _bind(core, operands, carrier, out_dtype)


def _mixes_uint64(dtypes: list[torch.dtype]) -> bool:
    signed = any(d.is_signed and not d.is_floating_point for d in dtypes)
    return signed and torch.uint64 in dtypes


def _common_dtype(
    name: str, operands: tuple[Operand, ...], dtypes: list[torch.dtype], result: torch.dtype
) -> torch.dtype:
    """Return the dtype to which the operands are converted before the function is computed."""
    if name not in COMPARISONS:
        return result
    for operand, other in zip(operands, reversed(dtypes), strict=True):
        if isinstance(operand, Number) and _can_represent(other, operand):
            return other  # the tensor needn't be converted
    return promote(*dtypes)


def _can_represent(dtype: torch.dtype, number: Number) -> bool:
    integers = not (dtype.is_floating_point or number.dtype.is_floating_point)
    if not integers or torch.bool in (dtype, number.dtype):
        return False
    low, high = integer_limits(dtype)
    return low <= number.value <= high


def _carrier(name: str, common: torch.dtype, dtypes: list[torch.dtype]) -> torch.dtype:
    """Return the dtype in which PyTorch computes the function."""
    if name == "mod" and common == torch.float32 and len({*dtypes}) > 1:
        return torch.float64  # float32 would round large integers, and thus change the remainder
    return (_SIGNED if name in _SAME_BITS else _WIDER).get(common, common)


def _bind(
    core: Function, operands: tuple[Operand, ...], carrier: torch.dtype, out_dtype: torch.dtype | None
) -> Function:
    """Build a function that converts the tensors to `carrier`, calls `core` with all operands, and converts the result.

    The result is converted to the dtype `out_dtype`, unless `out_dtype` is None.
    """
    positions = [i for i, o in enumerate(operands) if not isinstance(o, Number)]
    constants = [_constant(o, carrier) if isinstance(o, Number) else None for o in operands]
    casts = [_cast(o, carrier) for o in operands if not isinstance(o, Number)]
    if len(positions) == len(operands):
        inner = core
    elif len(operands) == 2:
        number = constants[1 - positions[0]]
        inner = (lambda x: core(x, number)) if positions == [0] else (lambda x: core(number, x))
    else:
        inner = functools.partial(_call_with_constants, core, constants, positions)
    return _add_casts(inner, casts, out_dtype)


def _call_with_constants(core: Function, constants: list[Any], positions: list[int], *tensors: Tensor) -> Tensor:
    operands = list(constants)
    for position, tensor in zip(positions, tensors, strict=True):
        operands[position] = tensor
    return core(*operands)


def _add_casts(
    inner: Function, casts: list[Callable[[Tensor], Tensor] | None], out_dtype: torch.dtype | None
) -> Function:
    if out_dtype is not None:
        return lambda *tensors: _cast_result(_add_casts(inner, casts, None)(*tensors), out_dtype)
    if not any(casts):
        return inner
    first_cast = casts[0]
    if len(casts) == 1 and first_cast is not None:
        return lambda x: inner(first_cast(x))
    return lambda *tensors: inner(*[t if cast is None else cast(t) for cast, t in zip(casts, tensors, strict=True)])


def _cast(dtype: Operand, carrier: torch.dtype) -> Callable[[Tensor], Tensor] | None:
    assert isinstance(dtype, torch.dtype)
    if dtype == carrier:
        return None
    if _SIGNED.get(dtype) == carrier:
        return lambda x: x.view(carrier)
    return lambda x: x.to(carrier)


def _cast_result(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else x.to(dtype)


def _constant(number: Number, carrier: torch.dtype) -> Tensor:
    """Convert a constant to a 0-D tensor, which PyTorch processes faster than a Python number."""
    value = number.value
    if number.dtype.is_floating_point:
        with np.errstate(over="ignore"):
            value = float(np.float32(value)) if number.dtype.itemsize < 8 else value
    elif not carrier.is_floating_point and carrier != torch.bool:
        bits = 8 * carrier.itemsize
        wraps = carrier.is_signed and value >= 1 << (bits - 1)  # keep the bits of an unsigned number
        value = int(value) - (1 << bits) if wraps else value
    return torch.tensor(value, dtype=carrier)


# ---------------------------------------------------------------- the functions


def _core(name: str, common: torch.dtype, carrier: torch.dtype, last: Operand) -> Function:
    """Return the function that computes an operation on operands of the dtype `carrier`.

    Args:
        common: Dtype of the operation in DALI.
        last: Last operand; if it is a constant, a faster function may be returned.
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if common == torch.uint64 and name in unsigned.FUNCTIONS:
        return unsigned.FUNCTIONS[name]
    if name in ("lshift", "rshift"):
        return _shift(name, common, carrier)
    if name in ("floordiv", "mod") and not common.is_floating_point:
        return _integer_division(name, common, last)
    if name in ("pow", "fpow"):
        return _power(common, last)
    if common.is_floating_point and name in _FLOAT_FUNCTIONS:
        return _FLOAT_FUNCTIONS[name]
    return _DEFAULT_FUNCTIONS[name]


def _compute_in_float64(function: Function, x: Tensor) -> Tensor:
    """Compute a function in float64 on the CPU.

    In float32, PyTorch before 2.15 overflows early (`sinh` and `cosh` from 88.7 on), and `atanh` of a single element
    differs in the last bit from `atanh` of several elements.
    """
    return function(x.double()).to(x.dtype) if x.device.type == "cpu" else function(x)


def _smaller(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x < y, x, y)


def _greater(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, x, y)


def _clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return _smaller_or_nan(torch.where(x < low, low, x), high)


def _smaller_or_nan(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, y, x)


_FLOAT_FUNCTIONS: dict[str, Function] = {
    "floordiv": torch.div,
    "min": _smaller,  # unlike torch.minimum, _smaller and _greater return the second operand if either is NaN
    "max": _greater,
}
_DEFAULT_FUNCTIONS: dict[str, Function] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.div,
    "mod": torch.fmod,
    "min": torch.minimum,
    "max": torch.maximum,
    "clamp": _clamp,
    "atan2": torch.atan2,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "invert": torch.bitwise_not,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "pos": lambda x: x,
    "neg": torch.neg,
    "abs": torch.abs,
}


def _cube_root(x: Tensor) -> Tensor:
    return x.double().abs().pow(1 / 3).copysign(x).to(x.dtype)


def _shift(name: str, common: torch.dtype, carrier: torch.dtype) -> Function:
    """Return a shift function that uses only the lowest 5 bits of the distance, or 6 bits for 64-bit integers."""
    mask = torch.tensor(63 if common.itemsize == 8 else 31).to(carrier)
    shift = torch.bitwise_left_shift if name == "lshift" else torch.bitwise_right_shift
    if common == torch.bool:
        return lambda x, n: shift(x.to(torch.uint8), n.to(torch.uint8)).to(torch.bool)
    return lambda x, n: shift(x, n & mask)


def _integer_division(name: str, common: torch.dtype, divisor: Operand) -> Function:
    """Return the function for `floordiv` (rounded toward zero) or `mod` (with the sign of the dividend)."""
    if name == "mod":
        return _reject_zero_divisor(torch.fmod)
    trunc_divide = functools.partial(torch.div, rounding_mode="trunc")
    if isinstance(divisor, Number) and common.is_signed and _constant(divisor, common) == -1:
        return lambda x, _: -x
    if not common.is_signed or common.itemsize < 4 or isinstance(divisor, Number):
        return _reject_zero_divisor(trunc_divide)

    def divide(x: Tensor, y: Tensor) -> Tensor:
        # Dividing the smallest integer by -1 would crash the process, so a division by -1 is replaced by a negation.
        is_minus_one = y == -1
        return torch.where(is_minus_one, -x, trunc_divide(x, y.masked_fill(is_minus_one, 1)))

    return _reject_zero_divisor(divide)


def _reject_zero_divisor(divide: Function) -> Function:
    def run(x: Tensor, y: Tensor) -> Tensor:
        try:
            return divide(x, y)
        except RuntimeError as error:
            if "ZeroDivisionError" in str(error):
                raise ValueError("integer division by zero") from None
            raise

    return run


def _power(common: torch.dtype, exponent: Operand) -> Function:
    """Return the power function; integers to negative powers are 0."""
    if isinstance(exponent, Number):
        if exponent.value < 0 and not common.is_floating_point:
            return lambda x, _: torch.zeros_like(x)
        value = _constant(exponent, common).item()
        return lambda x, _: torch.pow(x, value)  # with a Python number, torch computes squares faster
    if common.is_floating_point or not common.is_signed:
        return torch.pow
    return lambda x, n: torch.pow(x, n.clamp(min=0)).masked_fill(n < 0, 0)


# ---------------------------------------------------------------- batches


def broadcast_batches(*batches: Tensor) -> list[Tensor]:
    """Add axes of extent 1 to batches with fewer axes, so that the batches broadcast like their samples."""
    ndim = max(b.ndim for b in batches)
    return [b if b.ndim == ndim else b.reshape(b.shape[0], *[1] * (ndim - b.ndim), *b.shape[1:]) for b in batches]
