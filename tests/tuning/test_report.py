"""Sentences about bottlenecks, and the suggested line."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from torchdali import pipeline_def
from torchdali.tuning.machine import TimedRun
from torchdali.tuning.report import Report, describe_bottleneck, format_call
from torchdali.tuning.search import Comparison
from torchdali.tuning.usage import Usage

DECODING = (("decoders.image", "a.py:3", 0.7), ("resize", "a.py:4", 0.2), ("readers.file", "a.py:2", 0.1))
READING = (("readers.file", "a.py:2", 0.9), ("decoders.image", "a.py:3", 0.1))
RESIZING = (("resize", "a.py:4", 0.8), ("external_source", "a.py:2", 0.2))
SPINNING = {"own": 6.0, "all": 19.9}  # four programs and a loader on two cores, in ten seconds


def _run(waited: float = 1.0, own: float = 19.0, all: float | None = 19.5, from_disk: int = 0, operators: Any = DECODING, threads: int = 2) -> TimedRun:
    return TimedRun({"num_threads": threads, "num_processes": 1}, 1000.0, Usage(10.0, own, all, 1000, from_disk), waited, operators, 0, ())


@pytest.mark.parametrize(
    ("run", "step", "load", "expected"),
    [
        (_run(), 0, 0, "Limited by decoding: 1.9 of 2 cores are busy, and decoders.image (a.py:3) takes 70% of the operators' time."),
        (_run(operators=RESIZING), 0, 0, "Limited by augmentation: 1.9 of 2 cores are busy, and resize (a.py:4) takes 80%"),
        (_run(operators=READING), 0, 0, "Limited by reading: 1.9 of 2 cores are busy"),
        (_run(own=3, all=4, operators=READING, from_disk=900), 0, 0, "Limited by the disk: 90% of the operators' time, and 0.3 of 2 cores are busy. Reading is faster with more threads than cores: try --cores 8."),
        (_run(own=3, all=4, operators=READING, from_disk=900, threads=1), 0, 0, "Limited by the disk: 90% of the operators' time, and 0.3 of 2 cores are busy."),
        (_run(own=3, all=4, operators=READING), 0, 0, "Limited by reading: 90% of the operators' time, and 0.3 of 2"),
        (_run(own=10, all=11), 0, 0, "Limited by threads that wait for each other: 1.0 of 2 cores are busy"),
        (_run(own=9, all=10, threads=1), 0, 0, "Limited by decoding: 0.9 of 2 cores are busy"),
        (_run(waited=0.01, own=5, all=6), 0.02, 0, "Limited by the training step of 20 ms: the loop waited 1% of the time for the loader."),
        (_run(waited=0.3), 0.02, 0, "Limited by decoding"),
        (_run(**SPINNING), 0, 0, "Limited by other programs, which used 1.4 of 2 cores."),
        (_run(**SPINNING, waited=0.5), 0.02, 0, "Limited by other programs, which used 1.4 of 2 cores."),
        (_run(**SPINNING, waited=0.01), 0.02, 0, "The loader keeps up with a step of 20 ms even so: the loop waited 1% of the time"),
        (_run(own=10, all=None), 0, 4.0, "Limited by other programs, which used 4.0 of 2 cores."),
        (_run(own=19, all=None), 0, 0.1, "Limited by decoding"),
        (_run(own=2, all=6, waited=0.01), 0.02, 0, "Limited by the training step"),  # other programs, but free cores remain
        (_run(operators=()), 0, 0, "nothing takes 0%"),
    ],
)  # fmt: skip
def test_limits(run: TimedRun, step: float, load: float, expected: str) -> None:
    said = describe_bottleneck(run, 2, step, load)
    assert expected in said
    if run.usage.all == SPINNING["all"]:
        assert "the training step" not in said


def test_several_measurements_count_as_one() -> None:
    slow = dataclasses.replace(_run(waited=0.2), rate=10.0)
    merged = TimedRun.merge([_run(), slow, _run(operators=RESIZING)])
    assert merged.rate == 1000.0
    assert merged.usage == Usage(30.0, 57.0, 58.5, 3000, 0)
    assert merged.waited == pytest.approx(2.2 / 3)
    assert [name for name, _, _ in merged.operators] == ["decoders.image", "resize", "readers.file", "external_source"]
    assert merged.operators[0][2] == pytest.approx(1.4 / 3)


@pipeline_def
def training(root: Any, size: int = 224) -> None:
    """Trained with."""


def test_the_printed_call_has_passed_and_changed_arguments() -> None:
    made = functools.partial(training, "images", batch_size=64, num_threads=2)
    assert format_call(made, {}) == "training('images', batch_size=64, num_threads=2)"
    changed = "training('images', batch_size=64, num_threads=8, num_processes=4)"
    assert format_call(made, {"num_threads": 8, "num_processes": 4}) == changed
    assert format_call(functools.partial(made, size=32), {}) == "training('images', batch_size=64, num_threads=2, size=32)"
    assert format_call(functools.partial(training, list(range(99))), {"num_threads": 1}) == "training(..., num_threads=1)"


def test_a_report_reads_from_top_to_bottom() -> None:
    start, best = {"num_threads": 1}, {"num_threads": 2}
    comparisons = (Comparison(best, (0.5, 0.6)), Comparison({"num_threads": 4}, ()), Comparison({"num_threads": 3}, (0.0,)))
    report = Report(
        "training", start, best, best, "training(num_threads=2)", 123.4, comparisons, Comparison(best, (0.5, 0.5, 0.5)),
        Comparison({**best, "scaled_decode": True}, (0.2, 0.2, 0.2)), "Limited by decoding.", ("A note.",),
    )  # fmt: skip
    assert str(report).splitlines() == [
        "training: settings, and their gain over the fastest earlier settings",
        "  num_threads=1  unchanged",
        "  num_threads=2  +73%, +-5% (2 times)",
        "  num_threads=4  cannot be used",
        "  num_threads=3  +0% (1 times)",
        "Fastest: num_threads=2, 123 samples/s.",
        "Measured once more, num_threads=2 compared with the current settings: +65%, +-0% (3 times).",
        "With scaled_decode=True, which changes pixels slightly: +22%, +-0% (3 times).",
        "Limited by decoding.",
        "A note.",
        "Write: training(num_threads=2)",
    ]
    unchanged = dataclasses.replace(report, best=start, changes={}, line="")
    assert str(unchanged).splitlines()[-1] == "Nothing to change: keep the settings"
