"""Encode pixel steps for the native library.

A step is an operation on ``(H, W, 3)`` uint8 pixels, bit-identical to Pillow's operation. Each function returns one
step, as bytes. `ImageProgram.change_pixels` appends steps to a program.
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


_SHORT_STEP = struct.Struct("=2i56xd56x")  # packs a step with at most one integer and one float faster than `STEP`


def _step(kind: int, integers: Sequence[int], floats: Sequence[float] = ()) -> bytes:
    return STEP.pack(kind, *integers, *_ZERO_INTEGERS[len(integers) :], *floats, *_ZERO_FLOATS[len(floats) :])


_ZERO_INTEGERS, _ZERO_FLOATS = (0,) * 15, (0.0,) * 8


def plain(name: str, value: float | None = None) -> bytes:
    """Return a step that is determined by its name and at most one number.

    Args:
        name: A key of `PLAIN` or `SCALED`, "hue" or "posterize".
        value: For `SCALED`: the factor or threshold. For "hue": the amount to add, from 0 to 255. For "posterize": the
            number of bits to keep.
    """
    if name in PLAIN:
        return _SHORT_STEP.pack(PLAIN[name], 0, 0.0)
    assert value is not None
    if name in SCALED:
        return _SHORT_STEP.pack(SCALED[name], 0, value)
    return _SHORT_STEP.pack(_HUE if name == "hue" else _POSTERIZE, int(value), 0.0)


def window(top: int, left: int, size: Size, border: str, fill: Levels) -> bytes:
    """Return a step that cuts a window, which may reach outside the image.

    Args:
        border: torchvision's name of the padding mode for pixels outside the image.
        fill: Color of the pixels outside the image if `border` is "constant".
    """
    return _step(_WINDOW, (top, left, *size, _BORDERS[border], *fill))


def filling(top: int, left: int, size: Size, fill: Levels) -> bytes:
    """Return a step that fills a rectangle with one color."""
    return _step(_FILL, (top, left, *size, *fill))


def channels(order: Levels) -> bytes:
    """Return a step that permutes the channels.

    Args:
        order: For each channel of the result, the index of the source channel.
    """
    return _step(_CHANNELS, order)


def blur(window: Size, deviations: tuple[float, float]) -> bytes:
    """Return a step for a Gaussian blur.

    Args:
        window: Height and width of the kernel; both must be odd.
        deviations: The standard deviations.
    """
    return _step(_BLUR, window, deviations)


def affine(size: Size, matrix: Sequence[float], name: str, fill: Levels) -> bytes:
    """Return a step for an affine transform (6 numbers) or a perspective transform (8 numbers).

    Args:
        size: Height and width of the result.
        matrix: Transform from a position in the result to a position in the source image.
        fill: Color of the pixels outside the source image.
    """
    kind = _AFFINE if len(matrix) == 6 else _PERSPECTIVE
    return _step(kind, (*size, PILLOW[name], *fill), matrix)


def rotation(
    size: Size, angle: float, expand: bool, center: Sequence[float] | None, name: str, fill: Levels
) -> tuple[bytes, Size]:
    """Return a step for a rotation, computed in Pillow's order of operations, and the new size.

    Args:
        size: Height and width before the rotation.
        angle: Angle in degrees, counterclockwise.
        expand: Enlarge the result so that it contains the whole rotated image.
        center: Center of the rotation, x and y; None for the center of the image.
        fill: Color of the pixels outside the image.
    """
    height, width = size
    angle = angle % 360.0
    if center is None and (quarters := _count_quarter_turns(angle, expand or height == width)) is not None:
        turned_size = (width, height) if quarters % 2 else size
        if quarters == 2:
            return ImageProgram.of(*size).flip(True, True).as_step(), size
        return _SHORT_STEP.pack(_TURN, quarters, 0.0) if quarters else b"", turned_size
    radians = -math.radians(angle)
    cos, sin = round(math.cos(radians), 15), round(math.sin(radians), 15)
    x, y = (width / 2, height / 2) if center is None else center
    matrix = [cos, sin, 0.0, round(-math.sin(radians), 15), cos, 0.0]
    matrix[2], matrix[5] = _transform_point(matrix, -x, -y)
    matrix[2] += x
    matrix[5] += y
    if expand:
        corners = [_transform_point(matrix, *corner) for corner in ((0, 0), (width, 0), (width, height), (0, height))]
        new_width, new_height = (
            math.ceil(max(coordinates)) - math.floor(min(coordinates)) for coordinates in zip(*corners, strict=True)
        )
        matrix[2], matrix[5] = _transform_point(matrix, -(new_width - width) / 2.0, -(new_height - height) / 2.0)
        height, width = new_height, new_width
    return affine((height, width), matrix, name, fill), (height, width)


def _count_quarter_turns(angle: float, allow_odd: bool) -> int | None:
    """Return the number of quarter turns of an angle; None if the rotation needs interpolation.

    Args:
        angle: Angle in degrees, from 0 to 360.
        allow_odd: If False, 1 and 3 quarter turns are not allowed, and the result for 90 and 270 degrees is None.
    """
    quarters = {0: 0, 180: 2, **({90: 1, 270: 3} if allow_odd else {})}
    return quarters.get(angle)  # type: ignore[call-overload, no-any-return]


def _transform_point(matrix: Sequence[float], x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + b * y + c, d * x + e * y + f
