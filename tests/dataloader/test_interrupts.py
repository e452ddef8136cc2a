"""Exceptions that end `next()` at any moment: no batch is lost, doubled, or combined with another batch's labels."""

from __future__ import annotations

import itertools
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import SequentialSampler, TensorDataset, WeightedRandomSampler
from torchvision import transforms as v1
from torchvision.datasets import CIFAR10, ImageFolder

from tests.dataloader.data import bare
from tests.helpers.interrupts import limit
from torchdali import DataLoader

COUNT = 40


class Stop(Exception):
    """The exception of a program's alarm."""


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    with limit(300):
        yield


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Datasets whose images have one level, which equals their label."""
    folder: Path = tmp_path_factory.mktemp("levels")
    for number in range(COUNT):
        (folder / f"{number:02d}").mkdir()
        PIL.Image.fromarray(np.full((50, 60, 3), 5 * number, np.uint8)).save(folder / f"{number:02d}" / "a.png")
    levels = np.repeat(np.arange(COUNT, dtype=np.uint8) * 5, 32 * 32 * 3).reshape(COUNT, 32, 32, 3)
    cropped = v1.Compose([v1.RandomCrop(24), v1.PILToTensor()])
    return {
        "files": ImageFolder(str(folder), v1.Compose([v1.RandomResizedCrop(8), v1.PILToTensor()])),
        "arrays": bare(CIFAR10, transform=cropped, data=levels, targets=list(range(COUNT))),
        "rows": TensorDataset(torch.arange(COUNT)[:, None, None, None] * 5 + torch.zeros(1, 3, 2, 2), torch.arange(COUNT)),
    }  # fmt: skip


def check_pairs(batches: list[Any]) -> list[int]:
    """Return the labels of batches, and check that each image matches its label."""
    for images, labels in batches:
        assert torch.equal((images.flatten(1).float().mean(1) / 5).round().long(), labels)
    return torch.cat([labels for _, labels in batches]).tolist()


class Interrupted:
    """Calls an iterator, and interrupts every second call at a random moment."""

    def __init__(self, loader: Any, arm: Any, disarm: Any, error: type[BaseException]) -> None:
        self._loader, self._arm, self._disarm, self._error = loader, arm, disarm, error
        self.hits = 0

    def items(self) -> list[Any]:
        """Return all items of a loop; None for an item that was delivered at the moment of the interrupt."""
        iterator, items = iter(self._loader), []
        for call in itertools.count():
            progress = self._loader._progress
            done = progress.batches
            try:
                if call % 2 == 0:
                    self._arm()
                try:
                    item = next(iterator, None)
                finally:
                    self._disarm()
            except self._error:
                self.hits += 1
                items += [None] * (progress.batches - done)
                continue
            if item is None:
                return items
            items.append(item)
        raise AssertionError


def check(loader: Any, interrupted: Interrupted, loops: int) -> None:
    assert not loader.notes[-1].startswith("not accelerated"), loader.notes  # interrupts would end torch's loop
    for _ in range(loops):
        items = interrupted.items()
        whole = [item for item in items if item is not None]
        labels = check_pairs(whole)
        assert len(items) == len(loader) and len(set(labels)) == len(labels) == 4 * len(whole)
        sampler = loader.sampler
        assert not isinstance(sampler, SequentialSampler) or labels == sorted(labels)
    assert interrupted.hits


LONGEST = {"files": 4e-3, "arrays": 2e-3, "rows": 2e-4}  # of a call of next() without an engine to open


@pytest.mark.thin(5)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop], ids=lambda error: error.__name__)
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_an_alarm_in_next(datasets: dict[str, Any], kind: str, error: type[BaseException], workers: int) -> None:
    def raise_error(*_: Any) -> None:
        raise error

    draw = random.Random(7)
    loader = DataLoader(datasets[kind], 4, shuffle=True, num_workers=workers)

    def arm() -> None:
        signal.setitimer(signal.ITIMER_REAL, LONGEST[kind] * draw.uniform(0.01, 1) ** 2)

    before = signal.signal(signal.SIGALRM, raise_error)
    try:
        check(loader, Interrupted(loader, arm, lambda: signal.setitimer(signal.ITIMER_REAL, 0), error), 12 if kind == "rows" else 5)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_an_exception_in_each_line_of_next(datasets: dict[str, Any], kind: str, workers: int) -> None:
    """A tracer raises at the k-th line of `next()`, for each k."""
    count, lines = 0, iter([0])

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        if event in ("line", "return") and ("dataloader" in frame.f_code.co_filename or "sampler" in frame.f_code.co_filename):
            count -= 1
            if count == 0:
                raise Stop
        return tracer

    def arm() -> None:
        nonlocal count
        count = next(lines)
        sys.settrace(tracer)

    for arguments in ({"shuffle": True, "generator": torch.Generator()}, {"sampler": WeightedRandomSampler([1.0] * COUNT, COUNT, False)}):
        loader = DataLoader(datasets[kind], 4, num_workers=workers, **arguments)
        for first in range(1, 300, {"files": 61, "arrays": 23, "rows": 11}[kind]):
            lines = itertools.chain([first], itertools.repeat(97))
            check(loader, Interrupted(loader, arm, lambda: sys.settrace(None), Stop), 1)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_batch_with_skipped_samples_is_counted_when_delivered(tmp_path: Path, workers: int) -> None:
    for number in range(24):
        (tmp_path / f"{number:02d}").mkdir()
        PIL.Image.fromarray(np.full((50, 60, 3), 5 * number, np.uint8)).save(tmp_path / f"{number:02d}" / "a.png")
    bad = {1, 6, *range(12, 16)}
    for number in bad:
        (tmp_path / f"{number:02d}" / "a.png").write_bytes(b"no image")
    dataset, left = ImageFolder(str(tmp_path), v1.Compose([v1.CenterCrop(8), v1.PILToTensor()])), 0
    moment = ("", "")

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left, moment
        if event in ("line", "return") and "dataloader" in frame.f_code.co_filename:
            left -= 1
            if left == 0:
                moment = (Path(frame.f_code.co_filename).name, frame.f_code.co_name)
                raise Stop
        return tracer

    loader = DataLoader(dataset, 4, num_workers=workers, bad_samples="skip")
    assert not loader.notes[-1].startswith("not accelerated"), loader.notes
    for first in range(1, 200, 7):
        iterator, found, lost, left = iter(loader), [], False, first
        while True:
            sys.settrace(tracer)
            try:
                item = next(iterator, None)
            except Stop:
                lost = moment == ("_torch_internals.py", "__next__")  # after the count, on its way to the user
                continue
            finally:
                sys.settrace(None)
            if item is None:
                break
            found.append(item)
        assert len(found) == 5 or (lost and len(found) == 4), (first, moment)
        assert set(check_pairs(found)) <= set(range(24)) - bad and len(set(check_pairs(found))) >= 14
