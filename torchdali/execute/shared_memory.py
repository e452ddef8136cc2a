"""Anonymous files that several processes map, and sockets over which the files' descriptors are sent."""

from __future__ import annotations

import mmap
import os
import socket
import tempfile

import numpy as np
import numpy.typing as npt
import torch

from torchdali.formats.shared_counts import anonymous_descriptor

__all__ = ["anonymous_file", "map_file", "socket_of", "view_of"]

_Bytes = npt.NDArray[np.uint8]


def view_of(block: torch.Tensor, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor that is a view of a block of memory.

    Args:
        block: The block as uint8.
        offset: Offset of the tensor in bytes.
        shape: Shape of the tensor.
        dtype: Dtype of the tensor.
    """
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return block[offset : offset + size].view(dtype).view(shape)


def socket_of(connection: int) -> socket.socket:
    """Return a socket for the connection with this descriptor. File descriptors can be sent over the socket."""
    duplicate = socket.socket(fileno=os.dup(connection))
    duplicate.settimeout(None)  # otherwise, the user's default timeout would make the connection non-blocking
    return duplicate


def map_file(descriptor: int, size: int) -> _Bytes:
    """Return the bytes of a file, mapped for reading and writing."""
    try:  # unlike `mmap`, `from_file` keeps no descriptor open, and the program may use thousands of files
        path = f"/proc/self/fd/{descriptor}"
        return torch.from_file(path, shared=True, size=size, dtype=torch.uint8).numpy()
    except RuntimeError:
        return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def anonymous_file(size: int) -> int:
    """Create an anonymous file, reserve all its bytes, and return its descriptor.

    If the system supports `memfd_create`, the file is in memory, but not in ``/dev/shm``. Otherwise, the file is in the
    folder for temporary files.

    Raises:
        MemoryError: The memory or the disk is full. The message has the required size.
    """
    descriptor = anonymous_descriptor(0)
    try:
        if hasattr(os, "posix_fallocate"):
            # Without this reservation, a process that writes when memory is full would be killed.
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
    except OSError as error:
        os.close(descriptor)
        where = (
            "memory" if hasattr(os, "memfd_create") else f"the folder {tempfile.gettempdir()} (TMPDIR chooses another)"
        )
        raise MemoryError(
            f"cannot allocate {size / 2**20:.1f} MiB in {where} for batches that processes share: {error.strerror}. "
            f"Use fewer or smaller batches, or num_processes=1"
        ) from None
    return descriptor
