"""Experimental features for PyTorch: `proxy` lets PyTorch's `DataLoader` use a pipeline."""

from __future__ import annotations

from torchdali.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
