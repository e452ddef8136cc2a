"""State of processes and their threads: ended, stopped by a signal, about to end, without room for more."""

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
    """A process, of this program or not: its number, and when it began, since numbers are used again."""

    number: int
    began: bytes

    @classmethod
    def of(cls, number: int) -> ProcessId:
        """Return the process that has a number now."""
        return cls(number, _facts(Path(f"/proc/{number}/stat"))[1])

    @property
    def lives(self) -> bool:
        """True until the process has ended, whether or not somebody has asked how."""
        if not self.began:  # it was gone, or /proc is missing
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
    """Return True if one thread at a time runs Python; False in free-threaded Python, unless a module needs the GIL."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def has_room() -> bool:
    """Return False if threads had better not be started: without memory, Python may wait for one for ever."""
    try:
        mmap.mmap(-1, _ROOM).close()
    except OSError:
        return False
    return True


def is_stopped(pid: int | None) -> bool:
    """Return True if a signal, SIGSTOP or Ctrl-Z, has stopped a process; False if that cannot be known."""
    return _facts(Path(f"/proc/{pid}/stat"))[0] in (b"T", b"t")


def others_sleep() -> bool:
    """Wait until all threads of this process but the calling one sleep; return False if some go on.

    A thread that Python has joined may still be on its way out, and hold a lock of a library meanwhile (OpenCV's, of
    its data for each thread). A process that is forked just then would wait for that lock for ever.
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
    """Return the state of a process or thread, a letter, and when it began; empty if there is none."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return b"", b""
