"""Define custom operations of PyTorch, with an implementation in PyTorch for the CPU and Triton kernels for CUDA.

The operations are registered as ``torch.ops.torchdali``, so profilers, dispatch modes and tests see each operation as a
single call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["define"]

F = TypeVar("F", bound=Callable[..., Any])
_torch_library: Any = torch.library
_LIBRARY = _torch_library.Library("torchdali", "DEF")


_TYPES = {"Tensor": "Tensor", "Tensor | None": "Tensor?", "int": "int", "float": "float", "bool": "bool"}


def define(name: str) -> Callable[[F], F]:
    """Declare an operation by decorating its CPU implementation, whose annotations determine the schema.

    Args:
        name: Name of the function in `triton_kernels` that launches the Triton kernels. The operation's name is this
            name with the suffix ``_batch``.
    """

    def launch(*arguments: Any) -> Any:
        from torchdali.kernels.device import triton_kernels

        with torch.cuda.device(arguments[0].device):  # Triton launches on the current device
            return getattr(triton_kernels, name)(*arguments)

    def declare(implementation: F) -> F:
        parameters = inspect.signature(implementation).parameters.values()
        schema = ", ".join(f"{_TYPES[p.annotation]} {p.name}" for p in parameters)
        _LIBRARY.define(f"{name}_batch({schema}) -> Tensor")
        _LIBRARY.impl(f"{name}_batch", implementation, "CPU")
        _LIBRARY.impl(f"{name}_batch", launch, "CUDA")
        return implementation

    return declare
