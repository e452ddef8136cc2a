"""Memory that a thread uses again and again, so that large intermediate results need no fresh pages."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Bytes", "Floats", "byte_planes", "byte_scratch", "float_rows", "scratch"]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

_KEPT = 1 << 22  # elements, up to which a thread keeps them
_LINE, _SHIFT = 64, 16  # bytes: of a line of the cache, and from there to where a plane begins


class _Memory(threading.local):
    """One thread's memory by purpose."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, torch.dtype], npt.NDArray[Any]] = {}
        self.shape: tuple[int, int, int] | None = None
        self.planes: list[Bytes] = []
        self.length: tuple[int, int] | None = None
        self.rows: list[Floats] = []


_memory = _Memory()


def scratch(shape: Sequence[int], purpose: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return uninitialised memory on the CPU, valid until this thread asks for the purpose and type again.

    Args:
        dtype: float32 or uint8.
    """
    if math.prod(shape) > _KEPT or torch.compiler.is_compiling():
        return torch.empty(tuple(shape), dtype=dtype, device="cpu")
    return torch.from_numpy(_scratch(tuple(shape), purpose, dtype))


def byte_scratch(shape: tuple[int, ...], purpose: str) -> Bytes:
    """Return what `scratch` returns, as an array."""
    if math.prod(shape) > _KEPT:
        return np.empty(shape, np.uint8)
    return _scratch(shape, purpose, torch.uint8)


def _scratch(shape: tuple[int, ...], purpose: str, dtype: torch.dtype) -> npt.NDArray[Any]:
    count = math.prod(shape)
    kept = _memory.kept.get((purpose, dtype))
    if kept is None or len(kept) < count:
        kept = _memory.kept[purpose, dtype] = np.empty(count, _TYPES[dtype])
    return kept[:count].reshape(shape)


_TYPES = {torch.float32: np.float32, torch.uint8: np.uint8}


def byte_planes(channels: int, height: int, width: int) -> list[Bytes]:
    """Return scratch ``(H, W)`` for the channels that OpenCV takes apart; valid until this thread asks again.

    No plane begins where a vector would, nor two of them alike: OpenCV writes aligned ones past the cache, from where
    the next step would have to fetch them at three times the cost.
    """
    shape = channels, height, width
    if shape != _memory.shape:
        count = height * width
        pitch = count // _LINE * _LINE + _LINE + _SHIFT
        memory = byte_scratch((channels * pitch + _LINE,), "planes")
        first = -memory.ctypes.data % _LINE + _SHIFT
        starts = range(first, first + channels * pitch, pitch)
        planes = [memory[start : start + count].reshape(height, width) for start in starts]
        if len(memory) > _KEPT:
            return planes
        _memory.shape, _memory.planes = shape, planes
    return _memory.planes


def float_rows(count: int, length: int) -> list[Floats]:
    """Return scratch for some rows of numbers, each on a line of the cache; valid until this thread asks again."""
    if (count, length) != _memory.length:
        line = _LINE // 4
        pitch = -(-length // line) * line
        memory = scratch((count * pitch + line,), "rows of floats").numpy()
        first = -memory.ctypes.data % _LINE // 4
        starts = range(first, first + count * pitch, pitch)
        rows = [memory[start : start + length] for start in starts]
        if len(memory) > _KEPT:
            return rows
        _memory.length, _memory.rows = (count, length), rows
    return _memory.rows
