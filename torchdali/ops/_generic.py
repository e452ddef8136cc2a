"""Operators on any data: constants, conversion, copies."""

from __future__ import annotations

from typing import Any

import torch

from torchdali.operator import operator
from torchdali.schema import BatchSize, Data, DType


def _given(layouts: tuple[str, ...], arguments: Any) -> str:
    return str(arguments["layout"] or "")


@operator(over="batch", layout=lambda layouts, arguments: arguments["layout"] or "")
def constant(
    *,
    dtype: DType | None = None,
    fdata: list[float] | None = None,
    idata: list[int] | None = None,
    layout: str | None = None,
    shape: list[int] | None = None,
    size: BatchSize,
) -> Data:
    """Return the same data for every sample.

    Args:
        dtype: float32 for ``fdata``, int32 for ``idata`` when None.
        fdata: Floating values, in row-major order.
        idata: Integer values.
        layout: Of the output.
        shape: Of a sample; 1D when None.
    """
    values = fdata if fdata is not None else idata
    if values is None:
        raise RuntimeError("constant: give fdata or idata")
    kind = dtype or (torch.float32 if fdata is not None else torch.int32)
    tensor = torch.tensor(values, dtype=kind)
    tensor = tensor if shape is None else tensor.reshape(shape)
    return tensor.expand(size, *tensor.shape)
