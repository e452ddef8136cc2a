"""Convert the user's data to tensors and batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from torchdali.experimental.dynamic._device import Device, device, to_torch_device
from torchdali.experimental.dynamic._dtypes import as_torch_dtype
from torchdali.kernels.convert import convert
from torchdali.tensors import Tensor as StoredTensor
from torchdali.tensors import TensorList

__all__ = ["as_list", "list_of_samples", "sample_of"]


def sample_of(data: Any, dtype: Any = None, copy: bool = False) -> tuple[torch.Tensor, str]:
    """Return one sample as a torch tensor, and its layout.

    Memory is shared if the data allows it and ``copy`` is False. Python's integers become int32, and Python's floats
    become float32, as in DALI.

    Raises:
        TypeError, ValueError: The data can't be converted to an array of numbers.
        OverflowError: An integer doesn't fit int32.
    """
    layout = _layout_of(data)
    tensor = _as_torch(data)
    if dtype is not None:
        torch_dtype = as_torch_dtype(dtype)
        if tensor.dtype != torch_dtype:
            return convert(tensor, torch_dtype), layout
    return (tensor.clone() if copy else tensor), layout


def _layout_of(data: Any) -> str:
    if isinstance(data, StoredTensor):
        return data.layout()
    return getattr(data, "_own_layout", "") or ""


def _as_torch(data: Any) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data
    if isinstance(data, StoredTensor):
        return data.torch()
    if isinstance(data, (bool, int, float, list, tuple)):
        return torch.from_numpy(_convert_numbers(data))
    if isinstance(data, np.generic):
        return torch.from_numpy(np.asarray(data))
    if isinstance(data, (bytes, bytearray, memoryview)):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if not isinstance(data, np.ndarray) and hasattr(data, "__dlpack__"):
        return torch.utils.dlpack.from_dlpack(data)
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"cannot convert a {type(data).__name__} to a tensor: its elements must be numbers")
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


def _convert_numbers(data: Any) -> np.ndarray[Any, Any]:
    """Convert Python numbers to an int32, float32 or bool array. Arrays inside of lists keep their dtype."""
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"cannot convert {data!r} to a tensor: its elements must be numbers")
    if _contains_arrays(data):
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype.kind in "iu":
        limits = np.iinfo(np.int32)
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise OverflowError(f"the integers must fit into int32, got {data!r}; pass a dtype")
        return array.astype(np.int32)
    return array


def _contains_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, torch.Tensor))


def list_of_samples(
    data: Any, dtype: Any = None, device_like: Any = None, layout: str | None = None, copy: bool = False
) -> TensorList:
    """Return several samples as a `TensorList`.

    Args:
        data: An array whose first axis is the sample index, or a sequence of samples.
        dtype: Dtype of the result; samples with another dtype are converted.
        device_like: The target device; the data's device by default.
        layout: Layout of a sample; the data's layout by default.
        copy: Never share memory with the data.

    Raises:
        ValueError: The samples differ in their number of axes, or there are no samples and ``dtype`` is None.
        TypeError: The samples differ in their dtype, and ``dtype`` is None.
    """
    if isinstance(data, TensorList):
        batch = _cast_list(data, dtype, copy)
    elif _is_array(data):
        tensor, data_layout = sample_of(data, dtype, copy)
        if tensor.ndim == 0:
            raise ValueError("a batch must have a first axis, got a single number")
        batch = TensorList.from_dense(tensor, data_layout[1:] if data_layout else "")
    else:
        batch = _gather(data, dtype, copy)
    return _move_and_relabel(batch, device_like, layout)


def _is_array(data: Any) -> bool:
    if isinstance(data, (torch.Tensor, np.ndarray, StoredTensor)):
        return True
    return not isinstance(data, (list, tuple)) and hasattr(data, "__dlpack__")


def _cast_list(data: TensorList, dtype: Any, copy: bool) -> TensorList:
    torch_dtype = None if dtype is None else as_torch_dtype(dtype)
    if (torch_dtype is None or data.torch_dtype == torch_dtype) and not copy:
        return data
    samples = [convert(s, torch_dtype) if torch_dtype and s.dtype != torch_dtype else s.clone() for s in data.samples()]
    return TensorList.from_samples(samples, data.layout(), dtype=torch_dtype or data.torch_dtype)


def _gather(data: Iterable[Any], dtype: Any, copy: bool) -> TensorList:
    pairs = [sample_of(each, dtype, copy) for each in data]
    if not pairs:
        if dtype is None:
            raise ValueError("a batch without samples needs a dtype; pass dtype")
        return TensorList.from_samples([], "", dtype=as_torch_dtype(dtype))
    first, layout = pairs[0]
    for i, (sample, _) in enumerate(pairs):
        if sample.ndim != first.ndim:
            raise ValueError(
                f"samples of a batch must have one number of axes; sample 0 has {first.ndim}, sample {i} has "
                f"{sample.ndim}"
            )
    samples = [sample for sample, _ in pairs]
    if any(sample.dtype != first.dtype for sample in samples):
        if dtype is None and not all(isinstance(each, (int, float)) for each in data):
            dtypes = sorted({str(s.dtype).removeprefix("torch.") for s in samples})
            raise TypeError(f"samples of a batch must have one dtype, got {', '.join(dtypes)}; pass a dtype")
        samples = [sample.to(first.dtype) for sample in samples]
    return TensorList.from_samples(samples, layout)


def _move_and_relabel(values: TensorList, device_like: Any, layout: str | None) -> TensorList:
    target = device(device_like)
    if target is not None and values.device != to_torch_device(target):
        values = move(values, target)
    if layout is not None and layout != values.layout():
        values = relabel(values, layout)
    return values


def move(values: TensorList, target: Device) -> TensorList:
    """Return a copy of a batch on another device."""
    torch_device = to_torch_device(target)
    samples = [sample.to(torch_device, non_blocking=torch_device.type != "cpu") for sample in values.samples()]
    return TensorList.from_samples(samples, values.layout(), dtype=values.torch_dtype)


def relabel(values: TensorList, layout: str) -> TensorList:
    """Return the same samples with another layout.

    Raises:
        ValueError: The layout's length differs from the samples' number of dimensions.
    """
    if layout and len(values) and len(layout) != values.ndim():
        raise ValueError(f"the layout must have a letter for each of the {values.ndim()} dimensions, got {layout!r}")
    dense = values.dense()
    if dense is not None:
        return TensorList.from_dense(dense, layout)
    return TensorList.from_samples(values.samples(), layout, dtype=values.torch_dtype)


def as_list(value: Any, size: int | None) -> TensorList:
    """Convert one sample to a batch that repeats the sample ``size`` times.

    Args:
        size: Number of samples of the batch; None for a batch that contains only the sample itself.
    """
    tensor, layout = sample_of(value)
    if size is None:
        return TensorList.from_samples([tensor], layout)
    return TensorList.from_dense(tensor.unsqueeze(0).expand(size, *tensor.shape), layout)
