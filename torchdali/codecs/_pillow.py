"""The pixels of an image that Pillow decoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["pillow_pixels"]

_BAND = 1 << 18  # pixels that Pillow copies at a time


def pillow_pixels(image: Any, channels: int | None = None) -> npt.NDArray[Any]:
    """Return Pillow's pixels as an array; of a large image in bands, as Pillow copies them more than once.

    Args:
        image: Opened.
        channels: How many to keep, of a mode that has more.
    """
    width, height = image.size
    rows = max(1, _BAND // width)
    if height <= rows:
        return np.array(image) if channels is None else np.array(np.asarray(image)[..., :channels])
    image.load()
    made: npt.NDArray[Any] | None = None
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        band = np.asarray(image.crop((0, top, width, bottom)))
        if channels is not None:
            band = band[..., :channels]
        if made is None:
            made = np.empty((height, *band.shape[1:]), band.dtype)
        made[top:bottom] = band
    assert made is not None
    return made
