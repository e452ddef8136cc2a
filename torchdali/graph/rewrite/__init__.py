"""Replace operators of a graph by one that does their work together.

================  ============================================================================
`_on_cpu`         decoders with what comes after them, resizes with crops: what the fast path takes, too
`_on_device`      the same for operators of a device
`_identical`      operators that compute the same, computed once
`_caching`        what stands before `fn.cache`
`_nodes`          finding, joining and copying nodes
`_sentences`      what `Pipeline.explain` says of the fast path
================  ============================================================================

The operators that it puts in are in ``ops/_fused.py`` (from Python) and ``ops/_fused_windows.py``;
``ops/_native_images.py`` makes their calls of C.
"""

from torchdali.graph.rewrite._caching import cut_at_caches
from torchdali.graph.rewrite._identical import merge_identical
from torchdali.graph.rewrite._on_cpu import finish_together, fuse_decoding, fuse_native, fuse_resizing
from torchdali.graph.rewrite._on_device import decode_windows, fuse_on_device, share_decoding
from torchdali.graph.rewrite._sentences import fast_path, is_fast

__all__ = [
    "cut_at_caches", "decode_windows", "fast_path", "finish_together", "fuse_decoding", "fuse_native", "fuse_on_device",
    "fuse_resizing", "is_fast", "merge_identical", "share_decoding",
]  # fmt: skip
