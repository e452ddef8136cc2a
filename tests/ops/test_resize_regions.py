"""Sizes and regions of a batch in one call match single samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from torchdali.declaration.schema import Column
from torchdali.ops._on_device import Images
from torchdali.ops._resize import sizing, sizing_of

SIDES = np.array([[40, 31, 500], [60, 90, 375]])
LOW = np.array([[0.0, 3.0], [10.25, 0.1], [499.0, 7.0]])
HIGH = np.array([[40.0, 9.0], [2.5, 90.0], [500.0, 375.0]])  # one is reversed
COUNT = len(LOW)
CASES: dict[str, dict[str, Any]] = {
    "regions of each": {"size": [24.0, 32.0], "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "sizes, too": {"size": Column(np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])), "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "one for all": {"size": [24.0, 32.0], "roi_start": [1.5, 2.0], "roi_end": [20.0, 30.0]},
    "one start": {"size": [24.0, 32.0], "roi_start": [0.0, 0.0], "roi_end": Column(HIGH)},
    "a size to round": {"size": [24.5, 32.0], "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "a size to find out": {"size": [24.0, 0.0], "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "a turned size": {"size": [-24.0, 32.0], "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "nearly nothing": {"size": [24.0, 32.0], "roi_start": Column(LOW), "roi_end": Column(LOW + 1e-5)},
    "one number": {"size": [24.0], "roi_start": Column(LOW), "roi_end": Column(HIGH)},
    "relative": {"size": [24.0, 32.0], "roi_start": [0.1, 0.2], "roi_end": [0.5, 0.6], "roi_relative": True},
    "without a region": {"resize_shorter": 33.0},
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_and_regions_match_single_samples(name: str) -> None:
    images = Images(torch.empty(0), np.zeros(COUNT, np.int64), SIDES, 3, False)
    sizes, regions = sizing_of(images, CASES[name])
    assert regions is not None and regions.shape == (2, 2, COUNT)
    for i, lengths in enumerate(SIDES.T.tolist()):
        row = {k: v.rows(np.float64)[i].tolist() if isinstance(v, Column) else v for k, v in CASES[name].items()}
        size, region = sizing(tuple(lengths), **row)
        assert tuple(np.broadcast_to(sizes, (2, COUNT))[:, i].tolist()) == size
        assert [tuple(pair) for pair in regions[:, :, i].T.tolist()] == list(region)
