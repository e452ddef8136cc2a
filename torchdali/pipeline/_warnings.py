"""Warnings of what a graph can hardly be meant to compute."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchdali.graph import Graph, Node

__all__ = ["warn_of_scales"]

_KEEP_BYTES = frozenset((
    "_to_device", "brightness", "brightness_contrast", "color_space_conversion", "color_twist", "contrast", "copy",
    "crop", "erase", "fast_resize_crop_mirror", "flip", "gaussian_blur", "grid_mask", "hsv", "hue", "jitter",
    "jpeg_compression_distortion", "pad", "paste", "random_resized_crop", "resize", "resize_crop_mirror", "rotate",
    "saturation", "slice", "sphere", "transpose", "warp_affine", "water",
))  # fmt: skip
"""Operators that deliver bytes where they get them, unless they have a `dtype`."""


def warn_of_scales(graph: Graph) -> None:
    """Warn, on the user's line, where bytes of 0 to 255 are normalized by the mean and deviation of 0 to 1."""
    for node in graph.nodes:
        given = node.constants
        if (
            node.operator.name == "crop_mirror_normalize"
            and _is_of_unit_range(given.get("mean"))
            and _is_of_unit_range(given.get("std"))
            and not {"scale", "shift"} & given.keys()
            and _takes_bytes(node)
            and node.lines
        ):
            line = node.lines[0]
            warnings.warn_explicit(
                f"crop_mirror_normalize: mean={given['mean']} and std={given['std']} are of pixels from 0 to 1, and "
                "these are bytes from 0 to 255: multiply both by 255",
                UserWarning,
                line.file,
                line.line,
            )


def _is_of_unit_range(numbers: Any) -> bool:
    values = numbers if isinstance(numbers, Sequence) else [numbers]
    return all(isinstance(v, (int, float)) and 0 < v < 1 for v in values)


def _takes_bytes(node: Node) -> bool:
    """Return True if the images of a node are certainly bytes that a decoder made."""
    while node.inputs and node.inputs[0] is not None and node.inputs[0].source is not None:
        node = node.inputs[0].source
        if "dtype" in node.constants:
            return False
        if node.operator.name.startswith("decoders.image"):
            return True
        if node.operator.name not in _KEEP_BYTES:
            return False
    return False
