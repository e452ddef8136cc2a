"""The benchmarks: their arithmetic, and a run of every side."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from benchmarks import imagenet, memory, peers, photos, processes, report, rounds
from benchmarks.job import PIPELINES, Job, Measurement, Snapshot


def _answer(side: str, number: int, wall: float, cpu: float) -> Measurement:
    look = Snapshot(samples=1000, wall=wall, cpu=cpu, rss=10.0, pss=5.0)
    return Measurement(side, "train", number, (look,), 20.0 + number, 0.1, {"torch": 1.0}, {})


ROUNDS = [
    _answer("ours", 0, 1.0, 1.0),
    _answer("peer", 0, 2.0, 3.0),
    _answer("ours", 1, 4.0, 2.0),
    _answer("peer", 1, 4.0, 2.0),
]


def test_rate_and_cpu_time() -> None:
    answer = _answer("ours", 0, wall=4.0, cpu=2.0)
    assert answer.rate == 250
    assert answer.cpu_ms == 2


def test_ratios_compare_sides_within_a_round() -> None:
    """A machine that is slow for a whole round must not move the ratio."""
    assert report.ratios(ROUNDS, "ours", "peer", lambda a: a.rate) == [2.0, 1.0]
    assert report.ratios(ROUNDS[::-1], "peer", "ours", lambda a: a.cpu_ms) == [3.0, 1.0]


def test_ratios_skip_rounds_without_a_peer() -> None:
    assert report.ratios(ROUNDS[:3], "ours", "peer", lambda a: a.rate) == [2.0]


def test_a_ratio_to_zero_is_infinite() -> None:
    unseen = [_answer("ours", 0, 1.0, 1.0), _answer("peer", 0, 1.0, 0.0)]
    assert report.ratios(unseen, "ours", "peer", lambda a: a.cpu_ms) == [math.inf]


def test_tables_show_median_and_spread() -> None:
    lines = report.tables(ROUNDS).splitlines()
    assert [cell.strip() for cell in lines[2].split("|")][1:6] == [
        "ours",
        "625 (250-1000)",
        "1.50 (1.00-2.00)",
        "0.75",
        "21",
    ]
    assert [cell.strip() for cell in lines[-1].split("|")][1:4] == [
        "ours / peer",
        "1.50 (1.00-2.00)",
        "2.00 (1.00-3.00)",
    ]


def test_results_are_sent_as_json() -> None:
    job = Job("dali", "train", "images", 64, 2, 1, (10, 20))
    assert Job.from_json(job.to_json()) == job
    assert Measurement.from_json(ROUNDS[0].to_json()) == ROUNDS[0]


@pytest.fixture
def child() -> Iterator[int]:
    """A process that has used a quarter of a second of CPU and 64 MiB, and waits."""
    program = (
        "import time; block = bytearray(b'x') * (64 << 20)\n"
        "while time.process_time() < 0.25: pass\n"
        "print(flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_workers_count(child: int) -> None:
    family = processes.family(os.getpid())
    assert child in family
    assert processes.cpu_seconds([child]) >= 0.25
    assert processes.rss([child]) > 64
    assert processes.peak_rss([child]) >= processes.rss([child])
    assert processes.pss([child]) > 64
    both = processes.rss([os.getpid(), child])
    assert both == pytest.approx(processes.rss([os.getpid()]) + processes.rss([child]), rel=0.01)


def test_process_time_is_finer_than_a_clock_tick() -> None:
    here = [os.getpid()]
    times = {processes.cpu_seconds(here) for _ in range(100)}
    assert len(times) == 100
    assert processes.cpu_seconds(here) == pytest.approx(time.process_time(), rel=0.01)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Twelve small JPEG files of two classes."""
    rng = np.random.default_rng(0)
    for number in range(12):
        folder = tmp_path / "images" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (60 + number, 80, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return tmp_path / "images"


@pytest.mark.slow
def test_photos_have_twelve_megapixels(images: Path, tmp_path: Path) -> None:
    photos.make(images, tmp_path / "photos", 2)
    made = sorted((tmp_path / "photos").rglob("*.jpg"))
    assert [path.parent.name for path in made] == ["class0", "class1"]
    assert all(PIL.Image.open(path).size == (4000, 3000) for path in made)


RUNS = [(side, pipeline) for side in ("torchdali", "dali") for pipeline in PIPELINES] + [
    ("loader_tensor", "decode"),
    ("loader_tensor", "val"),
    ("loader_pil", "train"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("side", "pipeline"), RUNS)
def test_every_side_runs_every_pipeline(images: Path, side: str, pipeline: str) -> None:
    if package := rounds.missing(side):
        pytest.skip(f"the side {side} needs {package}: install the extra 'bench'")
    answer = rounds.run(Job(side, pipeline, str(images), 4, 2, 1, (2, 3)), 7)
    assert (answer.side, answer.pipeline, answer.round) == (side, pipeline, 7)
    assert [look.samples for look in answer.snapshots] == [8, 12]
    assert answer.rate > 0
    assert answer.peak_rss >= 0.99 * answer.snapshots[-1].rss > 0  # the kernel updates the two counters at different times


@pytest.mark.slow
def test_a_failing_side_reports_the_reason(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"loader_pil/train failed:(.|\n)*FileNotFoundError"):
        rounds.run(Job("loader_pil", "train", str(tmp_path), 4, 2, 1, (1,)))


@pytest.mark.slow
def test_the_command_prints_tables(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = ["--rounds=2", "--batches=2", "--warmup=1", "--batch=4"]
    imagenet.main([str(images), *counts, "--pipelines=train", "--sides=loader_pil,loader_tensor"])
    printed = capsys.readouterr().out
    assert "## train" in printed
    assert "loader_pil / loader_tensor" in printed


@pytest.mark.slow
def test_memory_prints_growth(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory.main([str(images), "--side=loader_tensor", "--batch=4", "--at", "1", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["batch 1", "batch 2"]
    assert "+0.0 %" in lines[0]


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        imagenet.main(["images", "--sides=dali,tensorflow"])
    assert "tensorflow" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("workload", peers.WORKLOADS)
@pytest.mark.parametrize("side", ["torchdali", "DataLoader, torchvision"])
def test_peers_deliver_batches(side: str, workload: str, tmp_path: Path) -> None:
    for number in range(4):
        PIL.Image.fromarray(np.full((240, 300, 3), 60 * number, np.uint8)).save(tmp_path / f"{number}.jpg")
    command = [sys.executable, "-m", "benchmarks.peers", str(tmp_path), "--batch=2", "--threads=1", "--side", side, "--workload", workload]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=200, check=True)
    rate, cpu = json.loads(done.stdout)
    assert rate > 0 and 0 < cpu < 1000
