"""Values that the main process changes and that functions in worker processes can read."""

from __future__ import annotations

import mmap
import os
from typing import Any

import torch

from torchdali.formats.shared_counts import DescriptorLink, anonymous_descriptor, open_shared, share

__all__ = ["Shared", "mark_new_values_as_copies"]

_creates_copies = False


class Shared:
    """A number or an array that the main process and its worker processes share.

    A function that is declared with ``pure=True`` may read a shared value if you pass the value to the operator as an
    argument. If you set the value before the first batch of an epoch, all samples of the epoch use the new value.

    Setting an array isn't atomic: a function that runs at the same time may see some old and some new elements.

    Args:
        value: A bool, an int, a float, or an array or tensor on the CPU. Later values must have the same shape, and a
            dtype that can be cast to this value's dtype.

    Raises:
        TypeError: The value has another type.
    """

    def __init__(self, value: Any) -> None:
        initial, self._is_copy = _as_tensor(value), _creates_copies
        self._is_number = isinstance(value, (bool, int, float))
        self._descriptor = anonymous_descriptor(max(1, initial.nbytes))
        self._tensor = _map(self._descriptor, tuple(initial.shape), initial.dtype)
        self._tensor.copy_(initial)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def __repr__(self) -> str:
        return f"Shared({self.value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        link = share(self._descriptor)
        return _join, (link, tuple(self._tensor.shape), self._tensor.dtype, self._is_number)

    @property
    def value(self) -> Any:
        """The current value: a number, or a new tensor.

        Raises:
            RuntimeError: This is a worker process's own copy, which was created when the process imported the module
                again.
            TypeError: The new value's dtype cannot be cast to the first value's dtype.
            ValueError: The new value has another shape.
        """
        if self._is_copy:
            raise RuntimeError(
                "this Shared value belongs to a module that the worker process imported again, so changes by the "
                "program don't arrive; pass it to the operator as an argument"
            )
        return self._tensor.item() if self._is_number else self._tensor.clone()

    @value.setter
    def value(self, value: Any) -> None:
        new = _as_tensor(value)
        if not torch.can_cast(new.dtype, self._tensor.dtype):
            raise TypeError(f"the value must fit into {self._tensor.dtype}, got {new.dtype}")
        if new.shape != self._tensor.shape:
            raise ValueError(f"the value must have the shape {tuple(self._tensor.shape)}, got {tuple(new.shape)}")
        self._tensor.copy_(new)


def _as_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    try:
        return torch.as_tensor(value).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"a Shared value must be a number or an array, got a {type(value).__name__}") from None


def _map(descriptor: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    count = torch.Size(shape).numel()
    memory = torch.frombuffer(mmap.mmap(descriptor, max(1, count * dtype.itemsize)), dtype=torch.uint8)
    return memory[: count * dtype.itemsize].view(dtype).view(shape)


def _join(link: DescriptorLink, shape: tuple[int, ...], dtype: torch.dtype, is_number: bool) -> Shared:
    shared = Shared.__new__(Shared)
    shared._descriptor, shared._is_number, shared._is_copy = open_shared(link), is_number, False
    shared._tensor = _map(shared._descriptor, shape, dtype)
    return shared


def mark_new_values_as_copies() -> None:
    """Mark all values that this process creates from now on as copies.

    A worker process calls this function before it imports the user's modules again.
    """
    global _creates_copies
    _creates_copies = True
