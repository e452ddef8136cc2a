"""Convert tensors and batches of the dynamic mode to text."""

from __future__ import annotations

import torch

from torchdali.experimental.dynamic._dtypes import from_torch
from torchdali.tensors import TensorList
from torchdali.tensors._printing import batch_values, format_shapes, format_values, listing

__all__ = ["text_of_batch", "text_of_tensor"]


def text_of_tensor(sample: torch.Tensor, layout: str | None, device: str) -> str:
    """Return a text with a tensor's values, dtype, layout, device and shape."""
    common = _common(sample.dtype, layout, device)
    return listing("Tensor", [format_values(sample), *common, f"shape={tuple(sample.shape)}"])


def text_of_batch(values: TensorList, device: str) -> str:
    """Return a text with a batch's values, dtype, layout, device and shapes."""
    shapes = values.shape()
    dtype = values.torch_dtype
    assert dtype is not None
    numbers = batch_values(values.samples(), values.ndim()) if shapes else "[]"
    common = _common(dtype, values.layout() or None, device)
    return listing("Batch", [numbers, *common, f"num_samples={len(shapes)}", f"shape={format_shapes(shapes)}"])


def _common(dtype: torch.dtype, layout: str | None, device: str) -> list[str]:
    return [
        f"dtype={from_torch(dtype)}",
        f'layout="{layout}"' if layout else "",
        f'device="{device}"',
    ]
