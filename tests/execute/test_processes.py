"""Number of processes that a pipeline takes, and its tests in several, which run in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchdali.execute.workers import placing

APART = Path(__file__).with_name("processes_apart.py")
LONGEST = 400.0  # seconds; a process that hangs shall not keep the others waiting


@pytest.mark.slow
def test_several_processes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(APART)]
    done = subprocess.run(
        command, cwd=APART.parents[2], capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("threads", "cores", "count"),
    [(1, 64, 1), (4, 64, 1), (8, 2, 1), (8, 8, 2), (16, 16, 4), (32, 64, 8), (6, 64, 2)],
)
def test_how_many_pay(threads: int, cores: int, count: int) -> None:
    assert placing.default_processes(threads, cores) == count
