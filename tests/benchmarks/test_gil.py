"""The GIL in the workers of a pipeline that shares images with an engine: how long it is held, and how often it is released."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from benchmarks import device_host, pipelines
from tests.helpers.inside import decodes_by_hardware
from tests.pretend.pictures import write_images
from torchdali.execute import hardware_decoding, thread_pool
from torchdali.execute.compiled_chain import ChunkMode
from torchdali.kernels.native import library

ROOT = Path(__file__).resolve().parents[2]
CHUNK, BATCH = 32, 256
LEAST = re.compile(rf"percentile 10: held (\d+) us, .* ([\d.]+) releases; {CHUNK} samples a call")
HELD, RELEASES, CALLS = 15, 0.2, 7  # per image: microseconds with the GIL, releases, function calls

pytestmark = pytest.mark.skipif(
    library() is None or sys.platform != "linux" or not any(map(shutil.which, ("cc", "gcc", "clang")))
    or bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="needs the library in C, a compiler, Linux and a GIL",
)  # fmt: skip


def _measure(folder: Path) -> tuple[int, float]:
    """Return the time with the GIL and the number of releases per image."""
    command = [sys.executable, "-m", "benchmarks.gil", "train", str(folder), "--mixed", "--engine", "--samples", "1024", "--batch", str(BATCH)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    found = LEAST.search(done.stdout)
    assert found is not None, done.stdout + done.stderr
    return int(found[1]), float(found[2])


@pytest.mark.slow
def test_a_chunk_holds_the_gil_for_few_microseconds(tmp_path: Path) -> None:
    """One C call reads a chunk, another divides, decodes and copies it; a busy machine gets three tries."""
    folder = write_images(tmp_path, 256)
    for _ in range(3):
        held, releases = _measure(folder)
        assert releases <= RELEASES
        if held <= HELD:
            break
    else:
        pytest.fail(f"the GIL is held for {held} us an image, at most {HELD} are allowed")


def test_no_python_function_is_called_per_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python only looks at the file name. The test counts calls, so it doesn't depend on the machine's load."""
    counts: list[int] = []
    work = thread_pool.Job.work

    def counted(job: Any) -> None:
        run = job.run

        def one(i: int) -> None:
            count = 0

            def note(frame: Any, event: str, argument: Any) -> None:
                nonlocal count
                count += event in ("call", "c_call")

            sys.setprofile(note)
            try:
                run(i)
            finally:
                sys.setprofile(None)
            if getattr(getattr(run, "division", None), "mode", None) is ChunkMode.FUSED:
                counts.append(count)

        job.run = one
        work(job)

    monkeypatch.setattr(thread_pool.Job, "work", counted)
    monkeypatch.setattr(hardware_decoding, "open_engine", lambda *_: device_host.Engine())
    decodes_by_hardware(monkeypatch)
    batch = BATCH // 2
    root = str(write_images(tmp_path, batch))
    with pipelines.build("torchdali", "train", root, batch_size=batch, num_threads=1, num_processes=1, seed=1, mixed=True) as pipe:
        for _ in range(4):
            pipe.run()
    assert len(counts) >= 2 * batch // CHUNK
    assert statistics.median(counts) <= CALLS * CHUNK
