"""Decoders of encoded images, whole or a window of them, and what a header tells."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.codecs.images import decode, peek_shape
from torchdali.kernels.window import cut, random_window
from torchdali.operator import operator
from torchdali.ops._crop import crop_window
from torchdali.rng import Rng
from torchdali.schema import Data, DType, PerSample, Takes, shares
from torchdali.types import DALIImageType

__all__ = ["image", "image_crop", "image_random_crop", "peek_image_shape"]

Encoded = Annotated[Tensor, Takes(dtypes=(torch.uint8,))]

_DEVICES = ("cpu", "mixed")
_OLD: dict[str, str | None] = {"memory_stats": None, "split_stages": None, "use_chunk_allocator": None}


def _image_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return "HWC"


def decoder_hints(
    *,
    affine: bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    use_fast_idct: bool = False,
) -> None:
    """Hints for DALI's memory and hardware decoders: accepted, and without effect on the result here."""


def cache_hints(
    *,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = "",
) -> None:
    """Settings of DALI's cache of decoded images on the GPU: accepted; nothing is cached here."""


@operator(name="decoders.image", layout=_image_layout, devices=_DEVICES, deprecated=_OLD)
def image(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.uint8,
    output_type: DALIImageType = DALIImageType.RGB,
    **hints: Annotated[Any, shares(decoder_hints), shares(cache_hints)],
) -> Data:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM; the format is found by the first bytes.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Turn the image as its EXIF block says.
        dtype: Of the output; values are rescaled from the full scale of the file to that of the type.
        output_type: Colour space; ``ANY_DATA`` keeps the channels of the file.

    Returns:
        ``(H, W, C)``.

    Raises:
        DecodeError: the data is empty, damaged, truncated, too large or of an unknown format.
    """
    return decode(data, output_type=output_type.name, dtype=dtype, adjust_orientation=adjust_orientation)


@operator(name="decoders.image_crop", layout=_image_layout, devices=_DEVICES, deprecated=_OLD)
def image_crop(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.uint8,
    output_type: DALIImageType = DALIImageType.RGB,
    crop: PerSample[list[float]] | None = None,
    crop_d: PerSample[float] = 0.0,
    crop_h: PerSample[float] = 0.0,
    crop_w: PerSample[float] = 0.0,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    rounding: str = "round",
    **hints: Annotated[Any, shares(decoder_hints)],
) -> Data:
    """Decode images and cut a window out of each; see `image` and `crop`."""
    whole = image.body(data, adjust_orientation=adjust_orientation, dtype=dtype, output_type=output_type)  # type: ignore[attr-defined]
    axes, starts, extents = crop_window(
        whole.shape, "HWC", crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, crop_pos_x=crop_pos_x,
        crop_pos_y=crop_pos_y, crop_pos_z=crop_pos_z, rounding=rounding,
    )  # fmt: skip
    return cut(whole, axes, starts, extents)




def choose_window(
    rng: Rng,
    height: int,
    width: int,
    num_attempts: int = 10,
    random_area: tuple[float, float] | list[float] = (0.08, 1.0),
    random_aspect_ratio: tuple[float, float] | list[float] = (0.75, 1.333333),
) -> tuple[int, int, int, int]:
    """Draw the window of a random crop: y, x, height, width."""
    draw = rng.random
    draws = ([draw(), draw(), draw(), draw()] for _ in range(max(1, num_attempts)))
    return random_window(draws, height, width, random_area, random_aspect_ratio)


@operator(name="decoders.image_random_crop", layout=_image_layout, devices=_DEVICES, deprecated=_OLD)
def image_random_crop(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.uint8,
    output_type: DALIImageType = DALIImageType.RGB,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006  never changed
    random_aspect_ratio: list[float] = [0.75, 1.333333],  # noqa: B006
    rng: Rng,
    **hints: Annotated[Any, shares(decoder_hints)],
) -> Data:
    """Decode images and cut a random window out of each.

    Args:
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
    """
    whole = image.body(data, adjust_orientation=adjust_orientation, dtype=dtype, output_type=output_type)  # type: ignore[attr-defined]
    height, width, _ = whole.shape
    y, x, h, w = choose_window(rng, height, width, num_attempts, random_area, random_aspect_ratio)
    return whole[y : y + h, x : x + w]


@operator(layout=lambda layouts, arguments: "", devices=("cpu",))
def peek_image_shape(
    data: Encoded,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = torch.int64,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Data:
    """Read the shape of encoded images from their headers: ``(H, W, C)``.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Swap the sides as the EXIF block says.
        dtype: Of the output.
        image_type: Colour space that decides the channels.
    """
    shape = peek_shape(data, image_type=image_type.name, adjust_orientation=adjust_orientation)
    return torch.tensor(shape, dtype=dtype)
