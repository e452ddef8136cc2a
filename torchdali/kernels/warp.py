"""Warp images and volumes: sample them at the positions of a map.

Positions are in pixels, x before y before z, with pixel centres at one half: the first pixel spans 0 to 1.
Images are channel-last with free leading dimensions, ``(..., [D,] H, W, C)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from torchdali.kernels.convert import convert, integer_limits
from torchdali.kernels.folding import folded
from torchdali.kernels.warp_opencv import warp_by_opencv
from torchdali.kernels.window import round_half_away_number

__all__ = [
    "Matrix", "affine_positions", "grid_of", "interpolate", "invert", "nearest_index", "rotated_size", "rotation",
    "sample", "sample_linear", "sample_nearest", "sphere_positions", "turn", "warp_affine", "water_positions",
]  # fmt: skip

_TIE = 1e-4  # carries a position between two pixels into the second one, where OpenCV would take the even one

Matrix = Sequence[Sequence[float]]
"""Rows ``[a b t]`` (or ``[a b c t]``): the affine map of a position, x first."""


# ---------------------------------------------------------------- sampling


def sample(
    x: Tensor,
    positions: Sequence[Tensor],
    *,
    linear: bool,
    fill: float | None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sample an image at given positions.

    Args:
        x: ``(..., *spatial, C)``.
        positions: One tensor a spatial axis, x first, all of the output's spatial shape.
        linear: Interpolate linearly; otherwise take the pixel that the position is in.
        fill: Value of everything outside; None repeats the edge.
        dtype: Of the output, rounded and saturated; the input's own when None.

    Returns:
        ``(..., *output, C)``.
    """
    lengths = x.shape[-1 - len(positions) : -1]
    if linear:
        return sample_linear(x, grid_of(positions, lengths), fill, dtype or x.dtype)
    return sample_nearest(
        x, nearest_index(positions, lengths, fill is not None), fill, dtype or x.dtype
    )


def grid_of(positions: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Return positions as `grid_sample` takes them: ``(..., axes)`` in -1 to 1."""
    scaled = [p * (2 / n) - 1 for p, n in zip(positions, reversed(lengths), strict=True)]
    return torch.stack(scaled, -1)


def sample_linear(x: Tensor, grid: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Interpolate linearly at the positions of a grid ``(*output, axes)`` (see `grid_of`)."""
    if fill is None:
        return interpolate(x, grid, padding="border", dtype=dtype)
    return interpolate(x, grid, base=_number(fill, x.dtype), dtype=dtype)


def interpolate(
    x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding: str = "zeros", corners: bool = False,
    base: float = 0.0, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Interpolate at the positions of a grid ``(*output, axes)``.

    Args:
        x: ``(..., *spatial, C)``.
        grid: -1 and 1 are the outer edges of the image, x first.
        mode: ``"bilinear"`` or ``"bicubic"``.
        padding: Of `torch.nn.functional.grid_sample`.
        corners: -1 and 1 are the centres of the outermost pixels instead.
        base: With ``"zeros"``: what is outside.
        dtype: Of the result, rounded and saturated.
    """
    axes, channels = grid.shape[-1], x.shape[-1]
    lead = x.shape[: x.dim() - 1 - axes]
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    # Frames become channels, so that positions are looked at once. The memory stays channel-last: of what a
    # position needs of the channels, all is in one place.
    planes = x.to(kind).movedim(-1, -1 - axes)
    planes = planes.reshape(1, -1, *planes.shape[-axes:])
    if base:  # what is outside is zero for `grid_sample`
        planes = planes - base
    out = grid_sample(
        planes, grid[None].to(kind), mode=mode, padding_mode=padding, align_corners=corners
    )
    if dtype == x.dtype == torch.uint8 and mode == "bilinear":
        # Nothing leaves the range: adding a half and truncating rounds; the way over int16 is the fastest.
        out = out.add_(base + 0.5).to(torch.int16).to(dtype)
    else:
        out = convert(out + base if base else out, dtype)
    return _channel_last(out.view(*lead, channels, *grid.shape[:-1]), axes)


def _number(value: float, dtype: torch.dtype) -> float:
    """Return a fill value as `convert_number` does, without tensors: floats as they are."""
    if dtype.is_floating_point:
        return float(value)
    low, high = integer_limits(dtype)
    return min(max(round_half_away_number(value), low), high)


def _channel_last(planes: Tensor, axes: int) -> Tensor:
    channels = planes.shape[-1 - axes]
    if 1 < channels <= 4:  # several times faster than a permuted copy
        return torch.stack(planes.unbind(-1 - axes), -1)
    return planes.movedim(-1 - axes, -1).contiguous()


def nearest_index(positions: Sequence[Tensor], lengths: Sequence[int], bordered: bool) -> Tensor:
    """Return the number of the pixel that each position is in, flat, int32 where that suffices.

    Args:
        bordered: The image has a border of one pixel around it, which stands for all that is outside.
    """
    extra = 2 if bordered else 0
    kind = torch.int32 if math.prod([n + extra for n in lengths]) < 2**31 else torch.int64
    index: Tensor | None = None
    for position, length in zip(reversed(positions), lengths, strict=True):
        low, high = (-1, length) if bordered else (0, length - 1)
        pixel = position.floor().clamp_(low, high).to(kind)
        if bordered:
            pixel.add_(1)
        index = pixel if index is None else index.mul_(length + extra).add_(pixel)
    assert index is not None
    return index


def sample_nearest(x: Tensor, index: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Take the pixels of `nearest_index` (made with a border when there is a fill value)."""
    axes = index.dim()
    if x.dtype != dtype:
        x = convert(x, dtype)
    if dtype == torch.uint16:  # not every PyTorch selects from it
        signed = None if fill is None else _as_signed(int(_number(fill, dtype)))
        return sample_nearest(x.view(torch.int16), index, signed, torch.int16).view(dtype)
    if fill is not None:
        x = _bordered(x, axes, fill)
    lead, channels = x.shape[: x.dim() - 1 - axes], x.shape[-1]
    if not lead:
        return x.reshape(-1, channels).index_select(0, index.flatten()).view(*index.shape, channels)
    pixels = x.reshape(*lead, -1, channels)
    return pixels.index_select(len(lead), index.flatten()).view(*lead, *index.shape, channels)


def _as_signed(value: int) -> int:
    return value - 2**16 if value >= 2**15 else value


def _bordered(x: Tensor, axes: int, fill: float) -> Tensor:
    """Put a border of one pixel around an image."""
    first = x.dim() - 1 - axes
    shape = [n + 2 if first <= a < x.dim() - 1 else n for a, n in enumerate(x.shape)]
    wide = torch.full(shape, _number(fill, x.dtype), dtype=x.dtype, device=x.device)
    inner = wide
    for axis in range(first, x.dim() - 1):
        inner = inner.narrow(axis, 1, x.shape[axis])
    inner.copy_(x)
    return wide


# ---------------------------------------------------------------- affine maps


def warp_affine(
    x: Tensor, matrix: Matrix, size: Sequence[int], *, linear: bool, fill: float | None,
    dtype: torch.dtype | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Sample an image where an affine map takes the pixels of the output: ``out(p) = in(M p)``.

    Args:
        x: ``(..., *spatial, C)``.
        matrix: From positions of the output to those of the input.
        size: Extent of the spatial axes of the output.
        linear: Interpolate linearly; otherwise take the pixel that the position is in.
        fill: Value of everything outside; None repeats the edge.
        dtype: Of the output; the input's own when None.
        out: Where the result goes, if it fits and the kernel can write there.
    """
    lengths = x.shape[-1 - len(size) : -1]
    dtype = dtype or x.dtype
    if dtype == x.dtype and len(size) == 2:
        found = _by_opencv(x, matrix, size, linear, fill, out)
        if found is not None:
            return found
    if linear and len(size) == 2:
        return sample_linear(x, _affine_grid(matrix, size, lengths, x), fill, dtype)
    return sample(
        x, affine_positions(matrix, size, x.device), linear=linear, fill=fill, dtype=dtype
    )


def _by_opencv(
    x: Tensor,
    matrix: Matrix,
    size: Sequence[int],
    linear: bool,
    fill: float | None,
    out: Tensor | None,
) -> Tensor | None:
    tie = 0.0 if linear else _TIE
    return warp_by_opencv(
        x, [(a, b, (a + b - 1) / 2 + t + tie) for a, b, t in matrix], size, out=out,
        mode="bilinear" if linear else "nearest", border="replicate" if fill is None else "constant",
        fill=(0.0 if fill is None else _number(fill, x.dtype),),
    )  # fmt: skip


def _affine_grid(matrix: Matrix, size: Sequence[int], lengths: Sequence[int], x: Tensor) -> Tensor:
    """Return the grid of an affine map of images; complex numbers make both coordinates in one sum."""
    (a, b, s), (c, d, t) = matrix
    width, height = 2 / lengths[1], 2 / lengths[0]
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    start = complex((a / 2 + b / 2 + s) * width - 1, (c / 2 + d / 2 + t) * height - 1)
    row = torch.arange(size[1], dtype=kind, device=x.device) * complex(a * width, c * height)
    column = (
        torch.arange(size[0], dtype=kind, device=x.device) * complex(b * width, d * height) + start
    )
    return torch.view_as_real(row + column[:, None])


def affine_positions(matrix: Matrix, size: Sequence[int], device: torch.device) -> list[Tensor]:
    """Return where an affine map takes the pixel centres of the output, one tensor an axis, x first."""
    found = []
    for *factors, start in matrix:
        total: Tensor | None = None
        for axis, (factor, length) in enumerate(zip(reversed(factors), size, strict=True)):
            line = torch.arange(0.5, length, dtype=torch.float32, device=device) * factor
            if axis == 0:
                line += start
            shaped = line.view(-1, *[1] * (len(size) - 1 - axis))
            total = shaped if total is None else total + shaped
        assert total is not None
        found.append(total)
    return found


@folded
def invert(matrix: Matrix) -> list[list[float]]:
    """Return the affine map back.

    Raises:
        RuntimeError: there is none.
    """
    last = [0.0] * len(matrix) + [1.0]
    square = torch.tensor([*map(list, matrix), last], dtype=torch.float64)
    return torch.linalg.inv(square)[:-1].tolist()  # type: ignore[no-any-return]


def rotation(angle: float, axis: Sequence[float] | None = None) -> list[list[float]]:
    """Return the matrix that turns an image or a volume by degrees.

    In the plane, where y points down, that is counter-clockwise as seen; in space it is right-handed around `axis`,
    which for z is the other way round.
    """
    radians = _rounded(math.radians(angle))
    c, s = math.cos(radians), math.sin(radians)
    if axis is None:
        return [[c, s], [-s, c]]
    c, s = _rounded(c), _rounded(s)
    norm = math.sqrt(sum(v * v for v in axis))
    x, y, z = (v / norm if norm else math.nan for v in axis)
    k = 1 - c
    return [
        [x * x * k + c, x * y * k - z * s, x * z * k + y * s],
        [x * y * k + z * s, y * y * k + c, y * z * k - x * s],
        [x * z * k - y * s, y * z * k + x * s, z * z * k + c],
    ]


def _rounded(value: float) -> float:
    """Round to float32: it decides what 45 degrees is in `rotated_size`."""
    return float(np.float32(value))


def rotated_size(turned: Matrix, lengths: Sequence[int]) -> list[int]:
    """Return the canvas that a rotated image fits in.

    The bounding box is rounded up, with a tolerance of 0.01, and grows by one where needed to be as even or odd
    as that input axis which turns into it.
    """
    extents = list(reversed(lengths))
    size = []
    for k, row in enumerate(turned):
        parts = [abs(v) for v in row]
        extent = math.ceil(sum(p * n for p, n in zip(parts, extents, strict=True)) - 0.01)
        largest = max(parts)
        main = extents[k if parts[k] == largest else parts.index(largest)]
        size.append(extent + (extent - main) % 2)
    return size[::-1]


def turn(turned: Matrix, lengths: Sequence[int], size: Sequence[int]) -> list[list[float]]:
    """Return the affine map from the output to the input that turns back, centre to centre."""
    inside, outside = list(reversed(lengths)), list(reversed(size))
    return [
        [*row, n / 2 - sum(v * m / 2 for v, m in zip(row, outside, strict=True))]
        for row, n in zip(zip(*turned, strict=True), inside, strict=True)
    ]


# ---------------------------------------------------------------- water, sphere

Positions = tuple[Tensor, Tensor]


def _plane(height: int, width: int, device: torch.device) -> Positions:
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    return torch.arange(width, dtype=torch.float32, device=device), y


def water_positions(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> Positions:  # fmt: skip
    """Return the positions of a wavy surface; every pair is of x and y.

    ``x + amplitude * sin(frequency * y + phase)``, ``y + amplitude * cos(frequency * x + phase)``
    """
    x, y = _plane(height, width, device)
    return (
        x + amplitude[0] * torch.sin(frequency[0] * y + phase[0]),
        y + amplitude[1] * torch.cos(frequency[1] * x + phase[1]),
    )


def sphere_positions(height: int, width: int, device: torch.device) -> Positions:
    """Return the positions of an image wrapped on a sphere: distances from the centre are squared."""
    x, y = _plane(height, width, device)
    x, y = x + (0.5 - width / 2), y + (0.5 - height / 2)
    scale = torch.hypot(x, y) / max(1, width // 2, height // 2)
    return scale * x + width / 2, scale * y + height / 2
