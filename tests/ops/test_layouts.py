"""Inputs without a layout: image operators assume a layout and set it on their outputs, as in the real DALI."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchdali
import torchdali.fn
import torchdali.types
from tests import golden
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data

pytestmark = pytest.mark.golden

SHAPES = {2: (12, 10), 3: (12, 10, 3), 4: (2, 12, 10, 3), 5: (2, 3, 12, 10, 3)}

# Name: the call, and the numbers of axes that the real DALI accepts without a layout. (Without one, its grid_mask
# writes past the end of the data.)
OPERATORS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "flip": (lambda fn, t, x: fn.flip(x), (3, 4, 5)),
    "crop": (lambda fn, t, x: fn.crop(x, crop=(4, 4)), (3, 4)),
    "crop_mirror_normalize": (
        lambda fn, t, x: fn.crop_mirror_normalize(x, crop=(4, 4), dtype=t.FLOAT, mean=1.0, std=1.0),
        (3,),
    ),
    "slice": (lambda fn, t, x: fn.slice(x, [0.1, 0.1], [0.5, 0.5], axes=(0, 1)), (2, 3, 4)),
    "resize": (lambda fn, t, x: fn.resize(x, size=(5, 5)), (3, 4)),
    "random_resized_crop": (lambda fn, t, x: fn.random_resized_crop(x, size=(5, 5)), (3, 4)),
    "resize_crop_mirror": (
        lambda fn, t, x: fn.resize_crop_mirror(x, size=(6, 6), crop=(4, 4)), (3, 4),
    ),
    "rotate": (lambda fn, t, x: fn.rotate(x, angle=10.0), (3, 4)),
    "warp_affine": (lambda fn, t, x: fn.warp_affine(x, matrix=[1, 0, 0, 0, 1, 0]), (3, 4)),
    "brightness": (lambda fn, t, x: fn.brightness(x), (3, 4)),
    "contrast": (lambda fn, t, x: fn.contrast(x), (3, 4)),
    "brightness_contrast": (lambda fn, t, x: fn.brightness_contrast(x), (3, 4)),
    "hue": (lambda fn, t, x: fn.hue(x, hue=3.0), (3, 4)),
    "saturation": (lambda fn, t, x: fn.saturation(x), (3, 4)),
    "hsv": (lambda fn, t, x: fn.hsv(x), (3, 4)),
    "color_twist": (lambda fn, t, x: fn.color_twist(x), (3, 4)),
    "color_space_conversion": (
        lambda fn, t, x: fn.color_space_conversion(x, image_type=t.RGB, output_type=t.BGR), (3, 4, 5),
    ),
    "gaussian_blur": (lambda fn, t, x: fn.gaussian_blur(x, window_size=3), (2, 3)),
    "laplacian": (lambda fn, t, x: fn.laplacian(x), (2, 3)),
    "paste": (lambda fn, t, x: fn.paste(x, fill_value=0, ratio=2.0), (3,)),
    "pad": (lambda fn, t, x: fn.pad(x), (2, 3, 4, 5)),
    "erase": (lambda fn, t, x: fn.erase(x, anchor=(0.0, 0.0), shape=(2.0, 2.0), axes=(0, 1)), (3, 4)),
    "jpeg": (lambda fn, t, x: fn.jpeg_compression_distortion(x), (3, 4)),
    "equalize": (lambda fn, t, x: fn.equalize(x), (2, 3, 4)),
    "debayer": (lambda fn, t, x: fn.debayer(x, blue_position=[0, 0]), (2,)),
    "sphere": (lambda fn, t, x: fn.sphere(x), (3,)),
    "water": (lambda fn, t, x: fn.water(x), (3,)),
    "normalize": (lambda fn, t, x: fn.normalize(x), (2, 3, 4)),
    "salt_and_pepper": (lambda fn, t, x: fn.noise.salt_and_pepper(x), (3,)),
    "cast": (lambda fn, t, x: fn.cast(x, dtype=t.FLOAT), (2, 3, 4, 5)),
    "flip, then crop": (lambda fn, t, x: fn.crop(fn.flip(x), crop=(4, 4)), (4,)),
    "cast, then flip": (lambda fn, t, x: fn.flip(fn.cast(x, dtype=t.FLOAT)), (3, 4, 5)),
    "crop, then flip": (lambda fn, t, x: fn.flip(fn.crop(x, crop=(4, 4))), (3, 4)),
    "stack, then flip": (lambda fn, t, x: fn.flip(fn.stack(x, x, axis=1)), (2, 3, 4)),
    "reshape, then rotate": (lambda fn, t, x: fn.rotate(fn.reshape(x, shape=[4, -1, 1]), angle=0.0), (2, 3)),
    "shape of a name": (lambda fn, t, x: fn.slice(fn.flip(x), 1, 5, axis_names="W"), (3, 4)),
}  # fmt: skip
CASES = [(name, ndim) for name, (_, taken) in OPERATORS.items() for ndim in taken]


def pipeline(package: Any, fn: Any, types: Any, name: str, ndim: int, **options: Any) -> Any:
    @package.pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=1, **options)
    def define() -> Any:
        data = [np.full(SHAPES[ndim], 7, np.uint8)] * 2
        return OPERATORS[name][0](fn, types, fn.external_source(source=lambda: data))

    pipe = define()
    pipe.build()
    return pipe


@golden.answered
def read_layout(library: str, name: str, ndim: int, **options: Any) -> tuple[str, list[tuple[int, ...]]]:
    """Return the layout and the shapes of the output."""
    package, fn, types = (importlib.import_module(library + part) for part in ("", ".fn", ".types"))
    pipe = pipeline(package, fn, types, name, ndim, **options)
    (output,) = pipe.run()
    if library == "torchdali":
        pipe.close()
    return output.layout(), [tuple(shape) for shape in output.shape()]


@pytest.mark.parametrize(("name", "ndim"), CASES, ids=str)
def test_the_layout_of_the_output(name: str, ndim: int) -> None:
    expected = read_layout("nvidia.dali", name, ndim, prefetch_queue_depth=1)
    for debug in (False, True):
        assert read_layout("torchdali", name, ndim, debug=debug) == expected


@pytest.mark.usefixtures("own_operators")
def test_a_layout_never_names_more_or_fewer_axes_than_there_are() -> None:
    """A user operator that drops an axis keeps no layout, in every execution mode."""

    @operator(name="_first_row")
    def first_row(data: Data, /) -> Data:
        return data[0]

    for debug in (False, True):

        @torchdali.pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=debug)
        def define() -> Any:
            source = lambda: [np.zeros((4, 5, 3), np.uint8)] * 2  # noqa: E731
            return first_row(torchdali.fn.external_source(source=source, layout="HWC"))

        pipe = define()
        assert [pipe.run()[0].layout() for _ in range(3)] == ["", "", ""]
        pipe.close()
