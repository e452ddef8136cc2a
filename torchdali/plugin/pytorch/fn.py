"""PyTorch functions as operators."""

from __future__ import annotations

from torchdali.fn import torch_python_function

__all__ = ["torch_python_function"]
