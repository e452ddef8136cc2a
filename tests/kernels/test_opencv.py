"""Kernels return the same with and without OpenCV, and write into the passed output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.opencv_switch import computing_with
from torchdali import fn, types
from torchdali.kernels import (
    moments_opencv,
    normalize,
    normalize_opencv,
    reduce,
    rounding,
    standardize,
)
from torchdali.kernels.color import affine as color
from torchdali.kernels.color import spaces
from torchdali.kernels.filters import linear as filters
from torchdali.kernels.opencv import opencv
from torchdali.kernels.warp import affine, perspective, sample_opencv

cv2: Any = pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")

UINT8, FLOAT = torch.uint8, torch.float32
# No round numbers: where a value lies between two levels, either of them is right.
MATRIX = ((0.3127, -0.5213, 1.1071), (0.2039, 0.7121, 0.3037), (-0.1019, 0.4127, 0.9043))
TURN = [[0.8131, -0.4173, 5.5307], [0.3119, 1.1071, -4.0301]]
TILT = [[0.9, 0.1, -3.0], [-0.1, 1.1, 0.5], [0.003, -0.002, 1.0]]
WINDOW = torch.tensor([[0.1, -0.2, 0.3], [0.4, 0.25, -0.6]])


def image(channels: int = 3, dtype: torch.dtype = UINT8, lead: tuple[int, ...] = ()) -> Tensor:
    """Return a smooth image, so that differently rounded positions have little effect."""
    y, x = torch.arange(40.0)[:, None], torch.arange(52.0)
    planes = [128 + 60 * torch.sin(x / 7 + k) + 50 * torch.cos(y / 5 - k) for k in range(channels)]
    return torch.stack(planes, -1).expand(*lead, 40, 52, channels).contiguous().to(dtype)


def _blurred(x: Tensor) -> Tensor:
    return filters.separable(x, [0, 1], [filters.gaussian(9, 1.7), filters.gaussian(5, 0.9)])


def _correlated(border: str, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda x: filters.correlate(x, [0, 1], WINDOW, [1, 0], border, 0.0, True, dtype)


def _warped(linear: bool, fill: float | None) -> Callable[[Tensor], Tensor]:
    return lambda x: affine.warp_affine(x, TURN, (45, 33), linear=linear, fill=fill)


def _tilted(mode: str, border: str) -> Callable[[Tensor], Tensor]:
    return lambda x: perspective.warp_perspective(
        x, TILT, (45, 33), mode=mode, border=border, fill=[7.0]
    )


def _normalized(**arguments: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: fn.normalize(x, **arguments)


def _looked_up(x: Tensor) -> Tensor:
    return fn.lookup_table(x, keys=[3, 128], values=[7, 9], default_value=1, dtype=types.UINT8)


# Operation, image, and how far values may differ for which share of the pixels.
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, float, float]] = {
    "intensity": (lambda x: color.affine_intensity(x, 1.7, -31.3, UINT8), image(), 1, 1e-3),
    "negative": (lambda x: color.affine_intensity(x, -0.5, 100, UINT8), image(), 0, 0),
    "huge factor": (lambda x: color.affine_intensity(x, 1e12, 0, UINT8), image(), 0, 0),
    "halves": (lambda x: color.affine_intensity(x, 0.5, 0, UINT8), image(), 0, 0),
    "rgb": (lambda x: color.affine_rgb(x, MATRIX, (1, 2, 3), UINT8), image(), 1, 1e-3),
    "rgb frames": (lambda x: color.affine_rgb(x, MATRIX, (1, 2, 3), UINT8), image(lead=(2,)), 1, 1e-3),
    "rgb floats": (lambda x: color.affine_rgb(x, MATRIX, (1, 2, 3), FLOAT), image(dtype=FLOAT), 1e-3, 0),
    "rgb to one": (lambda x: color.affine_rgb(x, MATRIX[:1], (1,), UINT8), image(), 1, 1e-3),
    "rgb to int16": (lambda x: color.affine_rgb(x, MATRIX, (1, 2, 3), torch.int16), image(), 1, 1e-3),
    "bgr": (spaces.swap_red_and_blue, image(), 0, 0),
    "gray": (lambda x: spaces.gray(x, False), image(), 0, 0),
    "gray of bgr": (lambda x: spaces.gray(x, True), image(lead=(2,)), 0, 0),
    "blur": (_blurred, image(), 1e-3, 0),
    "blur floats": (_blurred, image(dtype=FLOAT), 1e-3, 0),
    "blur planes": (lambda x: filters.separable(x, [1, 2], [[0.5, 1, 2]] * 2), image(52), 1e-3, 0),
    "correlate": (_correlated("reflect_101", UINT8), image(), 1, 1e-3),
    "correlate 16 bits": (_correlated("clamp", torch.int16), image(dtype=torch.int16), 1, 1e-3),
    "correlate to floats": (_correlated("reflect_1001", FLOAT), image(1), 1e-3, 0),
    "warp": (_warped(True, None), image(), 1, 1e-3),
    "warp two channels": (_warped(True, None), image(2), 0, 0),
    "warp floats": (_warped(True, 3.5), image(dtype=FLOAT), 0.02, 0),
    "warp nearest": (_warped(False, 9.0), image(4), 0, 2e-3),
    "tilt": (_tilted("bilinear", "constant"), image(), 1, 1e-3),
    "tilt nearest": (_tilted("nearest", "reflect"), image(1), 0, 5e-3),
    "tilt cubic": (_tilted("bicubic", "replicate"), image(), 1, 1e-3),
    "normalize": (_normalized(), image(), 1e-4, 0),
    "normalize floats": (_normalized(epsilon=0.1, ddof=1, scale=3.0, shift=1.0), image(dtype=FLOAT), 1e-4, 0),
    "normalize channels": (_normalized(axes=[0, 1]), image(), 1e-4, 0),
    "normalize one value": (_normalized(shift=2.0), image(1)[:1, :1], 0, 0),
    "look up": (_looked_up, image(), 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_opencv_matches_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, x, level, share = CASES[name]
    before = x.clone()
    fast = compute(x)
    monkeypatch.setattr("torchdali.kernels.opencv.opencv", lambda: None)
    slow = compute(x)
    assert (fast.shape, fast.dtype) == (slow.shape, slow.dtype)
    difference = (fast.double() - slow.double()).abs()
    beyond = (difference > (level if share == 0 else 0)).double().mean()
    assert beyond <= share, f"{beyond:.4%} differ, by up to {difference.max()}"
    assert share == 0 or level == 0 or difference.max() <= level
    assert torch.equal(x, before)


@pytest.mark.parametrize("library", ["opencv", "torch"])
def test_bytes_are_rounded_and_saturate(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "torch":
        monkeypatch.setattr("torchdali.kernels.opencv.opencv", lambda: None)
    values = torch.tensor([-1e9, -0.6, 0.49, 0.5, 1.5, 2.5, 254.5, 255.6, 1e9, float("nan")])
    found = rounding.to_bytes(values)
    assert found.tolist() == [0, 0, 0, 1, 2, 3, 255, 255, 255, 0]


@pytest.mark.parametrize("library", ["opencv", "torch"])
@pytest.mark.parametrize(
    ("factor", "offset"), [(0.7, 0.0), (0.5, 64.0), (1.5, -64.0), (0.3, 9.9), (-1.0, 255.5)]
)
def test_halves_of_scaled_bytes_go_up(
    library: str, factor: float, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    color._curve.cache_clear()
    if library == "torch":
        monkeypatch.setattr("torchdali.kernels.opencv.opencv", lambda: None)
    every = np.arange(256, dtype=np.float32)
    wanted = every * np.float32(factor) + np.float32(offset)
    wanted = np.floor(wanted.astype(np.float64) + 0.5).clip(0, 255)
    found = color.affine_intensity(torch.arange(256).byte(), factor, offset, torch.uint8)
    assert found.tolist() == wanted.tolist()


WRITERS: dict[str, Callable[[Tensor, Tensor], Tensor | None]] = {
    "intensity": lambda x, out: color.affine_intensity(x, 1.2, 3.0, UINT8, out),
    "rgb": lambda x, out: color.affine_rgb(x, MATRIX, (0, 0, 0), UINT8, out),
    "bgr": spaces.swap_red_and_blue,
    "correlate": lambda x, out: filters.correlate(x, [0, 1], WINDOW, [1, 1], "clamp", 0.0, True, UINT8, out),
    "warp": lambda x, out: affine.warp_affine(x, TURN, (40, 52), linear=True, fill=0.0, out=out),
    "standardize": lambda x, out: standardize.standardize(
        x, moments_opencv.Moments(9, (100.0,), (400.0,)), 9, 0.0, 20.0, 100.0, UINT8, out
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_results_are_written_into_the_batch(name: str) -> None:
    if name == "warp" and sample_opencv._opencv_if_supported(image(), (40, 52)) is None:
        pytest.skip("OpenCV before 5 rounds positions and is not asked to warp")
    write, x = WRITERS[name], image()
    slot, unfit = torch.zeros_like(x), torch.zeros(3, dtype=UINT8)
    assert write(x, slot) is slot
    elsewhere = write(x, unfit)
    assert elsewhere is not None
    assert torch.equal(elsewhere, slot)
    assert not unfit.any()


def test_large_images_are_processed_in_pieces() -> None:
    x = image().repeat(20, 9, 1)
    computations: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda part: color.affine_rgb(part, MATRIX, (1, 2, 3), FLOAT),
        lambda part: color.affine_intensity(part, 1.5, 2.0, FLOAT),
    )
    for compute in computations:
        torch.testing.assert_close(compute(x), torch.stack([compute(row) for row in x]))


def test_a_mean_far_from_zero_is_subtracted_first() -> None:
    x = 1e4 + torch.randn(30, 30, 3, generator=torch.Generator().manual_seed(0))
    found = fn.normalize(x)
    wanted = (x.double() - x.double().mean()) / x.double().std(correction=0)
    torch.testing.assert_close(found.double(), wanted, atol=5e-3, rtol=0)


_LIES = {
    "rows of pixels": lambda x: x,
    "a window of rows of pixels": lambda x: x[3:33, 5:40],
    "planes": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0)[2:, 4:],
    "planes of columns": lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0)[2:, 4:],
    "mirrored already": lambda x: x.flip(1),
}


@pytest.mark.parametrize("lies", _LIES)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_planes_are_normalized_in_any_memory_order(
    lies: str, mirrored: bool, channels: int, scaled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _LIES[lies](image(channels))
    mean, std = tuple(30.0 + 20 * c for c in range(channels)), tuple(50.0 + c for c in range(channels))
    scaling = normalize.affine(mean, std, 1.0, 0.5, channels) if scaled else None
    monkeypatch.setattr(normalize_opencv, "CHUNK", 7 * x.shape[1] * channels)
    ways = []
    for library in ("opencv", "torch"):
        out = torch.full((channels, *x.shape[:2]), -1.0)
        with computing_with(library, "normalize_opencv"):
            normalize.normalize_into(out.permute(1, 2, 0), x, scaling, 2, 1 if mirrored else None)
        ways.append(out)
    torch.testing.assert_close(ways[0], ways[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_the_smallest_images_are_normalized(channels: int) -> None:
    for shape in [(1, 1), (1, 2), (2, 1), (3, 1)]:
        x = image(channels)[: shape[0], : shape[1]].contiguous()
        scaling = normalize.affine((10.0,), (2.0,), 1.0, 0.0, channels)
        out = torch.full((channels, *shape), -1.0)
        normalize.normalize_into(out, x, scaling, 2, None, (1, 2, 0))
        torch.testing.assert_close(out, (x.permute(2, 0, 1).float() - 10) / 2)


def test_an_infinite_shift_is_added() -> None:
    out = torch.zeros(3, 40, 52)
    scaling = normalize.affine((10.0,), (2.0,), 1.0, float("inf"), 3)
    normalize.normalize_into(out, image(), scaling, 2, None, (1, 2, 0))
    assert (out == float("inf")).all()


_RESULTS = {
    "planes": lambda batch: batch[1].permute(1, 2, 0),
    "pixels": lambda batch: batch.permute(0, 2, 3, 1).contiguous()[1],
    "a window of planes": lambda batch: batch[1, :, 2:-3, 4:-1].permute(1, 2, 0),
    "a window of pixels": lambda batch: batch.permute(0, 2, 3, 1).contiguous()[1, 2:-3, 4:-1],
}


@pytest.mark.parametrize("result", _RESULTS)
@pytest.mark.parametrize("rows", [7, 100])
@pytest.mark.parametrize("factor", [(0.5, 0.02, 3.0), (0.25,), (), (0.5, 0.0, -1.0)])
def test_normalized_bytes_are_written_only_into_the_output(
    result: str, rows: int, factor: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = torch.full((3, 3, 45, 57), -1.0)
    out = _RESULTS[result](batch)
    whole = out if out._base is None else out._base  # with the images before and after
    before = whole.clone()
    x = image()[: out.shape[0], : out.shape[1]]
    x = torch.cat([x, x, x])[: out.shape[0]]
    x = torch.cat([x, x], 1)[:, : out.shape[1]]
    offset = tuple(2.0 * c - 1 for c in range(len(factor)))
    for name in ("CHUNK", "PIXELS"):
        monkeypatch.setattr(normalize_opencv, name, rows * x.shape[1] * 3)
    done = normalize_opencv.normalize_by_opencv(out.numpy()[None], [x.numpy()], factor, offset, [False])
    small_pixels = "pixels" in result and rows == 100
    assert done == ((not factor or min(factor) > 0) and not small_pixels)
    if done:
        wanted = x.double() * torch.tensor(factor or (1.0,)) + torch.tensor(offset or (0.0,))
        torch.testing.assert_close(out.double(), wanted.double(), rtol=1e-6, atol=1e-6)
    out.fill_(-1.0)
    assert torch.equal(whole, before)


def test_opencv_splits_planes() -> None:
    out = torch.empty(3, 40, 52)
    for lie in ("rows of pixels", "planes", "planes of columns"):
        x = _LIES[lie](image())
        target = out[:, : x.shape[0], : x.shape[1]]
        assert normalize_opencv.normalize_by_opencv(target.permute(1, 2, 0).numpy()[None], [x.numpy()], (), (), [False]), lie
        assert torch.equal(target, x.permute(2, 0, 1).float())
    floats = image().float() + 0.25  # not bytes: torch does it
    normalize.normalize_into(out, floats, None, 2, None, (1, 2, 0))
    assert torch.equal(out, floats.permute(2, 0, 1))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 1, 2), (2,), (0,), ()])
@pytest.mark.parametrize("keep", [False, True])
def test_bytes_are_reduced_equally(axes: tuple[int, ...], keep: bool, channels: int) -> None:
    x = image(4)[:, :, :channels] if channels < 5 else torch.cat([image(4), image(1)], 2)
    count = x.numel() // max(reduce.moments(x, axes, True).numel(), 1)
    means = [torch.tensor(101.5), reduce.moments(x, axes, keep) + 3, reduce.moments(x, axes, True) - 2]

    def computed() -> list[Tensor]:
        return [
            reduce.moments(x, axes, keep),
            reduce.moments(x, axes, keep, squared=True),
            *(reduce.variance_of(x, mean, axes, ddof, keep) for mean in means for ddof in (0, 1, count)),
        ]

    found = computed()
    with computing_with("torch", "moments_opencv"):
        expected = computed()
        exact = reduce.total(x, axes, keep)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == FLOAT
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-4)
    sums = reduce.total(x, axes, keep)
    assert sums.dtype == exact.dtype and torch.equal(sums.view(torch.int64), exact.view(torch.int64))


@pytest.fixture
def opencv_threads():
    opencv.cache_clear()
    yield cv2.setNumThreads
    opencv.cache_clear()
    cv2.setNumThreads(1)


def test_opencv_starts_no_threads(opencv_threads):
    opencv_threads(cv2.getNumberOfCPUs())  # as after the import
    assert opencv() is cv2
    assert cv2.getNumThreads() == 1


def test_the_programs_thread_count_is_kept(opencv_threads):
    opencv_threads(cv2.getNumberOfCPUs() + 3)
    assert opencv() is cv2
    assert cv2.getNumThreads() == cv2.getNumberOfCPUs() + 3


FORKED = """
import os, signal
import cv2, numpy as np
from torchdali.kernels.opencv import opencv

image = np.zeros((1024, 1024), np.uint8)
cv2.equalizeHist(image)  # OpenCV has threads now
pid = os.fork()
if not pid:
    signal.alarm(20)  # seconds, and the process is killed
    opencv().equalizeHist(image)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_forked_process_does_not_wait_for_missing_threads_of_opencv() -> None:
    """OpenCV 4 waited if its thread count was set to 1 in the fork; OpenCV 5 does not."""
    pytest.importorskip("cv2")
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
