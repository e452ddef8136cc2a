"""``torchdali tune SCRIPT[:FUNCTION]``: the fastest settings of a pipeline or a loader on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from torchdali import DataLoader, Loader, Pipeline
from torchdali._commands import scripts
from torchdali._commands.bar import Bar
from torchdali.tuning import cores_here, tune

__all__ = ["run"]


def run(
    target: str, arguments: Sequence[str], seconds: float, step: float, cores: int | None, memory: int | None
) -> int:
    """Tune the pipeline or loader of a script, print the recommended code, and return the exit status.

    Args:
        target: Path of a script, optionally followed by a colon and the name of a pipeline, a loader, or a function
            that creates one.
        arguments: Arguments of the function: ``name=value``.
        seconds: Duration of all measurements together.
        step: Duration of the training step in seconds; 0 for no training step.
        cores: Greatest number of threads and processes.
        memory: Greatest size in bytes of the batches in flight.
    """
    bar = Bar("s")
    report: Any
    try:
        subject = scripts.load(target, arguments, {"batch_size": 64, "num_threads": cores_here()})
        if isinstance(subject, Loader):
            report = subject.tune(seconds, step=step, cores=cores, memory=memory, progress=bar)
        elif isinstance(subject, Pipeline) and subject.factory is not None:
            report = tune(subject.factory, seconds, step=step, cores=cores, memory=memory, progress=bar)
        elif isinstance(subject, DataLoader):
            report = _tune_workers(subject, seconds, step, cores, memory)
        else:
            kind = type(subject).__name__
            raise TypeError(f"{target} must be a loader, or be created by a function with @pipeline_def, got a {kind}")
    except scripts.ERRORS as error:
        bar.close()
        print(f"torchdali tune: {error}", file=sys.stderr)
        return 1
    bar.close()
    print(report)
    return 0


def _tune_workers(
    loader: DataLoader[Any], seconds: float, step: float, max_workers: int | None, memory: int | None
) -> Any:
    if step or memory:
        raise ValueError("--step and --memory need a pipeline; for a DataLoader, pass --seconds or --cores")
    workers = [number for number in (1, 2, 4, 8, 16, 32, 64) if number <= (max_workers or 0)]
    try:
        return loader.tune(seconds, workers=workers)
    finally:
        loader.close()
