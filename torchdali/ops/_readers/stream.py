"""Read samples of iterable datasets: PyTorch's, mosaicml's, litdata's, Hugging Face's, webdataset's."""

from __future__ import annotations

import copy
import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from torchdali.calls.decorators import source
from torchdali.declaration.schema import OutputCount
from torchdali.forks import cached_property
from torchdali.ops._readers._nested import NestedValue, list_sample_leaves, nest, select_leaves
from torchdali.ops._readers.dataset import as_tensor, extract_value, is_image
from torchdali.reading.sources import BatchSource, SourceBatch
from torchdali.tensors import TensorList

__all__ = ["IterableStyle", "SampleStream", "stream"]

_END = object()  # marks the end of an iterator


class IterableStyle:
    """The user's stream (an iterable dataset), and the structure of its samples.

    Args:
        dataset: An iterable of samples. Each iteration must start from the first sample.

    Raises:
        TypeError: The dataset isn't iterable, or can be iterated only once.
    """

    def __init__(self, dataset: Any) -> None:
        is_one_shot = isinstance(dataset, Iterator) and not hasattr(dataset, "__len__")
        if not isinstance(dataset, Iterable) or is_one_shot:
            raise TypeError(f"dataset must start again at each iter(), got a {type(dataset).__name__}")
        self.users_dataset = _disable_decoding(dataset)

    @classmethod
    def from_argument(cls, value: Any) -> IterableStyle:
        """Wrap a stream, unless it is already wrapped."""
        return value if isinstance(value, cls) else cls(value)

    def __repr__(self) -> str:
        return f"a {type(self.users_dataset).__name__}"

    @cached_property
    def _first_and_iterator(self) -> tuple[Any, list[Iterator[Any]]]:
        """The first sample, and a list of an iterator that begins with the first sample.

        The list is empty if the sample was read by index.
        """
        self.set_epoch(0)
        if _length(self.users_dataset) and hasattr(self.users_dataset, "__getitem__"):
            return self.users_dataset[0], []  # mosaicml's stream can't resume after an iterator was started here
        iterator = iter(self.users_dataset)
        for first in iterator:
            return first, [itertools.chain([first], iterator)]
        raise RuntimeError(f"the stream, a {type(self.users_dataset).__name__}, is empty")

    @property
    def first(self) -> Any:
        """The first sample. All samples must have the same structure."""
        return self._first_and_iterator[0]

    def set_epoch(self, number: int) -> None:
        """Call the stream's method `set_epoch`, if the stream has this method.

        Args:
            number: Number of the next pass over the stream, from 0.
        """
        if hasattr(self.users_dataset, "set_epoch"):
            self.users_dataset.set_epoch(number)

    def iterate(self) -> Iterator[Any]:
        """Return an iterator that starts at the first sample. If `first` started an iterator, return this iterator."""
        return self._first_and_iterator[1].pop() if self._first_and_iterator[1] else iter(self.users_dataset)

    def leaves(self, columns: Sequence[str] | None) -> list[NestedValue]:
        """Return the values of a sample that become outputs.

        Args:
            columns: Names of the values; None for all values.

        Raises:
            RuntimeError: A column doesn't exist.
        """
        leaves = list_sample_leaves(self.first, as_tensor)
        return select_leaves(leaves, columns) if columns else leaves

    def save_position(self, sample_count: int) -> Any:
        """Return the stream's position from its `state_dict`; 0 if the stream cannot save its position.

        Args:
            sample_count: Number of samples since the stream was last started.
        """
        state_dict = getattr(self.users_dataset, "state_dict", None)
        if state_dict is None or not hasattr(self.users_dataset, "load_state_dict"):
            return 0
        arguments = {
            "num_samples": sample_count,
            "num_samples_yielded": sample_count,
            "from_beginning": False,
            "num_workers": 0,
            "batch_size": 1,
        }
        names = inspect.signature(state_dict).parameters
        return copy.deepcopy(state_dict(**{name: value for name, value in arguments.items() if name in names}))


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        return 0


def _disable_decoding(dataset: Any) -> Any:
    """Make a Hugging Face stream return images and audio encoded; return other streams unchanged."""
    module = sys.modules.get("datasets")
    if module is not None and isinstance(dataset, module.IterableDataset) and dataset.features is not None:
        return dataset.decode(False)
    return dataset


class SampleStream(BatchSource):
    """A source that reads batches from a stream, in the pipeline's scheduler thread.

    Args:
        samples: The stream.
        leaves: The values to return for each sample.
        layouts: Layouts of the outputs.
        epoch_size: Number of samples in an epoch; None to end the epoch with the stream.
    """

    def __init__(
        self, samples: IterableStyle, leaves: Sequence[NestedValue], layouts: Sequence[str], epoch_size: int | None
    ) -> None:
        self._samples, self._leaves, self._layouts, self._epoch_size = samples, leaves, layouts, epoch_size
        self._iterator: Iterator[Any] | None = None
        self._epoch_key: object = None
        self._pending: list[Any] = []  # samples of an unfinished batch, after the stream raised an exception
        self._set_position(0, 0, 0, 0, 0)

    @property
    def remotes(self) -> Sequence[Any]:
        """Connections to object stores that the stream uses, for statistics of their requests."""
        remotes: Sequence[Any] = getattr(self._samples.users_dataset, "remotes", ())
        return remotes

    def _set_position(self, epoch: int, sample: int, passes: int, pass_samples: int, stream_state: Any) -> None:
        self._epoch, self._sample, self._ended = epoch, sample, False
        self._passes, self._pass_samples, self._stream_state = passes, pass_samples, stream_state
        self._iterator_samples = 0  # number of samples from the current iterator
        self._batch_start = passes, pass_samples, stream_state  # the position before the samples in `_pending`

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        count = batch_size if self._epoch_size is None else min(batch_size, self._epoch_size - self._sample)
        if not self._pending:
            self._batch_start = self._passes, self._pass_samples, self._stream_state
        self._read_samples(count)
        if not self._pending:
            raise StopIteration
        samples, self._pending = self._pending, []
        self._sample += len(samples)
        self._stream_state = self._samples.save_position(self._iterator_samples)
        rows = [tuple(extract_value(leaf, sample) for leaf in self._leaves) for sample in samples]
        columns = zip(zip(*rows, strict=True), self._layouts, strict=True)
        return tuple(TensorList.from_samples(list(column), layout) for column, layout in columns)

    def _read_samples(self, count: int) -> None:
        """Read samples until `_pending` has `count` samples or the epoch ends.

        If the stream raises an exception, the samples read so far stay in `_pending`, and the next call continues.
        """
        while len(self._pending) < count and not self._ended:
            if self._iterator is None:
                self._iterator = self._create_iterator()
            # Don't use `for`: it calls `iter` on the iterator, which makes some streams start again.
            sample = next(self._iterator, _END)
            if sample is not _END:
                self._pass_samples, self._iterator_samples = self._pass_samples + 1, self._iterator_samples + 1
                self._pending.append(sample)
            elif self._epoch_size is None:
                self._ended = True
            elif not self._pass_samples:
                raise RuntimeError(f"the stream, {self._samples!r}, has no samples in its pass {self._passes}")
            else:
                self._iterator, self._passes, self._pass_samples, self._stream_state = None, self._passes + 1, 0, 0

    def _create_iterator(self) -> Iterator[Any]:
        dataset, self._iterator_samples = self._samples.users_dataset, 0
        if self._passes:
            self._samples.set_epoch(self._passes)
        if self._stream_state:
            dataset.load_state_dict(copy.deepcopy(self._stream_state))
            return iter(dataset)
        iterator = iter(dataset) if self._passes or self._pass_samples else self._samples.iterate()
        for _ in range(self._pass_samples):  # the stream cannot load a position: skip the earlier samples
            next(iterator, None)
        return iterator

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch.

        Without `epoch_size`, the stream starts again from its first sample. With `epoch_size`, the stream continues.
        """
        if epoch is not None and self._epoch_key is epoch:
            return
        self._epoch_key, self._epoch, self._sample = epoch, self._epoch + 1, 0
        if self._epoch_size is None:
            self._pending, self._ended = [], False
            self._iterator, self._passes, self._pass_samples, self._stream_state = None, self._epoch, 0, 0

    def state(self) -> dict[str, Any]:
        """Return the position after the last batch, including the stream's own state if the stream has one."""
        position = self._passes, self._pass_samples, self._stream_state
        passes, pass_samples, stream_state = self._batch_start if self._pending else position
        return {
            "epoch": self._epoch, "sample": self._sample, "passes": passes, "taken": pass_samples,
            "ended": int(self._ended and not self._pending), "place": copy.deepcopy(stream_state),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position.

        Raises:
            ValueError: The position is damaged.
        """
        numbers: Any
        *numbers, ended = [state.get(name) for name in ("epoch", "sample", "passes", "taken", "ended")]
        if not all(type(number) is int and number >= 0 for number in (*numbers, ended)) or "place" not in state:
            raise ValueError(f"the checkpoint of a stream is damaged: {dict(state)!r}")
        epoch, sample, passes, pass_samples = numbers
        if not sample + passes + pass_samples:  # at the start of an epoch, the number of passes is the epoch's number
            passes = epoch
        self._iterator, self._pending = None, []
        self._set_position(epoch, sample, passes, pass_samples, state["place"])
        self._ended = bool(ended)

    def close(self) -> None:
        """Drop the stream's iterator."""
        self._iterator = None


def _infer_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if arguments["layouts"]:
        return tuple(arguments["layouts"])
    samples = arguments["dataset"]
    values = [leaf.value(samples.first) for leaf in samples.leaves(arguments["columns"])]
    return tuple("HWC" if is_image(value) else "" for value in values)


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    count = len(arguments["dataset"].leaves(arguments["columns"]))
    return count if count > 1 or isinstance(arguments["dataset"].first, (Mapping, tuple)) else None


def _nest_outputs(arguments: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
    return nest(arguments["dataset"].leaves(arguments.get("columns")), outputs)


@source(name="readers.stream", outputs=_count_outputs, layout=_infer_layouts, results=_nest_outputs)
def stream(
    *,
    dataset: IterableStyle,
    columns: list[str] | None = None,
    layouts: list[str] | None = None,
    epoch_size: int | None = None,
) -> Annotated[BatchSource, OutputCount(1)]:
    """Read samples from a stream: a dataset that is iterated instead of indexed.

    DALI doesn't have this operator. Examples of streams are PyTorch's `IterableDataset`, mosaicml's or litdata's
    `StreamingDataset`, a Hugging Face `IterableDataset`, a `webdataset.WebDataset`, or a `torchdali.TarStream`. To read
    in worker processes, pass a PyTorch `DataLoader` over a stream with ``batch_size=None``. Values become tensors as in
    `readers.dataset`. For speed, let the stream return encoded images, and decode the images in the pipeline.

    The stream itself shuffles, and divides samples among ranks. If the stream has ``state_dict()`` and
    ``load_state_dict()``, the stream's position is part of the pipeline's state. Otherwise, the earlier samples are
    read again when training resumes. ``set_epoch(n)`` is called before each pass over the stream, with n from 0.

    Args:
        dataset: Iterable of samples: tuples, dictionaries or single values. All samples must have the same structure.
        columns: Keys of the dictionaries to return, in this order; by default, all keys.
        layouts: Layouts of the outputs.
        epoch_size: Number of samples in an epoch on this rank; set it if all ranks need equally many batches. The
            stream is repeated as needed, and each epoch continues where the previous epoch stopped. By default, an
            epoch ends with the stream.

    Returns:
        The values of each sample; for dictionaries, a dictionary of outputs.

    Raises:
        TypeError: ``dataset`` is not a stream, or can be iterated only once. While the pipeline runs: a value can't
            become a tensor.
        RuntimeError: The stream is empty, or an argument is invalid.
        Exception: While the pipeline runs, the exceptions that the stream raises.
    """
    leaves = dataset.leaves(columns)
    if layouts and len(layouts) != len(leaves):
        raise RuntimeError(f"layouts must have {len(leaves)} values, one for each output, got {len(layouts)}")
    if epoch_size is not None and epoch_size < 1:
        raise RuntimeError(f"epoch_size must be at least 1, got {epoch_size}")
    kinds = _infer_layouts((), {"dataset": dataset, "columns": columns, "layouts": layouts})
    return SampleStream(dataset, leaves, kinds, epoch_size)
