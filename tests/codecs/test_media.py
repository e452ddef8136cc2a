"""Media that FFmpeg may open: data of the listed formats, and no file that the data names."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import torchdali
from tests.helpers.encoded_video import make
from torchdali import fn
from torchdali.codecs import media
from torchdali.codecs.video import VideoDecoder, index_video
from torchdali.errors import DecodeError, PipelineError
from torchdali.kernels.limits import limit_pixels

av = pytest.importorskip("av", reason="the extra `video` is not installed")
PACKAGE = Path(torchdali.__file__).parent
OPENING = media._OPEN_OPTIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that playlists name."""
    place = tmp_path_factory.mktemp("media")
    make(place, "h264.mp4")
    from PIL import Image

    for number in range(3):
        Image.new("RGB", (32, 32)).save(place / f"{number}.png")
    return place


def tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


# Name, and text; {here} is the folder.
PLAYLISTS = {
    "concat": ("clip.mp4", "ffconcat version 1.0\nfile h264.mp4\n"),
    "concat of an image": ("clip.mkv", "ffconcat version 1.0\nfile 0.png\n"),
    "concat of itself": ("clip.mp4", "ffconcat version 1.0\nfile clip.mp4\n"),
    "concat without a header": ("clip.ffconcat", "file 'h264.mp4'\n"),
    "concat, later": ("clip.avi", "ffconcat version 1.0\nstream\nfile h264.mp4\ninpoint 0\n"),
    "HLS": ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{here}/h264.mp4\n#EXT-X-ENDLIST\n"),
    "HLS, relative": ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nh264.mp4\n#EXT-X-ENDLIST\n"),
    "HLS of lists": ("list.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfile://{here}/list.m3u8\n"),
    "HLS with a map": ("list.m3u8", '#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-MAP:URI="h264.mp4"\n#EXTINF:9,\nh264.mp4\n'),
    "SDP": ("call.sdp", "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 45678 RTP/AVP 26\r\n"),
    "DASH": ("list.mpd", '<?xml version="1.0"?><MPD><Period><AdaptationSet><BaseURL>h264.mp4</BaseURL></AdaptationSet></Period></MPD>'),
    "IMF": ("list.xml", '<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"/>'),
    "ASX": ("list.asx", '<asx version="3.0"><entry><ref href="h264.mp4"/></entry></asx>'),
    "reference of ASF": ("list.asf", "[Reference]\r\nRef1=http://127.0.0.1:9/h264.mp4\r\n"),
    "RealMedia": ("list.ram", "rtsp://127.0.0.1:9/h264.rm\n"),
    "VobSub": ("list.idx", "# VobSub index file, v7\nsize: 720x576\ntimestamp: 00:00:00:000, filepos: 000000000\n"),
    "text as pictures": ("notes.txt", "password: 12345\n" * 40),
    "subtitles": ("words.srt", "1\n00:00:00,000 --> 00:00:09,000\nsecret\n"),
    "metadata": ("words.txt", ";FFMETADATA1\ntitle=secret\n"),
    "SVG": ("drawing.svg", '<svg xmlns="http://www.w3.org/2000/svg"><image href="0.png" width="9" height="9"/></svg>'),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLAYLISTS)
@pytest.mark.parametrize("walls", ["both", "second"])
def test_playlists_are_rejected(folder, monkeypatch, kind, walls):
    name, text = PLAYLISTS[kind]
    data = text.format(here=folder).encode()
    (folder / name).write_bytes(data)
    monkeypatch.chdir(folder)
    if walls == "second":  # formats that name other files are recognized, and cannot open them
        formats = OPENING["format_whitelist"] + ",concat,hls,sdp,dash,imf,vobsub"
        monkeypatch.setitem(OPENING, "format_whitelist", formats)
    for source in (tensor(data), name, str(folder / name)):
        with pytest.raises(DecodeError):
            index_video(source)
        with pytest.raises(DecodeError):
            VideoDecoder(source)
    if walls == "both":
        with pytest.raises(DecodeError):
            fn.decoders.video(tensor(data))
        with pytest.raises(RuntimeError):
            fn.decoders.audio(tensor(data))


NAMES = [
    "concat:h264.mp4|h264.mp4", "subfile,,start,0,end,0,,:h264.mp4", "file:h264.mp4", "cache:h264.mp4", "data:video/mp4;base64,AAAA",
    "http://127.0.0.1:9/h264.mp4", "rtsp://127.0.0.1:9/h264", "tcp://127.0.0.1:9", "udp://127.0.0.1:45679", "pipe:0", "fd:0",
    "crypto:h264.mp4", "%d.png", "?.png", "testsrc", "/dev/zero", "/dev/video0", ".",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_urls_and_protocols_are_not_opened(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    for read in (index_video, VideoDecoder):
        with pytest.raises(DecodeError, match=re.escape(name)):
            read(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_a_fifo_is_not_a_video(tmp_path):
    os.mkfifo(tmp_path / "clip.mp4")
    with pytest.raises(DecodeError, match="must be a regular file"):
        index_video(str(tmp_path / "clip.mp4"))


def box(name, *parts):
    data = b"".join(parts)
    return struct.pack(">I4s", 8 + len(data), name) + data


def _elsewhere(path, name):
    """Return an MP4 file that refers to samples in another file, by a Macintosh alias."""
    data = bytearray(Path(path).read_bytes())
    short = name.encode()
    record = bytes(10) + b"\1v".ljust(28, b"\0") + bytes(12) + bytes([len(short)]) + short.ljust(63, b"\0")
    record += bytes(16) + struct.pack(">HH", 1, 1) + bytes(16)
    record += struct.pack(">HH", 2, len(short) + len(short) % 2) + short.ljust(len(short) + len(short) % 2, b"\0")
    alias = box(b"alis", bytes(4), record, struct.pack(">HH", 0xFFFF, 0))
    old = box(b"dref", struct.pack(">II", 0, 1), box(b"url ", b"\0\0\0\1"))
    place, more = data.index(old), len(alias) - 12
    for outer in (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"):
        at = data.index(outer) - 4
        data[at : at + 4] = struct.pack(">I", struct.unpack_from(">I", data, at)[0] + more)
    data[place + 16 : place + 28] = alias
    return bytes(data)


def test_samples_in_another_file_are_not_read(folder, monkeypatch):
    monkeypatch.chdir(folder)
    data = _elsewhere(folder / "h264.mp4", "h264.mp4")
    (folder / "alias.mov").write_bytes(data)
    with av.open("alias.mov", options={"enable_drefs": "1"}) as file:
        assert len(list(file.decode(video=0))) == 30  # FFmpeg opens it if allowed
    for enabled in ("0", "1"):
        monkeypatch.setitem(OPENING, "enable_drefs", enabled)
        for source in (tensor(data), "alias.mov"):
            with pytest.raises(DecodeError):
                index_video(source)


def test_images_are_not_videos(folder):
    from PIL import Image

    for number, format in enumerate(("png", "jpeg", "bmp", "tiff", "webp", "ppm", "tga")):
        path = folder / f"image{number}.{format}"
        Image.new("RGB", (32, 32)).save(path)
        with pytest.raises(DecodeError):
            index_video(str(path))


def test_formats_are_detected_by_content_not_by_name(folder):
    data = (folder / "h264.mp4").read_bytes()
    (folder / "clip.m3u8").write_bytes(data)
    assert len(index_video(str(folder / "clip.m3u8"))) == 30


def test_only_one_function_opens_media():
    """FFmpeg, and the functions that would open videos or images by name."""
    opens = re.compile(r"\bav\.open\b|VideoCapture|cv2\.im(?:read|count)|torchvision\.io\.read|read_video|imageio")
    users = {path.name for path in PACKAGE.rglob("*.py") if opens.search(path.read_text("utf-8"))}
    assert users == {"media.py", "recipe_data.py"}  # which writes a video


def _sized(folder, width, height, only_frames):
    """Return a Motion JPEG video in AVI whose header, or whose frames, state another size."""
    path = make(folder, "mjpeg.avi", frames=2)
    data = bytearray(Path(path).read_bytes())
    for kind, old, new in (("<II", (96, 64), (width, height)), (">HH", (64, 96), (height % 65536, width % 65536))):
        if kind == ">HH" or not only_frames:
            for place in re.finditer(re.escape(struct.pack(kind, *old)), bytes(data)):
                data[place.start() : place.end()] = struct.pack(kind, *new)
    return tensor(data)


@pytest.mark.parametrize("only_frames", [False, True])
@pytest.mark.parametrize("size", [(65000, 65000), (30000, 30000), (16384, 16384), (1 << 20, 400)])
def test_too_large_frames_are_rejected_before_memory_is_allocated(tmp_path, size, only_frames):
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DecodeError):
        VideoDecoder(_sized(tmp_path, *size, only_frames)).read([0])
    if sys.platform == "linux":  # other formats use other units
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def _claiming(path, count):
    """Return an MP4 file whose index lists `count` samples of one byte each."""
    data = bytearray(Path(path).read_bytes())
    for name, table in {b"stsz": (0, 1, count), b"stsc": (0, 1, 1, count, 1), b"stts": (0, 1, count, 1)}.items():
        at = data.index(name) - 4
        (length,) = struct.unpack_from(">I", data, at)
        data[at : at + length] = made = box(name, struct.pack(f">{len(table)}I", *table))
        for outer in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
            place = data.index(outer) - 4
            data[place : place + 4] = struct.pack(">I", struct.unpack_from(">I", data, place)[0] + len(made) - length)
    return tensor(data)


@pytest.mark.parametrize("count", [1 << 17, 1 << 24, (1 << 32) - 1])
def test_an_index_of_more_samples_than_bytes_is_rejected(folder, count):
    with pytest.raises(DecodeError, match=f"claims {count} samples"):
        VideoDecoder(_claiming(folder / "h264.mp4", count))


def test_fragments_of_more_samples_than_bytes_are_rejected(folder):
    data = (folder / "h264.mp4").read_bytes()
    fragment = box(b"moof", box(b"traf", box(b"trun", struct.pack(">II", 0, 1 << 26))))
    with pytest.raises(DecodeError, match="claims 67108864 samples"):
        index_video(tensor(data + fragment))
    assert len(index_video(tensor(data + box(b"free", struct.pack(">4sII", b"trun", 0, 1 << 26))))) == 30


def test_max_pixels_limits_videos_too(folder):
    path = str(folder / "h264.mp4")
    with limit_pixels(96 * 64 - 1), pytest.raises(DecodeError, match=r"h264.*96 x 64.*max_pixels"):
        VideoDecoder(path)
    with limit_pixels(96 * 64):
        assert VideoDecoder(path).read([0]).shape == (1, 64, 96, 3)


def test_an_error_names_reader_and_file(folder):
    (folder / "list.mp4").write_text("ffconcat version 1.0\nfile h264.mp4\n")
    with pytest.raises((RuntimeError, PipelineError), match=r"list\.mp4.*playlist"):
        from torchdali import pipeline_def

        @pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def define():
            return fn.readers.video(filenames=[str(folder / "list.mp4")], sequence_length=2)

        define().build()


def test_files_are_closed(folder):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no list of descriptors")
    path, count = str(folder / "h264.mp4"), len(os.listdir("/proc/self/fd"))
    decoder = VideoDecoder(path)
    decoder.read([5])
    assert len(os.listdir("/proc/self/fd")) == count + 1
    decoder.close()
    (folder / "bad.mp4").write_bytes(b"ffconcat version 1.0\nfile bad.mp4\n")
    with pytest.raises(DecodeError):
        index_video(str(folder / "bad.mp4"))
    assert len(os.listdir("/proc/self/fd")) == count and np.array(index_video(path).times).size == 30


@pytest.mark.slow
def test_decoding_opens_no_other_file_and_starts_no_program():
    """Python doesn't observe FFmpeg's own calls: the tests above show that FFmpeg rejects data that names other files."""
    done = subprocess.run([sys.executable, "-m", "tests.helpers.opened_by_data"], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
