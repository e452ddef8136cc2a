"""Random operators, and the generators that they draw from.

An operator takes ``rng=`` or the default generator of the thread.
"""

from torchdali.experimental.dynamic._rng import RNG, get_default_rng, set_seed

__all__ = ["RNG", "get_default_rng", "set_seed"]
