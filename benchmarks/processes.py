"""CPU time and memory of a process and its workers, as Linux counts them."""

from __future__ import annotations

import time
from pathlib import Path

_PROC = Path("/proc")


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; a name may hold blanks and brackets."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def family(pid: int) -> list[int]:
    """The process and all its descendants that are alive."""
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def cpu_seconds(pids: list[int]) -> float:
    """User plus system time of some processes so far, to the nanosecond.

    /proc/PID/stat counts ticks of ten milliseconds, so short work may appear to take no time. The
    clock of a process has the identifier that clock_getcpuclockid(3) derives from its PID.
    """
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def _mebibytes(pids: list[int], file: str, label: str) -> float:
    kibibytes = 0
    for pid in pids:
        for line in (_PROC / str(pid) / file).read_text().splitlines():
            if line.startswith(label):
                kibibytes += int(line.split()[1])
    return kibibytes / 1024


def rss(pids: list[int]) -> float:
    """Resident memory now, pages shared between the processes counted for each, in mebibytes."""
    return _mebibytes(pids, "status", "VmRSS:")


def peak_rss(pids: list[int]) -> float:
    """Sum of each process's own peak of resident memory, in mebibytes."""
    return _mebibytes(pids, "status", "VmHWM:")


def pss(pids: list[int]) -> float:
    """Resident memory now, each page divided among the processes that map it, in mebibytes."""
    return _mebibytes(pids, "smaps_rollup", "Pss:")
