"""OpenCV, where it is installed: some kernels let it do on the CPU what takes torch several passes."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from torch import Tensor

from torchdali.kernels.memory import is_plain

__all__ = ["opencv", "opencv_for"]


@functools.cache
def opencv() -> Any:
    """Return the module ``cv2``, or None."""
    try:
        return importlib.import_module("cv2")
    except ImportError:
        return None


def opencv_for(x: Tensor) -> Any:
    """Return ``cv2`` if it can work on a tensor; it knows no devices, gradients, compilers, or empty images."""
    return opencv() if is_plain(x) and x.numel() else None
