"""Programs whose worker processes are killed or suspended end soon, with the correct result, and without leftovers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.pages import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs worker processes")]

LONGEST = 900.0  # seconds for all programs of a test, if all are slow; each has its own limit
CODES = {"exit": 3, "error": 1, "_exit": 4, "kill": -signal.SIGKILL, "interrupt": -signal.SIGINT}
Case = tuple[str, str, str]
"""The process that is hit, the signal, and how the program ends then."""

ENDS: list[Case] = [("", "", end) for end in ("close", "", "del", "exit", "error", "_exit", "kill", "interrupt")]
HIT: list[Case] = [
    ("replica", "SIGKILL", "close"),
    ("replica", "SIGSTOP", "close"),
    ("replicas", "SIGKILL", "close"),
    ("replicas", "SIGSTOP", "at once"),
    ("server", "SIGKILL", "close"),
    ("server", "SIGKILL", "error"),
    ("server", "SIGTERM", "exit"),
    ("server", "SIGSTOP", "close"),
    ("server", "SIGSTOP", "close at once"),
    ("server", "SIGSTOP", "at once"),
    ("server", "SIGSTOP", "interrupt"),
    ("server", "SIGSTOP", "kill"),
    ("server+replica", "SIGSTOP", "close"),
    ("server+replicas", "SIGKILL", "close"),
    ("spare", "SIGKILL", "close"),
    ("spare", "SIGSTOP", "close at once"),
    ("server+spare", "SIGKILL", ""),
]
ANEW: list[Case] = [
    ("", "", "error"),
    ("", "", "kill"),
    ("replicas", "SIGKILL", "close"),
    ("server", "SIGKILL", "close"),
    ("server", "SIGSTOP", "close at once"),
    ("server+spare+replicas", "SIGKILL", ""),
]
NOT_ENOUGH: list[Case] = [("server+spare+replicas", "SIGKILL", ""), ("server+spare+replicas", "SIGSTOP", "")]
SOURCES: list[Case] = [
    *ENDS,
    ("replica", "SIGKILL", "at once"),
    ("replicas", "SIGSTOP", "close at once"),
    ("replicas", "SIGSTOP", "at once"),
]
FORKSERVER: list[Case] = [
    ("", "", "close"),
    ("server", "SIGKILL", "close"),
    ("server", "SIGSTOP", "close"),
    ("server", "SIGSTOP", "error"),
    ("server", "SIGKILL", ""),
]
FAILED: list[Case] = [("replica", "SIGKILL", ""), ("replicas", "SIGSTOP", "")]


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    (root / "0").mkdir()
    for i in range(24):
        pixels = np.random.default_rng(i).integers(0, 256, (60 + i, 80, 3)).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(root / "0" / f"{i:02}.png")
    return root


def run(image_folder: Path, method: str, cases: list[Case]) -> list[dict[str, Any]]:
    given = json.dumps([(method, what, how, 5, end) for what, how, end in cases])
    command = [sys.executable, "-m", "tests.helpers.hit_programs", str(image_folder), given]
    environment = {k: v for k, v in os.environ.items() if k != "TORCHDALI_PROCESSES"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("method", "cases"),
    [("fork", ENDS), ("fork", HIT), ("spawn", ANEW), ("parallel", SOURCES), ("forkserver", FORKSERVER)],
    ids=["fork", "fork, hit", "spawn", "parallel", "forkserver"],
)
def test_programs_end(image_folder: Path, method: str, cases: list[Case]) -> None:
    found = run(image_folder, method, cases)
    for case, each in zip(cases, found, strict=True):
        assert (each["code"], each["left"]) == (CODES.get(case[2], 0), 0), (case, each)
        assert "at once" in case[2] or "all batches" in each["output"], (case, each)


@pytest.mark.parametrize(
    ("method", "cases", "words"),
    [
        ("fork", NOT_ENOUGH, "None can be started: the server that forks worker processes .* build the pipeline again"),
        ("parallel", FAILED, "of the parallel external sources or datasets was"),
    ],
)
def test_programs_that_cannot_continue_report_the_reason(image_folder: Path, method: str, cases: list[Case], words: str) -> None:
    for case, each in zip(cases, run(image_folder, method, cases), strict=True):
        assert (each["code"], each["left"]) == (1, 0), (case, each)
        assert re.search(words, each["output"]), (case, each)
