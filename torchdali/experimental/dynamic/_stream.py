"""CUDA streams of the dynamic mode, in which a program calls operators one by one, without a pipeline."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import torch

__all__ = [
    "Stream", "get_current_stream", "get_default_stream", "set_current_stream", "set_default_stream", "stream",
]  # fmt: skip

_local = threading.local()
_defaults: dict[int, Stream] = {}


class Stream:
    """A CUDA stream.

    Args:
        stream: The stream to wrap: a torch stream, a handle (int), or an object with ``__cuda_stream__``. The default,
            `Stream.create_new`, creates a new stream.
        device_id: Index of the stream's accelerator; by default, the current accelerator.

    Raises:
        RuntimeError: no accelerator was found.
    """

    create_new: ClassVar[object] = object()

    def __init__(self, *, stream: Any = create_new, device_id: int | None = None) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("no CUDA-capable GPU was found: streams are not available")
        self._stream: torch.cuda.Stream
        if isinstance(stream, Stream):
            self._stream = stream._stream
        elif stream is Stream.create_new:
            self._stream = torch.cuda.Stream(device_id)
        elif isinstance(stream, torch.cuda.Stream):
            self._stream = stream
        else:
            handle = stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream
            external = torch.cuda.ExternalStream(int(handle), device_id)
            self._stream = external

    @property
    def handle(self) -> int:
        """CUDA's handle of the stream."""
        return int(self._stream.cuda_stream)

    @property
    def device_id(self) -> int:
        """Index of the accelerator."""
        return int(self._stream.device.index)

    def synchronize(self) -> None:
        """Wait until all work on the stream is done."""
        self._stream.synchronize()

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the ``__cuda_stream__`` protocol, and the handle."""
        return 0, self.handle

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Stream) and self.handle == value.handle

    def __ne__(self, value: object) -> bool:
        return not self == value

    def __hash__(self) -> int:
        return hash(self.handle)


def stream(*, stream: Any = Stream.create_new, device_id: int | None = None) -> Stream | None:
    """Convert an argument to a `Stream`; None and a `Stream` are returned unchanged."""
    if stream is None or isinstance(stream, Stream):
        return stream
    return Stream(stream=stream, device_id=device_id)


def get_current_stream() -> Stream | None:
    """Return the stream set in this thread, or else the default stream; None without an accelerator."""
    current: Stream | None = getattr(_local, "stream", None)
    return current if current is not None else get_default_stream()


def set_current_stream(cuda_stream: Any, /) -> None:
    """Set the current stream of this thread; None removes the setting."""
    _local.stream = stream(stream=cuda_stream)


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """Return an accelerator's default stream, for threads that haven't set a stream; None without an accelerator."""
    if not torch.cuda.is_available():
        return None
    index = torch.cuda.current_device() if device_id is None else device_id
    if index not in _defaults:
        _defaults[index] = Stream(device_id=index)
    return _defaults[index]


def set_default_stream(cuda_stream: Any, /, device_id: int | None = None) -> None:
    """Set an accelerator's default stream, for threads that haven't set a stream.

    Raises:
        TypeError: the value isn't a stream. ValueError: the stream's accelerator isn't ``device_id``.
    """
    default = stream_on(cuda_stream, device_id)
    if default is not None:
        _defaults[default.device_id] = default


def stream_on(cuda_stream: Any, device_id: int | None) -> Stream | None:
    """Convert an argument to a `Stream`, and check its accelerator; None is returned unchanged.

    Raises:
        TypeError: the value isn't a stream. ValueError: the stream's accelerator isn't ``device_id``.
    """
    if not (
        cuda_stream is None
        or isinstance(cuda_stream, (Stream, torch.cuda.Stream, int))
        or hasattr(cuda_stream, "__cuda_stream__")
    ):
        raise TypeError(f"a stream must be a Stream, a torch stream or a handle, got {cuda_stream!r}")
    result = stream(stream=cuda_stream, device_id=device_id)
    if result is not None and device_id is not None and result.device_id != device_id:
        raise ValueError(
            f"the stream must belong to the accelerator {device_id}, got a stream of the accelerator {result.device_id}"
        )
    return result
