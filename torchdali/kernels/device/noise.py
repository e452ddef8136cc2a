"""Put noise on a batch of images of any sizes, on an accelerator, in one launch.

Every number is a function of the sample's key and its place (`rng`), so they are those of the CPU.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.memory import Array
from torchdali.rng import generator_of, normals

__all__ = ["COLUMNS", "add_normal", "replace_pixels"]

COLUMNS = ("offset", "size", "result", "key 0", "key 1", "number 0", "number 1", "light", "dark")
"""Of the table: where an image starts, in elements, how many there are, where the result goes, the key of its random
numbers; standard deviation and mean, or the shares of all and of light spots, and the values of these."""


def add_normal(flat: Tensor, offsets: Array, sizes: Array, keys: Array, deviations: Array, means: Array) -> Tensor:
    """Add normally distributed numbers.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        sizes: Elements of each.
        keys: ``(2, N)`` uint64, of the random numbers of each.
        deviations: Standard deviation of each.
        means: Of each.

    Returns:
        The elements of all results, one after the other: uint8, rounded half up, and saturated.
    """
    rows = _rows(offsets, sizes, keys, bits(deviations), bits(means), 0, 0)
    result: Tensor = torch.ops.torchdali.add_normal_batch(
        flat, upload(rows, flat.device), int(sizes.sum()), int(sizes.max())
    )
    return result


def replace_pixels(
    flat: Tensor, offsets: Array, sizes: Array, keys: Array, shares: Array, ends: Array, step: int
) -> Tensor:
    """Replace random pixels by a light or a dark value.

    Args:
        flat: As above.
        offsets: As above.
        sizes: As above.
        keys: As above.
        shares: ``(2, N)``: of pixels that are replaced, and by the light value.
        ends: ``(2, N)``: the light and the dark value, 0 to 255.
        step: Elements that are replaced together.

    Returns:
        The elements of all results, one after the other.
    """
    rows = _rows(offsets, sizes, keys, *map(bits, shares), *ends)
    result: Tensor = torch.ops.torchdali.replace_pixels_batch(
        flat, upload(rows, flat.device), int(sizes.sum()), int(sizes.max()), step
    )
    return result


def _rows(offsets: Array, sizes: Array, keys: Array, *rest: Array | int) -> Array:
    return table([offsets, sizes, np.cumsum(sizes) - sizes, *keys.view(np.int64), *rest])


@define("add_normal")
def normal_in_torch(flat: Tensor, samples: Tensor, results: int, longest: int) -> Tensor:
    """Do `add_normal` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for row in samples.numpy():
        start, size, result = row[:3].tolist()
        deviation, mean = floats(row[5:7]).tolist()
        noise = torch.from_numpy(normals(generator_of(row[3:5].view(np.uint64)), (size,)))
        noise = noise.mul_(deviation).add_(flat[start : start + size]).add_(mean)
        out[result : result + size] = noise.add_(0.5).clamp_(0.0, 255.0)
    return out


@define("replace_pixels")
def replace_in_torch(flat: Tensor, samples: Tensor, results: int, longest: int, step: int) -> Tensor:
    """Do `replace_pixels` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for row in samples.numpy():
        start, size, result = row[:3].tolist()
        share, light_share = floats(row[5:7])
        draws = generator_of(row[3:5].view(np.uint64)).random(size // step, dtype=np.float32)
        values = flat[start : start + size].numpy().reshape(-1, step)
        pixels = np.where((draws < light_share)[:, None], *row[7:9].astype(np.uint8))
        pixels = np.where((draws < share)[:, None], pixels, values)
        out[result : result + size] = torch.from_numpy(pixels.reshape(-1))
    return out
