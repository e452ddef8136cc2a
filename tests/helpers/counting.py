"""Pipelines whose batches are numbered, and operators that record their threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchdali import Pipeline, fn, operator
from torchdali.declaration.schema import Data
from torchdali.tensors import TensorList

seen: list[Any] = []


@operator(name="_test_note", over="batch")
def note(value: Data, /, *, event: Callable[[], Any]) -> Data:
    """Record a value on the thread that runs the step."""
    seen.append(event())
    return value


@operator(name="_test_note_sample")
def note_sample(value: Data, /, *, event: Callable[[], Any]) -> Data:
    """Record a value on a worker thread."""
    seen.append(event())
    return value.clone()


def counting(
    source: Callable[[int], Any] | None = None, background: bool = False, **arguments: Any
) -> Pipeline:
    """A pipeline whose batches are numbered."""
    numbered = source or (lambda i: [np.array(i)] * 2)
    pipe = Pipeline(**{"batch_size": 2, "num_threads": 2, "device_id": None, **arguments})
    with pipe:
        found = fn.external_source(source=numbered, name="source", background=background)
        pipe.set_outputs(found)
    return pipe


def number(outputs: tuple[TensorList, ...]) -> int:
    return int(outputs[0].at(0))
