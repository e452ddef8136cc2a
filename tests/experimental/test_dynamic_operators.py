"""Every operator of the dynamic mode against a pipeline's, on the cases that the benchmarks have."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from benchmarks.operator_cases import Api, Case
from benchmarks.operator_inputs import FEEDS, batches
from benchmarks.operator_side import CASES
from torchdali import Pipeline, dynamic, fn, math, types
from torchdali.declaration.registry import registry
from torchdali.tensors import TensorList

SIZE = 4
HEIGHT, WIDTH = 24, 32


def _is_random(case: Case) -> bool:
    """Return True for an operator that draws numbers itself; `test_dynamic` has these."""
    declared = registry.get(case.operator)
    return declared is not None and declared.schema.random


# A method of nodes, and a name that the dynamic mode does not have.
ELSEWHERE = frozenset(("shape", "experimental.debayer"))
CHOSEN = [c for c in CASES if not _is_random(c) and c.operator not in ELSEWHERE]


class _Names:
    """A namespace of operators; what those of ``random`` give passes through a function."""

    def __init__(self, names: Any, drawn: Any) -> None:
        self._names, self._drawn = names, drawn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._names, name)
        return _Random(found, self._drawn) if name == "random" else found

    def batch_permutation(self) -> Any:
        return self._drawn(fn.batch_permutation, (), {})


class _Random:
    def __init__(self, names: Any, drawn: Any) -> None:
        self._names, self._drawn = names, drawn

    def __getattr__(self, name: str) -> Any:
        return lambda *inputs, **arguments: self._drawn(
            getattr(self._names, name), inputs, arguments
        )


class _Types:
    """DALI's types, with arrays for constants, which are nodes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(types, name) if name != "Constant" else lambda value, device: value


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _inputs(case: Case) -> list[TensorList]:
    given = batches(case.feed, HEIGHT, WIDTH, case.dtype)
    return [
        TensorList.from_samples([torch.as_tensor(s) for s in batch[:SIZE]], layout)
        for batch, layout in zip(given, FEEDS[case.feed][1], strict=True)
    ]


def _in_a_pipeline(case: Case) -> tuple[list[TensorList], list[TensorList]]:
    """Return the results, and the numbers that were drawn for arguments."""
    drawn: list[Any] = []

    def draw(function: Any, inputs: Any, arguments: Any) -> Any:
        drawn.append(function(*inputs, **arguments))
        return drawn[-1]

    given = _inputs(case)
    pipeline = Pipeline(SIZE, 1, None, seed=3, prefetch_queue_depth=1)
    with pipeline:
        sources = [
            fn.external_source(source=itertools.repeat(v), layout=v.layout(), no_copy=True)
            for v in given
        ]
        results = _several(case.call(Api(_Names(fn, draw), types, math, HEIGHT, WIDTH), *sources))
        pipeline.set_outputs(*results, *drawn)
    outputs = list(pipeline.run())
    return outputs[: len(results)], outputs[len(results) :]


def _dynamically(case: Case, drawn: list[Any], given: list[Any]) -> list[Any]:
    left = iter(drawn)
    names = _Names(dynamic, lambda *_: next(left))
    return _several(case.call(Api(names, _Types(), dynamic.math, HEIGHT, WIDTH), *given))


def _check(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(
            a.nan_to_num() if a.is_floating_point() else a,
            b.nan_to_num() if b.is_floating_point() else b,
        )


@pytest.mark.parametrize("case", CHOSEN, ids=lambda c: c.name)
def test_batches(case: Case) -> None:
    expected, drawn = _in_a_pipeline(case)
    given = [dynamic.as_batch(v) for v in _inputs(case)]
    found = _dynamically(case, [dynamic.as_batch(v) for v in drawn], given)
    for values, wanted in zip(found, expected, strict=True):
        if isinstance(values, dynamic.Tensor):  # made of nothing: one for all samples
            values = dynamic.Batch.broadcast(values, SIZE)
        _check(values._values().samples(), wanted.samples())


@pytest.mark.parametrize("case", CHOSEN, ids=lambda c: c.name)
def test_single_tensors(case: Case) -> None:
    if (declared := registry.get(case.operator)) is not None and declared.kind != "sample":
        pytest.skip("the operator sees the whole batch")
    expected, drawn = _in_a_pipeline(case)
    given = [dynamic.as_batch(v) for v in _inputs(case)]
    for i in range(SIZE):  # the first call of a form prepares it for the others
        numbers = [dynamic.as_batch(v).select(i).evaluate() for v in drawn]
        found = _dynamically(case, numbers, [v.select(i).evaluate() for v in given])
        _check([v.torch() for v in found], [wanted.samples()[i] for wanted in expected])
