"""Execution modes of calls in `tests.calls`: in a pipeline, in the dynamic mode, eagerly on tensors and on batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tests.calls import BATCH, names_of, values
from tests.check import Result
from torchdali import Pipeline, dynamic, fn, math, types
from torchdali.tensors import TensorCPU, TensorList

__all__ = [
    "SAMPLES", "VALUES", "at_once", "dynamically", "evaluate", "in_a_pipeline", "on_batches", "on_single_tensors", "on_tensors", "words",
]  # fmt: skip

VALUES = values()
SAMPLES = list(range(BATCH))
Named = dict[str, Any]


def words(call: str) -> list[str]:
    """Return the names of `tests.calls.values` that a call contains."""
    return sorted(names_of(call) & VALUES.keys())


def evaluate(call: str, named: Named, of: Any = fn, mathematics: Any = math) -> list[Any]:
    """Evaluate a call with values for its names; return its outputs."""
    outputs = eval(call, {"fn": of, "types": types, "math": mathematics, "np": np, "device": "cpu", **named})
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def in_a_pipeline(
    call: str, samples: Sequence[int], size: int, threads: int = 2, changed: Mapping[str, list[Any]] | None = None,
    transposed: bool = False,
) -> list[Result]:  # fmt: skip
    """Return the outputs for some of the samples, in batches of a size.

    Args:
        changed: Other samples of some names.
        transposed: The axes of samples are reversed in memory.
    """
    batches = [samples[i : i + size] for i in range(0, len(samples), size)]
    pipe = Pipeline(size, threads, None, seed=5, prefetch_queue_depth=1)

    def node(name: str) -> Any:
        data, layout = VALUES[name]
        data = (changed or {}).get(name, data)
        turned = transposed and np.ndim(data[0]) > 1
        if turned:
            data, layout = [np.ascontiguousarray(x.T) for x in data], layout[::-1]
        batch = fn.external_source(lambda number: [data[i] for i in batches[number % len(batches)]], layout=layout or None, no_copy=True)
        return fn.transpose(batch) if turned else batch

    with pipe:
        pipe.set_outputs(*evaluate(call, {name: node(name) for name in words(call)}))
    with pipe:
        runs = [pipe.run() for _ in batches]
        columns = zip(*runs, strict=True)
        return [Result([np.array(b.at(i)) for b in each for i in range(len(b))], each[0].layout()) for each in columns]


def dynamically(call: str) -> list[Result]:
    """Return the outputs of the dynamic mode for all samples; a result without inputs is the same for all."""
    batches = {name: dynamic.as_batch(data, layout=layout or None) for name, (data, layout) in _named(call)}
    outputs = evaluate(call, batches, dynamic, dynamic.math)
    whole = [dynamic.Batch.broadcast(each, BATCH) if isinstance(each, dynamic.Tensor) else each for each in outputs]
    return [Result([np.asarray(sample) for sample in each.cpu().evaluate()], each.layout or "") for each in whole]


def on_single_tensors(call: str) -> list[Result]:
    """Return the outputs of the dynamic mode on single tensors."""
    runs = []
    for i in SAMPLES:
        tensors = {name: dynamic.as_tensor(data[i], layout=layout or None) for name, (data, layout) in _named(call)}
        runs.append([each.cpu().evaluate() for each in evaluate(call, tensors, dynamic, dynamic.math)])
    return [Result([np.asarray(x) for x in each], each[0].layout or "") for each in zip(*runs, strict=True)]


def on_tensors(call: str) -> list[Result]:
    """Return the outputs of eager calls on tensors, which run an operator's per-sample implementation."""
    runs = [evaluate(call, {name: _at_hand(data[i], layout) for name, (data, layout) in _named(call)}) for i in SAMPLES]
    return [Result([np.asarray(x) for x in each], "") for each in zip(*runs, strict=True)]


def on_batches(call: str, make: Callable[[Sequence[Any], str], TensorList], shares: bool = True) -> list[TensorList]:
    """Return the outputs of an eager call on batches; no other code holds their tensors.

    Args:
        shares: A result may share memory with an input.
    """
    given = {name: make([np.array(x) for x in data], layout) for name, (data, layout) in _named(call)}
    outputs = evaluate(call, given)
    for name, batch in given.items():
        arrays = [np.asarray(sample) for sample in batch.samples()]
        assert all(map(np.array_equal, arrays, VALUES[name][0])), f"{call}: {name} was written to"
        results = [np.asarray(sample) for output in outputs for sample in output.samples()]
        assert shares or not any(np.may_share_memory(a, b) for a in arrays for b in results), f"{call}: a result is memory of {name}"
    return outputs


def at_once(call: str, make: Callable[[Sequence[Any], str], TensorList], shares: bool) -> list[Result]:
    """Return the results of `on_batches` as arrays."""
    outputs = on_batches(call, make, shares)
    return [Result([np.array(each.at(i)) for i in range(len(each))], each.layout()) for each in outputs]


def _named(call: str) -> list[tuple[str, tuple[list[Any], str]]]:
    return [(name, VALUES[name]) for name in words(call)]


def _at_hand(sample: Any, layout: str) -> Any:
    if np.ndim(sample) == 0:
        return sample
    tensor = torch.from_numpy(sample)
    return TensorCPU(tensor, layout) if layout else tensor
