"""A Lightning-style loop without the dependency: a module with `training_step`, a data module, a trainer.

    python examples/lightning_style.py DATA [--epochs 3]

Shows how to use a torchdali loader in a framework like Lightning: ``train_dataloader`` returns the iterator, and
``training_step`` unpacks its batches.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy


class DataModule:
    """Builds the loaders."""

    def __init__(self, root: str, batch_size: int = 32, threads: int = 2) -> None:
        self.root, self.batch_size, self.threads = root, batch_size, threads

    def train_dataloader(self) -> DALIClassificationIterator:
        @pipeline_def(batch_size=self.batch_size, num_threads=self.threads, seed=3)
        def pipe():
            jpegs, labels = fn.readers.file(
                file_root=self.root, random_shuffle=True, pad_last_batch=True, name="reader"
            )
            images = fn.random_resized_crop(fn.decoders.image(jpegs), size=[64, 64])
            return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[128.0], std=[64.0]), labels

        return DALIClassificationIterator(
            pipe(), reader_name="reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
        )


class Classifier(nn.Module):
    """The network and its training step."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(256, classes),
        )

    def training_step(self, batch: list[dict[str, torch.Tensor]]) -> torch.Tensor:
        images, labels = batch[0]["data"], batch[0]["label"].squeeze(-1).long()
        return nn.functional.cross_entropy(self.layers(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Trainer:
    """Runs the loop."""

    def __init__(self, max_epochs: int) -> None:
        self.max_epochs = max_epochs

    def fit(self, module: Any, loader: Iterable[Any]) -> float:
        optimiser = module.configure_optimizers()
        mean = 0.0
        for epoch in range(self.max_epochs):
            losses = []
            for batch in loader:
                loss = module.training_step(batch)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch}: loss {mean:.3f}", flush=True)
        return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args()
    if not Path(options.data).is_dir():
        parser.error(f"no such folder: {options.data!r}")
    Trainer(options.epochs).fit(Classifier(options.classes), DataModule(options.data).train_dataloader())
