"""Fused operators on whole batches on an accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchdali.calls.decorators import chunk
from torchdali.declaration.schema import Arguments
from torchdali.errors import LAST_BUT_ONE
from torchdali.kernels.device.resize import Regions
from torchdali.kernels.device.resize_normalize import resize_normalize_batch
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.memory import Array
from torchdali.ops._crop import crop_window, finish_of
from torchdali.ops._fused import _resize_crop_mirror_normalize
from torchdali.ops._on_device import Images, images_of, span_of
from torchdali.ops._resize import FILTER, all_of, resampling, sizing, sizing_of
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__: list[str] = []


@chunk(_resize_crop_mirror_normalize, "device")
def _resize_normalize_on_device(data: TensorList, a: Arguments) -> Any:
    """Do both in two launches; of what `rewrite.fuse_on_device` fuses, all windows have one size."""
    images = images_of(data, a.layout)
    if images is None:
        return NotImplemented
    size, window, filters = a.of(sizing, columns=True), a.of(crop_window), a.of(resampling)
    with LAST_BUT_ONE:
        sizes, regions = sizing_of(images, size)
    seen = _seen(images, sizes, regions, window, filters)
    if seen is None:
        return NotImplemented
    finish = finish_of(
        images, dtype=a.dtype, mean=a.mean, mirror=a["mirror"], channel_first=a.output_layout == "CHW",
        scale=a.scale, shift=a.shift, std=a.std, fill_values=a.fill_values, out_of_bounds_policy=a.out_of_bounds_policy,
    )  # fmt: skip
    made = resize_normalize_batch(images.flat, images.offsets, images.sides, images.channels, seen, finish)
    return NotImplemented if made is None else made


def _seen(
    images: Images, sizes: Array, regions: Array | None, window: dict[str, Any], filters: dict[str, Any]
) -> Regions | None:
    """Return the regions that a crop shows of resized ones; None where it reaches outside, which the other way refuses.

    Args:
        sizes: ``(2, N)``, or ``(2, 1)`` for all.
        regions: Starts and ends of what is resized, ``(2, 2, N)``; None for whole images.
        window: Constants of the crop.
    """
    both = filters.get("interp_type", DALIInterpType.INTERP_LINEAR)
    chosen = [both if (f := filters.get(k)) is None else f for k in ("min_filter", "mag_filter")]
    (low, high), whole = (None, None) if regions is None else regions, sizes[:, :1]
    if sizes.shape[1] > 1 and (sizes != whole).any():  # a crop that reaches outside of some
        return None
    lengths: tuple[int, ...] = tuple(whole[:, 0].tolist())
    check_pixels(lengths, "the resized image")
    if window:
        span = span_of(lengths, crop_window((*lengths, images.channels), "HWC", **window))
        if span is None:
            return None
        (y, x), (height, width) = span
        if min(y, x) < 0 or y + height > lengths[0] or x + width > lengths[1]:
            return None
        if (height, width) != lengths:
            low, high = all_of(images) if regions is None else regions
            step = (high - low) / whole
            low, whole = low + step * [[y], [x]], np.array([[height], [width]])
            high = low + step * whole
    names = FILTER[chosen[0]], FILTER[chosen[1]]
    return Regions(low, high, whole, names, filters.get("antialias", True))
