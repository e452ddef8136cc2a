"""Check an operator in every execution mode, against the real DALI or a slow reference.

`check` runs a case in a pipeline. It runs the first case of a kind also through the class API, in the dynamic mode, and
eagerly on the batch, on each single sample, on a uniform batch (one tensor) and on an empty batch; with
TORCHDALI_ALL_WAYS in the environment, it does so for each case. All results must agree. The inputs are never copied
before the call, so an operator that writes to its input, or returns memory of it, fails. `dali` returns the results
of the real DALI for the same case (see `tests.golden`).
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tests import golden
from tests.helpers import parity_table
from tests.helpers.answers import Array, Result
from tests.helpers.inside import storage_of
from torchdali.declaration.registry import registry
from torchdali.tensors import TensorCPU, TensorList


class PerSample(list):  # type: ignore[type-arg]
    """Values of an argument, one per sample; becomes an edge of the graph."""


def pipeline(
    library: str,
    name: str,
    inputs: Sequence[Sequence[Array]],
    arguments: Mapping[str, Any],
    layouts: str | Sequence[str | None] | None = None,
    *,
    classes: bool = False,
    stacked: bool = False,
    **pipeline_arguments: Any,
) -> list[Result]:
    """Run one operator on one batch in a pipeline of ``torchdali`` or ``nvidia.dali`` (see `golden`).

    Args:
        library: ``"torchdali"`` or ``"nvidia.dali"``.
        name: Dotted name in ``fn``.
        inputs: One list of samples per input.
        arguments: Constants, and `PerSample` values. Enum members are passed by name: ``"types.FLOAT"``.
        layouts: Of the inputs.
        classes: Use the class API (torchdali only).
        stacked: Pass each input as one array; its samples have one shape.
    """
    if library == "torchdali":
        return _run(library, name, inputs, arguments, layouts, classes, stacked, pipeline_arguments)
    question = ("pipeline", name, inputs, arguments, layouts, pipeline_arguments)
    return golden.answer(question, lambda: _run(library, name, inputs, arguments, layouts, False, False, pipeline_arguments))


def _run(
    library: str,
    name: str,
    inputs: Sequence[Sequence[Array]],
    arguments: Mapping[str, Any],
    layouts: str | Sequence[str | None] | None,
    classes: bool,
    stacked: bool,
    pipeline_arguments: Mapping[str, Any],
) -> list[Result]:
    package = importlib.import_module(library)
    fn = importlib.import_module(f"{library}.fn")
    types = importlib.import_module(f"{library}.types")
    given: list[Any] = [[np.asarray(s) for s in samples] for samples in inputs]
    if stacked:
        given = [np.stack(samples) for samples in given]
    size = (
        len(inputs[0])
        if inputs
        else next(len(v) for v in arguments.values() if isinstance(v, PerSample))
    )

    def source(batch: Any, layout: str | None = None) -> Any:
        return fn.external_source(source=lambda: batch, layout=layout, no_copy=True)

    settings = {
        "batch_size": max(size, 1),
        "num_threads": 2,
        "device_id": None,
        "seed": 1,
        **pipeline_arguments,
    }

    @package.pipeline_def(**settings)
    def define() -> Any:
        layout_of = _each(layouts, len(given))
        nodes = [source(batch, layout) for batch, layout in zip(given, layout_of, strict=True)]
        function = _function(fn, name)
        made = {k: _value(v, types, source) for k, v in arguments.items()}
        if classes:
            function = _class_of(function)(**made)
            made = {}
        results = function(*nodes, **made)
        return tuple(results) if isinstance(results, list) else results

    pipe = define()
    try:
        pipe.build()
        return _results(pipe.run())
    finally:
        if library == "torchdali":
            pipe.close()


def _results(outputs: Sequence[TensorList]) -> list[Result]:
    return [Result([np.array(o.at(i)) for i in range(len(o))], o.layout()) for o in outputs]


def _check_memory(name: str, outputs: Sequence[TensorList], inputs: Sequence[Array]) -> None:
    """Assert that writing to an output does not change an input."""
    for k, output in enumerate(outputs):
        for sample in output:
            array = np.asarray(sample)
            assert not any(np.may_share_memory(array, x) for x in inputs), (
                f"output {k} of {name} shares memory with an input"
            )


def _function(fn: Any, name: str) -> Any:
    function = fn
    for part in name.split("."):
        if not hasattr(function, part):
            hint = ": give `expected`" if fn.__name__.startswith("nvidia.") else ""
            raise AttributeError(f"{fn.__name__} has no operator {name!r}{hint}")
        function = getattr(function, part)
    return function


def _value(v: Any, types: Any, batch_of: Callable[[list[Array]], Any]) -> Any:
    """Return the value of an argument: convert per-sample values by `batch_of`, and look up enum members by name."""
    if isinstance(v, PerSample):
        return batch_of([np.asarray(x, _narrow(x)) for x in v])
    if isinstance(v, str) and v.startswith("types."):
        return getattr(types, v.removeprefix("types."))
    return v


def _narrow(x: Any) -> Any:
    kind = np.asarray(x).dtype
    return {"f": np.float32, "i": np.int32}.get(kind.kind, kind) if kind.itemsize == 8 else kind


def _class_of(function: Any) -> Any:
    from torchdali import ops

    operator = function.operator
    found: Any = ops
    for part in operator.name.split(".")[:-1]:
        found = getattr(found, part)
    return getattr(found, operator.class_name)


def dali(
    name: str, inputs: Sequence[Sequence[Array]], arguments: Mapping[str, Any], layouts: Any = None
) -> list[Result]:
    """Return the results of the real DALI for a case (see `pipeline`)."""
    return pipeline("nvidia.dali", name, inputs, arguments, layouts)


def check(
    name: str,
    inputs: Sequence[Sequence[Array]],
    arguments: Mapping[str, Any] | None = None,
    layouts: Any = None,
    *,
    expected: list[Result] | Callable[..., list[Result]] = dali,
    level: float = 0.0,
    share: float = 1.0,
    relative: float = 0.0,
    over_batch: bool = False,
) -> float:
    """Check an operator on one batch; raises AssertionError with the largest difference.

    Args:
        name: Dotted name in ``fn``.
        inputs: One list of samples per input.
        arguments: See `pipeline`.
        layouts: Of the inputs.
        expected: Results, or a function that computes them from ``(name, inputs, arguments, layouts)``.
        level: Allowed absolute difference.
        share: Share of the values that must be within it (of each output, over all samples).
        relative: Allowed relative difference, added to the absolute one.

        over_batch: The result of a sample depends on the others of its batch, though the operator is declared
            separable.

    Returns:
        The share of values within the tolerance.
    """
    arguments = arguments or {}
    case = Case(name, [list(samples) for samples in inputs], arguments, layouts)
    found = case.in_pipeline()
    wanted = expected(name, inputs, arguments, layouts) if callable(expected) else expected
    close = compare(found, wanted, level=level, share=share, relative=relative)
    if expected is dali:
        tolerance = parity_table.Tolerance(level, relative)
        _note(name, inputs, arguments, layouts, found, tolerance, close, distance(found, wanted))
    if case.kind not in _kinds or "TORCHDALI_ALL_WAYS" in os.environ:
        _check_modes(case, found, over_batch)
        _kinds.add(case.kind)
    return close


_kinds: set[Any] = set()  # of the cases that ran in every mode


def _check_modes(case: Case, found: list[Result], over_batch: bool) -> None:
    """Assert that an operator returns the same in every execution mode."""
    same(found, case.in_pipeline(classes=True), "class API")
    same(found, case.run_eagerly(), "eager TensorList")
    if case.is_dynamic:
        same(found, case.in_dynamic_mode(), "dynamic mode")
    is_separable = not over_batch and registry[case.name].select_variant(case.arguments).is_separable(case.arguments)
    if case.inputs and is_separable:
        _check_parts(case, found)
    elif case.inputs and all(case.shapes(i) == case.shapes(0) for i in range(case.size)):
        _check_uniform(case, found)


def _check_parts(case: Case, found: list[Result]) -> None:
    """Assert that single samples and smaller batches have the same results as the batch."""
    for i in range(case.size):
        single = case.take([i]).run_eagerly(single=True)
        same(_take(found, [i]), single, f"sample {i} alone", layouts=False)
    uniform = [i for i in range(case.size) if case.shapes(i) == case.shapes(0)]
    if uniform:
        uniform = uniform if len(uniform) > 1 else uniform * 2
        part = case.take(uniform)
        _check_uniform(part, _take(found, uniform))
    # Layouts may depend on the number of axes, which is unknown without samples.
    same(_take(found, []), case.run_eagerly(empty=True), "an empty batch", layouts=False)


def _check_uniform(case: Case, found: list[Result]) -> None:
    """Assert that samples of one shape have the same results if each input is one tensor."""
    same(found, case.run_eagerly(stacked=True), "a uniform batch at once")
    same(found, case.in_pipeline(stacked=True), "a uniform batch in a pipeline")


@dataclass(frozen=True)
class Case:
    """A call of an operator: its inputs (one list of samples each), arguments and input layouts."""

    name: str
    inputs: list[list[Array]]
    arguments: Mapping[str, Any]
    layouts: Any = None

    @property
    def size(self) -> int:
        return len(self.inputs[0])

    def shapes(self, i: int) -> list[Any]:
        """Return the shapes of sample ``i`` of each input and of each per-sample argument."""
        given = (v for v in self.arguments.values() if isinstance(v, PerSample))
        return [np.shape(samples[i]) for samples in (*self.inputs, *given)]

    @property
    def kind(self) -> Any:
        """Operator, types and axes of inputs, layouts, arguments: the key that calls share if they differ only in numbers."""
        inputs = [sorted({(np.asarray(x).dtype.str, np.ndim(x)) for x in samples}) for samples in self.inputs]
        arguments = [(k, v if isinstance(v, (str, bool)) else type(v).__name__) for k, v in sorted(self.arguments.items())]
        return self.name, repr(inputs), repr(self.layouts), repr(arguments)

    def take(self, indices: list[int]) -> Case:
        """Return the call on some of the samples, without a copy."""
        arguments = {
            k: PerSample(v[i] for i in indices) if isinstance(v, PerSample) else v
            for k, v in self.arguments.items()
        }
        inputs = [[samples[i] for i in indices] for samples in self.inputs]
        return Case(self.name, inputs, arguments, self.layouts)

    @property
    def is_dynamic(self) -> bool:
        """Return True if the dynamic mode has the operator."""
        operator = registry[self.name]
        return not (operator.hidden or operator.replacement or "seed" in self.arguments)

    def in_dynamic_mode(self) -> list[Result]:
        """Call the operator on batches of `torchdali.dynamic`."""
        from torchdali import dynamic, types

        each = _each(self.layouts, len(self.inputs))
        inputs = [
            dynamic.as_batch(samples, layout=layout)
            for samples, layout in zip(self.inputs, each, strict=True)
        ]
        arguments = {
            k: dynamic.as_batch([np.asarray(x, _narrow(x)) for x in v]) if isinstance(v, PerSample) else _value(v, types, _batch)
            for k, v in self.arguments.items()
        }
        with _unchanged(self.name, [a for samples in self.inputs for a in samples]):
            made = _function(dynamic, self.name)(*inputs, **arguments)
            outputs = made if isinstance(made, tuple) else (made,)
            return _results([storage_of(output) for output in outputs])

    def in_pipeline(self, *, classes: bool = False, stacked: bool = False) -> list[Result]:
        with _unchanged(self.name, [a for samples in self.inputs for a in samples]):
            return pipeline(
                "torchdali", self.name, self.inputs, self.arguments, self.layouts,
                classes=classes, stacked=stacked,
            )  # fmt: skip

    def run_eagerly(
        self, *, single: bool = False, stacked: bool = False, empty: bool = False
    ) -> list[Result]:
        """Call the operator on tensors.

        Args:
            single: The inputs are tensors of the only sample.
            stacked: They are batches of one tensor each.
            empty: They are batches without samples.
        """
        from torchdali import fn, types

        each = _each(self.layouts, len(self.inputs))
        form = _single_tensor if single else _stacked if stacked else _empty if empty else _batch
        inputs = [form(samples, layout) for samples, layout in zip(self.inputs, each, strict=True)]
        arguments = {
            k: _value(v, types, _empty if empty else _batch) for k, v in self.arguments.items()
        }
        memory = [array for x in inputs for array in _arrays(x)]
        with _unchanged(self.name, memory):
            made = _function(fn, self.name)(*inputs, **arguments)
        outputs = made if isinstance(made, tuple) else (made,)
        bare = not isinstance(outputs[0], TensorList)
        batches = [TensorList.from_samples([o]) for o in outputs] if bare else outputs
        if not registry[self.name].has("view"):
            _check_memory(self.name, batches, memory)
        return _results(batches)


@contextlib.contextmanager
def _unchanged(name: str, memory: Sequence[Array]) -> Iterator[None]:
    """Assert that arrays are not modified."""
    before = [array.copy() for array in memory]
    yield
    for x, y in zip(before, memory, strict=True):
        assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), f"{name} changed its input"


def _each(layouts: Any, count: int) -> list[str | None]:
    same_for_all = layouts is None or isinstance(layouts, str)
    return [layouts] * count if same_for_all else list(layouts)


def _batch(samples: Sequence[Array], layout: str | None = None) -> TensorList:
    return TensorList.from_samples([_tensor(s) for s in samples], layout or "")


def _stacked(samples: Sequence[Array], layout: str | None) -> TensorList:
    return TensorList.from_dense(_tensor(np.stack(samples)), layout or "")


def _empty(samples: Sequence[Array], layout: str | None = None) -> TensorList:
    first = _tensor(samples[0])
    return TensorList.from_samples([], layout or "", first.dtype, first.ndim)


def _single_tensor(samples: Sequence[Array], layout: str | None) -> Any:
    tensor = _tensor(samples[0])
    return tensor if layout is None else TensorCPU(tensor, layout)


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array))


def _arrays(given: Any) -> list[Array]:
    """Return the memory of an input, without a copy."""
    if isinstance(given, TensorList):
        return [np.asarray(sample) for sample in given]
    return [np.asarray(given)]


def _note(
    name: str,
    inputs: Sequence[Sequence[Array]],
    arguments: Mapping[str, Any],
    layouts: Any,
    found: Sequence[Result],
    tolerance: parity_table.Tolerance,
    share: float,
    far: parity_table.Distance,
) -> None:
    """Record the case for the parity table."""
    samples = [*inputs, *(result.samples for result in found if not inputs)]
    named = [layouts] if layouts is None or isinstance(layouts, str) else layouts
    parity_table.note(
        parity_table.Case(
            name,
            repr(sorted(arguments.items())),
            frozenset(str(s.dtype) for group in samples for s in group[:1]),
            frozenset(filter(None, named)),
            tolerance,
            share,
            far,
        )
    )


def _take(results: list[Result], indices: list[int]) -> list[Result]:
    return [Result([r.samples[i] for i in indices], r.layout) for r in results]


def same(one: list[Result], other: list[Result], way: str, *, layouts: bool = True) -> None:
    """Assert that two results are bit-identical, and that their layouts agree, which plain tensors do not have."""
    assert len(one) == len(other), f"{way}: {len(other)} outputs instead of {len(one)}"
    for a, b in zip(one, other, strict=True):
        assert not layouts or a.layout == b.layout, (
            f"{way}: layout {b.layout!r} instead of {a.layout!r}"
        )
        for i, (x, y) in enumerate(zip(a.samples, b.samples, strict=True)):
            assert x.dtype == y.dtype and x.shape == y.shape, (
                f"{way}: sample {i} is {y.dtype}{y.shape} instead of {x.dtype}{x.shape}"
            )
            assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), f"{way}: sample {i} differs"


def distance(found: list[Result], wanted: list[Result]) -> parity_table.Distance:
    """Measure the distance of results from the expected ones."""
    far_off, integers, floats = [], [], []
    for f, w in zip(found, wanted, strict=True):
        for x, y in zip(f.samples, w.samples, strict=True):
            if not x.size:
                continue
            a, b = x.astype(np.float64), y.astype(np.float64)
            equal = (a == b) | (np.isnan(a) & np.isnan(b))
            with np.errstate(invalid="ignore"):
                far = np.where(equal, 0.0, np.abs(a - b))
            if x.dtype.kind != "f":
                far_off.append(float((far > 1).mean()))
                integers.append((float(far.max()), float(far.mean())))
                continue
            size = np.abs(b[np.isfinite(b)])
            if x.dtype == np.float16:
                far = np.maximum(far - 2.0**-10 * np.abs(np.nan_to_num(b)), 0.0)
            largest = max(size.max(initial=0.0), 1e-30)
            floats.append((float(far.max() / largest), float(far.mean() / largest)))
    levels, mean_levels = map(max, zip(*integers, strict=True)) if integers else (None, None)
    error, mean_error = map(max, zip(*floats, strict=True)) if floats else (None, None)
    off = max(far_off, default=None)
    return parity_table.Distance(off, error, levels, mean_levels, mean_error)


def compare(
    found: list[Result],
    wanted: list[Result],
    *,
    level: float = 0.0,
    share: float = 1.0,
    relative: float = 0.0,
) -> float:
    """Assert that results have the same shapes, types and layouts, and values within a tolerance."""
    assert len(found) == len(wanted), f"{len(found)} outputs instead of {len(wanted)}"
    worst = 1.0
    for k, (f, w) in enumerate(zip(found, wanted, strict=True)):
        assert f.layout == w.layout, f"output {k}: layout {f.layout!r} instead of {w.layout!r}"
        assert len(f.samples) == len(w.samples), (
            f"output {k}: {len(f.samples)} samples instead of {len(w.samples)}"
        )
        good = total = 0
        largest = 0.0
        for i, (x, y) in enumerate(zip(f.samples, w.samples, strict=True)):
            assert x.dtype == y.dtype, f"output {k}, sample {i}: {x.dtype} instead of {y.dtype}"
            assert x.shape == y.shape, (
                f"output {k}, sample {i}: shape {x.shape} instead of {y.shape}"
            )
            if not x.size:
                continue
            a, b = x.astype(np.float64), y.astype(np.float64)
            with np.errstate(invalid="ignore"):
                difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            difference = np.nan_to_num(difference, nan=np.inf)
            good += int((difference <= level + relative * np.abs(np.nan_to_num(b))).sum())
            total += x.size
            largest = max(largest, float(difference.max()))
        if total:
            worst = min(worst, good / total)
            assert good / total >= share, (
                f"output {k}: only {good / total:.5%} of the values within {level} (+ {relative} relative); "
                f"largest difference {largest}"
            )
    return worst
