"""Pipelines whose batches are computed by Ray actors; see `torchdali.plugin.ray`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchdali.execute.workers.actors import Actors
from torchdali.execute.workers.pool import WorkerPool
from torchdali.pipeline._pipeline import Pipeline

__all__ = ["open_pool", "use_actors"]


def use_actors(pipe: Pipeline, count: int, options: Mapping[str, Any], timeout: float) -> None:
    """Configure a pipeline, before it is built, so that actors compute its batches; see `Actors`."""
    pipe._remote_workers = Actors(count, options, timeout)


def open_pool(pipe: Pipeline) -> WorkerPool:
    """Build the pipeline, and return the pool of its actors."""
    pipe.build()
    replicas = pipe._planned.replicas
    assert replicas is not None
    return replicas.pool
