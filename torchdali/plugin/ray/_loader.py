"""`RayLoader`: an iterator over a pipeline whose replicas Ray places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from torchdali.pipeline import Pipeline
from torchdali.pipeline._actors import pool_of, use_actors
from torchdali.plugin._arguments import OnBreak
from torchdali.plugin.base_iterator import LastBatchPolicy
from torchdali.plugin.pytorch import DALIGenericIterator

__all__ = ["RayLoader", "RayPipeline"]


class RayPipeline:
    """A pipeline whose batches are made by actors of Ray; everything else is as in the pipeline.

    Delivers the same batches in the same order as the pipeline itself, whatever the number of actors, and while
    actors come and go. This process draws the samples, calls Python sources, keeps the order and runs all that needs a
    device. Ray must be initialized (``ray.init``).

    Args:
        make: Makes the pipeline; called here, without arguments. Its data must be found under the same names on all
            nodes; operators of your own must be in modules that all nodes can import.
        actors: How many to start; each has as many threads as the pipeline. An actor that is lost is replaced.
        actor_options: Arguments of Ray's ``options`` for actors, for example ``num_cpus`` (as many as the pipeline
            has threads), ``resources`` or ``scheduling_strategy``.
        timeout: Seconds for an actor to start.

    Raises:
        ValueError: `actors` is below 1. RuntimeError, by `build`: no actor runs within `timeout`; nothing of the
            pipeline can run in another process. Errors of the pipeline are raised where it would raise them.
    """

    def __init__(
        self,
        make: Callable[[], Pipeline],
        *,
        actors: int = 2,
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
    ) -> None:
        if actors < 1:
            raise ValueError(f"actors={actors}: there must be one or more")
        self._pipe = make()
        use_actors(self._pipe, actors, {"num_cpus": 1, **(actor_options or {})}, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)

    def add_actors(self, count: int) -> None:
        """Start more actors, which take part as soon as they run; also in mid-epoch."""
        pool_of(self._pipe).add(count)

    @property
    def actors_lost(self) -> int:
        """Actors that were lost so far."""
        return len(pool_of(self._pipe).exits)


class RayLoader(DALIGenericIterator):
    """Iterate over a pipeline whose batches Ray's actors make: ``[{name: tensor}]``, as `DALIGenericIterator` does.

    Batches, their order and epochs equal the pipeline's in this process with the same seed; ``state_dict`` and
    ``load_state_dict`` are interchangeable with it. Each rank of a training makes a loader of its own, whose `make`
    gives the reader ``shard_id`` and ``num_shards``: with ``pad_last_batch=True`` each sample comes exactly once an
    epoch over all ranks.

    Args:
        make: See `RayPipeline`, as are `actors`, `actor_options` and `timeout`.
        output_map: A name for each output.
        reader_name: The reader whose shards and padding make the epoch.
        actors: How many to start.
        actor_options: Arguments of Ray's ``options`` for actors.
        timeout: Seconds for an actor to start.
        auto_reset: Begin the next epoch by itself.
        last_batch_policy: Treatment of a last batch that is not full.
        on_break: See `DALIGenericIterator`.
    """

    def __init__(
        self,
        make: Callable[[], Pipeline],
        output_map: Sequence[str],
        reader_name: str,
        *,
        actors: int = 2,
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
        auto_reset: bool = True,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.PARTIAL,
        on_break: OnBreak = "continue",
    ) -> None:
        self.pipeline = RayPipeline(make, actors=actors, actor_options=actor_options, timeout=timeout)
        super().__init__(
            cast("Pipeline", self.pipeline), output_map, reader_name=reader_name, auto_reset=auto_reset,
            last_batch_policy=last_batch_policy, prepare_first_batch=False, on_break=on_break,
        )  # fmt: skip

    def close(self) -> None:
        """End the actors."""
        self.pipeline.close()
