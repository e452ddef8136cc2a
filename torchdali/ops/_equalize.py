"""Operators for histogram equalization."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import InputConstraints, Layout, Out
from torchdali.kernels.color import histogram
from torchdali.kernels.color.lab import lab_to_rgb, rgb_to_lab
from torchdali.kernels.limits import check_not_empty

__all__ = ["clahe", "equalize"]

_CHANNELS = 128

Equalized = Annotated[Tensor, InputConstraints(("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), (torch.uint8,))]
Interleaved = Annotated[Tensor, InputConstraints(("HWC",))]


@operator(marks=("frames",))
def equalize(image: Equalized, /, *, layout: Layout, out: Out = None) -> Equalized:
    """Equalize the histogram of each channel, so that the channel's values use the full range from 0 to 255.

    A value ``v`` becomes ``round(255 * (cdf(v) - n0) / (n - n0))``. Here, ``cdf(v)`` is the channel's number of pixels
    with a value up to ``v``, ``n0`` is the number of pixels with the channel's smallest value, and ``n`` is the number
    of all pixels. If all pixels of a channel have the same value, the channel is unchanged. In sequences, each frame is
    equalized separately.

    Args:
        image: Images or sequences of frames, uint8, with 1 to 128 channels and the layout HW, HWC, CHW, FHW, FHWC or
            FCHW.

    Raises:
        RuntimeError: the dtype isn't uint8, the image has no pixels, or the number of channels isn't from 1 to 128.
    """
    result = _allocate_output(image, out)
    source, target = _channel_last(image, layout), _channel_last(result, layout)
    channels = source.shape[-1]
    if not 1 <= channels <= _CHANNELS:
        raise RuntimeError(f"equalize: images must have 1 to {_CHANNELS} channels, got {channels}")
    check_not_empty(source.shape[-3:-1], image.shape, "equalize")
    histogram.equalize(source, target)
    return result


def _allocate_output(image: Tensor, out: Tensor | None) -> Tensor:
    """Return a tensor for the result: `out` if it has the image's shape and dtype, otherwise a new tensor."""
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
    """Equalize the histogram of each tile of an image, with limited contrast (CLAHE).

    The image is divided into tiles, and each tile has its own histogram. Bins with more pixels than ``clip_limit``
    times the mean of all bins are clipped, and the excess pixels are distributed evenly over all bins. A pixel's value
    is interpolated bilinearly between the equalizations of the four nearest tiles. Source: K. Zuiderveld, "Contrast
    limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Args:
        image: ``(H, W, 1)`` gray or ``(H, W, 3)`` RGB images, uint8.
        bins: Accepted without effect: histograms always have 256 bins, as in DALI's CPU operator.
        clip_limit: Maximum number of pixels in a bin, as a multiple of the mean of all bins. If ``clip_limit`` is 0 or
            negative, bins aren't clipped.
        luma_only: True to equalize only the lightness of RGB images (L in CIE Lab); False to equalize each channel.
        tiles_x: Number of tiles from left to right.
        tiles_y: Number of tiles from top to bottom.

    Raises:
        ValueError: the dtype isn't uint8, or the image doesn't have 1 or 3 channels.
        RuntimeError: the image has no pixels, or ``tiles_x`` or ``tiles_y`` is below 1.
    """
    _check_clahe(image, tiles_x, tiles_y)
    result = _allocate_output(image, out)
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
        raise ValueError(f"clahe: images must be uint8, got {image.dtype}")
    if image.shape[-1] not in (1, 3):
        raise ValueError(f"clahe: images must have 1 or 3 channels, got {image.shape[-1]}")
    check_not_empty(image.shape, image.shape, "clahe")
    if tiles_x < 1 or tiles_y < 1:
        raise RuntimeError(f"clahe: tiles_x and tiles_y must be positive, got {tiles_x} and {tiles_y}")
