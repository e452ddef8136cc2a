"""PyTorch: `proxy`, pipelines for torch's own `DataLoader`."""

from __future__ import annotations

from torchdali.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
