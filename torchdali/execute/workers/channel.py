"""The worker process's end of the connection to the main process."""

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

from torchdali.execute.process_state import ProcessId, is_suspended
from torchdali.execute.shared_memory import socket_of
from torchdali.execute.workers.blocks import LocalBuffers, SharedBuffers, Views
from torchdali.execute.workers.messages import DroppedBlock, SentBatch, SentBlock, read, write

__all__ = ["Channel", "prepare_worker", "kill_suspended_server"]

_POLL = 0.5  # seconds between checks whether the main process is alive


def prepare_worker(main_process: ProcessId) -> None:
    """Prepare this process to be a worker that ends when the main process ends."""
    # Ctrl-C sends SIGINT to all processes of the terminal, but only the main process must handle SIGINT.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin = _NoKeyboard()
    if sys.breakpointhook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
        sys.breakpointhook = _raise_no_keyboard
    torch.set_num_threads(1)
    threading.Thread(target=_watch_main_process, args=(main_process, os.getppid()), daemon=True).start()


def _raise_no_keyboard(*_: Any, **__: Any) -> NoReturn:
    """Raise an error that explains how to use a debugger."""
    raise RuntimeError(
        "breakpoint(), pdb and input() do not work in a worker process, which has no keyboard. Debug in one process: "
        "with debug=True, or num_processes=1 (or TORCHDALI_PROCESSES=1 in the environment), and sources without "
        "parallel=True"
    )


class _NoKeyboard(io.TextIOBase):
    """The standard input of a worker. If a debugger reads from it, an error explains how to use a debugger."""

    def readline(self, *_: Any) -> NoReturn:
        """Raise an error that explains how to use a debugger."""
        _raise_no_keyboard()

    read = readline


def _watch_main_process(main_process: ProcessId, server: int) -> None:
    """Wait until the main process has ended, then end this process.

    Watching the connection isn't enough. Other forked processes may have copies of the main process's descriptors, so
    the connection may stay open after the main process has ended.
    """
    while main_process.is_alive:
        time.sleep(_POLL)
    kill_suspended_server(main_process, server)
    os._exit(1)


def kill_suspended_server(main_process: ProcessId, server: int) -> None:
    """If the main process has ended and the server (which forked this process) is suspended, kill the server."""
    if os.getppid() == server and is_suspended(server) and not main_process.is_alive:
        os.kill(server, signal.SIGKILL)


class Channel:
    """Sends and receives messages, and the shared memory to which they refer.

    Args:
        connection: The connection to the main process.
        shares_memory: True if both processes are on one machine.

    Attributes:
        lock: A lock that is held while a message is sent.
        buffers: Memory for batches that this process sends.
        views: The main process's blocks of shared memory, mapped in this process.
    """

    def __init__(self, connection: Any, shares_memory: bool = True) -> None:
        self._connection, self._socket = connection, socket_of(connection.fileno())
        self.lock = threading.RLock()  # reentrant, because sending a batch may send a message about a new block
        self.buffers = SharedBuffers(self._announce, self._forget) if shares_memory else LocalBuffers()
        self.views = Views()
        self._sent_tensors: dict[int, torch.Tensor] = {}  # by a block's number, the tensor that the main process reads

    def messages(self) -> Iterator[Any]:
        """Yield the messages until the connection ends. Messages about blocks of shared memory are processed here."""
        with contextlib.suppress(ConnectionError, EOFError):
            while True:
                message = read(self._connection)
                if isinstance(message, SentBlock):
                    _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
                    self.views.add(message.number, descriptors[0], message.size)
                elif isinstance(message, DroppedBlock):
                    self.views.drop(message.number)
                elif message is None:
                    return
                else:
                    yield message

    def free(self, blocks: Iterable[int]) -> None:
        """Allow this process to reuse blocks that the main process no longer reads."""
        for number in blocks:
            self._sent_tensors.pop(number, None)

    def send(self, message: Any, values: Iterable[SentBatch] = (), shared_tensors: Iterable[torch.Tensor] = ()) -> None:
        """Send a message. Until `free` is called, this process doesn't write to the blocks with the message's batches.

        Args:
            message: The message.
            values: The batches in the message.
            shared_tensors: The tensors in shared memory that contain the batches.
        """
        with self.lock:
            tensors = {self._block(tensor): tensor for tensor in shared_tensors}
            self._sent_tensors.update(
                {position.block: tensors[position.block] for value in values for position in value.positions()}
            )
            write(self._connection, message)

    def _block(self, tensor: torch.Tensor) -> int:
        position = self.buffers.find(tensor)
        assert position is not None
        return position.block

    def _announce(self, number: int, descriptor: int, size: int) -> None:
        with self.lock:
            self.send(SentBlock(number, size))
            socket.send_fds(self._socket, [b"d"], [descriptor])

    def _forget(self, number: int) -> None:
        self.send(DroppedBlock(number))
