"""`reshard`: converts saved positions, so that another number of ranks can continue the epoch."""

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

    The samples of the epoch that the old ranks have not delivered are divided among the new ranks. The new ranks
    together deliver each of these samples exactly once. Later epochs are complete.

    On each new rank, create the pipeline or iterator with the rank's ``shard_id`` and the new ``num_shards``, and load
    the returned position with the index ``shard_id``.

    Args:
        states: One state per old rank, in any order. All states must come from the same method: ``state_dict()`` or
            ``checkpoint()`` of a pipeline, or ``state_dict()`` or ``checkpoints()`` of an iterator.
        num_shards: Number of new ranks.

    Returns:
        One position per new rank, of the same type as the states. The position of an iterator is for an iterator over
        one pipeline.

    Raises:
        ValueError: a rank's state is missing or repeated, the states were saved after different numbers of batches, or
            the pipeline has an external source.
        RuntimeError: the states belong to different pipelines.
    """
    if not states:
        raise ValueError("reshard needs the states of all ranks, got none.")
    if isinstance(states[0], (bytes, str)):
        positions = reshard([json.loads(state) for state in states], num_shards)
        return [json.dumps(position).encode() for position in positions]
    if "iterator" in states[0]:
        return _reshard_iterators(states, num_shards)
    return _reshard_pipelines(states, num_shards)


def _reshard_iterators(states: Sequence[Any], num_shards: int) -> list[Any]:
    counter = _reshard_counter([state["iterator"] for state in states], num_shards)
    positions = reshard_pipelines([p for state in states for p in state["pipelines"]], num_shards)
    return [{"iterator": counter, "pipelines": [position]} for position in positions]


def _reshard_pipelines(states: Sequence[Any], num_shards: int) -> list[Any]:
    positions: list[Any] = reshard_pipelines(states, num_shards)
    contexts = [state.get("external_context", {}) for state in states]
    if "iterator" in contexts[0]:
        counter = _reshard_counter([context.get("iterator") for context in contexts], num_shards)
        for position in positions:
            position["external_context"] = {"iterator": counter}
    return positions


def _reshard_counter(counters: Sequence[Any], num_shards: int) -> Any:
    """Convert the position of an iterator in its epoch.

    Raises:
        ValueError: the old ranks have different positions.
    """
    first = counters[0]
    if any(counter != first for counter in counters):
        raise ValueError(
            "The iterators of the ranks are not at the same batch: save the states of all ranks after the "
            "same number of steps."
        )
    if "sizes" not in first:
        return first  # without an epoch size, only batches are counted
    return {**_epochs.reshard(first, num_shards), "over": first["over"]}
