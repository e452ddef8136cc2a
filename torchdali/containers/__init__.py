"""Work on containers outside of pipelines: make indices, pack images into shards, look for damage.

The command line (``torchdali index``, ``pack``, ``check`` and ``stats``) is made of these.
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
