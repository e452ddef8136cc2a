"""The operator `torch_python_function`, together with all operators of `torchdali.fn`."""

from __future__ import annotations

from typing import Any

import torchdali.fn
from torchdali.fn import torch_python_function

__all__ = ["torch_python_function"]


def __getattr__(name: str) -> Any:
    """Return an operator of `torchdali.fn`, because programs import this module in place of `torchdali.fn`."""
    return getattr(torchdali.fn, name)
