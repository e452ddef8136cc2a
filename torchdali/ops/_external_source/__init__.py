"""`external_source`: batches that the user's Python code makes.

`operator` declares it, as function and class; `arguments` checks a call; `sources` are the three runtime classes
(called in this process, called in worker processes, fed by the user); `callbacks` call the user's code; `convert` turns
its data into batches.
"""

from __future__ import annotations

from torchdali.ops._external_source.operator import ExternalSource, external_source

__all__ = ["ExternalSource", "external_source"]
