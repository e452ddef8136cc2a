"""Tables of what was measured: medians, spread, and ratios pair by pair within a round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from .job import Answer

Figure = Callable[[Answer], float]


def _span(values: Sequence[float], digits: int) -> str:
    """``median (min-max)``."""
    low, high = min(values), max(values)
    return f"{median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def of_side(answers: Iterable[Answer], side: str) -> list[Answer]:
    """The answers of one side in the order of the rounds."""
    return sorted((a for a in answers if a.side == side), key=lambda a: a.round)


def ratios(answers: Sequence[Answer], side: str, peer: str, figure: Figure) -> list[float]:
    """``figure(side) / figure(peer)`` for each round that has both; infinite over a zero."""
    peers = {answer.round: answer for answer in of_side(answers, peer)}
    mine = [answer for answer in of_side(answers, side) if answer.round in peers]
    pairs = [(figure(answer), figure(peers[answer.round])) for answer in mine]
    return [own / other if other else math.inf for own, other in pairs]


def _row(answers: Sequence[Answer], side: str) -> list[str]:
    own = of_side(answers, side)
    imports = [f"{name} {median(a.imports[name] for a in own):.2f}" for name in own[0].imports]
    return [
        side,
        _span([a.rate for a in own], 0),
        _span([a.cpu_ms for a in own], 2),
        f"{median(a.cores for a in own):.2f}",
        f"{max(a.peak_rss for a in own):.0f}",
        f"{max(a.looks[-1].pss for a in own):.0f}",
        f"{median(a.first_batch for a in own):.2f}",
        ", ".join(imports),
    ]


def _ratio_rows(answers: Sequence[Answer], side: str, peers: Sequence[str]) -> list[list[str]]:
    return [
        [
            f"{side} / {peer}",
            _span(ratios(answers, side, peer, lambda a: a.rate), 2),
            _span(ratios(answers, peer, side, lambda a: a.cpu_ms), 2),
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


def tables(answers: Sequence[Answer]) -> str:
    """All tables of one pipeline's answers: the sides, then the first side against each other."""
    sides = list(dict.fromkeys(answer.side for answer in answers))
    text = markdown(HEAD, [_row(answers, side) for side in sides])
    if len(sides) > 1:
        rows = _ratio_rows(answers, sides[0], sides[1:])
        text += "\n\n" + markdown(RATIO_HEAD, rows)
    return text
