"""Compute dense optical flow between images with the method of Lucas and Kanade, from coarse to fine."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["flow"]

_SMALLEST = 12  # minimum length of the shorter side on the coarsest level, in pixels
_LEVELS = 10
_HINTED_LEVELS = 2  # number of levels if a hint is passed
_NOISE = 1e-3  # regularizes the least squares, so that flat regions keep the flow of the coarser level
_STEP = 1.0  # maximum distance per iteration, in pixels


def flow(first: Tensor, second: Tensor, iterations: int, window: int, hint: Tensor | None = None) -> Tensor:
    """Compute the displacement of each pixel from a first to a second image.

    Every pixel's neighborhood in the first image is matched with the second image by least squares on the gradients
    (Lucas and Kanade, 1981). The matching is repeated on each level of a pyramid of halved images (Bouguet, 2001).

    Args:
        first: First images ``(N, 1, H, W)``, in [0, 1].
        second: Second images, of the same shape and range.
        iterations: Number of iterations on each level.
        window: Width of a neighborhood, in pixels; must be odd.
        hint: Initial flow ``(N, 2, h, w)``. With a hint, fewer coarse levels are computed.

    Returns:
        Flow ``(N, 2, H, W)``, x before y, in pixels. The pixel ``first(p)`` corresponds to ``second(p + flow(p))``.
    """
    levels = [(first, second)]
    max_levels = _LEVELS if hint is None else _HINTED_LEVELS
    while len(levels) < max_levels and min(levels[-1][0].shape[-2:]) >= 2 * _SMALLEST:
        level_first, level_second = levels[-1]
        levels.append((_halve(level_first), _halve(level_second)))
    motion = first.new_zeros(len(first), 2, *levels[-1][0].shape[-2:]) if hint is None else hint
    for level_first, level_second in reversed(levels):
        motion = _resize_flow(motion, level_first)
        for _ in range(iterations):
            motion = _refine(level_first, level_second, motion, window)
    return motion


def _halve(image: Tensor) -> Tensor:
    return functional.interpolate(image, scale_factor=0.5, mode="bilinear", antialias=True)


def _resize_flow(motion: Tensor, image: Tensor) -> Tensor:
    """Resize a flow to the size of an image, and scale the displacements by the same factor."""
    height, width = image.shape[-2:]
    if motion.shape[-2:] == image.shape[-2:]:
        return motion
    scale = motion.new_tensor([width / motion.shape[-1], height / motion.shape[-2]])
    larger = functional.interpolate(motion, size=(height, width), mode="bilinear", align_corners=False)
    return larger * scale[:, None, None]


def _refine(first: Tensor, second: Tensor, motion: Tensor, window: int) -> Tensor:
    warped = _warp(second, motion)
    x, y = _gradients((first + warped) / 2)
    change = warped - first
    products = torch.cat((x * x, x * y, y * y, x * change, y * change), 1)
    xx, xy, yy, xt, yt = _mean(products, window).chunk(5, 1)
    xx, yy = xx + _NOISE * _NOISE, yy + _NOISE * _NOISE
    scale = (xx * yy - xy * xy).clamp(min=_NOISE**4)
    step = torch.cat(((xy * yt - yy * xt) / scale, (xy * xt - xx * yt) / scale), 1)
    length = step.norm(dim=1, keepdim=True).clamp(min=_STEP)
    return _mean(motion + step * (_STEP / length), 3)


def _warp(image: Tensor, motion: Tensor) -> Tensor:
    """Return an image whose pixel p is ``image(p + motion(p))``."""
    height, width = image.shape[-2:]
    rows = torch.arange(height, dtype=motion.dtype, device=motion.device)[:, None] + motion[:, 1]
    columns = torch.arange(width, dtype=motion.dtype, device=motion.device) + motion[:, 0]
    grid = torch.stack((columns * (2 / width) + (1 / width - 1), rows * (2 / height) + (1 / height - 1)), -1)
    return functional.grid_sample(image, grid, padding_mode="border", align_corners=False)


def _gradients(image: Tensor) -> tuple[Tensor, Tensor]:
    padded = functional.pad(image, (1, 1, 1, 1), mode="replicate")
    x = (padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]) / 2
    y = (padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]) / 2
    return x, y


def _mean(values: Tensor, window: int) -> Tensor:
    margin = window // 2
    padded = functional.pad(values, (margin, margin, margin, margin), mode="replicate")
    return functional.avg_pool2d(padded, window, stride=1)
