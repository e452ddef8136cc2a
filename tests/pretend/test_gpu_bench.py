"""The GPU benchmark: its parts on a mock GPU, and the command without a GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from benchmarks import device_host
from benchmarks import gpu as developers
from tests.pretend import accelerator
from tests.pretend.pictures import write_images
from torchdali import cli

SMALL = developers.Sizes(batch=4, batches=2, threads=2, size=24, copied=1 << 10, spin=0)
ELSEWHERE = {"launches": "counts what torch's profiler sees of CUDA", "path": "test_nvjpeg.py", "operators": "below"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("pictures"), 12, side=40)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in developers.ALL if name not in ELSEWHERE])
def test_parts(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: None)  # autograd queries the driver for its devices
    with accelerator() as pretended:
        found = dict(developers.ALL[name].run(folder, SMALL))
        assert not pretended.report.races
    assert found
    assert not [k for k, v in found.items() if "levels" in k and v > 1], found
    assert not found.get("wrong")


@pytest.mark.slow
def test_operators(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return all differing operators on the mock, where the outermost rows of random windows differ (see test_operators)."""
    monkeypatch.chdir(tmp_path)
    with accelerator():
        found = dict(developers.operators(folder, SMALL))
    assert found.pop("calls") > 200
    wrong = {call: v for call, v in found.items() if "random_resized_crop" not in call and not (isinstance(v, float) and v <= 1)}
    assert not wrong
    assert not list(tmp_path.iterdir())  # `dump_image` writes files


def test_the_time_of_the_host_is_measured() -> None:
    found = device_host.measure(4, rounds=2)
    assert set(found) == {"with an engine", "without"}


def test_a_missing_gpu_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", str(tmp_path), "--gpu", "--output", str(tmp_path / "out")]) == 1
    assert developers.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "torch finds no CUDA device, so there is nothing to measure\n" * 2
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_results_before_a_failure_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that hangs, one that crashes, and one that works."""
    script = tmp_path / "parts_for_test.py"
    script.write_text(
        "import sys\n"
        "print('{\"a\": 1}', flush=True)\n"
        "if sys.argv[2] == 'hangs': import threading; threading.Event().wait()\n"
        "if sys.argv[2] == 'crashes': sys.exit('no such luck')\n"
        "print('{\"a\": 1, \"b\": 2}')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    parts = {name: developers.Measurement(list, 60) for name in ("works", "crashes")} | {"hangs": developers.Measurement(list, 8)}
    out = tmp_path / "found.jsonl"
    assert developers.measure(tmp_path, out, parts, "parts_for_test") == 1
    found = [json.loads(line) for line in out.read_text().splitlines()]
    for each in found:
        del each["seconds"]
    assert found == [
        {"part": "works", "a": 1, "b": 2},
        {"part": "crashes", "a": 1, "failed": "no such luck\n"},
        {"part": "hangs", "a": 1, "failed": "took more than 8 s"},
    ]


def test_each_part_has_its_limit() -> None:
    assert set(developers.PARTS) <= set(developers.ALL)
    assert sum(part.limit for part in developers.ALL.values()) <= 900


@pytest.mark.slow
def test_the_doctor_reports_the_used_parts(capsys: pytest.CaptureFixture[str]) -> None:
    with accelerator(devices=2):
        cli.main(["doctor"])
    printed = capsys.readouterr().out
    for line in (r"  ok  cuda:0 ", r"  ok  cuda:1 ", r".*kernels for batches .*Triton", r".*mixed decoding .*threads"):
        assert re.search(f"^{line}", printed, re.MULTILINE), printed
