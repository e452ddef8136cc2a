"""The operator `numba_function` in the functional API, as `experimental.numba_function`."""

from torchdali.plugin.numba.fn import experimental

__all__ = ["experimental"]
