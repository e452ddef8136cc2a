"""Numbers that are passed as arrays of any kind: as arguments of every operator, as inputs, operands and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import smooth_image
from torchdali import dynamic as ndd
from torchdali import fn, math, ops, pipeline_def, types
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Argument


class Foreign:
    """An array of another library, like arrays of pandas or JAX."""

    def __init__(self, value: Any) -> None:
        self._value = np.array(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._value.astype(dtype or self._value.dtype)


def every_second(value: Any) -> torch.Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float64)
    return torch.stack([tensor, tensor + 7], -1)[..., 0]


FORMS: dict[str, Callable[[Any], Any]] = {
    "array": np.array,
    "float32": lambda v: np.array(v, np.float32),
    "int16": lambda v: np.array(v, np.int16),
    "other byte order": lambda v: np.array(v, ">f4"),
    "backwards": lambda v: np.array(v)[..., ::-1].copy()[..., ::-1] if np.ndim(v) else np.array(v),
    "read-only": lambda v: np.broadcast_to(np.array(v), np.shape(v)),
    "in columns": lambda v: np.array(v, order="F"),
    "tensor": torch.tensor,
    "requires grad": lambda v: torch.tensor(v, dtype=torch.float32, requires_grad=True),
    "parameter": lambda v: torch.nn.Parameter(torch.tensor(v, dtype=torch.float32)),
    "float64": lambda v: torch.tensor(v, dtype=torch.float64),
    "half": lambda v: torch.tensor(v, dtype=torch.float16),
    "bfloat16": lambda v: torch.tensor(v, dtype=torch.bfloat16),
    "not contiguous": every_second,
    "negated": lambda v: torch.tensor(v, dtype=torch.complex64).conj().mul(1j).real.neg().neg() * 0 + torch.tensor(v),
    "of another library": Foreign,
}
LISTS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "list of numbers of NumPy": lambda v: list(np.array(v)),
    "list of tensors": lambda v: [torch.tensor(each) for each in v],
    "list of tensors that require grad": lambda v: [torch.tensor(each, dtype=torch.float32, requires_grad=True) for each in v],
    "list of arrays": lambda v: [np.array(each) for each in v],
    "list of arrays of another library": lambda v: [Foreign(each) for each in v],
}  # fmt: skip
SCALARS = {**FORMS, "float32 of NumPy": np.float32, "int64 of NumPy": np.int64, "list of a tensor": lambda v: [torch.tensor(v)]}


def arguments() -> Iterator[tuple[str, Argument]]:
    for name, declared in registry.items():
        for argument in declared.schema.arguments.values():
            if argument.axes is not None:
                yield f"{name}({argument.name})", argument


@pytest.mark.parametrize("form", {**SCALARS, **LISTS})
def test_all_arguments_of_all_operators(form: str) -> None:
    """They arrive like Python numbers."""
    count = 0
    for title, argument in arguments():
        make = ({**FORMS, **LISTS} if argument.axes else SCALARS).get(form)
        if make is None:
            continue
        value: Any = 1 if argument.axes == 0 else [1, 2, 3]
        expected, got = argument.convert(value), argument.convert(make(value))
        assert (got, type(got)) == (expected, type(expected)), title
        if argument.axes:
            assert list(map(type, got)) == list(map(type, expected)), title
        count += 1
    assert count > 250


MEAN, DEVIATION = [[[10.0, 20.0, 30.0]]], [[[2.0, 4.0, 8.0]]]
ANCHORS = [[1, 2], [3, 0]]
IMAGE = smooth_image(6, 5)


def pasted(images: Any, library: Any, **named: Any) -> Any:
    return library.multi_paste(images, images, output_size=[16, 12], shapes=[[2, 3], [3, 1]], **named)


CALLS: dict[str, tuple[Any, Callable[[Any, Any, Any], Any]]] = {
    "normalize": (MEAN, lambda lib, x, v: lib.normalize(x, mean=v, stddev=4.0)),
    "normalize, deviation": (DEVIATION, lambda lib, x, v: lib.normalize(x, stddev=v)),
    "normalize, both": (DEVIATION, lambda lib, x, v: lib.normalize(x, mean=v, stddev=v)),
    "normalize, axes": (MEAN, lambda lib, x, v: lib.normalize(x, mean=v, stddev=2, axes=[0, 1])),
    "normalize, a number": (12, lambda lib, x, v: lib.normalize(x, mean=v, stddev=4.0)),
    "normalize, two numbers": (12, lambda lib, x, v: lib.normalize(x, mean=v, stddev=v)),
    "normalize, the batch": (MEAN, lambda lib, x, v: lib.normalize(x, mean=v, batch=True)),
    "multi_paste": (ANCHORS, lambda lib, x, v: pasted(x, lib, out_anchors=v)),
    "multi_paste, two": (ANCHORS, lambda lib, x, v: pasted(x, lib, out_anchors=[[5, 6], [0, 1]], in_anchors=v)),
    "multi_paste, shapes": ([[2, 3], [3, 1]], lambda lib, x, v: lib.multi_paste(x, x, output_size=[9, 9], shapes=v)),
    "crop_mirror_normalize": ([10, 20, 30], lambda lib, x, v: lib.crop_mirror_normalize(x, mean=v, std=[2, 3, 4])),
    "warp_affine": ([[1, 0, 1], [0, 1, 2]], lambda lib, x, v: lib.warp_affine(x, matrix=v)),
    "color_twist": (2, lambda lib, x, v: lib.color_twist(x, contrast=v)),
    "resize": ([3, 4], lambda lib, x, v: lib.resize(x, size=v)),
    "erase": ([1, 2], lambda lib, x, v: lib.erase(x, anchor=v, shape=[2, 2])),
}  # fmt: skip
# float16 and bfloat16 represent these numbers, too: no call depends on the dtype of its argument.
OF_CALLS = {**FORMS, **{name: LISTS[name] for name in ("list of tensors", "list of arrays of another library")}}


def in_pipeline(call: Callable[[Any, Any, Any], Any], value: Any) -> Any:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        return call(fn, fn.external_source(lambda: [IMAGE] * 2, layout="HWC"), value)

    return pipe().run()[0].as_array()


def at_once(call: Callable[[Any, Any, Any], Any], value: Any) -> Any:
    from torchdali.tensors import TensorList

    return call(fn, TensorList.from_samples([torch.from_numpy(IMAGE)] * 2, "HWC"), value).as_array()


@pytest.mark.thin(7)
@pytest.mark.parametrize("form", OF_CALLS)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, form: str) -> None:
    value, call = CALLS[name]
    if form in LISTS and np.ndim(value) == 0:
        pytest.skip("a number has no list")
    if np.ndim(value) == 2 and form in LISTS and name == "warp_affine":
        pytest.skip("a matrix is a flat list, in DALI too")
    plain = np.array(value) if name == "warp_affine" else value
    for run in (in_pipeline, at_once):
        np.testing.assert_array_equal(run(call, OF_CALLS[form](value)), run(call, plain))


@pytest.mark.parametrize("form", FORMS)
def test_classes_and_dynamic_mode(form: str) -> None:
    value = FORMS[form](MEAN)
    expected = (IMAGE - np.float32([10, 20, 30])) / 4

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe() -> Any:
        return ops.Normalize(mean=value, stddev=4)(fn.external_source(lambda: [IMAGE], layout="HWC"))

    np.testing.assert_allclose(pipe().run()[0].as_array()[0], expected, atol=1e-5)
    if form not in ("other byte order", "bfloat16", "of another library", "negated"):  # a batch cannot hold them
        got = ndd.normalize(ndd.as_tensor(torch.from_numpy(IMAGE), layout="HWC"), mean=value, stddev=4)
        np.testing.assert_allclose(np.asarray(got.cpu()), expected, atol=1e-5)


OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "behind": lambda x, v: x + v,
    "math": math.min,
    "a constant": lambda x, v: x - types.Constant(v),
    "a constant of a type": lambda x, v: x * types.Constant(v, dtype=types.FLOAT),
    "fdata": lambda x, v: x + fn.constant(fdata=v),
    "an input": lambda x, v: fn.stack(x, fn.cast(v, dtype=types.FLOAT)),
    "an output": lambda x, v: v,
    "a condition": lambda x, v: x < v,
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPERANDS)
def test_operands_inputs_and_outputs(name: str, form: str) -> None:
    def values(given: Any) -> Any:
        @pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipe() -> Any:
            return OPERANDS[name](fn.external_source(lambda: [np.float32([4, 0, 2])] * 2), given)

        return pipe().run()[0].as_array()

    if form == "half" and name in ("behind", "math", "a constant", "a condition"):
        pytest.skip("arithmetic on the CPU does not take float16, as in DALI")
    np.testing.assert_array_equal(values(FORMS[form]([1, 2, 3])), values(np.float32([1, 2, 3])))


@pytest.mark.thin(3)
@pytest.mark.parametrize("form", SCALARS)
@pytest.mark.parametrize("use", [lambda x, v: x + v, lambda x, v: v * x, lambda x, v: x < v, lambda x, v: x - types.Constant(v)])
def test_numbers_as_operands(form: str, use: Callable[[Any, Any], Any]) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe(given: Any) -> Any:
        return use(fn.external_source(lambda: [np.float32([4, 0, 2])]), given)

    if form == "half":
        pytest.skip("arithmetic on the CPU does not take float16, as in DALI")
    values = pipe(SCALARS[form](1)).run()[0].as_array()
    np.testing.assert_array_equal(values, pipe(1).run()[0].as_array())
