"""Transfer of batches between processes: over the pipe or in shared memory, of any dtype and shape."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.helpers.inside import with_blocks_from
from tests.helpers.odd_arrays import facts, tensors
from torchdali.execute.workers.blocks import SharedBuffers, Views
from torchdali.execute.workers.messages import read, receive, send, write
from torchdali.tensors import TensorList

TENSORS = tensors()
Batches = Callable[[torch.Tensor], TensorList]

BATCHES: dict[str, Batches] = {
    "one tensor": lambda x: TensorList.from_dense(torch.stack([x, x]), ""),
    "one tensor, expanded": lambda x: TensorList.from_dense(x[None].expand(2, *x.shape), ""),
    "no samples": lambda x: TensorList.from_dense(x[None][:0], ""),
    "samples": lambda x: TensorList.from_samples([x, x], "", x.dtype, x.ndim),
    "a branch's": lambda x: TensorList.from_samples([None, x, None], "", x.dtype, x.ndim),
    "no samples, a list": lambda x: TensorList.from_samples([], "", x.dtype, x.ndim),
    "with others": lambda x: TensorList.from_samples([x, x.new_ones((3,) * x.ndim), x], "", x.dtype, x.ndim),
}


def sent_over(batch: TensorList) -> tuple[TensorList, Any]:
    """Return the batch as the other process receives it, and the owner of its memory."""
    views = Views()
    buffers = SharedBuffers(lambda number, file, size: views.add(number, os.dup(file), size), views.drop)
    kept: list[torch.Tensor] = []
    message = send(batch, buffers, kept)
    here, there = multiprocessing.Pipe()
    with here, there:
        writing = threading.Thread(target=write, args=(here, message))
        writing.start()
        arrived = receive(read(there), views.tensor)
        writing.join()
    return arrived, (buffers, kept)


@pytest.mark.thin(3)
@pytest.mark.parametrize("smallest", [0, None])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_batches_arrive_unchanged(make: Batches, smallest: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if smallest is not None:
        with_blocks_from(monkeypatch, SharedBuffers, smallest)
    for name, tensor in TENSORS.items():
        batch = make(tensor)
        arrived, owner = sent_over(batch)
        expected = [None if s is None else facts(s) for s in batch.samples()]
        assert [None if s is None else facts(s) for s in arrived.samples()] == expected, name
        assert (len(arrived), arrived.torch_dtype) == (len(batch), batch.torch_dtype), name
        del owner
