"""Large batches of torch's workers: memory is reused, but never while the program holds a tensor in it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data
from torch.utils.data import Dataset

from tests.dataloader.test_loader import check_equal
from tests.helpers.interrupts import exit_code
from torchdali import DataLoader

COUNT, SHAPE = 32, (3, 200, 256)  # a batch of 4 has 2.4 MB as floats


class Large(Dataset[Any]):
    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


def image(index: int, shape: tuple[int, ...] = SHAPE, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, index, dtype=torch.float32).to(dtype)


def of_growing_sizes(index: int) -> torch.Tensor:
    return image(index, (3, 200, 256 + index // 4 * 8))


def ragged_pair(index: int) -> Any:
    return image(index), image(index, (index % 4 + 1, 2))


SAMPLES: dict[str, Any] = {
    "a tensor": image,
    "a pair": lambda i: (image(i), i),
    "two views": lambda i: (image(i), image(i + 1)),
    "a dictionary": lambda i: {"image": image(i), "more": [image(-i, dtype=torch.int64), f"{i}"]},
    "uint8": lambda i: image(i, (3, 400, 400), torch.uint8),
    "bfloat16": lambda i: image(i, (3, 400, 400), torch.bfloat16),
    "bool": lambda i: image(i % 2, (3, 400, 400), torch.bool),
    "growing": of_growing_sizes,
    "a part": lambda i: image(i, (3, 200, 512))[:, :, ::2],
    "requires grad": lambda i: image(i).detach().requires_grad_(False),
    "an array": lambda i: np.full(SHAPE, i, np.float32),
    "sparse": lambda i: torch.eye(3).mul(i + 1),
}
SAME = ("a pair", "uint8", "bool", "requires grad")  # kinds that other tests cover, too


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in SAMPLES if name not in SAME),
        *(pytest.param(name, {}, marks=pytest.mark.slow) for name in SAME), ("growing", {"persistent_workers": True}), ("two views", {"persistent_workers": True}),
        pytest.param("a tensor", {"multiprocessing_context": "spawn"}, marks=pytest.mark.slow),
    ],
    ids=str,
)  # fmt: skip
def test_batches_equal_torchs(name: str, options: dict[str, Any]) -> None:
    sample = SAMPLES[name]
    arguments: dict[str, Any] = {"batch_size": 4, "num_workers": 2, **options}
    theirs, ours = torch.utils.data.DataLoader(Large(sample), **arguments), DataLoader(Large(sample), **arguments)
    for _ in range(2):
        for batch, expected in zip(ours, theirs, strict=True):
            check_equal(batch, expected)


def test_memory_is_reused_after_the_program_released_it() -> None:
    places = [batch.data_ptr() for batch in DataLoader(Large(image), 4, num_workers=1)]
    assert len(set(places)) < len(places)


KEEPS: dict[str, Any] = {
    "a batch": lambda batch: batch,
    "a sample": lambda batch: batch[2],
    "an array": lambda batch: batch[1:2].numpy(),
    "another type": lambda batch: batch.view(torch.int32)[3],
    "a storage": lambda batch: torch.empty(0).set_(batch.untyped_storage(), batch.storage_offset(), batch.shape),
}


@pytest.mark.parametrize("name", KEEPS)
def test_memory_that_the_program_holds_is_not_reused(name: str) -> None:
    kept = []
    for number, batch in enumerate(DataLoader(Large(image), 4, num_workers=2)):
        expected = torch.arange(4 * number, 4 * number + 4.0)[:, None, None, None].expand(batch.shape)
        assert torch.equal(batch, expected)
        kept.append((KEEPS[name](batch), KEEPS[name](expected.clone())))
        del batch
    for ours, theirs in kept:
        assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_a_forked_process_frees_nothing_of_its_parents() -> None:
    iterator = iter(DataLoader(Large(image), 4, num_workers=1))
    first = next(iterator)
    child = os.fork()
    if child == 0:
        del first
        os._exit(0)
    assert exit_code(child) == 0
    rest = list(iterator)
    assert torch.equal(first[:, 0, 0, 0], torch.arange(4.0)) and len(rest) == COUNT // 4 - 1


def test_failed_batches_leak_no_memory() -> None:
    iterator = iter(DataLoader(Large(ragged_pair), 4, num_workers=1))
    for _ in range(COUNT // 4):
        with pytest.raises(RuntimeError, match="equal size"):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_collate_fn_of_the_user_gets_plain_memory() -> None:
    batches = list(DataLoader(Large(image), 4, num_workers=1, collate_fn=torch.utils.data.default_convert))
    assert [each[0, 0, 0].item() for batch in batches for each in batch] == list(range(COUNT))
