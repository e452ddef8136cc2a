"""Operators that decode and resample audio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs.audio import decode, decode_several
from torchdali.declaration.schema import Arguments, Data, DType, InputConstraints, PerSample
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.audio.samples import rescale_to
from torchdali.kernels.convert import convert
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["audio", "audio_resample"]

_DECODED = (torch.float32, torch.int16, torch.int32)
_RESAMPLED = (
    torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.float32,
)  # fmt: skip

Encoded = Annotated[Tensor, InputConstraints((), (torch.uint8,))]


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
    """Decode audio, and resample it if ``sample_rate`` is passed.

    WAV needs no other package. FLAC, Ogg, MP3 and other formats need the package soundfile (extra ``audio``). AAC,
    ALAC, M4A, the sound of videos, and FLAC with bit depths other than 8, 16 and 24 need the package av (extra
    ``video``). If av is installed, it also decodes all other FLAC files: the samples are the same, and decoding takes a
    fifth less time.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        downmix: True to return the mean of the channels.
        dtype: Output dtype: float32 in the range -1 to 1 (the default), int16 or int32.
        quality: Quality of resampling, from 0 (fastest) to 100 (best). Half of the filter's width is 3 samples for
            quality 0, 16 samples for quality 50, and 64 samples for quality 100.
        sample_rate: Sample rate of the output in Hz. Default: 0, which keeps the file's sample rate.

    Returns:
        Two outputs: the samples ``(samples, channels)``, or ``(samples,)`` if ``downmix`` is True, and the sample rate
        in Hz, a float32 scalar.

    Raises:
        DecodeError: the data is empty, damaged, of an unknown format, or shorter than its header states. A truncated
            WAV file raises no error: its existing samples are returned.
        RuntimeError: the data has more than one axis, the dtype is not supported, or the quality is not in [0, 100].
        MissingExtraError: the format needs soundfile or av, which is not installed.
    """
    if data.ndim != 1:
        raise RuntimeError(f"encoded data must have one dimension, got {data.ndim}. Is the data already decoded?")
    if dtype not in _DECODED:
        raise RuntimeError(f"dtype must be float32, int16 or int32, got {dtype}")
    if sample_rate:
        _check_quality(quality)
    samples, rate = decode(data, sample_rate, downmix, dtype, quality)
    return samples, torch.tensor(rate, dtype=torch.float32)


@chunk(audio, "ragged", allocates=True)
def _audio_batch(data: Sequence[Tensor], a: Arguments) -> Any:
    memory = arrays_of(data) or data
    decoded = None if a.sample_rate else decode_several(memory, a.downmix, a.dtype, a.empty)
    if decoded is None:
        return NotImplemented
    samples, counts, rates = decoded
    return PackedSamples.from_rows(samples, counts), torch.from_numpy(np.array(rates, np.float32))


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
    """Resample a signal with a sinc filter that is windowed by a Hann window.

    Pass exactly one of these: ``scale``, ``out_length``, or both ``in_rate`` and ``out_rate``. The filter has the same
    width for all ratios, even if the sample rate is reduced. If the output dtype isn't the input's dtype, values are
    rescaled from the full scale of one dtype to the full scale of the other. In unsigned dtypes, silence is the middle
    of the range.

    Args:
        data: ``(samples,)`` or ``(samples, channels)``: integers of up to 32 bits, or float32.
        dtype: Output dtype: an integer dtype of up to 32 bits, or float32. Default: the input's dtype.
        in_rate: Sample rate of the input in Hz.
        out_length: Number of samples of the output.
        out_rate: Sample rate of the output in Hz.
        quality: Quality of resampling, from 0 (fastest) to 100 (best). Half of the filter's width is 3 samples for
            quality 0, 16 samples for quality 50, and 64 samples for quality 100.
        scale: Ratio of the output's length to the input's length.

    Raises:
        RuntimeError: none or several of ``scale``, ``out_length`` and the rates are passed, one of these arguments is
            out of range, or a dtype is not supported.
    """
    _check_quality(quality)
    if data.ndim not in (1, 2):
        raise RuntimeError(
            f"audio_resample: the input must have the shape (samples,) or (samples, channels), got {data.ndim} axes"
        )
    kind = dtype or data.dtype
    if kind not in _RESAMPLED or data.dtype not in _RESAMPLED:
        wrong = kind if kind not in _RESAMPLED else data.dtype
        raise RuntimeError(f"audio_resample: dtypes must be integers of up to 32 bits or float32, got {wrong}")
    source_rate, target_rate, length = _ratio(len(data), in_rate, out_rate, scale, out_length)
    if length and not len(data):
        raise RuntimeError(f"audio_resample: out_length must be 0 for an empty input, got {length}")
    return convert(resample(rescale_to(data, kind), source_rate, target_rate, length, quality), kind)


def _check_quality(quality: float) -> None:
    if not 0 <= quality <= 100:
        raise RuntimeError(f"quality must be between 0 and 100, got {quality}")


def _ratio(samples: int, in_rate: Any, out_rate: Any, scale: Any, out_length: Any) -> tuple[float, float, int]:
    """Return the input's rate, the output's rate, and the number of output samples."""
    passed = [in_rate is not None or out_rate is not None, scale is not None, out_length is not None]
    if sum(passed) > 1:
        raise RuntimeError("audio_resample: pass only one of: in_rate and out_rate, scale, or out_length")
    if not any(passed):
        raise RuntimeError("audio_resample: pass scale, out_length, or in_rate and out_rate")
    if out_length is not None:
        if out_length < 0:
            raise RuntimeError(f"out_length must not be negative, got {out_length}")
        return float(samples or 1), float(out_length or 1), int(out_length)
    if scale is not None:
        if scale < 0:
            raise RuntimeError(f"scale must not be negative, got {scale}")
        return _scale_rates(samples, 1.0, float(np.float32(scale)))
    if in_rate is None or out_rate is None:
        raise RuntimeError("audio_resample: in_rate and out_rate must be passed together")
    if in_rate <= 0 or out_rate < 0:
        raise RuntimeError(f"in_rate must be positive and out_rate must not be negative, got {in_rate} and {out_rate}")
    return _scale_rates(samples, float(np.float32(in_rate)), float(np.float32(out_rate)))


def _scale_rates(samples: int, source_rate: float, target_rate: float) -> tuple[float, float, int]:
    return source_rate, target_rate or 1.0, resampled_length(samples, source_rate, target_rate)
