"""A cache of small tensors on devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["device_cache"]

T = TypeVar("T")


def device_cache(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache the results of a function with a parameter ``device``, separately for each stream of an accelerator.

    A kernel fills a new tensor on the current stream. A pipeline that read the tensor on another stream wouldn't wait
    for the kernel, and the tensor's memory could be reused while the pipeline still reads it. So each stream has its
    own tensors.

    Args:
        maxsize: Maximum number of cached results.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        position = list(inspect.signature(function).parameters).index("device")

        @functools.lru_cache(maxsize)
        def cache_per_device(stream: int, *args: Any, **kwargs: Any) -> T:
            return function(*args, **kwargs)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            device = args[position] if position < len(args) else kwargs["device"]
            assert isinstance(device, torch.device)
            return cache_per_device(current_stream(device), *args, **kwargs)

        vars(call)["cache_clear"] = cache_per_device.cache_clear
        return call

    return decorate


def current_stream(device: torch.device) -> int:
    """Return the handle of the current stream of a device; 0 on the CPU."""
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
