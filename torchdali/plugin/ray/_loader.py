"""The trainer's side: hands out the numbers of batches, and delivers the batches in order."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import ray

from torchdali.pipeline import Pipeline
from torchdali.plugin._arguments import OnBreak
from torchdali.plugin.base_iterator import LastBatchPolicy
from torchdali.plugin.pytorch import DALIGenericIterator
from torchdali.plugin.ray._actor import PipelineActor, Place
from torchdali.plugin.ray._sending import Sent, received, size_of
from torchdali.tensors import TensorList
from torchdali.tensors.buffer_pool import BufferPool
from torchdali.types import PipelineAPIType

__all__ = ["RayLoader", "RayPipeline"]

_AT_ONCE = 3  # batches that an actor is asked for ahead
_POLL = 1.0  # seconds between checks that the actor is still alive
_PATIENCE = 5.0  # seconds in which an actor answers a call that takes no time, also while it computes
_LOST = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)


class _Crew:
    """The actors of a loader, those that start, and the batches they were asked for."""

    def __init__(self, make: Callable[[], Pipeline], options: Mapping[str, Any]) -> None:
        self._make = ray.put(make)
        self._kind: Any = ray.remote(PipelineActor).options(max_restarts=0, max_task_retries=0, **options)
        self.starting: dict[Any, Any] = {}  # reference of its greeting: actor
        self.working: dict[Any, int] = {}  # actor: batches it was asked for
        self.asked: dict[Any, tuple[Any, int, int]] = {}  # reference: actor, era, number
        self.calls: dict[Any, tuple[Any, float]] = {}  # actor: a call that takes no time, and when it was made
        self.lost = 0

    def start(self, count: int) -> None:
        """Start actors; they work once Ray has found a place for them."""
        for _ in range(count):
            actor = self._kind.remote(self._make)
            self.starting[actor.hello.remote()] = actor

    def lose(self, actor: Any) -> list[tuple[int, int]]:
        """Forget an actor that is gone, and start another; return era and number of the batches it was asked for."""
        self.calls.pop(actor, None)
        if self.working.pop(actor, None) is not None:
            self.lost += 1
            with contextlib.suppress(Exception):
                ray.kill(actor)
            self.start(1)
        left = [reference for reference, asked in self.asked.items() if asked[0] == actor]
        return [self.asked.pop(reference)[1:] for reference in left]

    def silent(self) -> list[Any]:
        """Call the actors, and return those that have not answered the last call: of a stopped process, say."""
        now = time.monotonic()
        for actor in self.working:
            last = self.calls.get(actor)
            if last is None or ray.wait([last[0]], timeout=0)[0]:
                self.calls[actor] = actor.answer.remote(), now
        return [actor for actor, (_, since) in self.calls.items() if now - since > _PATIENCE]

    def ask(self, era: int, place: Any, number: int) -> bool:
        """Ask the actor with the least to do for a batch; return False if all have enough."""
        actor = min(self.working, key=self.working.__getitem__, default=None)
        if actor is None or self.working[actor] >= _AT_ONCE:
            return False
        self.working[actor] += 1
        self.asked[actor.batch.remote(era, place, number)] = actor, era, number
        return True

    def close(self) -> None:
        """End all actors."""
        if not ray.is_initialized():
            return  # it ended them, and would start anew for `kill`
        for actor in [*self.working, *self.starting.values()]:
            with contextlib.suppress(Exception):
                ray.kill(actor)
        self.working.clear()
        self.starting.clear()
        self.calls.clear()


class RayPipeline:
    """Stands for a pipeline with readers that is run by Ray actors: for the iterators of `plugin.pytorch`.

    Delivers the same batches in the same order as the pipeline itself, whatever the number of actors, and while
    actors come and go. Outputs arrive in main memory. Ray must be initialized (``ray.init``).

    Args:
        make: Makes the pipeline, in every actor; called without arguments (``functools.partial``). Its data must be
            found under the same names on all nodes. Its inputs are readers; no external source.
        actors: How many to start. An actor that is lost is replaced once there is room for another.
        max_bytes: Bytes of batches that are asked for and not yet taken: the actors wait above that. At least one
            batch is on its way at all times.
        actor_options: Arguments of Ray's ``options`` for actors, such as ``num_cpus`` (say as many as the pipeline
            has threads), ``resources`` or ``scheduling_strategy``.
        timeout: Seconds to wait while not a single actor runs.

    Raises:
        RuntimeError: no actor runs within `timeout`. Errors of the pipeline are raised where it would raise them.
    """

    def __init__(
        self,
        make: Callable[[], Pipeline],
        *,
        actors: int = 2,
        max_bytes: int = 1 << 30,
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
    ) -> None:
        if actors < 1:
            raise ValueError(f"actors={actors}: there must be one or more")
        if max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes}: it must be 1 or more")
        self._crew = _Crew(make, {"num_cpus": 1, **(actor_options or {})})
        self._crew.start(actors)
        self._finalizer = weakref.finalize(self, _Crew.close, self._crew)
        self._max_bytes, self._timeout = max_bytes, timeout
        self._hello: dict[str, Any] | None = None
        self._batch_bytes = 0
        self._buffers = BufferPool()  # fresh memory would cost more than the copy into it
        self._held: tuple[TensorList, ...] = ()
        self._era = self._taken = 0
        self._place: Place = {}
        self.external_context: dict[str, Any] = {}

    def add_actors(self, count: int) -> None:
        """Start more actors, which take part as soon as they run; also in mid-epoch."""
        self._crew.start(count)

    @property
    def actors_lost(self) -> int:
        """Actors that were lost so far."""
        return self._crew.lost

    def close(self) -> None:
        """End the actors."""
        self._finalizer()

    # ------------------------------------------------------------ as a pipeline

    def build(self) -> None:
        """Wait until one actor has built its pipeline."""
        limit = time.monotonic() + self._timeout
        while self._hello is None:
            self._look(limit)

    @property
    def max_batch_size(self) -> int:
        """Samples of a batch."""
        return int(self._built["batch_size"])

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """True if the pipelines continue from a checkpoint."""
        return bool(self._built["restored"])

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Describe a reader, or all; see `Pipeline.reader_meta`."""
        readers: dict[str, Any] = self._built["readers"]
        if name is not None and name not in readers:
            raise RuntimeError(f"there is no reader {name!r}; the pipeline has {sorted(readers)}")
        return readers if name is None else cast("dict[str, Any]", readers[name])

    def driven_by(self, api: PipelineAPIType) -> contextlib.AbstractContextManager[None]:
        """Allow all styles: batches are not counted differently here."""
        return contextlib.nullcontext()

    def schedule_run(self) -> None:
        """Ask the actors for as many batches as there is room for."""
        self._built  # noqa: B018
        self._hand_out()

    def release_outputs(self) -> None:
        """Let go of the last batch; what the caller still holds stays whole."""
        self._held = ()

    def reset(self) -> None:
        """Do nothing: readers have no end."""

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the next batch.

        Raises:
            RuntimeError: all actors are lost, and none starts. Otherwise what failed in the batch.
        """
        self._built  # noqa: B018
        limit = time.monotonic() + self._timeout
        while self._taken not in self._arrived:
            self._hand_out()
            limit = time.monotonic() + self._timeout if self._crew.working else limit
            self._look(limit)
        error, outputs, self._place = self._arrived.pop(self._taken)
        self._taken += 1
        if error is not None:
            raise error
        self._held = tuple(received(each, self._buffers) for each in outputs)
        return self._held

    def state_dict(self) -> Place:
        """Return the place after the last batch that was taken; a pipeline can continue there, and the reverse."""
        self._built  # noqa: B018
        return self._place

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a place; batches on their way are dropped.

        A state of another graph is refused when the next batch is taken.
        """
        self._built  # noqa: B018
        self.external_context = dict(state.get("external_context", {}))
        self._begin_at(dict(state))

    # ------------------------------------------------------------ numbers out, batches in

    @property
    def _built(self) -> dict[str, Any]:
        self.build()
        assert self._hello is not None
        return self._hello

    def _begin_at(self, place: Place) -> None:
        """Count batches from a place; actors that are asked for one go there."""
        self._era += 1
        self._place, self._start = place, ray.put(place)
        self._taken = self._next = 0  # numbers of the batch to take, and of the first never asked for
        self._again: list[int] = []  # numbers that lost actors leave, each once
        self._arrived: dict[int, tuple[Exception | None, list[Sent], Place]] = {}

    def _hand_out(self) -> None:
        """Ask for batches: first those that lost actors leave, then new ones, as far as memory allows."""
        crew = self._crew
        room = len(crew.working) * _AT_ONCE
        if self._batch_bytes:
            room = max(1, min(room, self._max_bytes // self._batch_bytes))
        while self._again and crew.ask(self._era, self._start, min(self._again)):
            self._again.remove(min(self._again))
        while self._next < self._taken + room and crew.ask(self._era, self._start, self._next):
            self._next += 1

    def _look(self, limit: float) -> None:
        """Wait for anything to arrive: a batch, or an actor that has started."""
        crew = self._crew
        if not self._finalizer.alive:
            raise RuntimeError("the actors were ended: close() was called")
        waited = [*crew.asked, *crew.starting]
        ready = ray.wait(waited, num_returns=1, timeout=_POLL)[0] if waited else []
        for actor in [] if ready else crew.silent():
            self._lose(actor)
        for reference in ready:
            if reference in crew.starting:
                self._greet(reference)
            else:
                self._receive(reference)
        if not crew.working and time.monotonic() > limit:
            raise RuntimeError(
                f"no actor runs after {self._timeout:g} s ({len(crew.starting)} wait to start, {crew.lost} were lost): "
                f"see actor_options and timeout"
            )

    def _greet(self, reference: Any) -> None:
        """Take an actor that has started into service."""
        crew = self._crew
        actor = crew.starting.pop(reference)
        try:
            hello = ray.get(reference)
        except _LOST:
            crew.start(1)
            return
        crew.working[actor] = 0
        if self._hello is None:
            # All begin where the first one does: without a seed, each pipeline would draw its own.
            self._hello, self.external_context = hello, hello["context"]
            self._begin_at(hello["place"])

    def _lose(self, actor: Any) -> None:
        """Let others make what an actor was asked for."""
        left = self._crew.lose(actor)
        self._again += [number for era, number in left if era == self._era]

    def _receive(self, reference: Any) -> None:
        crew = self._crew
        actor, era, number = crew.asked[reference]
        try:
            found = ray.get(reference)
        except _LOST:
            self._lose(actor)
            return
        except ray.exceptions.RayTaskError as error:
            found = error, [], self._place
        del crew.asked[reference]
        if actor in crew.working:
            crew.working[actor] -= 1
        if era == self._era:  # of a dropped batch, only the actor's time is needed back
            self._batch_bytes = max(self._batch_bytes, size_of(found[1]))
            self._arrived[number] = found


class RayLoader(DALIGenericIterator):
    """Iterate over a pipeline that Ray actors run: ``[{name: tensor}]``, as `DALIGenericIterator` does.

    Batches, their order and epochs are those of the pipeline in this process with the same seed; ``state_dict`` and
    ``load_state_dict`` are interchangeable with it. Each rank of a training makes a loader of its own, whose `make`
    gives the reader ``shard_id`` and ``num_shards``: with
    ``pad_last_batch=True`` each sample comes exactly once an epoch over all ranks.

    Args:
        make: See `RayPipeline`, as are `actors`, `max_bytes`, `actor_options` and `timeout`.
        output_map: A name for each output.
        reader_name: The reader whose shards and padding make the epoch.
        actors: How many to start.
        max_bytes: Bytes of batches on their way, at most.
        actor_options: Arguments of Ray's ``options`` for actors.
        timeout: Seconds to wait while not a single actor runs.
        auto_reset: Begin the next epoch by itself.
        last_batch_policy: What becomes of a last batch that is not full.
        on_break: See `DALIGenericIterator`.
    """

    def __init__(
        self,
        make: Callable[[], Pipeline],
        output_map: Sequence[str],
        reader_name: str,
        *,
        actors: int = 2,
        max_bytes: int = 1 << 30,
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
        auto_reset: bool = True,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.PARTIAL,
        on_break: OnBreak = "continue",
    ) -> None:
        self.pipeline = RayPipeline(
            make, actors=actors, max_bytes=max_bytes, actor_options=actor_options, timeout=timeout
        )
        super().__init__(
            cast("Pipeline", self.pipeline), output_map, reader_name=reader_name, auto_reset=auto_reset,
            last_batch_policy=last_batch_policy, prepare_first_batch=False, on_break=on_break,
        )  # fmt: skip

    def close(self) -> None:
        """End the actors."""
        self.pipeline.close()
