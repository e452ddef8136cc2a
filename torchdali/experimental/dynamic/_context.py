"""Execution context of the dynamic mode: threads, device and stream of an `EvalContext`."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from torchdali.experimental.dynamic._checkpoint import Checkpoint
from torchdali.experimental.dynamic._engine import OperationEngine
from torchdali.experimental.dynamic._operation import Operation
from torchdali.experimental.dynamic._scoped import Scoped, innermost
from torchdali.experimental.dynamic._stream import Stream, get_current_stream, stream_on
from torchdali.experimental.dynamic._threads import ThreadPool, get_num_threads
from torchdali.forks import ForkSafeLock
from torchdali.tensors import TensorList

__all__ = ["EvalContext"]

_current = threading.local()


class EvalContext(Scoped):
    """Threads, device and stream for the operators that are called inside its ``with`` block.

    Leaving the block computes pending operations. Outside of ``with`` blocks, each thread has a default context.

    Args:
        num_threads: Number of threads; by default, the result of `get_num_threads`.
        device_id: Index of the accelerator; by default the current accelerator, or None without an accelerator.
        cuda_stream: Value of the attribute `cuda_stream`; the current stream by default. Work on an accelerator runs on
            separate streams, and torch's current stream waits for these streams when a result is used.
        thread_pool: A pool of threads; pass it instead of ``num_threads``.

    Raises:
        ValueError: Both ``num_threads`` and ``thread_pool`` are set, there is less than one thread, or the stream
            belongs to another accelerator.
        TypeError: ``cuda_stream`` isn't a stream.
        RuntimeError: An operator's result is requested after the context was left and closed.
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        if num_threads is not None and thread_pool is not None:
            raise ValueError("pass num_threads or thread_pool, not both")
        self._pool = thread_pool or (None if num_threads is None else ThreadPool(num_threads))
        self._device_id, self._stream = device_id, stream_on(cuda_stream, device_id)
        self._engine: OperationEngine | None = None
        self._lock = ForkSafeLock()
        self._pending: weakref.WeakValueDictionary[int, Operation] = weakref.WeakValueDictionary()  # by `serial`
        self._cache: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._checkpoint = Checkpoint()
        self._process = os.getpid()

    @staticmethod
    def current() -> EvalContext:
        """Return the innermost context of this thread, or the thread's default context."""
        return innermost(EvalContext) or EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """Return the default context of this thread, which is current outside of all ``with`` blocks."""
        context: EvalContext | None = getattr(_current, "default", None)
        if context is None:
            context = _current.default = EvalContext()
        return context

    @property
    def num_threads(self) -> int:
        """Number of threads."""
        return get_num_threads() if self._pool is None else self._pool.num_threads

    @property
    def thread_pool(self) -> ThreadPool:
        """The pool of threads."""
        if self._pool is None:
            self._pool = ThreadPool(get_num_threads())
        return self._pool

    @property
    def device_id(self) -> int | None:
        """Index of the accelerator, or None."""
        return self._device_id

    @property
    def cuda_stream(self) -> Stream | None:
        """The stream that was passed, otherwise the current stream; None without an accelerator."""
        return get_current_stream() if self._stream is None else self._stream

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint in which this context's readers and random generators can be registered."""
        return self._checkpoint

    def evaluate(self, operation: Operation, index: int) -> tuple[TensorList | None, ...]:
        """Return an operation's results; if the result at ``index`` is missing, compute the operation first."""
        with self._lock:  # another thread may have computed the same operation
            if operation.results is None or operation.results[index] is None:
                operation.results = None
                self.engine().run([operation])
            assert operation.results is not None
            return operation.results

    def evaluate_all(self) -> None:
        """Compute all operations whose results are still referenced."""
        with self._lock:
            pending = [operation for each in self._pending.valuerefs() if (operation := each()) is not None]
            waiting = [o for o in pending if o.results is None and o.referenced_outputs()]
            if waiting:
                self.engine().run(sorted(waiting, key=lambda o: o.serial))
            self._pending.clear()

    def add(self, operation: Operation) -> None:
        """Store an operation for `evaluate_all`."""
        # This method doesn't take the lock, which may be held while other operations are computed. No lock is needed,
        # because `evaluate_all` copies the references in one step.
        self._pending[operation.serial] = operation

    def engine(self) -> OperationEngine:
        """Return the engine of this process; create a new engine after a fork, or for another number of threads."""
        if self._engine is None or self._engine.num_threads != self.num_threads or self._process != os.getpid():
            self._engine, self._process = OperationEngine(self.num_threads, self._device_id), os.getpid()
        return self._engine

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Cache the results of an invocation as long as the invocation object exists."""
        self._cache[invocation] = results

    def cached_results(self, invocation: Any) -> Any:
        """Return the results that `cache_results` stored for an invocation, or None."""
        return self._cache.get(invocation)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if error[0] is None:
            self.evaluate_all()
