"""Install a mock accelerator in place of `torch.cuda`."""

from __future__ import annotations

import contextlib
import gc
import importlib
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from tests.pretend import streams
from tests.pretend.report import Report
from tests.pretend.streams import Capture, Event, Graph, InStream, State, Stream, state
from tests.pretend.tensor import Pretending, PretendTensor, extent, pinned, upload
from torchdali.execute import thread_pool
from torchdali.execute.output_buffer import Arena
from torchdali.graph.rewrite import _on_device as rewriting
from torchdali.ops import _on_device
from torchdali.tensors.buffer_pool import BufferPool


class Accelerator:
    """An installed mock accelerator.

    Attributes:
        report: The counts and races.
    """

    def __init__(self, own: State) -> None:
        self.report, self._state = own.report, own

    @property
    def contexts(self) -> set[int]:
        """Devices on which this process took memory for a context."""
        return self._state.contexts

    def tensor(self, x: torch.Tensor, device: int = 0) -> PretendTensor:
        """Return a copy on a device, complete before any other operation."""
        made = upload(x, torch.device("cuda", device))
        self.report.clear()
        return made

    def synchronize(self) -> None:
        """Synchronize all streams, without counting it."""
        with self._state.lock:
            for clock in list(_clocks(self._state)):
                self._state.host_learns(clock)


def _clocks(own: State) -> Iterator[Any]:
    for each in gc.get_objects():
        if type(each) is Stream:
            yield each.clock


def inner(x: Any) -> torch.Tensor:
    """Return the elements of a tensor on any device."""
    return x.inner if isinstance(x, PretendTensor) else x


@contextlib.contextmanager
def accelerator(devices: int = 1, lag: int = 3, kernels: bool = True) -> Iterator[Accelerator]:
    """Simulate accelerators, in this thread and in threads that are started inside.

    Args:
        devices: Number of devices.
        lag: Number of queries that events deny before they report that they are done.
        kernels: Batch kernels are available; torch implementations replace them.
    """
    if torch.cuda.is_available():
        raise RuntimeError("there is a real accelerator; the pretence would hide it")
    # The compiler builds a table of torch's functions at its import, which must not contain the functions below.
    importlib.import_module("torch._dynamo.trace_rules")
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)
    own = State(Report(), devices, lag)
    with contextlib.ExitStack() as stack:
        for target, name, value in _replaced(own):
            stack.enter_context(mock.patch.object(target, name, value))
        for module in (_on_device, rewriting):
            can = mock.patch.object(module, "has_kernels", lambda device: kernels and device.type == "cuda")
            stack.enter_context(can)
        stack.enter_context(mock.patch.object(rewriting, "is_available", lambda device: False))
        stack.enter_context(Pretending())
        try:
            yield Accelerator(own)
        finally:
            torch._C._set_only_lift_cpu_tensors(False)
            streams._state = None


def _replaced(own: State) -> Iterator[tuple[Any, str, Any]]:
    """Yield replacements: objects, names, values."""

    @contextlib.contextmanager
    def on_device(device: Any) -> Iterator[None]:
        before, own.device = own.device, own.index(device)
        own.contexts.add(own.device)
        try:
            yield
        finally:
            own.device = before  # torch records a device without a context, and does not create one

    def synchronize(device: Any = None) -> None:
        own.check_capture("cudaDeviceSynchronize")
        own.report.count("sync")
        with own.lock:
            for clock in list(_clocks(own)):
                own.host_learns(clock)

    def set_device(device: Any) -> None:
        own.device = own.index(device)
        own.contexts.add(own.device)

    cuda: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "is_initialized": lambda: True,
        "is_available": lambda: True,
        "device_count": lambda: own.devices,
        "Stream": Stream,
        "Event": Event,
        "stream": InStream,
        "CUDAGraph": Graph,
        "graph": Capture,
        "device": on_device,
        "current_stream": own.current,
        "default_stream": lambda device=None: own.defaults[own.index(device)],
        "current_device": lambda: own.device,
        "set_device": set_device,
        "synchronize": synchronize,
        "get_device_properties": lambda device=None: SimpleNamespace(name="pretended", total_memory=1 << 30),
        "get_device_name": lambda device=None: "pretended",
        "mem_get_info": lambda device=None: (1 << 30, 1 << 30),
    }
    for name, value in cuda.items():
        yield torch.cuda, name, value
    yield from _constructors(own)
    start = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with Pretending():  # modes are thread-local
            start(thread)

    yield threading.Thread, "run", run
    # Pipelines inside do not share threads with those outside.
    yield thread_pool, "_workers", weakref.WeakValueDictionary()
    take = BufferPool._obtain_block

    def taken(pool: BufferPool, size: int) -> Any:
        """Allocate a block to which the caller writes, which the mock does not observe."""
        block = take(pool, size)
        memory = pinned.find(block.ctypes.data)
        if memory is not None:
            memory.used(block.ctypes.data, block.ctypes.data + size, True)
        return block

    yield BufferPool, "_obtain_block", taken
    yield from _arenas()
    for name in ("numpy", "tolist"):
        yield torch.Tensor, name, _noting(getattr(torch.Tensor, name))


def _noting(read: Any) -> Any:
    """Record that the host reads a tensor without an operation that the modes observe."""

    def reading(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        memory = pinned.find(tensor.data_ptr()) if len(pinned) and tensor.numel() else None
        if memory is not None:
            memory.used(*extent(tensor), False)
        return read(tensor, *args, **kwargs)

    return reading


def _arenas() -> Iterator[tuple[Any, str, Any]]:
    """Record writes of NumPy and C to pinned buffers when a slot is allocated."""
    take = Arena.reserve

    def taken(arena: Arena, count: int) -> int:
        place = take(arena, count)
        low = arena.flat.data_ptr() + place * arena.flat.itemsize
        memory = pinned.find(low) if place >= 0 and count else None
        if memory is not None:
            memory.used(low, low + count * arena.flat.itemsize, True)
        return place

    yield Arena, "reserve", taken


def _constructors(own: State) -> Iterator[tuple[Any, str, Any]]:
    """Yield functions that copy Python objects directly to a device.

    In other threads ``"cuda"`` without a number is ``cuda:0`` for any current device: torch queries the driver.
    """

    def numbered(device: Any) -> torch.device:
        found = torch.device(device)
        return torch.device("cuda", own.index(found)) if found.type == "cuda" else found

    tensor_of, as_tensor_of = torch.tensor, torch.as_tensor

    def tensor(data: Any, *, device: Any = None, **options: Any) -> torch.Tensor:
        made = tensor_of(data, **options)
        return made if device is None else made.to(numbered(device))

    def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        if isinstance(data, PretendTensor):
            made: torch.Tensor = data if dtype is None else data.to(dtype)
        else:
            made = as_tensor_of(data, dtype=dtype)
        return made if device is None else made.to(numbered(device))

    def new_tensor(self: torch.Tensor, data: Any, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        return tensor(data, dtype=dtype or self.dtype, device=device or self.device, **options)

    yield torch, "tensor", tensor
    yield torch, "as_tensor", as_tensor
    yield torch.Tensor, "new_tensor", new_tensor


__all__ = ["Accelerator", "accelerator", "inner", "state"]
