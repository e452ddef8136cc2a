"""The accuracy comparison trains with both loaders."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import accuracy


def colors(root: Path, count: int) -> Path:
    for k in range(count):
        (root / "ab"[k % 2]).mkdir(parents=True, exist_ok=True)
        pixels = np.full((20, 20, 3), 40 + 150 * (k % 2), np.uint8)
        Image.fromarray(pixels).save(root / "ab"[k % 2] / f"{k}.png")
    return root


@pytest.mark.slow
def test_both_loaders_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(colors(tmp_path / "train", 128)), str(colors(tmp_path / "val", 12))]
    monkeypatch.setattr(sys, "argv", ["accuracy", *folders, "--size", "16", "--epochs", "3", "--seeds", "1"])
    accuracy.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines[:2]] == ["torchdali", "torch"]
    assert [line.split()[0] for line in lines[2:]] == ["torchdali", "torch", "difference"]
    assert all(float(line.split()[1].rstrip("%")) >= 50 for line in lines[2:4])


@pytest.mark.parametrize(
    ("ours", "theirs", "last"),
    [
        ([0.5, 0.75], [0.5, 0.75], "difference +0.00%, standard error 0.00%"),
        ([0.5, 0.75], [0.25, 0.5], "difference +25.00%, standard error 0.00%"),
        ([0.5, 0.75], [0.75, 0.5], "difference +0.00%, standard error 25.00%"),
        ([0.25], [0.75], "difference -50.00%, standard error nan%"),
    ],
)
def test_the_summary_compares_runs_of_one_seed(ours: list[float], theirs: list[float], last: str) -> None:
    runs = {"a": [accuracy.Run(each, 2.0, 1.0) for each in ours], "b": [accuracy.Run(each, 4.0, 3.0) for each in theirs]}
    lines = accuracy.summary(runs).splitlines()
    assert "2.0 s, CPU 1.0 s" in lines[0] and "4.0 s, CPU 3.0 s" in lines[1]
    assert lines[2] == last
