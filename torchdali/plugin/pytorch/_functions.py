"""PyTorch functions, modules and transforms as operators of a pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

import torchdali
from torchdali.ops import TorchPythonFunction

__all__ = ["TorchPythonFunction", "as_operator"]

_serial = itertools.count()


def as_operator(
    function: Callable[..., Any], *, output_layout: str | None = None
) -> Callable[..., Any]:
    """Make an operator of a function of one sample: any callable, an ``nn.Module``, a torchvision transform.

    Unlike `torch_python_function` it runs inside the fused chain, on several samples at once, so it must be
    thread-safe: keep no state, and take no random numbers that have to repeat.

    Args:
        function: Takes one tensor, returns one tensor.
        output_layout: Of the result; the input's when None.

    Returns:
        A function of a node, a batch or a tensor.
    """

    def body(data: torch.Tensor, /) -> torch.Tensor:
        result: torch.Tensor = function(data)
        return result

    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    body.__doc__ = f"Apply {name}."
    layout = None if output_layout is None else lambda layouts, arguments: output_layout
    made: Callable[..., Any] = torchdali.operator(
        name=f"{name}_{next(_serial)}", layout=layout, hidden=True
    )(body)
    return made
