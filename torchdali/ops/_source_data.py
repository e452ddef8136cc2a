"""What the user's Python code may hand over as a batch, and how it becomes a `TensorList`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from torchdali.tensors import Tensor, TensorList
from torchdali.tensors._foreign import as_torch
from torchdali.types import from_torch_dtype

__all__ = ["Expected", "to_batch"]

_REFUSED = (str, bytes, bytearray, int, float, complex, list, tuple, dict, type(None))


def to_batch(data: Any, layout: str = "", *, copy: bool = True) -> TensorList:
    """Make a batch of what a source returned.

    Args:
        data: A list or tuple of samples, one array whose first dimension is the batch, or a `TensorList`.
            Samples and arrays are NumPy arrays, torch tensors, or objects with DLPack, the array interface
            or the buffer protocol.
        layout: Of a sample; that of the data when empty.
        copy: Take a copy, so that the source may change its memory afterwards.

    Raises:
        RuntimeError: something that is no batch, strided data, samples that differ in type or number of
            axes, or a layout of the wrong length.
    """
    if isinstance(data, TensorList):
        batch = _copied(data, copy)
    elif isinstance(data, (list, tuple)):
        batch = _gathered(data, copy)
    else:
        tensor = _tensor(data, "batch", copy)
        if tensor.dim() == 0:
            raise IndexError("a 0-dimensional array has no first dimension to be the batch")
        batch = TensorList.from_dense(tensor)
    if batch.device.type == "cuda":
        torch.cuda.current_stream(batch.device).synchronize()  # any stream may read it from now on
    if layout:
        _name_axes(batch, layout)
    return batch


def _name_axes(batch: TensorList, layout: str) -> None:
    try:
        batch.set_layout(layout)
    except ValueError:
        raise RuntimeError(
            f"the layout {layout!r} cannot describe {batch.ndim()}-dimensional samples"
        ) from None


def _copied(data: TensorList, copy: bool) -> TensorList:
    def own(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if copy else tensor

    infos, dense = data.source_infos, data.dense()
    if dense is not None:
        return TensorList.from_dense(own(dense), data.layout(), infos)
    samples = [own(sample) for sample in data.samples()]
    return TensorList.from_samples(samples, data.layout(), source_info=infos)


def _gathered(samples: Sequence[Any], copy: bool) -> TensorList:
    stacked = _stacked(samples) if copy else None
    if stacked is not None:
        return TensorList.from_dense(stacked)
    made = _joined(samples) if copy else _shared(samples)
    if made is not None:
        return made
    tensors = [_tensor(sample, "sample", copy) for sample in samples]
    for i, tensor in enumerate(tensors):
        if tensor.dtype != tensors[0].dtype or tensor.dim() != tensors[0].dim():
            raise RuntimeError(
                f"all samples of a batch have one type and one number of axes: sample 0 is "
                f"{_describe(tensors[0])}, sample {i} is {_describe(tensor)}"
            )
    layout = samples[0].layout() if samples and isinstance(samples[0], Tensor) else ""
    return TensorList.from_samples(tensors, layout)


_FEW = 1 << 16  # bytes of a batch; below, one copy costs less than a tensor a sample


def _joined(samples: Sequence[Any]) -> TensorList | None:
    """Make a batch with one copy, of few rows: arrays of one type that differ in their first extent, and only there."""
    first = samples[0] if samples else None
    if type(first) is not np.ndarray or not first.ndim or first.nbytes > _FEW:
        return None
    kind, tail, counts, size = first.dtype, first.shape[1:], [], 0
    for each in samples:
        alike = type(each) is np.ndarray and each.dtype == kind and each.shape[1:] == tail
        if not (alike and each.flags.c_contiguous):
            return None
        counts.append(len(each))
        size += each.nbytes
    if size > _FEW or counts.count(counts[0]) == len(counts):
        return None
    return TensorList.from_rows(_from_numpy(np.concatenate(samples)), counts)


def _shared(samples: Sequence[Any]) -> TensorList | None:
    """Make a batch on the memory of arrays of one type and number of axes that need no copy, else None."""
    first = samples[0] if samples else None
    if type(first) is not np.ndarray:
        return None
    kind, ndim = first.dtype, first.ndim
    for each in samples:
        alike = type(each) is np.ndarray and each.dtype == kind and each.ndim == ndim
        if not (alike and each.flags.carray):  # packed, aligned, writeable
            return None
    return TensorList.from_arrays(list(samples), _from_numpy(first).dtype)


def _describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def _stacked(samples: Sequence[Any]) -> torch.Tensor | None:
    """Make a dense batch with one copy, of arrays or tensors of one shape and type, densely packed."""
    if not samples:
        return None
    first = samples[0]
    if isinstance(first, (np.ndarray, np.generic)):
        alike = all(
            isinstance(s, (np.ndarray, np.generic))
            and s.shape == first.shape
            and s.dtype == first.dtype
            and s.flags.c_contiguous
            for s in samples
        )
        return _from_numpy(np.stack(samples)) if alike else None
    alike = isinstance(first, torch.Tensor) and all(
        isinstance(s, torch.Tensor)
        and s.shape == first.shape
        and s.dtype == first.dtype
        and s.device == first.device
        and s.is_contiguous()
        for s in samples
    )
    return _supported(torch.stack([s.detach() for s in samples])) if alike else None


def _supported(tensor: torch.Tensor) -> torch.Tensor:
    try:
        from_torch_dtype(tensor.dtype)
    except TypeError as error:
        raise RuntimeError(f"data of the type {tensor.dtype} are not supported: {error}") from error
    return tensor


def _tensor(value: Any, what: str, copy: bool) -> torch.Tensor:
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(value), copy)
    if isinstance(value, Tensor):
        value = value.torch()
    if isinstance(value, _REFUSED):
        raise RuntimeError(
            f"a {what} cannot be a {type(value).__name__}: give NumPy arrays or torch tensors "
            "(np.frombuffer(data, np.uint8) for bytes, np.array(value) for numbers and lists)"
        )
    try:
        tensor = as_torch(value, "gpu" if _on_accelerator(value) else "cpu")
    except TypeError as error:
        raise RuntimeError(f"a {what} cannot be a {type(value).__name__}: {error}") from error
    return tensor.clone() if copy else tensor


def _on_accelerator(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type != "cpu"
    return hasattr(value, "__cuda_array_interface__")


def _from_numpy(array: np.ndarray[Any, Any], copy: bool = False) -> torch.Tensor:
    if not array.flags.c_contiguous:
        raise RuntimeError(
            f"strided data are not supported (strides {array.strides} for the shape {array.shape}): "
            "use np.ascontiguousarray"
        )
    try:
        tensor = torch.from_numpy(array.copy() if copy or not array.flags.writeable else array)
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"data of the type {array.dtype} are not supported: {error}") from error
    return _supported(tensor)


class Expected:
    """What every batch of one output must be like: as declared, and as the batches before it.

    Args:
        dtype, ndim, layout: As declared; None, None and "" where nothing was.
    """

    def __init__(self, dtype: torch.dtype | None, ndim: int | None, layout: str) -> None:
        self._declared: dict[str, Any] = {
            "type": dtype,
            "number of axes": ndim,
            "layout": layout or None,
        }
        self._before: dict[str, Any] = {}
        self._passed: tuple[Any, ...] | None = None

    def check(self, batch: TensorList) -> None:
        """Raise RuntimeError for a batch of another type, number of axes or layout; an empty one may be any."""
        kind = batch.torch_dtype, batch.ndim(), batch.layout()
        if kind == self._passed or len(batch) == 0:
            return
        found = dict(zip(("type", "number of axes", "layout"), kind, strict=True))
        for name, value in found.items():
            if self._declared[name] not in (None, value):
                raise RuntimeError(
                    f"the source was declared to give data of {name} {self._declared[name]!s}, and gave {value!s}"
                )
            if self._before.get(name) not in (None, "", value):
                raise RuntimeError(
                    f"the {name} of a source's data may not change: it was {self._before[name]!s} in the "
                    f"batch before, and is {value!s} now"
                )
            self._before[name] = value
        self._passed = kind
