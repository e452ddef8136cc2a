"""Text for tensors and batches. The values of large tensors and batches are abbreviated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from torchdali.tensors.dtypes import DALIDataType, from_torch_dtype

_EDGE = 2  # number of samples, or of elements of an axis, that are shown at the start and end of long data
_MANY_ELEMENTS = 1000
_MANY_SHAPES = 16


def listing(kind: str, entries: Sequence[str]) -> str:
    """Return ``kind(entry, ...)`` with one entry per line; empty entries are omitted."""
    return f"{kind}(\n    " + ",\n    ".join(filter(None, entries)) + ")"


def attributes(dtype: torch.dtype | None, layout: str, device: str) -> list[str]:
    """Return the entries of `listing` that tensors and batches have in common."""
    return [
        f"dtype={dtype_name(dtype)}",
        f'layout="{layout}"' if layout else "",
        f'device="{device}"',
    ]


def dtype_name(dtype: torch.dtype | None) -> str:
    """Return DALI's name of a dtype. If DALI doesn't have the dtype, return torch's name."""
    try:
        return str(DALIDataType.NO_TYPE if dtype is None else from_torch_dtype(dtype))
    except TypeError:  # the user's function may return dtypes that DALI doesn't have
        return str(dtype)


def format_shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return the shapes of a batch's samples as text; of many shapes, only the first and last."""
    texts = [str(shape) for shape in shapes]
    if len(texts) > _MANY_SHAPES:
        texts = [*texts[:_EDGE], "...", *texts[-_EDGE:]]
    return f"[{', '.join(texts)}]"


def format_values(tensor: torch.Tensor, margin: int = 4) -> str:
    """Return the values of a tensor as text. Each line after the first is indented by `margin` spaces."""
    tensor = tensor.detach().cpu()
    array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return np.array2string(array, prefix=" " * margin, threshold=_MANY_ELEMENTS, edgeitems=_EDGE)


def batch_values(samples: Sequence[torch.Tensor], ndim: int) -> str:
    """Return the values of a batch as text; of many samples, only the first and last."""
    is_long = sum(sample.numel() for sample in samples) > _MANY_ELEMENTS
    if is_long and len(samples) > 2 * _EDGE + 1:
        ends = [format_values(sample, 5) for sample in (*samples[:_EDGE], *samples[-_EDGE:])]
        texts = [*ends[:_EDGE], "...", *ends[_EDGE:]]
    else:
        texts = [format_values(sample, 5) for sample in samples]
    separator = ",\n" + "\n" * (ndim - 1) + " " * 5 if ndim else ", "
    return f"[{separator.join(texts)}]"
