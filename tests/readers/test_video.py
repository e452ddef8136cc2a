"""The video readers that DALI only runs on the GPU, sequence operators on their outputs, and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.encoded_video import asking, make, numbers
from tests.helpers.lines import lines_of
from torchdali import fn, pipeline_def, types
from torchdali.codecs.video import VideoDecoder


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return make(tmp_path_factory.mktemp("videos"), "h264.mp4")


def run(make_node, runs=1, batch_size=2, **options):
    @pipeline_def(batch_size=batch_size, **{"num_threads": 2, "device_id": None, **options})
    def define():
        made = make_node()
        return tuple(made) if isinstance(made, list) else made

    pipe = define()
    found = [[[np.array(o.as_cpu().at(i)) for i in range(len(o))] for o in pipe.run()] for _ in range(runs)]
    pipe.close()
    return found


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_frames_match_the_decoder(path, device):
    (batch,) = run(lambda: fn.readers.video(device=device, filenames=[path], sequence_length=5, step=3), device_id="cpu")
    for i, frames in enumerate(batch[0]):
        assert np.array_equal(frames, VideoDecoder(path).read(range(3 * i, 3 * i + 5)).numpy())


def test_fast_colors(path):
    (batch,) = run(lambda: fn.readers.video(filenames=[path], sequence_length=3, fast=True, adjust_orientation=True), batch_size=1)
    wanted = VideoDecoder(path, fast=True).read(range(3)).numpy()
    assert np.array_equal(batch[0][0], wanted)
    encoded = np.fromfile(path, np.uint8)
    (batch,) = run(lambda: fn.decoders.video(types.Constant(encoded, device="cpu"), sequence_length=3, fast=True), batch_size=1)
    assert np.array_equal(batch[0][0], wanted)


UPRIGHT = [
    lambda path, **a: fn.readers.video(filenames=[path], sequence_length=3, **a),
    lambda path, **a: fn.readers.video(filenames=[path], sequence_length=40, pad_sequences=True, **a),
    lambda path, **a: fn.readers.video(file_list=f"{path}.txt", sequence_length=3, **a)[0],
    lambda path, **a: fn.readers.video_resize(filenames=[path], sequence_length=3, resize_x=64, resize_y=96, **a),
    lambda path, **a: fn.experimental.readers.video(filenames=[path], sequence_length=3, **a),
    lambda path, **a: fn.decoders.video(types.Constant(np.fromfile(path, np.uint8), device="cpu"), sequence_length=3, **a),
    lambda path, **a: fn.decoders.video(fn.io.file.read(types.Constant(np.frombuffer(path.encode(), np.uint8), device="cpu")), frames=[0, 1, 2], **a),
]


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("make_node", UPRIGHT)
def test_videos_of_phones_are_upright(path, tmp_path, make_node, device):
    turned = str(tmp_path / "phone.mp4")
    asking(path, 0, 1, -1, 0).tofile(turned)
    (tmp_path / "phone.mp4.txt").write_text(f"{turned} 0\n")
    stored = VideoDecoder(path).read(range(3)).numpy()
    (batch,) = run(lambda: make_node(turned), batch_size=1, device_id=device)
    assert np.array_equal(batch[0][0][:3], np.rot90(stored, -1, (1, 2)))
    (batch,) = run(lambda: make_node(turned, adjust_orientation=False), batch_size=1, device_id=device)
    assert not np.array_equal(batch[0][0][:3], np.rot90(stored, -1, (1, 2)))


@pytest.mark.parametrize("upright", [True, False])
def test_an_input_is_upright(path, upright):
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define():
        return fn.experimental.inputs.video(name="film", sequence_length=2, adjust_orientation=upright)

    pipe = define()
    pipe.feed_input("film", [asking(path, 0, 1, -1, 0)])
    assert pipe.run()[0].at(0).shape == ((2, 96, 64, 3) if upright else (2, 64, 96, 3))


def test_floats(path):
    (batch,) = run(lambda: fn.readers.video(filenames=[path], sequence_length=2, dtype=types.FLOAT, normalized=True))
    assert batch[0][0].dtype == np.float32
    assert np.allclose(batch[0][0] * 255, VideoDecoder(path).read([0, 1]).numpy(), atol=1e-3)


def test_resized_frames_match_resize(path):
    def both():
        resized = fn.readers.video_resize(filenames=[path], sequence_length=3, resize_x=40.0, resize_y=20.0)
        return [resized, fn.resize(fn.readers.video(filenames=[path], sequence_length=3), resize_x=40.0, resize_y=20.0)]

    (batch,) = run(both)
    assert batch[0][0].shape == (3, 20, 40, 3) and np.array_equal(batch[0], batch[1])


def test_padded_sequences(path):
    (batch,) = run(lambda: fn.readers.video(filenames=[path], sequence_length=20, pad_sequences=True, enable_frame_num="sequence"))
    assert not batch[0][1][10:].any() and batch[1][1].tolist() == [*range(20, 30), *[-1] * 10]


@pytest.mark.parametrize(
    ("bounds", "arguments", "wanted"),
    [("5 9", {"file_list_frame_num": True}, [5, 6, 7, 8]), ("-6 -2", {"file_list_frame_num": True}, [24, 25, 26, 27]),
     ("0.21 0.4", {}, [6, 7, 8, 9]), ("0.21 0.4", {"file_list_include_preceding_frame": True}, [5, 6, 7, 8])],
)  # fmt: skip
def test_lists(path, tmp_path, bounds, arguments, wanted):
    (tmp_path / "list.txt").write_text(f"{path} 3 {bounds}\n")
    (batch,) = run(
        lambda: fn.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=4, enable_frame_num="sequence", **arguments)
    )
    assert batch[1][0].tolist() == [3] and batch[2][0].tolist() == wanted
    assert numbers(batch[0][0]) == pytest.approx(wanted, abs=1)


def test_class_folders_without_videos_warn(path, tmp_path):
    for name in (".hidden", "a", "m"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "1.mp4").symlink_to(path)
    with pytest.warns(UserWarning) as said:
        (batch,) = run(lambda: fn.readers.video(file_root=str(tmp_path), sequence_length=4, step=30))
    assert batch[1][0].tolist() == [1]
    first, second = (str(each.message) for each in said)
    assert "the hidden folder '.hidden' is read as a class, with label 0" in first
    assert "1 of 3 class folders have no readable file, 'm'" in second


@pytest.mark.parametrize("bounds", ["nan", "nan 5", "0 nan", "0 -NaN"])
def test_bounds_that_are_not_numbers(path, tmp_path, bounds):
    (tmp_path / "list.txt").write_text(f"{path} 3 {bounds}\n")
    with pytest.raises(RuntimeError, match=r"list\.txt', line 1: expected a path, a label and at most two bounds"):
        run(lambda: fn.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=4))


def test_sequence_operators_in_one_graph(path):
    def augmented():
        clip = fn.experimental.readers.video(filenames=[path], sequence_length=6, random_shuffle=True, step=2)
        clip = fn.sequence_rearrange(fn.resize(clip, size=[32, 48]), new_order=[5, 3, 1])
        clip = fn.rotate(clip, angle=fn.random.uniform(range=[-10.0, 10.0]), keep_size=True)
        return fn.crop_mirror_normalize(clip, mirror=fn.random.coin_flip(), output_layout="FCHW")

    found = run(augmented, runs=3, seed=7)
    assert all(sample.shape == (3, 3, 32, 48) for batch in found for sample in batch[0])
    again = run(augmented, runs=3, seed=7, num_threads=1)
    assert all(np.array_equal(x, y) for a, b in zip(found, again, strict=True) for x, y in zip(a[0], b[0], strict=True))


def test_a_checkpoint_continues_with_the_same_clips(path):
    @pipeline_def(batch_size=2, num_threads=2, device_id=None, seed=3)
    def define():
        return tuple(fn.experimental.readers.video(filenames=[path], sequence_length=3, random_shuffle=True, enable_frame_num="sequence"))

    def clips(pipe, count):
        return [np.array(pipe.run()[1].as_array()).tolist() for _ in range(count)]

    first = define()
    clips(first, 3)
    saved, wanted = first.checkpoint(), clips(first, 4)
    second = define(checkpoint=saved)
    assert clips(second, 4) == wanted


@pytest.mark.parametrize("names", [["none.mp4"], ["none.mp4", "neither.mp4"]])
def test_only_unreadable_files_are_an_error(tmp_path, names):
    files = [str(tmp_path / name) for name in names]
    with pytest.raises(RuntimeError, match=rf"none of the videos can be opened: {files[-1]}: No such file"):
        run(lambda: fn.readers.video(filenames=files, sequence_length=2))


def test_an_unreadable_file_is_skipped(path, tmp_path):
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    with pytest.warns(UserWarning, match=r"broken\.mp4") as said:
        found = run(lambda: fn.readers.video(filenames=[str(tmp_path / "broken.mp4"), path], sequence_length=3, enable_frame_num="scalar"))
    assert found[0][1][0].tolist() == [0]
    assert "fn.readers.video(" in lines_of(said)[0]


@pytest.mark.parametrize("arguments", [{"channels": 1}, {"dtype": types.INT16}, {"sequence_length": 0}, {"step": 0}, {"stride": 0}])
def test_refused(path, arguments):
    with pytest.raises(RuntimeError):
        run(lambda: fn.readers.video(**{"filenames": [path], "sequence_length": 3, **arguments}))


@pytest.mark.parametrize("arguments", [{"sequence_length": 0}, {"sequence_length": 2, "last_sequence_policy": "x"}])
def test_refused_inputs(arguments):
    with pytest.raises(RuntimeError):
        run(lambda: fn.experimental.inputs.video(name="film", **arguments))
