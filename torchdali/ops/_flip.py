"""Mirroring of images, frames and volumes."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from torchdali.kernels.mirror import mirror
from torchdali.operator import operator
from torchdali.schema import Layout, Out, PerSample, Takes

__all__ = ["flip"]

Flippable = Annotated[
    Tensor, Takes(("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"))
]


def _flip_batch(
    data: Tensor, /, *, depthwise: int = 0, horizontal: int = 1, vertical: int = 0, layout: str
) -> Tensor:
    axes = _axes(layout, depthwise, horizontal, vertical)
    return data.flip([axis + 1 for axis in axes]) if axes else data.clone()


@operator(dense=_flip_batch)
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
    return mirror(data, axes, out) if axes else data


def _axes(layout: str, depthwise: int, horizontal: int, vertical: int) -> list[int]:
    asked = {"D": depthwise, "H": vertical, "W": horizontal}
    return [layout.index(name) for name, wanted in asked.items() if wanted and name in layout]
