"""One tensor: the classes `TensorCPU` and `TensorGPU`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from torch import Tensor as TorchTensor  # in the class `Tensor`, the name `torch` is a method and not the module

from torchdali.tensors._foreign import (
    as_torch,
    copy_to_device,
    copy_to_memory,
    current_stream,
    wait_for,
)
from torchdali.tensors._printing import attributes, format_values, listing
from torchdali.tensors.dtypes import DALIDataType, from_torch_dtype, to_torch_dtype


def attribute_error(holder: object, name: str, conversion: str) -> AttributeError:
    """Build the error for an object without the attribute `name`.

    If torch tensors have the attribute, the message suggests to convert the object: `conversion` is the code for this,
    for example ``"torch()"``.
    """
    hint = f"; PyTorch tensors have it: .{conversion}" if hasattr(TorchTensor, name) else ""
    return AttributeError(f"{type(holder).__name__!r} object has no attribute {name!r}{hint}", name=name)


class Tensor:
    """One torch tensor with a layout: a `TensorCPU` or a `TensorGPU`."""

    __slots__ = ("_layout", "_source_info", "_tensor")
    _device: ClassVar[str]

    _tensor: TorchTensor
    _layout: str
    _source_info: str | None

    def __init__(self, object: Any, layout: str | None = None) -> None:
        shared = isinstance(object, type(self))
        self._tensor = object._tensor if shared else as_torch(object, self._device)
        self._layout = validate_layout(layout, self._tensor.dim())
        self._source_info = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Use at least protocol 2: before Python 3.11, protocols 0 and 1 drop the slots of base classes."""
        return super().__reduce_ex__(max(protocol, 2))

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report unknown attributes

        def __getattr__(self, name: str) -> Any:
            raise attribute_error(self, name, "torch()")

    def torch(self) -> TorchTensor:
        """Return the torch tensor itself."""
        return self._tensor

    @property
    def dtype(self) -> DALIDataType:
        """The elements' `DALIDataType`."""
        return from_torch_dtype(self._tensor.dtype)

    def shape(self) -> list[int]:
        """Return the lengths of the axes."""
        return list(self._tensor.shape)

    def ndim(self) -> int:
        """Return the number of axes."""
        return self._tensor.dim()

    def layout(self) -> str:
        """Return the names of the axes, one letter each; ``""`` if the layout is unset."""
        return self._layout

    def set_layout(self, layout: str | None, /) -> None:
        """Set the names of the axes.

        Raises ValueError if the layout isn't empty and doesn't have one letter per axis.
        """
        self._layout = validate_layout(layout, self._tensor.dim())

    def source_info(self) -> str:
        """Return the sample's origin, for example a file name; ``""`` if it is unknown."""
        return self._source_info or ""

    def get_property(self, name: str, /) -> str | None:
        """Return the ``"layout"`` or the ``"source_info"``. If it is empty, or `name` is another name, return None."""
        return {"layout": self._layout, "source_info": self._source_info}.get(name) or None

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterpret the bytes of the elements as another dtype of the same size, in place.

        Raises RuntimeError if the sizes differ.
        """
        self._tensor = reinterpret(self._tensor, new_type)

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove all axes of length 1 in place. With `dim`, remove only the axis `dim`, and only if its length is 1.

        Returns whether an axis was removed. Raises RuntimeError if the axis `dim` does not exist.
        """
        ndim = self._tensor.dim()
        if dim is not None and not -ndim <= dim < ndim:
            raise RuntimeError(f"axis {dim} is out of range for a tensor with {ndim} axes")
        axes = range(ndim) if dim is None else (dim % ndim,)
        dropped = {axis for axis in axes if self._tensor.shape[axis] == 1}
        self._tensor = self._tensor.squeeze(tuple(dropped))
        self._layout = "".join(name for i, name in enumerate(self._layout) if i not in dropped)
        return bool(dropped)

    def data_ptr(self) -> int:
        """Make the elements contiguous in row-major order, and return the first element's address."""
        self._tensor = self._tensor.contiguous()
        return self._tensor.data_ptr()

    def __dlpack__(
        self,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the tensor by DLPack, sharing its memory unless `copy` is true.

        Raises BufferError if `dl_device` is not the tensor's device.
        """
        if dl_device is not None and tuple(dl_device) != tuple(self.__dlpack_device__()):
            raise BufferError(f"a tensor on {self._tensor.device} can only be exported to its own device")
        tensor = self._tensor.clone() if copy else self._tensor
        if stream is None or self._tensor.device.type == "cpu":
            return tensor.__dlpack__()
        return tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device as a pair: DLPack's code for the type of device, and the device's index."""
        kind, index = self._tensor.__dlpack_device__()
        return kind, index

    def __repr__(self) -> str:
        return self._text("")

    def __str__(self) -> str:
        return self._text(format_values(self._tensor))

    def _text(self, values: str) -> str:
        common = attributes(self._tensor.dtype, self._layout, self._device)
        return listing(type(self).__name__, [values, *common, f"shape={tuple(self.shape())}"])


class TensorCPU(Tensor):
    """One tensor in main memory.

    Args:
        object: A torch tensor, a `TensorCPU`, an object with the buffer protocol (a NumPy array,
            bytes), a DLPack capsule or an object with ``__dlpack__``. The tensor shares the object's memory; read-only
            buffers are copied.
        layout: Names of the axes, one letter each.
        is_pinned: Accepted for compatibility and ignored; PyTorch knows whether memory is pinned.

    Raises TypeError for other objects, RuntimeError for strided data and for dtypes that DALI does not have, and
    ValueError for a layout of a wrong length.
    """

    __slots__ = ()
    _device = "cpu"

    def __init__(self, object: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        super().__init__(object, layout)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's description of the memory, so that ``numpy.asarray(tensor)`` shares the memory."""
        interface: dict[str, Any] = self._tensor.numpy().__array_interface__
        return interface

    def as_cpu(self) -> TensorCPU:
        """Return the tensor itself."""
        return self

    def copy_to_external(self, ptr: int | ctypes.c_void_p) -> None:
        """Copy the elements in row-major order, without gaps, to an address in main memory."""
        copy_to_memory(self._tensor, ptr)


class TensorGPU(Tensor):
    """One tensor in the memory of an accelerator.

    Args:
        object: A torch tensor on an accelerator, a `TensorGPU`, an object with
            ``__cuda_array_interface__``, a DLPack capsule or an object with ``__dlpack__``.
            The tensor shares the object's memory.
        layout: Names of the axes, one letter each.
        stream: A stream (PyTorch's, or a raw handle) that may still be writing the data.
        device_id: Accepted for compatibility and ignored; the object knows its device.

    Raises RuntimeError for an object that is not on an accelerator and for strided data.
    """

    __slots__ = ()
    _device = "gpu"

    def __init__(self, object: Any, layout: str | None = None, stream: Any = None, device_id: int = -1) -> None:
        super().__init__(object, layout)
        wait_for(stream, self._tensor.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Description of the memory, so that other libraries can share the memory."""
        interface: dict[str, Any] = self._tensor.__cuda_array_interface__
        return interface

    @property
    def stream(self) -> int | None:
        """Handle of the current CUDA stream, on which the data may be used; None without CUDA."""
        return current_stream(self._tensor.device)

    def device_id(self) -> int:
        """Return the index of the device."""
        return self._tensor.device.index or 0

    def as_cpu(self) -> TensorCPU:
        """Return a copy in main memory."""
        return wrap_tensor(TensorCPU, self._tensor.cpu(), self._layout, self._source_info)

    def copy_to_external(
        self,
        ptr: int | ctypes.c_void_p,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy the elements in row-major order, without gaps, to an address on the same device.

        Args:
            cuda_stream: Stream on which to copy; the current stream if None.
            non_blocking: True to return before the copy has finished.
            use_copy_kernel: Accepted for compatibility.
        """
        copy_to_device(self._tensor, ptr, cuda_stream, non_blocking)


_T = TypeVar("_T", bound=Tensor)


def wrap_tensor(kind: type[_T], tensor: TorchTensor, layout: str = "", source: str | None = None) -> _T:
    """Wrap a torch tensor in a `TensorCPU` or `TensorGPU`, without a copy or a check."""
    self = kind.__new__(kind)
    self._tensor, self._layout, self._source_info = tensor, layout, source
    return self


def convert_sample(kind: type[Tensor], object: Any, i: int) -> Tensor:
    """Convert an object to a `TensorCPU` or `TensorGPU`; if that fails, raise TypeError with the sample's index."""
    if isinstance(object, kind):
        return object
    try:
        return kind(object)
    except (TypeError, RuntimeError) as reason:
        raise TypeError(f"sample {i} cannot be a {kind.__name__}: {reason}") from reason


def check_uniform(tensors: Sequence[Tensor]) -> None:
    """Raise TypeError if samples have different dtypes, numbers of axes or layouts. An unset layout fits any layout."""
    for i, tensor in enumerate(tensors):
        first, layout = tensors[0], tensor._layout or tensors[0]._layout
        properties = (tensor.dtype, tensor.ndim(), layout)
        if properties != (first.dtype, first.ndim(), first._layout):
            if tensor.dtype != first.dtype:
                raise TypeError(
                    f"Tensors cannot have different data types. Tensor at position {i} has type '{tensor.dtype}' "
                    f"expected to have type '{first.dtype}'."
                )
            raise TypeError(
                f"Tensors cannot have different numbers of axes or layouts. Tensor at position {i} has {tensor.ndim()} "
                f"axes and the layout {layout!r}, expected to have {first.ndim()} and {first._layout!r}"
            )


def validate_layout(layout: str | None, ndim: int | None) -> str:
    """Return the layout, or ``""`` for None.

    Raises TypeError if the layout isn't a str, and ValueError if it isn't empty and its length isn't `ndim`.
    """
    if layout is not None and not isinstance(layout, str):
        raise TypeError(f"a layout must be a str, got a {type(layout).__name__}")
    if layout and ndim is not None and len(layout) != ndim:
        raise ValueError(f"the layout must name {ndim} axes, got {layout!r}")
    return layout or ""


def reinterpret(tensor: TorchTensor, new_type: DALIDataType) -> TorchTensor:
    """Interpret the same bytes as values of another dtype. Raise RuntimeError if the dtypes differ in size."""
    if not isinstance(new_type, DALIDataType):
        raise TypeError(f"a type must be a DALIDataType, got a {type(new_type).__name__}")
    dtype = None if new_type == DALIDataType.NO_TYPE else to_torch_dtype(new_type)
    if dtype is None or dtype.itemsize != tensor.dtype.itemsize:
        raise RuntimeError(
            f"cannot reinterpret {from_torch_dtype(tensor.dtype).name} as {new_type.name}: elements of different size"
        )
    return tensor.view(dtype)
