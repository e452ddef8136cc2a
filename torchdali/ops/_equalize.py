"""Histogram equalization."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Layout, Out, Takes
from torchdali.kernels.color import histogram
from torchdali.kernels.color.lab import lab_to_rgb, rgb_to_lab
from torchdali.kernels.limits import check_not_empty

__all__ = ["clahe", "equalize"]

_CHANNELS = 128

Equalized = Annotated[Tensor, Takes(("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), (torch.uint8,))]
Interleaved = Annotated[Tensor, Takes(("HWC",))]


@operator(marks=("frames",))
def equalize(image: Equalized, /, *, layout: Layout, out: Out = None) -> Equalized:
    """Spread the values of images over the full range: histogram equalization, each channel by itself.

    ``out = round(255 * (below_or_at(v) - n0) / (n - n0))``, where ``below_or_at`` counts the pixels of a channel with
    values up to ``v``, ``n0`` is the number of pixels with its smallest value, ``n`` the number of all pixels. A
    channel of one value is not changed. The frames of a sequence are equalized one by one.

    Args:
        image: uint8, at most 128 channels; layout HW, HWC or CHW, or one of these after F.

    Raises:
        RuntimeError: another type, an image without pixels, no channels or too many.
    """
    result = _place(image, out)
    source, target = _channel_last(image, layout), _channel_last(result, layout)
    channels = source.shape[-1]
    if not 1 <= channels <= _CHANNELS:
        raise RuntimeError(f"equalize: from 1 to {_CHANNELS} channels, not {channels}")
    check_not_empty(source.shape[-3:-1], image.shape, "equalize")
    histogram.equalize(source, target)
    return result


def _place(image: Tensor, out: Tensor | None) -> Tensor:
    """Return where the result goes: the given place, if it fits."""
    if out is not None and out.shape == image.shape and out.dtype == image.dtype:
        return out
    return torch.empty_like(image, memory_format=torch.contiguous_format)


def _channel_last(image: Tensor, layout: str) -> Tensor:
    return image.movedim(layout.index("C"), -1) if "C" in layout else image.unsqueeze(-1)


@operator(layout="HWC", marks=("frames",))
def clahe(
    image: Interleaved,
    /,
    *,
    bins: int = 256,
    clip_limit: float,
    luma_only: bool = True,
    tiles_x: int,
    tiles_y: int,
    out: Out = None,
) -> Interleaved:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE).

    Each tile is equalized by its own histogram, whose bins are clipped at ``clip_limit`` times their mean; the excess
    is distributed evenly. A pixel is mapped by the four tiles around it, weighted bilinearly. Source: K. Zuiderveld,
    "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Args:
        image: ``(H, W, 1)`` or ``(H, W, 3)`` uint8; colors are RGB.
        bins: Accepted; histograms have 256 bins, like DALI's CPU operator.
        clip_limit: Largest bin, in units of the mean bin; 0 and negative values mean no limit.
        luma_only: Equalize only the lightness of colors (L of CIE Lab), instead of each channel.
        tiles_x: Tiles across the image.
        tiles_y: Tiles down the image.

    Raises:
        ValueError: another type or number of channels. RuntimeError: an image without pixels, or tiles below 1.
    """
    _check_clahe(image, tiles_x, tiles_y)
    result = _place(image, out)
    if image.shape[-1] == 1 or not luma_only:
        histogram.equalize_tiles(image, result, tiles_y, tiles_x, clip_limit)
        return result
    lab = rgb_to_lab(image)
    lightness = lab[..., :1].contiguous()
    histogram.equalize_tiles(lightness, lightness, tiles_y, tiles_x, clip_limit)
    lab_to_rgb(lightness[..., 0], lab, result)
    return result


def _check_clahe(image: Tensor, tiles_x: int, tiles_y: int) -> None:
    if image.dtype != torch.uint8:
        raise ValueError(f"clahe: uint8 images, not {image.dtype}")
    if image.shape[-1] not in (1, 3):
        raise ValueError(f"clahe: images of 1 or 3 channels, not {image.shape[-1]}")
    check_not_empty(image.shape, image.shape, "clahe")
    if tiles_x < 1 or tiles_y < 1:
        raise RuntimeError(f"clahe: tiles_x ({tiles_x}) and tiles_y ({tiles_y}) must be positive")
