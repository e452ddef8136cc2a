"""Extra cases, so that each operator is compared with the real DALI for six argument combinations, three dtypes and two layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

Array = npt.NDArray[Any]
DTYPES = ("uint8", "int16", "float32")
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "HWC": [(4, 5, 3), (6, 3, 3)],
    "CHW": [(3, 4, 5), (3, 6, 3)],
    "HW": [(4, 5), (6, 3)],
}


def batch(dtype: str, layout: str, seed: int = 0) -> list[Array]:
    """Return random samples of two shapes."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -90
    return [rng.integers(low, 120, shape).astype(dtype) for shape in SHAPES[layout]]


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["UINT8", "INT16", "UINT32", "INT64", "FLOAT", "FLOAT64"])
@pytest.mark.parametrize("name", ["ones_like", "zeros_like"])
def test_likes(name: str, dtype: str, layout: str, target: str) -> None:
    check(name, [batch(dtype, layout)], {"dtype": f"types.{target}"}, layout)


PADS: list[dict[str, Any]] = [
    {},
    {"fill_value": 7.0},
    {"axes": [0, 1], "fill_value": -3.0},
    {"axis_names": "W"},
    {"axis_names": "HW", "align": [4, 8]},
    {"axes": [1], "shape": [9]},
    {"axis_names": "HW", "shape": [8, -1], "align": 5},
    {"axis_names": "HW", "shape": [], "align": []},
]


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arguments", PADS, ids=str)
def test_pad(arguments: dict[str, Any], dtype: str, layout: str) -> None:
    check("pad", [batch(dtype, layout)], arguments, layout, over_batch=True)


CATS: list[dict[str, Any]] = [
    {}, {"axis": 1}, {"axis": -1}, {"axis": -2}, {"axis_name": "W"}, {"axis_name": "H"}, {"axis_name": "C"},
]  # fmt: skip


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arguments", CATS, ids=str)
def test_cat(arguments: dict[str, Any], dtype: str, layout: str) -> None:
    check("cat", [batch(dtype, layout, seed) for seed in range(3)], arguments, layout)


SQUEEZES: list[dict[str, Any]] = [
    {"axes": [0]}, {"axes": [2]}, {"axes": [0, 2]}, {"axis_names": "A"}, {"axis_names": "C"}, {"axis_names": "AC"},
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arguments", SQUEEZES, ids=str)
def test_squeeze(arguments: dict[str, Any], dtype: str) -> None:
    samples = [np.arange(n, dtype=dtype).reshape(1, n, 1) for n in (3, 4)]
    check("squeeze", [samples], arguments, "ABC")
    check("squeeze", [[s[..., None] for s in samples]], arguments, "ABCD")


REINTERPRETED: list[dict[str, Any]] = [
    {"layout": "XYZ"},
    {"dtype": "types.UINT8"},
    {"dtype": "types.INT8", "layout": "ABC"},
    {"shape": [-1, 2]},
    {"rel_shape": [0.5, -1]},
    {"src_dims": [1, 0, 2]},
]


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arguments", REINTERPRETED, ids=str)
def test_reinterpret(arguments: dict[str, Any], dtype: str, layout: str) -> None:
    shape = (4, 6, 3) if layout == "HWC" else (2, 4, 6)
    samples = [np.arange(72 if layout == "HWC" else 48).reshape(shape).astype(dtype)] * 2
    check("reinterpret", [samples], arguments, layout)


ENCODED: list[dict[str, Any]] = [
    {"num_classes": 5},
    {"num_classes": 5, "axis": 0},
    {"num_classes": 5, "axis": 1},
    {"num_classes": 3, "on_value": 7.0, "off_value": -1.0},
    {"num_classes": 5, "axis": 0, "axis_name": "N"},
    {"num_classes": 5, "dtype": "types.INT16"},
]


@pytest.mark.parametrize("layout", ["HW", "XY"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
@pytest.mark.parametrize("arguments", ENCODED, ids=str)
def test_one_hot(arguments: dict[str, Any], dtype: str, layout: str) -> None:
    samples = [np.array([[0, 2, 4], [1, 6, 3]], dtype), np.array([[4, 1]], dtype)]
    check("one_hot", [samples], arguments, layout, over_batch=True)


MOMENTS: list[dict[str, Any]] = [
    {"axes": [0, 1], "ddof": 1},
    {"axis_names": "HW"},
    {"axis_names": "HW", "ddof": 3, "keep_dims": True},
    {"axes": [0, 1, 2], "keep_dims": True},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arguments", MOMENTS, ids=str)
@pytest.mark.parametrize("name", ["variance", "std_dev"])
def test_moments(name: str, arguments: dict[str, Any], dtype: str) -> None:
    means: list[Any] = [3.0, -2.0]
    if len(arguments.get("axes", "HW")) == 2:
        means = [[1, 2, 3], [4, 5, 6]]
    mean = [np.array(m, np.float32) for m in means]
    check(
        f"reductions.{name}", [batch(dtype, "HWC"), mean], arguments, ["HWC", None],
        relative=1e-4, level=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"fill_value": 30.0, "mask": PerSample([1, 1])},
        {"fill_value": 9.0, "interp_type": "types.INTERP_LINEAR", "mask": PerSample([0, 1])},
    ],
    ids=str,
)
def test_sphere(arguments: dict[str, Any], dtype: str) -> None:
    samples = [
        np.random.default_rng(3).integers(0, 255, shape).astype(dtype)
        for shape in ((20, 30, 3), (13, 9, 3))
    ]
    check("sphere", [samples], arguments, "HWC", level=1.0)
