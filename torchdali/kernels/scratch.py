"""Memory that a thread uses again and again, so that large intermediate results need no fresh pages."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["scratch"]

_KEPT = 1 << 22  # elements, up to which a thread keeps them


class _Memory(threading.local):
    """One thread's memory by purpose."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}


_memory = _Memory()


def scratch(shape: Sequence[int], purpose: str) -> Tensor:
    """Return uninitialised float32 memory on the CPU, valid until this thread asks for the purpose again."""
    count = math.prod(shape)
    if count > _KEPT:
        return torch.empty(tuple(shape), device="cpu")
    kept = _memory.kept.get(purpose)
    if kept is None or len(kept) < count:
        with torch.inference_mode(False):
            kept = _memory.kept[purpose] = torch.empty(count, device="cpu")
    return kept[:count].view(tuple(shape))
