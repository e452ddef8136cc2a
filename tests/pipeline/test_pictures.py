"""Drawings of pipelines and loaders: the next batch, the result of each operator, and the graph."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from torchdali import Loader, Pipeline, fn, pictures, pipeline_def, types
from torchdali import dynamic as ndd

MEAN, STD = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]
SETTINGS = {"num_threads": 2, "device_id": None, "seed": 7}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fifteen images of three classes, each with its own color."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(15):
        place = folder / ("cat", "dog", "eel")[number % 3]
        place.mkdir(exist_ok=True)
        Image.new("RGB", (48 + number, 40), (number * 15, 200 - number * 10, 80)).save(place / f"{number}.png")
    return str(folder)


@pipeline_def(batch_size=4, **SETTINGS)
def training(root: str) -> Any:
    files, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.resize(fn.decoders.image(files), size=[24, 24])
    images = fn.brightness(images, brightness=fn.random.uniform(range=[0.5, 1.5]))
    return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, scale=2.0, shift=0.5), labels


def _same(a: Image.Image, b: Image.Image) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))


def _shown(pipe: Pipeline, outputs: Any) -> Image.Image:
    """Return the drawing of a batch from `run`, with normalization undone by hand."""
    std = [s / 2 for s in STD]
    mean = [m - 0.5 * s for m, s in zip(MEAN, std, strict=True)]
    return outputs[0].show(labels=outputs[1], classes=["cat", "dog", "eel"], mean=mean, std=std)


# --------------------------------------------------------------------------- the next batch


def test_show_draws_the_next_batch_without_consuming_it(root: str) -> None:
    pipe, other = training(root), training(root)
    for _ in range(9):  # more than two epochs
        shown = pipe.show()
        outputs, expected = pipe.run(), other.run()
        assert _same(shown, _shown(pipe, outputs))
        assert torch.equal(outputs[0].as_tensor().torch(), expected[0].as_tensor().torch())


def test_show_draws_a_pipeline_that_is_not_built(root: str) -> None:
    pipe = training(root)
    shown = pipe.show()
    assert not pipe.is_built
    assert _same(shown, _shown(pipe, pipe.run()))


def test_show_draws_the_batch_after_a_checkpoint(root: str) -> None:
    pipe = training(root)
    pipe.run()
    saved = pipe.checkpoint()
    for each in (False, True):
        continued = training(root, checkpoint=saved, enable_checkpointing=True)
        assert _same(continued.show(each=each), pipe.show(each=each))
        assert not _same(continued.show(each=each), training(root).show(each=each))


def test_a_few_samples_match_the_batch(root: str, tmp_path: Path) -> None:
    pipe = training(root)
    few = pipe.show(tmp_path / "few.png", count=2)
    cut = np.asarray(few)[:, :-6]  # without the margin
    assert np.array_equal(np.asarray(pipe.show())[:, : cut.shape[1]], cut)
    assert _same(Image.open(tmp_path / "few.png"), few)


def test_operators_over_the_batch_see_all_of_it() -> None:
    @pipeline_def(batch_size=6, **SETTINGS)
    def permuted() -> Any:
        data = [np.full((8, 8, 3), 40 * k, np.uint8) for k in range(6)]
        images = fn.external_source([data, data], layout="HWC")
        return fn.permute_batch(images, indices=[5, 4, 3, 2, 1, 0])

    sheet = permuted().show(count=1, size=8)
    assert sheet.getpixel((8, 8)) == (200, 200, 200)


def test_the_end_of_a_source_is_followed_by_its_next_epoch() -> None:
    data = [[np.full((8, 8, 3), level, np.uint8)] for level in (50, 100)]

    @pipeline_def(batch_size=1, prefetch_queue_depth=1, **SETTINGS)
    def source(cycle: str | None) -> Any:
        return fn.external_source(data, layout="HWC", cycle=cycle)

    pipe, levels = source("raise"), []
    for _ in range(2):
        levels.append(pipe.show().getpixel((8, 8)))
        pipe.run()
    with pytest.raises(StopIteration):
        pipe.run()
    levels.append(pipe.show().getpixel((8, 8)))
    assert levels == [(50,) * 3, (100,) * 3, (50,) * 3]
    ended = source(None)
    with pytest.raises(StopIteration):
        for _ in range(3):
            ended.run()
    with pytest.raises(RuntimeError, match="no batch remains, since the sources have ended"):
        ended.show()


def _fed() -> Any:
    return fn.external_source(name="images", layout="HWC")


def _drained() -> Any:
    return fn.external_source(iter([[np.zeros((8, 8, 3), np.uint8)]]), name="images", layout="HWC")


@pytest.mark.parametrize(("define", "reason"), [(_fed, "waits for feed_input"), (_drained, "is an iterator")])
def test_sources_that_cannot_be_called_twice(define: Any, reason: str) -> None:
    pipe = pipeline_def(batch_size=1, **SETTINGS)(define)()
    with pytest.raises(RuntimeError, match=rf"the source 'images' {reason}[\s\S]*outputs\[0\].show\(\)[\s\S]*test_pictures.py"):
        pipe.show()


def test_debug_mode_has_no_next_batch(root: str) -> None:
    pipe = training(root, debug=True)
    for draw in (pipe.show, pipe.show_graph):
        with pytest.raises(RuntimeError, match="debug mode has no graph"):
            draw()
    assert "batch_size" in pipe._repr_html_()


def test_several_images_have_their_own_rows() -> None:
    @pipeline_def(batch_size=2, **SETTINGS)
    def views() -> Any:
        images = fn.external_source([[np.full((16, 16, 3), 90, np.uint8)] * 2], layout="HWC")
        return images, fn.crop_mirror_normalize(images, mean=MEAN, std=STD)

    sheet = views().show(size=16)
    assert [sheet.getpixel((8, y)) for y in (30, 68)] == [(90,) * 3] * 2  # the second one is normalized, and undone


# ---------------------------------------------------------------- after each operator


def test_each_operator_has_a_row(root: str) -> None:
    pipe = training(root)
    pipe.run()
    sheet = pipe.show(each=True, count=3, size=24)
    outputs = pipe.run()
    rows = [sheet.crop((0, top, sheet.width, sheet.height)) for top in range(sheet.height)]
    last = rows[-(24 + 6)]  # below its heading
    picture = _shown(pipe, outputs)
    for k in range(3):
        assert last.getpixel((6 + 30 * k + 12, 12)) == picture.getpixel((6 + k * 150 + 72, 72))
    titles = ["decoders.image", "resize", "brightness", "crop_mirror_normalize"]
    assert sheet.height == 6 + len(titles) * (16 + 6) + 3 * 24 + 20 + 2 * 16  # 4 headings, 24 x 48 decoded, a caption


def test_each_draws_results_that_are_not_outputs() -> None:
    @pipeline_def(batch_size=2, **SETTINGS)
    def means() -> Any:
        images = fn.external_source([[np.full((16, 16, 3), 90, np.uint8)] * 2], layout="HWC")
        return fn.reductions.mean(images)

    assert means().show(each=True, size=16).getpixel((8, 24)) == (90, 90, 90)
    with pytest.raises(ValueError, match=r"spectrograms or audio, got output 0: reductions.mean: samples \(\) torch.float32"):
        means().show()


def test_each_rejects_other_options(root: str) -> None:
    with pytest.raises(TypeError, match="accepts only classes, count and size, got boxes, labels"):
        training(root).show(each=True, labels=[1], boxes=[], count=2)


def test_each_needs_images() -> None:
    pipe = pipeline_def(batch_size=2, **SETTINGS)(lambda: fn.random.uniform(range=[0, 1]))()
    with pytest.raises(ValueError, match="needs an operator that returns images"):
        pipe.show(each=True)


def test_an_explicit_normalization_has_precedence(root: str) -> None:
    pipe = training(root)
    assert not _same(pipe.show(mean=[0.0], std=[1.0]), pipe.show())
    assert _same(pipe.show(mean=[0.0], std=[1.0], names=[]), pictures.show(pipe.run(), mean=[0.0], std=[1.0], names=[], classes=pipe.classes))


def test_normalization_is_undone_after_operators_that_keep_levels() -> None:
    @pipeline_def(batch_size=1, **SETTINGS)
    def turned(scaled: bool) -> Any:
        images = fn.external_source([[np.full((16, 16, 3), 90, np.uint8)]], layout="HWC")
        images = fn.flip(fn.crop_mirror_normalize(images, mean=MEAN, std=STD))
        return images * 2.0 if scaled else images

    assert turned(False).show().getpixel((10, 10)) == (90, 90, 90)
    assert turned(True).show().getpixel((10, 10)) != (90, 90, 90)  # stretched: the scale is unknown


def test_each_omits_branches() -> None:
    @pipeline_def(batch_size=2, enable_conditionals=True, **SETTINGS)
    def branches() -> Any:
        images = fn.external_source([[np.full((16, 16, 3), 90, np.uint8)] * 2], layout="HWC")
        if fn.random.coin_flip(probability=1.0):
            images = fn.brightness(images, brightness=2.0)
        return images

    sheet = branches().show(each=True, size=16)
    rows = (sheet.height - 6) // (16 + 16 + 6)
    assert rows == 2  # the source, and where the branches meet
    assert [sheet.getpixel((8, 6 + 16 + k * 38 + 2)) for k in range(2)] == [(90,) * 3, (180,) * 3]


def test_the_graph_determines_the_boxes(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20)).save(tmp_path / "a.png")
    (tmp_path / "a.json").write_text(
        '{"images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 20}], "categories": [{"id": 1, "name": "x"}],'
        '"annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 5, 20, 10], "area": 200, "iscrowd": 0}]}'
    )

    @pipeline_def(batch_size=1, **SETTINGS)
    def detection(ltrb: bool, ratio: bool) -> Any:
        files, boxes, _ = fn.readers.coco(
            file_root=str(tmp_path), annotations_file=str(tmp_path / "a.json"), ltrb=ltrb, ratio=ratio, name="Reader"
        )
        return fn.decoders.image(files), boxes

    sheets = [detection(ltrb, ratio).show() for ltrb in (False, True) for ratio in (False, True)]
    assert all(_same(sheets[0], sheet) for sheet in sheets)
    assert sheets[0].getpixel((6 + 40, 6 + 20)) == sheets[0].getpixel((6 + 119, 6 + 59)) == (242, 36, 36)
    each = detection(False, False).show(each=True)
    assert each.getpixel((6 + 40, 16 + 6 + 20)) == (242, 36, 36)


# ---------------------------------------------------------------- the graph


def _texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_graph_has_all_operators(root: str, tmp_path: Path) -> None:
    pipe = training(root)
    svg = pipe.show_graph(tmp_path / "graph.svg")
    assert {"readers.file", "decoders.image", "resize", "brightness", "random.uniform", "crop_mirror_normalize", "output 0", "output 1", '"Reader"'} <= set(_texts(svg))
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == svg
    assert not any("ms/sample" in text for text in _texts(svg))
    assert svg in pipe._repr_html_()


def test_the_graph_shows_times_and_bytes(root: str) -> None:
    pipe = training(root, enable_memory_stats=True)
    pipe.run()
    pipe.run()
    texts = _texts(pipe.show_graph())
    assert sum("ms/sample" in text for text in texts) == len(pipe.stats().operators)
    assert "27 KiB/batch" in texts  # (4, 3, 24, 24) float32


def test_conditions_are_dashed() -> None:
    @pipeline_def(batch_size=1, enable_conditionals=True, **SETTINGS)
    def branches() -> Any:
        x = fn.random.uniform(range=[0, 1])
        if x > 0.5:
            x = x + 1
        return x

    svg = branches().show_graph()
    assert "if True" in _texts(svg) and "stroke-dasharray" in svg


# ---------------------------------------------------------------- loaders, dynamic mode


def test_a_loader_draws_its_next_batch_without_consuming_it(root: str) -> None:
    loader, other = (Loader.from_folder(root, train=True, size=24, batch_size=4, num_threads=2, seed=3) for _ in range(2))
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    for _ in range(2):
        shown = loader.show(names=[])
        for (images, labels), (expected, _) in zip(loader, other, strict=True):  # the last batch has three samples
            assert torch.equal(images, expected)
            assert _same(shown, pictures.show((images, labels), classes=["cat", "dog", "eel"], mean=mean, std=std))
            shown = loader.show(names=[])
    assert "data:image/png" in loader._repr_html_() and "15" in loader._repr_html_()


def test_a_loader_may_rename_the_classes(root: str) -> None:
    loader = Loader(training(root), classes=["a", "b", "c"])
    assert _same(loader.show(names=[]), loader.show(names=[], classes=["a", "b", "c"]))
    assert not _same(loader.show(names=[]), loader.show(names=[], classes=["cat", "dog", "eel"]))


def test_a_loader_of_one_pipeline_stays_unused_in_a_notebook(root: str) -> None:
    pipe = Pipeline(batch_size=4, **SETTINGS)
    with pipe:
        files, labels = fn.readers.file(file_root=root, name="Reader")
        pipe.set_outputs(fn.decoders.image(files), labels)
    loader = Loader(pipe)
    assert "not yet used" in loader._repr_html_() and not pipe.is_built


def test_a_loader_without_images_is_printed() -> None:
    @pipeline_def(batch_size=4, **SETTINGS)
    def numbers() -> Any:
        return fn.readers.dataset(dataset=list(range(10)), name="Reader")

    html = Loader(numbers)._repr_html_()
    assert "<img" not in html and "10" in html and "spectrograms or audio" in html


def test_batches_of_the_dynamic_mode() -> None:
    images = ndd.as_batch([np.full((8, 8, 3), level, np.uint8) for level in (10, 20)], layout="HWC")
    brighter, labels = ndd.brightness(images, brightness=2.0), ndd.as_batch([np.int32(0), np.int32(1)])
    sheet = brighter.show(labels=labels, classes=["cat", "dog"], size=8)
    assert [sheet.getpixel((8 + 14 * k, 8)) for k in range(2)] == [(20,) * 3, (40,) * 3]
    assert "data:image/png" in brighter._repr_html_()


def test_images_of_another_dtype() -> None:
    @pipeline_def(batch_size=1, **SETTINGS)
    def floats() -> Any:
        images = fn.external_source([[np.full((8, 8, 3), 51, np.uint8)]], layout="HWC")
        return fn.cast(images / 255.0, dtype=types.FLOAT16)

    assert floats().show().getpixel((10, 10)) == (51, 51, 51)
