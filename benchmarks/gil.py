"""CPU time with and without the GIL, a sample and a line: ``python -m benchmarks.gil train DIR``.

The share that holds the GIL limits how many threads of one process help; `benchmarks.cores` makes a forecast of it.
A small C library (`gil_clock.c`), compiled with the system's compiler, is loaded in front of the interpreter and reads
the thread's CPU clock at each release. One thread runs; medians over samples are taken segment by segment, so that a
busy machine matters less. Where caches are shared with other work, Python is colder and the medians are too high: the
10th percentile is then nearer to a quiet machine. The clock itself adds about 0.4 microseconds a release.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SOURCE = Path(__file__).with_name("gil_clock.c")
_CAPACITY = 1 << 20  # events
_MICROSECOND = 1e3  # nanoseconds


class Segment(NamedTuple):
    """CPU time of one sample between two releases, in nanoseconds, and the line that let the GIL go."""

    location: str
    held: int
    free: int


class Summary(NamedTuple):
    """Percentiles over samples, in microseconds a sample.

    Attributes:
        held: With the GIL.
        free: Without it.
        releases: How often it is let go.
        lines: By line: held before it, free at it.
        segments: A typical sample, for `benchmarks.cores`: held and free in turn.
    """

    held: float
    free: float
    releases: float
    lines: list[tuple[str, float, float]]
    segments: list[tuple[float, float]]


def library(folder: Path) -> Path:
    """Compile the clock.

    Raises:
        SystemExit: there is no compiler, or it failed.
    """
    candidates = [os.environ.get("CC"), "cc", "gcc", "clang"]
    compiler = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise SystemExit("benchmarks.gil needs a C compiler (cc, gcc or clang in PATH, or CC=...)")
    target = folder / "gil_clock.so"
    command = [compiler, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(target), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return target


def summary(samples: Sequence[Sequence[Segment]], percentile: float = 50) -> Summary:
    """Summarise samples, or calls that do several.

    A segment is known by its line, how often that line came, and the line before.
    """
    held: dict[Any, list[int]] = collections.defaultdict(list)
    free: dict[Any, list[int]] = collections.defaultdict(list)
    order: dict[Any, float] = {}
    for sample in samples:
        seen: collections.Counter[str] = collections.Counter()
        previous = "start"
        for number, segment in enumerate(sample):
            seen[segment.location] += 1
            key = (previous, segment.location, seen[segment.location])
            held[key].append(segment.held)
            free[key].append(segment.free)
            order.setdefault(key, number)
            previous = segment.location
    count = len(samples)
    lines: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0.0])
    segments = []
    for key in sorted(order, key=order.__getitem__):
        share = len(held[key]) / count
        h, f = (float(np.percentile(times[key], percentile)) * share / _MICROSECOND for times in (held, free))
        location = f"{key[0]} -> {key[1]}"
        lines[location][0] += h
        lines[location][1] += f
        segments.append((h, f))
    ranked = sorted(((p, h, f) for p, (h, f) in lines.items()), key=lambda each: -each[1])
    releases = statistics.median(len(sample) - 1 for sample in samples)
    return Summary(sum(h for h, _ in segments), sum(f for _, f in segments), releases, ranked, segments)


class _Event(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_void_p),
        ("line", ctypes.c_int64),
        ("held", ctypes.c_int64),
        ("free", ctypes.c_int64),
    )


def _trace_pipeline(
    pipeline: str, root: str, count: int, batch: int, mixed: bool, engine: bool = False
) -> tuple[list[list[Segment]], int]:
    """Run a pipeline on one thread in this process, which has the clock loaded.

    Returns:
        The segments of each call, and how many samples a call does.
    """
    clock = ctypes.PyDLL(os.environ["LD_PRELOAD"].split(":")[0])
    clock.gil_clock_room.argtypes = [ctypes.c_int64]
    clock.gil_clock_begin.restype = clock.gil_clock_end.restype = ctypes.c_int64
    clock.gil_clock_events.restype = ctypes.POINTER(_Event)
    clock.gil_clock_room(_CAPACITY)
    from torchdali.execute import thread_pool

    from .pipelines import build

    spans: list[tuple[int, int, int]] = []  # first and last event, and how many samples
    work = thread_pool.Job.work

    def trace_job(job: Any) -> None:
        run = job.run
        chunk = getattr(getattr(run, "division", None), "chunk", 1)

        def trace_chunk(i: int) -> None:
            first = clock.gil_clock_begin()
            run(i)
            spans.append((first, clock.gil_clock_end(), chunk))

        job.run = trace_chunk
        work(job)

    setattr(thread_pool.Job, "work", trace_job)  # noqa: B010  mypy does not take an assignment
    if engine:
        _mock_engine()
    pipe = build("torchdali", pipeline, root, batch_size=batch, num_threads=1, num_processes=1, seed=1, mixed=mixed)
    for _ in range(4):
        pipe.run()
    warm = len(spans)
    while sum(n for _, _, n in spans[warm:]) < count and spans[-1][1] < _CAPACITY - 100 * batch:
        pipe.run()
    events = clock.gil_clock_events()
    # A batch in eight, whose operators are timed, does samples one by one where others do several in one call.
    samples: collections.Counter[int] = collections.Counter()
    for _, _, n in spans[warm:]:
        samples[n] += n
    chunk = samples.most_common(1)[0][0]
    found = [[_segment(events[i]) for i in range(a, b)] for a, b, n in spans[warm:] if n == chunk]
    pipe.close()
    if not any(len(sample) > 1 for sample in found):
        raise SystemExit("no release of the GIL was seen: this interpreter cannot be watched by LD_PRELOAD")
    return found, chunk


def _mock_engine() -> None:
    """Let an engine that decodes nothing take its share of the images."""
    from torchdali.execute import hardware_decoding
    from torchdali.graph.rewrite import _on_device

    from .device_host import Engine

    setattr(_on_device, "is_available", lambda device: True)  # noqa: B010
    setattr(hardware_decoding, "open_engine", lambda *_: Engine())  # noqa: B010


def _segment(event: Any) -> Segment:
    location = "end"
    if event.code:
        code: Any = ctypes.cast(event.code, ctypes.py_object).value
        location = f"{os.path.basename(code.co_filename)}:{event.line} {code.co_name}"
    return Segment(location, event.held, event.free)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one pipeline and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gil", description=__doc__)
    parser.add_argument("pipeline", help="function of benchmarks.pipelines: train, val, roi, decode ...")
    parser.add_argument("root", help="folder of images, one folder a class")
    parser.add_argument("--mixed", action="store_true", help="decode for a device, in whose place the CPU is")
    parser.add_argument("--engine", action="store_true", help="with --mixed: a pretended engine takes its share")
    parser.add_argument("--samples", type=int, default=640)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--percentile", type=float, default=50, help="of the table and the file")
    parser.add_argument("--lines", type=int, default=12, help="how many lines to print")
    parser.add_argument("--out", help="file for the segments, which benchmarks.cores reads")
    options = parser.parse_args(argv)
    if sys.platform != "linux" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("benchmarks.gil needs Linux and an interpreter with a GIL")
    if "gil_clock" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "LD_PRELOAD": str(library(Path(folder))),
                "OMP_NUM_THREADS": "1",
            }
            arguments = list(sys.argv[1:] if argv is None else argv)
            command = [sys.executable, "-m", "benchmarks.gil", *arguments]
            raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    calls, chunk = _trace_pipeline(
        options.pipeline, options.root, options.samples, options.batch, options.mixed, options.engine
    )
    for percentile in (10, 50):
        found = summary(calls, percentile)
        print(
            f"{options.pipeline}, percentile {percentile}: held {found.held / chunk:.0f} us, "
            f"free {found.free / chunk:.0f} us a sample, {found.releases / chunk:.1f} releases; "
            f"{chunk} samples a call"
        )
    found = summary(calls, options.percentile)
    medians = summary(calls)
    for location, held, free in found.lines[: options.lines]:
        held, free = held / chunk, free / chunk
        print(f"{held:9.1f} held {free:9.1f} free  {location}")
    if options.out:
        # What runs without the GIL depends on the image: its median, whatever the percentile.
        segments = [(h, f) for (h, _), (_, f) in zip(found.segments, medians.segments, strict=True)]
        Path(options.out).write_text(json.dumps({"pipeline": options.pipeline, "segments": segments, "samples": chunk}))


if __name__ == "__main__":
    main()
