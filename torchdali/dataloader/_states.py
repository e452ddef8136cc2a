"""Saving and loading the position of a loop over a `DataLoader`, also in mid-epoch.

A saved position contains the number of delivered batches, and the states of all random generators that the sampler may
draw from. The states are read twice: before the sampler's iterator is created, and before the iterator draws the first
indices. To resume, the generators are set to these states, so the sampler draws the same indices again. The indices of
delivered batches are skipped.

If a dataset has its own state and `torchdata.stateful_dataloader` is installed, torchdata saves and loads the position.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torchdali.dataloader._generators import (
    Snapshot,
    decode_states,
    encode_states,
    generators_of,
    is_shared,
    restore,
    snapshot,
)

__all__ = [
    "Progress",
    "StatefulIndices",
    "has_state",
    "import_torchdata",
    "iterate_next",
    "position_of",
    "seek",
    "starting",
]


@dataclass
class Progress:
    """Progress of a loop over a loader.

    Attributes:
        before: States of the generators before the sampler's iterator was created.
        epoch: Number of earlier loops of the same persistent workers.
        batches: Number of batches that were delivered or raised an error.
        base_seed: Base seed of the workers' random numbers, drawn by PyTorch; persistent workers keep the seed of their
            first epoch.
        first: States of the generators before the sampler drew its first indices; None before that time.
        is_resumed: True if the loop continues from a loaded state.
        finished: True if all batches were delivered.
        waited: Seconds that the loop waited for data, including start-up.
        startup: Seconds from ``iter()`` until the loader was ready.
        began: Start of the loop, by `time.perf_counter`.
        ended: Time at which the last batch was delivered, by `time.perf_counter`; 0 before the first batch.
    """

    before: Snapshot
    epoch: int = 0
    batches: int = 0
    base_seed: int = 0
    first: Snapshot | None = None
    is_resumed: bool = False
    finished: bool = False
    waited: float = 0.0
    startup: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0

    def state(self, loader: Any) -> dict[str, Any]:
        """Return the position as values that JSON can store."""
        encoded = encode_states(self.before)
        return {
            "torchdali": 1,
            "batches": self.batches,
            "epoch": self.epoch,
            "base_seed": self.base_seed,
            "finished": self.finished,
            "generator": encoded.pop("generator"),
            "generators": encoded,
            "first": None if self.first is None else encode_states(self.first),
            "loader": _describe(loader),
        }


def position_of(loader: Any, state: Any) -> Progress:
    """Return the position that a state from `DataLoader.state_dict` describes.

    Raises:
        ValueError: the state doesn't belong to this loader, or a field is missing or invalid.
    """
    if not isinstance(state, Mapping) or "torchdali" not in state:
        keys = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(
            f"the state must come from torchdali.DataLoader.state_dict(), got {keys}. A state of torchdata belongs "
            f"to a loader with snapshot_every_n_steps, or with a dataset that has its own state"
        )
    _check_fields(state)
    _check_loader(loader, state)
    generators = generators_of(loader)
    before = decode_states({"generator": state["generator"], **state["generators"]}, generators, "generators")
    first = None if state["first"] is None else decode_states(state["first"], generators, "first")
    return Progress(before, state["epoch"], state["batches"], state["base_seed"], first, True)


_RANGES = {"torchdali": (1, 1), "batches": (0, 2**63 - 1), "epoch": (0, 2**63 - 1), "base_seed": (-(2**63), 2**63 - 1)}
_TYPES = {"finished": bool, "generators": dict, "loader": dict}
_FIELDS = {*_RANGES, *_TYPES, "generator", "first"}


def _check_fields(state: Mapping[str, Any]) -> None:
    if set(state) != _FIELDS:
        mismatched = sorted(map(str, set(state) ^ _FIELDS))
        raise ValueError(f"the state's fields must be {sorted(_FIELDS)}; missing or unknown: {mismatched}")
    for name, (low, high) in _RANGES.items():
        value = state[name]
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"the state's {name} must be an integer from {low} to {high}, got {value!r}")
    for name, kind in _TYPES.items():
        if type(state[name]) is not kind:
            raise ValueError(f"the state's {name} must be a {kind.__name__}, got {state[name]!r}")
    if state["first"] is not None and type(state["first"]) is not dict:
        raise ValueError(f"the state's first must be a dict or None, got {state['first']!r}")


def _check_loader(loader: Any, state: Mapping[str, Any]) -> None:
    description = _describe(loader)
    for name in [*description, *(key for key in state["loader"] if key not in description)]:
        value, expected = state["loader"].get(name), description.get(name)
        if type(value) is not type(expected) or value != expected:
            raise ValueError(f"the state belongs to another loader: {name} must be {expected!r}, got {value!r}")
    batches = None if description["batches"] is None else int(description["batches"])
    if batches is not None and state["batches"] > batches:
        raise ValueError(f"the state's batches must be at most {batches}, got {state['batches']}")


def _describe(loader: Any) -> dict[str, Any]:
    """Return the properties of a loader that must be the same when a state is loaded, as values for JSON."""
    is_iterable = isinstance(loader.dataset, torch.utils.data.IterableDataset)
    size = loader.batch_size
    return {
        "dataset length": None if is_iterable else _length(loader.dataset),
        "batch_size": size if size is None else int(size),
        "drop_last": bool(loader.drop_last),
        "sampler": type(loader.sampler).__name__,
        "batch_sampler": type(loader.batch_sampler).__name__,
        "batches": None if is_iterable else _length(loader),
    }


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


# ---------------------------------------------------------------- samplers


@contextlib.contextmanager
def starting(generators: Mapping[str, Any], progress: Progress) -> Iterator[None]:
    """Context manager in which the sampler's iterator is created.

    If the loop is resumed, the generators have the same states as when the original loop created its iterator.
    """
    with _temporary_states(generators, progress.before) if progress.is_resumed else contextlib.nullcontext():
        yield


def seek(indices: Iterator[Any], generators: Mapping[str, Any], states: Snapshot, count: int) -> Iterator[Any]:
    """Skip the first items of a sampler; return an iterator over the rest.

    Args:
        indices: The sampler's iterator.
        generators: The generators that the sampler draws from.
        states: States to which the generators are set before the sampler draws.
        count: Number of items to skip.
    """
    rest = iterate_next(indices)
    with _temporary_states(generators, states):
        next_items = list(itertools.islice(rest, count, count + 1))
    return itertools.chain(next_items, rest)


def iterate_next(indices: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator that calls only `__next__` of another iterator, never `__iter__`, as PyTorch does."""
    return map(next, itertools.repeat(indices))


@contextlib.contextmanager
def _temporary_states(generators: Mapping[str, Any], states: Snapshot) -> Iterator[None]:
    """Context manager in which generators have saved states.

    When the block ends, only generators that the program shares, like PyTorch's global generator, get their previous
    states back.
    """
    shared = {name: generator for name, generator in generators.items() if is_shared(generator)}
    previous_states = snapshot(shared)
    restore(generators, states)
    try:
        yield
    finally:
        restore(shared, previous_states)


class StatefulIndices:
    """PyTorch's sampler with `state_dict` and `load_state_dict`, for torchdata's iterators.

    The indices have the same order as in PyTorch, also after a resume.

    The object must not have a reference to its loader. With a cycle of references, Python may finalize the queues of
    persistent workers before the iterator. The iterator then can't stop the workers, and waits five seconds for each
    worker.
    """

    def __init__(self, generators: Mapping[str, Any], sampler: Any) -> None:
        self._generators, self._sampler = generators, sampler

    def __iter__(self) -> _StatefulIterator:
        return _StatefulIterator(self._generators, iter(self._sampler))

    def __len__(self) -> int:
        return len(self._sampler)


class _StatefulIterator:
    def __init__(self, generators: Mapping[str, Any], indices: Iterator[Any]) -> None:
        self._generators, self._indices = generators, indices
        self._first: Snapshot | None = None
        self._count = 0

    def __iter__(self) -> _StatefulIterator:
        return self

    def __next__(self) -> Any:
        if self._first is None:
            self._first = snapshot(self._generators)
        item = next(self._indices)
        self._count += 1
        return item

    def state_dict(self) -> dict[str, Any]:
        """Return the number of drawn items, and the generators' states before the first item."""
        return {"count": self._count, "first": None if self._first is None else encode_states(self._first)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the items that had been drawn when the state was saved."""
        if state["first"] is None:
            return
        self._count, self._first = state["count"], decode_states(state["first"], self._generators, "first")
        self._indices = seek(self._indices, self._generators, self._first, self._count)


# ---------------------------------------------------------------- torchdata


def import_torchdata() -> Any:
    """Return `torchdata.stateful_dataloader`, or None if it is not installed."""
    try:
        from torchdata import stateful_dataloader
    except ImportError:
        return None
    return stateful_dataloader


def has_state(dataset: Any) -> bool:
    """Return True if a dataset has `state_dict` and `load_state_dict` with the signatures that torchdata calls.

    For an `nn.Module`, return False, because a module's state contains weights, not a position.
    """
    if isinstance(dataset, torch.nn.Module):
        return False
    return _accepts(getattr(dataset, "state_dict", None)) and _accepts(getattr(dataset, "load_state_dict", None), {})


def _accepts(method: Any, *arguments: Any) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # Python cannot read the signature
        return True
    return True
