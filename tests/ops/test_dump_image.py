"""`dump_image` writes the same files as the real DALI, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from tests.check import Result, check, pipeline
from torchdali import Pipeline, fn
from torchdali.tensors import TensorList

RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def image(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def test_text_of_the_files(folder):
    colored = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 13
    pipeline(
        "torchdali", "dump_image", [[colored, colored[..., :1].copy()]], {"suffix": "q"}, "HWC"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["0-q-0.ppm", "1-q-0.ppm"]
    lines = (folder / "0-q-0.ppm").read_text().split("\n")
    assert lines == [
        "P3",
        "3 2",
        "255",
        "0 13 26 39 52 65 78 91 104 ",
        "117 130 143 156 169 182 195 208 221 ",
        "",
    ]
    assert (folder / "1-q-0.ppm").read_text() == "P2\n3 2\n255\n0 39 78 \n117 156 195 \n"


@pytest.mark.parametrize("channels", [1, 3])
def test_pillow_reads_the_files(folder, channels):
    samples = [image(7, 9, channels), image(4, 12, channels)]
    check("dump_image", [samples], {}, "HWC", expected=[Result(samples, "HWC")])
    pipeline("torchdali", "dump_image", [samples], {}, "HWC")  # the files of this batch, after all those of `check`
    for i, sample in enumerate(samples):
        read = np.asarray(Image.open(folder / f"{i}--0.ppm"))
        assert np.array_equal(read.reshape(sample.shape), sample)


def test_a_later_batch_overwrites(folder):
    batches = iter([[image(2, 2, 3)], [np.full((2, 2, 3), 7, np.uint8)]])
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.dump_image(fn.external_source(lambda: next(batches), layout="HWC")))
    pipe.build()
    for _ in range(2):
        pipe.run()
    pipe.close()
    assert (np.asarray(Image.open(folder / "0--0.ppm")) == 7).all()


@pytest.mark.parametrize(
    ("sample", "arguments", "message"),
    [
        (image(4, 5, 2), {}, "got torch.uint8"),
        (image(4, 5), {}, "got torch.uint8"),
        (image(2, 4, 5, 3), {}, "got torch.uint8"),
        (image(4, 5, 3).astype(np.int16), {}, "int16"),
        (image(0, 5, 3), {}, "must not be empty"),
        (image(4, 5, 3), {"input_layout": "CHW"}, "input_layout"),
        (image(4, 5, 3), {"suffix": "no/folder"}, "cannot write"),
    ],
)
def test_invalid_arguments_are_rejected(folder, sample, arguments, message):
    batch = TensorList.from_samples([torch.from_numpy(sample)])
    with pytest.raises(RuntimeError, match=message):
        fn.dump_image(batch, **arguments)
    assert not list(folder.iterdir())


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "dump_image": "accepts only uint8 images (HWC), as DALI does",
}


@pytest.mark.parity
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", ["HWC", None])
@pytest.mark.parametrize("arguments", [{}, {"suffix": "look"}, {"input_layout": "HWC"}])
def test_dump_image(tmp_path, monkeypatch, arguments, layout, channels):
    shapes = ((4, 5, channels), (1, 1, channels), (6, 3, channels))
    samples = [RANDOM.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    files = {}
    for library in ("torchdali", "nvidia.dali"):
        folder = tmp_path / library
        folder.mkdir()
        monkeypatch.chdir(folder)
        pipeline(library, "dump_image", [samples], arguments, layout)
        files[library] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files["torchdali"] == files["nvidia.dali"]
    assert len(files["torchdali"]) == len(samples)
    check("dump_image", [samples], arguments, layout)
