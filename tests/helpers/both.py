"""Run one definition of a pipeline on torchdali and on the real DALI, and compare what comes out or is raised."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests import golden
from tests.check import Result, compare

Define = Callable[[Any], Any]
"""Takes a library (``fn``, ``types`` and ``source(samples, layout)``) and returns the outputs."""

# What an error of the real DALI is compared by: the class that a user's ``except`` names.
_CLASSES = (KeyError, IndexError, ValueError, TypeError, RuntimeError)


def library(name: str) -> Any:
    """Return ``fn``, ``types``, ``pipeline_def`` and ``source`` of ``"torchdali"`` or ``"nvidia.dali"``."""
    package = importlib.import_module(name)
    fn = importlib.import_module(f"{name}.fn")
    types = importlib.import_module(f"{name}.types")

    def source(samples: Sequence[Any], layout: str | None = None) -> Any:
        arrays = [np.asarray(sample) for sample in samples]
        return fn.external_source(source=lambda: arrays, layout=layout)

    return SimpleNamespace(
        name=name, fn=fn, types=types, pipeline_def=package.pipeline_def, source=source
    )


@golden.answered
def batches(name: str, define: Define, runs: int = 1, **settings: Any) -> list[list[Result]]:
    """Return the outputs of some runs of a pipeline."""
    settings = {"batch_size": 2, "num_threads": 2, "device_id": None, "seed": 1, **settings}
    lib = library(name)

    def outputs() -> Any:
        made = define(lib)
        return tuple(made) if isinstance(made, (list, tuple)) else made

    pipe = lib.pipeline_def(**settings)(outputs)()
    try:
        return [[_result(batch) for batch in pipe.run()] for _ in range(runs)]
    finally:
        if name == "torchdali":
            pipe.close()


def _result(batch: Any) -> Result:
    return Result([np.array(batch.at(i)) for i in range(len(batch))], batch.layout())


def outcome(name: str, define: Define, **settings: Any) -> list[Result] | type[Exception]:
    """Return the outputs of one run, or the class of what was raised."""
    try:
        return batches(name, define, **settings)[0]
    except _CLASSES as error:
        return next(known for known in _CLASSES if isinstance(error, known))


def agree(define: Define, **settings: Any) -> list[Result] | type[Exception]:
    """Assert that both libraries deliver the same, or raise the same class; return torchdali's outcome."""
    found = outcome("torchdali", define, **settings)
    wanted = outcome("nvidia.dali", define, **settings)
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted, f"{found} instead of {wanted}"
    else:
        compare(found, wanted)
    return found
