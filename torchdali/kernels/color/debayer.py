"""Compute RGB images from a Bayer mosaic, in which each pixel has one of three colors.

A pixel's two missing colors are computed from its neighbors. In each 2x2 cell of the mosaic, two opposite corners are
green. The colors of the other two corners (red and blue, in either order) are called *first* and *third*. If OpenCV is
installed, OpenCV's functions are used instead, with the same results.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv, opencv_for

__all__ = ["ALGORITHMS", "debayer"]

Near = Callable[[int, int], Tensor]

ALGORITHMS = ("bilinear", "edgeaware", "vng", "gray")

# OpenCV names a mosaic by the colors in its second row, from the second column on.
_NAMES = {(0, 0): "BG", (0, 1): "GB", (1, 0): "GR", (1, 1): "RG"}
_TARGETS = {"bilinear": "RGB", "edgeaware": "RGB_EA", "vng": "RGB_VNG", "gray": "GRAY"}
_GRAY = (4899, 9617, 1868)  # 0.299, 0.587, 0.114 in units of 2**-14


def debayer(mosaic: Tensor, first: tuple[int, int], algorithm: str, out: Tensor) -> None:
    """Compute the missing colors of a mosaic's pixels.

    Args:
        mosaic: ``(..., H, W)`` uint8 or uint16 (``vng``: uint8 only), H and W even.
        first: Row and column, 0 or 1, of the first color in each 2x2 cell.
        algorithm: One of `ALGORITHMS`. ``bilinear`` computes a missing color as the mean of the neighbors that have
            this color. ``edgeaware`` does the same, except that green is the mean of the pair of opposite neighbors
            that differ less. ``vng`` computes colors from the directions in which the image changes least (Chang,
            Cheung and Pang, "Color filter array recovery using a threshold-based variable number of gradients", 1999).
            ``gray`` computes the luma of the result of ``bilinear``, and weights the first color as red.
        out: ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray``, to which the result is written. The outermost
            pixels are copies of their neighbors, except with ``vng`` on images of at least 8 x 8 pixels. Images with a
            height or width of 2 become 0.
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
    shortest = min(frame.shape)
    if shortest <= 2:
        out.zero_()
        return
    x = frame.to(torch.int16 if frame.dtype == torch.uint8 else torch.int32)
    if algorithm == "vng" and shortest >= 8:
        _from_gradients(x, first, out)
        return
    inner = out[1:-1, 1:-1]
    first = 1 - first[0], 1 - first[1]
    if algorithm == "gray":
        _gray(x, first, inner)
    else:
        _write_colors(_means(x, algorithm == "edgeaware"), first, inner)
    for sides in (out, out.transpose(0, 1)):
        sides[0], sides[-1] = sides[1], sides[-2]


@dataclass(frozen=True)
class _Neighbours:
    """Values of a color at each pixel, one for each position of the nearest pixels with this color.

    Attributes:
        centre: The pixel's own value, if the pixel has the color.
        across: Value from the left and right neighbors.
        down: Value from the upper and lower neighbors.
        diagonal: Value from the four diagonal neighbors.
        cross: Value from the left, right, upper and lower neighbors; used for green.
    """

    centre: Tensor
    across: Tensor
    down: Tensor
    diagonal: Tensor
    cross: Tensor

    def color(self, row: bool, column: bool) -> Tensor:
        """Return the values of the first or third color for one of the four positions in a cell.

        Args:
            row: True if the color occurs in the pixel's row.
            column: True if the color occurs in the pixel's column.
        """
        if row:
            return self.centre if column else self.across
        return self.down if column else self.diagonal


def _write_colors(neighbours: _Neighbours, first: tuple[int, int], out: Tensor) -> None:
    """Write the three colors of all pixels, for one of the four positions in a cell after the other."""
    for y, x in itertools.product((0, 1), (0, 1)):
        row, column = y == first[0], x == first[1]
        green = neighbours.cross if row == column else neighbours.centre
        colors = neighbours.color(row, column), green, neighbours.color(not row, not column)
        for channel, plane in enumerate(colors):
            out[y::2, x::2, channel] = plane[y::2, x::2]


def _sums_around(x: Tensor) -> _Neighbours:
    """Return sums of one, two or four neighbors for all pixels except the outermost pixels."""
    rows, columns = x[:, :-2] + x[:, 2:], x[:-2] + x[2:]
    across, down = rows[1:-1], columns[:, 1:-1]
    return _Neighbours(x[1:-1, 1:-1], across, down, rows[:-2] + rows[2:], across + down)


def _means(x: Tensor, edge_aware: bool) -> _Neighbours:
    sums = _sums_around(x)
    across, down = (sums.across + 1) >> 1, (sums.down + 1) >> 1
    cross = (sums.cross + 2) >> 2
    if edge_aware:
        horizontal, vertical = x[1:-1, :-2] - x[1:-1, 2:], x[:-2, 1:-1] - x[2:, 1:-1]
        cross = torch.where(horizontal.abs_() > vertical.abs_(), down, across)
    return _Neighbours(sums.centre, across, down, (sums.diagonal + 2) >> 2, cross)


def _gray(x: Tensor, first: tuple[int, int], out: Tensor) -> None:
    """Compute luma from sums of neighbors, so that only the result is rounded."""
    sums = _sums_around(x.to(torch.int64))
    quadruple = _Neighbours(sums.centre * 4, sums.across * 2, sums.down * 2, sums.diagonal, sums.cross)
    colors = x.new_empty((*out.shape[:2], 3), dtype=torch.int64)
    _write_colors(quadruple, first, colors)
    a, b, c = (color * weight for color, weight in zip(colors.unbind(-1), _GRAY, strict=True))
    out[..., 0] = (a + b + c + (1 << 15)) >> 16


# ---------------------------------------------------------------- variable number of gradients

_DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
_REACH = 3  # rows and columns on each side that affect a pixel


def _from_gradients(x: Tensor, first: tuple[int, int], out: Tensor) -> None:
    height, width = x.shape
    borders = (_REACH,) * 4
    wide = torch.nn.functional.pad(x.to(torch.float32)[None], borders, mode="reflect")[0].to(x.dtype)

    def near(dy: int, dx: int) -> Tensor:
        return wide[_REACH + dy : _REACH + dy + height, _REACH + dx : _REACH + dx + width]

    rows, columns = (torch.arange(size, device=x.device) % 2 for size in x.shape)
    corner = (rows == first[0])[:, None] == (columns == first[1])
    slopes = torch.stack([_slope(near, dy, dx, corner) for dy, dx in _DIRECTIONS])
    least, most = slopes.amin(0), slopes.amax(0)
    chosen = (slopes < least + (most >> 1).clamp_(min=1)).to(x.dtype)
    own, one, other = (
        sum(chosen[i] * part for i, part in enumerate(parts))
        for parts in zip(*(_sums(near, dy, dx, corner) for dy, dx in _DIRECTIONS), strict=True)
    )
    count = chosen.sum(0)
    centre = near(0, 0)
    one, other = ((centre + _share(part - own, count)).clamp_(0, 255) for part in (one, other))
    # At a corner (first or third color), `one` is green and `other` the color of the opposite corner; at green, `one`
    # is the color of the pixels to the left and right, and `other` the color of the pixels above and below.
    _write_colors(_Neighbours(centre, one, other, other, one), first, out)


def _share(difference: Tensor, count: Tensor) -> Tensor:
    half = torch.full_like(count, 1, dtype=torch.float32) * 0.5 / count
    return (difference.to(torch.float32) * half).round_().to(difference.dtype)


def _difference(near: Near, a: tuple[int, int], b: tuple[int, int]) -> Tensor:
    return (near(*a) - near(*b)).abs_()


def _slope(near: Near, dy: int, dx: int, corner: Tensor) -> Tensor:
    """Return the gradient in a direction, summed over the pixel and its neighbor in this direction."""
    if dy and dx:
        ends = _along(near, 0, 0, dy, dx), _along(near, dy, dx, dy, dx)
        sides = _across(near, 0, 0, dy, dx) + _across(near, dy, dx, dy, dx)
        neighbours = _along(near, dy, 0, dy, dx) + _along(near, 0, dx, dy, dx)
        return ends[0] + ends[1] + torch.where(corner, sides, neighbours)
    return sum(
        (
            _difference(near, (y - dy + k * dx, x - dx + k * dy), (y + dy + k * dx, x + dx + k * dy)) * (1 if k else 2)
            for y, x in ((0, 0), (dy, dx))
            for k in (-1, 0, 1)
        ),
        start=torch.zeros((), dtype=torch.int16, device=corner.device),
    )


def _along(near: Near, y: int, x: int, dy: int, dx: int) -> Tensor:
    return _difference(near, (y - dy, x - dx), (y + dy, x + dx)).mul_(2)


def _across(near: Near, y: int, x: int, dy: int, dx: int) -> Tensor:
    """Return the changes on both sides of a diagonal."""
    return _difference(near, (y + dy, x), (y, x - dx)) + _difference(near, (y, x + dx), (y - dy, x))


def _sums(near: Near, dy: int, dx: int, corner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return twice the mean of three colors in a direction: the pixel's own color, `one` and `other`.

    See `_from_gradients` for the meaning of `one` and `other`.
    """
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
