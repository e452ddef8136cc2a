"""Audio: decoding and resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs.audio import decode, decode_several
from torchdali.declaration.schema import Arguments, Data, DType, PerSample, Takes
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.audio.samples import on_scale_of
from torchdali.kernels.convert import convert
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["audio", "audio_resample"]

_DECODED = (torch.float32, torch.int16, torch.int32)
_RESAMPLED = (
    torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.float32,
)  # fmt: skip

Encoded = Annotated[Tensor, Takes((), (torch.uint8,))]


@operator(name="decoders.audio", layout="", devices=("cpu",))
def audio(
    data: Encoded,
    /,
    *,
    downmix: bool = False,
    dtype: DType = torch.float32,
    quality: float = 50.0,
    sample_rate: PerSample[float] = 0.0,
) -> tuple[Data, Data]:
    """Decode audio: WAV by itself, FLAC, Ogg, MP3 and others by the package soundfile (extra ``audio``).

    The package av (extra ``video``) decodes AAC, ALAC, M4A, the sound of videos, and FLAC with bit depths other than 8,
    16 and 24. With av, other FLAC takes a fifth less time, and has the same samples.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        downmix: Return the mean of the channels.
        dtype: float32 (full scale is 1), int16 or int32.
        quality: Quality of resampling: 0, 50 and 100 select windows of 3, 16 and 64 lobes.
        sample_rate: In Hz; audio with another rate is resampled. 0 keeps the rate.

    Returns:
        ``(samples, channels)``, or ``(samples,)`` with ``downmix``; and the sample rate, a float32 scalar.

    Raises:
        DecodeError: the data is empty, damaged or of an unknown format, or ends before the length that its header
            states. A truncated WAV file gives the samples that it has.
        RuntimeError: the data has more than one dimension, another type, or a quality that is not in 0 to 100.
        MissingExtraError: the format needs soundfile or av, which is not installed.
    """
    if data.ndim != 1:
        raise RuntimeError(f"encoded data has one dimension, not {data.ndim}: is it decoded already?")
    if dtype not in _DECODED:
        raise RuntimeError(f"unsupported output type: {dtype}; it is float32, int16 or int32")
    if sample_rate:
        _check_quality(quality)
    samples, rate = decode(data, sample_rate, downmix, dtype, quality)
    return samples, torch.tensor(rate, dtype=torch.float32)


@chunk(audio, "ragged", allocates=True)
def _audio_together(data: Sequence[Tensor], a: Arguments) -> Any:
    memory = arrays_of(data) or data
    sounds = None if a.sample_rate else decode_several(memory, a.downmix, a.dtype, a.empty)
    if sounds is None:
        return NotImplemented
    samples, counts, rates = sounds
    return PackedSamples.of_rows(samples, counts), torch.from_numpy(np.array(rates, np.float32))


@operator
def audio_resample(
    data: Data,
    /,
    *,
    dtype: DType | None = None,
    in_rate: PerSample[float] | None = None,
    out_length: PerSample[int] | None = None,
    out_rate: PerSample[float] | None = None,
    quality: float = 50.0,
    scale: PerSample[float] | None = None,
) -> Data:
    """Resample a signal, by a sinc under a Hann window.

    The ratio is ``scale``, or ``out_rate / in_rate``, or follows from ``out_length``; pass one of these.
    The window is not widened where the rate goes down. A result of another type is scaled from full scale to full
    scale: for unsigned types, silence is in the middle.

    Args:
        data: ``(samples,)`` or ``(samples, channels)``: integers of up to 32 bits, or float32.
        dtype: Output dtype, one of the input's; the input's dtype by default.
        in_rate: Sample rate of the input.
        out_length: Samples of the result.
        out_rate: Sample rate of the result.
        quality: From 0 to 100; 0, 50 and 100 select 3, 16 and 64 lobes of the window.
        scale: Samples of the result for one of the input.

    Raises:
        RuntimeError: no ratio, or more than one; a negative one; a rate that is not positive; another type.
    """
    _check_quality(quality)
    if data.ndim not in (1, 2):
        raise RuntimeError(f"audio_resample: (samples,) or (samples, channels), not {data.ndim} axes")
    kind = dtype or data.dtype
    if kind not in _RESAMPLED or data.dtype not in _RESAMPLED:
        wrong = kind if kind not in _RESAMPLED else data.dtype
        raise RuntimeError(f"unsupported type: {wrong}; integers of up to 32 bits, or float32")
    before, after, length = _ratio(len(data), in_rate, out_rate, scale, out_length)
    if length and not len(data):
        raise RuntimeError(f"audio_resample: out_length={length}, and the input is empty")
    return convert(resample(on_scale_of(data, kind), before, after, length, quality), kind)


def _check_quality(quality: float) -> None:
    if not 0 <= quality <= 100:
        raise RuntimeError(f"quality={quality}: it is in 0 to 100")


def _ratio(samples: int, in_rate: Any, out_rate: Any, scale: Any, out_length: Any) -> tuple[float, float, int]:
    """Return both rates, and the length of the result."""
    ways = [in_rate is not None or out_rate is not None, scale is not None, out_length is not None]
    if sum(ways) > 1:
        raise RuntimeError("audio_resample: give the rates, scale or out_length, not several of them")
    if not any(ways):
        raise RuntimeError("audio_resample: give scale, out_length, or in_rate and out_rate")
    if out_length is not None:
        if out_length < 0:
            raise RuntimeError(f"out_length={out_length}: it is not negative")
        return float(samples or 1), float(out_length or 1), int(out_length)
    if scale is not None:
        if scale < 0:
            raise RuntimeError(f"scale={scale}: it is not negative")
        return _scale_rates(samples, 1.0, float(np.float32(scale)))
    if in_rate is None or out_rate is None:
        raise RuntimeError("audio_resample: in_rate and out_rate belong together")
    if in_rate <= 0 or out_rate < 0:
        raise RuntimeError(f"in_rate={in_rate}, out_rate={out_rate}: rates are positive")
    return _scale_rates(samples, float(np.float32(in_rate)), float(np.float32(out_rate)))


def _scale_rates(samples: int, before: float, after: float) -> tuple[float, float, int]:
    return before, after or 1.0, resampled_length(samples, before, after)
