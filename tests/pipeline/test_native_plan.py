"""Pipelines on the fast path: results, errors and order match the Python path."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded, exif, smooth_image
from tests.helpers.inside import fused_calls
from tests.helpers.native import both_paths, needs_native, switched_off
from torchdali import fn, pipeline_def, types
from torchdali.execute import compiled_chain

pytestmark = needs_native

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
SIZE = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight images, of which the fast path does not support some."""
    root: Path = tmp_path_factory.mktemp("images")
    files = {
        "0.jpg": encoded(smooth_image(90, 130), "JPEG"),
        "1.jpg": encoded(smooth_image(100, 70), "JPEG", progressive=True),
        "2.png": encoded(smooth_image(80, 80), "PNG"),
        "3.jpg": encoded(smooth_image(81, 95), "JPEG", exif=exif(6)),
        "4.jpg": encoded(smooth_image(70, 120)[:, :, 0].copy(), "JPEG"),
        "5.jpg": encoded(smooth_image(64, 200), "JPEG", subsampling="4:4:4"),
        "6.jpg": encoded(smooth_image(150, 140), "JPEG") + b"more",
        "7.jpg": encoded(smooth_image(75, 77), "JPEG", restart_marker_rows=1),
    }
    for name, data in files.items():
        (root / name).write_bytes(data)
    return root


def read(folder: Path, **options: Any) -> Any:
    files = sorted(str(file) for file in folder.iterdir())
    return fn.readers.file(files=files, name="Reader", **options)


def finish(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, **options)


def train(folder: Path) -> Any:
    data, _ = read(folder, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(data), size=SIZE)
    return finish(images, mirror=fn.random.coin_flip())


def crop_after(folder: Path) -> Any:
    data, _ = read(folder)
    images = fn.random_resized_crop(fn.decoders.image(data), size=[50, 60], seed=5)
    return finish(images, mirror=1, crop=[40, 44], crop_pos_x=0.3, output_layout="HWC", seed=3)


def half(folder: Path) -> Any:
    data, _ = read(folder)
    images = fn.random_resized_crop(fn.decoders.image(data), size=SIZE, antialias=False)
    return finish(images, dtype=types.FLOAT16, scale=2.0, shift=1.0)


def filtered(folder: Path) -> Any:
    data, _ = read(folder)
    images = fn.random_resized_crop(fn.decoders.image(data), size=SIZE, interp_type=types.INTERP_CUBIC)
    return finish(images)


def bytes_out(folder: Path) -> Any:
    data, _ = read(folder)
    return fn.random_resized_crop(fn.decoders.image(data), size=SIZE)


def validate(folder: Path) -> Any:
    data, _ = read(folder)
    images = fn.resize(fn.decoders.image(data), resize_shorter=60)
    return finish(images, crop=[SIZE, SIZE])


def signed(folder: Path) -> Any:
    data, _ = read(folder)
    images = fn.resize(fn.decoders.image(data), size=[SIZE, SIZE])
    return fn.crop_mirror_normalize(images, mean=128.0, dtype=types.INT8, output_layout="HWC", mirror=1)


def region(folder: Path) -> Any:
    images = fn.decoders.image_random_crop(read(folder)[0], random_area=[0.2, 0.9])
    return finish(fn.resize(images, size=[SIZE, SIZE]), mirror=fn.random.coin_flip())


def region_and_crop(folder: Path) -> Any:
    images = fn.decoders.image_random_crop(read(folder)[0], seed=4)
    images = fn.resize(images, resize_shorter=60, interp_type=types.INTERP_NN)
    return finish(images, crop=[50, 40], mirror=1)


def resized(folder: Path) -> Any:
    return fn.resize(fn.decoders.image(read(folder)[0]), size=[40, 50], antialias=False)


def cropped(folder: Path) -> Any:
    return finish(fn.decoders.image(read(folder)[0]), crop=[60, 66], crop_pos_x=0.9, mirror=fn.random.coin_flip())


def with_condition(folder: Path) -> Any:
    data, _ = read(folder)
    if fn.random.coin_flip(dtype=types.BOOL):
        out = finish(fn.random_resized_crop(fn.decoders.image(data), size=SIZE))
    else:
        out = finish(fn.resize(fn.decoders.image(data), size=[SIZE, SIZE]))
    return out


def decoded(folder: Path) -> Any:
    return fn.crop(fn.decoders.image(read(folder)[0], output_type=types.RGB), crop=[60, 66])


def cut_and_resized(folder: Path) -> Any:
    """A crop between decoder and resize."""
    images = fn.crop(fn.decoders.image(read(folder)[0]), crop=[60, 66], crop_pos_y=fn.random.uniform(range=[0.0, 1.0]))
    return fn.resize(images, size=[SIZE, SIZE])


def flipped(folder: Path) -> Any:
    images = fn.random_resized_crop(fn.decoders.image(read(folder)[0]), size=SIZE)
    return fn.flip(images, horizontal=fn.random.coin_flip())


def all_of_it(folder: Path) -> Any:
    images = fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 60])
    images = fn.flip(fn.crop(images, crop=[SIZE, SIZE], crop_pos_x=0.2), horizontal=fn.random.coin_flip())
    mean, std = (np.array(values, np.float32).reshape(1, 1, 3) for values in (MEAN, STD))
    return fn.normalize(images, axes=[0, 1], mean=mean, stddev=std, scale=2.0, shift=0.5)


def flipped_and_finished(folder: Path) -> Any:
    return finish(fn.flip(fn.crop(fn.decoders.image(read(folder)[0]), crop=[60, 66])))


def window(folder: Path) -> Any:
    return fn.decoders.image_crop(read(folder)[0], crop=[60, 66], crop_pos_x=0.9)


def window_and_more(folder: Path) -> Any:
    images = fn.decoders.image_crop(read(folder)[0], crop=[60, 66], crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
    return finish(fn.resize(images, size=[SIZE, 40]), mirror=1)


def sliced(folder: Path) -> Any:
    anchor, shape = fn.random.uniform(range=[0.0, 0.3], shape=2), fn.random.uniform(range=[0.4, 0.6], shape=2)
    images = fn.decoders.image_slice(read(folder)[0], anchor, shape)
    return finish(fn.resize(images, size=[SIZE, SIZE]), mirror=fn.random.coin_flip())


def sliced_and_resized(folder: Path) -> Any:
    images = fn.decoders.image_slice(read(folder)[0], rel_start=[0.1, 0.2], rel_end=[0.9, 0.8], axis_names="HW")
    return fn.resize(images, size=[40, 50], antialias=False)


def sliced_alone(folder: Path) -> Any:
    return fn.decoders.image_slice(read(folder)[0], start=[5, 9], shape=[50, 41], axes=[0, 1])


def region_and_finish(folder: Path) -> Any:
    images = fn.decoders.image_random_crop(read(folder)[0], random_area=[0.5, 0.9])
    return finish(images, crop=[30, 30], crop_pos_x=0.1)


def resized_region(folder: Path) -> Any:
    return fn.resize(fn.decoders.image_random_crop(read(folder)[0]), size=[SIZE, 40])


def flipped_first(folder: Path) -> Any:
    images = fn.flip(fn.decoders.image(read(folder)[0]), horizontal=fn.random.coin_flip())
    return finish(fn.resize(images, resize_shorter=60), crop=[40, SIZE], crop_pos_x=0.9, mirror=fn.random.coin_flip())


def flipped_by_a_constant(folder: Path) -> Any:
    return fn.resize(fn.flip(fn.decoders.image(read(folder)[0])), roi_start=[3, 20], roi_end=[50, 66], size=[SIZE, 40])


def resized_cropped_and_mirrored(folder: Path) -> Any:
    images, mirror = fn.decoders.image(read(folder)[0]), fn.random.coin_flip()
    return fn.resize_crop_mirror(images, resize_shorter=60, crop=[SIZE, 40], crop_pos_y=0.1, mirror=mirror)


def flipped_window(folder: Path) -> Any:
    images = fn.decoders.image_random_crop(read(folder)[0], random_area=[0.2, 0.9])
    return finish(fn.resize(fn.flip(images, horizontal=fn.random.coin_flip()), size=[SIZE, SIZE]))


def flipped_before_a_random_crop(folder: Path) -> Any:
    images = fn.flip(fn.decoders.image(read(folder)[0]), horizontal=fn.random.coin_flip())
    return finish(fn.random_resized_crop(images, size=SIZE), mirror=fn.random.coin_flip())


def only_flipped_before_a_random_crop(folder: Path) -> Any:
    return fn.random_resized_crop(fn.flip(fn.decoders.image(read(folder)[0])), size=SIZE)


def window_at_random(folder: Path) -> Any:
    """Two windows, and flips of both axes before and after the resize."""
    images = fn.decoders.image_crop(read(folder)[0], crop=[60, 66], crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
    images = fn.flip(images, horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip())
    images = fn.random_resized_crop(images, size=SIZE)
    return finish(fn.flip(images, vertical=fn.random.coin_flip()), crop=[40, 44], mirror=fn.random.coin_flip())


def cut_and_turned_twice(folder: Path) -> Any:
    """Alternating crops and flips; each is applied to the previous result."""
    images = fn.flip(fn.crop(fn.decoders.image(read(folder)[0]), crop=[60, 66], crop_pos_x=0.1), vertical=1)
    images = fn.crop(fn.resize(images, size=[80, 90]), crop=[60, 70], crop_pos_x=0.2)
    images = fn.crop(fn.flip(images, vertical=1), crop=[50, 44], crop_pos_x=0.9, crop_pos_y=0.8)
    return fn.crop(fn.flip(images), crop=[40, 30], crop_pos_x=0.1)


def decoded_alone(folder: Path) -> Any:
    return fn.decoders.image(read(folder)[0])


def fed(folder: Path) -> Any:
    """Encoded samples that do not come from a file reader."""
    files = sorted(folder.iterdir())
    data = fn.external_source(lambda: [np.frombuffer(file.read_bytes(), np.uint8) for file in files])
    return finish(fn.random_resized_crop(fn.decoders.image(data), size=SIZE), mirror=fn.random.coin_flip())


GRAPHS = [train, crop_after, half, filtered, bytes_out, validate, signed, region, region_and_crop, resized, cropped, with_condition, decoded, fed,
          cut_and_resized, flipped, all_of_it, flipped_and_finished, window, window_and_more, sliced, sliced_and_resized, sliced_alone,
          region_and_finish, resized_region, flipped_first, flipped_by_a_constant, resized_cropped_and_mirrored, flipped_window, flipped_before_a_random_crop,
          only_flipped_before_a_random_crop, window_at_random, cut_and_turned_twice]
LEVEL = {
    "cut_and_turned_twice": 1,
    "cut_and_resized": 1, "flipped": 1, "all_of_it": 2 / min(STD), "flipped_and_finished": 1e-5, "window": 1e-5, "sliced_and_resized": 1,
    "sliced_alone": 1e-5, "region_and_finish": 1e-5, "resized_region": 1,
    "flipped_by_a_constant": 1, "resized_cropped_and_mirrored": 1, "only_flipped_before_a_random_crop": 1,
    "crop_after": 1 / min(STD), "half": 2 / min(STD) + 0.01, "bytes_out": 1, "resized": 1, "region_and_crop": 1e-5, "cropped": 1e-5, "signed": 1, "decoded": 1e-5}


def batches(graph: Callable[[Path], Any], folder: Path, count: int = 3, **settings: Any) -> list[Any]:
    define = pipeline_def(graph, enable_conditionals=graph is with_condition)
    options = {"batch_size": 8, "num_threads": 2, "device_id": None, "seed": 11, **settings}
    pipe = define(folder, **options)
    samples = [[np.array(sample) for sample in pipe.run()[0]] for _ in range(count)]
    pipe.close()
    return samples if graph is decoded_alone else [np.stack(batch) for batch in samples]


@pytest.mark.thin(2)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_results_match_the_python_path(graph: Callable[[Path], Any], folder: Path) -> None:
    found = batches(graph, folder)
    with switched_off():
        expected = batches(graph, folder)
    step = LEVEL.get(graph.__name__, 1 / min(STD))
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        off = np.abs(a.astype(np.float64) - b.astype(np.float64))
        assert off.max() <= step * 1.01
        assert off.mean() < 0.25 * step


# 1 byte in 1,700 of images that are mirrored while resized is a level off: the library sums in the other order.
@pytest.mark.thin(3)
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g is not resized_cropped_and_mirrored], ids=lambda graph: graph.__name__)
def test_exact_pipelines_use_the_fast_path_too(graph: Callable[[Path], Any], folder: Path) -> None:
    found = batches(graph, folder, exact=True)
    with switched_off():
        expected = batches(graph, folder, exact=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)  # floats, of equal levels


@pytest.mark.thin(5)
@pytest.mark.parametrize("settings", [{}, {"exact": True}], ids=["", "exact"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_the_fast_path_is_used(
    graph: Callable[[Path], Any], settings: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    fused_calls(monkeypatch, lambda programs, results, *_: made.extend(result is not None for result in results))
    batches(graph, folder, 1, **settings)
    assert made.count(True) >= 6 and made.count(False) >= 1  # garbage after a JPEG; other batches are in flight


@pytest.mark.thin(3)
@pytest.mark.parametrize("graph", [*GRAPHS, decoded_alone], ids=lambda graph: graph.__name__)
def test_chunks_change_nothing(graph: Callable[[Path], Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[list[bool]] = []
    fused_calls(monkeypatch, lambda programs, results, *_: chunks.append([result is not None for result in results]))
    found = batches(graph, folder, 3, num_threads=1)
    alone = graph not in (with_condition, sliced)  # one operator, of one input, is the whole chain
    assert any(len(chunk) > 1 for chunk in chunks) == alone
    assert sum(chunk.count(True) for chunk in chunks) >= 6
    monkeypatch.setattr(compiled_chain, "fuse", lambda *chain: None)
    expected = batches(graph, folder, 3, num_threads=1)
    for batch, singles in zip(found, expected, strict=True):
        assert all((a == b).all() for a, b in zip(batch, singles, strict=True))


@pytest.mark.parametrize("kind", ["damaged", "missing", "empty", "folder"])
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_failure_in_a_chunk_belongs_to_its_sample(kind: str, policy: str, folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    if kind == "folder":
        bad.mkdir()
    elif kind != "missing":
        bad.write_bytes((folder / "0.jpg").read_bytes()[:900] if kind == "damaged" else b"")
    good = str(folder / "0.jpg")
    files = [good] * 13 + [str(bad)] + [good] * 2

    def define() -> Any:
        data, labels = fn.readers.file(files=files, name="Reader")
        return finish(fn.random_resized_crop(fn.decoders.image(data), size=SIZE)), labels

    def second() -> Any:
        pipe = pipeline_def(define)(batch_size=8, num_threads=1, device_id=None, seed=2, bad_samples=policy)
        pipe.run()
        try:
            images, labels = pipe.run()
        except RuntimeError as error:
            return str(error)
        finally:
            pipe.close()
        return labels.as_array().ravel().tolist(), len(images)

    found = second()
    with switched_off():
        assert found == second()
    assert "bad.jpg" in found if policy == "raise" else found == ([8, 9, 10, 11, 12, 14, 15], 7)


def test_threads_and_batches_change_nothing(folder: Path) -> None:
    one = np.concatenate(batches(train, folder, 4, batch_size=4, num_threads=1))
    other = np.concatenate(batches(train, folder, 2, batch_size=8, num_threads=3))
    assert (one == other).all()


def test_fused_operators(folder: Path) -> None:
    def explained(graph: Callable[[Path], Any]) -> str:
        pipe = pipeline_def(graph, enable_conditionals=True)(folder, batch_size=8, num_threads=1, device_id=None)
        text = pipe.explain()
        pipe.close()
        return str(text)

    assert "decoders.image + random_resized_crop + crop_mirror_normalize" in explained(train)
    branches = explained(with_condition)
    assert "decoders.image + random_resized_crop + crop_mirror_normalize" in branches
    assert "decoders.image + resize + crop_mirror_normalize" in branches
    with switched_off():
        assert "decoders.image + random_resized_crop + crop_mirror_normalize" in explained(train)
        assert "decoders.image_random_crop + " not in explained(region)
    names = {
        decoded: "decoders.image + crop", cut_and_resized: "decoders.image + crop + resize",
        flipped: "decoders.image + random_resized_crop + flip", sliced: "decoders.image_slice + resize + crop_mirror_normalize",
        all_of_it: "decoders.image + resize + crop + flip + normalize", window_and_more: "decoders.image_crop + resize + crop_mirror_normalize",
        region_and_finish: "decoders.image_random_crop + crop_mirror_normalize",
        resized_cropped_and_mirrored: "decoders.image + resize_crop_mirror",
        flipped_first: "decoders.image + flip + resize + crop_mirror_normalize",
        flipped_window: "decoders.image_random_crop + flip + resize + crop_mirror_normalize",
        flipped_before_a_random_crop: "decoders.image + flip + random_resized_crop + crop_mirror_normalize",
    }  # fmt: skip
    for graph, name in names.items():
        assert f"# {name} line" in explained(graph), name


def with_types(folder: Path) -> Any:
    data, _ = read(folder)
    floats = fn.resize(fn.decoders.image(data), size=[20, 20], dtype=types.FLOAT)
    return floats, fn.resize(fn.decoders.image_crop(data, crop=[60, 66]), size=[20, 20], dtype=types.FLOAT)


def with_attributes(folder: Path) -> Any:
    return tuple(fn.resize(fn.decoders.image(read(folder)[0]), size=[20, 30], save_attrs=True))


def crops_twice(folder: Path) -> Any:
    images = fn.crop(fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70]), crop=[50, 50])
    return fn.crop(images, crop=[20, 30], crop_pos_y=0.1)


def turns_then_cuts(folder: Path) -> Any:
    images = fn.flip(fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70]))
    return finish(images, crop=[20, 30], crop_pos_x=0.1)


def turns_twice(folder: Path) -> Any:
    return finish(fn.flip(fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70])), mirror=1)


def upside_down(folder: Path) -> Any:
    return fn.flip(fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70]), vertical=1)


def by_its_own_mean(folder: Path) -> Any:
    return fn.normalize(fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70]), axes=[0, 1])


def twice_used(folder: Path) -> Any:
    images = fn.decoders.image(read(folder)[0])
    return fn.crop(images, crop=[40, 41]), fn.resize(images, size=[20, 20])


def two_windows(folder: Path) -> Any:
    images = fn.decoders.image_crop(read(folder)[0], crop=[60, 66])
    return finish(images, crop_h=20, crop_w=30)


def pads_a_channel(folder: Path) -> Any:
    images = fn.resize(fn.decoders.image(read(folder)[0]), size=[60, 70])
    images = fn.crop_mirror_normalize(images, crop=[50, 40], dtype=types.UINT8, output_layout="HWC", pad_output=True)
    return fn.crop_mirror_normalize(images, mean=[9.0], std=[2.0])


@pytest.mark.parametrize(
    "graph",
    [pads_a_channel, with_types, with_attributes, crops_twice, turns_then_cuts, turns_twice, upside_down, by_its_own_mean, twice_used, two_windows],
    ids=lambda graph: graph.__name__,
)
def test_similar_graphs_keep_their_results(graph: Callable[[Path], Any], folder: Path) -> None:
    def run() -> list[list[Any]]:
        pipe = pipeline_def(graph)(folder, batch_size=8, num_threads=1, device_id=None, seed=4)
        outputs = pipe.run()
        pipe.close()
        return [[np.array(sample) for sample in output] for output in outputs]

    found = run()
    with switched_off():
        expected = run()
    assert len(found) == len(expected)
    for a, b in zip((x for o in found for x in o), (x for o in expected for x in o), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.abs(a.astype(np.float64) - b.astype(np.float64)).max() <= 1.01 * (1 if a.dtype == np.uint8 or a.max() > 10 else 1 / 20)


def failing(folder: Path, kind: str) -> Any:
    files = [str(folder / "0.jpg"), str(folder.parent / "damaged.jpg")] if kind == "image" else [str(folder / "0.jpg")] * 2
    data, _ = fn.readers.file(files=files, name="Reader")
    images = fn.decoders.image(data)
    area = [0.9, 0.1] if kind == "window" else [0.1, 1.0]
    if kind in ("cut", "cut and resized"):
        images = fn.crop(images, crop=[500, 60])
        return images if kind == "cut" else fn.resize(images, size=[20, 20])
    if kind == "crop of a resize":
        return finish(fn.crop(fn.resize(images, size=[40, 40]), crop=[60, 60]))
    if kind == "slice":
        return finish(fn.resize(fn.decoders.image_slice(data, start=[0, 0], shape=[60, 500]), size=[20, 20]))
    if kind == "resize":
        return finish(fn.resize(fn.decoders.image_random_crop(data), size=[20, 20], roi_start=[1, 1]))
    images = fn.random_resized_crop(images, size=SIZE, random_area=area)
    return finish(images, crop=[60, 60]) if kind == "crop" else finish(images)


@pytest.mark.parametrize(
    ("kind", "operator"),
    [
        ("image", "decoders.image"), ("window", "random_resized_crop"), ("crop", "crop_mirror_normalize"), ("cut", "crop"),
        ("cut and resized", "crop"), ("crop of a resize", "crop"), ("slice", "decoders.image_slice"), ("resize", "resize"),
    ],
)
def test_errors_name_the_operator_and_are_the_same(kind: str, operator: str, folder: Path) -> None:
    (folder.parent / "damaged.jpg").write_bytes((folder / "0.jpg").read_bytes()[:900])

    def message() -> str:
        pipe = pipeline_def(failing)(folder, kind, batch_size=2, num_threads=1, device_id=None)
        with pytest.raises(RuntimeError) as caught:
            pipe.run()
        pipe.close()
        return str(caught.value)

    found = message()
    assert f"operator {operator!r}" in found
    with switched_off():
        assert found == message()


def test_a_bad_sample_is_skipped(folder: Path) -> None:
    (folder.parent / "damaged.jpg").write_bytes((folder / "0.jpg").read_bytes()[:900])
    pipe = pipeline_def(failing)(folder, "image", batch_size=2, num_threads=1, device_id=None, bad_samples="skip")
    (found,) = pipe.run()
    assert len(found) == 1
    pipe.close()


def test_a_state_continues_with_and_without_the_fast_path(folder: Path) -> None:
    def made() -> Any:
        return pipeline_def(train)(folder, batch_size=4, num_threads=1, device_id=None, seed=3, enable_checkpointing=True)

    pipe = made()
    pipe.run()
    state = pipe.checkpoint()
    (expected,) = pipe.run()
    pipe.close()
    with switched_off():
        again = pipeline_def(train)(
            folder, batch_size=4, num_threads=1, device_id=None, seed=3, enable_checkpointing=True, checkpoint=state
        )
        (found,) = again.run()
        again.close()
    a, b = (torch.stack([torch.as_tensor(np.array(s)) for s in batch]) for batch in (found, expected))
    assert (a - b).abs().max() <= 1.01 / min(STD)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("photos")
    big = smooth_image(603, 901)
    kinds: list[dict[str, Any]] = [
        {"subsampling": "4:2:0"}, {"subsampling": "4:4:4"}, {"progressive": True}, {"subsampling": "4:2:2"},
        {"exif": exif(6)}, {"subsampling": "4:2:0", "restart_marker_rows": 1},
    ]  # fmt: skip
    for i, options in enumerate(kinds):
        (root / f"{i}.jpg").write_bytes(encoded(big, "JPEG", quality=90, **options))
    return root


@pytest.mark.thin(3)
@pytest.mark.parametrize("graph", [train, bytes_out, filtered], ids=lambda graph: graph.__name__)
def test_scaled_decoding_matches_the_python_path(
    graph: Callable[[Path], Any], photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"batch_size": 6, "scaled_decode": True}
    scales: list[int] = []

    def note(programs: Any, results: Any, *_: Any) -> None:
        scales.extend(program.scale for program, result in zip(programs, results, strict=True) if result is not None)

    fused_calls(monkeypatch, note)
    found = batches(graph, photos, 6, **settings)
    assert {2, 4} <= set(scales)
    monkeypatch.setattr(compiled_chain, "fuse", lambda *chain: None)
    singles = batches(graph, photos, 6, **settings)
    with switched_off():
        expected = batches(graph, photos, 6, **settings)
    step = LEVEL.get(graph.__name__, 1 / min(STD))
    for a, b, c in zip(found, singles, expected, strict=True):
        assert (a == b).all()
        off = np.abs(a.astype(np.float64) - c.astype(np.float64))
        assert off.max() <= step * 1.01 and off.mean() < 0.25 * step


@both_paths
@pytest.mark.parametrize("directions", [{"horizontal": 1}, {"horizontal": 0, "vertical": 1}, {"horizontal": 1, "vertical": 1}])
def test_scaled_decoding_reads_the_window_of_the_flipped_image(directions: dict[str, int], photos: Path) -> None:
    """The window of a scaled image matches the whole image's window; elsewhere the means differ by 20 levels or more."""

    def run(**settings: Any) -> np.ndarray:
        def define() -> Any:
            images = fn.flip(fn.decoders.image(read(photos)[0]), **directions)
            return fn.random_resized_crop(images, size=SIZE, random_area=[0.3, 0.5])

        pipe = pipeline_def(define)(batch_size=6, num_threads=1, device_id=None, seed=3, **settings)
        samples = np.stack([np.array(sample) for sample in pipe.run()[0]]).astype(np.float64)
        pipe.close()
        return samples

    assert np.abs(run(scaled_decode=True) - run()).mean() < 5


def jittered(folder: Path) -> Any:
    images = fn.resize(fn.decoders.image(read(folder)[0]), size=[SIZE, SIZE])
    return finish(fn.color_twist(images, hue=5.0))


def several_uses(folder: Path) -> Any:
    images = fn.decoders.image(read(folder)[0])
    return fn.resize(images, size=[SIZE, SIZE]), fn.resize(images, size=[20, 20])


def gray(folder: Path) -> Any:
    return fn.decoders.image(read(folder)[0], output_type=types.GRAY)


def on_the_device(folder: Path) -> Any:
    return fn.resize(fn.decoders.image(read(folder)[0], device="mixed"), size=[SIZE, SIZE])


def cropped_on_the_device(folder: Path) -> Any:
    images = fn.decoders.image_crop(read(folder)[0], device="mixed", crop=(10, 10))
    return fn.resize(images, size=[SIZE, SIZE]), fn.flip(images)


def gray_on_the_device(folder: Path) -> Any:
    return fn.decoders.image(read(folder)[0], device="mixed", output_type=types.GRAY)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (on_the_device, "decoders.image (line N) in one call; resize (line N) runs on the device"),
        (cropped_on_the_device,
         "decoders.image_crop (line N) in one call; 2 operators use its result: resize (line N), flip (line N)"),
        (gray_on_the_device, "not used: decoders.image (line N) doesn't return RGB bytes"),
        (lambda folder: fn.decoders.image(read(folder)[0], device="mixed"), "decoders.image (line N) in one call, up to the output"),
    ],
    ids=["resized there", "two uses there", "gray", "decoded alone"],
)
def test_decoding_for_a_device_uses_the_fast_path_too(
    graph: Callable[[Path], Any], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement is true: the library runs chunks of several samples in one call."""
    sizes: list[int] = []
    fused_calls(monkeypatch, lambda programs, *_: sizes.append(len(programs)))
    pipe = pipeline_def(graph)(folder, batch_size=8, num_threads=1, device_id="cpu")
    lines = [line for line in pipe.explain().splitlines() if line.startswith("fast path: ")]
    assert [re.sub(r"line \d+", "line N", line) for line in lines] == [f"fast path: {said}"]
    for _ in range(2):
        pipe.run()
    pipe.close()
    assert (max(sizes, default=0) > 1) == (not said.startswith("not used"))
    with switched_off():
        pipe = pipeline_def(graph)(folder, batch_size=8, num_threads=1, device_id="cpu")
        assert "fast path: not used: switched off" in pipe.explain()


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (train, "decoders.image + random_resized_crop + crop_mirror_normalize (line N) in one call, up to the output"),
        (jittered, "decoders.image + resize (line N) in one call; color_twist (line N) doesn't join"),
        (several_uses, "decoders.image (line N) in one call; 2 operators use its result: resize (line N), resize (line N)"),
        (gray, "not used: decoders.image (line N) doesn't return RGB bytes"),
        (lambda folder: read(folder)[0], None),
    ],
    ids=["train", "jittered", "several uses", "gray", "no images"],
)
def test_explain_names_the_reason_against_the_fast_path(graph: Callable[[Path], Any], said: str | None, folder: Path) -> None:
    pipe = pipeline_def(graph)(folder, batch_size=8, num_threads=1, device_id=None)
    lines = [line for line in pipe.explain().splitlines() if line.startswith("fast path: ")]
    assert [re.sub(r"line \d+", "line N", line) for line in lines] == ([] if said is None else [f"fast path: {said}"])
    with switched_off():
        pipe = pipeline_def(graph)(folder, batch_size=8, num_threads=1, device_id=None)
        assert ("fast path: not used: " in pipe.explain()) == (said is not None)
