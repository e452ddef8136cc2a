"""The worker's side of the connection to the process of the user."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import torch

from torchdali.execute.process_state import ProcessId, is_stopped
from torchdali.execute.shared_memory import socket_of
from torchdali.execute.workers.blocks import OwnBuffers, SharedBuffers, Views
from torchdali.execute.workers.messages import Drop, SentBatch, SentBlock, read, write

__all__ = ["Channel", "begin_worker", "leave"]

_POLL = 0.5  # seconds between looks at whether the process of the user is there


def begin_worker(user: ProcessId) -> None:
    """Make this process a worker, which ends with the process of the user."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the user's decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin = _NoKeyboard()
    if sys.breakpointhook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
        sys.breakpointhook = _refuse
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(user, os.getppid()), daemon=True).start()


def _refuse(*_: Any, **__: Any) -> NoReturn:
    """Say where a debugger works."""
    raise RuntimeError(
        "a worker process has no keyboard for breakpoint(), pdb or input(). Debug in one process: with debug=True, or "
        "num_processes=1 (or TORCHDALI_PROCESSES=1 in the environment), and sources without parallel=True"
    )


class _NoKeyboard(io.TextIOBase):
    """The standard input of a worker, from which a debugger would read."""

    def readline(self, *_: Any) -> NoReturn:
        """Say where a debugger works."""
        _refuse()

    read = readline


def _end_with(user: ProcessId, server: int) -> None:
    """End this process when the user's process is gone.

    The connection does not tell: processes that were forked later hold its other end open. And code of the user may
    never return to look at it.
    """
    while user.lives:
        time.sleep(_POLL)
    leave(user, server)
    os._exit(1)


def leave(user: ProcessId, server: int) -> None:
    """Kill a server that is stopped if the process of the user is gone: it would be there for ever."""
    if os.getppid() == server and is_stopped(server) and not user.lives:
        os.kill(server, signal.SIGKILL)


class Channel:
    """Messages in both directions, and shared memory that goes with them.

    Args:
        connection: To the process of the user.
        shares_memory: The two are on one machine.

    Attributes:
        lock: Held while a message is sent.
        buffers: Memory for messages.
        views: The blocks of the process of the user.
    """

    def __init__(self, connection: Any, shares_memory: bool = True) -> None:
        self._connection, self._socket = connection, socket_of(connection.fileno())
        self.lock = threading.RLock()  # a block is announced while a batch is written
        self.buffers = SharedBuffers(self._announce, self._forget) if shares_memory else OwnBuffers()
        self.views = Views()
        self._out: dict[int, torch.Tensor] = {}  # the tensors of blocks that the process of the user reads

    def messages(self) -> Iterator[Any]:
        """Yield the messages that are not about blocks, until all are read."""
        with contextlib.suppress(ConnectionError, EOFError):  # any other end is told: no memory, say
            while True:
                message = read(self._connection)
                if isinstance(message, SentBlock):
                    _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
                    self.views.add(message.number, descriptors[0], message.size)
                elif isinstance(message, Drop):
                    self.views.drop(message.number)
                elif message is None:
                    return
                else:
                    yield message

    def free(self, blocks: Iterable[int]) -> None:
        """Take back blocks that the process of the user does not read any more."""
        for number in blocks:
            # It has dropped the last tensor on the block before it sent the number.
            self._out.pop(number, None)

    def send(self, message: Any, values: Iterable[SentBatch] = (), kept: Iterable[torch.Tensor] = ()) -> None:
        """Send a message.

        Args:
            values: The batches in it.
            kept: The tensors in shared memory that hold them.
        """
        with self.lock:
            tensors = {self._block(tensor): tensor for tensor in kept}
            self._out.update({place.block: tensors[place.block] for value in values for place in value.places()})
            write(self._connection, message)

    def _block(self, tensor: torch.Tensor) -> int:
        place = self.buffers.place(tensor)
        assert place is not None
        return place.block

    def _announce(self, number: int, descriptor: int, size: int) -> None:
        with self.lock:
            self.send(SentBlock(number, size))
            socket.send_fds(self._socket, [b"d"], [descriptor])

    def _forget(self, number: int) -> None:
        self.send(Drop(number))
