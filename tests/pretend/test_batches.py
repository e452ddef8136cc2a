"""Operators on batches of images of one size: values match the CPU, and launches don't depend on the number of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.pretend import accelerator, inner
from torchdali import fn, pipeline_def, types
from torchdali.declaration.registry import registry

SHAPE = (24, 30, 3)


def drawn(low: float, high: float, **arguments: Any) -> Any:
    return fn.random.uniform(range=[low, high], **arguments)


def coin() -> Any:
    return fn.random.coin_flip()


def windows() -> Any:
    return drawn(-0.2, 0.4, shape=[3, 3]).gpu()


def hidden(name: str, *inputs: Any, **arguments: Any) -> Any:
    """Call an operator of automatic augmentation."""
    return registry[name].function(*inputs, **arguments)


CASES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "brightness": (lambda x: fn.brightness(x, brightness=drawn(0.5, 1.5), brightness_shift=0.1), 8),
    "contrast": (lambda x: fn.contrast(x, contrast=drawn(0.5, 1.5)), 8),
    "contrast of floats": (lambda x: fn.contrast(x, contrast=0.5, contrast_center=drawn(0, 99), dtype=types.FLOAT), 8),
    "both": (lambda x: fn.brightness_contrast(x, brightness=drawn(0.5, 2), contrast=drawn(0.5, 2)), 8),
    "hsv": (lambda x: fn.hsv(x, hue=drawn(-90, 90), saturation=drawn(0, 2), value=drawn(0.5, 2)), 12),
    "hue": (lambda x: fn.hue(x, hue=drawn(-90, 90), dtype=types.INT16), 12),
    "saturation": (lambda x: fn.saturation(x, saturation=drawn(0, 2), dtype=types.FLOAT), 12),
    "color_twist": (lambda x: fn.color_twist(x, hue=drawn(-90, 90), brightness=drawn(0.5, 2), contrast=1.2), 12),
    "a constant twist": (lambda x: fn.color_twist(x, hue=33.0, saturation=0.4), 12),
    "gray": (lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY), 8),
    "YCbCr": (lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr), 8),
    "BGR": (lambda x: fn.color_space_conversion(x, image_type=types.BGR, output_type=types.RGB), 3),
    "flip": (lambda x: fn.flip(x, horizontal=coin(), vertical=coin()), 8),
    "flip of floats": (lambda x: fn.flip(fn.cast(x, dtype=types.FLOAT), horizontal=coin()), 5),
    "flip of wide integers": (lambda x: fn.flip(fn.cast(x, dtype=types.UINT16), horizontal=coin()), 5),
    "erase": (lambda x: fn.erase(x, anchor=drawn(0.1, 0.5, shape=[2]), shape=[0.3, 0.2], normalized=True), 15),
    "erase two regions": (lambda x: fn.erase(x, anchor=drawn(0, 20, shape=[4]), shape=[5, 6, 9, 99], fill_value=[1, 2, 300]), 24),
    "erase lines": (lambda x: fn.erase(fn.cast(x, dtype=types.UINT32), anchor=drawn(0, 20, shape=[1]), shape=[4], axis_names="H", fill_value=drawn(0, 99)), 12),
    "blur": (lambda x: fn.gaussian_blur(x, window_size=5), 16),
    "blur, drawn": (lambda x: fn.gaussian_blur(x, sigma=drawn(0.2, 1.4)), 60),
    "blur of floats, an axis each": (lambda x: fn.gaussian_blur(x, sigma=drawn(0.2, 1.4, shape=[2]), dtype=types.FLOAT), 60),
    "laplacian": (lambda x: fn.laplacian(x, window_size=5, normalized_kernel=True), 40),
    "laplacian of floats": (lambda x: fn.laplacian(fn.cast(x, dtype=types.FLOAT), scale=0.5), 30),
    "filter": (lambda x: fn.filter(x, windows()), 30),
    "filter with a constant": (lambda x: fn.filter(x, windows(), border="constant", anchor=[0, 1]), 30),
    "filter of floats, inside": (lambda x: fn.filter(x, windows(), mode="valid", dtype=types.FLOAT), 30),
    "median": (lambda x: fn.experimental.median_blur(x, window_size=[3, 5]), 8),
    "dilate": (lambda x: fn.experimental.dilate(x, mask_size=[3, 5]), 16),
    "equalize": (lambda x: fn.equalize(x), 32),
    "equalize planes": (lambda x: fn.equalize(fn.transpose(x, perm=[2, 0, 1])), 32),
    "clahe": (lambda x: fn.clahe(x, tiles_x=3, tiles_y=2, clip_limit=2.0), 125),
    "clahe of channels": (lambda x: fn.clahe(x, tiles_x=3, tiles_y=2, clip_limit=2.0, luma_only=False), 80),
    "grid_mask": (lambda x: fn.grid_mask(x, tile=20, angle=drawn(0, 3), ratio=drawn(0.2, 0.8)), 24),
    "one grid_mask": (lambda x: fn.grid_mask(x, tile=7, shift_x=3.0), 24),
    "JPEG": (lambda x: fn.jpeg_compression_distortion(x, quality=fn.cast(drawn(9, 90), dtype=types.INT32)), 200),
    "auto_contrast": (lambda x: hidden("_auto_contrast", fn.brightness(x, brightness=0.4)), 24),
    "contrast around the mean": (lambda x: hidden("_contrast_around_mean", x, factor=drawn(0.3, 1.9)), 24),
    "solarize": (lambda x: hidden("_solarize", x, drawn(0, 256).gpu()), 6),
    "solarize_add": (lambda x: hidden("_solarize_add", x, fn.cast(drawn(-20, 110), dtype=types.INT32).gpu()), 8),
    "arithmetic": (lambda x: x * drawn(0.5, 1.5).gpu() + 10, 6),
    "cast": (lambda x: fn.cast(x, dtype=types.FLOAT), 1),
    "look-up": (lambda x: fn.lookup_table(x, keys=[3], values=[7.0]), 3),
    "cat": (lambda x: fn.cat(x, x, axis_name="W"), 2),
    "stack": (lambda x: fn.stack(x, x), 2),
    "pad": (lambda x: fn.pad(x, axis_names="HW", shape=[40, 50], fill_value=7), 1),
    "sum": (lambda x: fn.reductions.sum(x), 4),
    "mean": (lambda x: fn.reductions.mean(x, axis_names="HW", keep_dims=True), 4),
    "rms": (lambda x: fn.reductions.rms(x, axes=[0, 1]), 5),
    "largest": (lambda x: fn.reductions.max(x, axes=[-1]), 4),
    "least of floats": (lambda x: fn.reductions.min(fn.cast(x, dtype=types.FLOAT)), 10),
    "variance": (lambda x: fn.reductions.variance(x, fn.reductions.mean(x, axis_names="HW"), axis_names="HW"), 12),
    "deviation": (lambda x: fn.reductions.std_dev(x, 9.0, axes=[1]), 12),
    "normalize": (lambda x: fn.normalize(x), 16),
    "normalize channels": (lambda x: fn.normalize(x, axis_names="HW", ddof=1, scale=30.0, shift=100.0, dtype=types.UINT8), 20),
    "normalize a batch": (lambda x: fn.normalize(x, axis_names="HW", batch=True), 16),
    "normalize by numbers": (lambda x: fn.normalize(x, mean=drawn(0, 9), stddev=3.0), 6),
    "normalize by means": (lambda x: fn.normalize(x, axis_names="HW", mean=drawn(0, 9, shape=[1, 1, 3])), 16),
}
"""Calls, and the most launches of one."""


def smooth_batch(size: int) -> Any:
    rows, columns, _ = np.mgrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    phases = np.random.default_rng(2).uniform(0, 6, (size, 1, 1, 3))
    waves = np.sin(rows / 5 + phases) * np.cos(columns / 7 - phases)
    return np.rint(127.5 + 127 * waves).astype(np.uint8)


def run(call: Callable[[Any], Any], size: int, device_id: int | str, warm: Callable[[], None] = lambda: None) -> Any:
    """Return the second batch of a pipeline.

    Args:
        warm: Called after the first batch.
    """

    @pipeline_def(batch_size=size, num_threads=2, device_id=device_id, seed=3, exec_pipelined=False)
    def define() -> Any:
        data = smooth_batch(size)
        return call(fn.external_source(lambda: data, layout="HWC").gpu())

    pipe = define()
    try:
        pipe.run()
        warm()
        return pipe.run()[0]
    finally:
        pipe.close()


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CASES)
def test_batches_of_one_size(name: str) -> None:
    call, most = CASES[name]
    launches = {}
    for size in (3, 7):
        expected = run(call, size, "cpu").stack().numpy()
        with accelerator() as gpu:
            found, report = run(call, size, 0, gpu.report.clear), gpu.report
            launches[size] = report.launches
            values = inner(found.stack()).numpy()
            assert not report.waits and not report.pageable, report.lines()
            assert (values.shape, values.dtype) == (expected.shape, expected.dtype)
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))
        else:
            assert np.abs(values.astype(int) - expected).max() <= 1
            assert (values == expected).mean() > 0.95
    assert launches[3] == launches[7] <= most, (launches, report.lines())
