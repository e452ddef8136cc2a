"""``torchdali demo``: draw images, train a network on them, compare the loaders, and save a contact sheet."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path

import torch

from torchdali._demo import comparing, pictures, sheet, training
from torchdali.pipeline import native_status

__all__ = ["run"]

TRAINING = 100  # images per class
TESTING = 30


class _EpochBar:
    """A progress bar on one line of a terminal; without a terminal, one line for every fourth epoch."""

    def __init__(self, epochs: int, steps: int) -> None:
        self.epochs, self.steps = epochs, steps
        self.terminal = sys.stdout.isatty()

    def __call__(self, epoch: int, step: int, loss: float, rate: float) -> None:
        text = f"epoch {epoch + 1:2}/{self.epochs}  loss {loss:.3f}  {rate:4.0f} images/s"
        if self.terminal:
            share = (epoch * self.steps + step) / (self.epochs * self.steps)
            print(f"\r  [{'#' * math.floor(30 * share):30}] {text}", end="", flush=True)
        elif step == self.steps and (epoch + 1) % 4 == 0:
            print(f"  {text}", flush=True)

    def close(self) -> None:
        if self.terminal:
            print()


def _draw(root: Path) -> None:
    count = len(pictures.SHAPES) * (TRAINING + TESTING)
    print(f"Drawing {count} pictures of {len(pictures.SHAPES)} shapes ...", flush=True)
    pictures.write(root / "train", TRAINING, seed=0)
    pictures.write(root / "test", TESTING, seed=1)


def _train(root: Path, threads: int, epochs: int) -> float:
    """Train on the images in ``train``, and return the accuracy on the images in ``test``."""
    torch.manual_seed(0)
    model = training.network(len(pictures.SHAPES))
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"Training a network of {size:,} parameters on the CPU:", flush=True)
    torch.set_num_threads(max(1, torch.get_num_threads() // 2))  # the loader needs cores too
    steps = len(pictures.SHAPES) * TRAINING // training.BATCH
    bar = _EpochBar(epochs, steps)
    source = training.training_epochs(root / "train", threads)
    training.train(model, source, epochs, steps, bar)
    bar.close()
    return training.accuracy(model, training.testing_epochs(root / "test", threads))


def _compare(root: Path, threads: int) -> None:
    print(f"Loading these images, without training, with {threads} threads or workers, in turn:", flush=True)
    ours, theirs = comparing.compare(root / "train", threads)
    for name, rate in (("from torchdali import DataLoader", ours), ("from torch.utils.data import DataLoader", theirs)):
        print(f"  {name:40} {rate:6.0f} images/s")
    print(f"  {ours / theirs:.1f} times as many", flush=True)


def _save_sheet(root: Path, threads: int, path: Path) -> None:
    source = training.training_epochs(root / "train", threads, seed=3)
    names = sorted(pictures.SHAPES)
    sheet.save(sheet.collect(source, len(names)), names, path)
    print(f"Contact sheet of augmented images: {path}")


def _print_fast_path() -> None:
    status = native_status()
    print(f"The fast path was {'' if status.library else 'not '}used: {status.text}")


def run(output: Path, threads: int, epochs: int) -> float:
    """Run the demo and return the accuracy on images that the network never saw."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="torchdali-demo-") as folder:
        root = Path(folder)
        _draw(root)
        accuracy = _train(root, threads, epochs)
        test_count = len(pictures.SHAPES) * TESTING
        print(f"  accuracy {accuracy:.1%} on {test_count} new images (chance: 10%)")
        _compare(root, threads)
        _save_sheet(root, threads, output)
    print(f"Done in {time.perf_counter() - start:.0f} s.")
    _print_fast_path()
    return accuracy
