"""Replace several operators of a graph by one equivalent operator.

================  ============================================================================
`_decoding`       fuses decoders with the operators after them on the CPU, if one call of the
                  native library can run all these operators
`_on_device`      fuses decoders with operators on a device, and resizes with crops
`_identical`      merges operators that compute the same values
`_caching`        replaces the nodes before `fn.cache` by a reader of the cached samples
`_nodes`          finds, joins and copies nodes
`_sentences`      explains for `Pipeline.explain` which decoders use the native library
================  ============================================================================

The new operators are in ``ops/_decode_chain.py``, ``ops/_mixed.py`` and ``ops/_resize_and_normalize.py``.
"""

import torch

from torchdali.graph.nodes import Graph
from torchdali.graph.rewrite._caching import cut_at_caches
from torchdali.graph.rewrite._decoding import fuse_decoding
from torchdali.graph.rewrite._identical import merge_identical
from torchdali.graph.rewrite._nodes import copy_node
from torchdali.graph.rewrite._on_device import decode_windows, fuse_resizing, set_shares, share_decoding
from torchdali.graph.rewrite._sentences import explain_fast_path, uses_fast_path

__all__ = ["copy_node", "cut_at_caches", "explain_fast_path", "rewrite", "uses_fast_path"]


def rewrite(graph: Graph, exact: bool, scaled: bool, device: torch.device | None) -> Graph:
    """Run all rewriting passes in order. The caller must first run `cut_at_caches`.

    Args:
        exact: True if results must be bit-identical to DALI's results.
        scaled: True to decode large photos at a smaller scale.
        device: The accelerator; None to leave operators on a device unchanged.
    """
    graph = merge_identical(graph)
    if device is not None:
        graph = set_shares(graph, device)
        graph = share_decoding(graph if exact else decode_windows(graph, device))
    return fuse_resizing(fuse_decoding(graph, exact, scaled), device)
