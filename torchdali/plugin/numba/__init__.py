"""Operators that call Python functions, compiled by Numba. They need the package ``numba``."""

from __future__ import annotations

from torchdali.plugin.numba import experimental as experimental
from torchdali.plugin.numba import fn as fn
