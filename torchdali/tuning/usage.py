"""Measure the processor time of this process, its workers and other programs, and the number of bytes read.

Linux has all values in ``/proc``. On other systems, only this process's processor time is available.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage"]

_PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """Seconds and bytes up to a point in time (from `now`), or between two points in time (from `since`).

    Attributes:
        wall: Wall-clock seconds.
        own: Processor seconds of this process and its descendants.
        all: Processor seconds of all programs on the cores of this process; None if unknown.
        read: Bytes that this process and its descendants have read from files, including files in the system's cache.
        from_disk: Bytes that this process and its descendants have read from disk.
    """

    wall: float
    own: float
    all: float | None
    read: int
    from_disk: int

    @classmethod
    def now(cls) -> Usage:
        """Return the usage up to now."""
        own, read, from_disk = time.process_time(), 0, 0
        for pid in _family():
            with contextlib.suppress(OSError, ValueError):  # raised if the process has ended
                if pid != os.getpid():
                    own += _seconds(pid)
                counts = dict(line.split(": ") for line in (_PROC / f"{pid}/io").read_text().splitlines())
                read += int(counts["rchar"])
                from_disk += int(counts["read_bytes"])
        return cls(time.perf_counter(), own, _total_seconds(), read, from_disk)

    def since(self, before: Usage) -> Usage:
        """Return the usage between an earlier `Usage` and this one."""
        total = None if self.all is None or before.all is None else self.all - before.all
        return Usage(
            self.wall - before.wall, max(0.0, self.own - before.own), total, max(0, self.read - before.read),
            max(0, self.from_disk - before.from_disk),
        )  # fmt: skip

    def __add__(self, other: Usage) -> Usage:
        total = None if self.all is None or other.all is None else self.all + other.all
        return Usage(
            self.wall + other.wall, self.own + other.own, total, self.read + other.read,
            self.from_disk + other.from_disk,
        )  # fmt: skip

    @property
    def busy(self) -> float:
        """Average number of cores that this process and its descendants used."""
        return self.own / self.wall

    @property
    def other_cores(self) -> float | None:
        """Average number of cores that other programs used; None if unknown."""
        return None if self.all is None else max(0.0, self.all - self.own) / self.wall


def _family() -> list[int]:
    """Return the ids of this process and of all its descendants."""
    children = defaultdict[int, list[int]](list)
    for entry in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children[int(_fields(entry)[1])].append(int(entry.parent.name))
    family = [os.getpid()]
    for pid in family:  # the list grows during the loop
        family += children[pid]
    return family


def _fields(stat: Path) -> list[str]:
    """Return the fields of a process's ``stat`` file that follow the process's name: state, parent and so on."""
    return stat.read_text().rpartition(")")[2].split()


def _seconds(pid: int) -> float:
    user, system = _fields(_PROC / f"{pid}/stat")[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _total_seconds() -> float | None:
    """Return the processor seconds of all programs on the cores of this process."""
    try:
        lines = (_PROC / "stat").read_text().splitlines()
    except OSError:
        return None
    own_cores, ticks = {f"cpu{number}" for number in os.sched_getaffinity(0)}, 0
    for name, *counts in (line.split() for line in lines):
        if name in own_cores:
            user, nice, system, _, _, *interrupts = map(int, counts[:8])
            ticks += user + nice + system + sum(interrupts)
    return ticks / os.sysconf("SC_CLK_TCK")
