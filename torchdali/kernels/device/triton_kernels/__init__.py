"""The kernels in Triton. Import this only where they are launched: Triton comes with torch for CUDA."""

from __future__ import annotations

from torchdali.kernels.device.triton_kernels.geometry import copy_windows, take, warp
from torchdali.kernels.device.triton_kernels.noise import add_normal, replace_pixels
from torchdali.kernels.device.triton_kernels.resizing import normalize, resize, resize_normalize

__all__ = [
    "add_normal",
    "copy_windows",
    "normalize",
    "replace_pixels",
    "resize",
    "resize_normalize",
    "take",
    "warp",
]
