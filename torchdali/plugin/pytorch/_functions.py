"""PyTorch functions, modules and transforms as operators of a pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal

import torch

import torchdali
from torchdali import ops

__all__ = ["TorchPythonFunction", "as_operator"]

_serial = itertools.count()


class TorchPythonFunction(ops.TorchPythonFunction):
    """Call a function on torch tensors, sample by sample unless told otherwise.

    Args:
        function: Takes one tensor per input, or with `batch_processing` one list of tensors; returns `num_outputs`
            results.
        num_outputs: 0 for a function that is called for its effect.
        device: Where it runs.
        batch_processing: Call it once a batch.
        kwargs: Arguments of any operator.
    """

    device = "cpu"
    preserve = True
    schema_name = "TorchPythonFunction"

    def __init__(
        self,
        function: Callable[..., Any],
        num_outputs: int = 1,
        device: Literal["cpu", "gpu"] = "cpu",
        batch_processing: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            function=function,
            num_outputs=num_outputs,
            device=device,
            batch_processing=batch_processing,
            **kwargs,
        )


def as_operator(
    function: Callable[..., Any], *, output_layout: str | None = None, pure: bool = False
) -> Callable[..., Any]:
    """Make an operator of a function of one sample: any callable, an ``nn.Module``, a torchvision transform.

    Unlike `torch_python_function` it runs inside the fused chain, on several samples at once, so it must be
    thread-safe: keep no state, and take no random numbers that have to repeat.

    Args:
        function: Takes one tensor, returns one tensor.
        output_layout: Layout of the result; the input's when None.
        pure: Worker processes may run the function: its result depends only on its argument and on `torchdali.Shared`
            values.

    Returns:
        A function of a node, a batch or a tensor.
    """

    def body(data: torch.Tensor, /) -> torch.Tensor:
        result: torch.Tensor = function(data)
        return result

    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    body.__doc__ = f"Apply {name}."
    body.__module__ = function.__module__  # the code is the user's
    layout = None if output_layout is None else lambda layouts, arguments: output_layout
    declare: Any = torchdali.operator(name=f"_{name}_{next(_serial)}", title=name, layout=layout, pure=pure)
    declared: Callable[..., Any] = declare(body)
    return declared
