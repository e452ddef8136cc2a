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
    """Call a function on PyTorch tensors, by default sample by sample.

    Args:
        function: A function with one tensor per input, or one list of tensors per input with `batch_processing`. It
            returns `num_outputs` results.
        num_outputs: Number of results; 0 for a function that is called for its effect.
        device: Device of the tensors.
        batch_processing: Call the function once per batch.
        kwargs: Common arguments of operators.
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
    """Create an operator from a function of one sample: any callable, an ``nn.Module``, a torchvision transform.

    Unlike `torch_python_function`, the operator runs inside the fused chain, on several samples at the same time. So
    the function must be thread-safe: it must not have a state, and its random numbers are not reproducible.

    Args:
        function: A function from one tensor to one tensor.
        output_layout: Layout of the result; the input's layout if None.
        pure: Worker processes may run the function: its result depends only on its argument and on `torchdali.Shared`
            values.

    Returns:
        A function whose argument is a node, a batch or a tensor.
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
