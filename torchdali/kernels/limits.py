"""Limits of a sample's memory and time. Above a limit, an operator raises an error instead of computing for minutes.

The environment variable ``TORCHDALI_MAX_PIXELS`` sets the maximum number of pixels of a decoded image and of an image
that an operator creates. `use_max_pixels` sets this limit for the calling thread. Pipelines call `use_max_pixels` with
their argument ``max_pixels``.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence

from torchdali.environment import read_number

__all__ = [
    "FREE_VALUES", "MAX_PIXELS", "MAX_SCANS", "MAX_TAPS", "MAX_VALUES_PER_BYTE", "MAX_WINDOW",
    "check_not_empty", "check_pixels", "check_window", "limit_pixels", "limits", "use_max_pixels",
]  # fmt: skip

MAX_PIXELS = read_number("TORCHDALI_MAX_PIXELS", 1 << 30, 1)
"""Maximum number of pixels of an image."""

MAX_WINDOW = 1 << 17
"""Maximum width of a filter's window, in pixels."""

MAX_TAPS = 1 << 26
"""Maximum number of reads of input pixels, for all output pixels of a resized axis together."""

FREE_VALUES = 3 << 26
"""Number of values (height times width times channels) up to which `MAX_VALUES_PER_BYTE` doesn't apply."""

MAX_VALUES_PER_BYTE = 3 << 10
"""Maximum number of decoded values per byte of a file. A file that claims to contain more values is rejected, because
it could be a decompression bomb."""

MAX_SCANS = read_number("DALI_MAX_JPEG_SCANS", 256, 1)
"""Maximum number of scans of a progressive JPEG."""


class _ThreadLimits(threading.local):
    """Limits of the calling thread.

    Attributes:
        pixels: Maximum number of pixels of an image.
        unchecked_values: Number of values (height times width times channels) up to which an image is below all limits,
            so that a decoder needn't check the limits.
    """

    pixels = MAX_PIXELS
    unchecked_values = min(FREE_VALUES, MAX_PIXELS)


limits = _ThreadLimits()


def use_max_pixels(pixels: int | None) -> None:
    """Set the maximum number of pixels for the calling thread; None sets `MAX_PIXELS`."""
    limits.pixels = MAX_PIXELS if pixels is None else pixels
    limits.unchecked_values = min(FREE_VALUES, limits.pixels)


@contextlib.contextmanager
def limit_pixels(pixels: int | None) -> Iterator[None]:
    """Set the calling thread's maximum number of pixels inside a ``with`` block. None keeps the present limit."""
    previous = limits.pixels
    if pixels is not None:
        use_max_pixels(pixels)
    try:
        yield
    finally:
        use_max_pixels(previous)


def check_pixels(extents: Sequence[float], description: str) -> None:
    """Check that an image doesn't have more pixels than allowed.

    Raises:
        RuntimeError: the image has too many pixels, or an extent is NaN.
    """
    pixels = math.prod(extents)
    if not pixels <= limits.pixels:  # also true for NaN
        size = " x ".join(f"{extent:g}" for extent in extents)
        raise RuntimeError(
            f"{description} must have at most {limits.pixels} pixels (max_pixels of the pipeline, or "
            f"TORCHDALI_MAX_PIXELS), got {size}"
        )


def check_not_empty(lengths: Sequence[int], shape: Sequence[int], operator: str) -> None:
    """Check that an image is not empty, for operators that have no result for empty images.

    Args:
        lengths: Lengths of the axes that must not be empty.
        shape: Shape of the image.

    Raises:
        RuntimeError: one of the lengths is 0.
    """
    if 0 in lengths:
        raise RuntimeError(f"{operator}: the image has no pixels, got shape {tuple(shape)}")


def check_window(size: float, operator: str) -> None:
    """Check the width of a filter's window.

    Raises:
        RuntimeError: the window is too wide.
    """
    if not size <= MAX_WINDOW:
        raise RuntimeError(f"{operator}: the window must be at most {MAX_WINDOW} wide, got {size:g}")
