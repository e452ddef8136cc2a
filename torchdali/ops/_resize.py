"""Resizing, with and without a crop before it."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from torchdali.operator import operator
from torchdali.ops._decoders import choose_window
from torchdali.rng import Rng
from torchdali.schema import Image, PerSample


@operator(draws=12)
def random_resized_crop(
    image: Image,
    /,
    *,
    size: PerSample[list[float]],
    num_attempts: int = 10,
    random_area: PerSample[list[float]] = [0.08, 1.0],  # noqa: B006
    random_aspect_ratio: PerSample[list[float]] = [0.75, 1.333333],  # noqa: B006
    rng: Rng,
) -> Image:
    """Crop a random window and resize it."""
    height, width, _ = image.shape
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    if len(size)==1: size=[size[0],size[0]]
    im = image[y:y+h, x:x+w].permute(2,0,1)[None].contiguous(memory_format=torch.channels_last)
    return F.interpolate(im, (int(size[0]), int(size[1])), mode="bilinear", antialias=True)[0].permute(1,2,0)
