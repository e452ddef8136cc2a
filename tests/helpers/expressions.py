"""Evaluate many expressions on nodes in one pipeline, in torchdali or the real DALI.

Building a pipeline of the real DALI takes longer than running a hundred expressions in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests import golden
from tests.check import Array, Result

Expression = Callable[..., Any]
"""Takes a `Library`, then the nodes of the inputs."""


@dataclass(frozen=True)
class Library:
    """The modules of one of the two libraries."""

    fn: Any
    types: Any
    math: Any
    newaxis: Any
    package: Any


@dataclass(frozen=True)
class Given:
    """One input: the samples of a batch, and their layout."""

    samples: Sequence[Array]
    layout: str | None = None


def given(*samples: Any, layout: str | None = None) -> Given:
    return Given([np.asarray(s) for s in samples], layout)


def load(name: str) -> Library:
    parts = [importlib.import_module(f"{name}.{part}") for part in ("fn", "types", "math")]
    package = importlib.import_module(name)
    return Library(*parts, package.newaxis, package)


@golden.answered
def evaluate(
    name: str,
    inputs: Sequence[Given],
    expressions: Mapping[str, Expression],
    through: Callable[[Any], Any] = lambda node: node,
    **settings: Any,
) -> dict[str, Result]:
    """Return the result of each expression.

    Args:
        name: ``"torchdali"`` or ``"nvidia.dali"``.
        inputs: One batch of one or more samples each.
        expressions: By name.
        through: Applied to each input first.
        settings: Further arguments of the pipeline.
    """
    library = load(name)

    settings |= {"batch_size": len(inputs[0].samples), "num_threads": 1, "device_id": None}

    @library.package.pipeline_def(prefetch_queue_depth=1, **settings)
    def define() -> Any:
        nodes = [through(_source(library, g)) for g in inputs]
        return tuple(expression(library, *nodes) for expression in expressions.values())

    pipe = define()
    try:
        pipe.build()
        return {
            key: Result([np.array(out.at(i)) for i in range(len(out))], out.layout())
            for key, out in zip(expressions, pipe.run(), strict=True)
        }
    finally:
        if hasattr(pipe, "close"):
            pipe.close()


def failure(name: str, inputs: Sequence[Given], expression: Expression) -> BaseException | None:
    """Return what an expression raises, when it is defined or when it runs, or None."""
    try:
        evaluate(name, inputs, {"": expression})
    except Exception as error:
        return error
    return None


def _source(library: Library, data: Given) -> Any:
    samples = list(data.samples)
    return library.fn.external_source(source=lambda: samples, layout=data.layout)
