"""The kernels in Triton. Import this only where they are launched: Triton comes with torch for CUDA."""

from __future__ import annotations

from torchdali.kernels.device.triton_kernels.filtering import correlate, filter, median
from torchdali.kernels.device.triton_kernels.geometry import (
    compose,
    copy_windows,
    erase,
    take,
    turn,
    warp,
)
from torchdali.kernels.device.triton_kernels.jpeg import distort
from torchdali.kernels.device.triton_kernels.noise import add_normal, replace_pixels
from torchdali.kernels.device.triton_kernels.resizing import normalize, resize, resize_normalize
from torchdali.kernels.device.triton_kernels.tiles import count_tiles, map_tiles
from torchdali.kernels.device.triton_kernels.values import (
    count_values,
    map_colors,
    map_values,
    mask_grid,
    reduce,
    standardize,
)

__all__ = [
    "add_normal",
    "compose",
    "copy_windows",
    "correlate",
    "count_tiles",
    "count_values",
    "distort",
    "erase",
    "filter",
    "map_colors",
    "map_tiles",
    "map_values",
    "mask_grid",
    "median",
    "normalize",
    "reduce",
    "replace_pixels",
    "resize",
    "resize_normalize",
    "standardize",
    "take",
    "turn",
    "warp",
]
