"""Tuning of real pipelines; the measured values don't matter."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.inside import without_alias
from torchdali import Loader, cli, fn, pipeline_def, tuning
from torchdali.tuning import machine
from torchdali.tuning.machine import Machine, TimedRun
from torchdali.tuning.search import Settings
from torchdali.tuning.usage import Usage

ROOT = Path(__file__).resolve().parents[2]
IMAGES = [np.full((8, 8, 3), 9 * k, np.uint8) for k in range(4)]
SCRIPT = """
import numpy as np
from torchdali import Loader, Pipeline, fn, pipeline_def

IMAGES = [np.full((64, 64, 3), 9 * k, np.uint8) for k in range(16)]

@pipeline_def
def training(angle=90.0):
    return fn.rotate(fn.external_source(source=lambda: IMAGES, batch=True, layout="HWC"), angle=angle)

loader = Loader(training(batch_size=16, num_threads=1), size=160)
plain = Pipeline(batch_size=1, num_threads=1)
"""

OWN = """
import numpy as np
from torchdali import fn, operator, pipeline_def
from torchdali.tuning.machine import Machine
import torch

@operator(pure=True)
def inverted(image: torch.Tensor, /) -> torch.Tensor:
    return 255 - image

IMAGES = [np.full((64, 64, 3), 9 * k, np.uint8) for k in range(16)]

@pipeline_def(batch_size=16)
def training():
    return fn.rotate(fn.inverted(fn.external_source(source=lambda: IMAGES, batch=True, layout="HWC")), angle=30.0)

measure = Machine(training)
rates = [measure({"num_threads": 2, "num_processes": count}) for count in (2, 3, 2)]
measure.close()
print(*[rate is not None for rate in rates])
print(measure.refusals)
"""


@pipeline_def
def turned(angle: float = 90.0, source: Any = lambda: IMAGES) -> Any:
    return fn.rotate(fn.external_source(source=source, batch=True, layout="HWC"), angle=angle)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.0)


class Pretence(Machine):
    """Simulate that more threads are faster, and processes are not; no pipeline is created."""

    def __call__(self, settings: Settings) -> float | None:
        processes = settings["num_processes"]
        rate = 100.0 * settings["num_threads"] / processes
        operators = (("decoders.image + random_resized_crop", "a.py:1", 1.0),)
        self.runs.append(TimedRun(settings, rate, Usage(1.0, 1.9, 2.0, 5_000_000, 0), 1.0, operators, 0, ("fast path: used",)))
        return rate * 2 if settings.get("scaled_decode") else rate


@pytest.fixture
def pretence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "Machine", Pretence)
    monkeypatch.setattr(tuning, "cores_here", lambda: 2)


# ---------------------------------------------------------------- measuring


@pytest.mark.usefixtures("quick")
def test_a_measurement_runs_the_pipeline_with_other_settings() -> None:
    measure = Machine(turned(batch_size=4, num_threads=1).factory)
    rate = measure({"num_threads": 2, "num_processes": 1, "prefetch_queue_depth": 3})
    (run,) = measure.runs
    assert rate == run.rate and rate > 0
    assert run.settings == {"num_threads": 2, "num_processes": 1, "prefetch_queue_depth": 3}
    assert {name for name, _, _ in run.operators} == {"rotate", "external_source"}
    assert run.memory == 3 * 4 * 8 * 8 * 3 and run.usage.wall > 0 and 0 < run.waited <= 1
    assert measure.seconds > 0 and not measure.refusals
    measure.close()


@pytest.mark.usefixtures("quick")
def test_ended_sources_are_restarted() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def epochs(batches: int) -> Any:
        return fn.external_source(source=[IMAGES] * batches, batch=True, cycle="raise", layout="HWC")

    with contextlib.closing(Machine(epochs(2).factory)) as measure:
        assert measure({"num_threads": 1})
    with contextlib.closing(Machine(epochs(0).factory)) as measure, pytest.raises(RuntimeError, match="pass cycle to external_source"):
        measure({"num_threads": 1})


@pytest.mark.usefixtures("quick")
def test_settings_that_a_pipeline_does_not_allow() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def numbers() -> Any:
        return fn.random.uniform(shape=[2])

    measure = Machine(numbers().factory)
    assert measure({"num_processes": 2}) is None
    assert measure({"num_processes": 4}) is None
    assert len(measure.refusals) == 1 and next(iter(measure.refusals)).startswith("no worker processes: ")
    assert measure({"num_processes": 1})
    measure.close()

    measure = Machine(turned(batch_size=4, num_threads=1).factory, memory=1)
    assert measure({"num_threads": 1}) is None
    assert next(iter(measure.refusals)) == "more than 0 MiB in flight: num_threads=1"
    assert not measure.runs


@pytest.mark.usefixtures("quick")
def test_two_pipelines_take_turns() -> None:
    made: list[int] = []

    def factory(**options: Any) -> Any:
        made.append(options["num_threads"])
        return turned(batch_size=4, **options)

    measure = Machine(factory)
    for threads in (2, 1, 1, 2, 3, 1, 1, 3):
        assert measure({"num_threads": threads})
    assert made == [2, 1, 3, 1]
    measure.close()
    measure({"num_threads": 1})
    assert made == [2, 1, 3, 1, 1]
    measure.close()


@pytest.mark.usefixtures("quick")
def test_measurements_wait_for_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    measure = Machine(turned(batch_size=4, num_threads=1).factory, step=0.25)
    measure({"num_threads": 1})
    assert rests.count(0.25) >= 4
    measure.close()


def test_usage_counts_processes_that_this_one_started() -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip("needs Linux's /proc")
    code = "import sys\ndata = open(sys.executable, 'rb').read()\nfor k in range(3_000_000): pass\nprint(flush=True)\ninput()"
    before = Usage.now()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used, own = Usage.now().since(before), time.process_time()
        child.communicate(b"\n")
    assert used.read > os.path.getsize(sys.executable)
    assert used.own > 0.02 and used.wall > 0 and own > 0
    assert used.all is not None and used.other_cores is not None and used.other_cores >= 0


# ---------------------------------------------------------------- results


@pytest.mark.usefixtures("pretence")
def test_the_line_to_write() -> None:
    seen: list[tuple[int, int]] = []
    report = tuning.tune(turned(30.0, batch_size=4, num_threads=1).factory, 60, progress=lambda *a: seen.append(a))
    assert report.changes == {"num_threads": 2, "num_processes": 1}
    assert report.line == "turned(30.0, batch_size=4, num_threads=2, num_processes=1)"
    assert report.start["num_threads"] == 1 and report.rate == 200
    assert report.scaled is not None and report.scaled.gain == pytest.approx(1.0)
    assert report.limit.startswith("Limited by decoding")
    assert report.notes == (
        "The files came from memory, 5 MB/s: to reach the same speed from disk, the disk must be as fast.",
        "Fast path: used.",
    )
    assert seen and all(done <= count == 60 for done, count in seen)


@pytest.mark.usefixtures("pretence")
def test_more_cores_than_there_are() -> None:
    report = tuning.tune(turned(batch_size=4, num_threads=1).factory, cores=6)
    assert report.best["num_threads"] == 6


@pytest.mark.usefixtures("pretence")
def test_the_time_is_over() -> None:
    report = tuning.tune(turned(batch_size=4, num_threads=1).factory, 0)
    assert report.changes == {}
    assert report.line == "turned(batch_size=4, num_threads=1)"
    assert report.notes[-1].startswith("There was no time to try other settings")


class Slow(Pretence):
    """A measurement takes some seconds of a clock that only measurements advance."""

    clock = 0.0
    takes = 5.0

    def __call__(self, settings: Settings) -> float | None:
        Slow.clock += self.takes
        self._spent += self.takes
        return super().__call__(settings)


@pytest.mark.parametrize(
    ("takes", "seconds", "most", "message"),
    [
        (5.0, 10.0, 10.0, "one measurement of this pipeline takes 5.0 s. Pass more than 44 seconds"),
        (5.0, 60.0, 60.0, "The time limit ended before all settings were tried"),
        (20.0, 10.0, 20.0, "It took 20 s, and not 10: one measurement of this pipeline takes 20.0 s"),
        (0.5, 60.0, 60.0, ""),
        (1.0, 8.0, 8.0, "Pass more than 9 seconds"),
        (1.0, 10.0, 10.0, "The time limit ended before all settings were tried"),
    ],
)
def test_the_search_obeys_the_time_limit(takes: float, seconds: float, most: float, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "Machine", Slow)
    monkeypatch.setattr(tuning, "cores_here", lambda: 2)
    monkeypatch.setattr(tuning, "time", types.SimpleNamespace(monotonic=lambda: Slow.clock))
    monkeypatch.setattr(Slow, "clock", 0.0)
    monkeypatch.setattr(Slow, "takes", takes)
    report = tuning.tune(turned(batch_size=4, num_threads=1).factory, seconds)
    assert Slow.clock <= most
    assert message in " ".join(report.notes) and (message or not any("time" in note for note in report.notes))


def test_a_pipeline_without_a_number_of_threads() -> None:
    with pytest.raises(ValueError, match="num_threads must be set"):
        tuning.tune(turned(batch_size=4).factory)


# ---------------------------------------------------------------- loaders and scripts


@pytest.mark.usefixtures("pretence")
def test_a_loader_is_rebuilt_with_the_settings_if_allowed() -> None:
    loader = Loader(lambda: turned(batch_size=4, num_threads=1), size=8)
    assert loader.tune().changes["num_threads"] == 2
    assert loader.pipeline.num_threads == 1
    with pytest.raises(RuntimeError, match="before this Loader is first used"):
        loader.tune(apply=True)
    loader.close()

    loader = Loader(turned(batch_size=4, num_threads=1), size=8)
    loader.tune(apply=True)
    assert loader.pipeline.num_threads == 2 and loader.pipeline.num_processes == 1
    assert len(list(loader)) == 2
    loader.close()


@pytest.mark.usefixtures("pretence")
def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    PIL.Image.fromarray(IMAGES[1]).save(tmp_path / "a" / "1.png")
    report = Loader.from_folder(tmp_path, train=True, batch_size=1, num_threads=1, num_processes=1).tune()
    assert report.line == "num_threads=2, num_processes=1"
    loader = Loader.from_folder(tmp_path, train=True, batch_size=1, prefetch_queue_depth=3, scaled_decode=True)
    assert loader.pipeline.prefetch_queue_depth == 3 and loader.pipeline.scaled_decode
    assert loader.tune().scaled is None
    loader.close()


def test_a_loader_of_a_pipeline_that_cannot_be_rebuilt() -> None:
    with cli_pipeline() as pipe, pytest.raises(RuntimeError, match="by its function under pipeline_def"):
        Loader(pipe, size=4).tune()


def cli_pipeline() -> Any:
    from torchdali import Pipeline

    return Pipeline(batch_size=1, num_threads=1)


@pytest.mark.usefixtures("pretence")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (":training", "Write: training(angle=30, batch_size=8, num_threads=2, num_processes=1)"),
        (":loader", "Write: training(batch_size=16, num_threads=2, num_processes=1)"),
        (":plain", "torchdali tune: "),
    ],
)
def test_the_command(name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    without_alias(monkeypatch)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "script.py").write_text(SCRIPT)
    given = ["angle=30", "batch_size=8", "num_threads=1"] if name == ":training" else []
    status = cli.main(["tune", f"{tmp_path / 'script.py'}{name}", *given])
    message = capsys.readouterr()
    assert status == (name == ":plain")
    assert (message.out + message.err).splitlines()[-1].startswith(expected)


@pytest.mark.slow
def test_operators_of_a_script_need_forked_processes(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("worker processes need Linux")
    (tmp_path / "script.py").write_text(OWN)
    command = [sys.executable, str(tmp_path / "script.py")]
    environment = {k: v for k, v in os.environ.items() if k != "TORCHDALI_PROCESSES"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, "True True True\n{}\n"), done.stderr


@pytest.mark.slow
def test_the_command_measures_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "torchdali", "tune", f"{tmp_path / 'script.py'}:training", "--seconds", "8", "--step", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "TORCHDALI_PROCESSES"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Limited by " in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith(("Write: training(", "Nothing to change: training("))
