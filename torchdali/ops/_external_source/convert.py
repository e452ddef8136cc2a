"""Convert the data from a user's source to a `TensorList`, and check the dtype, number of axes and layout."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from torchdali.tensors import Tensor, TensorList
from torchdali.tensors._foreign import as_torch
from torchdali.types import from_torch_dtype

__all__ = ["Expected", "to_batch"]

_UNSUPPORTED_TYPES = (str, bytes, bytearray, int, float, complex, list, tuple, dict, type(None))


def to_batch(data: Any, layout: str = "", *, copy: bool = True) -> TensorList:
    """Convert the data that a source returned to a batch.

    Args:
        data: A list or tuple of samples, an array whose first axis is the batch, or a `TensorList`. Samples and arrays
            are NumPy arrays, torch tensors, or objects that support DLPack, NumPy's array interface or the buffer
            protocol.
        layout: Layout of a sample; "" to use the data's own layout.
        copy: True to copy the data, so that the source may change its memory afterwards. Data that isn't contiguous is
            always copied.

    Raises:
        RuntimeError: the data isn't a batch, the samples differ in dtype or number of axes, or the layout has the
            wrong length.
        IndexError: the data is an array without axes.
    """
    if isinstance(data, TensorList):
        batch = _copy_batch(data, copy)
    elif isinstance(data, (list, tuple)):
        batch = _build_batch(data, copy)
    else:
        tensor = _tensor(data, "batch", copy)
        if tensor.dim() == 0:
            raise IndexError("a batch must have at least one dimension, got a 0-dimensional array")
        batch = TensorList.from_dense(tensor)
    if batch.device.type == "cuda":
        _set_ready(batch, data)
    if layout:
        _set_layout(batch, layout)
    return batch


def _set_ready(batch: TensorList, data: Any) -> None:
    """Make later uses of the batch wait until the current CUDA stream has copied the source's data into the batch."""
    stream = torch.cuda.current_stream(batch.device)
    originals = data if isinstance(data, (list, tuple)) else [data]
    if not all(isinstance(each, torch.Tensor) and each.is_cuda for each in originals):
        stream.synchronize()  # after this function, the library that owns the data's memory may overwrite the memory
        return
    for each in originals:
        each.record_stream(stream)
    batch.ready = stream.record_event()


def _set_layout(batch: TensorList, layout: str) -> None:
    try:
        batch.set_layout(layout)
    except ValueError:
        raise RuntimeError(f"The layout {layout!r} cannot describe {batch.ndim()}-dimensional data") from None


def _copy_batch(data: TensorList, copy: bool) -> TensorList:
    def clone(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if copy else tensor

    infos, dense = data.source_infos, data.dense()
    if dense is not None:
        return TensorList.from_dense(clone(dense), data.layout(), infos)
    samples = [clone(sample) for sample in data.samples()]
    return TensorList.from_samples(samples, data.layout(), source_info=infos)


def _build_batch(samples: Sequence[Any], copy: bool) -> TensorList:
    stacked = _stack(samples) if copy else None
    if stacked is not None:
        return TensorList.from_dense(stacked)
    batch = (_join_rows(samples) if copy else None) or _as_arrays(samples, copy)
    if batch is not None:
        return batch
    tensors = [_tensor(sample, "sample", copy) for sample in samples]
    for i, tensor in enumerate(tensors):
        if tensor.dtype != tensors[0].dtype or tensor.dim() != tensors[0].dim():
            raise RuntimeError(
                f"Samples of a batch must agree in dtype and number of dimensions: "
                f"sample 0 is {_describe(tensors[0])}, sample {i} is {_describe(tensor)}"
            )
    layout = samples[0].layout() if samples and isinstance(samples[0], Tensor) else ""
    return TensorList.from_samples(tensors, layout)


_SMALL_BATCH = 1 << 16  # bytes of a batch; for smaller batches, one copy costs less than one tensor per sample


def _join_rows(samples: Sequence[Any]) -> TensorList | None:
    """Copy the samples into one batch if they are small arrays that differ only in the size of the first axis.

    Return None for other samples.
    """
    first = samples[0] if samples else None
    if type(first) is not np.ndarray or not first.ndim or first.nbytes > _SMALL_BATCH:
        return None
    kind, tail, counts, size = first.dtype, first.shape[1:], [], 0
    for each in samples:
        matches = type(each) is np.ndarray and each.dtype == kind and each.shape[1:] == tail
        if not (matches and each.flags.c_contiguous):
            return None
        counts.append(len(each))
        size += each.nbytes
        if size > _SMALL_BATCH:
            return None
    if counts.count(counts[0]) == len(counts):
        return None
    return TensorList.from_rows(_from_numpy(np.concatenate(samples)), counts)


def _as_arrays(samples: Sequence[Any], copy: bool) -> TensorList | None:
    """Build a batch from arrays with one dtype and number of axes, or from their copies.

    Return None for other samples.
    """
    if not samples or set(map(type, samples)) != {np.ndarray}:
        return None
    kinds = set(map(_dtype_of, samples))
    if len(kinds) > 1 or len(set(map(_ndim_of, samples))) > 1:
        return None
    if _UINT64 in kinds or not (copy or all(map(_is_plain, samples))):
        return None  # PyTorch supports only one of the two unsigned 64-bit C types
    arrays = [each.copy() for each in samples] if copy else list(samples)
    try:
        first = torch.from_numpy(arrays[0])
    except (TypeError, ValueError):
        return None
    return TensorList.from_arrays(arrays, _check_supported(first).dtype)


def _is_plain(array: np.ndarray[Any, Any]) -> bool:
    return array.flags.carray and array.size > 0  # packed, aligned, writable


_dtype_of, _ndim_of = operator.attrgetter("dtype"), operator.attrgetter("ndim")
_shape_and_dtype_of = operator.attrgetter("shape", "dtype")
_UINT64 = np.dtype(np.uint64)


def _describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def _stack(samples: Sequence[Any]) -> torch.Tensor | None:
    """Copy arrays or tensors with one shape and dtype into one dense tensor; return None for other samples."""
    if not samples:
        return None
    first = samples[0]
    if isinstance(first, (np.ndarray, np.generic)):
        matches = all(issubclass(kind, (np.ndarray, np.generic)) for kind in set(map(type, samples)))
        forms = list(map(_shape_and_dtype_of, samples)) if matches else []
        if not matches or forms.count(forms[0]) < len(forms):
            return None
        return _from_numpy(np.array(samples))  # three times as fast as `np.stack` for small samples
    matches = isinstance(first, torch.Tensor) and all(
        isinstance(s, torch.Tensor) and s.shape == first.shape and s.dtype == first.dtype and s.device == first.device
        for s in samples
    )
    if not matches:
        return None
    return _check_supported(torch.stack([s.detach() for s in samples]).contiguous())


DATASET_HINT = "read a dataset, whose samples are dictionaries, tuples or arrays, with fn.readers.dataset(dataset=...)"


def _check_supported(tensor: torch.Tensor) -> torch.Tensor:
    try:
        from_torch_dtype(tensor.dtype)
    except TypeError as error:
        raise RuntimeError(f"data of the type {tensor.dtype} isn't supported: {error}") from error
    return tensor


def _tensor(value: Any, role: str, copy: bool) -> torch.Tensor:
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(value), copy)
    if isinstance(value, Tensor):
        value = value.torch()
    if isinstance(value, Mapping):
        raise RuntimeError(f"a dictionary is not a {role}; {DATASET_HINT}")
    if isinstance(value, _UNSUPPORTED_TYPES):
        raise RuntimeError(
            f"{type(value)} has no shape and is not a {role}: pass NumPy arrays or torch "
            "tensors (np.frombuffer(data, np.uint8) for bytes, np.array(value) for numbers and lists)"
        )
    if hasattr(value, "__array_interface__"):
        return _from_numpy(np.asarray(value), copy)
    if isinstance(value, torch.Tensor):
        _check_supported(value)
        if not value.is_contiguous() or value.is_neg():
            value, copy = value.resolve_neg().contiguous(), False
    try:
        tensor = as_torch(value, "gpu" if _on_accelerator(value) else "cpu")
    except TypeError as error:
        raise RuntimeError(f"{type(value)} has no shape and is not a {role}: {error}") from error
    return tensor.clone() if copy else tensor


def _on_accelerator(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type != "cpu"
    return hasattr(value, "__cuda_array_interface__")


def _from_numpy(array: np.ndarray[Any, Any], copy: bool = False) -> torch.Tensor:
    if not array.dtype.isnative:
        array, copy = array.astype(array.dtype.newbyteorder("=")), False
    if not array.flags.c_contiguous or not array.size:  # NumPy calls an empty array contiguous, whatever its strides
        array, copy = np.array(array, order="C"), False
    if array.dtype == np.uint64:
        array = array.view(np.uint64)  # PyTorch supports only one of the two unsigned 64-bit C types
    try:
        tensor = torch.from_numpy(array.copy() if copy or not array.flags.writeable else array)
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"data of the type {array.dtype} isn't supported: {error}") from error
    return _check_supported(tensor)


class Expected:
    """The expected dtype, number of axes and layout of one output.

    A batch must match the values that the user has passed to `external_source`, and must have the same dtype, number of
    axes and layout as earlier batches.

    Args:
        dtype: Dtype that the user has passed; None if none was passed.
        ndim: Number of axes that the user has passed; None if none was passed.
        layout: Layout that the user has passed; "" if none was passed.
    """

    def __init__(self, dtype: torch.dtype | None, ndim: int | None, layout: str) -> None:
        self._declared = (dtype, ndim, layout or None)
        self._previous: tuple[Any, ...] = (None, None, None)
        self._last_checked: tuple[Any, ...] | None = None

    def check(self, batch: TensorList) -> None:
        """Check a batch. An empty batch is not checked.

        Raises:
            RuntimeError: the batch doesn't have the expected dtype, number of axes or layout.
        """
        kind = batch.torch_dtype, batch.ndim(), batch.layout()
        if kind == self._last_checked or len(batch) == 0:
            return
        properties = zip(_EXPECTED_MESSAGES, _CHANGED_MESSAGES, self._declared, self._previous, kind, strict=True)
        for expected, changed, declared, previous, value in properties:
            if declared not in (None, value):
                raise RuntimeError(expected.format(_describe_value(declared), _describe_value(value)))
            if previous not in (None, "", value):
                raise RuntimeError(changed.format(_describe_value(previous), _describe_value(value)))
        self._previous = self._last_checked = kind


_EXPECTED_MESSAGES = (
    "ExternalSource expected data of type {} and got: {}",
    "ExternalSource expected data with {} dimensions and got {} dimensions",
    'ExternalSource: Expected data with layout: "{}" and got: "{}"',
)
_CHANGED_MESSAGES = (
    "ExternalSource got data of another type than in the previous batch: {}, now {}",
    "ExternalSource got data with another number of dimensions than in the previous batch: {}, now {}",
    'ExternalSource got data with another layout than in the previous batch: "{}", now "{}"',
)


def _describe_value(value: Any) -> str:
    return from_torch_dtype(value).name.lower() if isinstance(value, torch.dtype) else str(value)
