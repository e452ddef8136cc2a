"""`torchdali.DataLoader`: a subclass of PyTorch's `DataLoader` that accelerates supported datasets."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch.utils.data
from torch.utils.data import BatchSampler, Dataset, IterableDataset, Sampler

from torchdali.cores import cores
from torchdali.dataloader._arguments import check_dataset, check_policy
from torchdali.dataloader._generators import generators_of, snapshot
from torchdali.dataloader._idle import IdleEngines
from torchdali.dataloader._iterators import AcceleratedIterator
from torchdali.dataloader._lazy_opening import LazyFetcher, Patience, WorkerInitializer
from torchdali.dataloader._notes import Notes
from torchdali.dataloader._plans import plan_of
from torchdali.dataloader._pristine import find_collate_change
from torchdali.dataloader._reports import (
    LoaderStats,
    WorkerReport,
    describe_site,
    explain,
    measure_workers,
    operator_names,
    record_loop,
    rename_operators,
)
from torchdali.dataloader._rows import BatchEngine, LoaderPlan
from torchdali.dataloader._skipping import ITERATORS, SkippedSamples, wrap_for_skipping
from torchdali.dataloader._states import Progress, StatefulIndices, has_state, import_torchdata, position_of
from torchdali.dataloader._torch_internals import (
    SingleProcessIterator,
    WorkerIterator,
    replace_attributes,
    wrap_fetcher,
)
from torchdali.dataloader._worker_blocks import BlockCollate, ReceivedBlocks
from torchdali.errors import call_site, on_behalf_of, warn
from torchdali.threads import call_in_thread

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["DataLoader"]

T = TypeVar("T", covariant=True)


class DataLoader(torch.utils.data.DataLoader[T]):
    """A drop-in replacement for PyTorch's `DataLoader` that accelerates supported datasets and transforms.

    These datasets are accelerated if all of their transforms are supported: torchvision's datasets of files and arrays,
    `TensorDataset`, and subsets and concatenations of them. Everything else runs unchanged in PyTorch's worker
    processes; `notes` lists the reasons. In both cases, the indices come from PyTorch's sampler.

    ::

        train = DataLoader(ImageFolder("images", transform), batch_size=64, shuffle=True, num_workers=4)
        for images, labels in train:
            ...
        print(train.notes)

    In an accelerated loader, random augmentation depends on the base seed that PyTorch draws for each epoch. To
    reproduce the augmentation, call ``torch.manual_seed`` or pass a ``generator``; the number of threads doesn't
    matter.

    Args:
        dataset: Dataset to load samples from.
        batch_size: Number of samples in a batch; None disables batching.
        shuffle: Shuffle the samples in every epoch.
        sampler: Iterable of indices, instead of ``shuffle``.
        batch_sampler: Iterable of lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: Number of worker processes. In an accelerated loader, the number of threads; 0 means one per core.
        collate_fn: Function that merges a list of samples into a batch. If you pass your own function, the loader isn't
            accelerated.
        pin_memory: Copy tensors into pinned memory before they're returned.
        drop_last: Drop the last batch if it is incomplete.
        timeout: Seconds to wait for a batch from PyTorch's workers; 0 waits forever.
        worker_init_fn: Function that PyTorch's workers call with their index when they start.
        multiprocessing_context: Start method of PyTorch's workers.
        generator: Generator that draws the random indices and the base seed of each epoch.
        prefetch_factor: Number of batches that each worker prepares ahead. In an accelerated loader, the number of
            batches prepared ahead.
        persistent_workers: Keep PyTorch's workers alive between epochs. Accelerated loaders always keep their threads.
        pin_memory_device: Device for which ``pin_memory`` pins the memory.
        in_order: True to return the batches of several workers in the sampler's order; False to return each batch
            when it is ready.
        snapshot_every_n_steps: Number of batches between two snapshots of the workers' states by torchdata's
            `StatefulDataLoader`. If you pass this argument, or if the dataset has its own ``state_dict``,
            `StatefulDataLoader` runs this loader's loops, unless the loader is accelerated or torchdata isn't
            installed.
        cache: Size of a cache in memory, like ``"8GB"``, or a folder. Decoded images are cached there, so that later
            epochs don't read and decode the files again. See `fn.cache`.
        bad_samples: ``"error"`` raises an error if a sample's file is damaged or missing. ``"skip"`` omits the sample
            from its batch; a batch without any good sample isn't delivered. A warning names the first bad sample, and
            `stats` lists all bad samples of the last loop.

    Raises:
        ValueError, TypeError: an argument is invalid, as in PyTorch.
    """

    # Default values for subclasses that don't call `__init__`.
    cache: Any = None
    snapshot_every_n_steps: int | None = None
    _idle = IdleEngines()
    _loaded_progress: Progress | None = None
    _progress: Progress | None = None
    _torchdata_class: Any = None
    _stateful_indices: Any = None
    _iterator_reference: Callable[[], Any] = staticmethod(lambda: None)

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
        check_dataset(dataset)
        self.cache, self.snapshot_every_n_steps = cache, snapshot_every_n_steps
        self.bad_samples, self._skipped, self._site = bad_samples, SkippedSamples(), call_site()
        self._idle, self._patience = IdleEngines(), Patience()
        newer_options = {} if in_order else {"in_order": False}  # older versions of PyTorch don't have this argument
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn, pin_memory, drop_last,
            timeout, worker_init_fn, multiprocessing_context, generator, prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers, pin_memory_device=pin_memory_device, **newer_options,
        )  # fmt: skip
        check_policy(bad_samples, self._is_iterable)
        iterates_itself = type(self)._get_iterator is not DataLoader._get_iterator
        if snapshot_every_n_steps is not None or (has_state(dataset) and not iterates_itself):
            self._use_torchdata()

    # ------------------------------------------------------------ loops

    def __iter__(self) -> Any:
        if self._torchdata_class is not None:
            return self._torchdata_class.__iter__(self)
        if self._loaded_progress is not None:
            self._iterator = None  # persistent workers can't continue at the position that the user has loaded
        return super().__iter__()

    def _get_iterator(self) -> Any:
        began, plan = time.perf_counter(), plan_of(self)
        changes = self._replaced_attributes(plan)
        if self._torchdata_class is not None:
            iterator = self._torchdata_class._get_iterator(replace_attributes(self, changes))
            self.next_iter_state = None
        else:
            generators = generators_of(self)
            progress = self._start_loop(generators, plan=plan)
            iterator = self._open_iterator(plan, progress, generators, changes)
            iterator.skipped, self._iterator_reference = self._skipped, weakref.ref(iterator)
        if plan.is_lazy and not self.num_workers and self._patience.remaining:
            wrap_fetcher(iterator, lambda fetcher: LazyFetcher(fetcher, self._patience))
        if self._torchdata_class is not None:
            return iterator
        if self._is_iterable:
            _skip_delivered(iterator, progress)
        progress.began, progress.startup = began, time.perf_counter() - began
        progress.waited = progress.startup
        return iterator

    def _open_iterator(self, plan: LoaderPlan, *arguments: Any) -> Any:
        skip_bad = self.bad_samples == "skip"
        accelerated, *torch_iterators = (
            ITERATORS if skip_bad else (AcceleratedIterator, SingleProcessIterator, WorkerIterator)
        )
        if plan.open is not None:
            return accelerated(self, plan, *arguments)
        if self.num_workers:
            self.check_worker_number_rationality()
        return torch_iterators[self.num_workers > 0](self, *arguments)

    def _replaced_attributes(self, plan: LoaderPlan) -> dict[str, Any]:
        """Return the loader's attributes that PyTorch's iterators must not see, with the values that replace them."""
        changes: dict[str, Any] = {}
        if self.pin_memory and not torch.accelerator.is_available():
            warn("'pin_memory' argument is set as true but no accelerator is found, so memory isn't pinned")
            changes["pin_memory"] = False
        if plan.open is not None:
            return changes
        if self.bad_samples == "skip" and self._torchdata_class is None:
            changes |= wrap_for_skipping(self)
        elif self.num_workers and self.batch_sampler is not None and not find_collate_change(self.collate_fn):
            changes["collate_fn"] = BlockCollate(ReceivedBlocks(self.num_workers, self.prefetch_factor or 2))
        if self.num_workers and plan.is_lazy:
            changes["worker_init_fn"] = WorkerInitializer(self.worker_init_fn, self.multiprocessing_context)
        return changes

    def _start_loop(
        self, generators: Mapping[str, Any], previous: Progress | None = None, plan: LoaderPlan | None = None
    ) -> Progress:
        """Return the position at which a new loop begins: a loaded position, or the start of an epoch.

        Args:
            previous: Position of the previous loop if the new loop uses the same persistent workers; otherwise None.
        """
        self._skipped.descriptions.clear()
        progress, self._loaded_progress = self._loaded_progress, None
        if progress is None:
            progress = Progress(snapshot(generators))
            if previous is not None:
                progress.epoch, progress.base_seed = previous.epoch + 1, previous.base_seed
        self._progress = progress
        record_loop(self, progress, plan)
        return progress

    def _engine(self, plan: LoaderPlan) -> BatchEngine:
        """Return an engine, whose threads produce the batches: an engine of an earlier loop, or a new engine."""
        create = plan.open
        assert create is not None
        engine = self._idle.pop(plan.key)
        if engine is None:
            return call_in_thread(lambda: on_behalf_of(self._site, create))
        engine.reset()
        engine.refresh(plan.tree)
        return engine

    # ------------------------------------------------------------ states

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last delivered batch, as values that JSON can store.

        Before the first loop, and after a complete loop, the position is the start of the next loop.

        If torchdata's `StatefulDataLoader` runs this loader's loops (see `snapshot_every_n_steps`), the result is the
        state of `StatefulDataLoader` instead.
        """
        if self._torchdata_class is not None:
            state: dict[str, Any] = self._torchdata_class.state_dict(self)
            return state
        progress = self._loaded_progress or self._progress
        if progress is None or progress.finished:
            progress = Progress(snapshot(generators_of(self)))
        return progress.state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume: the next loop begins after the last batch that was delivered before `state_dict` was called.

        In an accelerated loader, the remaining batches are the same as without the interruption, including their
        random augmentation. In PyTorch's own loop, the remaining batches contain the same samples, but random numbers
        that the dataset or its transforms draw may differ.

        Args:
            state_dict: State that `state_dict` of an equal loader has returned.

        Raises:
            ValueError: the dataset's length, the batch size, the number of batches, or the sampler's type differs
                between the state and this loader; or a field of the state is missing or invalid.
        """
        if self._torchdata_class is None:
            self._loaded_progress = position_of(self, state_dict)
            return
        if "torchdali" in state_dict:
            raise ValueError(
                "the state must come from torchdata's StatefulDataLoader, got a state of torchdali.DataLoader"
            )
        self._torchdata_class.load_state_dict(self, state_dict)

    @property
    def _is_iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    @property
    def _index_sampler(self) -> Any:
        # PyTorch's and torchdata's iterators read this property when they begin.
        return super()._index_sampler if self._stateful_indices is None else self._stateful_indices

    def _use_torchdata(self) -> None:
        """Use torchdata's loader for loops and states, unless this loader is accelerated or torchdata is missing."""
        module = import_torchdata()
        if module is None or plan_of(self).open is not None:
            return
        self.snapshot_every_n_steps = self.snapshot_every_n_steps or 1
        self.next_iter_state, self._initial_iter_for_state_dict = None, False
        if not self._is_iterable and type(self.batch_sampler) is BatchSampler and has_state(self.sampler):
            # The sampler has its own state. PyTorch's loader refuses to set `batch_sampler`, but `vars` can.
            vars(self)["batch_sampler"] = module.sampler.BatchSampler(self.sampler, self.batch_size, self.drop_last)
        elif not self._is_iterable and not has_state(self._index_sampler):
            self._stateful_indices = StatefulIndices(generators_of(self), self._index_sampler)
        self._torchdata_class = module.StatefulDataLoader

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the engines and iterators, which can't be used in another process."""
        iterator = None if isinstance(self._iterator, AcceleratedIterator) else self._iterator
        state = {**vars(self), "_idle": IdleEngines(), "_iterator": iterator}
        state.pop("_iterator_reference", None)
        return state

    # ------------------------------------------------------------ questions

    @property
    def notes(self) -> Notes:
        """Notes that say which parts of this loader are accelerated, and why other parts aren't.

        Print the notes to read them.
        """
        return plan_of(self).notes

    def explain(self) -> str:
        """Return the `notes` as text; if the loader is accelerated, add the processing steps of each image."""
        plan = plan_of(self)
        lines = list(plan.notes)
        if plan.tree is not None:
            dataset = type(plan.tree.leaves[0].dataset).__name__
            lines += ["", *explain(dataset, lines, self.num_workers or cores(), self.cache, self._site)]
        return "\n".join(lines)

    def stats(self) -> LoaderStats:
        """Return the duration of the last loop, and its waiting time for data. Print the result for a table."""
        plan, pipeline = plan_of(self), self._pipeline()
        if pipeline is None or plan.tree is None:
            return LoaderStats.of(self._progress, plan.notes, None, self._skipped.descriptions)
        names = operator_names(type(plan.tree.leaves[0].dataset).__name__, plan.notes)
        stats = rename_operators(pipeline.stats(), names)
        return LoaderStats.of(self._progress, plan.notes, stats, stats.skipped)

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return an image that shows the samples of the first batch of a new loop.

        Args:
            path: File in which to save the image; None to save nothing.
            options: Options of `torchdali.pictures.show`, like ``mean``, ``std`` and ``count``.

        Raises:
            ValueError: the batch contains nothing that can be drawn as an image.
        """
        from torchdali import pictures

        with torch.random.fork_rng(devices=[]):
            state = None if self.generator is None else self.generator.get_state()
            batch = next(iter(self._copy_with(num_workers=0)))
            if self.generator is not None and state is not None:
                self.generator.set_state(state)
        defaults = {"classes": self.dataset.classes} if hasattr(self.dataset, "classes") else {}
        values = tuple(batch) if isinstance(batch, list) else batch
        return pictures.show(values, path, **{**defaults, **options})

    def tune(self, seconds: float = 30.0, *, workers: Sequence[int] = ()) -> WorkerReport:
        """Measure the fastest ``num_workers`` on this machine; print the result to see the recommended code.

        Args:
            seconds: Duration of all measurements together.
            workers: Values of ``num_workers`` to try; by default powers of two, up to the number of cores.
        """

        def create(number: int) -> DataLoader[T]:
            return self._copy_with(num_workers=number)

        return measure_workers(create, self.num_workers, seconds, workers, describe_site(self._site))

    def close(self) -> None:
        """Stop the threads that produce batches. The next loop starts new threads."""
        self._idle.close()

    def _pipeline(self) -> Any:
        """Return the pipeline that produces the samples; None if the samples don't come from a pipeline."""
        engines: list[Any] = self._idle.engines()
        engines.append(getattr(self._iterator_reference(), "_engine", None))
        return next((engine.pipeline for engine in engines if hasattr(engine, "pipeline")), None)

    def _copy_with(self, **changes: Any) -> DataLoader[T]:
        has_batch_sampler = not self._is_iterable and self.batch_sampler is not None
        batches: dict[str, Any] = (
            {"batch_sampler": self.batch_sampler} if has_batch_sampler else {"batch_size": self.batch_size}
        )
        if not self._is_iterable and not has_batch_sampler:
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


def _skip_delivered(iterator: Any, progress: Progress) -> None:
    """Skip the batches of an iterable dataset that were delivered before the state was saved."""
    count, progress.batches = progress.batches, 0
    for _ in range(count):
        next(iterator, None)
