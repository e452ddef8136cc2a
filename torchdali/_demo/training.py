"""Train a small network on the demo's images, which torchdali loads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

SIZE = 64
BATCH = 25
AREA = (0.8, 1.0)
MEAN, STD = 0.5, 0.25  # of every channel, on a scale from 0 to 1

Report = Callable[[int, int, float, float], None]


@pipeline_def
def augment(root: str) -> Any:
    """Read images, crop and mirror them randomly, and normalize them."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=SIZE, random_area=list(AREA))
    return _normalize(images, mirror=fn.random.coin_flip()), labels


@pipeline_def
def plain(root: str) -> Any:
    """Read images, resize them to the network's input size, and normalize them."""
    files, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.decoders.image(files, output_type=types.RGB)
    return _normalize(fn.resize(images, size=(SIZE, SIZE))), labels


def _normalize(images: Any, **options: Any) -> Any:
    mean, std = [255 * MEAN] * 3, [255 * STD] * 3
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=mean, std=std, **options)


class Epochs:
    """An iterable of ``(images, labels)`` batches from a pipeline of this module; each ``for`` loop is an epoch."""

    def __init__(self, pipeline: Any, policy: LastBatchPolicy) -> None:
        self._source = DALIClassificationIterator(
            pipeline, reader_name="Reader", auto_reset=True, last_batch_policy=policy
        )

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in self._source:
            yield batch[0]["data"], batch[0]["label"].squeeze(-1).long()


def training_epochs(root: Path, threads: int, seed: int = 1) -> Epochs:
    """Return epochs of augmented images; an incomplete last batch is dropped."""
    pipeline = augment(str(root), batch_size=BATCH, num_threads=threads, device_id=None, seed=seed)
    return Epochs(pipeline, LastBatchPolicy.DROP)


def testing_epochs(root: Path, threads: int) -> Epochs:
    """Return epochs that contain every image once, without augmentation."""
    pipeline = plain(str(root), batch_size=BATCH, num_threads=threads, device_id=None)
    return Epochs(pipeline, LastBatchPolicy.PARTIAL)


class _Residual(nn.Module):
    """Two convolutions and a shortcut connection, which halve height and width."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.long = nn.Sequential(
            *_convolution(inputs, outputs, stride=2),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(inputs, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.long(x) + self.short(x))


def _convolution(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    return [layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def network(classes: int) -> nn.Sequential:
    """Return a residual network with 300,000 parameters."""
    return nn.Sequential(
        *_convolution(3, 16, stride=2),
        _Residual(16, 32),
        _Residual(32, 64),
        _Residual(64, 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes),
    )


def train(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    epochs: int,
    steps: int,
    report: Report,
) -> None:
    """Train for some epochs of ``steps`` batches.

    Args:
        report: Function called after each step with the epoch, the step, the loss, and this epoch's samples per second.
    """
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=epochs * steps)
    model.train()
    for epoch in range(epochs):
        start = time.perf_counter()
        for step, (images, labels) in enumerate(batches, 1):
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            report(epoch, step, loss.item(), step * len(images) / (time.perf_counter() - start))


@torch.no_grad()
def accuracy(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Return the fraction of samples whose class the model predicts correctly."""
    model.eval()
    correct = [model(images).argmax(1) == labels for images, labels in batches]
    return float(torch.cat(correct).float().mean())
