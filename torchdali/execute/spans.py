"""Record the work of a pipeline's threads as spans in the timelines of `torch.profiler` and Nsight Systems."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import profiler

__all__ = ["add_span", "span", "wants_spans"]

_NSIGHT = ("NSYS_PROFILING_SESSION_ID", "NVTX_INJECTION64_PATH")  # set by nsys in the programs that it starts


def _is_profiled() -> bool:
    return bool(getattr(profiler, "_is_profiler_enabled", False))  # torch's profilers set this for all threads


def _has_nvtx(device: torch.device | None) -> bool:
    return device is not None and device.type == "cuda" and any(name in os.environ for name in _NSIGHT)


def wants_spans(device: torch.device | None) -> bool:
    """Return whether a profiler is active: PyTorch's profiler, or Nsight Systems for a CUDA device."""
    return _is_profiled() or _has_nvtx(device)


def span(name: str, device: torch.device | None) -> contextlib.AbstractContextManager[Any]:
    """Record the time of a `with` block as ``torchdali: name``. Without an active profiler, do nothing."""
    return _record_span(name, device) if wants_spans(device) else _NO_SPAN


_NO_SPAN = contextlib.nullcontext()


@contextlib.contextmanager
def _record_span(name: str, device: torch.device | None) -> Iterator[None]:
    title = f"torchdali: {name}"
    with contextlib.ExitStack() as stack:
        if _is_profiled():
            stack.enter_context(profiler.record_function(title))
        if _has_nvtx(device):
            stack.enter_context(torch.cuda.nvtx.range(title))
        yield


def add_span(function: Callable[[int], None], name: str, device: torch.device | None) -> Callable[[int], None]:
    """Wrap a function of an index, so that each call is recorded as a span."""

    def call(item: int) -> None:
        with span(name, device):
            function(item)

    return call
