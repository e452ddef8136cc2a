"""Filter images with OpenCV, which is several times as fast as the functions in `kernels.filters.linear`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import prepare_out
from torchdali.kernels.opencv import opencv_for

__all__ = ["correlate_by_opencv", "separable_by_opencv"]

_CHANNELS = 128
_TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32)
_BORDERS = {
    "reflect_101": "BORDER_REFLECT_101",
    "reflect_1001": "BORDER_REFLECT",
    "clamp": "BORDER_REPLICATE",
    "constant": "BORDER_CONSTANT",  # only with the fill value 0
}


def separable_by_opencv(
    x: Tensor, axes: Sequence[int], windows: Sequence[Sequence[Any]], out: Tensor | None = None
) -> Tensor | None:
    """Correlate rows and columns, each with its own window and with reflected borders.

    Args:
        x, axes, windows, out: See `linear.separable`.

    Returns:
        A float32 tensor; None if OpenCV doesn't support the arguments.
    """
    cv2 = _opencv_if_supported(x, axes)
    if cv2 is None:
        return None
    down, across = (np.array(window, np.float32) for window in windows)
    result = prepare_out(out, x.shape, torch.float32, x.device)
    for source, target in _images(x, result, axes[0]):
        cv2.sepFilter2D(source, cv2.CV_32F, across, down, target, borderType=cv2.BORDER_REFLECT_101)
    return result


def correlate_by_opencv(
    x: Tensor, axes: Sequence[int], window: Tensor, anchor: Sequence[int], border: str, fill: float,
    dtype: torch.dtype, out: Tensor | None = None,
) -> Tensor | None:  # fmt: skip
    """Correlate images with a window, and keep the images' shape. See `linear.correlate` for the arguments.

    Halves are rounded to the even number, as in DALI. The result is None if OpenCV doesn't support the arguments.
    """
    cv2 = _opencv_if_supported(x, axes)
    if cv2 is None or border not in _BORDERS or fill or window.requires_grad:
        return None
    result = prepare_out(out, x.shape, dtype, x.device)
    depth = cv2.CV_32F if dtype == torch.float32 else -1
    for source, target in _images(x, result, axes[0]):
        cv2.filter2D(
            source, depth, window.numpy(), target, tuple(anchor)[::-1], 0.0, getattr(cv2, _BORDERS[border])
        )  # fmt: skip
    return result


def _opencv_if_supported(x: Tensor, axes: Sequence[int]) -> Any:
    """Return ``cv2`` if OpenCV supports filtering these axes of an image, else None.

    The last axes of `x` must be rows and columns, or rows, columns and channels.
    """
    after = x.dim() - 1 - axes[-1]
    if len(axes) != 2 or axes[1] != axes[0] + 1 or after > 1 or x.dtype not in _TYPES:
        return None
    return None if after and x.shape[-1] > _CHANNELS else opencv_for(x)


def _images(x: Tensor, out: Tensor, lead: int) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of an image of `x` and an image of `out`. `lead` is the number of axes before the rows."""
    shape = -1, *x.shape[lead:]
    yield from zip(x.contiguous().view(shape).numpy(), out.view(shape).numpy(), strict=True)
