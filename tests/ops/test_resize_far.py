"""Resizing by large factors: filters have the same reach as DALI's, and lose no pixel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchdali import fn, types

FILTERS = {types.INTERP_LINEAR: 1.0, types.INTERP_CUBIC: 2.0, types.INTERP_LANCZOS3: 3.0}


@pytest.mark.parametrize("extent", [4096, 4097, 6500, 20_000, 650_000])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_constant_image_is_unchanged(extent, axis):
    shape = (extent, 1, 1) if axis == 0 else (1, extent, 1)
    image = torch.full(shape, 100, dtype=torch.uint8)
    assert fn.resize(image, size=[1, 1], dtype=types.FLOAT).item() == pytest.approx(100, abs=1e-3)


@pytest.mark.parametrize("filter", FILTERS)
def test_a_filter_reaches_4096_pixels_at_most(filter):
    image = torch.zeros((1, 20_000, 1))
    image[0, :5_900] = image[0, 14_100:] = 1000
    assert fn.resize(image, size=[1, 1], interp_type=filter).item() == 0
    image[0, 6_000] = 1e6
    assert abs(fn.resize(image, size=[1, 1], interp_type=filter).item()) > 0.01


def test_below_that_it_reaches_as_far_as_the_factor_says():
    image = torch.zeros((1, 4000, 1))
    image[0, 0] = 8
    assert fn.resize(image, size=[1, 1]).item() == pytest.approx(1.001, abs=1e-3)  # its borders are repeated


@pytest.mark.slow
def test_42_million_pixels_in_a_row():
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 42_000_000, 1), np.uint8))
    for antialias in (True, False):
        value = fn.resize(image, size=[1, 1], dtype=types.FLOAT, antialias=antialias).item()
        assert 0 <= value <= 255
