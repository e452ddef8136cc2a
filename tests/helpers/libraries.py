"""Run one thing on torchdali and on the real DALI, and compare what comes of it."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import golden

Library = Any
Case = Callable[[Library], Any]


@functools.cache
def library(name: str) -> Library:
    """The parts of a library that cases use."""
    package = importlib.import_module(name)
    parts = {
        "fn": importlib.import_module(f"{name}.fn"),
        "types": importlib.import_module(f"{name}.types"),
        "math": importlib.import_module(f"{name}.math"),
        "backend": importlib.import_module(f"{name}.backend"),
        "pipeline": importlib.import_module(f"{name}.pipeline"),
        "iterator": importlib.import_module(f"{name}.plugin.pytorch").DALIGenericIterator,
    }
    return SimpleNamespace(Pipeline=package.Pipeline, pipeline_def=package.pipeline_def, **parts)


@golden.answered
def _run(name: str, case: Case) -> Any:
    return case(library(name))


def outcome(case: Case, name: str) -> Any:
    """Return the result of a case, or the exception it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _run(name, case)
        except Exception as error:
            return error


def check(case: Case) -> None:
    """Both libraries must return the same, or raise exceptions of one class."""
    ours, theirs = outcome(case, "torchdali"), outcome(case, "nvidia.dali")
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"DALI raised {theirs!r}, torchdali {ours!r}"
    else:
        assert not isinstance(ours, Exception), (
            f"DALI returned {theirs!r}, torchdali raised {ours!r}"
        )
        assert ours == theirs


def table(cases: dict[str, Case]) -> Any:
    """Parametrize a test over named cases."""
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def described(outputs: Any) -> list[Any]:
    """Type, shapes and values of each output of a batch."""
    return [
        (o.dtype.name, o.shape(), [np.asarray(o.at(i)).tolist() for i in range(len(o))])
        for o in outputs
    ]
