"""Affine matrices: `transforms.rotation`, `scale`, `shear`, `translation`, `crop` and `combine`.

They are tiny, so all matrices of a batch are made in one call, including all frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, BatchSize, Column, ListOrMatrix, PerFrame, Takes
from torchdali.errors import batch_level
from torchdali.tensors import TensorList

__all__ = ["combine", "crop", "rotation", "scale", "shear", "translation"]

Array = npt.NDArray[np.float64]
Matrices = Annotated[TensorList, Takes((), (torch.float32,))]


def _layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0] or "**" if layouts else "**"


class _ArgumentRows:
    """The arguments of all samples and frames, one row each.

    Args:
        size: Samples of the batch.
        inputs: Matrices to combine with.
        arguments: Value and number of axes of each: 0 for a number, 1 for a vector. None is skipped.
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
            name: self._read(value, axes) for name, (value, axes) in arguments.items() if value is not None
        }
        matrices = [self._matrices(m) for m in inputs if m is not None]
        counts = {f"input {i}": frames for i, (_, frames) in enumerate(matrices)}
        counts |= {f"argument `{name}`": read[name][1] for name in sorted(read)}
        frame_counts = {name: frames for name, frames in counts.items() if frames is not None}
        if frame_counts:
            self.frames = next(iter(frame_counts.values()))
            _check_frames(frame_counts)
        self._values = {name: self._spread(*value) for name, value in read.items()}
        self.inputs = [self._spread(*value) for value in matrices]

    def _read(self, value: Any, axes: int) -> tuple[Array, list[int] | None]:
        if not isinstance(value, Column):
            return np.asarray(value, np.float64).reshape(1, *[-1] * axes), None
        if value.per_frame:
            parts = [np.asarray(v, np.float64) for v in value]
            rows = [part.reshape(len(part), *[-1 if part.size else 0] * axes) for part in parts]
            return np.concatenate(rows), [len(part) for part in parts]
        whole = value.rows(np.float64)
        if not axes and whole.size != len(whole):
            raise RuntimeError(f"an argument is one number per sample, not of shape {whole.shape[1:]}")
        return whole.reshape(len(whole), *[-1 if len(whole) else 1] * axes), None

    def _matrices(self, batch: TensorList) -> tuple[Array, list[int] | None]:
        dense = batch.dense()
        shapes: Sequence[Sequence[int]] = batch.shape() if dense is None else [dense.shape[1:]]
        if not len(batch):
            return np.zeros((0, 2, 3)), None
        shape = tuple(shapes[0][-2:])
        if any(len(s) < 2 or tuple(s[-2:]) != shape or shape[1] != shape[0] + 1 for s in shapes):
            raise RuntimeError(f"a transform is a matrix (n, n + 1), of the same n in all samples, not {shape}")
        if len(shapes[0]) == 2:
            return batch.stack().numpy().astype(np.float64), None
        samples = batch.samples()
        return torch.cat(samples).numpy().astype(np.float64), [len(s) for s in samples]

    def _spread(self, rows: Array, frames: list[int] | None) -> Array:
        if self.frames is None or frames == self.frames or (frames is None and len(rows) != self.size):
            return rows
        there = frames or [1] * self.size
        each = [n if one == 1 else 1 for n, one in zip(self.frames, there, strict=True) for _ in range(one)]
        return np.repeat(rows, each, axis=0)

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def vector(self, name: str, length: int) -> Array:
        """Return an argument given once for all axes, or once per axis.

        Raises:
            RuntimeError: there are others.
        """
        rows = self._values[name]
        if rows.shape[1] not in (1, length):
            raise RuntimeError(f"{name} has {rows.shape[1]} elements instead of {length}")
        return rows if rows.shape[1] == length else np.broadcast_to(rows, (len(rows), length))

    def output(self, rows: Array) -> TensorList:
        """Make the batch of matrices of all samples and frames."""
        count = self.size if self.frames is None else sum(self.frames)
        matrices = rows if len(rows) == count else np.broadcast_to(rows, (count, *rows.shape[1:]))
        whole = torch.from_numpy(matrices.astype(np.float32))
        if self.frames is None:
            return TensorList.from_dense(whole, "**")
        return TensorList.from_samples(list(torch.split(whole, self.frames)), "F**")


def _check_frames(frame_counts: Mapping[str, list[int]]) -> None:
    """Check that all have as many frames in each sample as the first; one value of an argument is used for all.

    Raises:
        RuntimeError: some have not.
    """
    (first, counts), *others = frame_counts.items()
    for name, frames in others:
        for sample, (there, count) in enumerate(zip(frames, counts, strict=True)):
            if there == count or (there == 1 and name.startswith("argument")):
                continue
            if not name.startswith("argument"):
                raise RuntimeError(
                    f"the {first} and the {name} have different number of frames for sample {sample}, {count} "
                    f"and {there}"
                )
            raise RuntimeError(
                f"the sample {sample} of tensor {name} contains {there} per-frame parameters, but there are "
                f"{count} frames in the corresponding sample of {first}. Give one for each, or one for all."
            )


def _compose(after: Array, before: Array) -> Array:
    """Return the map that does `before`, then `after`."""
    linear, moved = after[..., :-1], after[..., -1:]
    out = linear @ before
    out[..., -1:] += moved
    return out


def _finish(rows: _ArgumentRows, linear: Array, moved: Array, reverse: bool) -> TensorList:
    """Make matrices of linear parts ``(rows, n, n)`` and translations ``(rows, n)``, and combine with the input."""
    count = max(len(linear), len(moved))
    n = linear.shape[-1]
    matrices = np.empty((count, n, n + 1))
    matrices[..., :-1], matrices[..., -1] = linear, moved
    if rows.inputs:
        first = rows.inputs[0]
        if first.shape[1] != n:
            raise RuntimeError(
                f"the input describes a {first.shape[1]}D transform but other arguments suggest a {n}D transform"
            )
        matrices = _compose(first, matrices) if reverse else _compose(matrices, first)
    return rows.output(matrices)


def _around(rows: _ArgumentRows, linear: Array) -> Array:
    """Return the translation that keeps ``center`` in place."""
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
    """Make a matrix that moves points.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        offset: ``(x, y, ...)``: its length is n.
        reverse_order: Apply the input after.
    """
    rows = _ArgumentRows(size, [mtx], {"offset": (offset, 1)})
    moved = rows["offset"]
    return _finish(rows, np.eye(moved.shape[1])[None], moved, reverse_order)


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
    """Make a matrix that scales.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        center: Point that stays.
        ndim: n, where ``scale`` is one number for all axes and no input is passed.
        reverse_order: Apply the input after.
        scale: Factors, one per axis or one for all.
    """
    rows = _ArgumentRows(size, [mtx], {"scale": (scale, 1), "center": (center, 1)})
    n = rows["scale"].shape[1]
    if n == 1:
        n = rows.inputs[0].shape[1] if rows.inputs else ndim or 1
    linear = rows.vector("scale", n)[..., None] * np.eye(n)
    return _finish(rows, linear, _around(rows, linear), reverse_order)


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
    """Make a matrix that turns points, from x to y in the plane, or right-handed around an axis in space.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        angle: Degrees.
        axis: ``(x, y, z)``: makes it a turn in space.
        center: Point that stays.
        reverse_order: Apply the input after.
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
    return _finish(rows, linear, _around(rows, linear), reverse_order)


def _axis_rotations(axis: Array, c: Array, s: Array) -> Array:
    """Return the rotations around axes (Rodrigues' formula)."""
    with np.errstate(invalid="ignore"):  # no axis: NaN
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
    """Make a matrix that shears: ones on the diagonal, and the factors around it, row by row.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        angles: Degrees whose tangents are the factors, instead of ``shear``.
        center: Point that stays.
        reverse_order: Apply the input after.
        shear: 2 factors (xy, yx) in the plane, 6 (xy, xz, yx, yz, zx, zy) in space.

    Raises:
        RuntimeError: not exactly one of ``shear`` and ``angles``, or neither 2 nor 6 factors.
    """
    if (shear is None) == (angles is None):
        raise batch_level(RuntimeError("one and only one of the arguments is expected: shear or angles"))
    values = angles if shear is None else shear
    if isinstance(values, Column) and not values.per_frame:
        table = values.rows(np.float64).shape[1:]
        if len(table) > 1 and table not in ((2, 1), (3, 2)):
            raise RuntimeError(f"the factors are a table (2, 1) or (3, 2), not {table}")
    both = {"shear": (shear, 1), "angles": (angles, 1), "center": (center, 1)}
    rows = _ArgumentRows(size, [mtx], both)
    factors = rows["shear"] if "shear" in rows else np.tan(np.radians(rows["angles"]))
    if factors.shape[1] not in (2, 6):
        raise RuntimeError(f"shear has D * (D - 1) elements, 2 or 6, not {factors.shape[1]}")
    n = 2 if factors.shape[1] == 2 else 3
    linear = np.ones((len(factors), n, n))
    linear[:, ~np.eye(n, dtype=bool)] = factors
    return _finish(rows, linear, _around(rows, linear), reverse_order)


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
    """Make a matrix that maps one box to another: ``from_start`` to ``to_start``, ``from_end`` to ``to_end``.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        absolute: Sort starts and ends.
        from_end: Upper corner of the box in the input, one value per axis or one for all.
        from_start: Lower corner.
        reverse_order: Apply the input after.
        to_end: Upper corner of the box in the output.
        to_start: Lower corner.
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
    with np.errstate(divide="ignore", invalid="ignore"):  # an empty box: infinite
        factor = (new_high - new_low) / (high - low)
        moved = new_low - factor * low
    linear = np.where(np.eye(n, dtype=bool), factor[..., None], 0.0)
    return _finish(rows, linear, moved, reverse_order)


@operator(name="transforms.combine", over="batch", separable=True, devices=("cpu",), layout=_layout)
def combine(
    first: Matrices,
    second: Matrices,
    /,
    *others: Matrices,
    reverse_order: bool = False,
) -> BatchOutput:
    """Combine transforms: the first input is applied first.

    Args:
        first: ``(n, n + 1)`` float32.
        second: Transform of the same shape.
        others: Inputs of the same shape.
        reverse_order: Apply the last input first.
    """
    rows = _ArgumentRows(len(first), [first, second, *others], {})
    steps = rows.inputs[::-1] if reverse_order else rows.inputs
    if any(s.shape[1:] != steps[0].shape[1:] for s in steps):
        shapes = ", ".join(str(list(s.shape[1:])) for s in steps)
        raise RuntimeError(f"the transforms to combine differ in shape: {shapes}")
    total = steps[0]
    for step in steps[1:]:
        total = _compose(step, total)
    return rows.output(total)
