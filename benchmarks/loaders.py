"""The same work for ``torch.utils.data.DataLoader`` with torchvision's v2 transforms.

``roi`` and ``photo`` decode whole images here: torchvision decodes neither parts nor scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import PIL.Image
import torch
from torchvision import datasets, io
from torchvision.transforms import v2

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


def _open_pil(path: str) -> PIL.Image.Image:
    with PIL.Image.open(path) as image:
        return image.convert("RGB")


def _open_tensor(path: str) -> torch.Tensor:
    image: torch.Tensor = io.decode_image(path, mode=io.ImageReadMode.RGB)
    return image


OPEN: dict[str, Callable[[str], Any]] = {"loader_pil": _open_pil, "loader_tensor": _open_tensor}

AUGMENT: dict[str, Callable[[], torch.nn.Module]] = {
    "rand_augment": v2.RandAugment,
    "auto_augment": v2.AutoAugment,
    "trivial_augment": v2.TrivialAugmentWide,
}


def transform(pipeline: str) -> v2.Compose:
    """The transforms of a measured pipeline, as torchvision's own training scripts order them."""
    steps: list[torch.nn.Module] = [v2.PILToTensor()]
    if pipeline == "decode":
        return v2.Compose(steps)
    if pipeline == "val":
        steps = [v2.Resize(256, antialias=True), v2.CenterCrop(224), *steps]
    else:
        augment = [AUGMENT[pipeline]()] if pipeline in AUGMENT else []
        if pipeline == "heavy":
            augment = [
                v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1),
                v2.GaussianBlur(9, sigma=1.7),
                v2.RandomRotation(30, v2.InterpolationMode.BILINEAR),
            ]
        crop = v2.RandomResizedCrop(224, antialias=True)
        steps = [crop, *augment, v2.RandomHorizontalFlip(), *steps]
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def _ragged(samples: list[tuple[torch.Tensor, int]]) -> tuple[list[torch.Tensor], torch.Tensor]:
    images, labels = zip(*samples, strict=True)
    return list(images), torch.tensor(labels)


def batches(side: str, pipeline: str, root: str, *, batch: int, threads: int, total: int, seed: int) -> Iterator[Any]:
    """Yield ``total`` batches as one long epoch, so that no worker is started or drained midway."""
    data = datasets.ImageFolder(root, transform(pipeline), loader=OPEN[side])
    order = torch.Generator().manual_seed(seed)
    sampler = torch.utils.data.RandomSampler(data, num_samples=batch * total, generator=order)
    loader = torch.utils.data.DataLoader(
        data,
        batch,
        sampler=sampler,
        num_workers=threads,
        collate_fn=_ragged if pipeline == "decode" else None,
    )
    return iter(loader)
