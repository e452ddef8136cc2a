"""Pipelines with external sources, of torchdali or of the real DALI."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Define = Callable[[Any], Any]


def pipeline(
    define: Define, batch_size: int = 3, library: str = "torchdali", **arguments: Any
) -> Any:
    """Create a pipeline from the result of ``define(package)``: a node, or a list of nodes."""
    package = importlib.import_module(library)
    importlib.import_module(f"{library}.fn")
    settings = {"num_threads": 2, "device_id": None, **arguments}
    pipe = package.Pipeline(batch_size=batch_size, **settings)
    with pipe:
        nodes = define(package)
        pipe.set_outputs(*(nodes if isinstance(nodes, list) else [nodes]))
    return pipe


def source(source: Any = None, *positional: Any, **arguments: Any) -> Define:
    """Define a pipeline of one external source."""
    return lambda package: package.fn.external_source(source, *positional, **arguments)


def batch(number: int, size: int = 3) -> list[Any]:
    """Return a batch whose samples are all one number."""
    return [np.int32(number)] * size


def batches(count: int, first: int = 0, size: int = 3) -> list[list[Any]]:
    """Return batches numbered one by one."""
    return [batch(first + i, size) for i in range(count)]


def values(outputs: Sequence[Any]) -> list[Any]:
    """Return the samples of each output as numbers or lists; of a single output, only its own."""
    found = [[np.array(o.at(i)).tolist() for i in range(len(o))] for o in outputs]
    return found[0] if len(found) == 1 else found


def run(pipe: Any) -> Any:
    """Return the values of the next batch, ``"stop"``, or the name of the class of the error."""
    try:
        return values(pipe.run())
    except StopIteration:
        return "stop"
    except Exception as error:
        return type(error).__name__


def epochs(pipe: Any, epochs: int = 2, runs: int = 4) -> list[list[Any]]:
    """Return the outcome of each of `runs` runs per epoch, with a reset after each epoch."""
    found = []
    for _ in range(epochs):
        found.append([run(pipe) for _ in range(runs)])
        pipe.reset()
    return found


def parallel(
    what: Any, *positional: Any, workers: int = 2, method: str = "fork", **rest: Any
) -> Any:
    """Create a pipeline with a parallel source; pass the pipeline's options to the pipeline."""
    own = ("batch_size", "prefetch_queue_depth_", "py_callback_pickler")
    settings = {k.rstrip("_"): rest.pop(k) for k in own if k in rest}
    define = source(what, *positional, parallel=True, **rest)
    return pipeline(define, py_num_workers=workers, py_start_method=method, **settings)


def processes() -> list[Any]:
    """Return the living worker processes."""
    return [p for p in multiprocessing.active_children() if p.name.startswith("torchdali-worker")]
