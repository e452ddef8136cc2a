"""Equal nodes are computed once, as in DALI."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.experimental.dynamic._structure import freeze
from torchdali.graph.keys import value_key


def run(function: Callable[[], Any], runs: int = 1) -> list[Any]:
    """Return, for each output, the index of the first output that shares its memory."""
    pipe = make(function)
    for _ in range(runs):
        outputs = pipe.run()
    pointers = [output.data_ptr() for output in outputs]
    return [pointers.index(pointer) for pointer in pointers]


def make(function: Callable[[], Any]) -> Pipeline:
    pipe: Pipeline = pipeline_def(
        function, batch_size=3, num_threads=2, device_id=None, enable_conditionals=True, seed=1
    )()
    return pipe


def draw(**arguments: Any) -> Any:
    return fn.random.uniform(range=[0, 1], shape=[4], **{"seed": 7, **arguments})


def test_nodes_with_equal_seeds_are_merged() -> None:
    def define() -> Any:
        a, b, c = draw(), draw(), draw()
        return a, b, c, a[0], b[0], a[0] + b[1] - c[2], b[0] + c[1] - a[2], draw(seed=8)

    assert run(define) == [0, 0, 0, 3, 3, 5, 5, 7]


def test_the_merged_graph_is_explained() -> None:
    text = make(lambda: (draw(), draw())).explain()
    assert text.partition("\n\n")[0].count("random.uniform(") == 1


def test_different_nodes_are_not_merged() -> None:
    def define() -> Any:
        x = draw()
        return (
            draw(name="one"), draw(name="other"), draw(seed=None), draw(seed=None),
            fn.copy(x, preserve=True), fn.copy(x, preserve=True),
            fn.batch_permutation(), fn.batch_permutation(),
            fn.python_function(x, function=same), fn.python_function(x, function=same),
        )  # fmt: skip

    assert run(define) == list(range(10))


def same(x: Any) -> Any:
    return x


def test_sources_are_not_merged() -> None:
    data = [np.float32([1, 2, 3])]

    def define() -> Any:
        return tuple(fn.external_source(data, cycle=True, batch=False) for _ in range(2))

    assert run(define) == [0, 1]


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ({"fdata": [1.0]}, {"fdata": [1.0]}, True),
        ({"fdata": [1.0]}, {"fdata": [2.0]}, False),
        ({"fdata": [0.0]}, {"fdata": [-0.0]}, False),
        ({"fdata": [1.0]}, {"idata": [1]}, False),
        ({"fdata": [1.0], "shape": [1]}, {"fdata": [1.0], "shape": [1, 1]}, False),
    ],
)
def test_nodes_with_equal_arguments_are_merged(one: dict[str, Any], other: dict[str, Any], merged: bool) -> None:
    assert run(lambda: (fn.constant(**one), fn.constant(**other))) == [0, 0 if merged else 1]


@dataclasses.dataclass
class _Options:
    numbers: list[float]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, False),
        (True, 1, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ([1, "a"], [1, "a"], True),
        ([1, 2], (1, 2), False),
        ({"a": [1.0]}, {"a": [1.0]}, True),
        ({"a": 1}, {"a": 2}, False),
        (np.arange(3), np.arange(3), True),
        (np.arange(3), np.arange(3, dtype=np.int32), False),
        (np.arange(3), torch.arange(3), False),
        (types.FLOAT, int(types.FLOAT), False),
        (_Options([1.0]), _Options([1.0]), True),
        (_Options([1.0]), _Options([1]), False),
    ],
)
def test_keys_of_values(one: Any, other: Any, equal: bool) -> None:
    assert (value_key(one) == value_key(other)) == equal == (freeze(one) == freeze(other))


def test_keys_of_objects() -> None:
    first, second = set[int](), set[int]()
    with pytest.raises(TypeError, match="set objects are not compared"):
        value_key([1, {"a": first}])
    assert freeze([first]) == freeze([first]) != freeze([second])
    assert freeze(same) == freeze(same) != freeze(draw)


def test_array_inputs_are_compared_by_value() -> None:
    def define() -> Any:
        arrays = [np.arange(3), np.arange(3), np.arange(3, dtype=np.float32), torch.arange(1, 4)]
        return tuple(fn.copy(array) for array in arrays)

    found = run(define)
    assert found[:2] == [0, 0] and found[2:] == [2, 3]


def test_nodes_under_different_conditions_are_not_merged() -> None:
    def define() -> Any:
        x = draw()
        a = b = c = x
        if x[0] > 0.5:
            a = x + 1
            b = x + 1
        if x[1] > 0.5:
            c = x + 1
        return a, b, c

    pipe = make(define)
    a, b, c = pipe.run()
    assert np.array_equal(a.as_array(), b.as_array())
    x = make(draw).run()[0].as_array()
    assert np.array_equal(a.as_array(), np.where(x[:, :1] > 0.5, x + 1, x))
    assert np.array_equal(c.as_array(), np.where(x[:, 1:2] > 0.5, x + 1, x))


def test_an_if_with_the_same_value_in_both_branches() -> None:
    def define() -> Any:
        a, b = draw(), draw()
        if a[0] > 0.5:
            y = a
        else:
            y = b
        return a, y

    assert run(define) == [0, 0]
