"""Decoding audio: WAV of all widths, damaged files, wrong headers, and features that need the package soundfile."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import WIDTHS, chunk, encoded, raw, speech, wav
from torchdali.codecs.audio import decode
from torchdali.errors import DecodeError, MissingExtraError

SIGNAL = speech(200, 2)


def decoded(data, **arguments):
    return decode(torch.from_numpy(np.array(data)), **arguments)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("before", [b"", b"LIST\x03\x00\x00\x00abc\x00", chunk(b"fact", b"1234")])
def test_all_widths(width, before):
    for extended in (False, True):
        found, rate = decoded(wav(SIGNAL, 11025, width, extended=extended, before=before))
        assert rate == 11025 and found.shape == (200, 2) and found.dtype == torch.float32
        bits = WIDTHS[width][1]
        assert np.abs(found.numpy() - SIGNAL).max() <= (2.0 ** (1 - bits) if bits < 32 else 1e-7)


def test_integers_are_shifted():
    found, _ = decoded(wav(SIGNAL, width="s24"), dtype=torch.int32)
    assert not (found & 0xFF).any() and found.dtype == torch.int32
    narrow, _ = decoded(wav(SIGNAL, width="s24"), dtype=torch.int16)
    assert torch.equal(narrow, (found >> 16).to(torch.int16))
    assert decoded(wav(SIGNAL * 0, width="u8"), dtype=torch.int16)[0].abs().max() == 0


def test_floats_beyond_full_scale_are_not_clipped():
    found, _ = decoded(wav(SIGNAL * 100, width="f32"))
    assert np.array_equal(found.numpy(), (SIGNAL * 100).astype(np.float32))


def test_downmix_and_resampling():
    file = wav(SIGNAL)
    mono, rate = decoded(file, downmix=True, sample_rate=16000.0)
    assert mono.shape == (400,) and rate == 16000
    stereo, _ = decoded(file, sample_rate=16000.0)
    assert torch.allclose(stereo.mean(1), mono, atol=1e-6)
    assert decoded(file, sample_rate=8000.0)[0].shape == (200, 2)
    assert decoded(file, downmix=True, dtype=torch.int16)[0].dtype == torch.int16


def test_the_input_is_not_shared():
    for width, dtype in (("s16", torch.int16), ("s32", torch.int32), ("f32", torch.float32)):
        file = wav(SIGNAL, width=width)
        before = file.copy()
        decoded(file, dtype=dtype)[0].zero_()
        assert np.array_equal(file, before)


@pytest.mark.parametrize("size", [0, 2**31, 2**32 - 1])
def test_wrong_data_sizes_are_ignored(size):
    """A stream whose writer did not know its length is read to its end."""
    file = wav(SIGNAL)
    file[40:44] = np.frombuffer(struct.pack("<I", size), np.uint8)
    assert len(decoded(file)[0]) == 200


@pytest.mark.parametrize("data", [b"", b"RIFF", b"RIFF\0\0\0\0WAVE", bytes(range(100)), b"fLaC" + bytes(60)])
def test_refused(data):
    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    with pytest.raises(DecodeError):
        decoded(np.frombuffer(data, np.uint8))


def test_other_types_are_refused():
    with pytest.raises(RuntimeError, match="unsupported output type"):
        decoded(wav(SIGNAL), dtype=torch.uint8)


@pytest.mark.parametrize(("format", "subtype"), [("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")])
def test_other_formats(format, subtype):
    found, rate = decoded(encoded(speech(4000), 16000, format, subtype))
    assert rate == 16000 and found.shape[1] == 1 and abs(len(found) - 4000) <= 2400
    if format == "FLAC":
        assert np.abs(found.numpy() - speech(4000)).max() < 1e-4


@pytest.mark.parametrize(("format", "subtype"), [("FLAC", "PCM_16"), ("OGG", "VORBIS")])
def test_a_truncated_stream_is_an_error(format, subtype):
    file = encoded(speech(20000), 16000, format, subtype)
    with pytest.raises(DecodeError):
        decoded(file[: len(file) // 2])


def test_a_wrong_flac_header_allocates_no_memory():
    file = encoded(speech(4000), 16000)
    file[21:26] = np.frombuffer(bytes([file[21] | 0x0F, 255, 255, 255, 255]), np.uint8)  # 2**36 - 1 frames
    with pytest.raises(DecodeError):
        decoded(file)


def test_a_wrong_wav_header_allocates_no_memory():
    file = wav(SIGNAL, rate=1)
    assert decoded(file)[1] == 1
    with pytest.raises(DecodeError, match="1 Hz"):
        decoded(file, sample_rate=48000.0)


def test_without_soundfile(monkeypatch, without_pyav):
    file = encoded(speech(400))
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtraError, match=r"FLAC.*soundfile.*\[audio\]"):
        decoded(file)
    assert decoded(wav(SIGNAL))[0].shape == (200, 2)


def _mutants(count, seed):
    """Yield damaged files: bytes are changed, removed or repeated, or the end is missing."""
    rng = np.random.default_rng(seed)
    sources = [wav(SIGNAL, width=w, extended=i % 2 == 0) for i, w in enumerate(WIDTHS)]
    for format, subtype in (("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III"), ("WAV", "IMA_ADPCM")):
        sources.append(encoded(speech(3000), 16000, format, subtype))
    for i in range(count):
        data = sources[i % len(sources)].copy()
        head = 64 if rng.random() < 0.5 else len(data)
        for at in rng.integers(0, min(head, len(data)), rng.integers(1, 9)):
            data[at] = rng.integers(0, 256)
        cut, end = sorted(rng.integers(0, len(data), 2))
        way = rng.integers(0, 4)
        yield {0: data, 1: data[:end], 2: np.delete(data, slice(cut, min(end, cut + 40))), 3: np.insert(data, cut, data[cut:end][:40])}[int(way)]


def _fuzz(count, seed):
    outcomes = {"decoded": 0, "refused": 0}
    for data in _mutants(count, seed):
        try:
            found, _ = decoded(data, sample_rate=16000.0, downmix=True)
        except DecodeError:
            outcomes["refused"] += 1
        else:
            outcomes["decoded"] += 1
            assert found.ndim == 1 and found.dtype == torch.float32
    assert min(outcomes.values()) > count // 20, outcomes


def test_damaged_files():
    _fuzz(200, 1)


@pytest.mark.slow
def test_many_damaged_files():
    import resource

    _fuzz(500, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _fuzz(10_000, 3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB


def test_the_wav_writer_uses_the_stated_width():
    assert len(raw(SIGNAL, "s24")) == 200 * 2 * 3
