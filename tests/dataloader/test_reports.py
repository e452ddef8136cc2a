"""The summary of the loaders that ``torchdali run`` prints at its end."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from tests.dataloader.data import LAZY, Own, write_images
from torchdali import DataLoader
from torchdali.dataloader import _notes, _reports
from torchdali.dataloader._states import Progress
from torchdali.pipeline import native_status

ROOT = Path(__file__).resolve().parents[2]

REASON = _notes.not_accelerated_note(_notes.own_dataset_reason(type("Rows", (), {})))
FAST, LEFT = ("Pictures", True, ("Pictures: read by torchdali",)), ("Rows", False, (REASON,))
COLLATE = ("Rows", False, ("a note", _notes.not_accelerated_note(_notes.own_function_reason("collate_fn"))))
SLOW = ("Pictures", True, ("Pictures: read by torchdali", "the fast path isn't built, so ..."))
CASES = {
    "none": ([], ""),
    "one": (
        [(*FAST, 10.0, 1.0)],
        "1 of 1 loaders accelerated (Pictures); the loops waited 1.0 s of their 10.0 s (10%) for data",
    ),
    "two of a kind": (
        [(*FAST, 3.0, 1.0), (*FAST, 1.0, 1.0)],
        "2 of 2 loaders accelerated (Pictures); the loops waited 2.0 s of their 4.0 s (50%) for data",
    ),
    "own dataset": (
        [(*LEFT, 2.0, 2.0)],
        "0 of 1 loaders accelerated; not accelerated: Rows is your own dataset; the loops waited 2.0 s of their 2.0 s (100%) for data",
    ),
    "own function": (
        [(*COLLATE, 2.0, 2.0)],
        "0 of 1 loaders accelerated; not accelerated: Rows: collate_fn is your own function; the loops waited 2.0 s of their 2.0 s (100%) for data",
    ),
    "both": (
        [(*FAST, 6.0, 0.0), (*LEFT, 2.0, 2.0)],
        "1 of 2 loaders accelerated (Pictures); not accelerated: Rows is your own dataset; the loops waited 2.0 s of their 8.0 s (25%) for data",
    ),
    "start-up": (
        [(*FAST, 4.0, 3.0, 2.5)],
        "1 of 1 loaders accelerated (Pictures); the loops waited 3.0 s of their 4.0 s (75%) for data, 2.5 s of it for start-up",
    ),
    "no fast path": (
        [(*SLOW, 4.0, 3.0)] * 2,
        "2 of 2 loaders accelerated (Pictures); the fast path isn't built: run `torchdali doctor`; the loops waited 6.0 s of their 8.0 s (75%) for data",
    ),
    "no loop ended": (
        [(*FAST, 0.0, 0.0)],
        "1 of 1 loaders accelerated (Pictures); the loops waited 0.0 s of their 0.0 s (0%) for data",
    ),
}


@pytest.mark.parametrize(("loops", "text"), CASES.values(), ids=CASES)
def test_the_summary_sentence(loops: list[Any], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {}
    for number, (name, accelerated, notes, seconds, waited, *startup) in enumerate(loops):
        table[number] = _reports._LoaderRecord(name, accelerated, notes)
        progress = Progress(torch.empty(0), began=5.0, ended=seconds and 5.0 + seconds, waited=waited)
        progress.startup = sum(startup)
        table[number].progress.append(progress)
    monkeypatch.setattr(_reports, "_records", table)
    assert _reports.summary() == text


TRANSFORMS = {
    "one": (v2.Compose([v2.ToImage()]), "decode + ToImage", "decode + ToImage"),
    "many": (
        v2.Compose([v2.Resize(20), v2.RandomCrop(16), v2.RandomHorizontalFlip(), v2.ToImage()]),
        "decode + Resize + RandomCrop + RandomHorizontalFlip + ToImage", "decode + Resize + ... + ToImage",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_steps_have_the_names_and_the_line_of_the_user(tmp_path: Path, name: str) -> None:
    transform, all_names, few_names = TRANSFORMS[name]
    write_images(tmp_path)
    loader = DataLoader(ImageFolder(str(tmp_path), transform), batch_size=1, num_workers=2)
    line = f"test_reports.py:{inspect.currentframe().f_lineno - 1}"  # type: ignore[union-attr]
    list(loader)
    explained, stats = loader.explain(), loader.stats()
    assert explained.splitlines()[-3:] == [
        f"For each image, in 2 threads ({line}):",
        "  1. read ImageFolder",
        f"  2. {all_names}",
    ]
    assert {(each.operator, each.line) for each in stats.pipeline.operators} == {
        ("read ImageFolder", line),
        (few_names, line),
    }
    for text in (explained, str(stats)):
        assert "dataloader.py" not in text and not re.search(r"\b_[a-z]|object at|obj\.\.\.", text)
    assert "read by torchdali" not in str(stats) and stats.startup > 0 and stats.waited >= stats.startup
    loader.close()


def test_steps_before_and_after_a_cache(tmp_path: Path) -> None:
    write_images(tmp_path)
    transform = v2.Compose([v2.Resize(20), v2.RandomCrop(16), v2.ToImage()])
    loader = DataLoader(ImageFolder(str(tmp_path), transform), batch_size=4, num_workers=1, cache="1MB")
    list(loader)
    fixed, random = "decode, and transforms before the first random one", "transforms from the first random one on"
    assert loader.explain().splitlines()[-4:] == [
        "  1. read ImageFolder",
        f"  2. {fixed}",
        "  3. cache='1MB'",
        f"  4. {random}",
    ]
    assert {each.operator for each in loader.stats().pipeline.operators} == {
        f"read ImageFolder + {fixed} + cache",
        random,
    }
    loader.close()


def test_a_cache_that_is_set_later_takes_effect_in_the_next_loop(tmp_path: Path) -> None:
    write_images(tmp_path)
    loader = DataLoader(
        ImageFolder(str(tmp_path), v2.Compose([v2.Resize((20, 20)), v2.ToImage()])), batch_size=4, num_workers=1
    )
    list(loader)
    assert not loader.stats().pipeline.caches
    loader.cache = "1MB"
    list(loader)
    assert loader.stats().pipeline.caches
    loader.close()


def test_the_missing_fast_path_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path)
    missing = native_status()._replace(library=None)
    monkeypatch.setattr(_notes, "native_status", lambda: missing)
    monkeypatch.setattr("torchdali.dataloader._plans.native_status", lambda: missing)
    for dataset in (ImageFolder(str(tmp_path), v2.Compose([v2.Resize((20, 20)), v2.ToImage()])), Own(int)):
        loader = DataLoader(dataset, batch_size=4)
        assert str(loader.notes).count("the fast path isn't built") == 1 and LAZY not in str(loader.notes)
        list(itertools.islice(loader, 1))
        assert str(loader.stats()).count("the fast path isn't built") == 1
    assert "fast path" not in str(DataLoader(TensorDataset(torch.arange(4))).notes)


def test_stats_explain_why_a_loader_is_not_accelerated() -> None:
    loader = DataLoader(Own(int), batch_size=2)
    list(loader)
    assert "\nnot accelerated: Own" in str(loader.stats()) and loader.explain() == str(loader.notes)


REPORTS = {
    "more workers": (
        {1: 10.0, 2: 18.0, 4: 20.0},
        1,
        0.02,
        4,
        "Write: DataLoader(..., num_workers=4)  # train.py:3, 2.0 times as fast",
    ),
    "the smaller one": (
        {1: 10.0, 2: 19.5, 4: 20.0},
        1,
        0.02,
        2,
        "Write: DataLoader(..., num_workers=2)  # train.py:3, 1.9 times as fast",
    ),
    "the present one": (
        {1: 10.0, 2: 19.5, 4: 20.0},
        4,
        0.02,
        4,
        "Keep num_workers=4; no other number is clearly faster.",
    ),
    "within noise": ({1: 10.0, 2: 11.0}, 1, 0.15, 1, "Keep num_workers=1; no other number is clearly faster."),
    "noise": (
        {1: 10.0, 2: 11.0},
        1,
        0.5,
        1,
        "Keep num_workers=1; no other number is clearly faster. Stop other programs and measure again to see more.",
    ),
}


@pytest.mark.parametrize(("rates", "present", "noise", "best", "line"), REPORTS.values(), ids=REPORTS)
def test_tuning_prints_a_line_to_write(
    rates: dict[int, float], present: int, noise: float, best: int, line: str
) -> None:
    report = _reports.WorkerReport(rates, present, noise, "train.py:3")
    assert report.best == best
    *_, said, last = str(report).splitlines()
    assert said == f"Measurements of one setting differ by up to {noise:.0%}." and last == line
    assert f"num_workers={present}: {rates[present]:.1f} batches/s  (now)" in str(report)


def test_each_number_is_measured_several_times_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = iter([10.0, 20.0, 30.0, 12.0, 11.0, 24.0])
    asked: list[int] = []
    monkeypatch.setattr(_reports, "_measure_rate", lambda loader, seconds: next(rates))

    class Measured:
        def __init__(self, number: int) -> None:
            asked.append(number)

        def close(self) -> None:
            closed.append(self)

    closed: list[Any] = []
    report = _reports.measure_workers(Measured, 1, 6.0, [2], "train.py:3")
    assert asked == [1, 2, 2, 1, 1, 2] and len(closed) == 6
    assert report.rates == {1: 11.0, 2: 24.0} and report.noise == pytest.approx(0.25)


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
def test_a_script_ends_with_the_summary(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "torchdali", "run", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    (line,) = (each for each in done.stderr.splitlines() if each.startswith("torchdali run: "))
    expected = "torchdali run: 2 of 3 loaders accelerated (TensorDataset); not accelerated: Odd is an iterable dataset; the loops waited "
    assert line.startswith(expected)
    assert re.search(
        r" s \(\d+%\) for data(, [\d.]+ s of it for start-up)?$", line
    )  # the second part on a slow machine
