"""Warp a batch of images of any sizes by an affine map each, on an accelerator, in one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.warp.affine import warp_affine

__all__ = ["COLUMNS", "warp_batch"]

COLUMNS = (
    "offset", "height", "width", "result", "out_height", "out_width", *[f"number {i}" for i in range(6)],
)  # fmt: skip
"""Of the table: where an image starts, in elements, its extents, where the result goes and its extents, and the matrix,
row by row."""

Array = npt.NDArray[Any]


def warp_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, matrices: Array, sizes: Array, linear: bool,
    fill: float | None,
) -> Tensor:  # fmt: skip
    """Sample images where affine maps take the pixels of the outputs: ``out(p) = in(M p)``.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        matrices: ``(N, 2, 3)``, from positions of the output to those of the input, x first.
        sizes: ``(2, N)``: heights and widths of the outputs.
        linear: Interpolate linearly; otherwise take the pixel that a position is in.
        fill: Value of everything outside, 0 to 255; None repeats the edge.

    Returns:
        The elements of all outputs, one after the other: uint8, rounded half up.
    """
    counts = sizes.prod(0) * channels
    numbers = bits(matrices.reshape(len(offsets), 6)).T
    rows = table([offsets, *sides, np.cumsum(counts) - counts, *sizes, *numbers])
    made: Tensor = torch.ops.torchdali.warp_batch(
        flat, upload(rows, flat.device), int(counts.sum()), int(counts.max()), channels, linear,
        fill is not None, fill or 0.0,
    )  # fmt: skip
    return made


def warp_in_torch(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, linear: bool, filled: bool, fill: float
) -> Tensor:  # fmt: skip
    """Do `warp_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for row in samples.numpy():
        start, h, w, result, *size = row[:6].tolist()
        image = flat[start : start + h * w * channels].view(h, w, channels)
        matrix = floats(row[6:]).reshape(2, 3).tolist()
        place = out[result : result + size[0] * size[1] * channels].view(*size, channels)
        value = fill if filled else None
        place.copy_(warp_affine(image, matrix, size, linear=linear, fill=value, usual=False))
    return out


define(
    "warp_batch(Tensor flat, Tensor samples, int results, int largest, int channels, bool linear, bool filled, "
    "float fill) -> Tensor",
    warp_in_torch,
)
