"""`tensor_resize`, which resizes any axes of a tensor, and `experimental.resize`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.kernels.resize_shape import resize_shape
from torchdali.operator import operator
from torchdali.ops._resize import resampling, resize
from torchdali.schema import Layout, PerSample, Takes, shares

__all__ = ["experimental_resize", "tensor_resize"]

Resized = Annotated[Tensor, Takes((), (torch.uint8, torch.int16, torch.uint16, torch.float32))]

experimental_resize = operator(
    name="experimental.resize",
    outputs=lambda arguments: 2 if arguments["save_attrs"] else None,
    deprecated={"image_type": None},
    devices=("gpu",),
)(resize.body)  # type: ignore[attr-defined]


@operator
def tensor_resize(
    data: Resized,
    /,
    *,
    alignment: PerSample[list[float]] = [0.5],  # noqa: B006  never changed
    axes: list[int] | None = None,
    axis_names: str | None = None,
    max_size: list[float] | None = None,
    mode: str = "default",
    roi_end: PerSample[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] | None = None,
    scales: PerSample[list[float]] | None = None,
    size_rounding: str = "round",
    sizes: PerSample[list[float]] | None = None,
    subpixel_scale: bool = True,
    layout: Layout,
    **filters: Annotated[Any, shares(resampling)],
) -> Resized:
    """Resize some or all axes of a tensor.

    Args:
        data: uint8, int16, uint16 or float32, of any shape.
        alignment: Point of the axis that stays where it is when ``subpixel_scale`` corrects a rounded size:
            0 is the start, 1 the end.
        axes: Which axes are resized; all when neither this nor ``axis_names`` is given.
        axis_names: The same, by names in the layout.
        max_size: Upper limits, one for all axes or one an axis.
        mode: How sizes and proportions meet: ``"default"``, ``"stretch"``, ``"not_larger"``, ``"not_smaller"``.
        roi_end: Where the region to show ends.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        scales: Output size in units of the input's, one for all axes or one an axis.
        size_rounding: ``"round"``, ``"truncate"`` or ``"ceil"``.
        sizes: Output sizes, one for all axes or one an axis; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.

    Raises:
        RuntimeError: not exactly one of ``sizes`` and ``scales``, or lists of a wrong length.
        ValueError: an axis twice. IndexError: an axis that is not there.
    """
    if (sizes is None) == (scales is None):
        raise RuntimeError("need one of scales or sizes, but not both")
    chosen = _axes(data.dim(), axes, axis_names, layout)
    lengths = list(data.shape)
    if scales is not None:
        sizes = _scaled(_each(scales, "scales", chosen), [lengths[a] for a in chosen])
    # The axes that are not chosen take part in what `mode` does, with the size that they have.
    assert sizes is not None
    ends = [1.0] * len(lengths) if roi_relative else lengths
    size, shown = resize_shape(
        lengths, mode=mode, roi_relative=roi_relative, subpixel_scale=subpixel_scale, rounding=size_rounding,
        size=_spread(sizes, "sizes", chosen, lengths),
        max_size=None if max_size is None else _spread(max_size, "max_size", chosen, [0] * len(lengths)),
        roi_start=None if roi_start is None else _spread(roi_start, "roi_start", chosen, [0] * len(lengths)),
        roi_end=None if roi_end is None else _spread(roi_end, "roi_end", chosen, ends),
        alignment=_spread(alignment, "alignment", chosen, [0.5] * len(lengths)),
    )  # fmt: skip
    return _resized(data, size, shown, filters)


def _each(values: Sequence[float], name: str, axes: Sequence[int]) -> Sequence[float]:
    """Return one value an axis."""
    if len(values) not in (1, len(axes)):
        raise RuntimeError(
            f"{name} expects a single value or a list of {len(axes)} elements, not {len(values)}"
        )
    return values if len(values) == len(axes) else [values[0]] * len(axes)


def _spread(
    values: Sequence[float], name: str, axes: Sequence[int], others: Sequence[float]
) -> list[float]:
    """Return one value for each axis of the tensor: those of the chosen ones, and the others."""
    found = [float(v) for v in others]
    for axis, value in zip(axes, _each(values, name, axes), strict=True):
        found[axis] = value
    return found


def _scaled(scales: Sequence[float], lengths: Sequence[int]) -> list[float]:
    """Return the sizes that scales make, in float32: 1.1 times 10 is 11."""
    return [torch.tensor(s).mul(n).item() for s, n in zip(scales, lengths, strict=True)]


def _axes(dims: int, axes: list[int] | None, names: str | None, layout: str) -> list[int]:
    if axes is not None and names is not None:
        raise RuntimeError("arguments axes and axis_names are mutually exclusive")
    if names is not None:
        missing = [n for n in names if n not in layout]
        if missing:
            raise ValueError(f"axis_names: {missing} not in the layout {layout!r}")
        axes = [layout.index(n) for n in names]
    if axes is None:
        return list(range(dims))
    if any(not -dims <= a < dims for a in axes):
        raise IndexError(f"axes {axes} of a tensor with {dims} axes")
    chosen = [a % dims for a in axes]
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"axes {axes}: one of them is there twice")
    return chosen


def _resized(
    x: Tensor,
    size: Sequence[int],
    region: Sequence[tuple[float, float]],
    filters: Mapping[str, Any],
) -> Tensor:
    """Resize: all from the first to the last axis that change are spatial, what follows are channels."""
    changed = [
        a for a, (n, low_high) in enumerate(zip(size, region, strict=True))
        if n != x.shape[a] or low_high != (0.0, float(n))
    ]  # fmt: skip
    if not changed:
        changed = [0]
    first, last = changed[0], changed[-1] + 1
    image = x.reshape(*x.shape[:last], math.prod(x.shape[last:]))
    result = resampling(image, tuple(size[first:last]), list(region[first:last]), **filters)
    return result.view(*size)
