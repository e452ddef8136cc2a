"""Per-sample arguments: samples that are not numbers are rejected, and chains compute arguments. `tests.ops.test_laws` checks each operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.per_sample_cases import NUMBERS, Case, images
from torchdali import fn, pipeline_def, types
from torchdali.declaration.batching import Column
from torchdali.declaration.registry import registry
from torchdali.errors import PipelineError


def run(case: Case, shape: tuple[int, ...], *, chained: bool = False) -> list[np.ndarray]:
    """Run an operator with samples of a shape as its argument; if `chained`, a chain computes them."""
    values = np.array(case.values).astype(np.int32 if isinstance(case.values[0], int) else np.float32)
    given = np.broadcast_to(values.reshape(4, *[1] * len(shape)), (4, *shape)).copy()

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=3)
    def define() -> Any:
        data = fn.external_source(lambda: images(), layout="HWC")
        argument = fn.external_source(lambda: given)
        if chained:  # a per-sample operator, unlike random numbers over the batch
            argument = fn.reductions.sum(fn.stack(argument, argument * 0), axes=[0])
        return case.call(fn, data, argument)

    pipe = define()
    try:
        return [np.asarray(sample) for sample in pipe.run()[0]]
    finally:
        pipe.close()


@pytest.mark.parametrize("name", ["flip", "resize", "brightness"])
def test_samples_of_one_element_that_a_chain_computes_are_numbers(name: str) -> None:
    case = NUMBERS[name]
    for found, wanted in zip(run(case, (1,), chained=True), run(case, ()), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 1)], ids=str)
@pytest.mark.parametrize("name", ["flip", "crop, size", "coin_flip"])
def test_other_shapes_are_rejected(name: str, shape: tuple[int, ...]) -> None:
    case = NUMBERS[name]
    operator = name.partition(",")[0]
    with pytest.raises((PipelineError, RuntimeError), match=rf"{operator}(.|\n)*'{case.argument}' must be one number") as caught:
        run(case, shape)
    assert str(shape) in str(caught.value)


def test_ragged_samples() -> None:
    column = Column([[1], [[2]], 3])
    assert column.shape_values(0, "x").values == [1, 2, 3]
    assert Column([1, [2, 3]]).shape_values(1, "x").values == [[1], [2, 3]]
    with pytest.raises(RuntimeError, match=r"argument 'x' must be one number per sample, but the value of sample 1 has the shape \(2,\)"):
        Column([[1], [2, 3]]).shape_values(0, "x")
    with pytest.raises(RuntimeError, match=r"argument 'x' must be one row of numbers per sample, but the value of sample 1 has the shape \(1, 2\)"):
        Column([[1], [[2, 3]]]).shape_values(1, "x")


LISTS = {
    "slice": ("start", lambda x, v: fn.slice(x, start=v, shape=[1], axes=[0])),
    "resize": ("size", lambda x, v: fn.resize(x, size=v)),
    "decoders.image_crop": ("crop", lambda x, v: fn.decoders.image_crop(fn.cast(x[0, :, 0], dtype=types.UINT8), crop=v)),
    "crop_mirror_normalize": ("mean", lambda x, v: fn.crop_mirror_normalize(x, mean=v)),
    "pad": ("align", lambda x, v: fn.pad(x, align=v)),
    "random.uniform": ("range", lambda x, v: fn.random.uniform(x, range=v)),
    "transforms.translation": ("offset", lambda x, v: fn.transforms.translation(offset=v)),
}
"""An operator, its argument that is a list of numbers, and a call."""


@pytest.mark.parametrize("given", [[[[1]]] * 4, [[[1, 1], [1, 1]]] * 4, [[[1]], [[1, 1]]] * 2], ids=["(1, 1)", "(2, 2)", "ragged"])
@pytest.mark.parametrize("name", LISTS)
def test_a_matrix_is_not_a_list(name: str, given: list[Any]) -> None:
    argument, call = LISTS[name]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def define() -> Any:
        values = fn.external_source(lambda: [np.int32(value) for value in given])
        return call(fn.external_source(lambda: images(), layout="HWC"), values)

    with pytest.raises(PipelineError, match=rf"{name}(.|\n)*'{argument}' must be one row of numbers per sample, but the value") as caught:
        define().run()
    assert str(np.shape(given[0])) in str(caught.value)


def test_a_column_is_an_array_and_python_numbers() -> None:
    column = Column.of(torch.arange(6).view(3, 2))
    assert list(column) == [[0, 1], [2, 3], [4, 5]] and column[1] == [2, 3] and len(column) == 3
    assert column[1:].values == [[2, 3], [4, 5]] and column.rows(np.float32).tolist() == column.values
    assert type(Column.of(torch.ones(2, dtype=torch.uint8))[0]) is int


def test_every_operator_declares_axes() -> None:
    flip, resize, matrix = (registry[n].schema.arguments for n in ("flip", "resize", "warp_affine"))
    assert (flip["horizontal"].axes, resize["size"].axes, resize["resize_x"].axes) == (0, 1, 0)
    assert (matrix["matrix"].axes, matrix["interp_type"].axes) == (2, None)


@pytest.mark.parametrize(
    ("name", "arguments"), [("flip", "horizontal"), ("rotate", "angle"), ("brightness", "brightness")]
)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_only_samples_of_several_elements_fail(name: str, arguments: str, policy: str) -> None:
    given = [np.float32([1]), np.float32([2, 2, 2]), np.float32([0]), np.float32([1])]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, bad_samples=policy)
    def define() -> Any:
        data = fn.external_source(lambda: images(), layout="HWC")
        argument = fn.external_source(lambda: given)
        return getattr(fn, name)(data, **{arguments: argument}), argument

    pipe = define()
    for _ in range(2):
        results, values = pipe.run()
        expected = [0, 2, 3] if policy == "skip" else [0, 0, 2, 3]
        assert len(results) == len(expected)
        assert [v.tolist() for v in values.samples()] == [given[i].tolist() for i in expected]
    assert [(bad.operator, bad.sample) for bad in pipe.bad_sample_report()][:1] == [(name, 1)]
    pipe.close()


def test_all_samples_of_several_elements() -> None:
    given = [np.float32([1] * n) for n in (2, 3, 2, 3)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, bad_samples="skip")
    def define() -> Any:
        data = fn.external_source(lambda: images(), layout="HWC")
        return fn.rotate(data, angle=fn.external_source(lambda: given))

    pipe = define()
    assert len(pipe.run()[0]) == 0
    pipe.close()


@pytest.mark.filterwarnings("error")
def test_read_only_arrays() -> None:
    array = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    array.flags.writeable = False
    assert np.array_equal(fn.flip(array, horizontal=1), array[:, ::-1])
    assert np.array_equal(fn.flip(array[:, ::-1], horizontal=1), array)
