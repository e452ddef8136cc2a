"""Limits of launches, copies and waits per batch, for the pipelines of the benchmarks.

The counts do not depend on time or on a GPU. If a budget doesn't state a number per batch, the pipeline still
processes single samples.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import pipelines
from tests.pretend import accelerator, inner
from tests.pretend.pictures import write_images
from torchdali import fn, pipeline_def, types
from torchdali.auto_aug import trivial_augment

pytestmark = pytest.mark.slow  # the quick tests are in test_pretence and test_operators

WARM_UP = 3
BATCHES = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("pictures"), 24, side=40)


def count_costs(define: Any, batch_size: int, kernels: bool = True, **arguments: Any) -> dict[str, float]:
    """Return launches, copies, waits and pageable copies of a batch, in the steady state."""
    with accelerator(kernels=kernels) as gpu:
        pipe = pipeline_def(define, batch_size=batch_size, num_threads=2, device_id=0, seed=3, exec_pipelined=False)(**arguments)
        for _ in range(WARM_UP):
            pipe.run()
        gpu.report.clear()
        for _ in range(BATCHES):
            pipe.run()
        report = gpu.report
        found = {
            "launches": report.launches / BATCHES, "copies": report.copies / BATCHES, "waits": report.waits,
            "pageable": report.pageable,
        }
        found["lines"] = report.lines()  # type: ignore[assignment]
        pipe.close()
        gc.collect()
        assert not report.races, "\n".join(report.races)
        return found


def _floats_at_the_end(root: str) -> Any:
    """Train with all of the work on the CPU and one copy of floats at the end."""
    images, labels = pipelines.train(fn, types, root)
    return images.gpu(), labels.gpu()


def _bytes(root: str) -> Any:
    """Copy bytes to the GPU, and convert them to floats there."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(files), size=48)
    return pipelines.normalize(fn, types, images.gpu(), mirror=fn.random.coin_flip()), labels.gpu()


def _colors(root: str) -> Any:
    """Run colors and all later operators on the GPU."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(files, device="mixed"), size=48)
    images = fn.color_twist(images, hue=fn.random.uniform(range=[-30.0, 30.0]), saturation=1.3)
    return pipelines.normalize(fn, types, images, mirror=fn.random.coin_flip()), labels.gpu()


# Launches and copies of a batch, waits and pageable copies of all.
BUDGETS = {
    "train": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "colors": {"launches": 10, "copies": 3, "waits": 0, "pageable": 0},
    "val": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "roi": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "heavy": {"launches": 35, "copies": 5, "waits": 0, "pageable": 0},
    "decode": {"launches": 0, "copies": 2, "waits": 0, "pageable": 0},
    "fed": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "photo": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "late": {"launches": 0, "copies": 2, "waits": 0, "pageable": 0},
    "bytes": {"launches": 1, "copies": 2, "waits": 0, "pageable": 0},
}


def define(name: str) -> Any:
    if name == "late":
        return _floats_at_the_end
    if name in ("bytes", "colors"):
        return _bytes if name == "bytes" else _colors
    return lambda root: getattr(pipelines, name)(pipelines.OnDevice(fn), types, root)


def _check(name: str, folder: Path, batch_size: int, spare: float = 0) -> None:
    found = count_costs(define(name), batch_size, root=str(folder))
    found["copies"] -= spare
    over = {k: (found[k], most) for k, most in BUDGETS[name].items() if found[k] > most}
    assert not over, f"{over}\n{found['lines']}"


@pytest.mark.parametrize("name", BUDGETS)
def test_a_small_batch(folder: Path, name: str) -> None:
    """A counted batch that is much larger than earlier ones may need one more copy."""
    _check(name, folder, 4, spare=1 / BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [32, 256])
@pytest.mark.parametrize("name", BUDGETS)
def test_large_batches(folder: Path, name: str, batch_size: int) -> None:
    """As many launches, copies and waits as for a small batch."""
    _check(name, folder, batch_size)


def test_channels_last_batches_are_not_copied(folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def define() -> Any:
        files, _ = fn.readers.file(file_root=str(folder))
        images = fn.random_resized_crop(fn.decoders.image(files, device="mixed"), size=48)
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, output_layout="HWC", mean=[9.0], std=[2.0])

    with accelerator():
        pipe = define()
        batch = inner(pipe.run()[0].as_tensor().torch()).permute(0, 3, 1, 2)
        assert batch.is_contiguous(memory_format=torch.channels_last) and batch.dtype == torch.float16
        pipe.close()


def _floats(images: Any) -> Any:
    return fn.resize(images, resize_shorter=30.0, dtype=types.FLOAT)


OPERATORS = {
    "slice": (lambda images: fn.slice(images, rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6]), 1),
    "pad": (lambda images: fn.pad(images, axis_names="HW"), 1),
    "resized floats": (lambda images: fn.resize(_floats(images), size=[20, 30]), 4),
    "windows of floats": (lambda images: fn.random_resized_crop(_floats(images), size=[20, 30]), 4),
    "normalized floats": (lambda images: fn.crop_mirror_normalize(_floats(images), crop=[20, 20]), 3),
    "perspective": (lambda images: fn.experimental.warp_perspective(images, matrix=fn.random.uniform(range=[0.1, 0.9], shape=[9]), fill_value=[1.0, 2.0, 3.0]), 1),
    "rotated floats": (lambda images: fn.rotate(_floats(images), angle=fn.random.uniform(range=[0.0, 90.0])), 3),
    "pad floats": (lambda images: fn.pad(_floats(images), axis_names="HW", fill_value=2.5), 3),
    "crop floats": (lambda images: fn.crop(_floats(images), crop=[20, 20]), 3),
    "slice floats": (lambda images: fn.slice(_floats(images), rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6]), 3),
}
"""Calls on decoded images of any sizes, and the most launches of one; batches of one size are in `test_batches`."""


@pytest.mark.parametrize("name", OPERATORS)
def test_launches_do_not_grow_with_the_batch(folder: Path, name: str) -> None:
    call, most = OPERATORS[name]

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        return call(fn.decoders.image(files, device="mixed"))

    few, many = (count_costs(define, size, root=str(folder)) for size in (4, 16))
    assert few["launches"] == many["launches"] <= most, many["lines"]
    assert few["copies"] == many["copies"] <= 5 and not many["waits"] and not many["pageable"]


@pytest.mark.parametrize("batch_size", [16, 64])
def test_augmentations_in_branches(folder: Path, batch_size: int) -> None:
    """The number of launches is the sum over all branches, for any number of samples in each."""

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        images = fn.resize(fn.decoders.image(files, device="mixed"), size=[32, 32])
        return trivial_augment.trivial_augment_wide(images)

    found = count_costs(define, batch_size, root=str(folder))
    assert found["launches"] <= 130 and found["copies"] <= 30, found["lines"]
    assert not found["waits"] and not found["pageable"], found["lines"]


NOISE = {
    "gaussian": lambda images: fn.noise.gaussian(images, stddev=fn.random.uniform(range=[1.0, 9.0])),
    "salt and pepper": lambda images: fn.noise.salt_and_pepper(images, prob=fn.random.uniform(range=[0.0, 0.9])),
    "shot": lambda images: fn.noise.shot(images, factor=fn.random.uniform(range=[1.0, 9.0])),
}


@pytest.mark.parametrize("batch_size", [4, 16])
@pytest.mark.parametrize("name", NOISE)
def test_noise_waits_once(folder: Path, name: str, batch_size: int) -> None:
    """The CPU draws the noise."""

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        return NOISE[name](fn.decoders.image(files, device="mixed"))

    found = count_costs(define, batch_size, root=str(folder))
    assert found["launches"] == 0 and found["copies"] <= 4 and found["waits"] <= BATCHES, found["lines"]
    assert found["pageable"] <= BATCHES, found["lines"]  # the copy to the host


def test_a_loop_over_samples_is_detected(folder: Path) -> None:
    """Check of the tests: without the kernels, launches grow with the batch."""
    found = count_costs(define("train"), 4, kernels=False, root=str(folder))
    assert found["launches"] > 4 * 12 and found["waits"] > 0


