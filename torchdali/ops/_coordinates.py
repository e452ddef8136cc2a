"""Operators on points and boxes: affine maps, flips and rotations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    Arguments,
    BatchOutput,
    Column,
    DType,
    InputConstraints,
    ListOrMatrix,
    PerFrame,
    PerSample,
    one_of,
    per_sample,
)
from torchdali.errors import batch_level
from torchdali.kernels.convert import convert
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.memory import Array, is_array
from torchdali.kernels.warp import affine
from torchdali.kernels.window import round_half_away_number
from torchdali.ops._rows import BatchRows, column, count_remaining, rows_of, width_of
from torchdali.tensors import TensorList

__all__ = ["bb_flip", "bbox_rotate", "coord_flip", "coord_transform"]

_BOX_MODES = ("expand", "halfway", "fixed")
_BOX_LAYOUTS = ("xyWH", "xyXY")

_POINT_TYPES = (torch.uint8, torch.int16, torch.uint16, torch.int32, torch.float32)
Points = Annotated[Tensor, InputConstraints()]
PointsOfFrames = Annotated[Tensor, InputConstraints(repeats_samples=True)]
PointBatch = Annotated[TensorList, InputConstraints((), (torch.float32,))]

_SIZE_TYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.float32))


# ---------------------------------------------------------------- coord_transform


def _flatten(value: Any) -> tuple[float, ...] | None:
    """Flatten a number, a list or a list of rows to one tuple."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        return (float(value),)
    return tuple(n for row in value for n in (row if isinstance(row, (list, tuple)) else [row]))


@device_cache(maxsize=256)
def _build_affine(
    m: tuple[float, ...] | None, mt: tuple[float, ...] | None, t: tuple[float, ...] | None, size: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the transposed matrix and the translation vector for points with `size` coordinates."""
    arrays = (None if numbers is None else np.array([numbers], np.float32) for numbers in (m, mt, t))
    matrix, translation = (torch.from_numpy(array[0].copy()) for array in _build_matrices(*arrays, size=size))
    return matrix.to(device), translation.to(device)


def _build_matrices(m: Array | None, mt: Array | None, t: Array | None, *, size: int) -> list[Array]:
    """Return the transposed matrices and the translation vectors that the arguments M, MT and T specify.

    Args:
        m, mt, t: Values of the arguments: float32 arrays with one row per sample, or one row for all samples. None for
            an argument that the user didn't pass.
        size: Number of coordinates of a point.
    """
    if mt is not None and (m is not None or t is not None):
        raise batch_level(RuntimeError("pass either MT (matrix and translation), or M and T"))
    columns = size + (mt is not None)
    numbers = mt if mt is not None else m
    if numbers is None:
        numbers = np.ones((1, 1), np.float32)
    if numbers.shape[1] == 1:
        matrix = np.eye(size, columns, dtype=np.float32) * numbers[:, :, None]
    elif numbers.shape[1] % columns:
        raise RuntimeError(f"cannot form a matrix with {numbers.shape[1]} elements and {columns} columns")
    else:
        matrix = numbers.reshape(len(numbers), -1, columns)
    translation = np.zeros((1, 1), np.float32) if t is None else t
    translation = translation if mt is None else matrix[:, :, -1]
    if translation.shape[1] not in (1, matrix.shape[1]):
        raise RuntimeError(f"T must have {matrix.shape[1]} elements, or one for all axes, got {translation.shape[1]}")
    if translation.shape[1] < matrix.shape[1]:
        translation = np.broadcast_to(translation, (len(translation), matrix.shape[1]))
    return [matrix[:, :, :size].transpose(0, 2, 1), translation]


def _transform(
    points: Tensor,
    *,
    M: Any = None,
    MT: Any = None,
    T: Any = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    _check_points(points.dim(), points, dtype)
    for name, value, columns in (("M", M, points.shape[-1]), ("MT", MT, points.shape[-1] + 1)):
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
            _check_columns(name, len(value[0]), columns)
    matrix, translation = _build_affine(_flatten(M), _flatten(MT), _flatten(T), points.shape[-1], points.device)
    return _map_points(points, matrix, translation, dtype)


def _map_points(points: Tensor, matrix: Tensor, translation: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``points @ matrix + translation``. Matrices and translations are broadcast over the points' leading axes.

    The product is computed by `torch.bmm`, even for a single sample. `torch.mm` may round differently, and a sample's
    result would then depend on the number of samples in the call.
    """
    lead, count = points.shape[:-2], math.prod(points.shape[:-2])
    matrices = matrix.expand(*lead, -1, -1).reshape(count, *matrix.shape[-2:])
    products = torch.bmm(points.to(torch.float32).reshape(count, *points.shape[-2:]), matrices)
    return convert(products.view(*points.shape[:-1], matrix.shape[-1]).add_(translation), dtype)


def _argument_rows(name: str, value: Any, columns: int) -> Array | None:
    """Return an argument as a float32 array with one row per sample, or with one row for all samples."""
    if value is None:
        return None
    rows = value.rows(np.float32) if isinstance(value, Column) else np.array([value], np.float32)
    if rows.ndim > 2:
        _check_columns(name, rows.shape[-1], columns)
    return rows.reshape(len(rows), -1)


def _check_columns(name: str, count: int, columns: int) -> None:
    if count != columns:
        raise RuntimeError(f"{name} must be a matrix with {columns} columns for these points, got {count}")


def _check_points(ndim: int, points: Tensor, dtype: torch.dtype) -> None:
    point_type = points.dtype
    if points.numel() and point_type not in _POINT_TYPES:
        supported = ", ".join(str(kind).removeprefix("torch.") for kind in _POINT_TYPES)
        raise RuntimeError(f"coord_transform: unsupported input type: {point_type}; supported types: {supported}")
    if ndim < 2:
        raise RuntimeError("coord_transform expects an input with at least 2 dimensions")
    if dtype not in (point_type, torch.float32):
        raise RuntimeError(f"dtype must be the input's ({point_type}) or float32, got {dtype}")


@operator
def coord_transform(
    points: PointsOfFrames,
    /,
    *,
    M: PerFrame[ListOrMatrix] | None = None,
    MT: PerFrame[ListOrMatrix] | None = None,
    T: PerFrame[list[float]] | None = None,
    dtype: DType = torch.float32,
) -> Points:
    """Apply an affine map to points: ``out = M @ in + T``. The last axis contains a point's coordinates.

    Args:
        points: ``(..., N, D)``: N points with D coordinates, uint8, int16, uint16, int32 or float32. If an argument has
            one value per frame and the points have no axis of frames, the output has one set of points per frame.
        M: Matrix ``(rows, D)`` as a list of rows or as one list of all numbers in row-major order. The output points
            have ``rows`` coordinates. A single number scales all coordinates. Default: the identity.
        MT: Matrix ``(rows, D + 1)`` that contains both M and, in its last column, T.
        T: Translation: one number per output coordinate, or one number for all coordinates. Default: 0.
        dtype: Output dtype: float32, or the input's dtype (results are then rounded and saturated).

    Raises:
        RuntimeError: a matrix or ``T`` doesn't fit the points, ``MT`` is passed together with ``M`` or ``T``, or a
            dtype is not supported.
    """
    return _transform(points, M=M, MT=MT, T=T, dtype=dtype)


@chunk(coord_transform, per_sample=("M", "MT", "T"))
def _transform_batch(points: Tensor, a: Arguments) -> Tensor:
    numbers = {name: getattr(a, name) for name in ("M", "MT", "T")}
    if not any(isinstance(value, Column) for value in numbers.values()):
        return _transform(points, **numbers, dtype=a.dtype)
    _check_points(points.dim() - 1, points, a.dtype)
    size = points.shape[-1]
    widths = {"M": size, "MT": size + 1, "T": size}
    m, mt, t = (_argument_rows(name, numbers[name], width) for name, width in widths.items())
    arrays = _build_matrices(m, mt, t, size=size)
    matrix, translation = (torch.from_numpy(array.copy()).to(points.device) for array in arrays)
    singletons = [1] * (points.dim() - 3)
    matrix = matrix.view(-1, *singletons, *matrix.shape[1:])
    return _map_points(points, matrix, translation.view(-1, *singletons, 1, translation.shape[-1]), a.dtype)


# ---------------------------------------------------------------- flips


def _mirror_table(axes: Mapping[str, tuple[Any, Any]], names: str, size: int) -> Array:
    """Return the factors (1 or -1) and offsets that mirror coordinates: ``out = in * factor + offset``.

    Returns:
        A float32 array ``(2, rows, size)`` of the factors and the offsets, with one row per sample, or one row for all
        samples.
    """
    flipped = []
    for i, (flip, center) in enumerate(axes[name] for name in names[:size]):
        if isinstance(flip, Column) or flip:
            flipped.append((i, column(flip) != 0, 2 * column(center)))
    count = max((len(array) for _, *arrays in flipped for array in arrays), default=1)
    table = np.zeros((2, count, size), np.float32)
    table[0] = 1
    for i, flips, offsets in flipped:
        table[0, :, i : i + 1] = np.where(flips, -1, 1)
        table[1, :, i : i + 1] = np.where(flips, offsets, 0)
    return table


@operator(over="batch", separable=True)
def coord_flip(
    points: PointBatch,
    /,
    *,
    center_x: PerSample[float] = 0.5,
    center_y: PerSample[float] = 0.5,
    center_z: PerSample[float] = 0.5,
    flip_x: PerSample[int] = 1,
    flip_y: PerSample[int] = 0,
    flip_z: PerSample[int] = 0,
    layout: str = "",
) -> BatchOutput:
    """Mirror points: ``out = 2 * center - in`` for each flipped coordinate.

    Args:
        points: ``(N, D)`` float32: N points with 1 to 3 coordinates each.
        center_x: Position on the x axis around which points are mirrored.
        center_y: Position on the y axis around which points are mirrored.
        center_z: Position on the z axis around which points are mirrored.
        flip_x: Nonzero to mirror the x coordinates.
        flip_y: Nonzero to mirror the y coordinates.
        flip_z: Nonzero to mirror the z coordinates.
        layout: Order of the coordinates, for example ``"yx"``. Default: ``"x"``, ``"xy"`` or ``"xyz"``.
    """
    if not len(points):
        return points
    size = width_of(points)
    if not 1 <= size <= 3:
        raise RuntimeError(f"points must have 1 to 3 coordinates, got {size}")
    names = layout or "xyz"[:size]
    for name in "xyz"[:size]:
        if name not in names:
            raise batch_level(RuntimeError(f"dimension {name!r} not found in the layout {names!r}"))
    axes = {"x": (flip_x, center_x), "y": (flip_y, center_y), "z": (flip_z, center_z)}
    table = BatchRows(points, size)
    sign, offset = table.repeat_rows_array(_mirror_table(axes, names, size))
    if is_array(table.rows):
        result = table.rows.numpy() * sign
        result += offset
        return table.batch(torch.from_numpy(result))
    sign, offset = (torch.from_numpy(array).to(table.rows.device) for array in (sign, offset))
    return table.batch(table.rows * sign + offset)


def _flip_boxes(boxes: Tensor, mirrored: Sequence[Array], ltrb: bool) -> Tensor:
    """Return mirrored boxes ``(n, 4)``.

    Args:
        boxes: ``(n, 4)`` boxes, relative to the image.
        mirrored: Two bool arrays ``(n, 1)`` or ``(1, 1)``. The first is True for boxes that are mirrored along x, the
            second for boxes that are mirrored along y.
        ltrb: True if boxes consist of left, top, right and bottom; False for x, y, width and height.
    """
    columns = list(boxes.split(1, 1))
    for axis, where in enumerate(torch.from_numpy(array).to(boxes.device) for array in mirrored):
        low, high = columns[axis], columns[axis + 2]
        if ltrb:  # the mirrored right end is the new left end
            columns[axis], columns[axis + 2] = torch.where(where, 1 - high, low), torch.where(where, 1 - low, high)
        else:
            columns[axis] = torch.where(where, 1 - (low + high), low)
    return torch.cat(columns, 1)


def _flip_array(boxes: Array, mirrored: Sequence[Array], ltrb: bool) -> Array:
    """Mirror boxes like `_flip_boxes`, but with NumPy.

    This function is several times faster, because it computes only the mirrored coordinates.
    """
    result = boxes.copy()
    with np.errstate(all="ignore"):  # boxes may contain infinite numbers
        for axis, where in enumerate(mirrored):
            low, high = boxes[:, axis : axis + 1], boxes[:, axis + 2 : axis + 3]
            np.subtract(1, high if ltrb else low + high, out=result[:, axis : axis + 1], where=where)
            if ltrb:
                np.subtract(1, low, out=result[:, axis + 2 : axis + 3], where=where)
    return result


@operator(over="batch", separable=True)
def bb_flip(
    boxes: PointBatch,
    /,
    *,
    horizontal: PerSample[int] = 1,
    ltrb: bool = False,
    vertical: PerSample[int] = 0,
) -> BatchOutput:
    """Flip boxes in the same way as the image that contains them.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        horizontal: Nonzero to swap left and right.
        ltrb: True if boxes consist of left, top, right and bottom, instead of x, y, width and height.
        vertical: Nonzero to swap top and bottom.
    """
    if not len(boxes):
        return boxes
    table = BatchRows(boxes, 4)
    mirrored = [table.repeat_rows_array(column(value) != 0) for value in (horizontal, vertical)]
    if is_array(table.rows):
        return table.batch(torch.from_numpy(_flip_array(table.rows.numpy(), mirrored, ltrb)))
    return table.batch(_flip_boxes(table.rows, mirrored, ltrb))


# ---------------------------------------------------------------- bbox_rotate

BoxBatch = Annotated[TensorList, InputConstraints((), (torch.float32,))]
LabelBatch = Annotated[TensorList, InputConstraints((), (torch.int32,))]


def _keep_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    return layouts


@operator(
    over="batch", separable=True, devices=("cpu",), layout=_keep_layouts,
    outputs=lambda arguments: 2 if arguments["inputs"] == 2 else None,
)  # fmt: skip
def bbox_rotate(
    boxes: BoxBatch,
    labels: LabelBatch | None = None,
    /,
    *,
    angle: PerSample[float],
    bbox_layout: Annotated[str, one_of(_BOX_LAYOUTS)] = "xyXY",
    bbox_normalized: bool = True,
    input_shape: PerSample[list[int]],
    keep_size: bool = False,
    mode: Annotated[str, one_of(_BOX_MODES)] = "expand",
    remove_threshold: float = 0.1,
    shape_layout: str = "HW",
    size: PerSample[list[float]] = [],  # noqa: B006  never changed
) -> BatchOutput | tuple[BatchOutput, ...]:
    """Rotate boxes in the same way as `rotate` rotates the image that contains them.

    The canvas is the area of the image that `rotate` returns. The rotated boxes are clipped to the canvas.

    Args:
        boxes: ``(N, 4)`` float32.
        labels: ``(N,)`` or ``(N, 1)`` int32, one label per box. If a box is removed, its label is removed too.
        angle: Angle in degrees, counterclockwise.
        bbox_layout: ``"xyXY"`` for boxes of two corners, ``"xyWH"`` for boxes of a corner, width and height.
        bbox_normalized: True if input boxes are relative to the image and output boxes are relative to the canvas;
            False if all boxes are in pixels.
        input_shape: Shape of the image in pixels, in the order of ``shape_layout``.
        keep_size: True to use a canvas of the image's size; by default, the canvas grows as in `rotate`.
        mode: ``"expand"`` returns the smallest box that contains the whole rotated box. ``"fixed"`` keeps the box's
            width and height, but swaps width and height if the rotated horizontal sides are closer to vertical than to
            horizontal. ``"halfway"`` returns a box whose width and height are the means of the results of the two other
            modes.
        remove_threshold: Minimum share of a box's area that must be on the canvas, at least 0 and below 1. Boxes with a
            smaller share are removed.
        shape_layout: Layout of ``input_shape``; it must contain H and W.
        size: Height and width of the canvas in pixels; by default, ``keep_size`` determines the canvas.

    Raises:
        RuntimeError: the layout or the mode is unknown, a shape is invalid, or ``keep_size`` is passed together with
            ``size``.
    """
    _check_boxes(mode, bbox_layout, remove_threshold)
    if keep_size and size:
        raise batch_level(RuntimeError("keep_size and size cannot be used together"))
    if not len(boxes):
        return [] if labels is None else ([], [])
    rows, counts = rows_of(boxes)
    _check_size_type(size)
    columns = (per_sample(v, len(counts)) for v in (angle, input_shape, size))
    rotations = [_rotation_row(a, shape, s, shape_layout, keep_size) for a, shape, s in zip(*columns, strict=True)]
    table = torch.from_numpy(np.array(rotations, np.float32).repeat(counts, 0))
    result, keep = _rotate_boxes(rows, table, mode, bbox_layout == "xyWH", bbox_normalized, remove_threshold)
    results = [(result, boxes.layout())]
    if labels is not None:
        results.append((_concat_labels(labels, counts), labels.layout()))
    if not bool(keep.all()):
        counts = count_remaining(keep.numpy(), counts)
        results = [(values[keep], layout) for values, layout in results]
    batches = [TensorList.from_rows(values, counts, layout) for values, layout in results]
    return batches[0] if labels is None else tuple(batches)


def _check_size_type(size: Any) -> None:
    """Raise an error if the dtype of per-sample canvas sizes isn't supported. DALI supports the same dtypes."""
    kind = size.dtype if isinstance(size, Column) else None
    if kind is not None and kind not in _SIZE_TYPES:
        raise batch_level(RuntimeError(f"size must be int32, int64, uint32 or float32, got {kind}"))


def _concat_labels(labels: TensorList, box_counts: Sequence[int]) -> Tensor:
    """Return the labels of all samples in one tensor, after checking that each sample has one label per box.

    Args:
        box_counts: Number of boxes of each sample.
    """
    for shape in labels.shape():
        if len(shape) > 2 or tuple(shape[1:]) not in ((), (1,)):
            raise RuntimeError(f"labels must have the shape [N] or [N, 1], got {tuple(shape)}")
    rows, counts = rows_of(labels)
    for i, (label_count, count) in enumerate(zip(counts, box_counts, strict=True)):
        if label_count != count:
            raise RuntimeError(
                f"labels must have one value per box, got {count} boxes and {label_count} labels in sample {i}"
            )
    return rows


def _rotation_row(
    angle: float, shape: Sequence[int], size: Sequence[float], layout: str, keep_size: bool
) -> tuple[float, ...]:
    """Return a sample's rotation: cosine, sine, the image's width and height, the canvas's width and height."""
    height, width = _image_size(shape, layout)
    rotation = affine.rotation(angle)
    canvas: Sequence[float] = (height, width)
    if size:
        if len(size) != 2:
            raise RuntimeError(f"size must be a height and a width, got {size}")
        canvas = [round_half_away_number(v) for v in size]
    elif not keep_size:
        canvas = affine.rotated_size(rotation, (height, width))
    return (*rotation[0], float(width), float(height), float(canvas[1]), float(canvas[0]))


def _check_boxes(mode: str, layout: str, threshold: float) -> None:
    if mode not in _BOX_MODES:
        wrong = f"unknown mode: {mode}; supported modes are: expand, halfway, fixed"
    elif layout not in _BOX_LAYOUTS:
        wrong = f"unknown bbox_layout: {layout}; supported layouts are: xyWH, xyXY"
    elif not 0 <= threshold < 1:
        wrong = f"remove_threshold must be in [0, 1), got {threshold}"
    else:
        return
    raise batch_level(RuntimeError(wrong))


def _image_size(shape: Sequence[int], layout: str) -> tuple[int, int]:
    if "H" not in layout or "W" not in layout or max(map(layout.index, "HW")) >= len(shape):
        raise RuntimeError(f"input_shape must have the axes H and W of shape_layout {layout!r}, got {list(shape)}")
    return int(shape[layout.index("H")]), int(shape[layout.index("W")])


def _rotate_boxes(
    boxes: Tensor, rotations: Tensor, mode: str, sized: bool, normalized: bool, threshold: float
) -> tuple[Tensor, Tensor]:
    """Return the rotated boxes, clipped to the canvas, and a bool tensor that is True for boxes to keep.

    Args:
        boxes: ``(n, 4)`` boxes of all samples.
        rotations: ``(n, 6)``: for each box, the values that `_rotation_row` returns for its sample.
        sized: True if boxes have a width and a height; False if they have two corners.
        normalized: True if boxes are relative to the image.
        threshold: Minimum share of a box's area that must be on the canvas to keep the box.
    """
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise RuntimeError(f"boxes must have the shape (N, 4) in each sample, got {(*boxes.shape[1:],)}")
    cos, sin, image, canvas = rotations[:, :1], rotations[:, 1:2], rotations[:, 2:4], rotations[:, 4:]
    scale = image if normalized else torch.ones_like(image)
    low, high = boxes[:, :2] * scale, boxes[:, 2:] * scale
    extent = high if sized else high - low
    center = low + extent / 2 - image / 2
    x, y = center[:, :1], center[:, 1:]
    rotated_center = torch.cat([cos * x + sin * y, cos * y - sin * x], 1) + canvas / 2
    half_extent = _rotated_extent(extent, cos.abs(), sin.abs(), mode) / 2
    corners = torch.stack([rotated_center - half_extent, rotated_center + half_extent])
    clipped = corners.clamp(min=0).minimum(canvas)
    before, after = corners[1] - corners[0], clipped[1] - clipped[0]
    keep = after.prod(1) / before.prod(1) >= threshold
    if normalized:
        clipped, after = clipped / canvas, after / canvas
    return torch.cat([clipped[0], after if sized else clipped[1]], 1), keep


def _rotated_extent(extent: Tensor, cos: Tensor, sin: Tensor, mode: str) -> Tensor:
    """Return the widths and heights of rotated boxes."""
    swapped = extent.flip(1)
    expanded = extent * cos + swapped * sin
    if mode == "expand":
        return expanded
    fixed = torch.where(sin > cos, swapped, extent)
    return fixed if mode == "fixed" else (expanded + fixed) / 2
