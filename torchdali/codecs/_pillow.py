"""Copy pixels from PIL images, and detect the sizes that Pillow rejects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["exceeds_pillow_limit", "pillow_pixels"]


_BAND = 1 << 18  # maximum number of pixels that Pillow copies at a time


def pillow_pixels(image: Any, change: Callable[[Array], Array] | None = None) -> Array:
    """Return the pixels of a PIL image as an array.

    Large images are copied in bands, since Pillow makes several intermediate copies.

    Args:
        image: An open PIL image.
        change: Function that changes the pixels of a band, for example drops channels.
    """
    width, height = image.size
    rows = max(1, _BAND // width)
    if height <= rows:
        return np.array(image) if change is None else np.array(change(np.asarray(image)))
    image.load()
    pixels: Array | None = None
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        band = np.asarray(image.crop((0, top, width, bottom)))
        if change is not None:
            band = change(band)
        if pixels is None:
            pixels = np.empty((height, *band.shape[1:]), band.dtype)
        pixels[top:bottom] = band
    assert pixels is not None
    return pixels


def exceeds_pillow_limit(height: int, width: int) -> bool:
    """Return whether an image has more pixels than `Image.MAX_IMAGE_PIXELS`, so that Pillow warns or raises."""
    from PIL import Image  # read the limit each time, since the user may change it

    limit = Image.MAX_IMAGE_PIXELS
    return limit is not None and height * width > max(1, limit)
