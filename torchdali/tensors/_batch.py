"""A batch of samples: the classes `TensorListCPU` and `TensorListGPU`.

A batch is EITHER one dense torch tensor whose first dimension is the batch OR a list of torch
tensors, or of NumPy arrays, OR the rows of all samples in one tensor. It is made once a batch with
`TensorList.from_dense`, `from_samples`, `from_arrays` or `from_rows`, which neither copy nor look at the samples;
what costs time per sample is done when asked for, and kept.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch

from torchdali.tensors._foreign import (
    as_torch,
    copy_to_device,
    copy_to_memory,
    current_stream,
    wait_for,
)
from torchdali.tensors._printing import attributes, batch_values, listing, shapes_of
from torchdali.tensors._single import (
    Tensor,
    TensorCPU,
    TensorGPU,
    checked_layout,
    no_attribute,
    reinterpreted,
    tensor_of,
)
from torchdali.types import DALIDataType, from_torch_dtype, to_torch_dtype

_Batch = TypeVar("_Batch", bound="TensorList")
_CPU = torch.device("cpu")


class TensorList:
    """A batch of samples of one type; a `TensorListCPU` or a `TensorListGPU`.

    At least one of ``_dense``, ``_samples``, ``_rows`` and ``_arrays`` is set. Where others are beside them, the
    samples are views of the dense tensor or of the rows; ``_flat`` is the memory that separate samples are views of
    once they are packed.
    """

    __slots__ = (
        "_arrays", "_dense", "_dtype", "_flat", "_layout", "_ndim", "_rows", "_samples", "_source_info",
    )  # fmt: skip
    _kind: ClassVar[type[TensorCPU] | type[TensorGPU]]

    _dense: torch.Tensor | None
    _samples: list[torch.Tensor] | None
    _flat: torch.Tensor | None
    _rows: tuple[torch.Tensor, Sequence[int]] | None
    _arrays: Sequence[np.ndarray[Any, Any]] | None
    _dtype: torch.dtype | None
    _ndim: int | None
    _layout: str
    _source_info: Sequence[str] | None

    def __init__(self, object: Any, layout: str | None = None, contiguous: bool = True) -> None:
        self.reset()
        if type(self) is TensorList:
            raise TypeError(
                "a TensorList is on one device: make a TensorListCPU or a TensorListGPU (both in torchdali.tensors)"
            )
        if isinstance(object, type(self)):
            for name in TensorList.__slots__:
                setattr(self, name, getattr(object, name))
        elif isinstance(object, list):
            self._gather([_sample(self._kind, each, i) for i, each in enumerate(object)])
            if object and contiguous:
                self._pack()
        else:
            self._dense, self._samples = as_torch(object, self._kind._device), None
            if self._dense.dim() == 0:
                raise RuntimeError("a 0-dimensional array has no first dimension to be the batch")
        if layout is not None:
            self.set_layout(layout)

    def _gather(self, tensors: list[Tensor]) -> None:
        _check_alike(tensors)
        self._samples = [tensor._tensor for tensor in tensors]
        self._layout = tensors[0]._layout if tensors else ""
        if any(tensor._source_info for tensor in tensors):
            self._source_info = [tensor.source_info() for tensor in tensors]

    @classmethod
    def from_dense(
        cls: type[_Batch],
        tensor: torch.Tensor,
        layout: str = "",
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        """Make a batch of a tensor whose first dimension is the batch, without a copy or a check.

        Called on `TensorList`, the tensor's device decides between CPU and GPU class.

        Args:
            tensor: ``(batch, ...)``.
            layout: Of one sample.
            source_info: Where each sample comes from.
        """
        self = cls.__new__(_kind_for(cls, tensor.device))
        self._dense, self._layout, self._source_info = tensor, layout, source_info
        self._samples = self._flat = self._rows = self._arrays = self._dtype = self._ndim = None
        return self

    @classmethod
    def from_samples(
        cls: type[_Batch],
        samples: list[torch.Tensor],
        layout: str = "",
        dtype: torch.dtype | None = None,
        ndim: int | None = None,
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        """Make a batch of samples of any shapes, without a copy or a check.

        Called on `TensorList`, the samples' device decides between CPU and GPU class.

        Args:
            samples: One tensor a sample, all of one dtype, number of axes and device. The list
                itself is kept. Inside a running pipeline, None stands for a sample that a branch
                of a conditional did not compute.
            layout: Of one sample.
            dtype: Of the elements; looked at only where there is no sample.
            ndim: Number of axes of a sample; looked at only where there is no sample.
            source_info: Where each sample comes from.
        """
        first = next((sample for sample in samples if sample is not None), None)
        self = cls.__new__(_kind_for(cls, _CPU if first is None else first.device))
        self._samples, self._layout, self._source_info = samples, layout, source_info
        self._dtype, self._ndim = dtype, ndim
        self._dense = self._flat = self._rows = self._arrays = None
        return self

    @classmethod
    def from_arrays(
        cls: type[_Batch], arrays: Sequence[np.ndarray[Any, Any]], dtype: torch.dtype
    ) -> _Batch:
        """Make a batch of arrays of any shapes, which it shares; tensors of them are made when asked for.

        Args:
            arrays: One a sample, all of one type and number of axes, packed and writeable; one at least.
            dtype: That type.
        """
        self = cls.__new__(_kind_for(cls, _CPU))
        self._arrays, self._layout, self._dtype, self._ndim = arrays, "", dtype, arrays[0].ndim
        self._dense = self._samples = self._flat = self._rows = self._source_info = None
        return self

    @classmethod
    def from_rows(
        cls: type[_Batch],
        rows: torch.Tensor,
        counts: Sequence[int],
        layout: str = "",
    ) -> _Batch:
        """Make a batch of the rows of all samples, one sample after the other, without a copy if they are dense.

        Args:
            rows: ``(n, ...)``.
            counts: Rows of each sample; of one sample at least.
            layout: Of one sample.
        """
        rows = rows.contiguous()
        if counts.count(counts[0]) == len(counts):
            return cls.from_dense(rows.view(len(counts), counts[0], *rows.shape[1:]), layout)
        self = cls.__new__(_kind_for(cls, rows.device))
        self._rows, self._layout = (rows, counts), layout
        self._dense = self._samples = self._flat = self._source_info = self._arrays = None
        self._dtype, self._ndim = rows.dtype, rows.ndim
        return self

    def samples(self) -> list[torch.Tensor]:
        """Return the samples, views of the dense tensor or the rows if there are any. Do not change the list."""
        samples = self._samples
        if samples is None:
            if self._rows is not None:
                samples = list(torch.split(*self._rows))  # type: ignore[arg-type]
            elif self._arrays is not None:
                samples = list(map(torch.from_numpy, self._arrays))
            else:
                assert self._dense is not None
                samples = list(self._dense.unbind())
            self._samples = samples
        return samples

    def rows(self) -> tuple[torch.Tensor, Sequence[int]] | None:
        """Return the rows of all samples and how many each has, if the batch is stored like this, else None."""
        return self._rows

    def arrays(self) -> Sequence[np.ndarray[Any, Any]] | None:
        """Return the samples as arrays, if the batch is stored like this, else None."""
        return self._arrays

    def dense(self) -> torch.Tensor | None:
        """Return the tensor ``(batch, ...)`` if the batch is stored as one, else None."""
        return self._dense

    def stacked(self) -> torch.Tensor:
        """Return the batch as one tensor ``(batch, ...)``, which from now on stores it.

        Raises RuntimeError where the shapes of the samples differ.
        """
        if self._dense is None:
            if not self.is_dense_tensor():
                raise RuntimeError(
                    "the samples have different shapes, so that the batch is not one tensor; bring "
                    "them to one shape (crop, resize, pad) or ask is_dense_tensor() first"
                )
            samples = self.samples()
            self._dense = torch.stack(samples) if samples else self._empty()
            self._samples = self._flat = self._rows = self._arrays = None
        return self._dense

    def _empty(self) -> torch.Tensor:
        if self._dtype is None:
            raise RuntimeError("an empty batch without a type is not one tensor")
        return torch.empty([0] * (1 + self.ndim()), dtype=self._dtype, device=self.device)

    def tolist(self) -> list[Any]:
        """Return each sample as a Python number or as nested lists of numbers."""
        if self._dense is not None:
            values: list[Any] = self._dense.tolist()
            return values
        return [sample.tolist() for sample in self.samples()]

    @property
    def torch_dtype(self) -> torch.dtype | None:
        """Type of the elements for torch; None for an empty batch made without one."""
        if self._dense is not None:
            return self._dense.dtype
        return self._samples[0].dtype if self._samples else self._dtype

    @property
    def device(self) -> torch.device:
        """Device of the samples."""
        if self._dense is not None:
            return self._dense.device
        if self._rows is not None:
            return self._rows[0].device
        first = next((s for s in self._samples or () if s is not None), None)
        if first is not None:
            return first.device
        return torch.device("cpu" if self._kind is TensorCPU else "cuda")

    @property
    def source_infos(self) -> Sequence[str] | None:
        """Where each sample comes from, or None where that is not known."""
        return self._source_info

    def set_source_infos(self, infos: Sequence[str] | None) -> None:
        """Say where each sample comes from."""
        self._source_info = infos

    def come_from(self, other: TensorList) -> None:
        """Take over from another batch where the samples come from, unless it is known."""
        infos = other._source_info
        if infos is not None and self._source_info is None and len(infos) == len(self):
            self._source_info = infos

    @property
    def dtype(self) -> DALIDataType:
        """Type of the elements; NO_TYPE for an empty batch made without one."""
        dtype = self.torch_dtype
        return DALIDataType.NO_TYPE if dtype is None else from_torch_dtype(dtype)

    def __len__(self) -> int:
        if self._dense is not None:
            return self._dense.shape[0]
        if self._arrays is not None:
            return len(self._arrays)
        return len(self.samples() if self._rows is None else self._rows[1])

    def __getitem__(self, i: int) -> Any:
        """Return a sample, sharing memory; negative indices count from the end."""
        i = _index(i)
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no sample {i} in a batch of {len(self)}")
        source = self._source_info[i] if self._source_info else None
        return tensor_of(self._kind, self.samples()[i], self._layout, source)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    if not TYPE_CHECKING:  # for a type checker, what is missing stays missing

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(
                self, name, "as_tensor().torch(), where the samples have one shape, or samples()"
            )

    def shape(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        if self._dense is not None:
            return [tuple(self._dense.shape[1:])] * self._dense.shape[0]
        if self._rows is not None:
            rows, counts = self._rows
            return [(count, *rows.shape[1:]) for count in counts]
        if self._arrays is not None:
            return [array.shape for array in self._arrays]
        return [tuple(sample.shape) for sample in self.samples()]

    def ndim(self) -> int:
        """Return the number of axes of a sample."""
        if self._dense is not None:
            return self._dense.dim() - 1
        return self._samples[0].dim() if self._samples else self._ndim or 0

    def layout(self) -> str:
        """Return the names of the axes of a sample, one letter each, or ``""``."""
        return self._layout

    def set_layout(self, layout: str | None, /) -> None:
        """Name the axes of a sample; ValueError where a layout not empty has a different length."""
        is_typed = self.torch_dtype is not None
        self._layout = checked_layout(layout, self.ndim() if is_typed else None)
        if not is_typed:
            self._ndim = len(self._layout)

    def is_dense_tensor(self) -> bool:
        """Return whether all samples have one shape, so that `as_tensor` works."""
        if self._dense is not None or self._rows is not None:
            return self._dense is not None  # rows of one number a sample are made dense
        samples = self.samples()
        return all(sample.shape == samples[0].shape for sample in samples)

    def as_tensor(self) -> Any:
        """Return the batch as one tensor of layout ``"N..."``, sharing memory.

        Raises RuntimeError where the shapes of the samples differ.
        """
        return tensor_of(self._kind, self.stacked(), "N" + self._layout if self._layout else "")

    def as_reshaped_tensor(self, shape: Sequence[int], /) -> Any:
        """Return all elements of the batch, in order, as one tensor of the given shape.

        Raises RuntimeError where `shape` has another number of elements.
        """
        flat, lengths = self._pack(), tuple(shape)
        if min(lengths, default=0) < 0 or math.prod(lengths) != flat.numel():
            raise RuntimeError(f"{flat.numel()} elements do not have the shape {lengths}")
        return tensor_of(self._kind, flat.view(lengths))

    def _pack(self) -> torch.Tensor:
        """Bring all elements, in order, into one piece of memory and return it as a 1D tensor."""
        if self._flat is not None:
            return self._flat
        if self._rows is not None:
            self._flat = self._rows[0].view(-1)
            return self._flat
        if self.is_dense_tensor():
            dense = self.stacked()
            if not dense.is_contiguous():
                dense, self._samples = dense.contiguous(), None
            self._dense = dense
            return dense.view(-1)
        samples, self._arrays = self.samples(), None
        self._flat = torch.cat([sample.reshape(-1) for sample in samples])
        self._samples = _split_as(self._flat, samples)
        return self._flat

    def data_ptr(self) -> int:
        """Return the address of the first element; all elements lie densely, sample by sample."""
        return self._pack().data_ptr() if len(self) else 0

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Take the bytes of the elements as another type of the same size, in place.

        Raises RuntimeError where the sizes differ and for a batch without a type.
        """
        if self.torch_dtype is None:
            raise RuntimeError("an empty batch without a type cannot be reinterpreted")
        if self._dense is not None:
            self._dense, self._samples = reinterpreted(self._dense, new_type), None
        else:
            self._samples = [reinterpreted(each, new_type) for each in self.samples()]
            self._flat = self._rows = self._arrays = None
            self._dtype = to_torch_dtype(new_type)

    def reset(self) -> None:
        """Drop all samples, the type and the layout."""
        self._dense = self._flat = self._rows = self._arrays = None
        self._dtype = self._ndim = self._source_info = None
        self._samples, self._layout = [], ""

    def __repr__(self) -> str:
        return self._text("")

    def __str__(self) -> str:
        return self._text(batch_values(self.samples(), self.ndim()))

    def _text(self, values: str) -> str:
        common = attributes(self.torch_dtype, self._layout, self._kind._device)
        extent = [f"num_samples={len(self)}", f"shape={shapes_of(self.shape())}"]
        return listing(type(self).__name__, [values, *common, *extent])


class TensorListCPU(TensorList):
    """A batch of samples in main memory.

    Args:
        object: A `TensorListCPU` or an array-like object as for `TensorCPU`, whose first dimension
            is the batch, either shared; or a list of such samples.
        layout: Names of the axes of a sample, one letter each.
        contiguous: Whether samples of a list are copied into one piece of memory or shared.
        is_pinned: Accepted for compatibility; torch knows whether memory is pinned.

    Raises TypeError for other objects and for samples of different types, numbers of axes or
    layouts, RuntimeError for strided data, ValueError for a layout of a wrong length.
    """

    __slots__ = ()
    _kind = TensorCPU

    def __init__(
        self,
        object: Any,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        is_pinned: bool = False,
    ) -> None:
        super().__init__(object, layout, contiguous)

    def at(self, i: int, /) -> np.ndarray[Any, Any]:
        """Return a copy of sample `i`, counted from 0; RuntimeError where there is none."""
        if not 0 <= _index(i) < len(self):
            raise RuntimeError(f"there is no sample {i} in a batch of {len(self)}")
        return self.samples()[i].numpy().copy()

    def as_array(self) -> np.ndarray[Any, Any]:
        """Return a copy ``(batch, ...)``; RuntimeError where the shapes of the samples differ."""
        return self.stacked().numpy().copy()

    def as_cpu(self) -> TensorListCPU:
        """Return the batch itself."""
        return self

    def copy_to_external(self, ptr: int | ctypes.c_void_p, /) -> None:
        """Copy all elements, densely sample by sample, to an address in main memory."""
        copy_to_memory(self._pack(), ptr)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListCPU:
        """Return a batch of one sample repeated `num_samples` times, sharing its memory."""
        return _broadcast(TensorListCPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Return a batch of objects with ``__dlpack__``, sharing their memory unless contiguous."""
        return TensorListCPU(_exporting(list_of_objects), layout, contiguous)


class TensorListGPU(TensorList):
    """A batch of samples in the memory of an accelerator.

    Args:
        object: A `TensorListGPU` or an object as for `TensorGPU`, whose first dimension is the
            batch, either shared; or a list of such samples. Left out, the batch is empty.
        layout: Names of the axes of a sample, one letter each.
        contiguous: Whether samples of a list are copied into one piece of memory or shared.
        stream: A stream (torch's, or a raw handle) that may still be writing the data.
        device_id: Accepted for compatibility; the object knows its device.

    Raises RuntimeError for an object that is not on an accelerator and for strided data.
    """

    __slots__ = ()
    _kind = TensorGPU

    def __init__(
        self,
        object: Any = None,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        stream: Any = None,
        device_id: int = -1,
    ) -> None:
        super().__init__([] if object is None else object, layout, contiguous)
        wait_for(stream, self.device)

    @property
    def stream(self) -> int | None:
        """Handle of the stream that the data are ordered on: the current one; None without CUDA."""
        return current_stream(self.device)

    def device_id(self) -> int:
        """Return the index of the device."""
        return self.device.index or 0

    def at(self, i: int, /) -> TensorGPU:
        """Return sample `i`, counted from 0, sharing memory; RuntimeError where there is none."""
        if not 0 <= _index(i) < len(self):
            raise RuntimeError(f"there is no sample {i} in a batch of {len(self)}")
        sample: TensorGPU = self[i]
        return sample

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in main memory, made in one transfer."""
        copy = TensorListCPU([])
        copy._layout, copy._source_info = self._layout, self._source_info
        copy._dtype, copy._ndim = self._dtype, self._ndim
        if self._dense is not None:
            copy._dense, copy._samples = self._dense.cpu(), None
        elif samples := self.samples():
            flat = torch.cat([sample.reshape(-1) for sample in samples])
            copy._samples = _split_as(flat.cpu(), samples)
        return copy

    def copy_to_external(
        self,
        ptr: int | ctypes.c_void_p,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy all elements, densely sample by sample, to an address on the same device.

        Args:
            ptr: The address.
            cuda_stream: Stream to copy on; the current one when None.
            non_blocking: Return before the copy has finished.
            use_copy_kernel: Accepted for compatibility.
        """
        copy_to_device(self._pack(), ptr, cuda_stream, non_blocking)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListGPU:
        """Return a batch of one sample repeated `num_samples` times, sharing its memory."""
        return _broadcast(TensorListGPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any],
        layout: str | None = None,
        stream: Any = None,
        contiguous: bool = False,
    ) -> TensorListGPU:
        """Return a batch of objects with ``__dlpack__``, sharing their memory unless contiguous."""
        return TensorListGPU(_exporting(list_of_objects), layout, contiguous, stream=stream)


def _kind_for(cls: type[_Batch], device: torch.device) -> type[_Batch]:
    """Return `cls`, for the base class the class of the device."""
    if cls is not TensorList:
        return cls
    kind: Any = TensorListCPU if device.type == "cpu" else TensorListGPU
    return kind  # type: ignore[no-any-return]


_L = TypeVar("_L", TensorListCPU, TensorListGPU)


def _broadcast(kind: type[_L], sample: Any, num_samples: int) -> _L:
    if num_samples < 0:
        raise ValueError(f"a batch cannot have {num_samples} samples")
    tensor = _sample(kind._kind, sample, 0)
    batch = kind([tensor], contiguous=False)
    batch._dtype, batch._ndim = tensor._tensor.dtype, tensor.ndim()
    batch._samples = [tensor._tensor] * num_samples
    batch._source_info = [tensor.source_info()] * num_samples if tensor._source_info else None
    return batch


def _exporting(objects: Sequence[Any]) -> list[Any]:
    for i, each in enumerate(objects):
        if not hasattr(each, "__dlpack__"):
            raise TypeError(f"sample {i}, a {type(each).__name__}, has no __dlpack__")
    return list(objects)


def _sample(kind: type[Tensor], object: Any, i: int) -> Tensor:
    if isinstance(object, kind):
        return object
    try:
        return kind(object)
    except (TypeError, RuntimeError) as reason:
        raise TypeError(f"sample {i} cannot be a {kind.__name__}: {reason}") from reason


def _check_alike(tensors: list[Tensor]) -> None:
    for i, tensor in enumerate(tensors):
        first, layout = tensors[0], tensor._layout or tensors[0]._layout
        ours = (tensor.dtype, tensor.ndim(), layout)
        if ours != (first.dtype, first.ndim(), first._layout):
            raise TypeError(f"sample {i} differs from sample 0 in type, number of axes or layout")


def _index(i: Any) -> int:
    if not isinstance(i, int | np.integer):
        raise TypeError(f"the index of a sample is an int, not a {type(i).__name__}")
    return int(i)


def _split_as(flat: torch.Tensor, samples: list[torch.Tensor]) -> list[torch.Tensor]:
    pieces = torch.split(flat, [sample.numel() for sample in samples])
    return [piece.view(sample.shape) for piece, sample in zip(pieces, samples, strict=True)]
