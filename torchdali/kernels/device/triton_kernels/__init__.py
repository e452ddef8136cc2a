"""The Triton kernels. Import this package only to launch kernels, because CPU builds of torch lack Triton."""

from __future__ import annotations

from torchdali.kernels.device.triton_kernels.geometry import copy_windows, warp
from torchdali.kernels.device.triton_kernels.resizing import normalize, resize, resize_normalize

__all__ = [
    "copy_windows",
    "normalize",
    "resize",
    "resize_normalize",
    "warp",
]
