"""`LazyValue`, the base class of `Tensor` and `Batch`: a value that may not be computed yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._dtypes import DType, from_torch
from torchdali.experimental.dynamic._given import make_result
from torchdali.experimental.dynamic._operation import OperationResult
from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorCPU, TensorGPU, TensorList

__all__ = ["HOOKS", "LazyValue"]


class _Hooks:
    """Functions that values call. `_invoke`, which imports this module, sets them.

    Attributes:
        arithmetic: Computes an arithmetic operator on operands.
        subscript: Indexes into a tensor, or into each sample of a batch.
    """

    arithmetic: Callable[[str, Sequence[Any]], Any]
    subscript: Callable[[LazyValue, Any], Any]


HOOKS = _Hooks()


class LazyValue:
    """A tensor or a batch: known values, or the result of an operation that may not be computed yet.

    Attributes:
        _list: The samples, if known; a single tensor is a batch of one sample.
        _result: The result of the operation that computes the samples. If known samples are an operand of a recorded
            call, the result that represents the samples in the graph.
    """

    __slots__ = ("__weakref__", "_list", "_result")
    _list: TensorList | None
    _result: OperationResult | None

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # == compares element by element
    __array_ufunc__: ClassVar[None] = None  # in arithmetic with NumPy arrays, this class's operators are called

    if TYPE_CHECKING:  # see `_arithmetic`; the result is a batch if an operand is a batch

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...

    def _values(self) -> TensorList:
        """Return the samples; compute them first if needed."""
        # Each field is read once, because several threads may call this method. `_list` is set before `_result` is
        # cleared.
        result, batch = self._result, self._list
        if batch is None and result is not None:
            batch = self._list = result.values()
            if not result.operation.captured:
                self._result = None  # this also releases the graph of the result
        batch = self._list if batch is None else batch
        assert batch is not None
        return batch

    def _edge(self) -> DataNode:
        """Return the value as an edge (an output of a node) of a graph."""
        result = self._result
        if result is None:
            result = self._result = make_result(self._values(), self.device)
        return result.edge

    @property
    def device(self) -> Device:
        """Device of the data."""
        result = self._result
        if self._list is None and result is not None:
            return result.device
        torch_device = self._values().device
        return Device.CPU if torch_device.type == "cpu" else Device("gpu", torch_device.index)

    @property
    def layout(self) -> str | None:
        """Names of the axes of a sample, one letter each; None if the data has no layout."""
        return self._values().layout() or None

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return from_torch(self._torch_dtype())

    def _torch_dtype(self) -> torch.dtype:
        dtype = self._values().torch_dtype
        assert dtype is not None
        return dtype

    @property
    def ndim(self) -> int:
        """Number of axes of a sample."""
        return self._values().ndim()

    def _single(self, pad: bool = False) -> TensorCPU | TensorGPU:
        """Return the value as one tensor; ``pad`` pads samples with zeros if their shapes differ."""
        raise NotImplementedError

    def torch(self, copy: Any = None) -> torch.Tensor:
        """Return the value as a torch tensor."""
        raise NotImplementedError

    def evaluate(self) -> Any:
        """Compute the value if necessary, and return it."""
        self._values()
        return self
