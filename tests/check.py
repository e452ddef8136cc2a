"""Check an operator in every way it can be called, against the real DALI or a slow reference.

`check` runs one case as a single tensor, a ragged batch, a uniform batch, an empty batch, a traced pipeline and
through the class API; all must agree, inputs must stay untouched, and the pipeline's result must match the
expected one. `dali` runs the same case on the real DALI.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tests import parity_table

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Result:
    """One output: an array a sample, and the layout."""

    samples: list[Array]
    layout: str


class PerSample(list):  # type: ignore[type-arg]
    """Values of an argument, one a sample; becomes an edge of the graph."""


def pipeline(
    library: str,
    name: str,
    inputs: Sequence[Sequence[Array]],
    arguments: Mapping[str, Any],
    layouts: str | Sequence[str | None] | None = None,
    *,
    classes: bool = False,
    **pipeline_arguments: Any,
) -> list[Result]:
    """Run one operator on one batch in a pipeline of ``torchdali`` or ``nvidia.dali``.

    Args:
        library: ``"torchdali"`` or ``"nvidia.dali"``.
        name: Dotted name in ``fn``.
        inputs: One list of samples an input.
        arguments: Constants, and `PerSample` values. Enumerations are given by name: ``"types.FLOAT"``.
        layouts: Of the inputs.
        classes: Use the class API (torchdali only).
    """
    package = importlib.import_module(library)
    fn = importlib.import_module(f"{library}.fn")
    types = importlib.import_module(f"{library}.types")
    size = (
        len(inputs[0])
        if inputs
        else next(len(v) for v in arguments.values() if isinstance(v, PerSample))
    )
    each = [layouts] * len(inputs) if layouts is None or isinstance(layouts, str) else list(layouts)

    def source(samples: Sequence[Any], layout: str | None = None) -> Any:
        arrays = [np.asarray(s) for s in samples]
        return fn.external_source(source=lambda: arrays, layout=layout)

    def value(v: Any) -> Any:
        if isinstance(v, PerSample):
            return source([np.asarray(x, _narrow(x)) for x in v])
        if isinstance(v, str) and v.startswith("types."):
            return getattr(types, v.removeprefix("types."))
        return v

    settings = {
        "batch_size": max(size, 1),
        "num_threads": 2,
        "device_id": None,
        "seed": 1,
        **pipeline_arguments,
    }

    @package.pipeline_def(**settings)
    def define() -> Any:
        nodes = [source(samples, layout) for samples, layout in zip(inputs, each, strict=True)]
        function: Any = fn
        for part in name.split("."):
            function = getattr(function, part)
        made = {k: value(v) for k, v in arguments.items()}
        if classes:
            function = _class_of(function)(**made)
            made = {}
        results = function(*nodes, **made)
        return tuple(results) if isinstance(results, list) else results

    pipe = define()
    pipe.build()
    outputs = pipe.run()
    found = [Result([np.array(o.at(i)) for i in range(len(o))], o.layout()) for o in outputs]
    if library == "torchdali":
        pipe.close()
    return found


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
    """Run a case on the real DALI (see `pipeline`)."""
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
        inputs: One list of samples an input.
        arguments: See `pipeline`.
        layouts: Of the inputs.
        expected: Results, or what computes them from ``(name, inputs, arguments, layouts)``.
        level: Allowed absolute difference.
        share: Share of the values that must be within it (of each output, all samples together).
        relative: Allowed relative difference, added to the absolute one.

        over_batch: The result of a sample depends on the others of its batch.

    Returns:
        The share of the values that were within the tolerance.
    """
    arguments = arguments or {}
    untouched = [[s.copy() for s in samples] for samples in inputs]
    found = pipeline("torchdali", name, inputs, arguments, layouts)
    wanted = expected(name, inputs, arguments, layouts) if callable(expected) else expected
    close = compare(found, wanted, level=level, share=share, relative=relative)
    if expected is dali:
        tolerance = parity_table.Tolerance(level, relative)
        _note(name, inputs, arguments, layouts, found, tolerance, close, distance(found, wanted))
    same(found, pipeline("torchdali", name, inputs, arguments, layouts, classes=True), "class API")
    same(found, _eagerly(name, inputs, arguments, layouts), "eager TensorList")
    if inputs and not over_batch and not any(isinstance(v, PerSample) for v in arguments.values()):
        same(
            _first(found),
            _eagerly(name, [s[:1] for s in inputs], arguments, layouts),
            "batch of one",
        )
    for before, after in zip(untouched, inputs, strict=True):
        for a, b in zip(before, after, strict=True):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{name} changed its input"
    return close


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
    """Keep the case for the table of parity."""
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


def _first(results: list[Result]) -> list[Result]:
    return [Result(r.samples[:1], r.layout) for r in results]


def _eagerly(name: str, inputs: Any, arguments: Mapping[str, Any], layouts: Any) -> list[Result]:
    from torchdali import fn, types
    from torchdali.tensors import TensorList

    def batch(samples: Any, layout: str | None = None) -> TensorList:
        return TensorList.from_samples(
            [torch.from_numpy(np.array(s)) for s in samples], layout or ""
        )

    def value(v: Any) -> Any:
        if isinstance(v, PerSample):
            return batch([np.asarray(x, _narrow(x)) for x in v])
        if isinstance(v, str) and v.startswith("types."):
            return getattr(types, v.removeprefix("types."))
        return v

    each = [layouts] * len(inputs) if layouts is None or isinstance(layouts, str) else layouts
    function: Any = fn
    for part in name.split("."):
        function = getattr(function, part)
    made = function(
        *[batch(s, layout) for s, layout in zip(inputs, each, strict=True)],
        **{k: value(v) for k, v in arguments.items()},
    )
    outputs = made if isinstance(made, tuple) else (made,)
    return [Result([np.array(o.at(i)) for i in range(len(o))], o.layout()) for o in outputs]


def same(one: list[Result], other: list[Result], way: str) -> None:
    """Assert that two ways of calling agree to the bit."""
    assert len(one) == len(other), f"{way}: {len(other)} outputs instead of {len(one)}"
    for a, b in zip(one, other, strict=True):
        assert a.layout == b.layout, f"{way}: layout {b.layout!r} instead of {a.layout!r}"
        for i, (x, y) in enumerate(zip(a.samples, b.samples, strict=True)):
            assert x.dtype == y.dtype and x.shape == y.shape, (
                f"{way}: sample {i} is {y.dtype}{y.shape} instead of {x.dtype}{x.shape}"
            )
            assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), f"{way}: sample {i} differs"


def distance(found: list[Result], wanted: list[Result]) -> parity_table.Distance:
    """Measure how far results are from the wanted ones."""
    off: list[float] = []
    error: list[float] = []
    for f, w in zip(found, wanted, strict=True):
        for x, y in zip(f.samples, w.samples, strict=True):
            if not x.size:
                continue
            a, b = x.astype(np.float64), y.astype(np.float64)
            equal = (a == b) | (np.isnan(a) & np.isnan(b))
            with np.errstate(invalid="ignore"):
                far = np.where(equal, 0.0, np.abs(a - b))
            if x.dtype.kind != "f":
                off.append(float((far > 1).mean()))
                continue
            size = np.abs(b[np.isfinite(b)])
            if x.dtype == np.float16:
                far = np.maximum(far - 2.0**-10 * np.abs(np.nan_to_num(b)), 0.0)
            error.append(float(far.max() / max(size.max(initial=0.0), 1e-30)))
    return parity_table.Distance(max(off, default=None), max(error, default=None))


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
