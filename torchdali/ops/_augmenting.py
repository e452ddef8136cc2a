"""Hidden operators of automatic augmentation; see `torchdali.auto_aug`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.batching import per_sample
from torchdali.declaration.schema import Arguments, Data, PerSample, Takes
from torchdali.kernels.color import tone
from torchdali.kernels.device.counts import count_values, map_values
from torchdali.kernels.device.tables import upload
from torchdali.ops._on_device import batch_of, images_of
from torchdali.tensors import TensorList

Bytes = Annotated[Tensor, Takes(("HWC", "FHWC"), (torch.uint8,))]
AnyBytes = Annotated[Tensor, Takes((), (torch.uint8,))]


def _not_an_index(index: Tensor, ndim: int) -> str:
    kind = str(index.dtype).removeprefix("torch.")
    return f"a magnitude bin is an integer scalar (0D), not {kind} of {ndim} dimensions"


def _no_bin(place: int, count: int, signed: bool) -> str:
    if signed:
        place, count = place // 2, count // 2
    return f"there is no magnitude bin {place}: they are from 0 to {count - 1}"


@operator(layout="")
def _row(index: Data, /, *, table: Any, signed: bool = False) -> Data:
    """Return a row of a table.

    Args:
        signed: Two rows are one magnitude bin.
    """
    if index.ndim or index.is_floating_point():
        raise RuntimeError(_not_an_index(index, index.ndim))
    number = int(index)
    if not 0 <= number < len(table):
        raise RuntimeError(_no_bin(number, len(table), signed))
    return torch.as_tensor(table[number])


@chunk(_row)
def _rows(index: Tensor, a: Arguments) -> Tensor:
    """Take a row for each sample."""
    if index.ndim != 1 or index.is_floating_point():
        raise RuntimeError(_not_an_index(index, index.ndim - 1))
    least, greatest = map(int, index.aminmax())
    if least < 0 or greatest >= len(a.table):
        raise RuntimeError(_no_bin(least if least < 0 else greatest, len(a.table), a.signed))
    return torch.as_tensor(a.table).index_select(0, index.to(torch.int32))


def _each_image(function: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return function(images) if images.ndim == 3 else torch.stack([function(i) for i in images])


@operator
def _auto_contrast(image: Bytes, /) -> Bytes:
    """Stretch the intensities of each channel to the full range."""
    return _each_image(tone.stretch, image)


@operator
def _contrast_around_mean(image: Bytes, /, *, factor: PerSample[float]) -> Bytes:
    """Scale the distance of intensities from the mean luma of the image."""
    if image.shape[-1] != 3:
        raise ValueError(f"contrast takes RGB images of 3 channels, not {image.shape[-1]}")
    return _each_image(lambda x: tone.contrast_around_mean(x, factor), image)


@operator
def _solarize(image: AnyBytes, threshold: Data, /) -> AnyBytes:
    """Invert intensities from a threshold on."""
    return tone.solarize(image, math.ceil(threshold))


@operator
def _solarize_add(image: AnyBytes, shift: Data, /) -> AnyBytes:
    """Add a shift to intensities below 128."""
    return tone.solarize_add(image, int(shift))


# ---------------------------------------------------------------- on an accelerator: a table for each image


def _mapped(image: TensorList, make: Callable[[Tensor], Tensor]) -> Any:
    """Map bytes by tables ``(N, 1 or C, 256)``, which a function makes of the counts of all values ``(N, C, 256)``."""
    images = images_of(image, image.layout())
    if images is None:
        return NotImplemented
    pixels = images.sides.prod(0)
    counts, rows = count_values(images.flat, images.offsets, pixels, images.channels)
    tables = make(counts).expand(counts.shape)
    return batch_of(map_values(images.flat, rows, tables, pixels), images.sides, images.channels)


@chunk(_auto_contrast, "device")
def _auto_contrast_on_device(image: TensorList, a: Arguments) -> Any:
    return _mapped(image, tone.stretching_tables)


@chunk(_contrast_around_mean, "device")
def _contrast_on_device(image: TensorList, a: Arguments) -> Any:
    given = torch.tensor(per_sample(a["factor"], len(image)), dtype=torch.float64)
    factors = upload(given.numpy(), image.device)
    if image.ndim() != 3 or any(shape[2] != 3 for shape in image.shape()):
        return NotImplemented
    return _mapped(image, lambda counts: tone.contrast_tables(counts, factors))


@chunk(_solarize, "device")
def _solarize_on_device(image: TensorList, threshold: TensorList, a: Arguments) -> Any:
    if threshold.ndim():
        return NotImplemented
    limits = threshold.stacked().view(-1, 1, 1)
    return _mapped(image, lambda counts: tone.solarizing_tables(limits))


@chunk(_solarize_add, "device")
def _solarize_add_on_device(image: TensorList, shift: TensorList, a: Arguments) -> Any:
    if shift.ndim():
        return NotImplemented
    shifts = shift.stacked().view(-1, 1, 1)
    return _mapped(image, lambda counts: tone.adding_tables(shifts))
