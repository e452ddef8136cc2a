"""Steps of the native library that change pixels, ``(H, W, 3)`` bytes; the results are bit-identical to Pillow's.

Each function returns one step; `ImageProgram.change_pixels` appends steps to a program.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from torchdali.codecs.program import ImageProgram
from torchdali.kernels.native import PILLOW, STEP

__all__ = ["PLAIN", "SCALED", "affine", "blur", "channels", "filling", "plain", "rotation", "window"]

Levels = tuple[int, int, int]
Size = tuple[int, int]

# Same values as `TDN_WINDOW` and the following constants in native.h.
_WINDOW, _TURN, _AFFINE, _PERSPECTIVE, _HUE, _POSTERIZE, _BLUR, _FILL, _CHANNELS = 2, 3, 4, 5, 10, 13, 17, 18, 19
PLAIN = {"gray": 11, "invert": 12, "autocontrast": 15, "equalize": 16}
SCALED = {"brightness": 6, "contrast": 7, "saturation": 8, "sharpness": 9, "solarize": 14}
_BORDERS = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}


_ONE = struct.Struct("=2i56xd56x")  # a step with at most one part and one number, which is faster to pack


def _step(kind: int, part: Sequence[int], numbers: Sequence[float] = ()) -> bytes:
    return STEP.pack(kind, *part, *_NO_PARTS[len(part) :], *numbers, *_NO_NUMBERS[len(numbers) :])


_NO_PARTS, _NO_NUMBERS = (0,) * 15, (0.0,) * 8


def plain(name: str, value: float | None = None) -> bytes:
    """Return a step by its name.

    Args:
        name: A key of `PLAIN` or `SCALED`, "hue" or "posterize".
        value: For `SCALED` a factor or threshold; for "hue" the amount that is added, from 0 to 255; for "posterize"
            the number of bits to keep.
    """
    if name in PLAIN:
        return _ONE.pack(PLAIN[name], 0, 0.0)
    assert value is not None
    if name in SCALED:
        return _ONE.pack(SCALED[name], 0, value)
    return _ONE.pack(_HUE if name == "hue" else _POSTERIZE, int(value), 0.0)


def window(top: int, left: int, size: Size, border: str, fill: Levels) -> bytes:
    """Return a step that cuts a window, which may reach outside.

    Args:
        top, left, size: Position and size of the window.
        border: Border mode for the pixels outside, by torchvision's name.
        fill: Color of the pixels outside for a constant border.
    """
    return _step(_WINDOW, (top, left, *size, _BORDERS[border], *fill))


def filling(top: int, left: int, size: Size, fill: Levels) -> bytes:
    """Return a step that fills a rectangle with one color."""
    return _step(_FILL, (top, left, *size, *fill))


def channels(order: Levels) -> bytes:
    """Return a step that permutes the channels: `order` has the source index of each channel."""
    return _step(_CHANNELS, order)


def blur(window: Size, deviations: tuple[float, float]) -> bytes:
    """Return a step for a Gaussian blur; the window must have odd sides."""
    return _step(_BLUR, window, deviations)


def affine(size: Size, matrix: Sequence[float], name: str, fill: Levels) -> bytes:
    """Return a step for an affine (6 numbers) or perspective (8 numbers) transform.

    Args:
        size: Size of the result.
        matrix: Transform from positions in the result to positions in the pixels before the step.
        name: Name of the filter.
        fill: Color of the pixels outside.
    """
    kind = _AFFINE if len(matrix) == 6 else _PERSPECTIVE
    return _step(kind, (*size, PILLOW[name], *fill), matrix)


def rotation(
    size: Size, angle: float, expand: bool, center: Sequence[float] | None, name: str, fill: Levels
) -> tuple[bytes, Size]:
    """Return a step for a counterclockwise rotation by degrees, in Pillow's order of operations, and the new size."""
    height, width = size
    angle = angle % 360.0
    if center is None and (quarters := _quarters(angle, expand or height == width)) is not None:
        turned = (width, height) if quarters % 2 else size
        if quarters == 2:
            return ImageProgram.of(*size).flip(True, True).as_step(), size
        return _ONE.pack(_TURN, quarters, 0.0) if quarters else b"", turned
    turn = -math.radians(angle)
    cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
    x, y = (width / 2, height / 2) if center is None else center
    matrix = [cos, sin, 0.0, round(-math.sin(turn), 15), cos, 0.0]
    matrix[2], matrix[5] = _shift_range(matrix, -x, -y)
    matrix[2] += x
    matrix[5] += y
    if expand:
        corners = [_shift_range(matrix, *corner) for corner in ((0, 0), (width, 0), (width, height), (0, height))]
        wide, high = (math.ceil(max(line)) - math.floor(min(line)) for line in zip(*corners, strict=True))
        matrix[2], matrix[5] = _shift_range(matrix, -(wide - width) / 2.0, -(high - height) / 2.0)
        height, width = high, wide
    return affine((height, width), matrix, name, fill), (height, width)


def _quarters(angle: float, turns: bool) -> int | None:
    """Return the number of quarter turns if an angle needs no interpolation; 1 or 3 only if `turns` is True."""
    quarters = {0: 0, 180: 2, **({90: 1, 270: 3} if turns else {})}
    return quarters.get(angle)  # type: ignore[call-overload, no-any-return]


def _shift_range(matrix: Sequence[float], x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + b * y + c, d * x + e * y + f
