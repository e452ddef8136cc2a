"""Query the state of processes and threads: alive, suspended, sleeping, memory for more threads."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["ProcessId", "has_gil", "has_room", "is_stopped", "others_sleep"]

_PATIENCE = 0.5  # seconds
_ROOM = 32 << 20  # bytes of address space: stacks of threads, and their first allocations


class ProcessId(NamedTuple):
    """Identity of a process: its id and its start time, because the system reuses ids."""

    number: int
    began: bytes

    @classmethod
    def of(cls, number: int) -> ProcessId:
        """Return the identity of the process that currently has an id."""
        return cls(number, _facts(Path(f"/proc/{number}/stat"))[1])

    @property
    def lives(self) -> bool:
        """True until the process has ended; False also for a zombie, whose exit code wasn't collected yet."""
        if not self.began:  # the process had already ended, or /proc is missing
            return _exists(self.number)
        state, began = _facts(Path(f"/proc/{self.number}/stat"))
        return began == self.began and state not in (b"Z", b"X")


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def has_gil() -> bool:
    """Return True if the GIL is enabled; False in free-threaded Python, unless a module needs the GIL."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def has_room() -> bool:
    """Return False if memory doesn't suffice for threads: Python may then wait forever for a thread to start."""
    try:
        mmap.mmap(-1, _ROOM).close()
    except OSError:
        return False
    return True


def is_stopped(pid: int | None) -> bool:
    """Return True if SIGSTOP or Ctrl-Z has suspended a process; False if unknown."""
    return _facts(Path(f"/proc/{pid}/stat"))[0] in (b"T", b"t")


def others_sleep() -> bool:
    """Wait until all other threads of this process sleep; return False if a thread still runs after half a second.

    A thread that Python has joined may still be ending, and hold a library's lock (such as OpenCV's lock for per-thread
    data). A process that is forked at this moment would wait for the lock forever.
    """
    deadline = time.monotonic() + _PATIENCE
    own = str(threading.get_native_id())
    tasks = Path("/proc/self/task")
    while tasks.is_dir() and any(_facts(tasks / each / "stat")[0] == b"R" for each in os.listdir(tasks) if each != own):
        if time.monotonic() > deadline:
            return False
        time.sleep(1e-3)
    return True


def _facts(path: Path) -> tuple[bytes, bytes]:
    """Return the state (a letter) and the start time of a process or thread; empty if it doesn't exist."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return b"", b""
