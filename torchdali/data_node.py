"""DALI's module ``data_node``."""

from __future__ import annotations

from torchdali.graph.nodes import DataNode, newaxis

__all__ = ["DataNode", "newaxis"]
