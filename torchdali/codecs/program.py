"""Image programs: the crops, resizes, flips and pixel steps that turn an encoded image into a result.

The native library decodes the image and runs the program in one call. The pixels match DALI's. If the program resizes
with a Pillow filter, the pixels are bit-identical to Pillow's, although Pillow performs each operation on the whole
image.
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
    """A program that computes pixels, and the steps that then change these pixels.

    Attributes:
        region: The program, which has no steps itself.
        steps: Concatenated `kernels.native.STEP` structures; see `pixel_steps`.
        size: Height and width after the steps.
    """

    region: ImageProgram
    steps: bytes
    size: Size


class ImageProgram(NamedTuple):
    """A region of an image, and how to resize and flip the region.

    Attributes:
        rows: Rows of the image to use, and the height of the result.
        columns: Columns of the image to use, and the width of the result.
        filter: Filter of the resize: a value of `kernels.native.PILLOW` (plus flags), 0 for DALI's filters, or None
            without a resize.
        scale: The image is decoded at its size divided by 1, 2, 4 or 8; `rows` and `columns` refer to the decoded size.
            With 0, the library may choose the divisor for a resize.
        mirror: Reversed axes of the result: `MIRROR`, `UPSIDE_DOWN`, both or 0.
        options: Options for the decoder, DALI's filters and the output; the same object for all programs of a call.
        pixels: If not None, the region is cut from the result of these steps; otherwise from the image of a file.
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
        """Top, left, height and width of the part of the image that the result needs."""
        rows, columns = self.rows, self.columns
        return rows.first, columns.first, rows.last - rows.first, columns.last - columns.first

    def crop(self, top: int, left: int, height: int, width: int) -> ImageProgram | None:
        """Crop the result; return None if the cropped region reaches outside the result."""
        rows, columns, filter_, scale, mirror, options, pixels = self
        is_inside = top >= 0 <= left and top + height <= rows.extent and left + width <= columns.extent
        if not is_inside or height < 1 or width < 1:
            return None
        if mirror & UPSIDE_DOWN:
            top = rows.extent - top - height
        if mirror & MIRROR:
            left = columns.extent - left - width
        is_resized = filter_ is not None
        rows, columns = rows.cut(top, height, is_resized), columns.cut(left, width, is_resized)
        return new_tuple(ImageProgram, (rows, columns, filter_, scale or 1, mirror, options, pixels))

    def flip(self, horizontal: bool, vertical: bool) -> ImageProgram:
        """Reverse the columns, the rows or both."""
        rows, columns, filter_, scale, mirror, options, pixels = self
        mirror ^= MIRROR * horizontal + UPSIDE_DOWN * vertical
        return new_tuple(ImageProgram, (rows, columns, filter_, scale, mirror, options, pixels))

    def resize(self, height: int, width: int, name: str, like_tensor: bool = False) -> ImageProgram | None:
        """Resize the result as Pillow does.

        Return None if the result was already resized, or if the program cannot match Pillow.

        Args:
            name: Name of the Pillow filter.
            like_tensor: Resize as PyTorch resizes tensors: the width first, with 16-bit weights.
        """
        if (height, width) == self.size:
            return self
        width_first = like_tensor or _is_width_first()
        is_tall = not like_tensor and width_first and self.size[0] > 100 * self.size[1]
        if self.filter or min(height, width) < 1 or is_tall:
            return None
        rows_first = not width_first and self.size[0] - height > max(0, 2 * (self.size[1] - width))
        rows, columns, mirror = self.rows, self.columns, self.mirror
        if height != rows.extent:
            rows, mirror = rows.resize(0, rows.extent, height, bool(mirror & UPSIDE_DOWN)), mirror & MIRROR
        if width != columns.extent:
            columns, mirror = columns.resize(0, columns.extent, width, bool(mirror & MIRROR)), mirror & UPSIDE_DOWN
        filter_ = PILLOW[name] + ROWS_FIRST * rows_first + COARSE * like_tensor
        return ImageProgram(rows, columns, filter_, 1, mirror, self.options, self.pixels)

    def resize_region(self, rows: Resize, columns: Resize, isolated: bool = False) -> ImageProgram | None:
        """Resize a region of the result as DALI does; return None if the result was already resized.

        Args:
            rows: Start and end of the region's rows, and the new height.
            columns: Start and end of the region's columns, and the new width.
            isolated: Compute the result only from pixels of the region. The region's bounds must then be integers.
        """
        all_rows, all_columns, filter_, scale, mirror, options, pixels = self
        if filter_ is not None:
            return None
        (top, bottom, height), (left, right, width) = rows, columns
        all_rows = all_rows.resize(top, bottom, height, bool(mirror & UPSIDE_DOWN), isolated)
        all_columns = all_columns.resize(left, right, width, bool(mirror & MIRROR), isolated)
        return new_tuple(ImageProgram, (all_rows, all_columns, 0, scale or 1, 0, options, pixels))

    def change_pixels(self, steps: bytes, size: Size) -> ImageProgram:
        """Append steps that change the result's pixels.

        Args:
            steps: Concatenated `kernels.native.STEP` structures.
            size: Height and width after the steps.
        """
        if self.pixels is None:
            changed = PixelSteps(self, steps, size)
        else:
            region, earlier_steps, full_size = self.pixels
            is_whole = self == _whole(*full_size, self.options, 1, self.pixels)
            changed = PixelSteps(region, earlier_steps + (b"" if is_whole else self.as_step()) + steps, size)
        return _whole(*size, self.options, 1, changed)

    def with_options(self, options: ImageOptions) -> ImageProgram:
        """Return the same program with other options."""
        return new_tuple(ImageProgram, (*self[:5], options, self.pixels))

    def as_step(self) -> bytes:
        """Return the program's region, filter and flip as a step."""
        numbers = [int(axis[k]) for k in range(5) for axis in (self.rows, self.columns)]
        return STEP.pack(_VIEW, *numbers, self.mirror, self.filter or 0, *_UNUSED)


def _whole(
    height: int, width: int, options: ImageOptions, scale: int, pixels: PixelSteps | None = None
) -> ImageProgram:
    rows = new_tuple(AxisRegion, (0, height, height, 0, height, 0, height))
    columns = new_tuple(AxisRegion, (0, width, width, 0, width, 0, width))
    return new_tuple(ImageProgram, (rows, columns, None, scale, 0, options, pixels))


_VIEW = 1  # same value as `TDN_VIEW` in native.h
_UNUSED = (0,) * 3 + (0.0,) * 8


@cache
def _is_width_first() -> bool:
    """Return whether Pillow always resizes the width first.

    Pillow 13 and later resize the height first if the height shrinks by more than twice as many pixels as the width.
    """
    import PIL  # imported late, so that `import torchdali` stays fast

    return int(PIL.__version__.partition(".")[0]) < 13
