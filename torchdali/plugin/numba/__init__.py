"""Functions that Numba compiles, as operators (extra package ``numba``)."""

from __future__ import annotations

from torchdali.plugin.numba import experimental as experimental
from torchdali.plugin.numba import fn as fn
