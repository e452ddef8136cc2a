"""The base class of DALI-compatible iterators: epochs, resets, several pipelines and saved positions.

An exception such as a keyboard interrupt may end `__next__` at any instruction. No batch is lost in this case, because
`__next__` increases the batch's index in the epoch only in its last step. The next call requests the same batch from
each pipeline again.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

from torchdali.dali.old_names import IteratorOldNames
from torchdali.errors import strip_internal_frames, warn
from torchdali.plugin._arguments import (
    OnBreak,
    as_flag,
    as_on_break,
    as_policy,
    create_reader_counter,
    create_size_counter,
    find_batch_size,
)
from torchdali.plugin._epochs import EpochCounter, LastBatchPolicy, OpenEpochs, Shards
from torchdali.types import PipelineAPIType

if TYPE_CHECKING:
    from torchdali.pipeline import Pipeline
    from torchdali.tensors import TensorList

__all__ = ["BaseIterator", "LastBatchPolicy", "Resumable"]

_log = logging.getLogger(__name__)
_NO_BATCHES = (
    'Epoch %d has no batches: a source of the pipeline has no more data. With cycle="raise", an external_source starts '
    "again in each epoch."
)
_MIXED_EPOCHS = (
    "Epoch %d delivered %d samples per rank, but the reader has %d: with last_batch_policy=FILL, DALI's default, "
    "samples of the next epoch fill the last batch, so the next epoch may have fewer batches. To deliver every "
    "sample once, for example in a validation, use LastBatchPolicy.PARTIAL and pass pad_last_batch=True to the "
    "reader, or use torchdali.Loader."
)


@runtime_checkable
class Resumable(Protocol):
    """A pipeline that can return its position, and continue at a saved position.

    Attributes:
        external_context: Values that iterators or other objects have added to the pipeline's checkpoint.
    """

    external_context: dict[str, Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that was taken, as values that JSON can store."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a saved position. Batches in progress are dropped."""
        ...


class BaseIterator(IteratorOldNames):
    """Iterator over the batches of pipelines, epoch by epoch. A subclass converts the batches for its framework.

    The pipelines work ahead: when a batch is taken from a pipeline, another batch is scheduled.

    Args:
        pipelines: One pipeline, or several pipelines whose batches are delivered together.
        size: Number of samples in an epoch; if negative, the epoch ends when the source ends. You can't pass both
            `size` and `reader_name`.
        reader_name: Name of the reader whose size, shards and padding determine the epoch.
        auto_reset: True or "yes" to begin the next epoch automatically. With False, "no" or None, call `reset` or begin
            a new ``for`` loop.
        fill_last_batch: Deprecated. True means `LastBatchPolicy.FILL`, False means `LastBatchPolicy.PARTIAL`.
        last_batch_padded: True if the pipelines pad their last batch. Pass this argument only together with `size`.
        last_batch_policy: Treatment of a last batch that isn't full.
        prepare_first_batch: True to request the first batch in the constructor, so that the constructor raises the
            errors of this batch.
        on_break: Behavior of a new loop after a loop that ended in mid-epoch: ``"continue"`` resumes the epoch, as DALI
            does; ``"restart"`` begins the epoch again, with the same samples in the same order; ``"next"`` begins the
            next epoch, as a `DataLoader` does. DALI doesn't have this argument.
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
        on_break: OnBreak = "continue",
    ) -> None:
        self._on_break = as_on_break(on_break)
        self._pipes = list(pipelines) if isinstance(pipelines, Sequence) else [pipelines]
        if not self._pipes:
            raise IndexError("pipelines must have at least one pipeline, got an empty list.")
        self._num_gpus = len(self._pipes)
        self._restarts = as_flag(auto_reset)
        self._policy = as_policy(last_batch_policy, fill_last_batch)
        self._reader_name = reader_name
        try:
            for pipe in self._pipes:
                if not hasattr(pipe, "build"):
                    raise AttributeError(
                        f"expected a Pipeline, got {pipe!r}; call the function under pipeline_def to create one."
                    )
                pipe.build()
            self.batch_size = find_batch_size(self._pipes)
            self._epochs = self._create_counter(size, reader_name, last_batch_padded)
        except Exception as error:
            strip_internal_frames(error)
            raise
        self._needs_length_warning = self._needs_filling_log = True
        self._warn_of_mixed_epochs()
        self._ever_scheduled = self._ever_consumed = self._over = self._resumed = False
        self._epoch_start: dict[str, Any] | None = None
        self._prepare_first_batch = prepare_first_batch
        self._first_batch: Any = None
        self._pending: tuple[tuple[int, int], list[int]] | None = None  # see `_batch_indices`
        self._dropping: tuple[int, list[int]] | None = None  # see `_drop`
        self._initial_states: list[dict[str, Any]] = []
        self._continue_checkpoint()
        self._mark_start()

    @property
    def _mixes_epochs(self) -> bool:
        """True if the last batch of a reader's epoch contains samples of the next epoch."""
        epochs = self._epochs
        if not self._reader_name or not isinstance(epochs, EpochCounter) or epochs.shards.padded:
            return False
        return any(size % self.batch_size for size in epochs.sizes)

    def _warn_of_mixed_epochs(self) -> None:
        if self._policy is LastBatchPolicy.FILL or not self._mixes_epochs or not self._shuffles():
            return
        warn(
            "from the second epoch on, some samples are missing and others come twice: samples that are dropped at "
            f"the end of an epoch belong to the next epoch, and {self._reader_name!r} shuffles. Pass "
            "pad_last_batch=True to the reader, or use torchdali.Loader"
        )

    def _shuffles(self) -> bool:
        name = self._reader_name
        return any(pipe.shuffles(name) for pipe in self._pipes if name is not None and hasattr(pipe, "shuffles"))

    def _warn_of_length(self) -> None:
        """Warn once if `len` differs from epoch to epoch, because many programs call `len` only once."""
        if self._needs_length_warning and self._policy is LastBatchPolicy.FILL and self._mixes_epochs:
            self._needs_length_warning = False
            warn(
                "len() differs from epoch to epoch: with last_batch_policy=FILL, the last batch has samples of the "
                "next epoch. A trainer that calls len() only once, such as Lightning's, may wait for a batch that "
                "never comes. Use PARTIAL or DROP and pass pad_last_batch=True to the reader, or use torchdali.Loader"
            )

    def _log_filling(self) -> None:
        """Log once, at the end of an epoch, that the last batch contained samples of the next epoch.

        The level is INFO if the reader shuffles, otherwise WARNING.
        """
        if self._needs_filling_log and self._policy is LastBatchPolicy.FILL and self._mixes_epochs:
            self._needs_filling_log, epochs = False, self._epochs
            assert isinstance(epochs, EpochCounter)
            level = logging.INFO if self._shuffles() else logging.WARNING
            _log.log(level, _MIXED_EPOCHS, epochs.epoch, epochs.delivered * self.batch_size, max(epochs.sizes))

    def _create_counter(self, size: int, reader_name: str | None, padded: bool) -> EpochCounter | OpenEpochs:
        if not reader_name:
            if size > 0:
                self._warn_of_size()
            return create_size_counter(self._pipes, size, self.batch_size, self._policy, padded=padded)
        if size != -1:
            raise AssertionError("size follows from the reader: pass either size or reader_name")
        if padded:
            raise AssertionError(
                "With reader_name, the reader determines the padding: omit last_batch_padded, and pass "
                "pad_last_batch to the reader."
            )
        return create_reader_counter(self._pipes, reader_name, self.batch_size, self._policy)

    def _warn_of_size(self) -> None:
        warnings.warn(
            "An epoch with size= may miss or repeat samples: if the pipeline has a reader, pass its name as "
            "reader_name instead of size and last_batch_padded.",
            Warning,
            stacklevel=6,
        )

    # ------------------------------------------------------------ iterating

    def __iter__(self) -> Any:
        """Begin the next epoch if the current epoch is finished; otherwise do as `on_break` specifies."""
        finished = self._ended and self._first_batch is None
        in_mid_epoch = not finished and not self._at_start()
        if self._resumed and not finished:
            return self
        if in_mid_epoch and self._on_break == "restart":
            self._restart_epoch()
        elif in_mid_epoch and self._on_break == "next":
            self._skip_to_epoch(self._epochs.epoch + 1)
        elif finished or (self._ever_consumed and self._epochs.position):
            self.reset()
        return self

    def _restart_epoch(self) -> None:
        if self._epoch_start is None:
            raise RuntimeError(
                'on_break="restart" needs pipelines with a state_dict(), which pipelines in debug mode lack'
            )
        self.load_state_dict(self._epoch_start)
        self._resumed = False

    def _skip_to_epoch(self, epoch: int) -> None:
        """Continue at the start of an epoch, without computing the rest of the current epoch."""
        state = BaseIterator.state_dict(self)
        for pipe_state in state["pipelines"]:
            for reader in pipe_state["readers"].values():
                reader.update(epoch=epoch, taken=0, cuts={})
            for source in pipe_state["sources"].values():
                source.update({name: epoch if name == "epoch" else 0 for name in source if name != "starts"})
        self.load_state_dict(
            {**state, "iterator": {**state["iterator"], **self._epochs.start_state(epoch), "over": False}}
        )
        self._resumed = False
        self._mark_start()

    def _mark_start(self) -> None:
        """Save the current position if it is the start of an epoch and `on_break` is "restart"."""
        if self._on_break == "restart" and not self._over and not self._epochs.delivered:
            with contextlib.suppress(RuntimeError):  # a pipeline in debug mode has no position
                self._epoch_start = self.state_dict()

    def __next__(self) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: the epoch is finished.
        """
        self._ever_consumed, self._resumed = True, False
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
        """Raise AttributeError, with advice for programs that use the iterator in place of a `DataLoader`."""
        raise AttributeError(
            f"a {type(self).__name__} isn't a torch DataLoader and has no dataset. Use the iterator unchanged. To "
            f"divide samples "
            "among processes, pass shard_id and num_shards to the reader; for another device, pass device_id to the "
            "pipeline"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} delivers whole batches in order, so it cannot be indexed. Use it in a loop, "
            f"instead of a torch DataLoader"
        )

    def next(self) -> Any:
        """Return the next batch, as ``next(iterator)`` does."""
        return self.__next__()

    def __len__(self) -> int:
        """Return the number of batches in the current epoch; 0 if the number is unknown until the source ends."""
        self._warn_of_length()
        return self._epochs.batches

    @property
    def size(self) -> int:
        """Number of samples of the current epoch on one rank, as in DALI.

        The number is -1 if it is unknown until the pipeline's source ends.
        """
        return self._epochs.size

    def _change_size(self, size: int) -> None:
        if isinstance(self._epochs, OpenEpochs):
            previous, self._epochs = (
                self._epochs,
                EpochCounter(Shards(size), self.batch_size, self._policy, [0], split=1),
            )
            self._epochs.delivered = previous.delivered
        self._epochs.size = size

    def reset(self) -> None:
        """Begin the next epoch. In mid-epoch, this call only logs a warning."""
        if self._ended:
            self._begin_epoch()
        elif not self._at_start():
            _log.warning(
                "The epoch is not finished, so reset() is ignored and the iterator continues the epoch. To change "
                "what happens after you leave a loop, pass on_break= to the iterator: 'next' begins the next epoch, "
                "for training; 'restart' begins the same epoch again, for validation."
            )

    def explain_epoch(self) -> None:
        """Print the number of samples and batches of the current epoch for each rank, with the reasons."""
        print(self._epochs.explain())

    @property
    def _ended(self) -> bool:
        return self._over or self._epochs.finished

    def _at_start(self) -> bool:
        return not self._over and self._epochs.delivered == (self._first_batch is not None)

    def _prepare(self) -> None:
        if self._ended:
            return  # the restored position is the end of an epoch; the user begins the next epoch
        with contextlib.suppress(RuntimeError):  # a pipeline in debug mode has no position
            self._initial_states = self._pipe_states()
        try:
            self._first_batch = self._next_batch()
        except StopIteration:
            self._report_no_data_in_pipeline()
        except Exception as error:
            strip_internal_frames(error)
            raise

    def _report_no_data_in_pipeline(self) -> NoReturn:
        raise RuntimeError("The pipeline has no data: its source ended before the first batch.") from None

    def _next_batch(self) -> Any:
        self._pending = (self._epochs.epoch, self._epochs.delivered), self._batch_indices()
        outputs = self._get_outputs()
        self._schedule_runs()
        counts = self._epochs.counts_of(self._epochs.delivered)
        try:
            batch = self._convert(outputs if counts is None else outputs[: len(counts)], counts)
        except Exception:
            self._advance_and_check_drop_last()
            raise
        self._advance_and_check_drop_last()
        self._pending = None
        self._release_all()
        return batch

    def _release_all(self) -> None:
        for pipe in self._pipes:
            with pipe.driven_by(PipelineAPIType.ITERATOR):
                pipe.release_outputs()

    def _batch_indices(self) -> list[int]:
        """Return the index of the epoch's next batch in each pipeline, counted from the pipeline's first batch."""
        if self._pending is not None and self._pending[0] == (self._epochs.epoch, self._epochs.delivered):
            return self._pending[1]  # an exception has interrupted an earlier `__next__` for this batch
        return [pipe.taken for pipe in self._pipes]

    def _is_ahead(self) -> bool:
        """Return True if an exception has interrupted `__next__` after it took a batch from a pipeline."""
        return any(pipe.taken > index for pipe, index in zip(self._pipes, self._batch_indices(), strict=True))

    def _end_iteration(self) -> NoReturn:
        self._reset_automatically()
        raise StopIteration

    def _reset_automatically(self) -> None:
        if self._restarts:
            self.reset()

    def _begin_epoch(self) -> None:
        if self._epochs.finished and self._epochs.dropped:
            self._drop()
        for pipe in self._pipes:
            self._restart(pipe)
        following = copy.copy(self._epochs)
        following.next_epoch()
        self._epochs, self._over = following, False  # one statement, so that an interrupt can't change only one
        self._mark_start()

    def _drop(self) -> None:
        """Discard the batches that the policy drops. If an exception interrupts this call, another call continues."""
        if self._dropping is None or self._dropping[0] != self._epochs.epoch:
            self._dropping = self._epochs.epoch, [pipe.taken + self._epochs.dropped for pipe in self._pipes]
        with self._claim_pipelines():
            for pipe, end in zip(self._pipes, self._dropping[1], strict=True):
                for _ in range(end - pipe.taken):
                    with contextlib.suppress(Exception):  # the error of a dropped batch doesn't matter
                        if not self._ever_scheduled:
                            self._schedule_runs(False)
                        self._share(pipe, pipe.taken)
                    pipe.release_outputs()
                    pipe.schedule_run()

    def _advance_and_check_drop_last(self, dry_run: bool = False, end_iteration: bool = True) -> bool:
        """Count a delivered batch, unless `dry_run` is True; return True if the epoch is finished."""
        if not dry_run:
            self._epochs.advance()
        return self._epochs.finished

    # ------------------------------------------------------------ saving the position

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the iterator and its pipelines, as values that JSON can store.

        An iterator that loads the position delivers the same next batch as this iterator.
        """
        undelivered = int(self._first_batch is not None)
        if not self._ended and self._is_ahead():  # in the state, the interrupted batch counts as delivered
            self._share_all()
            undelivered = -1
        pipe_states = self._initial_states if undelivered > 0 else self._pipe_states()
        if len(pipe_states) < len(self._pipes):
            raise RuntimeError("The pipelines must have a state_dict() to save their positions.")
        iterator = {**self._epochs.state(undelivered), "over": self._over}
        return {"iterator": iterator, "pipelines": pipe_states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a position that `state_dict` of an equal iterator has returned.

        Raises:
            ValueError: the state isn't an iterator's state, or it has another number of pipelines, ranks or samples.
        """
        if not {"pipelines", "iterator"} <= state.keys():
            raise ValueError(
                "The state must come from an iterator's state_dict(). Pass a pipeline's state to the "
                "pipeline's load_state_dict()."
            )
        pipe_states = state["pipelines"]
        if len(pipe_states) != len(self._pipes):
            raise ValueError(f"The state's number of pipelines must be {len(self._pipes)}, got {len(pipe_states)}.")
        self._restore_counter(state["iterator"])
        for pipe, pipe_state in zip(self._pipes, pipe_states, strict=True):
            assert isinstance(pipe, Resumable)
            pipe.load_state_dict(pipe_state)
        self._pending = self._dropping = None
        self._first_batch, self._ever_scheduled, self._ever_consumed, self._resumed = None, False, False, True

    def checkpoints(self) -> list[bytes]:
        """Return one checkpoint per pipeline. Each checkpoint also contains the iterator's position.

        To resume, pass the checkpoints as ``checkpoint=`` to new pipelines, and create an iterator over them.
        """
        state = self.state_dict()
        context = {"external_context": {"iterator": state["iterator"]}}
        return [json.dumps({**pipe_state, **context}).encode() for pipe_state in state["pipelines"]]

    def _continue_checkpoint(self) -> None:
        pipe = self._pipes[0]
        if pipe.is_restored_from_checkpoint and isinstance(pipe, Resumable):
            counter_state = pipe.external_context.get("iterator")
            if counter_state is not None:
                self._restore_counter(counter_state)

    def _restore_counter(self, counter_state: dict[str, Any]) -> None:
        self._epochs.restore(counter_state)
        self._over = counter_state["over"]

    def _pipe_states(self) -> list[dict[str, Any]]:
        return [pipe.state_dict() for pipe in self._pipes if isinstance(pipe, Resumable)]

    # ------------------------------------------------------------ the pipelines

    def _claim_pipelines(self) -> contextlib.ExitStack:
        """Return a context manager that claims the pipelines, so that `Pipeline.run` can't take batches from them."""
        stack = contextlib.ExitStack()
        for pipe in self._pipes:
            stack.enter_context(pipe.driven_by(PipelineAPIType.ITERATOR))
        return stack

    def _schedule_runs(self, release_outputs: bool = True) -> None:
        """Schedule the next batch of every pipeline. The first call schedules as many batches as are prefetched."""
        self._ever_scheduled = True
        if release_outputs and self._pending is None:  # the memory of a pending batch is released after its delivery
            self._release_all()
        with self._claim_pipelines():
            for pipe in self._pipes:
                pipe.schedule_run()

    def _get_outputs(self) -> list[tuple[TensorList, ...]]:
        """Take one batch from every pipeline; at the end of the epoch, raise StopIteration."""
        if self._ended:
            self._log_filling()
            self._over = True
            self._end_iteration()
        try:
            return self._share_all()
        except StopIteration:
            if not self._epochs.delivered:
                _log.warning(_NO_BATCHES, self._epochs.epoch)
            self._over = True
            self._reset_automatically()
            raise
        except Exception:
            # If the batch was taken from all pipelines, the exception is the batch's error; otherwise, an interrupt
            # ended this call.
            if self._pending is None or all(
                map(int.__gt__, (pipe.taken for pipe in self._pipes), self._batch_indices())
            ):
                self._schedule_runs()
                self._epochs.advance()
                self._release_all()
            raise

    def _share_all(self) -> list[tuple[TensorList, ...]]:
        if not self._ever_scheduled:
            self._schedule_runs(False)
        outputs: list[tuple[TensorList, ...]] = []
        failure: Exception | None = None
        with self._claim_pipelines():
            for pipe, index in zip(self._pipes, self._batch_indices(), strict=True):
                try:
                    outputs.append(self._share(pipe, index))
                except Exception as error:
                    failure = failure or error
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # the error refers to this frame, and the cycle would keep the pipelines alive
        return outputs

    def _share(self, pipe: Pipeline, index: int) -> tuple[TensorList, ...]:
        try:
            return pipe.share_next(index)
        except StopIteration:
            if isinstance(self._epochs, OpenEpochs):
                raise
        # The iterator counts an epoch in samples. The epoch isn't finished, so the source begins again.
        self._restart(pipe)
        return pipe.share_next(index)

    def _restart(self, pipe: Pipeline) -> None:
        """Begin the next epoch of a pipeline if the pipeline is at the end of an epoch."""
        with self._claim_pipelines():
            pipe.reset()
            if self._ever_scheduled and pipe.empty():
                pipe.schedule_run()

    def _convert(self, outputs: list[tuple[TensorList, ...]], counts: list[int] | None) -> Any:
        """Convert the outputs of the pipelines to the framework's batch.

        Args:
            outputs: The outputs of each pipeline.
            counts: Number of samples to deliver from each pipeline; None for all samples.
        """
        raise NotImplementedError


_DaliBaseIterator = BaseIterator  # in published programs, iterators derive from DALI's class with this name
