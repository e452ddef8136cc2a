"""Steps of the library of the fast path on pixels, ``(H, W, 3)`` bytes, as it takes them: with the bits of Pillow.

Each function returns one step; several follow one another. `Work` puts them between views of a picture.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from torch import Tensor

from torchdali.codecs._native import Encoded, Task, encoded, pixels_of, run_together
from torchdali.codecs.views import View
from torchdali.kernels.memory import IN_PLACE
from torchdali.kernels.native import PILLOW, STEP, Recipe

__all__ = ["PLAIN", "SCALED", "Work", "affine", "blur", "channels", "filling", "plain", "rotation", "window"]

Levels = tuple[int, int, int]
Size = tuple[int, int]

# As `TDN_VIEW` and those that follow it in native.h.
_VIEW, _WINDOW, _TURN, _AFFINE, _PERSPECTIVE, _HUE, _POSTERIZE, _BLUR, _FILL, _CHANNELS = (
    1,
    2,
    3,
    4,
    5,
    10,
    13,
    17,
    18,
    19,
)
PLAIN = {"gray": 11, "invert": 12, "autocontrast": 15, "equalize": 16}
SCALED = {"brightness": 6, "contrast": 7, "saturation": 8, "sharpness": 9, "solarize": 14}
_BORDERS = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}


_ONE = struct.Struct("=2i56xd56x")  # a step with one part and one number at most, which is packed sooner


def _step(kind: int, part: Sequence[int], numbers: Sequence[float] = ()) -> bytes:
    return STEP.pack(kind, *part, *_NO_PARTS[len(part) :], *numbers, *_NO_NUMBERS[len(numbers) :])


_NO_PARTS, _NO_NUMBERS = (0,) * 15, (0.0,) * 8


def plain(name: str, value: float | None = None) -> bytes:
    """Return a step by its name: one of `PLAIN`, of `SCALED`, with a factor or a threshold, "hue" or "posterize".

    Args:
        value: For "hue" what is added to it, from 0 to 255; for "posterize" how many bits are left.
    """
    if name in PLAIN:
        return _ONE.pack(PLAIN[name], 0, 0.0)
    assert value is not None
    if name in SCALED:
        return _ONE.pack(SCALED[name], 0, value)
    return _ONE.pack(_HUE if name == "hue" else _POSTERIZE, int(value), 0.0)


def window(top: int, left: int, size: Size, border: str, fill: Levels) -> bytes:
    """Return a cut of a window, which may reach outside.

    Args:
        border: Of what lies outside, by torchvision's name.
    """
    return _step(_WINDOW, (top, left, *size, _BORDERS[border], *fill))


def filling(top: int, left: int, size: Size, fill: Levels) -> bytes:
    """Return a rectangle of one color."""
    return _step(_FILL, (top, left, *size, *fill))


def channels(order: Levels) -> bytes:
    """Return other places of the channels: of the first the number of the one that comes there."""
    return _step(_CHANNELS, order)


def blur(window: Size, deviations: tuple[float, float]) -> bytes:
    """Return a Gaussian blur, with odd sides of its window, along rows and columns."""
    return _step(_BLUR, window, deviations)


def affine(size: Size, matrix: Sequence[float], name: str, fill: Levels) -> bytes:
    """Return a transformation, affine or, if there are 8 numbers, perspective: of places of the result into old ones.

    Args:
        size: Of the result.
        name: Of the filter.
    """
    kind = _AFFINE if len(matrix) == 6 else _PERSPECTIVE
    return _step(kind, (*size, PILLOW[name], *fill), matrix)


def rotation(
    size: Size, angle: float, expand: bool, center: Sequence[float] | None, name: str, fill: Levels
) -> tuple[bytes, Size]:
    """Return steps for a rotation to the left by degrees, and the size behind it, in Pillow's order of operations."""
    height, width = size
    angle = angle % 360.0
    if center is None and (quarters := _quarters(angle, expand or height == width)) is not None:
        turned = (width, height) if quarters % 2 else size
        if quarters == 2:
            return _view(View.of(*size).flip(True, True)), size
        return _ONE.pack(_TURN, quarters, 0.0) if quarters else b"", turned
    turn = -math.radians(angle)
    cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
    x, y = (width / 2, height / 2) if center is None else center
    matrix = [cos, sin, 0.0, round(-math.sin(turn), 15), cos, 0.0]
    matrix[2], matrix[5] = _moved(matrix, -x, -y)
    matrix[2] += x
    matrix[5] += y
    if expand:
        corners = [_moved(matrix, *corner) for corner in ((0, 0), (width, 0), (width, height), (0, height))]
        wide, high = (math.ceil(max(line)) - math.floor(min(line)) for line in zip(*corners, strict=True))
        matrix[2], matrix[5] = _moved(matrix, -(wide - width) / 2.0, -(high - height) / 2.0)
        height, width = high, wide
    return affine((height, width), matrix, name, fill), (height, width)


def _quarters(angle: float, turns: bool) -> int | None:
    """Return quarter turns, if nothing is mixed for an angle: by one or three only if these do not leave a border."""
    quarters = {0: 0, 180: 2, **({90: 1, 270: 3} if turns else {})}
    return quarters.get(angle)  # type: ignore[call-overload, no-any-return]


def _moved(matrix: Sequence[float], x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + b * y + c, d * x + e * y + f


def _view(view: View) -> bytes:
    numbers = [int(axis[k]) for k in range(5) for axis in (view.rows, view.columns)]
    return _step(_VIEW, (*numbers, view.mirror, view.filter or 0))


class Work:
    """Work of the library on a picture: a view of it, steps on its pixels, and a view of these.

    Attributes:
        view: What is wanted of the picture, or of what the steps have made of it.
    """

    __slots__ = ("_all", "_first", "_steps", "view")

    def __init__(self, view: View) -> None:
        self.view = self._all = view
        self._first: View | None = None
        self._steps = b""

    @property
    def is_view(self) -> bool:
        """True if there are no steps."""
        return self._first is None

    def add(self, steps: bytes, size: Size) -> None:
        """Take steps on the pixels.

        Args:
            size: Behind them.
        """
        self._close()
        self._steps += steps
        self.view = self._all = View.of(*size)

    def _close(self) -> None:
        """Make pixels of the view."""
        if self._first is None:
            self._first = self.view
        elif self.view != self._all:
            self._steps += _view(self.view)

    def task(self, data: Encoded) -> Task:
        """Return the call of the library for one of several pictures; see `codecs._native.run_together`."""
        if self._first is None:
            return Task(data, self.view, b"", self.view.size)
        return Task(data, self._first, self._steps + _view(self.view), self.view.size)

    def render(self, recipe: Recipe, data: Tensor, out: Tensor | None = None) -> Tensor | None:
        """Return the pixels of a file or of pixels, in `out` if they fit; None if the library cannot make them."""
        (source,) = encoded([data]) if data.dim() == 1 else [pixels_of(data)]
        if source is None:
            return None
        (pixels,) = run_together(recipe, [self.task(source)], None if out is None else out[None])
        return out if pixels is IN_PLACE else pixels
