"""`torchdali.DataLoader`: torch's DataLoader, which makes the batches of data sets that it knows by itself."""

from __future__ import annotations

import copy
import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch.utils.data
from torch.utils.data import BatchSampler, Dataset, Sampler

from torchdali.cores import cores
from torchdali.dataloader._iterators import AcceleratedIterator, SingleProcessIterator, WorkerIterator
from torchdali.dataloader._notes import Notes, fast_path
from torchdali.dataloader._plans import Plan, plan_of
from torchdali.dataloader._reports import (
    LoaderStats,
    WorkerReport,
    explain,
    measure_workers,
    named,
    note_loop,
    operator_names,
    place,
)
from torchdali.dataloader._rows import Engine
from torchdali.dataloader._skipping import ITERATORS, Skipped, check_policy, skipping
from torchdali.dataloader._states import (
    Late,
    Progress,
    generator_at,
    generator_state,
    started,
    torchdata,
)
from torchdali.errors import call_site, on_behalf_of

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["DataLoader"]

T = TypeVar("T", covariant=True)


class DataLoader(torch.utils.data.DataLoader[T]):
    """Load data as torch's DataLoader does, with the same arguments, and faster if the data set is known.

    Known are torchvision's data sets of files and of arrays, `TensorDataset`, and parts and sums of these, with
    transforms of torchvision that have a rule: `notes` names what is accelerated. All others go torch's own way, with
    its worker processes, unchanged. Indices always come from torch's sampler.

    Random augmentation of an accelerated loader follows from the base seed that torch draws for an epoch:
    ``torch.manual_seed``, or ``generator``, repeats it, whatever the number of threads.

    Args:
        dataset, batch_size, shuffle, sampler, batch_sampler, drop_last, generator: As torch's.
        num_workers: As torch's; the number of threads if the loader is accelerated, and 0 is one for each core.
        prefetch_factor: As torch's; the number of batches that are made ahead if the loader is accelerated.
        collate_fn, pin_memory, pin_memory_device, in_order: As torch's.
        timeout, worker_init_fn, multiprocessing_context, persistent_workers: As torch's, and for torch's workers alone.
        snapshot_every_n_steps: As of torchdata's `StatefulDataLoader`, for data sets and samplers with states of their
            own; needs torchdata.
        cache: Keep decoded pictures of files, so that later epochs do not read and decode them: a size, such as
            ``"8GB"``, or a folder. See `fn.cache`.
        bad_samples: ``"skip"`` leaves samples out whose files are damaged or missing: their batch is smaller, or isn't
            delivered if none is good. A warning names the first one, and `stats` all of the last loop.

    Raises:
        As torch's.
    """

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int | None = None,
        cache: int | str | os.PathLike[str] | None = None,
        bad_samples: Literal["error", "skip"] = "error",
    ) -> None:
        self.cache, self.snapshot_every_n_steps = cache, snapshot_every_n_steps
        self.bad_samples, self._skipped, self._site = bad_samples, Skipped(), call_site()
        self._engines: list[tuple[Any, Engine]] = []
        self._late: Progress | None = None
        self._progress: Progress | None = None
        self._of_torchdata: Any = None
        self._sampler_from: Any = None
        self._running: Callable[[], Any] = _nothing
        own = {} if in_order else {"in_order": False}  # which older versions do not know
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn, pin_memory, drop_last,
            timeout, worker_init_fn, multiprocessing_context, generator, prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers, pin_memory_device=pin_memory_device, **own,
        )  # fmt: skip
        check_policy(bad_samples, self._dataset_kind != 0)
        if snapshot_every_n_steps is not None or _has_state(dataset):
            self._join_torchdata(bool(shuffle) and sampler is None)

    # ------------------------------------------------------------ loops

    def __iter__(self) -> Any:
        if self._of_torchdata is not None:
            return self._of_torchdata.__iter__(self)
        began, self._skipped.lines[:] = time.perf_counter(), ()
        progress, self._late = self._late, None
        if progress is not None and not progress.finished:
            return self._resumed(progress, began)
        state = generator_state(self)
        before, iterator = self._iterator, super().__iter__()
        again = before is iterator and self._progress is not None
        self._begin(iterator, Progress(state, self._progress.epoch + 1 if again and self._progress else 0, began=began))
        return iterator

    def _begin(self, iterator: Any, progress: Progress) -> None:
        self._progress = iterator.progress = progress
        progress.base_seed = iterator._base_seed
        if isinstance(iterator, AcceleratedIterator):
            iterator.begin(progress)
            self._running = weakref.ref(iterator)
        progress.startup = progress.waited = time.perf_counter() - progress.began
        note_loop(self, progress, isinstance(iterator, AcceleratedIterator))

    def _get_iterator(self) -> Any:
        if self._of_torchdata is not None:
            return self._of_torchdata._get_iterator(self)
        plan, skips = plan_of(self), self.bad_samples == "skip" and self._dataset_kind == 0
        accelerated, *torchs = ITERATORS if skips else (AcceleratedIterator, SingleProcessIterator, WorkerIterator)
        if plan.open is not None:
            return self._noting(accelerated(self, plan, self._engine(plan)))
        loader = self
        if self.num_workers:
            self.check_worker_number_rationality()
        if skips:
            loader = copy.copy(self)
            vars(loader).update(skipping(self))
        return self._noting(torchs[self.num_workers > 0](loader, plan.is_lazy))

    def _noting(self, iterator: Any) -> Any:
        """Let an iterator note the bad samples that it skips."""
        iterator.skipped = self._skipped
        return iterator

    def _engine(self, plan: Plan) -> Engine:
        """Return an engine that no other iterator uses."""
        assert plan.open is not None
        while self._engines:
            key, engine = self._engines.pop()
            if key == plan.key and engine.process == os.getpid():
                engine.reset()
                engine.renew(plan.leaves)
                return engine
            engine.close()
        return on_behalf_of(self._site, plan.open)

    def _give_back(self, iterator: AcceleratedIterator) -> None:
        """Take back the engine of an iterator that has ended."""
        engine, iterator._engine = iterator._engine, None
        if engine is not None:
            self._engines.append((iterator._plan.key, engine))

    # ------------------------------------------------------------ states

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that was delivered.

        The values can be written as JSON, unless the data set or a sampler has a state of its own: then they are those
        of torchdata's `StatefulDataLoader`.
        """
        if self._of_torchdata is not None:
            state: dict[str, Any] = self._of_torchdata.state_dict(self)
            return state
        progress = self._late or self._progress
        return (Progress(generator_state(self)) if progress is None or progress.finished else progress).state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next loop go on where `state_dict` was called.

        What a data set gives by chance is repeated if torchdali makes the samples; in torch's own way it is if the data
        set does not draw random numbers.

        Raises:
            ValueError: this is the state of something else.
        """
        if self._of_torchdata is not None:
            self._of_torchdata.load_state_dict(self, state_dict)
            return
        self._late = Progress.of_state(state_dict)

    def _resumed(self, progress: Progress, began: float) -> Any:
        """Return an iterator that goes on at a place."""
        is_iterable = isinstance(self.dataset, torch.utils.data.IterableDataset)
        sampler = self._index_sampler
        with generator_at(self, progress.generator):
            if not is_iterable:
                self._sampler_from = Late(sampler, progress.batches, progress.epoch > 0)
            try:
                self._iterator = None
                iterator = super().__iter__()
                if not isinstance(iterator, WorkerIterator) and not is_iterable:
                    iterator._sampler_iter = started(iterator._sampler_iter)
            finally:
                self._sampler_from = None
        iterator._index_sampler = sampler  # for the next epoch
        iterator._base_seed = progress.base_seed
        batches = 0 if is_iterable else progress.batches
        self._begin(iterator, Progress(progress.generator, progress.epoch, batches, began=began))
        for _ in range(progress.batches if is_iterable else 0):
            next(iterator)
        return iterator

    @property
    def _index_sampler(self) -> Any:
        # torch's iterators ask for it when they begin.
        return super()._index_sampler if self._sampler_from is None else self._sampler_from

    def _join_torchdata(self, shuffle: bool) -> None:
        """Become torchdata's loader, unless torchdali makes the samples or torchdata is not installed."""
        module = torchdata()
        if module is None or plan_of(self).open is not None:
            return
        self._of_torchdata = module.StatefulDataLoader
        self.snapshot_every_n_steps = self.snapshot_every_n_steps or 1
        self.next_iter_state, self._initial_iter_for_state_dict = None, False
        if type(self.batch_sampler) is not BatchSampler:
            return
        # The default samplers, as far as torch made them, have states there; attributes of a loader cannot be set.
        if shuffle:
            vars(self)["sampler"] = module.sampler.RandomSampler(self.dataset, generator=self.generator)
        batches = module.sampler.BatchSampler(self.sampler, self.batch_size, self.drop_last)
        vars(self)["batch_sampler"] = batches

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        iterator = None if isinstance(self._iterator, AcceleratedIterator) else self._iterator
        return {**vars(self), "_engines": [], "_iterator": iterator, "_running": _nothing}

    # ------------------------------------------------------------ what can be asked

    @property
    def notes(self) -> Notes:
        """Lines on what is accelerated and what isn't, why, and what to do; print them."""
        plan = plan_of(self)
        if plan.open is None:
            return Notes((*(fast_path() if self._dataset_kind == 0 else ()), *plan.notes))
        return Notes((*plan.notes, *(fast_path() if plan.leaves is not None else ())))

    def explain(self) -> str:
        """Return the notes and, if the loader is accelerated, the steps that each image goes through."""
        plan, lines = plan_of(self), list(self.notes)
        if plan.leaves is not None:
            dataset = type(plan.leaves.leaves[0].dataset).__name__
            lines += ["", *explain(dataset, lines, self.num_workers or cores(), self.cache, self._site)]
        return "\n".join(lines)

    def stats(self) -> LoaderStats:
        """Return how long the last loop took, and how long it waited for data; print it for a table."""
        plan, pipeline, notes = plan_of(self), self._pipeline(), self.notes
        if pipeline is None or plan.leaves is None:
            return LoaderStats.of(self._progress, notes, None, self._skipped.lines)
        names = operator_names(type(plan.leaves.leaves[0].dataset).__name__, notes)
        stats = named(pipeline.stats(), names)
        return LoaderStats.of(self._progress, notes, stats, stats.skipped)

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return a contact sheet of the batch that a new loop would begin with.

        Args:
            path: Where to save it, too.
            options: Of `torchdali.pictures.show`, such as ``mean``, ``std`` and ``count``.

        Raises:
            ValueError: there is nothing in a batch that can be drawn.
        """
        from torchdali import pictures

        with torch.random.fork_rng(devices=[]):
            state = None if self.generator is None else self.generator.get_state()
            batch = next(iter(self._with(num_workers=0)))
            if self.generator is not None and state is not None:
                self.generator.set_state(state)
        known = {"classes": self.dataset.classes} if hasattr(self.dataset, "classes") else {}
        values = tuple(batch) if isinstance(batch, list) else batch
        return pictures.show(values, path, **{**known, **options})

    def tune(self, seconds: float = 30.0, *, workers: Sequence[int] = ()) -> WorkerReport:
        """Find the fastest ``num_workers`` on this machine by measuring; print the result to see the line to write.

        Args:
            seconds: For all measurements together.
            workers: Numbers to try; by default powers of two, up to the number of cores.
        """

        def make(number: int) -> DataLoader[T]:
            return self._with(num_workers=number)

        return measure_workers(make, self.num_workers, seconds, workers, place(self._site))

    def close(self) -> None:
        """End the threads that make batches. A new loop starts them anew."""
        while self._engines:
            self._engines.pop()[1].close()

    def _pipeline(self) -> Any:
        """Return the pipeline that makes the samples, or None."""
        engines = [engine for _, engine in self._engines]
        engines += [self._running()._engine] if self._running() is not None else []
        return next((engine.pipeline for engine in engines if hasattr(engine, "pipeline")), None)

    def _with(self, **changes: Any) -> DataLoader[T]:
        """Return a loader with other arguments."""
        own = self._dataset_kind == 0 and self.batch_sampler is not None
        batches: dict[str, Any] = {"batch_sampler": self.batch_sampler} if own else {"batch_size": self.batch_size}
        if self._dataset_kind == 0 and not own:
            batches |= {"sampler": self.sampler}
        names = (
            "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator", "cache",
            "bad_samples",
        )  # fmt: skip
        arguments = {name: getattr(self, name) for name in names} | changes
        if arguments["num_workers"]:
            arguments |= {"multiprocessing_context": self.multiprocessing_context}
        else:
            arguments |= {"timeout": 0}
        return type(self)(self.dataset, **batches, **arguments)


def _nothing() -> None:
    """Return None: no iterator runs."""


def _has_state(dataset: Any) -> bool:
    return all(callable(getattr(dataset, name, None)) for name in ("state_dict", "load_state_dict"))
