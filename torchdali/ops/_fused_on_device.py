"""Fused operators on whole batches on an accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchdali.errors import LAST_BUT_ONE
from torchdali.kernels.device.resize import Regions
from torchdali.kernels.device.resize_normalize import resize_normalize_batch
from torchdali.kernels.limits import check_pixels
from torchdali.operator import on_device
from torchdali.ops._crop import crop_window, finish_of, normalize_on_device
from torchdali.ops._fused import _resize_crop_mirror_normalize
from torchdali.ops._fused_parts import divide_all
from torchdali.ops._on_device import Array, Images, images_of, span_of
from torchdali.ops._resize import FILTER, resized_on_device, sizing_of
from torchdali.schema import Column
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__: list[str] = []


@on_device(_resize_crop_mirror_normalize)
def _resize_normalize_on_device(
    data: TensorList, *, dtype: torch.dtype, mean: list[float], mirror: int | Column, output_layout: str,
    pad_output: bool, scale: float, shift: float, std: list[float], fill_values: list[float],
    out_of_bounds_policy: str, layout: str, **arguments: Any | Column,
) -> Any:  # fmt: skip
    """Do both in two launches where all windows have one size; otherwise one after the other."""
    images = images_of(data, layout)
    if images is None:
        return NotImplemented
    size, window, _, filters = divide_all(arguments)
    with LAST_BUT_ONE:
        sizes, regions = sizing_of(images, size)
    wanted = output_layout or layout
    usual = dtype in (torch.float32, torch.float16) and wanted in ("CHW", "HWC") and not pad_output
    low, high = regions
    part = _part(images, sizes, low, high, window, filters) if usual else None
    finish: dict[str, Any] = {
        "dtype": dtype, "mean": mean, "mirror": mirror, "scale": scale, "shift": shift, "std": std,
        "fill_values": fill_values, "out_of_bounds_policy": out_of_bounds_policy,
    }  # fmt: skip
    if part is not None:
        height, width = part.size[:, 0].tolist()
        last = finish_of(images, (height, width), channel_first=wanted == "CHW", **finish)
        made = resize_normalize_batch(
            images.flat, images.offsets, images.sides, images.channels, part, last
        )
        return NotImplemented if made is None else made
    with LAST_BUT_ONE:
        resized = resized_on_device(images, sizes, regions, **filters)
    if resized is NotImplemented:
        return NotImplemented
    if isinstance(resized, torch.Tensor):
        resized = TensorList.from_dense(resized, layout)
    return normalize_on_device(
        resized, output_layout=output_layout, pad_output=pad_output, layout=layout, **finish, **window
    )


def _part(
    images: Images, sizes: Array, low: Array, high: Array, window: dict[str, Any], filters: dict[str, Any]
) -> Regions | None:  # fmt: skip
    """Return the regions that a crop shows of resized ones; None where the sizes differ, or the kernels cannot.

    Args:
        sizes: ``(2, N)``, or ``(2, 1)`` for all.
        low: Where the regions of the resize start, ``(2, N)``.
        high: Where they end.
    """
    given = dict(filters)
    antialias, both = given.pop("antialias", True), given.pop("interp_type", DALIInterpType.INTERP_LINEAR)
    chosen = [both if f is None else f for f in (given.pop("min_filter", None), given.pop("mag_filter", None))]
    varies = any(isinstance(value, Column) for value in (antialias, *chosen, *window.values()))
    if varies or given or any(FILTER.get(each, "nn") == "nn" for each in chosen):
        return None
    whole = sizes[:, :1]
    if sizes.min() < 1 or (sizes != whole).any():
        return None
    lengths = int(whole[0, 0]), int(whole[1, 0])
    check_pixels(lengths, "the resized image")
    if window:
        span = span_of(lengths, crop_window((*lengths, images.channels), "HWC", **window))
        if span is None:
            return None
        (y, x), (height, width) = span
        if min(y, x) < 0 or y + height > lengths[0] or x + width > lengths[1]:
            return None
        if (height, width) != lengths:
            step = (high - low) / whole
            low, whole = low + step * [[y], [x]], np.array([[height], [width]])
            high = low + step * whole
    return Regions(low, high, whole, (FILTER[chosen[0]], FILTER[chosen[1]]), antialias)
