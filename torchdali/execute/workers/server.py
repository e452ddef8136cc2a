"""The server: a process without threads that forks the worker processes.

The main process can't fork workers itself, because it has threads. The server is either a fork of the main process,
made before threads were started, or a new Python interpreter. The server ends when no pipeline uses it any more, or
when the main process ends.

The server also forks a *spare*, a second server that waits. If the server is killed or suspended, the spare replaces
the server and forks the next spare. Workers continue even if their server has ended.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.util
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from torchdali.execute.process_state import ProcessId, is_suspended
from torchdali.execute.workers.channel import kill_suspended_server
from torchdali.execute.workers.messages import Refused
from torchdali.execute.workers.served import LOST, ForkedProcess, describe_exit, send_number
from torchdali.forks import ForkSafeLock

__all__ = ["ForkRequest", "Server", "main"]

_POLL = 0.5  # seconds between checks whether the main process is alive
_GRACE = 1.0  # seconds for the server to end
_SUSPENDED_CHECKS = 2  # replace a server that is suspended in this number of consecutive checks

Run = Callable[[Any, "ForkRequest", "int | None", ProcessId], None]
"""Function that runs a worker in a process that the server forked.

Its arguments are the connection to the main process, the request, the descriptor of the plan or None, and the main
process's identity.
"""


class ForkRequest(NamedTuple):
    """The message that requests a worker from the server.

    Attributes:
        threads: Number of threads of the worker.
        first_thread: Index of the worker's first thread among all threads of the pipeline.
        cores: Cores on which the threads run; empty for all cores.
        is_sent: True if the plan is in a file, whose descriptor is sent with the request; False if the server was
            forked from a process that has the plan.
    """

    threads: int
    first_thread: int
    cores: tuple[int, ...]
    is_sent: bool


class _Spare(NamedTuple):
    """The message that requests a spare."""


class _ServerProcess(NamedTuple):
    """A server process, or a spare, as seen by the main process.

    Attributes:
        process: The process: a child of the main process or of the previous server.
        control: The socket for requests.
    """

    process: Any
    control: socket.socket

    @property
    def alive(self) -> bool:
        return self.process.exitcode is None

    def request_end(self) -> None:
        with contextlib.suppress(OSError):
            self.control.send(pickle.dumps(None), socket.MSG_DONTWAIT)
        self.control.close()

    def end(self) -> None:
        """Wait for the server to exit. Kill it if it doesn't, or if it is suspended."""
        if not is_suspended(self.process.pid):
            self.process.join(_GRACE)
        if self.alive:
            # Python collects the exit code later, when this process starts another child or ends.
            self.process.kill()


class Server:
    """The server and its spare, as seen by the main process.

    Args:
        process: The first server process.
        control: A socket that is connected to this server process.
    """

    def __init__(self, process: _Child, control: socket.socket) -> None:
        self._users, self._owner = 1, os.getpid()
        self._lock = threading.RLock()  # several pipelines share the server
        self._suspended_checks = 0
        self._current, self._spare = _ServerProcess(process, control), self._fork_spare(control)
        # At the end of the program, multiprocessing sends SIGTERM to its children and waits for them. A suspended
        # server would never end, so kill the server first.
        self._at_exit = multiprocessing.util.Finalize(None, process.kill, exitpriority=1)

    @classmethod
    def fork(cls, run: Run) -> Server:
        """Start a server as a fork of this process, which must not have other threads.

        Args:
            run: Function that runs a worker, in a process that the server forks.
        """
        ours, theirs = _pair()
        arguments = (ours, theirs, run, ProcessId.of(os.getpid()))
        process: Any = multiprocessing.get_context("fork").Process(
            target=_run_forked, args=arguments, name="torchdali-server", daemon=True
        )
        with theirs, warnings.catch_warnings():
            # Python 3.12 warns if native libraries have threads, but these threads are harmless (`placing.may_fork`).
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        return cls._offer(cls(_Child(process), ours))

    @classmethod
    def share(cls) -> Server:
        """Return the server that other pipelines use. If no server exists, start one in a new interpreter."""
        global _shared
        with _sharing:
            server = _shared
            if server is not None and server._owner == os.getpid() and server.alive:
                server._users += 1
                return server
        return cls._offer(cls._create())

    @classmethod
    def _create(cls) -> Server:
        ours, theirs = _pair()
        user = tuple(ProcessId.of(os.getpid()))
        program = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), user=user)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        return cls(_Child(_Popen(process)), ours)

    @classmethod
    def _offer(cls, server: Server) -> Server:
        global _shared
        with _sharing:
            if _shared is None or _shared._owner != os.getpid() or not _shared.alive:
                _shared = server
        return server

    @property
    def alive(self) -> bool:
        """True while the server or its spare runs."""
        with self._lock:
            return bool(self._users) and (self._current.alive or self._spare.alive)

    def start(self, request: ForkRequest, plan: int | None) -> tuple[ForkedProcess, Connection]:
        """Request a worker from the server, and return immediately.

        Args:
            request: The request that describes the worker.
            plan: Descriptor of a file with the plan, if `request.is_sent`; otherwise None.

        Raises:
            OSError: The server and its spare have ended.
        """
        ours, theirs = _stream_pair()
        with ours, theirs:
            descriptors = [theirs.fileno(), *([] if plan is None else [plan])]
            with self._lock:
                if not self._current.alive:
                    self._switch_to_spare()
                try:
                    process = _send_request(self._current.control, request, descriptors)
                except OSError:  # the server has just ended
                    self._switch_to_spare()
                    process = _send_request(self._current.control, request, descriptors)
            return process, Connection(ours.detach())

    def check_server(self) -> None:
        """If the server has ended or is suspended, replace it by the spare. If the spare has ended, request another."""
        with self._lock:
            if not self._users:
                return
            self._suspended_checks = self._suspended_checks + 1 if is_suspended(self._current.process.pid) else 0
            if not self._current.alive or self._suspended_checks >= _SUSPENDED_CHECKS:
                with contextlib.suppress(OSError):
                    self._switch_to_spare()
            elif not self._spare.alive:
                self._spare.control.close()
                self._spare = self._fork_spare(self._current.control)

    def _switch_to_spare(self) -> None:
        """Replace the server by the spare, and request another spare. If the old server is suspended, kill it.

        Raises:
            OSError: The spare has also ended.
        """
        if not self._spare.alive:
            reason = self.end_message() or "the server that forks worker processes is suspended"
            raise OSError(f"{reason}, and its replacement has ended too; build the pipeline again")
        old, self._current, self._suspended_checks = self._current, self._spare, 0
        old.control.close()
        if old.alive:
            old.process.kill()
        self._spare = self._fork_spare(self._current.control)

    def end_message(self) -> str:
        """Describe how the server ended; "" if the server still runs."""
        with self._lock:
            self._current.process.join(_GRACE)  # the server may be about to end
            code = self._current.process.exitcode
        if code is None:
            return ""
        return f"the server that forks worker processes {describe_exit(code)}" + (
            "; its error is above" if code == 1 else ""
        )

    def _fork_spare(self, control: socket.socket) -> _ServerProcess:
        ours, theirs = _pair()
        with theirs:
            try:
                return _ServerProcess(_send_request(control, _Spare(), [theirs.fileno()]), ours)
            except OSError:
                return _ServerProcess(ForkedProcess.already_ended(), ours)

    def release(self) -> None:
        """Record that a pipeline no longer uses the server. After the last one, end the server."""
        global _shared
        if self._owner != os.getpid():
            return  # a forked process may drop its copy of this object, but must not end the server
        with _sharing:
            self._users -= 1
            if self._users:
                return
            if _shared is self:
                _shared = None
        with self._lock:
            both = (self._spare, self._current)
            for each in both:
                each.request_end()
            for each in reversed(both):  # wait for the server last, because it reports the spare's exit code
                each.end()
        self._at_exit.cancel()


_shared: Server | None = None  # protected by `_sharing`
# The lock is reentrant, because a garbage collection may drop a pipeline while this thread holds the lock. Dropping the
# pipeline acquires the lock again.
_sharing = ForkSafeLock()


def _pair() -> tuple[socket.socket, socket.socket]:
    return _stream_pair(socket.SOCK_SEQPACKET)  # each request is a separate packet


def _stream_pair(kind: socket.SocketKind = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.settimeout(None)  # overrides the user's default timeout
    theirs.settimeout(None)
    return ours, theirs


def _send_request(control: socket.socket, request: ForkRequest | _Spare, descriptors: list[int]) -> ForkedProcess:
    """Send a request, and descriptors for the new process, to a server. Return the new process."""
    status, status_writer = os.pipe()
    process = ForkedProcess(status)
    try:
        socket.send_fds(control, [pickle.dumps(request)], [status_writer, *descriptors])
    finally:
        os.close(status_writer)
    return process


class _Child:
    """A server that is a child of this process.

    If other code of the program has waited for the server, its exit code is unknown, and `exitcode` is `LOST`.
    """

    def __init__(self, process: Any) -> None:
        self._process, self._id = process, ProcessId.of(process.pid)
        self.pid = process.pid
        self.join, self.kill = process.join, process.kill

    @property
    def exitcode(self) -> int | None:
        code: int | None = self._process.exitcode
        return code if code is not None or self._id.is_alive else LOST


class _Popen:
    """A new interpreter. It has the attributes of `multiprocessing.Process` that `Server` uses."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self.pid = process, process.pid

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def kill(self) -> None:
        self._process.kill()


# Unlike multiprocessing's fork server, this program doesn't import the user's script.
_PROGRAM = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
import torchdali.fn
from torchdali.execute.workers.starting import main
main({descriptor}, {user})
"""


# ---------------------------------------------------------------- in the server


def _run_forked(ours: socket.socket, control: socket.socket, run: Run, main_process: ProcessId) -> None:
    ours.close()
    main(control, run, main_process)


def main(control: socket.socket, run: Run, main_process: ProcessId) -> None:
    """Fork a worker for each request, until the main process requests the end or has ended.

    Args:
        control: The socket for requests.
        run: Function that runs a worker.
        main_process: Identity of the main process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the main process handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    awake, wake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)  # when a worker ends (SIGCHLD), the `select` below must return
    parent = os.getppid()
    running: dict[int, int] = {}  # by a running child's id, the descriptor to which its exit code is written
    while main_process.is_alive:
        ready = select.select([control.fileno(), awake], [], [], _POLL)[0]
        if awake in ready:
            os.read(awake, 1 << 12)
        _report_exits(running)
        if control.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 3)
        request: ForkRequest | _Spare | None = pickle.loads(data) if data else None
        if request is None:
            break
        pid = _fork(descriptors)
        if pid == 0:
            for descriptor in (control.detach(), awake, descriptors[0], *running.values()):
                os.close(descriptor)
            _run_child(run, request, descriptors[1:], wake, main_process)
        if pid:
            send_number(descriptors[0], pid)
            running[pid] = descriptors[0]
        for descriptor in descriptors[1:] if pid else descriptors:
            os.close(descriptor)
    kill_suspended_server(main_process, parent)
    for pid in running:  # suspended children can't end by themselves
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _fork(descriptors: list[int]) -> int | None:
    """Fork this process. If the fork fails, send the error to the main process, and return None."""
    try:
        return os.fork()
    except OSError as error:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptors[1])) as waiting:
            Connection(waiting.detach()).send_bytes(pickle.dumps(Refused(f"{type(error).__name__}: {error}")))
        return None


def _run_child(
    run: Run, request: ForkRequest | _Spare, descriptors: list[int], wake: int, main_process: ProcessId
) -> None:
    """Run a worker or a spare in this process, which the server has just forked."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(wake)
        if isinstance(request, _Spare):
            main(socket.socket(fileno=descriptors[0]), run, main_process)
        else:
            run(Connection(descriptors[0]), request, descriptors[1] if request.is_sent else None, main_process)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _report_exits(running: dict[int, int]) -> None:
    """Send the exit codes of ended children to the main process."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        status_writer = running.pop(pid)
        send_number(status_writer, os.waitstatus_to_exitcode(status))
        os.close(status_writer)
