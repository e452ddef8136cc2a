"""OpenCV, where it is installed: some kernels let it do on the CPU what takes torch several passes."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch
from torch import Tensor

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
    if not x.is_cpu or x.requires_grad or not x.numel() or torch.compiler.is_compiling():
        return None
    return opencv()
