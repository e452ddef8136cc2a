"""`torchdali.DataLoader` in libraries, and subclasses of it, behave as with torch's."""

from __future__ import annotations

import itertools
import queue
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.data
import torchvision.transforms as v1
from torch.utils.data import DistributedSampler, SequentialSampler
from torchvision.datasets import ImageFolder

from tests.dataloader.data import write_images
from torchdali import DataLoader
from torchdali.dataloader._iterators import AcceleratedIterator

SIZED = v1.Compose([v1.Resize((5, 6)), v1.ToTensor()])


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("pictures")
    write_images(folder)
    return ImageFolder(str(folder), SIZED)


@pytest.fixture
def accelerated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list of the accelerated loops that start."""
    loops: list[Any] = []
    prime = AcceleratedIterator._prime
    monkeypatch.setattr(AcceleratedIterator, "_prime", lambda self, loader: (loops.append(self), prime(self, loader))[1])
    return loops


def _labels(batches: Any) -> list[Any]:
    return [batch[1].tolist() for batch in batches]


class _Again:
    """A sampler that starts again when it ends."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self.sampler


def _endless(kind: Any, dataset: Any) -> Any:
    """Return a loader that uses one iterator for all epochs."""

    class Endless(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            object.__setattr__(self, "batch_sampler", _Again(self.batch_sampler))
            self.iterator = super().__iter__()

        def __len__(self) -> int:
            return len(self.batch_sampler.sampler)

        def __iter__(self) -> Any:
            return itertools.islice(self.iterator, len(self))

    return Endless(dataset, 4, shuffle=True, num_workers=1)


def _in_a_thread(kind: Any, dataset: Any) -> Any:
    batches: queue.Queue[Any] = queue.Queue(2)
    loader = kind(dataset, 4, shuffle=True, num_workers=1)
    thread = threading.Thread(target=lambda: [batches.put(batch) for batch in itertools.chain(loader, [None])])
    thread.start()
    result = _labels(iter(batches.get, None))
    thread.join()
    return result


def _break_early(kind: Any, dataset: Any) -> Any:
    loader = kind(dataset, 2, shuffle=True, num_workers=1)
    return [_labels(itertools.islice(loader, count)) for count in (2, 1, 0, 3)], _labels(loader)


def _interrupted(kind: Any, dataset: Any) -> Any:
    loader, count = kind(dataset, 2, num_workers=1), 0
    try:
        for _ in loader:
            count += 1
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return count, _labels(loader)


def _of_accelerate(kind: Any, dataset: Any) -> Any:
    module = pytest.importorskip("accelerate.data_loader")
    rows = []
    for named in ({}, {"split_batches": True}, {"even_batches": False}, {"use_seedable_sampler": True}):
        loader = kind(dataset, 2, shuffle=True, generator=torch.Generator().manual_seed(3))
        loader = module.prepare_data_loader(loader, num_processes=2, process_index=1, **named)
        rows.append((len(loader), _labels(loader.base_dataloader), isinstance(loader, torch.utils.data.DataLoader)))
        rows.append(_labels(module.skip_first_batches(loader.base_dataloader, 1)))
    return rows


def _of_lightning(kind: Any, dataset: Any) -> Any:
    data = pytest.importorskip("lightning.pytorch.utilities.data")
    sampler = DistributedSampler(dataset, 2, 1)
    loader = data._update_dataloader(kind(dataset, 2, shuffle=True, num_workers=1), sampler)
    sampler.set_epoch(3)
    other = data._update_dataloader(kind(dataset, 4, drop_last=True), SequentialSampler(dataset))
    return _labels(loader), len(other), _labels(other), type(loader) is type(other) is kind


USES: dict[str, Any] = {
    "one iterator for all epochs": lambda kind, data: [_labels(each) for each in [_endless(kind, data)] * 3],
    "a thread that loads ahead": _in_a_thread,
    "loops that are left early": _break_early,
    "an interrupted loop": _interrupted,
    "cycle": lambda kind, data: _labels(itertools.islice(itertools.cycle(kind(data, 4, shuffle=True)), 7)),
    "the first batch alone": lambda kind, data: [_labels([next(iter(kind(data, 4, shuffle=True)))]) for _ in range(3)],
    "accelerate": _of_accelerate,
    "Lightning": _of_lightning,
}


@pytest.mark.parametrize("use", USES)
def test_uses(image_folder: Any, accelerated: list[Any], use: str) -> None:
    torch.manual_seed(4)
    expected = USES[use](torch.utils.data.DataLoader, image_folder), torch.rand(1)
    assert not accelerated
    torch.manual_seed(4)
    assert (USES[use](DataLoader, image_folder), torch.rand(1)) == expected
    assert bool(accelerated) == (use != "accelerate")


def test_torchdali_run_makes_accelerate_use_our_loader(
    image_folder: Any, accelerated: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("accelerate.data_loader")
    expected = _of_accelerate(torch.utils.data.DataLoader, image_folder)
    monkeypatch.setattr(module, "DataLoader", DataLoader)  # as if `torchdali run` imports accelerate
    assert _of_accelerate(DataLoader, image_folder) == expected and len(accelerated) == 8
