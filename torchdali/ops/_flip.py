"""The operator `flip`, which mirrors images, sequences of frames and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from torch import Tensor

from torchdali.calls.decorators import chunk, narrows, operator
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.narrowing import Edit
from torchdali.declaration.schema import Arguments, Column, InputConstraints, Layout, Out, PerSample, per_sample
from torchdali.kernels.memory import copy_to_out
from torchdali.kernels.mirror import mirror, mirror_each
from torchdali.kernels.native import ImageOptions

__all__ = ["flip"]

Flippable = Annotated[Tensor, InputConstraints(("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"))]


@operator(marks=("levels",))
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
    """Mirror images, sequences of frames or volumes.

    Args:
        data: Images, sequences of frames or volumes in any layout.
        depthwise: Nonzero to reverse the depth axis, if the data has one. Default: 0.
        horizontal: Nonzero to swap left and right. Default: 1.
        vertical: Nonzero to swap top and bottom. Default: 0.
    """
    axes = _axes(layout, depthwise, horizontal, vertical)
    return mirror(data, axes) if axes else copy_to_out(data, out)


_DIRECTIONS = ("horizontal", "vertical")


@narrows(flip, (*_DIRECTIONS, "depthwise"), (*_DIRECTIONS, "depthwise"))
def _edit(constants: Mapping[str, Any]) -> Edit:
    return Edit.with_constants(_narrow, constants, ImageOptions.mirror)


def _narrow(program: ImageProgram, arguments: Mapping[str, Any], rng: Any) -> ImageProgram:
    return program.flip(bool(arguments.get("horizontal", 1)), bool(arguments.get("vertical", 0)))


@chunk(flip, per_sample=("depthwise", "horizontal", "vertical"))
def _flip_batch(data: Tensor, a: Arguments) -> Tensor:
    flags: tuple[Any, ...] = a.depthwise, a.horizontal, a.vertical
    layout = a.layout
    if not any(isinstance(value, Column) for value in flags):
        axes = [axis + 1 for axis in _axes(layout, *flags)]
        return mirror(data, axes) if axes else copy_to_out(data, a.out)
    rows = zip(*[per_sample(value, len(data)) for value in flags], strict=True)
    return mirror_each(data, [_axes(layout, *row) for row in rows], a.out)


def _axes(layout: str, depthwise: int, horizontal: int, vertical: int) -> list[int]:
    flags = {"D": depthwise, "H": vertical, "W": horizontal}
    return [layout.index(name) for name, flag in flags.items() if flag and name in layout]
