"""Generators of random numbers.

Each call of a random operator advances the generator. The random numbers of a call depend only on the generator's state
before the call, and on the sample's index.
"""

from __future__ import annotations

import re
import secrets
import threading
from typing import Any

from torchdali.rng import mix

__all__ = ["RNG", "get_default_rng", "set_seed"]

_local = threading.local()
_STATE = re.compile(r"RNG_([0-9a-f]{16})_([0-9a-f]{16})")


class RNG:
    """A random number generator, which consists of a seed and the number of draws so far.

    Calling the generator returns a 32-bit number and advances the generator.

    Args:
        seed: Any integer; a random seed by default.
        state: The `state` of another generator; pass it instead of ``seed``.

    Raises:
        ValueError: Both `seed` and `state` are set, or `state` isn't a state.
    """

    def __init__(self, seed: int | None = None, state: str | None = None) -> None:
        if seed is not None and state is not None:
            raise ValueError("pass seed or state, not both")
        self._seed, self._count = 0, 0
        if state is not None:
            self.set_state(state)
        else:
            self.seed = secrets.randbits(63) if seed is None else seed

    @property
    def seed(self) -> int:
        """The seed; setting it restarts the generator."""
        return self._seed

    @seed.setter
    def seed(self, value: int) -> None:
        self._seed, self._count = int(value) & (2**64 - 1), 0

    @property
    def state(self) -> str:
        """The seed and the number of draws, as a string."""
        return f"RNG_{self._seed:016x}_{self._count:016x}"

    @state.setter
    def state(self, value: str) -> None:
        self.set_state(value)

    def get_state(self, *, cuda_stream: Any = None) -> str:
        """Return `state`; ``cuda_stream`` is ignored."""
        return self.state

    def set_state(self, value: str) -> None:
        """Set the seed and the number of draws from a `state`; raise ValueError if the string isn't a state."""
        match = _STATE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"state must be the state of an RNG, got {value!r}")
        self._seed, self._count = int(match[1], 16), int(match[2], 16)

    def advance(self, n: int) -> None:
        """Skip ``n`` draws."""
        self._count += int(n)

    def clone(self) -> RNG:
        """Return a generator with the same state, which returns the same numbers."""
        return RNG(state=self.state)

    def _key_at(self, count: int) -> int:
        """Return the key after `count` draws. A key determines the random numbers of one call of an operator."""
        return mix(self._seed, count)

    def _key(self) -> int:
        """Draw the key of one call of an operator."""
        key = self._key_at(self._count)
        self._count += 1
        return key

    def __call__(self) -> int:
        return self._key() & 0xFFFFFFFF

    def __repr__(self) -> str:
        return f"RNG(state={self.state!r})"


def get_default_rng() -> RNG:
    """Return the default generator of this thread."""
    generator: RNG | None = getattr(_local, "rng", None)
    if generator is None:
        generator = _local.rng = RNG()
    return generator


def set_seed(seed: int) -> None:
    """Seed the default generator of this thread."""
    get_default_rng().seed = seed
