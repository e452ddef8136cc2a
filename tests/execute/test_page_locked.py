"""Blocks of shared memory that CUDA pins: they are unpinned before they are unmapped, whoever held them last.

Regression on an H100: a second pipeline's blocks were mapped where the first one's had been pinned, CUDA refused to
pin them, and torch raised that error at its next launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.helpers.garbage import released
from torchdali.execute.workers import blocks
from torchdali.execute.workers.blocks import SharedBuffers, Views

GPU = torch.device("cuda", 1)
REFUSED = 712  # cudaErrorHostMemoryAlreadyRegistered


class Runtime:
    """The part of CUDA's runtime that pins pages; it counts, and stores errors as CUDA does."""

    def __init__(self) -> None:
        self.locked: dict[int, int] = {}
        self.refuses = False
        self.errors = 0

    def cudaHostRegister(self, start: int, size: int, flags: int) -> int:
        overlaps = any(start < low + length and low < start + size for low, length in self.locked.items())
        if overlaps or self.refuses:
            self.errors += 1
            return REFUSED
        self.locked[start] = size
        return 0

    def cudaHostUnregister(self, start: int) -> int:
        # Still mapped: reading unmapped memory would end the process.
        ctypes.c_ubyte.from_address(start).value += 0
        del self.locked[start]
        return 0


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    made = Runtime()
    current: list[torch.device] = []

    @contextlib.contextmanager
    def on(device: torch.device) -> Iterator[None]:
        current.append(device)
        yield
        current.pop()

    def cudart() -> Runtime:
        assert current == [GPU]  # or a context on another device is created
        return made

    monkeypatch.setattr(blocks.torch.cuda, "device", on)
    monkeypatch.setattr(blocks.torch.cuda, "cudart", cudart)
    return made


class Pair:
    """Blocks that one process allocates and another one maps; here it is the same process."""

    def __init__(self) -> None:
        self.views = Views(GPU)
        self.buffers = SharedBuffers(lambda *block: self.views.add(block[0], os.dup(block[1]), block[2]), self.views.drop)

    def tensor(self, size: int) -> torch.Tensor:
        """Return the other process's view of a tensor."""
        place = self.buffers.find(self.buffers.empty((size,), torch.uint8).fill_(7))
        assert place is not None
        tensor: torch.Tensor = self.views.lend([place.block])(place)
        return tensor


def test_blocks_are_unpinned_with_the_pipeline(runtime: Runtime) -> None:
    for _ in range(5):  # a mapping of this size gets the previous address
        pair = Pair()
        tensors = [pair.tensor(1 << 20) for _ in range(3)]
        assert runtime.locked
        del tensors, pair
        assert released(lambda: not runtime.locked)
    assert not runtime.errors


def test_a_tensor_keeps_its_block_pinned_after_the_pipeline_was_closed(runtime: Runtime) -> None:
    pair = Pair()
    tensor = pair.tensor(20000)
    part = tensor[10:20]
    del pair, tensor
    gc.collect()
    assert len(runtime.locked) == 1
    assert part.tolist() == [7] * 10
    del part
    assert released(lambda: not runtime.locked)


def test_blocks_that_are_not_reused_are_unpinned(runtime: Runtime) -> None:
    pair = Pair()
    for size in range(1, 30):
        pair.tensor(size * 100_000)
    pair.buffers.release()
    assert released(lambda: not runtime.locked)


def test_a_pinning_error_of_the_runtime_is_cleared(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[Any] = []
    monkeypatch.setattr(blocks.torch, "zeros", lambda *size, device: launches.append(device))
    runtime.refuses = True
    pair = Pair()
    tensor = pair.tensor(20000)
    assert launches == [GPU]
    assert int(tensor.sum()) == 140000
    del tensor, pair
    gc.collect()
    assert launches == [GPU]  # no page was pinned, and none is unpinned
