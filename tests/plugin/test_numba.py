"""Functions that Numba compiles, as operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torchdali import Pipeline, fn, pipeline_def, types

pytest.importorskip("numba", reason="Numba is not installed")

from torchdali.plugin.numba.experimental import NumbaFunction
from torchdali.plugin.numba.fn.experimental import numba_function

IMAGES = [np.random.default_rng(i).integers(0, 256, (4 + i, 5, 3), np.uint8) for i in range(3)]


def invert(out: Any, image: Any) -> None:
    out[:] = 255 - image


def turn(out: Any, image: Any) -> None:
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[j, i] = image[i, j]


def turned_shape(outs: Any, ins: Any) -> None:
    for i in range(len(outs[0])):
        outs[0][i][0], outs[0][i][1], outs[0][i][2] = ins[0][i][1], ins[0][i][0], ins[0][i][2]


def both(sums: Any, copies: Any, image: Any) -> None:
    for i in range(len(image)):
        sums[i][0] = image[i].sum()
        copies[i][:] = image[i]


def shapes_of_both(outs: Any, ins: Any) -> None:
    outs[0][:] = 1
    outs[1][:] = ins[0]


def run(**arguments: Any) -> Any:
    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def define() -> Any:
        made = numba_function(fn.external_source(lambda: IMAGES), **arguments)
        return tuple(made) if isinstance(made, list) else made

    return define().run()


U8: dict[str, Any] = {"in_types": [types.UINT8], "ins_ndim": [3]}


@pytest.mark.slow  # compiles
def test_a_function_on_each_sample() -> None:
    (out,) = run(run_fn=invert, out_types=[types.UINT8], outs_ndim=[3], **U8)
    assert all(np.array_equal(out.at(i), 255 - x) for i, x in enumerate(IMAGES))


@pytest.mark.slow
def test_shapes_from_a_function() -> None:
    (out,) = run(run_fn=turn, setup_fn=turned_shape, out_types=types.UINT8, outs_ndim=3, **U8)
    assert all(np.array_equal(out.at(i), x.swapaxes(0, 1)) for i, x in enumerate(IMAGES))


@pytest.mark.slow  # compiles
def test_a_batch_and_two_outputs() -> None:
    same = {**U8, "out_types": [types.INT64, types.UINT8], "outs_ndim": [1, 3]}
    sums, copies = run(run_fn=both, setup_fn=shapes_of_both, batch_processing=True, **same)
    for i, image in enumerate(IMAGES[:3]):
        assert sums.at(i).tolist() == [image.sum()] and np.array_equal(copies.at(i), image)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outs_ndim": [3, 1]}, "must be equal"),
        ({"outs_ndim": [7]}, "0 to 6 dimensions"),
        ({"outs_ndim": [2]}, "setup_fn"),
        ({"ins_ndim": [2]}, "must have the declared 2 dimensions"),
        ({"in_types": [types.FLOAT]}, "must have the declared type float32"),
        ({"device": "gpu"}, "must be 'cpu'"),
        ({"out_types": ["uint8"]}, "types.UINT8"),
    ],
)
def test_mistakes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        run(**{"run_fn": invert, "out_types": [types.UINT8], "outs_ndim": [3], **U8, **arguments})


def test_the_class_counts_its_inputs() -> None:
    with Pipeline(1, 1, None):
        node = fn.external_source(name="x")
        function = NumbaFunction(invert, types.UINT8, types.UINT8, 3, 3)
        with pytest.raises(ValueError, match="declared number of inputs, 1, got 2"):
            function(node, node)


def test_device_is_an_attribute() -> None:
    made = NumbaFunction(invert, types.UINT8, types.UINT8, 3, 3)
    assert (made.device, made.preserve) == ("cpu", False)
