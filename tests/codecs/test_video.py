"""Video: exact random access in every codec, damaged files, and the number of open files."""

from __future__ import annotations

import gc
import os
import random
import re
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.helpers.data import folder
from tests.helpers.encoded_video import CODECS, FRAMES, asking, make, numbers
from torchdali.codecs.video import VideoDecoder, VideoIndex, index_video
from torchdali.codecs.video_clips import pad_frames, read_clip, uniform
from torchdali.codecs.video_files import VideoFiles, index_file
from torchdali.errors import DecodeError, MissingExtraError
from torchdali.installation import extra_command

EXACT = 0x2 | 0x2000 | 0x40000


def by_pyav(path):
    """Decode all frames one after the other."""
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    with av.open(path) as file:
        found = sorted(file.decode(file.streams.best("video")), key=lambda frame: frame.pts)
        return np.stack([f.to_ndarray(format="rgb24", interpolation=EXACT) for f in found])


@pytest.mark.parametrize("name", CODECS)
def test_random_access_matches_pyav(tmp_path, name):
    path = make(tmp_path, name)
    wanted, decoder = by_pyav(path), VideoDecoder(path)
    assert len(decoder.index) == FRAMES == len(wanted)
    rng = random.Random(3)
    for _ in range(20):
        frames = rng.sample(range(FRAMES), rng.randint(1, 6))
        assert np.array_equal(decoder.read(frames).numpy(), wanted[frames])
    assert np.array_equal(decoder.read(range(FRAMES)).numpy(), wanted)
    assert numbers(wanted) == pytest.approx(range(FRAMES), abs=1)
    decoder.close()


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", [pytest.param("nasa_13013.mp4", marks=pytest.mark.slow), "h265_video.mp4", "av1_video.mkv", "bt709_full_range.mp4"])
def test_real_files(name):
    path = str(folder("video") / name)
    wanted, decoder = by_pyav(path), VideoDecoder(path)
    assert len(decoder.index) == len(wanted)
    rng = random.Random(5)
    for _ in range(8):
        start = rng.randrange(max(len(wanted) - 6, 1))
        frames = [min(start + i, len(wanted) - 1) for i in range(6)]
        assert np.array_equal(decoder.read(frames).numpy(), wanted[frames]), start
    decoder.close()


def test_bytes_decode_as_files_do(tmp_path):
    path = make(tmp_path, "h264.mp4")
    data = torch.from_numpy(np.fromfile(path, np.uint8))
    assert index_video(data) == index_video(path)
    assert torch.equal(VideoDecoder(data).read([20, 3]), VideoDecoder(path).read([20, 3]))


def test_repeated_frames_and_an_output_tensor(tmp_path):
    decoder = VideoDecoder(make(tmp_path, "vp9.webm"))
    place = torch.zeros(4, *decoder.shape, dtype=torch.uint8)
    found = decoder.read([7, 2, 7, 7], place)
    assert found is place and torch.equal(found[0], found[3]) and not torch.equal(found[0], found[1])


QUARTERS = [(1, 0, 0, 1), (0, 1, -1, 0), (-1, 0, 0, -1), (0, -1, 1, 0)]  # clockwise


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_frames_are_rotated_by_the_display_matrix(tmp_path, quarters, mirrored):
    path, (a, b, c, d) = make(tmp_path, "h264.mp4"), QUARTERS[quarters]
    video = torch.from_numpy(asking(path, *((-a, -b, c, d) if mirrored else (a, b, c, d))).copy())
    stored, upright = VideoDecoder(video), VideoDecoder(video, upright=True)
    wanted = stored.read([2, 5])
    wanted = torch.rot90(wanted.flip(2) if mirrored else wanted, -quarters, (1, 2))
    assert torch.equal(upright.read([2, 5]), wanted) and upright.shape == tuple(wanted.shape[1:])
    assert VideoDecoder(video, upright=True).shape == upright.shape  # before a frame was read
    assert stored.shape == VideoDecoder(path).shape


def test_other_angles_are_ignored(tmp_path):
    video = torch.from_numpy(asking(make(tmp_path, "h264.mp4"), 1, 1, -1, 1).copy())
    assert torch.equal(VideoDecoder(video, upright=True).read([4]), VideoDecoder(video).read([4]))


def test_frames_beyond_the_end_of_an_upright_video(tmp_path):
    decoder = VideoDecoder(torch.from_numpy(asking(make(tmp_path, "h264.mp4"), *QUARTERS[1]).copy()), upright=True)
    clip = read_clip(decoder, [28, -1, 29], torch.tensor([1, 2, 3], dtype=torch.uint8))
    assert clip.shape == (3, 96, 64, 3) and (clip[1] == torch.tensor([1, 2, 3])).all()
    assert read_clip(decoder, [-1], torch.tensor([0])).shape == (1, 96, 64, 3)


def test_fast_colors_are_close(tmp_path):
    path = make(tmp_path, "h264.mp4")
    exact, fast = (VideoDecoder(path, fast=fast).read([3, 9]).float() for fast in (False, True))
    assert 0 < (exact - fast).abs().mean() < 3


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("with_opencv", [True, False])
@pytest.mark.parametrize("kind", ["yuv420p", "yuvj420p", "yuv422p", "yuv444p", "yuv420p10le", "nv12", "gray"])
def test_colors_match_rgb24(monkeypatch, kind, with_opencv, turns):
    """FFmpeg converts color planes faster than pixels; the results must be bit-identical."""
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    if not with_opencv:
        monkeypatch.setattr("torchdali.codecs.video.opencv", lambda: None)
    rng = np.random.default_rng(5)
    for width, height in ((33, 16), (64, 48), (130, 71), (130, 70), (33, 17), (2, 2), (1, 1), (97, 54)):
        frame = av.VideoFrame(width, height, kind)
        for plane in frame.planes:
            plane.update(rng.integers(0, 256, plane.buffer_size, np.uint8).tobytes())
        wanted = np.rot90(frame.to_ndarray(format="rgb24", interpolation=EXACT), turns)
        decoder = VideoDecoder("", VideoIndex((0,), (0,), Fraction(1), width, height))
        decoder._turn = (turns, False)
        made = torch.empty(decoder.shape, dtype=torch.uint8)
        decoder._convert(frame, made)
        assert np.array_equal(made.numpy(), wanted), (width, height)


def test_times_of_a_varying_rate(tmp_path):
    times = [40 * i + 10 * (i % 3) for i in range(FRAMES)]
    index = index_video(make(tmp_path, "vp9.webm", times))
    assert [round(1000 * index.seconds(i)) for i in range(FRAMES)] == times


def test_coded_colors(tmp_path):
    path = make(tmp_path, "vp9.webm")
    found = VideoDecoder(path, color="YCbCr").read([4])
    assert found.shape == (1, 64, 96, 3)
    y, rgb = found[0, :, :, 0].float(), VideoDecoder(path).read([4])[0].float()
    luma = rgb @ torch.tensor([0.299, 0.587, 0.114]) * 219 / 255 + 16
    assert (y - luma).abs().mean() < 2


def test_an_open_decoder_continues_if_the_next_clip_is_ahead(tmp_path, monkeypatch):
    decoder, seeks = VideoDecoder(make(tmp_path, "vp9.webm")), []
    decoder.read([8])
    monkeypatch.setattr(decoder, "_seek", lambda time: seeks.append(time))
    for frame in (9, 12, 15, 16, 17):
        decoder.read([frame])
    assert not seeks


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_non_reference_frames_are_skipped_on_the_way(tmp_path):
    path = make(tmp_path, "h264.mp4")
    wanted, decoder = by_pyav(path), VideoDecoder(path)
    for frame in range(0, FRAMES, 3):  # in each, the decoder seeks, and then decodes all following frames
        decoder.read([0])
        found = decoder.read(range(frame, FRAMES)).numpy()
        assert np.array_equal(found, wanted[frame:]), frame
    decoder.close()
    decoder.read([0])
    decoder._frame_stream.target_time = decoder.index.times[-1]
    assert len(list(decoder._ahead)) < FRAMES - 1, "all frames are decoded"
    decoder.close()


def test_an_open_decoder_is_collected_after_pyav_was_unloaded(tmp_path, monkeypatch):
    """As at interpreter exit, when the names in PyAV's modules are None."""
    av = pytest.importorskip("av", reason="the extra `video` is not installed")
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    decoder = VideoDecoder(make(tmp_path, "vp9.webm"))
    decoder.read([0, 1])
    monkeypatch.setattr(av, "FFmpegError", None)
    del decoder
    gc.collect()
    assert not said


def test_an_open_decoder_has_no_threads(tmp_path):
    path = make(tmp_path, next(iter(CODECS)))
    VideoDecoder(path).read([0])  # threads that PyAV starts once per process
    before = len(os.listdir("/proc/self/task"))
    decoder = VideoDecoder(path)
    decoder.read(range(FRAMES))
    assert len(os.listdir("/proc/self/task")) <= before
    decoder.close()


def test_few_idle_files_stay_open(tmp_path):
    paths = [make(tmp_path, f"{i}-vp8.webm", frames=2) for i in range(12)]
    files = VideoFiles()
    for path in paths * 2:
        with files.lend(path) as decoder:
            decoder.read([1])
    opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for path in paths * 3:
        with files.lend(path) as decoder:
            decoder.read([0])
    if opened:
        assert len(os.listdir("/proc/self/fd")) <= opened + 1


def test_an_index_is_rebuilt_when_the_file_changes(tmp_path):
    path = make(tmp_path, "vp8.webm", frames=5)
    assert len(index_file(path)) == 5
    make(tmp_path, "vp8.webm", frames=9)
    assert len(index_file(path)) == 9


@pytest.mark.parametrize("data", [b"", b"no video at all", bytes(range(256)) * 20])
def test_refused(data):
    pytest.importorskip("av", reason="the extra `video` is not installed")
    with pytest.raises(DecodeError):
        index_video(torch.from_numpy(np.frombuffer(data, np.uint8).copy()))


def test_a_missing_file(tmp_path):
    with pytest.raises(DecodeError, match="nowhere"):
        index_file(str(tmp_path / "nowhere.mp4"))


def test_without_pyav(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(MissingExtraError, match=re.escape(extra_command("video"))):
        index_video("film.mp4")


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("none", [3, 4]), ("constant", [3, 4, -1, -1]), ("edge", [3, 4, 4, 4]), ("repeat", [3, 4, 4, 4]), ("symmetric", [3, 4, 4, 3]),
     ("reflect_1001", [3, 4, 4, 3]), ("reflect", [3, 4, 3, 2]), ("reflect_101", [3, 4, 3, 2])],
)  # fmt: skip
def test_padding(mode, wanted):
    assert pad_frames([3, 4, 5, 6], 5, mode) == wanted


def test_reflections_of_one_frame():
    assert pad_frames([0, 1, 2], 1, "reflect") == pad_frames([0, 1, 2], 1, "symmetric") == [0, 0, 0]


def test_uniform_samples():
    assert uniform(0, 30, 5) == [0, 7, 15, 22, 29] and uniform(3, 9, 1) == [3] and uniform(0, 3, 3) == [0, 1, 2]


def _fuzz(folder, count, seed):
    rng = np.random.default_rng(seed)
    names = ("vp9.webm", "vp8.webm", "mjpeg.avi", "h264.mp4", "mpeg4.mp4")
    sources = [np.fromfile(make(folder, name, frames=6), np.uint8) for name in names]
    outcomes = {"decoded": 0, "refused": 0}
    for i in range(count):
        data = sources[i % len(sources)].copy()
        head = 400 if rng.random() < 0.3 else len(data)
        for at in rng.integers(0, min(head, len(data)), rng.integers(1, 12)):
            data[at] = rng.integers(0, 256)
        if rng.random() < 0.3:
            data = data[: rng.integers(0, len(data))]
        try:
            decoder = VideoDecoder(torch.from_numpy(data))
            decoder.read(range(min(len(decoder.index), 3)))
            decoder.close()
            outcomes["decoded"] += 1
        except DecodeError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > count // 20, outcomes


def test_damaged_files(tmp_path):
    _fuzz(tmp_path, 200, 1)


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    import resource

    _fuzz(tmp_path, 500, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _fuzz(tmp_path, 10_000, 3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # KiB
