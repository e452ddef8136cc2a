"""The sentence on its loaders with which ``torchdali run`` ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from torchdali.dataloader import _reports
from torchdali.dataloader._states import Progress

ROOT = Path(__file__).resolve().parents[2]

FAST, LEFT = ("Pictures", True, "decoded"), ("Rows", False, "left to torch: a batch sampler")
CASES = {
    "none": ([], ""),
    "one": ([(*FAST, 10.0, 1.0)], "1 of 1 loaders accelerated (Pictures); the loops waited 1.0 s of their 10.0 s (10%) for data"),
    "two of a kind": ([(*FAST, 3.0, 1.0), (*FAST, 1.0, 1.0)], "2 of 2 loaders accelerated (Pictures); the loops waited 2.0 s of their 4.0 s (50%) for data"),
    "left": ([(*LEFT, 2.0, 2.0)], "0 of 1 loaders accelerated; left to torch: Rows (a batch sampler); the loops waited 2.0 s of their 2.0 s (100%) for data"),
    "both": ([(*FAST, 6.0, 0.0), (*LEFT, 2.0, 2.0)], "1 of 2 loaders accelerated (Pictures); left to torch: Rows (a batch sampler); the loops waited 2.0 s of their 8.0 s (25%) for data"),
    "no loop ended": ([(*FAST, 0.0, 0.0)], "1 of 1 loaders accelerated (Pictures); the loops waited 0.0 s of their 0.0 s (0%) for data"),
}


@pytest.mark.parametrize(("loops", "text"), CASES.values(), ids=CASES)
def test_sentence(loops: list[Any], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {}
    for number, (name, accelerated, why, seconds, waited) in enumerate(loops):
        table[number] = _reports._Loops(name, accelerated, why)
        progress = Progress(torch.empty(0), began=5.0, ended=seconds and 5.0 + seconds, waited=waited)
        table[number].progress.append(progress)
    monkeypatch.setattr(_reports, "_loops", table)
    assert _reports.summary() == text


SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

class Odd(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(4))

for _ in range(2):
    for batch in DataLoader(TensorDataset(torch.arange(8)), batch_size=4):
        pass
list(DataLoader(Odd(), batch_size=2))
"""


@pytest.mark.slow
def test_a_script_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "torchdali", "run", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    (line,) = (each for each in done.stderr.splitlines() if each.startswith("torchdali run: "))
    expected = "torchdali run: 2 of 3 loaders accelerated (TensorDataset); left to torch: Odd (an iterable data set); the loops waited "
    assert line.startswith(expected) and line.endswith(" for data")
