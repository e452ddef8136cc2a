"""Decode BMP files with 24 bits per pixel, bit fields, or run lengths. Pillow decodes all other BMP files."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.codecs._image_headers import ImageHeader

__all__ = ["bmp_colors", "bmp_fields", "bmp_runs"]

Bytes = npt.NDArray[np.uint8]

_COARSE = ((0xF800, 0x7E0, 0x1F), (0x7C00, 0x3E0, 0x1F))


def bmp_fields(view: memoryview, header: ImageHeader, masks: tuple[int, ...]) -> Tensor:
    """Decode 16-bit or 32-bit pixels. Each mask selects the bits of one channel.

    The values of a channel are scaled to the range 0 to 255. If `_COARSE` contains the masks, the values are only
    shifted to the upper bits of a byte, as in DALI.
    """
    start, size, signed_height, depth, compression = struct.unpack_from("<II4xi2xHI", view, 10)
    is_coarse = size == 40 and compression == 3 and masks in _COARSE
    stride = (header.width * depth + 31) // 32 * 32 // depth
    values = np.frombuffer(view, f"<u{depth // 8}", stride * header.height, start).reshape(-1, stride)
    values = values[:: 1 if signed_height < 0 else -1, : header.width]
    pixels = np.empty((*values.shape, header.channels), np.uint8)
    for row, colors in zip(values, pixels, strict=True):
        for channel, mask in enumerate(masks[: header.channels]):
            field, largest = (row & mask) // (mask & -mask or 1), mask // (mask & -mask or 1) or 1
            scaled = field << (8 - largest.bit_length()) if is_coarse else field.astype(np.uint64) * 255 // largest
            colors[:, channel] = scaled
    return torch.from_numpy(pixels)


def bmp_colors(view: memoryview, header: ImageHeader) -> Tensor | None:
    """Decode 24-bit pixels; Pillow takes 1.6 times as long.

    Return None for other depths, and for truncated files.
    """
    start, size = struct.unpack_from("<II", view, 10)
    if size < 40:
        return None
    signed_height, depth, compression = struct.unpack_from("<i2xHI", view, 22)
    stride = (3 * header.width + 3) // 4 * 4
    if depth != 24 or compression or start < 14 + size or len(view) < start + stride * header.height:
        return None
    rows = np.frombuffer(view, np.uint8, stride * header.height, start).reshape(-1, stride)
    colors = rows[:: 1 if signed_height < 0 else -1, : 3 * header.width].reshape(header.height, header.width, 3)
    return torch.from_numpy(np.ascontiguousarray(colors[..., ::-1]))


# ---------------------------------------------------------------- run lengths

_DEPTHS = {1: 8, 2: 4}


def bmp_runs(view: memoryview, header: ImageHeader) -> Tensor | None:
    """Decode run lengths with 8 or 4 bits per pixel; return None if the file has no run lengths.

    Raises:
        ValueError: The data ends before the image does.
    """
    start, size = struct.unpack_from("<II", view, 10)
    signed_height, depth, compression = struct.unpack_from("<i2xHI", view, 22) if size >= 40 else (0, 0, 0)
    if compression not in _DEPTHS:
        return None
    if depth != _DEPTHS[compression]:
        raise ValueError(f"an image with this compression must have {_DEPTHS[compression]} bits per pixel, got {depth}")
    runs = _PaletteRuns(np.frombuffer(view, np.uint8)[start:], (header.height, header.width), packed=depth == 4)
    runs.read()
    rows = runs.rows if signed_height < 0 else runs.rows[::-1]
    return torch.from_numpy(_palette(view, size, depth)[:, : header.channels][rows])


def _palette(view: memoryview, size: int, depth: int) -> Bytes:
    """Return 256 colors, ``(256, 3)``; colors that the file's palette doesn't have are black."""
    (used,) = struct.unpack_from("<I", view, 46)
    count = min(used, 1 << depth) or 1 << depth
    colors = np.zeros((256, 3), np.uint8)
    colors[:count] = np.frombuffer(view, np.uint8, 4 * count, 14 + size).reshape(-1, 4)[:, 2::-1]
    return colors


class _PaletteRuns:
    """Decodes run lengths to rows of palette indices, from the bottom row to the top row.

    Skipped pixels are 0. Runs are truncated at the end of a row.

    Args:
        data: Pairs of bytes: a count and the value to repeat, or 0 and a command.
        shape: Height and width.
        packed: True if a byte contains two indices.
    """

    def __init__(self, data: Bytes, shape: tuple[int, int], packed: bool) -> None:
        self.rows = np.zeros(shape, np.uint8)
        self._data, self._packed = data, packed
        self._pairs = data[: len(data) // 2 * 2].reshape(-1, 2)
        self._pair = self._x = self._y = 0  # index of the next pair, and position of the next pixel

    def read(self) -> None:
        """Decode all run lengths, and fill the rows."""
        height, width = self.rows.shape
        commands = np.flatnonzero(self._pairs[:, 0] == 0)
        while self._y < height:
            index = int(commands.searchsorted(self._pair))
            end = int(commands[index]) if index < len(commands) else len(self._pairs)
            if end > self._pair:
                self._write(self._run_indices(self._pairs[self._pair : end]))
            self._pair = end + 1
            if end == len(self._pairs):
                if (self._y, self._x) == (height - 1, width):
                    return
                raise ValueError("the run lengths end before the image does")
            if self._pairs[end, 1] == 1 or not self._execute(int(self._pairs[end, 1])):
                return

    def _run_indices(self, pairs: Bytes) -> Bytes:
        """Return the palette indices of consecutive runs, up to the run that reaches the end of the row."""
        ends = pairs[:, 0].cumsum(dtype=np.int64)
        used = int(ends.searchsorted(self.rows.shape[1] - self._x)) + 1
        counts, values = pairs[:used, 0], pairs[:used, 1].repeat(pairs[:used, 0])
        if not self._packed:
            return values
        is_second = (np.arange(len(values)) - (ends[:used] - counts).repeat(counts)) % 2
        return np.where(is_second, values & 15, values >> 4)

    def _execute(self, command: int) -> bool:
        """Execute a command: go to the next row, jump, or copy single indices. Return False after the last row."""
        if command == 0:
            self._x, self._y = 0, self._y + 1
        elif command == 2:
            right, up = self._read_bytes(2).tolist()
            self._x, self._y = min(self._x + right, self.rows.shape[1]), self._y + up
        else:
            values = self._read_bytes(-(-command // 2) if self._packed else command)
            if self._packed:
                values = np.stack((values >> 4, values & 15), -1).reshape(-1)[:command]
            self._write(values)
        return self._y < len(self.rows)

    def _read_bytes(self, count: int) -> Bytes:
        """Return the `count` bytes after a command, and move to the next pair."""
        values = self._data[2 * self._pair :][:count]
        if len(values) < count:
            raise ValueError("the run lengths end before the image does")
        self._pair += -(-count // 2)
        return values

    def _write(self, values: Bytes) -> None:
        target = self.rows[self._y, self._x : self._x + len(values)]
        target[:] = values[: len(target)]
        self._x += len(target)
