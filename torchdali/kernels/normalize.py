"""Mirror and normalize images, and write them to the batch: the last step of nearly every training pipeline."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.memory import in_transform, is_plain
from torchdali.kernels.mirror import mirror as mirror_axes
from torchdali.kernels.normalize_opencv import (
    Images,
    join_runs,
    mirror_rows,
    mirror_small_images,
    normalize_by_opencv,
)
from torchdali.kernels.opencv import opencv

__all__ = ["Affine", "affine", "normalize_each_into", "normalize_into"]

_CHUNK = 1 << 19  # number of elements of an image that are processed in one step


@dataclass(frozen=True, eq=False)
class Affine:
    """The function ``(x - centre) * factor + offset``.

    Each attribute has one value, or one value per channel. Instances are compared by identity, because this makes cache
    lookups with an instance as the key faster.
    """

    centre: tuple[float, ...]
    factor: tuple[float, ...]
    offset: tuple[float, ...]


@functools.lru_cache(maxsize=256)
def affine(
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float,
    shift: float,
    channels: int,
    padded: int = 0,
) -> Affine | None:
    """Return ``(x - mean) / std * scale + shift`` as an `Affine`; None if the expression changes nothing.

    The attribute `centre` is 0 if all values of `std` are nonzero. If a `std` is 0, the mean must be subtracted before
    the division, because the sign of the difference decides between infinity, minus infinity and NaN.

    Args:
        mean: One value, one value per channel of the image, or one value per channel of the output; empty for 0.
        std: Standard deviation, with the same choices as for `mean`; empty for 1.
        scale: Factor after the division.
        shift: Offset that is added last.
        channels: Number of channels of the image.
        padded: Number of channels of the output if the output has more channels than the image, else 0.

    Raises:
        RuntimeError: the number of values of `mean` or `std` is wrong.
    """
    for values in (mean, std):
        if len(values) > 1 and len(values) not in (channels, padded):
            raise RuntimeError(
                f"mean and std must have 1 or {channels} values, one per channel, got {len(values)}. Images with "
                'channels first need the layout "CHW"'
            )
    if len(mean) > 1 and len(std) > 1 and len(mean) != len(std):
        raise RuntimeError(
            f"mean and std must have the same number of values, or one value, got {len(mean)} and {len(std)}"
        )
    count = min(max(len(mean), len(std), 1), channels)
    means = mean[:count] if len(mean) > 1 else (mean or (0.0,)) * count
    stds = std[:count] if len(std) > 1 else (std or (1.0,)) * count
    factor = tuple(_divide(scale, s) for s in stds)
    if not all(map(math.isfinite, factor)):
        return Affine(means, factor, (shift,) * count)
    offset = tuple(shift - m * f for m, f in zip(means, factor, strict=True))
    if set(factor) == {1.0} and set(offset) == {0.0}:
        return None
    return Affine((0.0,), factor, offset)


def _divide(scale: float, std: float) -> float:
    if std:
        return scale / std
    return math.copysign(math.inf, scale) if scale else math.nan


def normalize_into(
    out: Tensor,
    image: Tensor,
    scaling: Affine | None,
    channel: int,
    mirror: int | None = None,
    order: tuple[int, ...] | None = None,
) -> None:
    """Write ``(image - centre) * factor + offset`` to a tensor. Integer outputs are rounded and saturated.

    The function computes in the image's own memory order and then transposes the result, because this is fastest.

    Args:
        out: Output tensor of any strides. If it isn't float32, the results are converted to its dtype.
        image: Tensor of the same shape, any strides and any real dtype.
        scaling: Centre, factor and offset; None to only convert the image.
        channel: Channel axis of the image. If `scaling` has one value per channel, the values are applied along it.
        mirror: Axis of the image to reverse; None to reverse no axis.
        order: For each axis of the image, the corresponding axis of `out`; None if the axes have the same order.
    """
    plain = image.dtype == torch.uint8 and out.dtype == torch.float32 and is_plain(image)
    if plain and image.dim() == 3 and channel == 2 and mirror in (None, 1):
        factor, offset, simple = _unpack_scaling(scaling)
        results = out.numpy() if order is None else out.numpy().transpose(order)
        images, mirrored = [image.numpy()], [mirror is not None]
        if simple and normalize_by_opencv(results[None], images, factor, offset, mirrored):
            return
    if order is not None:
        out = out.permute(order)
    recipe = _prepare_recipe(scaling, image.shape, image.stride(), channel, mirror, image.device)
    if recipe.order is not None:
        image, out = image.permute(recipe.order), out.permute(recipe.order)
    if recipe.rows is None or image.requires_grad or in_transform():
        _write(out, image, recipe)
        return
    for start in range(0, len(image), recipe.rows):
        part = slice(start, start + recipe.rows)
        _write(out[part], image[part], recipe)


def normalize_each_into(
    out: Tensor,
    images: Images,
    scaling: Affine | None,
    mirrored: Sequence[bool],
    order: tuple[int, ...],
) -> None:
    """Normalize several images of the same shape and strides, as `normalize_into` does for one image.

    Args:
        out: ``(N, ...)`` float32 on the CPU.
        images: ``(N, H, W, C)``, or a list of N images.
        scaling: See `normalize_into`.
        mirrored: For each image, True to mirror it horizontally.
        order: For each axis of an image, the corresponding axis of ``out[i]``.
    """
    factor, offset, simple = _unpack_scaling(scaling)
    results = out.numpy().transpose(0, *[axis + 1 for axis in order])
    if simple and normalize_by_opencv(results, images, factor, offset, mirrored):
        return
    if simple and order == (0, 1, 2) and (cv2 := opencv()) is not None:
        _write_pixels(cv2, out, images, scaling, mirrored)
        return
    for result, image, mirror in zip(out.unbind(0), images, mirrored, strict=True):
        normalize_into(result, torch.from_numpy(image), scaling, 2, 1 if mirror else None, order)


def _write_pixels(cv2: Any, out: Tensor, images: Images, scaling: Affine | None, mirrored: Sequence[bool]) -> None:
    """Copy images to a tensor ``(N, H, W, C)``, and then normalize the whole tensor in place.

    For small images, this is faster than a call per image.
    """
    _, height, width, channels = out.shape
    rows = out.view(-1, width, channels)
    images, mirrored = mirror_small_images(cv2, images, mirrored)
    for image, low, high in join_runs(images, mirrored, 0, len(images)):
        pixels = mirror_rows(cv2, image) if mirrored[low] else image
        rows[low * height : high * height].copy_(torch.from_numpy(pixels))
    if scaling is not None:
        recipe = _prepare_recipe(scaling, (width, channels), (channels, 1), 1, None, out.device)
        _normalize(rows, recipe, rows)


def _unpack_scaling(scaling: Affine | None) -> tuple[tuple[float, ...], tuple[float, ...], bool]:
    """Return the factor and the offset of an `Affine`, and whether its attribute `centre` is 0."""
    if scaling is None:
        return (), (), True
    return scaling.factor, scaling.offset, scaling.centre == (0.0,)


class _Recipe(NamedTuple):
    """The steps of `normalize_into` for images of one shape.

    The axes are in memory order, which means that the axis with the largest stride is first. The tensors broadcast to
    an image in memory order.

    Attributes:
        order: The image's axes in memory order; None if they are already in this order.
        mirror: Axis to reverse, counted in memory order; None to reverse no axis.
        rows: Number of indices of the first axis that are processed in one step; None to process the whole image.
        offset: Value to add last; None if the image is only converted.
        factor: Value to multiply by; None if the image is only converted.
        centre: Value to subtract first; None for 0.
    """

    order: tuple[int, ...] | None
    mirror: int | None
    rows: int | None
    offset: Tensor | None
    factor: Tensor | None
    centre: Tensor | None


@device_cache(maxsize=256)
@torch.inference_mode(False)  # the cached tensors are also used outside of inference mode
def _prepare_recipe(
    scaling: Affine | None,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    channel: int,
    mirror: int | None,
    device: torch.device,
) -> _Recipe:
    order = sorted(range(len(shape)), key=strides.__getitem__, reverse=True)
    first, *rest = shape = tuple(shape[axis] for axis in order)
    rows = max(_CHUNK // max(math.prod(rest), 1), 1)
    whole = rows >= first or order[0] in (channel, mirror) or device.type != "cpu"

    def spread(values: tuple[float, ...]) -> Tensor:
        return _spread(values, shape, order.index(channel), device)

    return _Recipe(
        None if order == sorted(order) else tuple(order),
        None if mirror is None else order.index(mirror),
        None if whole else rows,
        None if scaling is None else spread(scaling.offset),
        None if scaling is None else spread(scaling.factor),
        None if scaling is None or scaling.centre == (0.0,) else spread(scaling.centre),
    )


def _write(out: Tensor, image: Tensor, recipe: _Recipe) -> None:
    if recipe.mirror is not None:
        image = mirror_axes(image, [recipe.mirror])
    if recipe.offset is None:
        out.copy_(image if out.dtype == torch.float32 else convert(image, out.dtype))
    elif image.requires_grad or in_transform():
        out.copy_(_normalize(image.float(), recipe, None))
    elif out.dtype == torch.float32 and out.is_contiguous():
        _normalize(image.float(), recipe, out)
    else:
        x = image.to(torch.float32, copy=True)
        out.copy_(convert(_normalize(x, recipe, x), out.dtype))


def _normalize(x: Tensor, recipe: _Recipe, out: Tensor | None) -> Tensor:
    assert recipe.offset is not None and recipe.factor is not None
    if recipe.centre is not None:
        x = x - recipe.centre
    return torch.addcmul(recipe.offset, x, recipe.factor, out=out)


def _spread(values: tuple[float, ...], shape: tuple[int, ...], channel: int, device: torch.device) -> Tensor:
    """Repeat the channels' values along contiguous rows, so that PyTorch uses vector instructions."""
    inner = 2 if channel == len(shape) - 1 else 1
    tensor = torch.tensor(values, dtype=torch.float32, device=device)
    if len(values) > 1:
        tensor = tensor.view((-1,) + (1,) * (len(shape) - 1 - channel))
    return tensor.expand(*tensor.shape[:-inner], *shape[-inner:]).contiguous()
