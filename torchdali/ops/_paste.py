"""Pasting images on canvases, with boxes that move along, and grids of masked squares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.errors import for_all
from torchdali.kernels.convert import convert
from torchdali.kernels.grid import grid_mask as masked
from torchdali.operator import operator
from torchdali.ops._pasting import Places, pasted
from torchdali.ops._rows import Rows, column
from torchdali.running import LARGE
from torchdali.schema import Column, Data, DType, PerFrame, PerSample, Takes
from torchdali.tensors import TensorList

__all__ = ["bbox_paste", "grid_mask", "multi_paste", "paste"]

_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)

Still = Annotated[Tensor, Takes(("HWC",), (torch.uint8,))]
Boxes = Annotated[TensorList, Takes((), (torch.float32,))]
Pictures = Annotated[TensorList, Takes(("HWC", "FHWC"), _REAL)]
Masked = Annotated[
    Tensor, Takes(("HWC", "HW", "FHWC", "CHW", "FCHW"), _REAL, channel_last=True, names=False)
]


@operator
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
        image: ``(H, W, C)`` uint8.
        fill_value: Colour of the canvas, one value or one a channel.
        min_canvas_size: Least height and width of the canvas, in pixels.
        n_channels: Accepted; the image tells.
        paste_x: Where the image lies: 0 is at the left edge, 1 at the right one.
        paste_y: The same from top to bottom.
        ratio: Canvas in units of the image, 1 or more; rounded down to whole pixels.

    Raises:
        RuntimeError: ``ratio`` below 1, a position outside [0, 1], or a wrong number of fill values.
    """
    if ratio < 1:
        raise RuntimeError(f"ratio of less than 1 is not supported, not {ratio}")
    if not (0 <= paste_x <= 1 and 0 <= paste_y <= 1):
        raise RuntimeError(
            f"paste_x and paste_y must be in range [0, 1], not {paste_x} and {paste_y}"
        )
    height, width, channels = image.shape
    rows, columns = (max(int(ratio * n), int(min_canvas_size)) for n in (height, width))
    canvas = _colored((rows, columns, channels), fill_value, image)
    y, x = int(paste_y * (rows - height)), int(paste_x * (columns - width))
    canvas[y : y + height, x : x + width] = image
    return canvas


def _colored(shape: tuple[int, int, int], values: Sequence[int], like: Tensor) -> Tensor:
    colors = [v % 256 for v in values]  # as DALI, which keeps the low byte
    if len(set(colors)) == 1:
        return torch.full(shape, colors[0], dtype=like.dtype, device=like.device)
    if len(colors) != shape[2]:
        raise RuntimeError(
            f"fill_value expects a single value or {shape[2]} values, not {len(colors)}"
        )
    color = torch.tensor(colors, dtype=like.dtype, device=like.device)
    return color.expand(shape).contiguous()


@operator(over="batch", separate=True, devices=("cpu",), class_name="BBoxPaste")
def bbox_paste(
    boxes: Boxes,
    /,
    *,
    ltrb: bool = False,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
) -> Data:
    """Move boxes along with the image that `paste` puts on a canvas.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        ltrb: They are left, top, right and bottom instead.
        paste_x: As of `paste`.
        paste_y: As of `paste`.
        ratio: As of `paste`.
    """
    if not len(boxes):
        return boxes  # type: ignore[return-value]
    table = Rows(boxes, 4)
    size = column(ratio)
    corner = np.concatenate(
        np.broadcast_arrays((size - 1) * column(paste_x), (size - 1) * column(paste_y)), 1
    )
    moved = np.concatenate((corner, corner if ltrb else np.zeros_like(corner)), 1)
    return table.batch((table.rows + table.spread(moved)) / table.spread(size))  # type: ignore[return-value]


@operator
def grid_mask(
    image: Masked,
    /,
    *,
    angle: PerSample[float] = 0.0,
    ratio: PerSample[float] = 0.5,
    shift_x: PerSample[float] = 0.0,
    shift_y: PerSample[float] = 0.0,
    tile: PerSample[int] = 100,
) -> Masked:
    """Set the squares of a grid to zero.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, int32 or float32.
        angle: By which the grid is turned, in radians.
        ratio: Side of the squares, in units of a tile.
        shift_x: Of the grid, in pixels.
        shift_y: The same downwards.
        tile: Side of a tile, in pixels.

    Raises:
        RuntimeError: ``tile`` is not positive.
    """
    if tile <= 0:
        raise RuntimeError(f"tile must be positive, not {tile}")
    if image.dim() == 2:
        return masked(image[..., None], tile, ratio, angle, shift_x, shift_y)[..., 0]
    return masked(image, tile, ratio, angle, shift_x, shift_y)


# ---------------------------------------------------------------- multi_paste


def _single(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0]


@operator(
    over="batch", separate=lambda arguments: arguments["in_ids"] is None, places=("in_ids",), layout=_single
)  # fmt: skip
def multi_paste(
    images: Pictures,
    /,
    *others: Pictures,
    dtype: DType | None = None,
    in_anchors: PerFrame[Any] | None = None,
    in_anchors_rel: PerFrame[Any] | None = None,
    in_ids: PerSample[list[int]] | None = None,
    out_anchors: PerFrame[Any] | None = None,
    out_anchors_rel: PerFrame[Any] | None = None,
    output_size: PerSample[list[int]] | None = None,
    shapes: PerFrame[Any] | None = None,
    shapes_rel: PerFrame[Any] | None = None,
) -> Data:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before.

    The regions come from the samples of the batch that ``in_ids`` names, or else, one region each, from the
    sample's own images in all inputs. There are ``(regions, 2)`` anchors and shapes a sample, y before x.

    Args:
        images: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        others: More images.
        dtype: Of the output, rounded and saturated; the input's own when None.
        in_anchors: Upper left corner of each region in its image, in pixels; (0, 0) when not given.
        in_anchors_rel: The same in units of the image, rounded down.
        in_ids: Indices of samples in the batch, for one input.
        out_anchors: Upper left corner of each region on the canvas; (0, 0) when not given.
        out_anchors_rel: The same in units of the canvas, rounded down.
        output_size: Height and width of the canvas; that of the images when not given.
        shapes: Height and width of each region; up to the end of the image when not given.
        shapes_rel: The same in units of the image, rounded up.

    Raises:
        RuntimeError: a region reaches outside, or contradictory arguments.
    """
    given = {"in_anchors": in_anchors, "out_anchors": out_anchors, "shapes": shapes}
    relative = {"in_anchors": in_anchors_rel, "out_anchors": out_anchors_rel, "shapes": shapes_rel}
    for name in given:
        if given[name] is not None and relative[name] is not None:
            raise for_all(RuntimeError(f"{name} and {name}_rel cannot be specified together"))
    if in_ids is not None and others:
        raise RuntimeError(f"with in_ids there is exactly one input, not {1 + len(others)}")
    made = pasted([images, *others], dtype, _places(given, relative), in_ids, output_size)
    if made is not None:
        return made if isinstance(made, Tensor) else TensorList.from_samples(made, images.layout())  # type: ignore[return-value]
    batch = images.samples()
    inputs = [batch, *(other.samples() for other in others)]
    count = range(len(batch))
    sources = [
        [column[i] for column in inputs] if in_ids is None else _pick(batch, _at(in_ids, i))
        for i in count
    ]
    shapes_out = [_canvas(sources[i], _at(output_size, i)) for i in count]
    canvases = _zeros(shapes_out, dtype or batch[0].dtype, batch[0].device) if batch else []
    as_arrays = all(_is_plain(each, canvases[0]) for column in inputs for each in column)
    for i in count:
        places = _places(
            {k: _at(v, i) for k, v in given.items()}, {k: _at(v, i) for k, v in relative.items()}
        )
        _compose(*_arrays(canvases[i], sources[i], as_arrays), places)
    if isinstance(canvases, Tensor):
        return canvases
    return TensorList.from_samples(canvases, images.layout(), dtype or images.torch_dtype)  # type: ignore[return-value]


def _zeros(
    shapes: Sequence[tuple[int, ...]], dtype: torch.dtype, device: torch.device
) -> Tensor | list[Tensor]:
    """Return a canvas a sample: one tensor where all have one shape, unless large ones can use freed memory."""
    if len(set(shapes)) == 1 and math.prod(shapes[0]) * dtype.itemsize < LARGE:
        return torch.zeros((len(shapes), *shapes[0]), dtype=dtype, device=device)
    return [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]


def _at(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, Column) else value


def _pick(batch: Sequence[Tensor], ids: Any) -> list[Tensor]:
    chosen = [ids] if isinstance(ids, int) else list(ids)
    if any(not 0 <= k < len(batch) for k in chosen):
        raise RuntimeError(
            f"in_ids must be in range [0, batch size - 1], which is {len(batch) - 1}; not {chosen}"
        )
    return [batch[k] for k in chosen]


def _canvas(sources: Sequence[Tensor], size: Any) -> tuple[int, ...]:
    first = sources[0].shape
    if size is None:
        found = {tuple(s.shape[-3:-1]) for s in sources}
        if len(found) != 1:
            raise RuntimeError(
                f"without output_size, all input samples must have the same shape, not {sorted(found)}"
            )
        size = first[-3:-1]
    height, width = size
    return (*first[:-3], int(height), int(width), first[-1])


def _places(given: Mapping[str, Any], relative: Mapping[str, Any]) -> Places:
    """Return the values of each kind, and whether they are relative."""
    return {
        name: (value, False) if value is not None
        else None if relative[name] is None
        else (relative[name], True)
        for name, value in given.items()
    }  # fmt: skip


def _is_plain(source: Tensor, canvas: Tensor) -> bool:
    """Whether NumPy can copy, in fewer calls and faster."""
    return source.dtype == canvas.dtype and source.device.type == "cpu" and not source.requires_grad


def _arrays(
    canvas: Tensor, sources: Sequence[Tensor], as_arrays: bool
) -> tuple[Any, Sequence[Any]]:
    return (canvas.numpy(), [s.numpy() for s in sources]) if as_arrays else (canvas, sources)


def _compose(canvas: Any, sources: Sequence[Any], places: Places) -> None:
    if not any(v is not None and _depth(v[0]) == 3 for v in places.values()):
        _paste_all(canvas, sources, places)
        return
    for f in range(len(canvas)):  # places differ from frame to frame
        now = {
            k: (v[0][f], v[1]) if v is not None and _depth(v[0]) == 3 else v
            for k, v in places.items()
        }
        _paste_all(canvas[f], [s[f] for s in sources], now)


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, (list, tuple)) and value else 0


def _paste_all(canvas: Any, sources: Sequence[Any], places: Places) -> None:
    """Paste regions of tensors, or of arrays of one type, on a canvas."""
    for k, source in enumerate(sources):
        (y, x), (v, u), (h, w) = _region(k, source, canvas, places)
        region = source[..., y : y + h, x : x + w, :]
        if region.dtype != canvas.dtype:
            region = convert(region, canvas.dtype)
        canvas[..., v : v + h, u : u + w, :] = region


def _region(k: int, source: Any, canvas: Any, places: Places) -> Iterator[tuple[int, int]]:
    """Return start in the image, start on the canvas, and extent of the k-th region."""
    inside, outside = source.shape[-3:-1], canvas.shape[-3:-1]
    start = _pair(places["in_anchors"], k, inside, math.floor) or (0, 0)
    target = _pair(places["out_anchors"], k, outside, math.floor) or (0, 0)
    rest = (inside[0] - start[0], inside[1] - start[1])
    extent = _pair(places["shapes"], k, inside, math.ceil) or rest
    for anchor, limits, where in ((start, inside, "input"), (target, outside, "output")):
        if not all(0 <= a <= a + e <= n for a, e, n in zip(anchor, extent, limits, strict=True)):
            raise RuntimeError(
                f"the region must be within {where} bounds: anchor {anchor}, shape {extent}, {where} shape "
                f"{tuple(limits)}, for the region at index {k}"
            )
    return iter((start, target, extent))


def _pair(
    place: tuple[Any, bool] | None, k: int, lengths: Sequence[int], whole: Any
) -> tuple[int, int] | None:
    if place is None:
        return None
    values, relative = place
    if not isinstance(values, (list, tuple)):
        values = [[values, values]] * (k + 1)
    if k >= len(values):
        raise RuntimeError(f"there are {len(values)} anchors or shapes for more regions")
    y, x = values[k]
    if not relative:
        return int(y), int(x)
    return whole(_single_precision(y, lengths[0])), whole(_single_precision(x, lengths[1]))


def _single_precision(share: float, length: int) -> float:
    """Multiply as DALI does, so that 0.3 of 10 is 3 and not 3.0000001."""
    return float(np.float32(share) * np.float32(length))
