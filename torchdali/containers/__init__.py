"""Tools for containers (files with many samples): write indices, pack images into shards, find damage.

The command line (``torchdali index``, ``pack``, ``check`` and ``stats``) uses these functions.
"""

from __future__ import annotations

from torchdali.containers._check import IMAGES, Problem, check
from torchdali.containers._index import KINDS, index, manifest
from torchdali.containers._pack import Packed, PackOptions, pack
from torchdali.containers._statistics import Statistics, statistics

__all__ = [
    "IMAGES", "KINDS", "PackOptions", "Packed", "Problem", "Statistics", "check", "index", "manifest", "pack",
    "statistics",
]  # fmt: skip
