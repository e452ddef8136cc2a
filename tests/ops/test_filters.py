"""Filters against slow references in NumPy, and against the real DALI if it has the filter on the CPU."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import PerSample, check
from torchdali import fn, types
from torchdali.tensors import TensorList

Array = npt.NDArray[Any]
PADDING: dict[str, str] = {
    "reflect_101": "reflect", "reflect_1001": "symmetric", "clamp": "edge", "wrap": "wrap",
    "reflect": "symmetric", "replicate": "edge",
}  # fmt: skip
"""Names of borders in NumPy."""

SHAPES = {
    "HW": (7, 9),
    "HWC": (7, 9, 3),
    "CHW": (2, 7, 9),
    "FHWC": (2, 6, 7, 3),
    "FCHW": (2, 2, 6, 7),
}


def image(layout: str, dtype: str = "uint8", seed: int = 0) -> Array:
    """Return random numbers in the range of a type."""
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.normal(0, 3, SHAPES[layout]).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -999), min(info.max, 999) + 1, SHAPES[layout], dtype=dtype)


def run(
    function: Callable[..., Any], x: Array, layout: str, *others: Any, **arguments: Any
) -> Array:
    """Call an operator on a batch of one sample."""
    rest = [TensorList.from_samples([torch.as_tensor(o)]) for o in others]
    made = function(TensorList.from_samples([torch.from_numpy(x)], layout), *rest, **arguments)
    assert made.layout() == layout
    found: Array = made.samples()[0].numpy()
    return found


def windows(
    x: Array,
    layout: str,
    size: Sequence[int],
    anchor: Sequence[int],
    border: str,
    fill: float = 0.0,
) -> Array:
    """Return the pixels around each pixel, from one padded plane after another: ``(..., h * w)``."""
    axes = (layout.index("H"), layout.index("W"))
    planes = np.moveaxis(x, axes, (-2, -1)).astype(np.float64)
    margins = [(0, 0)] * (x.ndim - 2) + [(a, s - 1 - a) for a, s in zip(anchor, size, strict=True)]
    if border == "constant":
        wide = np.pad(planes, margins, constant_values=fill)
    else:
        wide = np.pad(planes, margins, PADDING[border])  # type: ignore[call-overload]
    height, width = planes.shape[-2:]
    found = np.empty((*planes.shape, size[0] * size[1]))
    for y, i in itertools.product(range(height), range(width)):
        part = wide[..., y : y + size[0], i : i + size[1]]
        found[..., y, i, :] = part.reshape(*part.shape[:-2], -1)
    return np.moveaxis(found, (-3, -2), axes)


def close(found: Array, wanted: Array, dtype: str) -> None:
    """Assert that a result of a dtype is the expected number, rounded and saturated."""
    assert found.dtype == dtype and found.shape == wanted.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        return
    info = np.iinfo(dtype)
    assert np.abs(found - wanted.clip(info.min, info.max)).max() <= 0.5 + 1e-3


# ---------------------------------------------------------------- median


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_median_blur(layout: str, dtype: str) -> None:
    for size in [[3, 3], [5, 3], [1, 5], [7, 7]]:
        x = image(layout, dtype)
        found = run(fn.experimental.median_blur, x, layout, window_size=size)
        wanted = np.median(windows(x, layout, size, [s // 2 for s in size], "clamp"), -1)
        np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_median_blur_defaults_and_values_per_sample() -> None:
    x = [image("HWC", seed=i) for i in range(2)]
    batch = TensorList.from_samples([torch.from_numpy(s) for s in x], "HWC")
    sizes = TensorList.from_samples([torch.tensor([3, 3]), torch.tensor([1, 5])])
    found = fn.experimental.median_blur(batch, window_size=sizes).samples()
    np.testing.assert_array_equal(found[0], run(fn.experimental.median_blur, x[0], "HWC"))
    np.testing.assert_array_equal(
        found[1], run(fn.experimental.median_blur, x[1], "HWC", window_size=[1, 5])
    )


@pytest.mark.parametrize("size", [[2, 3], [3, 0], [3, 3, 3]])
def test_median_blur_rejects_invalid_windows(size: list[int]) -> None:
    with pytest.raises(RuntimeError, match="window"):
        run(fn.experimental.median_blur, image("HWC"), "HWC", window_size=size)


# ---------------------------------------------------------------- dilate, erode

MASKS: list[tuple[list[int], list[int]]] = [
    ([3, 3], [-1, -1]), ([5, 3], [-1, -1]), ([2, 4], [-1, -1]), ([3, 3], [0, 2]), ([1, 4], [0, 3]), ([4, 1], [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("size", "anchor"), MASKS)
@pytest.mark.parametrize(
    ("name", "choose", "neutral"), [("dilate", np.max, -np.inf), ("erode", np.min, np.inf)]
)
def test_morphology(name: str, choose: Callable[..., Array], neutral: float, size: list[int], anchor: list[int]) -> None:
    for border in ["constant", "replicate", "reflect", "reflect_101", "wrap"]:
        function = getattr(fn.experimental, name)
        place = [s // 2 if a < 0 else a for s, a in zip(size, anchor, strict=True)]
        for layout, dtype in (("HWC", "uint8"), ("CHW", "int16"), ("FHWC", "float32"), ("HW", "uint8")):
            x = image(layout, dtype)
            wanted = choose(windows(x, layout, size, place, border, neutral), -1).astype(dtype)
            found = run(function, x, layout, mask_size=size, anchor=anchor, border_mode=border)
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["dilate", "erode"])
def test_iterations_repeat(name: str) -> None:
    function = getattr(fn.experimental, name)
    x = image("HWC")
    once = functools.partial(run, function, layout="HWC", mask_size=[3, 2])
    np.testing.assert_array_equal(
        run(function, x, "HWC", mask_size=[3, 2], iterations=3), once(once(once(x)))
    )
    np.testing.assert_array_equal(run(function, x, "HWC", iterations=0), x)


def test_erosion_is_the_dilation_of_the_negative() -> None:
    x = image("HWC", "float32")
    found = run(fn.experimental.erode, x, "HWC", mask_size=[4, 3])
    np.testing.assert_array_equal(found, -run(fn.experimental.dilate, -x, "HWC", mask_size=[4, 3]))


def test_morphology_of_frames_one_mask_each() -> None:
    x = image("FHWC")
    batch = TensorList.from_samples([torch.from_numpy(x)], "FHWC")
    sizes = fn.per_frame(TensorList.from_samples([torch.tensor([[3, 3], [1, 5]])]), replace=True)
    found = fn.experimental.dilate(batch, mask_size=sizes).samples()[0]
    for frame, size in enumerate(([3, 3], [1, 5])):
        np.testing.assert_array_equal(
            found[frame], run(fn.experimental.dilate, x[frame], "HWC", mask_size=size)
        )


# ---------------------------------------------------------------- weighted windows


def gaussian(size: int, sigma: float) -> Array:
    """Return the weights of DALI's window; sigma 0 follows from the size, size 0 from sigma."""
    size = size or 2 * math.ceil(3 * sigma) + 1
    sigma = sigma or 0.3 * ((size - 1) * 0.5 - 1) + 0.8
    weights = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    normalized: Array = weights / weights.sum()
    return normalized


def weighted(
    x: Array, layout: str, kernel: Array, anchor: Sequence[int], border: str, fill: float = 0.0
) -> Array:
    """Correlate with a window."""
    found: Array = windows(x, layout, kernel.shape, anchor, border, fill) @ kernel.ravel()
    return found


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_gaussian_blur(layout: str, dtype: str) -> None:
    for size, sigma in [([3], [0.0]), ([5], [1.2]), ([0], [0.7]), ([3, 5], [0.0]), ([0, 5], [0.5, 0.0]), ([9], [2.0])]:
        x = image(layout, dtype)
        rows, columns = (
            gaussian(size[min(i, len(size) - 1)], sigma[min(i, len(sigma) - 1)]) for i in range(2)
        )
        kernel = np.outer(rows, columns)
        wanted = weighted(x, layout, kernel, [s // 2 for s in kernel.shape], "reflect_101")
        close(run(fn.gaussian_blur, x, layout, window_size=size, sigma=sigma), wanted, dtype)


LAPLACIANS: dict[int, list[float]] = {
    3: [1, -2, 1],
    5: [1, 0, -2, 0, 1],
    7: [1, 2, -1, -4, -1, 2, 1],
}
SMOOTHINGS: dict[int, list[float]] = {
    1: [1],
    3: [1, 2, 1],
    5: [1, 4, 6, 4, 1],
    7: [1, 6, 15, 20, 15, 6, 1],
}


def laplacian(window: int, smoothing: int, factor: float = 1.0) -> Array:
    """Return the kernel of both second derivatives, each smoothed along the other axis."""
    size = max(window, smoothing)
    total = np.zeros((size, size))
    for flipped in (False, True):
        part = np.outer(LAPLACIANS[window], SMOOTHINGS[smoothing])
        margins = [((size - n) // 2, (size - n) // 2) for n in part.shape]
        part = np.pad(part, margins)
        total += part.T if flipped else part
    return total * factor


def test_the_laplacian_of_three_is_known() -> None:
    assert laplacian(3, 3).tolist() == [[2, 0, 2], [0, -8, 0], [2, 0, 2]]
    assert laplacian(3, 1).tolist() == [[0, 1, 0], [1, -4, 1], [0, 1, 0]]


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_laplacian(layout: str, dtype: str) -> None:
    for sizes in [(3, 3), (3, 1), (5, 5), (5, 3), (7, 1), (3, 7)]:
        for normalized in [False, True]:
            x = image(layout, dtype)
            window, smoothing = sizes
            kernel = laplacian(window, smoothing, 2.0 ** (4 - window - smoothing) if normalized else 0.25)
            wanted = weighted(x, layout, kernel, [s // 2 for s in kernel.shape], "reflect_101")
            scaling: dict[str, Any] = {"normalized_kernel": True} if normalized else {"scale": [0.25]}
            found = run(
                fn.laplacian,
                x,
                layout,
                window_size=[window],
                smoothing_size=[smoothing],
                dtype=types.FLOAT,
                **scaling,
            )
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)


def test_each_axis_is_smoothed_by_its_own_window() -> None:
    x = image("HW", "float32")
    kernel = np.outer(LAPLACIANS[3], SMOOTHINGS[3]) + np.pad(
        np.outer(SMOOTHINGS[1], LAPLACIANS[3]), ((1, 1), (0, 0))
    )
    wanted = weighted(x, "HW", kernel, [1, 1], "reflect_101")
    found = run(fn.laplacian, x, "HW", window_size=[3, 3], smoothing_size=[1, 3])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("argument", [{"window_size": 33}, {"smoothing_size": [3, 33]}])
def test_windows_of_the_laplacian_have_a_limit(argument: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"must be an odd number from .*, got 33"):
        fn.laplacian(torch.zeros(4, 5), **argument)


KERNEL = np.array(
    [[0.1, -0.2, 0.3, 0.05], [0.4, 0.5, -0.6, 0.0], [0.2, -0.1, 0.15, 0.2]], np.float32
)


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_filter(layout: str, dtype: str) -> None:
    for border in ["reflect_101", "reflect_1001", "clamp", "wrap", "constant"]:
        for anchor in [[-1, -1], [0, 3], [2, 0]]:
            x = image(layout, dtype)
            place = [s // 2 if a < 0 else a for s, a in zip(KERNEL.shape, anchor, strict=True)]
            wanted = weighted(x, layout, KERNEL.astype(np.float64), place, border, 7.0)
            fill = [np.array(7.0, dtype)] if border == "constant" else []
            close(run(fn.filter, x, layout, KERNEL, *fill, anchor=anchor, border=border), wanted, dtype)


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC"])
def test_filter_of_whole_windows_only(layout: str) -> None:
    x = image(layout, "float32")
    whole = np.moveaxis(
        run(fn.filter, x, layout, KERNEL), (layout.index("H"), layout.index("W")), (0, 1)
    )
    found = run(fn.filter, x, layout, KERNEL, mode="valid")
    inside = np.moveaxis(found, (layout.index("H"), layout.index("W")), (0, 1))
    height, width = whole.shape[:2]
    np.testing.assert_allclose(inside, whole[1 : height - 1, 2 : width - 1], rtol=1e-5, atol=1e-5)


def test_windows_beyond_the_image_reflect_repeatedly() -> None:
    x = np.arange(4, dtype=np.float32)[None, :, None] * np.ones((3, 1, 1), np.float32)
    wanted = weighted(x, "HWC", np.outer([1.0], gaussian(15, 3.0)), [0, 7], "reflect_101")
    found = run(fn.gaussian_blur, x, "HWC", window_size=[1, 15], sigma=[1.0, 3.0])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_resize_of_gpu_equals_cpu() -> None:
    x = torch.from_numpy(image("HWC"))
    assert torch.equal(fn.experimental.resize(x, size=[12, 5]), fn.resize(x, size=[12, 5]))


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "experimental.median_blur": "DALI has it only on the GPU; compared with a NumPy reference",
    "experimental.dilate": "the same as `experimental.median_blur`",
    "experimental.erode": "the same as `experimental.median_blur`",
}

RANDOM = np.random.default_rng(14)
GRID = list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))


def samples(dtype: str, shapes=((5, 6, 2), (4, 7, 2))) -> list[np.ndarray]:
    if dtype == "float32":
        return [RANDOM.random(shape).astype(dtype) for shape in shapes]
    return [
        RANDOM.integers(0 if dtype == "uint8" else -900, 255, shape).astype(dtype)
        for shape in shapes
    ]


def tolerance(dtype: str, arguments: dict[str, object]) -> dict[str, float]:
    rounded = dtype != "float32" and "dtype" not in arguments
    return {"level": 1, "share": 0.99} if rounded else {"relative": 1e-4, "level": 1e-4}


BLUR = [
    {"sigma": 1.0},
    {"window_size": 5},
    {"sigma": 0.7, "window_size": 3},
    {"sigma": [0.5, 2.0]},
    {"window_size": [3, 7]},
    {"window_size": PerSample([3, 9])},
    {"sigma": 1.3, "dtype": "types.FLOAT"},
    {"window_size": 31},
]


@pytest.mark.golden
@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_gaussian_blur_matches_dali(dtype, layout):
    for arguments in BLUR:
        check("gaussian_blur", [samples(dtype)], arguments, layout, **tolerance(dtype, arguments))


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["HW", "FHWC", "DHWC", "FCHW", None])
def test_gaussian_blur_of_other_layouts(layout):
    ndim = 3 if layout is None else len(layout)
    shapes = ((3, 5, 6, 2)[-ndim:] if ndim == 4 else (5, 6, 5)[:ndim],) * 2
    check(
        "gaussian_blur",
        [samples("float32", shapes)],
        {"sigma": 0.8},
        layout,
        relative=1e-4,
        level=1e-5,
    )


LAPLACE = [
    {},
    {"window_size": 5},
    {"window_size": [3, 5]},
    {"window_size": 3, "smoothing_size": 1},
    {"window_size": [5, 5], "smoothing_size": [1, 3], "dtype": "types.FLOAT"},
    {"window_size": [3, 5], "smoothing_size": [7, 1], "normalized_kernel": True},
    {"window_size": 5, "normalized_kernel": True, "dtype": "types.FLOAT"},
    {"scale": [0.5, 2.0]},
    {"window_size": [3, 7], "normalized_kernel": True},
    {"window_size": PerSample([3, 5]), "dtype": "types.FLOAT"},
]


@pytest.mark.golden
@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_laplacian_matches_dali(dtype, layout):
    for arguments in LAPLACE:
        check(
            "laplacian",
            [samples(dtype)],
            arguments,
            layout,
            **{**tolerance(dtype, arguments), "relative": 1e-4},
        )


FILTER = [
    {},
    {"anchor": [0, 0]},
    {"anchor": [1, 2]},
    {"mode": "valid"},
    {"border": "constant"},
    {"border": "clamp"},
    {"border": "wrap"},
    {"border": "reflect_1001"},
    {"dtype": "types.FLOAT"},
]


@pytest.mark.golden
@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_filter_matches_dali(dtype, layout):
    windows = [RANDOM.normal(size=(3, 4)).astype(np.float32) for _ in range(2)]
    shapes = ((5, 6, 2), (4, 7, 2)) if layout == "HWC" else ((2, 5, 6), (2, 4, 7))
    for arguments in FILTER:
        check(
            "filter",
            [samples(dtype, shapes), windows],
            arguments,
            [layout, None],
            **tolerance(dtype, arguments),
        )
    fill = [np.dtype(dtype).type(7), np.dtype(dtype).type(3)]
    arguments = {"border": "constant", "dtype": "types.FLOAT"}
    layouts = [layout, None, None]
    check(
        "filter",
        [samples(dtype, shapes), windows, fill],
        arguments,
        layouts,
        relative=1e-4,
        level=1e-3,
    )
