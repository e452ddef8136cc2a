"""The operator `optical_flow`: motion between the frames of a sequence."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from torchdali import types
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data, InputConstraints
from torchdali.kernels.optical_flow import flow

__all__ = ["optical_flow"]

Frames = Annotated[Tensor, InputConstraints(("FHWC",), (torch.uint8,))]
_LUMA = (0.299, 0.587, 0.114)


@operator(devices=("gpu",), deprecated={"output_format": "output_grid"}, layout="FHWC")
def optical_flow(
    frames: Frames,
    hints: Data | None = None,
    /,
    *,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: types.DALIImageType = types.DALIImageType.RGB,
    output_grid: int = 4,
    preset: float = 0.0,
) -> Data:
    """Estimate the motion of each pixel from each frame to the next frame.

    The method of Lucas and Kanade runs from coarse to fine in PyTorch (see `kernels.optical_flow`). DALI uses NVIDIA's
    optical flow hardware, so DALI's outputs have the same meaning but different values.

    Args:
        frames: Frames ``(F, H, W, C)``, uint8; at least two frames.
        hints: Initial flows ``(F - 1, h, w, 2)``, x before y, in pixels, with one vector per cell of ``hint_grid``.
            Requires ``enable_external_hints``.
        enable_external_hints: If True, the estimation starts from ``hints``. By default False.
        enable_temporal_hints: If True, the estimation starts from the flow of the previous pair of frames. By default
            False.
        hint_grid: Side of a cell of ``hints`` in pixels: 1, 2, 4 or 8. By default 4.
        image_type: Color space of the frames: RGB (the default), BGR or GRAY.
        output_grid: Side of a cell of the output in pixels: 1, 2 or 4. The flow of a cell is the mean of its pixels'
            flows. By default 4.
        preset: Quality: 0 (the default) is the most accurate, 0.5 is faster, and 1 is the fastest.

    Returns:
        Flows ``(F - 1, ceil(H / output_grid), ceil(W / output_grid), 2)``, float32: x before y, in pixels of the input.

    Raises:
        RuntimeError: there is only one frame, ``hints`` is passed without ``enable_external_hints`` or the other way
            round, ``hints`` has the wrong shape, or the value of an argument isn't supported.
    """
    iterations = {0.0: 8, 0.5: 5, 1.0: 3}.get(preset)
    if iterations is None or output_grid not in (1, 2, 4) or hint_grid not in (1, 2, 4, 8):
        raise RuntimeError(
            f"preset must be 0, 0.5 or 1, output_grid must be 1, 2 or 4, and hint_grid must be 1, 2, "
            f"4 or 8, got {preset}, {output_grid} and {hint_grid}"
        )
    if len(frames) < 2:
        raise RuntimeError("optical_flow: a sequence must have at least two frames")
    if (hints is not None) != enable_external_hints:
        raise RuntimeError(
            "optical_flow: the second input (hints) and enable_external_hints=True must be passed together"
        )
    images = _to_luma(frames, image_type)
    start = None if hints is None else _upsample_hints(hints, hint_grid, images)
    if not enable_temporal_hints:
        return _average_cells(flow(images[:-1], images[1:], iterations, _WINDOW, start), output_grid)
    flows: list[Tensor] = []
    for i in range(len(images) - 1):
        previous = flows[-1] if flows else None
        hint = previous if start is None else start[i : i + 1]
        flows.append(flow(images[i : i + 1], images[i + 1 : i + 2], iterations, _WINDOW, hint))
    return _average_cells(torch.cat(flows), output_grid)


_WINDOW = 9


def _to_luma(frames: Tensor, kind: types.DALIImageType) -> Tensor:
    """Convert frames to luma ``(F, 1, H, W)`` in [0, 1]."""
    channels = 1 if kind == types.DALIImageType.GRAY else 3
    if kind not in (types.DALIImageType.RGB, types.DALIImageType.BGR, types.DALIImageType.GRAY):
        raise RuntimeError(f"image_type must be RGB, BGR or GRAY, got {kind}")
    if frames.shape[-1] != channels:
        raise RuntimeError(f"{kind.name} frames must have {channels} channels, got {frames.shape[-1]}")
    values = frames.movedim(-1, 1).to(torch.float32) / 255
    if channels == 1:
        return values
    weights = values.new_tensor(_LUMA if kind == types.DALIImageType.RGB else _LUMA[::-1])
    return (values * weights[:, None, None]).sum(1, keepdim=True)


def _upsample_hints(hints: Tensor, grid: int, images: Tensor) -> Tensor:
    """Repeat each cell's hint for the cell's pixels; return ``(F - 1, 2, H, W)``."""
    height, width = images.shape[-2:]
    expected = (len(images) - 1, -(-height // grid), -(-width // grid), 2)
    if hints.shape != expected:
        raise RuntimeError(f"hints must have the shape {expected}, got {tuple(hints.shape)}")
    upsampled = hints.to(torch.float32).movedim(-1, 1).repeat_interleave(grid, 2).repeat_interleave(grid, 3)
    return upsampled[..., :height, :width]


def _average_cells(motion: Tensor, grid: int) -> Tensor:
    """Average flows ``(..., 2, H, W)`` over cells; return ``(..., h, w, 2)``."""
    cells = functional.avg_pool2d(motion, grid, ceil_mode=True) if grid > 1 else motion
    return cells.movedim(1, -1).contiguous()
