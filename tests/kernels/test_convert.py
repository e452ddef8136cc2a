"""Conversions between dtypes, checked with a table, an exact reference in Python and the real DALI."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from torchdali.kernels.convert import (
    convert,
    convert_number,
    full_scale,
    integer_limits,
    round_half_away,
)

INTEGERS = [
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
]
FLOATS = [torch.float16, torch.float32, torch.float64]
TYPES = [torch.bool, *INTEGERS, *FLOATS]
NAN = {torch.int32: -(2**31), torch.int64: -(2**63), torch.uint64: 2**63}

INTERESTING = [
    *(0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 0.49999997, -0.49999997, 0.49999999999999994, 0.99, -0.99),
    *(1.5, 2.5, -1.5, -2.5, 127.5, -128.5, 254.5, 255.4, 255.5, 300.7, -3, 32767.5, -32768.5),
    *(65519, 65520, 65535.4, 65535.5, 4194304.5, 8388607.5, 8388609, 16777217, 2147483520),
    *(2**31 - 0.5, 2**31, -(2**31), -(2**31) - 256, 3e9, 2**32 - 256, 2**32 - 0.5, 2**32),
    *(4503599627370497.5, 2**53 + 2, 9.2e18, 2**63 - 1024, 2**63, -(2**63), -9.3e18, 1.8e19),
    *(2**64 - 2048, 2**64, 3e19, 1e30, -1e30, 1e6, -1e6, math.inf, -math.inf, math.nan),
]
WHOLE = [
    v
    for power in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)
    for v in (2**power - 1, 2**power, 2**power + 1, -(2**power) + 1, -(2**power), -(2**power) - 1)
]


def reference(value: float, dtype: torch.dtype, rounding: str) -> int | bool:
    """One float or int to an integer type or bool, in exact arithmetic."""
    if math.isnan(value):
        return dtype == torch.bool or NAN.get(dtype, 0)
    if math.isinf(value):
        whole = 2**70 if value > 0 else -(2**70)
    else:
        exact = Fraction(value)
        size = abs(exact) + (Fraction(1, 2) if rounding == "round" else 0)
        whole = math.floor(size) * (1 if exact >= 0 else -1)
    if dtype == torch.bool:
        return whole != 0
    low, high = integer_limits(dtype)
    return min(max(whole, low), high)


def from_list(values: list[Any], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of exactly these values, also of the wide unsigned dtypes."""
    name = str(dtype).removeprefix("torch.")
    return torch.from_numpy(np.array(values, dtype=name))


@pytest.mark.parametrize("rounding", ["round", "truncate"])
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS])
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer(source: torch.dtype, dtype: torch.dtype, rounding: str) -> None:
    with np.errstate(over="ignore"):
        x = from_list(INTERESTING * 3, source)  # long enough for vector code and its tail
    out = convert(x, dtype, rounding=rounding)
    expected = [reference(v, dtype, rounding) for v in x.tolist()]
    assert out.dtype == dtype
    assert out.numpy().tolist() == expected


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS])
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer(source: torch.dtype, dtype: torch.dtype) -> None:
    low, high = integer_limits(source)
    values = [v for v in WHOLE if low <= v <= high]
    out = convert(from_list(values, source), dtype)
    assert out.dtype == dtype
    assert out.numpy().tolist() == [reference(v, dtype, "round") for v in values]


@pytest.mark.parametrize("dtype", TYPES)
def test_bool(dtype: torch.dtype) -> None:
    out = convert(torch.tensor([False, True]), dtype)
    assert out.dtype == dtype
    assert out.tolist() == [0, 1]


def test_same_type_is_not_copied_and_input_stays() -> None:
    x = torch.tensor([-1.5, 0.5, 300.0])
    assert convert(x, torch.float32) is x
    for dtype in TYPES:
        convert(x, dtype)
        convert(x, dtype, rounding="truncate")
    assert x.tolist() == [-1.5, 0.5, 300.0]


def test_narrow_float() -> None:
    x = torch.tensor([1e6, -1e6, math.inf, 65519.0, 0.1])
    assert convert(x, torch.float16).tolist()[:4] == [math.inf, -math.inf, math.inf, 65504.0]
    saturated = convert(x, torch.float16, rounding="truncate")
    assert saturated.tolist()[:4] == [65504.0, -65504.0, 65504.0, 65504.0]
    double = torch.tensor([1e300, math.nan], dtype=torch.float64)
    narrow = convert(double, torch.float32, rounding="truncate")
    assert narrow[0] == torch.finfo(torch.float32).max
    assert narrow[1].isnan()
    half = torch.tensor([math.inf], dtype=torch.float16)
    assert convert(half, torch.float32, rounding="truncate").item() == math.inf


def test_strided_and_empty() -> None:
    x = torch.arange(-6, 6).view(3, 4).t()
    assert convert(x, torch.uint8).tolist() == x.clamp(min=0).tolist()
    wide = from_list([[1, 2**63], [2**64 - 1, 5]], torch.uint64).t()
    assert convert(wide, torch.int64).tolist() == [[1, 2**63 - 1], [2**63 - 1, 5]]
    for dtype in TYPES:
        assert convert(torch.empty(0, 3), dtype).shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_moves_halves_away_from_zero(dtype: torch.dtype) -> None:
    values = [-2.5, -1.5, -0.5, -0.4, 0.5, 1.5, 2.4, math.inf, -math.inf]
    x = torch.tensor(values, dtype=dtype)
    out = round_half_away(x)
    assert out.dtype == dtype
    assert out.tolist() == [-3, -2, -1, 0, 1, 2, 2, math.inf, -math.inf]
    assert x.tolist()[0] == -2.5
    assert round_half_away(torch.tensor([math.nan], dtype=dtype)).isnan().all()


def test_round_half_away_is_exact_below_half() -> None:
    below = torch.tensor([0.49999997, 8388609.0, -4194305.0])
    assert round_half_away(below).tolist() == [0.0, 8388609.0, -4194305.0]


def test_full_scale() -> None:
    expected = {torch.uint8: 255, torch.int8: 127, torch.int16: 32767, torch.uint16: 65535}
    for dtype, scale in expected.items():
        assert full_scale(dtype) == scale
    assert [full_scale(dtype) for dtype in [torch.bool, *FLOATS]] == [1.0] * 4


@pytest.mark.parametrize("rounding", ["round", "truncate"])
@pytest.mark.parametrize("dtype", TYPES)
def test_number(dtype: torch.dtype, rounding: str) -> None:
    for value in [2.5, -2.5, 2.6, 300.0, 1e30, 300, -1, True, 2**65]:
        out = convert_number(value, dtype, rounding=rounding)
        if dtype in FLOATS:
            wide = torch.tensor(float(value), dtype=torch.float64)
            assert out == convert(wide, dtype, rounding=rounding).item()
        else:
            assert out == reference(value, dtype, rounding)


DALI_NAMES = {
    torch.bool: "BOOL",
    torch.float16: "FLOAT16",
    torch.float32: "FLOAT",
    torch.float64: "FLOAT64",
}


def dali_run(operator: Any, x: torch.Tensor, layout: str | None = None) -> np.ndarray[Any, Any]:
    """Output of one DALI operator on one sample."""
    dali = pytest.importorskip(
        "nvidia.dali",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )

    pipe = dali.Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(operator(dali.fn.external_source(lambda: [x.numpy()], layout=layout)))
    (out,) = pipe.run()
    return np.array(out.at(0))


def dali_type(dtype: torch.dtype) -> Any:
    types = pytest.importorskip(
        "nvidia.dali.types",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    name = str(dtype).removeprefix("torch.").upper()
    return getattr(types, DALI_NAMES.get(dtype, name))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32])
@pytest.mark.parametrize("source", [torch.int16, torch.int64, *FLOATS])
def test_slice_truncates_as_dali(source: torch.dtype, dtype: torch.dtype) -> None:
    fn = pytest.importorskip(
        "nvidia.dali.fn",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    values = INTERESTING if source in FLOATS else [0, 1, -1, 127, 300, -300, 32767]
    with np.errstate(over="ignore"):
        x = from_list(values, source).view(1, -1, 1)

    def whole(node: Any) -> Any:
        return fn.slice(node, start=[0], end=[1], axes=[0], dtype=dali_type(dtype))

    real = dali_run(whole, x, layout="HWC")
    np.testing.assert_array_equal(convert(x, dtype, rounding="truncate").numpy(), real)
