"""Query whether processes and threads live, sleep or are suspended, and whether memory allows new threads."""

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
_ROOM = 32 << 20  # bytes of address space that new threads need for their stacks and first allocations


class ProcessId(NamedTuple):
    """Identity of a process: its id and its start time. The start time is needed because the system reuses ids."""

    number: int
    began: bytes

    @classmethod
    def of(cls, number: int) -> ProcessId:
        """Return the identity of the process that currently has this id."""
        return cls(number, _facts(Path(f"/proc/{number}/stat"))[1])

    @property
    def lives(self) -> bool:
        """True until the process has ended. A zombie (its exit code was not collected yet) counts as ended."""
        # `of` couldn't read the start time, because the process had already ended or the system has no /proc.
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
    """Return whether the GIL is enabled: always, except in free-threaded Python if no module needs the GIL."""
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
    """Return whether SIGSTOP or Ctrl-Z has suspended a process; False if this is unknown."""
    return _facts(Path(f"/proc/{pid}/stat"))[0] in (b"T", b"t")


def others_sleep() -> bool:
    """Wait until all other threads of this process sleep. Return False if one still runs after half a second.

    A thread that Python has already joined may still be exiting, and hold a library's lock (for example OpenCV's lock
    for per-thread data). If the process is forked at this moment, nobody releases the lock in the forked process.
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
