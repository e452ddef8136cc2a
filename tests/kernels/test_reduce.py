"""Reductions of a single sample."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from torchdali.kernels.reduce import extreme, variance_of


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (7,), (5, 1, 3), (0,)], ids=str)
def test_a_mean_of_other_axes_is_refused(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """A mean of another shape would silently be misinterpreted."""
    with pytest.raises(RuntimeError, match=r"the mean must be one value or have the shape .*\(5, 1, 1\)"):
        variance_of(torch.zeros(5, 7, 3, dtype=dtype), torch.zeros(shape), (1, 2), 0, keepdim=False)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (1, 3), (1, 1, 3)], ids=str)
def test_a_mean_with_and_without_the_reduced_axes(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """One value, or one per channel, in each form."""
    x = torch.arange(105).reshape(5, 7, 3).to(dtype)
    mean = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)
    expected = (x.double() - mean.flatten()).square().sum((0, 1)) / 34
    torch.testing.assert_close(
        variance_of(x, mean, (0, 1), 1, keepdim=False).double(), expected, rtol=1e-5, atol=0
    )


NAN, INFINITY, MOST = math.nan, math.inf, torch.finfo(torch.float32).max
# values, axes; the largest and the smallest
EXTREMES: dict[str, tuple[Any, tuple[int, ...], Any, Any]] = {
    "nan in the middle": ([1.0, NAN, 2.0], (0,), 2.0, 1.0), "nan first": ([NAN, 1.0, 2.0], (0,), 2.0, 1.0),
    "nan last": ([1.0, 2.0, NAN], (0,), 2.0, 1.0), "nan alone": ([NAN, NAN], (0,), -MOST, MOST),
    "columns": ([[1.0, NAN], [NAN, NAN], [NAN, 4.0]], (0,), [1.0, 4.0], [1.0, 4.0]),
    "rows": ([[1.0, NAN], [NAN, NAN], [NAN, 4.0]], (1,), [1.0, -MOST, 4.0], [1.0, MOST, 4.0]),
    "all": ([[1.0, NAN], [NAN, NAN], [NAN, 4.0]], (0, 1), 4.0, 1.0),
    "infinity": ([INFINITY, NAN, -INFINITY], (0,), INFINITY, -INFINITY),
    "infinity alone": ([-INFINITY, NAN], (0,), -MOST, -INFINITY), "no axes": ([1.0, NAN], (), [1.0, NAN], [1.0, NAN]),
}  # fmt: skip


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("case", EXTREMES)
def test_extremes_ignore_nan(case: str, gradient: bool) -> None:
    values, axes, largest, smallest = EXTREMES[case]
    x = torch.tensor(values, requires_grad=gradient)
    for expected, is_largest in ((largest, True), (smallest, False)):
        found = extreme(x, axes, keepdim=False, largest=is_largest)
        torch.testing.assert_close(found.detach(), torch.tensor(expected), rtol=0, atol=0, equal_nan=True)
        assert found.requires_grad == gradient
