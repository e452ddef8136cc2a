"""Train with torchvision's `ImageFolder` and a pipeline as its transform.

``python examples/proxy_imagefolder.py DIR``, where DIR contains one folder of images per class. The worker
processes only read files. One pipeline decodes and augments on its threads (with ``--device 0`` on a GPU),
and batches arrive as tensors on its device.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torchvision.datasets import ImageFolder

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch.experimental import proxy


@pipeline_def
def augment(size: int, device: Literal["cpu", "mixed"]) -> Any:
    """Decode, crop and mirror at random, and normalize."""
    files = fn.external_source(name="files", no_copy=True)
    images = fn.decoders.image(files, device=device, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=size)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(),
        mean=[128.0],
        std=[64.0],
    )


def network(classes: int) -> nn.Module:
    """Build a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )  # fmt: skip


def train(options: argparse.Namespace) -> list[float]:
    """Train and return the mean loss of each epoch."""
    torch.manual_seed(options.seed)
    target = "cpu" if options.device is None else f"cuda:{options.device}"
    pipe = augment(
        options.size,
        "cpu" if options.device is None else "mixed",
        batch_size=options.batch_size,
        num_threads=options.threads,
        device_id=options.device,
        seed=options.seed,
    )
    losses = []
    with proxy.DALIServer(pipe) as server:
        dataset = ImageFolder(options.root, transform=server.proxy, loader=str)
        loader: Any = proxy.DataLoader(
            server,
            dataset,
            batch_size=options.batch_size,
            shuffle=True,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
        )
        model = network(len(dataset.classes)).to(target)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for epoch in range(options.epochs):
            losses.append(_epoch(model, optimizer, loader))
            print(f"epoch {epoch}: loss {losses[-1]:.4f}", flush=True)
    return losses


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: Any) -> float:
    total = count = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels.to(images.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, count = total + loss.item() * len(labels), count + len(labels)
    return total / count


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="folder with one folder of pictures a class")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", type=int, default=None, help="number of a GPU")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if not Path(options.root).is_dir():
        parser.error(f"no such folder: {options.root!r}")
    return train(options)


if __name__ == "__main__":
    main()
