"""Hidden operators (not in `fn`) that implement automatic augmentation; see `torchdali.auto_aug`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.batching import per_sample
from torchdali.declaration.schema import Arguments, Data, InputConstraints, PerSample
from torchdali.kernels.color import tone
from torchdali.kernels.device.tables import factors

Bytes = Annotated[Tensor, InputConstraints(("HWC", "FHWC"), (torch.uint8,))]
AnyBytes = Annotated[Tensor, InputConstraints((), (torch.uint8,))]


def _index_message(index: Tensor, ndim: int) -> str:
    kind = str(index.dtype).removeprefix("torch.")
    return f"a magnitude bin must be an integer scalar (0-D), got {kind} of {ndim} dimensions"


def _bin_message(bin_index: int, count: int, signed: bool) -> str:
    if signed:
        bin_index, count = bin_index // 2, count // 2
    return f"invalid magnitude bin {bin_index}; the bins are 0 to {count - 1}"


@operator(layout="")
def _row(index: Data, /, *, table: Any, signed: bool = False) -> Data:
    """Return the row `index` of a table of magnitudes.

    Args:
        signed: True if the table has two rows per magnitude, one for each sign; False if the table has one row per
            magnitude.
    """
    if index.ndim or index.is_floating_point():
        raise RuntimeError(_index_message(index, index.ndim))
    number = int(index)
    if not 0 <= number < len(table):
        raise RuntimeError(_bin_message(number, len(table), signed))
    return torch.as_tensor(table[number])


@chunk(_row)
def _rows(index: Tensor, a: Arguments) -> Tensor:
    """Compute `_row` for a batch of indices."""
    if index.ndim != 1 or index.is_floating_point():
        raise RuntimeError(_index_message(index, index.ndim - 1))
    least, greatest = map(int, index.aminmax())
    if least < 0 or greatest >= len(a.table):
        raise RuntimeError(_bin_message(least if least < 0 else greatest, len(a.table), a.signed))
    return torch.as_tensor(a.table).index_select(0, index.to(torch.int32))


def _map_images(function: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return function(images) if images.ndim == 3 else torch.stack([function(i) for i in images])


@operator
def _auto_contrast(image: Bytes, /) -> Bytes:
    """Stretch the intensities of each channel to the full range."""
    return _map_images(tone.stretch, image)


@chunk(_auto_contrast, only_on_devices=True)
def _stretch_batch(image: Tensor, a: Arguments) -> Any:
    return NotImplemented if image.ndim != 4 else tone.stretch_each(image)


@operator
def _contrast_around_mean(image: Bytes, /, *, factor: PerSample[float]) -> Bytes:
    """Multiply each intensity's distance from the image's mean luma by a factor."""
    _check_rgb(image)
    return _map_images(lambda x: tone.contrast_around_mean(x, factor), image)


def _check_rgb(image: Tensor) -> None:
    if image.shape[-1] != 3:
        raise ValueError(f"contrast: images must be RGB with 3 channels, got {image.shape[-1]}")


@chunk(_contrast_around_mean, per_sample=("factor",), only_on_devices=True)
def _contrast_batch(image: Tensor, a: Arguments) -> Any:
    if image.ndim != 4:
        return NotImplemented
    _check_rgb(image)
    return tone.contrast_each_around_mean(image, factors(per_sample(a.factor, len(image)), image))


@operator
def _solarize(image: AnyBytes, threshold: Data, /) -> AnyBytes:
    """Invert intensities that are at least the threshold."""
    return tone.solarize(image, math.ceil(threshold))


@chunk(_solarize, only_on_devices=True)
def _solarize_batch(image: Tensor, threshold: Tensor, a: Arguments) -> Any:
    if threshold.ndim != 1:
        return NotImplemented
    return tone.solarize_each(image, threshold.view(-1, *[1] * (image.ndim - 1)))


@operator
def _solarize_add(image: AnyBytes, shift: Data, /) -> AnyBytes:
    """Add a shift to intensities below 128."""
    return tone.solarize_add(image, int(shift))


@chunk(_solarize_add, only_on_devices=True)
def _solarize_add_batch(image: Tensor, shift: Tensor, a: Arguments) -> Any:
    if shift.ndim != 1:
        return NotImplemented
    return tone.solarize_add_each(image, shift.view(-1, *[1] * (image.ndim - 1)))
