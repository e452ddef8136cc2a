"""`RayPipeline` and `RayLoader`: a pipeline whose batches are computed by Ray actors, and an iterator over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from torchdali.pipeline import Pipeline
from torchdali.pipeline._actors import open_pool, use_actors
from torchdali.plugin._arguments import OnBreak
from torchdali.plugin.base_iterator import LastBatchPolicy
from torchdali.plugin.pytorch import DALIGenericIterator

__all__ = ["RayLoader", "RayPipeline"]


class RayPipeline:
    """A pipeline whose batches are computed by Ray actors. It has the same methods as a `Pipeline`.

    The batches and their order are the same as without Ray, even if actors are added or lost. The process that creates
    the object selects the samples, calls Python sources, orders the batches, and runs the operators that need a device.
    Initialize Ray with ``ray.init`` first.

    Args:
        make: Function without arguments that creates the pipeline. On every machine of the cluster, the pipeline's data
            must have the same paths, and the modules of your own operators must be importable.
        actors: Number of actors to start. Each actor has as many threads as the pipeline. Lost actors are replaced.
        actor_options: Arguments of Ray's ``options`` for the actors, for example ``resources`` or
            ``scheduling_strategy``. Set ``num_cpus`` to the pipeline's number of threads.
        timeout: Maximum time in seconds for the start of an actor.

    Raises:
        ValueError: `actors` is below 1.
        RuntimeError: raised by `build` if no actor starts within `timeout`, or if no operator of the pipeline can run
            in another process.
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
            raise ValueError(f"actors must be at least 1, got {actors}")
        self._pipe = make()
        use_actors(self._pipe, actors, {"num_cpus": 1, **(actor_options or {})}, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)

    def add_actors(self, count: int) -> None:
        """Start more actors, also in mid-epoch. Each of them receives batches when it has started."""
        open_pool(self._pipe).add(count)

    @property
    def actors_lost(self) -> int:
        """Number of actors that were lost so far."""
        return len(open_pool(self._pipe).exits)


class RayLoader(DALIGenericIterator):
    """Iterator like `DALIGenericIterator` over a pipeline whose batches are computed by Ray actors.

    With the same seed, the loader delivers the same batches in the same order as without Ray. A state from
    ``state_dict`` can be loaded with and without Ray.

    In distributed training, each rank creates its own loader, and its `make` function passes ``shard_id`` and
    ``num_shards`` to the reader. If `make` also passes ``pad_last_batch=True``, all ranks together deliver each sample
    exactly once per epoch.

    Args:
        make: Function without arguments that creates the pipeline; see `RayPipeline`.
        output_map: Names of the pipeline's outputs, in order.
        reader_name: Name of the reader whose size, shards and padding determine the epoch.
        actors: Number of actors to start.
        actor_options: Arguments of Ray's ``options`` for the actors; see `RayPipeline`.
        timeout: Maximum time in seconds for the start of an actor.
        auto_reset: True to begin the next epoch automatically.
        last_batch_policy: Treatment of a last batch that isn't full; see `LastBatchPolicy`.
        on_break: Behavior of a new loop after a loop that ended in mid-epoch; see `DALIGenericIterator`.
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
