"""A chart of `benchmarks.cores`: images a second over cores, measured and forecast, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Line", "chart"]

_WIDTH, _HEIGHT = 400, 320  # of a panel
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 34, 12, 44  # margins
_LEGEND = 18  # a line of text


@dataclass(frozen=True)
class Line:
    """A line of a panel.

    Attributes:
        name: In the legend; lines of one name are drawn alike.
        points: Cores and images a second.
        is_measured: Drawn as dots; what is forecast, as a dashed line.
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_measured: bool = False


_COLORS = ("#1f77b4", "#d95f02", "#7b3294", "#444444", "#1b9e77")


def chart(panels: Mapping[str, Sequence[Line]], note: str) -> str:
    """Return a drawing of panels beside each other, with logarithmic axes.

    Args:
        panels: Lines by title.
        note: Below the legend.
    """
    lines = [line for each in panels.values() for line in each]
    colors = dict(zip(dict.fromkeys(line.name for line in lines), _COLORS, strict=False))
    cores, rates = ([p[i] for line in lines for p in line.points] for i in (0, 1))
    across = _scale(min(cores), max(cores), _LEFT, _WIDTH - _RIGHT)
    up = _scale(_floor(min(rates)), _ceiling(max(rates)), _HEIGHT - _BOTTOM, _TOP)
    marks = sorted(set(cores)), _rounded(_floor(min(rates)), _ceiling(max(rates)))
    height = _HEIGHT + _LEGEND * (len(colors) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH * len(panels)} {height}" '
        f'font-family="sans-serif" font-size="12" fill="#222222">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for i, (title, each) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({_WIDTH * i} 0)">')
        parts += [*_axes(title, marks, across, up), *_drawn(each, colors, across, up), "</g>"]
    for i, (name, color) in enumerate(colors.items()):
        y = _HEIGHT + _LEGEND * i + 8
        parts.append(f'<path d="M{_LEFT} {y}h30" stroke="{color}" stroke-width="2.5"/>')
        parts.append(_text(_LEFT + 38, y + 4, name, "start"))
    parts.append(_text(_LEFT, _HEIGHT + _LEGEND * len(colors) + 12, note, "start"))
    return "\n".join([*parts, "</svg>", ""])


_Scale = Callable[[float], float]


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(value / low) / span


_STEPS = (1, 2, 5, 10)


def _floor(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in _STEPS if step * power <= value)


def _ceiling(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(step * power for step in _STEPS if step * power >= value)


def _rounded(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = (step * 10.0**power for power in powers for step in _STEPS[:3])
    return [value for value in found if low <= value <= high]


def _axes(title: str, marks: tuple[Sequence[float], Sequence[float]], across: _Scale, up: _Scale) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [_text((_LEFT + right) / 2, 20, title, "middle", ' font-weight="bold"')]
    for value in marks[0]:
        x = across(value)
        parts.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(_text(x, bottom + 16, f"{value:g}"))
    for value in marks[1]:
        y = up(value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#e4e4e4"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{value:,.0f}", "end"))
    parts.append(_text((_LEFT + right) / 2, bottom + 33, "cores = threads"))
    middle = (_TOP + bottom) / 2
    turned = f' transform="rotate(-90 12 {middle:.0f})"'
    parts.append(_text(12, middle, "images/s", "middle", turned))
    return parts


def _drawn(lines: Sequence[Line], colors: Mapping[str, str], across: _Scale, up: _Scale) -> list[str]:
    parts = []
    for line in lines:
        color, at = colors[line.name], [(across(x), up(y)) for x, y in line.points]
        if line.is_measured:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>' for x, y in at]
        else:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
            parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="6 3"/>')
    return parts


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
