"""Videos against the real DALI, which decodes VP8, VP9 and Motion JPEG on the CPU: frames are bit-identical."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

from tests.check import PerSample, check, pipeline
from tests.helpers.encoded_video import make
from torchdali.codecs.video import VideoDecoder

pytestmark = pytest.mark.parity

EXCEPTIONS = {
    "readers.video": "DALI has it only on the GPU; compared with PyAV in readers/test_video.py",
    "readers.video_resize": "the same as `readers.video`",
}
NAMES = ("vp9.webm", "vp8.webm", "mjpeg.avi")


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    found = {name: make(folder, name) for name in NAMES}
    found["vfr"] = make(folder, "vfr-vp9.webm", [40 * i + 13 * (i % 3) for i in range(30)])
    return found


@pytest.mark.parametrize("name", [*NAMES, "vfr"])
def test_whole_videos(videos, name):
    check("decoders.video", [[np.fromfile(videos[name], np.uint8)]])


def decoded(library, data):
    return pipeline(library, "decoders.video", [[data]], {})[0].samples[0].astype(int)


@pytest.mark.parametrize("matrix", [None, 1, 5, 6])
def test_matrices_of_colors(tmp_path, matrix):
    """Files of BT.709 are converted with their matrix (ITU-R BT.709-6); DALI uses the matrix of BT.601."""
    path = make(tmp_path, "vp9.webm", matrix=matrix)
    found, theirs = (decoded(library, np.fromfile(path, np.uint8)) for library in ("torchdali", "nvidia.dali"))
    if matrix != 1:
        assert np.array_equal(found, theirs)
        return
    y, u, v = np.moveaxis(VideoDecoder(path, color="YCbCr").read(range(len(found))).numpy().astype(float), -1, 0)
    y, u, v = (y - 16) / 219, (u - 128) / 224, (v - 128) / 224
    colors = np.stack([y + 1.5748 * v, y - 0.1873 * u - 0.4681 * v, y + 1.8556 * u], -1)
    assert np.abs(found - colors.clip(0, 1) * 255).max() <= 2
    difference = np.abs(found - theirs).max((0, 1, 2))
    assert (difference > 8).all() and (difference <= (22, 37, 12)).all()


RANGES = [
    {"start_frame": 5}, {"start_frame": 5, "end_frame": 8}, {"start_frame": 5, "sequence_length": 3}, {"sequence_length": 3, "stride": 4},
    {"stride": 7}, {"end_frame": 10, "stride": 4}, {"start_frame": 28, "end_frame": 33}, {"sequence_length": 0},
    {"frames": [3, 1, 1, 29]}, {"frames": [-1]}, {"frames": [40, 2]}, {"frames": [30, 31], "pad_mode": "edge"},
    {"start_frame": PerSample([3, 9]), "sequence_length": PerSample([2, 4])},
    *({"start_frame": 28, "sequence_length": 5, "pad_mode": mode} for mode in ("none", "edge", "repeat", "constant", "symmetric", "reflect", "reflect_101", "reflect_1001")),
    {"start_frame": 28, "sequence_length": 5, "fill_value": [7, 8, 9]}, {"start_frame": 1, "end_frame": 9, "build_index": False},
]  # fmt: skip


@pytest.mark.parametrize("arguments", RANGES, ids=str)
def test_ranges(videos, arguments):
    data = [np.fromfile(videos[name], np.uint8) for name in NAMES[:2]]
    check("decoders.video", [data], arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"pad_mode": "foo", "sequence_length": 40}, {"start_frame": 40}, {"start_frame": 5, "end_frame": 5}, {"frames": [1], "start_frame": 1},
     {"end_frame": 5, "sequence_length": 3}, {"start_frame": 28, "sequence_length": 5, "fill_value": [7, 8]},
     {"fill_value": 300, "start_frame": 29, "sequence_length": 2}, {"sequence_length": -1}],
    ids=str,
)  # fmt: skip
def test_refused_ranges(videos, arguments):
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises(RuntimeError):
            pipeline(library, "decoders.video", [[np.fromfile(videos["vp9.webm"], np.uint8)]], arguments)


def read(library, runs=2, batch_size=3, **arguments):
    """Run the reader, and return its outputs and its metadata."""
    package, fn = importlib.import_module(library), importlib.import_module(f"{library}.fn")

    @package.pipeline_def(batch_size=batch_size, num_threads=1, device_id=None)
    def define():
        made = fn.experimental.readers.video(**arguments)
        return tuple(made) if isinstance(made, (list, tuple)) else made

    pipe = define()
    pipe.build()
    outputs = [(o.layout(), [np.array(o.at(i)) for i in range(len(o))]) for _ in range(runs) for o in pipe.run()]
    return outputs, next(iter(pipe.reader_meta().values()))


def same(**arguments):
    found, said = read("torchdali", **arguments)
    wanted, told = read("nvidia.dali", **arguments)
    assert said == told and len(found) == len(wanted)
    for (layout, samples), (other, reference) in zip(found, wanted, strict=True):
        assert layout == other
        for x, y in zip(samples, reference, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            assert np.allclose(x, y, rtol=0, atol=1e-9 if x.dtype.kind == "f" else 0)


CLIPS = [
    {"sequence_length": 4}, {"sequence_length": 4, "stride": 3, "step": 5}, {"sequence_length": 12}, {"sequence_length": 4, "labels": [7]},
    {"sequence_length": 4, "stride": 2, "enable_timestamps": True, "enable_frame_num": "sequence"}, {"sequence_length": 4, "enable_frame_num": "scalar"},
    *({"sequence_length": 12, "step": 12, "pad_mode": mode, "enable_frame_num": "sequence", "enable_timestamps": True} for mode in ("edge", "repeat", "constant", "symmetric", "reflect")),
    *({"sequence_length": n, "step": step, "stride": stride, "pad_mode": mode, "enable_frame_num": "sequence"}
      for n, step, stride in ((8, 2, 1), (5, 1, 3), (8, 11, 1), (3, 27, 1)) for mode in ("edge", "none")),
    {"sequence_length": 40, "step": 1, "pad_mode": "constant", "enable_frame_num": "sequence"},
    {"sequence_length": 40, "pad_mode": "edge"}, {"sequence_length": 12, "step": 12, "pad_mode": "constant", "fill_value": 80},
    *({"sequence_length": n, "uniform_sample": True, "enable_frame_num": "sequence"} for n in (1, 5, 31)),
]  # fmt: skip


@pytest.mark.parametrize("arguments", CLIPS, ids=str)
def test_clips(videos, arguments):
    same(filenames=[videos["vp9.webm"]], **arguments)


def test_several_files(videos):
    same(filenames=[videos[n] for n in NAMES], sequence_length=20, labels=[7, 8, 9], enable_timestamps=True, enable_frame_num="scalar")
    same(filenames=[videos["vfr"]], sequence_length=4, enable_timestamps=True)


LISTS = [
    ("", {"step": 12}), ("0.2 0.4", {}), ("0.20 0.40", {"file_list_include_end": False}),
    *(("0.21 0.29", {"file_list_rounding": rounding}) for rounding in ("start_down_end_up", "start_up_end_down", "all_up", "all_down")),
    *((bounds, {"file_list_format": "frames"}) for bounds in ("5 9", "5 -3", "-9 -3", "5 500", "0 3")),
    *(("5 8", {"file_list_format": "frames", "sequence_length": 9, "pad_mode": mode}) for mode in ("symmetric", "reflect", "constant")),
    ("5 12", {"file_list_format": "frames", "step": 1}), ("5 12", {"file_list_format": "frames", "step": 2, "stride": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("bounds", "arguments"), LISTS, ids=str)
@pytest.mark.parametrize("name", ["vp9.webm", "vfr"])
def test_lists(videos, tmp_path, name, bounds, arguments):
    (tmp_path / "list.txt").write_text(f"{videos[name]} 3 {bounds}\n")
    given = {"sequence_length": 4, "pad_mode": "edge", "batch_size": 2, **arguments}
    same(file_list=str(tmp_path / "list.txt"), enable_frame_num="sequence", enable_timestamps=True, **given)


@pytest.mark.parametrize(
    "arguments",
    [{"sequence_length": 40}, {"enable_frame_num": "x"}, {"pad_mode": "x"}, {"image_type": "GRAY"}, {"labels": [1, 2]}, {"filenames": []},
     {"file_list_rounding": "x"}, {"file_list_format": "x"}, {"filenames": ["nowhere.mp4"]}],
    ids=str,
)  # fmt: skip
def test_refused_clips(videos, arguments):
    for library in ("torchdali", "nvidia.dali"):
        types = importlib.import_module(f"{library}.types")
        given = {"filenames": [videos["vp9.webm"]], "sequence_length": 3, **arguments}
        if "image_type" in given:
            given["image_type"] = getattr(types, given["image_type"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if any(key.startswith("file_list_") for key in arguments):
                given |= {"filenames": [], "file_list": "nothing.txt"}
            with pytest.raises(RuntimeError):
                read(library, **given)


@pytest.mark.parametrize("policy", ["partial", "pad"])
def test_fed_videos(videos, policy):
    def run(library):
        package, fn = importlib.import_module(library), importlib.import_module(f"{library}.fn")

        @package.pipeline_def(batch_size=3, num_threads=1, device_id=None, exec_pipelined=False, exec_async=False, prefetch_queue_depth=1)
        def define():
            return fn.experimental.inputs.video(name="film", sequence_length=4, last_sequence_policy=policy)

        pipe = define()
        pipe.build()
        pipe.feed_input("film", np.fromfile(videos["vp9.webm"], np.uint8)[None, None])
        pipe.feed_input("film", [np.fromfile(videos["vp8.webm"], np.uint8)])
        found = []
        for _ in range(6):
            (batch,) = pipe.run()
            found.append([np.array(batch.at(i)) for i in range(len(batch))])
        with pytest.raises(RuntimeError, match="No data was provided"):
            pipe.run()
        return found

    for one, other in zip(run("torchdali"), run("nvidia.dali"), strict=True):
        for x, y in zip(one, other, strict=True):
            assert np.array_equal(x, y)
