"""``torchdali tune SCRIPT[:FUNCTION]``: the fastest settings of a pipeline or a loader on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torchdali import DataLoader, Loader, Pipeline
from torchdali._commands import scripts
from torchdali._commands.bar import Bar
from torchdali.tuning import cores_here, tune

__all__ = ["run"]


def run(
    target: str, arguments: Sequence[str], seconds: float, step: float, cores: int | None, memory: int | None
) -> int:
    """Tune what a script loads, print what to write, and return the exit status.

    Args:
        target: Path of a script, and after a colon the name of a function in it that makes a pipeline or a loader, or
            of such an object.
        arguments: Of the function: ``name=value``.
        seconds: For all measurements together.
        step: Seconds of the training step; 0 for none.
        cores: The most threads and processes.
        memory: The most bytes of the batches in flight.
    """
    bar = Bar("s")
    try:
        subject = scripts.load(target, arguments, {"batch_size": 64, "num_threads": cores_here()})
        if isinstance(subject, Loader):
            report = subject.tune(seconds, step=step, cores=cores, memory=memory, progress=bar)
        elif isinstance(subject, Pipeline) and subject.factory is not None:
            report = tune(subject.factory, seconds, step=step, cores=cores, memory=memory, progress=bar)
        elif isinstance(subject, DataLoader):
            raise TypeError(f"{target}: a DataLoader is tuned in its script: print(loader.tune())")
        else:
            raise TypeError(f"{target}: to be tuned, a pipeline is made anew: by a function under pipeline_def")
    except scripts.ERRORS as error:
        bar.close()
        print(f"torchdali tune: {error}", file=sys.stderr)
        return 1
    bar.close()
    print(report)
    return 0
