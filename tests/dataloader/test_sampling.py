"""Samplers are called as often, and at the same times, as by torch's loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SequentialSampler, Subset, TensorDataset
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder

from tests.dataloader.data import COUNT, in_memory, rows, write_images
from tests.dataloader.test_loader import check_equal
from tests.helpers import inside
from torchdali import DataLoader

SIZED = v1.Compose([v1.Resize((5, 6)), v1.ToTensor()])


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    write_images(folder)
    arrays = v1.Compose([v1.CenterCrop(30), v1.ToTensor()])
    return {"files": ImageFolder(str(folder), SIZED), "arrays": in_memory("CIFAR10", arrays), "rows": rows()}


class Logged(Sampler[int]):
    """Records each call, and the number of draws of the program so far."""

    def __init__(self, log: list[Any], eager: bool) -> None:
        self.log, self.eager = log, eager

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        self.log.append("begin")
        order = torch.randperm(COUNT).tolist() if self.eager else None
        return self._draws(order)

    def _draws(self, order: Any) -> Iterator[int]:
        for k in range(COUNT):
            self.log.append(k)
            yield order[k] if order else int(torch.randint(COUNT, ()))
        self.log.append("end")


class Counted:
    """An iterator, not a generator, which records each call, even calls after its end."""

    def __init__(self, log: list[Any]) -> None:
        self.log, self.k = log, 0

    def __iter__(self) -> Counted:
        self.log.append("begin")
        self.k = 0
        return self

    def __next__(self) -> list[int]:
        self.log.append(self.k)
        self.k += 1
        if self.k > 6:
            raise StopIteration
        return [self.k, 0]


ARGUMENTS: dict[str, Any] = {
    "a sampler": lambda log: {"sampler": Logged(log, False), "batch_size": 3},
    "one that draws when it begins": lambda log: {"sampler": Logged(log, True), "batch_size": 3, "drop_last": True},
    "batches of one": lambda log: {"batch_sampler": BatchSampler(Logged(log, False), 2, False)},
    "an iterator": lambda log: {"batch_sampler": Counted(log)},
}  # fmt: skip


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_calls_of_a_sampler(datasets: dict[str, Any], kind: str, name: str, workers: int) -> None:
    """The program draws a number per batch, which a seed repeats only if the sampler draws at torch's moments."""
    logs: list[Any] = []
    for loader_kind in (torch.utils.data.DataLoader, DataLoader):
        log: list[Any] = []
        torch.manual_seed(4)
        loader = loader_kind(datasets[kind], num_workers=workers, **ARGUMENTS[name](log))
        for _ in range(2):
            iterator = iter(loader)
            log.append("iter")
            for batch in iterator:
                log.append(("batch", batch[1].tolist(), torch.rand(()).item()))
        logs.append(log)
    assert logs[0] == logs[1]


class Learning:
    """Batches that depend on the loop's earlier batches."""

    first = 0

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(4):
            yield [self.first, self.first + 1]


@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_without_workers_the_sampler_is_not_called_ahead(datasets: dict[str, Any], kind: str) -> None:
    seen = []
    for loader_kind in (torch.utils.data.DataLoader, DataLoader):
        batches, labels = Learning(), []
        for batch in loader_kind(datasets[kind], batch_sampler=batches):
            labels.append(batch[1].tolist())
            batches.first = 2 * len(labels)
        seen.append(labels)
    assert seen[0] == seen[1]


OWN = {
    "shuffled": lambda data, own: {"shuffle": True, "generator": own, "batch_size": 4},
    "whole batches": lambda data, own: {"shuffle": True, "generator": own, "batch_size": 5},
    "twice": lambda data, own: {"sampler": RandomSampler(data, num_samples=17, generator=own), "batch_size": 4},
    "with replacement": lambda data, own: {"sampler": RandomSampler(data, True, 99, own), "batch_size": 7},
    "weighted": lambda data, own: {"sampler": torch.utils.data.WeightedRandomSampler([1.0] * 10, 12, generator=own), "batch_size": 4},
    "a subset": lambda data, own: {"sampler": torch.utils.data.SubsetRandomSampler(range(9), own), "batch_size": 2},
}  # fmt: skip


@pytest.mark.thin(5)
@pytest.mark.parametrize("taken", [1, 2, 3, 99])
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_the_programs_generator_after_a_broken_loop(datasets: dict[str, Any], kind: str, name: str, taken: int) -> None:
    states = []
    for loader_kind in (torch.utils.data.DataLoader, DataLoader):
        own = torch.Generator().manual_seed(5)
        loader = loader_kind(datasets[kind], **OWN[name](datasets[kind], own))
        for number, _ in enumerate(loader, 1):
            if number == taken:
                break
        states.append(own.get_state())
    assert torch.equal(*states)


TENSORS = {
    "float8": lambda: torch.arange(COUNT).float().to(torch.float8_e4m3fnuz),
    "float8 of eight": lambda: torch.arange(COUNT).float().to(torch.float8_e5m2),
    "bfloat16": lambda: torch.arange(COUNT).bfloat16(),
    "conjugate": lambda: torch.complex(torch.arange(10.0), torch.ones(10)).conj(),
    "negative bit": lambda: torch.complex(torch.arange(10.0), torch.ones(10)).conj().imag,
    "uint16": lambda: torch.arange(COUNT).to(torch.uint16),
    "not contiguous": lambda: torch.arange(2 * COUNT).view(2, COUNT).t(),
}  # fmt: skip


@pytest.mark.parametrize("name", TENSORS)
def test_rows_of_any_type(name: str) -> None:
    dataset = TensorDataset(TENSORS[name](), torch.arange(COUNT))
    for loader_dataset in (dataset, Subset(dataset, np.array([3, 1, -1]))):
        for (x, y), (a, b) in zip(DataLoader(loader_dataset, 4), torch.utils.data.DataLoader(loader_dataset, 4), strict=True):
            assert x.dtype == a.dtype and x.shape == a.shape and y.tolist() == b.tolist()
            assert [str(each) for each in x] == [str(each) for each in a]


INDICES = {
    "lists": [[[0, 1, 2]], [[3, 4, 5]]],
    "slices": [[slice(0, 4)], [slice(4, 8)]],
    "tensors": [[torch.tensor([1, 2])], [torch.tensor([0, 5])]],
    "arrays": [[np.array([1, 2])]],
    "numbers of NumPy": [[np.int64(1), np.int32(2)], np.array([3, 4])],
    "tensors of one number": [torch.tensor([1, 2]), [torch.tensor(3)]],
    "several kinds": [[0, 1], [slice(0, 2)], [2, 3]],
    "masks": [[torch.arange(COUNT) < 3]],
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", INDICES)
def test_indices_of_any_type(name: str, workers: int) -> None:
    batches = [list(kind(rows(), batch_sampler=INDICES[name], num_workers=workers)) for kind in (torch.utils.data.DataLoader, DataLoader)]
    check_equal(batches[1], batches[0])


@pytest.mark.parametrize("indices", [[["a"]], [[99]], [[]], [5], [slice(0, 2)], [[1, slice(0, 3)]]], ids=str)
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_errors_of_indices_match_torch(datasets: dict[str, Any], kind: str, indices: Any) -> None:
    errors = []
    for loader_kind in (torch.utils.data.DataLoader, DataLoader):
        iterator = iter(loader_kind(datasets[kind], batch_sampler=[*indices, [1]]))
        with pytest.raises(Exception) as caught:
            next(iterator)
        errors.append(type(caught.value))
        assert len(next(iterator)[1]) == 1  # the loop continues
    assert errors[0] is errors[1]


@pytest.mark.parametrize(("transform", "arguments", "accelerated"), [
    (SIZED, {"batch_size": 1}, False), (SIZED, {"batch_size": 8}, False), (SIZED, {"batch_size": 64}, True),
    (SIZED, {"batch_size": 8, "num_workers": 1}, True), (SIZED, {"batch_sampler": [[1, 2]]}, False),
    (v1.ToTensor(), {"batch_size": 4}, False), (v1.ToTensor(), {"batch_size": 8}, True),
    (v1.ToTensor(), {"batch_sampler": BatchSampler(SequentialSampler(range(4)), 8, False)}, True),
])  # fmt: skip
def test_small_in_memory_batches_without_workers_use_torch(transform: Any, arguments: Any, accelerated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    inside.small_batches(monkeypatch, 16, 8)
    loader = DataLoader(in_memory("CIFAR10", transform), **arguments)
    assert accelerated is not ("small batches of images in memory" in loader.notes[-1])
