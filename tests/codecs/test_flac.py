"""FLAC by FFmpeg: samples are bit-identical to libsndfile, which decodes unusual and damaged files."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import encoded, speech
from torchdali.codecs import _flac
from torchdali.codecs.audio import decode
from torchdali.errors import DecodeError

pytest.importorskip("av", reason="the extra `video` is not installed")
soundfile = pytest.importorskip("soundfile", reason="the extra `audio` is not installed")

TYPES = (torch.float32, torch.int16, torch.int32)


def by_soundfile(data, dtype=torch.float32):
    name = str(dtype).removeprefix("torch.")
    return soundfile.read(io.BytesIO(data.tobytes()), dtype=name, always_2d=True)


def samples(data, dtype=torch.float32):
    found = _flac.parse_flac(data)
    assert found is not None
    return found.read(np.dtype(str(dtype).removeprefix("torch."))), found.rate


def noise(frames, channels):
    return np.random.default_rng(frames).uniform(-1, 1, (frames, channels))


@pytest.mark.thin(5)
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
@pytest.mark.parametrize("channels", [1, 2, 3, 8])
@pytest.mark.parametrize("make", [speech, noise, lambda frames, channels: np.zeros((frames, channels))])
def test_samples_match_libsndfile(subtype, channels, make):
    for frames in (1, 15, 4096, 4097, 30000):
        data = encoded(make(frames, channels), 22050, subtype=subtype)
        for dtype in TYPES:
            found, rate = samples(data, dtype)
            expected, known = by_soundfile(data, dtype)
            assert rate == known and found.dtype == expected.dtype
            assert np.array_equal(found, expected), (frames, dtype)


def test_metadata_blocks_are_skipped():
    data = encoded(speech(9000))
    picture = bytes([6, 0, 0x20, 0]) + b"\xff\xf8" * 0x1000  # which looks like the start of a frame
    found, _ = samples(np.frombuffer(data[:42].tobytes() + picture + data[42:].tobytes(), np.uint8))
    assert np.array_equal(found, by_soundfile(data)[0])


def test_other_memory():
    data = encoded(speech(5000))
    apart = np.repeat(data, 2)[::2]
    apart.flags.writeable = False
    assert np.array_equal(samples(apart)[0], by_soundfile(data)[0])


def _changed(data, at, value):
    data = data.copy()
    data[at] = value
    return data


_SPEECH = encoded(speech(20000), 16000)
DAMAGED = {
    "a bit of the sound": _changed(_SPEECH, len(_SPEECH) // 2, _SPEECH[len(_SPEECH) // 2] ^ 4),
    "the end": _SPEECH[: len(_SPEECH) // 2],
    "no sound": _SPEECH[:42],
    "no description": _SPEECH[:20],
    "no last block": _changed(_SPEECH, 4, 0)[:42],
    "more frames": _changed(_SPEECH, 25, _SPEECH[25] + 1),
    "fewer frames": _changed(_SPEECH, 25, _SPEECH[25] - 1),
    "an unknown number, damaged": _changed(_changed(_SPEECH, slice(21, 26), [_SPEECH[21] & 0xF0, 0, 0, 0, 0]), 900, _SPEECH[900] ^ 4),
    "another rate": _changed(_SPEECH, 19, _SPEECH[19] ^ 1),
    "more channels": _changed(_SPEECH, 20, _SPEECH[20] | 2),
    "many more frames": _changed(_SPEECH, slice(21, 26), [_SPEECH[21] | 15, 255, 255, 255, 255]),
    "24 bits": _changed(_SPEECH, slice(20, 22), [_SPEECH[20] | 1, 0x70 | _SPEECH[21] & 0xF]),
    "tags before": np.concatenate([np.frombuffer(b"ID3\x03\0\0\0\0\0\0", np.uint8), _SPEECH]),
}


def falls_back(data):
    try:
        samples(data)
    except (AssertionError, DecodeError):
        return True
    return False


def outcome(data):
    try:
        found, rate = decode(torch.from_numpy(data))
    except DecodeError as error:
        return str(error)
    return rate, found.tolist()


@pytest.mark.parametrize("name", DAMAGED)
def test_libsndfile_decodes_all_other_files(name, request):
    data = DAMAGED[name]
    assert falls_back(data)
    found = outcome(data)
    request.getfixturevalue("without_pyav")
    assert found == outcome(data)


@pytest.mark.slow
def test_damaged_files_decode_as_with_libsndfile_or_not_at_all():
    rng, sound = np.random.default_rng(4), encoded(speech(3000), 16000)
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        data = sound.copy()
        for at in rng.integers(42, len(data), rng.integers(1, 4)):
            data[at] = rng.integers(0, 256)
        outcomes[falls_back(data)] += 1
        if not falls_back(data):
            assert np.array_equal(samples(data)[0], by_soundfile(data)[0])
    assert min(outcomes.values()) > 10, outcomes


def test_without_av(without_pyav):
    data = encoded(speech(5000))
    assert falls_back(data)
    assert np.array_equal(decode(torch.from_numpy(data))[0].numpy(), by_soundfile(data)[0])
