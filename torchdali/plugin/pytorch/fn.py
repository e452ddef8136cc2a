"""PyTorch functions as operators; besides them the module has all operators of `torchdali.fn`."""

from __future__ import annotations

from typing import Any

import torchdali.fn
from torchdali.fn import torch_python_function

__all__ = ["torch_python_function"]


def __getattr__(name: str) -> Any:
    """Return an operator: ``from ... import *`` puts this module in the place of `torchdali.fn`."""
    return getattr(torchdali.fn, name)
