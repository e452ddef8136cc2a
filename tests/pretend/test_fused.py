"""Fused operators on a mock accelerator: values equal unfused operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from tests.pretend import accelerator
from tests.pretend.pictures import write_images
from torchdali import fn, pipeline_def, types
from torchdali.graph import rewrite
from torchdali.ops import _resize_and_normalize

Finish = Callable[..., Any]
STD = 20.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("pictures"), 8, side=60)


def finish(images: Any, **arguments: Any) -> Any:
    given = {"mirror": fn.random.coin_flip(seed=3), "mean": [124.0, 116.0, 104.0], "std": [STD] * 3}
    return fn.crop_mirror_normalize(images, **given | arguments)


def windows(files: Any, **arguments: Any) -> Any:
    images = fn.decoders.image(files, device="mixed")
    return finish(fn.random_resized_crop(images, size=[40, 48], seed=5), **arguments)


def resized(files: Any, crop: dict[str, Any] | None = None, **arguments: Any) -> Any:
    return finish(fn.resize(fn.decoders.image(files, device="mixed"), **arguments), **(crop or {}))


TOGETHER: dict[str, Finish] = {
    "windows": windows,
    "half, channels last": lambda f: windows(f, dtype=types.FLOAT16, output_layout="HWC"),
    "all mirrored": lambda f: windows(f, mirror=1),
    "a part of each window": lambda f: windows(f, crop=[20, 30], crop_pos_x=0.2),
    "what a crop sees": lambda f: resized(f, {"crop": [32, 32]}, resize_shorter=40.0),
    "cubic": lambda f: resized(f, size=[40.0, 30.0], interp_type=types.INTERP_CUBIC),
    "a region": lambda f: resized(f, size=[33.0, 35.0], roi_start=[0.1, 0.2], roi_end=[0.8, 0.7], roi_relative=True),
    "a window of the decoder": lambda f: finish(
        fn.resize(fn.decoders.image_random_crop(f, device="mixed", seed=4), size=[36.0, 40.0])
    ),
}
NOT_FUSED: dict[str, Finish] = {
    "sizes of each": lambda f: resized(f, {"crop": [20, 20], "crop_pos_x": fn.random.uniform(range=[0.0, 1.0], seed=2)}, resize_shorter=30.0),
    "sizes of each, of a window": lambda f: finish(
        fn.resize(fn.decoders.image_random_crop(f, device="mixed", seed=4), resize_shorter=30.0), crop=[20, 20]
    ),
    "places of each": lambda f: windows(f, crop=[20, 30], crop_pos_y=fn.random.uniform(range=[0.0, 1.0], seed=2)),
    "a channel more": lambda f: windows(f, pad_output=True),
    "padded windows": lambda f: windows(f, crop=[50, 50], out_of_bounds_policy="pad"),
    "bytes": lambda f: windows(f, dtype=types.INT8, mean=[128.0], std=[1.0]),
    "nearest pixels": lambda f: resized(f, size=[40.0, 30.0], interp_type=types.INTERP_NN),
    "floats": lambda f: resized(f, size=[40.0, 30.0], dtype=types.FLOAT),
    "used twice": lambda f: _used_twice(f),
    "sent up": lambda f: finish(fn.resize(fn.decoders.image(f).gpu(), size=[40.0, 30.0])),
}


def _used_twice(files: Any) -> Any:
    images = fn.resize(fn.decoders.image(files, device="mixed"), size=[40.0, 30.0])
    return finish(images) + fn.reductions.mean(images)


def run(folder: Path, define: Finish, fused: bool, **options: Any) -> tuple[list[torch.Tensor], int]:
    """Return the samples of two batches, and how often the kernel for both was called."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, exec_pipelined=False, **options)
    def pipe() -> Any:
        return define(fn.readers.file(file_root=str(folder))[0])

    kernel = _resize_and_normalize.resize_normalize_batch
    with accelerator() as gpu, mock.patch.object(_resize_and_normalize, "resize_normalize_batch", side_effect=kernel) as calls:
        with mock.patch.object(rewrite, "fuse_resizing", rewrite.fuse_resizing if fused else lambda graph, device: graph):
            made = pipe()
            made.build()
        found = [s + 0 for _ in range(2) for s in made.run()[0].as_cpu().samples()]
        made.close()
        assert not gpu.report.races
        return found, calls.call_count


def check(folder: Path, define: Finish, calls: int, **options: Any) -> None:
    together, called = run(folder, define, True, **options)
    apart, none = run(folder, define, False, **options)
    assert called == calls and none == 0 and len(together) == 8
    for ours, expected in zip(together, apart, strict=True):
        assert ours.dtype == expected.dtype and ours.shape == expected.shape
        assert (ours.float() - expected.float()).abs().max() <= 1.01 / STD  # a level, by rounding


@pytest.mark.slow
@pytest.mark.parametrize("name", TOGETHER)
def test_a_resize_and_a_normalization_are_one_call(folder: Path, name: str) -> None:
    check(folder, TOGETHER[name], 2)


def test_exact_pipelines_are_fused_too(folder: Path) -> None:
    check(folder, TOGETHER["cubic"], 2, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_FUSED)
def test_other_operators_are_not_fused(folder: Path, name: str) -> None:
    check(folder, NOT_FUSED[name], 0)


@pytest.mark.slow
@pytest.mark.parametrize("crop", [[50, 50], [41, 20]])
def test_windows_outside_are_rejected(folder: Path, crop: list[int]) -> None:
    with pytest.raises(RuntimeError, match="'crop_mirror_normalize' failed"):
        run(folder, lambda f: windows(f, crop=crop), True)
    with pytest.raises(RuntimeError, match="'crop_mirror_normalize' failed"):
        run(folder, lambda f: resized(f, {"crop": crop}, resize_shorter=40.0), True)


def test_errors_name_the_part_in_which_they_happened(folder: Path) -> None:
    wrongs = ({"roi_start": [0.0]}, "resize"), ({"crop": {"fill_values": [1.0, 2.0]}}, "crop_mirror_normalize")
    for wrong, name in wrongs:
        with pytest.raises(RuntimeError, match=rf"operator '{name}' failed"):
            run(folder, lambda f, w=wrong: resized(f, **{"size": [40.0, 30.0], **w}), True)  # type: ignore[misc]
