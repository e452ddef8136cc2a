"""Element-wise mathematical functions of tensors, batches, arrays and numbers.

Results have the same dtypes and values as in `torchdali.math`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchdali import math as _math
from torchdali.experimental.dynamic._invoke import invoke_arithmetic

__all__ = _math.__all__


def _function(name: str) -> Callable[..., Any]:
    original = getattr(_math, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def function(*operands: Any, **named: Any) -> Any:
        bound = signature.bind(*operands, **named)
        return invoke_arithmetic(name, bound.args)

    function.__module__ = __name__
    return function


globals().update({name: _function(name) for name in _math.__all__})
