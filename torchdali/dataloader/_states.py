"""Positions of loaders in mid-epoch.

A position is how many batches were delivered, and the state of the random numbers when the epoch began: with it torch's
sampler gives the same indices again, of which the first are left out. Data sets and samplers with states of their own
are for `torchdata.stateful_dataloader`, if it is installed.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

__all__ = ["Late", "Progress", "generator_at", "generator_state", "started", "torchdata"]

_FIELDS = ("torchdali", "batches", "epoch", "generator", "base_seed", "finished")


@dataclass
class Progress:
    """Progress of a loop over a loader.

    Attributes:
        generator: State of the random numbers when the epoch began.
        epoch: Number of the loop with the same workers or engine.
        batches: Delivered.
        base_seed: That torch drew for augmentation. If the workers stay for several epochs, it is that of the first.
        finished: All were delivered.
        waited: Seconds that the loop waited for data, start-up included.
        startup: Seconds from ``iter()`` until the loader was ready.
        began: When it began, in the seconds of `time.perf_counter`.
        ended: When the last batch was delivered.
    """

    generator: torch.Tensor
    epoch: int = 0
    batches: int = 0
    base_seed: int = 0
    finished: bool = False
    waited: float = 0.0
    startup: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0

    def state(self) -> dict[str, Any]:
        """Return the position as JSON values."""
        return {
            "torchdali": 1,
            "batches": self.batches,
            "epoch": self.epoch,
            "generator": base64.b64encode(self.generator.numpy().tobytes()).decode(),
            "base_seed": self.base_seed,
            "finished": self.finished,
        }

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Progress:
        """Return the position that `state` described.

        Raises:
            ValueError: it is no such state.
        """
        if not all(name in state for name in _FIELDS):
            raise ValueError(
                f"this is no state of a torchdali.DataLoader: it has {sorted(state)}. Of a loader with "
                "snapshot_every_n_steps, or of a data set with a state of its own, it goes to such a one"
            )
        generator = torch.frombuffer(bytearray(base64.b64decode(state["generator"])), dtype=torch.uint8)
        return cls(generator, state["epoch"], state["batches"], state["base_seed"], state["finished"])


def generator_state(loader: Any) -> torch.Tensor:
    """Return the state of the random numbers from which a loader draws."""
    state: torch.Tensor = torch.get_rng_state() if loader.generator is None else loader.generator.get_state()
    return state


@contextlib.contextmanager
def generator_at(loader: Any, state: torch.Tensor) -> Iterator[None]:
    """Let a loader draw from a state: its own generator from now on, that of the process inside alone."""
    if loader.generator is not None:
        loader.generator.set_state(state)
        yield
        return
    before = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        yield
    finally:
        torch.set_rng_state(before)


class Late:
    """A sampler without its first batches, for one loop; torch's iterators may begin it twice.

    Args:
        at_once: Let it draw its random numbers before torch draws the base seed: in a later epoch of workers that stay,
            none is drawn.
    """

    def __init__(self, sampler: Any, count: int, at_once: bool) -> None:
        self._sampler, self._count, self._at_once = sampler, count, at_once
        self._rest: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self._rest is None:
            rest = itertools.islice(self._sampler, self._count, None)
            self._rest = started(rest) if self._at_once else rest
        return self._rest

    def __len__(self) -> int:
        return len(self._sampler)


def started(indices: Iterator[Any]) -> Iterator[Any]:
    """Let a sampler draw its random numbers now, and not with the first batch."""
    return itertools.chain(list(itertools.islice(indices, 1)), indices)


def torchdata() -> Any:
    """Return `torchdata.stateful_dataloader`, or None if it is not installed."""
    try:
        from torchdata import stateful_dataloader
    except ImportError:
        return None
    return stateful_dataloader
