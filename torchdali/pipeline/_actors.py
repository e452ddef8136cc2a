"""Pipelines whose batches actors of Ray make; see `torchdali.plugin.ray`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchdali.execute.workers.actors import Actors
from torchdali.execute.workers.pool import WorkerPool
from torchdali.pipeline._pipeline import Pipeline

__all__ = ["pool_of", "use_actors"]


def use_actors(pipe: Pipeline, count: int, options: Mapping[str, Any], timeout: float) -> None:
    """Make actors compute the batches of a pipeline that is not yet built; see `Actors`."""
    pipe._elsewhere = Actors(count, options, timeout)


def pool_of(pipe: Pipeline) -> WorkerPool:
    """Return the pool of the actors; builds the pipeline."""
    pipe.build()
    replicas = pipe._planned.replicas
    assert replicas is not None
    return replicas.pool
