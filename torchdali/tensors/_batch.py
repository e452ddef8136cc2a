"""Batches of samples: `TensorListCPU` and `TensorListGPU`, and their base class.

The samples of a batch are stored in one tensor (a dense batch), in one block of memory (a packed batch), or separately;
see `_storage.py`. Operators build their results with `TensorList.from_dense`, `from_samples` or `from_rows`, which
don't check the samples.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors._foreign import as_torch, copy_to_device, copy_to_memory, current_stream, wait_for
from torchdali.tensors._printing import attributes, batch_values, dtype_name, format_shapes, listing
from torchdali.tensors._single import (
    Tensor,
    TensorCPU,
    TensorGPU,
    attribute_error,
    check_uniform,
    convert_sample,
    validate_layout,
    wrap_tensor,
)
from torchdali.tensors._storage import (
    CPU,
    Dense,
    PackedSamples,
    SampleStorage,
    SeparateSamples,
)
from torchdali.tensors.dtypes import DALIDataType, from_torch_dtype

if TYPE_CHECKING:
    from PIL.Image import Image

_Batch = TypeVar("_Batch", bound="TensorList")


class TensorList:
    """A batch of samples of one dtype: a `TensorListCPU` or a `TensorListGPU`."""

    __slots__ = ("_layout", "_source_info", "_stored", "_uploaded", "ready")
    _kind: ClassVar[type[TensorCPU] | type[TensorGPU]]
    _default_device: ClassVar[torch.device] = CPU  # the device of a batch without samples

    _stored: SampleStorage
    _layout: str
    _source_info: Sequence[str] | None
    _uploaded: torch.Tensor | None
    ready: Any  # CUDA event that marks the end of a source's upload to the device; None if no wait is needed

    def __init__(self, object: Any, layout: str | None = None, contiguous: bool = True) -> None:
        self.reset()
        if type(self) is TensorList:
            raise TypeError(
                "a TensorList must be created for one device: use TensorListCPU or TensorListGPU (both in "
                "torchdali.tensors)"
            )
        if isinstance(object, type(self)):
            self._stored, self._layout = object._stored, object._layout
            self._source_info = object._source_info
        elif isinstance(object, list):
            self._gather([convert_sample(self._kind, each, i) for i, each in enumerate(object)])
            if object and contiguous:
                self._pack()
        else:
            tensor = as_torch(object, self._kind._device)
            if tensor.dim() == 0:
                raise RuntimeError("an array must have at least one dimension to be a batch, got a 0-dimensional array")
            self._stored = Dense(tensor)
        if layout is not None:
            self.set_layout(layout)

    def _gather(self, tensors: list[Tensor]) -> None:
        check_uniform(tensors)
        if tensors:
            samples = [tensor._tensor for tensor in tensors]
            self._stored, self._layout = SeparateSamples(samples, samples[0].device), tensors[0]._layout
        if any(tensor._source_info for tensor in tensors):
            self._source_info = [tensor.source_info() for tensor in tensors]

    @classmethod
    def from_dense(
        cls: type[_Batch],
        tensor: torch.Tensor,
        layout: str = "",
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        """Build a batch from a tensor whose first dimension is the batch, without a copy or a check.

        If you call the method on `TensorList`, the result is a `TensorListCPU` or `TensorListGPU`, depending on the
        tensor's device.

        Args:
            tensor: ``(batch, ...)``.
            layout: Layout of one sample.
            source_info: Origin of each sample.
        """
        return cls._create(Dense(tensor), tensor.is_cpu, layout, source_info)

    @classmethod
    def from_samples(
        cls: type[_Batch],
        samples: list[torch.Tensor],
        layout: str = "",
        dtype: torch.dtype | None = None,
        ndim: int | None = None,
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        """Build a batch from samples of any shapes, without a copy or a check.

        If you call the method on `TensorList`, the result is a `TensorListCPU` or `TensorListGPU`, depending on the
        samples' device.

        Args:
            samples: One tensor per sample. All tensors must have the same dtype, number of axes and device. The batch
                stores the list itself, not a copy. Inside a running pipeline, an item is None if its sample belongs to
                another branch of an ``if``.
            layout: Layout of one sample.
            dtype: Dtype of the elements; used only for an empty batch.
            ndim: Number of axes of a sample; used only for an empty batch.
            source_info: Origin of each sample.
        """
        first = samples[0] if samples else None
        if first is None:
            first = next((sample for sample in samples if sample is not None), None)
        device = cls._default_device if first is None else first.device
        stored = SeparateSamples(samples, device, dtype, ndim)
        return cls._create(stored, device.type == "cpu", layout, source_info)

    @classmethod
    def from_rows(cls: type[_Batch], rows: torch.Tensor, counts: Sequence[int], layout: str = "") -> _Batch:
        """Build a batch from the concatenated rows of all samples, without a copy if the rows are contiguous.

        Args:
            rows: ``(n, ...)``.
            counts: Number of rows of each sample, for at least one sample.
            layout: Layout of one sample.
        """
        rows = rows.contiguous()
        if counts.count(counts[0]) == len(counts):
            return cls.from_dense(rows.view(len(counts), counts[0], *rows.shape[1:]), layout)
        return cls._create(PackedSamples.from_rows(rows, counts), rows.is_cpu, layout)

    @classmethod
    def from_packed(
        cls: type[_Batch],
        flat: torch.Tensor,
        offsets: Sequence[int],
        shapes: list[tuple[int, ...]],
        layout: str = "",
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        """Build a batch of samples in one block of memory, without a copy or a check.

        The samples may be in any order in the block, and there may be gaps between them.

        Args:
            flat: The memory as a one-dimensional tensor.
            offsets: Index of each sample's first element in `flat`.
            shapes: Shape of each sample, for at least one sample.
            layout: Layout of one sample.
            source_info: Origin of each sample.
        """
        return cls._create(PackedSamples(flat, offsets, shapes), flat.is_cpu, layout, source_info)

    @classmethod
    def from_arrays(cls: type[_Batch], arrays: list[npt.NDArray[Any]], dtype: torch.dtype) -> _Batch:
        """Build a batch from contiguous NumPy arrays, one per sample, without a copy or a check."""
        return cls._create(SeparateSamples.from_arrays(arrays, dtype), True)

    @classmethod
    def _create(
        cls: type[_Batch],
        stored: SampleStorage,
        on_cpu: bool,
        layout: str = "",
        source_info: Sequence[str] | None = None,
    ) -> _Batch:
        kind: Any = (TensorListCPU if on_cpu else TensorListGPU) if cls is TensorList else cls
        self: _Batch = cls.__new__(kind)
        self._stored, self._layout, self._source_info = stored, layout, source_info
        self._uploaded = self.ready = None
        return self

    @property
    def uploaded(self) -> torch.Tensor | None:
        """A copy of the batch on a device, as one tensor. None if there is no copy."""
        return self._uploaded

    def set_uploaded(self, tensor: torch.Tensor | None) -> None:
        """Store a copy of the batch on a device, for `uploaded`."""
        self._uploaded = tensor

    def current_storage(self) -> SampleStorage:
        """Return the storage object of the samples. Methods such as `stack` may replace this object."""
        return self._stored

    def samples(self) -> list[torch.Tensor]:
        """Return the samples, which are views if the batch is dense or packed. Don't change the list."""
        return self._stored.samples()

    def rows(self) -> tuple[torch.Tensor, Sequence[int]] | None:
        """Return a tensor with the rows of all samples, and each sample's number of rows.

        Only a packed batch that was created from rows has this tensor. For other batches, the result is None.
        """
        return self._stored.rows

    def dense(self) -> torch.Tensor | None:
        """Return the tensor ``(batch, ...)`` if the batch is stored as one tensor, else None."""
        return self._stored.dense

    def stack(self) -> torch.Tensor:
        """Convert the batch's storage to one tensor ``(batch, ...)``, and return this tensor.

        Raises RuntimeError if the shapes of the samples differ.
        """
        dense = self._stored.dense
        if dense is None:
            if not self.is_dense_tensor():
                raise RuntimeError(
                    "the samples must have the same shape to be one tensor. Bring them to one shape (crop, resize, "
                    "pad), or call is_dense_tensor() first"
                )
            self._stored = stacked = self._stored.stack()
            dense = stacked.dense
        return dense

    def tolist(self) -> list[Any]:
        """Return each sample as a Python number or as nested lists of numbers."""
        return self._stored.tolist()

    @property
    def torch_dtype(self) -> torch.dtype | None:
        """The elements' torch dtype; None for an empty batch that was built without a dtype."""
        return self._stored.dtype

    @property
    def device(self) -> torch.device:
        """Device of the samples."""
        return self._stored.device

    @property
    def source_infos(self) -> Sequence[str] | None:
        """Origin of each sample, for example a file name; None if the origins are unknown."""
        return self._source_info

    def set_source_infos(self, infos: Sequence[str] | None) -> None:
        """Set the origin of each sample."""
        self._source_info = infos

    def inherit_source_infos(self, other: TensorList) -> None:
        """Copy the samples' origins from another batch, unless this batch has origins or the sizes differ."""
        infos = other._source_info
        if infos is not None and self._source_info is None and len(infos) == len(self):
            self._source_info = infos

    @property
    def dtype(self) -> DALIDataType:
        """The elements' `DALIDataType`; NO_TYPE for an empty batch that was built without a dtype."""
        dtype = self.torch_dtype
        return DALIDataType.NO_TYPE if dtype is None else from_torch_dtype(dtype)

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, i: int) -> Any:
        """Return a sample that shares the batch's memory. Negative indices count from the end."""
        i, samples = _sample_index(i), self._stored.samples()
        if not -len(samples) <= i < len(samples):
            raise IndexError(f"sample index {i} is out of range for a batch of {len(samples)}")
        source = self._source_info[i] if self._source_info else None
        return wrap_tensor(self._kind, samples[i], self._layout, source)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        names = ("_layout", "_source_info", "_stored")  # `_uploaded`, a copy on a device, is not pickled
        return None, {name: getattr(self, name) for name in names} | {"_uploaded": None, "ready": None}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Use at least protocol 2: before Python 3.11, protocols 0 and 1 drop the slots of base classes."""
        return super().__reduce_ex__(max(protocol, 2))

    if TYPE_CHECKING:  # so that type checkers accept `pipe.run()[0].as_array()`, which fails on an accelerator

        def as_array(self) -> npt.NDArray[Any]: ...
        def as_cpu(self) -> TensorListCPU: ...

    else:  # hidden from type checkers, so that they report unknown attributes

        def __getattr__(self, name: str) -> Any:
            raise attribute_error(self, name, "as_tensor().torch() if the samples have one shape, or samples()")

    def at(self, i: int, /) -> Any:
        """Return sample `i`, counted from 0.

        On the CPU, the result is a copy, as a NumPy array. On the GPU, the result is a `TensorGPU` that shares the
        batch's memory.
        """
        raise NotImplementedError

    def shape(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        return self._stored.shape()

    def ndim(self) -> int:
        """Return the number of axes of a sample."""
        return self._stored.ndim()

    def layout(self) -> str:
        """Return the names of a sample's axes, one letter each; ``""`` if the layout is unset."""
        return self._layout

    def set_layout(self, layout: str | None, /) -> None:
        """Set the names of a sample's axes.

        Raises ValueError if the layout isn't empty and doesn't have one letter per axis.
        """
        is_typed = self.torch_dtype is not None
        self._layout = validate_layout(layout, self.ndim() if is_typed else None)
        if not is_typed:
            self._stored = SeparateSamples([], self._stored.device, ndim=len(self._layout))

    def is_dense_tensor(self) -> bool:
        """Return whether all samples have the same shape, which `as_tensor` requires."""
        return self._stored.is_uniform()

    def as_tensor(self) -> Any:
        """Return the batch as one `TensorCPU` or `TensorGPU` with layout ``"N..."`` that shares the batch's memory.

        Raises RuntimeError if the shapes of the samples differ.
        """
        return wrap_tensor(self._kind, self.stack(), "N" + self._layout if self._layout else "")

    def as_reshaped_tensor(self, shape: Sequence[int], /) -> Any:
        """Return all elements of the batch, sample after sample, as one tensor of the passed shape.

        Raises RuntimeError if `shape` has a different number of elements.
        """
        flat, lengths = self._pack(), tuple(shape)
        if min(lengths, default=0) < 0 or math.prod(lengths) != flat.numel():
            raise RuntimeError(f"the shape must have {flat.numel()} elements, got {lengths}")
        return wrap_tensor(self._kind, flat.view(lengths))

    def _pack(self) -> torch.Tensor:
        """Store all samples, in order, in one block of memory. Return the block as a 1D tensor."""
        self._stored, flat = self._stored.pack()
        return flat

    def data_ptr(self) -> int:
        """Move all samples into one block of memory, and return the block's address."""
        return self._pack().data_ptr() if len(self) else 0

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterpret the bytes of the elements as another dtype of the same size, in place.

        Raises RuntimeError if the sizes differ, or if the batch has no dtype.
        """
        if self.torch_dtype is None:
            raise RuntimeError("an empty batch must have a type to be reinterpreted")
        self._stored = self._stored.reinterpret(new_type)

    def reset(self) -> None:
        """Remove all samples, the dtype and the layout."""
        self._stored = SeparateSamples([], self._default_device)
        self._layout, self._source_info, self._uploaded, self.ready = "", None, None, None

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return a contact sheet of the samples: images, clips, masks, spectrograms or sounds.

        A notebook displays the result. Elsewhere, call ``batch.show().show()`` to open a window.

        Args:
            path: File to which the sheet is also saved.
            options: Options of `torchdali.pictures.show`, for example ``labels``, ``boxes``, ``masks``, ``classes``,
                ``count``.

        Raises:
            ValueError: The samples cannot be drawn.
        """
        from torchdali import pictures

        return pictures.show(self, path, **options)

    def _repr_html_(self) -> str:
        from torchdali import pictures

        shapes = list(dict.fromkeys(map(str, self.shape())))
        facts = {
            "samples": str(len(self)),
            "shape": shapes[0] if len(shapes) == 1 else format_shapes(self.shape()),
            "dtype": dtype_name(self.torch_dtype).rpartition(".")[2],
            "layout": self._layout,
            "device": self._kind._device,
        }
        values = batch_values(self.samples(), self.ndim()).replace("\n    ", "\n")
        return pictures.batch_html(self, [(name, fact) for name, fact in facts.items() if fact], values)

    def _repr_png_(self) -> bytes | None:
        from torchdali import pictures

        return pictures.batch_png(self)

    def __repr__(self) -> str:
        return self._text("")

    def __str__(self) -> str:
        return self._text(batch_values(self.samples(), self.ndim()))

    def _text(self, values: str) -> str:
        common = attributes(self.torch_dtype, self._layout, self._kind._device)
        extent = [f"num_samples={len(self)}", f"shape={format_shapes(self.shape())}"]
        return listing(type(self).__name__, [values, *common, *extent])


class TensorListCPU(TensorList):
    """A batch of samples in main memory.

    Args:
        object: A `TensorListCPU`, an array-like object (see `TensorCPU`) whose first dimension is the batch, or a list
            of tensors. The batch shares the memory of a `TensorListCPU` or an array-like object.
        layout: Names of the axes of a sample, one letter each.
        contiguous: If `object` is a list: True to copy its samples into one block of memory, False to share their
            memory.
        is_pinned: Accepted for compatibility and ignored; PyTorch knows whether memory is pinned.

    Raises TypeError for other objects and for samples of different dtypes, numbers of axes or layouts, RuntimeError for
    strided data, and ValueError for a layout of a wrong length.
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
        """Return a copy of sample `i`, counted from 0. Raise RuntimeError if `i` is out of range."""
        samples = self.samples()
        if not 0 <= _sample_index(i) < len(samples):
            raise RuntimeError(f"sample index {i} is out of range for a batch of {len(samples)}")
        return samples[i].numpy().copy()

    def as_array(self) -> np.ndarray[Any, Any]:
        """Return a copy of the batch as an array ``(batch, ...)``. Raise RuntimeError if the samples' shapes differ."""
        return self.stack().numpy().copy()

    def as_cpu(self) -> TensorListCPU:
        """Return the batch itself."""
        return self

    def copy_to_external(self, ptr: int | ctypes.c_void_p, /) -> None:
        """Copy all elements, sample after sample without gaps, to an address in main memory."""
        copy_to_memory(self._pack(), ptr)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListCPU:
        """Return a batch that contains a sample `num_samples` times. The batch shares the sample's memory."""
        return _broadcast(TensorListCPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Return a batch of objects with ``__dlpack__``. Unless `contiguous` is true, the batch shares their memory."""
        return TensorListCPU(_check_dlpack(list_of_objects), layout, contiguous)


class TensorListGPU(TensorList):
    """A batch of samples in the memory of an accelerator.

    Args:
        object: A `TensorListGPU`, an object that `TensorGPU` accepts and whose first dimension is the batch, or a list
            of tensors. The batch shares the object's memory unless `object` is a list. If None, the batch is empty.
        layout: Names of the axes of a sample, one letter each.
        contiguous: If `object` is a list: True to copy its samples into one block of memory, False to share their
            memory.
        stream: A stream (PyTorch's, or a raw handle) that may still be writing the data.
        device_id: Accepted for compatibility and ignored; the object knows its device.

    Raises RuntimeError for an object that is not on an accelerator and for strided data.
    """

    __slots__ = ()
    _kind = TensorGPU
    _default_device = torch.device("cuda")

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
        """Handle of the current CUDA stream, on which the data may be used; None without CUDA."""
        return current_stream(self.device)

    def device_id(self) -> int:
        """Return the index of the device."""
        return self.device.index or 0

    def at(self, i: int, /) -> TensorGPU:
        """Return a view of sample `i`, counted from 0. Raise RuntimeError if `i` is out of range."""
        if not 0 <= _sample_index(i) < len(self):
            raise RuntimeError(f"sample index {i} is out of range for a batch of {len(self)}")
        sample: TensorGPU = self[i]
        return sample

    def as_cpu(self) -> TensorListCPU:
        """Return a copy of the batch in main memory. All samples are copied in one transfer."""
        stored = self._stored.to_cpu()
        return TensorListCPU._create(stored, True, self._layout, self._source_info)

    def copy_to_external(
        self,
        ptr: int | ctypes.c_void_p,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy all elements, sample after sample without gaps, to an address on the same device.

        Args:
            cuda_stream: Stream on which to copy; the current stream if None.
            non_blocking: True to return before the copy has finished.
            use_copy_kernel: Accepted for compatibility.
        """
        copy_to_device(self._pack(), ptr, cuda_stream, non_blocking)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListGPU:
        """Return a batch that contains a sample `num_samples` times. The batch shares the sample's memory."""
        return _broadcast(TensorListGPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any],
        layout: str | None = None,
        stream: Any = None,
        contiguous: bool = False,
    ) -> TensorListGPU:
        """Return a batch of objects with ``__dlpack__``. Unless `contiguous` is true, the batch shares their memory."""
        return TensorListGPU(_check_dlpack(list_of_objects), layout, contiguous, stream=stream)


_L = TypeVar("_L", TensorListCPU, TensorListGPU)


def _broadcast(kind: type[_L], sample: Any, num_samples: int) -> _L:
    if num_samples < 0:
        raise ValueError(f"the number of samples must not be negative, got {num_samples}")
    single = kind([sample], contiguous=False)
    infos = list(single.source_infos or ()) * num_samples
    samples = single.samples() * num_samples
    return kind.from_samples(samples, single.layout(), single.torch_dtype, single.ndim(), infos or None)


def _check_dlpack(objects: Sequence[Any]) -> list[Any]:
    for i, each in enumerate(objects):
        if not hasattr(each, "__dlpack__"):
            raise TypeError(f"sample {i} must have `__dlpack__`, got a {type(each).__name__}")
    return list(objects)


def _sample_index(i: Any) -> int:
    if not isinstance(i, int | np.integer):
        raise TypeError(f"the index of a sample must be an int, got a {type(i).__name__}")
    return int(i)
