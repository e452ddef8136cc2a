"""`DataLoader`: PyTorch's loader for datasets that use a pipeline of the main process through a proxy."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch.utils import data as _torch

from torchdali.dali.proxy.arrivals import has_arrived, watch_workers
from torchdali.dali.proxy.server import DALIServer, PendingBatch
from torchdali.dali.proxy.worker import NamedSamples, PackingCollate
from torchdali.errors import strip_internal_frames

__all__ = ["DataLoader"]

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(_torch.DataLoader[_T_co]):
    """A `torch.utils.data.DataLoader` for datasets that call the ``proxy`` of a `DALIServer`.

    The pipeline processes up to ``prefetch_queue_depth`` batches before your loop requests them. The outputs in a batch
    are tensors on the pipeline's device. No later batch overwrites these tensors.

    Args:
        dali_server: The server. The dataset may also use proxies of other servers.
        dataset: Dataset to load samples from.
        args, kwargs: All other arguments of PyTorch's `DataLoader`.
    """

    dali_server: DALIServer

    if TYPE_CHECKING:

        def __init__(
            self, dali_server: DALIServer, dataset: _torch.Dataset[_T_co], *args: Any, **kwargs: Any
        ) -> None: ...

    else:

        def __init__(self, dali_server, *args, **kwargs):  # the same signature as in DALI
            if not isinstance(dali_server, DALIServer):
                raise TypeError(
                    f"the first argument of this DataLoader must be a DALIServer, got a {type(dali_server).__name__}"
                )
            super().__init__(*args, **kwargs)
            self.dali_server = dali_server
            self.collate_fn = PackingCollate(self.collate_fn)

    def ensure_server_listening(self) -> None:
        """Start the server if it isn't started yet."""
        self.dali_server.start_thread()

    def __iter__(self) -> Any:
        """Begin an epoch."""
        self.ensure_server_listening()
        pin = self.pin_memory and torch.cuda.is_available()
        return _EpochIterator(super().__iter__(), self.dali_server, pin)

    def _get_iterator(self) -> Any:
        if isinstance(self.dataset, _torch.IterableDataset):
            return watch_workers(super()._get_iterator())
        wrapped = copy.copy(self)
        wrapped.__dict__["dataset"] = NamedSamples(self.dataset)
        return watch_workers(super(DataLoader, wrapped)._get_iterator())


class _EpochIterator:
    """Iterator over the batches of one epoch, in order. The pipeline processes some batches ahead.

    The user's thread calls this iterator, which calls PyTorch's iterator in the same thread. Therefore, errors,
    timeouts, dead workers and Ctrl-C have the same effect as in PyTorch. A batch's error is raised in the batch's turn.

    If a loop ends early, the number of batches that the pipeline has started depends on the time at which the workers'
    batches arrived. Therefore, the random numbers of the next epoch are not reproducible, unless the server is
    deterministic.
    """

    def __init__(self, arrivals: Iterator[Any], server: DALIServer, pin: bool) -> None:
        self._arrivals, self._depth, self._pin = arrivals, server.depth, pin
        self._waits_for_workers = server.deterministic
        self._pending: deque[PendingBatch | Exception] = deque()
        self._ended = False

    def __iter__(self) -> _EpochIterator:
        return self

    def __len__(self) -> int:
        return len(cast(Any, self._arrivals))

    def __next__(self) -> Any:
        while len(self._pending) <= self._depth and self._may_advance():
            if self._pending and not self._waits_for_workers and not has_arrived(self._arrivals):
                break  # deliver the oldest batch instead of waiting for the workers' next batch
            self._advance()
        if not self._pending:
            raise StopIteration
        try:
            return self._next_batch()
        except (Exception, KeyboardInterrupt) as error:
            strip_internal_frames(error)
            raise

    def _next_batch(self) -> Any:
        oldest = self._pending[0]
        try:
            if isinstance(oldest, Exception):
                raise oldest
            data = oldest.data()
        except Exception:
            self._pending.popleft()
            raise
        self._pending.popleft()  # removed last, so that the next call finds the batch again after an interrupt
        return data

    def _may_advance(self) -> bool:
        return not self._ended and not (self._pending and isinstance(self._pending[-1], Exception))

    def _advance(self) -> None:
        try:
            self._pending.append(PendingBatch(next(self._arrivals), pin=self._pin))
        except StopIteration:
            self._ended = True
        except Exception as error:
            self._pending.append(error)
