"""Subclasses of loaders in libraries, and programs that call an iterator's methods."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import pytest
import torch
from torch.utils.data import IterableDataset
from torchvision import transforms as v1

from tests.dataloader.data import SAMPLES, Own, Stream, in_memory, rows
from tests.dataloader.test_loader import check_equal
from tests.helpers.interrupts import exit_code
from torchdali import DataLoader

CROPPED = v1.Compose([v1.CenterCrop(30), v1.ToTensor()])
DATASETS: dict[str, Any] = {"arrays": lambda: in_memory("CIFAR10", CROPPED), "rows": rows, "own": lambda: Own(SAMPLES["a tuple"])}


class Wrapper:
    """An iterator that only wraps torch's."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    def _reset(self, loader: Any) -> None:
        self._iterator._reset(loader)


def wrapping(kind: Any) -> Any:
    return type("Wrapping", (kind,), {"_get_iterator": lambda self: Wrapper(kind._get_iterator(self))})


def generating(kind: Any) -> Any:
    return type("Generating", (kind,), {"_get_iterator": lambda self: (batch for batch in kind._get_iterator(self))})


def endless(kind: Any) -> Any:
    """A loader with one iterator, which `_get_iterator()` restarts."""

    class Endless(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.iterator = self._get_iterator()

        def __iter__(self) -> Any:
            for _ in range(len(self)):
                yield next(self.iterator)
            self.iterator = self._get_iterator()

    return Endless


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("derive", [wrapping, generating, endless])
@pytest.mark.parametrize("kind", DATASETS)
def test_derived_loaders(kind: str, derive: Any, workers: int) -> None:
    results = []
    for loader_kind in (torch.utils.data.DataLoader, DataLoader):
        torch.manual_seed(2)
        loader = derive(loader_kind)(DATASETS[kind](), batch_size=4, shuffle=True, num_workers=workers)
        results.append([batch for _ in range(2) for batch in loader])
    check_equal(results[1], results[0])


@pytest.mark.parametrize("kind", DATASETS)
def test_workers_can_be_shut_down_by_the_program(kind: str) -> None:
    loader = DataLoader(DATASETS[kind](), 4, num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    loader._iterator._shutdown_workers()
    loader._iterator = None
    assert len(list(loader)) == 3


class Asking(IterableDataset[int]):
    """A stream whose `state_dict` accepts arguments."""

    def __iter__(self) -> Any:
        return iter(range(8))

    def state_dict(self, number: int, from_beginning: bool) -> dict[str, Any]:
        raise AssertionError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError


class Loading(Asking):
    """A stream whose `load_state_dict` accepts arguments."""

    def state_dict(self) -> dict[str, Any]:  # type: ignore[override]
        raise AssertionError

    def load_state_dict(self, state: dict[str, Any], strict: bool) -> None:  # type: ignore[override]
        raise AssertionError


class Weights(torch.nn.Module):
    """A dataset that is a Module."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> int:
        return index

    def state_dict(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        raise AssertionError


class Position(Own):
    """A dataset with its own state."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@pytest.mark.thin(3)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("generator", [False, True])
@pytest.mark.parametrize("make", [Asking, Loading, Weights, lambda: Position(lambda i: i)], ids=["arguments", "loading", "module", "position"])
def test_stateful_datasets_have_torchs_order(make: Any, generator: bool, workers: int) -> None:
    pytest.importorskip("torchdata")
    orders = []
    for kind in (torch.utils.data.DataLoader, DataLoader):
        torch.manual_seed(5)
        dataset = make()
        options: dict[str, Any] = {} if isinstance(dataset, IterableDataset) else {"shuffle": True}
        if generator:
            options["generator"] = torch.Generator().manual_seed(3)
        loader = kind(dataset, batch_size=3, num_workers=workers, **options)
        orders.append([batch.tolist() for _ in range(2) for batch in loader])
    assert orders[0] == orders[1]


def test_threads_of_many_loaders_end() -> None:
    before = threading.active_count()
    dataset = in_memory("CIFAR10", CROPPED)
    loaders = [DataLoader(dataset, 4, num_workers=2) for _ in range(12)]
    for loader in loaders:
        assert len(list(loader)) == 3
    iterators = [iter(loader) for loader in loaders]
    for iterator in iterators:
        next(iterator)
    del iterator, iterators
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("torchdali-arrays") and threading.active_count() > before + 4:
            thread.join(10)
    assert threading.active_count() <= before + 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["arrays", "rows"])
def test_a_forked_process_continues(kind: str) -> None:
    loader = DataLoader(DATASETS[kind](), 2, num_workers=1)
    assert not loader.notes[-1].startswith("not accelerated"), loader.notes  # torch's workers are the parent's
    iterator = iter(loader)
    first = next(iterator)[1].tolist()
    child = os.fork()
    if child == 0:
        labels = [first, *(batch[1].tolist() for batch in iterator)]
        again = [batch[1].tolist() for batch in loader]
        os._exit(0 if labels == again and len(again) == 5 else 1)
    assert exit_code(child) == 0
    assert len(list(iterator)) == 4 and len(list(Stream())) == 10
