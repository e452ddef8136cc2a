"""Storage of the samples of a batch: as `Dense`, `Samples`, `Rows`, `Blocks`, `Packed` or `arrays.Arrays`.

All answer the same questions. A storage object is immutable, so several batches may hold the same one; a
batch that needs its samples in another form, or in one piece of memory, swaps its storage. Only views of samples are
made on demand and kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torchdali.dtypes import DALIDataType, to_torch_dtype
from torchdali.tensors._single import reinterpreted

CPU = torch.device("cpu")


class Storage:
    """The samples of a batch in one of the forms; what is here is right for separate samples."""

    __slots__ = ("_samples",)

    dense: torch.Tensor | None = None
    rows: tuple[torch.Tensor, Sequence[int]] | None = None

    _samples: list[torch.Tensor] | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what to make a copy of; views are left out, since pickle gives each memory of its own."""
        raise NotImplementedError

    def samples(self) -> list[torch.Tensor]:
        """Return the samples, from the second time on the same list."""
        samples = self._samples
        if samples is None:
            samples = self._samples = self._divided()
        return samples

    def _divided(self) -> list[torch.Tensor]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.samples())

    @property
    def dtype(self) -> torch.dtype | None:
        """Type of the elements; None where there is no sample and none was given."""
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
        """Return whether all samples have one shape."""
        samples = self.samples()
        return all(sample.shape == samples[0].shape for sample in samples)

    def stacked(self) -> Dense:
        """Return the samples, which must have one shape, as one tensor."""
        return Dense(torch.stack(self.samples()))

    def packed(self) -> tuple[Storage, torch.Tensor]:
        """Return a form that lies in one piece of memory, and its elements, in order, as a 1D tensor."""
        if self.is_uniform():
            return self.stacked().packed()
        samples = self.samples()
        flat = torch.cat([sample.reshape(-1) for sample in samples])
        return Samples(_split_as(flat, samples), self.device, flat=flat), flat

    def reinterpreted(self, new_type: DALIDataType) -> Storage:
        """Return the bytes as elements of another type; RuntimeError where the sizes differ."""
        samples = [reinterpreted(sample, new_type) for sample in self.samples()]
        return Samples(samples, self.device, to_torch_dtype(new_type), self.ndim())

    def on_cpu(self) -> Storage:
        """Return a copy in main memory, made in one transfer."""
        samples = self.samples()
        if not samples:
            return Samples([], CPU, self.dtype, self.ndim())
        flat = torch.cat([sample.reshape(-1) for sample in samples])
        return Samples(_split_as(flat.cpu(), samples), CPU)


class Dense(Storage):
    """One tensor whose first dimension is the batch; the samples are views of it."""

    __slots__ = ("dense",)

    dense: torch.Tensor

    def __init__(self, dense: torch.Tensor) -> None:
        self.dense, self._samples = dense, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Dense, (self.dense,)

    def _divided(self) -> list[torch.Tensor]:
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

    def stacked(self) -> Dense:
        return self

    def packed(self) -> tuple[Dense, torch.Tensor]:
        here = self if self.dense.is_contiguous() else Dense(self.dense.contiguous())
        return here, here.dense.view(-1)

    def reinterpreted(self, new_type: DALIDataType) -> Dense:
        return Dense(reinterpreted(self.dense, new_type))

    def on_cpu(self) -> Dense:
        return Dense(self.dense.cpu())


class Samples(Storage):
    """One tensor a sample, of any shapes; the only form that may be empty without a type.

    Args:
        samples: The list itself is kept; None stands for a sample that a branch did not compute.
        device: Of the samples.
        dtype: Of the elements; looked at only where there is no sample.
        ndim: Number of axes of a sample; looked at only where there is no sample.
        flat: The memory that the samples are views of, in order, if they are.
    """

    __slots__ = ("_dtype", "_flat", "_ndim", "device")

    _samples: list[torch.Tensor]
    device: torch.device

    def __init__(
        self,
        samples: list[torch.Tensor],
        device: torch.device,
        dtype: torch.dtype | None = None,
        ndim: int | None = None,
        flat: torch.Tensor | None = None,
    ) -> None:
        self._samples, self.device, self._flat = samples, device, flat
        self._dtype, self._ndim = dtype, ndim

    def __reduce__(self) -> tuple[Any, ...]:
        return Samples, (self._samples, self.device, self._dtype, self._ndim)

    @property
    def dtype(self) -> torch.dtype | None:
        return self._samples[0].dtype if self._samples else self._dtype

    def ndim(self) -> int:
        return self._samples[0].dim() if self._samples else self._ndim or 0

    def stacked(self) -> Dense:
        if self._samples:
            return super().stacked()
        if self._dtype is None:
            raise RuntimeError("an empty batch without a type is not one tensor")
        return Dense(torch.empty([0] * (1 + self.ndim()), dtype=self._dtype, device=self.device))

    def packed(self) -> tuple[Storage, torch.Tensor]:
        return super().packed() if self._flat is None else (self, self._flat)


class Rows(Storage):
    """The rows of all samples in one tensor, more of them in one sample than in another.

    Args:
        rows: ``(n, ...)``, dense.
        counts: Rows of each sample.
    """

    __slots__ = ("_flat", "rows")

    rows: tuple[torch.Tensor, Sequence[int]]
    _flat: torch.Tensor | None

    def __init__(self, rows: torch.Tensor, counts: Sequence[int]) -> None:
        self.rows, self._samples, self._flat = (rows, counts), None, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, self.rows

    def _divided(self) -> list[torch.Tensor]:
        return list(self.rows[0].split_with_sizes(self.rows[1]))

    def __len__(self) -> int:
        return len(self.rows[1])

    @property
    def dtype(self) -> torch.dtype:
        return self.rows[0].dtype

    @property
    def device(self) -> torch.device:
        return self.rows[0].device

    def ndim(self) -> int:
        return self.rows[0].dim()

    def shape(self) -> list[tuple[int, ...]]:
        rows, counts = self.rows
        return [(count, *rows.shape[1:]) for count in counts]

    def is_uniform(self) -> bool:
        return False  # with as many rows in each sample the batch is made dense

    def packed(self) -> tuple[Rows, torch.Tensor]:
        if self._flat is None:
            self._flat = self.rows[0].view(-1)
        return self, self._flat


class Blocks(Storage):
    """Rows in several tensors, each with those of a few samples.

    Args:
        blocks: ``(n, ...)``, dense.
        counts: Of each block, the rows of each sample.
    """

    __slots__ = ("_blocks", "_counts")

    def __init__(self, blocks: Sequence[torch.Tensor], counts: Sequence[Sequence[int]]) -> None:
        self._blocks, self._counts, self._samples = blocks, counts, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, (self._blocks, self._counts)

    def _divided(self) -> list[torch.Tensor]:
        pairs = zip(self._blocks, self._counts, strict=True)
        return [sample for block, counts in pairs for sample in block.split_with_sizes(counts)]

    def __len__(self) -> int:
        return sum(map(len, self._counts))

    @property
    def dtype(self) -> torch.dtype:
        return self._blocks[0].dtype

    @property
    def device(self) -> torch.device:
        return self._blocks[0].device

    def ndim(self) -> int:
        return self._blocks[0].dim()

    def shape(self) -> list[tuple[int, ...]]:
        pairs = zip(self._blocks, self._counts, strict=True)
        return [(count, *block.shape[1:]) for block, counts in pairs for count in counts]

    def is_uniform(self) -> bool:
        return False  # with as many rows in each sample the batch is made dense


class Packed(Storage):
    """Samples of any shapes in one piece of memory, in any order, with gaps.

    Args:
        flat: The memory, one-dimensional.
        offsets: Where each sample starts, in elements.
        shapes: Of the samples, which are dense and have as many axes each.
    """

    __slots__ = ("_shapes", "device", "flat", "offsets")

    device: torch.device

    def __init__(self, flat: torch.Tensor, offsets: Sequence[int], shapes: list[tuple[int, ...]]) -> None:
        self.flat, self.offsets, self._shapes, self._samples = flat, offsets, shapes, None
        self.device = flat.device

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self.flat, self.offsets, self._shapes)

    def _divided(self) -> list[torch.Tensor]:
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

    def moved(self, device: torch.device) -> Packed:
        """Return a copy on a device, made in one transfer; the host does not wait for it."""
        return Packed(self.flat.to(device, non_blocking=True), self.offsets, self._shapes)

    def on_cpu(self) -> Packed:
        return Packed(self.flat.cpu(), self.offsets, self._shapes)


def _split_as(flat: torch.Tensor, samples: list[torch.Tensor]) -> list[torch.Tensor]:
    pieces = torch.split(flat, [sample.numel() for sample in samples])
    return [piece.view(sample.shape) for piece, sample in zip(pieces, samples, strict=True)]
