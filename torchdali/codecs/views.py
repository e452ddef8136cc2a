"""Views of pictures: a part of one, resized, a part of that, in another order; nothing is decoded until it is rendered.

What several crops, resizes and flips in a row ask for of a picture is one `View`, and its pixels are one call of the
library of the fast path. They are those of DALI; or, if a filter of Pillow is named, those that Pillow has when it does
each step on the whole picture, to the bit.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from torchdali.kernels.native import COARSE, MIRROR, PILLOW, ROWS_FIRST, UPSIDE_DOWN, Lines, new_tuple

__all__ = ["View"]

Resize = tuple[float, float, int]


class View(NamedTuple):
    """A view of a picture.

    Attributes:
        filter: Of a resize: one of `kernels.native.PILLOW`, or 0 for DALI's; None if there is none.
        scale: Part of its size at which the picture is decoded, of which `rows` and `columns` are: 1, 2, 4 or 8; or 0
            if a resize may choose it.
        mirror: Order of the lines that are wanted: `MIRROR`, `UPSIDE_DOWN`, both or 0.
    """

    rows: Lines
    columns: Lines
    filter: int | None = None
    scale: int = 1
    mirror: int = 0

    @classmethod
    def of(cls, height: int, width: int, scale: int = 1) -> View:
        """Return the view of a whole picture."""
        rows = new_tuple(Lines, (0, height, height, 0, height, 0, height))
        columns = new_tuple(Lines, (0, width, width, 0, width, 0, width))
        return new_tuple(View, (rows, columns, None, scale, 0))

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.rows.extent, self.columns.extent

    def crop(self, top: int, left: int, height: int, width: int) -> View | None:
        """Return a window of this; None if it reaches outside."""
        rows, columns, filter_, scale, mirror = self
        inside = top >= 0 <= left and top + height <= rows.extent and left + width <= columns.extent
        if not inside or height < 1 or width < 1:
            return None
        if mirror & UPSIDE_DOWN:
            top = rows.extent - top - height
        if mirror & MIRROR:
            left = columns.extent - left - width
        resized = filter_ is not None
        rows, columns = rows.cut(top, height, resized), columns.cut(left, width, resized)
        return new_tuple(View, (rows, columns, filter_, scale or 1, mirror))

    def flip(self, horizontal: bool, vertical: bool) -> View:
        """Return this with its columns, its rows or both in reverse order."""
        rows, columns, filter_, scale, mirror = self
        mirror ^= MIRROR * horizontal + UPSIDE_DOWN * vertical
        return new_tuple(View, (rows, columns, filter_, scale, mirror))

    def resize(self, height: int, width: int, name: str, of_tensor: bool = False) -> View | None:
        """Return this with other numbers of lines; None if it was resized before, or Pillow does it in another way.

        Args:
            name: Of the filter of Pillow.
            of_tensor: Resize as PyTorch does: the width first, with weights of 16 bits.
        """
        if (height, width) == self.size:
            return self
        width_first = of_tensor or _is_width_first()
        is_high = not of_tensor and width_first and self.size[0] > 100 * self.size[1]
        if self.filter or min(height, width) < 1 or is_high:
            return None
        rows_first = not width_first and self.size[0] - height > max(0, 2 * (self.size[1] - width))
        rows, columns, mirror = self.rows, self.columns, self.mirror
        if height != rows.extent:
            rows, mirror = rows.resize(0, rows.extent, height, bool(mirror & UPSIDE_DOWN)), mirror & MIRROR
        if width != columns.extent:
            columns, mirror = columns.resize(0, columns.extent, width, bool(mirror & MIRROR)), mirror & UPSIDE_DOWN
        return View(rows, columns, PILLOW[name] + ROWS_FIRST * rows_first + COARSE * of_tensor, 1, mirror)

    def resize_region(self, rows: Resize, columns: Resize, alone: bool = False) -> View | None:
        """Return a region of this with other numbers of lines, as DALI resizes; None if it was resized before.

        Args:
            rows, columns: Where the region begins and ends, and how many lines it becomes.
            alone: Nothing outside of the region is seen, which is whole pixels.
        """
        before, beside, filter_, scale, mirror = self
        if filter_ is not None:
            return None
        (top, bottom, height), (left, right, width) = rows, columns
        before = before.resize(top, bottom, height, bool(mirror & UPSIDE_DOWN), alone)
        beside = beside.resize(left, right, width, bool(mirror & MIRROR), alone)
        return new_tuple(View, (before, beside, 0, scale or 1, 0))


@cache
def _is_width_first() -> bool:
    """Return if Pillow resizes the width first.

    Newer versions do so unless the height shrinks by more than twice as many lines.
    """
    import PIL  # `import torchdali` is quick

    return int(PIL.__version__.partition(".")[0]) < 13
