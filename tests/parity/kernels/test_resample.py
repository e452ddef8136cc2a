"""Resize against the real DALI: filters, antialiasing, dtypes, regions, flips, dimensions, photos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.helpers.data import folder
from torchdali.kernels.resample.separable import FILTERS, resize

dali = pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)
fn, types = dali.fn, dali.types

pytestmark = pytest.mark.parity

Array = npt.NDArray[Any]
Roi = Sequence[tuple[float, float]]
INTERP = {
    "nn": types.INTERP_NN,
    "linear": types.INTERP_LINEAR,
    "cubic": types.INTERP_CUBIC,
    "triangular": types.INTERP_TRIANGULAR,
    "gaussian": types.INTERP_GAUSSIAN,
    "lanczos3": types.INTERP_LANCZOS3,
}


def real(samples: list[Array], layout: str, rois: list[Roi] | None = None, **k: Any) -> list[Array]:
    """``fn.resize`` of the real DALI on a batch; ``mn``, ``mg`` and ``dtype`` by name."""
    filters = {"min_filter": INTERP[k.pop("mn")], "mag_filter": INTERP[k.pop("mg")]}
    pipe = dali.Pipeline(len(samples), 2, None, prefetch_queue_depth=1)
    with pipe:
        x = fn.external_source(lambda: samples, layout=layout)
        if rois is not None:
            ends = [
                [np.array([axis[e] for axis in roi], np.float32) for roi in rois] for e in (0, 1)
            ]
            k["roi_start"] = fn.external_source(lambda: ends[0])
            k["roi_end"] = fn.external_source(lambda: ends[1])
        pipe.set_outputs(fn.resize(x, **filters, **k))
    (out,) = pipe.run()
    return [np.array(out.at(i)) for i in range(len(samples))]


def ours(x: Array, size: Sequence[int], mn: str, mg: str, **k: Any) -> Array:
    out: Array = resize(torch.from_numpy(x), size, min_filter=mn, mag_filter=mg, **k).numpy()
    return out


def far(a: Array, b: Array, scale: float) -> float:
    """Return the largest difference relative to the range of the values."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)) / scale


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("name", FILTERS)
def test_weights(name: str, antialias: bool) -> None:
    """A batch of unit impulses shows every weight."""
    sizes = [(12, 5), (5, 12), (33, 33), (33, 11), (11, 33), (60, 12), (48, 32), (300, 224)]
    sizes += [(37, 30), (151, 79), (97, 224), (1, 4), (4, 1), (2, 1), (64, 16), (15, 75), (500, 27)]
    for length, size in sizes:
        eye = np.eye(length, dtype=np.float32)[:, None, :]
        (weights,) = real([eye], "HWC", size=[size, 1], mn=name, mg=name, antialias=antialias)
        out = ours(eye, (size, 1), name, name, antialias=antialias)
        assert far(out, weights, 1.0) < 1e-6, (length, size)


def random_case(
    rng: np.random.Generator, with_roi: bool, whole: float
) -> tuple[Array, list[int], Roi | None]:
    """Return a sample of two or three spatial axes, a size and a region, often flipped or too large.

    `whole` is the share of regions with whole-number ends.
    """
    axes = int(rng.choice([2, 2, 3]))
    most = 60 if axes == 2 else 18
    shape = [int(v) for v in rng.integers(1, most, axes)]
    size = [int(v) for v in rng.integers(1, most, axes)]
    dtype = np.dtype(rng.choice(["uint8", "int16", "uint16", "float32"]))
    x = rng.random((*shape, int(rng.integers(1, 5)))) * 200 - (100 if dtype.kind != "u" else 0)
    if not with_roi:
        return x.astype(dtype), size, None
    roi = []
    for length in shape:
        low, high = sorted(float(v) for v in rng.uniform(-1, length, 2))
        if rng.random() < whole:
            low, high = float(math.floor(low)), float(math.ceil(high + 0.1))
        roi.append((high, low) if rng.random() < 0.3 else (low, high))
    return x.astype(dtype), size, roi


@pytest.mark.parametrize("with_roi", [False, True])
@pytest.mark.parametrize("name", FILTERS)
def test_random_cases(name: str, with_roi: bool) -> None:
    rng = np.random.default_rng(FILTERS.index(name))
    for _ in range(60):
        # With whole numbers many sample points lie between two pixels, and which is the nearest
        # depends on the order of the passes: see the test of single axes.
        x, size, roi = random_case(rng, with_roi, whole=0 if name == "nn" else 0.5)
        mn, mg = name, str(rng.choice([f for f in FILTERS if (f == "nn") == (name == "nn")]))
        k: dict[str, Any] = {"mn": mn, "mg": mg, "antialias": bool(rng.integers(2))}
        layout = "HWC" if x.ndim == 3 else "DHWC"
        rois = None if roi is None else [roi]
        case = (x.shape, x.dtype, size, roi, k)
        (exact,) = real([x], layout, rois, size=size, dtype=types.FLOAT, **k)
        out = ours(x, size, roi=roi, dtype=torch.float32, **k)
        assert far(out, exact, 200.0) < 1e-4, case
        (typed,) = real([x], layout, rois, size=size, **k)
        out = ours(x, size, roi=roi, **k)
        assert far(out, typed, 1.0) <= (1 if x.dtype.kind in "ui" else 0.02), case


def test_nearest_between_two_pixels() -> None:
    rng = np.random.default_rng(8)
    for _ in range(150):
        length = int(rng.integers(1, 60)) * int(rng.integers(1, 8))
        size = int(rng.integers(1, 30)) * int(rng.integers(1, 12))
        ends = sorted(int(v) for v in rng.integers(0, length + 1, 2))
        low, high = float(ends[0]), float(max(ends[1], ends[0] + 1))
        x = np.arange(length, dtype=np.float32)
        k: dict[str, Any] = {"mn": "nn", "mg": "nn"}
        for along in ((low, high), (high, low), (0.0, float(length))):
            across = (0.0, 1.0)
            column, row = x[:, None, None], x[None, :, None]
            (exact,) = real([column], "HWC", [[along, across]], size=(size, 1), **k)
            out = ours(column, (size, 1), roi=[along, across], **k)
            assert np.array_equal(out, exact), (length, size, along)
            (exact,) = real([row], "HWC", [[across, along]], size=(1, size), **k)
            out = ours(row, (1, size), roi=[across, along], **k)
            assert np.array_equal(out, exact), (length, size, along)


def test_nearest_and_another_filter() -> None:
    """One filter where the image shrinks, nearest neighbour where it grows, and the reverse."""
    x = np.random.default_rng(5).random((31, 17, 2), dtype=np.float32)
    for mn, mg in (("nn", "linear"), ("linear", "nn"), ("nn", "cubic"), ("lanczos3", "nn")):
        for size in ((12, 40), (60, 9)):
            (exact,) = real([x], "HWC", size=size, mn=mn, mg=mg)
            assert far(ours(x, size, mn, mg), exact, 1.0) < 1e-5


@pytest.mark.parametrize("name", FILTERS)
def test_one_dimension(name: str) -> None:
    x = np.random.default_rng(2).random(50, dtype=np.float32)
    for size in (7, 50, 93):
        pipe = dali.Pipeline(1, 1, None, prefetch_queue_depth=1)
        with pipe:
            node = fn.external_source(lambda: [x])
            pipe.set_outputs(
                fn.tensor_resize(node, sizes=[size], axes=[0], interp_type=INTERP[name])
            )
        (out,) = pipe.run()
        assert far(ours(x[:, None], (size,), name, name)[:, 0], np.array(out.at(0)), 1.0) < 1e-5


def test_frames() -> None:
    x = np.random.default_rng(3).integers(0, 256, (3, 50, 60, 3), dtype=np.uint8)
    for mn in ("linear", "cubic", "nn"):
        (exact,) = real([x], "FHWC", size=(33, 90), mn=mn, mg=mn)
        assert far(ours(x, (33, 90), mn, mn), exact, 1.0) <= 1


def test_next_to_empty_region() -> None:
    x = np.random.default_rng(4).random((10, 9, 1), dtype=np.float32)
    for low, high in ((5.0, 5.0), (5.0, 5.0004), (5.0004, 5.0), (4.0, 4.002)):
        roi = [(low, high), (0.0, 9.0)]
        (exact,) = real([x], "HWC", [roi], size=(4, 9), mn="linear", mg="linear")
        assert far(ours(x, (4, 9), "linear", "linear", roi=roi), exact, 1.0) < 1e-5


def photographs(count: int) -> list[Array]:
    pil = pytest.importorskip("PIL.Image", reason="Pillow reads the photographs")
    files = sorted(folder("imagenet").rglob("*.JPEG"))
    return [np.array(pil.open(f).convert("RGB")) for f in files[:: max(1, len(files) // count)]]


def random_crops(images: list[Array], rng: np.random.Generator) -> list[Roi]:
    """Whole-pixel crops as in random_resized_crop."""
    rois: list[Roi] = []
    for image in images:
        height, width = image.shape[:2]
        area, ratio = height * width * rng.uniform(0.08, 1), math.exp(rng.uniform(-0.28, 0.28))
        w, h = min(width, round((area * ratio) ** 0.5)), min(height, round((area / ratio) ** 0.5))
        y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
        rois.append([(float(y), float(y + h)), (float(x), float(x + w))])
    return rois


def share_within_one(out: list[Array], exact: list[Array]) -> float:
    near = [np.abs(a.astype(np.int16) - b) <= 1 for a, b in zip(out, exact, strict=True)]
    return float(sum(n.sum() for n in near) / sum(n.size for n in near))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "triangular", "cubic", "lanczos3", "gaussian", "nn"])
def test_photographs(name: str) -> None:
    images = photographs(100)
    rois = random_crops(images, np.random.default_rng(0))
    for region in (None, rois):
        exact = real(images, "HWC", region, size=(224, 224), mn=name, mg=name)
        out = [
            ours(x, (224, 224), name, name, roi=None if region is None else region[i])
            for i, x in enumerate(images)
        ]
        assert share_within_one(out, exact) >= 0.9999


@pytest.mark.slow
def test_random_crops_without_patch() -> None:
    images = photographs(100)
    rois = random_crops(images, np.random.default_rng(0))
    exact = real(images, "HWC", rois, size=(224, 224), mn="linear", mg="linear")
    out = [
        ours(x, (224, 224), "linear", "linear", roi=roi, patch_border=False)
        for x, roi in zip(images, rois, strict=True)
    ]
    assert share_within_one(out, exact) >= 0.995
    inner = [[a[2:-2, 2:-2] for a in batch] for batch in (out, exact)]
    assert share_within_one(*inner) == 1.0
