"""Continue an epoch with another number of ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from torchdali.pipeline import reshard_pipelines
from torchdali.plugin import _epochs

__all__ = ["reshard"]

S = TypeVar("S", dict[str, Any], bytes)


def reshard(states: Sequence[S], num_shards: int) -> list[S]:
    """Convert the positions of all ranks to positions for another number of ranks.

    The old ranks' undelivered samples of the epoch are divided among the new ranks, so that the new ranks together
    deliver each remaining sample exactly once; later epochs are complete. Load the position with index ``shard_id``
    into each new pipeline or iterator, which must be created with this ``shard_id`` and the new ``num_shards``.

    Args:
        states: One state per rank, in any order: the result of a pipeline's ``state_dict()`` or ``checkpoint()``, of an
            iterator's ``state_dict()``, or an item of an iterator's ``checkpoints()``.
        num_shards: Number of ranks that continue.

    Returns:
        One position per rank, of the same kind as the states; each iterator's position is for one pipeline.

    Raises:
        ValueError: a rank's state is missing or repeated, the states are from different steps, or the pipeline has an
            external source.
        RuntimeError: the states are from different graphs.
    """
    if not states:
        raise ValueError("reshard needs the states of all ranks, and got none.")
    if isinstance(states[0], (bytes, str)):
        places = reshard([json.loads(state) for state in states], num_shards)
        return [json.dumps(place).encode() for place in places]
    if "iterator" in states[0]:
        return _iterators(states, num_shards)
    return _pipelines(states, num_shards)


def _iterators(states: Sequence[Any], num_shards: int) -> list[Any]:
    counter = _counter([state["iterator"] for state in states], num_shards)
    places = reshard_pipelines([p for state in states for p in state["pipelines"]], num_shards)
    return [{"iterator": counter, "pipelines": [place]} for place in places]


def _pipelines(states: Sequence[Any], num_shards: int) -> list[Any]:
    places: list[Any] = reshard_pipelines(states, num_shards)
    contexts = [state.get("external_context", {}) for state in states]
    if "iterator" in contexts[0]:
        counter = _counter([context.get("iterator") for context in contexts], num_shards)
        for place in places:
            place["external_context"] = {"iterator": counter}
    return places


def _counter(counters: Sequence[Any], num_shards: int) -> Any:
    """Convert an iterator's position in its epoch, which must be the same on all ranks."""
    first = counters[0]
    if any(counter != first for counter in counters):
        raise ValueError(
            "The iterators of the ranks are not at the same batch: save the states of all ranks after the "
            "same number of steps."
        )
    if "sizes" not in first:
        return first  # without an epoch size, only batches are counted
    return {**_epochs.reshard(first, num_shards), "over": first["over"]}
