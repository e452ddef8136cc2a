"""Operators that paste images on larger canvases, convert boxes to the canvas, and mask squares of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, BatchOutput, InputConstraints, Layout, PerSample, per_sample
from torchdali.kernels.grid import grid_mask as mask_grid
from torchdali.kernels.grid import grid_mask_each
from torchdali.kernels.limits import check_pixels
from torchdali.ops._rows import BatchRows, column
from torchdali.tensors import TensorList

__all__ = ["bbox_paste", "grid_mask", "paste"]

_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)

Still = Annotated[Tensor, InputConstraints(("HWC",), (torch.uint8,))]
Boxes = Annotated[TensorList, InputConstraints((), (torch.float32,))]
Masked = Annotated[
    Tensor, InputConstraints(("HWC", "HW", "FHWC", "CHW", "FCHW"), _REAL, channel_last=True, sets_layout=False)
]


@operator(marks=("levels",))
def paste(
    image: Still,
    /,
    *,
    fill_value: list[int],
    min_canvas_size: PerSample[float] = 0.0,
    n_channels: int = 3,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
) -> Still:
    """Paste images on larger canvases.

    Args:
        image: Images ``(H, W, C)``, uint8.
        fill_value: Color of the canvas: one value, or one value per channel.
        min_canvas_size: Minimum height and width of the canvas, in pixels. By default 0.
        n_channels: Accepted for compatibility with DALI, without effect: the canvas has the channels of the image.
        paste_x: Horizontal position of the image on the canvas: 0 is at the left edge, 0.5 (the default) is centered,
            and 1 is at the right edge.
        paste_y: Vertical position of the image on the canvas: 0 is at the top, 0.5 (the default) is centered, and 1 is
            at the bottom.
        ratio: Ratio of the canvas's height and width to the image's; must be at least 1. The canvas size is rounded
            down to whole pixels.

    Raises:
        RuntimeError: ``ratio`` is below 1, ``min_canvas_size`` is negative, a position is outside [0, 1], or the number
            of fill values is wrong.
    """
    height, width, channels = image.shape
    rows, columns, y, x = _canvas_geometry((height, width), ratio, min_canvas_size, paste_x, paste_y)
    canvas = _color_canvas((rows, columns, channels), _fill_colors(fill_value, channels), image)
    canvas[y : y + height, x : x + width] = image
    return canvas


def _canvas_geometry(
    sides: Sequence[int], ratio: float, min_canvas_size: float, paste_x: float, paste_y: float
) -> tuple[int, int, int, int]:
    """Return height and width of the canvas, and the image's y and x position on the canvas."""
    if ratio < 1:
        raise RuntimeError(f"ratio of less than 1 is not supported, got {ratio}")
    if not (0 <= paste_x <= 1 and 0 <= paste_y <= 1):
        raise RuntimeError(f"paste_x and paste_y must be in range [0, 1], got {paste_x} and {paste_y}")
    if min_canvas_size < 0:
        raise RuntimeError(f"min_canvas_size_ of less than 0 is not supported, got min_canvas_size={min_canvas_size}")
    rows, columns = (max(int(ratio * n), int(min_canvas_size)) for n in sides)
    check_pixels((rows, columns), "the canvas")
    return rows, columns, int(paste_y * (rows - sides[0])), int(paste_x * (columns - sides[1]))


def _fill_colors(values: Sequence[int], channels: int) -> list[int]:
    """Return the fill values as bytes: one value, or one value per channel."""
    colors = [v % 256 for v in values]  # DALI keeps the low byte
    if len(set(colors)) == 1:
        return colors[:1]
    if len(colors) != channels:
        raise RuntimeError(f"fill_value must have a single value or {channels} values, got {len(colors)}")
    return colors


def _color_canvas(shape: tuple[int, int, int], colors: Sequence[int], image: Tensor) -> Tensor:
    if len(colors) == 1:
        return torch.full(shape, colors[0], dtype=image.dtype, device=image.device)
    color = torch.tensor(colors, dtype=image.dtype, device=image.device)
    return color.expand(shape).contiguous()


@operator(over="batch", separable=True, devices=("cpu",))
def bbox_paste(
    boxes: Boxes,
    /,
    *,
    ltrb: bool = False,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
) -> BatchOutput:
    """Convert boxes of an image to boxes of the canvas, for images that `paste` pastes on a canvas.

    Args:
        boxes: Boxes ``(..., 4)``, float32: x, y, width and height as fractions of the image.
        ltrb: If True, boxes are left, top, right, bottom. By default boxes are x, y, width, height.
        paste_x: Horizontal position of the image on the canvas, from 0 (left) to 1 (right). By default 0.5.
        paste_y: Vertical position of the image on the canvas, from 0 (top) to 1 (bottom). By default 0.5.
        ratio: Ratio of the canvas's height and width to the image's. If the ratio is below 1, the canvas shows the
            lower right corner of the image, and ``paste_x`` and ``paste_y`` have no effect.
    """
    if not len(boxes):
        return boxes
    table = BatchRows(boxes, 4)
    size = column(ratio)
    margin = size - 1
    offsets = [np.minimum(margin * column(paste), margin) for paste in (paste_x, paste_y)]
    corner = np.concatenate(np.broadcast_arrays(*offsets), 1)
    shifts = np.concatenate((corner, corner if ltrb else np.zeros_like(corner)), 1)
    return table.batch((table.rows + table.repeat_rows(shifts)) / table.repeat_rows(size))


@operator(marks=("bytes",))
def grid_mask(
    image: Masked,
    /,
    *,
    angle: PerSample[float] = 0.0,
    ratio: PerSample[float] = 0.5,
    shift_x: PerSample[float] = 0.0,
    shift_y: PerSample[float] = 0.0,
    tile: PerSample[int] = 100,
    layout: Layout,
) -> Masked:
    """Divide images into square tiles, and set the pixels of a smaller square in each tile to zero.

    Args:
        image: Images ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, int32 or float32.
        angle: Rotation of the grid of tiles, in radians. By default 0.
        ratio: Ratio of the smaller square's side to the tile's side. By default 0.5.
        shift_x: Shift of the grid of tiles to the right, in pixels. By default 0.
        shift_y: Shift of the grid of tiles downwards, in pixels. By default 0.
        tile: Side of a tile, in pixels; must be positive. By default 100.

    Raises:
        RuntimeError: ``tile`` isn't positive.
    """
    if tile <= 0:
        raise RuntimeError(f"tile must be positive, got {tile}")
    if layout == "HW":
        return mask_grid(image[..., None], tile, ratio, angle, shift_x, shift_y)[..., 0]
    return mask_grid(image, tile, ratio, angle, shift_x, shift_y)


@chunk(grid_mask, per_sample=("tile", "ratio", "angle", "shift_x", "shift_y"), only_on_devices=True)
def _mask_batch(image: Tensor, a: Arguments) -> Any:
    if a.layout not in ("HW", "HWC"):
        return NotImplemented
    numbers = [a.tile, a.ratio, a.angle, a.shift_x, a.shift_y]
    columns = np.array([per_sample(value, len(image)) for value in numbers], np.float64)
    if not image.numel() or columns[0].min() <= 0:
        return NotImplemented
    masked_images = grid_mask_each(image if a.layout == "HWC" else image[..., None], *columns)
    return masked_images if a.layout == "HWC" else masked_images[..., 0]
