"""The example and the benchmark of the proxy run, on generated images."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.helpers import pages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Reddish and bluish noise, 16 images each."""
    numbers = np.random.default_rng(0)
    for name, color in ("red", (120, 20, 20)), ("blue", (20, 20, 120)):
        (tmp_path / name).mkdir()
        for i in range(16):
            noise = numbers.integers(0, 100, (40 + i, 50, 3))
            image = PIL.Image.fromarray((noise + np.array(color)).astype(np.uint8))
            image.save(tmp_path / name / f"{i}.jpg")
    return tmp_path


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_the_example_of_the_page_is_a_script_for_spawned_workers(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "proxy.md").read_text(encoding="utf-8")
    script = tmp_path / "script.py"
    start = 'import multiprocessing\nif __name__ == "__main__":\n    multiprocessing.set_start_method("spawn")\n'
    script.write_text(start + pages.blocks(page)[0].code + '\nif __name__ == "__main__":\n    print("done")\n')
    assert _run(str(script)) == "done\n"


@pytest.mark.slow
def test_the_example_learns(folder: Path) -> None:
    options = ["--epochs", "4", "--batch-size", "8", "--size", "16", "--threads", "1"]
    script = str(ROOT / "examples" / "proxy_imagefolder.py")
    lines = _run(script, str(folder), *options).splitlines()
    losses = [float(line.split()[-1]) for line in lines]
    assert len(losses) == 4
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.slow
def test_the_benchmark_measures_each_side(folder: Path) -> None:
    sizes = ["--batch", "4", "--batches", "5", "--warmup", "1", "--rounds", "1"]
    text = _run(
        "-m", "benchmarks.proxy", str(folder), *sizes, "--sides", "proxy", "plain", "loader"
    )
    table = text.splitlines()[-3:]
    assert [line.split()[0] for line in table] == ["proxy", "plain", "loader"]
    assert all(float(line.split()[1]) > 0 for line in table)
