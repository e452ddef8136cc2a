"""`Tensor`: one sample of the dynamic mode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from torchdali.experimental.dynamic._arithmetic import install
from torchdali.experimental.dynamic._convert import move, relabel, sample_of
from torchdali.experimental.dynamic._device import Device, DeviceLike, device, to_torch_device
from torchdali.experimental.dynamic._operation import OperationResult
from torchdali.experimental.dynamic._printing import text_of_tensor
from torchdali.experimental.dynamic._value import HOOKS, LazyValue
from torchdali.tensors import TensorCPU, TensorGPU, TensorList

__all__ = ["Tensor", "as_tensor", "tensor"]


class Tensor(LazyValue):
    """One tensor with a layout. Depending on the `EvalMode`, the tensor is computed only when its value is needed.

    Arithmetic, comparison and indexing return a `Tensor`. `Tensor.torch`, ``torch.as_tensor``, NumPy and DLPack share
    the tensor's memory.

    Args:
        data: Numbers, nested lists, an array, a torch tensor, an object with ``__dlpack__``, or a `Tensor`.
            Memory is shared if possible.
        dtype: Dtype of the tensor; data with another dtype is converted.
        device: Device of the tensor; by default, the data's device, or else the current device.
        layout: Names of the axes, one letter each.
        batch: The batch that contains this sample; pass it instead of ``data``.
        index_in_batch: Index of the sample in ``batch``.
        invocation_result: The result of an operation; internal code passes it instead of ``data``.
        copy: Never share memory with the data.

    Raises:
        ValueError: No data was passed, or the layout's length is wrong.
        TypeError: The data doesn't contain numbers.
    """

    __slots__ = ("_batch", "_index")

    def __init__(
        self,
        data: Any = None,
        dtype: Any = None,
        device: DeviceLike = None,
        layout: str | None = None,
        batch: LazyValue | None = None,
        index_in_batch: int | None = None,
        invocation_result: OperationResult | None = None,
        copy: bool = False,
    ) -> None:
        self._list, self._result, self._batch = None, invocation_result, None
        if batch is not None and index_in_batch is not None:
            self._batch, self._index = batch, index_in_batch
        elif data is not None:
            self._set_data(data, dtype, device, layout, copy)
        elif invocation_result is None:
            raise ValueError("a Tensor needs data, or a batch and an index_in_batch")

    def _set_data(self, data: Any, dtype: Any, device_like: DeviceLike, layout: str | None, copy: bool) -> None:
        plain = dtype is None and device_like is None and layout is None and not copy
        if plain and isinstance(data, Tensor) and data._list is None and data._batch is None:
            self._result = data._result
            return
        if isinstance(data, LazyValue):
            data = data._single()
        sample, data_layout = sample_of(data, dtype, copy)
        self._list = TensorList.from_samples([sample], data_layout)
        target = _target(device_like, data)
        if self._list.device != to_torch_device(target):
            self._list = move(self._list, target)
        if layout is not None:
            self._list = relabel(self._list, layout)

    def _values(self) -> TensorList:
        if self._list is None and self._batch is not None:
            values = self._batch._values()
            sample = values.samples()[self._index]
            self._list = TensorList.from_samples([sample], values.layout())
            self._batch = None
        return super()._values()

    def _sample(self) -> torch.Tensor:
        return self._values().samples()[0]

    def _single(self, pad: bool = False) -> TensorCPU | TensorGPU:
        return self._storage

    @property
    def _storage(self) -> TensorCPU | TensorGPU:
        """The data as a `TensorCPU` or `TensorGPU`, the classes of samples in a pipeline's batch."""
        values = self._values()
        stored: TensorCPU | TensorGPU = values[0]
        return stored

    @property
    def device(self) -> Device:
        """Device of the tensor."""
        return super().device if self._batch is None else self._batch.device

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self._sample().shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.dtype.bytes

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * self.itemsize

    def cpu(self) -> Tensor:
        """Return the tensor on the CPU; ``self`` if it is already there."""
        return self.to_device("cpu")

    def gpu(self, index: int | None = None) -> Tensor:
        """Return the tensor on an accelerator; ``self`` if it is already there."""
        return self.to_device(Device("gpu", index))

    def to_device(self, device: DeviceLike, force_copy: bool = False) -> Tensor:
        """Return the tensor on a device; ``self`` if it is already there and ``force_copy`` is False."""
        target = _target(device)
        if target == self.device and not force_copy:
            return self
        return _tensor_of(move(self._values(), target) if target != self.device else _clone(self))

    def torch(self, copy: bool = False) -> torch.Tensor:
        """Return a torch tensor that shares this tensor's memory, or a copied tensor if ``copy`` is True.

        Both tensors support gradients.
        """
        sample = self._sample()
        return sample.clone() if copy else sample

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises:
            ValueError: The tensor doesn't have exactly one element.
        """
        if self.size != 1:
            raise ValueError(f"the tensor has {self.size} elements; item() needs exactly 1")
        return self._sample().item()

    def __getitem__(self, ranges: Any) -> Tensor:
        """Index the tensor with indices, ranges, ``...`` and new axes, as DALI's nodes do."""
        parts = ranges if isinstance(ranges, tuple) else (ranges,)
        count = sum(part is not None and part is not Ellipsis for part in parts)
        if count > self.ndim:
            raise ValueError(f"{count} indices are too many for a tensor with {self.ndim} dimensions")
        result: Tensor = HOOKS.subscript(self, ranges)
        return result

    def __iter__(self) -> Iterator[Tensor]:
        for i in range(self.shape[0]):
            yield self[i]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.kind.name == "float":
            raise TypeError("an index must be an integer, got a float")
        return int(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a NumPy array that shares the tensor's memory if possible."""
        if self.device != Device.CPU:
            raise TypeError("the tensor must be on the CPU; call cpu() first")
        array = self._sample().detach().numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self._sample().__cuda_array_interface__
        return interface

    def __dlpack__(self, stream: Any = None, dl_device: Any = None) -> Any:
        """Export the memory by DLPack."""
        return self._storage.__dlpack__(stream=stream, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and device index."""
        return self._storage.__dlpack_device__()

    def __str__(self) -> str:
        return text_of_tensor(self._sample(), self.layout, str(self.device))

    def __repr__(self) -> str:
        return str(self)


install(Tensor)


def _target(device_like: DeviceLike, data: Any = None) -> Device:
    """Return the passed device, otherwise the data's device, otherwise the current device."""
    target = device(device_like)
    if target is not None:
        return target
    get_dlpack_device = getattr(data, "__dlpack_device__", None)
    if get_dlpack_device is not None and not isinstance(data, np.ndarray):
        return Device.from_dlpack(get_dlpack_device())
    return Device.current()


def _tensor_of(values: TensorList) -> Tensor:
    tensor = Tensor.__new__(Tensor)
    tensor._list, tensor._result, tensor._batch = values, None, None
    return tensor


def _clone(value: Tensor) -> TensorList:
    return TensorList.from_samples([value._sample().clone()], value.layout or "")


def tensor(
    data: Any,
    dtype: Any = None,
    device: DeviceLike = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """Copy data into a new tensor; see `Tensor` for the arguments.

    Args:
        pad: Pad the samples of a batch with zeros if their shapes differ. If False, different shapes raise an error.
    """
    return Tensor(_stack_padded(data, pad), dtype, device, layout, copy=True)


def as_tensor(
    data: Any,
    dtype: Any = None,
    device: DeviceLike = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """Return a tensor that shares the data's memory if dtype and device allow it; see `Tensor` and `tensor`."""
    return Tensor(_stack_padded(data, pad), dtype, device, layout)


def _stack_padded(data: Any, pad: bool) -> Any:
    """Return a batch as one padded tensor if ``pad`` is True; otherwise return the data unchanged."""
    return data._single(pad=True) if pad and isinstance(data, LazyValue) else data
