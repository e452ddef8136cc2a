"""The one place where tests look into a pipeline: its executor, and the processes and memory that work for it."""

from __future__ import annotations

from typing import Any

from torchdali import Pipeline

__all__ = ["blocks_made", "executor_of", "pool_of", "server_of", "spare_of"]


def executor_of(pipe: Pipeline) -> Any:
    """Return what runs a pipeline that is built."""
    return pipe._executor


def pool_of(pipe: Pipeline) -> Any:
    """Return its worker processes."""
    return executor_of(pipe).replicas.pool


def server_of(pool: Any) -> int:
    """Return the number of the process that starts workers."""
    return int(pool._starter._server._serving.process.pid)


def spare_of(pool: Any) -> int:
    """Return the number of the process that takes its place."""
    return int(pool._starter._server._spare.process.pid)


def blocks_made(buffers: Any) -> int:
    """Return how many blocks of shared memory were made."""
    return int(buffers._made_blocks)
