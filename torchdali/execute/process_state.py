"""Query the states of processes and threads, and whether enough memory for new threads is available."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["ProcessId", "has_gil", "has_thread_memory", "is_suspended", "wait_for_other_threads"]

_PATIENCE = 0.5  # seconds within which other threads must sleep; see `wait_for_other_threads`
_THREAD_MEMORY = 32 << 20  # bytes that new threads need for their stacks and first allocations


class ProcessId(NamedTuple):
    """Identity of a process: its id and its start time, because the system reuses the ids of ended processes."""

    pid: int
    start_time: bytes

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Return the identity of the process that currently has this id."""
        return cls(pid, _read_stat(Path(f"/proc/{pid}/stat"))[1])

    @property
    def is_alive(self) -> bool:
        """True until the process has ended. A zombie (an ended process whose exit code wasn't read) counts as ended."""
        # Without a start time, the process had already ended when `of` was called, or the system has no /proc.
        if not self.start_time:
            return _exists(self.pid)
        state, start_time = _read_stat(Path(f"/proc/{self.pid}/stat"))
        return start_time == self.start_time and state not in (b"Z", b"X")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def has_gil() -> bool:
    """Return whether the GIL is enabled. It can be disabled only in free-threaded Python."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def has_thread_memory() -> bool:
    """Return whether enough memory is available to start threads.

    Without enough memory, Python may wait forever for a new thread.
    """
    try:
        mmap.mmap(-1, _THREAD_MEMORY).close()
    except OSError:
        return False
    return True


def is_suspended(pid: int | None) -> bool:
    """Return whether SIGSTOP or Ctrl-Z has suspended a process; False if the process's state is unknown."""
    return _read_stat(Path(f"/proc/{pid}/stat"))[0] in (b"T", b"t")


def wait_for_other_threads() -> bool:
    """Wait until all other threads of this process sleep. Return False if a thread still runs after half a second.

    Even if Python has joined a thread, the thread may still hold a library's lock for a short time. If the process were
    forked at this moment, the lock would never be released in the forked process.
    """
    deadline = time.monotonic() + _PATIENCE
    own_task = str(threading.get_native_id())
    tasks = Path("/proc/self/task")
    while tasks.is_dir() and any(
        _read_stat(tasks / each / "stat")[0] == b"R" for each in os.listdir(tasks) if each != own_task
    ):
        if time.monotonic() > deadline:
            return False
        time.sleep(1e-3)
    return True


def _read_stat(path: Path) -> tuple[bytes, bytes]:
    """Return the state (a letter) and the start time of a process or thread; empty if it doesn't exist."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return b"", b""
