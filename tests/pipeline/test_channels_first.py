"""Channels-first images without a layout: one warning, on the operator's line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torchdali import fn, pipeline_def


def run(shape: tuple[int, ...], layout: str | None = None, batches: int = 3) -> Any:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def pipe() -> Any:
        images = fn.external_source(source=lambda: [np.zeros(shape, np.uint8)] * 2, layout=layout)
        return fn.resize(images, size=(20, 20))

    with pipe() as built:
        return [built.run()[0].shape()[0] for _ in range(batches)]


FILTERS: dict[str, Callable[[Any], Any]] = {
    "gaussian_blur": lambda images: fn.gaussian_blur(images, sigma=1.0),
    "laplacian": fn.laplacian,
}
ASSUMING: dict[str, Callable[[Any], Any]] = {
    "filter": lambda images: fn.filter(images, np.ones((3, 3), np.float32)),
    "experimental.median_blur": fn.experimental.median_blur,
    "grid_mask": fn.grid_mask,
    "rotate": lambda images: fn.rotate(images, angle=30.0),
    "flip": fn.flip,
}


def call(function: Callable[[Any], Any], shape: tuple[int, ...], layout: str | None = None) -> None:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def pipe() -> Any:
        return function(fn.external_source(source=lambda: [np.zeros(shape, np.uint8)] * 2, layout=layout))

    with pipe() as built:
        built.run()


@pytest.mark.parametrize("shape, layout", [((3, 50, 40), "CHW"), ((50, 40, 3), "HWC"), ((50, 40, 4), "HWC")])
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_along_every_axis_mixes_the_colors(name: str, shape: tuple[int, ...], layout: str) -> None:
    with pytest.warns(UserWarning, match=f'^{name}: samples .* filtered along all three axes.*mixes.*"{layout}"$') as said:
        call(FILTERS[name], shape)
    assert len(said) == 1 and said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(FILTERS[name], shape, layout)
        call(FILTERS[name], (50, 40, 1))
        call(FILTERS[name], (50, 40))


@pytest.mark.parametrize("name", ASSUMING)
def test_all_operators_that_assume_the_channels_last(name: str) -> None:
    with pytest.warns(UserWarning, match=f"^{name}: .*interpreted as HWC, images of 3 rows") as said:
        call(ASSUMING[name], (3, 50, 40))
    assert len(said) == 1


def of_dataset(shape: tuple[int, ...], **arguments: Any) -> Any:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        images, _ = fn.readers.dataset(dataset=[(np.zeros(shape, np.uint8), 1)] * 4, **arguments)
        return fn.crop_mirror_normalize(images)

    with pipe() as built:
        return built.run()[0].shape()[0]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_source(channels: int) -> None:
    with pytest.warns(UserWarning, match=rf"resize: samples of the shape \({channels}, 50, 40\) without a layout are interpreted as HWC") as said:
        assert run((channels, 50, 40)) == [(20, 20, 40)] * 3  # as in DALI
    assert len(said) == 1 and said[0].filename == __file__


def test_a_dataset() -> None:
    with pytest.warns(UserWarning, match=r'crop_mirror_normalize: samples of the shape \(3, 50, 40\).*layout="CHW"'):
        of_dataset((3, 50, 40))


@pytest.mark.parametrize(
    "shape, layout", [((3, 50, 40), "CHW"), ((50, 40, 3), None), ((3, 50, 3), None), ((3, 4, 4), None), ((5, 50, 40), None)]
)
def test_other_pipelines_do_not_warn(shape: tuple[int, ...], layout: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(shape, layout)
        of_dataset(shape, **({} if layout is None else {"layouts": [layout, ""]}))
