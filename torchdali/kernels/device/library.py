"""Operations of torch's library ``torchdali``: a body in torch for the CPU, a Triton kernel of the same name for CUDA.

As operations of the library they are one call for whatever stands between Python and the device: profilers, torch's
dispatch modes, tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["define"]

_torch_library: Any = torch.library
_LIBRARY = _torch_library.Library("torchdali", "DEF")


def define(schema: str, body: Callable[..., Any]) -> None:
    """Declare an operation.

    Args:
        schema: In torch's words; the name without the library's.
        body: For the CPU.
    """
    name = schema.partition("(")[0].removesuffix("_batch")

    def launch(*arguments: Any) -> Any:
        from torchdali.kernels.device import triton_kernels

        with torch.cuda.device(arguments[0].device):  # Triton launches on the current one
            return getattr(triton_kernels, name)(*arguments)

    _LIBRARY.define(schema)
    _LIBRARY.impl(f"{name}_batch", body, "CPU")
    _LIBRARY.impl(f"{name}_batch", launch, "CUDA")
