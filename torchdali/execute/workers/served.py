"""Processes that a server (a process that forks workers) has forked, as seen by the main process."""

from __future__ import annotations

import contextlib
import multiprocessing.process
import os
import select
import signal
import struct
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

from torchdali.execute.process_state import ProcessId, is_suspended

__all__ = ["LOST", "NO_MEMORY", "ForkserverProcess", "ForkedProcess", "describe_exit", "send_number", "signal_of"]

NO_MEMORY = 112  # exit code of a worker that ends because memory is exhausted
LOST = 256  # a number larger than any exit code, which means that the exit code is unknown
_GRACE = 1.0  # seconds to wait until the server sends the id or the exit code of a forked process
_TICK = 0.02
_NUMBER = struct.Struct("i")


def send_number(descriptor: int, number: int) -> None:
    """Send a number (the id or the exit code of a process) over a pipe."""
    with contextlib.suppress(OSError):  # the receiver may have closed the pipe
        os.write(descriptor, _NUMBER.pack(number))


def describe_exit(code: int | None) -> str:
    """Describe the end of a process, from its exit code."""
    if code is None:
        return "closed its connection"
    if code == NO_MEMORY:
        return "ended, because it could not allocate memory,"
    if code == LOST:
        return "ended"
    name = signal_of(code)
    return f"was killed by {name}" if name else f"exited with code {code}"


def signal_of(code: int) -> str:
    """Return the name of the signal that ended a process; "" if `code` isn't the exit code of a killed process."""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return ""


class _ForeignProcess(ABC):
    """A process that isn't a child of the main process.

    The class has the attributes of `multiprocessing.Process` that the worker pool uses.

    Attributes:
        id: Identity of the process; None until the server has sent the process's id.
    """

    def __init__(self) -> None:
        self.id: ProcessId | None = None
        self._ended = 0.0  # time when the process was first found to have ended

    @abstractmethod
    def _exit_code(self, patience: float = 0.0) -> int | None:
        """Return the exit code if the server sends it within `patience` seconds.

        Otherwise, return `LOST` if the server can't send the exit code any more, or None if the server may send it
        later.
        """

    @property
    def pid(self) -> int | None:
        """Id of the process; None if unknown."""
        return None if self.id is None else self.id.pid

    @property
    def exitcode(self) -> int | None:
        """Exit code: negative for a signal, `LOST` if it is unknown, None while the process runs."""
        code = self._exit_code()
        if code not in (None, LOST):
            return code
        if self.id is None:
            return code  # LOST: the process was never forked
        if self.id.is_alive:
            return None
        self._ended = self._ended or time.monotonic()
        return LOST if code == LOST or time.monotonic() - self._ended > _GRACE else None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended."""
        deadline = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.exitcode is None and (remaining := deadline - time.monotonic()) > 0:
            tick = min(_TICK, remaining)
            if self._exit_code(tick) == LOST:
                time.sleep(tick)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None and self.id is not None and self.id.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.id.pid, number)


class ForkedProcess(_ForeignProcess):
    """A process that torchdali's server forked.

    Args:
        status: Descriptor of a pipe over which the server sends the id of the process, then its exit code.
    """

    def __init__(self, status: int) -> None:
        super().__init__()
        os.set_blocking(status, False)
        self._status = open(status, "rb", buffering=0)  # noqa: SIM115  open as long as this object
        self._numbers: list[int] = []
        self._is_closed = False  # True if the server can't send more numbers
        self._lock = threading.Lock()  # several threads may read the pipe at the same time

    @classmethod
    def already_ended(cls) -> ForkedProcess:
        """Create the object for a process that couldn't be forked."""
        status, status_writer = os.pipe()
        os.close(status_writer)
        return cls(status)

    def __del__(self) -> None:
        self._status.close()

    @property
    def pid(self) -> int | None:
        """Id of the process; None if the server doesn't send it in time."""
        self._receive_numbers(1, _GRACE)
        return super().pid

    def _exit_code(self, patience: float = 0.0) -> int | None:
        self._receive_numbers(2, patience)
        if len(self._numbers) > 1:
            return self._numbers[1]
        return LOST if self._is_closed else None

    def _receive_numbers(self, count: int, patience: float) -> None:
        """Wait until the server has sent `count` numbers or has closed the pipe, but at most `patience` seconds."""
        deadline = time.monotonic() + patience
        with self._lock:
            while len(self._numbers) < count and not self._is_closed:
                remaining = max(0.0, deadline - time.monotonic())
                if not select.select([self._status], [], [], remaining)[0]:
                    return
                data = self._status.read(_NUMBER.size)
                self._numbers += [number for (number,) in _NUMBER.iter_unpack(data or b"")]
                self._is_closed = not data
                if self._numbers and self.id is None:
                    self.id = ProcessId.of(self._numbers[0])


class ForkserverProcess(_ForeignProcess):
    """A process that multiprocessing's fork server forked.

    Args:
        process: A started `multiprocessing.Process`.
    """

    _GONE = 255  # multiprocessing's exit code for a process whose server has ended

    def __init__(self, process: Any) -> None:
        super().__init__()
        self._process, self.id = process, ProcessId.of(process.pid)
        self._lock = threading.Lock()  # multiprocessing can read the exit code only once

    def _exit_code(self, patience: float = 0.0) -> int | None:
        with self._lock:
            self._process.join(patience)
            code: int | None = self._process.exitcode
        return LOST if code == self._GONE else code

    @property
    def exitcode(self) -> int | None:
        """Exit code: negative for a signal, `LOST` if it is unknown, None while the process runs."""
        code = super().exitcode
        if code == LOST:
            self._forget()
        return code

    def _forget(self) -> None:
        """Remove the process from multiprocessing's list of children.

        Otherwise, multiprocessing would wait for the process at the end of the program. If the server is suspended,
        this wait would never end.
        """
        multiprocessing.process._children.discard(self._process)  # type: ignore[attr-defined]
        from multiprocessing import forkserver  # this module doesn't exist on all systems

        server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        if is_suspended(server):
            os.kill(server, signal.SIGKILL)  # multiprocessing starts another server when it needs one
