"""Measure the processor time and the bytes of this process, its worker processes, and the rest of the machine.

Linux tells all of it in ``/proc``. Elsewhere there is the processor time of this process alone.
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
    """Seconds and bytes used so far; subtract two objects for the use between them.

    Attributes:
        wall: Seconds of the clock.
        own: Processor seconds of this process and those that it started.
        all: Processor seconds of all programs on the cores of this process; None if the system does not tell.
        read: Bytes that this process and those that it started read from files, out of memory or not.
        from_disk: Those that were not in memory.
    """

    wall: float
    own: float
    all: float | None
    read: int
    from_disk: int

    @classmethod
    def now(cls) -> Usage:
        """Return the usage until now."""
        own, read, from_disk = time.process_time(), 0, 0
        for pid in _family():
            with contextlib.suppress(OSError, ValueError):  # it has ended
                if pid != os.getpid():
                    own += _seconds(pid)
                counts = dict(line.split(": ") for line in (_PROC / f"{pid}/io").read_text().splitlines())
                read += int(counts["rchar"])
                from_disk += int(counts["read_bytes"])
        return cls(time.perf_counter(), own, _of_all(), read, from_disk)

    def since(self, before: Usage) -> Usage:
        """Return the usage since then."""
        everyone = None if self.all is None or before.all is None else self.all - before.all
        return Usage(
            self.wall - before.wall, max(0.0, self.own - before.own), everyone, max(0, self.read - before.read),
            max(0, self.from_disk - before.from_disk),
        )  # fmt: skip

    def __add__(self, other: Usage) -> Usage:
        everyone = None if self.all is None or other.all is None else self.all + other.all
        return Usage(
            self.wall + other.wall, self.own + other.own, everyone, self.read + other.read,
            self.from_disk + other.from_disk,
        )  # fmt: skip

    @property
    def busy(self) -> float:
        """Number of cores that computed for this process, on average."""
        return self.own / self.wall

    @property
    def others(self) -> float | None:
        """Number of cores that computed for other programs, on average; None if the system does not tell."""
        return None if self.all is None else max(0.0, self.all - self.own) / self.wall


def _family() -> list[int]:
    """Return the numbers of this process and of those that it started, directly or not."""
    children = defaultdict[int, list[int]](list)
    for entry in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children[int(_fields(entry)[1])].append(int(entry.parent.name))
    family = [os.getpid()]
    for pid in family:  # grows
        family += children[pid]
    return family


def _fields(stat: Path) -> list[str]:
    """Return the fields of a process after its name, which may have spaces: state, parent, ..."""
    return stat.read_text().rpartition(")")[2].split()


def _seconds(pid: int) -> float:
    user, system = _fields(_PROC / f"{pid}/stat")[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _of_all() -> float | None:
    """Return the processor seconds of all programs on the cores of this process."""
    try:
        lines = (_PROC / "stat").read_text().splitlines()
    except OSError:
        return None
    mine, ticks = {f"cpu{number}" for number in os.sched_getaffinity(0)}, 0
    for name, *counts in (line.split() for line in lines):
        if name in mine:
            user, nice, system, _, _, *interrupts = map(int, counts[:8])
            ticks += user + nice + system + sum(interrupts)
    return ticks / os.sysconf("SC_CLK_TCK")
