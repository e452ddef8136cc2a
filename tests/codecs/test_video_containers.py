"""Frames by index: in every container and codec with an encoder, in any order of access."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.encoded_video import draw_frame, restore_priority
from torchdali import fn, pipeline_def
from torchdali.codecs import video
from torchdali.codecs.video import VideoDecoder, index_video
from torchdali.errors import DecodeError

av: Any = pytest.importorskip("av", reason="the extra `video` is not installed")

FRAMES = 31
B_FRAMES = {"bf": "3"}
OPEN_GROUPS = {"x264-params": "bframes=3:open-gop=1:keyint=10:b-pyramid=2"}
HEVC = {"x265-params": "bframes=3:keyint=10:open-gop=1:log-level=none"}
HIDDEN = {"auto-alt-ref": "1", "lag-in-frames": "16"}

# File, codec, container format, pixel format, options; the first rows are quick.
CASES = [
    ("h264.mp4", "libx264", None, "yuv420p", B_FRAMES),
    ("h264.avi", "libx264", None, "yuv420p", B_FRAMES),
    ("h264.ts", "libx264", None, "yuv420p", OPEN_GROUPS),
    ("open.mkv", "libx264", None, "yuv420p", OPEN_GROUPS),
    ("raw.h264", "libx264", None, "yuv420p", B_FRAMES),
    ("refresh.mp4", "libx264", None, "yuv420p", {"x264-params": "intra-refresh=1:keyint=20"}),
    ("vp8.webm", "libvpx", None, "yuv420p", HIDDEN),
    ("vp9.webm", "libvpx-vp9", None, "yuv420p", HIDDEN),
    ("mpeg4.avi", "mpeg4", None, "yuv420p", B_FRAMES),
    ("mpeg2.mpg", "mpeg2video", None, "yuv420p", B_FRAMES),
    ("raw.m2v", "mpeg2video", "mpeg2video", "yuv420p", B_FRAMES),
    ("a.gif", "gif", None, "rgb8", {}),
]
SLOW = [
    *((f"h264.{ending}", "libx264", None, "yuv420p", B_FRAMES) for ending in ("mov", "mkv", "flv", "mpg", "nut", "3gp", "asf", "mxf")),
    ("open.mp4", "libx264", None, "yuv420p", OPEN_GROUPS),
    ("hevc.mkv", "libx265", None, "yuv420p", HEVC),
    ("hevc.ts", "libx265", None, "yuv420p", HEVC),
    ("raw.hevc", "libx265", None, "yuv420p", HEVC),
    ("vp8.avi", "libvpx", None, "yuv420p", HIDDEN),
    ("vp8.ivf", "libvpx", None, "yuv420p", HIDDEN),
    ("vp9.mp4", "libvpx-vp9", None, "yuv420p", HIDDEN),
    ("av1.mkv", "libsvtav1", None, "yuv420p", {"preset": "12"}),
    ("av1.ivf", "libsvtav1", None, "yuv420p", {"preset": "12"}),
    ("mpeg4.mkv", "mpeg4", None, "yuv420p", B_FRAMES),
    ("raw.m4v", "mpeg4", "m4v", "yuv420p", B_FRAMES),
    ("mpeg2.ts", "mpeg2video", None, "yuv420p", B_FRAMES),
    ("mpeg2.vob", "mpeg2video", "vob", "yuv420p", B_FRAMES),
    ("mpeg2.mxf", "mpeg2video", None, "yuv420p", B_FRAMES),
    ("mjpeg.avi", "mjpeg", None, "yuvj420p", {}),
    ("raw.mjpeg", "mjpeg", None, "yuvj420p", {}),
    ("ffv1.mkv", "ffv1", None, "yuv420p", {}),
    ("prores.mov", "prores_ks", None, "yuv422p10le", {}),
    ("raw.y4m", "wrapped_avframe", "yuv4mpegpipe", "yuv420p", {}),
    ("raw.avi", "rawvideo", None, "yuv420p", {}),
    ("wmv2.asf", "wmv2", None, "yuv420p", {}),
    ("flv1.flv", "flv1", None, "yuv420p", {}),
    ("huffyuv.avi", "huffyuv", None, "yuv422p", {}),
    ("png.mov", "png", None, "rgb24", {}),
]


def encode(folder: Path, case: Any, frames: int = FRAMES) -> str:
    """Write a video whose frames differ; skip the calling test without an encoder."""
    name, codec, container, pixels, options = case
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV has no encoder {codec}")
    path = str(folder / name)
    with restore_priority(), av.open(path, "w", format=container) as file:
        stream = file.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 96, 64, pixels
        stream.codec_context.gop_size = 10
        for number in range(frames):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(draw_frame(number), format="rgb24")))
        file.mux(stream.encode(None))
    return path


def from_the_start(path: str) -> list[Any]:
    """Return all frames in decoding order, on a coarse grid."""
    with av.open(path) as file:
        stream = file.streams.video[0]
        stream.thread_type = "NONE"
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in file.decode(stream)]


def find_index(frame: Any, frames: list[Any]) -> int:
    """Return the index of a frame."""
    return int(np.argmin([np.abs(frame.numpy().astype(int) - each).mean() for each in frames]))


def check(path: str) -> None:
    frames, index = from_the_start(path), index_video(path)
    assert len(index) == len(frames)
    count, dice = len(frames), random.Random(1)
    orders = [range(count), range(count - 1, -1, -3), dice.choices(range(count), k=15)]
    for order in orders:
        decoder = VideoDecoder(path, index)
        assert [find_index(decoder.read([number])[0], frames) for number in order] == list(order)
        decoder.close()
    for number in (count - 1, count // 2, 1, *dice.choices(range(count), k=4)):  # each by its own decoder
        decoder = VideoDecoder(path, index)
        assert find_index(decoder.read([number])[0], frames) == number
        decoder.close()
    seconds = [index.seconds(number) for number in range(count)]
    assert seconds == sorted(set(seconds)) and seconds[0] == 0


@pytest.mark.thin(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_random_access_matches_sequential_decoding(tmp_path, case):
    check(encode(tmp_path, case))


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=lambda case: case[0])
def test_other_containers(tmp_path, case):
    check(encode(tmp_path, case))


def rewrite(source: str, target: str, change: Any, container: str | None = None) -> str:
    """Copy the packets of a file, changed by a function; None skips a packet."""
    with av.open(source) as file, av.open(target, "w", format=container) as copy:
        stream = file.streams.video[0]
        into = copy.add_stream_from_template(stream) if hasattr(copy, "add_stream_from_template") else copy.add_stream(template=stream)
        for number, packet in enumerate(file.demux(stream)):
            if packet.dts is not None and (packet := change(number, packet)) is not None:
                packet.stream = into
                copy.mux(packet)
    return target


def _delay(number: int, packet: Any) -> Any:
    packet.pts += packet.duration * 7
    packet.dts += packet.duration * 7
    return packet


def test_a_file_that_starts_after_its_first_keyframe(tmp_path):
    source = encode(tmp_path, CASES[3])
    check(rewrite(source, str(tmp_path / "cut.mkv"), lambda number, packet: packet if number >= 4 else None))


def test_time_stamps_that_do_not_start_at_zero(tmp_path):
    check(rewrite(encode(tmp_path, CASES[0]), str(tmp_path / "later.mkv"), _delay))


def test_time_stamps_of_a_varying_rate(tmp_path):
    path = str(tmp_path / "varying.mp4")
    with av.open(path, "w") as file:
        stream = file.add_stream("mpeg4", rate=1000)
        stream.width, stream.height, stream.time_base = 96, 64, Fraction(1, 1000)
        for number, time in enumerate([0, 10, 35, 36, 80, 200, 201, 500]):
            frame = av.VideoFrame.from_ndarray(draw_frame(number), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    check(path)


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[9]], ids=lambda case: case[0])
def test_equal_time_stamps_are_several_frames(tmp_path, monkeypatch, case):
    path, demux = encode(tmp_path, case), av.container.InputContainer.demux
    frames = from_the_start(path)

    class Container:
        """A container in which pairs of packets share a time stamp."""

        def __init__(self, container):
            self._container = container

        def demux(self, stream):
            for packet in demux(self._container, stream):
                if packet.pts is not None:
                    packet.pts -= packet.pts % (2 * (packet.duration or 1))
                yield packet

        def __getattr__(self, name):
            return getattr(self._container, name)

    opened = video.open_media

    def open_media(av, source):
        media = opened(av, source)
        media.container = Container(media.container)
        return media

    monkeypatch.setattr(video, "open_media", open_media)
    index = index_video(path)
    assert len(index) == len(frames) and not index.seekable
    decoder = VideoDecoder(path, index)
    for number in (20, 3, 4, 30, 0):
        assert find_index(decoder.read([number])[0], frames) == number
    decoder.close()


@pytest.mark.parametrize("case", [CASES[0], *(c for c in SLOW if c[0] == "png.mov")], ids=lambda case: case[0])
def test_a_damaged_frame_is_an_error_with_file_and_frame(tmp_path, case):
    path = encode(tmp_path, case)
    frames, data = from_the_start(path), bytearray(Path(path).read_bytes())
    with av.open(path) as file:
        packets = [(p.pos, p.size, p.is_keyframe) for p in file.demux(file.streams.video[0]) if p.size]
    position, size, _ = packets[13]
    data[position + 1 : position + size] = b"\xff" * (size - 1)
    Path(path).write_bytes(data)
    decoder = VideoDecoder(path)
    failed, wrong = [], []
    for number in range(len(decoder.index)):
        try:
            frame = decoder.read([number])[0]
        except DecodeError as error:
            assert str(path) in str(error) and f"frame {number} " in str(error)
            failed.append(number)
        else:
            if find_index(frame, frames) != number:
                wrong.append(number)
    assert failed and not wrong
    assert all(number in range(8, 24) for number in failed)  # no others than those around it


def test_the_error_of_the_reader_names_a_file_without_frames(tmp_path):
    good = encode(tmp_path, CASES[0])
    empty = str(tmp_path / "empty.mp4")
    with av.open(empty, "w") as file:
        stream = file.add_stream("mpeg4", rate=25)
        stream.width, stream.height = 96, 64
        file.start_encoding()
    with pytest.raises(DecodeError, match=r"empty\.mp4"):
        index_video(empty)

    @pipeline_def(batch_size=1, num_threads=1, device_id="cpu")
    def define():
        return fn.readers.video(device="gpu", filenames=[good, empty], sequence_length=2)

    with pytest.warns(UserWarning, match=r"empty\.mp4"):
        define().build()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="MALLOC_PERTURB_ is of glibc")
def test_damaged_files_deliver_only_decoded_data(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    for case in CASES:
        if case[1] in av.codecs_available:
            encode(folder, case)
    script = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "damaged_videos.py"), str(folder), "300", "0"]
    outputs = [
        subprocess.run(
            script, env={**os.environ, "MALLOC_PERTURB_": fill}, capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for fill in ("85", "170")
    ]
    assert len(outputs[0].splitlines()) == 300 and outputs[0] == outputs[1]
