"""Compare torchdali, the real DALI and DataLoader on a folder of images: the main benchmark.

``python -m benchmarks.imagenet DIR`` runs the sides in alternation, each round of a side in a fresh
process, on the same files in a warm page cache with the same number of threads or workers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from . import photos, report, rounds
from .job import PIPELINES, SIDES, Job, Measurement

PHOTO_BATCH = 16
PHOTO_COUNT = 32


def _choose_from(choices: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def names(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        if unknown := set(found) - set(choices):
            raise argparse.ArgumentTypeError(f"{sorted(unknown)}: not among {', '.join(choices)}")
        return found

    return names


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imagenet", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR", help="a folder with one folder a class")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40, help="timed batches a round")
    parser.add_argument("--warmup", type=int, default=10, help="batches before the clock starts")
    parser.add_argument("--batch", type=int, default=64, help=f"photo: at most {PHOTO_BATCH}")
    parser.add_argument("--threads", type=int, default=2, help="threads, or worker processes")
    for option, choices in (("--pipelines", PIPELINES), ("--sides", SIDES)):
        parser.add_argument(option, type=_choose_from(choices), default=choices, metavar="A,B,...")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    return parser.parse_args(argv)


def _available(sides: tuple[str, ...]) -> tuple[str, ...]:
    missing = {side: package for side in sides if (package := rounds.missing(side))}
    for side, package in missing.items():
        print(f"{side}: left out, {package} is not installed", file=sys.stderr)
    return tuple(side for side in sides if side not in missing)


def _job(side: str, pipeline: str, root: Path, options: argparse.Namespace) -> Job:
    large = pipeline == "photo"
    return Job(
        side,
        pipeline,
        str(root),
        min(options.batch, PHOTO_BATCH) if large else options.batch,
        options.threads,
        max(1, options.warmup // 4) if large else options.warmup,
        (max(1, options.batches // 4) if large else options.batches,),
    )


def _measure(pipeline: str, root: Path, options: argparse.Namespace) -> list[Measurement]:
    jobs = [_job(side, pipeline, root, options) for side in options.sides]
    rounds.warm_page_cache(root)
    measurements = []
    for measurement in rounds.alternate(jobs, options.rounds):
        figures = f"{measurement.rate:.0f}/s, {measurement.cpu_ms:.2f} CPU ms, {measurement.cores:.2f} cores"
        load = f"load {os.getloadavg()[0]:.1f}"
        print(f"{pipeline} {measurement.round} {measurement.side}: {figures}, {load}", file=sys.stderr)
        measurements.append(measurement)
    return measurements


def machine() -> str:
    """The machine and how busy it is, in one line."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, load {load}"


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark and print its tables."""
    options = _arguments(argv)
    options.root = options.root.resolve()
    options.sides = _available(options.sides)
    everything: list[Measurement] = []
    print(f"{machine()}; {options.threads} threads or workers, {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        for pipeline in options.pipelines:
            root = options.root
            if pipeline == "photo":
                root = Path(folder)
                photos.make(options.root, root, PHOTO_COUNT)
            measurements = _measure(pipeline, root, options)
            everything += measurements
            print(f"\n## {pipeline}\n\n{report.tables(measurements)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(measurement) for measurement in everything], indent=1))


if __name__ == "__main__":
    main()
