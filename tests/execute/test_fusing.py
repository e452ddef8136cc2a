"""Fused operators: the same pixels, and the user's names in errors and statistics."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.dlpack

from tests.helpers.encoded_images import encoded, exif, smooth_image, tensor
from tests.helpers.native import both_paths
from torchdali import fn, pipeline_def, types
from torchdali.errors import PipelineError
from torchdali.kernels.native import library


@functools.cache
def images() -> list[np.ndarray[Any, Any]]:
    """Encode images of all kinds: orientations, subsamplings, progressive, gray, CMYK, PNG."""
    photo = smooth_image(230, 310)
    files = [encoded(photo, "JPEG", exif=exif(k)) for k in range(1, 9)]
    files += [encoded(photo, "JPEG", subsampling=k) for k in (0, 1, 2)]
    files += [encoded(photo, "JPEG", progressive=True), encoded(photo[:, :, 0].copy(), "JPEG")]
    files += [encoded(photo, "PNG"), encoded(photo, "JPEG", restart_marker_rows=1)]
    return [tensor(file).numpy() for file in files]


@pipeline_def(num_threads=2, device_id=None, seed=5)
def crops(files: Any, apart: bool, **arguments: Any) -> Any:
    """Decode and crop at random; if `apart`, another use of the image prevents fusing."""
    image = fn.decoders.image(fn.external_source(source=lambda: files))
    crop = fn.random_resized_crop(image, **arguments)
    return (crop, image) if apart else crop


def same_pixels(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare; results of the fast path may be a level off."""
    if library() is None:
        assert torch.equal(found, expected)
    assert (found.double() - expected.double()).abs().max() <= 1


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "arguments",
    [
        {"size": [64, 96]},
        {"size": 20},
        {"size": [64, 64], "antialias": False},
        {"size": [64, 64], "interp_type": types.INTERP_CUBIC},
        {"size": [64, 64], "dtype": types.FLOAT},
        {"size": [64, 64], "random_area": [0.01, 0.1]},
        {"size": [64, 64], "interp_type": types.INTERP_NN},
    ],
)
@both_paths
def test_decoding_a_random_crop_changes_no_pixel(arguments: dict[str, Any]) -> None:
    files = images()
    made = [crops(files, apart, batch_size=len(files), **arguments) for apart in (False, True)]
    assert ("+" in made[0].explain()) == ("dtype" not in arguments) and "+" not in made[1].explain()
    for _ in range(4):
        together, separate = (
            torch.utils.dlpack.from_dlpack(pipe.run()[0].as_tensor()) for pipe in made
        )
        same_pixels(together, separate)


@pipeline_def(num_threads=2, device_id="cpu", seed=5)
def crops_on_the_device(files: Any, apart: bool, decoding: dict[str, Any], **arguments: Any) -> Any:
    """Decode for the device and crop there; if `apart`, another use of the image prevents a rewrite."""
    image = fn.decoders.image(fn.external_source(source=lambda: files), device="mixed", **decoding)
    crop = fn.random_resized_crop(image, **arguments)
    return (crop, image) if apart else crop


@pytest.mark.filterwarnings("ignore:The argument .seed.")
@pytest.mark.parametrize(
    "arguments",
    [{"size": 64}, {"size": [48, 96], "antialias": False}, {"size": [40, 64], "random_area": [0.01, 0.1], "seed": 3}, {"size": [64, 64], "dtype": types.UINT8}],
)
@pytest.mark.parametrize("decoding", [{}, {"seed": 7, "adjust_orientation": False, "hw_decoder_load": 0.5}], ids=["", "options"])
def test_for_a_device_only_the_window_is_decoded(arguments: dict[str, Any], decoding: dict[str, Any]) -> None:
    files = images()
    window, whole = (crops_on_the_device(files, apart, decoding, batch_size=len(files), **arguments) for apart in (False, True))
    assert "decoders.image_random_crop" in window.explain() and "= random_resized_crop(" not in window.explain()
    assert "image_random_crop" not in whole.explain()
    for _ in range(3):
        alone, expected = (pipe.run()[0].as_cpu().as_tensor().torch().int() for pipe in (window, whole))
        differences = (alone - expected).abs()
        # `resize` corrects the rows next to the borders, which `random_resized_crop` does not.
        assert not differences[:, 3:-3, 3:-3].any() and differences.max() <= 4


@pytest.mark.parametrize(
    "arguments",
    [{"size": 20}, {"size": 64, "interp_type": types.INTERP_CUBIC}, {"size": 64, "dtype": types.FLOAT}, {"size": 64, "random_area": [0.0, -1.0]}],
)
def test_for_a_device_a_crop_that_reads_beyond_its_window_gets_the_image(arguments: dict[str, Any]) -> None:
    assert "image_random_crop" not in crops_on_the_device(images()[:1], False, {}, batch_size=1, **arguments).explain()
    if "random_area" not in arguments:
        exact = crops_on_the_device(images()[:1], False, {}, batch_size=1, exact=True, size=64)
        assert "image_random_crop" not in exact.explain()


def test_errors_for_a_device_name_the_operator() -> None:
    damaged = [np.frombuffer(b"\xff\xd8\xff no more", np.uint8)]
    with pytest.raises(PipelineError, match=r"'decoders.image' failed"):
        crops_on_the_device(damaged, False, {}, batch_size=1, size=64).run()
    with pytest.raises(PipelineError, match=r"'random_resized_crop' failed"):
        crops_on_the_device(images()[:1], False, {}, batch_size=1, size=50, random_area=[0.0, -1.0]).run()


def test_errors_name_the_fused_operator_that_failed() -> None:
    with pytest.raises(PipelineError, match=r"'decoders.image' failed.*\n.*\n +image = fn.decod"):
        crops([np.frombuffer(b"\xff\xd8\xff no more", np.uint8)], False, batch_size=1, size=9).run()
    bad = {"size": 50, "random_area": [0.0, -1.0]}
    with pytest.raises(PipelineError, match=r"'random_resized_crop' failed"):
        crops(images()[:1], False, batch_size=1, **bad).run()


@pytest.mark.filterwarnings("ignore:The argument .seed.")
def test_decoder_and_crop_have_different_seeds() -> None:
    files = images()[:4]

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=5)
    def pipe(**seed: int) -> Any:
        image = fn.decoders.image(fn.external_source(source=lambda: files), **seed)
        return fn.random_resized_crop(image, size=40)

    first, second = (torch.utils.dlpack.from_dlpack(pipe(**seed).run()[0].as_tensor()) for seed in ({}, {"seed": 9}))
    assert torch.equal(first, second)


def test_all_operators_of_a_branch_are_fused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipe() -> Any:
        image = fn.external_source(source=lambda: images()[:2])
        if fn.random.coin_flip(dtype=types.BOOL):
            out = fn.crop_mirror_normalize(fn.resize(fn.decoders.image(image), size=40))
        else:
            out = fn.crop_mirror_normalize(fn.random_resized_crop(fn.decoders.image(image), size=40))
        return out

    assert "decoders.image + resize + crop_mirror_normalize" in pipe().explain()


def test_statistics_name_both_operators() -> None:
    pipe = crops(images()[:4], False, batch_size=4, size=50)
    pipe.run()
    assert "decoders.image + random_resized_crop" in str(pipe.stats())


@pipeline_def(num_threads=2, device_id=None, seed=5)
def centres(files: Any, apart: int, decoding: dict[str, Any], resizing: dict[str, Any], crop: dict[str, Any]) -> Any:
    """Decode, resize, crop; other uses of the first `apart` results prevent fusing."""
    image = fn.decoders.image(fn.external_source(source=lambda: files), **decoding)
    resized = fn.resize(image, **resizing)
    done = fn.crop_mirror_normalize(resized, std=[2.0], **crop)
    return (done, image, resized)[: 1 + apart]


_CROP = {"crop": [60, 70], "crop_pos_y": 0.3}


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("decoding", "resizing", "crop"),
    [
        ({}, {"resize_shorter": 90}, _CROP),
        ({}, {"resize_shorter": 90, "antialias": False}, _CROP),
        ({}, {"resize_shorter": 400}, _CROP),
        ({}, {"size": [230, 310]}, _CROP),
        ({}, {"size": [115, 100]}, {"crop": [115, 50]}),
        ({}, {"size": [115, 100]}, {"crop": [50, 50], "crop_pos_y": 1.0, "mirror": 1}),
        ({}, {"resize_x": -120}, _CROP),
        ({}, {"resize_y": -120}, _CROP),
        ({}, {"resize_shorter": 90}, {"crop": [130, 60], "out_of_bounds_policy": "pad"}),
        ({}, {"resize_shorter": 90, "interp_type": types.INTERP_CUBIC}, _CROP),
        ({}, {"resize_shorter": 90, "interp_type": types.INTERP_NN}, _CROP),
        ({}, {"size": [80, 90], "roi_start": [10, 20], "roi_end": [200, 250]}, _CROP),
        ({}, {"size": [80, 90], "roi_start": [10.5, 20.5], "roi_end": [200, 250]}, _CROP),
        ({"adjust_orientation": False}, {"resize_shorter": 90}, _CROP),
        ({"output_type": types.GRAY}, {"resize_shorter": 90}, {**_CROP, "mean": [3.0]}),
        ({"use_fast_idct": True}, {"resize_shorter": 90}, _CROP),
        ({}, {"resize_shorter": 90}, {**_CROP, "dtype": types.UINT8, "output_layout": "HWC"}),
    ],
)  # fmt: skip
@both_paths
def test_fusing_decode_resize_and_crop_changes_no_pixel(
    decoding: dict[str, Any], resizing: dict[str, Any], crop: dict[str, Any]
) -> None:
    files = images()
    made = [
        centres(files, apart, decoding, resizing, crop, batch_size=len(files)) for apart in range(3)
    ]
    found = [torch.utils.dlpack.from_dlpack(pipe.run()[0].as_tensor()) for pipe in made]
    narrows = "output_type" not in decoding
    assert ["decoders.image + resize + crop" in pipe.explain() for pipe in made] == [narrows, False, False]
    same_pixels(found[0], found[2])
    assert torch.equal(found[1], found[2])


def test_the_error_names_the_failed_one_of_three_operators() -> None:
    def run(files: list[Any], **arguments: Any) -> None:
        centres(files, 0, {}, {"resize_shorter": 50.0, **arguments}, {"crop": [60, 60]}, batch_size=1).run()

    with pytest.raises(PipelineError, match=r"'decoders.image' failed.*\n.*\n +image = fn.decod"):
        run([np.frombuffer(b"\xff\xd8\xff no more", np.uint8)])
    damaged = images()[8].copy()
    damaged[len(damaged) // 2 :] = 0
    with pytest.raises(PipelineError, match=r"'decoders.image' failed.*\n.*\n +image = fn.decod"):
        run([damaged])
    with pytest.raises(RuntimeError, match=r"'resize' failed.*\n.*\n +resized = fn.resize"):
        run(images()[:1], resize_longer=70.0)
    with pytest.raises(PipelineError, match=r"'crop_mirror_normalize' failed.*\n.*\n +done = fn.crop"):
        run(images()[:1])
