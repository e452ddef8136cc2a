"""Operators `transforms.rotation`, `scale`, `shear`, `translation`, `crop` and `combine`, which build affine matrices.

Matrices are tiny, so each operator computes the matrices of all samples and frames of a batch in one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, BatchSize, Column, InputConstraints, ListOrMatrix, PerFrame
from torchdali.errors import batch_level
from torchdali.tensors import TensorList

__all__ = ["combine", "crop", "rotation", "scale", "shear", "translation"]

Array = npt.NDArray[np.float64]
Matrices = Annotated[TensorList, InputConstraints((), (torch.float32,))]


def _layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0] or "**" if layouts else "**"


class _ArgumentRows:
    """Arguments and input matrices, as arrays with one row per sample or frame.

    Args:
        size: Number of samples in the batch.
        inputs: Batches of input matrices; None for an input that isn't passed.
        arguments: Value and number of axes of each argument: 0 axes for a number, 1 for a vector. Arguments with the
            value None are skipped.
    """

    def __init__(
        self,
        size: int,
        inputs: Sequence[TensorList | None],
        arguments: Mapping[str, tuple[Any, int]],
    ) -> None:
        self.size = size
        self.frames: list[int] | None = None
        read: dict[str, tuple[Array, list[int] | None]] = {
            name: self._read_argument(value, axes) for name, (value, axes) in arguments.items() if value is not None
        }
        matrices = [self._read_matrices(m) for m in inputs if m is not None]
        counts = {f"input {i}": frames for i, (_, frames) in enumerate(matrices)}
        counts |= {f"argument `{name}`": read[name][1] for name in sorted(read)}
        frame_counts = {name: frames for name, frames in counts.items() if frames is not None}
        if frame_counts:
            self.frames = next(iter(frame_counts.values()))
            _check_frames(frame_counts)
        self._values = {name: self._repeat_frames(*value) for name, value in read.items()}
        self.inputs = [self._repeat_frames(*value) for value in matrices]

    def _read_argument(self, value: Any, axes: int) -> tuple[Array, list[int] | None]:
        if not isinstance(value, Column):
            return np.asarray(value, np.float64).reshape(1, *[-1] * axes), None
        if value.per_frame:
            arrays = [np.asarray(v, np.float64) for v in value]
            rows = [array.reshape(len(array), *[-1 if array.size else 0] * axes) for array in arrays]
            return np.concatenate(rows), [len(array) for array in arrays]
        values = value.rows(np.float64)
        if not axes and values.size != len(values):
            raise RuntimeError(f"an argument must be one number per sample, got the shape {values.shape[1:]}")
        return values.reshape(len(values), *[-1 if len(values) else 1] * axes), None

    def _read_matrices(self, batch: TensorList) -> tuple[Array, list[int] | None]:
        dense = batch.dense()
        shapes: Sequence[Sequence[int]] = batch.shape() if dense is None else [dense.shape[1:]]
        if not len(batch):
            return np.zeros((0, 2, 3)), None
        shape = tuple(shapes[0][-2:])
        if any(len(s) < 2 or tuple(s[-2:]) != shape or shape[1] != shape[0] + 1 for s in shapes):
            raise RuntimeError(f"a transform must be a matrix (n, n + 1), with the same n in all samples, got {shape}")
        if len(shapes[0]) == 2:
            return batch.stack().numpy().astype(np.float64), None
        samples = batch.samples()
        return torch.cat(samples).numpy().astype(np.float64), [len(s) for s in samples]

    def _repeat_frames(self, rows: Array, frames: list[int] | None) -> Array:
        if self.frames is None or frames == self.frames or (frames is None and len(rows) != self.size):
            return rows
        counts = frames or [1] * self.size
        repeats = [n if count == 1 else 1 for n, count in zip(self.frames, counts, strict=True) for _ in range(count)]
        return np.repeat(rows, repeats, axis=0)

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def vector(self, name: str, length: int) -> Array:
        """Return an argument with `length` values per row; a single value is repeated for all axes.

        Raises:
            RuntimeError: the argument has neither 1 nor `length` values.
        """
        rows = self._values[name]
        if rows.shape[1] not in (1, length):
            raise RuntimeError(f"{name} must have {length} elements, got {rows.shape[1]}")
        return rows if rows.shape[1] == length else np.broadcast_to(rows, (len(rows), length))

    def output(self, rows: Array) -> TensorList:
        """Return the matrices as a batch.

        If inputs or arguments have values per frame, each sample is a stack of matrices; otherwise a single matrix.
        """
        count = self.size if self.frames is None else sum(self.frames)
        matrices = rows if len(rows) == count else np.broadcast_to(rows, (count, *rows.shape[1:]))
        stacked = torch.from_numpy(matrices.astype(np.float32))
        if self.frames is None:
            return TensorList.from_dense(stacked, "**")
        return TensorList.from_samples(list(torch.split(stacked, self.frames)), "F**")


def _check_frames(frame_counts: Mapping[str, list[int]]) -> None:
    """Check that all inputs and arguments have the same number of frames in each sample.

    An argument may also have a single value for a sample, which applies to all of the sample's frames.

    Raises:
        RuntimeError: the numbers of frames differ.
    """
    (first, counts), *rest = frame_counts.items()
    for name, frames in rest:
        for sample, (frame_count, count) in enumerate(zip(frames, counts, strict=True)):
            if frame_count == count or (frame_count == 1 and name.startswith("argument")):
                continue
            if not name.startswith("argument"):
                raise RuntimeError(
                    f"the {first} and the {name} have different number of frames for sample {sample}, {count} "
                    f"and {frame_count}"
                )
            raise RuntimeError(
                f"the sample {sample} of tensor {name} contains {frame_count} per-frame parameters, but there are "
                f"{count} frames in the corresponding sample of {first}. Pass one for each frame, or one for all "
                f"frames."
            )


def _compose(after: Array, before: Array) -> Array:
    """Return the affine map that applies `before` first and `after` second."""
    linear, shift = after[..., :-1], after[..., -1:]
    out = linear @ before
    out[..., -1:] += shift
    return out


def _build_output(rows: _ArgumentRows, linear: Array, shift: Array, reverse: bool) -> TensorList:
    """Return the batch of matrices, combined with the input's matrices if there is an input.

    Args:
        rows: Arguments of the operator.
        linear: Linear maps ``(rows, n, n)``.
        shift: Translations ``(rows, n)``.
        reverse: True to apply the input's matrix after the new matrix, False to apply the input's matrix first.
    """
    count = max(len(linear), len(shift))
    n = linear.shape[-1]
    matrices = np.empty((count, n, n + 1))
    matrices[..., :-1], matrices[..., -1] = linear, shift
    if rows.inputs:
        first = rows.inputs[0]
        if first.shape[1] != n:
            raise RuntimeError(
                f"the input describes a {first.shape[1]}D transform but other arguments suggest a {n}D transform"
            )
        matrices = _compose(first, matrices) if reverse else _compose(matrices, first)
    return rows.output(matrices)


def _center_shift(rows: _ArgumentRows, linear: Array) -> Array:
    """Return the translation with which a linear map doesn't move the point ``center``."""
    n = linear.shape[-1]
    if "center" not in rows:
        return np.zeros((1, n))
    center = rows.vector("center", n)
    return center - (linear @ center[..., None])[..., 0]


@operator(name="transforms.translation", over="batch", separable=True, devices=("cpu",), layout=_layout)
def translation(
    mtx: Matrices | None = None,
    /,
    *,
    offset: PerFrame[list[float]],
    reverse_order: bool = False,
    size: BatchSize,
) -> BatchOutput:
    """Build the affine matrix of a translation.

    Args:
        mtx: Affine matrix ``(n, n + 1)``, float32, to combine with the translation. Optional.
        offset: Translation vector ``(x, y, ...)``; its length is the number of dimensions ``n``.
        reverse_order: If True, ``mtx`` is applied after the translation. By default ``mtx`` is applied first.
    """
    rows = _ArgumentRows(size, [mtx], {"offset": (offset, 1)})
    shift = rows["offset"]
    return _build_output(rows, np.eye(shift.shape[1])[None], shift, reverse_order)


@operator(name="transforms.scale", over="batch", separable=True, devices=("cpu",), layout=_layout)
def scale(
    mtx: Matrices | None = None,
    /,
    *,
    center: PerFrame[list[float]] | None = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerFrame[list[float]],
    size: BatchSize,
) -> BatchOutput:
    """Build the affine matrix of a scaling.

    Args:
        mtx: Affine matrix ``(n, n + 1)``, float32, to combine with the scaling. Optional.
        center: Fixed point of the scaling, ``n`` coordinates. By default the origin.
        ndim: Number of dimensions ``n``, by default 1. This argument has no effect if ``scale`` has several values or
            if ``mtx`` is passed.
        reverse_order: If True, ``mtx`` is applied after the scaling. By default ``mtx`` is applied first.
        scale: Scale factors: one per axis, or one for all axes.
    """
    rows = _ArgumentRows(size, [mtx], {"scale": (scale, 1), "center": (center, 1)})
    n = rows["scale"].shape[1]
    if n == 1:
        n = rows.inputs[0].shape[1] if rows.inputs else ndim or 1
    linear = rows.vector("scale", n)[..., None] * np.eye(n)
    return _build_output(rows, linear, _center_shift(rows, linear), reverse_order)


@operator(name="transforms.rotation", over="batch", separable=True, devices=("cpu",), layout=_layout)
def rotation(
    mtx: Matrices | None = None,
    /,
    *,
    angle: PerFrame[float],
    axis: PerFrame[list[float]] | None = None,
    center: PerFrame[list[float]] | None = None,
    reverse_order: bool = False,
    size: BatchSize,
) -> BatchOutput:
    """Build the affine matrix of a rotation.

    A 2D rotation with a positive angle turns the x axis towards the y axis. A 3D rotation follows the right-hand rule.

    Args:
        mtx: Affine matrix ``(n, n + 1)``, float32, to combine with the rotation. Optional.
        angle: Angle, in degrees.
        axis: Direction ``(x, y, z)`` of the axis of a 3D rotation. By default the rotation is 2D.
        center: Fixed point of the rotation, ``n`` coordinates. By default the origin.
        reverse_order: If True, ``mtx`` is applied after the rotation. By default ``mtx`` is applied first.
    """
    arguments = {"angle": (angle, 0), "axis": (axis, 1), "center": (center, 1)}
    rows = _ArgumentRows(size, [mtx], arguments)
    radians = np.radians(rows["angle"])
    c, s = np.cos(radians), np.sin(radians)
    if axis is None:
        linear = np.empty((len(c), 2, 2))
        linear[:, 0, 0] = linear[:, 1, 1] = c
        linear[:, 0, 1], linear[:, 1, 0] = -s, s
    else:
        linear = _axis_rotations(rows.vector("axis", 3), c, s)
    return _build_output(rows, linear, _center_shift(rows, linear), reverse_order)


def _axis_rotations(axis: Array, c: Array, s: Array) -> Array:
    """Return the rotation matrices around axes, by Rodrigues' formula."""
    with np.errstate(invalid="ignore"):  # an axis of length 0 gives NaN
        unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    x, y, z = unit.T
    o = np.zeros_like(x)
    cross = np.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(-1, 3, 3)
    outer = unit[:, :, None] * unit[:, None, :]
    c, s = c[:, None, None], s[:, None, None]
    rotations: Array = outer * (1 - c) + c * np.eye(3) + s * cross
    return rotations


@operator(name="transforms.shear", over="batch", separable=True, devices=("cpu",), layout=_layout)
def shear(
    mtx: Matrices | None = None,
    /,
    *,
    angles: PerFrame[ListOrMatrix] | None = None,
    center: PerFrame[list[float]] | None = None,
    reverse_order: bool = False,
    shear: PerFrame[ListOrMatrix] | None = None,
    size: BatchSize,
) -> BatchOutput:
    """Build the affine matrix of a shear.

    The diagonal elements of the matrix are 1. The other elements are the shear factors, row by row.

    Args:
        mtx: Affine matrix ``(n, n + 1)``, float32, to combine with the shear. Optional.
        angles: Shear angles, in degrees, instead of ``shear``. The shear factors are the tangents of the angles.
        center: Fixed point of the shear, ``n`` coordinates. By default the origin.
        reverse_order: If True, ``mtx`` is applied after the shear. By default ``mtx`` is applied first.
        shear: Shear factors: 2 factors (xy, yx) for a 2D shear, or 6 factors (xy, xz, yx, yz, zx, zy) for a 3D shear.

    Raises:
        RuntimeError: neither or both of ``shear`` and ``angles`` are passed, or the number of factors is neither 2 nor
            6.
    """
    if (shear is None) == (angles is None):
        raise batch_level(RuntimeError("one and only one of the following arguments is expected: `shear` or `angles`"))
    values = angles if shear is None else shear
    if isinstance(values, Column) and not values.per_frame:
        table = values.rows(np.float64).shape[1:]
        if len(table) > 1 and table not in ((2, 1), (3, 2)):
            raise RuntimeError(f"the factors must be a table of shape (2, 1) or (3, 2), got {table}")
    arguments = {"shear": (shear, 1), "angles": (angles, 1), "center": (center, 1)}
    rows = _ArgumentRows(size, [mtx], arguments)
    factors = rows["shear"] if "shear" in rows else np.tan(np.radians(rows["angles"]))
    if factors.shape[1] not in (2, 6):
        raise RuntimeError(f"shear must have D * (D - 1) elements, 2 or 6, got {factors.shape[1]}")
    n = 2 if factors.shape[1] == 2 else 3
    linear = np.ones((len(factors), n, n))
    linear[:, ~np.eye(n, dtype=bool)] = factors
    return _build_output(rows, linear, _center_shift(rows, linear), reverse_order)


@operator(name="transforms.crop", over="batch", separable=True, devices=("cpu",), layout=_layout)
def crop(
    mtx: Matrices | None = None,
    /,
    *,
    absolute: bool = False,
    from_end: PerFrame[list[float]] = [1.0],  # noqa: B006  never changed
    from_start: PerFrame[list[float]] = [0.0],  # noqa: B006
    reverse_order: bool = False,
    to_end: PerFrame[list[float]] = [1.0],  # noqa: B006
    to_start: PerFrame[list[float]] = [0.0],  # noqa: B006
    size: BatchSize,
) -> BatchOutput:
    """Build the affine matrix that maps one box to another: ``from_start`` to ``to_start``, ``from_end`` to ``to_end``.

    Each corner is one value per axis, or one value for all axes.

    Args:
        mtx: Affine matrix ``(n, n + 1)``, float32, to combine with the mapping. Optional.
        absolute: If True, start and end are swapped on each axis where the end is less than the start. By default the
            matrix mirrors these axes.
        from_end: Upper corner of the box in the input. By default 1.
        from_start: Lower corner of the box in the input. By default 0.
        reverse_order: If True, ``mtx`` is applied after the mapping. By default ``mtx`` is applied first.
        to_end: Upper corner of the box in the output. By default 1.
        to_start: Lower corner of the box in the output. By default 0.
    """
    corners = {
        "from_start": from_start,
        "from_end": from_end,
        "to_start": to_start,
        "to_end": to_end,
    }
    rows = _ArgumentRows(
        size,
        [mtx],
        {name: (value, 1) for name, value in corners.items()},
    )
    n = max(rows[name].shape[1] for name in corners)
    low, high, new_low, new_high = (rows.vector(name, n) for name in corners)
    if absolute:
        low, high = np.minimum(low, high), np.maximum(low, high)
        new_low, new_high = np.minimum(new_low, new_high), np.maximum(new_low, new_high)
    with np.errstate(divide="ignore", invalid="ignore"):  # an empty box gives infinite factors
        factor = (new_high - new_low) / (high - low)
        shift = new_low - factor * low
    linear = np.where(np.eye(n, dtype=bool), factor[..., None], 0.0)
    return _build_output(rows, linear, shift, reverse_order)


@operator(name="transforms.combine", over="batch", separable=True, devices=("cpu",), layout=_layout)
def combine(
    first: Matrices,
    second: Matrices,
    /,
    *others: Matrices,
    reverse_order: bool = False,
) -> BatchOutput:
    """Combine affine matrices into the matrix that applies them one after the other.

    Args:
        first: Affine matrix ``(n, n + 1)``, float32.
        second: Affine matrix with the shape of ``first``.
        others: Additional affine matrices with the shape of ``first``.
        reverse_order: If True, the last input is applied first. By default the first input is applied first.
    """
    rows = _ArgumentRows(len(first), [first, second, *others], {})
    steps = rows.inputs[::-1] if reverse_order else rows.inputs
    if any(s.shape[1:] != steps[0].shape[1:] for s in steps):
        shapes = ", ".join(str(list(s.shape[1:])) for s in steps)
        raise RuntimeError(f"the transforms to combine must have the same shape, got {shapes}")
    combined = steps[0]
    for step in steps[1:]:
        combined = _compose(step, combined)
    return rows.output(combined)
