"""Reductions of a single sample."""

from __future__ import annotations

import pytest
import torch

from torchdali.kernels.reduce import spread


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (7,), (5, 1, 3), (0,)], ids=str)
def test_a_mean_of_other_axes_is_refused(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """A mean that does not fit the reduction would be taken for another one in silence."""
    with pytest.raises(RuntimeError, match=r"the mean has the shape .* \(5, 1, 1\)"):
        spread(torch.zeros(5, 7, 3, dtype=dtype), torch.zeros(shape), (1, 2), 0, keep=False)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (1, 3), (1, 1, 3)], ids=str)
def test_a_mean_with_and_without_the_reduced_axes(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """One value, or one a channel, in each form that it may have."""
    x = torch.arange(105).reshape(5, 7, 3).to(dtype)
    mean = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)
    expected = (x.double() - mean.flatten()).square().sum((0, 1)) / 34
    torch.testing.assert_close(
        spread(x, mean, (0, 1), 1, keep=False).double(), expected, rtol=1e-5, atol=0
    )
