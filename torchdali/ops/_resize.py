"""Resizing, with and without a crop before or after it."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.codecs.image_crops import decode_scaled_crop
from torchdali.codecs.images import peek_shape
from torchdali.kernels.resample import resize as resample
from torchdali.operator import operator
from torchdali.ops._decoders import Encoded, cache_hints, choose_window, decoder_hints, image
from torchdali.rng import Rng
from torchdali.schema import DType, Image, PerSample, Takes, shares
from torchdali.types import DALIImageType, DALIInterpType

__all__ = ["random_resized_crop"]

FILTER = {
    DALIInterpType.INTERP_NN: "nn",
    DALIInterpType.INTERP_LINEAR: "linear",
    DALIInterpType.INTERP_CUBIC: "cubic",
    DALIInterpType.INTERP_LANCZOS3: "lanczos3",
    DALIInterpType.INTERP_TRIANGULAR: "triangular",
    DALIInterpType.INTERP_GAUSSIAN: "gaussian",
}


def resampling(
    x: Tensor,
    size: tuple[int, ...],
    roi: list[tuple[float, float]] | None,
    patch_border: bool = True,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    interp_type: PerSample[DALIInterpType] = DALIInterpType.INTERP_LINEAR,
    mag_filter: PerSample[DALIInterpType] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
) -> Tensor:
    """Resample the spatial axes of ``(..., *spatial, C)``.

    Args:
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
    if dtype is not None and dtype not in (x.dtype, torch.float32):
        raise ValueError(f"dtype: the input's own ({x.dtype}) or float32, not {dtype}")
    return resample(
        x, size, roi=roi, antialias=antialias, dtype=dtype, patch_border=patch_border,
        min_filter=FILTER[interp_type if min_filter is None else min_filter],
        mag_filter=FILTER[interp_type if mag_filter is None else mag_filter],
    )  # fmt: skip


RandomlyCropped = Annotated[
    Tensor, Takes(("HWC", "CHW", "FHWC", "FCHW", "CFHW"), channel_last=True)
]


@operator(draws=12)
def random_resized_crop(
    data: RandomlyCropped,
    /,
    *,
    size: list[int],
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [0.75, 1.333333],  # noqa: B006
    rng: Rng,
    **filters: Annotated[Any, shares(resampling)],
) -> Image:
    """Cut out a random window and resize it.

    Args:
        data: Images, or frames, which share the window.
        size: Of the output: ``[H, W]``, or one value for both.
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
    """
    height, width = data.shape[-3:-1]
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    # The outermost lines of a random window need not be DALI's to the last level.
    return resampling(data, _both(size), [(y, y + h), (x, x + w)], False, **filters)


def _both(size: list[int]) -> tuple[int, int]:
    return (size[0], size[0]) if len(size) == 1 else (size[0], size[1])


@operator(hidden=True, draws=12, layout=lambda layouts, arguments: "HWC")
def _decode_random_resized_crop(
    data: Encoded,
    /,
    *,
    size: list[int],
    adjust_orientation: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DType | None = None,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [0.75, 1.333333],  # noqa: B006
    rng: Rng,
    **others: Annotated[Any, shares(resampling), shares(decoder_hints), shares(cache_hints)],
) -> Image:
    """Decode a random window at the smallest scale that still has the pixels of the output."""
    target = _both(size)
    height, width, _ = peek_shape(data, adjust_orientation=adjust_orientation)
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    filters = {k: v for k, v in others.items() if k in _FILTERS}
    if output_type != DALIImageType.RGB:
        whole = image.body(data, adjust_orientation=adjust_orientation, output_type=output_type)  # type: ignore[attr-defined]
        return resampling(whole, target, [(y, y + h), (x, x + w)], False, dtype=dtype, **filters)
    if h >= 2 * target[0] and w >= 2 * target[1]:  # scaled windows are met exactly at whole blocks
        y, x, h, w = (8 * (value // 8) for value in (y, x, h, w))
    crop = decode_scaled_crop(data, y, x, h, w, *target, adjust_orientation=adjust_orientation)
    roi = [(crop.y, crop.y + crop.h), (crop.x, crop.x + crop.w)]
    return resampling(crop.pixels, target, roi, False, dtype=dtype, **filters)


_FILTERS = ("antialias", "interp_type", "mag_filter", "min_filter")
