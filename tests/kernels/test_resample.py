"""Resize against its definition, written out in float64 with the filters in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.data import folder
from torchdali.kernels.resample.separable import FILTERS, resample, resize
from torchdali.kernels.resample.weights import resize_axes

# Pixels at the edge of a Gaussian's window, where it does not vanish, depend on rounding,
# and on the last step of the table. The parity tests cover them.
ON_THE_EDGE = [(31, 30), (7, 7), (9, 3), (3, 9)]
SHRINK_AND_GROW = [(12, 5), (40, 16), (31, 30), (5, 12), (7, 7), (1, 4), (4, 1), (9, 3), (3, 9)]


def closed_form(name: str, t: float) -> float:
    """The filters as formulas; DALI looks smooth filters up in a table of 32 steps per unit."""
    t = abs(t)
    if name in ("linear", "triangular"):
        return max(0.0, 1 - t)
    if name == "gaussian":
        return math.exp(-4 * t * t) if t <= 1 else 0.0
    if name == "lanczos3":
        return float(np.sinc(t) * np.sinc(t / 3)) if t < 3 else 0.0
    if t < 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0


def matrix(
    length: int, size: int, low: float, high: float, name: str, antialias: bool
) -> np.ndarray[Any, Any]:
    """Return the weight of every input pixel in every output pixel, by a slow reference."""
    scale = (high - low) / size
    out = np.zeros((size, length))
    for i in range(size):
        position = low + (i + 0.5) * scale
        if name == "nn":
            out[i, min(max(math.floor(position), 0), length - 1)] = 1
            continue
        stretch = max(1.0, abs(scale)) if antialias else 1.0
        reach = math.ceil(abs(position) + 3 * stretch + 1)
        for k in range(-reach, length + reach):
            weight = closed_form(name, (k + 0.5 - position) / stretch)
            out[i, min(max(k, 0), length - 1)] += weight
        out[i] /= out[i].sum()
    return out


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("name", FILTERS)
def test_one_axis(name: str, antialias: bool) -> None:
    for length, size in SHRINK_AND_GROW:
        if name == "gaussian" and (length, size) in ON_THE_EDGE:
            continue
        eye = torch.eye(length)[:, None, :]  # (length, 1, length): every pixel a channel
        out = resize(eye, (size, 1), min_filter=name, mag_filter=name, antialias=antialias)
        expected = matrix(length, size, 0, length, name, antialias)
        # Positions are float32, and between its knots the table of a smooth filter is off.
        atol = 2e-3 if name in ("cubic", "gaussian", "lanczos3") else 1e-5
        np.testing.assert_allclose(out[:, 0].numpy(), expected, atol=atol)
        assert torch.allclose(out.sum(-1), torch.ones(()), atol=1e-5)


@pytest.mark.parametrize("name", ["nn", "linear", "cubic"])
@pytest.mark.parametrize(
    "roi",
    [
        ((2.0, 9.0), (3.0, 5.0)),
        ((9.0, 2.0), (0.0, 8.0)),
        ((1.3, 7.9), (6.2, 0.4)),
        ((-2.5, 13.0), (4.0, 11.5)),
        ((11.0, 13.0), (0.0, 8.0)),
    ],
)
def test_region(name: str, roi: tuple[tuple[float, float], ...]) -> None:
    x = torch.arange(11 * 8 * 2, dtype=torch.float32).view(11, 8, 2)
    out = resize(x, (5, 9), roi=roi, min_filter=name, mag_filter=name)
    down = matrix(11, 5, *roi[0], name, True)
    across = matrix(8, 9, *roi[1], name, True)
    expected = np.einsum("ah,bw,hwc->abc", down, across, x.numpy())
    np.testing.assert_allclose(out.numpy(), expected, atol=0.3 if name == "cubic" else 2e-3)


def test_filters_by_axis() -> None:
    x = torch.rand(9, 4, 1)
    out = resize(x, (3, 8), min_filter="linear", mag_filter="nn")
    expected = np.einsum(
        "ah,bw,hwc->abc",
        matrix(9, 3, 0, 9, "linear", True),
        matrix(4, 8, 0, 4, "nn", True),
        x.numpy(),
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["nn", "linear", "lanczos3"])
def test_one_and_three_axes_and_leading_dimensions(name: str) -> None:
    k: dict[str, Any] = {"min_filter": name, "mag_filter": name}
    x = torch.rand(2, 6, 7, 8, 3)
    volume = resize(x, (3, 9, 5), **k)
    assert volume.shape == (2, 3, 9, 5, 3)
    rows = resize(resize(x, (9, 5), **k).movedim(1, 3), (3,), **k).movedim(3, 1)
    torch.testing.assert_close(volume, rows, atol=1e-5, rtol=0)
    for i in range(2):
        torch.testing.assert_close(volume[i], resize(x[i], (3, 9, 5), **k), atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16])
@pytest.mark.parametrize("name", FILTERS)
def test_rounds_once_and_saturates(name: str, dtype: torch.dtype) -> None:
    values = torch.randint(0, 2, (20, 24, 2), generator=torch.Generator().manual_seed(3)) * 255
    x = values.to(dtype)
    for size in ((9, 11), (41, 37)):
        out = resize(x, size, min_filter=name, mag_filter=name)
        exact = resize(x, size, min_filter=name, mag_filter=name, dtype=torch.float32)
        low = 0 if dtype != torch.int16 else -(2**15)
        high = 255 if dtype == torch.uint8 else 2**15
        # The float sums of both calls are the same: only the rounding differs.
        expected = torch.floor(exact.clamp(low, high) + 0.5)
        assert out.dtype == dtype
        slack = 1 if dtype == torch.uint8 and name in ("linear", "triangular") else 0
        assert (out.to(torch.int32) - expected).abs().max() <= slack


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
@pytest.mark.parametrize("name", [name for name in FILTERS if name != "nn"])
def test_values_beyond_bytes_saturate(name: str, dtype: torch.dtype) -> None:
    x = torch.full((40, 40, 3), 300).to(dtype)
    x[20:] = -70
    out = resize(x, (33, 35), min_filter=name, mag_filter=name, dtype=torch.uint8)
    assert (out[:12] == 255).all() and (out[20:] == 0).all()


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize(
    ("size", "roi"),
    [
        ((40, 36), None),
        ((40, 200), None),
        ((170, 200), None),
        ((40, 36), ((10.0, 100.0), (5.0, 120.0))),
        ((32, 36), ((2.0, 110.0), (1.0, 131.0))),  # shrinks by more than 3: several pixels
        ((90, 99), ((50.0, 70.0), (100.0, 110.0))),  # grows: several rows
        ((40, 36), ((0.0, 100.0), (132.0, 10.0))),
        ((120, 132), ((0.0, 120.0), (0.0, 132.0))),
        ((40, 36), ((0.0, 120.0), (0.25, 131.75))),  # one axis only
        ((40, 36), ((119.3, 0.7), (100.0, 3.0))),
    ],
)
def test_the_fast_path_of_bytes_equals_the_general_path(
    channels: int,
    antialias: bool,
    size: tuple[int, int],
    roi: tuple[tuple[float, float], ...] | None,
) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (120, 132, channels), dtype=torch.uint8, generator=generator)
    before = x.clone()
    fast = resize(x, size, roi=roi, antialias=antialias)
    axes = resize_axes((120, 132), size, roi, "linear", "linear", antialias)
    exact = resample(x, axes, torch.float32)
    assert fast.shape == (*size, channels)
    assert fast.is_contiguous()
    assert (fast.float() - exact).abs().max() < 1.55  # rounded between the passes and at the end
    assert torch.equal(x, before)
    frames = torch.stack((x, x.flip(0)))
    both = resize(frames, size, roi=roi, antialias=antialias)
    assert (both[0].int() - fast.int()).abs().max() == 0


def test_without_patch_only_the_border_differs() -> None:
    x = torch.randint(0, 256, (100, 120, 3), dtype=torch.uint8)
    roi = ((20.0, 90.0), (10.0, 110.0))
    exact = resize(x, (40, 50), roi=roi).int()
    plain = resize(x, (40, 50), roi=roi, patch_border=False).int()
    different = (exact - plain).abs() > 1
    assert different.any()
    assert not different[1:-1, 1:-1].any()


def test_strided_input_and_identity() -> None:
    x = torch.randint(0, 256, (60, 50, 3), dtype=torch.uint8)
    turned = x.transpose(0, 1)
    for name in FILTERS:
        k: dict[str, Any] = {"min_filter": name, "mag_filter": name}
        torch.testing.assert_close(
            resize(turned, (33, 40), **k), resize(turned.contiguous(), (33, 40), **k)
        )
    assert resize(x, (60, 50)) is x
    assert torch.equal(resize(x, (60, 50), dtype=torch.float32), x.float())


def test_empty() -> None:
    assert resize(torch.zeros(0, 3, 1), (2, 2)).shape == (0, 2, 1)
    assert resize(torch.zeros(3, 3, 0), (2, 2)).shape == (2, 2, 0)


@pytest.mark.parametrize(
    ("size", "k"),
    [
        ((2, 2), {"min_filter": "bilinear"}),
        ((2, 2, 2), {}),
        ((2, 2), {"roi": [(0.0, 3.0)]}),
    ],
)
def test_refused(size: tuple[int, ...], k: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"filter|axes"):
        resize(torch.zeros(3, 3, 1), size, **k)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("name", FILTERS)
def test_on_the_accelerator(name: str, dtype: torch.dtype) -> None:
    x = (torch.rand(90, 70, 3) * 255).to(dtype)
    k: dict[str, Any] = {"min_filter": name, "mag_filter": name, "roi": ((3.0, 88.0), (60.0, 2.0))}
    on_device = resize(x.cuda(), (40, 90), **k).cpu()
    here = resize(x, (40, 90), **k)
    assert (on_device.double() - here.double()).abs().max() <= (1 if dtype == torch.uint8 else 1e-3)


def test_photographs_are_not_shifted() -> None:
    """Photographs that are resized to another size and back are not shifted."""
    pil = pytest.importorskip("PIL.Image", reason="Pillow reads the photograph")
    file = next(iter(sorted(folder("imagenet").rglob("*.JPEG"))))
    x = torch.from_numpy(np.array(pil.open(file).convert("RGB")))
    back = resize(resize(x, (300, 400)), tuple(x.shape[:2])).float()
    image = x.float()
    still = (back - image)[4:-4, 4:-4].abs().mean()
    assert still < (back[1:] - image[:-1])[4:-4, 4:-4].abs().mean()
    assert still < (back[:, 1:] - image[:, :-1])[4:-4, 4:-4].abs().mean()
