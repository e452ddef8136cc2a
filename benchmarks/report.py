"""Tables of what was measured: medians, spread, and ratios pair by pair within a round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from .job import Measurement

Figure = Callable[[Measurement], float]


def _span(values: Sequence[float], digits: int) -> str:
    """``median (min-max)``."""
    low, high = min(values), max(values)
    return f"{median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def select_side(measurements: Iterable[Measurement], side: str) -> list[Measurement]:
    """Return the measurements of one side in the order of the rounds."""
    return sorted((a for a in measurements if a.side == side), key=lambda a: a.round)


def ratios(measurements: Sequence[Measurement], side: str, peer: str, figure: Figure) -> list[float]:
    """``figure(side) / figure(peer)`` for each round that has both; infinite over a zero."""
    peers = {measurement.round: measurement for measurement in select_side(measurements, peer)}
    selected = [measurement for measurement in select_side(measurements, side) if measurement.round in peers]
    pairs = [(figure(measurement), figure(peers[measurement.round])) for measurement in selected]
    return [value / peer_value if peer_value else math.inf for value, peer_value in pairs]


def _row(measurements: Sequence[Measurement], side: str) -> list[str]:
    selected = select_side(measurements, side)
    imports = [f"{name} {median(a.imports[name] for a in selected):.2f}" for name in selected[0].imports]
    return [
        side,
        _span([a.rate for a in selected], 0),
        _span([a.cpu_ms for a in selected], 2),
        f"{median(a.cores for a in selected):.2f}",
        f"{max(a.peak_rss for a in selected):.0f}",
        f"{max(a.snapshots[-1].pss for a in selected):.0f}",
        f"{median(a.first_batch for a in selected):.2f}",
        ", ".join(imports),
    ]


def _ratio_rows(measurements: Sequence[Measurement], side: str, peers: Sequence[str]) -> list[list[str]]:
    return [
        [
            f"{side} / {peer}",
            _span(ratios(measurements, side, peer, lambda a: a.rate), 2),
            _span(ratios(measurements, peer, side, lambda a: a.cpu_ms), 2),
        ]
        for peer in peers
    ]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    table = [list(head), *map(list, rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    lines = (" | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in table)
    return "\n".join(f"| {line} |" for line in lines)


HEAD = (
    "side",
    "samples/s",
    "CPU ms/sample",
    "cores",
    "peak RSS MiB",
    "PSS MiB",
    "first batch s",
    "import s",
)
RATIO_HEAD = ("median (min-max) over rounds", "samples/s, times", "CPU time saved, times")


def tables(measurements: Sequence[Measurement]) -> str:
    """Return all tables of one pipeline's measurements: the sides, then the first side against each other."""
    sides = list(dict.fromkeys(measurement.side for measurement in measurements))
    text = markdown(HEAD, [_row(measurements, side) for side in sides])
    if len(sides) > 1:
        rows = _ratio_rows(measurements, sides[0], sides[1:])
        text += "\n\n" + markdown(RATIO_HEAD, rows)
    return text
