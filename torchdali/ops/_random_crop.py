"""Operators that choose windows of random crops, which `slice` or a decoder then cuts out."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Column, Data, InputConstraints, PerSample
from torchdali.errors import batch_level
from torchdali.kernels.memory import Array
from torchdali.kernels.random_window import random_windows
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["random_crop_generator", "roi_random_crop"]


_SHAPE_TYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
)


@operator(over="batch", separable=True, layout="")
def random_crop_generator(
    shape: Annotated[TensorList, InputConstraints(dtypes=_SHAPE_TYPES)],
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    rng: BatchRng,
) -> tuple[Data, Data]:
    """Choose a window of random area and aspect ratio.

    Each attempt draws an area uniformly and an aspect ratio uniformly on a logarithmic scale. The result is the first
    window that fits into the image. If no window fits, the operator chooses the allowed aspect ratio that is nearest to
    the image's aspect ratio, and the largest allowed area that fits. The position of the window is also random.

    Args:
        shape: Shape of the image, as integers: ``(H, W)`` or ``(H, W, C)``.
        num_attempts: Maximum number of attempts. By default 10.
        random_area: Smallest and largest area of the window as fractions of the image's area, or one value for both. By
            default ``[0.08, 1]``.
        random_aspect_ratio: Smallest and largest ratio of the window's width to its height, or one value for both. By
            default ``[3/4, 4/3]``.

    Returns:
        Two outputs, int32: the window's start ``(y, x)`` and its shape ``(H, W)``, in pixels.

    Raises:
        RuntimeError: the input isn't the shape of an image, or a range is empty.
    """
    if len(shape) and shape.torch_dtype not in _SHAPE_TYPES:
        raise RuntimeError(f"the shape of an image must be integers, got {shape.dtype}")
    sides, size = _read_sides(shape), len(shape)
    if is_empty := bool(size and sides.min() <= 0):
        empty = (sides <= 0).any(0)
        sides = np.where(empty, 1, sides)
    windows = np.empty((2, size, 2), np.int32)
    draws = rng.uniform(2 + 2 * num_attempts)
    try:
        windows[0].T[:], windows[1].T[:] = random_windows(draws, sides, num_attempts, random_area, random_aspect_ratio)
    except RuntimeError as error:  # raised for invalid ranges
        batch_level(error)
        raise
    if is_empty:
        windows[:, empty] = 0
    return torch.from_numpy(windows[0]), torch.from_numpy(windows[1])


def _read_sides(shape: TensorList) -> Array:
    """Return height and width of each image, ``(2, batch)``."""
    dense = shape.dense()
    for extents in shape.shape() if dense is None else [dense.shape[1:]]:
        if len(extents) != 1 or extents[0] not in (2, 3):
            raise RuntimeError(f"the shape of an image must have 2 or 3 values (HW or HWC), got {list(extents)}")
    if dense is not None:
        sides: Array = dense.cpu().numpy()[:, :2].T.astype(np.int64)
        return sides
    rows = [extents[:2] for extents in shape.tolist()]
    return np.array(rows, np.int64).reshape(-1, 2).T


@operator(over="batch", separable=True, layout="")
def roi_random_crop(
    data: Annotated[TensorList, InputConstraints()] | None = None,
    /,
    *,
    crop_shape: PerSample[list[int]],
    in_shape: PerSample[list[int]] | None = None,
    roi_end: PerSample[list[int]] | None = None,
    roi_shape: PerSample[list[int]] | None = None,
    roi_start: PerSample[list[int]],
    rng: BatchRng,
) -> Data:
    """Choose a random position of a window that overlaps a region of interest as much as possible.

    On each axis, a window that is smaller than the region is inside the region. A window that is larger than the region
    contains the region. If ``data`` or ``in_shape`` is passed, the window is also inside the data.

    Args:
        data: Data from which the window is going to be cut; only its shape is used. Optional.
        crop_shape: Shape of the window: one value per axis.
        in_shape: Shape of the data, instead of the input ``data``. If neither is passed, the window may be outside the
            data.
        roi_end: Exclusive end of the region: one value per axis.
        roi_shape: Shape of the region, instead of ``roi_end``.
        roi_start: Start of the region: one value per axis.

    Returns:
        Start of the window, int64: one value per axis.

    Raises:
        RuntimeError: neither or both of ``roi_end`` and ``roi_shape`` are passed, both ``in_shape`` and ``data`` are
            passed, the window is larger than the data, the region reaches outside the data, or an argument has the
            wrong number of values.
    """
    if (roi_end is None) == (roi_shape is None):
        raise batch_level(RuntimeError("either ROI end or ROI shape should be defined, but not both"))
    if data is not None and in_shape is not None:
        raise batch_level(RuntimeError("``in_shape`` argument is incompatible with providing an input."))
    window = _argument_rows(crop_shape)
    count = window.shape[1]
    begin = _argument_rows(roi_start, "roi_start", count)
    if roi_end is not None:
        end = _argument_rows(roi_end, "roi_end", count)
    else:
        end = begin + _argument_rows(roi_shape, "roi_shape", count)
    limit = None if in_shape is None else _argument_rows(in_shape, "in_shape", count)
    if data is not None:
        rows = [extents[:count] for extents in data.shape()]
        limit = np.array(rows, np.int64) if rows else np.zeros((0, count), np.int64)
    end_aligned = end - window
    low, high = np.minimum(begin, end_aligned), np.maximum(begin, end_aligned)
    is_invalid = window < 0
    if limit is not None:
        max_start = limit - window
        is_invalid = is_invalid | (max_start < 0) | (begin < 0) | (end > limit)
        low, high = np.maximum(low, 0), np.minimum(high, max_start)
    if np.count_nonzero(is_invalid):
        raise _region_error(window, begin, end, limit)
    high -= low
    high += 1
    start = (rng.uniform(count) * high).astype(np.int64)
    start += low
    return torch.from_numpy(start)


def _argument_rows(value: Any, name: str = "", count: int = 0) -> Array:
    """Return an argument as an array with one row per sample (or one row for all samples).

    Args:
        name: Name of the argument, for the error message.
        count: Number of axes; a row must have 1 or `count` values. 0 allows any number of values.
    """
    rows = value.rows(np.int64) if isinstance(value, Column) else np.array([value], np.int64)
    rows = rows.reshape(len(rows), -1)
    if count and rows.shape[1] not in (1, count):
        raise RuntimeError(f'argument "{name}" expected shape {count} but got {rows.shape[1]} values')
    return rows


def _region_error(window: Array, begin: Array, end: Array, limit: Array | None) -> RuntimeError:
    if values := _first_invalid(window < 0, window):
        return RuntimeError(f"crop shape can't be negative: {values[0]}")
    assert limit is not None
    if values := _first_invalid(limit < 0, limit):
        return RuntimeError(f"input shape can't be negative. It has an extent of {values[0]}")
    if values := _first_invalid(window > limit, window, limit):
        return RuntimeError(
            f"cropping shape can't be bigger than the input shape. It is {values[0]} of {values[1]} on one axis"
        )
    values = _first_invalid((begin < 0) | (end > limit), begin, end, limit)
    return RuntimeError(
        f"ROI can't be out of bounds. It is {values[0]}:{values[1]} of data of 0:{values[2]} on one axis"
    )


def _first_invalid(is_invalid: Array, *values: Array) -> list[int]:
    """Return each array's item at the first position where `is_invalid` is True.

    Return an empty list if `is_invalid` isn't True anywhere.
    """
    if not is_invalid.any():
        return []
    position = np.unravel_index(is_invalid.argmax(), is_invalid.shape)
    return [int(np.broadcast_to(value, is_invalid.shape)[position]) for value in values]
