"""Run the sides in turn, each in a fresh process, round after round."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .job import Job, Measurement
from .measuring import PACKAGES

DEADLINE = 1800


def missing(side: str) -> str | None:
    """Name the package that a side needs and that is not installed."""
    for package in PACKAGES[side]:
        try:
            if importlib.util.find_spec(package) is None:
                return package
        except ModuleNotFoundError:
            return package
    return None


def warm_page_cache(root: Path) -> int:
    """Read every file below a folder once; return how many."""
    files = [path for path in root.rglob("*") if path.is_file()]
    for path in files:
        path.read_bytes()
    return len(files)


def run(job: Job, number: int = 0) -> Measurement:
    """Run a job in a process of its own.

    Raises:
        RuntimeError: It failed; the message ends with what it wrote.
    """
    command = [sys.executable, "-m", "benchmarks.measuring", job.to_json(), str(number)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=Path(__file__).resolve().parents[1],
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{job.side}/{job.pipeline} failed:\n{done.stderr[-3000:]}")
    return Measurement.from_json(done.stdout.splitlines()[-1])


def alternate(jobs: Sequence[Job], rounds: int) -> Iterator[Measurement]:
    """Run all jobs once a round: A B C, A B C, ..."""
    for number in range(rounds):
        for job in jobs:
            yield run(job, number)
