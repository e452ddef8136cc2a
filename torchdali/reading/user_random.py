"""Random numbers of the user's own code (`random`, `numpy.random`, `torch`).

While a pipeline is defined, a number is drawn once: `TracedDraws` tells the user.

A forked process continues with copies of the generators of its parent: all workers would draw the same numbers. So in a
process of ours, all three are seeded before the user's code is called for a sample, from the seed of the pipeline and
the sample's identity. No two samples share numbers, and the number of processes changes nothing. In the process of
the user the generators are the user's: nothing here touches them.
"""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import torch

from torchdali.errors import warn
from torchdali.rng import mix
from torchdali.threads import processor_time

__all__ = ["TracedDraws", "seed_of_name", "seed_sample", "seed_worker"]

_seed: int | None = None


def seed_worker(seed: int) -> None:
    """Let `seed_sample` work in this process, from now on for the code of this seed."""
    global _seed
    _seed = seed


def seed_of_name(seed: int, name: str) -> int:
    """Return the seed for the user's code of one node of a pipeline, for example a reader."""
    return mix(seed, zlib.crc32(name.encode()))


def seed_sample(*key: int) -> None:
    """Seed the generators that user code draws from, if this is a worker process.

    Args:
        key: Numbers that identify the sample for the code that is called.
    """
    if _seed is None:
        return
    state = mix(_seed, *key)
    random.seed(state)
    np.random.seed(state & 0xFFFFFFFF)
    torch.default_generator.manual_seed(state >> 1)


class TracedDraws:
    """Numbers that a function under `pipeline_def` draws from the generators of the process, while it is traced."""

    def __init__(self, function: str) -> None:
        self._function = function
        self.pass_over()

    def pass_over(self) -> None:
        """Skip the numbers drawn up to now: by an operator that looks at a dataset, for example."""
        self._states, self._others = _states(), processor_time()

    def warn(self) -> None:
        """Warn, on the user's line, if numbers were drawn since the last call; seeding is none."""
        before, others = self._states, self._others
        self.pass_over()
        if self._others != others:
            return  # a thread of another pipeline, which reads a dataset, may have drawn them
        for name, state in self._states.items():
            if state != before[name] and not _is_seeded(name, state, before[name]):
                warn(
                    f"numbers were drawn from {name} on this line or shortly before it, while the pipeline function "
                    f"{self._function!r} was traced. The function runs once, so every image of every batch gets the "
                    "same number. For a number for each image use fn.random.uniform, fn.random.normal or "
                    "fn.random.coin_flip; draw what all are to share before the function is called"
                )


def _states() -> dict[str, Any]:
    numpy = np.random.get_state(legacy=False)
    words = numpy["state"].get("key", np.empty(0))  # none, if the user took another generator than the usual one
    return {
        "Python's `random`": random.getstate(),
        "`numpy.random`": (words.tobytes(), numpy["state"].get("pos"), numpy["gauss"]),
        "`torch`": torch.get_rng_state().numpy().tobytes(),
    }


def _is_seeded(name: str, state: Any, before: Any) -> bool:
    """Return True for a generator that was seeded after a state, and not drawn from since."""
    if name == "`torch`":
        fresh = torch.Generator().manual_seed(torch.initial_seed()).get_state()
        return bool(state == fresh.numpy().tobytes())
    place, words, old = state[1], state[0], before[0]
    if name.startswith("Python"):
        (*words, place), (*old, _) = state[1], before[1]
    return bool(place == _BLOCK and words != old)  # drawing to the end of a block keeps its words


_BLOCK = 624  # numbers of a block of the Mersenne Twister; a seeded one is at its end
