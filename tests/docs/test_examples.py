"""Every example runs on small data; the distributed one also crashes and continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory):
    """Two classes of 24 images: dark red and bright blue, with noise."""
    root = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(1)
    for name, color in (("blue", (60, 80, 220)), ("red", (180, 40, 30))):
        (root / name).mkdir()
        for i in range(24):
            noise = random.normal(0, 25, (70 + i, 90, 3))
            pixels = np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{i:02}.jpg")
    return root


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}, check=False,
    )  # fmt: skip
    return done


def losses(output):
    return [float(line.split("loss ")[1].split(",")[0]) for line in output.splitlines() if "loss" in line]


@pytest.mark.parametrize("script", ["train_imagefolder.py", "lightning_style.py"])
def test_training_scripts_learn(script, image_folder):
    done = run(f"examples/{script}", image_folder, "--epochs", 4)
    assert done.returncode == 0, done.stderr
    found = losses(done.stdout)
    assert len(found) == 4 and found[-1] < found[0]


def torchrun(image_folder, log, *more):
    log.mkdir(exist_ok=True)
    return run(
        "-m", "torch.distributed.run", "--nproc-per-node", 2,
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
        "examples/train_ddp.py", image_folder, "--batch-size", 5, "--epochs", 3, "--batch-log", log, *more,
    )  # fmt: skip


def lines(log, rank):
    return [json.loads(line) for line in (log / f"rank-{rank}.jsonl").read_text().splitlines()]


def test_two_processes_share_the_epoch_and_continue_after_a_crash(image_folder, tmp_path):
    whole = tmp_path / "whole"
    done = torchrun(image_folder, whole)
    assert done.returncode == 0, done.stderr
    for epoch in range(3):
        seen = [
            i
            for rank in (0, 1)
            for line in lines(whole, rank)
            if line["epoch"] == epoch
            for i in line["samples"]
        ]
        assert sorted(seen) == list(range(48)), "the shards of an epoch are disjoint and complete"
    first, last = (np.mean([line["loss"] for line in lines(whole, 0) if line["epoch"] == e]) for e in (0, 2))
    assert last < first

    broken, saved = tmp_path / "broken", ("--checkpoint", tmp_path / "saved", "--save-every", 3)
    crashed = torchrun(image_folder, broken, *saved, "--crash-at", 7)
    assert crashed.returncode != 0
    resumed = torchrun(image_folder, broken, *saved, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    for rank in (0, 1):
        expected = {line["step"]: (line["samples"], line["checksum"]) for line in lines(whole, rank)}
        steps = [line["step"] for line in lines(broken, rank)]
        assert steps == [*range(7), *range(6, len(expected))], "it goes on after the last checkpoint"
        for line in lines(broken, rank):
            assert (line["samples"], line["checksum"]) == expected[line["step"]], "the data is bit-equal"


THREADS = """
import os, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print("threads left:", [name for name in names if "gloo" in name])
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="names of threads are read from Linux's /proc")
def test_no_thread_of_the_process_group_outlives_training(image_folder, tmp_path):
    """A thread of gloo that still holds Python objects sometimes aborts the interpreter at its exit."""
    (tmp_path / "threads.py").write_text(THREADS)
    done = run(
        "-m", "torch.distributed.run", "--nproc-per-node", 1, "--standalone", tmp_path / "threads.py",
        "examples/train_ddp.py", image_folder, "--epochs", 1, "--size", 16,
    )  # fmt: skip
    assert "threads left: []" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("script", "place", "message"),
    [
        *[(f"{name}.py", "no/such/folder", "no such folder: 'no/such/folder'")
          for name in ("train_imagefolder", "lightning_style", "proxy_imagefolder", "train_ddp")],
        ("train_ddp.py", ".", "torchrun"),
    ],
)  # fmt: skip
def test_wrong_calls_are_reported_in_one_line(script, place, message):
    done = run(f"examples/{script}", place)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]


def test_training_on_ray(image_folder):
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    done = run(
        "examples/train_ray.py", image_folder, "--epochs", 4, "--size", 32, "--batch-size", 8, "--threads", 1, RAY_worker_niceness="0"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = losses(done.stdout)
    assert len(found) == 4 and found[-1] < found[0]


def test_directions_are_learned_from_clips():
    pytest.importorskip("av", reason="the extra `video` is not installed")
    done = run("examples/video_clips.py")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert float(last.split("accuracy ")[1].split()[0]) >= 0.9, done.stdout


def test_digits_are_learned_from_audio():
    done = run("examples/speech_digits.py", "--epochs", 15)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1].split()[1].rstrip("%")) > 80
