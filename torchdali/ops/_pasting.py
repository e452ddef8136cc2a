"""Regions of images pasted on canvases, for a batch at once: the usual case of `multi_paste`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.arrays import Array
from torchdali.kernels.pasting import covered, regions
from torchdali.ops._arrays import arrays_of
from torchdali.schema import Column
from torchdali.tensors import TensorList

__all__ = ["Places", "pasted"]

Places = Mapping[str, "tuple[Any, bool] | None"]
"""Values of anchors in the images and on the canvases, and of extents, and whether they are relative."""

_WHOLE = 1 << 18  # bytes of a canvas, up to which those of a batch are one tensor


def pasted(
    inputs: Sequence[TensorList], dtype: torch.dtype | None, places: Places, ids: Any, size: Any
) -> Tensor | list[Tensor] | None:
    """Paste by NumPy, where each sample has as many regions; see `multi_paste`.

    Args:
        ids: The sample of each region; None for one region of each input.
        size: Of the canvases; that of the images when None.

    Returns:
        The canvases; None where that does not work, or something is wrong.
    """
    columns = [arrays_of(each) for each in inputs]
    kind = inputs[0].torch_dtype
    if not len(inputs[0]) or None in columns or kind is None or dtype not in (None, kind):
        return None
    arrays = [array for column in columns for array in column or ()]
    if len({(array.dtype, array.shape[:-3], array.shape[-1:]) for array in arrays}) > 1:
        return None
    try:
        chosen, found, sizes = _planned(arrays, len(inputs[0]), places, ids, size)
    except (TypeError, ValueError, IndexError):
        return None
    head, tail = arrays[0].shape[:-3], arrays[0].shape[-1:]
    made, canvases = _empty([(*head, *extents, *tail) for extents in sizes.tolist()], kind)
    is_full = covered(found, sizes)
    for canvas, full, ids_, rows in zip(
        canvases, is_full.tolist(), chosen.tolist(), found.tolist(), strict=True
    ):
        if not full:
            canvas.fill(0)
        for k, (y, x, v, u, h, w) in zip(ids_, rows, strict=True):
            canvas[..., v : v + h, u : u + w, :] = arrays[k][..., y : y + h, x : x + w, :]
    return made


def _planned(
    arrays: Sequence[Array], count: int, places: Places, ids: Any, size: Any
) -> tuple[Array, Array, Array]:
    """Return the image of each region, where the regions lie, and the extents of the canvases.

    Raises:
        ValueError: the samples differ in how much they are given, or something is wrong.
    """
    chosen = np.arange(len(arrays)).reshape(-1, count).T if ids is None else _table(ids, 2)
    chosen = np.broadcast_to(chosen, (count, chosen.shape[1])).astype(np.int64)
    if chosen.min(initial=0) < 0:
        raise ValueError("no such sample")
    inside = np.array([array.shape[-3:-1] for array in arrays])[chosen]
    sizes = inside[:, 0] if size is None else _table(size, 2, 2).astype(np.int64)
    if size is None and (inside != inside[:, :1]).any():
        raise ValueError("images of several sizes")
    sizes = np.broadcast_to(sizes, (count, 2))
    given = {
        name: None if place is None else (_each(_table(place[0], 3, 2), inside.shape[1]), place[1])
        for name, place in places.items()
    }
    return chosen, regions(**given, inside=inside, outside=sizes), sizes


def _table(value: Any, ndim: int, last: int = 0) -> Array:
    """Return an argument as a row a sample, or one for all; one number stands for all of a sample's."""
    rows = np.array(value if isinstance(value, Column) else [value], np.float64)
    if rows.ndim == 1 and not (last and ndim == 2):
        return rows.reshape(-1, *[1] * (ndim - 1))
    if rows.ndim != ndim or last not in (0, rows.shape[-1]):
        raise ValueError(f"not {ndim} axes, or not {last} numbers")
    return rows


def _each(table: Array, count: int) -> Array:
    """Return the values of so many regions."""
    if table.shape[1] < count and table.shape[2] > 1:
        raise ValueError("more regions than values")
    return table[:, :count]


def _empty(
    shapes: Sequence[tuple[int, ...]], dtype: torch.dtype
) -> tuple[Tensor | list[Tensor], Sequence[Array]]:
    """Return canvases, as tensors and as arrays; several tensors where large ones can use freed memory."""
    if len(set(shapes)) == 1 and math.prod(shapes[0]) * dtype.itemsize <= _WHOLE:
        whole = torch.empty((len(shapes), *shapes[0]), dtype=dtype)
        return whole, list(whole.numpy())
    made = [torch.empty(shape, dtype=dtype) for shape in shapes]
    return made, [each.numpy() for each in made]
