"""Colours from a Bayer mosaic: each pixel has one of three colours, the other two come from its neighbours.

The colours are called *first* and *third*, which stand on opposite corners of each 2x2 cell, and *green*, which
stands on the other two. OpenCV does the same arithmetic and is used where it is installed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv, opencv_for

__all__ = ["ALGORITHMS", "debayer"]

Near = Callable[[int, int], Tensor]

ALGORITHMS = ("bilinear", "edgeaware", "vng", "gray")

# OpenCV names a mosaic by the colours one row and one column further on.
_NAMES = {(0, 0): "BG", (0, 1): "GB", (1, 0): "GR", (1, 1): "RG"}
_TARGETS = {"bilinear": "RGB", "edgeaware": "RGB_EA", "vng": "RGB_VNG", "gray": "GRAY"}
_GRAY = (4899, 9617, 1868)  # 0.299, 0.587, 0.114 in units of 2**-14


def debayer(mosaic: Tensor, first: tuple[int, int], algorithm: str, out: Tensor) -> None:
    """Fill in the colours that a mosaic lacks.

    Args:
        mosaic: ``(..., H, W)`` uint8 or uint16 (``vng``: uint8 only), H and W even.
        first: Row and column, 0 or 1, of the first colour in each 2x2 cell.
        algorithm: ``bilinear``: the mean of the neighbours of a colour. ``edgeaware``: green from the pair of
            neighbours that differ less. ``vng``: from the directions in which the image changes least (Chang,
            Cheung and Pang, "Color filter array recovery using a threshold-based variable number of gradients",
            1999). ``gray``: the luma of ``bilinear``, the first colour being weighted as red.
        out: ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray``: the result is written here. The outermost
            pixels are those beside them (but for ``vng``); images of a height or width of 2 become 0.
    """
    run = _by_torch if opencv_for(mosaic) is None else _by_opencv
    if mosaic.dim() == 2:
        run(mosaic, first, algorithm, out)
        return
    frames, targets = mosaic.flatten(0, -3), out.flatten(0, -4)
    for frame, target in zip(frames, targets, strict=True):
        run(frame, first, algorithm, target)


def _by_opencv(frame: Tensor, first: tuple[int, int], algorithm: str, out: Tensor) -> None:
    opencv().cvtColor(frame.numpy(), _code(first, algorithm), out.numpy())


@functools.cache
def _code(first: tuple[int, int], algorithm: str) -> int:
    code: int = getattr(opencv(), f"COLOR_Bayer{_NAMES[first]}2{_TARGETS[algorithm]}")
    return code


def _by_torch(frame: Tensor, first: tuple[int, int], algorithm: str, out: Tensor) -> None:
    out.copy_(_colored(frame, first, algorithm))


def _colored(frame: Tensor, first: tuple[int, int], algorithm: str) -> Tensor:
    shortest = min(frame.shape)
    if shortest <= 2:
        return frame.new_zeros(())
    x = frame.to(torch.int64 if algorithm == "gray" else torch.int32)
    if algorithm == "vng" and shortest >= 8:
        return _from_gradients(x, first)
    inner = _from_neighbours(x, first, algorithm)
    for axis in (0, 1):
        last = frame.shape[axis] - 3
        places = torch.arange(-1, last + 2, device=x.device).clamp_(0, last)
        inner = inner.index_select(axis, places)
    return inner


def _at_first(
    shape: tuple[int, ...], first: tuple[int, int], offset: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return which rows and which columns have the first colour, from an offset on."""
    rows = torch.arange(offset, offset + shape[0], device=device) % 2 == first[0]
    columns = torch.arange(offset, offset + shape[1], device=device) % 2 == first[1]
    return rows[:, None], columns


def _from_neighbours(x: Tensor, first: tuple[int, int], algorithm: str) -> Tensor:
    """Return the colours of all pixels but the outermost."""
    height, width = x.shape[0] - 2, x.shape[1] - 2

    def near(dy: int, dx: int) -> Tensor:
        return x[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    centre = near(0, 0)
    left, right, above, below = near(0, -1), near(0, 1), near(-1, 0), near(1, 0)
    across, down = left + right, above + below
    diagonal = near(-1, -1) + near(-1, 1) + near(1, -1) + near(1, 1)
    rows, columns = _at_first((height, width), first, 1, x.device)
    if algorithm == "gray":  # rounded once, at the end
        found = _colors(rows, columns, centre * 4, across * 2, down * 2, diagonal, across + down)
        total = sum(weight * color for weight, color in zip(_GRAY, found, strict=True))
        assert isinstance(total, Tensor)
        return ((total + (1 << 15)) >> 16).unsqueeze(-1)
    cross = (across + down + 2) >> 2
    across, down = (across + 1) >> 1, (down + 1) >> 1
    if algorithm == "edgeaware":
        cross = torch.where((left - right).abs() > (above - below).abs(), down, across)
    return torch.stack(_colors(rows, columns, centre, across, down, (diagonal + 2) >> 2, cross), -1)


def _colors(
    rows: Tensor, columns: Tensor, centre: Tensor, across: Tensor, down: Tensor, diagonal: Tensor, cross: Tensor
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Choose first, green and third colour of each pixel by its place in the cell."""

    def color(row: Tensor, column: Tensor) -> Tensor:
        beside = torch.where(column, centre, across)
        return torch.where(row, beside, torch.where(column, down, diagonal))

    green = torch.where(rows == columns, cross, centre)
    return color(rows, columns), green, color(~rows, ~columns)


# ---------------------------------------------------------------- variable number of gradients

_DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
_REACH = 3  # rows and columns that a pixel looks at on each side


def _from_gradients(x: Tensor, first: tuple[int, int]) -> Tensor:
    height, width = x.shape
    wide = torch.nn.functional.pad(
        x.to(torch.float32)[None], (_REACH,) * 4, mode="reflect"
    )[0].to(torch.int32)  # fmt: skip

    def near(dy: int, dx: int) -> Tensor:
        return wide[_REACH + dy : _REACH + dy + height, _REACH + dx : _REACH + dx + width]

    rows, columns = _at_first((height, width), first, 0, x.device)
    corner = rows == columns
    slopes = torch.stack([_slope(near, dy, dx, corner) for dy, dx in _DIRECTIONS])
    least, most = slopes.amin(0), slopes.amax(0)
    chosen = (slopes < least + (most >> 1).clamp_(min=1)).to(torch.int32)
    own, one, other = (
        sum(chosen[i] * part for i, part in enumerate(parts))
        for parts in zip(*(_sums(near, dy, dx, corner) for dy, dx in _DIRECTIONS), strict=True)
    )
    count = chosen.sum(0)
    centre = near(0, 0)
    one, other = centre + _share(one - own, count), centre + _share(other - own, count)
    # At a corner `one` is green and `other` the colour of the opposite corner; at green, `one` is the colour
    # beside it and `other` the colour above.
    found = _colors(rows, columns, centre, one, other, other, one)
    return torch.stack(found, -1).clamp_(0, 255)


def _share(difference: Tensor, count: Tensor) -> Tensor:
    half = torch.full_like(count, 1, dtype=torch.float32) * 0.5 / count
    return (difference.to(torch.float32) * half).round_().to(torch.int32)


def _difference(near: Near, a: tuple[int, int], b: tuple[int, int]) -> Tensor:
    return (near(*a) - near(*b)).abs_()


def _slope(near: Near, dy: int, dx: int, corner: Tensor) -> Tensor:
    """Return how much the image changes in a direction, over a pixel and the next one."""
    if dy and dx:
        ends = _along(near, 0, 0, dy, dx), _along(near, dy, dx, dy, dx)
        sides = _across(near, 0, 0, dy, dx) + _across(near, dy, dx, dy, dx)
        beside = _along(near, dy, 0, dy, dx) + _along(near, 0, dx, dy, dx)
        return ends[0] + ends[1] + torch.where(corner, sides, beside)
    return sum(
        (
            _difference(
                near, (y - dy + k * dx, x - dx + k * dy), (y + dy + k * dx, x + dx + k * dy)
            )
            * (1 if k else 2)
            for y, x in ((0, 0), (dy, dx))
            for k in (-1, 0, 1)
        ),
        start=torch.zeros((), dtype=torch.int32, device=corner.device),
    )


def _along(near: Near, y: int, x: int, dy: int, dx: int) -> Tensor:
    return _difference(near, (y - dy, x - dx), (y + dy, x + dx)).mul_(2)


def _across(near: Near, y: int, x: int, dy: int, dx: int) -> Tensor:
    """Return the changes on both sides of a diagonal."""
    return _difference(near, (y + dy, x), (y, x - dx)) + _difference(near, (y, x + dx), (y - dy, x))


def _sums(near: Near, dy: int, dx: int, corner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return twice the mean of three colours in a direction: the pixel's own and the two of `_from_gradients`."""
    where, ahead = torch.where, near(2 * dy, 2 * dx) + near(0, 0)
    nearest = near(dy, dx) * 2
    if dy and dx:
        one, other = near(0, dx) + near(2 * dy, dx), near(dy, 0) + near(dy, 2 * dx)
        green = (one + other) >> 1
        return (
            where(corner, ahead, nearest),
            where(corner, green, one),
            where(corner, nearest, other),
        )
    if dy:
        far = near(2 * dy, -1) + near(2 * dy, 1)
        return (
            ahead,
            where(corner, nearest, far),
            where(corner, near(dy, -1) + near(dy, 1), nearest),
        )
    far = near(-1, 2 * dx) + near(1, 2 * dx)
    return ahead, nearest, where(corner, near(-1, dx) + near(1, dx), far)
