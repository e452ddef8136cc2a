"""Bind worker threads to cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

__all__ = ["affinity", "cores_of_processes"]

_MASK = "DALI_AFFINITY_MASK"
_NODES = Path("/sys/devices/system/node")


def affinity(device: torch.device | None) -> Callable[[int], None] | None:
    """Return a function that binds the calling thread to cores; None if threads must not be bound.

    The argument of the returned function is the thread's index. The environment variable ``DALI_AFFINITY_MASK`` is a
    list of core numbers, separated by commas. If it is set, thread i runs on core number i of the list, and threads
    with larger indices aren't bound. If it isn't set, all threads run on the cores next to the GPU. Without a GPU,
    threads aren't bound.

    Raises:
        ValueError: The environment variable isn't a list of numbers.
        RuntimeError: The environment variable names a core that isn't available to this process.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    mask = os.environ.get(_MASK, "").strip()
    if mask:
        return _Binding(tuple(_check_cores(mask)), one_core_each=True)
    gpu_cores = _cores_near(device)
    return _Binding(tuple(sorted(gpu_cores)), one_core_each=False) if gpu_cores else None


def _check_cores(mask: str) -> list[int]:
    try:
        cores = [int(core) for core in mask.split(",")]
    except ValueError:
        raise ValueError(f"{_MASK} must be core numbers, separated by commas, got {mask!r}") from None
    unavailable = sorted(set(cores) - os.sched_getaffinity(0))
    if unavailable:
        raise RuntimeError(
            f"{_MASK} must be cores that this process may use, {sorted(os.sched_getaffinity(0))}, got core "
            f"{unavailable[0]} in {mask!r}"
        )
    return cores


@dataclass(frozen=True)
class _Binding:
    """Binds the calling thread to cores.

    Attributes:
        cores: The cores.
        one_core_each: True to bind each thread to one core; False to bind each thread to all of the cores.
    """

    cores: tuple[int, ...]
    one_core_each: bool

    def __call__(self, number: int) -> None:
        if not self.one_core_each:
            os.sched_setaffinity(0, self.cores)
        elif number < len(self.cores):
            os.sched_setaffinity(0, {self.cores[number]})


def _cores_near(device: torch.device | None) -> set[int]:
    """Return the cores next to a GPU that are available to this process; empty if they are unknown."""
    if device is None or device.type != "cuda":
        return set()
    gpu: Any = torch.cuda.get_device_properties(device)
    try:
        address = f"{gpu.pci_domain_id:04x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0"
        text = Path(f"/sys/bus/pci/devices/{address}/local_cpulist").read_text()
    except (AttributeError, OSError):
        return set()
    return _ranges(text) & os.sched_getaffinity(0)


def _ranges(text: str) -> set[int]:
    """Parse a list of cores in the kernel's format, for example ``0-3,8``."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return {core for a, _, b in ends for core in range(int(a), int(b or a) + 1)}


def cores_of_processes(threads: Sequence[int], nodes: Path = _NODES) -> list[tuple[int, ...]]:
    """Choose the cores of each process, so that each process stays on one NUMA node if possible.

    Args:
        threads: Number of threads of each process.
        nodes: Folder in which the kernel describes the NUMA nodes.

    Returns:
        The cores of each process. The processes are divided evenly among the nodes, and each process gets all cores of
        its node. Every process gets all available cores if there is only one node, if there are fewer processes than
        nodes, or if a node has fewer cores than its processes have threads.
    """
    allowed = os.sched_getaffinity(0)
    lists = sorted(nodes.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[4:]))
    cores = [node_cores for path in lists if (node_cores := _ranges(path.read_text()) & allowed)]
    count = len(threads)
    node_of = [number * len(cores) // count for number in range(count)]
    needed = [sum(t for t, node in zip(threads, node_of, strict=True) if node == i) for i in range(len(cores))]
    if len(cores) < 2 or any(not 0 < n <= len(c) for n, c in zip(needed, cores, strict=True)):
        return [tuple(sorted(allowed))] * count
    return [tuple(sorted(cores[node])) for node in node_of]
