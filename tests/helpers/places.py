"""Walk through pipelines, save their checkpoints, and continue from them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchdali import Pipeline

Values = list[Any]


def numbered_files(folder: Path, count: int) -> list[str]:
    """Write files whose bytes are their own index; their lengths differ."""
    paths = [folder / f"{index:02d}.bin" for index in range(count)]
    for index, path in enumerate(paths):
        path.write_bytes(bytes([index]) * (index % 3 + 1))
    return [str(path) for path in paths]


def take(pipe: Pipeline) -> Values:
    """Return the next batch as plain values, or "end"."""
    try:
        return [[sample.tolist() for sample in map(np.asarray, output)] for output in pipe.run()]
    except StopIteration:
        return ["end"]


@contextlib.contextmanager
def closing(pipe: Pipeline) -> Iterator[Pipeline]:
    try:
        yield pipe
    finally:
        pipe.close()


def walk(pipe: Pipeline, count: int) -> tuple[list[Values], list[Any]]:
    """Run batches; return them and the JSON text of the checkpoint before each."""
    batches, places = [], []
    for _ in range(count):
        places.append(json.dumps(pipe.state_dict()))
        batches.append(take(pipe))
    return batches, places


def check_every_checkpoint(make: Callable[..., Pipeline], batches: int, **arguments: Any) -> None:
    """Save at every batch, continue in a new pipeline: the remaining batches must be bit-identical."""
    with closing(make(**arguments)) as pipe:
        expected, places = walk(pipe, batches)
    for done, place in enumerate(places):
        with closing(make(**arguments)) as pipe:
            pipe.load_state_dict(json.loads(place))
            found, again = walk(pipe, batches - done)
        assert found == expected[done:], f"after {done} batches"
        assert again == places[done:]
