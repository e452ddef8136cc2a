"""Audio formats that only FFmpeg decodes: length and scale match the same audio in a format of libsndfile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import av_encoded, encoded, flac, speech, wav
from tests.helpers.encoded_video import make
from torchdali import fn, pipeline_def
from torchdali.codecs.audio import decode, decode_part
from torchdali.codecs.signatures import describe_content
from torchdali.errors import DecodeError, MissingExtraError

av = pytest.importorskip("av", reason="the extra `video` is not installed")

RATE = 16000
SOUND = speech(20000, 2, seed=5) * 0.8


def decoded(data, **arguments):
    found, rate = decode(torch.from_numpy(np.array(data)), **arguments)
    return found.numpy(), rate


def aligned(found, wanted, most=3000):
    """Return the greatest difference from audio that starts up to `most` samples later."""
    count = min(len(wanted), len(found)) - most
    return min(float(np.abs(found[at : at + count] - wanted[:count]).max()) for at in range(most))


EXACT = [
    ("alac", "ipod", "s16p", "s16"), ("alac", "ipod", "s32p", "s24"), ("alac", "mov", "s16p", "s16"), ("alac", "matroska", "s16p", "s16"),
    ("flac", "mp4", "s16", "s16"), ("flac", "matroska", "s16", "s16"), ("flac", "matroska", "s32", "s24"), ("pcm_s16le", "mov", None, "s16"),
    ("flac", "ogg", "s16", "s16"), ("flac", "ogg", "s32", "s24"), ("pcm_s24le", "mov", None, "s24"), ("pcm_s32be", "mov", None, "s32"), ("pcm_u8", "matroska", None, "u8"), ("pcm_s16le", "avi", None, "s16"),
]  # fmt: skip


@pytest.mark.parametrize("case", EXACT, ids=lambda case: f"{case[0]}, {case[3]} in {case[1]}")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.int32])
def test_lossless_audio_equals_wav(case, dtype):
    codec, container, format, width = case
    found, rate = decoded(av_encoded(codec, container, SOUND, RATE, format=format), dtype=dtype)
    wanted, _ = decoded(wav(SOUND, RATE, width), dtype=dtype)
    assert rate == RATE and found.shape == wanted.shape == SOUND.shape and found.dtype == wanted.dtype
    step = {torch.float32: 1.0, torch.int16: 2.0**15, torch.int32: 2.0**31}[dtype] * 2.0 ** (1 - {"u8": 8, "s16": 16, "s24": 24, "s32": 24}[width])
    least = 1e-7 if dtype == torch.float32 else 1
    assert np.abs(found.astype(float) - wanted.astype(float)).max() <= max(step, least) * 1.01  # FFmpeg's encoder rounds differently


@pytest.mark.thin(3)
@pytest.mark.parametrize("container", ["ipod", "mp4", "adts", "matroska", "avi", "flv", "mpegts", "mov"])
@pytest.mark.parametrize("channels", [1, 2])
def test_aac(container, channels):
    samples = np.repeat(speech(20000, 1, seed=7), channels, 1)
    data = av_encoded("aac", container, samples, RATE)
    found, rate = decoded(data)
    assert rate == RATE and found.dtype == np.float32 and found.shape[1] == channels
    assert 20000 <= len(found) <= 20000 + 3 * 1024
    assert 0.5 < np.abs(found).max() < 1.2 and aligned(found, samples) < 0.25
    whole, _ = decoded(data, dtype=torch.int16)
    assert whole.dtype == np.int16 and np.abs(whole / 32767 - np.clip(found, -1, 1)).max() < 1e-4


LOSSY = [("libmp3lame", "mp3", "matroska"), ("libopus", "ogg", "webm"), ("libopus", "ogg", "matroska")]


@pytest.mark.parametrize(("codec", "bare", "container"), LOSSY)
def test_results_do_not_depend_on_the_container(codec, bare, container):
    rate = 48000
    samples = speech(40000, 2, seed=2)
    one, other = decoded(av_encoded(codec, bare, samples, rate)), decoded(av_encoded(codec, container, samples, rate))
    assert one[1] == other[1] == rate and one[0].shape == other[0].shape
    assert np.abs(one[0] - other[0]).max() < 1e-3


@pytest.mark.parametrize("arguments", [{"downmix": True}, {"sample_rate": 8000.0}, {"sample_rate": 22050.0, "downmix": True, "dtype": torch.int16}])
def test_dtype_downmix_and_rate_are_applied(arguments):
    data = av_encoded("alac", "ipod", SOUND, RATE, format="s16p")
    found, rate = decoded(data, **arguments)
    wanted, same = decoded(encoded(SOUND, RATE), **arguments)
    assert rate == same and found.shape == wanted.shape
    assert np.abs(found.astype(float) - wanted).max() <= (2 if found.dtype == np.int16 else 5e-5)
    part, _ = decode_part(torch.from_numpy(data), 0.25, 0.5, **arguments)
    assert abs(len(part) - len(found) * 0.5 / (20000 / RATE)) <= 2


def test_in_a_pipeline():
    files = [av_encoded("aac", "ipod", SOUND, RATE), wav(SOUND, RATE), encoded(SOUND, RATE), av_encoded("alac", "ipod", SOUND, RATE)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define():
        return tuple(fn.decoders.audio(fn.external_source(lambda: files), downmix=True))

    sounds, rates = define().run()
    assert [float(rate) for rate in rates.as_array()] == [RATE] * 4
    assert [len(sounds.at(i)) for i in range(4)][1:] == [20000] * 3 and len(sounds.at(0)) >= 20000


def test_the_audio_of_a_video(tmp_path):
    path = str(tmp_path / "film.mp4")
    with av.open(path, "w") as file:
        video, audio = file.add_stream("mpeg4", rate=25), file.add_stream("aac", RATE, layout="mono")
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        for _ in range(5):
            file.mux(video.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
        for begin in range(0, 8192, 1024):
            frame = av.AudioFrame.from_ndarray(SOUND[begin : begin + 1024, :1].T.astype(np.float32).copy(), format="fltp", layout="mono")
            frame.rate = RATE
            file.mux(audio.encode(frame))
        file.mux(video.encode(None))
        file.mux(audio.encode(None))
    found, rate = decoded(np.fromfile(path, np.uint8))
    assert rate == RATE and 8192 <= len(found) <= 8192 + 2048


# ---------------------------------------------------------------- FLAC of unusual bits


@pytest.mark.parametrize("states_length", [True, False])
@pytest.mark.parametrize("bits", [4, 8, 12, 13, 15, 16, 18, 20, 24, 30, 32])
def test_flac_of_any_bits(bits, states_length):
    samples = np.random.default_rng(bits).integers(-(1 << bits - 1), 1 << bits - 1, (1300, 2))
    data = flac(samples, bits, states_length=states_length)
    assert np.array_equal(decoded(data, dtype=torch.int32)[0], samples << 32 - bits)
    assert np.allclose(decoded(data)[0], samples / 2.0 ** (bits - 1), atol=1e-7)
    assert np.array_equal(decoded(data, dtype=torch.int16)[0], (samples << 32 - bits) >> 16)
    tagged = np.concatenate([np.frombuffer(b"ID3\3\0\0\0\0\0\5hello", np.uint8), data])
    assert np.array_equal(decoded(tagged, dtype=torch.int32)[0], samples << 32 - bits)


@pytest.mark.parametrize("bits", [12, 20, 32])
def test_flac_of_unusual_bits_without_pyav(without_pyav, bits):
    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    with pytest.raises(MissingExtraError, match=rf"FLAC of {bits} bits.*'av'"):
        decoded(flac(np.zeros((600, 1), int), bits))


@pytest.mark.parametrize("bits", [12, 20])
def test_the_error_names_damaged_flac_of_unusual_bits(bits):
    data = flac(np.arange(1200).reshape(-1, 1) % 1000, bits)
    data[len(data) // 2] ^= 1
    with pytest.raises(DecodeError, match=f"FLAC of {bits} bits|do not match the checksum or count"):
        decoded(data)


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("container", ["adts", "matroska", "mp4"])
def test_truncated_files_without_a_length_are_read_to_their_end(container, share):
    options = {"movflags": "frag_keyframe+empty_moov"} if container == "mp4" else {}
    data = av_encoded("aac", container, speech(60000, seed=1), RATE, **options)
    whole = decoded(data)[0]
    try:
        found = decoded(data[: int(share * len(data))])[0]
    except DecodeError:
        assert container == "mp4"  # a fragment lists its samples
    else:
        assert share - 0.35 < len(found) / len(whole) < share + 0.1 and np.array_equal(found, whole[: len(found)])


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("codec", ["aac", "alac"])
def test_a_truncated_file_with_a_length_is_an_error(tmp_path, codec, share):
    data = av_encoded(codec, "ipod", speech(60000, seed=1), RATE, path=str(tmp_path / "sound.m4a"), movflags="faststart")
    assert data.tobytes().index(b"moov") < data.tobytes().index(b"mdat")
    with pytest.raises(DecodeError, match="M4A"):
        decoded(data[: int(share * len(data))])


@pytest.mark.parametrize("at", [9000, 30000, 50000])
def test_a_damaged_page_of_ogg_is_an_error(at):
    data = av_encoded("flac", "ogg", speech(90000, 2, seed=5), RATE).copy()
    assert len(decoded(data)[0]) == 90000
    data[at] ^= 4
    with pytest.raises(DecodeError, match=r"FLAC in Ogg.*are missing"):
        decoded(data)


def test_damage_in_the_middle_is_an_error():
    data = av_encoded("alac", "ipod", SOUND, RATE, format="s16p")
    place = data.tobytes().index(b"mdat") + 5000
    data[place : place + 600] = 255
    with pytest.raises(DecodeError):
        decoded(data)


def test_a_stream_that_begins_in_the_middle():
    data = av_encoded("aac", "flv", speech(400_000, seed=1), RATE).tobytes()
    at = 13
    while at < len(data) * 3 // 4:
        at += 15 + int.from_bytes(data[at + 1 : at + 4], "big")
    tag = b"\x09\0\0\x0a" + data[at + 4 : at + 8] + bytes(3) + b"\x12\0" + bytes(8)  # a frame of a video
    with pytest.raises(DecodeError, match="a second stream begins in the middle"):
        decoded(np.frombuffer(data[:at] + tag + b"\0\0\0\x15" + data[at:], np.uint8))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="MALLOC_PERTURB_ is of glibc")
def test_damaged_files_deliver_only_decoded_data(tmp_path):
    (tmp_path / "sounds").mkdir()
    samples = speech(9000, 2, seed=4)
    for number, (codec, container, format, piped) in enumerate((
        ("aac", "ipod", None, False), ("alac", "ipod", "s16p", False), ("aac", "adts", None, True), ("aac", "matroska", None, True),
        ("flac", "flac", None, False), ("flac", "flac", None, True), ("libmp3lame", "mp3", None, False), ("libmp3lame", "mp3", None, True),
    )):  # fmt: skip
        av_encoded(codec, container, samples, RATE, format, piped).tofile(tmp_path / "sounds" / str(number))
    flac((samples * 2**19).astype(int), 20).tofile(tmp_path / "sounds" / "flac of 20 bits")
    script = [sys.executable, "-m", "tests.helpers.damaged_sounds", str(tmp_path / "sounds"), "400", "0"]
    outputs = [
        subprocess.run(
            script, env={**os.environ, "MALLOC_PERTURB_": fill}, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for fill in ("85", "170")
    ]
    assert len(outputs[0].splitlines()) == 400 and outputs[0] == outputs[1]
    assert 100 < outputs[0].count("refused") < 380


# ------------------------------------------------------------- keywords


def _without(monkeypatch, *names):
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


KINDS = {
    "M4A": lambda: av_encoded("aac", "ipod", SOUND, RATE), "MP4": lambda: av_encoded("aac", "mp4", SOUND, RATE),
    "AAC (ADTS)": lambda: av_encoded("aac", "adts", SOUND, RATE), "Matroska or WebM": lambda: av_encoded("aac", "matroska", SOUND, RATE),
    "AVI": lambda: av_encoded("aac", "avi", SOUND, RATE), "FLV": lambda: av_encoded("aac", "flv", SOUND, RATE),
    "MPEG-TS": lambda: av_encoded("aac", "mpegts", SOUND, RATE), "AC-3": lambda: av_encoded("ac3", "ac3", SOUND, 48000),
    "FLAC in Ogg": lambda: av_encoded("flac", "ogg", SOUND, RATE),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_without_pyav_the_error_names_format_and_package(monkeypatch, name):
    data = KINDS[name]()
    for missing in (("av",), ("av", "soundfile")):
        _without(monkeypatch, *missing)
        with pytest.raises(MissingExtraError, match=rf"audio \({re.escape(name)}\).*'av'.*\[video\]"):
            decoded(data)


@pytest.mark.parametrize("name", KINDS)
def test_soundfile_is_not_needed(monkeypatch, name):
    _without(monkeypatch, "soundfile")
    assert len(decoded(KINDS[name]())[0]) >= 20000


SAID = {
    "AAC is no MP3": (lambda: b"\xff\xf1\x50\x80" + bytes(300), r"audio \(AAC \(ADTS\)\)"),
    "AAC behind ID3": (lambda: b"ID3\4\0\0\0\0\0\0\xff\xf1\x50\x80" + bytes(300), r"audio \(AAC \(ADTS\)\)"),
    "MP3 behind ID3": (lambda: b"ID3\4\0\0\0\0\0\0\xff\xfb\x90\x64" + bytes(300), r"audio \(MP3\)"),
    "MP3": (lambda: b"\xff\xfb\x90\x64" + bytes(3000), r"audio \(MP3\): (?!.*does not exist)"),
    "MPEG-2.5": (lambda: b"\xff\xe3\x18\xc4" + bytes(3000), r"audio \(MP3\): (?!.*does not exist)"),
    "FLAC behind ID3": (lambda: b"ID3\4\0\0\0\0\0\0fLaC" + bytes(300), r"audio \(FLAC\)"),
    "CAF": (lambda: b"caff\0\1\0\0" + bytes(300), r"audio \(CAF\)"),
    "AU": (lambda: b".snd" + bytes(300), r"audio \(AU\)"),
    "MP4": (lambda: b"\0\0\0\x18ftypisom" + bytes(300), r"audio \(MP4\)(?!.*it is a video)"),
    "nothing": (lambda: b"", "empty"),
    "a tag alone": (lambda: b"ID3\4\0\0\0\0\0\0", "no data after"),
    "text": (lambda: b"hello " * 30, r"audio \(unknown format\).*it is text"),
    "an image": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "it is a PNG image"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_errors_name_the_format(name):
    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    make_data, message = SAID[name]
    with pytest.raises(DecodeError, match=f"(?s){message}") as raised:
        decoded(np.frombuffer(make_data(), np.uint8))
    assert "does not exist" not in str(raised.value)


def test_a_video_without_audio_is_an_error(tmp_path):
    with pytest.raises(DecodeError, match=r"audio \(MP4\): the file contains no audio stream"):
        decoded(np.fromfile(make(tmp_path, "h264.mp4"), np.uint8))


def test_an_audio_file_is_not_a_video():
    for container, message in (("ipod", "a sound, M4A"), ("adts", "a sound, AAC"), ("mp4", "no video stream")):
        with pytest.raises(DecodeError, match=message):
            fn.decoders.video(torch.from_numpy(av_encoded("aac", container, SOUND, RATE)))


@pytest.mark.parametrize(("data", "message"), [
    (b"\0\0\0\x18ftypisom", "MP4, a video or a sound"), (b"\0\0\0\x18ftypM4A ", "a sound, M4A"), (b"\xff\xf1\x50\x80", "a sound, AAC"),
    (b"\xff\xfb\x90\x64", "a sound, MP3"), (b"ID3\4", "a sound, MP3"), (b"caff\0", "a sound, CAF"), (b"\x1a\x45\xdf\xa3", "Matroska or WebM"),
])  # fmt: skip
def test_descriptions_of_unexpected_formats(data, message):
    assert message in describe_content(data + bytes(40), "image")
