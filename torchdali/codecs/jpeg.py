"""Encode images to JPEG and decode them again, to show the effect of compression on pixels.

torchvision or Pillow encodes and decodes on the CPU. Both use the same library with the same settings (4:2:0 chroma,
accurate transform), so their results are bit-identical.
"""

from __future__ import annotations

import io

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._torchvision_ops import image_operator

__all__ = ["recode"]

_RGB = 3  # torchvision's number for RGB


def recode(pixels: Tensor, quality: int) -> Tensor:
    """Encode ``(H, W, 3)`` uint8 RGB with a quality from 1 to 100, and decode the encoded image.

    Raises:
        RuntimeError: The image is empty, or has more than 65535 rows or columns.
    """
    if not pixels.numel() or max(pixels.shape[:2]) > 65535:
        raise RuntimeError(f"a JPEG image must have 1 to 65535 rows and columns, got shape {tuple(pixels.shape)}")
    encode, decode = image_operator("encode_jpeg"), image_operator("decode_jpeg")
    if encode is None or decode is None:
        return _recode_with_pillow(pixels, quality)
    encoded = encode(pixels.contiguous().permute(2, 0, 1), quality)
    decoded: Tensor = decode(encoded, _RGB)
    return decoded.permute(1, 2, 0)


def _recode_with_pillow(pixels: Tensor, quality: int) -> Tensor:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(file, "JPEG", quality=quality, subsampling="4:2:0")
    return torch.from_numpy(np.array(Image.open(file)))
