"""Element-wise mathematical functions of nodes, batches and tensors.

Operands are broadcast and converted to a common dtype, as in arithmetic (see ``docs/expressions.md``). An operand may
be a node, a number, an array or a `types.Constant`. A `TensorList` or a torch tensor may replace a node; the function
is then computed eagerly. Numbers alone are not allowed: at least one operand must be something else.

Functions that return floats convert integers to float32; float64 stays float64. Outside of its domain, a function
returns NaN.
"""

from __future__ import annotations

from typing import Any

from torchdali.graph import nodes as _nodes

__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clamp", "cos", "cosh", "exp",
    "fabs", "floor", "fpow", "log", "log2", "log10", "max", "min", "pow", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip


def abs(input: Any) -> Any:
    """Return ``|x|`` in the dtype of ``x``; the smallest number of a signed integer dtype is unchanged."""
    return _nodes.apply("abs", input)


def fabs(input: Any) -> Any:
    """Return ``|x|`` as a float."""
    return _nodes.apply("fabs", input)


def floor(input: Any) -> Any:
    """Return the largest whole number ``<= x``, as a float."""
    return _nodes.apply("floor", input)


def ceil(input: Any) -> Any:
    """Return the smallest whole number ``>= x``, as a float."""
    return _nodes.apply("ceil", input)


def sqrt(input: Any) -> Any:
    """Return the square root."""
    return _nodes.apply("sqrt", input)


def rsqrt(input: Any) -> Any:
    """Return ``1 / sqrt(x)``; infinity at 0."""
    return _nodes.apply("rsqrt", input)


def cbrt(input: Any) -> Any:
    """Return the cube root, also of negative numbers."""
    return _nodes.apply("cbrt", input)


def exp(input: Any) -> Any:
    """Return ``e ** x``."""
    return _nodes.apply("exp", input)


def log(input: Any) -> Any:
    """Return the natural logarithm; minus infinity at 0."""
    return _nodes.apply("log", input)


def log2(input: Any) -> Any:
    """Return the logarithm to base 2; minus infinity at 0."""
    return _nodes.apply("log2", input)


def log10(input: Any) -> Any:
    """Return the logarithm to base 10; minus infinity at 0."""
    return _nodes.apply("log10", input)


def sin(input: Any) -> Any:
    """Return the sine of an angle in radians."""
    return _nodes.apply("sin", input)


def cos(input: Any) -> Any:
    """Return the cosine of an angle in radians."""
    return _nodes.apply("cos", input)


def tan(input: Any) -> Any:
    """Return the tangent of an angle in radians."""
    return _nodes.apply("tan", input)


def asin(input: Any) -> Any:
    """Return the angle in ``[-pi/2, pi/2]`` radians whose sine is ``x``."""
    return _nodes.apply("asin", input)


def acos(input: Any) -> Any:
    """Return the angle in ``[0, pi]`` radians whose cosine is ``x``."""
    return _nodes.apply("acos", input)


def atan(input: Any) -> Any:
    """Return the angle in ``(-pi/2, pi/2)`` radians whose tangent is ``x``."""
    return _nodes.apply("atan", input)


def sinh(input: Any) -> Any:
    """Return the hyperbolic sine."""
    return _nodes.apply("sinh", input)


def cosh(input: Any) -> Any:
    """Return the hyperbolic cosine."""
    return _nodes.apply("cosh", input)


def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent."""
    return _nodes.apply("tanh", input)


def asinh(input: Any) -> Any:
    """Return the inverse of the hyperbolic sine."""
    return _nodes.apply("asinh", input)


def acosh(input: Any) -> Any:
    """Return the inverse of the hyperbolic cosine."""
    return _nodes.apply("acosh", input)


def atanh(input: Any) -> Any:
    """Return the inverse of the hyperbolic tangent."""
    return _nodes.apply("atanh", input)


def atan2(x: Any, y: Any) -> Any:
    """Return the angle in ``[-pi, pi]`` radians with sine ``x / r`` and cosine ``y / r``, where ``r = hypot(x, y)``."""
    return _nodes.apply("atan2", x, y)


def pow(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent``; an integer raised to a negative integer gives 0."""
    return _nodes.apply("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent`` as a float, also for integers."""
    return _nodes.apply("fpow", base, exponent)


def min(left: Any, right: Any) -> Any:
    """Return the smaller of two numbers; if either is NaN, return ``right``."""
    return _nodes.apply("min", left, right)


def max(left: Any, right: Any) -> Any:
    """Return the larger of two numbers; if either is NaN, return ``right``."""
    return _nodes.apply("max", left, right)


def clamp(value: Any, lo: Any, hi: Any) -> Any:
    """Limit ``value`` to the range from ``lo`` to ``hi``; if ``lo > hi``, return ``hi``."""
    return _nodes.apply("clamp", value, lo, hi)
