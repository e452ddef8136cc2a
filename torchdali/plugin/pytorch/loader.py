"""`Loader`: batches for a training loop, every sample exactly once an epoch.

DALI's iterators keep DALI's defaults. `Loader` has defaults for training: tuples of tensors, labels that a loss
takes, a new epoch at every ``iter()``, and equally many batches on every rank.

How the pieces fit together:

- `_ListIterator` is one of DALI's iterators with PARTIAL or DROP over padded readers.
  It counts epochs, shards and batches.
- `Loader` builds it on first use, and again in another process, on another rank or in another worker.
- The last batches of an epoch are cut so that no rank has an empty one, see `_ListIterator`.
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
from torchdali.errors import LEAVING, call_site, on_behalf_of, warn, warnings_on
from torchdali.ops._caching import CachePlace
from torchdali.plugin._epochs import EpochCounter
from torchdali.plugin._ranks import warn_of_unknown_ranks
from torchdali.plugin.base_iterator import BaseIterator, LastBatchPolicy
from torchdali.plugin.pytorch._folders import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Augment,
    check,
    class_numbers,
    folder,
    sides,
    testing,
    training,
)
from torchdali.plugin.pytorch._habits import OF_FOLDERS, OF_PIPELINES, answering
from torchdali.plugin.pytorch._iterators import stack
from torchdali.tuning import Report, tune

if TYPE_CHECKING:
    from PIL.Image import Image

    from torchdali.pipeline import Pipeline
    from torchdali.tensors import TensorList

__all__ = ["Loader"]

Batch = list[Any]
_HALF = 1 << 31
_LABELS = (torch.int16, torch.int32, torch.int64)


class _ProcessRank(NamedTuple):
    """The process that an iterator was made for, its rank, and its number among the workers of a DataLoader."""

    process: int
    rank: int
    ranks: int
    worker: int
    workers: int

    @classmethod
    def here(cls, distributed: bool = True, known: tuple[int, int] = (0, 1)) -> _ProcessRank:
        """Return the present position; the rank is torch.distributed's, or torchrun's.

        Args:
            distributed: If True, look for ranks; otherwise there is only one.
            known: Rank and number of ranks of the process that started this one, for when they aren't set here.
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
        return cls(os.getpid(), *((0, 1) if worker is None else known), *workers)

    def divide(self, reader: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a reader here: divided by rank, unless the pipeline did so, and by worker."""
        shard, shards = reader["shard_id"], reader["num_shards"]
        if shards == 1:
            shard, shards = self.rank, self.ranks
        return {
            "pad_last_batch": True,
            "shard_id": shard * self.workers + self.worker,
            "num_shards": shards * self.workers,
        }


class _StartCounter:
    """Number of times that a DataLoader has started workers for a Loader, in memory that all of them share.

    A DataLoader starts its workers again in each epoch. They all begin the same epoch, on every rank, and only the
    seed that workers of one start share tells them which start theirs is. It is kept next to the number, in one integer
    that is read and written at once: so they may come at the same time.
    """

    def __init__(self) -> None:
        self._memory = torch.zeros(1, dtype=torch.int64)
        self._share()

    def _share(self) -> None:
        with contextlib.suppress(RuntimeError):  # a system without shared memory cannot have workers either
            self._memory.share_memory_()

    def epoch(self) -> int:
        """Return the epoch that this worker begins."""
        seed, following = divmod(int(self._memory), _HALF)
        if seed != self._seed():
            following += 1
            self._keep(following)
        return following - 1

    def go_to(self, epoch: int) -> None:
        """Let the next start follow an epoch."""
        self._keep(epoch + 1)

    @staticmethod
    def _seed() -> int:
        worker = get_worker_info()
        assert worker is not None
        return int(worker.seed - worker.id) % (_HALF - 1) + 1  # of none it is 0

    def _keep(self, following: int) -> None:
        self._memory[0] = self._seed() * _HALF + following

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._share()  # a copy, unless it came to a process that this one started


class _ListIterator(BaseIterator):
    """An iterator that delivers a batch as a list with a value for each output.

    If the samples do not divide, the iterator below it gives the ranks with one sample less than others an empty last
    batch. Nobody can train on that: the batch before it is cut in two. A batch of one sample cannot be cut: then all
    ranks join their last two batches, so that some have two samples in the end.

    Args:
        pipe: Built, with padded readers.
        names: Names of the outputs, for messages.
        ragged: Numbers of the outputs that are delivered as lists.
        file_names: Append the names of the samples.
        options: Options of `BaseIterator`.
    """

    def __init__(
        self, pipe: Pipeline, names: Sequence[str], ragged: Sequence[int], file_names: bool, **options: Any
    ) -> None:
        self._names, self._ragged, self._file_names = names, frozenset(ragged), file_names
        self._kept: tuple[int, Batch] | None = None  # of an epoch: a part of the last batch but one
        self._before_kept: tuple[int, dict[str, Any]] = -1, {}
        super().__init__(pipe, auto_reset=False, prepare_first_batch=False, on_break="next", **options)

    @property
    def counter(self) -> Any:
        """Counts the batches of epochs."""
        return self._epochs

    @property
    def dataset_size(self) -> int:
        """Samples of an epoch, of all ranks together; -1 if only the source knows."""
        return self._epochs.shards.size if isinstance(self._epochs, EpochCounter) else -1

    @property
    def left(self) -> int:
        """Number of samples that remain in the present epoch, on this rank; 0 if only the source knows."""
        counter = self._epochs
        if not isinstance(counter, EpochCounter):
            return 0
        return max(0, counter.sizes[counter.ranks[0]] - counter.delivered * self.batch_size)

    def _warn_of_size(self) -> None:
        """Stay silent: a Loader finds its reader itself."""

    # ------------------------------------------------------------ values

    def _convert(self, outputs: list[tuple[TensorList, ...]], counts: list[int] | None) -> Batch:
        epochs, kept = self._epochs, self._kept
        left = epochs.batches - epochs.delivered if self._is_uneven else 0
        is_kept = left == 1 and kept is not None and kept[0] == epochs.epoch
        if is_kept and kept is not None and self._ends_empty and self.batch_size > 1:
            return kept[1]  # in the place of the empty batch
        (batch,) = outputs
        count = None if counts is None else counts[0]
        values = [self._value(i, output, count) for i, output in enumerate(batch)]
        if self._file_names:
            values.append([batch[0][i].source_info() for i in range(len(batch[0]))][:count])
        if is_kept and kept is not None and self.batch_size == 1:
            return [_join_batches(*pair) for pair in zip(kept[1], values, strict=True)]
        if left == 2 and self.batch_size == 1:
            self._kept = epochs.epoch, values
        elif left == 2 and self._ends_empty:
            middle = -(-len(values[0]) // 2)
            self._kept = epochs.epoch, [value[middle:] for value in values]
            return [value[:middle] for value in values]
        return values

    def _value(self, i: int, output: TensorList, count: int | None) -> Any:
        if i in self._ragged:
            return list(output.samples()[:count])
        tensor = output.dense()
        if tensor is None:
            tensor = stack(output, self._names[i], f"give the Loader ragged=[{self._names[i]!r}]")
        return _as_label(tensor if count is None else tensor[:count])

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> _ListIterator:
        if not self._resumed:
            self._kept = None
        super().__iter__()
        return self

    def __next__(self) -> Batch:
        """Return the next batch."""
        epochs = self._epochs
        if self._is_uneven and epochs.delivered == epochs.batches - 2:
            if self._before_kept[0] != epochs.epoch:
                self._before_kept = epochs.epoch, {**super().state_dict(), "cut": self.batch_size > 1}
            batch: Batch = super().__next__()
            if self.batch_size > 1:
                return batch
        batch = super().__next__()
        return batch

    @property
    def _is_uneven(self) -> bool:
        """True if the last batch of some rank is empty."""
        counter = self._epochs
        if not isinstance(counter, EpochCounter) or counter.policy is not LastBatchPolicy.PARTIAL:
            return False
        return bool(counter.batches > 1 and min(counter.sizes) <= (counter.batches - 1) * self.batch_size)

    @property
    def _ends_empty(self) -> bool:
        """True if the last batch of this rank is empty."""
        counter = self.counter
        size: int = counter.sizes[counter.ranks[0]]
        return bool(size <= (counter.batches - 1) * self.batch_size)

    def __len__(self) -> int:
        return super().__len__() - (self._is_uneven and self.batch_size == 1)

    def go_to(self, epoch: int) -> None:
        """Continue at the start of an epoch, if there is a reader."""
        counter = self._epochs
        following = counter.epoch + (counter.finished or self._over)
        if not isinstance(counter, EpochCounter) or (
            following == epoch and (following > counter.epoch or self._at_start())
        ):
            return
        self._go_to(epoch)

    # ------------------------------------------------------------ saving the position

    def state_dict(self) -> dict[str, Any]:
        """Return the position, which may be in the middle of a batch that was cut."""
        epochs, kept = self._epochs, self._kept
        is_kept = kept is not None and kept[0] == epochs.epoch and epochs.delivered == epochs.batches - 1
        return self._before_kept[1] if is_kept else super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a position."""
        self._kept, self._before_kept = None, (-1, {})
        super().load_state_dict(state)
        if state.get("cut"):
            next(self)
            self._resumed = True

    def close(self) -> None:
        """End the pipeline."""
        self._pipes[0].close()


def _join_batches(first: Any, second: Any) -> Any:
    """Return the values of two batches as one batch."""
    return first + second if isinstance(first, list) else torch.cat([first, second])


def _as_label(tensor: torch.Tensor) -> torch.Tensor:
    """Return integers, one per sample, as the loss functions take them: ``(N,)`` int64. Others stay unchanged."""
    if tensor.dtype in _LABELS and tensor.ndim in (1, 2) and tensor.numel() == len(tensor):
        return tensor.reshape(-1).long()
    return tensor


class _LoaderSize:
    """The number of samples of a Loader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader.dataset_size

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError("the samples of a Loader come in batches, in a loop over the Loader; they have no index")


def _warn_of_batches_of_batches() -> None:
    """Warn on the user's line if a DataLoader that begins a loop puts batches together as if they were samples."""
    frame: FrameType | None = sys._getframe(2)
    fetcher = frame.f_locals.get("self") if frame is not None else None
    if not getattr(fetcher, "auto_collation", False) or getattr(fetcher, "collate_fn", None) is not default_collate:
        return
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(_DATALOADER):
        frame = frame.f_back
    assert frame is not None
    with warnings_on(frame.f_code.co_filename, frame.f_lineno):
        warn(
            "this DataLoader puts the batches of a Loader together to batches of batches, with one axis more: use the "
            "Loader as it is, or DataLoader(loader, batch_size=None)"
        )


_DATALOADER = os.path.dirname(os.path.abspath(torch.utils.data.__file__)) + os.sep


def _field_names(outputs: Any) -> Iterable[str]:
    """Return the names of the outputs: of a class of named tuples, or unchanged."""
    names: Iterable[str] = getattr(outputs, "_fields", outputs)
    return names


class Loader(IterableDataset[Any]):
    """Deliver the batches of a pipeline to a training loop.

    ::

        for epoch in range(90):
            for images, labels in loader:
                ...

    - Every sample comes exactly once an epoch. Readers are padded, and divided by rank and by worker of a
      ``DataLoader``, unless the pipeline says ``num_shards`` itself. The rank comes from `torch.distributed`, or from
      torchrun (``RANK``, ``WORLD_SIZE``).
    - All ranks have the same number of batches; the last ones are smaller if the samples can't be divided evenly.
      ``len()`` is constant.
    - Every ``iter()`` begins a new epoch, also after a ``break``; after `load_state_dict`, it continues in the middle
      of the epoch.
    - A batch is a tuple with a tensor for each output, a dictionary, or a named tuple. Integers with one value per
      sample are labels, ``(N,)`` int64; everything else is as the pipeline makes it.

    It is an ``IterableDataset``: frameworks accept it directly, or as ``DataLoader(loader, batch_size=None)``. If it
    is pickled or forked, the pipeline is built again in the other process.

    Args:
        pipeline: A function without arguments that creates the pipeline, for example
            ``functools.partial(training, root)``; or a pipeline. A pipeline from a function under ``pipeline_def`` can
            be built again by it.
        outputs: Names of the outputs: batches are then dictionaries, or tuples of a class of named tuples.
        drop_last: Deliver full batches only; the remainder differs from epoch to epoch if the reader shuffles.
        ragged: Names or numbers of the outputs whose samples differ in shape: they are lists of tensors.
        file_names: Append the names of the samples, as the readers know them, to each batch: a list of strings; in
            dictionaries it is called ``"file_names"``.
        reader_name: The reader whose samples make the epoch, if there are several of different sizes.
        size: Samples of an epoch without a reader; otherwise an epoch ends when a source does, and `len` is
            not known.
        classes: Names of the classes, if the reader does not know them.
        distributed: Divide the samples among the ranks; otherwise each rank has all of them.

    Raises:
        RuntimeError: On first use: the pipeline's errors; readers of different sizes.
        ValueError: Two outputs have one name.
        TypeError: `pipeline` is neither a pipeline nor a function; or, at the first use, the function doesn't make a
            pipeline.
    """

    @answering(OF_PIPELINES, "Loader()")
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
            raise TypeError(f"a Loader must get a pipeline, or a function that makes one, got {kind}")
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
        self._place: _ProcessRank | None = None
        self._epoch: int | None = None
        self._starts, self._ranks = _StartCounter(), (0, 1)
        self._has_delivered = False
        self._loops = 0

    @classmethod
    @answering(OF_FOLDERS, "Loader.from_folder()")
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
        cache: CachePlace = None,
        classes: Sequence[str] | None = None,
        outputs: Sequence[str] | type[Any] | None = None,
        drop_last: bool = False,
        file_names: bool = False,
        distributed: bool = True,
    ) -> Loader:
        """Load images in class folders, as networks for ImageNet are trained and tested.

        Batches are ``(images, labels)``: ``(N, 3, height, width)`` float32, normalized, and ``(N,)`` int64. Arguments
        are checked at once; files are listed when the Loader is first used.

        Args:
            root: Has a folder for each class, as for torchvision's ``ImageFolder``. Names that begin with a dot are
                left out.
            train: Shuffle, crop at random (`random_resized_crop`) and mirror; otherwise in order, the middle of each.
            size: Height and width: one number for both, or two.
            batch_size: Samples of a batch, on this rank.
            augment: ``"rand"``, ``"auto"`` or ``"trivial"`` for RandAugment, AutoAugment or TrivialAugment; transforms
                of torchvision, for example ``v2.ColorJitter(0.4)``; or a function of the images, for example
                ``lambda images: fn.gaussian_blur(images, sigma=1.0)``.
            mean, std: Mean and standard deviation of the channels, for pixels from 0 to 1.
            num_threads: By default, as many as this process has cores.
            num_processes, prefetch_queue_depth, scaled_decode: See `Pipeline`; `tune` finds them.
            device_id: Index of the GPU on which images are augmented, normalized and delivered; on the CPU by
                default. See `Pipeline`.
            seed: Seed of order and augmentation.
            bad_samples: Treatment of files that cannot be read; see `Pipeline`.
            cache: Keep images, so that later epochs do not read and decode them: a size like ``"8GB"``, in memory,
                or a folder like ``"/fast/disk"``. For a test images of the final size; in training, whole ones. See
                `fn.cache`.
            classes: Names of all classes, by label, like the `classes` of the Loader for training: a class that a
                test lacks then does not change the labels of others. By default, the folders in the order of their
                names.
            outputs, drop_last, file_names, distributed: As for `Loader`.

        Raises:
            FileNotFoundError: the folder, or a class's folder, does not exist. ValueError: an unknown
                `augment` or `cache`, or it is given for a test; a size or batch size below 1; a folder that is not
                among the `classes`. TypeError: `train` isn't a bool. The pipeline's errors for its arguments, and
                `augment` for images.
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
        root = folder(root)
        images: dict[str, Any] = {
            "root": root,
            "size": sides(size),
            "mean": mean,
            "std": std,
            "on_device": device_id is not None,
            "cache": cache,
            "numbers": None if classes is None else class_numbers(root, classes),
        }
        check(train, batch_size, num_threads, augment, mean, std)
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
        # Its graph is made here, so that mistakes are raised here; it is built, with threads, when it is first used.
        loader._pipe = loader._new_pipeline()
        return loader

    # ------------------------------------------------------------ the pipeline of this process

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of this process."""
        with LEAVING:
            pipe: Pipeline = self._open_iterator()._pipes[0]
            return pipe

    def _open_iterator(self) -> _ListIterator:
        """Return the iterator of this process; make it if there is none, or if it is of another process or rank."""
        with LEAVING:
            place = _ProcessRank.here(self._distributed, self._ranks)
            if self._batches is None or self._place != place:
                self._batches, self._place = self._open(place), place
                self._batches.go_to(self._first_epoch())
            return self._batches

    def _first_epoch(self) -> int:
        """Return the epoch that the first loop of this process begins."""
        if self._epoch is not None or get_worker_info() is None:
            return self._epoch or 0
        return self._starts.epoch()

    def _open(self, place: _ProcessRank) -> _ListIterator:
        pipe = self._new_pipeline()
        pipe.change_readers(place.divide)
        pipe.build()
        reader = self._reader_of(pipe)
        if self._distributed and reader is not None and pipe.reader_meta(reader)["number_of_shards"] == 1:
            warn_of_unknown_ranks()
        names = self._names or [f"{i}" for i in range(pipe.num_outputs)]
        ragged = [names.index(r) if isinstance(r, str) else r for r in self._ragged]
        epoch = {"reader_name": reader} if reader is not None else {"size": -1 if self._size is None else self._size}
        policy = LastBatchPolicy.DROP if self._drop_last else LastBatchPolicy.PARTIAL
        return _ListIterator(pipe, names, ragged, self._file_names, last_batch_policy=policy, **epoch)

    def _new_pipeline(self) -> Pipeline:
        # A pipeline that is not yet built may be taken over in a forked process, too: it has no threads yet.
        pipe, self._pipe = self._pipe, None
        if pipe is not None and not pipe.is_built:
            return pipe
        if self._make is None:
            raise RuntimeError(
                "this Loader must build its pipeline again, in another process or on another rank, but got a pipeline "
                "that no function under pipeline_def created: pass the function that creates the pipeline instead"
            )
        pipe = self._make()
        if not hasattr(pipe, "build"):
            raise TypeError(
                f"the function that a Loader is given makes a pipeline, and this one returned {pipe!r}: is "
                "@pipeline_def(batch_size=..., num_threads=...) missing above it?"
            )
        return pipe

    def _reader_of(self, pipe: Pipeline) -> str | None:
        metas = pipe.reader_meta()
        if self._reader_name is not None or not metas:
            return self._reader_name
        sizes = {meta["epoch_size"] for meta in metas.values()}
        if len(sizes) > 1:
            listed = ", ".join(f"{name!r}: {meta['epoch_size']}" for name, meta in metas.items())
            raise RuntimeError(
                f"the readers differ in size ({listed}): name the one that makes the epoch, reader_name="
            )
        return next(iter(metas))

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> Iterator[Any]:
        """Begin a new epoch; after `load_state_dict`, go on with the one that was saved."""
        _warn_of_batches_of_batches()
        self._loops += 1
        return self._loop(self._loops)

    def _loop(self, number: int) -> Iterator[Any]:
        if self._has_delivered:
            self._has_delivered = False
            return
        with LEAVING:
            batches = iter(self._open_iterator())
        while True:
            with LEAVING:
                batch = next(batches, None)
            if batch is None:
                return
            yield self._form(batch)
            if number != self._loops:
                raise RuntimeError("another loop over this Loader has begun: it can be in one epoch at a time")

    def _form(self, values: Batch) -> Any:
        if self._names is None:
            return values[0] if len(values) == 1 else tuple(values)
        names = [*self._names, *(["file_names"] if self._file_names else [])]
        if len(names) != len(values):
            raise RuntimeError(f"outputs={names} names {len(names)} outputs, and the pipeline has {len(values)}")
        if isinstance(self._outputs, type):
            return self._outputs(*values)
        return dict(zip(names, values, strict=True))

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError("a Loader has no index: write `for batch in loader`, or next(iter(loader)) for one batch")

    def __len__(self) -> int:
        """Return the number of batches of an epoch, the same on every rank and in every epoch.

        Raises:
            TypeError: only the source of the pipeline knows: give the Loader its `size`.
        """
        with LEAVING:
            count = len(self._open_iterator())
        if not count:
            raise TypeError("only the source of this pipeline knows when an epoch ends: give the Loader size=")
        return count

    def set_epoch(self, epoch: int) -> None:
        """Let the next loop begin a certain epoch: it decides the order of the samples, and their random numbers.

        Not needed in a usual training loop, in which epochs follow each other. Sources in Python have no epochs to
        choose from: then it does nothing.
        """
        self._epoch = epoch  # for processes in which the pipeline is made again
        with LEAVING:
            self._open_iterator().go_to(epoch)

    # ------------------------------------------------------------ saving the position

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that was delivered, as JSON values."""
        with LEAVING:
            return self._open_iterator().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next loop go on where `state_dict` was called, also in mid-epoch.

        Raises:
            RuntimeError, ValueError: the state is of another pipeline, dataset or number of ranks.
        """
        with LEAVING:
            batches = self._open_iterator()
            batches.load_state_dict(state)
        if get_worker_info() is not None:
            # Others may be in mid-epoch: one that has delivered its part must wait for them.
            self._has_delivered = bool(batches.counter.finished)
            self._starts.go_to(batches.counter.epoch)

    def __getstate__(self) -> dict[str, Any]:
        """Drop the running pipeline: it is built again."""
        if self._make is None:
            raise TypeError(
                "this Loader cannot be pickled: it was given a pipeline that no function under pipeline_def made. Give "
                "it the function that makes the pipeline"
            )
        ranks = _ProcessRank.here(known=self._ranks)[1:3]
        return {**self.__dict__, "_pipe": None, "_batches": None, "_place": None, "_ranks": ranks}

    # ------------------------------------------------------------ questions

    @property
    def dataset_size(self) -> int:
        """Samples of an epoch, of all ranks together.

        Raises:
            TypeError: only the source knows.
        """
        with LEAVING:
            size = self._open_iterator().dataset_size
        if size < 0:
            raise TypeError("only the source of this pipeline knows how many samples there are")
        return size

    @property
    def dataset(self) -> Any:
        """A sized object, for ``len(loader.dataset)``."""
        return _LoaderSize(self)

    @property
    def batch_size(self) -> int:
        """Samples of a full batch, on this rank."""
        with LEAVING:
            return self._open_iterator().batch_size

    @property
    def classes(self) -> list[str]:
        """Names of the classes, by label.

        Raises:
            AttributeError: the dataset of the reader has none.
        """
        return self.pipeline.classes if self._classes is None else list(self._classes)

    def stats(self) -> Any:
        """Return where the time goes; print it for a table. See `Pipeline.stats`."""
        return self.pipeline.stats()

    def tune(self, seconds: float = 60.0, *, apply: bool = False, **options: Any) -> Report:
        """Find the fastest settings of the pipeline on this machine by measuring; print the result to see them.

        The pipeline is built again for each measurement. This Loader is unchanged, unless you let it `apply` them.

        Args:
            seconds: For all measurements together.
            apply: Make the pipeline of this Loader with the fastest settings. Before its first loop only.
            options: Options of `torchdali.tuning.tune`: ``step``, ``cores``, ``memory``.

        Raises:
            RuntimeError: No function under `pipeline_def` makes the pipeline; `apply` after the first loop.
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
                "function created the pipeline of this Loader"
            )
        report = tune(factory, seconds, **options)
        if apply and report.changes:
            self._pipe, self._make = None, functools.partial(factory, **report.changes)
        return report

    def explain_epoch(self) -> None:
        """Print, rank by rank, how many samples and batches the present epoch has, and why."""
        with LEAVING:
            self._open_iterator().explain_epoch()

    def show(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Image:
        """Return a contact sheet of the batch that comes next, with the names of its classes.

        It takes nothing from the epoch: the next batch of the loop is the one that was shown. See `Pipeline.show`.

        Args:
            path: Where to save it, too.
            options: Options of `Pipeline.show` and `torchdali.pictures.show`, for example ``each`` and ``count``.

        Raises:
            RuntimeError: a source of the pipeline cannot be asked twice. ValueError: no output can be drawn.
        """
        known: dict[str, Any] = {} if self._classes is None else {"classes": list(self._classes)}
        left = self._open_iterator().left
        if 0 < left < (options.get("count") or self.batch_size):  # the rest is padding
            options = {**options, "count": left}
        return self.pipeline.show(path, **{**known, **options})

    def close(self) -> None:
        """End the pipeline. A new loop builds it again, and begins with the first epoch."""
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
            return pictures.document(repr(self), [], "")  # a pipeline that is taken over when the loop begins
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
