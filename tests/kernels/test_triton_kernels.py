"""Triton kernels for batches in Triton's interpreter, compared with their torch implementations.

The interpreter runs a kernel on the CPU, program by program; an environment variable, set before Triton is loaded,
selects it. So these tests run in a separate process. The interpreter does not detect races and wrong alignment.
"""

from __future__ import annotations

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
from tests.helpers.own_process import in_own_process
from torchdali.kernels.device.normalize import normalize_batch
from torchdali.kernels.device.resize import resize_batch
from torchdali.kernels.device.resize_normalize import Finish, resize_normalize_batch
from torchdali.kernels.device.tables import table
from torchdali.kernels.device.warp import BORDERS as WARP_BORDERS
from torchdali.kernels.device.warp import MODES, warp_batch
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.normalize import affine


def interpret(seed: int, count: int) -> dict[str, float]:
    """Compare the kernels with the torch implementations on `count` images; return the greatest differences, and launches."""
    from unittest import mock

    import triton

    from torchdali.kernels.device import normalize as normalizing
    from torchdali.kernels.device import resize as resizing
    from torchdali.kernels.device import triton_kernels

    assert triton.knobs.runtime.interpret if hasattr(triton, "knobs") else True
    rng = np.random.default_rng(seed)
    worst = {"bytes": 0.0, "floats": 0.0, "normalized": 0.0, "images": 0.0, "warped": 0.0, "copied": 0.0}
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
        for name, differs in compared(rng).items():
            worst[name] = max(worst.get(name, 0.0), differs)
        worst["images"] += 8
    return worst


def compared(rng: np.random.Generator) -> dict[str, float]:
    """Compare the kernels that warp and copy with their torch implementations; return the greatest difference of each."""
    from unittest import mock

    from torchdali.kernels.device import triton_kernels

    channels = int(rng.choice([1, 3, 4]))
    made, offsets, sides = images(rng, 8, channels, side=16)
    flat = torch.cat([image.reshape(-1) for image in made])
    sizes, fill = rng.integers(1, 18, (2, 8)), [None, 0.0, 77.0][int(rng.integers(3))]
    given = flat, offsets, sides, channels
    calls = {
        "warped": ("warp", lambda: warp_batch(*given, maps_, sizes, *mode, torch.uint8)),
        "in perspective": ("warp", lambda: warp_batch(*given, perspectives(np.random.default_rng(9), 8), sizes, *view, torch.uint8)),
        "warped floats": ("warp", lambda: warp_batch(flat * 0.37, *given[1:], maps_, sizes, *mode, torch.float32) * 1e4),
        "copied": ("copy_windows", lambda: copy_windows(*given, starts, sizes, 9)),
    }
    maps_ = maps(rng, 8)
    mode = MODES[int(rng.integers(2))], "replicate" if fill is None else "constant", [fill or 0.0]
    view = MODES[int(rng.integers(3))], WARP_BORDERS[int(rng.integers(5))], rng.integers(0, 256, channels).tolist()
    starts = rng.integers(-9, 12, (2, 8))
    found = {}
    for name, (kernel, call) in calls.items():
        expected = call()
        with mock.patch.object(torch.ops.torchdali, f"{kernel}_batch", getattr(triton_kernels, kernel)):
            ours = call()
        found[name] = float((ours.int() - expected.int()).abs().max())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kernels_match_their_torch_implementations(seed: int) -> None:
    pytest.importorskip("triton", reason="comes with torch for CUDA")
    worst = in_own_process(__name__, f"interpret({seed}, 104)", TRITON_INTERPRET="1")
    assert worst["images"] >= 104 and worst["bytes"] <= 1 and worst["finished"] <= 1.0001
    assert max(worst["warped"], worst["in perspective"], worst["warped floats"] / 9) <= 1
    assert worst["copied"] == 0
    assert worst["floats"] <= 1e-5 and worst["of floats"] <= 1e-5 and worst["normalized"] <= 1e-5
