"""Seeds for random numbers that the user's own code draws (from `random`, `numpy.random` or `torch`).

A function under `pipeline_def` runs only once, to trace (record) the pipeline, so a number that the function draws is
the same for all samples. `TracedDraws` warns about this.

All forked worker processes have the same copies of the parent's generators, and would draw the same numbers. In
worker processes, the three generators are therefore seeded each time before the user's code is called for a sample. The
seed depends on the pipeline's seed and on the sample, not on the number of processes. In the main process, this module
doesn't change the generators.
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
    """Enable `seed_sample` in this process, with the seed for the user's code."""
    global _seed
    _seed = seed


def seed_of_name(seed: int, name: str) -> int:
    """Return the seed for the user's code in one node of a pipeline, for example in a reader."""
    return mix(seed, zlib.crc32(name.encode()))


def seed_sample(*key: int) -> None:
    """Seed the three generators for one sample if this is a worker process; otherwise, do nothing.

    Args:
        key: Numbers that identify the sample.
    """
    if _seed is None:
        return
    state = mix(_seed, *key)
    random.seed(state)
    np.random.seed(state & 0xFFFFFFFF)
    torch.default_generator.manual_seed(state >> 1)


class TracedDraws:
    """Detects random numbers that a function under `pipeline_def` draws while the function is traced."""

    def __init__(self, function: str) -> None:
        self._function = function
        self.ignore_draws()

    def ignore_draws(self) -> None:
        """Ignore the numbers that were drawn so far, for example when an operator read a sample of a dataset."""
        self._thread_time = processor_time()  # before the states: threads may draw while the states are read
        self._states = _states()

    def warn(self) -> None:
        """Warn if random numbers were drawn since the last call. Seeding a generator doesn't cause a warning."""
        before, thread_time = self._states, self._thread_time
        self.ignore_draws()
        if processor_time() != thread_time:
            return  # other threads ran since the last call or during this one, and may have drawn the numbers
        for name, state in self._states.items():
            if state != before[name] and not _is_seeded(name, state, before[name]):
                warn(
                    f"numbers were drawn from {name} on this line or shortly before it, while the pipeline function "
                    f"{self._function!r} was traced. The function runs once, so every image of every batch gets the "
                    f"same number. For one number per image, use fn.random.uniform, fn.random.normal or "
                    f"fn.random.coin_flip. Draw numbers that all images share before you call the function"
                )


def _states() -> dict[str, Any]:
    numpy = np.random.get_state(legacy=False)
    words = numpy["state"].get("key", np.empty(0))  # NumPy's other bit generators have no key
    return {
        "Python's `random`": random.getstate(),
        "`numpy.random`": (words.tobytes(), numpy["state"].get("pos"), numpy["gauss"]),
        "`torch`": torch.get_rng_state().numpy().tobytes(),
    }


def _is_seeded(name: str, state: Any, before: Any) -> bool:
    """Return whether a generator was seeded since the state `before`, and hasn't drawn numbers since then."""
    if name == "`torch`":
        seeded = torch.Generator().manual_seed(torch.initial_seed()).get_state()
        return bool(state == seeded.numpy().tobytes())
    position, words, old = state[1], state[0], before[0]
    if name.startswith("Python"):
        (*words, position), (*old, _) = state[1], before[1]
    return bool(position == _BLOCK and words != old)  # draws up to the end of a block don't change its words


_BLOCK = 624  # numbers per block of the Mersenne Twister; after seeding, the position is the end of a block
