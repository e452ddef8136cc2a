"""Audio whose header states no length or a wrong one: all samples are read; fewer than stated are an error."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import av_encoded, chunk, encoded, flac, speech, wav
from torchdali import fn
from torchdali.codecs._mp3 import prepend_silent_block
from torchdali.codecs.audio import decode, decode_part
from torchdali.errors import DecodeError

soundfile = pytest.importorskip("soundfile", reason="the extra `audio` is not installed")

SOUND = speech(5000, 2, seed=3) * 0.9


def array(data):
    return np.frombuffer(bytes(data), np.uint8).copy()


def decoded(data, **arguments):
    found, rate = decode(torch.from_numpy(array(data)), **arguments)
    return found.numpy(), rate


def changed(data, *fields):
    """Return data with replaced bytes; each field is an offset, or a name that precedes it, and the bytes."""
    audio_file = bytearray(data)
    for place, new in fields:
        at = place if isinstance(place, int) else audio_file.index(place) + len(place)
        audio_file[at : at + len(new)] = new
    return bytes(audio_file)


def audio_file(format, subtype="PCM_16"):
    return encoded(SOUND, 8000, format, subtype).tobytes()


ZERO, MOST, LARGE, WIDE = bytes(4), b"\xff" * 4, struct.pack("<I", 2**31 - 1), b"\xff" * 8

# A file without its length, and the same file with it.
UNKNOWN = {
    **{
        f"WAV of {width}, {name}": lambda width=width, fields=fields: (changed(wav(SOUND, width=width), *fields), wav(SOUND, width=width))
        for width in ("u8", "s16", "s24", "f32")
        for name, fields in {
            "0": [(4, ZERO), (b"data", ZERO)], "0 behind a right length": [(b"data", ZERO)], "its header alone": [(4, b"\x24\0\0\0"), (b"data", ZERO)],
            "all bits": [(4, MOST), (b"data", MOST)], "2 GiB": [(4, LARGE), (b"data", LARGE)],
        }.items()
    },
    "WAV with another chunk": lambda: (changed(wav(SOUND, before=chunk(b"fact", b"1234")), (b"data", ZERO)), wav(SOUND)),
    "WAV of silence": lambda: (changed(wav(0 * SOUND), (b"data", ZERO)), wav(0 * SOUND)),
    "WAV of mu-law, 0": lambda: (changed(audio_file("WAV", "ULAW"), (b"data", ZERO)), audio_file("WAV", "ULAW")),
    "WAV of mu-law, all bits": lambda: (changed(audio_file("WAV", "ULAW"), (b"data", MOST)), audio_file("WAV", "ULAW")),
    "WAV of A-law, 0": lambda: (changed(audio_file("WAV", "ALAW"), (b"data", ZERO)), audio_file("WAV", "ALAW")),
    "WAV of ADPCM, 0": lambda: (changed(audio_file("WAV", "IMA_ADPCM"), (b"data", ZERO)), audio_file("WAV", "IMA_ADPCM")),
    "RF64, 0": lambda: (changed(audio_file("RF64"), (b"ds64\x1c\0\0\0", bytes(24))), audio_file("RF64")),
    "RF64, all bits": lambda: (changed(audio_file("RF64"), (b"ds64\x1c\0\0\0", b"\xff" * 24)), audio_file("RF64")),
    "W64, 0": lambda: (changed(audio_file("W64"), (16, bytes(8)), (audio_file("W64").index(b"data") + 16, bytes(8))), audio_file("W64")),
    "W64, all bits": lambda: (changed(audio_file("W64"), (16, WIDE), (audio_file("W64").index(b"data") + 16, WIDE)), audio_file("W64")),
    "W64, most": lambda: (changed(audio_file("W64"), (16, b"\xff" * 7 + b"\x7f"), (audio_file("W64").index(b"data") + 16, b"\xff" * 7 + b"\x7f")), audio_file("W64")),
    "AU, -1": lambda: (changed(audio_file("AU"), (8, MOST)), audio_file("AU")),
    "AU, 0": lambda: (changed(audio_file("AU"), (8, ZERO)), audio_file("AU")),
    "AU, 2 GiB": lambda: (changed(audio_file("AU"), (8, LARGE[::-1])), audio_file("AU")),
    "CAF, -1": lambda: (changed(audio_file("CAF"), (b"data", WIDE)), audio_file("CAF")),
    "AIFF, 0": lambda: (changed(audio_file("AIFF"), (audio_file("AIFF").index(b"COMM") + 10, ZERO), (4, ZERO), (b"SSND", ZERO)), audio_file("AIFF")),
    "AIFF, all bits": lambda: (changed(audio_file("AIFF"), (audio_file("AIFF").index(b"COMM") + 10, MOST), (4, MOST), (b"SSND", MOST)), audio_file("AIFF")),
    "AIFF, too few": lambda: (changed(audio_file("AIFF"), (audio_file("AIFF").index(b"COMM") + 10, b"\0\0\0\x99")), audio_file("AIFF")),
    "AIFF, too many": lambda: (changed(audio_file("AIFF"), (audio_file("AIFF").index(b"COMM") + 10, b"\0\1\0\0")), audio_file("AIFF")),
    **{
        f"FLAC of {bits} bits": lambda bits=bits: tuple(flac(np.rint(SOUND * 2 ** (bits - 1)).astype(int), bits, states_length=s) for s in (False, True))
        for bits in (8, 16, 24)
    },
}  # fmt: skip


@pytest.mark.thin(5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
@pytest.mark.parametrize("name", UNKNOWN)
def test_all_samples_are_read(name, dtype):
    without, known = UNKNOWN[name]()
    found, rate = decoded(without, dtype=dtype)
    wanted, same = decoded(known, dtype=dtype)
    assert rate == same == 8000 and len(wanted) >= 5000 and np.array_equal(found, wanted)


@pytest.mark.parametrize("name", [name for name in UNKNOWN if name.startswith("FLAC")])
def test_flac_without_pyav(name, request):
    without, known = UNKNOWN[name]()
    wanted = decoded(known)[0]
    request.getfixturevalue("without_pyav")
    assert np.array_equal(decoded(without)[0], wanted)
    assert 0 < len(wanted) - len(decoded(without[:-700])[0]) <= 1024


PIPED = [
    ("pcm_s16le", "wav", {}), ("pcm_s24le", "wav", {}), ("pcm_f32le", "wav", {}), ("pcm_mulaw", "wav", {}), ("pcm_s16le", "wav", {"rf64": "always"}),
    ("pcm_s16be", "au", {}), ("pcm_s16be", "aiff", {}), ("pcm_s16le", "w64", {}), ("pcm_s16be", "caf", {}), ("flac", "flac", {}),
]  # fmt: skip


@pytest.mark.parametrize("case", PIPED, ids=lambda case: f"{case[1]} of {case[0]} {case[2] or ''}")
def test_files_that_ffmpeg_writes_into_a_pipe(case):
    codec, container, options = case
    found, rate = decoded(av_encoded(codec, container, SOUND, 16000, piped=True, **options))
    assert found.shape == (5000, 2) and rate == 16000
    assert np.abs(found - SOUND).max() < (0.03 if "law" in codec else 1e-4)


@pytest.mark.parametrize("codec", ["opus", "vorbis"])
def test_ogg_without_its_last_page(codec):
    data = encoded(speech(200_000), 48000, "OGG", codec.upper()).tobytes()
    whole, part = decoded(data)[0], decoded(data[: data.rindex(b"OggS")])[0]
    assert 150_000 < len(part) < len(whole) == 200_000
    if codec == "vorbis":
        assert np.allclose(part[:-1024], whole[: len(part) - 1024], atol=1e-6)


def test_empty_audio_is_empty():
    empty = io.BytesIO()
    with wave.open(empty, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
    assert decoded(empty.getvalue())[0].shape == (0, 1)
    for after in (chunk(b"LIST", b"INFOISFT\4\0\0\0abc\0"), chunk(b"id3 ", bytes(30)), b"\0", bytes(7)):
        assert decoded(empty.getvalue() + after)[0].shape == (0, 1)


def test_a_batch_with_a_file_of_unknown_length():
    files = [changed(wav(SOUND), (b"data", ZERO)), wav(SOUND[:300]).tobytes()]
    from torchdali.codecs.audio import decode_several

    found = decode_several([torch.from_numpy(array(file)) for file in files], False, torch.float32, lambda shape, dtype: torch.empty(shape, dtype=dtype))
    assert found is not None and found[1] == [5000, 300]
    unknown = flac(np.rint(SOUND * 2**15).astype(int), 16, states_length=False)
    batch = [torch.from_numpy(unknown), torch.from_numpy(flac(np.rint(SOUND[:700] * 2**15).astype(int), 16))]
    assert decode_several(batch, False, torch.float32, lambda shape, dtype: torch.empty(shape, dtype=dtype)) is None


# ------------------------------------------------------------------- truncated files

HALF = [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "ULAW"), ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("W64", "PCM_16"), ("RF64", "PCM_16")]


@pytest.mark.parametrize(("format", "subtype"), HALF)
def test_a_part_of_pcm_matches_the_whole_file(format, subtype):
    data = audio_file(format, subtype)
    whole, part = decoded(data)[0], decoded(data[: len(data) // 2])[0]
    assert 2000 < len(part) < 2600 and np.array_equal(part, whole[: len(part)])


@pytest.mark.parametrize("bits", [12, 16, 24])
def test_a_truncated_flac_of_unknown_length_delivers_whole_blocks(bits):
    samples = np.rint(SOUND * 2 ** (bits - 1)).astype(int)
    if bits == 12:
        pytest.importorskip("av", reason="the extra `video` is not installed")
    known, unknown = flac(samples, bits), flac(samples, bits, states_length=False)
    wanted = decoded(known)[0]
    for cut in (1, 30, 700, 5000):
        found = decoded(unknown[:-cut])[0]
        assert len(found) % 512 == 0 and 0 < len(found) < 5000 and np.array_equal(found, wanted[: len(found)])
        with pytest.raises(DecodeError):
            decoded(known[:-cut])


def test_damage_in_a_flac_of_unknown_length_is_an_error():
    data = flac(np.rint(SOUND * 2**15).astype(int), 16, states_length=False)
    for at in (60, 3000, 9000):
        with pytest.raises(DecodeError):
            decoded(changed(data, (at, bytes([data[at] ^ 4]))))
    with pytest.raises(DecodeError):
        decoded(data[:300])


# ---------------------------------------------------------------- MP3


def mp3(samples, rate=44100, states_length=False, codec="libmp3lame", bits="64k"):
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    del av
    return av_encoded(codec, "mp3" if "mp3" in codec else "mp2", samples, rate, write_xing="01"[states_length], id3v2_version="0").tobytes()


def varying(samples, rate=44100):
    """Return a VBR MP3 file without its first frame, which states the length."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="MP3", subtype="MPEG_LAYER_III", bitrate_mode="VARIABLE", compression_level=0.4)
    data = file.getvalue()
    size = next(at for at in range(100, 2000) if data[at : at + 2] == data[:2] and len(prepend_silent_block(array(data[at:]))[0]) > len(data) - at)
    return data[size:]


@pytest.mark.thin(5)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000])
def test_mp3_without_a_length(rate, channels):
    samples = speech(rate, channels, seed=rate)
    found, same = decoded(mp3(samples, rate))
    block = 1152 if rate >= 32000 else 576
    assert same == rate and found.shape[1] == channels and len(found) % block == 0 and rate <= len(found) <= rate + 4 * block
    known = decoded(mp3(samples, rate, True))[0]
    assert len(known) == rate
    start = int(np.argmin([np.abs(found[at : at + 3000] - known[:3000]).max() for at in range(3 * block)]))
    assert np.abs(found[start : start + rate] - known[: len(found) - start]).max() < 1e-4  # the same, after the encoder's delay


LOUD_AND_SILENT = np.concatenate([speech(44100, seed=1), np.zeros((20 * 44100, 1))])


@pytest.mark.parametrize("samples", [LOUD_AND_SILENT, LOUD_AND_SILENT[::-1]], ids=["loud first", "silent first"])
def test_the_length_of_vbr_mp3_does_not_follow_from_the_first_frame(samples):
    data = varying(samples)
    found = decoded(data)[0]
    assert len(samples) <= len(found) <= len(samples) + 4 * 1152
    assert abs(np.abs(found).max() - np.abs(samples).max()) < 0.1
    part = decode_part(torch.from_numpy(array(data)), 20.0, 0.5)[0]
    assert np.array_equal(part.numpy(), found[20 * 44100 : 20 * 44100 + 22050])


TAIL = {
    "ID3v1": b"TAG" + bytes(125), "zeros": bytes(5000), "APE": b"APETAGEX" + b"cover" * 900, "Lyrics3": b"LYRICSBEGIN" + b"la " * 900 + b"LYRICS200",
    "a cut block": b"\xff\xfb\x90\x64" + bytes(100), "other bytes": bytes(range(256)) * 9,
}  # fmt: skip


@pytest.mark.parametrize("name", TAIL)
def test_other_data_after_or_between_mp3_frames(name):
    data = varying(LOUD_AND_SILENT[: 4 * 44100])
    whole = decoded(data)[0]
    assert np.array_equal(decoded(data + TAIL[name])[0], whole)
    before = b"ID3\3\0\0" + bytes([0, 0, 8, 0]) + bytes(1024)
    assert np.array_equal(decoded(before + bytes(300) + data)[0], whole)
    assert len(decoded(data + TAIL[name] + data)[0]) == 2 * len(whole)


@pytest.mark.parametrize("codec", ["mp2"])
def test_other_layers(codec):
    samples = speech(44100, 2)
    found, rate = decoded(mp3(samples, 44100, codec=codec))
    assert rate == 44100 and 44100 <= len(found) <= 44100 + 4 * 1152


def test_truncated_mp3():
    samples = speech(44100)
    data, known = mp3(samples), mp3(samples, states_length=True)
    found, whole = decoded(data[: len(data) // 2])[0], decoded(data)[0]
    assert len(found) % 1152 == 0 and abs(len(found) - len(whole) // 2) <= 1152 and np.array_equal(found, whole[: len(found)])
    with pytest.raises(DecodeError, match="truncated"):
        decoded(known[: len(known) // 2])


def test_the_frame_count_may_include_the_header_frame():
    data = mp3(speech(44100), states_length=True)
    at = max(data.find(b"Xing"), data.find(b"Info")) + 8
    (count,) = struct.unpack_from(">I", data, at)
    assert len(decoded(changed(data, (at, struct.pack(">I", count + 1))))[0]) >= 44100
    with pytest.raises(DecodeError, match="truncated"):
        decoded(changed(data, (at, struct.pack(">I", count + 9))))
    assert len(decoded(changed(data, (at, ZERO)))[0]) >= 44100  # 0 means unknown


@pytest.mark.parametrize("head", [b"\xff\xfb\x90\x64", b"\xff\xf3\x40\xc4", b"\xff\xfd\x80\x00", b"\xff\xfb\xf0\x00", b"\xff\xfb\x9c\x00"])
@pytest.mark.parametrize("rest", [b"", bytes(1000), bytes(range(256)) * 20])
def test_a_frame_header_alone_is_not_mp3(head, rest):
    with pytest.raises(DecodeError, match="audio"):
        decoded(head + rest)


# ---------------------------------------------------------------- other chunks after the samples

TAGS = {
    "LIST": chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"a comment of an editor".ljust(200, b"\0"))), "id3": chunk(b"id3 ", b"ID3\3" + bytes(range(256))),
    "odd, then two more": chunk(b"bext", b"\x7f" * 333) + chunk(b"_PMX", b"<xml/>") + chunk(b"cue ", bytes(28)), "a cut one": chunk(b"LIST", b"INFO" * 90)[:100],
}  # fmt: skip
CODECS = [
    ("WAV", "ULAW"), ("WAV", "ALAW"), ("WAV", "IMA_ADPCM"), ("WAV", "MS_ADPCM"), ("WAV", "GSM610"), ("WAV", "G721_32"), ("WAV", "NMS_ADPCM_16"),
    ("WAV", "NMS_ADPCM_24"), ("WAV", "NMS_ADPCM_32"), ("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAVEX", "ULAW"), ("RF64", "ALAW"), ("RF64", "PCM_16"),
]  # fmt: skip


def tail(data):
    """Return a WAV file up to the end of its samples and their padding byte, and the offset of the samples."""
    at = data.index(b"data") + 8
    length = struct.unpack_from("<I", data, at - 4)[0] if data[:4] == b"RIFF" else struct.unpack_from("<Q", data, 28)[0]
    return data[: at + length] + b"\0" * (length & 1), at, length


def mono(format, subtype, frames):
    return encoded(SOUND[:frames, :1], 8000, format, subtype).tobytes()


@pytest.mark.thin(7)
@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("frames", [3999, 5000])
@pytest.mark.parametrize(("format", "subtype"), CODECS)
def test_chunks_after_the_samples_are_not_decoded(format, subtype, frames, name):
    plain, _, _ = tail(mono(format, subtype, frames))
    tagged = plain + TAGS[name]
    tagged = changed(tagged, (4, struct.pack("<I", len(tagged) - 8))) if format != "RF64" else changed(tagged, (20, struct.pack("<Q", len(tagged) - 8)))
    wanted = soundfile.read(io.BytesIO(tagged), dtype="float32", always_2d=True)[0]
    found = decoded(tagged)[0]
    assert found.shape == wanted.shape == decoded(plain)[0].shape and np.abs(found - wanted).max() < 1e-6
    start, _ = decode_part(torch.from_numpy(array(tagged)), 0.1, 9.0)
    assert np.array_equal(start, found[800:])


@pytest.mark.parametrize("stated", [ZERO, MOST, LARGE])
@pytest.mark.parametrize("subtype", [subtype for format, subtype in CODECS if format == "WAV"])
def test_samples_without_a_length_are_all_read(subtype, stated):
    plain, at, _ = tail(mono("WAV", subtype, 4000))
    found = decoded(changed(plain, (4, stated), (at - 4, stated)))[0]
    assert np.array_equal(found, decoded(plain)[0])


@pytest.mark.parametrize("format", ["W64", "AIFF", "AU", "CAF"])
@pytest.mark.parametrize("subtype", ["ULAW", "PCM_16", "PCM_24"])
def test_bytes_after_other_containers_are_not_decoded(format, subtype):
    plain = mono(format, subtype, 4000)
    tag = b"LIST" + bytes(12) + struct.pack("<Q", 24 + 40) + b"\x7f" * 40 if format == "W64" else b"ANNO" + struct.pack(">I", 40) + b"\x7f" * 40
    tag = b"free" + struct.pack(">q", 40) + b"\x7f" * 40 if format == "CAF" else tag
    wanted = decoded(plain)[0]
    found = decoded(plain + tag)[0]
    assert np.array_equal(found, wanted) and len(wanted) == 4000


def test_an_empty_rf64_with_tags_is_empty():
    plain, at, _ = tail(audio_file("RF64"))
    empty = changed(plain[:at], (20, struct.pack("<QQQ", at - 8, 0, 0))) + TAGS["LIST"]
    assert len(decoded(empty)[0]) == 0


# ---------------------------------------------------------------- MP3 inside WAV, and after other bytes


def inside_wav(blocks, fact, tag=0x55, tags=b"", length=None):
    form = struct.pack("<HHIIHHH", tag, 1, 44100, 16000, 1, 0, 12) + struct.pack("<HIHHH", 1, 2, 1152, 1, 1393)
    data = b"data" + struct.pack("<I", len(blocks) if length is None else length) + blocks + b"\0" * (len(blocks) & 1)
    head = b"" if fact is None else chunk(b"fact", struct.pack("<I", fact))
    body = b"WAVE" + chunk(b"fmt ", form) + head + data + tags
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.thin(5)
@pytest.mark.parametrize("fact", [-5760, -1152, -100, 0, 100, 1152, 11520, None, "none"])
@pytest.mark.parametrize("states_length", [False, True])
def test_mp3_inside_wav_has_all_of_its_samples(fact, states_length):
    blocks = mp3(speech(44100), states_length=states_length)
    wanted = decoded(blocks)[0]
    count = {None: None, "none": 0}.get(fact, len(wanted) + (fact if isinstance(fact, int) else 0))
    for tags, length in ((b"", None), (TAGS["LIST"], None), (b"", 0), (b"", 0xFFFFFFFF)):
        assert np.array_equal(decoded(inside_wav(blocks, count, tags=tags, length=length))[0], wanted)


def test_layer_two_inside_wav():
    blocks = mp3(speech(44100), codec="mp2")
    assert np.array_equal(decoded(inside_wav(blocks, 1, 0x50))[0], decoded(blocks)[0])


def id3(size, filled):
    return b"ID3\3\0\0" + bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127]) + filled


BEFORE = {
    "a tag that ends in the first block": id3(50, bytes(20)), "a tag that ends in a later block": id3(3020, bytes(20)), "a tag that is longer than it says": id3(20, b"abcdef" * 50),
    "a tag of zeros that is longer than it says": id3(20, bytes(300)), "a tag without a valid size": b"ID3\3\0\0\0\0\x01\x80" + bytes(384), "two tags": id3(20, bytes(20)) + id3(60, bytes(20)),
    "other bytes": bytes(range(1, 250)) * 3, "the answer of a server": b"ICY 200 OK\r\nicy-name: radio\r\n\r\n", "a long text": b"radio " * 300, "zeros": bytes(1000), "ones": b"\xff" * 40,
    "the header of a block": b"\xff\xfb\x90\x64" + bytes(50), "the end of a block": b"\x12\x34\x56" * 50, "an APE tag": b"APETAGEX" + struct.pack("<IIII8x", 2000, 40, 1, 0xA0000000) + b"k" * 40,
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("states_length", [False, True])
@pytest.mark.parametrize("name", BEFORE)
def test_mp3_after_a_wrong_tag_or_other_bytes(tmp_path, name, states_length):
    data = BEFORE[name] + mp3(speech(44100), states_length=states_length)
    (tmp_path / "a.mp3").write_bytes(data)  # from a path, libsndfile finds the first frame
    wanted = soundfile.read(tmp_path / "a.mp3", dtype="float32", always_2d=True)[0]
    found = decoded(data)[0]
    assert len(found) == len(wanted) > 25000 and np.abs(found - wanted).max() < 1e-4


@pytest.mark.parametrize("data", [bytes(70_000), id3(10**6, bytes(20)), b"PK\3\4" + bytes(30)], ids=["far", "a tag beyond the end", "ZIP"])
def test_mp3_after_unexpected_bytes_is_not_searched(data):
    with pytest.raises(DecodeError):
        decoded(data + mp3(speech(44100)))


# ---------------------------------------------------------------------- decoding


@pytest.mark.parametrize("arguments", [{}, {"downmix": True}, {"sample_rate": 16000.0}, {"downmix": True, "sample_rate": 11025.0, "dtype": torch.int16}])
@pytest.mark.parametrize("name", ["WAV of s16, 0", "FLAC of 16 bits", "CAF, -1", "RF64, 0"])
def test_every_decoder_agrees_on_the_length(name, arguments):
    without, known = ([torch.from_numpy(array(data))] for data in UNKNOWN[name]())
    for x, y in zip(fn.decoders.audio(without[0], **arguments), fn.decoders.audio(known[0], **arguments), strict=True):
        assert torch.equal(x, y)
    for x, y in ((decode_part(d[0], 0.1, 0.2, **arguments)[0] for d in (without, known)),):
        assert torch.equal(x, y)
