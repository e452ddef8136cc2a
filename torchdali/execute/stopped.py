"""Processes that a signal stopped: SIGSTOP, or Ctrl-Z."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_stopped"]


def is_stopped(pid: int | None) -> bool:
    """Return True if a process was stopped by a signal; False where that cannot be known."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in (b"T", b"t")
