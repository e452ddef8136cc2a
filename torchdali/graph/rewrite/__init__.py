"""Replace operators of a graph by one that does their work together."""

from torchdali.graph.rewrite._caching import cut_at_caches
from torchdali.graph.rewrite._fast_path import fast_path, is_fast
from torchdali.graph.rewrite._identical import merge_identical
from torchdali.graph.rewrite._on_cpu import finish_together, fuse_decoding, fuse_native, fuse_resizing
from torchdali.graph.rewrite._on_device import decode_windows, fuse_on_device, share_decoding

__all__ = [
    "cut_at_caches", "decode_windows", "fast_path", "finish_together", "fuse_decoding", "fuse_native", "fuse_on_device",
    "fuse_resizing", "is_fast", "merge_identical", "share_decoding",
]  # fmt: skip
