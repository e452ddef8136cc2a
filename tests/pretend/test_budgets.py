"""Launches, copies and waits of a batch, as many as there may be, for the pipelines of the benchmarks.

What is counted does not depend on time or on a GPU. Where a budget does not name a number for a batch, the pipeline still
works sample by sample.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import pipelines
from tests.pretend import accelerator, inner
from tests.pretend.pictures import folder_of_pictures
from torchdali import fn, pipeline_def, types
from torchdali.auto_aug import trivial_augment

pytestmark = pytest.mark.slow  # what is quick is in test_pretence and test_operators

WARM_UP = 3
BATCHES = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_pictures(tmp_path_factory.mktemp("pictures"), 24, side=40)


def counted(define: Any, batch_size: int, kernels: bool = True, **arguments: Any) -> dict[str, float]:
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


class _OnDevice:
    """`fn` whose decoders are "mixed" and whose labels go to the device, for pipelines written for the CPU."""

    def __init__(self) -> None:
        self.decoders, self.readers, self.random = self, self, fn.random
        self.__name__ = "torchdali.fn"

    def file(self, **options: Any) -> Any:
        files, labels = fn.readers.file(**options)
        return files, labels.gpu()

    def image(self, files: Any, **options: Any) -> Any:
        return fn.decoders.image(files, device="mixed", **options)

    def image_random_crop(self, files: Any, **options: Any) -> Any:
        return fn.decoders.image_random_crop(files, device="mixed", **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(fn, name)


def _late(root: str) -> Any:
    """Train with all of the work on the CPU and one copy of floats at the end."""
    images, labels = pipelines.train(fn, types, root)
    return images.gpu(), labels.gpu()


def _bytes(root: str) -> Any:
    """Bytes up, floats on the GPU."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(files), size=48)
    return pipelines._normalize(fn, types, images.gpu(), mirror=fn.random.coin_flip()), labels.gpu()


def _colors(root: str) -> Any:
    """Colors and all else on the GPU."""
    files, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(files, device="mixed"), size=48)
    images = fn.color_twist(images, hue=fn.random.uniform(range=[-30.0, 30.0]), saturation=1.3)
    return pipelines._normalize(fn, types, images, mirror=fn.random.coin_flip()), labels.gpu()


# Launches and copies of a batch, waits and pageable copies of all.
BUDGETS = {
    "train": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "colors": {"launches": 4, "copies": 3, "waits": 0, "pageable": 0},
    "val": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "roi": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "heavy": {"launches": 7, "copies": 5, "waits": 0, "pageable": 0},
    "decode": {"launches": 0, "copies": 2, "waits": 0, "pageable": 0},
    "fed": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "photo": {"launches": 2, "copies": 2, "waits": 0, "pageable": 0},
    "late": {"launches": 0, "copies": 2, "waits": 0, "pageable": 0},
    "bytes": {"launches": 1, "copies": 2, "waits": 0, "pageable": 0},
}


def _define(name: str) -> Any:
    if name == "late":
        return _late
    if name in ("bytes", "colors"):
        return _bytes if name == "bytes" else _colors
    return lambda root: getattr(pipelines, name)(_OnDevice(), types, root)


def _check(name: str, folder: Path, batch_size: int, spare: float = 0) -> None:
    found = counted(_define(name), batch_size, root=str(folder))
    found["copies"] -= spare
    over = {k: (found[k], most) for k, most in BUDGETS[name].items() if found[k] > most}
    assert not over, f"{over}\n{found['lines']}"


@pytest.mark.parametrize("name", BUDGETS)
def test_a_small_batch(folder: Path, name: str) -> None:
    """One of the batches that are counted may be so much larger than those before that it takes a copy more."""
    _check(name, folder, 4, spare=1 / BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [32, 256])
@pytest.mark.parametrize("name", BUDGETS)
def test_large_batches(folder: Path, name: str, batch_size: int) -> None:
    """Not one launch, copy or wait more than for a small batch."""
    _check(name, folder, batch_size)


@pytest.mark.parametrize("batch_size", [32, 256])
def test_pieces_cost_one_copy(folder: Path, batch_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the images goes up with the labels and parameters, as all of them do otherwise."""
    monkeypatch.setattr("torchdali.execute.output_buffer._LEAST_PIECE", 1)
    _check("train", folder, batch_size, spare=1)


def test_batches_of_channels_last_are_not_copied(folder: Path) -> None:
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
    return fn.cast(images, dtype=types.FLOAT)


def _spectra(images: Any) -> Any:
    return fn.spectrogram(fn.reshape(_floats(images), shape=[-1]), window_length=64, window_step=32)


OPERATORS = {
    "equalize": (fn.equalize, 24),
    "filter": (lambda images: fn.filter(images, np.full((3, 3), 1 / 9, np.float32)), 1),
    "erase": (lambda images: fn.erase(images, anchor=fn.random.uniform(range=[0.1, 0.5], shape=[2]), shape=[0.3, 0.2], normalized=True), 1),
    "arithmetic": (lambda images: images * 0.5 + 10, 8),
    "a number a sample": (lambda images: images * fn.random.uniform(range=[0.5, 1.5]), 6),
    "bits": (lambda images: 255 - (images & 240), 4),
    "gaussian": (lambda images: fn.noise.gaussian(images, stddev=fn.random.uniform(range=[1.0, 9.0])), 1),
    "salt and pepper": (fn.noise.salt_and_pepper, 1),
    "slice": (lambda images: fn.slice(images, rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6]), 1),
    "pad": (lambda images: fn.pad(images, axis_names="HW"), 1),
    "look-up": (lambda images: fn.lookup_table(images, keys=[3], values=[7.0]), 3),
    "gray": (lambda images: fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY), 6),
    "YCbCr": (lambda images: fn.color_space_conversion(images, image_type=types.RGB, output_type=types.YCbCr), 8),
    "BGR": (lambda images: fn.color_space_conversion(images, image_type=types.RGB, output_type=types.BGR), 1),
    "resized floats": (lambda images: fn.resize(_floats(images), size=[20, 30]), 3),
    "windows of floats": (lambda images: fn.random_resized_crop(_floats(images), size=[20, 30]), 3),
    "normalized floats": (lambda images: fn.crop_mirror_normalize(_floats(images), crop=[20, 20]), 2),
    "cast": (lambda images: fn.cast(images, dtype=types.FLOAT), 1),
    "sum": (fn.reductions.sum, 8),
    "mean": (lambda images: fn.reductions.mean(images, axis_names="HW"), 12),
    "largest": (fn.reductions.max, 9),
    "mean of floats": (lambda images: fn.reductions.mean(_floats(images), axis_names="HW"), 2),
    "least of floats": (lambda images: fn.reductions.min(_floats(images)), 2),
    "paste": (lambda images: fn.paste(images, ratio=fn.random.uniform(range=[1.0, 3.0]), fill_value=[1, 2, 3]), 1),
    "multi_paste": (lambda images: fn.multi_paste(images, in_ids=[0, 1, 2, 3], output_size=[90, 80], shapes_rel=[[0.5, 0.5]] * 4), 1),
    "multi_paste of two": (lambda images: fn.multi_paste(images, fn.crop(images, crop=[9, 9]), out_anchors=[[0, 0], [9, 9]], output_size=[99, 99], dtype=types.FLOAT), 4),
    "cat": (lambda images: fn.cat(images, fn.flip(images), axis_name="W"), 3),
    "stack": (lambda images: fn.stack(images, fn.flip(images)), 3),
    "perspective": (lambda images: fn.experimental.warp_perspective(images, matrix=fn.random.uniform(range=[0.1, 0.9], shape=[9]), fill_value=[1.0, 2.0, 3.0]), 1),
    "nearest": (lambda images: fn.resize(images, resize_shorter=30.0, interp_type=types.INTERP_NN), 1),
    "nearest windows": (lambda images: fn.random_resized_crop(images, size=[20, 30], interp_type=types.INTERP_NN), 1),
    "laplacian": (lambda images: fn.laplacian(images, window_size=fn.random.uniform(values=[3, 5, 7])), 9),
    "laplacian as floats": (lambda images: fn.laplacian(images, dtype=types.FLOAT, normalized_kernel=True, window_size=5), 5),
    "blur of floats": (lambda images: fn.gaussian_blur(_floats(images), sigma=1.5), 3),
    "filter of floats": (lambda images: fn.filter(_floats(images), np.full((3, 3), 1 / 9, np.float32), border="101"), 2),
    "rotated floats": (lambda images: fn.rotate(_floats(images), angle=fn.random.uniform(range=[0.0, 90.0])), 2),
    "water": (lambda images: fn.water(images, mask=fn.random.coin_flip()), 1),
    "sphere": (lambda images: fn.sphere(images, interp_type=types.INTERP_LINEAR), 1),
    "jitter": (lambda images: fn.jitter(images, nDegree=5), 1),
    "grid_mask": (lambda images: fn.grid_mask(images, tile=20, angle=fn.random.uniform(range=[0.0, 3.0])), 1),
    "median": (lambda images: fn.experimental.median_blur(images, window_size=[3, 5]), 1),
    "clahe": (lambda images: fn.clahe(images, tiles_x=3, tiles_y=2, clip_limit=2.0), 78),
    "clahe of channels": (lambda images: fn.clahe(images, tiles_x=3, tiles_y=2, clip_limit=2.0, luma_only=False), 28),
    "JPEG": (lambda images: fn.jpeg_compression_distortion(images, quality=fn.random.uniform(values=[9, 30, 90])), 3),
    "parts as floats": (lambda images: fn.cast(images[3:], dtype=types.FLOAT), 2),
    "pad floats": (lambda images: fn.pad(_floats(images), axis_names="HW", fill_value=2.5), 2),
    "slice floats": (lambda images: fn.slice(_floats(images), rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6]), 2),
    "crop and flip floats": (lambda images: fn.flip(fn.crop(_floats(images), crop=[20, 20])), 3),
    "spectrogram": (_spectra, 20),
    "mel filters": (lambda images: fn.mel_filter_bank(_spectra(images), nfilter=20), 24),
    "decibels": (lambda images: fn.to_decibels(_spectra(images)), 32),
    "mfcc": (lambda images: fn.mfcc(_spectra(images)), 24),
    "normalize": (fn.normalize, 9),
    "normalize channels": (lambda images: fn.normalize(images, axis_names="HW", ddof=1), 9),
    "normalize a batch": (lambda images: fn.normalize(images, axis_names="HW", batch=True), 13),
    "normalize by numbers": (lambda images: fn.normalize(images, mean=fn.random.uniform(range=[0.0, 9.0]), stddev=3.0), 8),
    "variance of floats": (lambda images: fn.reductions.variance(_floats(images), 9.0, axis_names="HW"), 4),
}
"""Calls on decoded images of any sizes, and the most launches of one."""


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_launch_no_more_for_more_samples(folder: Path, name: str) -> None:
    call, most = OPERATORS[name]

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        return call(fn.decoders.image(files, device="mixed"))

    few, many = (counted(define, size, root=str(folder)) for size in (4, 16))
    assert few["launches"] == many["launches"] <= most, many["lines"]
    assert few["copies"] == many["copies"] <= 5 and not many["waits"] and not many["pageable"]


@pytest.mark.parametrize("batch_size", [16, 64])
def test_augmentations_in_branches(folder: Path, batch_size: int) -> None:
    """As many launches as all branches together take, however many samples are in each."""

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        images = fn.resize(fn.decoders.image(files, device="mixed"), size=[32, 32])
        return trivial_augment.trivial_augment_wide(images)

    found = counted(define, batch_size, root=str(folder))
    assert found["launches"] <= 130 and found["copies"] <= 30, found["lines"]
    assert not found["waits"] and not found["pageable"], found["lines"]


@pytest.mark.parametrize("batch_size", [4, 16])
def test_shot_noise_waits_once(folder: Path, batch_size: int) -> None:
    """It is drawn on the CPU."""

    def define(root: str) -> Any:
        files, _ = fn.readers.file(file_root=root)
        return fn.noise.shot(fn.decoders.image(files, device="mixed"), factor=fn.random.uniform(range=[1.0, 9.0]))

    found = counted(define, batch_size, root=str(folder))
    assert found["launches"] == 0 and found["copies"] <= 4 and found["waits"] <= BATCHES, found["lines"]
    assert found["pageable"] <= BATCHES, found["lines"]  # the way down


def test_a_loop_over_samples_is_noticed(folder: Path) -> None:
    """The test of the tests: without the kernels, launches grow with the batch."""
    found = counted(_define("train"), 4, kernels=False, root=str(folder))
    assert found["launches"] > 4 * 12 and found["waits"] > 0


