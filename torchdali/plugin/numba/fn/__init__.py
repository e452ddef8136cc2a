"""Functions that Numba compiles, called like the operators of `torchdali.fn`."""

from torchdali.plugin.numba.fn import experimental

__all__ = ["experimental"]
