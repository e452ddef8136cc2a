"""Decode audio.

`_wav` decodes WAV files, FFmpeg (PyAV) decodes FLAC and formats such as AAC, and libsndfile decodes the other formats.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._ffmpeg_sound import decode_ffmpeg
from torchdali.codecs._flac import Flac, check_bits, drop_last_block, parse_flac
from torchdali.codecs._mp3 import strip_garbage
from torchdali.codecs._sound_headers import BY_FFMPEG, correct_length, detect_format, strip_tags, unwrap_wave
from torchdali.codecs._soundfile import decode_soundfile
from torchdali.codecs._wav import Array, Wav, parse, parse_words, write_words
from torchdali.errors import DecodeError
from torchdali.kernels.audio.resample import resample, resampled_length
from torchdali.kernels.audio.samples import from_unit
from torchdali.kernels.memory import Allocator

__all__ = ["decode", "decode_part", "decode_several"]

_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
}

_MAX_SAMPLES_PER_BYTE = 64  # maximum number of samples per byte that a header may claim
_SHORT_FILE = 1 << 15  # bytes; files whose mean size is smaller are converted together in one call
_MAX_UPSAMPLING = 1024  # maximum factor of resampling: a damaged header with a tiny rate could otherwise exhaust memory


def decode(
    buffer: Tensor,
    sample_rate: float = 0.0,
    downmix: bool = False,
    dtype: torch.dtype = torch.float32,
    quality: float = 50.0,
) -> tuple[Tensor, float]:
    """Decode an audio file.

    Args:
        buffer: ``(n,)`` uint8, the bytes of the file.
        sample_rate: Rate of the result in Hz; 0 keeps the file's rate.
        downmix: Return the mean of the channels.
        dtype: float32 (full scale 1), int16 or int32.
        quality: Quality of resampling, from 0 to 100; see `kernels.audio.resample`.

    Returns:
        ``(samples, channels)``, or ``(samples,)`` with `downmix`; and the rate of the result in Hz.

    Raises:
        DecodeError: The data is damaged, or the format is unknown. A truncated WAV file isn't an error; its complete
            samples are returned.
        MissingExtraError: The format needs the package soundfile or av, which is not installed.
        RuntimeError: The dtype is not supported.
    """
    if dtype not in _DTYPES:
        raise RuntimeError(f"unsupported output type: {dtype}; must be float32, int16 or int32")
    encoded = buffer.numpy()
    wav = parse(encoded)
    rate, channels = (wav.rate, wav.channels) if wav else (0, 0)
    if wav is not None and (sample_rate <= 0 or sample_rate == rate) and (channels == 1 or not downmix):
        samples = torch.from_numpy(wav.read(_DTYPES[dtype]))
        return (samples[:, 0] if downmix else samples), sample_rate or float(rate)
    return _decode(encoded, sample_rate, downmix, dtype, quality)


def decode_several(
    buffers: Sequence[Tensor] | Sequence[Array], downmix: bool, dtype: torch.dtype, empty: Allocator
) -> tuple[Tensor, list[int], list[int]] | None:
    """Decode several WAV and FLAC files with equal numbers of channels in one call; see `decode`.

    Args:
        buffers: ``(n,)`` uint8 each; arrays must be contiguous and writable.
        empty: Function that returns memory for the samples.

    Returns:
        The samples of all files, ``(samples, channels)`` or, with `downmix`, ``(samples,)``; the number of samples of
        each file; and the rate of each file. None if a file has another format or number of channels, or if channels
        must be mixed in an integer dtype.
    """
    if not buffers or dtype not in _DTYPES:
        return None
    files = [each.numpy() if isinstance(each, Tensor) else each for each in buffers]
    words = parse_words(files)
    if words is not None and not (downmix and words[0] > 1):
        return _decode_words(words, downmix, dtype, empty)
    sounds = _parse_headers(files)
    if sounds is None or (downmix and sounds[0].channels > 1 and dtype != torch.float32):
        return None
    return _decode_each(sounds, downmix, dtype, empty)


def _decode_words(
    words: tuple[int, list[int], list[Array]], downmix: bool, dtype: torch.dtype, empty: Allocator
) -> tuple[Tensor, list[int], list[int]]:
    """Convert the 16-bit samples of several files; short files are converted together in one call."""
    channels, rates, parts = words
    counts = [len(part) // (2 * channels) for part in parts]
    samples = empty((sum(counts), channels), dtype)
    out = samples.numpy().reshape(-1)
    if 2 * len(out) < _SHORT_FILE * len(parts):
        write_words(np.concatenate(parts), out)
    else:
        ends = itertools.accumulate(counts, initial=0)
        for part, (begin, end) in zip(parts, itertools.pairwise(ends), strict=True):
            write_words(part, out[begin * channels : end * channels])
    return (samples[:, 0] if downmix else samples), counts, rates


def _parse_headers(files: Sequence[Array]) -> list[Wav | Flac] | None:
    """Read the headers of files; return None unless all are plain WAV or FLAC with equal numbers of channels."""
    sounds: list[Wav | Flac] = []
    for file in files:
        sound = parse(file) or parse_flac(file)
        if sound is None or (isinstance(sound, Flac) and not sound.frames):
            return None
        if sound.channels * sound.frames > _MAX_SAMPLES_PER_BYTE * len(file):
            return None
        if sounds and sound.channels != sounds[0].channels:
            return None
        sounds.append(sound)
    return sounds


def _decode_each(
    sounds: Sequence[Wav | Flac], downmix: bool, dtype: torch.dtype, empty: Allocator
) -> tuple[Tensor, list[int], list[int]]:
    counts, channels = [sound.frames for sound in sounds], sounds[0].channels
    samples = empty((sum(counts), 1 if downmix else channels), dtype)
    for sound, target in zip(sounds, samples.split_with_sizes(counts), strict=True):
        if downmix and channels > 1:
            target[:, 0].numpy()[...] = _mix_channels(sound.read(_DTYPES[dtype]))
        else:
            sound.read(_DTYPES[dtype], target.numpy())
    return (samples[:, 0] if downmix else samples), counts, [sound.rate for sound in sounds]


def decode_part(
    buffer: Tensor,
    offset: float,
    duration: float,
    sample_rate: float = 0.0,
    downmix: bool = False,
    dtype: torch.dtype = torch.float32,
    quality: float = 50.0,
) -> tuple[Tensor, int]:
    """Decode a part of an audio file; see `decode` for the other arguments.

    Args:
        offset: Start of the part in seconds; if negative, the start of the file.
        duration: Length of the part in seconds. If the file ends earlier, the part is shorter. If negative, the part
            extends to the end of the file.

    Returns:
        The samples, and the rate of the file in Hz.

    Raises:
        DecodeError: As for `decode`; or the part begins after the end of the file.
        MissingExtraError: See `decode`.
        RuntimeError: See `decode`.
    """
    if dtype not in _DTYPES:
        raise RuntimeError(f"unsupported output type: {dtype}; must be float32, int16 or int32")
    encoded = buffer.numpy()
    wav = parse(encoded)
    if wav is not None:
        frame = wav.channels * wav.bits // 8
        begin, end = _find_bounds(len(wav.data) // frame, wav.rate, offset, duration)
        part = wav._replace(data=wav.data[begin * frame : end * frame])

        def read(dtype: torch.dtype) -> tuple[Array, int]:
            return part.read(_DTYPES[dtype]), part.rate

        return _read_converted(read, sample_rate, downmix, dtype, quality)

    def read_any(dtype: torch.dtype) -> tuple[Array, int]:
        samples, rate = _decode_samples(encoded, dtype)
        begin, end = _find_bounds(len(samples), rate, offset, duration)
        return samples[begin:end], rate

    return _read_converted(read_any, sample_rate, downmix, dtype, quality)


def _find_bounds(frames: int, rate: int, offset: float, duration: float) -> tuple[int, int]:
    begin = int(offset * rate) if offset > 0 else 0
    if begin > frames:
        raise DecodeError(f"the offset must be at most the recording's length, {frames / rate:g} s, got {offset:g} s")
    end = frames if duration < 0 else min(frames, begin + int(duration * rate))
    return begin, end


def _decode(
    encoded: Array, sample_rate: float, downmix: bool, dtype: torch.dtype, quality: float
) -> tuple[Tensor, float]:
    samples, rate = _read_converted(functools.partial(_decode_samples, encoded), sample_rate, downmix, dtype, quality)
    return samples, sample_rate or float(rate)


def _read_converted(
    read: Callable[[torch.dtype], tuple[Array, int]],
    sample_rate: float,
    downmix: bool,
    dtype: torch.dtype,
    quality: float,
) -> tuple[Tensor, int]:
    """Read, mix and resample samples.

    Integers are read only if the samples are neither mixed nor resampled.
    """
    samples, rate = read(dtype)
    resampled = sample_rate > 0 and sample_rate != rate
    mixed = downmix and samples.shape[1] > 1
    if (resampled or mixed) and dtype != torch.float32:
        samples, rate = read(torch.float32)
    sound = torch.from_numpy(_mix_channels(samples) if downmix else samples)
    if resampled:
        if sample_rate > _MAX_UPSAMPLING * rate:
            raise DecodeError(
                f"the sample rate must be at most {_MAX_UPSAMPLING} times the recording's {rate} Hz, "
                f"got {sample_rate:g} Hz"
            )
        length = resampled_length(len(sound), rate, sample_rate)
        sound = resample(sound, rate, sample_rate, length, quality)
    return from_unit(sound, dtype), rate


def _mix_channels(samples: Array) -> Array:
    """Return the mean of the channels, added in DALI's order."""
    if samples.shape[1] == 1:
        return samples[:, 0]
    weight = np.float32(1.0 / samples.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        mean = samples[:, 0] * weight
        for channel in samples.T[1:]:
            mean += channel * weight
    return mean


def _decode_samples(encoded: Array, dtype: torch.dtype) -> tuple[Array, int]:
    if not len(encoded):
        raise DecodeError("the data is empty")
    encoded = strip_tags(encoded)
    if not len(encoded):
        raise DecodeError("the file has no data after its ID3 tag")
    try:
        return _decode_with_first_match(encoded, _DTYPES[dtype])
    except DecodeError:
        shorter = drop_last_block(encoded)
        if shorter is None:
            raise
        return _decode_with_first_match(shorter, _DTYPES[dtype])


def _decode_with_first_match(encoded: Array, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Decode with the first decoder that supports the data."""
    sound = parse(encoded) or parse_flac(encoded)
    if sound is not None:
        try:
            return sound.read(dtype), sound.rate
        except DecodeError:
            pass  # libsndfile decodes the file or raises the error
    encoded = unwrap_wave(encoded)
    format_name = detect_format(encoded)
    if format_name == "unknown format" or encoded[:3].tobytes() == b"ID3":
        encoded = strip_garbage(encoded)
        format_name = detect_format(encoded)
    purpose = f"audio ({format_name})"
    if format_name in BY_FFMPEG:
        return decode_ffmpeg(encoded, dtype, purpose)
    if format_name == "FLAC":
        check_bits(encoded)
    return decode_soundfile(correct_length(encoded), dtype, purpose)
