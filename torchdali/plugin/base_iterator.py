"""The common parts of the iterators of all frameworks: epochs, resets, several pipelines, saved places."""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

from torchdali.errors import strip_internal_frames
from torchdali.pipeline._old_names import IteratorOldNames
from torchdali.plugin._epochs import EpochCounter, LastBatchPolicy, OpenEpochs, Shards
from torchdali.types import PipelineAPIType

if TYPE_CHECKING:
    from torchdali.pipeline import Pipeline
    from torchdali.tensors import TensorList

__all__ = ["BaseIterator", "LastBatchPolicy", "Resumable"]

_log = logging.getLogger(__name__)


@runtime_checkable
class Resumable(Protocol):
    """A pipeline that can tell its place and continue at one.

    Attributes:
        external_context: What others added to the checkpoint that it continues.
    """

    external_context: dict[str, Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the place after the last batch that was taken, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a place; batches in flight are dropped."""
        ...


class BaseIterator(IteratorOldNames):
    """Draws batches from pipelines, epoch by epoch; a framework's iterator adds the conversion.

    Several batches stay in flight: as soon as one was taken from a pipeline, the next is scheduled.

    Args:
        pipelines: One pipeline, or several that deliver side by side.
        size: Samples of an epoch where there is no reader; negative: until the source ends.
        reader_name: The reader whose shards and padding make the epoch; excludes `size`.
        auto_reset: Begin the next epoch by itself: True or "yes"; False, "no" or None need `reset`,
            or a new `for` loop.
        fill_last_batch: Deprecated: True means FILL, False PARTIAL.
        last_batch_padded: With `size`: the pipelines pad their last batch.
        last_batch_policy: What becomes of a last batch that is not full.
        prepare_first_batch: Take the first batch at once, so that errors show here.
        on_break: What a new loop does after one that was left in mid-epoch: ``"continue"`` goes on with the epoch,
            as DALI does; ``"restart"`` begins the epoch again, with the same samples in the same order; ``"next"``
            begins the next epoch, as a DataLoader does (both not DALI's).
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        on_break: str = "continue",
    ) -> None:
        self._on_break = _as_on_break(on_break)
        self._pipes = list(pipelines) if isinstance(pipelines, Sequence) else [pipelines]
        if not self._pipes:
            raise IndexError("pipelines is empty: give the iterator at least one pipeline.")
        self._begins_anew = _as_flag(auto_reset)
        self._prepare_first_batch = prepare_first_batch
        self._policy = _policy(last_batch_policy, fill_last_batch)
        for pipe in self._pipes:
            if not hasattr(pipe, "build"):
                raise AttributeError(f"{pipe!r} is no pipeline; call what pipeline_def made, to make one.")
            pipe.build()
        self.batch_size = self._common_batch_size()
        self._declared_size = size
        self._reader_name = reader_name
        self._reader_counts = bool(reader_name)  # False once a program set another size
        self._epochs = self._make_counter(size, reader_name, last_batch_padded)
        self._scheduled = self._over = self._resumed = False
        self._epoch_start: dict[str, Any] | None = None
        self._first_batch: Any = None
        self._counts: list[int] | None = None
        self._before_first: list[dict[str, Any]] = []
        self._continue_checkpoint()
        self._mark_start()
        if prepare_first_batch:
            self._prepare()

    # ------------------------------------------------------------ checking the arguments

    def _common_batch_size(self) -> int:
        sizes = {pipe.max_batch_size for pipe in self._pipes}
        if len(sizes) > 1:
            raise AssertionError(f"All pipelines must have the same batch size; found {sorted(map(str, sizes))}.")
        return int(sizes.pop() or 0)

    def _make_counter(self, size: int, reader_name: str | None, padded: bool) -> EpochCounter | OpenEpochs:
        if reader_name:
            if size != -1:
                raise AssertionError("size follows from the reader: give either size or reader_name")
            if padded:
                raise AssertionError(
                    "With reader_name, padding is read off the reader: leave out last_batch_padded "
                    "and give pad_last_batch to the reader."
                )
            return self._reader_counter(reader_name)
        if size == 0:
            raise AssertionError("Size cannot be 0: size is 0; give the samples of an epoch, or -1 for no limit.")
        if size < 0:
            if len(self._pipes) > 1:
                raise AssertionError("Negative size is supported only for a single pipeline: give reader_name or size.")
            self._warn_of_no_end()
            return OpenEpochs()
        warnings.warn(
            "An epoch of a given size may miss or repeat samples: where there is a reader, give "
            "its name as reader_name instead of size and last_batch_padded.",
            Warning,
            stacklevel=5,
        )
        ranks = [0] * len(self._pipes)
        return EpochCounter(Shards(size, padded=padded), self.batch_size, self._policy, ranks)

    def _warn_of_no_end(self) -> None:
        readers: Sequence[str] = ()
        with contextlib.suppress(RuntimeError, AttributeError):  # debug mode has no graph to ask
            readers = list(self._pipes[0].reader_meta())
        if readers:
            _log.warning(
                "Readers have no end, and this iterator was given neither reader_name nor size: unless another source "
                "ends, a loop over it goes on for ever. Give reader_name=%r.",
                readers[0],
            )

    def _reader_counter(self, reader_name: str) -> EpochCounter:
        metas = [pipe.reader_meta(reader_name) for pipe in self._pipes]
        for key, argument in _SAME_IN_ALL.items():
            values = {meta[key] for meta in metas}
            if len(values) > 1:
                raise AssertionError(
                    f"The reader {reader_name!r} must have the same {argument} in all pipelines; "
                    f"found {sorted(values)}."
                )
        ranks = [meta["shard_id"] for meta in metas]
        return EpochCounter(Shards.of_reader(metas[0]), self.batch_size, self._policy, ranks)

    # ------------------------------------------------------------ iterating

    def __iter__(self) -> Any:
        """Begin the next epoch if this one is finished; otherwise go on with it, or begin it again (`on_break`)."""
        finished = self._over or self._epochs.finished
        if self._at_start() or (self._resumed and not finished):
            return self
        if not finished and self._on_break == "restart":
            self._begin_again()
        elif not finished and self._on_break == "next":
            self._go_to(self._epochs.epoch + 1)
        else:
            self.reset()
        return self

    def _begin_again(self) -> None:
        if self._epoch_start is None:
            raise RuntimeError(
                'on_break="restart" needs pipelines with a state_dict(); a pipeline in debug mode has none'
            )
        self.load_state_dict(self._epoch_start)
        self._resumed = False

    def _go_to(self, epoch: int) -> None:
        """Continue at the start of an epoch; what is left of the present one is not computed."""
        state = BaseIterator.state_dict(self)
        for place in state["pipelines"]:
            for reader in place["readers"].values():
                reader.update(epoch=epoch, taken=0, cuts={})
            for source in place["sources"].values():
                source.update({name: epoch if name == "epoch" else 0 for name in source if name != "starts"})
        self.load_state_dict(
            {**state, "iterator": {**state["iterator"], **self._epochs.start_of(epoch), "over": False}}
        )
        self._resumed = False
        self._mark_start()

    def _mark_start(self) -> None:
        """Remember the start of the present epoch, if `on_break` may go back there."""
        if self._on_break == "restart" and not self._over and not self._epochs.delivered:
            with contextlib.suppress(RuntimeError):  # a pipeline in debug mode cannot tell its place
                self._epoch_start = self.state_dict()

    def __next__(self) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: The epoch is finished.
        """
        self._resumed = False
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        try:
            return self._next_batch()
        except (Exception, KeyboardInterrupt) as error:
            strip_internal_frames(error)
            raise

    @property
    def dataset(self) -> Any:
        """Raise AttributeError: an iterator over pipelines is no DataLoader."""
        raise AttributeError(
            f"a {type(self).__name__} is no torch DataLoader and has no dataset: use it as it is. To divide samples "
            "among processes, give the reader shard_id and num_shards; for another device, give the pipeline device_id"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} gives whole batches in their order and cannot be indexed: use it in a loop, "
            "instead of a torch DataLoader"
        )

    def next(self) -> Any:
        """Return the next batch, as ``next(iterator)`` does."""
        return self.__next__()

    def __len__(self) -> int:
        """Return how many batches the present epoch has; 0 where only the source knows."""
        return self._epochs.batches

    @property
    def size(self) -> int:
        """Samples of the present epoch on one rank, as DALI counts them; -1 without a limit."""
        counter = self._epochs
        if not self._reader_counts or isinstance(counter, OpenEpochs):
            return self._declared_size
        if self._policy is LastBatchPolicy.DROP:
            return min(counter.sizes)
        return max(counter.sizes) if counter.shards.padded else counter.batches * self.batch_size

    def _change_size(self, size: int) -> None:
        """Count epochs of another size from now on."""
        self._declared_size, self._reader_counts = size, False
        if isinstance(self._epochs, OpenEpochs):
            ranks = [0] * len(self._pipes)
            self._epochs = EpochCounter(Shards(size), self.batch_size, self._policy, ranks, self._epochs.delivered)
        else:
            self._epochs.limit(size)

    def reset(self) -> None:
        """Begin the next epoch; in the middle of one, this is ignored with a logged warning."""
        if self._over or self._epochs.finished:
            self._begin_epoch()
        elif not self._at_start():
            _log.warning(
                "The epoch is not finished: reset() is ignored, the iterator goes on with it. To begin it again "
                'after leaving a loop, give the iterator on_break="restart".'
            )

    def explain_epoch(self) -> None:
        """Print, rank by rank, how many samples and batches the present epoch has, and why."""
        print(self._epochs.explain())

    def _at_start(self) -> bool:
        return not self._over and self._epochs.delivered == (self._first_batch is not None)

    def _prepare(self) -> None:
        if self._over or self._epochs.finished:
            return  # restored at the end of an epoch: the next one begins when asked for
        with contextlib.suppress(RuntimeError):  # a pipeline in debug mode cannot tell its place
            self._before_first = self._places()
        try:
            self._first_batch = self._next_batch()
        except StopIteration:
            raise RuntimeError("There is no data in the pipeline: its source ended before the first batch.") from None
        except Exception as error:
            strip_internal_frames(error)
            raise

    # Subclasses in published programs override and call the four methods whose names are DALI's.

    def _next_batch(self) -> Any:
        outputs = self._get_outputs()
        self._schedule_runs()
        self._advance_and_check_drop_last()
        return self._convert(outputs, self._counts)

    def _advance_and_check_drop_last(self, dry_run: bool = False, end_iteration: bool = True) -> bool:
        """Count a batch; return True if none is left of the epoch."""
        if not dry_run:
            self._counts = self._epochs.advance()
        return self._epochs.finished

    def _end_iteration(self) -> NoReturn:
        self._over = True
        if self._begins_anew:
            self.reset()
        raise StopIteration

    def _begin_epoch(self) -> None:
        if self._epochs.finished:
            for _ in range(self._epochs.dropped):  # nobody wants these batches, nor their errors
                self._share_all()
                self._schedule_runs()
        self._epochs.next_epoch()
        self._over = False
        if isinstance(self._epochs, OpenEpochs):
            self._restart(self._pipes[0])
        elif self._reader_name:
            with self._driving():
                for pipe in self._pipes:
                    pipe.reset()  # readers need none, but subclasses override it
        self._mark_start()

    # ------------------------------------------------------------ saving the place

    def state_dict(self) -> dict[str, Any]:
        """Return the place of the iterator and its pipelines as JSON values.

        The next batch after `load_state_dict` is the one that would come next here.
        """
        undelivered = int(self._first_batch is not None)
        places = self._before_first if undelivered else self._places()
        if len(places) < len(self._pipes):
            raise RuntimeError("The pipelines cannot tell their place: they have no state_dict().")
        iterator = {**self._epochs.state(undelivered), "over": self._over}
        return {"iterator": iterator, "pipelines": places}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a place that `state_dict` returned, with pipelines of the same definition.

        Raises:
            ValueError: It was saved with other numbers of pipelines, ranks or samples, or not by an iterator.
        """
        if not {"pipelines", "iterator"} <= state.keys():
            raise ValueError("The state is none of an iterator: a pipeline's goes to the pipeline's load_state_dict.")
        places = state["pipelines"]
        if len(places) != len(self._pipes):
            raise ValueError(f"The state is of {len(places)} pipelines, the iterator has {len(self._pipes)}.")
        self._restore_counter(state["iterator"])
        for pipe, place in zip(self._pipes, places, strict=True):
            assert isinstance(pipe, Resumable)
            pipe.load_state_dict(place)
        self._first_batch, self._scheduled, self._resumed = None, False, True

    def checkpoints(self) -> list[bytes]:
        """Return a checkpoint of each pipeline that holds the iterator's place as well.

        An iterator over pipelines made with ``checkpoint=`` continues there.
        """
        state = self.state_dict()
        context = {"external_context": {"iterator": state["iterator"]}}
        return [json.dumps({**place, **context}).encode() for place in state["pipelines"]]

    def _continue_checkpoint(self) -> None:
        pipe = self._pipes[0]
        if pipe.is_restored_from_checkpoint and isinstance(pipe, Resumable):
            place = pipe.external_context.get("iterator")
            if place is not None:
                self._restore_counter(place)

    def _restore_counter(self, place: dict[str, Any]) -> None:
        self._epochs.restore(place)
        self._over = place["over"]

    def _places(self) -> list[dict[str, Any]]:
        return [pipe.state_dict() for pipe in self._pipes if isinstance(pipe, Resumable)]

    # ------------------------------------------------------------ the pipelines

    def _get_outputs(self) -> list[tuple[TensorList, ...]]:
        """Take one batch of every pipeline.

        Raises:
            StopIteration: the epoch is finished. Otherwise what a pipeline raises; the next batch is the one after it.
        """
        if self._over or self._epochs.finished:
            self._end_iteration()
        outputs, failure = self._share_all()
        if isinstance(failure, StopIteration):
            if not self._epochs.delivered:
                _log.warning(
                    "Epoch %d has no batches: a source of the pipeline is at its end, and stays there. An "
                    'external_source begins anew in each epoch with cycle="raise".',
                    self._epochs.epoch,
                )
            self._end_iteration()
        if failure is None:
            return outputs
        self._schedule_runs()
        self._epochs.advance()  # the pipelines are past that batch
        try:
            raise failure
        finally:
            del failure  # its traceback holds this frame, and the callers', whose variables hold the pipelines

    def _schedule_runs(self, release_outputs: bool = True) -> None:
        """Start a batch of every pipeline."""
        with self._driving():
            for pipe in self._pipes:
                if release_outputs:
                    pipe.release_outputs()
                pipe.schedule_run()

    def _driving(self) -> contextlib.ExitStack:
        """Claim the pipelines for an iterator: `Pipeline.run` in between would take its batches."""
        stack = contextlib.ExitStack()
        for pipe in self._pipes:
            stack.enter_context(pipe.driven_by(PipelineAPIType.ITERATOR))
        return stack

    def _share_all(self) -> tuple[list[tuple[TensorList, ...]], Exception | None]:
        """Take one batch of every pipeline; return the first error beside what was taken."""
        outputs: list[tuple[TensorList, ...]] = []
        failure: Exception | None = None
        if not self._scheduled:
            self._scheduled = True
            self._schedule_runs(release_outputs=False)
        with self._driving():
            for pipe in self._pipes:
                try:
                    outputs.append(self._share(pipe))
                except Exception as error:
                    failure = failure or error
        try:
            return outputs, failure
        finally:
            del failure

    def _share(self, pipe: Pipeline) -> tuple[TensorList, ...]:
        try:
            return pipe.share_outputs()
        except StopIteration:
            if isinstance(self._epochs, OpenEpochs):
                raise
        # The epoch is counted in samples, whatever the source takes for its own.
        self._restart(pipe)
        return pipe.share_outputs()

    def _restart(self, pipe: Pipeline) -> None:
        with self._driving():
            pipe.reset()
            pipe.schedule_run()

    def _convert(self, outputs: list[tuple[TensorList, ...]], counts: list[int] | None) -> Any:
        """Make the framework's batch.

        Args:
            outputs: By pipeline.
            counts: How many samples of each to deliver, None for all.
        """
        raise NotImplementedError


# What the reader's metadata must say alike in all pipelines, and the argument behind it.
_SAME_IN_ALL = {
    "epoch_size": "number of records",
    "number_of_shards": "num_shards",
    "pad_last_batch": "pad_last_batch",
    "stick_to_shard": "stick_to_shard",
}


def _as_flag(auto_reset: bool | str | None) -> bool:
    if auto_reset is None or isinstance(auto_reset, bool):
        return bool(auto_reset)
    if auto_reset in ("yes", "no"):
        return auto_reset == "yes"
    raise ValueError(f'auto_reset is {auto_reset!r}; it must be True, False, "yes" or "no".')


def _as_on_break(value: str) -> str:
    if value not in ("continue", "restart", "next"):
        raise ValueError(f'on_break is {value!r}; it must be "continue", "restart" or "next".')
    return value


def _policy(policy: LastBatchPolicy, fill_last_batch: bool | None) -> LastBatchPolicy:
    if fill_last_batch is not None:
        warnings.warn(
            "fill_last_batch is deprecated: last_batch_policy=FILL stands for True, PARTIAL for "
            "False. It overrides last_batch_policy.",
            Warning,
            stacklevel=5,
        )
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise ValueError(
            f"Wrong type for `last_batch_policy`. It must be a LastBatchPolicy, such as LastBatchPolicy.PARTIAL, not "
            f"{policy!r}."
        )
    return policy


class _DaliBaseIterator(BaseIterator):
    """The name from which iterators of published programs derive; they take the first batch themselves."""

    def __init__(self, pipelines: Pipeline | Sequence[Pipeline], *arguments: Any, **named: Any) -> None:
        names = ("size", "reader_name", "auto_reset", "fill_last_batch", "last_batch_padded", "last_batch_policy")
        given = dict(zip((*names, "prepare_first_batch"), arguments, strict=False)) | named
        wanted = given.pop("prepare_first_batch", True)
        super().__init__(pipelines, prepare_first_batch=False, **given)
        self._prepare_first_batch = wanted
