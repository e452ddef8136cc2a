"""Use PyTorch functions, modules and transforms as operators of a pipeline."""

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
    """Operator that calls a function on PyTorch tensors, by default once per sample.

    Args:
        function: A function that takes one tensor per input and returns `num_outputs` results. If `batch_processing`
            is True, the function takes one list of tensors per input.
        num_outputs: Number of results; 0 for a function that returns nothing.
        device: Device of the tensors, ``"cpu"`` or ``"gpu"``.
        batch_processing: True to call the function once per batch.
        kwargs: Arguments that every operator has, like ``name``.
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
    """Create an operator from a function that processes one sample.

    Unlike `torch_python_function`, the operator calls the function in several threads at the same time, for different
    samples. The function must be thread-safe and must not have a state. Random numbers that the function draws are not
    reproducible.

    Args:
        function: A callable that takes one tensor and returns one tensor, for example an ``nn.Module`` or a torchvision
            transform.
        output_layout: Layout of the result. Default: the input's layout.
        pure: True if worker processes may call the function, because its result depends only on its argument and on
            `torchdali.Shared` values.

    Returns:
        The operator: a function that takes a node, a batch or a tensor.
    """

    def implementation(data: torch.Tensor, /) -> torch.Tensor:
        result: torch.Tensor = function(data)
        return result

    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    implementation.__doc__ = f"Apply {name}."
    implementation.__module__ = function.__module__  # the function belongs to the user's module
    layout = None if output_layout is None else lambda layouts, arguments: output_layout
    declare: Any = torchdali.operator(name=f"_{name}_{next(_serial)}", title=name, layout=layout, pure=pure)
    declared: Callable[..., Any] = declare(implementation)
    return declared
