"""The classes of exceptions that operators end a pipeline with."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from torchdali import errors


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, IndexError, KeyError, NotImplementedError, MemoryError]
)
def test_a_located_error_is_a_pipeline_error_and_of_its_class(kind: type[Exception]) -> None:
    cause = kind("three of two")
    made = errors.located(cause, "operator 'crop'")
    assert isinstance(made, errors.PipelineError) and isinstance(made, RuntimeError)
    assert isinstance(made, kind)
    assert str(made) == f"operator 'crop'\n  {kind.__name__}: {cause}"
    assert made.__cause__ is cause
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is type(made) and str(copy) == str(made)


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("odd"), ZeroDivisionError()])
def test_what_has_no_class_of_its_own_is_a_pipeline_error(error: Any) -> None:
    assert type(errors.located(error, "here")) is errors.PipelineError
