"""Operators that add noise to images and other data: Gaussian, shot, and salt-and-pepper noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, InputConstraints, Layout, PerSample, per_sample
from torchdali.kernels.convert import convert, full_scale
from torchdali.rng import Rng, normals
from torchdali.tensors import TensorList

__all__ = ["gaussian", "salt_and_pepper", "shot"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, InputConstraints((), _NUMBERS)]


def _to_float(data: Tensor) -> Tensor:
    return data if data.dtype.is_floating_point else convert(data, torch.float32)


def _to_device(array: np.ndarray[tuple[int, ...], np.dtype[np.float32]], data: Tensor) -> Tensor:
    return torch.from_numpy(array).to(data.device)


@operator(name="noise.gaussian", marks=("pixels",))
def gaussian(data: Numbers, /, *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0, rng: Rng) -> Data:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated.

    Args:
        data: Integers or float32, any shape.
        mean: Mean of the noise, in the unit of the data. By default 0.
        stddev: Standard deviation of the noise, in the unit of the data. By default 1.
    """
    noise = normals(rng.generator(), tuple(data.shape))
    return convert(_to_device(noise, data).mul_(stddev).add_(_to_float(data)).add_(mean), data.dtype)


@chunk(gaussian, "device", per_sample=("stddev", "mean"))
def _gaussian_on_device(data: TensorList, a: Arguments) -> Any:
    return _add_noise_on_cpu(gaussian, data, a, ("stddev", "mean"))


def _add_noise_on_cpu(
    operator_: Any, data: TensorList, a: Arguments, names: Sequence[str], **constants: Any
) -> TensorList:
    """Add noise to a batch on a device, with the same results as on the CPU.

    The batch is copied to the CPU, and the noisy batch is copied back to the device.

    Args:
        names: Names of the per-sample arguments.
        constants: Arguments that are the same for all samples.
    """
    columns = [per_sample(getattr(a, name), len(data)) for name in names]
    rows = zip(data.current_storage().to_cpu().samples(), a.rng.samples(), *columns, strict=True)
    samples = [
        operator_.implementation(sample, rng=sample_rng, **dict(zip(names, values, strict=True)), **constants)
        for sample, sample_rng, *values in rows
    ]
    return TensorList.from_samples(samples, data.layout())


@operator(name="noise.shot", marks=("pixels",))
def shot(data: Numbers, /, *, factor: PerSample[float] = 20.0, rng: Rng) -> Data:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated.

    Args:
        data: Integers or float32, any shape. Negative values become 0.
        factor: Strength of the noise: the variance is ``factor * in``. With 0, the data isn't changed; with a negative
            factor, the output is 0. By default 20.
    """
    if factor == 0:
        return data
    expected = (_to_float(data).clamp_min(0) / factor).clamp_min(0)
    counts = _poisson(expected.cpu().numpy(), rng.generator())
    return convert(_to_device(counts, data).mul_(factor), data.dtype)


@chunk(shot, "device", per_sample=("factor",))
def _shot_on_device(data: TensorList, a: Arguments) -> Any:
    return _add_noise_on_cpu(shot, data, a, ("factor",))


def _poisson(
    expected: np.ndarray[tuple[int, ...], np.dtype[np.float32]], generator: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(generator.poisson(expected), np.float32)


@operator(name="noise.salt_and_pepper", marks=("pixels",))
def salt_and_pepper(
    data: Numbers,
    /,
    *,
    pepper_val: PerSample[float] | None = None,
    per_channel: bool = False,
    prob: PerSample[float] = 0.05,
    salt_val: PerSample[float] | None = None,
    salt_vs_pepper: PerSample[float] = 0.5,
    layout: Layout,
    rng: Rng,
) -> Data:
    """Replace random pixels by a light ("salt") or a dark ("pepper") value.

    Args:
        data: Integers or float32, any shape. A pixel consists of all elements along the channel axis. The channel axis
            is the axis ``C`` of the layout, or the last axis of data without a layout.
        pepper_val: The dark value. By default the smallest value of an integer dtype, and -1 for float32.
        per_channel: If True, each channel of a pixel is replaced independently. By default all channels of a pixel are
            replaced by the same value.
        prob: Probability of replacing a pixel. By default 0.05.
        salt_val: The light value. By default the largest value of an integer dtype, and 1 for float32.
        salt_vs_pepper: Probability that a replaced pixel gets the light value. By default 0.5.

    Raises:
        RuntimeError: a probability is outside of [0, 1].
    """
    _check_probability("prob", prob)
    _check_probability("salt_vs_pepper", salt_vs_pepper)
    channel = layout.find("C") if layout else data.ndim - 1
    shape = [1 if i == channel and not per_channel else extent for i, extent in enumerate(data.shape)]
    draws = _to_device(rng.generator().random(shape, dtype=np.float32), data)
    light = full_scale(data.dtype) if salt_val is None else salt_val
    dark = _min_value(data.dtype) if pepper_val is None else pepper_val
    is_replaced = draws < prob
    is_salt = draws < prob * salt_vs_pepper
    values = torch.where(is_salt, _convert_value(light, data), _convert_value(dark, data))
    return torch.where(is_replaced, values, data)


_PER_SAMPLE_ARGUMENTS = ("prob", "salt_vs_pepper", "salt_val", "pepper_val")


@chunk(salt_and_pepper, "device", per_sample=_PER_SAMPLE_ARGUMENTS)
def _salt_and_pepper_on_device(data: TensorList, a: Arguments) -> Any:
    return _add_noise_on_cpu(
        salt_and_pepper, data, a, _PER_SAMPLE_ARGUMENTS, per_channel=a.per_channel, layout=a.layout
    )


def _check_probability(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise RuntimeError(f"{name} must be between 0 and 1, got {share}")


def _min_value(dtype: torch.dtype) -> float:
    if dtype.is_floating_point:
        return -1.0
    return float(torch.iinfo(dtype).min)


def _convert_value(value: float, data: Tensor) -> Tensor:
    return convert(torch.tensor(float(value), dtype=torch.float64), data.dtype).to(data.device)
