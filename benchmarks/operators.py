"""Compare the operators with the real DALI: ``python -m benchmarks.operators``.

Each side is a process; case by case they run in turn. All cases are
measured in about eight minutes, and the tables are then written to ``benchmarks/speed*.md``;
`--only` selects some and prints them.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .imagenet import machine
from .operator_cases import Case
from .operator_inputs import BATCH, SIZES
from .operator_side import CASES, SOURCE
from .report import markdown

SMALL = "small"  # what has no size
SIDES = {"torchdali": "torchdali", "dali": "nvidia.dali"}
NAMED = (
    "resize", "rotate", "warp_affine", "color_twist", "gaussian_blur", "crop_mirror_normalize", "normalize",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]


class Side:
    """A measuring process (`benchmarks.operator_side`)."""

    def __init__(self, package: str, threads: int) -> None:
        command = [sys.executable, "-m", "benchmarks.operator_side", package, str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )  # fmt: skip

    def measure(self, case: str, size: str, seconds: float) -> dict[str, Any]:
        """Request one measurement; the reply contains milliseconds per batch, or ``error``."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"case": case, "size": size, "seconds": seconds}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else {"error": "the process died"}

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@dataclass(frozen=True)
class Result:
    """Measurements of a case with images of one size: a pair of replies per round, ours first.

    Attributes:
        error: Why there is none.
    """

    operator: str
    name: str
    size: str
    pairs: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = ()
    error: str = ""

    def ratio(self, figure: str = "cpu") -> float:
        """DALI's cost over ours; above 1 we are faster."""
        return self.best(1, figure) / self.best(0, figure)

    def best(self, side: int, figure: str = "cpu") -> float:
        """Milliseconds a batch of side 0 (torchdali) or 1, of the best round: others only add to them."""
        return min(float(pair[side][figure]) for pair in self.pairs)

    def cost(self, side: int) -> float:
        """CPU microseconds a sample."""
        return 1e3 / BATCH * self.best(side)


def measure(sides: Sequence[Side], operator: str, name: str, size: str, rounds: int, seconds: float) -> Result:
    """Measure one case on both sides in turn."""
    pairs = []
    for _ in range(rounds):
        ours, theirs = (side.measure(name, size, seconds) for side in sides)
        for side, reply in zip(SIDES, (ours, theirs), strict=True):
            if "error" in reply:
                return Result(operator, name, size, error=f"{side}: {reply['error']}")
        pairs.append((ours, theirs))
    return Result(operator, name, size, tuple(pairs))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def ratio_by_operator(results: Sequence[Result], figure: str = "cpu") -> dict[str, float]:
    """Return the ratio of each operator: the geometric mean of its cases and sizes."""
    found: dict[str, list[float]] = {}
    for result in results:
        found.setdefault(result.operator, []).append(result.ratio(figure))
    return {operator: geometric_mean(ratios) for operator, ratios in found.items()}


# ---------------------------------------------------------------- the report

_HEAD = (
    "operator", "input", "torchdali CPU us/sample", "DALI CPU us/sample", "by CPU time", "by wall clock",
)  # fmt: skip


def _row(result: Result) -> list[str]:
    costs = (f"{result.cost(side):.1f}" for side in (0, 1))
    return [
        f"`{result.operator}`{result.name.removeprefix(result.operator)}",
        result.size,
        *costs,
        f"**{result.ratio():.2f}**",
        f"{result.ratio('wall'):.2f}",
    ]


def _summary(results: Sequence[Result]) -> str:
    cpu, wall = ratio_by_operator(results), ratio_by_operator(results, "wall")
    parts = {
        "geometric mean of all operators": results,
        "of operators on images": [r for r in results if r.size in SIZES],
        "of operators on boxes, points, numbers": [r for r in results if r.size not in SIZES],
    }
    rows = [
        [
            name,
            *(f"{geometric_mean(ratio_by_operator(part, f).values()):.2f}" for f in ("cpu", "wall")),
        ]
        for name, part in parts.items()
        if part
    ]
    rows += [[f"`{n}`", f"{cpu[n]:.2f}", f"{wall[n]:.2f}"] for n in NAMED if n in cpu]
    return markdown(("times as fast as DALI", "by CPU time", "by wall clock"), rows)


def _slowest(results: Sequence[Result]) -> str:
    slower = sorted((r for r in results if r.ratio() < 1), key=Result.ratio)
    if not slower:
        return "No case is slower than DALI's."
    return markdown(_HEAD, [_row(result) for result in slower[:15]])


def reports(results: Sequence[Result], source: Sequence[Result], options: argparse.Namespace) -> dict[str, str]:
    """Return the pages of a run by what is appended to the first one's name."""
    good = [r for r in results if not r.error]
    written = (
        f"Written by `python -m benchmarks.operators` on: {machine()}; {options.threads} threads a side, "
        f"batches of {BATCH}, {options.rounds} rounds; {_opencv()}."
    )
    lines = [
        _TITLE,
        written,
        "Each case is a pipeline of one operator and its source, if it has one, on DALI 2.4 (CPU) and on torchdali; "
        "parameters like angles are drawn for each sample on both sides. Ratios are DALI's time over torchdali's: "
        "above 1, it is faster. Each is from a side's best round, because disturbances only add time. CPU time counts "
        "all threads; the wall clock also includes other programs' work. If a sample costs less than some 50 us, the "
        "GIL keeps torchdali's threads from helping each other, and one does the work, unless one call processes "
        "several samples. An operator's ratio is the geometric mean of its "
        "cases'. All cases: [images](speed_images.md), [boxes, points, numbers](speed_numbers.md).",
        "The source passes a batch in memory without a copy; its time isn't subtracted. "
        + " ".join(_describe_source(result) for result in source),
        "## Summary",
        _summary(good),
        "## Where torchdali is slowest",
        _slowest(good),
    ]
    if failed := [r for r in results if r.error]:
        lines += [
            "## Not measured",
            "\n".join(f"- `{r.name}`, {r.size}: {r.error}" for r in failed),
        ]
    parts = {
        "_images": ("images", [r for r in good if r.size in SIZES]),
        "_numbers": ("boxes, points, numbers", [r for r in good if r.size not in SIZES]),
    }
    pages = {
        suffix: [f"{_TITLE}: {subject}", written, _METHOD, markdown(_HEAD, [_row(result) for result in part])]
        for suffix, (subject, part) in parts.items()
    }
    return {suffix: "\n\n".join(page) + "\n" for suffix, page in {"": lines, **pages}.items()}


_TITLE = "# Speed of the operators compared with DALI"
_METHOD = "For the columns, see [the first page](speed.md)."


def _opencv() -> str:
    """Say whether torchdali's kernels had OpenCV (the extra ``image``) to use."""
    try:
        return f"with OpenCV {importlib.metadata.version('opencv-python-headless')}"
    except importlib.metadata.PackageNotFoundError:
        return "without OpenCV, which the extra `image` installs and which makes several operators faster"


def _describe_source(result: Result) -> str:
    if result.error:
        return f"Alone, it failed: {result.error}."
    return (
        f"A pipeline of the source alone costs {result.cost(0):.1f} us an image of {result.size} with torchdali, "
        f"{result.cost(1):.1f} us with DALI, which copies its outputs."
    )


# ---------------------------------------------------------------- running


def _chosen(text: str) -> tuple[Case, ...]:
    names = text.split(",")
    found = tuple(c for c in CASES if c.name in names or c.operator in names)
    known = {c.name for c in found} | {c.operator for c in found}
    if unknown := sorted(set(names) - known):
        raise argparse.ArgumentTypeError(f"{unknown}: neither operators nor cases")
    return found


def _among(text: str) -> tuple[str, ...]:
    sizes = tuple(text.split(","))
    if unknown := sorted(set(sizes) - {*SIZES, SMALL}):
        raise argparse.ArgumentTypeError(f"{unknown}: not among {', '.join((*SIZES, SMALL))}")
    return sizes


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__)
    parser.add_argument("--only", type=_chosen, metavar="A,B,...", help="operators, or cases of the table")
    parser.add_argument("--sizes", type=_among, default=(*SIZES, SMALL), metavar="A,B,...")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a measurement, at least one batch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="the first page to write; benchmarks/speed.md without --only")
    return parser.parse_args(argv)


def _run(options: argparse.Namespace, measure_case: Callable[..., Result]) -> list[Result]:
    results = []
    for case in options.only or CASES:
        for size in case.sizes:
            if (size if size in SIZES else SMALL) not in options.sizes:
                continue
            result = measure_case(case.operator, case.name, size)
            status = result.error or f"{result.ratio():.2f} by CPU, {result.ratio('wall'):.2f} by wall"
            print(f"{case.name}, {size}: {status}", file=sys.stderr, flush=True)
            results.append(result)
    return results


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark and write or print its pages."""
    options = _arguments(argv)
    sides = [Side(package, options.threads) for package in SIDES.values()]
    measure_case = functools.partial(measure, sides, rounds=options.rounds, seconds=options.seconds)
    try:
        source = [measure_case(SOURCE, SOURCE, size) for size in options.sizes if size in SIZES]
        results = _run(options, measure_case)
    finally:
        for side in sides:
            side.close()
    if not results:
        raise SystemExit("no case takes input of that size")
    target = options.output or (None if options.only else ROOT / "benchmarks" / "speed.md")
    for suffix, page in reports(results, source, options).items():
        if target is None:
            print(page)
        else:
            target.with_stem(target.stem + suffix).write_text(page)


if __name__ == "__main__":
    main()
