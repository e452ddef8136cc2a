"""Tensors that report ``cuda:N``, and the execution of operations on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from tests.pretend.streams import HostMemory, Memory, PinnedMemories, Stream, state

aten = torch.ops.aten

WAITS = frozenset({
    "_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2", "unique_dim",
    "unique_consecutive", "bincount",
})  # fmt: skip
"""Operations whose result the host must look at, before it can go on."""
ALLOCATES = frozenset({
    "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "detach", "set_", "resize_",
    "lift_fresh", "_unsafe_view", "_reshape_alias",
})  # fmt: skip
INDEXES = frozenset({"index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index"})
SCALARS_FROM_CPU = 0  # CPU tensors with up to this many axes are valid operands on a device
CAT_BATCH = 128  # tensors per launch of `cat`

pinned = PinnedMemories()


class PretendTensor(torch.Tensor):
    """A tensor on a mock device.

    Attributes:
        inner: Its elements, on the CPU.
        memory: The block of device memory that contains it; views share it.
    """

    inner: torch.Tensor
    memory: Memory
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, real: torch.Tensor, memory: Memory) -> PretendTensor:
        with torch._C._DisableTorchDispatch():
            meta = torch.empty_strided(real.size(), real.stride(), dtype=real.dtype, device="meta")
            made = torch.Tensor._make_subclass(
                cls, meta, False, dispatch_device=True, device_for_backend_keys=memory.owner.device
            )
        made.inner, made.memory = real, memory
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return run(func, args, dict(kwargs or {}))

    def record_stream(self, stream: Stream) -> None:
        self.memory.recorded.add(stream.id)

    def tolist(self) -> Any:
        return download(self).tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("the pretence has no DLPack")

    def __repr__(self, *args: Any, **kwargs: Any) -> str:  # type: ignore[override]
        return f"PretendTensor({self.inner!r}, {self.memory.owner.device})"


class Pretending(TorchDispatchMode):
    """Sends operations of this thread through the mock, including the creation of device tensors."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return run(func, args, dict(kwargs or {}))


def run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation."""
    tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    ours = [t for t in tensors if isinstance(t, PretendTensor)]
    if func is torch.ops.prim.device.default:
        return ours[0].memory.owner.device
    device = kwargs.get("device")
    to_cuda = device is not None and torch.device(device).type == "cuda"
    pin = kwargs.pop("pin_memory", None)
    if not ours and not to_cuda:
        return _on_host(func, args, kwargs, tensors, bool(pin))
    if func is aten._to_copy.default and (device is not None or not ours):
        return _converted(args[0], kwargs)
    if func is aten.copy_.default:
        return _copied(*args, **kwargs)
    return _on_device(func, args, kwargs, tensors, ours)


def name_of(func: Any) -> str:
    name: str = func._schema.name.removeprefix("aten::")
    return name


def is_view(func: Any) -> bool:
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


# ---------------------------------------------------------------- on the host


class _Block(np.ndarray):  # type: ignore[type-arg]
    """Pinned memory; its records are freed with its last tensor."""

    notes: HostMemory


def _on_host(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], tensors: list[torch.Tensor], pin: bool
) -> Any:
    if pin:
        state().check_capture("cudaHostAlloc")
        return page_locked(func(*args, **kwargs))
    if name_of(func) == "is_pinned":
        return pinned.find(args[0].data_ptr()) is not None
    if name_of(func) in ("_pin_memory", "pin_memory"):
        return page_locked(args[0].clone()).copy_(args[0])
    if len(pinned) and not is_view(func):
        changed = _changed(func, args, kwargs)
        for tensor in tensors:
            memory = pinned.find(tensor.data_ptr()) if tensor.numel() else None
            if memory is not None:
                low, high = extent(tensor)
                memory.used(low, high, id(tensor) in changed)
    return func(*args, **kwargs)


def page_locked(like: torch.Tensor) -> torch.Tensor:
    """Return an uninitialized tensor in pinned memory."""
    size = max(like.numel() * like.element_size(), 1)
    block = np.empty(size, np.uint8).view(_Block)
    block.notes = HostMemory(block.ctypes.data, size)
    pinned.add(block.notes)
    flat = torch.from_numpy(block)[: like.numel() * like.element_size()]
    return flat.view(like.dtype).as_strided(like.shape, like.stride())


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of a tensor's first byte, and of the byte after its last."""
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()


def _changed(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> set[int]:
    """Return the ids of the tensors into which an operation writes."""
    found = set()
    for argument, value in _bound(func, args, kwargs):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.update(id(t) for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor))
    return found


def _bound(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
    schema = func._schema.arguments
    named = {a.name: a for a in schema}
    return [*zip(schema, args, strict=False), *((named[k], v) for k, v in kwargs.items() if k in named)]


# ---------------------------------------------------------------- copies


def upload(tensor: torch.Tensor, device: Any, non_blocking: bool = False) -> PretendTensor:
    """Copy a tensor to a mock device."""
    own = state()
    stream = own.current(device)
    made = PretendTensor(tensor.detach().clone(), Memory(stream))
    _transfer("upload", tensor, made, stream, non_blocking)
    return made


def download(tensor: PretendTensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy a tensor from a mock device; asynchronous copies write to pinned memory."""
    stream = state().current(tensor.memory.owner.device)
    if not non_blocking:
        _transfer("download", tensor, tensor, stream, False)
        return tensor.inner.clone()
    made = page_locked(tensor.inner)
    made.copy_(tensor.inner)
    _transfer("download", made, tensor, stream, True)
    return made


def _transfer(
    way: str, host: torch.Tensor, ours: PretendTensor, stream: Stream, non_blocking: bool
) -> None:
    own = state()
    on_host = not isinstance(host, PretendTensor)
    locked = pinned.find(host.data_ptr()) if on_host and host.numel() else None
    # The driver stages a copy from pageable memory while the host waits; to pageable memory, the host waits for the
    # whole copy.
    waits = not non_blocking or (locked is None and host.numel() > 0)
    words = [way, "pinned" if locked is not None else "pageable", *["waiting"] * waits]
    own.report.count(" ".join(words), nbytes=ours.numel() * ours.element_size())
    with own.lock:
        stamp = stream.tick()
        if way == "upload":
            ours.memory.written(stream, stamp)
        else:
            ours.memory.read(stream, stamp)
        if waits:
            own.host_learns(stream.clock)
        if locked is not None:
            low, high = extent(host)
            locked.used(low, high, way == "download")
            if not waits:
                locked.copied(low, high, stamp, way == "download")


def _converted(x: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
    """Run ``x.to(device, dtype, ...)`` with a device."""
    target = torch.device(kwargs["device"])
    non_blocking = bool(kwargs.get("non_blocking", False))
    dtype, form = kwargs.get("dtype"), kwargs.get("memory_format")
    convert = dtype is not None and dtype != x.dtype
    if isinstance(x, PretendTensor) and target.type == "cuda":
        index = state().index(target)
        if index != x.memory.owner.device.index:
            return _to_other(x, target, dtype)
        return _on_device(  # type: ignore[no-any-return]
            aten._to_copy.default, (x,), {k: v for k, v in kwargs.items() if k not in ("device", "non_blocking")}, [x], [x]
        )
    if isinstance(x, PretendTensor):
        found = download(x, non_blocking)
        return found.to(dtype) if convert else found  # type: ignore[arg-type]
    if convert:
        x = x.to(dtype)
    if form is not None and form is not torch.preserve_format:
        x = x.contiguous(memory_format=form)
    return upload(x, target, non_blocking)


def _to_other(x: PretendTensor, target: torch.device, dtype: torch.dtype | None) -> PretendTensor:
    own = state()
    there, here = own.current(target), own.current(x.memory.owner.device)
    own.report.count("copy between devices")
    made = PretendTensor(x.inner.clone() if dtype is None else x.inner.to(dtype), Memory(there))
    with own.lock:
        # torch makes the streams of both devices wait for each other.
        there.wait_stream(here)
        x.memory.read(here, here.tick())
        made.memory.written(there, there.tick())
        here.wait_stream(there)
    return made


def _copied(to: torch.Tensor, x: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Run ``to.copy_(x)``."""
    if isinstance(to, PretendTensor) and isinstance(x, PretendTensor):
        if to.memory.owner.device != x.memory.owner.device:
            to.inner.copy_(x.inner)
            state().report.count("copy between devices")
            return to
        return _on_device(aten.copy_.default, (to, x), {}, [to, x], [to, x])  # type: ignore[no-any-return]
    if isinstance(to, PretendTensor):
        stream = state().current(to.memory.owner.device)
        to.inner.copy_(x)
        _transfer("upload", x, to, stream, non_blocking)
        return to
    assert isinstance(x, PretendTensor)
    stream = state().current(x.memory.owner.device)
    _transfer("download", to, x, stream, non_blocking)
    to.copy_(x.inner)
    return to


# ---------------------------------------------------------------- on the device


def _on_device(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], tensors: list[torch.Tensor], ours: list[PretendTensor]
) -> Any:
    own, name = state(), name_of(func)
    device = _device_of(func, kwargs, tensors, ours)
    stream = own.current(device)
    view = is_view(func)
    if not view:
        own.report.operations[name] += 1
    if name in WAITS or (name in INDEXES and any(t.dtype in (torch.bool, torch.uint8) for t in ours[1:])):
        own.report.count("sync")
        with own.lock:
            own.host_learns(stream.clock)
    if not view and name not in ALLOCATES and name != "_local_scalar_dense":
        own.report.count("launch", _launches(name, args))
    changed = _changed(func, args, kwargs)
    if not view and name not in ALLOCATES:
        with own.lock:
            stamp = stream.tick()
            for t in ours:
                if id(t) in changed:
                    t.memory.written(stream, stamp)
                else:
                    t.memory.read(stream, stamp)
    inside = {id(t.inner): t for t in ours}
    homes = {t.inner.untyped_storage()._cdata: t.memory for t in ours}
    real_args, real_kwargs = tree_map(_real, (tuple(args), kwargs))
    if "device" in real_kwargs and real_kwargs["device"] is not None:
        real_kwargs["device"] = torch.device("cpu")
    result = func(*real_args, **real_kwargs)
    if name == "_local_scalar_dense":
        with own.lock:
            own.host_learns(stream.clock)
        return result

    def wrapped(found: Any) -> Any:
        if not isinstance(found, torch.Tensor):
            return found
        if id(found) in inside:
            return inside[id(found)]
        memory = homes.get(found.untyped_storage()._cdata)
        if memory is None:
            memory = Memory(stream)
            if name not in ALLOCATES:
                memory.write = (stream.id, stream.clock[stream.id])
        return PretendTensor(found, memory)

    return tree_map(wrapped, result)


def _real(value: Any) -> Any:
    return value.inner if isinstance(value, PretendTensor) else value


OWN = {f"torchdali::{name}_batch": 2 for name in ("resize", "resize_normalize", "filter", "count_values", "count_tiles")}
OWN["torchdali::distort_batch"] = 3
"""Launches of our own operations, where they are more than one."""


def _launches(name: str, args: Sequence[Any]) -> int:
    if name in OWN:
        return OWN[name]
    if name in ("cat", "stack") and args and isinstance(args[0], (list, tuple)):
        return max(1, math.ceil(len(args[0]) / CAT_BATCH))
    if name.startswith("_foreach") and args and isinstance(args[0], (list, tuple)):
        return max(1, math.ceil(len(args[0]) / 48))
    return 1


def _device_of(
    func: Any, kwargs: dict[str, Any], tensors: list[torch.Tensor], ours: list[PretendTensor]
) -> torch.device:
    """Return the device of an operation; RuntimeError if its tensors are on several devices."""
    own, name = state(), name_of(func)
    found = {t.memory.owner.device for t in ours}
    if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
        return torch.device("cuda", own.index(kwargs["device"]))
    foreign = [t for t in tensors if not isinstance(t, PretendTensor) and t.dim() > SCALARS_FROM_CPU]
    if foreign and name in INDEXES and all(not t.is_floating_point() for t in foreign):
        for t in foreign:  # torch copies an index that is on the CPU, and waits
            own.report.count("upload pageable waiting", nbytes=t.numel() * t.element_size())
            with own.lock:
                own.host_learns(own.current(next(iter(found))).clock)
        foreign = []
    if foreign or len(found) > 1:
        names = sorted(map(str, found)) + ["cpu"] * bool(foreign)
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {names[0]} and "
            f"{names[1]}! (in {name})"
        )
    return next(iter(found))



