"""The operator `pad`: pad samples at the ends of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, Column, InputConstraints, PerSample, per_sample
from torchdali.errors import batch_level
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.window import fill_number, fill_tensor
from torchdali.ops._arguments import as_list, axes_by_name, indices, match_axes
from torchdali.ops._arrays import arrays_of
from torchdali.ops._on_device import batch_of, images_of
from torchdali.tensors import TensorList

__all__ = ["pad"]

Batch = Annotated[TensorList, InputConstraints()]


@operator(over="batch", separable=True, marks=("levels",))
def pad(
    data: Batch,
    /,
    *,
    align: PerSample[list[int]] | None = None,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    fill_value: PerSample[float] = 0.0,
    shape: PerSample[list[int]] | None = None,
) -> BatchOutput:
    """Pad samples at the ends of their axes, to the largest extent in the batch or to a given shape.

    Args:
        data: Data of any shape and dtype.
        align: Padded extents are rounded up to multiples of this value: one value, or one per axis. By default 1.
        axes: Axes to pad. By default all axes.
        axis_names: Letters of the axes in the layout, instead of ``axes``.
        fill_value: Value of the padding. The value is converted to the dtype of the data as in C: it is truncated, and
            wraps around if it is outside the dtype's range. By default 0.
        shape: Minimum extent of each axis. If the value of an axis isn't positive, the axis is padded to its largest
            extent in the batch. By default all axes are padded to their largest extents.

    Raises:
        RuntimeError: an axis doesn't exist, both ``axes`` and ``axis_names`` are passed, ``align`` isn't positive, or
            an argument doesn't have one value per axis.
    """
    if axes is not None and axis_names is not None:
        raise batch_level(RuntimeError("axes and axis_names cannot be passed together"))
    if not len(data):
        return data
    old_shapes, ndim, count = [tuple(extents) for extents in data.shape()], data.ndim(), len(data)
    largest = list(map(max, zip(*old_shapes, strict=True)))
    by_name = None if axis_names is None else axes_by_name(axis_names, data.layout(), ndim)

    def padded_shape(extents: Sequence[int], axes: Any, shape: Any, align: Any) -> list[int]:
        axis_indices = indices(as_list(axes or []), ndim) if by_name is None else by_name
        return _padded_shape(extents, axis_indices, largest, shape, align)

    if any(isinstance(value, Column) for value in (axes, shape, align)):
        columns = [per_sample(value, count) for value in (axes, shape, align)]
        shapes = list(map(padded_shape, old_shapes, *columns))
    else:
        padded_shapes = {extents: padded_shape(extents, axes, shape, align) for extents in set(old_shapes)}
        shapes = [padded_shapes[extents] for extents in old_shapes]
    fills = per_sample(fill_value, count)
    if fills.count(fills[0]) == count:
        padded_batch = _pad_on_device(data, shapes, fills[0])
        if padded_batch is not None:
            return padded_batch
    if shapes.count(shapes[0]) < count:
        columns = [data.samples(), shapes, [(fill,) for fill in fills]]
        return [_pad_sample(*arguments) for arguments in zip(*columns, strict=True)]
    arrays = arrays_of(data)
    if arrays is None:
        return torch.stack(list(map(_pad_sample, data.samples(), shapes, [(f,) for f in fills])))
    output = torch.empty((count, *shapes[0]), dtype=data.torch_dtype)
    results = output.numpy()
    for i, (array, fill) in enumerate(zip(arrays, fills, strict=True)):
        result = results[i, ...]
        if array.shape != result.shape:
            result.fill(fill_number(fill, output.dtype))
        result[tuple(map(slice, array.shape))] = array
    return output


def _pad_on_device(data: TensorList, shapes: Sequence[Sequence[int]], fill: float) -> Tensor | TensorList | None:
    """Pad images of any sizes on a device; None if channels are added, or if there is no kernel for the images."""
    images = images_of(data, data.layout(), floats=True)
    if images is None or any(shape[2] != images.channels for shape in shapes):
        return None
    sides = np.array(shapes, np.int64)[:, :2].T
    value = fill_number(fill, images.flat.dtype)
    flat = copy_windows(*images[:4], np.zeros_like(sides), sides, value)
    padded: Tensor | TensorList = batch_of(flat, sides, images.channels)
    return padded


def _padded_shape(
    extents: Sequence[int], axes: Sequence[int], largest: Sequence[int], shape: Any, align: Any
) -> list[int]:
    """Return the shape of a padded sample.

    Args:
        extents: Shape of the sample.
        axes: Axes to pad.
        largest: Largest extents in the batch.
        shape, align: See `pad`.
    """
    minima, steps = (
        [unset] * len(axes) if value is None or value == [] else match_axes(name, value, len(axes))
        for name, value, unset in (("shape", shape, -1), ("align", align, 1))
    )
    new_shape = list(extents)
    for axis, least, step in zip(axes, minima, steps, strict=True):
        if step <= 0:
            raise RuntimeError(f"align must be positive, got {step}")
        extent = max(new_shape[axis], int(least) if least > 0 else largest[axis])
        new_shape[axis] = -(-extent // int(step)) * int(step)
    if new_shape != list(extents):
        check_pixels([new_shape[axis] for axis in axes], "the padded sample")
    return new_shape


def _pad_sample(sample: Tensor, shape: Sequence[int], fill: Sequence[float]) -> Tensor:
    if list(sample.shape) == shape:
        return sample
    out = fill_tensor(shape, fill, sample.dtype, -1, sample.device)
    out[tuple(map(slice, sample.shape))] = sample
    return out
