"""Limits of the cost of a sample: beyond them an operator refuses at once, instead of computing for minutes.

``TORCHDALI_MAX_PIXELS`` in the environment changes how many pixels an image may have, decoded or resized.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

__all__ = ["MAX_PIXELS", "MAX_TAPS", "MAX_WINDOW", "check_pixels", "check_window"]

MAX_PIXELS = int(os.environ.get("TORCHDALI_MAX_PIXELS", 1 << 30))
"""No image may have more pixels, as it is decoded or as an operator makes it."""

MAX_WINDOW = 1 << 17
"""No window of a blur may be wider."""

MAX_TAPS = 1 << 26
"""All output pixels of one resized axis together may see no more input pixels."""


def check_pixels(extents: Sequence[float], what: str) -> None:
    """Refuse an image that is too large, or whose extents are no numbers.

    Raises:
        RuntimeError: naming the extents and the limit.
    """
    pixels = math.prod(extents)
    if not pixels <= MAX_PIXELS:  # nan too
        shown = " x ".join(f"{extent:g}" for extent in extents)
        raise RuntimeError(
            f"{what} would be {shown} pixels; at most {MAX_PIXELS} are allowed (TORCHDALI_MAX_PIXELS)"
        )


def check_window(size: float, operator: str) -> None:
    """Refuse a window that is too wide.

    Raises:
        RuntimeError: naming the size and the limit.
    """
    if not size <= MAX_WINDOW:
        raise RuntimeError(
            f"{operator}: the window would be {size:g} wide; at most {MAX_WINDOW} are allowed"
        )
