"""Decoding by OpenCV: JPEG 2000 with more than 8 bits, and PNG.

Other libraries decode these formats less exactly, or more slowly.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.errors import MissingExtraError
from torchdali.kernels.opencv import opencv

__all__ = ["decode_bytes_by_opencv", "decode_opencv"]


def decode_opencv(view: memoryview, purpose: str) -> Tensor:
    """Decode to ``(H, W, C)``, with the dtype and channels of the file; colors are RGB.

    Args:
        purpose: Name of the format, for errors.

    Raises:
        ValueError: The data is damaged.
        MissingExtraError: OpenCV is not installed.
    """
    cv2 = opencv()
    if cv2 is None:
        raise MissingExtraError("opencv-python-headless", "image", f"decoding {purpose}")
    try:
        pixels = cv2.imdecode(np.frombuffer(view, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ValueError(str(error.err)) from error
    if pixels is None:
        raise ValueError(f"{purpose}: damaged, or a variant that OpenCV doesn't support")
    if pixels.ndim == 2:
        return torch.from_numpy(pixels[:, :, None])
    order = [2, 1, 0, *range(3, pixels.shape[2])]
    return torch.from_numpy(np.ascontiguousarray(pixels[:, :, order]))


def decode_bytes_by_opencv(encoded: bytes | memoryview, gray: bool, keep_depth: bool = False) -> Tensor | None:
    """Decode to gray ``(H, W, 1)`` or RGB ``(H, W, 3)``; return None if OpenCV is missing, too old, or fails.

    Args:
        gray: If True, decode to gray; if False, decode to RGB.
        keep_depth: If True, 16-bit images become uint16. If False, the result is always uint8.
    """
    cv2 = opencv()
    if cv2 is None or not hasattr(cv2, "IMREAD_COLOR_RGB"):  # OpenCV before 4.11
        return None
    flags = cv2.IMREAD_GRAYSCALE if gray else cv2.IMREAD_COLOR_RGB
    flags |= cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_ANYDEPTH if keep_depth else 0)
    try:
        pixels = cv2.imdecode(np.frombuffer(encoded, np.uint8), flags)
    except cv2.error:  # the image is too large for OpenCV
        return None
    if pixels is None:
        return None
    return torch.from_numpy(pixels if pixels.ndim == 3 else pixels[:, :, None])
