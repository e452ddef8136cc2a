"""`RayLoader`: an iterator over a pipeline whose batches Ray actors create."""

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
    """A pipeline whose batches Ray actors create. All other attributes are the pipeline's own.

    It delivers the same batches in the same order as the pipeline itself, whatever the number of actors, even if actors
    are added or lost. This process selects the samples, calls Python sources, orders the batches, and runs the
    operators that need a device. Ray must be initialized (``ray.init``).

    Args:
        make: Function without arguments that creates the pipeline; this process calls it. All nodes must have the
            pipeline's data under the same paths, and must be able to import the modules of your own operators.
        actors: Number of actors to start; each actor has as many threads as the pipeline. Lost actors are replaced.
        actor_options: Arguments of Ray's ``options`` for actors, for example ``num_cpus`` (the pipeline's number of
            threads), ``resources`` or ``scheduling_strategy``.
        timeout: Seconds within which an actor must start.

    Raises:
        ValueError: `actors` is below 1.
        RuntimeError: raised by `build` if no actor starts within `timeout`, or if no part of the pipeline can run in
            another process.
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
        """Start more actors, also in mid-epoch. They receive batches as soon as they run."""
        pool_of(self._pipe).add(count)

    @property
    def actors_lost(self) -> int:
        """Number of actors lost so far."""
        return len(pool_of(self._pipe).exits)


class RayLoader(DALIGenericIterator):
    """Deliver the batches of a pipeline that Ray actors run as ``[{name: tensor}]``, like `DALIGenericIterator`.

    The batches, their order and the epochs are the same as without Ray for the same seed, and states from
    ``state_dict`` can be loaded with and without Ray. Each rank of a training creates its own loader, whose `make`
    function passes ``shard_id`` and ``num_shards`` to the reader. With ``pad_last_batch=True``, all ranks together
    deliver each sample exactly once per epoch.

    Args:
        make: See `RayPipeline`.
        output_map: A name for each output.
        reader_name: The reader whose size, shards and padding define the epoch.
        actors: See `RayPipeline`.
        actor_options: See `RayPipeline`.
        timeout: See `RayPipeline`.
        auto_reset: Begin the next epoch automatically.
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
        """Close the pipeline, and stop its actors."""
        self.pipeline.close()
