"""Files to bytes, as one-dimensional uint8 tensors."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._torchvision_ops import image_operator

__all__ = ["read_file"]

_read_mapped: Callable[[str], Tensor] | None = None


def read_file(path: str, *, mapped: bool = True, direct: bool = False) -> Tensor:
    """Read a file to a 1-D uint8 tensor. May be called from many threads.

    Args:
        path: Of the file.
        mapped: Map the file into memory where that works; otherwise it is read.
        direct: Without ``mapped``, read past the system's cache where the file system can.

    Raises:
        OSError: As `open` raises it: FileNotFoundError, PermissionError ...
        RuntimeError: The file is empty, and so cannot be mapped.
    """
    if not mapped:
        return _read_direct(path) if direct else _read(path)
    reader = _read_mapped or _load_reader()
    try:
        return reader(path)
    except (RuntimeError, UnicodeError):  # reading raises what Python would, and knows more names
        data = _read(path)
    if not data.numel():
        raise RuntimeError(f"the file {path} is empty")
    return data


def _load_reader() -> Callable[[str], Tensor]:
    global _read_mapped
    _read_mapped = image_operator("read_file") or _map
    return _read_mapped


def _map(path: str) -> Tensor:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise RuntimeError("an empty file cannot be mapped")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return torch.frombuffer(memory, dtype=torch.uint8)


def _read(path: str) -> Tensor:
    with open(path, "rb", buffering=0) as file:
        data = torch.empty(os.fstat(file.fileno()).st_size, dtype=torch.uint8)
        view, done = memoryview(data.numpy()), 0  # type: ignore[arg-type]
        while done < len(view) and (count := file.readinto(view[done:])):
            done += count
    return data[:done]


def _read_direct(path: str) -> Tensor:
    """Read in whole pages, as direct reads must; where the file system refuses them, the usual way."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    except OSError:
        return _read(path)
    try:
        size = os.fstat(descriptor).st_size
        pages = mmap.mmap(-1, max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE)
        done = 0
        while done < size and (count := os.readv(descriptor, [memoryview(pages)[done:]])):
            done += count
        return torch.from_numpy(np.frombuffer(pages, np.uint8)[:done])
    except OSError:
        return _read(path)
    finally:
        os.close(descriptor)
