"""Work on containers outside of pipelines: make indices, pack images into shards, look for damage.

The command line (``torchdali index``, ``pack`` and ``check``) is made of these.
"""

from __future__ import annotations

from torchdali.containers._check import IMAGES, Problem, check
from torchdali.containers._index import KINDS, index
from torchdali.containers._pack import Packed, PackOptions, pack

__all__ = ["IMAGES", "KINDS", "PackOptions", "Packed", "Problem", "check", "index", "pack"]
