"""Triton kernels for batches in Triton's interpreter, beside their bodies in torch.

The interpreter runs a kernel on the CPU, program by program; a variable of the environment, set before Triton is loaded,
chooses it. So these tests run in a process of their own. Races in a kernel and wrong alignment it does not see.
"""

from __future__ import annotations

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
    noise_keys,
    perspectives,
    regions,
    some_regions,
)
from tests.helpers.own_process import in_own_process
from torchdali.kernels.device.color import map_colors
from torchdali.kernels.device.compose import compose_batch
from torchdali.kernels.device.correlate import correlate_batch
from torchdali.kernels.device.counts import count_values, map_values
from torchdali.kernels.device.erase import erase_batch
from torchdali.kernels.device.grid import mask_grid_batch
from torchdali.kernels.device.jpeg import distort_batch
from torchdali.kernels.device.median import median_batch
from torchdali.kernels.device.noise import add_normal, replace_pixels
from torchdali.kernels.device.normalize import normalize_batch
from torchdali.kernels.device.reduce import KINDS, reduce_batch
from torchdali.kernels.device.resize import resize_batch
from torchdali.kernels.device.resize_normalize import Finish, resize_normalize_batch
from torchdali.kernels.device.separable import filter_batch
from torchdali.kernels.device.standardize import standardize_batch
from torchdali.kernels.device.tables import table
from torchdali.kernels.device.take import take_batch
from torchdali.kernels.device.tiles import equalize_tiles_batch
from torchdali.kernels.device.turn import turn_batch
from torchdali.kernels.device.warp import BORDERS as WARP_BORDERS
from torchdali.kernels.device.warp import MODES, displace_batch, warp_batch
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.filters.linear import BORDERS, gaussian
from torchdali.kernels.normalize import affine


def distorted(rng: np.random.Generator) -> float:
    """Compare the kernels that distort images as JPEG does with their body; the greatest difference of bytes."""
    from unittest import mock

    from torchdali.kernels.device import triton_kernels

    made, offsets, sides = images(rng, 8, 3, side=int(rng.choice([6, 20])))
    given = torch.cat([image.reshape(-1) for image in made]), offsets, sides, rng.integers(1, 101, 8)
    expected = distort_batch(*given)
    with mock.patch.object(torch.ops.torchdali, "distort_batch", triton_kernels.distort):
        return float((distort_batch(*given).int() - expected.int()).abs().max())


def interpret(seed: int, count: int) -> dict[str, float]:
    """Compare the kernels with the bodies on so many images; the greatest differences, and launches."""
    from unittest import mock

    import triton

    from torchdali.kernels.device import normalize as normalizing
    from torchdali.kernels.device import resize as resizing
    from torchdali.kernels.device import triton_kernels

    assert triton.knobs.runtime.interpret if hasattr(triton, "knobs") else True
    rng = np.random.default_rng(seed)
    worst = {"bytes": 0.0, "floats": 0.0, "normalized": 0.0, "images": 0.0, "colors": 0.0, "warped": 0.0, "blurred": 0.0, "correlated": 0.0, "erased": 0.0, "copied": 0.0, "noise": 0.0, "spots": 0.0, "counted": 0.0, "mapped": 0.0}
    while worst["images"] < count:
        channels = int(rng.choice([1, 3, 4]))
        made, offsets, sides = images(rng, 8, channels, side=16)
        flat = torch.cat([image.reshape(-1) for image in made])
        filters = FILTERS[int(rng.integers(len(FILTERS)))]
        what = regions(rng, sides, filters, bool(rng.integers(2)), largest=10)
        wide = flat * 1.7 - 99.3
        expected = resize_batch(wide, offsets, sides, channels, what, torch.float32)
        with mock.patch.object(torch.ops.torchdali, "resize_batch", triton_kernels.resize):
            found = resizing.resize_batch(wide, offsets, sides, channels, what, torch.float32)
        assert expected is not None and found is not None
        worst["of floats"] = max(worst.get("of floats", 0.0), float((found - expected).abs().max()) / 433)
        for dtype, kind in ((torch.uint8, "bytes"), (torch.float32, "floats")):
            expected = resize_batch(flat, offsets, sides, channels, what, dtype)
            with mock.patch.object(torch.ops.torchdali, "resize_batch", triton_kernels.resize):
                found = resizing.resize_batch(flat, offsets, sides, channels, what, dtype)
            assert expected is not None and found is not None
            scale = 1 if kind == "bytes" else max(255.0, float(expected.abs().max()))
            worst[kind] = max(worst[kind], float((found.float() - expected.float()).abs().max()) / scale)
        size = int(sides[0].min()), int(sides[1].min())
        y, x = (rng.integers(0, side - extent + 1) for side, extent in zip(sides, size, strict=True))
        rows = torch.from_numpy(table([offsets, sides[1], y, x]))
        flags = torch.from_numpy(rng.integers(0, 2, 8).astype(np.int32)) if rng.integers(2) else None
        scaling = affine((10.0,), (2.5,), 1.0, 0.5, channels, channels)
        how = rows, flags, bool(rng.integers(2)), scaling, size, channels, bool(rng.integers(2)), torch.float32
        expected = normalize_batch(flat, *how)
        with mock.patch.object(torch.ops.torchdali, "normalize_batch", triton_kernels.normalize):
            found = normalizing.normalize_batch(flat, *how)
            worst["of floats"] = max(worst["of floats"], float((normalizing.normalize_batch(flat.float(), *how) - found).abs().max()))
        worst["normalized"] = max(worst["normalized"], float((found - expected).abs().max()) / 100)
        same = what._replace(size=np.repeat(what.size[:, :1], 8, 1))
        finish = Finish(flags, bool(rng.integers(2)), scaling, bool(rng.integers(2)), torch.float32)
        expected = resize_normalize_batch(flat, offsets, sides, channels, same, finish)
        with mock.patch.object(torch.ops.torchdali, "resize_normalize_batch", triton_kernels.resize_normalize):
            found = resize_normalize_batch(flat, offsets, sides, channels, same, finish)
        assert expected is not None and found is not None
        levels = float((found - expected).abs().max()) * 2.5  # the deviation
        worst["finished"] = max(worst.get("finished", 0.0), levels)
        made, offsets, sides = images(rng, 8, 3, side=16)
        flat = torch.cat([image.reshape(-1) for image in made])
        matrices = rng.uniform(-0.5, 1.5, (8, 3, 4)).astype(np.float32)
        matrices[:, :, 3] *= 60
        expected = map_colors(flat, offsets, sides.prod(0) * 3, matrices)
        with mock.patch.object(torch.ops.torchdali, "map_colors_batch", triton_kernels.map_colors):
            found = map_colors(flat, offsets, sides.prod(0) * 3, matrices)
        worst["colors"] = max(worst["colors"], float((found.int() - expected.int()).abs().max()))
        worst["reduced"] = max(worst.get("reduced", 0.0), reduced(rng))
        worst["standardized"] = max(worst.get("standardized", 0.0), standardized(rng))
        worst["distorted"] = max(worst.get("distorted", 0.0), distorted(rng))
        for name, differs in compared(rng).items():
            worst[name] = max(worst.get(name, 0.0), differs)
        worst["images"] += 8
    return worst


def compared(rng: np.random.Generator) -> dict[str, float]:
    """Compare the kernels that warp, filter and copy with their bodies; the greatest difference of bytes of each."""
    from unittest import mock

    from torchdali.kernels.device import triton_kernels

    channels = int(rng.choice([1, 3, 4]))
    made, offsets, sides = images(rng, 8, channels, side=16)
    flat = torch.cat([image.reshape(-1) for image in made])
    sizes, fill = rng.integers(1, 18, (2, 8)), [None, 0.0, 77.0][int(rng.integers(3))]
    extents = rng.integers(1, 6, 2)
    anchor = int(rng.integers(extents[0])), int(rng.integers(extents[1]))
    weights = torch.from_numpy(rng.normal(0.1, 0.3, (8, *extents)).astype(np.float32))
    border = BORDERS[int(rng.integers(len(BORDERS)))]
    regions, fills = some_regions(rng, 8), rng.integers(0, 256, (8, channels)).tolist()
    windows = [(gaussian(2 * int(rng.integers(10)) + 1, 1.5), gaussian(2 * int(rng.integers(4)) + 1, 0.8)) for _ in range(8)]
    given = flat, offsets, sides, channels
    canvases, numbers, parts, _ = composition(rng, offsets, sides, channels)
    calls = {
        "taken": ("take", lambda: take_batch(flat, offsets, sides[1], channels, lines(np.random.default_rng(8), sides))),
        "masked": ("mask_grid", lambda: mask_grid_batch(flat, offsets, np.insert(sides.T, 2, channels, 1), squares)),
        "medians": ("median", lambda: median_batch(*given, odd)),
        "counts of tiles": ("count_tiles", lambda: equalize_tiles_batch(*given, down_and_across, 2.0)),
        "tiles": ("map_tiles", lambda: equalize_tiles_batch(*given, down_and_across, 2.0)),
        "turned": ("turn", lambda: turn_batch(flat, offsets, sides * [[1], [channels]])),
        "pasted": ("compose", lambda: compose_batch(flat, canvases, numbers, parts, range(channels))),
        "warped": ("warp", lambda: warp_batch(*given, maps_, sizes, *mode, torch.uint8)),
        "in perspective": ("warp", lambda: warp_batch(*given, perspectives(np.random.default_rng(9), 8), sizes, *view, torch.uint8)),
        "warped floats": ("warp", lambda: warp_batch(flat * 0.37, *given[1:], maps_, sizes, *mode, torch.float32) * 1e4),
        "displaced": ("warp", lambda: displace_batch(*given, *displacement)),
        "blurred": ("filter", lambda: filter_batch(*given, windows, torch.uint8)),
        "blurred floats": ("filter", lambda: filter_batch(flat * 0.37, *given[1:], windows, torch.float32) * 1e4),
        "correlated": ("correlate", lambda: correlate_batch(*given, weights, anchor, border, torch.uint8)),
        "correlated floats": ("correlate", lambda: correlate_batch(flat * 0.37, *given[1:], weights, anchor, border, torch.float32) * 1e4),
        "erased": ("erase", lambda: erase_batch(*given, regions, fills)),
        "copied": ("copy_windows", lambda: copy_windows(*given, starts, sizes, mirrors, 9)),
        "noise": ("add_normal", lambda: add_normal(flat, offsets, counts, keys, deviations, deviations / 3)),
        "spots": ("replace_pixels", lambda: replace_pixels(flat, offsets, counts, keys, shares, ends, step)),
        "counted": ("count_values", lambda: count_values(flat, offsets, pixels, channels)[0]),
        "mapped": ("map_values", lambda: map_values(flat, rows, tables, pixels)),
    }
    down_and_across = tuple(rng.integers(1, 5, 2).tolist())
    squares, odd = grids(rng, 8), 2 * rng.integers(0, 3, (2, 8)) + 1
    displacement = displacements(rng, sides)[int(rng.integers(3))]
    maps_ = maps(rng, 8)
    mode = MODES[int(rng.integers(2))], "replicate" if fill is None else "constant", [fill or 0.0]
    view = MODES[int(rng.integers(3))], WARP_BORDERS[int(rng.integers(5))], rng.integers(0, 256, channels).tolist()
    starts, mirrors = rng.integers(-9, 12, (2, 8)), rng.integers(0, 4, 8)
    pixels = sides.prod(0)
    counts, keys, deviations = pixels * channels, noise_keys(rng, 8), rng.uniform(0, 60, 8)
    shares, ends, step = np.sort(rng.uniform(0, 1, (2, 8)), 0)[::-1], rng.integers(0, 256, (2, 8)), [1, channels][int(rng.integers(2))]
    _, rows = count_values(flat, offsets, pixels, channels)
    tables = torch.from_numpy(rng.integers(0, 256, (8, channels, 256), np.uint8))
    found = {}
    for name, (kernel, call) in calls.items():
        expected = call()
        with mock.patch.object(torch.ops.torchdali, f"{kernel}_batch", getattr(triton_kernels, kernel)):
            ours = call()
        found[name] = float((ours.int() - expected.int()).abs().max())
    return found


def reduced(rng: np.random.Generator) -> float:
    """Compare the kernel that reduces floats with its body, every kind; the greatest difference as a share of what is summed."""
    from unittest import mock

    from torchdali.kernels.device import triton_kernels

    channels, counts = int(rng.choice([1, 3, 7])), rng.integers(1, 3000, 8)
    counts[0], sizes = 1, counts * channels
    flat = torch.from_numpy(rng.normal(20, 50, int(sizes.sum())).astype(np.float32))
    flat[int(rng.integers(len(flat)))] = [np.nan, np.inf, -np.inf, 0.0][int(rng.integers(4))]
    means = [None, torch.from_numpy(rng.normal(20, 3, 8).astype(np.float32)), torch.from_numpy(rng.normal(20, 3, 8 * channels).astype(np.float32))]
    worst = 0.0
    for kind in KINDS:
        middle = means[int(rng.integers(3))] if kind == "squares" else None
        given = flat, np.cumsum(sizes) - sizes, counts, channels, kind, np.maximum(counts - 1, 1), middle
        expected = reduce_batch(*given)
        with mock.patch.object(torch.ops.torchdali, "reduce_batch", triton_kernels.reduce):
            found = reduce_batch(*given)
        finite = expected.isfinite()
        assert torch.equal(expected[~finite].nan_to_num(1.5), found[~finite].nan_to_num(1.5))
        scale = expected[finite].abs().clamp(min=70.0)  # sums of single numbers are of this size
        worst = max(worst, float(((found - expected)[finite].abs() / scale).max()))
    return worst


def standardized(rng: np.random.Generator) -> float:
    """Compare the kernel that subtracts and scales with its body; the greatest difference as a share of the results."""
    from unittest import mock

    from torchdali.kernels.device import triton_kernels

    channels, (groups, counts) = int(rng.choice([1, 3, 7])), rng.integers(1, 20, (2, 8))
    sizes = groups * counts * channels
    flat = torch.from_numpy(rng.integers(0, 256, int(sizes.sum()), np.uint8))
    numbers = torch.from_numpy(rng.normal(20, 50, (2, int(groups.sum()), channels)).astype(np.float32))
    given = flat, np.cumsum(sizes) - sizes, groups, counts * channels, *numbers, float(rng.normal())
    expected = standardize_batch(*given)
    with mock.patch.object(torch.ops.torchdali, "standardize_batch", triton_kernels.standardize):
        found = standardize_batch(*given)
    return float(((found - expected).abs() / expected.abs().clamp(min=9.0)).max())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kernels_are_the_bodies(seed: int) -> None:
    pytest.importorskip("triton", reason="comes with torch for CUDA")
    worst = in_own_process(__name__, f"interpret({seed}, 104)", TRITON_INTERPRET="1")
    assert worst["images"] >= 104 and worst["bytes"] <= 1 and worst["colors"] <= 1 and worst["finished"] <= 1.0001
    assert max(worst["warped"], worst["in perspective"], worst["displaced"], worst["tiles"], worst["warped floats"] / 9, worst["blurred"], worst["correlated"], worst["blurred floats"] / 9, worst["correlated floats"] / 9, worst["noise"]) <= 1
    assert worst["copied"] == worst["erased"] == worst["counts of tiles"] == worst["distorted"] == worst["medians"] == worst["masked"] == worst["turned"] == worst["pasted"] == worst["taken"] == worst["spots"] == worst["counted"] == worst["mapped"] == 0
    assert worst["floats"] <= 1e-5 and worst["of floats"] <= 1e-5 and worst["reduced"] <= 1e-5 and worst["standardized"] <= 1e-5 and worst["normalized"] <= 1e-5
