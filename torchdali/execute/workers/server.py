"""A process without threads that forks the workers, which the process of the user cannot do once it has threads.

It is a copy of the process of the user from before it had threads; or a new interpreter, which has imported torchdali
once for all workers of all pipelines. It ends when the last pipeline that uses it is closed, or when the process of the
user does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from torchdali.forks import ForkSafeLock

__all__ = ["Order", "Server", "ServedProcess", "main"]

_POLL = 0.5  # seconds between looks at whether the process of the user is there
_GRACE = 1.0  # seconds for the server to end, or to say which process it forked
_NUMBER = struct.Struct("i")

Run = Callable[[Any, "Order", "int | None", int], None]
"""Runs a worker: connection, order, descriptor of the plan, process that must live."""


class Order(NamedTuple):
    """The worker that is to be forked.

    Attributes:
        threads: Of the worker.
        first_thread: Number of the first one in the pipeline.
        cores: Where they run; empty for everywhere.
        is_sent: True if the plan comes in a file; otherwise it is the one that the server was forked with.
    """

    threads: int
    first_thread: int
    cores: tuple[int, ...]
    is_sent: bool


class ServedProcess:
    """A process that a server has forked, with what is used of `multiprocessing.Process`.

    Args:
        status: Descriptor of a pipe over which the server sends the number of the process, then its exit code.
    """

    def __init__(self, status: int) -> None:
        os.set_blocking(status, False)
        self._status = open(status, "rb", buffering=0)  # noqa: SIM115  open as long as this object
        self._said = b""
        self._lock = threading.Lock()  # several threads of a pool ask

    def __del__(self) -> None:
        self._status.close()

    def _says(self, count: int, timeout: float) -> int | None:
        """Return one of the numbers; None if it does not come in time."""
        deadline = time.monotonic() + timeout
        with self._lock:
            while len(self._said) < count * _NUMBER.size:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self._status], [], [], left)[0]:
                    return None
                # Nothing more: the server is gone, and its processes end by themselves.
                self._said += self._status.read(_NUMBER.size) or _NUMBER.pack(255)
            found: int = _NUMBER.unpack_from(self._said, (count - 1) * _NUMBER.size)[0]
            return found

    @property
    def pid(self) -> int | None:
        """Number of the process; None if the server does not say."""
        return self._says(1, _GRACE)

    @property
    def exitcode(self) -> int | None:
        """Exit code, negative for a signal; None while the process runs."""
        return self._says(2, 0.0)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end."""
        self._says(2, 1e9 if timeout is None else timeout)

    def terminate(self) -> None:
        """End the process by SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, which: signal.Signals) -> None:
        pid = self.pid
        if pid is not None and self.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, which)


class Server:
    """The server, seen from the process of the user."""

    def __init__(self, process: Any, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._users, self._owner = 1, os.getpid()

    @classmethod
    def forked(cls, run: Run) -> Server:
        """Fork this process, which has no threads.

        Args:
            run: Runs a worker, in a process that the server forks.
        """
        ours, theirs = _pair()
        process: Any = multiprocessing.get_context("fork").Process(
            target=_forked, args=(ours, theirs, run, os.getpid()), name="torchdali-server", daemon=True
        )
        with theirs, warnings.catch_warnings():
            # Python 3.12 counts threads of native libraries too; see `placing.may_fork`.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        return cls._offered(cls(process, ours))

    @classmethod
    def shared(cls) -> Server:
        """Return the server that another pipeline uses, or a new interpreter."""
        global _shared
        with _sharing:
            found = _shared
            if found is not None and found._owner == os.getpid() and found.alive:
                found._users += 1
                return found
        return cls._offered(cls._anew())

    @classmethod
    def _anew(cls) -> Server:
        ours, theirs = _pair()
        program = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), parent=os.getpid())
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        return cls(_Popen(process), ours)

    @classmethod
    def _offered(cls, server: Server) -> Server:
        global _shared
        with _sharing:
            if _shared is None or _shared._owner != os.getpid() or not _shared.alive:
                _shared = server
        return server

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return bool(self._users) and self._process.exitcode is None

    def start(self, order: Order, plan: int | None) -> tuple[ServedProcess, Connection]:
        """Have a worker forked; returns at once.

        Args:
            order: Of the worker.
            plan: Descriptor of a file with the plan, if the order says so.

        Raises:
            OSError: the server is gone.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(None)  # whatever the user's default
        status, said = os.pipe()
        process = ServedProcess(status)
        try:
            given = [theirs.fileno(), said, *([] if plan is None else [plan])]
            socket.send_fds(self._control, [pickle.dumps(order)], given)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(said)
        return process, Connection(ours.detach())

    def release(self) -> None:
        """End the server if no other pipeline uses it."""
        global _shared
        if self._owner != os.getpid():
            return  # in a forked child that drops its copy
        with _sharing:
            self._users -= 1
            if self._users:
                return
            if _shared is self:
                _shared = None
        with contextlib.suppress(OSError):
            self._control.send(pickle.dumps(None))
        self._control.close()
        self._process.join(_GRACE)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join(_GRACE)


_shared: Server | None = None  # under _sharing
_sharing = ForkSafeLock()  # a garbage collection inside may drop a pipeline, whose end comes here


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps orders apart
    ours.settimeout(None)
    theirs.settimeout(None)
    return ours, theirs


class _Popen:
    """A new interpreter, with the interface of `multiprocessing.Process`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def kill(self) -> None:
        self._process.kill()


# Unlike multiprocessing's, it does not run the user's script again.
_PROGRAM = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
import torchdali.fn
from torchdali.execute.workers.starting import main
main({descriptor}, {parent})
"""


# ---------------------------------------------------------------- in the server


def _forked(ours: socket.socket, control: socket.socket, run: Run, parent: int) -> None:
    ours.close()
    main(control, run, parent)


def main(control: socket.socket, run: Run, parent: int) -> None:
    """Fork workers until the process of the user says that it is enough, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process of the user decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    awake, wake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)  # the end of a worker, too, ends the wait below
    running: dict[int, int] = {}  # where to send the exit code, by process
    while os.getppid() == parent:
        ready = select.select([control.fileno(), awake], [], [], _POLL)[0]
        if awake in ready:
            os.read(awake, 1 << 12)
        _bury(running)
        if control.fileno() not in ready:
            continue
        data, given, _, _ = socket.recv_fds(control, 1 << 16, 3)
        order: Order | None = pickle.loads(data) if data else None
        if order is None:
            break
        here = os.getpid()
        pid = os.fork()
        if pid == 0:
            for descriptor in (control.detach(), awake, given[1], *running.values()):
                os.close(descriptor)
            _work(run, order, given, wake, here)
        _say(given[1], pid)
        running[pid] = given[1]
        for descriptor in (given[0], *given[2:]):
            os.close(descriptor)
    os._exit(0)


def _work(run: Run, order: Order, given: list[int], wake: int, parent: int) -> None:
    """Run a worker in this process, which a server has just forked."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(wake)
        run(Connection(given[0]), order, given[2] if order.is_sent else None, parent)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _bury(running: dict[int, int]) -> None:
    """Send the exit codes of workers that have ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        said = running.pop(pid)
        _say(said, os.waitstatus_to_exitcode(status))
        os.close(said)


def _say(descriptor: int, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody asks any more
        os.write(descriptor, _NUMBER.pack(number))
