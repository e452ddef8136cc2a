"""``torchdali show SCRIPT[:FUNCTION]``: a contact sheet of the next batch of a pipeline or a loader."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchdali import DataLoader, Loader, Pipeline, pictures
from torchdali._commands import scripts

__all__ = ["run"]

_DEFAULTS = {"batch_size": 8, "num_threads": 2}  # used if a pipeline doesn't set these options


def run(target: str, arguments: Sequence[str], output: Path, each: bool, count: int | None) -> int:
    """Draw the batches that a script loads, and return the exit status.

    Args:
        target: Path of a script, optionally followed by a colon and the name of a pipeline, a loader, a batch, or a
            function that creates one.
        arguments: Arguments of the function: ``name=value``.
        output: File of the contact sheet.
        each: True to draw the outputs of each operator of a pipeline.
        count: Number of images; None for the default.
    """
    try:
        subject = scripts.load(target, arguments, _DEFAULTS)
        options: dict[str, Any] = {} if count is None else {"count": count}
        if isinstance(subject, (Pipeline, Loader)):
            sheet = subject.show(output, each=each, **options)
            subject.close()
        elif isinstance(subject, DataLoader):
            if each:
                raise TypeError(f"{target} must be a pipeline if you pass --each; a DataLoader has no operators")
            sheet = subject.show(output, **options)
            subject.close()
        else:
            sheet = pictures.show(subject, output, **options)
    except scripts.ERRORS as error:
        print(f"torchdali show: {error}", file=sys.stderr)
        return 1
    print(f"{output}: {sheet.width} x {sheet.height} pixels")
    return 0
