"""`DataLoader`: torch's loader, with pipelines that process its batches."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch.utils import data as _torch

from torchdali.dali.proxy.arrivals import has_arrived, watch_workers
from torchdali.dali.proxy.server import DALIServer, PendingBatch
from torchdali.dali.proxy.worker import CollateAndPack, NamedSamples
from torchdali.errors import strip_internal_frames

__all__ = ["DataLoader"]

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(_torch.DataLoader[_T_co]):
    """`torch.utils.data.DataLoader` for datasets that call ``server.proxy``.

    Batches are given to the pipeline ahead of the one that is delivered (as many as its
    ``prefetch_queue_depth`` says). Outputs are the caller's own tensors, on the pipeline's device, not copied.

    Args:
        dali_server: The server; proxies of other servers may be used in the dataset as well.
        dataset, args, kwargs: As torch's loader takes them.
    """

    dali_server: DALIServer

    if TYPE_CHECKING:

        def __init__(
            self, dali_server: DALIServer, dataset: _torch.Dataset[_T_co], *args: Any, **kwargs: Any
        ) -> None: ...

    else:

        def __init__(self, dali_server, *args, **kwargs):  # the signature of DALI's
            if not isinstance(dali_server, DALIServer):
                raise TypeError(
                    "the first argument of this DataLoader is a DALIServer of a pipeline, "
                    f"not a {type(dali_server).__name__}"
                )
            super().__init__(*args, **kwargs)
            self.dali_server = dali_server
            self.collate_fn = CollateAndPack(self.collate_fn)

    def ensure_server_listening(self) -> None:
        """Start the server unless it is started."""
        self.dali_server.start_thread()

    def __iter__(self) -> Any:
        """Begin an epoch."""
        self.ensure_server_listening()
        pin = self.pin_memory and torch.cuda.is_available()
        return _EpochIterator(super().__iter__(), self.dali_server, pin)

    def _get_iterator(self) -> Any:
        if isinstance(self.dataset, _torch.IterableDataset):
            return watch_workers(super()._get_iterator())
        named = copy.copy(self)
        named.__dict__["dataset"] = NamedSamples(self.dataset)
        return watch_workers(super(DataLoader, named)._get_iterator())


class _EpochIterator:
    """The batches of one epoch, in order; some of them in flight.

    The thread that calls this iterator also calls torch's iterator. So errors, timeouts, signals of dead workers and
    Ctrl-C work as in torch. An error is raised at its position among the batches. If a loop ends early, the number of
    runs that it has started, and so the next random numbers, depend on when batches arrive, unless the server is
    deterministic.
    """

    def __init__(self, arrivals: Iterator[Any], server: DALIServer, pin: bool) -> None:
        self._arrivals, self._depth, self._pin = arrivals, server.depth, pin
        self._waits = server.deterministic
        self._ahead: deque[PendingBatch | Exception] = deque()
        self._ended = False

    def __iter__(self) -> _EpochIterator:
        return self

    def __len__(self) -> int:
        return len(cast(Any, self._arrivals))

    def __next__(self) -> Any:
        while len(self._ahead) <= self._depth and self._may_go_on():
            if self._ahead and not self._waits and not has_arrived(self._arrivals):
                break  # rather deliver this batch than wait for the next
            self._advance()
        if not self._ahead:
            raise StopIteration
        try:
            return self._take()
        except (Exception, KeyboardInterrupt) as error:
            strip_internal_frames(error)
            raise

    def _take(self) -> Any:
        oldest = self._ahead[0]
        try:
            if isinstance(oldest, Exception):
                raise oldest
            data = oldest.data()
        except Exception:
            self._ahead.popleft()
            raise
        self._ahead.popleft()  # removed only now, so that the next call finds the batch after an interrupt
        return data

    def _may_go_on(self) -> bool:
        return not self._ended and not (self._ahead and isinstance(self._ahead[-1], Exception))

    def _advance(self) -> None:
        try:
            self._ahead.append(PendingBatch(next(self._arrivals), pin=self._pin))
        except StopIteration:
            self._ended = True
        except Exception as error:
            self._ahead.append(error)
