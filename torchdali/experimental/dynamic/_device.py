"""The device on which the dynamic mode creates and computes data."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import torch

from torchdali.experimental.dynamic._scoped import Scoped, innermost

__all__ = ["Device", "DeviceLike", "device", "to_torch_device"]

_ALIASES = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}
_DLPACK = {1: "cpu", 2: "gpu", 3: "cpu"}  # kDLCPU, kDLCUDA, kDLCUDAHost


class Device(Scoped):
    """The CPU or an accelerator. Inside a ``with`` block, new data is created on this device.

    Args:
        name: ``"cpu"``, ``"gpu"`` or ``"cuda"``, with or without an index: ``"gpu:1"``.
        device_id: Index of the accelerator; the current accelerator by default. None for the CPU.

    Raises:
        ValueError: The device is unknown, or no device has this index.
    """

    device_type: str
    device_id: int | None

    CPU: ClassVar[Device]

    def __init__(self, name: str, device_id: int | None = None) -> None:
        kind, _, index = name.partition(":")
        if kind not in _ALIASES:
            raise ValueError(f"invalid device type {kind!r}; expected 'cpu', 'gpu' or 'cuda'")
        if index:
            if device_id is not None:
                raise ValueError(
                    f"device_id must not be passed with device {name!r}, which has an index, got device_id={device_id}"
                )
            device_id = int(index)
        self.device_type = _ALIASES[kind]
        self.device_id = _check_id(self.device_type, device_id)

    @staticmethod
    def current() -> Device:
        """Return the device of the innermost ``with`` block, or the CPU."""
        return innermost(Device) or Device.CPU

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """Return the current accelerator's index; None for the CPU."""
        return None if _ALIASES[device_type] == "cpu" else torch.cuda.current_device()

    @staticmethod
    def type_from_dlpack(dev_type: int) -> str:
        """Convert DLPack's number of a device type to its name; raise ValueError for an unsupported number."""
        if int(dev_type) not in _DLPACK:
            raise ValueError(f"DLPack's device type {dev_type} is not supported")
        return _DLPACK[int(dev_type)]

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """Return the device of an object with the method ``__dlpack_device__``.

        Args:
            dlpack_device: The object, or the method's result.
        """
        pair = getattr(dlpack_device, "__dlpack_device__", lambda: dlpack_device)()
        kind = Device.type_from_dlpack(pair[0])
        return Device(kind, None if kind == "cpu" else int(pair[1]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int | None]:
        return self.device_type, self.device_id

    def __str__(self) -> str:
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"


DeviceLike: TypeAlias = Device | str | None


def _check_id(kind: str, index: int | None) -> int | None:
    if kind == "cpu":
        if index is not None:
            raise ValueError(f"invalid device id {index} for the CPU, which has no index")
        return None
    count = torch.cuda.device_count()
    if count == 0:
        raise RuntimeError("no CUDA-capable GPU was found: the device 'gpu' is not available")
    index = torch.cuda.current_device() if index is None else index
    if not 0 <= index < count:
        raise ValueError(f"invalid device id {index}; the number of accelerators is {count}")
    return index


Device.CPU = Device("cpu")


def device(obj: Any, id: int | None = None) -> Device | None:
    """Convert a `Device`, a name or a torch device to a `Device`; None is returned unchanged.

    Raises:
        TypeError: The object isn't a device.
    """
    if obj is None or isinstance(obj, Device):
        return obj
    if isinstance(obj, torch.device):
        return Device("cpu") if obj.type == "cpu" else Device("gpu", obj.index if id is None else id)
    if isinstance(obj, str):
        return Device(obj, id)
    raise TypeError(f"cannot convert a {type(obj).__name__} to a Device")


def to_torch_device(dali_device: Device) -> torch.device:
    """Convert a `Device` to a `torch.device`."""
    if dali_device.device_id is None:
        return torch.device("cpu")
    return torch.device("cuda", dali_device.device_id)
