"""Warp a batch of images of any sizes on an accelerator, in one kernel launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.memory import Array
from torchdali.kernels.warp.affine import warp_affine
from torchdali.kernels.warp.perspective import perspective_positions, sample_at

__all__ = ["BORDERS", "COLUMNS", "MODES", "warp_batch"]

COLUMNS = (
    "offset", "height", "width", "result", "out_height", "out_width", *[f"number {i}" for i in range(9)],
)  # fmt: skip
"""Columns of the kernel's table, which has one row per image. The columns are the image's offset in elements and its
extents, the output's offset and extents, and the matrix, row by row. One more column per channel follows, with the fill
value."""

BORDERS = ("reflect_101", "reflect", "replicate", "wrap", "constant")
MODES = ("nearest", "bilinear", "bicubic")


def warp_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, matrices: Array, sizes: Array, mode: str, border: str,
    fill: Sequence[float], dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Warp images by maps from output positions to input positions: ``out(p) = in(M p)``.

    Args:
        flat, offsets, sides, channels: See `kernels.device.resize.resize_batch`.
        matrices: One matrix per image, for coordinates in the order (x, y). For affine maps, the shape is
            ``(N, 2, 3)``, and the center of the first pixel is (0.5, 0.5). For perspective maps, the shape is
            ``(N, 3, 3)``, and the center of the first pixel is (0, 0).
        sizes: Heights and widths ``(2, N)`` of the outputs.
        mode: One of `MODES`. Affine maps don't support "bicubic".
        border: One of `BORDERS`. Affine maps support only "constant" and "replicate".
        fill: Value outside of the image for the border mode "constant": one value, or one value per channel.
        dtype: Dtype of the outputs, float32 or uint8. For uint8, values are rounded to the nearest integer (for example
            2.5 to 3) and saturated.

    Returns:
        The concatenated elements of all outputs.
    """
    numbers, counts = matrices.reshape(len(offsets), -1).T, sizes.prod(0) * channels
    parameters = np.zeros((9 + channels, len(offsets)))
    parameters[: len(numbers)] = numbers
    parameters[9:] = np.array(fill)[:, None]
    rows = table([offsets, *sides, np.cumsum(counts) - counts, *sizes, *bits(parameters)])
    result: Tensor = torch.ops.torchdali.warp_batch(
        flat, upload(rows, flat.device), int(counts.sum()), int(counts.max()), channels, matrices.shape[1] == 3,
        MODES.index(mode), BORDERS.index(border), dtype == torch.uint8,
    )  # fmt: skip
    return result


@define("warp")
def warp_in_torch(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, projective: bool, mode: int, border: int,
    as_bytes: bool,
) -> Tensor:  # fmt: skip
    """Warp a batch on the CPU. This is the reference implementation for the device's kernel."""
    out = torch.empty(results, dtype=torch.uint8 if as_bytes else torch.float32)
    for row in samples.numpy():
        start, h, w, result, *size = row[:6].tolist()
        image = flat[start : start + h * w * channels].view(h, w, channels)
        matrix = floats(row[6:15]).reshape(3, 3).tolist()
        fill = floats(row[15:]).tolist()
        target = out[result : result + size[0] * size[1] * channels].view(*size, channels)
        if projective:
            positions = perspective_positions(matrix, size[0], size[1], flat.device)
            pixels = sample_at(image, positions, mode=MODES[mode], border=BORDERS[border], fill=fill)
        else:
            value = fill[0] if BORDERS[border] == "constant" else None
            pixels = warp_affine(
                image, matrix[:2], size, linear=mode > 0, fill=value, dtype=out.dtype, use_opencv=False
            )
        target.copy_(pixels)
    return out
