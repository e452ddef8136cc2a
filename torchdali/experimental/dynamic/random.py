"""Random operators of the dynamic mode, and generators of random numbers.

An operator draws from the generator that you pass as ``rng=``, or else from the thread's default generator.
"""

from torchdali.experimental.dynamic._rng import RNG, get_default_rng, set_seed

__all__ = ["RNG", "get_default_rng", "set_seed"]
