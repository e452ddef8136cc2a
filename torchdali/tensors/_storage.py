"""Storage of the samples of a batch: one tensor, one block of memory, or one tensor per sample.

All storage classes have the same interface. Storage objects are immutable, except for cached views of the samples, so
several batches may share an object. To store its samples differently, a batch replaces its storage object.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors._single import reinterpret
from torchdali.tensors.dtypes import DALIDataType, to_torch_dtype

CPU = torch.device("cpu")


class SampleStorage:
    """Base class of the storage classes. The default methods work on a list of separate samples."""

    __slots__ = ("_samples",)

    dense: torch.Tensor | None = None
    rows: tuple[torch.Tensor, Sequence[int]] | None = None

    _samples: list[torch.Tensor] | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor's arguments without cached views, because pickle would copy each view's memory."""
        raise NotImplementedError

    def samples(self) -> list[torch.Tensor]:
        """Return the samples. Later calls return the same list."""
        samples = self._samples
        if samples is None:
            samples = self._samples = self._split()
        return samples

    def _split(self) -> list[torch.Tensor]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.samples())

    def __len__(self) -> int:
        return len(self.samples())

    @property
    def dtype(self) -> torch.dtype | None:
        """Dtype of the elements; None for an empty batch that was built without a dtype."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """Device of the samples."""
        raise NotImplementedError

    def ndim(self) -> int:
        """Return the number of axes of a sample."""
        raise NotImplementedError

    def shape(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        return [tuple(sample.shape) for sample in self.samples()]

    def tolist(self) -> list[Any]:
        """Return each sample as a Python number or as nested lists of numbers."""
        return [sample.tolist() for sample in self.samples()]

    def is_uniform(self) -> bool:
        """Return whether all samples have the same shape."""
        samples = self.samples()
        return all(sample.shape == samples[0].shape for sample in samples)

    def stack(self) -> Dense:
        """Return the samples, which must have the same shape, as one tensor."""
        return Dense(torch.stack(self.samples()))

    def pack(self) -> tuple[SampleStorage, torch.Tensor]:
        """Store all samples, in order, in one block of memory. Return the new storage, and the block as a 1D tensor."""
        if self.is_uniform():
            return self.stack().pack()
        packed = self._wrap_flat(torch.cat([sample.reshape(-1) for sample in self.samples()]))
        return packed, packed.flat

    def _wrap_flat(self, flat: torch.Tensor) -> PackedSamples:
        """Return a storage with the same shapes, whose samples are one after the other in `flat`."""
        shapes = self.shape()
        sizes = map(math.prod, shapes[:-1])
        return PackedSamples(flat, list(itertools.accumulate(sizes, initial=0)), shapes)

    def reinterpret(self, new_type: DALIDataType) -> SampleStorage:
        """Reinterpret the bytes as elements of another dtype. Raise RuntimeError if the dtypes differ in size."""
        samples = [reinterpret(sample, new_type) for sample in self.samples()]
        return SeparateSamples(samples, self.device, to_torch_dtype(new_type), self.ndim())

    def to_cpu(self) -> SampleStorage:
        """Copy all samples to main memory in one transfer."""
        samples = self.samples()
        if not samples:
            return SeparateSamples([], CPU, self.dtype, self.ndim())
        return self._wrap_flat(torch.cat([sample.reshape(-1) for sample in samples]).cpu())


class Dense(SampleStorage):
    """One tensor whose first dimension is the batch. The samples are views of this tensor."""

    __slots__ = ("dense",)

    dense: torch.Tensor

    def __init__(self, dense: torch.Tensor) -> None:
        self.dense, self._samples = dense, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Dense, (self.dense,)

    def _split(self) -> list[torch.Tensor]:
        return list(self.dense.unbind())

    def __len__(self) -> int:
        return self.dense.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.dense.dtype

    @property
    def device(self) -> torch.device:
        return self.dense.device

    def ndim(self) -> int:
        return self.dense.dim() - 1

    def shape(self) -> list[tuple[int, ...]]:
        return [tuple(self.dense.shape[1:])] * self.dense.shape[0]

    def tolist(self) -> list[Any]:
        values: list[Any] = self.dense.tolist()
        return values

    def is_uniform(self) -> bool:
        return True

    def stack(self) -> Dense:
        return self

    def pack(self) -> tuple[Dense, torch.Tensor]:
        contiguous = self if self.dense.is_contiguous() else Dense(self.dense.contiguous())
        return contiguous, contiguous.dense.view(-1)

    def reinterpret(self, new_type: DALIDataType) -> Dense:
        return Dense(reinterpret(self.dense, new_type))

    def to_cpu(self) -> Dense:
        return Dense(self.dense.cpu())


class SeparateSamples(SampleStorage):
    """One tensor or NumPy array per sample, of any shapes. Batches without samples also have this storage.

    Args:
        samples: The samples. The list itself is stored, not a copy. An item is None if its sample belongs to another
            branch of an ``if``.
        device: Device of the samples.
        dtype: Dtype of the elements; used only if there are no tensors.
        ndim: Number of axes of a sample; used only if there are no tensors.
        arrays: NumPy arrays, instead of `samples`: at least one array, all of the same dtype and number of axes,
            contiguous and writable. Tensors that share the arrays' memory are created only when they are needed,
            because `torch.from_numpy` is slow and releases the GIL.
    """

    __slots__ = ("_dtype", "_ndim", "arrays", "device")

    device: torch.device

    def __init__(
        self,
        samples: list[torch.Tensor] | None,
        device: torch.device,
        dtype: torch.dtype | None = None,
        ndim: int | None = None,
        arrays: list[npt.NDArray[Any]] | None = None,
    ) -> None:
        self._samples, self.device, self.arrays = samples, device, arrays
        self._dtype, self._ndim = dtype, ndim

    @classmethod
    def from_arrays(cls, arrays: list[npt.NDArray[Any]], dtype: torch.dtype) -> SeparateSamples:
        """Create a storage of NumPy arrays of dtype `dtype`; see `SeparateSamples`."""
        return cls(None, CPU, dtype, arrays[0].ndim, arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return SeparateSamples, (self.samples(), self.device, self._dtype, self._ndim)

    def __getitem__(self, part: slice) -> SeparateSamples:
        """Return a storage with a range of the samples."""
        if self.arrays is not None:
            return SeparateSamples(None, self.device, self._dtype, self._ndim, self.arrays[part])
        return SeparateSamples(self.samples()[part], self.device, self._dtype, self._ndim)

    def _split(self) -> list[torch.Tensor]:
        assert self.arrays is not None
        return list(map(torch.from_numpy, self.arrays))

    def __len__(self) -> int:
        return len(self.samples() if self.arrays is None else self.arrays)

    @property
    def dtype(self) -> torch.dtype | None:
        first = self._first()
        return self._dtype if first is None else first.dtype

    def ndim(self) -> int:
        first = self._first()
        return self._ndim or 0 if first is None else first.dim()

    def _first(self) -> torch.Tensor | None:
        return next((sample for sample in self._samples or () if sample is not None), None)

    def shape(self) -> list[tuple[int, ...]]:
        return super().shape() if self.arrays is None else [array.shape for array in self.arrays]

    def stack(self) -> Dense:
        if self.samples():
            return super().stack()
        if self._dtype is None:
            raise RuntimeError("an empty batch must have a type to be one tensor")
        return Dense(torch.empty([0] * (1 + self.ndim()), dtype=self._dtype, device=self.device))


class PackedSamples(SampleStorage):
    """Samples of any shapes in one block of memory, in any order, possibly with gaps.

    Args:
        flat: The memory as a one-dimensional tensor.
        offsets: Index of each sample's first element in `flat`.
        shapes: Shapes of the samples. All samples are contiguous and have the same number of axes.
        rows: The memory as rows ``(n, ...)``, and each sample's number of rows. None if the samples don't come from
            `from_rows`.
        transposed: True if each sample is the transpose of the matrix of its rows. Then an operator can process the
            rows of all samples in one call. Before the samples become a batch, `untranspose` converts them.
    """

    __slots__ = ("_shapes", "device", "flat", "offsets", "rows", "transposed")

    device: torch.device
    rows: tuple[torch.Tensor, Sequence[int]] | None

    def __init__(
        self,
        flat: torch.Tensor,
        offsets: Sequence[int],
        shapes: list[tuple[int, ...]],
        rows: tuple[torch.Tensor, Sequence[int]] | None = None,
        transposed: bool = False,
    ) -> None:
        self.flat, self.offsets, self._shapes, self._samples = flat, offsets, shapes, None
        self.rows, self.transposed, self.device = rows, transposed, flat.device

    @classmethod
    def from_rows(cls, rows: torch.Tensor, counts: Sequence[int], transposed: bool = False) -> PackedSamples:
        """Create a storage of samples that are consecutive rows of a dense tensor ``(n, ...)``."""
        size = math.prod(rows.shape[1:])
        offsets = [size * first for first in itertools.accumulate(counts[:-1], initial=0)]
        shapes = [(count, *rows.shape[1:])[:: -1 if transposed else 1] for count in counts]
        return cls(rows.view(-1), offsets, shapes, (rows, counts), transposed)

    def untranspose(self) -> PackedSamples:
        """Copy transposed samples to contiguous memory. A storage without transposed samples is returned unchanged."""
        if not self.transposed:
            return self
        elements = self.flat.numpy()
        memory = np.empty_like(elements)
        for offset, (height, width) in zip(self.offsets, self._shapes, strict=True):
            part = slice(offset, offset + height * width)
            memory[part].reshape(height, width)[...] = elements[part].reshape(width, height).T
        return PackedSamples(torch.from_numpy(memory), self.offsets, self._shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.rows is not None:
            return PackedSamples.from_rows, self.rows
        return PackedSamples, (self.flat, self.offsets, self._shapes)

    def _split(self) -> list[torch.Tensor]:
        if self.rows is not None:
            parts = self.rows[0].split_with_sizes(self.rows[1])
            return [part.t() for part in parts] if self.transposed else list(parts)
        pairs = zip(self.offsets, self._shapes, strict=True)
        return [self.flat[i : i + math.prod(shape)].view(shape) for i, shape in pairs]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def dtype(self) -> torch.dtype:
        return self.flat.dtype

    def ndim(self) -> int:
        return len(self._shapes[0])

    def shape(self) -> list[tuple[int, ...]]:
        return list(self._shapes)

    def is_uniform(self) -> bool:
        return all(shape == self._shapes[0] for shape in self._shapes)

    def pack(self) -> tuple[SampleStorage, torch.Tensor]:
        return super().pack() if self.rows is None else (self, self.flat)

    def move(self, device: torch.device) -> PackedSamples:
        """Copy all samples to a device in one transfer, without waiting for the end of the transfer."""
        return PackedSamples(self.flat.to(device, non_blocking=True), self.offsets, self._shapes)

    def to_cpu(self) -> PackedSamples:
        return PackedSamples(self.flat.cpu(), self.offsets, self._shapes)


def arrays_of(samples: Any) -> list[npt.NDArray[Any]] | None:
    """Return the samples' NumPy arrays if the samples are stored as arrays, else None."""
    return samples.arrays if isinstance(samples, SeparateSamples) else None
