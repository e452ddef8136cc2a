"""The video of the reference's examples: the example image moving sideways, as a GIF file."""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali._demo.scene import scene

__all__ = ["film"]

Array = npt.NDArray[Any]


@functools.cache
def film() -> bytes:
    """Return a GIF file of half a second: twelve frames of 80 by 120 pixels."""
    from PIL import Image

    small = scene()[::2, ::2]
    frames = [Image.fromarray(np.roll(small, -6 * i, 1)) for i in range(12)]
    memory = io.BytesIO()
    frames[0].save(memory, "GIF", save_all=True, append_images=frames[1:], duration=40)
    return memory.getvalue()
