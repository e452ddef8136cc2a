"""Use a pipeline with PyTorch's `DataLoader`: workers load the samples, and the main process runs the pipeline."""

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
