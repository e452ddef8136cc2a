"""`Batch`: several samples of the dynamic mode."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import torch
from torch.nn.functional import pad as torch_pad

from torchdali.experimental.dynamic._arithmetic import install
from torchdali.experimental.dynamic._convert import list_of_samples, move, sample_of
from torchdali.experimental.dynamic._device import Device, DeviceLike, device
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._operation import OperationResult
from torchdali.experimental.dynamic._printing import text_of_batch
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.experimental.dynamic._value import HOOKS, LazyValue
from torchdali.tensors import TensorCPU, TensorGPU, TensorList

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Batch", "as_batch", "batch"]


class Batch(LazyValue):
    """Samples with the same dtype and number of axes, whose shapes may differ.

    Operators and arithmetic work on each sample. A batch can't be indexed directly, because an index could mean a
    sample or an element. Use `tensors` and `select` to get samples, and `slice` to index into each sample.

    Args:
        tensors: The samples: a list, a batch, or an array whose first axis is the sample index.
        dtype: Dtype of the elements; required for an empty batch.
        device: The target device.
        layout: Names of the axes of a sample, one letter each.
        invocation_result: The result of an operation; internal code passes it instead of ``tensors``.
        copy: Never share memory with the data.

    Raises:
        ValueError: The samples differ in their number of axes, or the batch is empty and ``dtype`` is None.
    """

    __slots__ = ()

    def __init__(
        self,
        tensors: Any = None,
        dtype: Any = None,
        device: DeviceLike = None,
        layout: str | None = None,
        invocation_result: OperationResult | None = None,
        copy: bool = False,
    ) -> None:
        self._list, self._result = None, invocation_result
        if invocation_result is not None:
            return
        if tensors is None:
            raise ValueError("a Batch needs samples; pass tensors")
        data = tensors._values() if isinstance(tensors, Batch) else _samples_of(tensors)
        self._list = list_of_samples(data, dtype, device, layout, copy)

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: DeviceLike = None, dtype: Any = None) -> Batch:
        """Return a batch that repeats one sample, without copying it."""
        data = sample._storage if isinstance(sample, Tensor) else sample
        tensor, layout = sample_of(data, dtype)
        values = TensorList.from_dense(tensor.unsqueeze(0).expand(batch_size, *tensor.shape), layout)
        return Batch(values, device=device)

    @property
    def _storage(self) -> TensorList:
        """The data as a `TensorList`, the class of a pipeline's batches."""
        return self._values()

    def _single(self, pad: bool = False) -> TensorCPU | TensorGPU:
        """Return all samples as one tensor with the batch as its first axis."""
        values = self._values()
        kind = TensorCPU if values.device.type == "cpu" else TensorGPU
        return kind(_stack(values, pad), f"N{values.layout()}" if values.layout() else "")

    @property
    def batch_size(self) -> int:
        """Number of samples."""
        result = self._result
        return len(self._values()) if result is None else result.operation.size

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """Shape of each sample."""
        return self._values().shape()

    @property
    def tensors(self) -> BatchSamples:
        """The samples, as a sequence of `Tensor`."""
        return BatchSamples(self, range(self.batch_size))

    @property
    def slice(self) -> BatchSlice:
        """Index into each sample: ``batch.slice[0:2]``. An index may be a batch with one index per sample."""
        return BatchSlice(self)

    def select(self, sample_range: Any) -> Any:
        """Return some of the samples: a `Tensor` for an index, a `Batch` for a slice or a list of indices.

        Raises:
            IndexError: an index is out of range.
        """
        if isinstance(sample_range, (int, Tensor)) and not isinstance(sample_range, bool):
            return self.tensors[int(sample_range)]
        samples, n = self._values().samples(), self.batch_size
        if isinstance(sample_range, slice):
            chosen = list(range(n))[sample_range]
        else:
            chosen = [_check_index(int(i), n) for i in sample_range]
        values = self._values()
        return _batch_of(
            TensorList.from_samples([samples[i] for i in chosen], values.layout(), dtype=values.torch_dtype)
        )

    def cpu(self) -> Batch:
        """Return the batch on the CPU; ``self`` if it is already there."""
        return self.to_device("cpu")

    def gpu(self, index: int | None = None) -> Batch:
        """Return the batch on an accelerator; ``self`` if it is already there."""
        return self.to_device(Device("gpu", index))

    def to_device(self, device: DeviceLike, force_copy: bool = False) -> Batch:
        """Return the batch on a device; ``self`` if it is already there and ``force_copy`` is False."""
        target = _device_of(device)
        if target == self.device and not force_copy:
            return self
        return _batch_of(move(self._values(), target))

    def torch(self, copy: bool | None = None, pad: bool = False) -> torch.Tensor:
        """Return the batch as one torch tensor ``(batch, ...)``.

        Args:
            copy: True to copy the memory; False to share the memory, or raise an error if the samples are separate
                tensors; None to share the memory if possible, and copy otherwise.
            pad: Pad samples with zeros if their shapes differ.

        Raises:
            ValueError: The shapes differ and ``pad`` is False, or the samples are separate and ``copy`` is False.
        """
        values = self._values()
        dense = values.dense()
        if dense is None:
            if copy is False:
                raise ValueError("copy must be None or True if the samples are separate tensors, got False")
            return _stack(values, pad)
        return dense.clone() if copy else dense

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return a contact sheet of the samples.

        Args:
            path: File to which the sheet is also saved; None saves no file.
            options: Options of `torchdali.pictures.show`.

        Raises:
            ValueError: The samples can't be drawn.
        """
        overlays = {name: each._values() if isinstance(each, Batch) else each for name, each in options.items()}
        return self._values().show(path, **overlays)

    def _repr_html_(self) -> str:
        return self._values()._repr_html_()

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __bool__(self) -> bool:
        raise ValueError(
            "the truth value of a batch is not defined; take one sample, batch.tensors[i], reduce the batch, "
            "batch.torch().any(), or compare it with `is not None`"
        )

    def __str__(self) -> str:
        return text_of_batch(self._values(), str(self.device))

    def __repr__(self) -> str:
        return str(self)

    if TYPE_CHECKING:  # see `_arithmetic`

        def __add__(self, other: Any) -> Batch: ...
        def __radd__(self, other: Any) -> Batch: ...
        def __sub__(self, other: Any) -> Batch: ...
        def __rsub__(self, other: Any) -> Batch: ...
        def __mul__(self, other: Any) -> Batch: ...
        def __rmul__(self, other: Any) -> Batch: ...
        def __truediv__(self, other: Any) -> Batch: ...
        def __rtruediv__(self, other: Any) -> Batch: ...
        def __floordiv__(self, other: Any) -> Batch: ...
        def __rfloordiv__(self, other: Any) -> Batch: ...
        def __mod__(self, other: Any) -> Batch: ...
        def __rmod__(self, other: Any) -> Batch: ...
        def __pow__(self, other: Any) -> Batch: ...
        def __rpow__(self, other: Any) -> Batch: ...
        def __and__(self, other: Any) -> Batch: ...
        def __rand__(self, other: Any) -> Batch: ...
        def __or__(self, other: Any) -> Batch: ...
        def __ror__(self, other: Any) -> Batch: ...
        def __xor__(self, other: Any) -> Batch: ...
        def __rxor__(self, other: Any) -> Batch: ...
        def __lshift__(self, other: Any) -> Batch: ...
        def __rlshift__(self, other: Any) -> Batch: ...
        def __rshift__(self, other: Any) -> Batch: ...
        def __rrshift__(self, other: Any) -> Batch: ...
        def __lt__(self, other: Any) -> Batch: ...
        def __le__(self, other: Any) -> Batch: ...
        def __gt__(self, other: Any) -> Batch: ...
        def __ge__(self, other: Any) -> Batch: ...
        def __eq__(self, other: object) -> Batch: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Batch: ...  # type: ignore[override]
        def __neg__(self) -> Batch: ...
        def __pos__(self) -> Batch: ...
        def __abs__(self) -> Batch: ...
        def __invert__(self) -> Batch: ...


install(Batch)


class BatchSamples(Sequence[Tensor]):
    """The samples of a batch, as a sequence of `Tensor`. The batch is computed when a tensor's value is needed."""

    def __init__(self, batch: Batch, indices: Sequence[int]) -> None:
        self._batch, self._indices = batch, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> BatchSamples: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return BatchSamples(self._batch, self._indices[index])
        if isinstance(index, Sequence):
            return BatchSamples(self._batch, [self._indices[_check_index(i, len(self))] for i in index])
        return Tensor(batch=self._batch, index_in_batch=self._indices[_check_index(index, len(self))])


class BatchSlice:
    """The result of `Batch.slice`; its ``[...]`` operator indexes into each sample of the batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, ranges: Any) -> Batch:
        result: Batch = HOOKS.subscript(self._batch, ranges)
        return result


def _samples_of(data: Any) -> Any:
    """Unwrap samples of the class `Tensor`; return other data unchanged."""
    if isinstance(data, Tensor):
        return data._storage
    if isinstance(data, (list, tuple, BatchSamples)):
        return [each._storage if isinstance(each, Tensor) else each for each in data]
    return data


def _stack(values: TensorList, pad: bool) -> torch.Tensor:
    shapes = values.shape()
    if len(set(shapes)) > 1:
        if not pad:
            raise ValueError(
                f"the samples must have one shape, got ({shapes[0]}, {next(s for s in shapes if s != shapes[0])}, "
                f"...); pass pad=True to pad them with zeros"
            )
        full = [max(axis) for axis in zip(*shapes, strict=True)]
        return torch.stack([_pad(sample, full) for sample in values.samples()])
    return values.stack()


def _pad(sample: torch.Tensor, full: Sequence[int]) -> torch.Tensor:
    missing = [(0, n - have) for n, have in zip(full, sample.shape, strict=True)]
    return torch_pad(sample, [number for pair in reversed(missing) for number in pair])


def _check_index(index: int, count: int) -> int:
    if not -count <= index < count:
        raise IndexError(f"sample index {index} is out of range for a batch of {count}")
    return index % count


def _device_of(device_like: DeviceLike) -> Device:
    return device(device_like) or Device.current()


def _batch_of(values: TensorList) -> Batch:
    batch = Batch.__new__(Batch)
    batch._list, batch._result = values, None
    return batch


def batch(tensors: Any, dtype: Any = None, device: DeviceLike = None, layout: str | None = None) -> Batch:
    """Copy samples into a new batch; see `Batch` for the arguments."""
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors: Any, dtype: Any = None, device: DeviceLike = None, layout: str | None = None) -> Batch:
    """Return a batch that shares the samples' memory if dtype and device allow it; see `Batch`.

    If ``tensors`` is a `Batch` and no other argument is passed, it is returned unchanged.
    """
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)


def _convert(dtype: DType, data: Any = None, *rest: Any, **arguments: Any) -> Tensor | Batch:
    if isinstance(data, (Batch, TensorList)):
        return Batch(data, dtype, *rest, **arguments)
    return Tensor(data, dtype, *rest, **arguments)


DType._convert = staticmethod(_convert)
