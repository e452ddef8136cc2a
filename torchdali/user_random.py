"""Random numbers of the user's own code (`random`, `numpy.random`, `torch`) in worker processes.

A forked process continues with copies of the generators of its parent: all workers would draw the same numbers. So in a
process of ours, all three are seeded before the user's code is called for a sample, from the seed of the pipeline and
what identifies the sample. No two samples share numbers, and the number of processes changes nothing. In the process of
the user the generators are the user's: nothing here touches them.
"""

from __future__ import annotations

import random
import zlib

import numpy as np
import torch

from torchdali.rng import mix

__all__ = ["seed_of_name", "seed_sample", "seed_worker"]

_seed: int | None = None


def seed_worker(seed: int) -> None:
    """Let `seed_sample` work in this process, from now on for the code of this seed."""
    global _seed
    _seed = seed


def seed_of_name(seed: int, name: str) -> int:
    """Return the seed for the code behind one node of a pipeline, such as a reader."""
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
