"""Mirror and normalise an image into the batch: the last step of nearly every training pipeline."""

from __future__ import annotations

import functools
import threading

import torch
from torch import Tensor

__all__ = ["affine", "normalise_planar"]

_scratch = threading.local()


@functools.lru_cache(maxsize=64)
def affine(
    mean: tuple[float, ...], std: tuple[float, ...], scale: float, shift: float, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return factor and offset of ``(x - mean) / std * scale + shift``, as ``(n,)`` float32 tensors.

    ``n`` is 1 where mean and std are the same for all channels. A zero ``std`` gives infinities.
    """
    m = torch.tensor(mean, dtype=torch.float64)
    factor = scale / torch.tensor(std, dtype=torch.float64)
    offset = shift - m * factor
    return factor.float().to(device), offset.float().to(device)


def normalise_planar(
    image: Tensor, factor: Tensor, offset: Tensor, mirror: bool, out: Tensor | None
) -> Tensor:
    """Normalise a ``(H, W, C)`` image to ``(C, H, W)`` float32.

    Converting in the image's own order into a buffer that stays in cache and transposing in the final
    multiply-add is what costs least.

    Args:
        image: Any real dtype that torch converts.
        factor: ``(1,)`` or ``(C,)``.
        offset: ``(1,)`` or ``(C,)``.
        mirror: Reverse the rows.
        out: Where to write, ``(C, H, W)`` float32; a new tensor when None.
    """
    height, width, channels = image.shape
    if mirror:
        image = image.flip(1)
    buffer = _buffer(height, width, channels) if image.device.type == "cpu" else torch.empty_like(image, dtype=torch.float32)
    planar = buffer.copy_(image).permute(2, 0, 1)
    if out is None:
        out = torch.empty((channels, height, width), dtype=torch.float32, device=image.device)
    return torch.addcmul(offset.view(-1, 1, 1), planar, factor.view(-1, 1, 1), out=out)


def _buffer(height: int, width: int, channels: int) -> Tensor:
    """Return this thread's float buffer; it is kept while the shape stays the same."""
    buffer: Tensor | None = getattr(_scratch, "buffer", None)
    if buffer is None or buffer.shape != (height, width, channels):
        buffer = _scratch.buffer = torch.empty(height, width, channels)
    return buffer
