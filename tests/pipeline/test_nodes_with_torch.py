"""Nodes in functions of torch, torchvision, NumPy and the standard library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, types
from torchdali.tensors import TensorCPU


def run(define: Callable[[Any, Any], Any]) -> list[Any]:
    """Run with a node of four numbers and an image."""
    pipe = Pipeline(1, 1, None)
    with pipe:
        numbers = fn.constant(fdata=[1.0, 2.0, 3.0, 4.0])
        image = fn.constant(idata=range(12), shape=[2, 2, 3], layout="HWC", dtype=types.UINT8)
        result = define(numbers, image)
        pipe.set_outputs(*(result if isinstance(result, list) else [result]))
    outputs = [np.asarray(output.at(0)) for output in pipe.run()]
    pipe.close()
    return outputs


def transforms() -> Any:
    return pytest.importorskip("torchvision.transforms.v2")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.clamp(x, 0, 1),
        lambda x: torch.nn.ReLU()(x),
        lambda x: transforms().RandomHorizontalFlip(1.0)(x),
        lambda x: transforms().Compose([transforms().ToImage()])(x),
        lambda x: transforms().Resize(4)(x),
    ],
)
def test_errors_of_torch_functions_name_the_alternative(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"represents a batch.*fn\.torch_python_function\(.*batch_processing=False"):
        run(lambda numbers, image: function(image))


def test_arithmetic_with_tensors() -> None:
    tensor = torch.full((4,), 2.0)
    found = run(lambda x, _: [tensor * x, x * tensor, tensor - x, x - tensor, tensor / x, tensor < x])
    x = np.array([1, 2, 3, 4], np.float32)
    for array, expected in zip(found, [2 * x, 2 * x, 2 - x, x - 2, 2 / x, x > 2], strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_a_node_is_not_iterable() -> None:
    with Pipeline(1, 1, None):
        node = fn.constant(idata=[1])
        assert not isinstance(node, Iterable)
        for unpack in (list, lambda n: [*n], lambda n: dict(**{"a": tuple(n)})):
            with pytest.raises(TypeError, match="not iterable"):
                unpack(node)


def test_shapes_can_be_indexed() -> None:
    whole, some, last = run(lambda _, image: [image.shape(), image.shape[:2], image.shape[-1]])
    assert (whole.tolist(), some.tolist(), last.item()) == ([2, 2, 3], [2, 2], 3)


@pytest.mark.parametrize(
    ("plain", "array"),
    [
        (lambda i: fn.flip(i, horizontal=1), lambda i: fn.flip(i, horizontal=np.array([1]))),
        (lambda i: fn.resize(i, resize_x=5.0), lambda i: fn.resize(i, resize_x=np.array([5.0]))),
        (lambda i: fn.rotate(i, angle=30.0), lambda i: fn.rotate(i, angle=np.array([[30.0]]))),
        (lambda i: fn.rotate(i, angle=90.0), lambda i: fn.rotate(i, angle=types.Constant(90))),
        (lambda i: fn.rotate(i, angle=90.0), lambda i: fn.rotate(i, angle=torch.tensor(90.0))),
        (
            lambda i: fn.warp_affine(i, matrix=[1, 0, 1, 0, 1, 0]),
            lambda i: fn.warp_affine(i, matrix=np.array([[1, 0, 1], [0, 1, 0]])),
        ),
        (lambda i: fn.cast(i, dtype=types.INT32), lambda i: fn.cast([i], dtype=types.INT32)),
    ],
)  # fmt: skip
def test_arrays_are_constants(plain: Callable[[Any], Any], array: Callable[[Any], Any]) -> None:
    expected, found = run(lambda _, image: [plain(image), array(image)])
    assert np.array_equal(expected, found)


def test_an_array_of_several_elements_is_not_a_number() -> None:
    with pytest.raises(RuntimeError, match=r"'horizontal' of operator 'flip'.*expected one value, got 2"):
        run(lambda _, image: fn.flip(image, horizontal=np.array([0, 1])))


def test_lists_of_nodes_in_an_argument_name_stack() -> None:
    with pytest.raises(TypeError, match=r"combine several nodes with fn\.stack"):
        run(lambda x, image: fn.resize(image, size=[x, x]))


def test_input_sets_outside_of_a_pipeline() -> None:
    pair = fn.external_source(lambda: None, 2)
    nodes = fn.rotate(pair, angle=90.0)
    assert [type(node).__name__ for node in nodes] == ["DataNode", "DataNode"]


def test_the_old_attribute_of_the_dtype() -> None:
    with pytest.warns(DeprecationWarning, match=r"use '\.dtype'"):
        assert TensorCPU(np.zeros(2, np.uint8)).dtype() == types.UINT8
