"""Where random crops lie: numbers for slice and the decoders to cut by."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.kernels.random_window import random_window
from torchdali.operator import operator
from torchdali.ops._axis_arguments import listed, matched
from torchdali.rng import Rng
from torchdali.schema import Data, PerSample, Takes

__all__ = ["random_crop_generator", "roi_random_crop"]

_SHAPE_TYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
)


def _no_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return ""


@operator(draws=12, layout=_no_layout)
def random_crop_generator(
    shape: Annotated[Tensor, Takes(dtypes=_SHAPE_TYPES)],
    /,
    *,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006
    rng: Rng,
) -> tuple[Data, Data]:
    """Choose a window of random area and aspect ratio.

    Each attempt draws an area, a share of the image's, and an aspect ratio, evenly on a logarithmic scale; the
    first window that fits is placed anywhere. If none does, the largest allowed one of the ratio nearest to the
    image's is.

    Args:
        shape: Of the image: ``(H, W)`` or ``(H, W, C)``, integers.
        num_attempts: Windows to try.
        random_area: Least and greatest share, or one value for both.
        random_aspect_ratio: Least and greatest ratio of width to height, or one value for both.

    Returns:
        Anchor and shape of the window, both ``(H, W)``, int32.

    Raises:
        RuntimeError: another shape or type of input, or an empty range.
    """
    if shape.ndim != 1 or len(shape) not in (2, 3):
        raise RuntimeError(
            f"the shape of an image has 2 or 3 values (HW or HWC), not {list(shape.shape)}"
        )
    height, width = shape.tolist()[:2]
    if height <= 0 or width <= 0:
        return torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    y, x, h, w = random_window(
        rng.random, height, width, num_attempts, random_area, random_aspect_ratio
    )
    return torch.tensor((y, x), dtype=torch.int32), torch.tensor((h, w), dtype=torch.int32)


@operator(draws=4, layout=_no_layout, class_name="ROIRandomCrop")
def roi_random_crop(
    data: Data | None = None,
    /,
    *,
    crop_shape: PerSample[list[int]],
    in_shape: PerSample[list[int]] | None = None,
    roi_end: PerSample[list[int]] | None = None,
    roi_shape: PerSample[list[int]] | None = None,
    roi_start: PerSample[list[int]],
    rng: Rng,
) -> Data:
    """Choose where a window lies that shows as much of a region as it can.

    On each axis, the window lies in the region where it is smaller, and covers it where it is larger; it stays
    inside the data where their shape is known.

    Args:
        data: Only its shape counts.
        crop_shape: Of the window; one value an axis.
        in_shape: Shape of the data, instead of the input.
        roi_end: Of the region, exclusive.
        roi_shape: Of the region, instead of ``roi_end``.
        roi_start: Of the region.

    Returns:
        Start of the window: one value an axis, int64.

    Raises:
        RuntimeError: not exactly one of ``roi_end`` and ``roi_shape``; ``in_shape`` beside an input; a window
            larger than the data, a region outside of them, or a number of values that does not fit.
    """
    if (roi_end is None) == (roi_shape is None):
        raise RuntimeError("give either roi_end or roi_shape")
    if data is not None and in_shape is not None:
        raise RuntimeError("in_shape excludes an input")
    window = listed(crop_shape)
    count = len(window)
    begins = matched("roi_start", roi_start, count)
    if roi_end is not None:
        ends = matched("roi_end", roi_end, count)
    else:
        ends = [b + s for b, s in zip(begins, matched("roi_shape", roi_shape, count), strict=True)]
    limits: list[int | None] = [None] * count
    if data is not None:
        limits = list(data.shape[:count])
    elif in_shape is not None:
        limits = list(matched("in_shape", in_shape, count))
    places = zip(window, begins, ends, limits, strict=True)
    return torch.tensor([rng.integer(*_range(*place)) for place in places], dtype=torch.int64)


def _range(window: int, begin: int, end: int, limit: int | None) -> tuple[int, int]:
    """Return the first and the last allowed start of a window on one axis."""
    if window < 0:
        raise RuntimeError(f"the extent of a window cannot be negative: {window}")
    low, high = min(begin, end - window), max(begin, end - window)
    if limit is None:
        return low, high
    if window > limit:
        raise RuntimeError(f"a window of {window} elements is larger than the data, {limit}")
    if begin < 0 or end > limit:
        raise RuntimeError(f"the region {begin}:{end} is out of the bounds of the data, 0:{limit}")
    return max(low, 0), min(high, limit - window)
