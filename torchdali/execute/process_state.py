"""Processes that a signal stopped, threads that are about to end, and the lock that threads share."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

__all__ = ["has_gil", "is_stopped", "others_sleep"]

_PATIENCE = 0.5  # seconds


def has_gil() -> bool:
    """Return True if one thread at a time runs Python; False in free-threaded Python, unless a module needs the GIL."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def is_stopped(pid: int | None) -> bool:
    """Return True if a signal, SIGSTOP or Ctrl-Z, has stopped a process; False if that cannot be known."""
    return _state(Path(f"/proc/{pid}/stat")) in (b"T", b"t")


def others_sleep() -> bool:
    """Wait until all threads of this process but the calling one sleep; return False if some go on.

    A thread that Python has joined may still be on its way out, and hold a lock of a library meanwhile (OpenCV's, of
    its data for each thread). A process that is forked just then would wait for that lock for ever.
    """
    deadline = time.monotonic() + _PATIENCE
    own = str(threading.get_native_id())
    tasks = Path("/proc/self/task")
    while tasks.is_dir() and any(_state(tasks / each / "stat") == b"R" for each in os.listdir(tasks) if each != own):
        if time.monotonic() > deadline:
            return False
        time.sleep(1e-3)
    return True


def _state(path: Path) -> bytes:
    """Return the state of a process or thread, a letter; empty if there is none."""
    try:
        return path.read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""
