"""A worker process and its jobs, as seen by the main process."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from torchdali.execute.process_state import is_suspended
from torchdali.execute.shared_memory import anonymous_file, map_file, socket_of
from torchdali.execute.workers.blocks import LEDGER, Views
from torchdali.execute.workers.messages import DroppedBlock, SentBlock, read, write
from torchdali.execute.workers.served import LOST, NO_MEMORY, describe_exit, signal_of

__all__ = ["NotStarted", "Process", "Worker", "WorkerJob"]

_GRACE = 0.5  # seconds to wait for a process's exit code after its connection was closed
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS")


class Process(Protocol):
    """A started process: a `multiprocessing.Process`, or an object with the same attributes."""

    @property
    def pid(self) -> int | None: ...
    @property
    def exitcode(self) -> int | None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class WorkerJob(Protocol):
    """A job for a worker.

    Attributes:
        losses: Number of workers that died after they began the job.
    """

    losses: int

    @property
    def order(self) -> int:
        """Priority of the job. Jobs with smaller numbers are sent first."""
        ...

    @property
    def owner(self) -> int | None:
        """Number of the only worker that may run the job; None for any worker."""
        ...

    @property
    def title(self) -> str:
        """Name of the job in messages."""
        ...

    def begin(self) -> bool:
        """Return whether the job is still needed. The pool calls this method before the job is sent."""
        ...

    def message(self, number: int, blocks: set[int], returned: tuple[int, ...]) -> Any:
        """Return the message for a worker.

        Args:
            number: Number of the message.
            blocks: Numbers of the main process's blocks of shared memory that the worker has mapped.
            returned: Numbers of the worker's own blocks that this process no longer reads.
        """
        ...

    def set_reply(self, result: Any, views: Views) -> None:
        """Store the worker's results. The thread that receives messages calls this method."""
        ...

    def fail(self, error: Exception) -> None:
        """Record the error of a job that can't be done."""
        ...

    def finish(self) -> None:
        """Deliver the results or the error. A thread of the pipeline calls this method after `set_reply` or `fail`."""
        ...


class NotStarted(Exception):
    """A worker could not be started; the message has the reason."""


class Worker:
    """A worker process, as seen by the main process.

    Args:
        process: The process.
        connection: The connection to the process.
        number: Number of the worker.
        purpose: Purpose of the worker, for messages.
        hint: For messages, a likely reason if the worker ends before it has sent a message.
    """

    def __init__(
        self, process: Process, connection: Any, number: int, purpose: str = "the pipeline", hint: str = ""
    ) -> None:
        self.process, self.connection, self.number = process, connection, number
        self._purpose, self._hint, self._has_sent = purpose, hint, False
        self.views = Views()  # the worker's blocks of shared memory, mapped in this process
        self.jobs: dict[int, WorkerJob] = {}  # jobs that were sent and have no reply yet; protected by the pool's lock
        self._ledger: npt.NDArray[np.int64] | None = None
        self.blocks: set[int] = set()  # numbers of the main process's blocks that the worker has mapped
        self.alive, self.suspended_checks = True, 0
        self.suspended_for = 0.0  # seconds for which the worker was suspended before it was killed
        self.shares_memory = True
        self.started_at = time.monotonic()
        self._socket = socket_of(connection.fileno())
        # This lock is held while a message is sent, because several threads may send messages at the same time.
        self._lock = threading.Lock()

    def is_suspended(self) -> bool:
        """Return whether a signal has suspended the process."""
        return is_suspended(self.process.pid)

    def kill(self) -> None:
        """Kill the process. Its connection then also ends."""
        self.process.kill()

    def send(self, message: Any, descriptor: int | None = None) -> None:
        """Send a message. If the worker has died, do nothing, because the pool notices this later.

        Args:
            message: The message.
            descriptor: A file descriptor that is sent after the message, or None.
        """
        with self._lock, contextlib.suppress(OSError):
            write(self.connection, message)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"d"], [descriptor])

    def send_job(self, number: int, job: WorkerJob) -> None:
        """Send a job, and the numbers of the worker's blocks that this process no longer reads."""
        # The worker may write to a block with its results again only after this process has sent the block's number.
        self.jobs[number] = job
        self.send(job.message(number, self.blocks, self.views.pop_returned()))

    def open_ledger(self) -> None:
        """Create the ledger: a block of shared memory in which the worker notes the job that it has begun last.

        If the ledger can't be created, all jobs that were sent count as begun.
        """
        with contextlib.suppress(OSError, MemoryError):
            descriptor = anonymous_file(8)
            try:
                self._ledger = map_file(descriptor, 8).view(np.int64)
                self._ledger[0] = -1
                self.send(SentBlock(LEDGER, 8), descriptor)
            finally:
                os.close(descriptor)

    def has_begun(self, number: int) -> bool:
        """Return whether the worker has begun a job. Jobs have increasing numbers, and are begun in this order."""
        return self._ledger is None or bool(self._ledger[0] >= number)

    def receive(self) -> Any:
        """Receive the result of a job; return None for a message about a block.

        Raises:
            EOFError, OSError: The worker has died.
        """
        # The message about a new block arrives before the first message that refers to the block.
        message = read(self.connection)
        self._has_sent = True
        if isinstance(message, DroppedBlock):
            self.views.drop(message.number)
            return None
        if not isinstance(message, SentBlock):
            return message
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not descriptors:
            raise EOFError
        self.views.add(message.number, descriptors[0], message.size)
        return None

    def end_message(self, meanwhile: str = "") -> str:
        """Describe how the process ended, and suggest a remedy.

        Args:
            meanwhile: Text for the message, about the worker's activity when it ended. By default, its jobs are named.
        """
        self.process.join(_GRACE)
        how = describe_exit(self.process.exitcode)
        if self.suspended_for:
            how = f"was suspended (SIGSTOP or Ctrl-Z) and did not continue for {self.suspended_for:g} s and was killed"
        if self._hint and not self._has_sent:
            meanwhile = " while it started"
        elif self.jobs:
            meanwhile = f" while it processed {' and '.join(job.title for job in self.jobs.values())}"
        pid = self.process.pid
        who = f"worker process {self.number}{f' (pid {pid})' if pid else ''} of {self._purpose}"
        return ". ".join(filter(None, (f"{who} {how}{meanwhile}", self._suggest_remedy(self.process.exitcode))))

    def _suggest_remedy(self, code: int | None) -> str:
        if self.suspended_for or code is None:
            return ""
        if code == LOST:
            return "The exit status is unknown, because the server of worker processes didn't report it"
        if signal_of(code) == "SIGKILL" or code == NO_MEMORY:
            return "If memory ran out, use fewer processes or smaller batches"
        if signal_of(code) in _CRASHES:
            return "A library crashed there; run with num_processes=1 and `python -X faulthandler` to see where"
        if not self._has_sent and self._hint:
            return self._hint
        return "If it printed an error, the error is above, on standard error" if code == 1 else ""

    def close(self) -> None:
        self.connection.close()
        self._socket.close()
