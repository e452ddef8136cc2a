"""Operators of a training pipeline on photos: every pixel against the real DALI."""

from __future__ import annotations

import importlib
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.helpers.data import folder
from tests.helpers.parity_table import note_pixels, percent
from torchdali.kernels.resample.separable import resize

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

Array = npt.NDArray[Any]
COUNT = 64
SIZE = (224, 224)
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def run(
    library: str, samples: list[Array], operator: str, layout: str = "", **k: Any
) -> list[Array]:
    """Run one operator of a library on a batch; lists in ``edges`` are per-sample arguments."""
    package = importlib.import_module(library)
    fn, types = (importlib.import_module(f"{library}.{name}") for name in ("fn", "types"))
    edges = k.pop("edges", {})
    with package.Pipeline(len(samples), 2, None, prefetch_queue_depth=1) as pipe:
        function: Any = fn
        for part in operator.split("."):
            function = getattr(function, part)
        data = fn.external_source(lambda: samples, layout=layout or None)
        given = {name: fn.external_source(repeat(values)) for name, values in edges.items()}
        constants = {n: getattr(types, v) if n == "dtype" else v for n, v in k.items()}
        pipe.set_outputs(function(data, **constants, **given))
    (out,) = pipe.run()
    return [np.array(out.at(i)) for i in range(len(samples))]


def both(samples: list[Array], operator: str, layout: str = "", **k: Any) -> list[list[Array]]:
    return [run(name, samples, operator, layout, **k) for name in ("torchdali", "nvidia.dali")]


@cache
def encoded() -> list[Array]:
    files = sorted(
        p for p in folder("imagenet").rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")
    )
    every = max(1, len(files) // COUNT)
    chosen = files[::every][:COUNT]
    assert len(chosen) >= 60, f"{len(chosen)} images are too few"
    return [np.fromfile(path, np.uint8) for path in chosen]


@cache
def photos() -> list[Array]:
    return run("nvidia.dali", encoded(), "decoders.image")


def within_one_level(found: list[Array], wanted: list[Array]) -> float:
    """Return the share of values that differ by one level at most."""
    assert [a.shape for a in found] == [b.shape for b in wanted]
    pairs = zip(found, wanted, strict=True)
    good = sum(int((np.abs(a.astype(int) - b.astype(int)) <= 1).sum()) for a, b in pairs)
    return good / sum(a.size for a in found)


def test_decoding_is_identical() -> None:
    found = run("torchdali", encoded(), "decoders.image")
    equal = sum(np.array_equal(a, b) for a, b in zip(found, photos(), strict=True))
    note_pixels("`decoders.image`: images that are equal", len(found), f"{equal}", "all")
    assert equal == len(found)


@pytest.mark.parametrize(
    ("subject", "arguments"),
    [("size=224", {"size": list(SIZE)}), ("resize_shorter=256", {"resize_shorter": 256.0})],
)
def test_resize(subject: str, arguments: dict[str, Any]) -> None:
    found, wanted = both(photos(), "resize", "HWC", **arguments)
    share = within_one_level(found, wanted)
    what = f"`resize({subject})`, borders included: values within 1 level"
    note_pixels(what, len(found), percent(share), ">= 99.9 %")
    assert share >= 0.999


def windows(count: int) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Random windows as in ``random_resized_crop``: 8 to 100 % of the area, aspect 3/4 to 4/3."""
    rng = np.random.default_rng(4)
    found = []
    for photo in photos()[:count]:
        height, width = photo.shape[:2]
        area = height * width * rng.uniform(0.08, 1.0)
        aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        h = min(height, max(1, round(float(np.sqrt(area / aspect)))))
        w = min(width, max(1, round(float(np.sqrt(area * aspect)))))
        y, x = (int(rng.integers(0, space + 1)) for space in (height - h, width - w))
        found.append(((float(y), float(y + h)), (float(x), float(x + w))))
    return found


def test_random_crops() -> None:
    """Replay the windows with `roi`, resized as in ``random_resized_crop``."""
    chosen = windows(COUNT)
    edges = {
        name: [np.array([axis[end] for axis in window], np.float32) for window in chosen]
        for end, name in enumerate(("roi_start", "roi_end"))
    }
    wanted = run("nvidia.dali", photos(), "resize", "HWC", size=list(SIZE), edges=edges)
    found = [
        np.asarray(resize(torch.from_numpy(photo), SIZE, roi=window, patch_border=False))
        for photo, window in zip(photos(), chosen, strict=True)
    ]
    share = within_one_level(found, wanted)
    what = "`random_resized_crop(size=224)`, windows replayed: values within 1 level"
    note_pixels(what, len(found), percent(share), ">= 99.5 %")
    assert share >= 0.995


def test_crop_mirror_normalize() -> None:
    mirror = [np.int32(i % 2) for i in range(COUNT)]
    k: dict[str, Any] = {"dtype": "FLOAT", "output_layout": "CHW", "mean": MEAN, "std": STD}
    images = run("nvidia.dali", photos(), "resize", "HWC", size=[256, 256])
    found, wanted = both(
        images, "crop_mirror_normalize", "HWC", crop=list(SIZE), edges={"mirror": mirror}, **k
    )
    largest = max(float(np.abs(a - b).max()) for a, b in zip(found, wanted, strict=True))
    what = "`crop_mirror_normalize(crop=224)` of equal images: largest difference"
    note_pixels(what, len(found), f"{largest:.1e}", "<= 1e-5")
    assert largest <= 1e-5
