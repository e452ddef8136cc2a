"""NumPy arrays as the samples of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt
import torch

from torchdali.tensors._storage import CPU, Samples, Storage

__all__ = ["Arrays"]

Array = npt.NDArray[Any]


class Arrays(Storage, Sequence[torch.Tensor]):
    """A NumPy array for each sample; tensors on the same memory are made when somebody asks for one.

    A tensor costs as much as ten looks at its array, and releases the GIL when it is made and when it ends.

    Args:
        arrays: One at least; of one type and number of axes, contiguous and writable.
        dtype: Their type.
    """

    __slots__ = ("arrays", "dtype")

    device = CPU
    dtype: torch.dtype

    def __init__(self, arrays: list[Array], dtype: torch.dtype) -> None:
        self.arrays, self.dtype, self._samples = arrays, dtype, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Samples, (self.samples(), CPU)

    def _divided(self) -> list[torch.Tensor]:
        return list(map(torch.from_numpy, self.arrays))

    def __len__(self) -> int:
        return len(self.arrays)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.samples())

    def __getitem__(self, i: Any) -> Any:
        return Arrays(self.arrays[i], self.dtype) if isinstance(i, slice) else self.samples()[i]

    def ndim(self) -> int:
        return self.arrays[0].ndim

    def shape(self) -> list[tuple[int, ...]]:
        return [array.shape for array in self.arrays]
