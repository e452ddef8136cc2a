"""Laws of every operator, over the calls of `tests.calls`: conditions on which a result must not depend.

A sample has the same result by itself, in a batch and in chunks of any size and order, on any threads, in the dynamic mode
and eagerly, and in any memory order; batches without samples have results without samples; inputs are not modified,
and are not results unless the user allows it; a one-element tensor is a number; a too large number is accepted or
rejected. Gradients are in `test_gradients`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tests.calls import BATCH, calls, values
from tests.check import Result, same
from tests.helpers.chunks import divide_into
from tests.helpers.ways import (
    SAMPLES,
    VALUES,
    at_once,
    dynamically,
    evaluate,
    in_a_pipeline,
    on_batches,
    on_single_tensors,
    on_tensors,
    words,
)
from torchdali import Pipeline, fn
from torchdali.declaration.registry import registry
from torchdali.errors import PipelineError
from torchdali.tensors import TensorList

NOT_HERE = {
    "external_source": "is how the values arrive", "experimental.inputs.video": "is fed", "readers.dataset": "has samples of its own", "readers.stream": "ends",
    "experimental.resize": "runs on a GPU", "optical_flow": "runs on a GPU", "decoders.inflate": "needs an extra",
}  # fmt: skip
OF_THE_BATCH = frozenset(("batch_permutation", "permute_batch", "multi_paste", "_normalize_batch", "pad"))
"""Operators that look at all samples of a batch."""
# Code that differs in the dynamic mode: methods and subscripts of nodes, constants as nodes.
OTHERWISE = re.compile(r"\w\[|image\.shape\(|Constant|shapes\(|python_function")
MADE_OF_NOTHING = re.compile(r"fn\.(transforms|constant|full|ones|zeros|combine)\b")

# Tensors that calls return have no layout, and numbers among the inputs no dtype.
NESTED = re.compile(r"fn\..*fn\.|image, place|, place, border")
# Code that eager batches do not support: arithmetic, and inputs that are the same for all samples.
OF_NODES = re.compile(r" [-+*/] |image, place|, np\.|, 7\)|fn\.transforms")
# An argument that is one of these values, unchanged.
MISSHAPEN = {0: ("one number", 2), 1: ("one row of numbers", (1, 1))}
PER_SAMPLE = re.compile(r"(?<!\w)(\w+)=(flip|place|start|shift)(?=[,)])")


def _operators() -> list[str]:
    needs_files = re.compile(r"\b(folder|jpeg|film|wav)\b")
    return [name for name in registry if name not in NOT_HERE and calls(name) and not needs_files.search(" ".join(calls(name)))]


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", _operators())
def test_laws(name: str) -> None:
    before = values()
    for call in calls(name):
        _check(name, call)
    for word, (samples, _) in before.items():
        assert all(map(np.array_equal, samples, VALUES[word][0])), f"{word} was written to"


@pytest.mark.thin(5, 2)
@pytest.mark.parametrize("name", [name for name in _operators() if not registry[name].hidden])
def test_the_order_of_axes_in_memory_does_not_matter(name: str) -> None:
    """Results are equal up to the last bits of sums of floats, which depend on the order."""
    shares = registry[name].has("view")
    for call in calls(name):
        if _is_random(name, call):
            continue
        whole = in_a_pipeline(call, SAMPLES, BATCH)
        _alike(whole, in_a_pipeline(call, SAMPLES, BATCH, transposed=True), f"{call}: transposed")
        if words(call) and call.startswith("fn.") and not (OTHERWISE.search(call) or OF_NODES.search(call)):
            _alike(whole, at_once(call, _in_other_orders, shares), f"{call}: views")


@pytest.mark.thin(5, 3)
@pytest.mark.parametrize("name", _operators())
def test_memory_of_a_source_is_not_delivered(name: str) -> None:
    for call in calls(name):
        pipe = Pipeline(BATCH, 2, None, seed=5)
        with pipe:
            nodes = {word: fn.external_source([VALUES[word][0]], cycle=True, layout=VALUES[word][1] or None) for word in words(call)}
            pipe.set_outputs(*evaluate(call, nodes))
        with pipe:
            delivered = [np.asarray(sample) for output in pipe.run() for sample in output.samples()]
        for word in words(call):
            shared = any(np.may_share_memory(x, y) for x in VALUES[word][0] for y in delivered)
            assert not shared, f"{call}: a result is memory of {word}"


@pytest.mark.thin(5, 1)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", _operators())
def test_large_values_are_accepted_or_rejected(name: str) -> None:
    """Values are rejected by a deliberate error, without a warning of NumPy; and per sample as in a batch."""
    for call in calls(name):
        for word in words(call):
            changed = {word: list(map(_large, VALUES[word][0]))}
            try:
                whole = in_a_pipeline(call, SAMPLES, BATCH, changed=changed)
            except PipelineError as error:
                assert type(error.__cause__) in (RuntimeError, ValueError), f"{call}: {word}"
                continue
            if not _is_of_the_batch(name, call):
                same(whole, in_a_pipeline(call, SAMPLES, 1, changed=changed), f"{call}: large {word}, each sample alone")


def _large(sample: Any) -> Any:
    """Replace numbers by the largest and the smallest integers, or by floats near them."""
    array = np.array(sample)
    limits = (1e30, -1e30) if array.dtype.kind == "f" else (np.iinfo(array.dtype).max, np.iinfo(array.dtype).min)
    return np.resize(np.array(limits, array.dtype), array.shape)


def _in_other_orders(samples: Sequence[Any], layout: str) -> TensorList:
    """Return a batch of views: a transposed sample, and every second element of larger memory."""
    views = []
    for i, tensor in enumerate(torch.from_numpy(np.array(sample)) for sample in samples):
        if i % 2:
            memory = tensor.new_zeros([2 * extent for extent in tensor.shape])
            views.append(memory[(slice(None, None, 2),) * tensor.ndim].copy_(tensor))
        else:
            reverse = tuple(reversed(range(tensor.ndim)))
            views.append(tensor.permute(reverse).contiguous().permute(reverse))
    return TensorList.from_samples(views, layout)


def _alike(one: list[Result], other: list[Result], way: str) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.layout == b.layout, way
        for x, y in zip(a.samples, b.samples, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape, way
            if x.dtype.kind == "f":
                largest = np.abs(x[np.isfinite(x)]).max(initial=0)
                assert np.allclose(x, y, rtol=0, atol=4 * np.finfo(x.dtype).eps * largest, equal_nan=True), way
            else:
                assert np.array_equal(x, y), way


def _forms(name: str) -> set[str]:
    """Return the forms of an operator's batched implementations on the CPU."""
    declared = registry[name]
    return {"ragged"} & declared.chunks.keys() | ({"tensor"} if declared.accepts_tensors else set())


@pytest.mark.thin(5, 4)
@pytest.mark.parametrize("name", [name for name in _operators() if _forms(name)])
def test_a_call_runs_the_batched_implementation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the laws would not cover the implementation."""
    chunks = registry[name].chunks
    done = dict.fromkeys(_forms(name), False)

    def note(form: str, body: Any, *inputs: Any, **arguments: Any) -> Any:
        result = body(*inputs, **arguments)
        done[form] |= result is not NotImplemented
        return result

    for form in done:
        monkeypatch.setitem(chunks, form, functools.partial(note, form, chunks[form]))
    divide_into(BATCH, monkeypatch)
    for call in calls(name):
        in_a_pipeline(call, SAMPLES, BATCH)
    for form, is_done in done.items():
        assert is_done, f"no call of {name} is done by its body for {form!r}: add one on `same`, samples of one shape, to tests/calls.py"


def _check(name: str, call: str) -> None:
    whole = in_a_pipeline(call, SAMPLES, BATCH)
    if not _is_of_the_batch(name, call):
        same(whole, in_a_pipeline(call, SAMPLES, 1), f"{call}: each sample alone")
    for chunk in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            divide_into(chunk, patch)
            same(whole, in_a_pipeline(call, SAMPLES, BATCH), f"{call}: in chunks of {chunk}")
    _check_numbers(name, call, whole)
    if not _is_random(name, call):
        _check_ways(name, call, whole)


def _is_random(name: str, call: str) -> bool:
    return registry[name].schema.random or bool(re.search("random|permutation", call))


def _is_of_the_batch(name: str, call: str) -> bool:
    return name in OF_THE_BATCH or "batch=True" in call


def _check_ways(name: str, call: str, whole: list[Result]) -> None:
    """Assert that deterministic calls return the same in any order, and without a pipeline."""
    is_separable = not _is_of_the_batch(name, call)
    if is_separable:
        same(_part(whole, [2, 0, 1, 0]), in_a_pipeline(call, [2, 0, 1, 0], 2, threads=1), f"{call}: two at a time, others first")
    if registry[name].hidden or OTHERWISE.search(call):
        return
    same(whole, dynamically(call), f"{call}: dynamic mode")
    if is_separable and not MADE_OF_NOTHING.search(call):
        same(whole, on_single_tensors(call), f"{call}: dynamic mode, single tensors")
    if is_separable and call.startswith("fn.") and not MADE_OF_NOTHING.search(call) and not NESTED.search(call):
        same(whole, on_tensors(call), f"{call}: at once, on tensors", layouts=False)
    if words(call) and call.startswith("fn.") and not OF_NODES.search(call):
        _check_batches(name, call, whole)


def _check_batches(name: str, call: str, whole: list[Result]) -> None:
    """Assert that calls on batches, as a list, as one tensor and empty, return the same, in their own memory."""
    shares = registry[name].has("view")
    same(whole, at_once(call, _batch, shares), f"{call}: at once, on batches")
    if all(_is_uniform(VALUES[word][0]) for word in words(call)):
        same(whole, at_once(call, _dense, shares), f"{call}: at once, on batches of one tensor")
        assert [len(batch) for batch in on_batches(call, _empty_tensor)] == [0] * len(whole), f"{call}: a tensor without samples"
    assert [len(batch) for batch in on_batches(call, _empty)] == [0] * len(whole), f"{call}: without samples"


def _check_numbers(name: str, call: str, whole: list[Result]) -> None:
    """Assert that one-element tensors are numbers, and that tensors of two elements are rejected, as is a matrix for a list."""
    arguments = registry[name].schema.arguments
    for argument, word in PER_SAMPLE.findall(call):
        axes = arguments[argument].axes if argument in arguments else None
        ones = [np.full((1, 1) if axes == 0 else 1, x) for x in VALUES[word][0]]
        same(whole, in_a_pipeline(call, SAMPLES, BATCH, changed={word: ones}), f"{call}: {argument} in an array")
        if axes in MISSHAPEN:
            what, shape = MISSHAPEN[axes]
            with pytest.raises(RuntimeError, match=rf"argument '\w+' must be {what} per sample"):
                in_a_pipeline(call, SAMPLES, BATCH, changed={word: [np.full(shape, x) for x in VALUES[word][0]]})


def _is_uniform(samples: Sequence[Any]) -> bool:
    return len({np.shape(sample) for sample in samples}) == 1


def _batch(samples: Sequence[Any], layout: str) -> TensorList:
    return TensorList.from_samples([torch.from_numpy(sample) for sample in samples], layout)


def _dense(samples: Sequence[Any], layout: str) -> TensorList:
    return TensorList.from_dense(torch.from_numpy(np.stack(samples)), layout)


def _empty(samples: Sequence[Any], layout: str) -> TensorList:
    first = torch.from_numpy(samples[0])
    return TensorList.from_samples([], layout, first.dtype, first.ndim)


def _empty_tensor(samples: Sequence[Any], layout: str) -> TensorList:
    return TensorList.from_dense(torch.from_numpy(np.stack(samples)[:0]), layout)


def _part(results: list[Result], samples: list[int]) -> list[Result]:
    return [Result([result.samples[i] for i in samples], result.layout) for result in results]
