"""Several WAV files of integers by the package torchdali-native: two calls, whatever their number.

What it refuses, the caller does in its usual way, which raises the error. So nothing here raises for bad data.
"""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.memory import Array, Empty
from torchdali.kernels.native import library

__all__ = ["decode_together"]

# As `tdn_sound`: columns of data, length, begin, frames, rate, channels, bits, code.
_COLUMNS = 8
_FRAMES, _RATE, _CHANNELS = 3, 4, 5

_TYPES = {torch.float32: 0, torch.int16: 1, torch.int32: 2}


class _Memory(threading.local):
    """A thread's table of sounds."""

    def __init__(self) -> None:
        self._table = np.empty((0, _COLUMNS), np.uint64)

    def rows(self, count: int) -> tuple[npt.NDArray[np.uint64], int]:
        """Return so many rows, valid until this thread asks again, and where they lie."""
        if len(self._table) < count:
            self._table = np.empty((count, _COLUMNS), np.uint64)
            self._address = self._table.ctypes.data
        return self._table[:count], self._address


_memory = _Memory()


def decode_together(
    buffers: Sequence[Tensor] | Sequence[Array], downmix: bool, dtype: torch.dtype, empty: Empty
) -> tuple[Tensor, list[int], list[int]] | None:
    """Decode WAV files of one number of channels; see `codecs.audio.decode_several`."""
    found, count = library(), len(buffers)
    places = None if found is None else _places(buffers)
    if found is None or places is None:
        return None
    table, address = _memory.rows(count)
    for column, numbers in enumerate(places):
        table[:, column] = np.fromiter(numbers, np.uint64, count)
    if found.wav_headers(address, count):
        return None
    several = set(table[:, _CHANNELS].tolist())
    if len(several) > 1:
        return None
    frames: list[int] = table[:, _FRAMES].tolist()
    total, channels = sum(frames), 1 if downmix else several.pop()
    samples = empty((total,) if downmix else (total, channels), dtype)
    room = total * channels
    code = found.wav_samples(address, count, _TYPES[dtype], downmix, samples.data_ptr(), room, found.level)
    return None if code else (samples, frames, table[:, _RATE].tolist())


_dtype_of, _is_cpu = operator.attrgetter("dtype"), operator.attrgetter("is_cpu")
_first: Any = ctypes.c_char.from_buffer  # its address is `array.ctypes.data`, in a third of the time


def _places(buffers: Sequence[Any]) -> tuple[Iterable[int], Iterable[int]] | None:
    """Return addresses and lengths if the library can read them all: contiguous, one-dimensional uint8 on the CPU."""
    if isinstance(buffers[0], np.ndarray):
        if buffers[0].dtype != np.uint8 or buffers[0].ndim != 1:
            return None
        lengths = list(map(len, buffers))
        return (map(ctypes.addressof, map(_first, buffers)), lengths) if all(lengths) else None
    alike = (
        all(map(Tensor.is_contiguous, buffers))
        and all(map(_is_cpu, buffers))
        and set(map(_dtype_of, buffers)) == {torch.uint8}
        and set(map(Tensor.dim, buffers)) == {1}
    )
    return (map(Tensor.data_ptr, buffers), map(Tensor.numel, buffers)) if alike else None
