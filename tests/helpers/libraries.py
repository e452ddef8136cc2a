"""Run one definition on torchdali and on the real DALI, and compare the outcomes.

There are three kinds of definitions. A *case* takes a library and returns or raises anything (`check`). A *pipeline* takes a
library and returns outputs (`agree`). *Expressions* take a library and the nodes of inputs; many run in one pipeline, since
the real DALI needs more time to build a pipeline than to run a hundred expressions in it (`evaluate`).
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.check import Array, Result, compare

Library = Any
Case = Callable[[Library], Any]
Define = Callable[[Library], Any]
"""Returns the outputs of a pipeline."""
Expression = Callable[..., Any]
"""Takes a library, then the nodes of the inputs."""

# Errors are compared by the class that a user's ``except`` names.
_CLASSES = (KeyError, IndexError, ValueError, TypeError, RuntimeError)


@functools.cache
def library(name: str) -> Library:
    """Return the parts of ``"torchdali"`` or ``"nvidia.dali"`` that definitions use."""
    package = importlib.import_module(name)
    parts = {part: importlib.import_module(f"{name}.{part}") for part in ("fn", "types", "math", "backend", "pipeline")}

    def source(samples: Sequence[Any], layout: str | None = None) -> Any:
        arrays = [np.asarray(sample) for sample in samples]
        return parts["fn"].external_source(source=lambda: arrays, layout=layout)

    return SimpleNamespace(
        name=name, package=package, Pipeline=package.Pipeline, pipeline_def=package.pipeline_def, newaxis=package.newaxis, source=source,
        iterator=importlib.import_module(f"{name}.plugin.pytorch").DALIGenericIterator, **parts,
    )  # fmt: skip


def _result(batch: Any) -> Result:
    return Result([np.array(batch.at(i)) for i in range(len(batch))], batch.layout())


# ---------------------------------------------------------------- cases


@golden.answered
def _run(name: str, case: Case) -> Any:
    return case(library(name))


def _outcome_of_case(case: Case, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _run(name, case)
        except Exception as error:
            return error


def check(case: Case) -> None:
    """Both libraries must return the same, or raise exceptions of one class."""
    ours, theirs = _outcome_of_case(case, "torchdali"), _outcome_of_case(case, "nvidia.dali")
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"DALI raised {theirs!r}, torchdali {ours!r}"
    else:
        assert not isinstance(ours, Exception), f"DALI returned {theirs!r}, torchdali raised {ours!r}"
        assert ours == theirs


def table(cases: dict[str, Case]) -> Any:
    """Parametrize a test over named cases."""
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def described(outputs: Any) -> list[Any]:
    """Return dtype, shapes and values of each output of a batch."""
    return [(o.dtype.name, o.shape(), [np.asarray(o.at(i)).tolist() for i in range(len(o))]) for o in outputs]


# ---------------------------------------------------------------- pipelines


@golden.answered
def batches(name: str, define: Define, runs: int = 1, **settings: Any) -> list[list[Result]]:
    """Return the outputs of some runs of a pipeline."""
    settings = {"batch_size": 2, "num_threads": 2, "device_id": None, "seed": 1, **settings}
    lib = library(name)

    def outputs() -> Any:
        found = define(lib)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    pipe = lib.pipeline_def(**settings)(outputs)()
    try:
        return [[_result(batch) for batch in pipe.run()] for _ in range(runs)]
    finally:
        if name == "torchdali":
            pipe.close()


def outcome(name: str, define: Define, **settings: Any) -> list[Result] | type[Exception]:
    """Return the outputs of one run, or the class of its error."""
    try:
        return batches(name, define, **settings)[0]
    except _CLASSES as error:
        return next(known for known in _CLASSES if isinstance(error, known))


def agree(define: Define, **settings: Any) -> list[Result] | type[Exception]:
    """Assert that both libraries return the same, or raise the same class; return torchdali's outcome."""
    found = outcome("torchdali", define, **settings)
    wanted = outcome("nvidia.dali", define, **settings)
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted, f"{found} instead of {wanted}"
    else:
        compare(found, wanted)
    return found


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Given:
    """One input: the samples of a batch, and their layout."""

    samples: Sequence[Array]
    layout: str | None = None


def given(*samples: Any, layout: str | None = None) -> Given:
    return Given([np.asarray(s) for s in samples], layout)


@golden.answered
def evaluate(
    name: str, inputs: Sequence[Given], expressions: Mapping[str, Expression],
    through: Callable[[Any], Any] = lambda node: node, **settings: Any,
) -> dict[str, Result]:  # fmt: skip
    """Return the result of each expression.

    Args:
        name: ``"torchdali"`` or ``"nvidia.dali"``.
        inputs: One batch of one or more samples each.
        expressions: By name.
        through: Applied to each input first.
        settings: Further arguments of the pipeline.
    """
    lib = library(name)
    settings |= {"batch_size": len(inputs[0].samples), "num_threads": 1, "device_id": None}

    @lib.pipeline_def(prefetch_queue_depth=1, **settings)
    def define() -> Any:
        nodes = [through(lib.source(each.samples, each.layout)) for each in inputs]
        return tuple(expression(lib, *nodes) for expression in expressions.values())

    pipe = define()
    try:
        pipe.build()
        return {key: _result(out) for key, out in zip(expressions, pipe.run(), strict=True)}
    finally:
        if hasattr(pipe, "close"):
            pipe.close()


def failure(name: str, inputs: Sequence[Given], expression: Expression) -> BaseException | None:
    """Return the error of an expression, in its definition or its run, or None."""
    try:
        evaluate(name, inputs, {"": expression})
    except Exception as error:
        return error
    return None
