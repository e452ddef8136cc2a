"""Look for growth of memory: ``python -m benchmarks.memory DIR --side torchdali``.

Prints the resident memory of one side after 100 and after 2,000 batches of the training pipeline.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import rounds
from .job import PIPELINES, SIDES, Job


def main(argv: list[str] | None = None) -> None:
    """Run one side and print its memory at each of the asked numbers of batches."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR", help="a folder with one folder a class")
    parser.add_argument("--side", choices=SIDES, default="torchdali")
    parser.add_argument("--pipeline", choices=PIPELINES, default="train")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--at", type=int, nargs="+", default=[100, 500, 1000, 2000])
    options = parser.parse_args(argv)
    root, at = str(options.root.resolve()), tuple(sorted(options.at))
    measurement = rounds.run(Job(options.side, options.pipeline, root, options.batch, options.threads, 0, at))
    for count, snapshot in zip(at, measurement.snapshots, strict=True):
        growth = 100 * (snapshot.rss / measurement.snapshots[0].rss - 1)
        print(f"batch {count}: RSS {snapshot.rss:.0f} MiB ({growth:+.1f} %), PSS {snapshot.pss:.0f} MiB")
    print(f"peak RSS {measurement.peak_rss:.0f} MiB")


if __name__ == "__main__":
    main()
