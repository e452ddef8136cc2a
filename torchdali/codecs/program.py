"""Image programs: crops, resizes, flips and steps on pixels that an encoded image goes through before it is a result.

Nothing is decoded until the library of the fast path renders a program, in one call. The pixels are DALI's; or, if a
filter of Pillow is named, bit-identical to Pillow's, which performs each operation on the whole image.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from torchdali.kernels.native import (
    COARSE,
    MIRROR,
    PILLOW,
    ROWS_FIRST,
    STEP,
    UPSIDE_DOWN,
    AxisRegion,
    ImageOptions,
    new_tuple,
)

__all__ = ["ImageProgram", "PixelSteps"]

Size = tuple[int, int]
Resize = tuple[float, float, int]
_DEFAULT = ImageOptions()


class PixelSteps(NamedTuple):
    """Pixels of a program, changed by steps.

    Attributes:
        region: Program without steps that renders the pixels.
        steps: Each a `kernels.native.STEP`; see `pixel_steps`.
        size: Height and width after the steps.
    """

    region: ImageProgram
    steps: bytes
    size: Size


class ImageProgram(NamedTuple):
    """Region of an image, its scale, filter and flip.

    Attributes:
        filter: Filter of a resize: one of `kernels.native.PILLOW`, or 0 for DALI's; None if there is none.
        scale: Part of its size at which the image is decoded: 1, 2, 4 or 8, to which `rows` and `columns` refer; or 0
            if a resize may choose it.
        mirror: Order of the rows and columns of the result: `MIRROR`, `UPSIDE_DOWN`, both or 0.
        options: Decoding, DALI's filters and output: the same for all programs of a call.
        pixels: The image, if it is the result of steps; None for a file's image.
    """

    rows: AxisRegion
    columns: AxisRegion
    filter: int | None = None
    scale: int = 1
    mirror: int = 0
    options: ImageOptions = _DEFAULT
    pixels: PixelSteps | None = None

    @classmethod
    def of(cls, height: int, width: int, options: ImageOptions = _DEFAULT, *, scale: int = 1) -> ImageProgram:
        """Return the program that renders a whole image."""
        return _whole(height, width, options, scale)

    @property
    def size(self) -> Size:
        """Height and width of the result."""
        return self.rows.extent, self.columns.extent

    @property
    def window(self) -> tuple[int, int, int, int]:
        """Top, left, height and width of the pixels of the image that the result needs."""
        rows, columns = self.rows, self.columns
        return rows.first, columns.first, rows.last - rows.first, columns.last - columns.first

    def crop(self, top: int, left: int, height: int, width: int) -> ImageProgram | None:
        """Crop the result; None if the window reaches outside."""
        rows, columns, filter_, scale, mirror, options, pixels = self
        inside = top >= 0 <= left and top + height <= rows.extent and left + width <= columns.extent
        if not inside or height < 1 or width < 1:
            return None
        if mirror & UPSIDE_DOWN:
            top = rows.extent - top - height
        if mirror & MIRROR:
            left = columns.extent - left - width
        resized = filter_ is not None
        rows, columns = rows.cut(top, height, resized), columns.cut(left, width, resized)
        return new_tuple(ImageProgram, (rows, columns, filter_, scale or 1, mirror, options, pixels))

    def flip(self, horizontal: bool, vertical: bool) -> ImageProgram:
        """Reverse the columns, the rows or both."""
        rows, columns, filter_, scale, mirror, options, pixels = self
        mirror ^= MIRROR * horizontal + UPSIDE_DOWN * vertical
        return new_tuple(ImageProgram, (rows, columns, filter_, scale, mirror, options, pixels))

    def resize(self, height: int, width: int, name: str, of_tensor: bool = False) -> ImageProgram | None:
        """Resize the result as Pillow does; None if it is resized already, or Pillow resizes it in another way.

        Args:
            name: Name of the filter of Pillow.
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
        filter_ = PILLOW[name] + ROWS_FIRST * rows_first + COARSE * of_tensor
        return ImageProgram(rows, columns, filter_, 1, mirror, self.options, self.pixels)

    def resize_region(self, rows: Resize, columns: Resize, alone: bool = False) -> ImageProgram | None:
        """Resize a region of the result as DALI does; None if it is resized already.

        Args:
            rows, columns: Start and end of the region, and its new size.
            alone: True to read nothing outside of the region, which consists of whole pixels.
        """
        all_rows, all_columns, filter_, scale, mirror, options, pixels = self
        if filter_ is not None:
            return None
        (top, bottom, height), (left, right, width) = rows, columns
        all_rows = all_rows.resize(top, bottom, height, bool(mirror & UPSIDE_DOWN), alone)
        all_columns = all_columns.resize(left, right, width, bool(mirror & MIRROR), alone)
        return new_tuple(ImageProgram, (all_rows, all_columns, 0, scale or 1, 0, options, pixels))

    def change_pixels(self, steps: bytes, size: Size) -> ImageProgram:
        """Append steps on the pixels.

        Args:
            size: Height and width after the steps.
        """
        if self.pixels is None:
            changed = PixelSteps(self, steps, size)
        else:
            region, earlier, whole = self.pixels
            is_whole = self == _whole(*whole, self.options, 1, self.pixels)
            changed = PixelSteps(region, earlier + (b"" if is_whole else self.as_step()) + steps, size)
        return _whole(*size, self.options, 1, changed)

    def with_options(self, options: ImageOptions) -> ImageProgram:
        """Return the program with other options."""
        return new_tuple(ImageProgram, (*self[:5], options, self.pixels))

    def as_step(self) -> bytes:
        """Return the region of pixels as a step."""
        numbers = [int(axis[k]) for k in range(5) for axis in (self.rows, self.columns)]
        return STEP.pack(_VIEW, *numbers, self.mirror, self.filter or 0, *_UNUSED)


def _whole(
    height: int, width: int, options: ImageOptions, scale: int, pixels: PixelSteps | None = None
) -> ImageProgram:
    rows = new_tuple(AxisRegion, (0, height, height, 0, height, 0, height))
    columns = new_tuple(AxisRegion, (0, width, width, 0, width, 0, width))
    return new_tuple(ImageProgram, (rows, columns, None, scale, 0, options, pixels))


_VIEW = 1  # as `TDN_VIEW` in native.h
_UNUSED = (0,) * 3 + (0.0,) * 8


@cache
def _is_width_first() -> bool:
    """Return if Pillow resizes the width first.

    Newer versions do so unless the height shrinks by more than twice as many lines.
    """
    import PIL  # `import torchdali` is quick

    return int(PIL.__version__.partition(".")[0]) < 13
