"""Kernels for batches on an accelerator: their bodies in torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.device_images import (
    FILTERS,
    composition,
    displacements,
    grids,
    images,
    lines,
    maps,
    perspectives,
    regions,
    some_regions,
)
from torchdali.kernels.color import tone
from torchdali.kernels.color.affine import affine_rgb, twist_matrix
from torchdali.kernels.color.histogram import equalize, equalize_tiles, equalizing_tables
from torchdali.kernels.device.color import COLUMNS as COLOR_COLUMNS
from torchdali.kernels.device.color import map_colors
from torchdali.kernels.device.compose import COLUMNS as COMPOSE_COLUMNS
from torchdali.kernels.device.compose import REGION, compose_batch, joined
from torchdali.kernels.device.correlate import COLUMNS as CORRELATE_COLUMNS
from torchdali.kernels.device.correlate import correlate_batch
from torchdali.kernels.device.counts import count_values, map_values
from torchdali.kernels.device.erase import COLUMNS as ERASE_COLUMNS
from torchdali.kernels.device.erase import erase_batch
from torchdali.kernels.device.grid import COLUMNS as GRID_COLUMNS
from torchdali.kernels.device.grid import mask_grid_batch
from torchdali.kernels.device.jpeg import COLUMNS as JPEG_COLUMNS
from torchdali.kernels.device.jpeg import distort_batch
from torchdali.kernels.device.median import COLUMNS as MEDIAN_COLUMNS
from torchdali.kernels.device.median import median_batch
from torchdali.kernels.device.normalize import normalize_batch
from torchdali.kernels.device.reduce import KINDS, reduce_batch
from torchdali.kernels.device.resize import COLUMNS, Regions, resize_batch, table_of
from torchdali.kernels.device.resize_normalize import Finish, resize_normalize_batch
from torchdali.kernels.device.separable import COLUMNS as FILTER_COLUMNS
from torchdali.kernels.device.separable import filter_batch
from torchdali.kernels.device.standardize import COLUMNS as STANDARDIZE_COLUMNS
from torchdali.kernels.device.standardize import standardize_batch
from torchdali.kernels.device.tables import table
from torchdali.kernels.device.take import COLUMNS as TAKE_COLUMNS
from torchdali.kernels.device.take import take_batch
from torchdali.kernels.device.tiles import COLUMNS as TILE_COLUMNS
from torchdali.kernels.device.tiles import equalize_tiles_batch
from torchdali.kernels.device.turn import COLUMNS as TURN_COLUMNS
from torchdali.kernels.device.turn import turn_batch
from torchdali.kernels.device.warp import BORDERS as WARP_BORDERS
from torchdali.kernels.device.warp import COLUMNS as WARP_COLUMNS
from torchdali.kernels.device.warp import MODES, displace_batch, warp_batch
from torchdali.kernels.device.window import COLUMNS as WINDOW_COLUMNS
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.filters.linear import BORDERS, correlate, gaussian, separable
from torchdali.kernels.grid import grid_mask
from torchdali.kernels.jpeg import distort
from torchdali.kernels.normalize import affine
from torchdali.kernels.resample.separable import resample
from torchdali.kernels.resample.weights import resize_axes
from torchdali.kernels.warp.affine import warp_affine
from torchdali.kernels.warp.perspective import warp_perspective
from torchdali.kernels.warp.sample import sample


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filters", FILTERS, ids="-".join)
def test_the_body_is_resample(filters: tuple[str, str], antialias: bool) -> None:
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
def test_rows_that_are_looked_up_are_those_computed(filters: tuple[str, str], antialias: bool) -> None:
    rng = np.random.default_rng(6)
    for longest in (60, 700, 20_000):  # the last ones are too long to be looked up
        sides, size = rng.integers(1, longest, (2, 9)), rng.integers(1, 300, (2, 1))
        whole = Regions(None, None, size, filters, antialias)
        computed = whole._replace(low=np.zeros((2, 9)), high=sides.astype(float))
        offsets, channels = rng.integers(0, 9999, 9), int(rng.integers(1, 5))
        found, expected = (table_of(offsets, sides, channels, each) for each in (whole, computed))
        assert found is not None and expected is not None
        assert (found.table == expected.table).all() and found[1:] == expected[1:]


def test_the_table_names_what_the_kernels_load() -> None:
    assert [COLUMNS.index(name) for name in ("rows", "place", "result", "out_height", "out_width", "origin_y", "filter_y", "origin_x", "filter_x")] == [4, 5, 6, 7, 8, 9, 14, 15, 20]
    assert len(COLUMNS) == 21 and len(COLOR_COLUMNS) == 15
    for names in (WARP_COLUMNS, WINDOW_COLUMNS):
        assert [names.index(name) for name in ("height", "width", "result", "out_height", "out_width")] == [1, 2, 3, 4, 5]
    assert WARP_COLUMNS.index("number 0") == 6 and len(WARP_COLUMNS) == 15
    assert [("clamp" if name == "replicate" else name.removesuffix("_1001")) for name in BORDERS] == ["reflect_101", "reflect", "clamp", "wrap", "constant"]
    assert WINDOW_COLUMNS[6:] == ("y", "x", "mirror") and len(CORRELATE_COLUMNS) == 4 and len(ERASE_COLUMNS) == 7 and FILTER_COLUMNS[3:] == ("result", "taps_y", "weights_y", "taps_x", "weights_x")
    assert COMPOSE_COLUMNS == ("result", "height", "width", "regions", "count")
    assert TAKE_COLUMNS == ("offset", "width", "result", "out_height", "out_width", "lines")
    assert GRID_COLUMNS[1:] == ("height", "line", "result", "channels", "cosine", "sine", "x", "y", "ratio")
    assert MEDIAN_COLUMNS == ("offset", "height", "width", "result", "rows", "columns")
    assert TILE_COLUMNS == ("offset", "height", "width", "tile_height", "tile_width")
    assert JPEG_COLUMNS == ("offset", "height", "width", "result", "percent", "luma", "chroma", "quality")
    assert TURN_COLUMNS == ("offset", "rows", "columns", "result")
    assert REGION == ("offset", "pitch", "y", "x", "height", "width")
    assert STANDARDIZE_COLUMNS == ("offset", "size", "result", "length", "group")


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


def test_colors_are_mapped() -> None:
    rng = np.random.default_rng(5)
    made, offsets, sides = images(rng, 6)
    matrices = np.array([np.c_[twist_matrix(40.0 * i, 0.5 + i / 4, 1.2), [7.0] * 3] for i in range(6)], np.float32)
    flat = torch.cat([image.reshape(-1) for image in made])
    found = map_colors(flat, offsets, sides.prod(0) * 3, matrices)
    for start, image, matrix in zip(offsets, made, matrices, strict=True):
        expected = affine_rgb(image, tuple(map(tuple, matrix[:, :3].tolist())), matrix[:, 3].tolist(), torch.uint8)
        ours = found[start : start + image.numel()].view(image.shape)
        assert (ours.int() - expected.int()).abs().max() <= 1
        assert (ours != expected).float().mean() < 0.01


@pytest.mark.parametrize("fill", [None, 0.0, 200.0])
@pytest.mark.parametrize("linear", [True, False])
def test_warps(linear: bool, fill: float | None) -> None:
    """Float32 places some positions in the pixel beside that of OpenCV, which also interpolates in 32 steps."""
    rng = np.random.default_rng(6)
    made, offsets, sides = images(rng, 6)
    matrices, sizes = maps(rng, 6), rng.integers(1, 40, (2, 6))
    flat = torch.cat([image.reshape(-1) for image in made])
    how = "bilinear" if linear else "nearest", "replicate" if fill is None else "constant", [fill or 0.0]
    found = warp_batch(flat, offsets, sides, 3, matrices, sizes, *how, torch.uint8)
    floats = warp_batch(flat * 1.5, offsets, sides, 3, matrices, sizes, *how, torch.float32)
    starts = np.concatenate(([0], np.cumsum(sizes.prod(0) * 3)))
    for i, image in enumerate(made):
        expected = warp_affine(image, matrices[i].tolist(), sizes[:, i].tolist(), linear=linear, fill=fill, usual=False)
        ours = found[starts[i] : starts[i + 1]].view(expected.shape).int()
        off = (ours - expected.int()).abs()
        assert (off > (1 if linear else 0)).float().mean() < 0.005
        expected = warp_affine(image * 1.5, matrices[i].tolist(), sizes[:, i].tolist(), linear=linear, fill=fill, usual=False)
        off = (floats[starts[i] : starts[i + 1]].view(expected.shape) - expected).abs()
        assert (off > 0.1).float().mean() < 0.005


@pytest.mark.parametrize("kind", range(3))
def test_displacements(kind: int) -> None:
    rng = np.random.default_rng(16)
    made, offsets, sides = images(rng, 6)
    name, masks, extra, _, fill = displacements(rng, sides)[kind]
    flat, before = torch.cat([image.reshape(-1) for image in made]), np.cumsum(sides.prod(0)) - sides.prod(0)
    for linear in (False, True)[: 3 - kind]:
        found = displace_batch(flat, offsets, sides, 3, name, masks, extra, "bilinear" if linear else "nearest", fill)
        for i, image in enumerate(made):
            h, w = image.shape[:2]
            y, x = torch.meshgrid(torch.arange(float(h)), torch.arange(float(w)), indexing="ij")
            if name == "waves":
                x, y = x + extra[0, :h, None], y + extra[1, :w]
            elif name == "sphere":
                far = torch.hypot(x + 0.5 - w / 2, y + 0.5 - h / 2) / max(w // 2, h // 2, 1)
                x, y = (x + 0.5 - w / 2) * far + w / 2, (y + 0.5 - h / 2) * far + h / 2
            else:
                moved = extra[:, before[i] : before[i] + h * w].view(2, h, w)
                x, y = x + 0.5 + moved[0], y + 0.5 + moved[1]
            expected = sample(image, (x, y), linear=linear, fill=fill) if masks[i] else image
            assert torch.equal(found[offsets[i] : offsets[i] + image.numel()].view(image.shape), expected)


# Far outside, where images repeat, OpenCV has other values than cubic interpolation.
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


def test_filters() -> None:
    rng = np.random.default_rng(7)
    made, offsets, sides = images(rng, 6)
    windows = [(gaussian(2 * i + 1, 0.5 + i), gaussian(7, 1.0 + i)) for i in range(6)]
    flat = torch.cat([image.reshape(-1) for image in made])
    found = filter_batch(flat, offsets, sides, 3, windows, torch.uint8)
    floats = filter_batch(flat * 1.5, offsets, sides, 3, windows, torch.float32)
    for start, image, pair in zip(offsets, made, windows, strict=True):
        expected = separable(image, (0, 1), pair) + 0.5
        ours = found[start : start + image.numel()].view(image.shape)
        assert (ours.int() - expected.to(torch.uint8).int()).abs().max() <= 1
        ours = floats[start : start + image.numel()].view(image.shape)
        assert torch.allclose(ours, separable(image * 1.5, (0, 1), pair), atol=255e-5)


@pytest.mark.parametrize("border", BORDERS)
def test_correlation(border: str) -> None:
    rng = np.random.default_rng(9)
    made, offsets, sides = images(rng, 6)
    windows = torch.from_numpy(rng.normal(0.1, 0.3, (6, 3, 5)).astype(np.float32))
    flat = torch.cat([image.reshape(-1) for image in made])
    found = correlate_batch(flat, offsets, sides, 3, windows, (1, 3), border, torch.uint8)
    floats = correlate_batch(flat * 1.5, offsets, sides, 3, windows, (1, 3), border, torch.float32)
    for start, image, window in zip(offsets, made, windows, strict=True):
        expected = correlate(image.double(), (0, 1), window.double(), (1, 3), border, 0.0, True, torch.float64)
        ours = found[start : start + image.numel()].view(image.shape)
        assert (ours - expected.clamp(0, 255)).abs().max() <= 0.501
        assert (floats[start : start + image.numel()].view(image.shape) - expected * 1.5).abs().max() <= 255e-5


def test_regions_are_erased() -> None:
    rng = np.random.default_rng(10)
    made, offsets, sides = images(rng, 6)
    regions, fills = some_regions(rng, 6), rng.integers(0, 256, (6, 3)).tolist()
    found = erase_batch(torch.cat([image.reshape(-1) for image in made]), offsets, sides, 3, regions, fills)
    for start, image, each, fill in zip(offsets, made, regions, fills, strict=True):
        expected = image.clone()
        for top, left, bottom, right in each:
            expected[top:bottom, left:right] = torch.tensor(fill, dtype=torch.uint8)
        assert torch.equal(found[start : start + image.numel()].view(image.shape), expected)


def test_windows_are_copied() -> None:
    rng = np.random.default_rng(8)
    made, offsets, sides = images(rng, 8)
    starts, sizes = rng.integers(-20, 30, (2, 8)), rng.integers(1, 40, (2, 8))
    mirrors = np.arange(8) % 4
    flat = torch.cat([image.reshape(-1) for image in made])
    found = copy_windows(flat, offsets, sides, 3, starts, sizes, mirrors, 9)
    assert torch.equal(copy_windows(flat * 1.5, offsets, sides, 3, starts, sizes, mirrors, 13.5), found * 1.5)
    begins = np.concatenate(([0], np.cumsum(sizes.prod(0) * 3)))
    for i, image in enumerate(made):
        wide = np.pad(image.numpy(), ((80, 80), (80, 80), (0, 0)), constant_values=9)
        (y, x), (h, w) = starts[:, i] + 80, sizes[:, i]
        window = wide[y : y + h, x : x + w][:: -1 if mirrors[i] & 2 else 1, :: -1 if mirrors[i] & 1 else 1]
        assert np.array_equal(found[begins[i] : begins[i + 1]].view(h, w, 3).numpy(), window)


def test_values_are_counted_and_mapped() -> None:
    rng = np.random.default_rng(9)
    made, offsets, sides = images(rng, 6)
    flat = torch.cat([image.reshape(-1) for image in made])
    counts, rows = count_values(flat, offsets, sides.prod(0), 3)
    tables = equalizing_tables(counts.view(-1, 256)).view(counts.shape)
    found = map_values(flat, rows, tables, sides.prod(0))
    for i, (start, image) in enumerate(zip(offsets, made, strict=True)):
        for channel in range(3):
            assert counts[i, channel].tolist() == np.bincount(image[..., channel].reshape(-1), minlength=256).tolist()
        expected = torch.empty_like(image)
        equalize(image, expected)
        assert torch.equal(found[start : start + image.numel()].view(image.shape), expected)


def test_tones_as_tables() -> None:
    rng = np.random.default_rng(5)
    for low, high in [(0, 256), (40, 90), (7, 8), (100, 256)]:
        image = torch.from_numpy(rng.integers(low, high, (9, 11, 3), np.uint8))
        counts = torch.stack([torch.bincount(image[..., c].reshape(-1), minlength=256) for c in range(3)])[None]

        def mapped(tables: torch.Tensor, image: torch.Tensor = image) -> torch.Tensor:
            each = tables.expand(1, 3, 256)[0]
            return torch.stack([each[c][image[..., c].long()] for c in range(3)], -1)

        assert torch.equal(mapped(tone.stretching_tables(counts)), tone.stretch(image))
        for factor in (0.0, 0.3, 1.9):
            found = mapped(tone.contrast_tables(counts, torch.tensor([factor], dtype=torch.float64)))
            assert (found.int() - tone.contrast_around_mean(image, factor).int()).abs().max() <= 1
        for limit in (-3.0, 0.0, 100.5, 128.0, 256.0):
            found = mapped(tone.solarizing_tables(torch.tensor([[[limit]]])))
            assert torch.equal(found, tone.solarize(image, math.ceil(limit)))
        for shift in (-20, 0, 110):
            assert torch.equal(mapped(tone.adding_tables(torch.tensor([[[shift]]]))), tone.solarize_add(image, shift))


@pytest.mark.parametrize("kind", KINDS)
def test_floats_are_reduced(kind: str) -> None:
    rng = np.random.default_rng(3)
    samples = [torch.from_numpy(rng.normal(3, 9, (int(n), 3)).astype(np.float32)) for n in rng.integers(1, 60, 5)]
    flat, counts = torch.cat([s.reshape(-1) for s in samples]), np.array([len(s) for s in samples])
    means = torch.stack([s.mean(0) for s in samples])
    found = reduce_batch(flat, np.cumsum(counts * 3) - counts * 3, counts, 3, kind, counts, means if kind == "squares" else None)
    functions = {
        "sum": lambda x: x.mean(0), "squares": lambda x: x.var(0, correction=0), "min": lambda x: x.amin(0), "max": lambda x: x.amax(0),
    }
    torch.testing.assert_close(found, torch.stack(list(map(functions[kind], samples))), rtol=1e-5, atol=1e-5)


def test_lines_are_taken() -> None:
    rng = np.random.default_rng(15)
    made, offsets, sides = images(rng, 6)
    indices = lines(rng, sides)
    for dtype in (torch.uint8, torch.float32):
        found = take_batch(torch.cat([image.reshape(-1) for image in made]).to(dtype), offsets, sides[1], 3, indices)
        expected = [image[y][:, x].reshape(-1) for image, (y, x) in zip(made, indices, strict=True)]
        assert torch.equal(found, torch.cat(expected).to(dtype))


def test_grids_are_masked() -> None:
    rng = np.random.default_rng(17)
    made, offsets, sides = images(rng, 6)
    given = grids(rng, 6)
    found = mask_grid_batch(torch.cat([image.reshape(-1) for image in made]), offsets, np.insert(sides.T, 2, 3, 1), given)
    assert torch.equal(found, torch.cat([grid_mask(image, *grid).reshape(-1) for image, grid in zip(made, given.tolist(), strict=True)]))


def test_medians() -> None:
    rng = np.random.default_rng(18)
    made, offsets, sides = images(rng, 6)
    windows = 2 * rng.integers(0, 4, (2, 6)) + 1
    found = median_batch(torch.cat([image.reshape(-1) for image in made]), offsets, sides, 3, windows)
    for start, image, (rows, columns) in zip(offsets, made, windows.T.tolist(), strict=True):
        wide = np.pad(image.numpy(), ((rows // 2, rows // 2), (columns // 2, columns // 2), (0, 0)), "edge")
        expected = np.median(np.lib.stride_tricks.sliding_window_view(wide, (rows, columns), (0, 1)), (3, 4))
        assert np.array_equal(found[start : start + image.numel()].view(image.shape), expected)


@pytest.mark.parametrize("clip_limit", [0.0, 2.0])
def test_tiles_are_equalized(clip_limit: float) -> None:
    rng = np.random.default_rng(19)
    made, offsets, sides = images(rng, 6)
    made = [image // 3 for image in made]
    found = equalize_tiles_batch(torch.cat([image.reshape(-1) for image in made]), offsets, sides, 3, (3, 4), clip_limit)
    for start, image in zip(offsets, made, strict=True):
        expected = torch.empty_like(image)
        equalize_tiles(image, expected, 3, 4, clip_limit)
        ours = found[start : start + image.numel()].view(image.shape)
        assert (ours.int() - expected.int()).abs().max() <= 1 and (ours != expected).float().mean() < 0.01


def test_distortion() -> None:
    rng = np.random.default_rng(20)
    made, offsets, sides = images(rng, 6)
    qualities = rng.integers(1, 101, 6)
    found = distort_batch(torch.cat([image.reshape(-1) for image in made]), offsets, sides, qualities)
    expected = [distort(image, quality).reshape(-1) for image, quality in zip(made, qualities.tolist(), strict=True)]
    assert torch.equal(found, torch.cat(expected))


def test_matrices_are_transposed() -> None:
    rng = np.random.default_rng(21)
    made, offsets, sides = images(rng, 6, 1)
    found = turn_batch(torch.cat([image.reshape(-1) for image in made]).float(), offsets, sides)
    assert torch.equal(found, torch.cat([image[..., 0].t().reshape(-1) for image in made]).float())


def test_regions_are_pasted() -> None:
    rng = np.random.default_rng(12)
    made, offsets, sides = images(rng, 7)
    canvases, counts, regions, (y, x, chosen) = composition(rng, offsets, sides, 3)
    found = compose_batch(torch.cat([image.reshape(-1) for image in made]), canvases, counts, regions, (1, 2, 3))
    k, start = 0, 0
    for (height, line), count in zip(canvases.tolist(), counts.tolist(), strict=True):
        expected = torch.tensor([1, 2, 3], dtype=torch.uint8).repeat(height, line // 3, 1)
        for _, _, v, u, h, w in regions[k : k + count].tolist():
            part = made[chosen[k]][y[k] : y[k] + h, x[k] : x[k] + w // 3]
            expected[v : v + h, u // 3 : u // 3 + w // 3] = part
            k += 1
        assert torch.equal(found[start : start + expected.numel()].view(expected.shape), expected)
        start += expected.numel()
    assert start == len(found)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_samples_are_joined(axis: int) -> None:
    rng = np.random.default_rng(13)
    shapes = rng.integers(1, 6, (4, 3))
    parts, given = [], []
    for k in range(3):
        each = shapes.copy()
        each[:, axis] += k
        parts.append([torch.from_numpy(rng.normal(size=shape)) for shape in each.tolist()])
        sizes = each.prod(1)
        given.append((torch.cat([p.reshape(-1) for p in parts[-1]]), np.cumsum(sizes) - sizes, each))
    expected = [torch.cat(pieces, axis).reshape(-1) for pieces in zip(*parts, strict=True)]
    assert torch.equal(joined(given, axis), torch.cat(expected))


def test_groups_are_standardized() -> None:
    rng = np.random.default_rng(11)
    samples = [torch.from_numpy(rng.integers(0, 256, (int(g), int(n), 3), np.uint8)) for g, n in rng.integers(1, 9, (5, 2))]
    groups, lengths = np.array([len(s) for s in samples]), np.array([s[0].numel() for s in samples])
    centers, factors = torch.from_numpy(rng.normal(90, 30, (2, int(groups.sum()), 3)).astype(np.float32))
    offsets = np.cumsum(groups * lengths) - groups * lengths
    flat = torch.cat([s.reshape(-1) for s in samples])
    found = standardize_batch(flat, offsets, groups, lengths, centers, factors, 7.0)
    expected = [(s - c[:, None]) * f[:, None] + 7 for s, c, f in zip(samples, centers.split(groups.tolist()), factors.split(groups.tolist()), strict=True)]
    assert torch.equal(found, torch.cat([e.reshape(-1) for e in expected]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("channel_first", [True, False])
@pytest.mark.parametrize("mirror", ["each", True, False])
def test_images_are_resized_and_normalized_as_one_after_the_other(channel_first: bool, dtype: torch.dtype, mirror: Any) -> None:
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
