"""An operator that replaces a resize and the following `crop_mirror_normalize` when a graph is optimized.

The operator computes only the pixels of the resized image that the crop keeps. It isn't available to users in `fn`.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.batching import argument_names
from torchdali.declaration.schema import (
    IMAGE_LAYOUTS,
    Arguments,
    DType,
    Image,
    InputConstraints,
    Layout,
    Out,
    PerSample,
    shares,
)
from torchdali.errors import FusedPart
from torchdali.kernels.device.resize import Regions
from torchdali.kernels.device.resize_normalize import resize_normalize_batch
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.memory import Array
from torchdali.ops._crop import crop_mirror_normalize, crop_window, finish_of, narrow_to_crop
from torchdali.ops._decode_windows import resize_region
from torchdali.ops._on_device import Images, images_of, span_of
from torchdali.ops._resize import (
    FILTER,
    FILTERS,
    narrow_to_resized,
    resampling,
    resize_image,
    sizing,
    sizing_of,
    whole_regions,
)
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__: list[str] = []

_RESIZE = FusedPart(0)


def normalizing(
    *,
    dtype: DType = torch.float32,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    mean: PerSample[list[float]] = [0.0],  # noqa: B006
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: str = "error",
    output_layout: str = "CHW",
    pad_output: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = [1.0],  # noqa: B006
) -> None:
    """Arguments of `crop_mirror_normalize`, except the arguments that describe the crop."""


_FAMILIES = (argument_names(sizing), FILTERS, argument_names(crop_window), argument_names(normalizing))


@operator(layout=lambda layouts, arguments: arguments["output_layout"])
def _resize_crop_mirror_normalize(
    data: Annotated[Tensor, InputConstraints(IMAGE_LAYOUTS)],
    /,
    *,
    layout: Layout,
    out: Out = None,
    **arguments: Annotated[Any, shares(normalizing), shares(sizing), shares(resampling), shares(crop_window)],
) -> Image:
    """Resize, then crop, mirror and normalize. Only the cropped region of the resized image is computed."""
    size, filters, window, normalization = ({k: v for k, v in arguments.items() if k in names} for names in _FAMILIES)
    with _RESIZE:
        program = narrow_to_resized(ImageProgram.of(*data.shape[:2]), size) if layout == "HWC" else None
    cropped = None if program is None else narrow_to_crop(program, window)
    with _RESIZE:
        if cropped is not None and window:
            data, window = resize_region(cropped, filters, lambda bottom: data), {}
        else:
            channel = layout.index("C")
            data = resize_image(data.movedim(channel, -1), layout, size, filters).movedim(-1, channel)
    return crop_mirror_normalize.implementation(data, layout=layout, out=out, **window, **normalization)


@chunk(_resize_crop_mirror_normalize, "device", per_sample=argument_names(sizing) | {"mirror"})
def _resize_normalize_on_device(data: TensorList, a: Arguments) -> Any:
    """Resize and normalize a batch in two kernel launches.

    All images have the same crop, because `rewrite.fuse_resizing` uses this operator only if the crop's arguments are
    constant.
    """
    images = images_of(data, a.layout)
    if images is None:
        return NotImplemented
    size, window, filters = a.of(sizing), a.of(crop_window), a.of(resampling)
    with _RESIZE:
        sizes, regions = sizing_of(images, size)
    cropped_regions = _cropped_regions(images, sizes, regions, window, filters)
    if cropped_regions is None:
        return NotImplemented
    finish = finish_of(
        images, dtype=a.dtype, mean=a.mean, mirror=a.mirror, channel_first=a.output_layout == "CHW",
        scale=a.scale, shift=a.shift, std=a.std, fill_values=a.fill_values, out_of_bounds_policy=a.out_of_bounds_policy,
    )  # fmt: skip
    result = resize_normalize_batch(images.flat, images.offsets, images.sides, images.channels, cropped_regions, finish)
    return NotImplemented if result is None else result


def _cropped_regions(
    images: Images, sizes: Array, regions: Array | None, window: dict[str, Any], filters: dict[str, Any]
) -> Regions | None:
    """Return the region of each input image that is visible in the image after the resize and the crop.

    Return None for unsupported batches: if the resized images have different sizes, if the crop selects channels, or if
    the crop reaches outside of the resized image.

    Args:
        sizes: Sizes of the resized images before the crop, ``(2, N)``, or ``(2, 1)`` if all images get the same size.
        regions: Starts and ends of the regions that the resize reads, ``(2, 2, N)``; None for whole images.
        window: Arguments of the crop.
        filters: Arguments that choose the resize's filters.
    """
    interp_type = filters.get("interp_type", DALIInterpType.INTERP_LINEAR)
    chosen = [interp_type if (f := filters.get(k)) is None else f for k in ("min_filter", "mag_filter")]
    (low, high), output_size = (None, None) if regions is None else regions, sizes[:, :1]
    if sizes.shape[1] > 1 and (sizes != output_size).any():  # the resized images have different sizes
        return None
    lengths: tuple[int, ...] = tuple(output_size[:, 0].tolist())
    check_pixels(lengths, "the resized image")
    if window:
        span = span_of(lengths, crop_window((*lengths, images.channels), "HWC", **window))
        if span is None:
            return None
        (y, x), (height, width) = span
        if min(y, x) < 0 or y + height > lengths[0] or x + width > lengths[1]:
            return None
        if (height, width) != lengths:
            low, high = whole_regions(images) if regions is None else regions
            step = (high - low) / output_size
            low, output_size = low + step * [[y], [x]], np.array([[height], [width]])
            high = low + step * output_size
    names = FILTER[chosen[0]], FILTER[chosen[1]]
    return Regions(low, high, output_size, names, filters.get("antialias", True))
