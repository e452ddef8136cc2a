"""User functions that read outside values, and a program that changes the values between epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

from tests.helpers.inside import executor_of
from torchdali import Pipeline, Shared, fn, operator, pipeline_def
from torchdali.declaration.schema import Image

NUMBER = 0.0
SHARED = Shared(0.0)


@operator(name="_reads_global")
def reads_global(image: Image, /) -> Image:
    """Return a global."""
    return torch.tensor([NUMBER], dtype=torch.float64)


@operator(name="_reads_shared", pure=True)
def reads_shared(image: Image, /, *, shared: Any) -> Image:
    """Return a shared value that is an argument."""
    return torch.tensor([shared.value], dtype=torch.float64)


@operator(name="_reads_shared_global", pure=True)
def reads_shared_global(image: Image, /) -> Image:
    """Return a shared value that is a global."""
    return torch.tensor([SHARED.value], dtype=torch.float64)


def change(value: float) -> None:
    """Change both values."""
    global NUMBER
    NUMBER = SHARED.value = value


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def define(root: str, is_pure: bool = False) -> Any:
    data, label = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image(data)
    number = fn.random.uniform(range=[0.0, 1.0])
    values = reads_shared(images, shared=SHARED) if is_pure else reads_global(images)
    return values, label, number, fn.resize(images, size=[5, 6])


def write_images(root: Path, count: int = 24) -> str:
    (root / "0").mkdir()
    for i in range(count):
        pixels = np.random.default_rng(i).integers(0, 256, (30 + i, 40, 3)).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(root / "0" / f"{i:02}.png")
    return str(root)


def epochs(
    root: str, *, changes: bool = True, count: int = 3, batches: int = 6, **options: Any
) -> tuple[list[Any], list[Any], str]:
    """Run epochs, with another value in each; return the values that were read, all other results, and where they ran."""
    change(0.0)
    pipe = define(root, **options)
    pipe.build()
    read, rest = [], []
    for epoch in range(count):
        change(float(epoch * changes))
        taken = [pipe.run() for _ in range(batches)]
        read.append(sorted({s.item() for values, *_ in taken for s in values.samples()}))
        rest.append([[s.flatten().tolist() for s in each.samples()] for _, *others in taken for each in others])
    placing = str(executor_of(pipe).placement)
    pipe.close()
    return read, rest, placing


@pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=2)
def _of_global(root: str) -> Any:
    return reads_shared_global(fn.decoders.image(fn.readers.file(file_root=root)[0]))


def read_from_global(root: str, **options: Any) -> tuple[str, str]:
    """Return the value of a shared global that changed after the processes have started, and where it was read."""
    pipe: Pipeline = _of_global(root, **options)
    pipe.build()
    change(2.0)
    try:
        found = str(pipe.run()[0].at(0)[0].item())
    except RuntimeError as error:
        found = str(error)
    placing = str(executor_of(pipe).placement)
    pipe.close()
    return found, placing


class Counted(torch.utils.data.Dataset[Any]):
    """Return the shared value with another number."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[np.int64, float]:
        return np.int64(index), SHARED.value
