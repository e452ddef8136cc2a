"""Pipelines: trace a function into a graph, plan the graph, and execute the plan."""

from __future__ import annotations

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.execute.checkpoint import reshard as reshard_pipelines
from torchdali.graph.conditionals import do_not_convert
from torchdali.graph.nodes import DataNode
from torchdali.kernels.device.tables import missing_kernel_requirement
from torchdali.kernels.native import status as native_status
from torchdali.pipeline import experimental
from torchdali.pipeline._factory import pipeline_def
from torchdali.pipeline._pipeline import Pipeline
from torchdali.types import OperatorConcurrency, StreamPolicy

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "do_not_convert",
    "experimental",
    "missing_kernel_requirement",
    "native_status",
    "pipeline_def",
    "reshard_pipelines",
]
