"""Query the states of processes and threads, and whether enough memory for new threads is available."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["ProcessId", "has_gil", "has_room", "is_stopped", "others_sleep"]

_PATIENCE = 0.5  # seconds within which other threads must sleep; see `others_sleep`
_ROOM = 32 << 20  # bytes that new threads need for their stacks and first allocations


class ProcessId(NamedTuple):
    """Identity of a process: its id and its start time, because the system reuses the ids of ended processes."""

    number: int
    began: bytes

    @classmethod
    def of(cls, number: int) -> ProcessId:
        """Return the identity of the process that currently has this id."""
        return cls(number, _facts(Path(f"/proc/{number}/stat"))[1])

    @property
    def lives(self) -> bool:
        """True until the process has ended. A zombie (an ended process whose exit code wasn't read) counts as ended."""
        # Without a start time, the process had already ended when `of` was called, or the system has no /proc.
        if not self.began:
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
    """Return whether the GIL is enabled. It can be disabled only in free-threaded Python."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def has_room() -> bool:
    """Return whether enough memory is available to start threads.

    Without enough memory, Python may wait forever for a new thread.
    """
    try:
        mmap.mmap(-1, _ROOM).close()
    except OSError:
        return False
    return True


def is_stopped(pid: int | None) -> bool:
    """Return whether SIGSTOP or Ctrl-Z has suspended a process; False if the process's state is unknown."""
    return _facts(Path(f"/proc/{pid}/stat"))[0] in (b"T", b"t")


def others_sleep() -> bool:
    """Wait until all other threads of this process sleep. Return False if a thread still runs after half a second.

    Even if Python has joined a thread, the thread may still hold a library's lock for a short time. If the process were
    forked at this moment, the lock would never be released in the forked process.
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
