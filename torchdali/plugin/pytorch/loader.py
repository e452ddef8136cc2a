"""`Loader`: batches for a training loop, with every sample exactly once per epoch.

The DALI-compatible iterators have DALI's defaults. `Loader` has defaults for training: tuples of tensors, labels in the
form that loss functions accept, a new epoch at every ``iter()``, and equally many batches on every rank.

The classes of this module:

- `_ListIterator` is a DALI-compatible iterator over padded readers, with `LastBatchPolicy.PARTIAL` or ``DROP``.
  It counts epochs, shards and batches, and divides the last batches of an epoch so that no rank has an empty batch.
- `Loader` builds a `_ListIterator` on first use, and a new `_ListIterator` if the process, the worker or the rank has
  changed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import torch
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from torchdali.cores import cores
from torchdali.environment import read_number
from torchdali.errors import CLEAN_TRACEBACKS, call_site, on_behalf_of, warn, warnings_on
from torchdali.ops._caching import CacheLocation
from torchdali.plugin._epochs import EpochCounter
from torchdali.plugin._ranks import warn_of_unknown_ranks
from torchdali.plugin.base_iterator import BaseIterator, LastBatchPolicy
from torchdali.plugin.pytorch._folders import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Augment,
    check_arguments,
    check_folder,
    find_folder_labels,
    parse_size,
    testing,
    training,
)
from torchdali.plugin.pytorch._habits import FOLDER_ADVICE, PIPELINE_ADVICE, advise_on_arguments
from torchdali.plugin.pytorch._iterators import stack
from torchdali.tuning import Report, tune

if TYPE_CHECKING:
    from PIL.Image import Image

    from torchdali.pipeline import Pipeline
    from torchdali.tensors import TensorList

__all__ = ["Loader"]

Batch = list[Any]
_RADIX = 1 << 31
_LABELS = (torch.int16, torch.int32, torch.int64)


class _ProcessRank(NamedTuple):
    """The process in which an iterator was built: process id, rank, and index among the workers of a `DataLoader`."""

    process: int
    rank: int
    ranks: int
    worker: int
    workers: int

    @classmethod
    def here(cls, distributed: bool = True, inherited: tuple[int, int] = (0, 1)) -> _ProcessRank:
        """Return the values for the current process. The rank comes from `torch.distributed` or torchrun.

        Args:
            distributed: True to look up the rank; False to assume a single rank.
            inherited: Rank and number of ranks of the parent process, for workers that can't look up their rank.
        """
        worker = get_worker_info()
        workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if not distributed:
            return cls(os.getpid(), 0, 1, *workers)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return cls(os.getpid(), torch.distributed.get_rank(), torch.distributed.get_world_size(), *workers)
        if os.environ.get("RANK") and os.environ.get("WORLD_SIZE"):
            ranks = read_number("WORLD_SIZE", 1, 1)
            return cls(os.getpid(), read_number("RANK", 0, 0, ranks - 1), ranks, *workers)
        return cls(os.getpid(), *((0, 1) if worker is None else inherited), *workers)

    def divide(self, reader: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that make a reader deliver only this worker's samples.

        If the pipeline passes ``num_shards`` to the reader, each of these shards is divided among the workers.
        Otherwise, the samples are divided among the ranks, and then among each rank's workers.

        Args:
            reader: The reader's arguments ``shard_id`` and ``num_shards``.
        """
        shard, shards = reader["shard_id"], reader["num_shards"]
        if shards == 1:
            shard, shards = self.rank, self.ranks
        return {
            "pad_last_batch": True,
            "shard_id": shard * self.workers + self.worker,
            "num_shards": shards * self.workers,
        }


class _StartCounter:
    """Number of times that a `DataLoader` has started workers for a `Loader`, in memory that all workers share.

    A `DataLoader` starts new workers in each epoch. All workers that are started together must begin the same epoch.
    Workers that were started together have the same base seed of PyTorch. One 64-bit integer contains both the seed and
    the number, so that a worker can't read a seed and a number that belong to different starts.
    """

    def __init__(self) -> None:
        self._memory = torch.zeros(1, dtype=torch.int64)
        self._share()

    def _share(self) -> None:
        with contextlib.suppress(RuntimeError):  # a system without shared memory doesn't support workers either
            self._memory.share_memory_()

    def epoch(self) -> int:
        """Return the epoch that this worker begins."""
        seed, following = divmod(int(self._memory), _RADIX)
        if seed != self._seed():
            following += 1
            self._store(following)
        return following - 1

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the current workers. The workers that are started next begin the following epoch."""
        self._store(epoch + 1)

    @staticmethod
    def _seed() -> int:
        worker = get_worker_info()
        assert worker is not None
        return int(worker.seed - worker.id) % (_RADIX - 1) + 1  # at least 1, because 0 means that no worker has started

    def _store(self, following: int) -> None:
        self._memory[0] = self._seed() * _RADIX + following

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._share()  # no-op in a worker process, which has received the shared memory


class _ListIterator(BaseIterator):
    """An iterator that delivers a batch as a list with one value per output.

    If the samples can't be divided evenly, some ranks have one sample less than other ranks, and their last batch may
    be empty. Training on an empty batch is impossible, so a rank with an empty last batch divides its second-to-last
    batch in two. If the batch size is 1, batches can't be divided. In this case, each rank joins its last two batches,
    so that the last batch of some ranks has two samples.

    Args:
        pipe: The built pipeline, with padded readers.
        names: Names of the outputs, for error messages.
        ragged: Indices of the outputs that are delivered as lists of tensors.
        file_names: Append a list of the samples' names to each batch.
        options: Options of `BaseIterator`.
    """

    def __init__(
        self, pipe: Pipeline, names: Sequence[str], ragged: Sequence[int], file_names: bool, **options: Any
    ) -> None:
        self._names, self._ragged, self._file_names = names, frozenset(ragged), file_names
        self._held: tuple[int, Batch] | None = None  # an epoch, and values of the epoch's second-to-last batch
        self._state_before_held: tuple[int, dict[str, Any]] = -1, {}
        super().__init__(pipe, auto_reset=False, prepare_first_batch=False, on_break="next", **options)

    @property
    def counter(self) -> Any:
        return self._epochs

    @property
    def dataset_size(self) -> int:
        """Number of samples in an epoch of all ranks together; -1 if the number is unknown until the source ends."""
        return self._epochs.shards.size if isinstance(self._epochs, EpochCounter) else -1

    @property
    def remaining_samples(self) -> int:
        """Number of remaining samples of this epoch on this rank; 0 if the number is unknown until the source ends."""
        counter = self._epochs
        if not isinstance(counter, EpochCounter):
            return 0
        return max(0, counter.sizes[counter.ranks[0]] - counter.delivered * self.batch_size)

    def _warn_of_size(self) -> None:
        """Suppress the base class's warning, which advises passing ``reader_name``. A `Loader` finds its reader."""

    # ------------------------------------------------------------ values

    def _convert(self, outputs: list[tuple[TensorList, ...]], counts: list[int] | None) -> Batch:
        epochs, held = self._epochs, self._held
        remaining_batches = epochs.batches - epochs.delivered if self._is_uneven else 0
        is_held = remaining_batches == 1 and held is not None and held[0] == epochs.epoch
        if is_held and held is not None and self._ends_empty and self.batch_size > 1:
            return held[1]  # the held values replace the empty batch
        (batch,) = outputs
        count = None if counts is None else counts[0]
        values = [self._value(i, output, count) for i, output in enumerate(batch)]
        if self._file_names:
            values.append([batch[0][i].source_info() for i in range(len(batch[0]))][:count])
        if is_held and held is not None and self.batch_size == 1:
            return [_join_batches(*pair) for pair in zip(held[1], values, strict=True)]
        if remaining_batches == 2 and self.batch_size == 1:
            self._held = epochs.epoch, values
        elif remaining_batches == 2 and self._ends_empty:
            middle = -(-len(values[0]) // 2)
            self._held = epochs.epoch, [value[middle:] for value in values]
            return [value[:middle] for value in values]
        return values

    def _value(self, i: int, output: TensorList, count: int | None) -> Any:
        if i in self._ragged:
            return list(output.samples()[:count])
        tensor = output.dense()
        if tensor is None:
            tensor = stack(output, self._names[i], f"pass ragged=[{self._names[i]!r}]")
        return _as_label(tensor if count is None else tensor[:count])

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> _ListIterator:
        if not self._resumed:
            self._held = None
        super().__iter__()
        return self

    def __next__(self) -> Batch:
        epochs = self._epochs
        if self._is_uneven and epochs.delivered == epochs.batches - 2:
            if self._state_before_held[0] != epochs.epoch:
                self._state_before_held = epochs.epoch, {**super().state_dict(), "cut": self.batch_size > 1}
            batch: Batch = super().__next__()
            if self.batch_size > 1:
                return batch
        batch = super().__next__()
        return batch

    @property
    def _is_uneven(self) -> bool:
        """True if the last batch of some rank would be empty if no batch were divided."""
        counter = self._epochs
        if not isinstance(counter, EpochCounter) or counter.policy is not LastBatchPolicy.PARTIAL:
            return False
        return bool(counter.batches > 1 and min(counter.sizes) <= (counter.batches - 1) * self.batch_size)

    @property
    def _ends_empty(self) -> bool:
        """True if the last batch of this rank would be empty if no batch were divided."""
        counter = self.counter
        size: int = counter.sizes[counter.ranks[0]]
        return bool(size <= (counter.batches - 1) * self.batch_size)

    def __len__(self) -> int:
        return super().__len__() - (self._is_uneven and self.batch_size == 1)

    def skip_to_epoch(self, epoch: int) -> None:
        """Continue at the start of an epoch. Without a reader or a size, this call has no effect."""
        counter = self._epochs
        following = counter.epoch + (counter.finished or self._over)
        if not isinstance(counter, EpochCounter) or (
            following == epoch and (following > counter.epoch or self._at_start())
        ):
            return
        self._skip_to_epoch(epoch)

    # ------------------------------------------------------------ saving the position

    def state_dict(self) -> dict[str, Any]:
        """Return the position, which may be between the halves of a divided batch."""
        epochs, held = self._epochs, self._held
        is_held = held is not None and held[0] == epochs.epoch and epochs.delivered == epochs.batches - 1
        return self._state_before_held[1] if is_held else super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._held, self._state_before_held = None, (-1, {})
        super().load_state_dict(state)
        if state.get("cut"):
            next(self)
            self._resumed = True

    def close(self) -> None:
        self._pipes[0].close()


def _join_batches(first: Any, second: Any) -> Any:
    return first + second if isinstance(first, list) else torch.cat([first, second])


def _as_label(tensor: torch.Tensor) -> torch.Tensor:
    """Convert integers, one per sample, to labels for loss functions, ``(N,)`` int64. Other tensors stay unchanged."""
    if tensor.dtype in _LABELS and tensor.ndim in (1, 2) and tensor.numel() == len(tensor):
        return tensor.reshape(-1).long()
    return tensor


class _LoaderSize:
    """An object whose length is the number of samples of a `Loader`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader.dataset_size

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError("a Loader cannot be indexed: its samples come in batches, in a loop over the Loader")


def _warn_of_batches_of_batches() -> None:
    """Warn about a `DataLoader` that collates a `Loader`'s batches as if the batches were samples.

    The warning points to the user's line.
    """
    frame: FrameType | None = sys._getframe(2)
    fetcher = frame.f_locals.get("self") if frame is not None else None
    if not getattr(fetcher, "auto_collation", False) or getattr(fetcher, "collate_fn", None) is not default_collate:
        return
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(_DATALOADER):
        frame = frame.f_back
    assert frame is not None
    with warnings_on(frame.f_code.co_filename, frame.f_lineno):
        warn(
            "this DataLoader collates the batches of a Loader into batches of batches, with one more axis: use the "
            "Loader itself, or DataLoader(loader, batch_size=None)"
        )


_DATALOADER = os.path.dirname(os.path.abspath(torch.utils.data.__file__)) + os.sep


def _field_names(outputs: Any) -> Iterable[str]:
    """Return the names of the outputs: the fields of a named tuple class, or the argument unchanged."""
    names: Iterable[str] = getattr(outputs, "_fields", outputs)
    return names


class Loader(IterableDataset[Any]):
    """Deliver the batches of a pipeline to a training loop.

    ::

        for epoch in range(90):
            for images, labels in loader:
                ...

    - Every epoch contains every sample exactly once. The samples of a reader are divided among the ranks, and among the
      workers if the Loader runs in a ``DataLoader`` with workers. If the pipeline passes ``num_shards`` to its reader,
      the pipeline's own shards are used instead. The rank comes from `torch.distributed`, or from torchrun's
      environment variables ``RANK`` and ``WORLD_SIZE``.
    - All ranks have the same number of batches; the last batches are smaller if the samples can't be divided evenly.
      ``len()`` is the same in every epoch.
    - Every ``iter()`` begins a new epoch, also after a ``break``. After `load_state_dict`, ``iter()`` continues in the
      middle of the saved epoch.
    - A batch is a tuple with one tensor per output; with ``outputs``, it is a dictionary or a named tuple. Integer
      outputs with one value per sample become labels, ``(N,)`` int64; all other outputs are unchanged.

    A `Loader` is an ``IterableDataset``. Frameworks accept a Loader directly, or as ``DataLoader(loader,
    batch_size=None)``.
    If a Loader is pickled, or its process is forked, the other process builds the pipeline again.

    Args:
        pipeline: A pipeline, or a function without arguments that creates it, for example
            ``functools.partial(training, root)``. The Loader can use a pipeline in another process only if a function
            decorated with ``pipeline_def`` has created the pipeline.
        outputs: Names of the outputs, to get each batch as a dictionary; or a named tuple class, to get each batch as
            an instance of the class. Default: tuples.
        drop_last: Deliver only full batches; the dropped samples differ from epoch to epoch if the reader shuffles.
        ragged: Names or indices of outputs whose samples differ in shape. These outputs are lists of tensors.
        file_names: Append a list of the samples' names, for example file paths, to each batch. In dictionaries, the key
            of the list is ``"file_names"``.
        reader_name: Name of the reader that determines the samples of an epoch; required if the pipeline has readers
            of different sizes.
        size: Number of samples in an epoch, for a pipeline without a reader. If the pipeline has neither a reader nor a
            size, an epoch ends when the pipeline's source ends, and ``len()`` raises an error.
        classes: Names of the classes, for datasets whose reader doesn't know the names.
        distributed: True to divide the samples among the ranks; False to deliver all samples on each rank.

    Raises:
        RuntimeError: on first use, the pipeline can't be built, or its readers have different sizes and ``reader_name``
            isn't passed.
        ValueError: two outputs have the same name.
        TypeError: `pipeline` is neither a pipeline nor a function; or, on first use, the function doesn't create a
            pipeline.
    """

    @advise_on_arguments(PIPELINE_ADVICE, "Loader()")
    def __init__(
        self,
        pipeline: Pipeline | Callable[[], Pipeline],
        *,
        outputs: Sequence[str] | type[Any] | None = None,
        drop_last: bool = False,
        ragged: Sequence[str | int] = (),
        file_names: bool = False,
        reader_name: str | None = None,
        size: int | None = None,
        classes: Sequence[str] | None = None,
        distributed: bool = True,
    ) -> None:
        self._pipe: Pipeline | None = None
        if hasattr(pipeline, "build"):
            self._pipe = pipeline  # type: ignore[assignment]
            self._make: Callable[[], Pipeline] | None = getattr(pipeline, "factory", None)
        elif callable(pipeline):
            self._make = pipeline
        else:
            kind = type(pipeline).__name__
            raise TypeError(f"Loader must get a pipeline, or a function that returns one, got {kind}")
        self._outputs, self._drop_last, self._file_names = outputs, drop_last, file_names
        self._names = None if outputs is None else list(_field_names(outputs))
        if self._names is not None and len(set(self._names)) < len(self._names):
            raise ValueError(
                f"outputs must have different names, since they are keys of a dictionary, got {self._names}"
            )
        self._ragged = [ragged] if isinstance(ragged, (str, int)) else list(ragged)
        self._reader_name, self._size, self._classes = reader_name, size, classes
        self._distributed = distributed
        self._batches: _ListIterator | None = None
        self._process_rank: _ProcessRank | None = None
        self._epoch: int | None = None
        self._starts, self._ranks = _StartCounter(), (0, 1)
        self._has_delivered = False
        self._loops = 0

    @classmethod
    @advise_on_arguments(FOLDER_ADVICE, "Loader.from_folder()")
    def from_folder(
        cls,
        root: str | os.PathLike[str],
        *,
        train: bool,
        size: int | Sequence[int] = 224,
        batch_size: int = 64,
        augment: Augment = None,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        num_threads: int | None = None,
        num_processes: int | None = None,
        prefetch_queue_depth: int = 2,
        scaled_decode: bool = False,
        device_id: int | str | None = None,
        seed: int | None = None,
        bad_samples: Literal["raise", "skip", "replace"] = "raise",
        cache: CacheLocation = None,
        classes: Sequence[str] | None = None,
        outputs: Sequence[str] | type[Any] | None = None,
        drop_last: bool = False,
        file_names: bool = False,
        distributed: bool = True,
    ) -> Loader:
        """Create a Loader for images in class folders, with the common ImageNet transforms.

        Batches are ``(images, labels)``: ``(N, 3, height, width)`` float32, normalized, and ``(N,)`` int64. Arguments
        are checked immediately; files are listed when the Loader is first used.

        Args:
            root: Folder that contains one folder per class, as for torchvision's ``ImageFolder``. Names that begin with
                a dot are skipped.
            train: True to shuffle, crop at random (`random_resized_crop`) and mirror at random; False to read the
                images in order and crop their center.
            size: Height and width: one number for both, or two numbers.
            batch_size: Number of samples in a batch on this rank.
            augment: ``"rand"``, ``"auto"`` or ``"trivial"`` for RandAugment, AutoAugment or TrivialAugment; transforms
                of torchvision, for example ``v2.ColorJitter(0.4)``; or a function of the images, for example
                ``lambda images: fn.gaussian_blur(images, sigma=1.0)``.
            mean, std: Mean and standard deviation of each channel, for pixels in the range 0 to 1.
            num_threads: Number of threads; by default the number of cores that this process may use.
            num_processes, prefetch_queue_depth, scaled_decode: See `Pipeline`; `tune` measures the best values.
            device_id: Index of the GPU on which images are augmented, normalized and delivered; by default the images
                stay on the CPU. See `Pipeline`.
            seed: Seed of the samples' order and of the random augmentation.
            bad_samples: Reaction to files that can't be read: raise an error, skip the file, or replace it with
                another; see `Pipeline`.
            cache: Size of a cache in memory, like ``"8GB"``, or a folder, like ``"/fast/disk"``. Images are cached
                there, so that later epochs don't read and decode the files again. With ``train=False``, images of the
                final size are cached; with ``train=True``, whole images. See `fn.cache`.
            classes: Names of all classes, in the order of their labels, for example the training Loader's `classes`.
                With this argument, every class keeps its label even if the folder of another class is missing. Default:
                the folders' names in alphabetical order.
            outputs, drop_last, file_names, distributed: See `Loader`.

        Raises:
            FileNotFoundError: the folder doesn't exist, or contains no folders.
            ValueError: `augment` or `cache` is unknown, `augment` is passed with ``train=False``, a size or batch size
                is below 1, or a folder is not among the `classes`.
            TypeError: `train` isn't a bool, or `augment` isn't supported.
            Exception: the pipeline rejects an argument, or the `augment` function raises an error.
        """
        shared: dict[str, Any] = {
            "batch_size": batch_size,
            "num_threads": num_threads or cores(),
            "num_processes": num_processes,
            "prefetch_queue_depth": prefetch_queue_depth,
            "scaled_decode": scaled_decode,
            "device_id": device_id,
            "seed": seed,
            "bad_samples": bad_samples,
        }
        root = check_folder(root)
        images: dict[str, Any] = {
            "root": root,
            "size": parse_size(size),
            "mean": mean,
            "std": std,
            "on_device": device_id is not None,
            "cache": cache,
            "folder_labels": None if classes is None else find_folder_labels(root, classes),
        }
        check_arguments(train, batch_size, num_threads, augment, mean, std)
        make: Callable[[], Pipeline] = functools.partial(testing, **images, **shared)
        if train:
            make = functools.partial(training, **images, augment=augment, **shared)
        loader = cls(
            functools.partial(on_behalf_of, call_site(), make),
            outputs=outputs,
            drop_last=drop_last,
            file_names=file_names,
            distributed=distributed,
            classes=classes,
        )
        # The graph is defined here, so that errors are raised here. The pipeline is built, with threads, on first use.
        loader._pipe = loader._new_pipeline()
        return loader

    # ------------------------------------------------------------ the pipeline of this process

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of this process."""
        with CLEAN_TRACEBACKS:
            pipe: Pipeline = self._open_iterator()._pipes[0]
            return pipe

    def _open_iterator(self) -> _ListIterator:
        """Return the iterator of this process; build it on first use, or if the process or rank has changed."""
        with CLEAN_TRACEBACKS:
            process_rank = _ProcessRank.here(self._distributed, self._ranks)
            if self._batches is None or self._process_rank != process_rank:
                self._batches, self._process_rank = self._open(process_rank), process_rank
                self._batches.skip_to_epoch(self._first_epoch())
            return self._batches

    def _first_epoch(self) -> int:
        """Return the epoch with which the first loop of this process begins."""
        if self._epoch is not None or get_worker_info() is None:
            return self._epoch or 0
        return self._starts.epoch()

    def _open(self, process_rank: _ProcessRank) -> _ListIterator:
        pipe = self._new_pipeline()
        pipe.change_readers(process_rank.divide)
        pipe.build()
        reader = self._find_reader(pipe)
        if self._distributed and reader is not None and pipe.reader_meta(reader)["number_of_shards"] == 1:
            warn_of_unknown_ranks()
        names = self._names or [f"{i}" for i in range(pipe.num_outputs)]
        ragged = [names.index(r) if isinstance(r, str) else r for r in self._ragged]
        epoch = {"reader_name": reader} if reader is not None else {"size": -1 if self._size is None else self._size}
        policy = LastBatchPolicy.DROP if self._drop_last else LastBatchPolicy.PARTIAL
        return _ListIterator(pipe, names, ragged, self._file_names, last_batch_policy=policy, **epoch)

    def _new_pipeline(self) -> Pipeline:
        # A pipeline that isn't built has no threads, so a forked process can use the pipeline of its parent process.
        pipe, self._pipe = self._pipe, None
        if pipe is not None and not pipe.is_built:
            return pipe
        if self._make is None:
            raise RuntimeError(
                "this Loader must build its pipeline again, in another process or on another rank, but got a "
                "pipeline that no function under pipeline_def created. Pass the function that creates the pipeline "
                "instead"
            )
        pipe = self._make()
        if not hasattr(pipe, "build"):
            raise TypeError(
                f"the function passed to Loader must return a pipeline, got {pipe!r}. Is "
                f"@pipeline_def(batch_size=..., num_threads=...) missing above the function?"
            )
        return pipe

    def _find_reader(self, pipe: Pipeline) -> str | None:
        metas = pipe.reader_meta()
        if self._reader_name is not None or not metas:
            return self._reader_name
        sizes = {meta["epoch_size"] for meta in metas.values()}
        if len(sizes) > 1:
            listed = ", ".join(f"{name!r}: {meta['epoch_size']}" for name, meta in metas.items())
            raise RuntimeError(
                f"the readers differ in size ({listed}). Pass reader_name= with the reader that determines the epoch"
            )
        return next(iter(metas))

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> Iterator[Any]:
        """Begin a new epoch; after `load_state_dict`, continue the saved epoch."""
        _warn_of_batches_of_batches()
        self._loops += 1
        return self._loop(self._loops)

    def _loop(self, number: int) -> Iterator[Any]:
        if self._has_delivered:
            self._has_delivered = False
            return
        with CLEAN_TRACEBACKS:
            batches = iter(self._open_iterator())
        while True:
            with CLEAN_TRACEBACKS:
                batch = next(batches, None)
            if batch is None:
                return
            yield self._format_batch(batch)
            if number != self._loops:
                raise RuntimeError("only one loop over a Loader can run at a time, and another loop has begun")

    def _format_batch(self, values: Batch) -> Any:
        if self._names is None:
            return values[0] if len(values) == 1 else tuple(values)
        names = [*self._names, *(["file_names"] if self._file_names else [])]
        if len(names) != len(values):
            raise RuntimeError(f"outputs must name {len(values)} outputs of the pipeline, got {len(names)}: {names}")
        if isinstance(self._outputs, type):
            return self._outputs(*values)
        return dict(zip(names, values, strict=True))

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError("a Loader cannot be indexed. Write `for batch in loader`, or next(iter(loader)) for one batch")

    def __len__(self) -> int:
        """Return the number of batches of an epoch, the same on every rank and in every epoch.

        Raises:
            TypeError: the length of an epoch is unknown until the pipeline's source ends; pass `size` to the Loader.
        """
        with CLEAN_TRACEBACKS:
            count = len(self._open_iterator())
        if not count:
            raise TypeError(
                "the length of an epoch is unknown, since only the pipeline's source determines its end. "
                "Pass size= to the Loader"
            )
        return count

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop. The epoch determines the samples' order and random numbers.

        A training loop over consecutive epochs doesn't need this call. If the pipeline has neither a reader nor a size,
        the call has no effect.
        """
        self._epoch = epoch  # used if another process builds the pipeline again
        with CLEAN_TRACEBACKS:
            self._open_iterator().skip_to_epoch(epoch)

    # ------------------------------------------------------------ saving the position

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last delivered batch, as values that JSON can store."""
        with CLEAN_TRACEBACKS:
            return self._open_iterator().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume: the next loop begins after the last batch that was delivered before `state_dict` was called.

        Raises:
            RuntimeError, ValueError: the state belongs to another pipeline, dataset or number of ranks.
        """
        with CLEAN_TRACEBACKS:
            batches = self._open_iterator()
            batches.load_state_dict(state)
        if get_worker_info() is not None:
            # If this worker has delivered all of its batches of the epoch, it must not begin the next epoch before the
            # other workers have delivered theirs.
            self._has_delivered = bool(batches.counter.finished)
            self._starts.set_epoch(batches.counter.epoch)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the running pipeline. The process that unpickles them builds a new pipeline."""
        if self._make is None:
            raise TypeError(
                "this Loader cannot be pickled, since no function under pipeline_def created its pipeline. Pass the "
                "function that creates the pipeline"
            )
        ranks = _ProcessRank.here(inherited=self._ranks)[1:3]
        return {**self.__dict__, "_pipe": None, "_batches": None, "_process_rank": None, "_ranks": ranks}

    # ------------------------------------------------------------ questions

    @property
    def dataset_size(self) -> int:
        """Number of samples in an epoch of all ranks together.

        Raises:
            TypeError: the number is unknown until the pipeline's source ends.
        """
        with CLEAN_TRACEBACKS:
            size = self._open_iterator().dataset_size
        if size < 0:
            raise TypeError("the number of samples is unknown, since only the pipeline's source determines it")
        return size

    @property
    def dataset(self) -> Any:
        """An object whose length is the number of samples, so that ``len(loader.dataset)`` works as in PyTorch."""
        return _LoaderSize(self)

    @property
    def batch_size(self) -> int:
        """Number of samples in a full batch on this rank."""
        with CLEAN_TRACEBACKS:
            return self._open_iterator().batch_size

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of their labels.

        Raises:
            AttributeError: the reader's dataset has no class names, and `classes` wasn't passed to the Loader.
        """
        return self.pipeline.classes if self._classes is None else list(self._classes)

    def stats(self) -> Any:
        """Return the times of the pipeline's operators; print the result for a table. See `Pipeline.stats`."""
        return self.pipeline.stats()

    def tune(self, seconds: float = 60.0, *, apply: bool = False, **options: Any) -> Report:
        """Measure the fastest settings of the pipeline on this machine; print the result to see the settings.

        The pipeline is built again for each measurement. This Loader is unchanged, unless `apply` is True.

        Args:
            seconds: Duration of all measurements together.
            apply: True to build this Loader's pipeline with the fastest settings. The Loader must not have been used
                before.
            options: Options of `torchdali.tuning.tune`: ``step``, ``cores``, ``memory``.

        Raises:
            RuntimeError: the pipeline wasn't created by a function decorated with `pipeline_def`, or `apply` is True
                after the first use of the Loader.
        """
        if apply and self._batches is not None:
            raise RuntimeError(
                "tune(apply=True) builds the pipeline again, so it must be called before this Loader is first used"
            )
        pipe = self._pipe if self._make is None else self._make()
        factory = getattr(pipe, "factory", None)
        if factory is None:
            raise RuntimeError(
                "tuning builds the pipeline again with other settings, by its function under pipeline_def, but no "
                "function created the pipeline of this Loader. Pass the function that creates the pipeline"
            )
        report = tune(factory, seconds, **options)
        if apply and report.changes:
            self._pipe, self._make = None, functools.partial(factory, **report.changes)
        return report

    def explain_epoch(self) -> None:
        """Print the number of samples and batches of the current epoch for each rank, with the reasons."""
        with CLEAN_TRACEBACKS:
            self._open_iterator().explain_epoch()

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return an image that shows the samples of the next batch, with the names of their classes.

        The batch is not consumed: the loop delivers the same batch next. See `Pipeline.show`.

        Args:
            path: File in which to save the image; None to save nothing.
            options: Options of `Pipeline.show` and `torchdali.pictures.show`, for example ``each`` and ``count``.

        Raises:
            RuntimeError: a source of the pipeline can't deliver the same data twice.
            ValueError: no output can be drawn as an image.
        """
        defaults: dict[str, Any] = {} if self._classes is None else {"classes": list(self._classes)}
        remaining = self._open_iterator().remaining_samples
        if 0 < remaining < (options.get("count") or self.batch_size):  # the rest of the batch is padding
            options = {**options, "count": remaining}
        return self.pipeline.show(path, **{**defaults, **options})

    def close(self) -> None:
        """Close the pipeline. The next loop builds the pipeline again, and begins with the first epoch."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _repr_html_(self) -> str:
        from torchdali import pictures

        if self._batches is None and self._make is None:
            return pictures.document(repr(self), [], "")  # this pipeline can be built only once, by the first loop
        size = self._open_iterator().dataset_size
        facts = [] if size < 0 else [("samples", f"{size:,}")]
        try:
            return pictures.document(repr(self), facts, pictures.image_tag(self.show(count=8, size=112)))
        except (RuntimeError, ValueError) as error:  # nothing can be drawn
            return pictures.document(repr(self), [*facts, ("no picture:", str(error).splitlines()[0])], "")

    def __repr__(self) -> str:
        if self._batches is None:
            return f"<{type(self).__name__}, not yet used>"
        counter = self._batches.counter
        return (
            f"<{type(self).__name__}: epoch {counter.epoch}, batch {counter.delivered} of {len(self._batches) or '?'}>"
        )
