"""Pipelines for torch's own `DataLoader`: worker processes read the samples, the pipeline does the rest."""

from __future__ import annotations

from torchdali.dali.proxy.loader import DataLoader
from torchdali.dali.proxy.messages import (
    DALIOutputBatchRef,
    DALIOutputSampleRef,
    DALIPipelineRunRef,
)
from torchdali.dali.proxy.server import DALIServer

__all__ = [
    "DALIOutputBatchRef",
    "DALIOutputSampleRef",
    "DALIPipelineRunRef",
    "DALIServer",
    "DataLoader",
]
