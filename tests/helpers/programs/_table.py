"""The table of programs, and their shared functions.

Each takes a module, the real DALI or torchdali, and yields comparable values; an error ends it, and its type is recorded.
"""

from __future__ import annotations

import functools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Program = Callable[[Any], Iterator[Any]]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def results(name: str, dali: Any) -> list[Any]:
    """Return a program's values, and the type of the error that ends it."""
    seen: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seen.extend(PROGRAMS[name](dali))  # extend keeps the values before an error
        except Exception as error:
            seen.append(type(error).__mro__[-3].__name__ if type(error).__name__ == "PipelineError" else
                        type(error).__name__)
    return seen


def numbers(outputs: Any) -> list[list[float]]:
    return [np.asarray(each.as_array()).ravel().tolist() for each in outputs]


def plugin(dali: Any) -> Any:
    return import_module(f"{dali.__name__}.plugin.pytorch")


def base(dali: Any) -> Any:
    return import_module(f"{dali.__name__}.plugin.base_iterator")._DaliBaseIterator


@functools.cache
def _folder(count: int) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()  # it is removed with the process
    os.mkdir(os.path.join(folder.name, "0"))
    for i in range(count):
        Path(folder.name, "0", f"{i:02}.jpg").write_bytes(bytes([i]))
    return folder


def files(dali: Any, count: int = 10, **reader: Any) -> Any:
    """Create a pipeline that reads `count` files of one byte, their index, in batches of four."""
    pipe = dali.Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(*dali.fn.readers.file(file_root=_folder(count).name, name="Reader", **reader))
    return pipe


class Counter:
    """A source of batches of two, which contain their index; it ends after some batches, and restarts."""

    def __init__(self, batches: int = 99) -> None:
        self.next, self.batches = 0, batches

    def __call__(self) -> Any:
        if self.next >= self.batches:
            self.next = 0
            raise StopIteration
        self.next += 1
        return [np.int32(self.next - 1)] * 2


def counting(dali: Any, batches: int = 99, **options: Any) -> Any:
    pipe = dali.Pipeline(batch_size=2, num_threads=1, device_id=None, **options)
    with pipe:
        pipe.set_outputs(dali.fn.external_source(Counter(batches)))
    return pipe


def fed(dali: Any, **options: Any) -> Any:
    """Create a pipeline with two fed inputs, A and B."""
    pipe = dali.Pipeline(batch_size=2, num_threads=1, device_id=None, **options)
    with pipe:
        pipe.set_outputs(dali.fn.external_source(name="A"), dali.fn.external_source(name="B"))
    return pipe


def pair(number: int) -> Any:
    return [np.int32(number)] * 2


def feed(pipe: Any, number: int) -> None:
    pipe.feed_input("A", pair(number))
    pipe.feed_input("B", pair(-number))


def taken(batch: Any) -> list[list[float]]:
    return [part["a"].ravel().tolist() for part in batch]


