"""``torchdali bench DIR --train``: find out whether the loader or the training step is the bottleneck."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchdali._commands import benching
from torchdali._demo import training as demo
from torchdali.plugin.pytorch import DALIClassificationIterator
from torchdali.plugin.pytorch.loader_evaluator import Rates, evaluate

__all__ = ["SMALL", "run"]

SMALL = "small"  # the network of the demo


def network(name: str, classes: int) -> nn.Module:
    """Return the demo's network, or the torchvision network with this name, untrained."""
    if name == SMALL:
        return demo.network(classes)
    from torchvision import models

    model: nn.Module = models.get_model(name, weights=None, num_classes=classes)
    return model


def _build_step(model: nn.Module, device: torch.device) -> Callable[[Any], None]:
    optimizer = torch.optim.SGD(model.to(device).train().parameters(), lr=1e-3, momentum=0.9)

    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        images, labels = (part.to(device, non_blocking=True) for part in batch)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


class _EndlessBatches:
    """An iterable of the batches ``(images, labels)`` of a pipeline, epoch after epoch."""

    def __init__(self, pipeline: Any) -> None:
        self._source = DALIClassificationIterator(pipeline, reader_name="Reader", auto_reset=True)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for (batch,) in self._source:
            yield batch["data"], batch["label"].squeeze(-1).long()


def _format_rates(rates: Rates, batch: int) -> str:
    rows = {
        "loader alone": rates.loader,
        "step alone, on one batch": rates.step,
        "step on cached batches": rates.cached,
        "training": rates.training,
    }
    lines = [f"  {name:32} {rate * batch:8.1f} images/s" for name, rate in rows.items()]
    return "\n".join([*lines, rates.verdict])


def run(root: Path, batch: int, threads: int, batches: int, size: int, model: str, device: str | None) -> None:
    """Train a network on a folder for some batches and print the bottleneck."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    files = benching.find_images(root)
    pipeline = benching.build(files, batch, threads, size)
    classes = len({path.parent for path in files})
    step = _build_step(network(model, classes), torch.device(device))
    print(f"Training a network ({model}) on {device}, {4 * batches} batches:", flush=True)
    print(_format_rates(evaluate(_EndlessBatches(pipeline), step, batches), batch))
    pipeline.close()
