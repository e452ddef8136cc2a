"""Mirroring of images, frames and volumes."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Column, Layout, Out, PerSample, Takes, per_sample
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.memory import placed
from torchdali.kernels.mirror import mirror, mirror_each
from torchdali.ops._on_device import batch_of, images_of
from torchdali.tensors import TensorList

__all__ = ["flip"]

Flippable = Annotated[Tensor, Takes(("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"))]


@operator
def flip(
    data: Flippable,
    /,
    *,
    depthwise: PerSample[int] = 0,
    horizontal: PerSample[int] = 1,
    vertical: PerSample[int] = 0,
    layout: Layout,
    out: Out = None,
) -> Flippable:
    """Reverse axes of images, frames or volumes.

    Args:
        data: In any layout.
        depthwise: Reverse D when not 0; no effect where there is none.
        horizontal: Reverse W.
        vertical: Reverse H.
    """
    axes = _axes(layout, depthwise, horizontal, vertical)
    return mirror(data, axes) if axes else placed(data, out)


@chunk(flip)
def _flip_batch(data: Tensor, a: Arguments) -> Tensor:
    given: tuple[Any, ...] = a["depthwise"], a["horizontal"], a["vertical"]
    layout = a.layout
    if not any(isinstance(value, Column) for value in given):
        axes = [axis + 1 for axis in _axes(layout, *given)]
        return mirror(data, axes) if axes else placed(data, a.out)
    rows = zip(*[per_sample(value, len(data)) for value in given], strict=True)
    return mirror_each(data, [_axes(layout, *row) for row in rows], a.out)


@chunk(flip, "device")
def _flip_on_device(data: TensorList, a: Arguments) -> Any:
    images = images_of(data, a.layout, floats=True)
    if images is None:
        return NotImplemented
    count, sides = len(images.offsets), images.sides
    columns, rows = (np.array(per_sample(value, count)).reshape(-1) != 0 for value in (a["horizontal"], a["vertical"]))
    flat = copy_windows(
        images.flat, images.offsets, sides, images.channels, np.zeros_like(sides), sides, columns + 2 * rows, 0
    )  # fmt: skip
    return batch_of(flat, sides, images.channels)


def _axes(layout: str, depthwise: int, horizontal: int, vertical: int) -> list[int]:
    asked = {"D": depthwise, "H": vertical, "W": horizontal}
    return [layout.index(name) for name, wanted in asked.items() if wanted and name in layout]
