"""Images a second over threads and processes, measured or forecast: ``python -m benchmarks.cores DIR``.

Measured: torchdali with several numbers of threads and processes, and the real DALI beside it, in turn, one process of
Python each, round after round. That says something where there are as many cores. ``--out FILE`` keeps the medians.

Forecast, on any machine: ``--model FILE`` with segments that `benchmarks.gil` has written. Each process has
one lock and its threads; a thread runs a sample's segments in turn, those with the lock when it has got it.
Who comes to a free lock takes it; who waits is woken when it is let go, and takes it a little later, unless
another one has it by then. Every thread has a core. Neither memory bandwidth nor shared caches are modelled;
the process that conducts the others is no limit but ``1 / --conduct``.

Drawn: ``--chart FILE --model FILE ... --measured FILE ...``. DALI's line is its CPU time an image on one core times the
cores: as if it lost nothing with their number.
"""

from __future__ import annotations

import argparse
import heapq
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WAKE = 15.0  # microseconds until a thread runs that waited for the lock

Segments = Sequence[tuple[float, float]]  # held and free, microseconds


def forecast(
    segments: Segments,
    threads: int,
    processes: int,
    wake: float = WAKE,
    conduct: float = 0.0,
    samples: int = 400,
) -> float:
    """Return images a second of some processes with a core for each thread.

    Args:
        segments: Of one sample.
        threads: Of all processes.
        wake: Microseconds until a waiting thread runs.
        conduct: CPU microseconds a sample of the process that conducts several.
        samples: How many each thread does.
    """
    per_process = [threads // processes + (i < threads % processes) for i in range(processes)]
    rate = sum(_simulate_process(segments, each, wake, samples) for each in per_process if each)
    return min(rate, 1e6 / conduct) if conduct and processes > 1 else rate


_RELEASE, _ACQUIRE, _WAKE = range(3)


def _simulate_process(segments: Segments, threads: int, wake: float, samples: int) -> float:
    """Simulate threads with one lock; return images a second."""
    position = [0] * threads  # segment that a thread is in
    done = [0] * threads
    # Events: time, serial, thread, and whether it lets the lock go, comes for it, or wakes to take it.
    events = [(i * sum(segments[0]) / threads, i, i, _ACQUIRE) for i in range(threads)]
    heapq.heapify(events)
    serial, now, is_locked = threads, 0.0, False
    waiting: deque[int] = deque()
    finished = 0
    while events:
        now, _, thread, event = heapq.heappop(events)
        if event == _RELEASE:
            is_locked = False
            heapq.heappush(events, (now + segments[position[thread]][1], serial, thread, _ACQUIRE))
            position[thread] += 1
            if waiting:
                heapq.heappush(events, (now + wake, serial + 1, waiting.popleft(), _WAKE))
            serial += 2
            continue
        if position[thread] == len(segments):
            position[thread], done[thread] = 0, done[thread] + 1
            finished += 1
            if done[thread] == samples:
                return finished * 1e6 / now  # the first thread that is done ends the measurement
        if is_locked and event == _WAKE:
            waiting.appendleft(thread)
        elif is_locked:
            waiting.append(thread)
        else:
            is_locked = True
            heapq.heappush(events, (now + segments[position[thread]][0], serial, thread, _RELEASE))
            serial += 1
    return 0.0


def measured(
    package: str, pipeline: str, root: str, batch: int, threads: int, processes: int, seconds: float
) -> tuple[float, float]:
    """Run a pipeline in this process; return images a second and CPU microseconds an image."""
    from .pipelines import build

    options: dict[str, Any] = {"num_processes": processes} if package == "torchdali" else {}
    pipe = build(package, pipeline, root, batch_size=batch, num_threads=threads, seed=1, **options)
    for _ in range(6):
        pipe.run()
    count, started, cpu = 0, time.perf_counter(), _cpu()
    while time.perf_counter() - started < seconds:
        pipe.run()
        count += batch
    elapsed, cpu = time.perf_counter() - started, _cpu() - cpu
    return count / elapsed, 1e6 * cpu / count


def _cpu() -> float:
    """Return CPU seconds of this process and its children."""
    psutil: Any = importlib.import_module("psutil")

    parent = psutil.Process()
    times = [p.cpu_times() for p in (parent, *parent.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


Row = tuple[str, int, int, float, float]
"""Package, threads, processes, images a second, CPU microseconds an image."""


def measure(
    root: str, pipeline: str, pairs: Sequence[tuple[int, int]], dali: bool, batch: int, rounds: int, seconds: float
) -> list[Row]:  # fmt: skip
    """Measure threads and processes in turn, print each round, and return the medians."""
    sides = [("torchdali", t, p) for t, p in pairs]
    if dali:
        sides += [("nvidia.dali", t, 1) for t in sorted({t for t, _ in pairs})]
    found: dict[Any, list[tuple[float, float]]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            package, t, p = side
            rate, cpu = _run_process(package, pipeline, root, batch, t, p, seconds)
            found[side].append((rate, cpu))
            line = f"{package:12} {t:3d} threads, {p:2d} processes: {rate:8.0f} images/s {cpu:8.0f} us"
            print(line, flush=True)
    medians = [(*side, *map(statistics.median, zip(*each, strict=True))) for side, each in found.items()]
    for package, t, p, rate, cpu in medians:
        print(f"median: {package:12} {t:3d} threads, {p:2d} processes: {rate:8.0f} images/s {cpu:8.0f} us")
    return medians


def drawing(
    models: Sequence[Any],
    measurements: Sequence[Any],
    cores: Sequence[int],
    wake: float,
    conduct: float,
    is_busy: bool = False,
) -> str:
    """Return a chart, a panel for each pipeline.

    Args:
        models: Contents of files that `benchmarks.gil` wrote.
        measurements: Contents of files that this module wrote.
        cores: To draw.
        wake, conduct: See `forecast`.
        is_busy: Take the measured CPU times in place of what came in a second.
    """
    from .cores_chart import Line, chart

    panels: dict[str, list[Line]] = {}
    for model in models:
        each = model["samples"]
        kind = "fast path" if each > 1 else "Python"
        for name, count in ((f"torchdali, {kind}", 0), (f"torchdali, {kind}, one process", 1)):
            if count and each > 1:
                continue  # it does not hold the lock long enough to differ
            points = [
                (t, each * forecast(model["segments"], t, count or (1 if each > 1 else t), wake, conduct * each))
                for t in cores
            ]  # fmt: skip
            panels.setdefault(model["pipeline"], []).append(Line(name, points))
    for found in measurements:
        lines = panels.setdefault(found["pipeline"], [])
        rows = [tuple(row) for row in found["rows"]]
        cpu = min((r[4] for r in rows if r[0] == "nvidia.dali"), default=0.0)
        if cpu:
            lines.append(Line("DALI", [(t, t * 1e6 / cpu) for t in cores]))
        for package, name in (
            ("torchdali", f"torchdali, {found['kind']}"),
            ("nvidia.dali", "DALI"),
        ):
            best = [
                (
                    t,
                    max(r[1] * 1e6 / r[4] if is_busy else r[3] for r in rows if r[:2] == (package, t)),
                )
                for t in sorted({r[1] for r in rows if r[0] == package})
            ]
            lines.append(Line(name, best, is_measured=True))
    dots = "CPU time, as if nothing else ran" if is_busy else "images/s"
    note = f"Dots: measured {dots}. Dashed: forecast (DALI: linear)."
    return chart(panels, note)


def _run_process(*arguments: object) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.cores", "--one", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    rate, cpu = done.stdout.split()[-2:]
    return float(rate), float(cpu)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--one"]:
        package, pipeline, root, *numbers, seconds = arguments[1:]
        batch, t, p = map(int, numbers)
        print(*measured(package, pipeline, root, batch, t, p, float(seconds)))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("root", nargs="?", help="folder of images, one folder a class")
    parser.add_argument("--pipeline", default="train")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", default="1,2,4,8,16,32", help="numbers of threads")
    parser.add_argument("--processes", default="", help="numbers of processes; default: 1 and what pays")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of one measurement")
    parser.add_argument("--dali", action="store_true", help="measure the real DALI, too")
    parser.add_argument("--out", help="file for the medians of what is measured")
    parser.add_argument("--model", nargs="*", help="forecast from the segments in these files, measure nothing")
    parser.add_argument("--chart", help="file for a drawing of --model and --measured")
    parser.add_argument("--busy", action="store_true", help="draw measured CPU times: others use this machine, too")
    parser.add_argument("--measured", nargs="*", default=[], help="files of --out, for --chart")
    parser.add_argument("--wake", type=float, default=WAKE, help="microseconds; see above")
    parser.add_argument("--conduct", type=float, default=20.0, help="microseconds; see above")
    options = parser.parse_args(arguments)
    if options.model is None and options.root is None:
        parser.error("give a folder of images to measure, or --model to forecast")
    threads = [int(each) for each in options.threads.split(",")]
    requested = [int(each) for each in options.processes.split(",") if each]
    pairs = [(t, p) for t in threads for p in sorted({1, t, *requested}) if p <= t]
    if options.model is not None:
        models = [json.loads(Path(file).read_text()) for file in options.model]
        for found in models:
            for t, p in pairs:
                each = found["samples"]  # of a call, whose segments these are
                rate = each * forecast(found["segments"], t, p, options.wake, options.conduct * each)
                print(f"{found['pipeline']}: {t:3d} threads, {p:2d} processes: {rate:8.0f} images/s (forecast)")
        if options.chart:
            measurements = [json.loads(Path(file).read_text()) for file in options.measured]
            drawn = drawing(models, measurements, threads, options.wake, options.conduct, options.busy)
            Path(options.chart).write_text(drawn)
        return
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; images/s and CPU us an image, of each round")
    rows = measure(
        options.root, options.pipeline, pairs, options.dali, options.batch, options.rounds, options.seconds
    )  # fmt: skip
    if options.out:
        from torchdali.pipeline import native_status

        kind = "fast path" if native_status().library else "Python"
        content = {"pipeline": options.pipeline, "kind": kind, "rows": rows}
        Path(options.out).write_text(json.dumps(content))


if __name__ == "__main__":
    main()
