"""Batch kernels for accelerators: their torch implementations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.device_images import (
    FILTERS,
    images,
    maps,
    perspectives,
    regions,
)
from torchdali.kernels.device.normalize import normalize_batch
from torchdali.kernels.device.resize import COLUMNS, Regions, build_table, resize_batch
from torchdali.kernels.device.resize_normalize import Finish, resize_normalize_batch
from torchdali.kernels.device.tables import table
from torchdali.kernels.device.warp import BORDERS as WARP_BORDERS
from torchdali.kernels.device.warp import COLUMNS as WARP_COLUMNS
from torchdali.kernels.device.warp import MODES, warp_batch
from torchdali.kernels.device.window import COLUMNS as WINDOW_COLUMNS
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.filters.linear import BORDERS
from torchdali.kernels.normalize import affine
from torchdali.kernels.resample.separable import resample
from torchdali.kernels.resample.weights import resize_axes
from torchdali.kernels.warp.affine import warp_affine
from torchdali.kernels.warp.perspective import warp_perspective


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filters", FILTERS, ids="-".join)
def test_the_torch_implementation_equals_resample(filters: tuple[str, str], antialias: bool) -> None:
    rng = np.random.default_rng(4)
    made, offsets, sides = images(rng, 6)
    what = regions(rng, sides, filters, antialias)
    flat = torch.cat([image.reshape(-1) for image in made])
    for dtype in (torch.uint8, torch.float32):
        found = resize_batch(flat, offsets, sides, 3, what, dtype)
        assert found is not None
        starts = np.concatenate(([0], np.cumsum(what.size.prod(0) * 3)))
        for i, image in enumerate(made):
            roi = tuple(zip(what.low[:, i].tolist(), what.high[:, i].tolist(), strict=True))
            axes = resize_axes(tuple(image.shape[:2]), tuple(what.size[:, i].tolist()), roi, *filters, antialias)
            expected = resample(image, axes, torch.float32)
            ours = found[starts[i] : starts[i + 1]].view(expected.shape)
            if dtype == torch.float32:
                assert torch.allclose(ours, expected, rtol=0, atol=255e-5)
            else:
                assert (ours - expected.clamp(0, 255)).abs().max() <= 0.51


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filters", FILTERS, ids="-".join)
def test_looked_up_rows_equal_computed_rows(filters: tuple[str, str], antialias: bool) -> None:
    rng = np.random.default_rng(6)
    for longest in (60, 700, 20_000):  # the last ones are too long for the lookup table
        sides, size = rng.integers(1, longest, (2, 9)), rng.integers(1, 300, (2, 1))
        whole = Regions(None, None, size, filters, antialias)
        computed = whole._replace(low=np.zeros((2, 9)), high=sides.astype(float))
        offsets, channels = rng.integers(0, 9999, 9), int(rng.integers(1, 5))
        found, expected = (build_table(offsets, sides, channels, each) for each in (whole, computed))
        assert found is not None and expected is not None
        assert (found.table == expected.table).all() and found[1:] == expected[1:]


def test_the_table_names_what_the_kernels_load() -> None:
    assert [COLUMNS.index(name) for name in ("rows", "intermediate", "result", "out_height", "out_width", "origin_y", "filter_y", "origin_x", "filter_x")] == [4, 5, 6, 7, 8, 9, 14, 15, 20]
    assert len(COLUMNS) == 21
    for names in (WARP_COLUMNS, WINDOW_COLUMNS):
        assert [names.index(name) for name in ("height", "width", "result", "out_height", "out_width")] == [1, 2, 3, 4, 5]
    assert WARP_COLUMNS.index("number 0") == 6 and len(WARP_COLUMNS) == 15
    assert [("clamp" if name == "replicate" else name.removesuffix("_1001")) for name in BORDERS] == ["reflect_101", "reflect", "clamp", "wrap", "constant"]
    assert WINDOW_COLUMNS[6:] == ("y", "x")


@pytest.mark.parametrize("channel_first", [True, False])
def test_windows_are_normalized(channel_first: bool) -> None:
    rng = np.random.default_rng(2)
    made, offsets, sides = images(rng, 5, side=30)
    height, width = int(sides[0].min()), int(sides[1].min())
    y, x = (rng.integers(0, side - extent + 1) for side, extent in zip(sides, (height, width), strict=True))
    flat = torch.cat([image.reshape(-1) for image in made])
    rows = torch.from_numpy(table([offsets, sides[1], y, x]))
    flags = torch.tensor([0, 1, 0, 1, 1], dtype=torch.int32)
    scaling = affine((10.0, 20.0, 30.0), (2.0, 3.0, 4.0), 1.0, 0.0, 3, 3)
    found = normalize_batch(flat, rows, flags, False, scaling, (height, width), 3, channel_first, torch.float32)
    for i, image in enumerate(made):
        window = image[y[i] : y[i] + height, x[i] : x[i] + width].float()
        window = window.flip(1) if flags[i] else window
        expected = (window - torch.tensor([10.0, 20, 30])) / torch.tensor([2.0, 3, 4])
        ours = found[i].permute(1, 2, 0) if channel_first else found[i]
        assert torch.allclose(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("fill", [None, 0.0, 200.0])
@pytest.mark.parametrize("linear", [True, False])
def test_warps(linear: bool, fill: float | None) -> None:
    """Float32 rounds some positions to the pixel next to OpenCV's, which also interpolates in 32 steps."""
    rng = np.random.default_rng(6)
    made, offsets, sides = images(rng, 6)
    matrices, sizes = maps(rng, 6), rng.integers(1, 40, (2, 6))
    flat = torch.cat([image.reshape(-1) for image in made])
    how = "bilinear" if linear else "nearest", "replicate" if fill is None else "constant", [fill or 0.0]
    found = warp_batch(flat, offsets, sides, 3, matrices, sizes, *how, torch.uint8)
    floats = warp_batch(flat * 1.5, offsets, sides, 3, matrices, sizes, *how, torch.float32)
    starts = np.concatenate(([0], np.cumsum(sizes.prod(0) * 3)))
    for i, image in enumerate(made):
        expected = warp_affine(image, matrices[i].tolist(), sizes[:, i].tolist(), linear=linear, fill=fill, use_opencv=False)
        ours = found[starts[i] : starts[i + 1]].view(expected.shape).int()
        off = (ours - expected.int()).abs()
        assert (off > (1 if linear else 0)).float().mean() < 0.005
        expected = warp_affine(image * 1.5, matrices[i].tolist(), sizes[:, i].tolist(), linear=linear, fill=fill, use_opencv=False)
        off = (floats[starts[i] : starts[i + 1]].view(expected.shape) - expected).abs()
        assert (off > 0.1).float().mean() < 0.005


# Far outside, where images repeat, OpenCV's values differ from cubic interpolation.
@pytest.mark.parametrize(("mode", "border"), [(m, b) for m in MODES for b in WARP_BORDERS if m != "bicubic" or b in ("constant", "replicate")])
def test_perspectives(mode: str, border: str) -> None:
    rng = np.random.default_rng(14)
    made, offsets, sides = images(rng, 6)
    matrices, sizes, fill = perspectives(rng, 6), rng.integers(1, 40, (2, 6)), [9.0, 90.0, 255.0]
    found = warp_batch(torch.cat([image.reshape(-1) for image in made]), offsets, sides, 3, matrices, sizes, mode, border, fill, torch.uint8)
    starts = np.concatenate(([0], np.cumsum(sizes.prod(0) * 3)))
    for i, image in enumerate(made):
        expected = warp_perspective(image, matrices[i].tolist(), sizes[:, i].tolist(), mode=mode, border=border, fill=fill)
        ours = found[starts[i] : starts[i + 1]].view(expected.shape).int()
        assert ((ours - expected.int()).abs() > (0 if mode == "nearest" else 1)).float().mean() < 0.005


def test_windows_are_copied() -> None:
    rng = np.random.default_rng(8)
    made, offsets, sides = images(rng, 8)
    starts, sizes = rng.integers(-20, 30, (2, 8)), rng.integers(1, 40, (2, 8))
    flat = torch.cat([image.reshape(-1) for image in made])
    found = copy_windows(flat, offsets, sides, 3, starts, sizes, 9)
    assert torch.equal(copy_windows(flat * 1.5, offsets, sides, 3, starts, sizes, 13.5), found * 1.5)
    begins = np.concatenate(([0], np.cumsum(sizes.prod(0) * 3)))
    for i, image in enumerate(made):
        wide = np.pad(image.numpy(), ((80, 80), (80, 80), (0, 0)), constant_values=9)
        (y, x), (h, w) = starts[:, i] + 80, sizes[:, i]
        window = wide[y : y + h, x : x + w]
        assert np.array_equal(found[begins[i] : begins[i + 1]].view(h, w, 3).numpy(), window)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("channel_first", [True, False])
@pytest.mark.parametrize("mirror", ["each", True, False])
def test_fused_resize_and_normalize_equals_two_steps(channel_first: bool, dtype: torch.dtype, mirror: Any) -> None:
    rng = np.random.default_rng(8)
    made, offsets, sides = images(rng, 7)
    flat = torch.cat([image.reshape(-1) for image in made])
    size = np.array([[9], [14]])
    what = regions(rng, sides, ("linear", "linear"), True)._replace(size=size)
    flags = torch.tensor([0, 1, 0, 1, 1, 0, 0], dtype=torch.int32) if mirror == "each" else None
    scaling = affine((10.0, 20.0, 30.0), (2.0, 3.0, 4.0), 1.0, 0.0, 3, 3)
    resized = resize_batch(flat, offsets, sides, 3, what, torch.uint8)
    assert resized is not None
    rows = torch.from_numpy(table([np.arange(7) * 9 * 14 * 3, 14, 0, 0]))
    expected = normalize_batch(resized, rows, flags, mirror is True, scaling, (9, 14), 3, channel_first, dtype)
    finish = Finish(flags, mirror is True, scaling, channel_first, dtype)
    found = resize_normalize_batch(flat, offsets, sides, 3, what, finish)
    assert found is not None and found.dtype == dtype and torch.equal(found, expected)
    long = what._replace(low=np.zeros((2, 7)), high=np.full((2, 7), 1e9), size=np.array([[9000], [14]]))
    assert resize_normalize_batch(flat, offsets, sides, 3, long, finish) is None
